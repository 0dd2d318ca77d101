"""Versions of messages: replace messages, and restore replaced ones.

To edit a message, or to get another reply to it, replaces it and all messages after it.  The replaced messages stay
word for word, with their turns and positions, on a branch of the session; the active branch (0) continues with the new
message.  A branch can be restored while the message before its first one is active: then it becomes active, and the
messages that had replaced it move to a new branch.

Invariants:
- A replacement is one transaction.  After it, a session is as if the messages on its branches had never been sent: they
  are in no prompt, count, summary or search (test_message_versions).
- A summary version that covers a replaced message can't be restored; the newest version that covers none is in use
  again.  A summary that the person wrote stays (test_message_versions).
- Facts of replaced messages are deleted, also from the profile and other documents; facts that only those had corrected
  are valid again (test_message_versions).
- Restored messages are read again for the summary and for facts (test_message_versions).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import and_, func, select, update
from sqlalchemy.orm import aliased

from memory.access.owners import get_session
from memory.engine import Engine
from memory.errors import NotFound
from memory.knowledge.fact_writes import delete_with_history, move_source
from memory.knowledge.forgetting import forget_messages
from memory.knowledge.summaries import use_newest_left
from memory.sessions.compaction import use_newest_summary
from memory.sessions.messages import append
from memory.sessions.sessions import SessionInfo
from memory.sessions.titles import title_taken_anew
from models import REVISED, FactRow, ItemSourceRow, MessageRow, SessionRow, SummaryRow, Transaction, retry_on_conflict
from models.messages import Message, MessageDraft
from models.owners import Caller


@dataclass(frozen=True)
class Versions:
    """Active message that has other versions. versions: the ids of all of them, in the order they were stored."""

    message_id: int
    versions: tuple[int, ...]


def list_versions(engine: Engine, caller: Caller, session_id: str) -> list[Versions]:
    """Return the active messages that have other versions, in their order.  Raises NotFound."""
    with engine.database.read() as tx:
        found = _versions(tx, get_session(tx, caller, session_id))
    by_message = groupby(found, key=lambda pair: pair[0].id)
    return [Versions(id, tuple(sorted([id, *(other.id for _, other in pairs)]))) for id, pairs in by_message]


@retry_on_conflict
def restore_version(engine: Engine, caller: Caller, session_id: str, message_id: int) -> SessionInfo:
    """Restore a version of a message, with all messages after it.  An active message stays as it is.

    Waits for a turn in the session.  Raises NotFound, and Conflict when that takes too long or too many requests wait.
    """
    busy = "Nothing was changed; stop the reply, or try this again later."
    with engine.leases.free_session(lambda tx: get_session(tx, caller, session_id), busy) as (tx, row):
        message = tx.get(MessageRow, message_id)
        if message is not None and message.session_id == row.id and not message.branch:
            return engine.sessions.info(row)
        pair = next((pair for pair in _versions(tx, row) if pair[1].id == message_id), None)
        if pair is None:
            raise NotFound(
                "version_not_found",
                f"Message {message_id} is no version of a message that session {session_id!r} shows now. Nothing "
                "was changed; read the versions again.",
            )
        _restore(engine, tx, row, *pair)
        engine.sessions.enqueue_follow_ups(tx, row, index_delay=0.0)
        return engine.sessions.info(row)


def replace_messages(engine: Engine, tx: Transaction, row: SessionRow, position: int, draft: MessageDraft) -> Message:
    """Replace the session's messages from `position` on by `draft`; return the new message.

    The caller holds the session's lease, and enqueues the job `index`, which also removes the replaced messages.  If
    `draft` repeats the first replaced message, the facts of that message stay.
    """
    first = _active_at(tx, row, position)
    assert first is not None, "there is nothing to replace"
    same = (draft.role, draft.content) == (first.role, first.content)
    with title_taken_anew(tx, row):
        branch = _move_to_branch(engine, tx, row, position, same=same)
        (message,) = append(tx, row, [draft], engine.now())
    _withdraw(engine, tx, row, branch, first.id, message.id if same else None)
    return message


def _restore(engine: Engine, tx: Transaction, row: SessionRow, first: MessageRow, version: MessageRow) -> None:
    """Replace the active messages from `first` on by the branch that begins with `version`."""
    same = (version.role, version.content) == (first.role, first.content)
    brought = version.branch
    with title_taken_anew(tx, row):
        branch = _move_to_branch(engine, tx, row, first.position, same=same)
        back = (MessageRow.session_id == row.id, MessageRow.branch == brought)
        row.message_count, size = tx.execute(
            select(func.max(MessageRow.position), func.sum(MessageRow.tokens)).where(*back)
        ).one()
        row.tokens += size
        tx.execute(update(MessageRow).where(*back).values(branch=0, replaced_after=None, indexed_in=None))
        covering = (SummaryRow.session_id == row.id, SummaryRow.branch == brought)
        tx.execute(update(SummaryRow).where(*covering).values(branch=0))
    _withdraw(engine, tx, row, branch, first.id, version.id if same else None)


def _versions(tx: Transaction, row: SessionRow) -> Sequence[tuple[MessageRow, MessageRow]]:
    """Return pairs: each active message that has other versions, with each of these."""
    current, before, other = aliased(MessageRow), aliased(MessageRow), aliased(MessageRow)
    is_active = (current.session_id == row.id, current.branch == 0, current.position == other.position)
    just_before = (before.session_id == row.id, before.branch == 0, before.position == other.position - 1)
    query = (
        select(current, other)
        .join(current, and_(*is_active))
        .outerjoin(before, and_(*just_before))
        .where(other.session_id == row.id, other.replaced_after == func.coalesce(before.id, 0))
        .where(other.erased_at.is_(None), current.erased_at.is_(None))
        .order_by(current.position, other.id)
    )
    return [(active, version) for active, version in tx.execute(query)]


def _move_to_branch(engine: Engine, tx: Transaction, row: SessionRow, position: int, *, same: bool) -> int:
    """Move the active messages from `position` to a new branch; return its number.

    The session's figures are of the messages that stay. same: the replacement repeats the first message.
    """
    of_session = MessageRow.session_id == row.id
    branch = 1 + (tx.scalar(select(func.max(MessageRow.branch)).where(of_session)) or 0)
    first = _active_at(tx, row, position)
    before = _active_at(tx, row, position - 1)
    assert first is not None
    first.replaced_after = before.id if before is not None else 0
    tx.execute(
        update(MessageRow)
        .where(of_session, MessageRow.branch == 0, MessageRow.position >= position)
        .values(branch=branch, indexed_in=REVISED)
    )
    gone = tx.scalar(select(func.sum(MessageRow.tokens)).where(of_session, MessageRow.branch == branch)) or 0
    row.message_count = position - 1
    row.tokens -= gone
    row.facts_through = min(row.facts_through, position if same else position - 1)
    if row.summary_version:
        _take_back_summary(engine, tx, row, position, branch)
    return branch


def _active_at(tx: Transaction, row: SessionRow, position: int) -> MessageRow | None:
    """Find the active message at this position, erased or not."""
    place = (MessageRow.branch == 0, MessageRow.position == position)
    return tx.scalar(select(MessageRow).where(MessageRow.session_id == row.id, *place))


def _withdraw(
    engine: Engine, tx: Transaction, row: SessionRow, branch: int, first_id: int, again_id: int | None
) -> None:
    """Delete the facts that were taken from a branch, and what long-term memory has of it.

    again_id: the message that repeats the first one, and takes over what came of that.
    """
    replaced = select(MessageRow.id).where(MessageRow.session_id == row.id, MessageRow.branch == branch)
    if again_id is not None:
        move_source(tx, first_id, again_id)
        tx.execute(update(ItemSourceRow).where(ItemSourceRow.message_id == first_id).values(message_id=again_id))
        replaced = replaced.where(MessageRow.id != first_id)
    facts = tx.scalars(select(FactRow.id).where(FactRow.source_message_id.in_(replaced)))
    delete_with_history(tx, facts, engine.now(), "replaced")
    forget_messages(tx, replaced, engine.now())


def _take_back_summary(engine: Engine, tx: Transaction, row: SessionRow, position: int, branch: int) -> None:
    """Put the newest version that covers only what stays in the place of those that cover more."""
    current = (SummaryRow.session_id == row.id, SummaryRow.branch == 0)
    too_far = (*current, SummaryRow.through >= position)
    tx.execute(update(SummaryRow).where(*too_far, SummaryRow.author == "person").values(through=position - 1))
    tx.execute(update(SummaryRow).where(*too_far).values(branch=branch))
    use_newest_left(engine, tx, row, "replacement")
    shown = select(SummaryRow.id).where(*current, SummaryRow.version == row.head_version)
    if row.head_version and (tx.scalar(shown) is None or row.head_through >= position):
        use_newest_summary(tx, row, engine.settings)
