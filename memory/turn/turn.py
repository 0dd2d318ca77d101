"""Run one turn: answer a message and remember both.

    begin    one write: take the session, store the message            begin.py              `admit`
    context  one read: prefix, recent messages, facts, excerpts        context.py            `recall`
    prompt   build the messages to send                                prompt.py             `compose`
    answer   call the model, pass its events on                        answer.py             `answer`
    record   one write: reply, usage, jobs, lease                      record.py             `record`
    count    metrics, and one line in the log                          log_and_metrics.py

The last column is the step's name in the metrics and the log, as `admit_ms`.  Jobs then update the summary and the
index; with SUMMARY_MODE=inline the summary is updated before the turn ends.

Invariants:
- No transaction is open while a model works (test_connections).
- Turns of a session run one after another, on any thread or process (test_turn_serialisation).
- A turn that fails keeps the person's message, unless it fits no prompt (test_chat_failures, test_compaction).
- A client's request fails open: if memory fails, the model answers it without memory (test_openai_failing_open).
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeVar

from memory.engine import Engine
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, ModelError, RecapError, TooLarge, code_of
from memory.leases import WAIT_SECONDS
from memory.llm import LanguageModel
from memory.ops import logs
from memory.turn import turns
from memory.turn.answer import Reply, ReplyEvent, read_reply, replay
from memory.turn.begin import begin_turn, compact_by_force
from memory.turn.context import read_context
from memory.turn.log_and_metrics import Stopwatch, count_turn
from memory.turn.prompt import Prompt, build_prompt, passthrough_prompt
from memory.turn.record import record_failure, store_reply
from memory.turn.request import Turn, TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage

log = logging.getLogger(__name__)

FAIL_OPEN_CODES = ("session_busy", "turn_lost")  # with these errors a client's request goes on without memory
FILTERED = "the model server refused the prompt with what was found, so it is left out"

Result = TypeVar("Result")


def run_turn(engine: Engine, request: TurnRequest) -> Iterator[TurnEvent]:
    """Yield TurnStarted, the reply's events (RawChunks for a client alone), then TurnFinished.

    The caller must exhaust the iterator, also after the client has closed the connection.

    Raises NotFound, InvalidRequest, TooLarge, Conflict and LimitReached before anything is stored.  After the message
    was stored it raises ModelError, and Conflict("turn_stopped") when the turn was stopped before the first word of the
    reply.  The message is then kept, and the same request resumes the turn.
    """
    model = engine.model_server.models.choose(request.model, main_if_unknown=request.is_client)
    watch = Stopwatch()
    reply = Reply()
    turn = Turn(request)
    finished: TurnFinished | None = None
    error: BaseException | None = None
    try:
        begun, problem = fail_open(request, lambda: begin_turn(engine, request, model.window))
        if begun is None:  # a client's request that has no use for memory, or memory failed as `problem` says
            engine.budgets.check_caller(request.caller, request.session_id)
        turn = begun or turn
        if turn.earlier_answer is not None:
            finished = turn.earlier_answer
            yield from replay(request, finished)
            return
        watch.mark("admit")
        if turn.lease is not None:
            engine.leases.hold(turn.lease, request.cancel.cancel, lambda tx: turns.save_partial(tx, turn, reply.text))
        prepared = None
        if turn.session is not None:
            prepared, problem = fail_open(request, partial(prepare_prompt, engine, turn, model, watch))
        turn, prompt = prepared or (turn, passthrough_prompt(engine, turn, problem))
        watch.mark("compose")
        prompt, events = start_reply(engine, turn, model, prompt, reply)
        yield _started(turn, prompt, reply)
        yield from events
        watch.mark("answer")
        finished = finish_turn(engine, turn, prompt, reply)
        watch.mark("record")
        run_inline_jobs(engine, turn, finished, watch)
    except BaseException as raised:
        error = record_failure(engine, turn, reply, raised)
        if error is not raised:
            raise error from raised
        raise
    finally:
        if finished is None or finished.reply_message_id is None:
            engine.budgets.add_caller_usage_now(request.caller, turn.session_id, reply.usages)
            if turn.lease is not None:
                engine.leases.release(turn.lease)
        count_turn(engine, turn, finished, reply, watch, error)
    yield finished


def prepare_prompt(engine: Engine, turn: Turn, model: LanguageModel, watch: Stopwatch) -> tuple[Turn, Prompt]:
    """Return the turn and its prompt with memory.  Compact the session first if its recent messages do not fit."""
    context = read_context(engine, turn, model)
    if context.dropped and turn.lease and (compacted := compact_by_force(engine, turn)):
        turn = compacted
        context = read_context(engine, compacted, model)
    watch.mark("recall")
    return turn, build_prompt(engine, turn, context)


def start_reply(
    engine: Engine, turn: Turn, model: LanguageModel, prompt: Prompt, reply: Reply
) -> tuple[Prompt, Iterator[ReplyEvent]]:
    """Wait for the model's first event; return the prompt that the model accepted, and all events of the reply.

    A model that fails before its first word raises here, before the turn has yielded anything.
    """
    events = read_reply(model, prompt, reply)
    try:
        first = next(events, None)
    except ModelError as refused:
        prompt = _acceptable_prompt(engine, turn, model, prompt, refused)
        events = read_reply(model, prompt, reply)
        first = next(events, None)
    return prompt, events if first is None else chain([first], events)


def finish_turn(engine: Engine, turn: Turn, prompt: Prompt, reply: Reply) -> TurnFinished:
    """Store the reply and give the lease back; return the turn's last event.  Raises Conflict if the lease was lost."""
    full_history_tokens = round((prompt.full_history_tokens + prompt.client_tool_tokens) * reply.token_rate)
    finished = TurnFinished(
        started=_started(turn, prompt, reply),
        reply=reply.text,
        reply_message_id=None,
        finish_reason=reply.end.reason,
        model=reply.end.model,
        usage=TurnUsage(reply.end.usage, full_history_tokens),
        calls=reply.tool_calls,
        failure=reply.failure,
    )
    if turn.lease is None or not (finished.reply.strip() or finished.calls):
        return finished
    chosen = prompt.context.prefix.chosen if prompt.context is not None else {}
    reply_id, problem = fail_open(turn.request, partial(store_reply, engine, turn, finished, chosen))
    if problem is not None:  # the client has received its answer
        return replace(finished, started=replace(finished.started, problem=problem))
    return replace(finished, reply_message_id=reply_id)


def fail_open(request: TurnRequest, step: Callable[[], Result]) -> tuple[Result | None, str | None]:
    """Run a step; return its result and None.  If a client's request fails open, return None and the error's code.

    Raises each error of the step for a person's message, and for a client each RecapError not in FAIL_OPEN_CODES.
    """
    try:
        return step(), None
    except Exception as error:  # a client's request fails open, whatever breaks
        code = error.code if isinstance(error, RecapError) else None
        if not request.is_client or code not in (None, *FAIL_OPEN_CODES):
            raise
        if code is not None:
            log.warning("a client's request goes on without memory", extra=logs.fields(code=code))
            return None, code
        log.error("a client's request goes on without memory", exc_info=error)
        return None, code_of(error, "memory_failed")


def run_inline_jobs(engine: Engine, turn: Turn, finished: TurnFinished, watch: Stopwatch) -> None:
    """Update the summary and the profile before the turn ends, if SUMMARY_MODE or PROFILE_MODE is `inline`."""
    if finished.reply_message_id is None:
        return
    assert turn.session is not None  # which has the reply
    has_profile = engine.settings.profile_mode.mode == "inline"
    if has_profile or engine.settings.summary_mode == "inline":
        engine.job_queue.run_now("summary", turn.session.id, WAIT_SECONDS)
        if has_profile:
            engine.job_queue.run_now("profile", turn.session.owner_id, WAIT_SECONDS)
        watch.mark("summary")


def _acceptable_prompt(engine: Engine, turn: Turn, model: LanguageModel, prompt: Prompt, error: ModelError) -> Prompt:
    """Return a shorter prompt after the model refused the first one.  Raises `error` if there is none.

    A prompt that was too long is built again for the window that the model now reports.  A prompt that a content filter
    refused is built again without its excerpts, which may be the cause.
    """
    is_too_long = error.code == CONTEXT_EXCEEDED and turn.lease is not None
    is_filtered = error.code == CONTENT_REFUSED and bool(prompt.shown.recalled.excerpts)
    if not (is_too_long or is_filtered):
        raise error
    try:
        context = read_context(engine, turn, model)
    except TooLarge:  # its text says that nothing was stored, but the message is stored
        raise error from None
    if is_filtered:
        context = context._replace(recalled=replace(context.recalled, excerpts=(), reason=FILTERED))
    shorter = build_prompt(engine, turn, context)
    if shorter.tokens >= prompt.tokens:
        raise error
    return shorter


def _started(turn: Turn, prompt: Prompt, reply: Reply) -> TurnStarted:
    """Return the event that begins a reply.  Its memory report has the calls of Recap's tools so far."""
    return TurnStarted(
        completion_id=reply.id,
        session_id=turn.session_id,
        user_message_id=(turn.new_messages[-1].id if turn.new_messages else 0) or None,
        model=reply.model,
        created_at=prompt.now,
        memory=prompt.shown if prompt.tools is None else prompt.tools.report(prompt.shown),
        saved_tokens=prompt.full_history_tokens - prompt.tokens,
        problem=prompt.problem,
    )
