"""The OpenAI protocol: requests of its clients, and whose they are.

Only what Recap itself reads is checked.  Everything else goes to the model unchanged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from marshmallow import INCLUDE, Schema, fields, post_load, validate

from memory.clients.conversation import ClientRequest, Conversation
from memory.turn.values import TurnRequest
from schemas.fields import ID, UNSTORABLE, about

SESSION_HEADERS = ("X-Session-Id", "X-Conversation-Id", "X-OpenWebUI-Chat-Id", "x-litellm-session-id")
PERSON_HEADERS = ("X-OpenWebUI-User-Id", "x-litellm-end-user-id")
WHOLE_HEADER = "X-OpenWebUI-Chat-Id"  # its frontend sends every conversation from the start
TEMPORARY = "local:"  # begins the ids of its temporary chats, which it does not store either
PERSON_CHARS = 256
MESSAGES_MAX = 10_000  # more than any model reads
KEY_CHARS = 256


class Headers(Protocol):
    """The headers of a request, found in any case."""

    def get(self, name: str, default: str) -> str: ...


@dataclass(frozen=True)
class CompletionCall:
    """A request: its messages, whether to stream, and all other parameters."""

    messages: list[dict[str, Any]]
    stream: bool
    parameters: dict[str, Any]


@dataclass(frozen=True)
class Identity:
    """Whose request it is.  A `session_id` of None is found by the conversation.  A client that is `whole` always sends
    its conversations from the start.  Of a `temporary` one nothing may be stored."""

    session_id: str | None
    user_id: str | None
    whole: bool
    temporary: bool


class CompletionRequest(Schema):
    """A chat completion.  Parameters that are not listed are passed on unchanged."""

    class Meta:
        unknown = INCLUDE

    messages = fields.List(
        fields.Dict(),
        required=True,
        validate=validate.Length(1, MESSAGES_MAX),
        metadata=about("The whole conversation, a part of it, or only the newest message."),
    )
    model = fields.String(metadata=about("Passed on. Without it, and with the built-in model, the main model answers."))
    stream = fields.Boolean(load_default=False, allow_none=True, truthy={True}, falsy={False})
    user = fields.Raw(metadata=about("The person, unless a header or `safety_identifier` names one."))
    safety_identifier = fields.Raw(metadata=about("The person, unless a header names one."))
    metadata = fields.Raw(metadata=about("Its `session_id` names the session, unless a header does."))
    n = fields.Raw(metadata=about("Of several choices, the first is stored."))

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> CompletionCall:
        return CompletionCall(data.pop("messages"), bool(data.pop("stream")), data)


class Completion(Schema):
    """The model server's chat.completion, or with `stream` its chat.completion.chunk events."""

    class Meta:
        unknown = INCLUDE

    id = fields.String()
    object = fields.String()
    created = fields.Integer()
    model = fields.String()
    choices = fields.List(fields.Dict())
    usage = fields.Dict()


class EmbeddingRequest(Schema):
    """Texts to embed.  Everything is passed on unchanged."""

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
    """The session and the person: headers count before the body."""
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
    """The turn that a request asks for.  The same `body` again is a retry."""
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
    """A header's text.  WSGI decodes it as Latin-1, but clients send UTF-8."""
    value = headers.get(name, "")
    try:
        return value.encode("latin-1").decode("utf-8").strip()
    except UnicodeError:
        return value.strip()


def _text(value: Any) -> str:
    """A name in a body.  Some programs number their users."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value).strip()


def _fitting(name: str, fits: bool) -> str:
    """A name that can be stored: a name that does not fit is replaced by its hash."""
    return name if fits else f"id-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
