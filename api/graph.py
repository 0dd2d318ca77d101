"""Links between people, places and things."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory.knowledge import graph
from schemas import facts as schema

blueprint = ApiBlueprint("graph", "People, places, organisations and things, and how they belong together.")


@blueprint.get("/graph", query=schema.GraphQuery, page_of=schema.Edge)
def read_graph(caller: Caller, query: dict[str, Any]) -> Any:
    """Read the links around a person, place or thing, the nearest first

    Each link belongs to a fact: it rests on the same words, and is corrected, forgotten and erased with it. With
    `session_id`, these are the links of the session's facts, and those of its person with the scope `user`.
    """
    return graph.around(current_engine(), caller, **query)
