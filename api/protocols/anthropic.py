"""Anthropic's Messages: translate its request into a chat completion, and a turn's answer into a message.

Whether the model thinks is up to the model server; what it thinks is shown where the request has `thinking`.  Left out
is what has no counterpart: `top_k`, `context_management`, tools that run at Anthropic, and whatever a later version of
its protocol has.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from flask import Response
from marshmallow import Schema, ValidationError, post_load

from api import errors
from api.blueprint import ApiBlueprint
from api.current_request import request_id
from api.errors import Body
from api.protocols import client_requests as chat
from api.protocols.client_requests import ERRORS, ChatBody, FirstCall, Object
from api.protocols.openai import MESSAGES_MAX, STREAM, OpenRequest, is_anthropic, openai_error
from memory.errors import NotFound, RecapError
from memory.json_values import object_in
from memory.llm import RawChunk, TextDelta, Thought, ToolCall, Waiting
from memory.turn.request import TurnEvent, TurnFinished, TurnStarted
from models.keys import CHAT
from models.owners import Usage
from schemas import fields
from schemas.errors import AnthropicError
from schemas.fields import PARTS_MAX

_BILLING = "x-anthropic-billing-header:"
_EFFORTS = {"max": "high", "xhigh": "high"}  # what every model knows that knows efforts
_THINKING = {"type": "thinking", "thinking": "", "signature": ""}  # nobody signs it, and it need not come back
_STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


class CountRequest(OpenRequest):
    """Request to count the tokens of a message's request."""

    messages = fields.Items(fields.Dict(), MESSAGES_MAX, least=1, required=True)
    model = fields.String(load_default=None, about="Passed on. The built-in model answers to every name.")
    system = fields.Raw(load_default=None, about="A string, or text blocks.")
    tools = fields.Items(fields.Dict(), PARTS_MAX, load_default=None, about="Tools of the client's own.")
    tool_choice = fields.Dict(load_default=None)

    @post_load
    def _as_chat(self, body: dict[str, Any], **_: Any) -> ChatBody:
        return ChatBody(_parameters(body))


class MessagesRequest(CountRequest):
    """Request for a message.  `messages` are the whole conversation, a part of it, or only the newest message.

    Fields that are not listed are left out.
    """

    max_tokens = fields.integer(1, required=True, about="Passed on as `max_completion_tokens`.")
    stream = STREAM
    metadata = fields.Dict(
        load_default=None,
        about="`user_id` names the person and `session_id` the session, unless headers do.",
    )
    output_config = fields.Dict(load_default=None, about="`format` and `effort` are passed on.")
    stop_sequences = temperature = top_p = chat.PASSED_ON
    thread = fields.Dict(
        load_default=None,
        about="Recap holds no threads: `create` is ignored, `continue` is answered with the error thread_not_found.",
    )
    thinking = fields.Dict(
        load_default=None, about="The answer has what the model thinks, unless its type is `disabled`."
    )
    top_k = cache_control = context_management = service_tier = chat.IGNORED

    @post_load
    def _as_chat(self, body: dict[str, Any], **_: Any) -> ChatBody:
        for name in body.keys() - self.fields.keys():
            chat.leave_out(name)
        if (body["thread"] or {}).get("type") == "continue":  # Anthropic's packages then send the whole conversation
            text = "This server holds no threads. Nothing was stored. Send the whole conversation in `messages`."
            raise NotFound("thread_not_found", text, param="thread")
        metadata, output = body["metadata"] or {}, body["output_config"] or {}
        person, session = _person_and_session(metadata.get("user_id"))
        effort = output.get("effort")
        parameters = {
            **_parameters(body),
            "max_completion_tokens": body["max_tokens"],
            "stop": body["stop_sequences"],
            "temperature": body["temperature"],
            "top_p": body["top_p"],
            "response_format": _format(output.get("format")),
            "reasoning_effort": _EFFORTS.get(effort, effort) if isinstance(effort, str) else None,
            "user": person,
        }
        thinks = (body["thinking"] or {"type": "disabled"}).get("type") != "disabled"
        names = {**metadata, "user_id": person}
        return ChatBody({**chat.given(parameters), "stream": body["stream"]}, names, session, thinks)


def _parameters(body: Object) -> dict[str, Any]:
    """Return the part of a request that its tokens are counted of, as parameters of a chat completion."""
    messages: list[dict[str, Any]] = []
    if body["system"] is not None:
        system = body["system"]
        if isinstance(system, list) and system and str(system[0]).find(_BILLING, 0, 60) >= 0:
            system = system[1:]  # Claude Code's line for Anthropic's accounts differs from one request to the next
        messages.append({"role": "system", "content": _words(system, "system")})
    for number, message in enumerate(body["messages"]):
        messages += _messages(message, f"messages.{number}")
    tools: list[dict[str, Any]] = []
    choice = body["tool_choice"] or {}
    for number, tool in enumerate(body["tools"] or ()):
        place = f"tools.{number}"
        if tool.get("type") in (None, "custom"):
            described = {"description": tool.get("description"), "parameters": tool.get("input_schema")}
            tools.append(chat.function(tool, place, **described))
        else:
            chat.leave_out(place, str(tool["type"]))
    chosen = _choice(choice) if choice else None
    parameters = {
        "messages": messages,
        "model": body["model"],
        "tools": tools or None,
        "tool_choice": chosen if tools else None,
        "parallel_tool_calls": False if choice.get("disable_parallel_tool_use") and tools else None,
    }
    return chat.given(parameters)


_CLAUDE_CODE = re.compile(r"user_(?P<device>[0-9a-f]*)_account_(?P<account>[\w-]*?)_session_(?P<session>[\w-]+)")


def _person_and_session(user_id: Any) -> tuple[Any, str]:
    """Return the person and the session that a `user_id` names.

    Claude Code writes three ids into it: the device, the account, which is empty without one, and the session.
    """
    if not isinstance(user_id, str):
        return user_id, ""
    if match := _CLAUDE_CODE.fullmatch(user_id):
        return match["account"] or match["device"], match["session"]
    ids = object_in(user_id) or {}
    person = ids.get("account_uuid") or ids.get("device_id")
    session = ids.get("session_id")
    return (person, session) if isinstance(session, str) and isinstance(person, str) else (user_id, "")


def _format(format: Any) -> Any:
    if not isinstance(format, Mapping) or format.get("type") != "json_schema":
        return None
    return chat.json_format({"name": "answer", "schema": format.get("schema"), "strict": True})


def _messages(message: Object, place: str) -> Iterator[dict[str, Any]]:
    """Yield a message as messages of a chat completion: each result of a tool is a message of its own."""
    role = message.get("role")
    content = message.get("content")
    place = f"{place}.content"
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
    shown: list[dict[str, Any]] = []
    has_results = False
    for here, kind, block in chat.parts(content, place, (*_SHOWN, "tool_result")):
        if kind != "tool_result":
            shown += _shown(here, kind, block)
            continue
        has_results = True
        inner = chat.parts(block.get("content") or [], f"{here}.content", _SHOWN)
        text, images = chat.result_of(part for found in inner for part in _shown(*found))
        shown += images
        error = "Error: " if block.get("is_error") else ""
        yield {"role": "tool", "tool_call_id": chat.string(block, "tool_use_id", here), "content": error + text}
    if shown or not has_results:
        yield {"role": "user", "content": shown or "[left out]"}


def _assistant(content: Any, place: str) -> dict[str, Any]:
    texts, calls = [], []
    for here, kind, block in chat.parts(content, place, ("text", "tool_use", "thinking", "redacted_thinking")):
        if kind == "text":
            texts.append(chat.string(block, "text", here))
        elif kind == "tool_use":
            arguments = json.dumps(block.get("input") or {}, ensure_ascii=False)
            calls.append(chat.called(chat.string(block, "id", here), chat.string(block, "name", here), arguments))
    message = {"role": "assistant", "content": "\n".join(texts) if texts or not calls else None}
    return {**message, "tool_calls": calls} if calls else message


_SHOWN = ("text", "image", "document", "search_result")


def _shown(place: str, kind: str, block: Object) -> Iterator[dict[str, Any]]:
    """Yield a block as parts of a chat completion's message."""
    if kind == "text":
        yield _text(chat.string(block, "text", place))
    elif kind == "search_result":
        named = "\n".join(str(block[name]) for name in ("title", "source") if block.get(name))
        yield _text(f"{named}\n{_words(block.get('content') or [], f'{place}.content')}")
    elif kind == "image":
        source = block.get("source")
        place = f"{place}.source"
        if chat.kind_of(source, place, ("base64", "url")) == "url":
            yield chat.image(chat.string(block["source"], "url", place))
        else:
            yield chat.image(_data(block["source"], place))
    else:
        yield from _document(block, f"{place}.source")


def _document(block: Object, place: str) -> Iterator[dict[str, Any]]:
    """Yield a document: its text, or a file, which the model server may read or refuse."""
    title = str(block.get("title") or "document")
    source = block.get("source")
    kind = chat.kind_of(source, place, ("text", "content", "base64", "url", "file"))
    assert isinstance(source, Mapping)
    if kind == "text":
        yield _text(f"{title}\n{chat.string(source, 'data', place)}")
    elif kind == "content":
        yield _text(title)
        for found in chat.parts(source.get("content") or [], f"{place}.content", ("text", "image")):
            yield from _shown(*found)
    elif kind == "url":
        chat.leave_out(place, kind)
        yield _text(f"{title}: {chat.string(source, 'url', place)}")
    elif kind == "file":
        yield {"type": "file", "file": {"file_id": chat.string(source, "file_id", place)}}
    else:
        yield {"type": "file", "file": {"filename": title, "file_data": _data(source, place)}}


def _data(source: Object, place: str) -> str:
    return f"data:{chat.string(source, 'media_type', place)};base64,{chat.string(source, 'data', place)}"


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _words(content: Any, place: str) -> str:
    return "\n\n".join(chat.string(block, "text", here) for here, _, block in chat.parts(content, place, ("text",)))


def _choice(choice: Object) -> Any:
    kind = chat.kind_of(choice, "tool_choice", ("auto", "any", "none", "tool"))
    if kind == "tool":
        return chat.function(choice, "tool_choice")
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
    memory: fields.Field = fields.Dict(
        about="With `X-Memory-Tools: on`: `written`, the facts that the model wrote.", sometimes=True
    )


class MessageEncoder:
    named_events = True

    def __init__(self, started: TurnStarted, *, shows_thoughts: bool) -> None:
        self._id = chat.answer_id("msg", started)
        self._model = started.model
        self._shows_thoughts = shows_thoughts

    def encode(self, end: TurnFinished, before: Sequence[TurnEvent] = ()) -> Mapping[str, Any]:
        thoughts = chat.thoughts_in(before) if self._shows_thoughts else ""
        text = [{**_THINKING, "thinking": thoughts}] if thoughts else []
        text += [{"type": "text", "text": end.reply}] if end.reply else []
        content = [*text, *({**_block(call), "input": object_in(call.arguments) or {}} for call in end.calls)]
        stopped = {"stop_reason": _STOP_REASONS.get(end.finish_reason, "end_turn"), "stop_sequence": None}
        return {**self._message(end.model, content), **stopped, "usage": _usage(end.usage.spent), **chat.written(end)}

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any]]:
        unknown = {"stop_reason": None, "stop_sequence": None, "usage": _usage(Usage(0, 0))}
        yield {"type": "message_start", "message": {**self._message(self._model, []), **unknown}}
        blocks, first = _Blocks(), FirstCall()
        for part in turn:
            if isinstance(part, TextDelta):
                yield from blocks.add({"type": "text", "text": ""}, {"type": "text_delta", "text": part.text})
            elif isinstance(part, Thought) and self._shows_thoughts and not part.withdraws:
                yield from blocks.add(_THINKING, {"type": "thinking_delta", "thinking": part.text})
            elif isinstance(part, RawChunk):
                for call, piece in first.pieces(part):
                    yield from blocks.add(*_call_block(call, piece))
            elif isinstance(part, Waiting):
                yield {"type": "ping"}
            elif isinstance(part, TurnFinished):
                for call in first.others(part.calls):
                    yield from blocks.add(*_call_block(call, json.dumps(object_in(call.arguments) or {})))
                yield from blocks.stop()
                message = self.encode(part)
                stopped = {name: message[name] for name in ("stop_reason", "stop_sequence")}
                yield {"type": "message_delta", "delta": stopped, "usage": message["usage"], **chat.written(part)}
                yield {"type": "message_stop"}

    def error_event(self, error: RecapError) -> Mapping[str, Any]:
        return anthropic_error(error)[0]

    def _message(self, model: str, content: list[Any]) -> dict[str, Any]:
        return {"id": self._id, "type": "message", "role": "assistant", "model": model, "content": content}


class _Blocks:
    """Content blocks of a stream, one after the other."""

    def __init__(self) -> None:
        self._index = -1
        self._open: Object | None = None

    def add(self, block: Object, delta: Object | None) -> Iterator[Mapping[str, Any]]:
        """Go on with `block`, which begins if it is not the last one already."""
        if block != self._open:
            yield from self.stop()
            self._index += 1
            self._open = block
            yield {"type": "content_block_start", "index": self._index, "content_block": block}
        if delta is not None:
            yield {"type": "content_block_delta", "index": self._index, "delta": delta}

    def stop(self) -> Iterator[Mapping[str, Any]]:
        if self._open is not None:
            yield {"type": "content_block_stop", "index": self._index}
            self._open = None


def _call_block(call: ToolCall, piece: str) -> tuple[Object, Object | None]:
    delta = {"type": "input_json_delta", "partial_json": piece} if piece else None
    return {**_block(call), "input": {}}, delta


def _block(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


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
    turn=True,
    errors=ERRORS,
    error_schema=AnthropicError,
)
def create_message(body: ChatBody) -> Response:
    """Chat as with Anthropic, and be remembered

    The model server is asked for a chat completion; text, images, tools and their results are translated. The session
    and the person are named as for chat completions, or by `metadata.session_id` and `metadata.user_id`. The key may
    also be sent as x-api-key. What has no counterpart in a chat completion is left out, and X-Memory-Left-Out names it.
    """
    turn = chat.turn_request(body.parameters, body.metadata, body.agent_session)
    return chat.answer(turn, partial(MessageEncoder, shows_thoughts=body.shows_thoughts))


class TokenCount(Schema):
    input_tokens = fields.Integer()


@blueprint.post(
    "/messages/count_tokens", body=CountRequest, returns=TokenCount, scope=CHAT, error_schema=AnthropicError
)
def count_tokens(body: ChatBody) -> dict[str, int]:
    """Estimate the tokens of a request

    The memory that a prompt shows beside the request is not counted. Nothing is stored.
    """
    return {"input_tokens": chat.estimate_tokens(body.parameters)}


@blueprint.after_request
def _name_request(response: Response) -> Response:
    """Anthropic's packages read the request's id from this header."""
    response.headers["request-id"] = request_id()
    return response


_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def anthropic_error(error: RecapError) -> tuple[Body, int]:
    """Return an error in Anthropic's shape, and its status."""
    body, status = openai_error(error)
    kind = _ANTHROPIC_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    code = body["error"]["code"]
    detail = {"type": kind, "message": body["error"]["message"], "code": code}
    if code:
        detail["details"] = {"error_code": code}
    return {"type": "error", "error": detail, "request_id": request_id()}, status


errors.RENDERERS["/v1/messages"] = anthropic_error
errors.RENDERERS["/v1/models"] = lambda error: anthropic_error(error) if is_anthropic() else openai_error(error)
