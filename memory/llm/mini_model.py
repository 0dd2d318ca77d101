"""Ask the mini model for JSON: one call, and another if the answer has to be repaired.

Invariants:
- The owner's budget is charged for each answer, whatever becomes of it [test_budgets].
- Where the operator's own server answers for both models, and may answer one request at a time, a person's turn does
  not wait for the summary of an earlier one [test_turns_go_first].

Models wrap JSON in fences, think aloud before it, chat around it, or break its grammar.  Reading is tolerant of that;
what an answer says is for its reader to judge, who raises InvalidAnswer.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from jsonschema import Draft202012Validator

from memory.access.budgets import Budgets
from memory.errors import CONTENT_REFUSED, AnswerRefused, ModelError
from memory.json_values import list_in
from memory.leases import Leases
from memory.llm import CancelToken, ChatMessage, ModelEvent, ModelRequest, StreamEnd, complete, text_of
from memory.llm.model_server import ModelServer
from memory.llm.thoughts import CLOSING_TAG, without_thoughts
from memory.ops.metrics import Metrics
from memory.prompts.prompts import Prompts
from memory.quoting import escape
from models.owners import Caller, Usage

log = logging.getLogger(__name__)

T = TypeVar("T")
A = TypeVar("A")  # what is asked about
Replaced = Literal["summary", "profile", "overview"]

TURN_WAIT_SECONDS, TURN_LOOK_SECONDS = 60.0, 0.5  # that a call waits for a turn to end; between two looks for one
BATCH_TOKENS = 6_000  # of messages in one call, so that a small model can read them
GIVEN_UP_MAX = 3  # calls in a row that turns end; the next one is finished
OBJECTS_MAX = 64  # that are read of one answer
REPAIR_CHARS, REPAIR_MARKS, REPAIR_DEPTH = 16_000, 2_000, 8
"""How much broken JSON is repaired, since that takes quadratic time. Marks are quotes, brackets and the like."""

_COMMENT = r"//[^\n]{0,400}\n|/\*[^*]{0,400}\*/|\#[^\n]{0,400}\n"
_OBJECT = re.compile(rf"""\{{(?=(?:\s|{_COMMENT})*+(?:\}}|["'“‘]?\w[\w -]{{0,40}}["'”’]?\s*[:=]))""")
_MARK = re.compile(r"[^\w\s]")
_PAIRS = {"{": "}", "[": "]", "(": ")"}
_CUT_OFF = (
    "The mini model's answer was cut off at the model's limit of tokens: raise the server's limit (num_predict or "
    "OLLAMA_CONTEXT_LENGTH for Ollama, -n or -c for llama.cpp), or choose another model with OPENAI_SUMMARY_MODEL."
)


class InvalidAnswer(ValueError):
    """Answer that can't be used. The message is a sentence for the model, which is asked to repair its answer."""

    def to_error(self, replacing: Replaced) -> AnswerRefused:
        """Return the error for people. replacing: what the answer was to replace, which stays."""
        problem = str(self)
        text = f"The {replacing} stays as it was: ask for it again, or choose another model with OPENAI_SUMMARY_MODEL. "
        text += f"The mini model's answer was refused, and so was its repair: {problem}"
        # The problems of a summary are of its form alone; others may quote what was said.
        return AnswerRefused(f"{replacing}_refused", text, quoted="" if replacing == "summary" else problem)


class CutOff(InvalidAnswer):
    """Answer that ended at the model's limit of tokens, so a repair would end there too. The message is for people."""

    def __init__(self) -> None:
        super().__init__(_CUT_OFF)

    def to_error(self, replacing: Replaced) -> AnswerRefused:
        return AnswerRefused(f"{replacing}_cut_off", f"{str(self)[:-1]}; until then the {replacing} stays as it was.")


@dataclass(frozen=True)
class ParsedAnswer(Generic[T]):
    """Value made of an answer, the name of the model that wrote it, and what each call took.

    cut_off: the answer ended at the model's limit of tokens, though it could be read.
    """

    value: T
    model: str
    spent: tuple[Usage, ...]
    cut_off: bool = False

    @property
    def usage(self) -> dict[str, int]:
        """Return the sum of the calls, as it is stored and shown."""
        total = sum(self.spent, Usage(0, 0))
        of_tokens = {"prompt_tokens": total.prompt_tokens, "completion_tokens": total.completion_tokens}
        return {**of_tokens, "calls": len(self.spent)}


class JsonObject(NamedTuple):
    """JSON object of an answer; `repaired` if its grammar was broken, so that parts of it may be missing."""

    value: dict[str, Any]
    repaired: bool


@dataclass(frozen=True)
class MiniModel:
    """Mini model in use, on behalf of owners. turns_first: its calls make way for turns that do not wait for them."""

    model_server: ModelServer
    budgets: Budgets
    metrics: Metrics
    leases: Leases
    prompts: Prompts
    turns_first: bool

    def ask(
        self,
        owner_id: int,
        request: ModelRequest,
        tenant: str | None,
        read: Callable[[str], T],
        spent: list[Usage] | None = None,
        *,
        replacing: Replaced | None = None,
    ) -> ParsedAnswer[T]:
        """Return the value that `read` makes of the answer.

        tenant: whose prompt `repair` asks for a better answer, once; without it the answer is not repaired.
        spent: gets what each call took, which the caller charges; without it the owner is charged at once.
        Raises ModelError when the model fails, and InvalidAnswer when its answer can't be used, even repaired; with
        `replacing`, what the answer was to replace, AnswerRefused.
        """
        usages: list[Usage] = []
        while True:
            text, end = self._answer(owner_id, request)
            usages.append(end.usage)
            if spent is None:
                self.spend(owner_id, end.usage)
            else:
                spent.append(end.usage)
                self.metrics.count_tokens("mini", end.usage)
            try:
                return ParsedAnswer(read(text), end.model, tuple(usages), cut_off=end.reason == "length")
            except InvalidAnswer as error:
                problem = CutOff() if end.reason == "length" and any(map(str.isalnum, text)) else error
            if tenant is None or len(usages) > 1 or isinstance(problem, CutOff):
                raise problem if replacing is None else problem.to_error(replacing)
            repair = self.prompts.get(Caller(tenant), "repair").render(problem=str(problem))
            again = ChatMessage("assistant", escape(text)), ChatMessage("user", repair)
            # Under a schema, small models may write the shortest JSON that it allows, or white space for ever.
            schema = request.schema if _has_words(text) else None
            request = replace(request, schema=schema, messages=(*request.messages, *again))

    def ask_about(
        self,
        owner_id: int,
        items: Sequence[A],
        request_for_items: Callable[[Sequence[A]], ModelRequest],
        tenant: str | None,
        read: Callable[[Sequence[A], str], T],
        *,
        replacing: Replaced | None = None,
    ) -> T | None:
        """Return the value that `read` makes of the answer about items, without those that a content filter refuses.

        None if all are refused.  Raises as `ask` does, and a refusal that no item explains: the request is refused
        without items too, or passes when it is sent again.
        """
        items = list(items)
        passing = -1  # of how many items at the beginning a request has passed
        while items:
            try:
                request = request_for_items(items)
                return self.ask(owner_id, request, tenant, partial(read, items), replacing=replacing).value
            except ModelError as error:
                if error.code != CONTENT_REFUSED:
                    raise
                refused = len(items) + 1
                while refused - passing > 1:  # the shortest beginning that is refused ends with a refused item
                    middle = (passing + refused) // 2
                    if self._is_refused(owner_id, request_for_items(items[:middle])):
                        refused = middle
                    else:
                        passing = middle
                if not 0 < refused <= len(items):
                    raise
                log.warning("the mini model goes on without an item: the server's content filter refuses it")
                del items[refused - 1]
                passing = refused - 1
        return None

    def _is_refused(self, owner_id: int, request: ModelRequest) -> bool:
        """Return whether the content filter of the server refuses a request. Raises ModelError for other failures."""
        try:
            self.ask(owner_id, request, None, bool)
        except ModelError as error:
            if error.code != CONTENT_REFUSED:
                raise
            return True
        return False

    def ask_builtin(self, request: ModelRequest, read: Callable[[str], T], replacing: Replaced) -> ParsedAnswer[T]:
        """Return the value that `read` makes of the built-in model's answer. Raises AnswerRefused."""
        text, end = complete(self.model_server.models.extractive, request)
        try:
            return ParsedAnswer(read(text), end.model, ())
        except InvalidAnswer as error:
            raise error.to_error(replacing) from None

    def _answer(self, owner_id: int, request: ModelRequest) -> tuple[str, StreamEnd]:
        """Return the whole text of an answer, and its end. Raises ModelError."""
        if self.turns_first and self.model_server.models.share_own_server:
            for _ in range(GIVEN_UP_MAX):
                until = time.monotonic() + TURN_WAIT_SECONDS
                while time.monotonic() < until and self.leases.has_turn(owner_id):
                    time.sleep(TURN_LOOK_SECONDS)
                events = list(self._until_turn(owner_id, request))
                if events and isinstance(events[-1], StreamEnd):
                    return text_of(events), events[-1]
        return complete(self.model_server.models.mini, request)

    def _until_turn(self, owner_id: int, request: ModelRequest) -> Iterator[ModelEvent]:
        """Yield the events of an answer, and give it up when its person begins a turn.

        The answer is streamed, because a server stops writing only when it notices that its reader has left.
        """
        request = replace(request, stream=True, cancel=CancelToken())
        looked_at = time.monotonic()
        for event in self.model_server.models.mini.answer(request):
            yield event
            if time.monotonic() >= looked_at + TURN_LOOK_SECONDS and not isinstance(event, StreamEnd):
                looked_at = time.monotonic()
                if self.leases.has_turn(owner_id):
                    log.info("a call of the mini model makes way for a turn")
                    return request.cancel.cancel()

    def spend(self, owner_id: int, usage: Usage) -> None:
        """Charge what a call took."""
        self.budgets.add_usage_now(owner_id, [usage])
        self.metrics.count_tokens("mini", usage)


def request_for(task: str, blocks: Iterable[str], schema: Mapping[str, Any]) -> ModelRequest:
    """Return a request for JSON of a schema. task: the instruction. blocks: what the model reads for it."""
    system = ChatMessage("system", f"{task}\n\n{instruction(schema)}")
    return ModelRequest((system, ChatMessage("user", "\n\n".join(filter(None, blocks)))), schema)


def first_object(answer: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first JSON object in an answer that follows the schema.  Raises InvalidAnswer."""
    problem = "It holds no complete JSON object."
    for entry in json_objects(answer):
        wrong = next(Draft202012Validator(schema).iter_errors(entry.value), None)
        if wrong is None:
            return entry.value
        problem = f"It does not have the shape that was asked for: {wrong.json_path} breaks `{wrong.validator}`."
    raise InvalidAnswer(problem)


def json_objects(answer: str) -> list[JsonObject]:
    """Read the outermost JSON objects of an answer, without those in thoughts; from the first broken one on repaired.

    A closing tag of a thought inside an object is part of the conversation. Outside of objects it ends a thought.
    """
    text = _out_of_string(without_thoughts(answer).strip())
    decoder = json.JSONDecoder(strict=False)
    objects: list[JsonObject] = []
    end = 0
    while len(objects) < OBJECTS_MAX and (start := _OBJECT.search(text, end)):
        if CLOSING_TAG.search(text, end, start.start()):
            objects.clear()
        if text.count("{", end, start.start()) > text.count("}", end, start.start()):  # it is a part of a broken one
            return objects + _repaired(text[text.index("{", end) :])
        try:
            value, end = decoder.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            return objects + _repaired(text[start.start() :])
        objects.append(JsonObject(value, repaired=False))
    return objects


def _has_words(answer: str) -> bool:
    """Return whether an answer says anything beside the names of fields."""

    def says(value: Any) -> bool:
        if isinstance(value, str):
            return bool(value.strip())
        return any(map(says, value.values() if isinstance(value, dict) else list_in(value)))

    objects = json_objects(answer)
    return any(says(entry.value) for entry in objects) if objects else any(map(str.isalnum, answer))


def _out_of_string(text: str) -> str:
    """Return the text in a JSON string, if that is the whole answer."""
    if text.startswith('"'):
        try:
            return str(json.loads(text, strict=False))
        except (ValueError, RecursionError):
            pass
    return text


def _repaired(text: str) -> list[JsonObject]:
    """Read JSON objects from broken JSON that `text` begins with."""
    import json_repair  # not at the top: most models write JSON that needs no repair

    try:
        repaired = json_repair.loads(_repairable(text), skip_json_loads=True)
    except (ValueError, RecursionError):
        return []
    values = [value for value in (repaired if isinstance(repaired, list) else [repaired]) if isinstance(value, dict)]
    thought = list(CLOSING_TAG.finditer(text))
    if thought and not (values and CLOSING_TAG.search(json.dumps(values[0], ensure_ascii=False))):
        return json_objects(text[thought[-1].end() :])  # what was repaired is a part of a thought
    return [JsonObject(value, repaired=True) for value in values[:OBJECTS_MAX]]


def _repairable(text: str) -> str:
    """Return the beginning of a text, as much as can be repaired in a fraction of a second."""
    text = text[:REPAIR_CHARS]
    open_brackets: list[str] = []
    for number, mark in enumerate(_MARK.finditer(text)):
        if number == REPAIR_MARKS or len(open_brackets) > REPAIR_DEPTH:
            return text[: mark.start()]
        if mark[0] in _PAIRS:
            open_brackets.append(_PAIRS[mark[0]])
        elif open_brackets and mark[0] == open_brackets[-1]:
            open_brackets.pop()
    return text


# -- schemas of answers, as strict servers take them

TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def instruction(schema: Any) -> str:
    """Return the instruction to answer in a schema's shape, for servers that take no schema."""
    return f"Answer with one JSON object and nothing else, of this shape: {json.dumps(_example(schema))}"


def _example(schema: Any) -> Any:
    """Return a small value of a schema's shape; of numbers within bounds, the middle one."""
    if schema["type"] == "object":
        return {name: _example(inner) for name, inner in schema["properties"].items()}
    if schema["type"] == "array":
        return [_example(schema["items"])]
    if schema["type"] == "integer":
        return (schema.get("minimum", 1) + schema.get("maximum", 1)) // 2
    return "|".join(schema.get("enum", ()))
