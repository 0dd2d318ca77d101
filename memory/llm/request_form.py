"""Body of a request for a chat completion, in the form that one model's server takes.

Servers differ in what they refuse: parameters, roles, fields of messages, kinds of JSON mode.  A `RequestForm` is what
one model has taught: it writes the body, and makes of a refusal the next form to try.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from memory.errors import ModelError, Upstream
from memory.json_values import dict_in, dicts_in
from memory.llm import ChatMessage, ModelRequest, Tool
from memory.llm.openai_form import sent_call

CACHE_KEY_CHARS = 64  # servers refuse longer ones
_NAMING = (
    *("metadata", "user", "safety_identifier", "prompt_cache_key", "store"),
    *("call", "phoneNumber", "customer", "elevenlabs_extra_body"),  # of voice agents
)
"""Parameters that only name or file a request: left out where a server refuses them, a client's own as well."""
_OPTIONAL = ("stream_options", "reasoning_effort", *_NAMING)  # agents ask every model for an effort
_LIMITS = ("max_completion_tokens", "max_tokens")  # two names of one parameter: servers take one or both
_TOOLS = re.compile(r"\btools?\b|tool[ _](?:choice|use|calling)|function.calling", re.I)
_JSON = re.compile(
    r"response.?format|schema|json.?(?:object|mode|validate)|too many states|grammar|structured output"
    r"|requested parameters",  # OpenRouter's, of all of them
    re.I,
)
_ROLES = re.compile(
    r"\b(?:roles? must|should) alternate|must start with a user|unexpected role|developer"
    r"|system message must be at the beginning|system (?:role|message)s? (?:is |are )?not supported"
    r"|(?:invalid|unexpected|unsupported) (?:message role|system message|user message)|\broles are supported",
    re.I,
)
_NO_SYSTEM = re.compile(
    r"system (?:role|message)s? (?:is |are )?not supported|developer instruction is not enabled", re.I
)
_IN_MESSAGES = re.compile(r"messages?[.\"'\], \d\[]|extra inputs are not permitted|extra_forbidden", re.I)
_STREAM = re.compile(r"\bstream(?:ing)?\b", re.I)  # of models that only stream, and of organizations that may not
_WANTS_THOUGHTS = re.compile(r"reasoning_content\W.{0,80}(?:missing|must be passed back)", re.I)
_ESSENTIAL = ("role", "content", "tool_calls", "tool_call_id")
_REFUSING = (400, 404, 413, 415, 422, 501)  # servers built on pydantic say 422, routers 404
_TEMPLATE_FAILED = re.compile(rf"grammar|jinja|{_ROLES.pattern}", re.I)  # llama.cpp answers so with status 500
BEGINNING = "(The conversation begins.)"
"""The person's message before an assistant's first one, where a server wants one."""

JsonMode = Literal["schema", "object", "text"]
_NEXT_MODE: Mapping[JsonMode, JsonMode] = {"schema": "object", "object": "text"}


@dataclass(frozen=True)
class RequestForm:
    """Form in which requests of one model are written.

    without: parameters that are left out. limit_name: the one of _LIMITS that is sent in place of the other.
    json_mode: how JSON is asked for; `text`: in the prompt alone. roles: `strict`, one system message at the beginning,
    and user and assistant in turns; `no system`, the user's first message begins with it. plain_messages: messages have
    the fields that every server knows, and text. thoughts: messages with calls have thoughts, if only empty ones.
    calls_as_text: calls of tools and their results are text of the assistant and of the user.
    streams: whether answers are asked for in pieces; None: as the request has it. implicit_thoughts: streams begin with
    a thought that no tag opens. window: tokens that the model can read in one prompt, None while nothing is known.
    """

    without: frozenset[str] = frozenset()
    limit_name: str | None = None
    tools: bool = True
    json_mode: JsonMode = "schema"
    roles: Literal["any", "strict", "no system"] = "any"
    plain_messages: bool = False
    thoughts: bool = False
    calls_as_text: bool = False
    streams: bool | None = None
    implicit_thoughts: bool = False
    window: int | None = None

    def body(self, model: str, request: ModelRequest, *, cache_key: bool) -> dict[str, Any]:
        """Return the body: a client's own parameters, and ours where the client names none."""
        ours: dict[str, Any] = {"model": model}
        if request.tools and self.tools:
            ours["tools"] = list(map(_tool, request.tools))
        if request.cache_key is not None and cache_key:
            ours["prompt_cache_key"] = request.cache_key[:CACHE_KEY_CHARS]
        if request.schema is not None and self.json_mode == "schema":
            schema = {"name": "memory_update", "strict": True, "schema": request.schema}
            ours["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema is not None and self.json_mode == "object":
            ours["response_format"] = {"type": "json_object"}
        client = request.client or {}
        body = {**ours, **client}
        if "tools" in ours and isinstance(client.get("tools"), list):
            body["tools"] = [*client["tools"], *ours["tools"]]
        stream = request.stream if self.streams is None else self.streams
        options = client.get("stream_options", {})
        if stream and isinstance(options, dict):
            body["stream_options"] = {**options, "include_usage": True}
        if self.limit_name is not None:
            for name in _LIMITS:
                if name != self.limit_name and name in body:
                    body.setdefault(self.limit_name, body.pop(name))
        body = {name: value for name, value in body.items() if name not in self.without}
        return body | {"messages": self._messages(request.messages), "stream": stream}

    def without_refused(self, error: ModelError, request: ModelRequest) -> "RequestForm | None":
        """Return the form to try next after a refusal, or an empty answer in place of JSON; None when none helps."""
        if error.code == "model_empty_answer" and request.schema is not None and self.json_mode != "text":
            # Models that think, under a grammar that leaves no room for thoughts.
            return replace(self, json_mode=_NEXT_MODE[self.json_mode])
        refusal = error.upstream
        if refusal is None or (error.code == "model_failed" and refusal.status < 500) or not _is_of_the_form(refusal):
            return None
        text = f"{refusal.message} {refusal.param or ''} {refusal.code or ''}"
        body = self.body("", request, cache_key=True)
        if refused := {name for name in _OPTIONAL if name in body and _names(text, name)}:
            return replace(self, without=self.without | refused)
        for name, other in (_LIMITS, _LIMITS[::-1]):
            if name in body and self.limit_name is None and _names(text, name):
                return replace(self, limit_name=other)
        client = request.client or {}
        wants_json = request.schema is not None and self.json_mode != "text"
        fields = [field for message in body["messages"] for field in message.items()]
        extra = any(name not in _ESSENTIAL or value is None for name, value in fields)
        has_calls = any(name == "tool_calls" for name, _ in fields)  # False once they are text
        changes: list[tuple[Any, dict[str, Any]]] = [  # the first that applies is tried
            (
                wants_json and "response_format" not in client and _JSON.search(text),
                {"json_mode": _NEXT_MODE.get(self.json_mode)},
            ),
            (not self.thoughts and _WANTS_THOUGHTS.search(text), {"thoughts": True}),
            (has_calls and _TOOLS.search(text), {"calls_as_text": True}),
            (request.tools and self.tools and "tools" not in client and _TOOLS.search(text), {"tools": False}),
            (self.roles != "no system" and _NO_SYSTEM.search(text), {"roles": "no system"}),
            (self.roles != "any" and has_calls and _ROLES.search(text), {"calls_as_text": True}),
            (self.roles == "strict" and _ROLES.search(text), {"roles": "no system"}),
            (self.roles == "any" and _ROLES.search(text), {"roles": "strict"}),
            (extra and not self.plain_messages and _IN_MESSAGES.search(text), {"plain_messages": True}),
            (self.streams is None and _STREAM.search(text), {"streams": not request.stream}),
        ]
        change = next((change for applies, change in changes if applies), None)
        return replace(self, **change) if change is not None else None

    def merged(self, other: "RequestForm") -> "RequestForm":
        """Return this form with what `other` has learned beside it, perhaps from a request at the same time."""
        return replace(other, without=self.without | other.without, window=self.window or other.window)

    # -- messages

    def _messages(self, messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
        sent = [_message(message) for message in messages]
        if self.calls_as_text:  # for templates that know no results, one call in a message, or ids of their own form
            sent = _joined(_with_calls_as_text(sent))
        if self.plain_messages:
            sent = [{name: message[name] or "" for name in _ESSENTIAL if name in message} for message in sent]
        if self.thoughts:  # Kimi and DeepSeek want them back from programs, too, which keep none
            sent = [{"reasoning_content": "", **message} if message.get("tool_calls") else message for message in sent]
        if self.roles == "any":
            return sent
        system = [message for message in sent if message["role"] in ("system", "developer")]
        others = _joined([message for message in sent if message["role"] not in ("system", "developer")])
        if not system:
            return others
        text = "\n\n".join(str(message.get("content") or "") for message in system)
        if others and others[0]["role"] == "assistant":
            others = [{"role": "user", "content": BEGINNING}, *others]
        if self.roles == "strict":
            return [{"role": "system", "content": text}, *others]
        return _joined([{"role": "user", "content": text}, *others])


def _with_calls_as_text(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    names: dict[Any, Any] = {}
    for message in messages:
        text = message.get("content") or ""
        text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
        if calls := dicts_in(message.get("tool_calls")):
            functions = [dict_in(call.get("function")) for call in calls]
            names |= {call.get("id"): function.get("name") for call, function in zip(calls, functions, strict=True)}
            asked = [f"I call {function.get('name')} with {function.get('arguments')}." for function in functions]
            yield {"role": "assistant", "content": "\n\n".join(filter(None, [text, *asked]))}
        elif message["role"] == "tool":
            name = names.get(message.get("tool_call_id"), "the tool")
            yield {"role": "user", "content": f"Result of {name}:\n\n{text}"}
        else:
            yield message


def _joined(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with neighbours of one role, user or assistant, as one message."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        last = joined[-1] if joined else {}
        calls = "tool_calls" in message or "tool_calls" in last or message["role"] == "tool"
        if last.get("role") == message["role"] and not calls:
            first, second = last.get("content") or "", message.get("content") or ""
            texts = isinstance(first, str) and isinstance(second, str)
            joined[-1] = {**last, "content": f"{first}\n\n{second}" if texts else [*_parts(first), *_parts(second)]}
        else:
            joined.append(message)
    return joined


def _parts(content: str | list[Any]) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _message(message: ChatMessage) -> dict[str, Any]:
    """Return a message in the form of a request's body."""
    if message.raw is not None:
        return dict(message.raw)
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:  # some servers refuse empty text, and all accept none beside calls
        sent |= {"content": message.content or None, "tool_calls": list(map(sent_call, message.tool_calls))}
        sent |= message.thoughts or {}
    if message.tool_call_id is not None:
        sent["tool_call_id"] = message.tool_call_id
    return sent


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _names(text: str, parameter: str) -> bool:
    """Return whether a refusal is about the parameter."""
    if parameter != "user":
        name = parameter.replace("_", "_?")  # xAI calls it streamOptions
        return re.search(rf"\b{name}\b", text, re.I) is not None
    # "user" is the name of a role as well.
    argument = r"argument\w*(?: supplied| not supported[\w ]{0,20})?:?"
    naming = rf"(?:unknown name|property|parameter|{argument}|field|\"body\",)\s*[\"'`]?{parameter}\b"
    return re.search(naming, text, re.I) is not None


def _is_of_the_form(refusal: Upstream) -> bool:
    """Return whether a request in another form may be taken."""
    if refusal.status == 500:
        return _TEMPLATE_FAILED.search(refusal.message) is not None
    return refusal.status in _REFUSING
