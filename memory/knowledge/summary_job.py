"""Update summaries in a job: the mini model reads the messages since the last one, and its answer is stored.

The database is free while the model works.

Invariants:
- An update reads the active branch after the summary it goes on from, in order and without a gap but for erased, hidden
  and refused messages [test_summary].
- It is stored only if nobody changed the summary meanwhile, and no message that it was made from was replaced, erased,
  hidden, refused or kept out of memory [test_an_old_summary_never_overwrites_a_newer_one, test_erasing,
  test_message_versions, test_forgetting].
- Each call of the model is charged: in the transaction that stores what it made, or in one of its own [test_budgets].
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from sqlalchemy import Row, and_, bindparam, case, exists, func, literal_column, or_, select, update

from memory import conversation_types, tokens
from memory.access.owners import OWNER_AND_TENANT, lock_owner
from memory.engine import Engine
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, AnswerRefused, ModelError
from memory.knowledge import consolidation, learned_instructions, overview, profile
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_reads import IN_ALL_SESSIONS, NOW, current_facts, in_scope
from memory.knowledge.fact_writes import add_proposed, schedule_end
from memory.knowledge.forgetting import forget_asked, forget_said
from memory.knowledge.rule_set import RuleSet, rules_in_force, stored_rules
from memory.knowledge.summaries import insert_version, replace_texts
from memory.knowledge.summary_update import SHRUNKEN, SummaryInput, SummaryUpdate, shortened, update_summary
from memory.llm.mini_model import BATCH_TOKENS, ParsedAnswer
from memory.ops import logs
from memory.prompts.prompts import HAS_PROMPTS, PromptTemplate
from memory.sessions.compaction import use_newest_summary
from memory.sessions.memory_requests import (
    asks_to_forget,
    asks_to_keep_out,
    drafts_asked_for,
    may_be_asked_to_forget,
    named_to_forget,
    unknown_to_forget,
    without_kept_out,
    words_beside_requests,
)
from memory.sessions.messages import INDEXED, NEXT_VISIBLE, RECENT_MESSAGES, VISIBLE
from memory.sessions.refused_messages import mark_refused
from memory.sessions.titles import FIRST_MESSAGE, title_after
from memory.store.item_rows import unexpired
from models import FactRow, ItemRow, JobRow, MessageRow, OwnerRow, SessionRow, SummaryRow, Transaction, has_row_locks
from models.facts import Fact
from models.jobs import Job
from models.messages import Message, in_zone, is_kept_out
from models.owners import Caller, Usage
from models.sections import Sections
from search_index import SearchableText

log = logging.getLogger(__name__)

KNOWN_FACTS_TOKENS = 600  # of known facts that the mini model sees, so that it can say which of them changed
BATCH_MESSAGES = BATCH_TOKENS // tokens.MESSAGE_OVERHEAD
SHORTEST_CHARS = 400  # to which a message is cut that a model can't read whole
LATER_MAX = 4  # later messages that are tried after one that the mini model always answers badly
TOO_MUCH = frozenset({"summary_cut_off", CONTENT_REFUSED, CONTEXT_EXCEEDED})
"""The codes of errors that fewer messages may avoid."""
_MOST = "messages_max"  # in a job's payload: how many messages the mini model could read in one call
_BAD = "answered_badly"  # there too: the mini model has answered badly at the job's last try


@dataclass(frozen=True)
class Batch:
    """Input of one call of the mini model, and the session when it was read.

    session: of `read_session`. last: the position of the last message that waits for a summary.
    most: how many messages the job's next part may have. refused: the model server's refusal of the only message.
    is_bad: the mini model always answers one of the messages badly.
    kept_out_requests: messages, with their words, that ask to forget something and not to be remembered themselves.
    """

    session: Row[Any]
    last: int
    source: SummaryInput
    prompt: PromptTemplate
    most: int
    kept_out_requests: Sequence[Message] = ()
    refused: ModelError | None = None
    is_bad: bool = False

    @property
    def through(self) -> int:
        return self.source.messages[-1].position

    def of(self, messages: Sequence[Message]) -> Self:
        """Return the batch with other messages; the job's next parts have at most as many."""
        return replace(self, source=replace(self.source, messages=messages), most=len(messages))


def run(engine: Engine, job: Job) -> bool:
    """Summarise the first messages that no summary covers, as many as one call can read; return whether there are more.

    If the model fails on so many, it reads half of them, down to one. A single message that the server refuses is left
    out; one that is too long is shortened. The job's next parts have no more messages than the one that worked.
    The job's last try does so as well if the model answers badly, and the built-in model reads a message of which the
    mini model makes no summary, while it makes one of a later message: else it is the model's fault, and all wait. If
    the model can't go on from what the built-in model wrote, the unchanged summary covers the message. The next parts
    of that job do so at their first try.
    Messages that arrive meanwhile are left to the job of their own turn, which waits for the end of a burst.
    Idempotent. Raises ModelError.
    """
    payload = job.payload or {}
    default = engine.settings.summary_prompt
    names = payload.get("prompt") or default, default  # the second for a prompt that was deleted since
    with engine.database.read() as tx:
        session = read_session(engine, tx, job.session_id, job.owner_id, job.tenant)
        if session is None:
            return False
        has_prompts = session.has_prompts
        prompt = engine.prompts.find(tx, Caller(job.tenant), *names, has_prompts=has_prompts)
        newest = session.sections, session.through
        batch = make_batch(engine, tx, session, prompt, newest, payload.get(_MOST, BATCH_MESSAGES))
    if batch is None:
        return False
    spent: list[Usage] = []
    try:
        batch, answer = _update_fewer(engine, job, batch, spent)
        stored = _store(engine, job, batch, answer, spent)
    finally:
        engine.budgets.add_usage_now(session.owner_id, spent)  # none left if `_store` has charged it
    return not stored or batch.through < batch.last


# -- reading


def read_session(engine: Engine, tx: Transaction, session_row_id: int | None, owner_id: int | None, tenant: str) -> Any:
    """Return the session as an update reads it, a row of _READ; None where it was erased."""
    params = {"session": session_row_id, "owner": owner_id, "tenant": tenant, NOW.key: engine.now()}
    return tx.execute(_READ, params).one_or_none()


def make_batch(
    engine: Engine,
    tx: Transaction,
    session: Any,
    prompt: PromptTemplate,
    previous: tuple[Any, int | None],
    most: int,
) -> Batch | None:
    """Return a batch of the next messages, at most `most`; None if there are none.

    session: of `read_session`.
    previous: the sections of the summary to continue, and its last position. None: there is no summary.
    """
    rules = rules_in_force(session)
    sections, through = previous
    messages = _read_messages(tx, session.id, through or 0, most)
    last = session.message_count
    if messages and messages[-1].role == "user" and session.lease_until and session.lease_until > engine.now():
        last = messages.pop().position - 1  # a turn is about to answer it
    if not messages:
        return None
    of_session = session.owner_id, session.id, session.facts_revision
    known = current_facts(engine, tx, *of_session) if session.has_facts else ()
    text = " ".join(message.content for message in messages)
    readable = without_kept_out(messages)
    zone = engine.settings.zone(session.timezone)  # "tomorrow" is counted from the person's own day
    source = SummaryInput(
        previous=rules.kept_of(Sections.from_dict(sections)) if sections else Sections(),
        messages=in_zone(readable, zone),
        known_facts=Ranking.of(engine).about(known, text, KNOWN_FACTS_TOKENS, engine.now()),
        session_id=session.public_id,
        zone=zone,
        beside_requests={
            message.id: words_beside_requests(message.content)
            for message in readable
            if message.role == "user" and asks_to_forget(message.content)
        },
        links=engine.settings.links == "on",
        types=() if session.type else engine.types.choices(session.types.split(",") if session.types else ()),
        instructions=learned_instructions.may_be_in(engine, readable),
        rules=rules,
    )
    kept_out_requests = [
        message
        for message in messages
        if message.role == "user" and asks_to_keep_out(message.content) and asks_to_forget(message.content)
    ]
    return Batch(session, last, source, prompt, most, kept_out_requests)


# -- the model


def _update_fewer(
    engine: Engine, job: Job, batch: Batch, spent: list[Usage]
) -> tuple[Batch, ParsedAnswer[SummaryUpdate]]:
    """Summarise a batch, or as many of its first messages as the model can read. Raises ModelError.

    The unchanged summary covers messages that are all kept out of memory, and a single one that the server refuses.
    """
    ask = partial(engine.mini.ask, batch.session.owner_id, tenant=batch.session.tenant, spent=spent)
    unchanged = ParsedAnswer(SummaryUpdate(batch.source.previous), engine.model_server.models.mini.name, ())
    if all(is_kept_out(message.extra) for message in batch.source.messages):
        return batch, unchanged
    keeps_previous = SHRUNKEN in (job.error or "")  # it is no slip: the model writes only what is new
    may_cover = job.is_last_try or (job.payload or {}).get(_BAD, False)
    while True:
        try:
            return batch, update_summary(ask, batch.prompt, batch.source, keeps_previous=keeps_previous)
        except ModelError as error:
            messages = batch.source.messages
            is_bad = may_cover and isinstance(error, AnswerRefused)
            if error.code not in TOO_MUCH and not is_bad:
                raise
            batch = replace(batch, is_bad=batch.is_bad or is_bad)
            if len(messages) > 1:
                batch = batch.of(messages[: len(messages) // 2])
            elif error.code == CONTENT_REFUSED:
                place = logs.fields(position=batch.through)
                log.warning("a message is left out: the model server refuses it", extra=place)
                return replace(batch, most=BATCH_MESSAGES, refused=error), unchanged
            elif error.code == CONTEXT_EXCEEDED and len(messages[0].content) > SHORTEST_CHARS:
                batch = replace(batch.of([shortened(messages[0], error.window)]), most=BATCH_MESSAGES)
            elif is_bad and (covering := _cover_bad(engine, ask, batch, unchanged)):
                return replace(batch, most=BATCH_MESSAGES), covering
            else:
                raise


def _cover_bad(
    engine: Engine,
    ask: Callable[..., ParsedAnswer[SummaryUpdate]],
    batch: Batch,
    unchanged: ParsedAnswer[SummaryUpdate],
) -> ParsedAnswer[SummaryUpdate] | None:
    """Return the summary that covers a message which the mini model always answers badly; None if it is at fault.

    It is the built-in model's, or the `unchanged` one where the mini model can't go on from the built-in model's words.
    """
    by_rules = update_summary(engine.mini.ask_builtin, batch.prompt, batch.source)
    for covering in (by_rules, unchanged):
        if _reads_later(engine, ask, batch, covering.value.sections):
            place = logs.fields(position=batch.through, model=covering.model)
            log.warning("a message that the mini model always answers badly is covered without it", extra=place)
            return covering
    return None


def _reads_later(
    engine: Engine, ask: Callable[..., ParsedAnswer[SummaryUpdate]], batch: Batch, sections: Sections
) -> bool:
    """Return whether the mini model makes a summary of one of the next messages after a batch and its sections."""
    through = batch.through
    for _ in range(LATER_MAX):
        with engine.database.read() as tx:
            later = make_batch(engine, tx, batch.session, batch.prompt, (sections.as_dict(), through), 1)
        if later is None:
            return False
        try:
            return bool(update_summary(ask, later.prompt, later.source))
        except ModelError as error:  # that message may be one that the server refuses
            if error.code not in TOO_MUCH and not isinstance(error, AnswerRefused):
                raise
        through = later.through
    return False


# -- storing


def _store(engine: Engine, job: Job, batch: Batch, answer: ParsedAnswer[SummaryUpdate], spent: list[Usage]) -> bool:
    """Store the new version, its facts and what it cost; return False when the session changed meanwhile.

    spent: is charged with the version, and emptied once that has committed.
    """
    session = batch.session
    result = answer.value
    version = batch.session.summary_version + 1
    with engine.database.write(durable=False) as tx:  # after a power cut the job runs once more
        if has_row_locks(tx):  # nothing that is read of the owner may change before the commit
            lock_owner(tx, session.owner_id)
        advanced = tx.execute(_ADVANCE, _changes_of(batch, result)).first()
        if advanced is None:
            log.info("the session changed while its summary was being updated; doing it again")
            return False
        rules = rules_in_force(advanced)
        counts, corrected = _store_facts(engine, tx, batch, result, rules)
        learned_instructions.propose(engine, tx, session, result.instructions, batch.source.messages)
        instead = {old: new.text for old, new in corrected.items()}
        sections = rules.kept_of(replace_texts(result.sections, instead))
        about = {"author": "model", "created_at": engine.now(), "model": answer.model, "prompt": batch.prompt.label}
        about["usage"] = {**answer.usage, "facts": counts}
        insert_version(tx, session.id, version, sections, advanced.summary_through, **about)
        engine.budgets.add_usage(tx, session.owner_id, spent)
        if batch.refused is not None:
            mark_refused(tx, [message.id for message in batch.source.messages], batch.refused, engine.now())
            engine.sessions.enqueue_follow_ups(tx, tx.get_one(SessionRow, session.id), summarise=False)
        if corrected:  # a true prefix matters more than a stable one
            use_newest_summary(tx, tx.get_one(SessionRow, session.id), engine.settings)
        _forget_as_asked(engine, tx, batch, result, corrected)
        if counts["added"] or session.has_new_facts or engine.settings.overview.is_scheduled:
            owner = tx.get_one(OwnerRow, session.owner_id)
            for enqueue in (overview.enqueue_update, profile.enqueue_update, consolidation.enqueue_run):
                enqueue(engine, tx, owner)
        _remember(tx, job, batch)
    spent.clear()
    engine.metrics.count_facts(counts)
    outcomes = {f"facts_{outcome}": count for outcome, count in counts.items()}
    log.info("summary", extra=logs.fields(version=version, through=batch.through, model=answer.model, **outcomes))
    # Once the prompt shows the summary instead of these messages, a turn searches them.
    engine.index.analyse_ahead(
        SearchableText(message.id, session.id, message.role, message.created_at, message.content, message.name)
        for message in batch.source.messages
    )
    return True


def _changes_of(batch: Batch, result: SummaryUpdate) -> dict[str, Any]:
    """Return the parameters of _ADVANCE."""
    session, source = batch.session, batch.source
    return {
        "session": session.id,
        "since": session.summary_version,
        "read": [message.id for message in source.messages],
        "kept_out": [message.id for message in source.messages if is_kept_out(message.extra)],
        "count": len(source.messages),
        "through": batch.through,
        "old_title": session.title,
        "new_title": title_after(session.title, session.first_message, result.sections.topic),
        "named": result.type if source.types and result.type in (*source.types, "") else None,
    }


def _store_facts(
    engine: Engine, tx: Transaction, batch: Batch, result: SummaryUpdate, rules: RuleSet
) -> tuple[dict[str, int], Mapping[Fact, Fact]]:
    """Store the facts of an answer; return the counts and the corrected facts, as `add_proposed` does."""
    session, source = batch.session, batch.source
    shown = {fact.id for fact in source.known_facts}  # the model knows no others: another id is a slip
    drafts = [
        replace(
            draft, links=draft.links if source.links else (), supersedes=tuple(shown.intersection(draft.supersedes))
        )
        for draft in result.facts
    ]
    drafts += drafts_asked_for(source.messages, drafts)
    known = current_facts(engine, tx, session.owner_id, session.id) if drafts else ()
    grounding = source.grounding(session.facts_through)
    counts, corrected, stored = add_proposed(tx, session, drafts, grounding, known, rules, engine.now())
    schedule_end(engine, tx, session.owner_id, session.tenant, *(fact.expires_at for fact in stored))
    return counts, corrected


def _forget_as_asked(
    engine: Engine, tx: Transaction, batch: Batch, result: SummaryUpdate, corrected: Mapping[Fact, Fact]
) -> None:
    """Forget what messages of the batch ask to forget, also in the version that was just stored: it may repeat that.

    corrected: see `add_proposed`. A request that goes on to correct a fact ("Forget that Tom cooks, it's Kim") does not
    mean it.
    """
    session, source = batch.session, batch.source
    known = source.known_facts
    kept_out = [message for message in batch.kept_out_requests if message.position <= batch.through]
    asking = [message for message in source.messages if message.id in source.beside_requests]
    requests = asking + kept_out
    named = {fact_id: "" for message in kept_out for fact_id in named_to_forget(message.content, known)}
    stays = {old.id for old, new in corrected.items() if source.is_beside_request(new)}
    chosen = [fact for fact in known if fact.id in result.forget and fact.id not in stays]
    asked = may_be_asked_to_forget([message.content for message in asking], chosen, known, source.session_id)
    if forgotten := named | {fact.id: result.forget[fact.id] for fact in chosen if fact.id in asked}:
        forget_asked(engine, tx, Caller(session.tenant), forgotten, [message.id for message in requests])
    for message in requests:
        if words := unknown_to_forget(message.content, (f"{fact.text} {fact.quote}" for fact in known)):
            forget_said(engine, tx, session.owner_id, words, [message.id])


def _remember(tx: Transaction, job: Job, batch: Batch) -> None:
    """Store how many messages the job's next part may have, and whether it looks for one that is answered badly."""
    before = {_MOST: BATCH_MESSAGES, _BAD: False} | (job.payload or {})
    after = before | {_MOST: BATCH_MESSAGES, _BAD: False}  # for messages that come later
    if batch.through < batch.last:
        after |= {_MOST: batch.most, _BAD: batch.is_bad or before[_BAD]}
    if after != before:
        tx.execute(update(JobRow.__table__).where(JobRow.id == job.id).values(payload=after))


def _read_messages(tx: Transaction, session_row_id: int, through: int, most: int) -> list[Message]:
    """Return the messages after `through`: at most `most`, and at most BATCH_TOKENS unless the first has more."""
    batch: list[Message] = []
    budget = BATCH_TOKENS
    following = tx.execute(RECENT_MESSAGES.limit(most), {"session": session_row_id, "after": through})
    for message in map(Message._make, following):
        if batch and message.tokens > budget:
            break
        budget -= message.tokens
        batch.append(message)
    return batch


# -- statements: one reads all that an update needs, one stores its version

_S, _M, _O, _I = (row.__table__.c for row in (SessionRow, MessageRow, OwnerRow, ItemRow))
_TYPES = select(func.aggregate_strings(_I["key"], ",")).where(
    _I.owner_id.in_(OWNER_AND_TENANT),
    _I.namespace == conversation_types.STORED_NAMESPACE,
    unexpired(NOW),
)
# By name: SQLAlchemy writes the columns of SQLite's RETURNING without their table.
_RULES = stored_rules(literal_column("sessions.owner_id"), literal_column("sessions.tenant"))


def _has_new_facts(kind: str, *conditions: Any) -> Any:
    """Return a condition for facts about the person that no job of this kind has read, while none is enqueued."""
    facts = FactRow.owner_id == _S.owner_id, *IN_ALL_SESSIONS
    job = exists().where(JobRow.owner_id == _S.owner_id, JobRow.kind == kind)
    outer = SessionRow.__table__, OwnerRow.__table__
    return and_(exists().where(*facts, *conditions).correlate(*outer), ~job.correlate(*outer))


_NEW_FACTS = or_(
    _has_new_facts("consolidation", FactRow.id > _O.consolidated_through),
    _has_new_facts("profile", FactRow.id > _O.profile_through, FactRow.source_message_id.is_not(None)),
)
_READ = (
    select(
        *(_S.id, _S.public_id, _S.owner_id, _S.tenant, _S.title, _S.type, _S.timezone),
        *(_S.message_count, _S.lease_until),
        *(_S.summary_version, _S.facts_through, _O.facts_revision, SummaryRow.sections, SummaryRow.through),
        FIRST_MESSAGE.label("first_message"),
        _NEW_FACTS.label("has_new_facts"),
        exists().where(in_scope(_S.id, _S.owner_id)).correlate(SessionRow.__table__).label("has_facts"),
        _TYPES.scalar_subquery().label("types"),
        HAS_PROMPTS,
        *_RULES,
    )
    .join(OwnerRow.__table__, _O.id == _S.owner_id)
    .outerjoin(SummaryRow, and_(SummaryRow.session_id == _S.id, SummaryRow.version == _S.summary_version))
    .where(_S.id == bindparam("session"))
)
"""A session with its newest summary, the rules in force, and the names of the stored conversation types."""

_AS_READ = or_(and_(*INDEXED), _M.id.in_(bindparam("kept_out", expanding=True)))
_STILL_VISIBLE = (
    select(func.count()).where(_M.id.in_(bindparam("read", expanding=True)), *VISIBLE, _AS_READ).scalar_subquery()
)
_NAMED = bindparam("named", type_=_S.recognised_type.type)
_ADVANCE = (
    update(SessionRow.__table__)
    .where(_S.id == bindparam("session"), _S.summary_version == bindparam("since"))
    .where(bindparam("count") == _STILL_VISIBLE)
    .values(
        summary_version=_S.summary_version + 1,
        summary_through=func.coalesce(NEXT_VISIBLE - 1, _S.message_count),
        facts_through=case((_S.facts_through < bindparam("through"), bindparam("through")), else_=_S.facts_through),
        title=case((_S.title == bindparam("old_title"), bindparam("new_title")), else_=_S.title),
        recognised_type=case((_NAMED.is_not(None), _NAMED), else_=_S.recognised_type),
    )
    .returning(_S.summary_through, *_RULES)
)
"""Advance a session to the next version, if nothing that the update was made from has changed. Rules may have."""
