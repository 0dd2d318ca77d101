"""The graph of what belongs together."""

from __future__ import annotations

from typing import Any

from api.blueprint import caller, resource, services
from schemas import graph as schema

blueprint = resource("graph", "People, places, organisations and things, and how they belong together.")


@blueprint.get("/graph")
@blueprint.arguments(schema.GraphQuery, location="query")
@blueprint.response(200, schema.EdgePage)
def read_graph(query: dict[str, Any]) -> Any:
    """Read the links around a person, place or thing, the nearest first

    Each link belongs to a fact: it rests on the same words, and is corrected, forgotten and erased with it. With
    `session_id`, these are the links of the session's facts, and those of its person with the scope `user`.
    """
    return services().links.around(caller(query.pop("user_id")), **query)
