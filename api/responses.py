"""OpenAI's Responses: translate its request into a chat completion, and a turn's answer into a response.

Left out are reasoning items, which depend on the model, tools that run at OpenAI, and parameters without a counterpart
(see `ResponseRequest`).  A reference to a reply of Recap's goes on from its response.  What would change the answer's
meaning is refused: references to other items, `conversation`.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from typing import Any

from flask import Response
from marshmallow import ValidationError, post_load, validates_schema

from api import client_requests as chat
from api.blueprint import ApiBlueprint, current_engine
from api.client_requests import ERRORS, ChatBody, FirstCall, Object
from api.named_person import header
from api.openai import MESSAGES_MAX, STREAM, OpenRequest, openai_error
from memory.errors import NotFound, RecapError
from memory.llm import RawChunk, TextDelta, ToolCall, Waiting
from memory.llm.openai_form import is_object
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from memory.turn.turns import TurnHistory
from schemas import fields
from schemas.chat import Open
from schemas.fields import PARTS_MAX

_INSTRUCTING = ("system", "developer")
_ROLES = ("user", "assistant", *_INSTRUCTING)
_REPLY_ID = "msg_resp_"  # begins the id of a reply, which goes on with that of its turn
_WORDS = ("text", "input_text", "output_text")
_ARGUMENTS = {  # of a call: the field that has them, and its events
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}
CODEX = "codex"  # it sends store=false with each request, since it keeps its conversations itself
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_UNSET: dict[str, Any] = {  # fields that a response repeats of its request, and their defaults
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {},
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}


@dataclass(frozen=True)
class ResponseBody(ChatBody):
    """Request for a response.

    previous: id of the response it continues. repeated: fields that the answer repeats.
    custom: names of tools that take a text instead of JSON.
    """

    previous: str | None = None
    store: bool = True
    repeated: Mapping[str, Any] = field(default_factory=dict)
    custom: frozenset[str] = frozenset()


class ResponseRequest(OpenRequest):
    """Request for a response.

    `input` is a text, or items: the whole conversation, a part of it, or only what is new. Fields that are not listed
    are left out.
    """

    input = fields.Raw(required=True, about="A string, or items: messages, calls of functions, their outputs.")
    model = fields.String(load_default=None, about="Passed on. The built-in model answers to every name.")
    instructions = fields.String(load_default=None, about="Holds for this request alone.")
    previous_response_id = fields.Text(
        load_default=None,
        about="Go on from this response, in its session. What came after it is replaced.",
    )
    store = fields.Boolean(
        load_default=True, allow_none=True, about="False: nothing is stored, and the memory is not used."
    )
    stream = STREAM
    tools = fields.Items(
        fields.Dict(), PARTS_MAX, load_default=None, about="Tools of the types `function` and `custom`."
    )
    tool_choice = fields.Raw(load_default=None)
    text = fields.Dict(load_default=None, about="`format` is passed on as `response_format`.")
    reasoning = fields.Dict(load_default=None, about="`effort` is passed on.")
    max_output_tokens = fields.integer(1, load_default=None, about="Passed on as `max_completion_tokens`.")
    metadata = fields.Dict(load_default=None, about="Its `session_id` names the session, unless a header does.")
    user = fields.Raw(load_default=None, about="The person, unless another place names one.")
    safety_identifier = fields.Raw(load_default=None, about="The person, unless a header names one.")
    parallel_tool_calls = chat.passed_on()
    prompt_cache_key = chat.passed_on()
    temperature = chat.passed_on()
    top_p = chat.passed_on()
    include = chat.ignored()
    max_tool_calls = chat.ignored()
    prompt_cache_retention = chat.ignored()
    service_tier = chat.ignored()
    stream_options = chat.ignored()
    top_logprobs = chat.ignored()
    truncation = chat.ignored()
    client_metadata = chat.ignored()
    conversation = chat.refused()
    background = chat.refused()

    @validates_schema
    def _stored(self, body: dict[str, Any], **_: Any) -> None:
        if body["previous_response_id"] is not None and body["store"] is False:
            problem = "Is not allowed with store=false, which uses no memory. Send the whole conversation as `input`."
            raise ValidationError(problem, "previous_response_id")

    @post_load
    def _as_chat(self, body: dict[str, Any], **_: Any) -> ResponseBody:
        begin = [{"role": "system", "content": body["instructions"]}] if body["instructions"] else []
        for name in body.keys() - self.fields.keys():
            chat.leave_out(name)
        items, previous = _continued(body)
        tools = [found for number, tool in enumerate(body["tools"] or ()) for found in _tool(tool, f"tools.{number}")]
        parameters = {
            "messages": begin + _messages(items),
            "model": body["model"],
            "max_completion_tokens": body["max_output_tokens"],
            "response_format": _format((body["text"] or {}).get("format")),
            "reasoning_effort": (body["reasoning"] or {}).get("effort"),
            "tools": tools or None,
            "tool_choice": _choice(body["tool_choice"]) if tools else None,
            "parallel_tool_calls": body["parallel_tool_calls"] if tools else None,
            **{name: body[name] for name in ("prompt_cache_key", "temperature", "top_p", "user", "safety_identifier")},
        }
        return ResponseBody(
            {**chat.given(parameters), "stream": body["stream"]},
            body["metadata"],
            previous=previous,
            store=body["store"] is not False or header("originator").startswith(CODEX),
            custom=frozenset(tool["name"] for tool in body["tools"] or () if tool.get("type") == "custom"),
            repeated={**_UNSET, **chat.given({name: body[name] for name in _UNSET})},
        )


def _continued(body: Mapping[str, Any]) -> tuple[Any, str | None]:
    """Return the input, and the id of the response that it continues.

    A program that refers to replies, as the AI SDK does, means the last one with all before it. Instructions are no
    part of that, and calls after the reference are the reply's own.
    """
    items, previous = body["input"], body["previous_response_id"]
    if previous is not None or body["store"] is False or not isinstance(items, list):
        return items, previous
    objects = [item if isinstance(item, Mapping) else {} for item in items]
    places = [
        place
        for place, item in enumerate(objects)
        if item.get("type") == "item_reference" and str(item.get("id")).startswith(_REPLY_ID)
    ]
    if not places:
        return items, None
    before, (reply, *after) = objects[: places[-1]], items[places[-1] :]
    new = dropwhile(lambda item: isinstance(item, Mapping) and item.get("type") in _ARGUMENTS, after)
    return [*(item for item in before if item.get("role") in _INSTRUCTING), *new], reply["id"].removeprefix("msg_")


def _messages(items: Any) -> list[dict[str, Any]]:
    """Return the input as messages. Calls of functions belong to the assistant's message that they follow."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    if not isinstance(items, list) or len(items) > MESSAGES_MAX:
        raise ValidationError(f"Must be a string, or a list of at most {MESSAGES_MAX:,} items.", "input")
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        place = f"input.{number}"
        if isinstance(item, Mapping) and "type" not in item:
            item = {**item, "type": "message"}
        kind = chat.type_of(item, place)
        if kind == "message":
            messages.append(_message(item, place))
        elif kind in ("function_call", "custom_tool_call"):
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            id, name = (chat.string(item, field_name, place) for field_name in ("call_id", "name"))
            call = chat.called(id, name, _arguments(item, place))
            messages[-1].setdefault("tool_calls", []).append(call)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            output = _words(item.get("output"), f"{place}.output")
            messages.append({"role": "tool", "tool_call_id": chat.string(item, "call_id", place), "content": output})
        else:
            _left_out(kind, place)
    return messages


def _left_out(kind: str, place: str) -> None:
    if kind == "item_reference":
        raise ValidationError("Recap keeps no items to refer to. Send the item itself.", place)
    if kind != "reasoning":
        chat.leave_out(place, kind)


def _arguments(call: Object, place: str) -> str:
    if call["type"] == "custom_tool_call":
        return json.dumps({"input": chat.string(call, "input", place)}, ensure_ascii=False)
    return chat.string(call, "arguments", place)


def _message(item: Object, place: str) -> dict[str, Any]:
    role, content, place = item.get("role"), item.get("content"), f"{place}.content"
    if role not in _ROLES:
        raise ValidationError(f"Must be one of {', '.join(_ROLES)}.", place.replace("content", "role"))
    if isinstance(content, str):
        return {"role": role, "content": content}
    if role == "assistant":
        return {"role": role, "content": _words(content, place)}
    known = [_part(*part) for part in chat.parts(content, place, (*_WORDS, "input_image", "input_file"))]
    return {"role": role, "content": known or "[left out]"}


def _part(place: str, kind: str, part: Object) -> dict[str, Any]:
    if kind in _WORDS:
        return {"type": "text", "text": chat.string(part, "text", place)}
    if kind == "input_file" and part.get("file_url"):  # a chat completion takes no address
        chat.leave_out(f"{place}.file_url")
        return {"type": "text", "text": f"{part.get('filename') or 'document'}: {chat.string(part, 'file_url', place)}"}
    if kind == "input_file":
        return {
            "type": "file",
            "file": chat.given({name: part.get(name) for name in ("filename", "file_data", "file_id")}),
        }
    return chat.image(chat.string(part, "image_url", place), **chat.given({"detail": part.get("detail")}))


def _words(content: Any, place: str) -> str:
    texts = chat.parts(content, place, (*_WORDS, "refusal"))
    return "\n".join(chat.string(part, "refusal" if kind == "refusal" else "text", here) for here, kind, part in texts)


_TEXT_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def _tool(tool: Object, place: str) -> Iterator[dict[str, Any]]:
    kind = chat.type_of(tool, place)
    if kind == "custom":
        form = tool.get("format") or {}
        grammar = f"The input follows this grammar:\n{form['definition']}" if form.get("definition") else None
        described = "\n\n".join(filter(None, (tool.get("description"), grammar)))
        yield chat.function(tool, place, description=described or None, parameters=_TEXT_INPUT)
    elif kind == "function":
        yield chat.function(tool, place, **{name: tool.get(name) for name in ("description", "parameters", "strict")})
    else:
        chat.leave_out(place, kind)


def _choice(choice: Any) -> Any:
    if choice is None or isinstance(choice, str):
        return choice
    chat.kind_of(choice, "tool_choice", ("function", "custom"))
    return chat.function(choice, "tool_choice")


def _format(format: Any) -> Any:
    if format is None:
        return None
    kind = chat.kind_of(format, "text.format", ("text", "json_object", "json_schema"))
    if kind != "json_schema":
        return {"type": kind} if kind == "json_object" else None
    return chat.json_format(format)


# -- the answer


class ResponseObject(Open):
    """Response, or with `stream` its events. It repeats fields of the request."""

    id = fields.String()
    object = fields.Constant("response")
    created_at = fields.Integer()
    status = fields.String(about="`completed`, or `incomplete`: then `incomplete_details` says why.")
    model = fields.String()
    output = fields.List(fields.Dict())
    usage: fields.Field = fields.Dict()


class ResponseEncoder:
    """Encode a turn's answer as a response: a message if there are words, then the calls of functions."""

    named_events = True

    def __init__(self, started: TurnStarted, repeated: Mapping[str, Any], custom: Collection[str] = ()) -> None:
        self._id = chat.answer_id("resp", started)
        self._started = started
        self._repeated = repeated
        self._custom = custom
        self._events = 0

    def encode(self, end: TurnFinished, before: Sequence[TurnEvent] = ()) -> Mapping[str, Any]:
        output = [self._message(end.reply)] if end.reply else []
        output += map(self._call, end.calls)
        reason = _INCOMPLETE.get(end.finish_reason)
        details = {"incomplete_details": {"reason": reason}} if reason else {}
        status = "incomplete" if reason else "completed"
        usage, more = _usage(end.usage), {**details, **chat.written(end)}
        return self._response(status, output=output, model=end.model, usage=usage, **more)

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        yield self._event("created", response=self._response("in_progress"))
        yield self._event("in_progress", response=self._response("in_progress"))
        text, first = "", FirstCall()
        place = {"output_index": 0, "content_index": 0, "item_id": self._message("")["id"]}
        for part in turn:
            if isinstance(part, TextDelta) and first.call is None:  # words after a call stand in the last event alone
                if not text:
                    item = {**self._message(""), "content": [], "status": "in_progress"}
                    yield self._event("output_item.added", output_index=0, item=item)
                    yield self._event("content_part.added", **place, part=_text(""))
                text += part.text
                yield self._event("output_text.delta", **place, delta=part.text, logprobs=[])
            elif isinstance(part, RawChunk):
                yield from self._pieces(part, first, 1 if text else 0)
            elif isinstance(part, Waiting):
                yield None
            elif isinstance(part, TurnFinished):
                if text:
                    yield self._event("output_text.done", **place, text=text, logprobs=[])
                    yield self._event("content_part.done", **place, part=_text(text))
                    yield self._event("output_item.done", output_index=0, item=self._message(text))
                untold = first.others(part.calls)
                for index, call in enumerate(part.calls, 1 if text else 0):
                    yield from self._calls(index, call, is_told=call not in untold)
                response = self.encode(part)
                yield self._event(response["status"], response=response)

    def failed(self, error: RecapError) -> Mapping[str, Any]:
        detail = openai_error(error)[0]["error"]
        code = detail["code"] or detail["type"]
        return self._event("failed", response=self._response("failed", error={**detail, "code": code}))

    def _pieces(self, chunk: RawChunk, first: FirstCall, index: int) -> Iterator[Mapping[str, Any]]:
        for piece in first.pieces(chunk):
            assert first.call is not None
            if not piece or first.call.name not in self._custom:
                yield from self._piece(index, first.call, piece)

    def _piece(self, index: int, call: ToolCall, piece: str) -> Iterator[Mapping[str, Any]]:
        """Yield a piece of a call's arguments; an empty one begins the call."""
        item = self._call(call)
        name, kind = _ARGUMENTS[item["type"]]
        if not piece:
            empty = {**item, name: "", "status": "in_progress"}
            yield self._event("output_item.added", output_index=index, item=empty)
        else:
            yield self._event(f"{kind}.delta", output_index=index, item_id=item["id"], delta=piece)

    def _calls(self, index: int, call: ToolCall, *, is_told: bool) -> Iterator[Mapping[str, Any]]:
        """Yield what is left to tell of a call: all of it, unless its pieces are told."""
        item = self._call(call)
        name, kind = _ARGUMENTS[item["type"]]
        if not is_told:
            yield from self._piece(index, call, "")
        if not is_told or item["type"] == "custom_tool_call":
            yield from self._piece(index, call, item[name])
        whole = {name: item[name], **({"name": call.name} if name == "arguments" else {})}
        yield self._event(f"{kind}.done", output_index=index, item_id=item["id"], **whole)
        yield self._event("output_item.done", output_index=index, item=item)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        values = {"status": "completed", "call_id": call.id, "name": call.name}
        if call.name not in self._custom:
            return {"type": "function_call", "id": f"fc_{call.id}", **values, "arguments": call.arguments}
        given = json.loads(call.arguments) if is_object(call.arguments) else {}
        return {"type": "custom_tool_call", "id": f"ctc_{call.id}", **values, "input": str(given.get("input", ""))}

    def _event(self, kind: str, **more: Any) -> dict[str, Any]:
        self._events += 1
        return {"type": f"response.{kind}", "sequence_number": self._events - 1, **more}

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": int(self._started.created_at.timestamp()),
            "status": status,
            "model": self._started.model,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "usage": None,
            **self._repeated,
            **more,
        }

    def _message(self, text: str) -> dict[str, Any]:
        return {
            "type": "message",
            "id": f"msg_{self._id}",
            "status": "completed",
            "role": "assistant",
            "content": [_text(text)],
        }


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: TurnUsage) -> dict[str, Any]:
    spent = usage.spent
    return {
        "input_tokens": spent.prompt_tokens,
        "input_tokens_details": {"cached_tokens": spent.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": spent.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent.total_tokens,
    }


blueprint = ApiBlueprint("responses", "OpenAI's Responses, with memory.", prefix="/v1")


@blueprint.post(
    "/responses",
    body=ResponseRequest,
    returns=ResponseObject,
    turn=True,
    errors={**ERRORS, 404: f"{ERRORS[404]} Or: there is no such previous response, or it was replaced."},
)
def create_response(body: ResponseBody) -> Response:
    """Ask for a response as from OpenAI, and be remembered

    The model server is asked for a chat completion; text, images, functions and their outputs are translated. With
    `previous_response_id` the input goes on from that response, in its session, and takes the place of what came after
    it; a reference to a reply is read so, too. Otherwise the session is found as for chat completions, and so is the
    person. With store=false nothing is stored and no memory used, unless Codex sends it. References to other items are
    refused. What else has no counterpart is left out, and X-Memory-Left-Out names it.
    """
    turn = chat.turn_request(body.parameters, body.metadata)
    if body.previous is not None:
        turn = _following(body.previous, turn)
    if not body.store:
        turn = replace(turn, transcript=turn.transcript and replace(turn.transcript, temporary=True))
    return chat.answer(turn, lambda started: ResponseEncoder(started, body.repeated, body.custom))


def _following(previous: str, turn: TurnRequest) -> TurnRequest:
    """Return the request, continued from a response. Raises NotFound, also for somebody else's response."""
    try:
        session_id, message_id = chat.turn_named(previous)
        reply_id = TurnHistory(current_engine()).get(turn.caller, session_id, message_id).message_id
    except NotFound:
        reply_id = None
    if reply_id is None:
        raise NotFound(
            "previous_response_not_found",
            f"There is no response {previous!r} to go on from: it was never stored, or it was erased, or another one "
            "took its place. Nothing was stored. Send the conversation as `input` instead.",
            param="previous_response_id",
        )
    transcript = turn.transcript and replace(turn.transcript, previous_reply_id=reply_id, is_complete=True)
    return replace(turn, session_id=session_id, transcript=transcript)
