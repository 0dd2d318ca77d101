"""One turn, from a person's message to the reply and the memory that the two leave.

    admit      one transaction: the session's lease, the stored message, what is remembered   (admission)
    recall     look back for earlier words that fit             (prompt)
    compose    the messages to send to the model                (prompt)
    answer     the main model, in pieces; in mode `tools` it looks back itself   (running)
    record     one transaction: the reply, what it cost, the jobs that follow; the lease is given back

No transaction is open while a model works.  Jobs bring summary and index up to date afterwards; SUMMARY_MODE=inline
updates the summary before the turn ends.

Guarantee: turns of one session run one after another, on any thread or process.  A turn that fails keeps the person's
message, and one whose listener leaves is finished and stored all the same.  A client's request fails open: where memory
breaks, the request goes to the model unchanged and the client gets the answer; `TurnStarted.problem` says why.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING

from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError, RecapError, TooLarge, database_failed
from memory.leases import WAIT_SECONDS
from memory.llm import LanguageModel, StreamEnd, TextDelta
from memory.llm.passthrough import to_chunks, to_openai
from memory.ops import logs
from memory.sessions.messages import SessionCounts, store_reply
from memory.transcripts.matching import conversation_fingerprint
from memory.transcripts.transcript import message_key
from memory.turn import refusals, turns
from memory.turn.admission import admit, read_again, without_memory
from memory.turn.prompt import BY_MODEL, Composed, as_it_came, compose, look_back
from memory.turn.running import Answer, Course
from memory.turn.tools import Tools
from memory.turn.values import Admitted, MemoryReport, TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models import SessionRow, retry_on_conflict
from models.messages import UNREMEMBERED, MessageDraft
from models.turns import INTERRUPTED

if TYPE_CHECKING:
    from memory.engine import Engine

log = logging.getLogger(__name__)

FORGIVEN = ("session_busy", "turn_lost")  # errors that keep a client's turn out of memory, but not from an answer
FILTERED = "the model server refused the prompt with what was found, so it is left out"
ID_CHARS = 64  # of a completion's id that are kept


@dataclass(frozen=True)
class ChatPipeline:
    """Takes turns."""

    engine: Engine

    def turn(self, request: TurnRequest) -> Generator[TurnEvent, None, None]:
        """Take a turn: yields TurnStarted, the reply's pieces (for a client its chunks too), TurnFinished.

        Raises NotFound, InvalidRequest, TooLarge, Conflict and LimitReached before anything is stored.  After it raises
        ModelError, and Conflict when the turn was stopped before a word was said (`turn_stopped`): then the message is
        kept, and the same request takes the turn up again.
        """
        engine = self.engine
        models = engine.model_server.models
        model = models.choose(request.model, main_if_unknown=request.client is not None)
        with Course(engine, request) as course:
            prepared = _prepare(engine, request, model, course)
            if isinstance(prepared, TurnFinished):
                course.finished = prepared
                yield from _once_more(prepared, request)
                return
            admitted, tools, prompt = prepared
            pieces = course.answer.pieces(model, prompt.request, tools)
            try:
                first = next(pieces, None)  # a model that fails before its first word raises here, before any event
            except ModelError as error:
                admitted, tools, prompt = _acceptable(engine, model, admitted, prompt, error)
                pieces = course.answer.pieces(model, prompt.request, tools)
                first = next(pieces, None)
            started = _started(admitted, prompt, model, course.answer)
            events: Iterator[TurnEvent] = chain([started], () if first is None else [first], pieces)
            listening = True
            for event in events:
                if listening:
                    try:
                        yield event
                    except GeneratorExit:  # the listener left; the reply is for when they come back
                        listening = False
                        if request.on_disconnect == "interrupt":
                            admitted.cancel.cancel()
            course.ended["answer"] = perf_counter()
            finished = course.finished = _record(engine, admitted, _finished(admitted, started, course.answer))
            course.ended["record"] = perf_counter()
            _run_inline(engine, admitted, finished, course)
        if listening:
            yield finished


def _once_more(finished: TurnFinished, request: TurnRequest) -> Iterator[TurnEvent]:
    """The events of a turn that is over, for a retry."""
    yield finished.started
    if request.client is None:
        yield TextDelta(finished.reply)
    else:
        reason = "stop" if finished.finish_reason == INTERRUPTED else finished.finish_reason
        end = StreamEnd(reason, finished.model, finished.usage.spent)
        yield from to_chunks(
            [finished.reply],
            end,
            request.client.parameters,
            stream=request.stream,
            calls=finished.calls,
            id=finished.started.completion_id,
        )
    yield finished


# -- admit, recall, compose


def _prepare(
    engine: Engine, request: TurnRequest, model: LanguageModel, course: Course
) -> tuple[Admitted, Tools | None, Composed] | TurnFinished:
    """What the memory has to do before the model answers: the turn, what the model looks back with, and its prompt.

    Or the end of the turn that this request, sent before, has come to.  A client's request goes on without memory if
    memory fails, or if it is an errand.
    """
    admitted = problem = None
    try:
        admitted = admit(engine, request)
        if isinstance(admitted, TurnFinished):
            return admitted
        if admitted is not None:
            course.hold(admitted)
            found = look_back(engine, admitted, model)
            course.ended["recall"] = perf_counter()
            prompt = compose(engine, admitted, found)
            course.ended["compose"] = perf_counter()
            return admitted, _tools(engine, admitted, found), prompt
    except Exception as error:  # noqa: BLE001 - a client's request fails open, whatever breaks
        problem = _fail_open(request, error)
    if not isinstance(admitted, Admitted):
        admitted = without_memory(engine, request)
        course.hold(admitted)
    prompt = as_it_came(engine, admitted, problem)
    course.ended["compose"] = perf_counter()
    return admitted, None, prompt


def _tools(engine: Engine, admitted: Admitted, found: MemoryReport) -> Tools | None:
    """Return what the model looks back with itself; None where the message was read."""
    if found.recalled.kind != BY_MODEL:
        return None
    return Tools(engine.recall, admitted.past, admitted.settings, admitted.request.timezone)


def _acceptable(
    engine: Engine, model: LanguageModel, admitted: Admitted, prompt: Composed, error: ModelError
) -> tuple[Admitted, Tools | None, Composed]:
    """Return the turn with a prompt that the model may take after it refused the first one.  Raises `error`.

    A prompt that is too long is shortened.  Where a content filter refused it, the words recalled from earlier may be
    the cause, and it is tried without them.
    """
    again = admitted
    if error.code == CONTEXT_EXCEEDED and admitted.lease is not None:
        try:
            again = read_again(engine, admitted)
        except TooLarge:  # it says that nothing was stored; this message is
            raise error from None
    elif error.code != CONTENT_REFUSED or not prompt.report.recalled.excerpts:
        raise error
    found = look_back(engine, again, model)
    if error.code == CONTENT_REFUSED:
        found = replace(found, recalled=replace(found.recalled, excerpts=(), reason=FILTERED))
    other = compose(engine, again, found)
    if other.tokens >= prompt.tokens:
        raise error
    return again, _tools(engine, again, found), other


def _fail_open(request: TurnRequest, error: Exception) -> str:
    """Why a client's request goes on without memory, as a code.  Raises what is no failure of memory."""
    if request.client is None or (isinstance(error, RecapError) and error.code not in FORGIVEN):
        raise error
    if isinstance(error, RecapError):
        log.warning("a client's request goes on without memory", extra=logs.fields(code=error.code))
        return error.code
    log.error("a client's request goes on without memory", exc_info=error)
    failed = database_failed(error)
    return failed.code if failed is not None else "memory_failed"


# -- answer


def _started(admitted: Admitted, prompt: Composed, model: LanguageModel, answer: Answer) -> TurnStarted:
    return TurnStarted(
        completion_id=f"chatcmpl-{secrets.token_hex(16)}",
        session_id=admitted.session_id,
        user_message_id=admitted.exchange[-1].id or None,
        model=answer.substitute or model.name,
        created_at=prompt.now,
        memory=replace(prompt.report, calls=answer.looked_back),
        saved_tokens=admitted.full_history_tokens - prompt.tokens,
        problem=prompt.problem,
    )


def _finished(admitted: Admitted, started: TurnStarted, answer: Answer) -> TurnFinished:
    end = answer.end
    usage = TurnUsage(end.usage, round(admitted.full_history_tokens * answer.rate))
    given = str(answer.last.data.get("id") or "") if answer.last is not None else ""
    report = replace(started.memory, calls=answer.looked_back)
    started = replace(started, completion_id=given[:ID_CHARS] or started.completion_id, memory=report)
    started = replace(started, model=answer.substitute or started.model)
    calls, failure = answer.calls, answer.failure
    return TurnFinished(started, answer.said, None, end.reason, end.model, usage, calls=calls, failure=failure)


# -- record


def _record(engine: Engine, admitted: Admitted, finished: TurnFinished) -> TurnFinished:
    """Store the reply and give the lease back.  Raises Conflict when the lease was lost."""
    worth_storing = finished.reply.strip() or finished.calls  # clients may get an answer without words
    if admitted.lease is None or not worth_storing:
        return finished
    try:
        reply_id = _store(engine, admitted, finished)
    except Exception as error:  # noqa: BLE001 - as above; the client has its answer already
        problem = _fail_open(admitted.request, error)
        return replace(finished, started=replace(finished.started, problem=problem))
    engine.leases.forget(admitted.lease)
    return replace(finished, reply_message_id=reply_id)


@retry_on_conflict
def _store(engine: Engine, admitted: Admitted, finished: TurnFinished) -> int:
    """The stored reply's id."""
    request, lease, now, begun = admitted.request, admitted.lease, engine.now(), None
    session: SessionRow | SessionCounts
    assert lease is not None and admitted.turn_id is not None
    extra = {"tool_calls": list(map(to_openai, finished.calls))} if finished.calls else None
    draft = MessageDraft("assistant", finished.reply, extra=extra if request.remember else UNREMEMBERED)
    if request.client is not None and request.session_id is None:
        line = [one.key for one in request.client.conversation.messages]
        begun = conversation_fingerprint(request.caller, [*line, message_key(draft)])
    with engine.database.write(request.lock_timeout) as tx:
        reply_id, session = store_reply(tx, lease, draft, now, begun)
        turns.finish(tx, admitted.turn_id, reply_id, finished, now)
        if any(message.refused is not None for message in admitted.exchange):
            session = refusals.clear(tx, engine, session.id, admitted.exchange)
        # An exchange that goes on with calls of tools is summarised when it is over.
        engine.sessions.enqueue_follow_ups(tx, session, summarise=not finished.calls, prompt=request.prompt)
        engine.budgets.add_usage(tx, session.owner_id, [finished.usage.spent])
    return reply_id


def _run_inline(engine: Engine, admitted: Admitted, finished: TurnFinished, course: Course) -> None:
    """Bring the summary, and the profile, up to date before the turn ends, where the settings say so."""
    profile = engine.settings.profile_mode.mode == "inline"
    if admitted.lease is None or finished.reply_message_id is None:
        return
    if profile or engine.settings.summary_mode == "inline":
        engine.job_queue.run_now("summary", admitted.lease.row_id, WAIT_SECONDS)
        if profile:
            engine.job_queue.run_now("profile", admitted.past.owner_id, WAIT_SECONDS)
        course.ended["summary"] = perf_counter()
