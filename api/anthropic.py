"""The Anthropic protocol: its clients get a memory by changing their base URL."""

from __future__ import annotations

from flask import Response

from api import door
from api.blueprint import resource
from api.client_turns import ERRORS, answer, arrived
from memory.access.keys import CHAT
from schemas.anthropic import AnthropicMessage, MessagesRequest, MessageWriter
from schemas.errors import AnthropicError
from schemas.translation import ChatBody

blueprint = resource("anthropic", "The Anthropic protocol, with memory.", prefix="/v1")


@blueprint.post("/messages", scope=CHAT, turn=True, errors=ERRORS, error_schema=AnthropicError)
@blueprint.arguments(MessagesRequest)
@blueprint.response(200, AnthropicMessage)
def create_message(body: ChatBody) -> Response:
    """Chat as with Anthropic, and be remembered

    The model server is asked for a chat completion; text, images, tools and their results are translated. The session
    and the person are named as for chat completions, or by `metadata.session_id` and `metadata.user_id`. The key may
    also be sent as x-api-key. Thinking and cache_control are left out. Documents, files and tools that run at Anthropic
    are refused.
    """
    return answer(arrived(body.parameters, body.metadata), MessageWriter)


@blueprint.after_request
def _name_request(response: Response) -> Response:
    """Anthropic's packages read the request's id from this header."""
    response.headers["request-id"] = door.request_id()
    return response
