"""Anthropic's Messages: translate its request into a chat completion, and a turn's answer into a message.

Left out are thinking, which depends on the model, and hints that have no counterpart (`cache_control`, `top_k`,
`service_tier` and others, see `MessagesRequest`).  What would change the answer's meaning is refused: documents,
files, tools that run at Anthropic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flask import Response
from marshmallow import Schema, ValidationError, fields, post_load

from api import errors
from api.client_requests import (
    ERRORS,
    ChatBody,
    Object,
    answer,
    answer_id,
    called,
    function,
    given,
    ignored,
    image,
    kind_of,
    parts,
    passed_on,
    string,
    turn_request,
)
from api.errors import Body
from api.openai import MESSAGES_MAX, STREAM, openai_error
from api.resource import ApiBlueprint
from memory.errors import RecapError
from memory.llm import TextDelta, ToolCall, Waiting
from memory.llm.passthrough import is_object
from memory.turn.request import TurnEvent, TurnFinished, TurnStarted
from models.keys import CHAT
from models.owners import Usage
from schemas.errors import AnthropicError
from schemas.fields import PARTS_MAX, Input, Items, describe, integer

_STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


class MessagesRequest(Input):
    """Request for a message.  `messages` are the whole conversation, a part of it, or only the newest message."""

    long = True

    messages = Items(fields.Dict(), MESSAGES_MAX, least=1, required=True)
    max_tokens = integer(1, required=True, metadata=describe("Passed on as `max_completion_tokens`."))
    model = fields.String(load_default=None, metadata=describe("Passed on. The built-in model answers to every name."))
    system = fields.Raw(load_default=None, metadata=describe("A string, or text blocks."))
    stream = STREAM
    tools = Items(fields.Dict(), PARTS_MAX, load_default=None, metadata=describe("Tools of the client's own."))
    tool_choice = fields.Dict(load_default=None)
    metadata = fields.Dict(
        load_default=None,
        metadata=describe("`user_id` names the person and `session_id` the session, unless headers do."),
    )
    stop_sequences = passed_on()
    temperature = passed_on()
    top_p = passed_on()
    top_k = ignored()
    thinking = ignored()
    cache_control = ignored()
    context_management = ignored()
    service_tier = ignored()

    @post_load
    def _as_chat(self, body: dict[str, Any], **_: Any) -> ChatBody:
        messages: list[dict[str, Any]] = []
        if body["system"] is not None:
            messages.append({"role": "system", "content": _words(body["system"], "system")})
        for number, message in enumerate(body["messages"]):
            messages += _messages(message, f"messages.{number}")
        metadata, choice = body["metadata"] or {}, body["tool_choice"] or {}
        parameters = {
            "messages": messages,
            "model": body["model"],
            "max_completion_tokens": body["max_tokens"],
            "stop": body["stop_sequences"],
            "temperature": body["temperature"],
            "top_p": body["top_p"],
            "tools": [_tool(tool, f"tools.{number}") for number, tool in enumerate(body["tools"] or ())] or None,
            "tool_choice": _choice(choice) if choice else None,
            "parallel_tool_calls": False if choice.get("disable_parallel_tool_use") else None,
            "user": metadata.get("user_id"),
        }
        return ChatBody({**given(parameters), "stream": body["stream"]}, metadata)


def _messages(message: Object, place: str) -> Iterator[dict[str, Any]]:
    """Yield a message as messages of a chat completion: each result of a tool is a message of its own."""
    role, content, place = message.get("role"), message.get("content"), f"{place}.content"
    if role == "assistant":
        yield _assistant(content, place)
    elif role == "system":
        yield {"role": "system", "content": _words(content, place)}
    elif role != "user":
        raise ValidationError("Must be user, assistant or system.", place.replace("content", "role"))
    elif isinstance(content, str):
        yield {"role": "user", "content": content}
    else:
        yield from _user(content, place)


def _user(content: Any, place: str) -> Iterator[dict[str, Any]]:
    """Yield results of tools, then the person's words and images; a result is text, so its images are among these."""
    shown = list[dict[str, Any]]()
    for here, kind, block in parts(content, place, ("text", "image", "tool_result")):
        if kind != "tool_result":
            shown.append(_part(here, kind, block))
            continue
        result = [_part(*part) for part in parts(block.get("content") or [], f"{here}.content", ("text", "image"))]
        text = "\n".join(part["text"] for part in result if part["type"] == "text")
        shown += (part for part in result if part["type"] != "text")
        error = "Error: " if block.get("is_error") else ""
        yield {"role": "tool", "tool_call_id": string(block, "tool_use_id", here), "content": error + text}
    if shown:
        yield {"role": "user", "content": shown}


def _assistant(content: Any, place: str) -> dict[str, Any]:
    texts, calls = [], []
    for here, kind, block in parts(content, place, ("text", "tool_use", "thinking", "redacted_thinking")):
        if kind == "text":
            texts.append(string(block, "text", here))
        elif kind == "tool_use":
            arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
            calls.append(called(string(block, "id", here), string(block, "name", here), arguments))
    message = {"role": "assistant", "content": "\n".join(texts) if texts or not calls else None}
    return {**message, "tool_calls": calls} if calls else message


def _part(place: str, kind: str, block: Object) -> dict[str, Any]:
    if kind == "text":
        return {"type": "text", "text": string(block, "text", place)}
    source, place = block.get("source"), f"{place}.source"
    if kind_of(source, place, ("base64", "url")) == "url":
        return image(string(block["source"], "url", place))
    media, encoded = (string(block["source"], name, place) for name in ("media_type", "data"))
    return image(f"data:{media};base64,{encoded}")


def _words(content: Any, place: str) -> str:
    return "\n\n".join(string(block, "text", here) for here, _, block in parts(content, place, ("text",)))


def _tool(tool: Object, place: str) -> dict[str, Any]:
    if tool.get("type") not in (None, "custom"):
        raise ValidationError("Runs at Anthropic. Only tools that the client itself runs can be called here.", place)
    return function(tool, place, description=tool.get("description"), parameters=tool.get("input_schema"))


def _choice(choice: Object) -> Any:
    kind = kind_of(choice, "tool_choice", ("auto", "any", "none", "tool"))
    if kind == "tool":
        return function(choice, "tool_choice")
    return "required" if kind == "any" else kind


# -- the answer


class AnthropicMessage(Schema):
    """Message of the assistant, or with `stream` the events that it is made of."""

    id = fields.String()
    type = fields.Constant("message")
    role = fields.Constant("assistant")
    model = fields.String()
    content = fields.List(fields.Dict())
    stop_reason = fields.String()
    stop_sequence = fields.String(allow_none=True)
    usage: fields.Field = fields.Dict()


class MessageEncoder:
    """Encode a turn's answer as a message."""

    named_events = True

    def __init__(self, started: TurnStarted) -> None:
        self._id = answer_id("msg", started)
        self._model = started.model

    def encode(self, events: Sequence[TurnEvent]) -> Mapping[str, Any]:
        end = events[-1]
        assert isinstance(end, TurnFinished)
        text = [{"type": "text", "text": end.reply}] if end.reply else []
        content = [*text, *({**_block(call), "input": _input(call)} for call in end.calls)]
        stopped = {"stop_reason": _STOP_REASONS.get(end.finish_reason, "end_turn"), "stop_sequence": None}
        return {**self._message(end.model, content), **stopped, "usage": _usage(end.usage.spent)}

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any]]:
        unknown = {"stop_reason": None, "stop_sequence": None, "usage": _usage(Usage(0, 0))}
        yield {"type": "message_start", "message": {**self._message(self._model, []), **unknown}}
        has_text = False
        for part in turn:
            if isinstance(part, TextDelta):
                if not has_text:
                    yield _event("content_block_start", 0, content_block={"type": "text", "text": ""})
                yield _event("content_block_delta", 0, delta={"type": "text_delta", "text": part.text})
                has_text = True
            elif isinstance(part, Waiting):
                yield {"type": "ping"}
            elif isinstance(part, TurnFinished):
                if has_text:
                    yield _event("content_block_stop", 0)
                for index, call in enumerate(part.calls, 1 if has_text else 0):
                    arguments = {"type": "input_json_delta", "partial_json": json.dumps(_input(call))}
                    yield _event("content_block_start", index, content_block={**_block(call), "input": {}})
                    yield _event("content_block_delta", index, delta=arguments)
                    yield _event("content_block_stop", index)
                message = self.encode([part])
                stopped = {name: message[name] for name in ("stop_reason", "stop_sequence")}
                yield {"type": "message_delta", "delta": stopped, "usage": message["usage"]}
                yield {"type": "message_stop"}

    def failed(self, error: RecapError) -> Mapping[str, Any]:
        return anthropic_error(error)[0]

    def _message(self, model: str, content: list[Any]) -> dict[str, Any]:
        return {"id": self._id, "type": "message", "role": "assistant", "model": model, "content": content}


def _event(kind: str, index: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, **more}


def _block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _input(call: ToolCall) -> Any:
    return json.loads(call.arguments) if is_object(call.arguments) else {}


def _usage(spent: Usage) -> dict[str, int]:
    """Count tokens as Anthropic does: `input_tokens` without those read from a cache."""
    return {
        "input_tokens": spent.prompt_tokens - spent.cached_tokens,
        "cache_read_input_tokens": spent.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": spent.completion_tokens,
    }


blueprint = ApiBlueprint("anthropic", "The Anthropic protocol, with memory.", prefix="/v1")


@blueprint.post(
    "/messages",
    body=MessagesRequest,
    returns=AnthropicMessage,
    scope=CHAT,
    turn=True,
    errors=ERRORS,
    error_schema=AnthropicError,
)
def create_message(body: ChatBody) -> Response:
    """Chat as with Anthropic, and be remembered

    The model server is asked for a chat completion; text, images, tools and their results are translated. The session
    and the person are named as for chat completions, or by `metadata.session_id` and `metadata.user_id`. The key may
    also be sent as x-api-key. Thinking and cache_control are left out. Documents, files and tools that run at Anthropic
    are refused.
    """
    return answer(turn_request(body.parameters, body.metadata), MessageEncoder)


@blueprint.after_request
def _name_request(response: Response) -> Response:
    """Anthropic's packages read the request's id from this header."""
    response.headers["request-id"] = errors.request_id()
    return response


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def anthropic_error(error: RecapError) -> tuple[Body, int]:
    """Return an error in Anthropic's shape, and its status."""
    body, status = openai_error(error)
    kind = _ANTHROPIC_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    detail = {"type": kind, "message": body["error"]["message"], "code": body["error"]["code"]}
    return {"type": "error", "error": detail, "request_id": errors.request_id()}, status


errors.RENDERERS["/v1/messages"] = anthropic_error
