"""Erase one message from its session.

The row stays as a place: id, position, role and time. Positions stay without gaps, and a client that sends its whole
conversation again has not changed it. A digest of the external id stays, so the same message is not stored again.

Invariants:
- All that was made from the message goes in the same transaction: facts (superseded ones are valid again), documents of
  long-term memory, every summary version made from it or from such a version, also edited ones (test_erasing).
- The replies to a person's message, which may repeat it, are kept out of memory like those to "don't remember this"
  (test_erasing).
- The newest version without it is used again, and the summary continues from there. A title taken from it is taken anew
  (test_erasing).
"""

from collections import Counter

from sqlalchemy import or_, select, update

from memory.access.owners import get_session
from memory.engine import Engine
from memory.erasing import erasing
from memory.erasing.erasing import DATABASE_FILES, SEARCH_INDEX, Receipt, receipt_of, vacuum_job
from memory.errors import NotFound
from memory.knowledge.fact_writes import delete_with_history
from memory.knowledge.forgetting import forget_messages
from memory.knowledge.summaries import summarised_without
from memory.sessions.memory_requests import keep_out, with_replies
from memory.sessions.messages import ERASED, tombstone
from memory.users import count_of
from models import (
    REVISED,
    FactRevisionRow,
    FactRow,
    JobRow,
    MessageRow,
    SessionRow,
    Transaction,
    TurnRow,
    retry_on_conflict,
)
from models.jobs import JobRequest
from models.owners import Caller


@retry_on_conflict
def erase_message(engine: Engine, caller: Caller, session_id: str, message_id: int) -> Receipt:
    """Erase a message, replaced or not, with all that was made from it; the summary is updated by a job.

    Waits for a turn in the session. Raises NotFound, and Conflict when that takes too long or others wait already.
    """
    with engine.database.read() as tx:
        _get_message(tx, get_session(tx, caller, session_id), message_id)
    busy = "Nothing was erased; stop the reply, or try this again later."
    with engine.leases.free_session(lambda tx: get_session(tx, caller, session_id), busy) as (tx, row):
        erased = _erase(engine, tx, row, _get_message(tx, row, message_id))
        index = JobRequest("index", row.owner_id, row.tenant, row.owner_id, delay=erasing.GATHER_SECONDS)
        engine.job_queue.enqueue(tx, index, vacuum_job(row.tenant))
        if erased["summaries"] and row.summary_through < row.message_count:
            delay = engine.settings.summary_debounce
            summary = JobRequest("summary", row.id, row.tenant, row.owner_id, row.id, delay, debounce=True)
            engine.job_queue.enqueue(tx, summary)
    return receipt_of(engine, erased, (SEARCH_INDEX, DATABASE_FILES), session_id=session_id, message_id=message_id)


def _get_message(tx: Transaction, row: SessionRow, message_id: int) -> MessageRow:
    message = tx.get(MessageRow, message_id)
    if message is None or message.session_id != row.id or message.erased_at is not None:
        raise NotFound("message_not_found", f"There is no message {message_id} in session {row.public_id!r}.")
    return message


def _erase(engine: Engine, tx: Transaction, row: SessionRow, message: MessageRow) -> Counter[str]:
    """Erase a message of a session in which no turn runs; return the number of rows by kind."""
    now = engine.now()
    facts = tx.scalars(select(FactRow.id).where(FactRow.source_message_id == message.id)).all()
    revisions = count_of(tx, select(FactRevisionRow.id).where(FactRevisionRow.fact_id.in_(facts)))
    indexed = int(message.branch == 0 and message.indexed_in is not None)
    erased = Counter(messages=1, index_documents=indexed, facts=len(facts), fact_revisions=revisions)
    delete_with_history(tx, facts, now)
    exchange = with_replies(tx, [message.id]) if message.role == "user" else [message]
    ids = [each.id for each in exchange]
    erased += forget_messages(tx, select(MessageRow.id).where(MessageRow.id.in_(ids)), now)
    erased["turns"] = _empty_turn(tx, message)
    if not message.branch:
        row.tokens -= message.tokens
        row.head_tokens -= message.tokens if message.position <= row.head_through else 0
    with summarised_without(engine, tx, row, exchange) as summaries:
        message.erased_at = now
        for column, value in ERASED.items():
            setattr(message, column, value)
        message.external_id = tombstone(message.external_id) if message.external_id else None
        message.indexed_in = REVISED  # until it is taken out of the index
        if replies := exchange[1:]:
            keep_out(row, replies, now)
    erased["summaries"] = len(summaries)
    erased["edited_summaries"] = sum(version.author == "person" for version in summaries)
    tx.execute(update(JobRow).where(JobRow.session_id == row.id).values(error=None))  # an error may quote the message
    return erased


def _empty_turn(tx: Transaction, message: MessageRow) -> int:
    """Leave nothing of the message's turn that could answer a retry; return 1 if its notes on the prompt went."""
    is_either = or_(TurnRow.user_message_id == message.id, TurnRow.reply_message_id == message.id)
    turn = tx.scalar(select(TurnRow).where(is_either))
    if turn is None:
        return 0
    turn.fingerprint = turn.so_far = None
    turn.idempotency_key = tombstone(turn.idempotency_key) if turn.idempotency_key else None
    if turn.reply_message_id == message.id:
        return 0
    turn.memory = None
    return 1
