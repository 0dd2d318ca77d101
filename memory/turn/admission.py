"""Admission: the first step of a turn, in one transaction.

It finds or makes the session, takes its lease, stores the person's message, folds the tail if that is due, and reads
what the session remembers.

Guarantee: an admitted message is stored before any model is called, and stored once.  The same words sent again after
a turn broke off, or with the same Idempotency-Key, take that turn up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from memory import tokens
from memory.access.owners import find_session, get_session
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.leases import Lease
from memory.message_versions import replace_messages
from memory.sessions.compaction import compact
from memory.sessions.messages import RECENT_WITH_REFUSED, append, find, require_message_size
from memory.transcripts.matching import (
    conversation_fingerprint,
    find_session_of,
    is_auxiliary_request,
    repeated,
    sync_transcript,
)
from memory.transcripts.transcript import TranscriptMessage
from memory.turn import turns
from memory.turn.head import remember
from memory.turn.values import Admitted, MemoryReport, TurnFinished, TurnRequest
from models import MessageRow, SessionRow, Transaction, TurnRow, retry_on_conflict
from models.messages import UNREMEMBERED, Message, MessageDraft
from models.turns import INTERRUPTED

if TYPE_CHECKING:
    from memory.engine import Engine


@retry_on_conflict
def admit(engine: Engine, request: TurnRequest) -> Admitted | TurnFinished | None:
    """Begin a turn, or return the end of the turn that this request, sent before, has come to; None for an errand.

    Waits for a turn that is being taken in the session.  Raises NotFound, InvalidRequest, TooLarge, LimitReached when
    the owner's day is spent, and Conflict when that other turn does not end soon or others wait for it already, the
    Idempotency-Key was another request's, or the message it began with has been replaced; then nothing was stored.
    """
    if request.temporary:
        return _admit_temporary(engine, request)
    if request.client is None:
        require_message_size(request.message, "message")
    arrived_at = engine.now()
    began = time.monotonic()
    while True:
        # A streamed reply begins before the turn is recorded, so what it answers must survive a power cut by then.
        with engine.database.write(request.lock_timeout, durable=request.stream) as tx:
            turn = turns.of_key(tx, request) if request.idempotency_key is not None else None
            if turn is not None and turn.finished_at is not None:
                return turns.replay(tx, turn)
            if request.client is not None and is_auxiliary_request(
                tx, request.caller, request.session_id, request.client
            ):
                return None
            row = _session(tx, engine, request, turn, arrived_at)
            lease = engine.leases.take(row)
            if lease is not None:
                return _begin(tx, engine, request, row, turn, lease, arrived_at)
        engine.leases.wait_until_free(row, began, "This message was not stored; send it again later.")


def read_again(engine: Engine, admitted: Admitted) -> Admitted:
    """Return a turn with a shorter prompt, for a model whose window proved to be smaller than was known.

    Raises TooLarge when the message alone does not fit.
    """
    assert admitted.lease is not None
    with engine.database.read() as tx:
        row = tx.get_one(SessionRow, admitted.lease.row_id)
        line = _without_refused(_line(tx, row))
        again = remember(tx, engine, admitted.request, row, line, admitted.exchange, admitted.sent)
    return replace(again, lease=admitted.lease, turn_id=admitted.turn_id, cancel=admitted.cancel)


def without_memory(engine: Engine, request: TurnRequest) -> Admitted:
    """The turn of a client's request that is answered as it came.  Raises LimitReached."""
    assert request.client is not None
    engine.budgets.check_caller(request.caller, request.session_id)
    conversation = request.client.conversation
    size = sum(tokens.estimate_message(one.draft.content) for one in conversation.messages)
    asked = Message(0, "", 1, "user", request.message, engine.now(), size)
    full = size + conversation.instruction_tokens
    return Admitted(request, request.session_id, (asked,), size, full, MemoryReport(), engine.settings)


def _session(
    tx: Transaction, engine: Engine, request: TurnRequest, turn: TurnRow | None, arrived_at: datetime
) -> SessionRow:
    """The session of the turn, made if it is new.  Raises NotFound when it is someone else's."""
    caller, session_id, client = request.caller, request.session_id, request.client
    if turn is not None:
        return tx.get_one(SessionRow, turn.session_id)
    if session_id is not None and request.replaces is not None:  # a new session has nothing to replace
        return get_session(tx, caller, session_id)
    row = None
    if session_id is not None:
        row = find_session(tx, caller, session_id)
    elif client is not None:
        row = find_session_of(tx, caller, client, engine.leases, arrived_at)
    if row is None:
        row = engine.sessions.make(tx, caller, session_id)
        if session_id is None and client is not None:
            row.opening = conversation_fingerprint(caller, [one.key for one in client.conversation.messages])
    return row


def _begin(
    tx: Transaction,
    engine: Engine,
    request: TurnRequest,
    row: SessionRow,
    turn: TurnRow | None,
    lease: Lease,
    arrived_at: datetime,
) -> Admitted | TurnFinished:
    """Store what was sent, or find it stored by a turn that broke off, and read what the session remembers."""
    if request.prompt is not None:
        engine.prompts.find_summary(tx, request.caller, request.prompt)  # a wrong name is told now, not in a job's log
    client, again = request.client, turn
    if client is not None:
        again = turn or repeated(tx, row, client, arrived_at)
        if again is not None and client.is_declared_retry and again.finish_reason not in (None, INTERRUPTED):
            engine.leases.give_back(row)
            return turns.replay(tx, again)
    engine.budgets.check(tx, row.owner_id)
    sent: Mapping[int, TranscriptMessage] = {}
    if client is not None:
        last, sent = sync_transcript(tx, row, client, engine.settings, engine.now(), is_retry=again is not None)
        line = _without_refused(_line(tx, row))
        exchange, known = _exchange(line, last), True  # it may have been sent before
    else:
        line, message, known = _store_message(tx, engine, request, row, turn)
        exchange = (message,)
    turn_id = turns.begin(tx, request, row, exchange[-1], lease, engine.now(), keyed=turn, known=known)
    compact(tx, row, engine.settings, exchange)
    admitted = remember(tx, engine, request, row, line, exchange, sent)
    if admitted.report.tail_dropped and compact(tx, row, engine.settings, exchange, force=True):
        admitted = remember(tx, engine, request, row, line, exchange, sent)
    return replace(admitted, lease=lease, turn_id=turn_id)


# -- the message


def _line(tx: Transaction, row: SessionRow) -> list[Message]:
    """What is shown after the head, and the last message in any case, unless it is hidden.  Refused messages are among
    these: whoever takes the last one for the message to answer leaves out the others.
    """
    after = {"session": row.id, "after": min(row.head_through, row.message_count - 1)}
    return list(map(Message._make, tx.execute(RECENT_WITH_REFUSED, after)))


def _without_refused(line: Sequence[Message]) -> list[Message]:
    return [message for message in line if message.refused is None]


def _store_message(
    tx: Transaction, engine: Engine, request: TurnRequest, row: SessionRow, turn: TurnRow | None
) -> tuple[list[Message], Message, bool]:
    """What is shown beside the message, the message, and whether it was stored by a turn that broke off."""
    line = _line(tx, row)
    replaced = _to_replace(tx, row, request.replaces) if request.replaces is not None else None
    message = _unanswered(tx, row, request, turn, line, replaced)
    line = _without_refused(line)
    if message is not None:
        return line, message, True
    draft = MessageDraft("user", request.message, request.name, extra=None if request.remember else UNREMEMBERED)
    if replaced is None:
        (message,) = append(tx, row, [draft], engine.now())
        return line, message, False
    if replaced.branch:
        raise InvalidRequest(
            "already_replaced",
            f"Message {replaced.id} has been replaced already. Nothing was changed; read the session again.",
            param="replaces",
        )
    message = replace_messages(tx, row, replaced.position, draft, engine.settings, engine.now())
    return _without_refused(_line(tx, row)), message, False


def _unanswered(
    tx: Transaction,
    row: SessionRow,
    request: TurnRequest,
    turn: TurnRow | None,
    line: Sequence[Message],
    replaced: MessageRow | None,
) -> Message | None:
    """The message of this request, if a turn that broke off has stored it.

    Without an Idempotency-Key it is the session's last message in the same words, in the place of the one it replaces.
    """
    if turn is not None:
        message = find(tx, turn.user_message_id)
        if message is None:
            raise Conflict(
                "message_replaced",
                "The message this Idempotency-Key was first sent with got no reply and has been replaced since. "
                "Nothing was stored; send a new message, with a key of its own.",
            )
        return message
    last = line[-1] if line else None
    same = last is not None and (last.position, last.role, last.content) == (row.message_count, "user", request.message)
    return last if same and (replaced is None or replaced.position == row.message_count) else None


def _to_replace(tx: Transaction, row: SessionRow, message_id: int) -> MessageRow:
    """The session's user message of this id, replaced already or not.  Raises NotFound and InvalidRequest."""
    message = tx.get(MessageRow, message_id)
    if message is None or message.session_id != row.id or message.erased_at is not None:
        raise NotFound(
            "message_not_found",
            f"There is no message {message_id} in session {row.public_id!r}, or it was erased. Nothing was stored.",
            param="replaces",
        )
    if message.role != "user":
        raise InvalidRequest(
            "not_a_user_message",
            f"Message {message_id} is not the person's own, so a message can't take its place. For another reply, "
            "replace the message it answers. Nothing was stored.",
            param="replaces",
        )
    return message


def _exchange(line: Sequence[Message], last: Message) -> tuple[Message, ...]:
    """The messages to answer: what the person said last, and what followed up to `last`."""
    until = [*(message for message in line if message.position < last.position), last]  # which may be hidden
    first = max((place for place, message in enumerate(until) if message.role == "user"), default=-1)
    return tuple(until[first:])


def _admit_temporary(engine: Engine, request: TurnRequest) -> Admitted:
    """A turn that reads what is remembered, if a session or a user is named, and stores nothing."""
    drafts = (*request.history, MessageDraft("user", request.message, request.name))
    with engine.database.read() as tx:
        known = get_session(tx, request.caller, request.session_id) if request.session_id is not None else None
        row = known or engine.sessions.unstored(tx, request.caller)
        engine.budgets.check(tx, row.owner_id)
        said = [(draft, tokens.estimate_message(draft.content)) for draft in drafts]
        *history, message = [
            Message(0, row.public_id, position, draft.role, draft.content, engine.now(), size, draft.name)
            for position, (draft, size) in enumerate(said, row.message_count + 1)
        ]
        line = [*_without_refused(_line(tx, row)), *history] if known else history
        admitted = remember(tx, engine, request, row, line, (message,), {})
    return admitted if known else replace(admitted, session_id=None)
