"""The main model's answer: one call, or in recall mode `tools` several, with looks back in between.

Guarantee: it ends in words or in a ModelError; or, interrupted, in what was said until then, which may be nothing.  At
most RECALL_TOOL_ROUNDS calls of the model are made, each within MODEL_TIMEOUT; the last is offered no tools, so that
it must answer.  What a look back brings is RECALL_TOKENS at most and never makes the prompt larger than
CONTEXT_TOKENS, by our estimate.  No transaction is open while a model works.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from config import Settings
from memory import tokens
from memory.domain import INTERRUPTED, Usage
from memory.llm import ChatMessage, Chunk, Finish, Interrupted, LanguageModel, ModelRequest, Piece, ToolCall
from memory.llm.tool_calls import estimate_prompt
from memory.turn.tools import RecallCall, Tools

CALLS_A_ROUND = 8  # that are run; a model that asks for more at once is not looking but guessing
ROOM_MIN = 100  # tokens below which a look back could bring nothing


class Answer:
    """Iterate for the answer's pieces as they come; after that its `text`, `end` and `calls` are complete.

    To a client's request its chunks come as well.  The tools are then the client's own: the model is called once, and
    `client_calls` are what it calls.

    A model that fails before its first word raises here, before anyone was told that it answers.  `end` has the usage
    of all rounds together, estimated if it was `interrupted`; `rate` is how many tokens the model counts for one of
    our estimate.
    """

    end: Finish
    rate = 1.0
    interrupted = False

    def __init__(self, settings: Settings, model: LanguageModel, request: ModelRequest, tools: Tools | None) -> None:
        self._settings = settings
        self._model = model
        self._tools = tools
        self._said: list[str] = []
        self.calls: tuple[RecallCall, ...] = ()
        self.client_calls: tuple[ToolCall, ...] = ()
        self.last: Chunk | None = None
        self._parts = self._rounds(request)
        self._first = next(self._parts, None)

    def __iter__(self) -> Iterator[Piece | Chunk]:
        return chain(() if self._first is None else (self._first,), self._parts)

    @property
    def text(self) -> str:
        return "".join(self._said)

    def _rounds(self, request: ModelRequest) -> Generator[Piece | Chunk, None, None]:
        spent: list[Usage] = []
        left = self._settings.recall_tool_rounds if self._tools is not None else 1
        while True:
            left -= 1
            request = self._offering(request, left)
            already = len(self.text)
            try:
                calls, before = yield from self._round(request)
            except Interrupted:
                self.interrupted = True
                spent.append(Usage(estimate_prompt(request), tokens.estimate(self.text[already:]), estimated=True))
                self.end = Finish(INTERRUPTED, self._model.name, spent[-1])
                break
            if not spent:
                self.rate = self.end.usage.prompt_tokens / max(1, estimate_prompt(request))
            spent.append(self.end.usage)
            if not calls or self._tools is None:
                self.client_calls = tuple(calls)
                break
            request = self._looked_back(request, before, calls[:CALLS_A_ROUND])
        if len(spent) > 1:
            self.end = replace(self.end, usage=sum(spent, Usage(0, 0)))

    def _offering(self, request: ModelRequest, left: int) -> ModelRequest:
        """The request with the tools, if another round may follow and there is room for what they bring."""
        if self._tools is None:
            return request
        if not left:
            return replace(request, tools=())
        offering = replace(request, tools=self._tools.specs)
        return offering if self._room(offering) >= ROOM_MIN else replace(request, tools=())

    def _round(self, request: ModelRequest) -> Generator[Piece | Chunk, None, tuple[Sequence[ToolCall], str]]:
        """One call of the model: yields what it says, and returns the tools it calls and what it said before.

        Raises Interrupted.
        """
        held, said, calls = "", list[str](), list[ToolCall]()
        if request.call.stopped:
            raise Interrupted
        self._answer = self._model.answer(request)  # kept, so that what comes after its end holds up nobody
        for part in self._answer:
            if isinstance(part, Finish):
                self.end = part
                break
            if request.call.stopped:
                raise Interrupted
            if isinstance(part, Piece):
                text = held + part.text
                if request.tools and not said and text.isspace():
                    held = text  # models that are about to call tools often say a line end first
                    continue
                if not said and self._said and not self._said[-1].endswith("\n"):
                    text = f"\n\n{text}"  # what was said before the tools were called is a paragraph of its own
                held = ""
                said.append(text)
                self._said.append(text)
                yield part if text == part.text else Piece(text)
            elif isinstance(part, Chunk):
                self.last = part
                yield part
            else:
                calls.append(part)
        return calls, "".join(said).strip()

    def _looked_back(self, request: ModelRequest, said: str, calls: Sequence[ToolCall]) -> ModelRequest:
        """The request that goes on from `calls`, with what they brought."""
        assert self._tools is not None
        request = replace(request, messages=(*request.messages, ChatMessage("assistant", said, tuple(calls))))
        for call in calls:
            room = self._room(request) - tokens.MESSAGE_OVERHEAD
            text, report = self._tools.run(call, min(self._settings.recall_tokens, room))
            request = replace(request, messages=(*request.messages, ChatMessage("tool", text, tool_call_id=call.id)))
            self.calls = (*self.calls, report)
        return request

    def _room(self, request: ModelRequest) -> int:
        return self._settings.context_tokens - estimate_prompt(request)
