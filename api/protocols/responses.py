"""OpenAI's Responses: translate its request into a chat completion, and a turn's answer into a response.

Left out are reasoning items, which depend on the model, tools that run at OpenAI, and parameters without a counterpart
(see `ResponseRequest`).  A reference to a reply of Recap's goes on from its response.  What would change the answer's
meaning is refused: references to other items, `background`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile
from typing import Any

from flask import Response, request
from marshmallow import ValidationError, post_load, validates_schema

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.protocols import client_requests as chat
from api.protocols.client_requests import ERRORS, ChatBody, FirstCall, Object
from api.protocols.conversations import (
    CALLS,
    CONVERSATION,
    REASONING,
    conversation_in,
    find_conversation,
    message_item,
    messages_of,
)
from api.protocols.openai import STREAM, OpenRequest, openai_error
from memory.errors import InvalidRequest, NotFound, RecapError
from memory.json_values import dicts_in, object_in
from memory.llm import RawChunk, TextDelta, Thought, ToolCall, Waiting
from memory.transcripts.transcript import INSTRUCTING
from memory.turn import turns
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest, TurnStarted, TurnUsage
from models.turns import CUT_OFF, INTERRUPTED
from schemas import fields
from schemas.fields import PARTS_MAX
from schemas.shapes import Open

_REPLY_ID = "msg_resp_"  # begins the id of a reply, which goes on with that of its turn
_STREAMED = {  # of an item, by its type: the field with its text, the event of a piece, and that of the part around it
    "reasoning": ("summary", "reasoning_summary_text", "reasoning_summary_part"),
    "message": ("content", "output_text", "content_part"),
    "function_call": ("arguments", "function_call_arguments", None),
    "custom_tool_call": ("input", "custom_tool_call_input", None),
}
_LOGPROBS: dict[str, dict[str, Any]] = {"output_text": {"logprobs": []}}
CODEX = "codex"  # it sends store=false with each request, since it keeps its conversations itself
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
UNSET: dict[str, Any] = {  # fields that a response repeats of its request, and their defaults
    "conversation": None,
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

    previous: id of the response it continues. conversation: id of the one it is made in; listed: of the one that its
    items were read from. repeated: fields that the answer repeats. custom: names of tools that take a text instead of
    JSON.
    """

    previous: str | None = None
    conversation: str | None = None
    listed: str | None = None
    store: bool = True
    repeated: Mapping[str, Any] = field(default_factory=dict)
    custom: frozenset[str] = frozenset()


class _NamedConversation(fields.Raw):
    """Conversation in a request: its id, or an object with it."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **_: Any) -> dict[str, str]:
        id = value.get("id") if isinstance(value, Mapping) else value
        if not isinstance(id, str):
            raise ValidationError("Must be the id of a conversation, or an object with it.")
        return {"id": id}


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
    parallel_tool_calls = prompt_cache_key = temperature = top_p = chat.PASSED_ON
    include = max_tool_calls = prompt_cache_retention = service_tier = chat.IGNORED
    stream_options = top_logprobs = truncation = client_metadata = chat.IGNORED
    conversation = _NamedConversation(
        load_default=None, about="The id of the session, or an object with it: input is new."
    )
    background = fields.Boolean(allow_none=True, about="Refused.")

    @validates_schema
    def _stored(self, body: dict[str, Any], **_: Any) -> None:
        if body.get("background"):
            problem = "Recap does not keep this. Send the conversation as `input`, and wait for the answer."
            raise ValidationError(problem, "background")
        for name in ("previous_response_id", "conversation"):
            if body[name] is not None and body["store"] is False:
                problem = "Is not allowed with store=false, which uses no memory. Send the conversation as `input`."
                raise ValidationError(problem, name)
        if body["previous_response_id"] is not None and body["conversation"] is not None:
            raise ValidationError("Is not allowed with previous_response_id, which names one too.", "conversation")

    @post_load
    def _as_chat(self, body: dict[str, Any], **_: Any) -> ResponseBody:
        begin = [{"role": "system", "content": body["instructions"]}] if body["instructions"] else []
        for name in body.keys() - self.fields.keys():
            chat.leave_out(name)
        items, previous = _continued(body)
        tools = [found for number, tool in enumerate(body["tools"] or ()) for found in _tool(tool, f"tools.{number}")]
        tools, choice = _allowed(tools, body["tool_choice"])
        parameters = {
            "messages": begin + messages_of(items),
            "model": body["model"],
            "max_completion_tokens": body["max_output_tokens"],
            "response_format": _format((body["text"] or {}).get("format")),
            "reasoning_effort": (body["reasoning"] or {}).get("effort"),
            "tools": tools or None,
            "tool_choice": choice if tools else None,
            "parallel_tool_calls": body["parallel_tool_calls"] if tools else None,
            **{name: body[name] for name in ("prompt_cache_key", "temperature", "top_p", "user", "safety_identifier")},
        }
        return ResponseBody(
            {**chat.given(parameters), "stream": body["stream"]},
            body["metadata"],
            previous=previous,
            conversation=body["conversation"]["id"] if body["conversation"] is not None else None,
            listed=conversation_in(items),
            shows_thoughts=body["store"] is False or (body["reasoning"] or {}).get("summary") is not None,
            store=body["store"] is not False or request.headers.get("originator", "").startswith(CODEX),
            custom=frozenset(tool["name"] for tool in body["tools"] or () if tool.get("type") == "custom"),
            repeated={**UNSET, **chat.given({name: body[name] for name in UNSET})},
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
    before = objects[: places[-1]]
    reply, *after = items[places[-1] :]
    new = dropwhile(lambda item: isinstance(item, Mapping) and item.get("type") in CALLS, after)
    return [*(item for item in before if item.get("role") in INSTRUCTING), *new], reply["id"].removeprefix("msg_")


_TEXT_INPUT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def _tool(tool: Object, place: str) -> Iterator[dict[str, Any]]:
    kind = chat.type_of(tool, place)
    if kind == "custom":
        described = [chat.string(tool, "description", place)] if tool.get("description") else []
        form = tool.get("format")
        of_form = f"{place}.format"
        if form and chat.type_of(form, of_form) == "grammar":
            described.append(f"The input follows this grammar:\n{chat.string(form, 'definition', of_form)}")
        yield chat.function(tool, place, description="\n\n".join(described) or None, parameters=_TEXT_INPUT)
    elif kind == "function":
        yield chat.function(tool, place, **{name: tool.get(name) for name in ("description", "parameters", "strict")})
    else:
        chat.leave_out(place, kind)


def _allowed(tools: list[dict[str, Any]], choice: Any) -> tuple[list[dict[str, Any]], Any]:
    """Return the tools that the model may call, and the choice among them: those of `allowed_tools` alone."""
    if choice is None or isinstance(choice, str):
        return tools, choice
    kind = chat.kind_of(choice, "tool_choice", ("function", "custom", "allowed_tools"))
    if kind != "allowed_tools":
        return tools, chat.function(choice, "tool_choice")
    names = [tool.get("name") for tool in dicts_in(choice.get("tools"))]
    return [tool for tool in tools if tool["function"]["name"] in names], chat.string(choice, "mode", "tool_choice")


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
    """Encode a turn's answer as a response: thoughts, a message if there are words, then the calls of functions.

    shows_thoughts: asked for, or the client keeps all items itself.
    """

    named_events = True

    def __init__(
        self,
        started: TurnStarted,
        repeated: Mapping[str, Any],
        custom: Collection[str] = (),
        *,
        shows_thoughts: bool = False,
    ) -> None:
        self._id = chat.answer_id("resp", started)
        self._started = started
        self._repeated = repeated
        self._custom = custom
        self._shows_thoughts = shows_thoughts
        self._events = 0

    def encode(self, end: TurnFinished, before: Sequence[TurnEvent] = ()) -> Mapping[str, Any]:
        thoughts = chat.thoughts_in(before) if self._shows_thoughts else ""
        reason = _INCOMPLETE.get(end.finish_reason)
        details = {"incomplete_details": {"reason": reason}} if reason else {}
        status = "incomplete" if reason or end.finish_reason in (INTERRUPTED, CUT_OFF) else "completed"
        output = self._items(thoughts, end.reply, end.calls)
        usage = _usage(end.usage)
        return self._response(status, output=output, model=end.model, usage=usage, **details, **chat.written(end))

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        yield self._event("created", response=self._response("in_progress"))
        yield self._event("in_progress", response=self._response("in_progress"))
        thoughts: list[Thought] = []
        text = ""
        first = FirstCall()
        for part in turn:
            if isinstance(part, Thought) and self._shows_thoughts and not (part.withdraws or text or first.call):
                yield from self._piece(0, self._reasoning(""), part.text, begins=not thoughts)
                thoughts.append(part)
            elif isinstance(part, TextDelta) and first.call is None:  # words after a call stand in the last event alone
                yield from self._piece(1 if thoughts else 0, self._message(""), part.text, begins=not text)
                text += part.text
            elif isinstance(part, RawChunk):
                for call, piece in first.pieces(part):
                    index = bool(thoughts) + bool(text)
                    item = self._call(call)
                    is_json = item["type"] == "function_call"  # the text of others is known at the end
                    yield from self._piece(index, item, piece if is_json else "", begins=not piece)
            elif isinstance(part, Waiting):
                yield None
            elif isinstance(part, TurnFinished):
                untold = [call.id for call in first.others(part.calls)]
                for index, item in enumerate(self._items(chat.thoughts_in(thoughts), text, part.calls)):
                    yield from self._end(index, item, begins=item.get("call_id") in untold)
                response = self.encode(part, thoughts)
                yield self._event(response["status"], response=response)

    def error_event(self, error: RecapError) -> Mapping[str, Any]:
        detail = openai_error(error)[0]["error"]
        code = detail["code"] or detail["type"]
        return self._event("failed", response=self._response("failed", error={**detail, "code": code}))

    def _items(self, thoughts: str, text: str, calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
        output = [self._reasoning(thoughts)] if thoughts else []
        output += [self._message(text)] if text else []
        return [*output, *map(self._call, calls)]

    def _piece(self, index: int, item: Mapping[str, Any], piece: str, *, begins: bool) -> Iterator[Mapping[str, Any]]:
        """Yield a piece of an item's text, after the events that begin the item if it `begins`."""
        name, of_text, of_part = _STREAMED[item["type"]]
        if begins:
            begun = {**item, name: [] if of_part else ""} | ({"status": "in_progress"} if "status" in item else {})
            yield self._event("output_item.added", output_index=index, item=begun)
            if of_part:
                yield self._event(f"{of_part}.added", **_place(index, item), part={**item[name][0], "text": ""})
        if piece:
            yield self._event(f"{of_text}.delta", **_place(index, item), delta=piece, **_LOGPROBS.get(of_text, {}))

    def _end(self, index: int, item: Mapping[str, Any], *, begins: bool) -> Iterator[Mapping[str, Any]]:
        """Yield the last events of an item; its first ones too if it `begins`."""
        name, of_text, of_part = _STREAMED[item["type"]]
        if begins or item["type"] == "custom_tool_call":
            yield from self._piece(index, item, item[name], begins=begins)
        whole = {"text": item[name][0]["text"]} if of_part else {name: item[name]}
        whole |= {"name": item["name"]} if name == "arguments" else _LOGPROBS.get(of_text, {})
        yield self._event(f"{of_text}.done", **_place(index, item), **whole)
        if of_part:
            yield self._event(f"{of_part}.done", **_place(index, item), part=item[name][0])
        yield self._event("output_item.done", output_index=index, item=item)

    def _reasoning(self, text: str) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "id": f"{REASONING}{self._id}", "summary": summary}

    def _message(self, text: str) -> dict[str, Any]:
        return message_item("assistant", text, f"msg_{self._id}")

    def _call(self, call: ToolCall) -> dict[str, Any]:
        values = {"status": "completed", "call_id": call.id, "name": call.name}
        if call.name not in self._custom:
            return {"type": "function_call", "id": f"fc_{call.id}", **values, "arguments": call.arguments}
        given = object_in(call.arguments) or {}
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


def _place(index: int, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return where the text of an item in a stream stands."""
    part = {"reasoning": {"summary_index": 0}, "message": {"content_index": 0}}.get(item["type"], {})
    return {"output_index": index, "item_id": item["id"], **part}


def _usage(usage: TurnUsage) -> dict[str, Any]:
    spent = usage.spent
    return {
        "input_tokens": spent.prompt_tokens,
        "input_tokens_details": {"cached_tokens": spent.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": spent.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": spent.reasoning_tokens},
        "total_tokens": spent.total_tokens,
    }


# -- the session that a request goes on in


def _in_session(turn: TurnRequest, body: ResponseBody) -> TurnRequest:
    """Return the turn in the session that the request names, if it names one. Raises NotFound."""
    transcript = turn.transcript
    assert transcript is not None
    conversation = transcript.conversation
    goes_on = body.previous is not None or body.conversation is not None
    if not conversation.raw or (goes_on and not conversation.messages):
        text = "There is nothing in `input` to answer. Nothing was stored. Send words of the person's, or outputs."
        raise InvalidRequest("nothing_to_answer", text, param="input")
    if body.previous is not None:
        missing = NotFound(
            "previous_response_not_found",
            f"There is no response {body.previous!r} to go on from: it was never stored, or it was erased, or another "
            "one took its place. Nothing was stored. Send the conversation as `input` instead.",
            param="previous_response_id",
        )
        answer = find_answer(turn.caller, body.previous, missing)
        after = replace(transcript, previous_reply_id=answer.reply_message_id, is_complete=True)
        return replace(turn, session_id=answer.started.session_id, transcript=after)
    if body.conversation is not None:
        session = find_conversation(turn.caller, body.conversation, param="conversation")
        only_new = replace(transcript, is_complete=False)
        return replace(turn, session_id=session.id, transcript=only_new)
    if turn.session_id is not None:
        return turn
    listed = body.listed
    if listed is None and len(conversation.messages) == 1 and turn.caller.owner is not None:
        # Agents' SDKs have just appended the person's first message.
        listed = current_engine().sessions.find_unanswered(turn.caller, CONVERSATION, turn.message)
    if listed is not None:
        with suppress(NotFound):  # somebody else's: the messages tell which session it is
            return replace(turn, session_id=find_conversation(turn.caller, listed).id)
    return turn


def find_answer(whom: Caller, id: str, missing: NotFound | None = None) -> TurnFinished:
    """Return the turn of a response. Raises NotFound, also for one that has no reply yet."""
    try:
        return turns.get_answer(current_engine(), whom, *chat.turn_named(id))
    except NotFound:
        text = f"There is no response {id!r}: it was never stored, it was erased, or another one took its place."
        raise missing or NotFound("response_not_found", text, param="response_id") from None


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
    turn = _in_session(chat.turn_request(body.parameters, body.metadata), body)
    if not body.store:
        turn = replace(turn, transcript=turn.transcript and replace(turn.transcript, bypass=True))
    encoder = partial(ResponseEncoder, repeated=body.repeated, custom=body.custom, shows_thoughts=body.shows_thoughts)
    return chat.answer(turn, encoder)
