"""Turn the requests of other protocols into turns: parts that their translations share, and ids.

A body that is not of its protocol's form is refused with the place of its first fault (test_protocols).  What has no
counterpart in a chat completion is left out, and a header of the answer says so: agents send their tools and settings
to every server, and work without.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from flask import Response, g, request
from marshmallow import ValidationError

from api.blueprint import LIMITED
from api.identity import client_caller, header, idempotency_key, others_in_headers, storable, text_of_name
from api.streaming import ReplyEncoder, answer_turn
from config.parsers import zone_of
from memory import tokens
from memory.errors import InvalidRequest
from memory.json_values import dict_in
from memory.llm import RawChunk, Thought, ToolCall
from memory.llm.registry import MAIN
from memory.transcripts.transcript import Transcript, TranscriptRequest, text_of, tool_tokens
from memory.turn.request import TurnEvent, TurnFinished, TurnRequest, TurnStarted
from schemas import fields
from schemas.fields import ID, PARTS_MAX
from schemas.memory_report import WRITTEN

Object = Mapping[str, Any]


@dataclass(frozen=True)
class ChatBody:
    """Request as the `parameters` of a chat completion, and the `metadata`, which no model server gets.

    agent_session: named beside the person by an agent. shows_thoughts: the answer has what the model thought.
    """

    parameters: dict[str, Any]
    metadata: Any = None
    agent_session: str = ""
    shows_thoughts: bool = False


PASSED_ON = fields.Raw(load_default=None, about="Passed on.")
IGNORED = fields.Raw(allow_none=True, about="Ignored.")
LEFT_OUT_MAX = 20  # places that the header names


def leave_out(place: str, kind: str = "") -> None:
    """Note what is not passed on, for the header of the answer."""
    part = f"{place} ({kind})" if kind else place
    g.setdefault("left_out", []).append(re.sub(r"[^\w.() -]", "", part)[:80])


def parts(content: Any, place: str, known: Collection[str]) -> Iterator[tuple[str, str, Object]]:
    """Yield the place, type and object of each part of a content; a text alone is one part of the type `text`.

    Parts of other types than those `known` are left out.
    """
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or len(content) > PARTS_MAX:
        raise ValidationError(f"Must be a string, or a list of at most {PARTS_MAX:,} objects.", place)
    for number, part in enumerate(content):
        here = f"{place}.{number}"
        if (kind := type_of(part, here)) in known:
            yield here, kind, part
        else:
            leave_out(here, kind)


def type_of(part: Any, place: str) -> str:
    """Return the type of an object. Raises ValidationError for anything that has none."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        raise ValidationError("Must be an object with a type.", place)
    return kind


def kind_of(part: Any, place: str, known: Collection[str]) -> str:
    """Return the type of an object. Raises ValidationError for a type that is not `known`."""
    kind = type_of(part, place)
    if kind not in known:
        problem = f"Takes the types {', '.join(known)}. Not the type {kind[:40]!r}: it can't be passed on."
        raise ValidationError(problem, place)
    return kind


def string(part: Object, name: str, place: str) -> str:
    value = part.get(name)
    if not isinstance(value, str):
        raise ValidationError("Must be a string.", f"{place}.{name}")
    return value


def called(id: str, name: str, arguments: str) -> dict[str, Any]:
    """Return a call of a tool in an assistant's message."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def function(tool: Object, place: str, **described: Any) -> dict[str, Any]:
    """Return a tool that the client runs, or the choice of one."""
    return {"type": "function", "function": {"name": string(tool, "name", place), **given(described)}}


def image(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def result_of(parts: Iterable[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of a tool's result, and its images and files, which a tool's message can't have."""
    found = list(parts)
    text = "\n".join(part["text"] for part in found if part["type"] == "text")
    return text, [part for part in found if part["type"] != "text"]


def estimate_tokens(parameters: Object) -> int:
    """Return the tokens of a chat completion's messages and tools."""
    messages = parameters["messages"]
    calls = [message["tool_calls"] for message in messages if "tool_calls" in message]
    words = sum(tokens.estimate_message(text_of(message)) for message in messages)
    return words + sum(tokens.estimate(json.dumps(part)) for part in calls) + tool_tokens(parameters)


def json_format(schema: Object) -> dict[str, Any]:
    """Return the `response_format` that asks for JSON of a schema, which `schema` also names."""
    kept = ("name", "description", "schema", "strict")
    return {"type": "json_schema", "json_schema": given({name: schema.get(name) for name in kept})}


class FirstCall:
    """First call of a tool in a stream, whose arguments go on as they come.

    Those of others come at the end: some servers mix the pieces of several calls.
    """

    def __init__(self) -> None:
        self.call: ToolCall | None = None
        self._index: Any = None

    def pieces(self, chunk: RawChunk) -> Iterator[tuple[ToolCall, str]]:
        """Yield the call and a piece of its arguments, an empty one where it begins."""
        for choice in chunk.data.get("choices") or ():
            for part in (choice.get("delta") or {}).get("tool_calls") or ():
                function = part.get("function") or {}
                index = part.get("index", 0)
                if self.call is None and part.get("id") and function.get("name"):
                    self.call = ToolCall(str(part["id"]), str(function["name"]), "")
                    self._index = index
                    yield self.call, ""
                elif self.call is None or index != self._index or part.get("id") not in (None, "", self.call.id):
                    continue
                if piece := function.get("arguments"):
                    yield self.call, str(piece)

    def others(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Return the calls of a finished turn that have not been told yet."""
        return [call for call in calls if self.call is None or call.id != self.call.id]


def thoughts_in(events: Iterable[TurnEvent]) -> str:
    """Return what the model thought, but for words that were taken for its reply's before."""
    return "".join(part.text for part in events if isinstance(part, Thought) and not part.withdraws)


def given(parameters: Object) -> dict[str, Any]:
    """Return the parameters that are not null."""
    return {name: value for name, value in parameters.items() if value is not None}


# -- ids


def answer_id(prefix: str, started: TurnStarted) -> str:
    """Return the id of an answer: it names the turn, and is the same when the answer is repeated.

    An answer that is not stored has an id that names nothing.
    """
    stored = started.user_message_id is not None and started.session_id is not None
    return f"{prefix}_{started.user_message_id}_{started.session_id}" if stored else f"{prefix}_{secrets.token_hex(16)}"


def turn_named(id: str) -> tuple[str, int]:
    """Return the ids of the session and of the message that an answer's id names; other ids name nobody's session."""
    message_id, _, session_id = id.partition("_")[2].partition("_")
    return session_id, int(message_id) if re.fullmatch(r"[0-9]{1,18}", message_id) else 0


THREAD_HEADER = "thread-id"  # of Codex, which sends every conversation from the start
SESSION_HEADERS = ("X-Session-Id", "X-Conversation-Id", "X-OpenWebUI-Chat-Id", "x-litellm-session-id", THREAD_HEADER)
NAMES = ("user_id", "session_id")  # in the body, or in its metadata
WHOLE_HEADER = "X-OpenWebUI-Chat-Id"  # its frontend sends every conversation from the start
TEMPORARY = "local:"  # begins the ids of its temporary chats, which it does not store either
CLIENT_LOCK_TIMEOUT_SECONDS = 5.0  # that each write waits for the database; then memory takes no part
REFUSED = "The model server refused the request. Its own status and error are passed on."
NO_SERVER = "The model server could not be reached, or its answer was not valid."
ERRORS = {
    400: REFUSED,
    404: "The model server does not know the model.",
    409: "Another request had this Idempotency-Key.",
    429: f"{LIMITED} Or: {REFUSED}",
    502: NO_SERVER,
    504: "The model took longer than MODEL_TIMEOUT.",
}


def turn_request(parameters: dict[str, Any], metadata: Any, agent_session: str = "") -> TurnRequest:
    """Return the turn of the current request, whose body has these `parameters` of a chat completion.

    A header that names the session counts before the body, that before its `metadata`, that before `agent_session`: the
    session of an agent, which may have several conversations, and that before the id of a phone `call`. Without a name
    the session is found by the conversation, which such a client sends whole, as do those of WHOLE_HEADER and
    THREAD_HEADER. The person may be the `customer` who calls. The same body again is a retry.
    """
    if parameters.get("model") == MAIN:
        del parameters["model"]
    continues = parameters.get("continue_final_message") is True  # of vLLM and SGLang
    conversation = Transcript.read(parameters.pop("messages"), continues=continues)
    stream = bool(parameters.pop("stream"))
    in_metadata = dict_in(metadata)
    user_id = parameters.pop("user_id", None) or in_metadata.get("user_id")
    session = text_of_name(parameters.pop("session_id", None) or in_metadata.get("session_id"))
    theirs = dict_in(parameters.get("metadata"))
    if not theirs.keys().isdisjoint(NAMES):
        parameters["metadata"] = {name: value for name, value in theirs.items() if name not in NAMES}
        if not parameters["metadata"]:
            del parameters["metadata"]  # it was for Recap alone, and some servers refuse any
    session_header = next(filter(header, SESSION_HEADERS), None)
    if session_header is not None:
        session = header(session_header)
    session = session or agent_session or text_of_name(dict_in(parameters.get("call")).get("id"))
    session_id = storable(session, fits=ID.fullmatch(session) is not None) if session else None
    owner = client_caller(parameters, user_id or dict_in(parameters.get("customer")).get("number"))
    request_bytes = (
        f"{owner.user_id}\0{session_id}\0{owner.space or ''}".encode("utf-8", "replace") + request.get_data()
    )
    is_whole = not session or session_header in (WHOLE_HEADER, THREAD_HEADER) or session == agent_session
    return TurnRequest(
        owner,
        message=conversation.words,
        session_id=session_id,
        also=others_in_headers(owner),
        recall="tools" if has_memory_tools() else None,
        timezone=_timezone(),
        stream=stream,
        model=text_of_name(parameters.get("model")) or None,
        idempotency_key=idempotency_key(owner),
        on_disconnect="interrupt" if stream else "finish",
        lock_timeout=CLIENT_LOCK_TIMEOUT_SECONDS,
        transcript=TranscriptRequest(
            conversation,
            parameters,
            fingerprint=hashlib.sha256(request_bytes).hexdigest(),
            is_complete=is_whole and not conversation.is_abridged,
            bypass=session_header == WHOLE_HEADER and session.startswith(TEMPORARY),
            is_declared_retry=header("X-Stainless-Retry-Count") not in ("", "0"),
            holds_several=session != "" and session == agent_session,
        ),
    )


def _timezone() -> tzinfo | None:
    """Return the zone in which the person's days begin, if a header names it. Raises InvalidRequest."""
    name = header("X-Memory-Timezone")
    try:
        return zone_of(name) if name else None
    except ValueError as error:
        raise InvalidRequest("unknown_timezone", f"{error}.", param="X-Memory-Timezone") from None


def has_memory_tools() -> bool:
    """Return whether the client lets the model search and write memory with tools that Recap runs."""
    return header("X-Memory-Tools").lower() == "on"


def written(end: TurnFinished) -> dict[str, Any]:
    """Return the field of an answer that tells what the model wrote, if it wrote anything."""
    memory = end.started.memory
    return {"memory": WRITTEN.dump(memory)} if memory.written else {}


def answer(turn: TurnRequest, encoder_for: Callable[[TurnStarted], ReplyEncoder]) -> Response:
    """Run the turn. Headers tell about the memory, so that the answer itself stays the model's."""
    response, started = answer_turn(turn, encoder_for)
    recalled = sum(len(excerpt.messages) for excerpt in started.memory.recalled.excerpts)
    headers = {
        "X-Memory-Model": started.model,
        "X-Memory-Session-Id": started.session_id,
        "X-Memory-Recalled": str(recalled),
        "X-Memory-Tokens-Saved": str(started.saved_tokens),
        "X-Memory-Error": started.problem,
        "X-Memory-Left-Out": ", ".join(g.get("left_out", ())[:LEFT_OUT_MAX]) or None,
    }
    for name, value in headers.items():
        if value is not None:  # a model's name is any text of the client's
            line = re.sub(r"[\x00-\x1f\x7f]", " ", value)
            response.headers[name] = line.encode("utf-8", "replace").decode("latin-1")
    return response
