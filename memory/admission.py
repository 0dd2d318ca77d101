"""Admission: the first step of a turn, in one transaction.

It finds or makes the session, takes its lease, stores the person's message and asks for its indexing, folds the tail
if that is due, and reads what the session remembers.

Guarantee: a message that is admitted is stored before any model is called, and once: the same words sent again after
a turn broke off, or with the same Idempotency-Key, take that turn up instead of adding another.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from config import Settings
from memory import tokens
from memory.context import View, tail_that_fits
from memory.domain import Caller, Message
from memory.errors import Conflict
from memory.facts import Facts
from memory.fold import fold
from memory.leases import Lease, Leases
from memory.prompts import Prompts, render
from memory.report import MemoryReport
from memory.sessions import MessageDraft, Sessions, add_message, as_message, check_size, find_session
from memory.summary import shown, standing, update_job
from memory.turn import TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models import Database, MessageRow, SessionRow, TurnRow


@dataclass(frozen=True)
class Admitted:
    """A turn that may go on: what the session remembers, and what of its tail fits the prompt.

    `lease` keeps others out of the session, `turn_id` is the turn's row; a temporary turn has neither.  `session_id`
    is None for a temporary turn outside any session.
    """

    view: View
    tail: tuple[Message, ...]
    summary_version: int
    summary_state: str
    session_id: str | None = None
    lease: Lease | None = None
    turn_id: int | None = None


class Admission:
    """Lets turns begin, one at a time in each session."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        sessions: Sessions,
        facts: Facts,
        prompts: Prompts,
        leases: Leases,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._sessions = sessions
        self._facts = facts
        self._prompts = prompts
        self._leases = leases
        self._now = now

    def admit(self, caller: Caller, request: TurnRequest) -> Admitted | TurnFinished:
        """Begin a turn, or return the end of the one that this request, sent before, has already come to.

        Waits for a turn that is being taken in the session.  Raises NotFound, InvalidRequest, TooLarge, and Conflict
        when that turn does not end or the Idempotency-Key was another request's; then nothing was stored.
        """
        check_size(request.message, "message")
        if request.temporary:
            return self._admit_temporary(caller, request)
        deadline = time.monotonic() + (1 + self._settings.recall_tool_rounds) * self._settings.model_timeout
        while True:
            with self._database.write() as tx:
                turn = self._known_turn(tx, caller, request)
                if turn is not None and turn.finished_at is not None:
                    return self._replay(tx, turn)
                if turn is not None:
                    row = tx.get_one(SessionRow, turn.session_id)
                else:
                    row = self._sessions.find_or_make(tx, caller, request.session_id)
                lease = self._leases.take(row)
                if lease is not None:
                    admitted = self._begin(tx, caller, request, row, turn, lease)
                    break
            if not self._leases.wait_free(SessionRow, row.id, deadline):
                raise Conflict(
                    "session_busy",
                    "Another reply is being written in this session and does not end. "
                    "This message was not stored; send it again later.",
                    retry_after=10.0,
                )
        self._leases.keep(lease)
        return admitted

    def _known_turn(self, tx: Session, caller: Caller, request: TurnRequest) -> TurnRow | None:
        """The turn this request's Idempotency-Key began.  Raises Conflict when the key was another request's."""
        if request.idempotency_key is None:
            return None
        turn = tx.scalar(
            select(TurnRow).where(TurnRow.tenant == caller.tenant, TurnRow.idempotency_key == request.idempotency_key)
        )
        if turn is not None and turn.fingerprint != _fingerprint(caller, request):
            raise Conflict(
                "idempotency_key_reused",
                "This Idempotency-Key was sent with a different request before. Nothing was stored; use a new key for "
                "each message, and the same key only to send the same one again.",
            )
        return turn

    def _begin(
        self, tx: Session, caller: Caller, request: TurnRequest, row: SessionRow, turn: TurnRow | None, lease: Lease
    ) -> Admitted:
        """Store the message, or find it stored by a turn that broke off, and read what the session remembers."""
        if request.prompt is not None:
            self._prompts.find_summary(tx, caller, request.prompt)  # told now, not in a job's log
        now = self._now()
        message = tx.get(MessageRow, turn.user_message_id) if turn else self._unanswered(tx, row, request.message)
        if message is not None:
            turn = turn or tx.scalar(select(TurnRow).where(TurnRow.user_message_id == message.id))
        else:
            message = add_message(row, MessageDraft("user", request.message, request.name), now)
            tx.add(message)
            self._sessions.index_soon(tx, row)
        tx.flush()
        if turn is None:
            turn = TurnRow(tenant=caller.tenant, session_id=row.id, user_message_id=message.id)
            tx.add(turn)
        turn.started_at = now
        if request.idempotency_key is not None:
            turn.idempotency_key = request.idempotency_key
            turn.fingerprint = _fingerprint(caller, request)
        fold(tx, row, self._settings, message)
        tx.flush()
        admitted = self._view(tx, caller, request, row, as_message(message, row))
        if len(admitted.tail) < len(admitted.view.tail) and fold(tx, row, self._settings, message, crowded=True):
            tx.flush()
            admitted = self._view(tx, caller, request, row, as_message(message, row))
        return replace(admitted, session_id=row.public_id, lease=lease, turn_id=turn.id)

    def _unanswered(self, tx: Session, row: SessionRow, content: str) -> MessageRow | None:
        """The session's last message, if it is the same words and no reply came to it."""
        last = tx.scalar(
            select(MessageRow).where(MessageRow.session_id == row.id, MessageRow.position == row.message_count)
        )
        return last if last is not None and last.role == "user" and last.content == content else None

    def _admit_temporary(self, caller: Caller, request: TurnRequest) -> Admitted:
        """A turn that reads what is remembered, if a session or a user is named, and leaves nothing behind."""
        with self._database.read() as tx:
            known = find_session(tx, caller, request.session_id) if request.session_id is not None else None
            row = known or self._sessions.unstored(tx, caller)
            message = Message(
                id=0,
                session_id=row.public_id,
                position=row.message_count + 1,
                role="user",
                content=request.message,
                created_at=self._now(),
                tokens=tokens.estimate_message(request.message),
                name=request.name,
            )
            admitted = self._view(tx, caller, request, row, message)
        return replace(admitted, session_id=known.public_id if known else None)

    def _view(self, tx: Session, caller: Caller, request: TurnRequest, row: SessionRow, message: Message) -> Admitted:
        """What the session remembers.  Raises TooLarge, which undoes the transaction: nothing was stored."""
        held = self._facts.current(tx, row)
        if row.head_facts is None:
            row.head_facts = [fact.id for fact in self._facts.for_head(held, self._now())]
        in_head = {fact_id: place for place, fact_id in enumerate(row.head_facts)}
        tail = tx.scalars(
            select(MessageRow)
            .where(
                MessageRow.session_id == row.id,
                MessageRow.position > row.head_through,
                MessageRow.id != message.id,  # last almost always; a turn taken up late answers after what came since
            )
            .order_by(MessageRow.position)
        )
        view = View(
            owner_id=row.owner_id or 0,
            owner_key=row.owner.index_key,
            session_row_id=row.id,
            system=request.system_prompt or row.system_prompt or self._system_prompt(tx, caller),
            head_version=row.head_version,
            summary=shown(tx, row),
            head_facts=tuple(sorted((fact for fact in held if fact.id in in_head), key=lambda fact: in_head[fact.id])),
            other_facts=tuple(fact for fact in held if fact.id not in in_head),
            tail=tuple(as_message(one, row) for one in tail),
            message=message,
            history_tokens=row.tokens + (0 if message.id else message.tokens),
        )
        reserved = self._settings.recall_tokens + self._settings.fact_tokens
        fitting = tail_that_fits(view, self._settings.context_tokens, reserved)
        return Admitted(view, fitting, row.summary_version, standing(row, update_job(tx, row)))

    def _system_prompt(self, tx: Session, caller: Caller) -> str:
        return self._settings.system_prompt or render(self._prompts.find(tx, caller, "system"))

    def _replay(self, tx: Session, turn: TurnRow) -> TurnFinished:
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
        )


def _fingerprint(caller: Caller, request: TurnRequest) -> str:
    """What must be the same for two requests with one Idempotency-Key to be the same request."""
    parts = (caller.user_id, request.session_id, request.message, request.system_prompt, request.prompt)
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
