"""Events of a stream or a webhook."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields

from models.events import EVENT_TYPES
from schemas.fields import CallerQuery, Text, UtcDateTime, describe, number

STREAM_SECONDS_MAX = 3600
TYPES = "; ".join(f"`{name}`: {text}" for name, text in EVENT_TYPES.items()) + "."
_WORDS = "Only with `words`."


class EventData(Schema):
    """Data of an event: what its type has. With `words` also what people and models said."""

    user_id = fields.String(allow_none=True, metadata=describe("Null in a space, and for a session without a person."))
    space = fields.String(metadata=describe("Only in a space."))
    session_id = fields.String(allow_none=True)
    message_id = fields.Integer()
    role = fields.String()
    position = fields.Integer(metadata=describe("Of a message: its place in the session."))
    created_at = UtcDateTime(metadata=describe("Of a message: when it was said."))
    content = fields.String(
        allow_none=True, metadata=describe(f"{_WORDS} Null where the person asked not to remember the message.")
    )
    name = fields.String(allow_none=True, metadata=describe(_WORDS))
    version = fields.Integer(metadata=describe("Of a summary, a profile or an overview."))
    through = fields.Integer(metadata=describe("The last position that the summary covers."))
    author = fields.String(metadata=describe("`model`, `person`, or what made the version."))
    sections = fields.Dict(metadata=describe(f"Of a summary. {_WORDS}"))
    fact_id = fields.Integer()
    action = fields.String(
        metadata=describe(
            "`made`, `edited`, `superseded`, `merged`, `contradicted`, `expired` or `reopened`. Of a forgotten fact "
            "`forgotten`, `superseded` (another fact stands for it), `replaced` or `refused` with its message, or "
            "`archived` with its session."
        )
    )
    category = fields.String()
    importance = fields.Integer()
    pinned = fields.Boolean()
    scope = fields.String()
    superseded_by = fields.Integer(allow_none=True)
    text = fields.String(metadata=describe(f"Of a fact, after this change. {_WORDS}"))
    profile = fields.Dict(metadata=describe(f"Each value with its source. {_WORDS}"))
    overview = fields.Dict(metadata=describe(f"Its sentences, each with its sources. {_WORDS}"))
    job_id = fields.Integer()
    kind = fields.String(metadata=describe("Of a job."))
    webhook_id = fields.Integer(metadata=describe("Of a test."))


class Event(Schema):
    """Event in the form of Standard Webhooks. A repeated one has the same `id`."""

    id = fields.String()
    type = fields.String(metadata=describe(TYPES))
    timestamp = UtcDateTime()
    data = fields.Nested(EventData)


EVENT = Event()


class Types(fields.Field[tuple[str, ...]]):
    """Types of events, separated by commas."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> tuple[str, ...]:
        names = str(value).split(",")
        if not EVENT_TYPES.keys() >= set(names):
            raise ValidationError(f"Must be of {', '.join(EVENT_TYPES)}, separated by commas.")
        return tuple(names)


class EventHeaders(Schema):
    last_event_id = Text(
        data_key="Last-Event-ID",
        load_default=None,
        metadata=describe("Begin after this place: readers of streams send it when they come back."),
    )


class EventQuery(CallerQuery):
    after = Text(
        load_default=None,
        metadata=describe("Begin after this place, the `id:` of an event; for readers that can't send Last-Event-ID."),
    )
    types = Types(load_default="", metadata={**describe("Only these types, separated by commas."), "type": "string"})
    words = fields.Boolean(load_default=False, metadata=describe("With what people and models said."))
    seconds = number(
        0,
        STREAM_SECONDS_MAX,
        load_default=STREAM_SECONDS_MAX,
        metadata=describe("End the stream after so long. 0: only what there is now."),
    )
