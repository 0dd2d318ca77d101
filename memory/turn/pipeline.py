"""One turn, from a person's message to the reply and the memory the two leave.

    admit      one transaction: the session's lease, the stored message, what is remembered   (admission)
    recall     look for earlier words that fit        (preparing; no transaction is open from here ...)
    compose    head, tail, and what was recalled with the message   (preparing)
    answer     the main model, in pieces; in mode `tools` it looks for itself   (answering; ... to here)
    record     one transaction: the reply, what it cost, the follow-up work; the lease is given back
    afterwards the outbox updates summary and index; `SUMMARY_MODE=inline` does the summary before the turn ends

A request of an OpenAI client takes the same steps: what it sent is reconciled with what is stored (`arrival`), goes to
the model as it came but for the memory (`client_prompt`), and what the model answers goes back as it came.

Guarantee: turns of one session run one after another, on any thread or process.  A turn that fails keeps the
person's message, and one whose listener goes away is finished and stored all the same.  One that is stopped (see
`stops`) keeps what was said until then.  A client's request fails open: where memory breaks, it goes to the model
unmodified, and the client gets the answer; `TurnStarted.problem` says why, and so does the log.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain

from sqlalchemy import bindparam, update

from config import Settings
from memory.access.budgets import Budgets
from memory.clients.conversation import reply_extra, storable
from memory.domain import INTERRUPTED, Caller, Usage
from memory.errors import Conflict, ModelError
from memory.facts.facts import Facts
from memory.jobs.outbox import Outbox
from memory.leases.leases import Lease, Leases
from memory.llm import Call, Chunk, Finish, LanguageModel, ModelRequest, Piece
from memory.llm.counted import CountedModel
from memory.llm.passing import in_chunks, last_chunk
from memory.ops.database_errors import database_failed
from memory.ops.metrics import Metrics
from memory.sessions.messages import MessageDraft, store_message
from memory.sessions.sessions import Sessions
from memory.turn.admission import Admission, Admitted
from memory.turn.answering import Answer
from memory.turn.context import ComposedPrompt
from memory.turn.leased import give_back, leased
from memory.turn.preparing import Prepared, Preparing, forgiven
from memory.turn.report import MemoryReport
from memory.turn.stops import Stops
from memory.turn.values import TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from memory.turn.watch import Watch
from models import Database, TurnRow

_END_TURN = update(TurnRow.__table__).where(TurnRow.__table__.c.id == bindparam("turn"))

ID_CHARS = 64  # of a completion's id that are kept
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
        preparing: Preparing,
        leases: Leases,
        stops: Stops,
        outbox: Outbox,
        budgets: Budgets,
        metrics: Metrics,
        main: LanguageModel,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._admission = admission
        self._sessions = sessions
        self._facts = facts
        self._preparing = preparing
        self._leases = leases
        self._stops = stops
        self._outbox = outbox
        self._budgets = budgets
        self._metrics = metrics
        self._main = main
        self._now = now

    def turn(self, caller: Caller, request: TurnRequest) -> Generator[TurnEvent, None, None]:
        """Take a turn: yields TurnStarted, the reply's pieces (for a client its chunks too), TurnFinished.

        Raises NotFound, InvalidRequest, TooLarge, Conflict and LimitReached before anything is stored.  After it raises
        ModelError, and Conflict when the turn was stopped before a word was said (`turn_stopped`): then the message is
        kept, and the same request takes the turn up again.
        """
        watch = Watch(self._metrics, caller, request)
        try:
            admitted, problem = self._admit(caller, request)
        except Exception as error:
            watch.broke_off(error)
            raise
        if isinstance(admitted, TurnFinished):  # a retry of a turn that is over
            watch.replayed(admitted)
            yield from _once_more(admitted, request)
            return
        watch.lap("admit")
        call = Call()
        if admitted.lease is not None:
            self._stops.watch(admitted.lease, call)
        spent: list[Usage] = []
        reply: Answer | None = None
        try:
            tools = self._preparing.tools(admitted, request)
            recalled = self._preparing.recalled(admitted, request, tools)
            watch.lap("recall")
            prepared = self._preparing.prompt(admitted, request, recalled)
            watch.lap("compose")
            question = self._question(prepared.prompt, admitted, request, call)
            reply = Answer(self._settings, CountedModel(self._main, spent.append), question, tools)
            watch.text_came()
            _check_said(admitted, request, reply)
            started = self._started(admitted, prepared, reply, problem)
            listening = True
            events: Iterator[TurnEvent] = chain([started], reply, _cut_short(request, reply))
            for event in events:
                if listening:
                    try:
                        yield event
                    except GeneratorExit:  # whoever asked has gone; the reply is for when they come back
                        listening = False
                        if request.unheard == "interrupt":
                            call.stop()
            watch.lap("answer")
            _check_said(admitted, request, reply)
            finished = self._record(caller, admitted, request, self._finished(admitted, started, reply))
        except BaseException as error:
            watch.broke_off(error, admitted.session_id)
            self._charge(caller, admitted, [reply.end.usage] if reply is not None and reply.interrupted else spent)
            if admitted.lease is not None:
                self._leases.release(admitted.lease)
                if request.client is None:
                    _tell_kept(error, KEPT.format(admitted.session_id))  # the session may be new
            raise
        finally:
            if admitted.lease is not None:
                self._stops.unwatch(admitted.lease)
        watch.lap("record")
        self._outbox.notify()
        if self._settings.summary_mode == "inline" and finished.reply_message_id is not None:
            assert admitted.lease is not None
            self._outbox.run_now("summary", admitted.lease.row_id)
            watch.lap("summary")
        watch.finished(finished)
        if listening:
            yield finished

    def _admit(self, caller: Caller, request: TurnRequest) -> tuple[Admitted | TurnFinished, str | None]:
        """The turn admitted; a client's without memory if that can't be had, and why."""
        try:
            return self._admission.admit(caller, request), None
        except Exception as error:  # noqa: BLE001 - a client's request fails open, whatever breaks
            problem = forgiven(request, error)
            self._budgets.check_caller(caller, request.session_id)  # which is no failure of memory's
            return self._admission.passed_on(request), problem

    def _question(self, prompt: ComposedPrompt, admitted: Admitted, request: TurnRequest, call: Call) -> ModelRequest:
        keyed = self._settings.sends_cache_key and not admitted.passed_on
        return ModelRequest(
            prompt.messages,
            prompt.material,
            stream=request.stream,
            call=call,
            client=None if request.client is None else request.client.parameters,
            cache_key=admitted.session_id if keyed else None,
        )

    def _started(self, admitted: Admitted, prepared: Prepared, reply: Answer, problem: str | None) -> TurnStarted:
        view = admitted.remembered.view
        return TurnStarted(
            completion_id=f"chatcmpl-{secrets.token_hex(16)}",
            session_id=admitted.session_id,
            user_message_id=view.message.id or None,
            model=self._main.name,
            created_at=prepared.at,
            memory=_with_calls(prepared.memory, reply),
            saved_tokens=view.full_history_tokens - prepared.prompt.tokens,
            problem=problem or prepared.problem,
        )

    def _finished(self, admitted: Admitted, started: TurnStarted, reply: Answer) -> TurnFinished:
        usage = TurnUsage(reply.end.usage, round(admitted.remembered.view.full_history_tokens * reply.rate))
        memory = _with_calls(started.memory, reply)
        given = str(reply.last.data.get("id") or "") if reply.last is not None else ""
        if given or memory is not started.memory:
            started = replace(started, completion_id=given[:ID_CHARS] or started.completion_id, memory=memory)
        end = reply.end
        return TurnFinished(started, reply.text, None, end.reason, end.model, usage, calls=reply.client_calls)

    def _charge(self, caller: Caller, admitted: Admitted, spent: Sequence[Usage]) -> None:
        """Count what a turn took that stores nothing."""
        owner_id = admitted.remembered.view.owner_id
        if owner_id:
            self._budgets.charge(owner_id, spent)
        else:
            self._budgets.charge_caller(caller, admitted.session_id, spent)

    def _record(self, caller: Caller, admitted: Admitted, request: TurnRequest, finished: TurnFinished) -> TurnFinished:
        """Store the reply and give the lease back.  Raises Conflict when it was lost: a later turn has the word."""
        lease = admitted.lease
        if lease is None:
            self._charge(caller, admitted, [finished.usage.spent])
            return finished
        if not finished.reply.strip() and not finished.calls:  # an answer without words, which clients may get
            self._leases.release(lease)
            self._charge(caller, admitted, [finished.usage.spent])
            return finished
        try:
            return self._store(admitted, lease, request, finished)
        except Exception as error:  # noqa: BLE001 - as above: the client has its answer
            problem = forgiven(request, error)
            self._leases.release(lease)
            self._charge(caller, admitted, [finished.usage.spent])
            return replace(finished, started=replace(finished.started, problem=problem))

    def _store(self, admitted: Admitted, lease: Lease, request: TurnRequest, finished: TurnFinished) -> TurnFinished:
        with self._database.write(self._admission.patience(request)) as tx:
            row = leased(tx, lease)
            if row is None:
                raise Conflict(
                    "turn_lost",
                    "The session was erased, or this process was suspended and another took its turn. "
                    "The reply was not stored; read the session again.",
                )
            draft = MessageDraft("assistant", storable(finished.reply), extra=reply_extra(finished.calls))
            reply = store_message(tx, row, draft, self._now())
            if finished.calls:  # the exchange goes on, and is summarised when it is over
                self._sessions.index_soon(tx, row)
            else:
                self._sessions.follow_up(tx, row, prompt=request.prompt)
            give_back(tx, row, self._leases)
            ended = {
                "reply_message_id": reply.id,
                "completion_id": finished.started.completion_id,
                "finish_reason": finished.finish_reason,
                "model": finished.model,
                "memory": finished.started.memory.to_stored(),
                "usage": finished.usage.to_stored(),
                "started_at": finished.started.created_at,  # a retry shows the same time
                "finished_at": self._now(),
            }
            tx.execute(_END_TURN, {"turn": admitted.turn_id, **ended})
            self._budgets.spend(tx, row.owner_id, [finished.usage.spent])
            if admitted.remembered.began is None:
                self._facts.count_use(tx, finished.started.memory.facts)
        self._leases.ended(lease)
        return replace(finished, reply_message_id=reply.id)


def _with_calls(memory: MemoryReport, reply: Answer) -> MemoryReport:
    """The report with the looks back that the model has made until now."""
    return replace(memory, calls=reply.calls) if reply.calls else memory


def _tell_kept(error: BaseException, kept: str) -> None:
    """Say with a failure of the model or the database that the message is there.  Raises DatabaseFailed."""
    if isinstance(error, ModelError):
        error.message += kept
    elif failed := database_failed(error, f"The reply was not stored.{kept}"):
        try:
            raise failed from error
        finally:
            del failed  # else it and this frame would keep each other, and all that the turn had at hand


def _cut_short(request: TurnRequest, reply: Answer) -> Iterator[TurnEvent]:
    """How an answer that was stopped ends for a client; read when the reply is over."""
    if request.client is None or not reply.interrupted:
        return
    if request.stream and reply.last is not None:
        yield Chunk(last_chunk(reply.last.data, "stop"))
        return
    end = replace(reply.end, reason="stop")
    yield from in_chunks([reply.text], end, request.client.parameters, stream=request.stream)


def _once_more(finished: TurnFinished, request: TurnRequest) -> Iterator[TurnEvent]:
    """The events of a turn that is over, for a retry."""
    yield finished.started
    if request.client is None:
        yield Piece(finished.reply)
    else:
        reason = "stop" if finished.finish_reason == INTERRUPTED else finished.finish_reason
        end = Finish(reason, finished.model, finished.usage.spent)
        yield from in_chunks(
            [finished.reply],
            end,
            request.client.parameters,
            stream=request.stream,
            calls=finished.calls,
            id=finished.started.completion_id,
        )
    yield finished


def _check_said(admitted: Admitted, request: TurnRequest, reply: Answer) -> None:
    """Raises Conflict for a reply that was stopped before it said anything; a client just gets no words."""
    if reply.interrupted and not reply.text.strip() and request.client is None:
        message = "The reply was stopped before its first word, and none was stored."
        raise Conflict("turn_stopped", message + KEPT.format(admitted.session_id) if admitted.lease else message)
