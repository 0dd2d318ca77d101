"""Events of a stream or a webhook."""

from typing import Any

from marshmallow import Schema, ValidationError

from models.events import EVENT_TYPES
from schemas import fields
from schemas.shapes import CallerQuery

STREAM_SECONDS_MAX = 3600
TYPES = "; ".join(f"`{name}`: {text}" for name, text in EVENT_TYPES.items()) + "."
_WORDS = "Only with `words`."


class EventData(Schema):
    """Data of an event: what its type has. With `words` also what people and models said."""

    user_id = fields.String(allow_none=True, about="Null in a space, and for a session without a person.")
    space = fields.String(about="Only in a space.")
    session_id = fields.String(allow_none=True)
    message_id = fields.Integer()
    role = fields.String()
    position = fields.Integer(about="Of a message: its place in the session.")
    created_at = fields.UtcDateTime(about="Of a message: when it was said.")
    content = fields.String(allow_none=True, about=f"{_WORDS} Null where the person asked not to remember the message.")
    name = fields.String(allow_none=True, about=_WORDS)
    version = fields.Integer(about="Of a summary, a profile or an overview.")
    through = fields.Integer(about="The last position that the summary covers.")
    author = fields.String(about="`model`, `person`, or what made the version.")
    sections = fields.Dict(about=f"Of a summary. {_WORDS}")
    fact_id = fields.Integer()
    action = fields.String(
        about="`made`, `accepted`, `edited`, `superseded`, `merged`, `contradicted`, `excluded`, `ended`, `expired` or "
        "`reopened`. Of a forgotten fact "
        "`forgotten`, `superseded` (another fact stands for it), `replaced` or `refused` with its message, or "
        "`archived` with its session."
    )
    category = fields.String()
    importance = fields.Integer()
    pinned = fields.Boolean()
    scope = fields.String()
    superseded_by = fields.Integer(allow_none=True)
    text = fields.String(about=f"Of a fact, after this change. {_WORDS}")
    profile = fields.Dict(about=f"Each value with its source. {_WORDS}")
    overview = fields.Dict(about=f"Its sentences, each with its sources. {_WORDS}")
    document_id = fields.String()
    job_id = fields.Integer()
    kind = fields.String(about="Of a job.")
    webhook_id = fields.Integer(about="Of a test.")


class Event(Schema):
    """Event in the form of Standard Webhooks. A repeated one has the same `id`."""

    id = fields.String()
    type = fields.String(about=TYPES)
    timestamp = fields.UtcDateTime()
    data = fields.Nested(EventData)


EVENT = Event()


class Types(fields.Described):
    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> tuple[str, ...]:
        names = str(value).split(",")
        if not EVENT_TYPES.keys() >= set(names):
            raise ValidationError(f"Must be of {', '.join(EVENT_TYPES)}, separated by commas.")
        return tuple(names)


class EventHeaders(Schema):
    last_event_id = fields.Text(
        data_key="Last-Event-ID",
        load_default=None,
        about="Begin after this place: readers of streams send it when they come back.",
    )


class EventQuery(CallerQuery):
    after = fields.Text(
        load_default=None,
        about="Begin after this place, the `id:` of an event; for readers that can't send Last-Event-ID.",
    )
    types = Types(load_default="", about="Only these types, separated by commas.", metadata={"type": "string"})
    words = fields.Boolean(load_default=False, about="With what people and models said.")
    seconds = fields.number(
        0,
        STREAM_SECONDS_MAX,
        load_default=STREAM_SECONDS_MAX,
        about="End the stream after so long. 0: only what there is now.",
    )
