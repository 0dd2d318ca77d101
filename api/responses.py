"""OpenAI's Responses: its clients, the Agents SDK among them, get a memory by changing their base URL."""

from __future__ import annotations

from dataclasses import replace

from flask import Response

from api.blueprint import resource, services
from api.client_turns import ERRORS, answer, arrived
from memory.access.keys import CHAT
from memory.errors import NotFound
from memory.turn.values import TurnRequest
from schemas.responses import ResponseBody, ResponseObject, ResponseRequest, ResponseWriter
from schemas.translation import turn_named

blueprint = resource("responses", "OpenAI's Responses, with memory.", prefix="/v1")


@blueprint.post(
    "/responses",
    scope=CHAT,
    turn=True,
    errors={**ERRORS, 404: f"{ERRORS[404]} Or: there is no such previous response, or it was replaced."},
)
@blueprint.arguments(ResponseRequest)
@blueprint.response(200, ResponseObject)
def create_response(body: ResponseBody) -> Response:
    """Ask for a response as from OpenAI, and be remembered

    The model server is asked for a chat completion; text, images, functions and their outputs are translated. With
    `previous_response_id` the input goes on from that response, in its session, and takes the place of what came after
    it. Otherwise the session is found as for chat completions, and so is the person. With store=false nothing is stored
    and no memory used. Reasoning items are left out. Files, references to items and hosted tools are refused.
    """
    asked = arrived(body.parameters, body.metadata)
    if body.previous is not None:
        asked = _following(body.previous, asked)
    if not body.store:
        asked = replace(asked, client=asked.client and replace(asked.client, temporary=True))
    return answer(asked, lambda started: ResponseWriter(started, body.repeated))


def _following(previous: str, asked: TurnRequest) -> TurnRequest:
    """The request as one that goes on from a response.  Raises NotFound, also when that is somebody else's."""
    try:
        session_id, message_id = turn_named(previous)
        reply_id = services().turns.get(asked.caller, session_id, message_id).message_id
    except NotFound:
        reply_id = None
    if reply_id is None:
        raise NotFound(
            "previous_response_not_found",
            f"There is no response {previous!r} to go on from: it was never stored, or it was erased, or another one "
            "took its place. Nothing was stored. Send the conversation as `input` instead.",
            param="previous_response_id",
        )
    client = asked.client and replace(asked.client, follows=reply_id, whole=True)
    return replace(asked, session_id=session_id, client=client)
