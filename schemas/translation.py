"""What other protocols share: their requests become chat completions, and an answer gets an id of theirs.

Guarantee: whatever the body is, it is translated, or refused with the place of what is wrong.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marshmallow import ValidationError, fields

from memory.turn.values import TurnStarted
from schemas.fields import PARTS_MAX, about

Object = Mapping[str, Any]


@dataclass(frozen=True)
class ChatBody:
    """A request as the `parameters` of a chat completion, and the `metadata`, which no model server is sent."""

    parameters: dict[str, Any]
    metadata: Any = None


def passed_on() -> fields.Field:
    return fields.Raw(load_default=None, metadata=about("Passed on."))


def ignored() -> fields.Field:
    return fields.Raw(allow_none=True, metadata=about("Ignored."))


def parts(content: Any, place: str, known: Collection[str]) -> Iterator[tuple[str, str, Object]]:
    """The place, the type and the object of each part of a content; a text alone is one part of the type `text`."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or len(content) > PARTS_MAX:
        raise ValidationError(f"Must be a string, or a list of at most {PARTS_MAX:,} objects.", place)
    for number, part in enumerate(content):
        here = f"{place}.{number}"
        yield here, kind_of(part, here, known), part


def kind_of(part: Any, place: str, known: Collection[str]) -> str:
    """The type of an object, which has to be one of the `known`."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str) or kind not in known:
        told = f"the type {kind[:40]!r}" if isinstance(kind, str) else "what has no type"
        raise ValidationError(f"Takes the types {', '.join(known)}. Not {told}: it can't be passed on.", place)
    return kind


def string(part: Object, name: str, place: str) -> str:
    value = part.get(name)
    if not isinstance(value, str):
        raise ValidationError("Must be a string.", f"{place}.{name}")
    return value


def called(id: str, name: str, arguments: str) -> dict[str, Any]:
    """A call of a tool in an assistant's message."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def function(tool: Object, place: str, **described: Any) -> dict[str, Any]:
    """A tool that the client runs, or the choice of one."""
    return {"type": "function", "function": {"name": string(tool, "name", place), **given(described)}}


def image(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def given(parameters: Object) -> dict[str, Any]:
    """The parameters that are not null."""
    return {name: value for name, value in parameters.items() if value is not None}


# -- ids


def answer_id(prefix: str, started: TurnStarted) -> str:
    """The id of an answer: it names the turn, and is the same when the answer is given again.

    One that is not stored has an id that names nothing.
    """
    stored = started.user_message_id is not None and started.session_id is not None
    return f"{prefix}_{started.user_message_id}_{started.session_id}" if stored else f"{prefix}_{secrets.token_hex(16)}"


def turn_named(id: str) -> tuple[str, int]:
    """The session's id and the message's that an answer's id names.  What is no such id names nobody's session."""
    message_id, _, session_id = id.partition("_")[2].partition("_")
    return session_id, int(message_id) if re.fullmatch(r"[0-9]{1,18}", message_id) else 0
