"""GET /api/search."""

from __future__ import annotations

import time
from typing import Any

from api.blueprint import caller, resource, services
from memory.engine import utc_now
from schemas import search as schema

blueprint = resource("search", "Find past messages by their words.")


@blueprint.get("/search")
@blueprint.arguments(schema.SearchQuery, location="query")
@blueprint.response(200, schema.SearchResults)
def search(query: dict[str, Any]) -> dict[str, Any]:
    """Search a person's past messages, or one session's

    Messages are found the moment they are stored, and ranked by how well their words match. `q` may have "phrases",
    -exclusions and prefixes*. Words are compared by their stems: `kettles` finds "kettle".
    """
    begun = time.perf_counter()
    results = services().recall.search(caller(query.pop("user_id")), utc_now(), **query)
    return {"results": results, "took_ms": round((time.perf_counter() - begun) * 1000, 3)}
