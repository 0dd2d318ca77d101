"""POST /api/recall."""

from __future__ import annotations

from typing import Any

from api.blueprint import DAY_SPENT, caller, resource, services
from memory.access.keys import READ
from memory.turn.values import TurnRequest
from schemas.recall import RecallBlock, RecallRequest

blueprint = resource("recall", "What is remembered, for an application's own model.")


@blueprint.post(
    "/recall",
    scope=READ,
    slow=True,
    errors={404: "The session does not exist, or belongs to someone else.", 429: DAY_SPENT},
)
@blueprint.arguments(RecallRequest)
@blueprint.response(200, RecallBlock)
def recall(body: dict[str, Any]) -> Any:
    """Get what a prompt for a message would show of the memory

    For an application that calls a model itself: `block` is ready to stand before the message, or in a system prompt.
    It has instructions, profile and facts, the summary of the session if one is named, and excerpts of earlier
    conversations, as in the prompt of a turn. Nothing is stored. The messages since the summary are not in it.
    """
    whose = caller(body.pop("user_id"))
    return services().blocks.make(whose, TurnRequest(**body, temporary=True))
