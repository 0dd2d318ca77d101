"""One turn, from a person's message to the reply and the memory that the two leave.

    admit      one transaction: the session's lease, the stored message, what is remembered   (admission)
    recall     look back for earlier words that fit             (prompt)
    compose    the messages to send to the model                (prompt)
    answer     the main model, in pieces; in mode `tools` it looks back itself
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

from memory import tokens
from memory.clients.arrival import opening
from memory.clients.conversation import said
from memory.domain import CUT_OFF, INTERRUPTED, UNREMEMBERED, Usage
from memory.errors import Conflict, ModelError, RecapError
from memory.llm import (
    Chunk,
    Finish,
    Interrupted,
    LanguageModel,
    ModelRequest,
    Piece,
    ToolCall,
    estimate_prompt,
)
from memory.llm.passing import as_written, in_chunks, last_chunk
from memory.ops import logs
from memory.ops.database_errors import database_failed
from memory.sessions.messages import MessageDraft, store_reply
from memory.turn import turns
from memory.turn.admission import admit, passed_on
from memory.turn.parts import Parts
from memory.turn.prompt import Composed, compose, look_back, pass_on
from memory.turn.running import Course
from memory.turn.tools import Tools
from memory.turn.values import Admitted, RecallCall, TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models import retried

log = logging.getLogger(__name__)

FORGIVEN = ("session_busy", "turn_lost")  # errors that keep a client's turn out of memory, but not from an answer
ID_CHARS = 64  # of a completion's id that are kept


@dataclass(frozen=True)
class ChatPipeline:
    """Takes turns."""

    parts: Parts

    def turn(self, request: TurnRequest) -> Generator[TurnEvent, None, None]:
        """Take a turn: yields TurnStarted, the reply's pieces (for a client its chunks too), TurnFinished.

        Raises NotFound, InvalidRequest, TooLarge, Conflict and LimitReached before anything is stored.  After it raises
        ModelError, and Conflict when the turn was stopped before a word was said (`turn_stopped`): then the message is
        kept, and the same request takes the turn up again.
        """
        parts, problem = self.parts, None
        model = parts.model_server.models.choose(request.model)
        with Course(parts, request) as course:
            try:
                admitted = admit(parts, request)
            except Exception as error:  # noqa: BLE001 - a client's request fails open, whatever breaks
                problem = _fail_open(request, error)
                parts.budgets.check_caller(request.caller, request.session_id)  # a spent day is no failure of memory
                admitted = passed_on(parts, request, parts.now())
            if isinstance(admitted, TurnFinished):
                course.finished = admitted
                yield from turns.once_more(admitted, request)
                return
            course.admitted(admitted)
            tools = _tools(parts, admitted, model)
            prompt = _prompt(parts, admitted, model, tools, course)
            question = ModelRequest(
                prompt.messages,
                prompt.material,
                stream=request.stream,
                call=course.call,
                client=None if request.client is None else request.client.parameters,
                cache_key=None if admitted.passed_on else admitted.session_id,
            )
            answer = Answer(model, question, tools, course)
            if request.stream:
                course.first_text = perf_counter()
            started = _started(admitted, prompt, model, answer, problem)
            listening = True
            for event in chain([started], answer.pieces):
                if listening:
                    try:
                        yield event
                    except GeneratorExit:  # the listener left; the reply is for when they come back
                        listening = False
                        if request.unheard == "interrupt":
                            course.call.stop()
            course.ended["answer"] = perf_counter()
            finished = _record(parts, admitted, _finished(admitted, started, answer, course.said), course)
            course.ended["record"] = perf_counter()
            inline_profile = parts.settings.profile_mode.mode == "inline"
            if (inline_profile or parts.settings.summary_mode == "inline") and finished.reply_message_id is not None:
                assert admitted.lease is not None
                parts.outbox.run_now("summary", admitted.lease.row_id)
                if inline_profile:
                    parts.outbox.run_now("profile", admitted.past.owner_id)
                course.ended["summary"] = perf_counter()
            course.finished = finished
        if listening:
            yield finished


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


# -- recall, compose


def _tools(parts: Parts, admitted: Admitted, model: LanguageModel) -> Tools | None:
    """What the model looks back with in mode `tools`; None when Recap looks back for it."""
    request, settings = admitted.request, admitted.settings
    wanted = (request.recall or settings.recall) == "tools" and settings.recall_limit and settings.recall_tokens
    if request.client is not None or not model.can_call_tools or not wanted:
        return None
    return Tools(parts.recall, admitted.past, settings, request.timezone)


def _prompt(parts: Parts, admitted: Admitted, model: LanguageModel, tools: Tools | None, course: Course) -> Composed:
    if admitted.passed_on:
        return pass_on(parts, admitted)
    try:
        found = look_back(parts, admitted, model, itself=tools is not None)
        course.ended["recall"] = perf_counter()
        prompt = compose(parts, admitted, found)
    except Exception as error:  # noqa: BLE001 - as above
        prompt = pass_on(parts, admitted, _fail_open(admitted.request, error))
    course.ended["compose"] = perf_counter()
    return prompt


# -- answer


class Answer:
    """The model's answer: one call, or with `tools` several, and looks back in between.

    `pieces`, and a client's chunks, come as the model says them; after the last one `end` is complete.  An answer ends
    in words or in a ModelError, or, when its call is stopped, in what was said until then.  A model that fails before
    its first word raises when the answer is made; one that fails later leaves a person the words it said, and a client
    the error.

    `end` has the usage of all calls together; the turn's `course` gets that of each, and the words.  `rate` is how many
    tokens the model counts for one of our estimate.
    """

    end: Finish

    def __init__(self, model: LanguageModel, request: ModelRequest, tools: Tools | None, course: Course) -> None:
        self._model = model
        self._tools = tools
        self._course = course
        self.rate = 1.0
        self.calls: tuple[ToolCall, ...] = ()  # of a client's own tools
        self.looked_back: tuple[RecallCall, ...] = ()
        self.last: Chunk | None = None
        rounds = self._rounds(request)
        first = next(rounds, None)
        self.pieces = rounds if first is None else chain([first], rounds)

    def _rounds(self, request: ModelRequest) -> Iterator[Piece | Chunk]:
        course, tools = self._course, self._tools
        while True:
            if tools is not None:
                request = tools.offer(request)
            already, early = len(course.said), ""
            calls: tuple[ToolCall, ...] = ()
            try:
                calls = yield from self._round(request)
            except Interrupted:
                early = INTERRUPTED
            except ModelError as error:
                if request.client is not None or not course.said.strip():
                    raise
                log.warning("the model failed within a reply; what it said stays", extra=logs.fields(code=error.code))
                early = CUT_OFF
            if early:
                usage = Usage(estimate_prompt(request), tokens.estimate(course.said[already:]), estimated=True)
                self.end = Finish(early, self._model.name, usage)
            if not course.spent:
                self.rate = self.end.usage.prompt_tokens / max(1, estimate_prompt(request))
            course.spent.append(self.end.usage)
            if early == INTERRUPTED and request.client is None and not course.said.strip():
                raise Conflict("turn_stopped", "The reply was stopped before its first word, and none was stored.")
            if not calls or tools is None:
                break
            request = tools.look_back(request, course.said[already:].strip(), calls)
            self.looked_back = tools.reports
        self.calls = calls
        self.end = replace(self.end, usage=sum(course.spent, Usage(0, 0)))
        if early == INTERRUPTED and request.client is not None:  # a client is told of an end that it knows
            if request.stream and self.last is not None:
                yield Chunk(last_chunk(self.last.data, "stop"))
            else:
                end = replace(self.end, reason="stop")
                yield from in_chunks([course.said], end, request.client, stream=request.stream)

    def _round(self, request: ModelRequest) -> Generator[Piece | Chunk, None, tuple[ToolCall, ...]]:
        """One call of the model: yields what it says, and returns the tools it calls.  Raises Interrupted."""
        course, calls, words = self._course, list[ToolCall](), ""
        if request.call.stopped:
            raise Interrupted
        self._answer = self._model.answer(request)  # kept, so that nobody waits for what a server sends after the end
        for part in self._answer:
            if isinstance(part, Finish):
                self.end = part
                break
            if request.call.stopped:
                raise Interrupted
            if isinstance(part, Piece):
                # Models that are about to call tools often say a line end first.
                text = part.text if words or not request.tools else part.text.lstrip()
                if not text:
                    continue
                if not words and course.said and not course.said.endswith("\n"):
                    text = f"\n\n{text}"  # what was said before the tools were called is a paragraph of its own
                words += text
                course.said += text
                yield Piece(text)
            elif isinstance(part, Chunk):
                self.last = part
                yield part
            else:
                calls.append(part)
        return tuple(calls)


def _started(
    admitted: Admitted, prompt: Composed, model: LanguageModel, answer: Answer, problem: str | None
) -> TurnStarted:
    return TurnStarted(
        completion_id=f"chatcmpl-{secrets.token_hex(16)}",
        session_id=admitted.session_id,
        user_message_id=admitted.exchange[-1].id or None,
        model=model.name,
        created_at=prompt.material.now,
        memory=replace(prompt.report, calls=answer.looked_back),
        saved_tokens=admitted.full_history_tokens - prompt.tokens,
        problem=problem or prompt.problem,
    )


def _finished(admitted: Admitted, started: TurnStarted, answer: Answer, said: str) -> TurnFinished:
    end = answer.end
    usage = TurnUsage(end.usage, round(admitted.full_history_tokens * answer.rate))
    given = str(answer.last.data.get("id") or "") if answer.last is not None else ""
    report = replace(started.memory, calls=answer.looked_back)
    started = replace(started, completion_id=given[:ID_CHARS] or started.completion_id, memory=report)
    return TurnFinished(started, said, None, end.reason, end.model, usage, calls=answer.calls)


# -- record


def _record(parts: Parts, admitted: Admitted, finished: TurnFinished, course: Course) -> TurnFinished:
    """Store the reply and give the lease back.  Raises Conflict when the lease was lost."""
    worth_storing = finished.reply.strip() or finished.calls  # clients may get an answer without words
    if admitted.lease is None or not worth_storing:
        course.give_up()
        return finished
    try:
        reply_id = _store(parts, admitted, finished)
    except Exception as error:  # noqa: BLE001 - as above; the client has its answer already
        problem = _fail_open(admitted.request, error)
        course.give_up()
        return replace(finished, started=replace(finished.started, problem=problem))
    parts.leases.ended(admitted.lease)
    return replace(finished, reply_message_id=reply_id)


@retried
def _store(parts: Parts, admitted: Admitted, finished: TurnFinished) -> int:
    """The stored reply's id."""
    request, lease, now, begun = admitted.request, admitted.lease, parts.now(), None
    assert lease is not None and admitted.turn_id is not None
    extra = {"tool_calls": list(map(as_written, finished.calls))} if finished.calls else None
    draft = MessageDraft("assistant", finished.reply, extra=extra if request.remember else UNREMEMBERED)
    if request.client is not None and request.session_id is None:
        line = [one.said for one in request.client.conversation.messages]
        begun = opening(request.caller, [*line, said(draft)])
    with parts.database.write(request.patience) as tx:
        reply_id, session = store_reply(tx, lease, draft, now, begun)
        turns.finish(tx, admitted.turn_id, reply_id, finished, now)
        # An exchange that goes on with calls of tools is summarised when it is over.
        parts.sessions.follow_up(tx, session, summarise=not finished.calls, prompt=request.prompt)
        parts.budgets.spend(tx, session.owner_id, [finished.usage.spent])
        shown = finished.started.memory.facts
        if shown and admitted.began is None:
            parts.facts.count_use(tx, shown)
    return reply_id
