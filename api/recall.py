"""POST /api/recall, and excerpts that did not help."""

import time
from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.permissions import other_memories_to_read
from memory.erasing import erasing
from memory.recall import unhelpful
from memory.recall.search import search_memory
from memory.turn.memory_block import memory_block
from memory.turn.request import TurnRequest
from models.keys import CHAT, READ
from schemas import recall as schema
from schemas.shapes import Receipt

search_blueprint = ApiBlueprint("search", "Find past messages by their words.")
blueprint = ApiBlueprint("recall", "What is remembered, for an application's own model.")


@blueprint.post("/recall", body=schema.RecallRequest, returns=schema.RecallBlock, scope=READ, slow=True)
def recall(caller: Caller, body: dict[str, Any]) -> Any:
    """Get what a prompt for a message would show of the memory

    For an application that calls a model itself: `block` is ready to stand before the message, or in a system prompt.
    It has instructions, profile and facts, the summary of the session if one is named, and excerpts of earlier
    conversations, as in the prompt of a turn. Nothing is stored. The session may be one that begins with this message.
    Its newest messages, those since the summary, are not in the block: the program sends them itself, as many as
    `memory.tail.messages` says.
    """
    also = other_memories_to_read(caller, body.pop("spaces"), body.pop("person"))
    return memory_block(current_engine(), TurnRequest(caller, **body, also=also, temporary=True))


@blueprint.post("/recall/unhelpful", body=schema.UnhelpfulCreate, returns=schema.Unhelpful, status=201, scope=CHAT)
def add_unhelpful(caller: Caller, body: dict[str, Any]) -> Any:
    """Mark a recalled excerpt as not helpful

    From now on the excerpt counts half for similar questions of the same person, which share half of their words or
    mean much the same. The `why` of an excerpt says what it lost by that, as `unhelpful`. The mark goes when the
    question or a message of the excerpt is erased or replaced.
    """
    return unhelpful.add_mark(current_engine(), caller, **body)


@blueprint.get("/recall/unhelpful", query=schema.UnhelpfulQuery, page_of=schema.Unhelpful)
def list_unhelpful(caller: Caller, query: dict[str, Any]) -> Any:
    """List the excerpts that a person marked as not helpful, newest first"""
    return unhelpful.list_marks(current_engine(), caller, **query)


@blueprint.delete("/recall/unhelpful/<int64:mark_id>", returns=Receipt, scope=CHAT)
def delete_unhelpful(caller: Caller, mark_id: int) -> Any:
    """Take a mark back: the excerpt counts as before"""
    return erasing.erase_item_by_id(current_engine(), caller, unhelpful.NAMESPACE, mark_id, "mark")


@search_blueprint.get("/search", query=schema.SearchQuery, returns=schema.SearchResults)
def search(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """Search a person's past messages, or one session's

    Messages are found the moment they are stored, and ranked by how well their words match. `q` may have "phrases",
    -exclusions and prefixes*. Words are compared by their stems: `kettles` finds "kettle".
    """
    begun = time.perf_counter()
    results = search_memory(current_engine(), caller, current_engine().now(), **query)
    return {"results": results, "took_ms": round((time.perf_counter() - begun) * 1000, 3)}
