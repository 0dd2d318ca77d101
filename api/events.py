"""GET /api/events: what happens in memory, as server-sent events."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from flask import Response, current_app

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.limits import CONCURRENCY, ConcurrencyLimiter
from api.streaming import event_stream
from memory.events import parse_position
from models.events import Event, Position
from schemas.events import EVENT, EventHeaders, EventQuery

RETRY_MS = 2000  # after which a reader comes back

blueprint = ApiBlueprint("events", "What happens in memory, as it happens; docs/events.md has the events.")


@blueprint.get("/events", query=EventQuery, slow=True)
@blueprint.arguments(EventHeaders, location="headers")
@blueprint.doc(
    responses={
        200: {
            "description": "`data:` of each event is such an object.",
            "content": {"text/event-stream": {"schema": EVENT}},
        }
    },
)
def stream_events(caller: Caller, query: dict[str, Any], headers: dict[str, Any]) -> Response:
    """Follow the events of a person or, with a key of the whole tenant and no `user_id`, of all

    Server-sent events, each with the place behind it as `id:`. A reader that comes back with it as Last-Event-ID gets
    every event since then, some of them perhaps again. Of one person they come in order. Without it the stream begins
    now. A comment comes at least every 15 seconds; the stream ends after `seconds`, and when the server stops.
    """
    sent = headers["last_event_id"] or query["after"]
    limiter: ConcurrencyLimiter = current_app.extensions[CONCURRENCY]
    limiter.acquire_stream(caller)
    query["after"] = parse_position(sent) if sent else None
    events = current_engine().events.follow(caller, **query)
    return event_stream(_lines(chain([next(events)], events)), events.close)


def _lines(events: Iterator[Event | Position]) -> Iterator[str]:
    yield f"retry: {RETRY_MS}\n"
    for event in events:
        if isinstance(event, Position):
            yield f": nothing new\nid: {event}\n\n"
        else:
            yield f"id: {event.position}\nevent: {event.type}\ndata: {EVENT.dumps(event)}\n\n"
