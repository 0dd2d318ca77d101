"""The OpenAI protocol: its clients get a memory by changing their base URL."""

from __future__ import annotations

from typing import Any

from flask import Response

from api.blueprint import resource, services
from api.client_turns import ERRORS, NO_SERVER, REFUSED, answer, arrived
from memory.access.keys import CHAT
from schemas.openai import Completion, CompletionRequest, CompletionWriter, EmbeddingRequest, Model, ModelList

blueprint = resource("openai", "The OpenAI protocol, with memory.", prefix="/v1")


@blueprint.post("/chat/completions", scope=CHAT, turn=True, errors=ERRORS)
@blueprint.arguments(CompletionRequest)
@blueprint.response(200, Completion)
def complete(body: dict[str, Any]) -> Response:
    """Chat as with OpenAI, and be remembered

    The session is named by X-Session-Id, X-Conversation-Id, X-OpenWebUI-Chat-Id, x-litellm-session-id or
    metadata.session_id; without any of them it is found by the conversation's first messages. The person is named by
    X-OpenWebUI-User-Id, x-litellm-end-user-id, safety_identifier or user. A message that is sent again is stored once.
    The X-Memory-* headers of the reply give the model that answers, the session, the number of recalled messages and
    the saved tokens. If the memory fails, the model gets the request unchanged, and X-Memory-Error says why. `recap`
    names the main model of any server, which also answers if the server does not have the model that is named.
    """
    return answer(arrived(body, body.get("metadata")), lambda _: CompletionWriter())


@blueprint.get("/models", scope=CHAT, slow=True, errors={502: NO_SERVER})
@blueprint.response(200, ModelList)
def list_models() -> Response:
    """List the models of the model server, or the built-in one"""
    return Response(services().model_server.models.listing(), mimetype="application/json")


@blueprint.get(
    "/models/<path:model>",
    scope=CHAT,
    slow=True,
    errors={404: "The model server does not know the model.", 502: NO_SERVER},
)
@blueprint.response(200, Model)
def get_model(model: str) -> Response:
    """Read one model of the model server, or the built-in one"""
    return Response(services().model_server.models.entry(model), mimetype="application/json")


@blueprint.post(
    "/embeddings",
    scope=CHAT,
    slow=True,
    errors={400: REFUSED, 501: "The built-in model makes no embeddings.", 502: NO_SERVER},
)
@blueprint.arguments(EmbeddingRequest)
@blueprint.response(200)
def embed(body: dict[str, Any]) -> Response:
    """Embed texts with the model server

    The request is passed on unchanged. Nothing is stored.
    """
    return Response(services().model_server.models.embeddings(body), mimetype="application/json")
