"""The OpenAI protocol: its clients get a memory by changing their base URL."""

from __future__ import annotations

from typing import Any

from flask import Response, jsonify, request

from api.blueprint import DAY_SPENT, caller, header, resource, retry_key, services
from api.errors import openai_error
from api.streaming import event_stream
from memory.access.keys import CHAT
from memory.llm import Chunk
from memory.turn.values import TurnFinished, TurnStarted
from schemas.openai_compat import Completion, CompletionRequest, EmbeddingRequest, Model, ModelList, turn_of

blueprint = resource("openai", "The OpenAI protocol, with memory.", prefix="/v1")
REFUSED = "The model server refused the request. Its own status and error are passed on."
NO_SERVER = "The model server could not be reached, or its answer was not valid."


@blueprint.post(
    "/chat/completions",
    scope=CHAT,
    turn=True,
    errors={
        400: REFUSED,
        404: "The session or the person belongs to someone else, or the model server does not know the model.",
        409: "Another request had this Idempotency-Key.",
        429: f"{DAY_SPENT} Or: {REFUSED}",
        502: NO_SERVER,
        504: "The model took longer than MODEL_TIMEOUT.",
    },
)
@blueprint.arguments(CompletionRequest)
@blueprint.response(200, Completion)
def complete(body: dict[str, Any]) -> Response:
    """Chat as with OpenAI, and be remembered

    The session is named by X-Session-Id, X-Conversation-Id, X-OpenWebUI-Chat-Id, x-litellm-session-id or
    metadata.session_id; without any of them it is found by the conversation's first messages. The person is named by
    X-OpenWebUI-User-Id, x-litellm-end-user-id, safety_identifier or user. A message that is sent again is stored once.
    The X-Memory-* headers of the reply give the session, the number of recalled messages and the saved tokens. If the
    memory fails, the model gets the request unchanged, and X-Memory-Error says why.
    """
    user_id, asked = turn_of(body, header, request.get_data(), retry_key())
    events = services().pipeline.turn(caller(user_id), asked)
    started = next(events)  # a failure before the first word still has its own status
    assert isinstance(started, TurnStarted)
    if asked.stream:
        chunks = (part.data for part in events if isinstance(part, Chunk))
        return _with_memory(event_stream(chunks, events, lambda error: openai_error(error)[0]), started)
    *answer, end = events
    assert isinstance(end, TurnFinished)
    (completion,) = [part.data for part in answer if isinstance(part, Chunk)]
    return _with_memory(jsonify(completion), end.started)


@blueprint.get("/models", scope=CHAT, slow=True, errors={502: NO_SERVER})
@blueprint.response(200, ModelList)
def list_models() -> Response:
    """List the models of the model server, or the built-in one"""
    return Response(services().relay.list(), mimetype="application/json")


@blueprint.get(
    "/models/<path:model>",
    scope=CHAT,
    slow=True,
    errors={404: "The model server does not know the model.", 502: NO_SERVER},
)
@blueprint.response(200, Model)
def get_model(model: str) -> Response:
    """Read one model of the model server, or the built-in one"""
    return Response(services().relay.model(model), mimetype="application/json")


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
    return Response(services().relay.embeddings(body), mimetype="application/json")


def _with_memory(response: Response, started: TurnStarted) -> Response:
    """Tell about the memory in headers, so that the answer itself stays the model's."""
    recalled = sum(len(excerpt.messages) for excerpt in started.memory.recalled.excerpts)
    said = {
        "X-Memory-Session-Id": started.session_id,
        "X-Memory-Recalled": str(recalled),
        "X-Memory-Tokens-Saved": str(started.saved_tokens),
        "X-Memory-Error": started.problem,
    }
    for name, value in said.items():
        if value is not None:
            response.headers[name] = value.encode("utf-8").decode("latin-1")
    return response
