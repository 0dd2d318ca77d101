"""Admission: the first step of a turn, in one transaction.

It finds or makes the session, takes its lease, stores the person's message (in the place of others, if it replaces
them) and asks for its indexing, folds the tail if that is due, and reads what the session remembers.

Guarantee: a message that is admitted is stored before any model is called, and once: the same words sent again after
a turn broke off, or with the same Idempotency-Key, take that turn up instead of adding another, and what it replaced
is not replaced again.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, select

from config import Settings
from memory import tokens
from memory.access.budgets import Budgets, owner_of
from memory.access.owners import find_session
from memory.branches import replace_from
from memory.clients.arrival import Arrivals, Arrived
from memory.clients.conversation import calls_of
from memory.domain import INTERRUPTED, Caller, Message
from memory.errors import Conflict, InvalidRequest, NotFound
from memory.leases.leases import Lease, Leases
from memory.prompts.prompts import Prompts
from memory.sessions.head import fold
from memory.sessions.messages import SAID, MessageDraft, as_message, check_size, remains, store_message
from memory.sessions.sessions import Sessions
from memory.turn.leased import begun_in
from memory.turn.report import MemoryReport
from memory.turn.values import TurnFinished, TurnRequest, TurnStarted, TurnUsage
from memory.turn.views import Remembered, Views, nothing_remembered
from models import Database, MessageRow, SessionRow, Transaction, TurnRow

_M = MessageRow.__table__.c
_AT = select(_M.id, _M.role, _M.content).where(
    _M.session_id == bindparam("session"), *SAID, _M.position == bindparam("position")
)
_NEW_TURN = insert(TurnRow.__table__).returning(TurnRow.__table__.c.id)

CLIENT_PATIENCE = 5.0  # seconds a client's request waits for the database before it is answered without memory


@dataclass(frozen=True)
class Admitted:
    """A turn that may go on, with what its session remembers.

    `lease` keeps others out of the session, `turn_id` is the turn's row; a temporary turn has neither.  `session_id`
    is None for a temporary turn outside any session.  With `passed_on` a client's request goes on as it came.
    """

    remembered: Remembered
    session_id: str | None = None
    lease: Lease | None = None
    turn_id: int | None = None
    passed_on: bool = False


class Admission:
    """Lets turns begin, one at a time in each session."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        sessions: Sessions,
        arrivals: Arrivals,
        views: Views,
        prompts: Prompts,
        leases: Leases,
        budgets: Budgets,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._sessions = sessions
        self._arrivals = arrivals
        self._views = views
        self._prompts = prompts
        self._leases = leases
        self._budgets = budgets
        self._now = now

    def admit(self, caller: Caller, request: TurnRequest) -> Admitted | TurnFinished:
        """Begin a turn, or return the end of the one that this request, sent before, has already come to.

        Waits for a turn that is being taken in the session.  Raises NotFound, InvalidRequest, TooLarge, LimitReached
        when the owner's day is spent, and Conflict when that turn does not end, the Idempotency-Key was another
        request's, or the message it began with has been replaced; then nothing was stored.  A client's request waits
        for the database no longer than CLIENT_PATIENCE.
        """
        if request.temporary:
            return self._admit_temporary(caller, request)
        if request.client is None:
            check_size(request.message, "message")
        arrived_at = self._now()
        deadline = time.monotonic() + (1 + self._settings.recall_tool_rounds) * self._settings.model_timeout
        while True:
            # Who gets the reply whole is told of nothing before that is stored as well.
            with self._database.write(self.patience(request), durable=request.stream) as tx:
                turn = self._known_turn(tx, caller, request)
                if turn is not None and turn.finished_at is not None:
                    return self._replay(tx, turn)
                if self._is_errand(tx, caller, request):
                    self._budgets.check(tx, owner_of(tx, caller, request.session_id))
                    return self.passed_on(request)
                row = self._session(tx, caller, request, turn)
                lease = self._leases.take(row)
                if lease is not None:
                    admitted = self._begin(tx, caller, request, row, turn, lease, arrived_at)
                    break
            if not self._leases.wait_free(SessionRow, row.id, deadline):
                raise Conflict(
                    "session_busy",
                    "Another reply is being written in this session and does not end. "
                    "This message was not stored; send it again later.",
                    retry_after=10.0,
                )
        if isinstance(admitted, Admitted):
            self._leases.keep(lease)
        return admitted

    def patience(self, request: TurnRequest) -> float | None:
        """Seconds a request's transactions may wait for others; None for as long as any."""
        return None if request.client is None else CLIENT_PATIENCE

    def passed_on(self, request: TurnRequest) -> Admitted:
        """A client's request, to be answered as it came, without memory."""
        assert request.client is not None
        remembered = nothing_remembered(request, request.client, self._now())
        return Admitted(remembered, request.session_id, passed_on=True)

    def _is_errand(self, tx: Transaction, caller: Caller, request: TurnRequest) -> bool:
        """Whether there is nothing in a client's request to remember, or to be remembered, or it is only about it."""
        client = request.client
        if client is None:
            return False
        nothing = not client.conversation.messages or client.temporary
        return nothing or self._arrivals.errand(tx, caller, request.session_id, client)

    def _session(self, tx: Transaction, caller: Caller, request: TurnRequest, turn: TurnRow | None) -> SessionRow:
        if turn is not None:
            return tx.get_one(SessionRow, turn.session_id)
        if request.client is not None:
            return self._arrivals.session(tx, caller, request.session_id, request.client)
        if request.replaces is not None and request.session_id is not None:
            return find_session(tx, caller, request.session_id)  # where there is none, nothing is in it to replace
        known = begun_in(tx, caller, request.session_id) if request.session_id is not None else None
        return known or self._sessions.make(tx, caller, request.session_id)

    def _known_turn(self, tx: Transaction, caller: Caller, request: TurnRequest) -> TurnRow | None:
        """The turn this request's Idempotency-Key began.  Raises Conflict when the key was another request's."""
        if request.idempotency_key is None:
            return None
        turn = tx.scalar(
            select(TurnRow).where(
                TurnRow.tenant == caller.tenant,
                TurnRow.idempotency_key.in_([request.idempotency_key, remains(request.idempotency_key)]),
            )
        )
        if turn is not None and turn.fingerprint != _fingerprint(caller, request):
            raise Conflict(
                "idempotency_key_reused",
                "This Idempotency-Key was sent with a different request before, or with one of which something has "
                "been erased. Nothing was stored; use a new key for each message, and the same key only to send the "
                "same one again.",
            )
        return turn

    def _begin(
        self,
        tx: Transaction,
        caller: Caller,
        request: TurnRequest,
        row: SessionRow,
        turn: TurnRow | None,
        lease: Lease,
        arrived_at: datetime,
    ) -> Admitted | TurnFinished:
        """Store what was sent, or find it stored by a turn that broke off, and read what the session remembers."""
        if request.prompt is not None:
            self._prompts.find_summary(tx, caller, request.prompt)  # told now, not in a job's log
        if request.client is not None:
            repeated = turn or self._arrivals.repeated(tx, row, request.client, arrived_at)
            if repeated is not None and request.client.retried and _answered(repeated):
                self._leases.give_back(row)
                return self._replay(tx, repeated)
            self._budgets.check(tx, row.owner_id)
            arrived = self._arrivals.store(tx, row, request.client, again=repeated is not None)
            new = False  # it may have been sent before
        else:
            self._budgets.check(tx, row.owner_id)
            known = self._message(tx, row, request, turn)
            new = known is None
            arrived = Arrived(known or self._store(tx, row, request))
        turn_id = self._turn(tx, caller, request, row, turn, arrived.last, lease, new=new)
        exchange = _exchange(tx, row, arrived.last)
        fold(tx, row, self._settings, exchange)
        remembered = self._views.read(tx, caller, request, row, exchange, sent=arrived.sent)
        crowded = len(remembered.tail) < len(remembered.view.tail)
        if crowded and fold(tx, row, self._settings, exchange, crowded=True):
            remembered = self._views.read(tx, caller, request, row, exchange, sent=arrived.sent)
        return Admitted(remembered, row.public_id, lease, turn_id)

    def _message(self, tx: Transaction, row: SessionRow, request: TurnRequest, turn: TurnRow | None) -> Message | None:
        """The message to answer, if a turn that broke off has stored it."""
        message = tx.get(MessageRow, turn.user_message_id) if turn else _unanswered(tx, row, request)
        if message is not None and message.branch:
            raise Conflict(
                "message_replaced",
                "The message this Idempotency-Key was first sent with got no reply and has been replaced since. "
                "Nothing was stored; send a new message, with a key of its own.",
            )
        return None if message is None else as_message(message, row)

    def _turn(
        self,
        tx: Transaction,
        caller: Caller,
        request: TurnRequest,
        row: SessionRow,
        known: TurnRow | None,
        message: Message,
        lease: Lease,
        *,
        new: bool,
    ) -> int:
        """The id of the turn that answers `message`: the one that broke off, or a new one, as it is for a `new`
        message.  The request's key is its now."""
        turn = None if new else tx.scalar(select(TurnRow).where(TurnRow.user_message_id == message.id))
        if known is not None and known is not turn:  # its message was replaced by the same once more
            known.idempotency_key = None
            tx.flush()
        begun: dict[str, Any] = {"started_at": self._now(), "lease_token": lease.token}
        if request.idempotency_key is not None:
            begun["idempotency_key"] = request.idempotency_key
        if request.idempotency_key is not None or request.client is not None:
            begun["fingerprint"] = _fingerprint(caller, request)
        if turn is None:
            begun |= {"tenant": caller.tenant, "session_id": row.id, "user_message_id": message.id}
            return tx.scalars(_NEW_TURN, begun).one()
        for name, value in begun.items():
            setattr(turn, name, value)
        return turn.id

    def _store(self, tx: Transaction, row: SessionRow, request: TurnRequest) -> Message:
        """The new message, stored in the place of the one it replaces and all after it.  Raises InvalidRequest."""
        draft = MessageDraft("user", request.message, request.name)
        replaced = _replaced(tx, row, request)
        if replaced is None:
            message = store_message(tx, row, draft, self._now())
        elif replaced.branch:
            raise InvalidRequest(
                "already_replaced",
                f"Message {replaced.id} has been replaced already. Nothing was changed; read the session again.",
                param="replaces",
            )
        else:
            stored = replace_from(tx, row, replaced.position, draft, self._settings, self._now())
            message = as_message(stored, row)
        self._sessions.index_soon(tx, row)
        return message

    def _admit_temporary(self, caller: Caller, request: TurnRequest) -> Admitted:
        """A turn that reads what is remembered, if a session or a user is named, and leaves nothing behind."""
        with self._database.read() as tx:
            known = find_session(tx, caller, request.session_id) if request.session_id is not None else None
            row = known or self._sessions.unstored(tx, caller)
            self._budgets.check(tx, row.owner_id)
            now = self._now()
            said = tuple(
                Message(
                    id=0,
                    session_id=row.public_id,
                    position=position,
                    role=draft.role,
                    content=draft.content,
                    created_at=now,
                    tokens=tokens.estimate_message(draft.content),
                    name=draft.name,
                )
                for position, draft in enumerate(
                    (*request.history, MessageDraft("user", request.message, request.name)), row.message_count + 1
                )
            )
            remembered = self._views.read(tx, caller, request, row, said[-1:], unstored=said[:-1])
        return Admitted(remembered, known.public_id if known else None)

    def _replay(self, tx: Transaction, turn: TurnRow) -> TurnFinished:
        """The answer a finished turn gave, from its rows."""
        session = tx.get_one(SessionRow, turn.session_id)
        reply = tx.get_one(MessageRow, turn.reply_message_id)
        started = TurnStarted(
            completion_id=turn.completion_id or "",
            session_id=session.public_id,
            user_message_id=turn.user_message_id,
            model=turn.model or "",
            created_at=turn.started_at,
            memory=MemoryReport.from_stored(tx, turn.memory or {}),
        )
        return TurnFinished(
            started=started,
            reply=reply.content,
            reply_message_id=reply.id,
            finish_reason=turn.finish_reason or "stop",
            model=turn.model or "",
            usage=TurnUsage.from_stored(turn.usage or {}),
            replayed=True,
            calls=calls_of(reply.extra),
        )


def _answered(turn: TurnRow) -> bool:
    """Whether a turn has come to a whole answer."""
    return turn.finished_at is not None and turn.finish_reason != INTERRUPTED


def _exchange(tx: Transaction, row: SessionRow, last: Message) -> Sequence[Message]:
    """The messages to answer: what the person said last, and what followed up to `last`."""
    if last.role == "user":
        return [last]
    line = (MessageRow.session_id == row.id, *SAID, MessageRow.position <= last.position)
    asked = tx.scalar(select(func.max(MessageRow.position)).where(*line, MessageRow.role == "user"))
    if asked is None:
        return [last]
    query = select(MessageRow).where(*line, MessageRow.position >= asked).order_by(MessageRow.position)
    return [as_message(message, row) for message in tx.scalars(query)]


def _replaced(tx: Transaction, row: SessionRow, request: TurnRequest) -> MessageRow | None:
    """The user message of the session that a request replaces, replaced already or not; None: it replaces none.

    Raises NotFound and InvalidRequest.
    """
    message_id = request.replaces
    if message_id is None:
        return None
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


def _unanswered(tx: Transaction, row: SessionRow, request: TurnRequest) -> MessageRow | None:
    """The session's last message, if it is the same words and no reply came to it.

    To a request that replaces a message, only one that stands where that does, or did.
    """
    replaced = _replaced(tx, row, request)
    last = tx.execute(_AT, {"session": row.id, "position": row.message_count}).first()
    if last is None or (last.role, last.content) != ("user", request.message):
        return None
    return tx.get(MessageRow, last.id) if replaced is None or replaced.position == row.message_count else None


def _fingerprint(caller: Caller, request: TurnRequest) -> str:
    """What must be the same for two requests with one Idempotency-Key to be the same request."""
    if request.client is not None:
        return request.client.fingerprint
    replaces = () if request.replaces is None else (request.replaces,)  # other requests' fingerprints stay as they were
    parts = (caller.user_id, request.session_id, request.message, request.system_prompt, request.prompt, *replaces)
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
