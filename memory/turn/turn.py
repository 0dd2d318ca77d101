"""Run one turn: answer a message and remember both.

    begin    one write: take the session, store the message            begin.py
    context  one read: prefix, recent messages, what was said earlier  context.py
    prompt   the messages to send                                      prompt.py
    answer   call the model, pass its events on                        answer.py
    record   one write: reply, usage, jobs, lease                      record.py

Jobs bring summary and index up to date afterwards; SUMMARY_MODE=inline updates the summary before the turn ends.

Invariants:
- No transaction is open while a model works (test_connections).
- Turns of a session run one after another, on any thread or process (test_turn_serialisation).
- A turn that fails keeps the person's message (test_chat_failures).
- A client's request fails open: where memory breaks, the model answers it all the same (test_openai_failing_open).
- Every turn is counted once, however it ends, and has at most one line in the log, without a word of it (test_logs).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from memory.engine import Engine
from memory.errors import (
    CONTENT_REFUSED,
    CONTEXT_EXCEEDED,
    ModelError,
    RecapError,
    TooLarge,
    database_failed,
)
from memory.leases import WAIT_SECONDS
from memory.llm import LanguageModel, StreamEnd, TextDelta
from memory.llm.passthrough import to_chunks
from memory.ops import logs
from memory.turn import turns
from memory.turn.answer import Reply, read_reply
from memory.turn.begin import begin_turn, bypass, compact_by_force, withdraw
from memory.turn.context import read_context
from memory.turn.prompt import Prompt, build_prompt, passthrough_prompt
from memory.turn.record import advice, mark_if_refused, store_reply
from memory.turn.request import Turn, TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models.turns import CUT_OFF, INTERRUPTED

log = logging.getLogger(__name__)

FAIL_OPEN_CODES = ("session_busy", "turn_lost")  # errors that keep a client's turn out of memory, not from an answer
FILTERED = "the model server refused the prompt with what was found, so it is left out"
KEPT = " Your message is kept: send it again in session {}, and the turn is taken up where it broke off."
ID_CHARS = 64  # of a completion's id that are kept

Params = ParamSpec("Params")
Result = TypeVar("Result")


class Stopwatch:
    """Measures the phases of a turn."""

    def __init__(self) -> None:
        self.started_at = self._last = perf_counter()
        self.seconds: dict[str, float] = {}  # by phase

    def mark(self, phase: str) -> None:
        """End a phase, which began when the one before ended."""
        now = perf_counter()
        self.seconds[phase] = now - self._last
        self._last = now


def run_turn(engine: Engine, request: TurnRequest) -> Iterator[TurnEvent]:
    """Yield TurnStarted, the reply's events (RawChunks for a client alone), then TurnFinished.

    The caller must exhaust the iterator, also when nobody reads the reply any more.

    Raises NotFound, InvalidRequest, TooLarge, Conflict and LimitReached before anything is stored.  Later it raises
    ModelError, and Conflict("turn_stopped") when the turn was stopped before a word was said: then the message is kept,
    and the same request takes the turn up again.
    """
    model = engine.model_server.models.choose(request.model, main_if_unknown=request.kind.fails_open)
    watch, reply = Stopwatch(), Reply()
    turn: Turn | None = None
    finished: TurnFinished | None = None
    error: BaseException | None = None
    try:
        turn, problem = fail_open(request, begin_turn, engine, request)
        turn = turn or bypass(engine, request, problem)
        if turn.finished is not None:
            finished = turn.finished
            yield from replay(turn)
        else:
            watch.mark("admit")
            _hold(engine, turn, reply)
            prompt, problem = fail_open(request, prepare, engine, turn, model, watch)
            prompt = prompt or passthrough_prompt(engine, turn, problem)
            watch.mark("compose")
            events = read_reply(model, prompt, reply)
            try:
                first = next(events, None)  # a model that fails before its first word raises here, before any event
            except ModelError as refused:
                prompt = _acceptable_prompt(engine, turn, model, prompt, refused)
                events = read_reply(model, prompt, reply)
                first = next(events, None)
            started = _started(turn, prompt, model, reply)
            yield started
            if first is not None:
                yield first
            yield from events
            watch.mark("answer")
            finished = record(engine, turn, prompt, _finished(started, prompt, reply))
            watch.mark("record")
            run_inline_jobs(engine, turn, finished, watch)
    except BaseException as raised:
        error = raised
        if failed := explain(engine, turn, reply, raised):
            raise failed from raised
        raise
    finally:
        if turn is not None and (finished is None or finished.reply_message_id is None):
            give_up(engine, turn, reply)
        _report(engine, turn or Turn(request), finished, reply, watch, error)
    yield finished


def prepare(engine: Engine, turn: Turn, model: LanguageModel, watch: Stopwatch) -> Prompt:
    """Return the prompt with what is remembered, or a client's request as it came where memory takes no part."""
    if turn.session is None:
        return passthrough_prompt(engine, turn, turn.problem)
    context = read_context(engine, turn, model)
    if context.report.tail_dropped and turn.lease and (compacted := compact_by_force(engine, turn)):
        turn, context = compacted, read_context(engine, compacted, model)
    watch.mark("recall")
    return build_prompt(engine, turn, context)


def record(engine: Engine, turn: Turn, prompt: Prompt, finished: TurnFinished) -> TurnFinished:
    """Store the reply and give the lease back.  Raises Conflict when the lease was lost."""
    if turn.lease is None or not (finished.reply.strip() or finished.calls):
        return finished
    reply_id, problem = fail_open(turn.request, store_reply, engine, turn, finished, prompt.context)
    if problem is not None:  # the client has its answer already
        return replace(finished, started=replace(finished.started, problem=problem))
    return replace(finished, reply_message_id=reply_id)


def fail_open(
    request: TurnRequest, step: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
) -> tuple[Result | None, str | None]:
    """Return the result of a step, or why a client's request goes on without its memory, as a code.

    Raises what the step raises for a person's message, and errors that the client must hear.
    """
    try:
        return step(*args, **kwargs), None
    except Exception as error:  # a client's request fails open, whatever breaks
        code = error.code if isinstance(error, RecapError) else None
        if not request.kind.fails_open or code not in (None, *FAIL_OPEN_CODES):
            raise
        if code is not None:
            log.warning("a client's request goes on without memory", extra=logs.fields(code=code))
            return None, code
        log.error("a client's request goes on without memory", exc_info=error)
        failed = database_failed(error)
        return None, failed.code if failed is not None else "memory_failed"


def replay(turn: Turn) -> Iterator[TurnEvent]:
    """Yield the events of a turn that is over, for a retry."""
    finished, request = turn.finished, turn.request
    assert finished is not None
    yield finished.started
    if request.kind.parameters is None:
        yield TextDelta(finished.reply)
        return
    reason = "stop" if finished.finish_reason == INTERRUPTED else finished.finish_reason
    yield from to_chunks(
        [finished.reply],
        StreamEnd(reason, finished.model, finished.usage.spent),
        request.kind.parameters,
        stream=request.stream,
        calls=finished.calls,
        id=finished.started.completion_id,
    )


def run_inline_jobs(engine: Engine, turn: Turn, finished: TurnFinished, watch: Stopwatch) -> None:
    """Bring the summary, and the profile, up to date before the turn ends, where the settings say so."""
    has_profile = engine.settings.profile_mode.mode == "inline"
    if turn.session is None or turn.lease is None or finished.reply_message_id is None:
        return
    if has_profile or engine.settings.summary_mode == "inline":
        engine.job_queue.run_now("summary", turn.session.id, WAIT_SECONDS)
        if has_profile:
            engine.job_queue.run_now("profile", turn.session.owner_id, WAIT_SECONDS)
        watch.mark("summary")


def _hold(engine: Engine, turn: Turn, reply: Reply) -> None:
    """Renew the lease in the background, and save the partial reply at each renewal."""
    lease, turn_id = turn.lease, turn.turn_id
    if lease is not None and turn_id is not None:
        save = turns.save_partial
        engine.leases.hold(lease, turn.request.cancel.cancel, lambda tx: save(tx, turn_id, lease, reply.text))


def _acceptable_prompt(engine: Engine, turn: Turn, model: LanguageModel, prompt: Prompt, error: ModelError) -> Prompt:
    """Return a prompt that the model may take after it refused the first one.  Raises `error`.

    A prompt that is too long is shortened, for a window that proved to be smaller than was known.  Where a content
    filter refused it, the excerpts may be the cause, and it is tried without them.
    """
    is_too_long = error.code == CONTEXT_EXCEEDED and turn.lease is not None
    is_filtered = error.code == CONTENT_REFUSED and bool(prompt.report.recalled.excerpts)
    if not (is_too_long or is_filtered):
        raise error
    try:
        context = read_context(engine, turn, model)
    except TooLarge:  # it says that nothing was stored; this message is
        raise error from None
    if is_filtered:
        recalled = replace(context.report.recalled, excerpts=(), reason=FILTERED)
        context = replace(context, report=replace(context.report, recalled=recalled))
    shorter = build_prompt(engine, turn, context)
    if shorter.tokens >= prompt.tokens:
        raise error
    return shorter


def _started(turn: Turn, prompt: Prompt, model: LanguageModel, reply: Reply) -> TurnStarted:
    message_id = turn.new_messages[-1].id if turn.new_messages else 0
    return TurnStarted(
        completion_id=f"chatcmpl-{secrets.token_hex(16)}",
        session_id=turn.session_id,
        user_message_id=message_id or None,
        model=reply.substitute or model.name,
        created_at=prompt.now,
        memory=replace(prompt.report, calls=reply.searches, written=reply.written),
        saved_tokens=prompt.full_history_tokens - prompt.tokens,
        problem=prompt.problem,
    )


def _finished(started: TurnStarted, prompt: Prompt, reply: Reply) -> TurnFinished:
    usage = TurnUsage(reply.end.usage, round(prompt.full_history_tokens * reply.token_rate))
    server_id = str(reply.last_chunk.data.get("id") or "") if reply.last_chunk is not None else ""
    started = replace(
        started,
        completion_id=server_id[:ID_CHARS] or started.completion_id,
        memory=replace(started.memory, calls=reply.searches, written=reply.written),
        model=reply.substitute or started.model,
    )
    end, calls, failure = reply.end, reply.tool_calls, reply.failure
    return TurnFinished(started, reply.text, None, end.reason, end.model, usage, calls=calls, failure=failure)


# -- how it ended


def explain(engine: Engine, turn: Turn | None, reply: Reply, error: BaseException) -> RecapError | None:
    """Add to an error what became of the message; return another error where that says it better."""
    if turn is None or turn.lease is None:
        return None
    if isinstance(error, TooLarge):
        withdraw(engine, turn)  # the error says that nothing was stored
        return None
    session_id = turn.session_id or turn.request.session_id
    is_first_call = not reply.usages and not reply.text.strip()
    if isinstance(error, ModelError) and is_first_call and mark_if_refused(engine, turn, error):
        error.add(advice(turn, session_id))
        return None
    if turn.request.kind.fails_open:
        return None
    kept = KEPT.format(session_id)  # the caller may not know the session's id yet
    if isinstance(error, ModelError) or (isinstance(error, RecapError) and error.code == "turn_stopped"):
        error.message += kept
        return None
    return database_failed(error, f"The reply was not stored.{kept}")


def give_up(engine: Engine, turn: Turn, reply: Reply) -> None:
    """Charge a turn that stored no reply for the calls of the model, and give its lease back."""
    engine.budgets.add_caller_usage_now(turn.request.caller, turn.session_id, reply.usages)
    if turn.lease is not None:
        engine.leases.release(turn.lease)


def _report(
    engine: Engine,
    turn: Turn,
    finished: TurnFinished | None,
    reply: Reply,
    watch: Stopwatch,
    error: BaseException | None,
) -> None:
    """Count the turn, and write its line; of a refused one the request's line says all."""
    request, api = turn.request, turn.request.kind.api
    outcome, seconds = _outcome(finished, error), perf_counter() - watch.started_at
    first_word = None
    if request.stream and reply.first_word_at is not None:
        first_word = reply.first_word_at - watch.started_at
    engine.metrics.count_turn(api, outcome, watch.seconds, first_word, seconds)
    reported: dict[str, Any] = {"code": None if finished is not None or error is None else logs.safe_message(error)}
    if finished is not None and not finished.replayed:
        memory, usage, problem = finished.started.memory, finished.usage, finished.started.problem
        excerpts = len(memory.recalled.excerpts) + sum(call.excerpts for call in memory.calls)
        full, mode = usage.full_history_tokens, memory.recalled.mode
        engine.metrics.count_answer(usage.spent, full, mode, excerpts, without_memory=problem is not None)
        reported = {
            "prompt_tokens": usage.spent.prompt_tokens,
            "completion_tokens": usage.spent.completion_tokens,
            "saved_tokens": usage.saved_tokens,
            "recalled": excerpts,
            "problem": problem,
        }
    level = logging.WARNING if outcome == "failed" else logging.INFO
    if outcome != "refused" and log.isEnabledFor(level):
        session_id = turn.session_id if finished is None else finished.started.session_id
        session_id = session_id or request.session_id
        session = logs.Pseudonym("session", request.caller.tenant, session_id) if session_id is not None else None
        reported |= {f"{phase}_ms": round(seconds * 1000, 1) for phase, seconds in watch.seconds.items()}
        log.log(level, "turn", extra=logs.fields(api=api, outcome=outcome, session=session, **reported))


def _outcome(finished: TurnFinished | None, error: BaseException | None) -> str:
    """Return how the turn ended, as one of `metrics.TURN_OUTCOMES`."""
    if finished is not None and finished.replayed:
        return "replayed"
    if finished is not None:
        return "interrupted" if finished.finish_reason in (INTERRUPTED, CUT_OFF) else "answered"
    if isinstance(error, RecapError) and error.status < 500:
        return "interrupted" if error.code == "turn_stopped" else "refused"
    return "failed"
