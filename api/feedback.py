"""Feedback."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from memory import feedback
from models.keys import CHAT
from schemas import feedback as schema

blueprint = ApiBlueprint("feedback", "What people think of replies.")


@blueprint.post("/feedback", body=schema.FeedbackCreate, returns=schema.FeedbackGiven, status=201, scope=CHAT)
def give_feedback(caller: Caller, body: dict[str, Any]) -> Any:
    """Say what a person thinks of a reply, in the place of what they thought before

    Thumbs up make an example of the exchange, thumbs down take it away. With words or thumbs down, the mini model may
    propose a new version of the person's instruction (FEEDBACK says how). Read it in the store, below `recap.feedback`.
    """
    return feedback.give(current_engine(), caller, **body)
