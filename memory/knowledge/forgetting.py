"""Remove from memory what was made from messages that are erased, refused or asked to be forgotten.

What a person asks to forget, in words or through a model's tool, is forgotten as if its messages had been erased, but
for their words: they stay stored, kept out of memory and hidden from their own session's prompts.

Invariants:
- Once the jobs have run, no summary, title, document or prompt has what was made of these messages, or their words
  (test_forgetting).
- No document, and no earlier version of one, says what rests on these messages, alone or with others. A
  profile loses those values, an instruction those versions, an overview those sentences; any other document goes whole.
  A value goes too if it names a message that is no source of its document: an import may have renamed the session
  (test_erasing, test_profile, test_overview).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, and_, or_, select

from memory import instructions
from memory.access.owners import lock_session
from memory.engine import Engine
from memory.errors import ModelError
from memory.knowledge import facts, overview
from memory.knowledge.fact_reads import read_facts, supersession_chain
from memory.knowledge.fact_writes import delete_with_history
from memory.knowledge.profile import NAMESPACE as PROFILE
from memory.knowledge.profile_patch import Profile
from memory.knowledge.summaries import summarised_without
from memory.sessions.memory_requests import MessageWords, find_repeating, find_saying, keep_out, with_replies
from memory.sessions.refused_messages import mark_refused
from memory.store import item_rows
from models import FactRow, ItemRow, MessageRow, Transaction
from models.owners import Caller
from models.store import Source


def forget_messages(tx: Transaction, messages: Select[int], now: datetime) -> Counter[str]:
    """Remove what rests on these messages; return the number of rows by kind. messages: a query of ids."""
    removed = Counter(items=0, item_versions=0)
    owners = select(MessageRow.owner_id).where(MessageRow.id.in_(messages))
    is_overview = ItemRow.namespace == item_rows.join_namespace(overview.NAMESPACE), ItemRow.owner_id.in_(owners)
    rests = or_(ItemRow.id.in_(item_rows.resting_on(messages)), and_(*is_overview))
    for row in tx.execute(item_rows.ITEMS.add_columns(ItemRow.owner_id).where(rests)).all():
        item = item_rows.as_item(row)
        if item.namespace == overview.NAMESPACE:
            removed += overview.forget_sessions(tx, row.owner_id, item, messages, now)
        elif item.namespace in (PROFILE, instructions.NAMESPACE):
            item_rows.remove_sources(tx, item.id, messages)
            left = item_rows.sources_of(tx, [item.id])[item.id]
            stays = partial(_profile_of if item.namespace == PROFILE else _instruction_of, left)
            removed += item_rows.drop_versions(tx, row.owner_id, item, stays, now)
        else:
            removed += item_rows.remove(tx, [item.id])
    return removed


def _profile_of(sources: Collection[Source], value: Any) -> Any:
    """Return the profile without values that rest on other messages than these."""

    def is_removed(source: Mapping[str, Any]) -> bool:
        session_id = source["session_id"]  # None: a person wrote the value
        return session_id is not None and Source(session_id, source["position"]) not in sources

    profile = Profile.of(value).without(lambda item: is_removed(item.source))
    return asdict(profile) if profile.document else {}


def _instruction_of(sources: Collection[Source], value: Any) -> Any:
    """Return the instruction; None if it rests on other messages than these."""
    return value if all(Source(*place) in sources for place in value["sources"]) else None


def refuse_messages(tx: Transaction, ids: Collection[int], error: ModelError, now: datetime) -> None:
    """Mark messages as refused, and delete the facts that an earlier try took from them.

    The caller holds the session's lock, and asks for the job that takes the messages out of the index.
    """
    mark_refused(tx, ids, error, now)
    delete_with_history(tx, tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(ids))), now, "refused")
    forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), now)


def forget_asked(
    engine: Engine, tx: Transaction, caller: Caller, rests: Mapping[int, str], requests: Collection[int]
) -> None:
    """Forget facts that messages of these ids, the `requests`, ask to forget.

    rests: the ids of the facts, with what else each says: that stays known as a fact without a message, if it says no
    more than the old one did. Empty: nothing stays.

    What rests on the messages that stated them goes too. These, the requests, and the replies to both are kept out,
    and so is what repeats the facts since, in any session.
    """
    forgotten = FactRow.id.in_(supersession_chain(tx, rests))
    columns = FactRow.owner_id, FactRow.source_message_id, FactRow.text, FactRow.quote
    by_owner: dict[int, list[tuple[int, str, str]]] = defaultdict(list)
    for owner_id, source, text, quote in tx.execute(select(*columns).where(forgotten)).all():
        by_owner[owner_id].append((source or 0, text, quote))
    sources = {source for stated in by_owner.values() for source, *_ in stated if source}
    repeating = {found for owner_id, stated in by_owner.items() for found in find_repeating(tx, owner_id, stated)}
    facts.forget(engine, tx, caller, rests, rests=rests)
    for owner_id, stated in by_owner.items():
        _refuse_waiting(tx, owner_id, [texts for _, *texts in stated], engine.now())
    _forget_exchanges(engine, tx, {*sources, *repeating, *requests})


def forget_said(engine: Engine, tx: Transaction, owner_id: int, text: str, requests: Collection[int]) -> bool:
    """Forget the messages that say a text which is no known fact; return whether a person's message says it.

    The requests and the replies go too, and so do all that repeat it. Facts of these messages stay.
    """
    saying = find_saying(tx, owner_id, text, requests)
    _refuse_waiting(tx, owner_id, [(text, text)] if saying else (), engine.now())
    _forget_exchanges(engine, tx, {*saying, *requests} if saying else ())
    return bool(saying)


def _refuse_waiting(tx: Transaction, owner_id: int, forgotten: Iterable[Sequence[str]], now: datetime) -> None:
    """Delete an owner's facts that wait for review and repeat one of these texts, each with its quote."""
    texts = list(forgotten)
    waiting = read_facts(tx, FactRow.owner_id == owner_id, FactRow.waiting) if texts else ()
    words = {fact.id: MessageWords("user", f"{fact.text}\n{fact.quote}") for fact in waiting}
    repeating = [fact_id for fact_id, said in words.items() if any(said.repeats(*text) for text in texts)]
    delete_with_history(tx, repeating, now, "refused")


def _forget_exchanges(engine: Engine, tx: Transaction, message_ids: Collection[int]) -> None:
    """Keep messages and the replies to them out of memory, with what was made of them."""
    by_session: dict[int, list[MessageRow]] = defaultdict(list)
    for message in with_replies(tx, message_ids):
        by_session[message.session_id].append(message)
    locked = ((lock_session(tx, session_id), messages) for session_id, messages in sorted(by_session.items()))
    sessions = [(row, messages) for row, messages in locked if row is not None]
    for row, messages in sessions:
        ids = [message.id for message in messages]
        forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), engine.now())
        with summarised_without(engine, tx, row, messages):
            keep_out(row, messages, engine.now())
    for row, _ in sessions:
        engine.sessions.enqueue_follow_ups(tx, row)
