"""One turn, from a person's message to the reply and the memory the two leave.

    admit      one transaction: the session's lease, the stored message, what is remembered   (admission)
    recall     look for earlier words that fit                      (no transaction is open from here ...)
    compose    head, tail, and what was recalled with the message
    answer     the main model, in pieces; in mode `tools` it looks for itself   (answering; ... to here)
    record     one transaction: the reply, what it cost, the follow-up work; the lease is given back
    afterwards the outbox updates summary and index; `SUMMARY_MODE=inline` does the summary before the turn ends

Guarantee: turns of one session run one after another, on any thread or process.  A turn that fails keeps the
person's message, and one whose listener goes away is finished and stored all the same.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import chain

from config import Settings
from memory import tokens
from memory.admission import Admission, Admitted
from memory.answering import Answer
from memory.context import ComposedPrompt, View, compose, recalled_that_fits
from memory.domain import Caller
from memory.errors import Conflict, ModelError
from memory.facts import Facts
from memory.leases import Lease, Leases
from memory.llm import LanguageModel, ModelRequest, Piece
from memory.outbox import Outbox
from memory.recall import Past, Recall, Recalled
from memory.report import MemoryReport
from memory.sessions import MessageDraft, Sessions, add_message
from memory.tools import Tools
from memory.turn import TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models import Database, SessionRow, TurnRow

log = logging.getLogger(__name__)

ASKED = "the model looks back when it wants to"
UNASKED = "the model calls no tools, so the message was read"
BEFORE = 6  # messages in which "the bug" or "she" may have been named just before

KEPT = " Your message is kept: send it again in session {}, and the turn is taken up where it broke off."


class ChatPipeline:
    """Takes turns."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        admission: Admission,
        sessions: Sessions,
        facts: Facts,
        recall: Recall,
        leases: Leases,
        outbox: Outbox,
        main: LanguageModel,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._admission = admission
        self._sessions = sessions
        self._facts = facts
        self._recall = recall
        self._leases = leases
        self._outbox = outbox
        self._main = main
        self._now = now

    def turn(self, caller: Caller, request: TurnRequest) -> Generator[TurnEvent, None, None]:
        """Take a turn: yields TurnStarted, the reply's pieces, TurnFinished.

        Raises NotFound, InvalidRequest, TooLarge and Conflict before anything is stored, and ModelError after it:
        then the message is kept, and the same request takes the turn up again.
        """
        clock = _Clock()
        admitted = self._admission.admit(caller, request)
        if isinstance(admitted, TurnFinished):  # a retry of a turn that is over
            yield admitted.started
            yield Piece(admitted.reply)
            yield admitted
            return
        clock.lap("admit")
        try:
            tools = self._tools(admitted, request)
            recalled = Recalled((), "tools", ASKED) if tools else self._look_back(admitted, request)
            clock.lap("recall")
            prompt, memory = self._compose(admitted, recalled)
            clock.lap("compose")
            question = ModelRequest(prompt.messages, prompt.material, stream=request.stream)
            reply = Answer(self._settings, self._main, question, tools)
            started = self._started(admitted, replace(memory, calls=reply.calls))
            listening = True
            events: Iterator[TurnEvent] = chain([started], reply)
            for event in events:
                if listening:
                    try:
                        yield event
                    except GeneratorExit:  # whoever asked has gone; the reply is for when they come back
                        listening = False
            clock.lap("answer")
            finished = self._finished(admitted, started, reply)
            if admitted.lease is not None:
                finished = self._record(admitted, admitted.lease, request, finished)
        except BaseException as error:
            if admitted.lease is not None:
                self._leases.release(admitted.lease)
                if isinstance(error, ModelError):
                    error.message += KEPT.format(admitted.session_id)  # which the turn may have made
            raise
        clock.lap("record")
        self._outbox.notify()
        if self._settings.summary_mode == "inline" and admitted.lease is not None:
            self._outbox.run_now("summary", admitted.lease.row_id)
            clock.lap("summary")
        log.info(
            "turn session=%s prompt_tokens=%d saved_tokens=%d recalled=%d %s",
            started.session_id,
            finished.usage.spent.prompt_tokens,
            finished.usage.saved_tokens,
            len(recalled.excerpts) + sum(call.excerpts for call in reply.calls),
            clock,
        )
        if listening:
            yield finished

    def _tools(self, admitted: Admitted, request: TurnRequest) -> Tools | None:
        """What the model looks back with in mode `tools`; None when Recap looks back for it, or nobody does."""
        settings = self._settings
        wanted = (request.recall or settings.recall) == "tools" and self._main.can_call_tools
        if not (wanted and settings.recall_limit and settings.recall_tokens):
            return None
        return Tools(self._recall, _past(admitted), limit=settings.recall_limit, zone=request.timezone)

    def _look_back(self, admitted: Admitted, request: TurnRequest) -> Recalled:
        mode = request.recall or self._settings.recall
        recalled = self._recall.look_back(
            _past(admitted),
            request.message,
            mode="auto" if mode == "tools" else mode,
            before=[message.content for message in admitted.tail[-BEFORE:]],
            now=self._now(),
            zone=request.timezone,
        )
        if mode == "tools" and not self._main.can_call_tools:
            return replace(recalled, mode=mode, reason=f"{UNASKED}: {recalled.reason}")
        return replace(recalled, mode=mode)

    def _compose(self, admitted: Admitted, recalled: Recalled) -> tuple[ComposedPrompt, MemoryReport]:
        view, tail, now = admitted.view, admitted.tail, self._now()
        in_sight = {message.id for message in tail}
        unseen = [fact for fact in view.other_facts if fact.source_message_id not in in_sight]
        fitting = self._facts.for_message(unseen, view.message.content, now)
        excerpts, fitting = recalled_that_fits(view, tail, recalled.excerpts, fitting, self._settings.context_tokens)
        recalled = replace(recalled, excerpts=excerpts)
        report = MemoryReport(
            summary_version=admitted.summary_version,
            head_version=view.head_version,
            state=admitted.summary_state,
            facts=(*self._facts.scored(view.head_facts, view.message.content, now), *fitting),
            recalled=recalled,
            tail_messages=len(tail),
            tail_dropped=len(view.tail) - len(tail),
        )
        return compose(view, tail, excerpts, fitting, now), report

    def _started(self, admitted: Admitted, memory: MemoryReport) -> TurnStarted:
        return TurnStarted(
            completion_id=f"chatcmpl-{uuid.uuid4().hex}",
            session_id=admitted.session_id,
            user_message_id=admitted.view.message.id or None,
            model=self._main.name,
            created_at=self._now(),
            memory=memory,
        )

    def _finished(self, admitted: Admitted, started: TurnStarted, reply: Answer) -> TurnFinished:
        usage = TurnUsage(reply.end.usage, _full_history(admitted.view, reply.rate))
        started = replace(started, memory=replace(started.memory, calls=reply.calls))
        return TurnFinished(started, reply.text, None, reply.end.reason, reply.end.model, usage)

    def _record(self, admitted: Admitted, lease: Lease, request: TurnRequest, finished: TurnFinished) -> TurnFinished:
        """Store the reply and give the lease back.  Raises Conflict when it was lost: a later turn has the word."""
        with self._database.write() as tx:
            row = tx.get(SessionRow, lease.row_id)
            if row is None or not self._leases.holds(row, lease):
                raise Conflict(
                    "turn_lost",
                    "The session was erased, or this process was suspended and another took its turn. "
                    "The reply was not stored; read the session again.",
                )
            reply = add_message(row, MessageDraft("assistant", finished.reply), self._now())
            tx.add(reply)
            tx.flush()
            turn = tx.get_one(TurnRow, admitted.turn_id)
            turn.reply_message_id = reply.id
            turn.completion_id = finished.started.completion_id
            turn.finish_reason = finished.finish_reason
            turn.model = finished.model
            turn.memory = finished.started.memory.to_stored()
            turn.usage = finished.usage.to_stored()
            turn.started_at = finished.started.created_at  # a retry shows the same time
            turn.finished_at = self._now()
            self._facts.count_use(tx, finished.started.memory.facts)
            self._sessions.follow_up(tx, row, prompt=request.prompt)
            row.lease_token = row.lease_until = None
        self._leases.ended(lease)
        return replace(finished, reply_message_id=reply.id)


def _past(admitted: Admitted) -> Past:
    """What a turn may look into: all of the owner's past but what its prompt shows anyway."""
    view = admitted.view
    shown = frozenset(message.id for message in (*admitted.tail, view.message))
    return Past(view.owner_id, view.owner_key, view.session_row_id, shown)


def _full_history(view: View, rate: float) -> int:
    """Prompt tokens had every message been sent: our estimate of it, at the rate the model counted this prompt."""
    return round((view.history_tokens + tokens.estimate_message(view.system)) * rate)


class _Clock:
    """Milliseconds of each phase, for the turn's log line."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._laps: list[str] = []

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self._laps.append(f"{phase}_ms={(now - self._last) * 1000:.1f}")
        self._last = now

    def __str__(self) -> str:
        return " ".join(self._laps)
