"""The OpenAI protocol: requests of its clients, and whose they are.

Only what Recap itself reads is looked at.  Everything else goes to the model as it came, known here or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from marshmallow import INCLUDE, Schema, fields, post_load, validate

from memory.clients.conversation import ClientRequest, Conversation
from memory.turn.values import TurnRequest
from schemas.fields import ID, UNSTORABLE

SESSION_HEADERS = ("X-Session-Id", "X-Conversation-Id", "X-OpenWebUI-Chat-Id", "x-litellm-session-id")
PERSON_HEADERS = ("X-OpenWebUI-User-Id", "x-litellm-end-user-id")
WHOLE_HEADER = "X-OpenWebUI-Chat-Id"  # its frontend sends every conversation from the start
TEMPORARY = "local:"  # how the ids of its temporary chats begin, which it keeps nothing of itself
PERSON_CHARS = 256
MESSAGES_MAX = 10_000  # more than any model reads
KEY_CHARS = 256


class Headers(Protocol):
    """A request's headers, in whatever case they are asked for."""

    def get(self, name: str, default: str) -> str: ...


@dataclass(frozen=True)
class CompletionCall:
    """A request as it came: its messages, whether to stream, and its other parameters."""

    messages: list[dict[str, Any]]
    stream: bool
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """Whose request it is.  `session_id` None: it says nothing, and its conversation has to tell.  `whole`: the client
    is known to send its conversations from the start.  `temporary`: the person was promised that nothing is kept."""

    session_id: str | None
    user_id: str | None
    whole: bool
    temporary: bool


class CompletionRequest(Schema):
    """A chat completion.  Parameters that are not listed are passed on untouched."""

    class Meta:
        unknown = INCLUDE

    messages = fields.List(
        fields.Dict(),
        required=True,
        validate=validate.Length(1, MESSAGES_MAX),
        metadata={"description": "All of the conversation, some of it, or the newest message alone."},
    )
    model = fields.String(
        metadata={"description": "Passed on. Without it, and for the built-in model, the main one answers."}
    )
    stream = fields.Boolean(load_default=False, allow_none=True, truthy={True}, falsy={False})
    user = fields.Raw(metadata={"description": "The person, unless a header or `safety_identifier` names them."})
    safety_identifier = fields.Raw(metadata={"description": "The person, unless a header names them."})
    metadata = fields.Raw(metadata={"description": "Its `session_id` names the session, unless a header does."})
    n = fields.Raw(metadata={"description": "Of several choices the first is stored."})

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> CompletionCall:
        return CompletionCall(data.pop("messages"), bool(data.pop("stream")), data)


class Completion(Schema):
    """A chat.completion as the model server answered it, or with `stream` its chat.completion.chunk events."""

    class Meta:
        unknown = INCLUDE

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    model = fields.String()
    choices = fields.List(fields.Dict())
    usage = fields.Dict()


class EmbeddingRequest(Schema):
    """Texts to embed.  Everything is passed on untouched."""

    class Meta:
        unknown = INCLUDE

    model = fields.Raw()
    input = fields.Raw()


class Model(Schema):
    """A model, as the model server describes it."""

    class Meta:
        unknown = INCLUDE

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    owned_by = fields.String()


class ModelList(Schema):
    """The models there are."""

    object = fields.String()
    data = fields.List(fields.Nested(Model))


def identity_of(headers: Headers, parameters: Mapping[str, Any]) -> Identity:
    """Session and person, from the headers first, then from the body."""
    given = {name: text for name in (*SESSION_HEADERS, *PERSON_HEADERS) if (text := _header(headers, name))}
    metadata = parameters.get("metadata")
    in_body = _text(metadata.get("session_id")) if isinstance(metadata, Mapping) else ""
    named_by = next((name for name in SESSION_HEADERS if name in given), None)
    session = given[named_by] if named_by else in_body
    person = next((given[name] for name in PERSON_HEADERS if name in given), "")
    person = person or _text(parameters.get("safety_identifier")) or _text(parameters.get("user"))
    return Identity(
        session_id=_fitting(session, ID.fullmatch(session) is not None) if session else None,
        user_id=_fitting(person, len(person) <= PERSON_CHARS and not UNSTORABLE.search(person)) if person else None,
        whole=not session or named_by == WHOLE_HEADER,
        temporary=named_by == WHOLE_HEADER and session.startswith(TEMPORARY),
    )


def turn_of(call: CompletionCall, identity: Identity, headers: Headers, body: bytes) -> TurnRequest:
    """The turn that a request asks for.  `body` is what came over the wire: the same again is the same request."""
    conversation = Conversation.read(call.messages)
    known = hashlib.sha256(f"{identity.user_id}\0{identity.session_id}\0".encode("utf-8", "replace") + body)
    key = headers.get("Idempotency-Key", "")
    return TurnRequest(
        message=conversation.asked,
        session_id=identity.session_id,
        stream=call.stream,
        idempotency_key=key if 0 < len(key) <= KEY_CHARS else None,
        unheard="interrupt" if call.stream else "finish",
        client=ClientRequest(
            conversation,
            call.parameters,
            fingerprint=known.hexdigest(),
            whole=identity.whole,
            temporary=identity.temporary,
            retried=headers.get("X-Stainless-Retry-Count", "0") not in ("", "0"),
        ),
    )


def _header(headers: Headers, name: str) -> str:
    """A header's text: servers hand over bytes as Latin-1, and clients send UTF-8."""
    value = headers.get(name, "")
    try:
        return value.encode("latin-1").decode("utf-8").strip()
    except UnicodeError:
        return value.strip()


def _text(value: Any) -> str:
    """What names somebody in a body: some programs number their users."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value).strip()


def _fitting(name: str, fits: bool) -> str:
    """A name that can be stored: as it is, or if it is too long or odd, something that stands for it."""
    return name if fits else f"id-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
