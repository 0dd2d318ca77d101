"""Responses that were stored: a response is a turn."""

from typing import Any

from flask import Response, jsonify
from marshmallow import EXCLUDE

from api.blueprint import EVENTS, ApiBlueprint, current_engine
from api.identity import client_caller
from api.protocols import client_requests as chat
from api.protocols.conversations import ConversationItems, DeletedObject, item_list, items_of
from api.protocols.responses import UNSET, ResponseBody, ResponseEncoder, ResponseObject, ResponseRequest, find_answer
from api.streaming import event_stream, line_of
from memory.erasing.message import erase_message
from memory.llm import TextDelta
from memory.turn import turns
from models.keys import CHAT
from schemas import fields
from schemas.fields import INT32_MAX
from schemas.shapes import Input, Open

blueprint = ApiBlueprint("stored responses", "OpenAI's Responses that were stored.", prefix="/v1/responses")


class ResponseQuery(Input):
    class Meta:
        unknown = EXCLUDE  # `include` asks for what no response has

    stream = fields.Boolean(load_default=False, about="Send its events, with all words in one piece.")
    starting_after = fields.number(
        -1, INT32_MAX, load_default=-1, about="With `stream`: the `sequence_number` of the last event that arrived."
    )


@blueprint.get("/<response_id>", query=ResponseQuery, returns=ResponseObject)
@blueprint.doc(responses={200: {"content": {"text/event-stream": {"schema": EVENTS}}}})
def get_response(query: dict[str, Any], response_id: str) -> Response:
    """Read a response that was stored

    Of the fields of its request, those that were not stored have their defaults.
    """
    finished = find_answer(client_caller({}), response_id)
    encoder = ResponseEncoder(finished.started, UNSET)
    if not query["stream"]:
        return jsonify(encoder.encode(finished))
    words = [TextDelta(finished.reply)] if finished.reply else []
    *events, last = filter(None, encoder.events(iter([*words, finished])))
    unseen = [event for event in events if event["sequence_number"] > query["starting_after"]]
    return event_stream(line_of(event, encoder) for event in [*unseen, last])


@blueprint.get("/<response_id>/input_items", returns=ConversationItems)
def list_input_items(response_id: str) -> Response:
    """List the items that a response answers: those after the response before, oldest first"""
    whom = client_caller({})
    find_answer(whom, response_id)
    return item_list(list(items_of(turns.get_input(current_engine(), whom, *chat.turn_named(response_id)))))


@blueprint.delete("/<response_id>", returns=DeletedObject, slow=True)
def delete_response(response_id: str) -> dict[str, Any]:
    """Erase a response and what it answers, for good, as single messages are erased"""
    whom = client_caller({})
    reply_id = find_answer(whom, response_id).reply_message_id
    session_id, message_id = chat.turn_named(response_id)
    answered = turns.get_input(current_engine(), whom, session_id, message_id)
    for id in (reply_id, *(message.id for message in answered)):
        if id is not None:
            erase_message(current_engine(), whom, session_id, id)
    return {"id": response_id, "object": "response", "deleted": True}


class InputTokens(Open):
    object = fields.Constant("response.input_tokens")
    input_tokens = fields.Integer()


@blueprint.post("/input_tokens", body=ResponseRequest, returns=InputTokens, scope=CHAT)
def count_input_tokens(body: ResponseBody) -> dict[str, Any]:
    """Estimate the tokens of a request

    The memory that a prompt shows beside the request is not counted. Nothing is stored.
    """
    return {"object": "response.input_tokens", "input_tokens": chat.estimate_tokens(body.parameters)}
