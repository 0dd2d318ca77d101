"""OpenAI's Chat Completions, and its models and embeddings.

Only the fields that Recap itself reads are checked. Everything else goes to the model unchanged.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from flask import Response, jsonify, request
from marshmallow import ValidationError, validates

from api.blueprint import ApiBlueprint, current_engine
from api.errors import RENDERERS, Body
from api.identity import client_caller
from api.protocols import client_requests as chat
from memory import tokens
from memory.errors import ModelError, RecapError, Upstream
from memory.llm import RawChunk, Waiting
from memory.turn.request import TurnEvent, TurnFinished
from models.keys import CHAT
from models.owners import Usage
from schemas import fields
from schemas.chat import Completion
from schemas.fields import PARTS_MAX
from schemas.shapes import Input, Open

MESSAGES_MAX = 10_000  # more than any model reads
UINT32_MAX = 2**32 - 1  # seconds, until the year 2106
STREAM = fields.Boolean(load_default=False, allow_none=True, truthy={True}, falsy={False})


class OpenRequest(Open, Input):
    """Request of which only the fields that Recap reads are checked."""

    long = True


class CompletionRequest(OpenRequest):
    """Chat completion.  Parameters that are not listed are passed on unchanged.

    `messages` are the whole conversation, a part of it, or only the newest message.
    """

    messages = fields.Items(fields.Dict(), MESSAGES_MAX, least=1, required=True)
    model = fields.String(
        allow_none=True, about="Passed on. Without it, and with the built-in model, the main model answers."
    )
    stream = STREAM
    user = fields.Raw(allow_none=True, about="The person, unless a header or `safety_identifier` names one.")
    safety_identifier = fields.Raw(allow_none=True, about="The person, unless a header names one.")
    user_id = fields.Raw(allow_none=True, about="The person, unless another place names one. Not passed on.")
    session_id = fields.Raw(allow_none=True, about="The session, unless a header names one. Not passed on.")
    metadata = fields.Raw(allow_none=True, about="Its `user_id` and `session_id` count where the body has none.")
    n = fields.Raw(allow_none=True, about="Of several choices, the first is stored.")

    @validates("messages")
    def _few_parts(self, messages: list[dict[str, Any]], data_key: str) -> None:
        lists = (message.get(name) for message in messages for name in ("content", "tool_calls"))
        if any(isinstance(parts, list) and len(parts) > PARTS_MAX for parts in lists):
            raise ValidationError(f"One of them has more than {PARTS_MAX:,} parts or calls of tools.")


class CompletionEncoder:
    """Pass on the model server's own answer with every field."""

    named_events = False

    def encode(self, end: TurnFinished, before: Sequence[TurnEvent] = ()) -> Mapping[str, Any]:
        (completion,) = (part.data for part in before if isinstance(part, RawChunk))
        return {**completion, **chat.written(end)}

    def events(self, turn: Iterator[TurnEvent]) -> Iterator[Mapping[str, Any] | None]:
        last: list[Mapping[str, Any]] = []  # what was written is told in the last chunk
        for part in turn:
            if isinstance(part, RawChunk):
                choices = part.data.get("choices")
                is_end = not choices or any(choice.get("finish_reason") for choice in choices)
                if last or (is_end and chat.has_memory_tools()):
                    last.append(part.data)
                else:
                    yield part.data
            elif isinstance(part, TurnFinished) and last:
                yield from last[:-1]
                yield {**last[-1], **chat.written(part)}
            elif isinstance(part, Waiting):
                yield None

    def error_event(self, error: RecapError) -> Mapping[str, Any]:
        return openai_error(error)[0]


class Model(Open):
    """Model, as the model server describes it."""


class ModelList(Open):
    data = fields.List(fields.Nested(Model))


blueprint = ApiBlueprint("openai", "The OpenAI protocol, with memory.", prefix="/v1")


@blueprint.post("/chat/completions", body=CompletionRequest, returns=Completion, turn=True, errors=chat.ERRORS)
def complete(body: dict[str, Any]) -> Response:
    """Chat as with OpenAI, and be remembered

    The session is named by X-Session-Id, X-Conversation-Id, X-OpenWebUI-Chat-Id, x-litellm-session-id, session_id,
    metadata.session_id or call.id; without any of them it is found by the conversation's first messages. The person is
    named by X-OpenWebUI-User-Id, x-litellm-end-user-id, safety_identifier, user, user_id, metadata.user_id or
    customer.number. A message that is sent again is stored once.
    The X-Memory-* headers of the reply give the model that answers, the session, the number of recalled messages and
    the saved tokens. With `X-Memory-Tools: on` the model also gets tools of the memory, which Recap runs; if it wrote
    facts with them, the answer's `memory` lists these. If the memory fails, the model gets the request unchanged, and
    X-Memory-Error says why. `recap` names the main model of any server, which also answers if the server does not have
    the model that is named.
    """
    return chat.answer(chat.turn_request(body, body.get("metadata")), lambda _: CompletionEncoder())


@blueprint.get("/models", returns=ModelList, scope=CHAT, slow=True, errors={502: chat.NO_SERVER})
def list_served_models() -> Response:
    """List the models: `recap`, which is the main model, and those of the model server

    A request with the header `anthropic-version` gets them in Anthropic's form, all on one page; so it does one model,
    and an error.
    """
    models = current_engine().model_server.models.listing()
    if not is_anthropic():
        return jsonify(object="list", data=models)
    models = list(map(_anthropic_model, models))
    return jsonify(data=models, has_more=False, first_id=models[0]["id"], last_id=models[-1]["id"])


@blueprint.get(
    "/models/<path:model>",
    returns=Model,
    scope=CHAT,
    slow=True,
    errors={404: "The model server does not know the model.", 502: chat.NO_SERVER},
)
def get_served_model(model: str) -> Response:
    """Read one model of the model server, or the built-in one"""
    entry = current_engine().model_server.models.entry(model)
    if not is_anthropic():
        return Response(entry, mimetype="application/json")
    return jsonify(_anthropic_model(json.loads(entry)))


def is_anthropic() -> bool:
    """Return whether the client reads Anthropic's protocol, which has its models at the same addresses."""
    return "anthropic-version" in request.headers


def _anthropic_model(model: Mapping[str, Any]) -> dict[str, Any]:
    seconds = model.get("created")  # some model servers give none, a text or milliseconds
    if not isinstance(seconds, int | float) or not 0 <= seconds <= UINT32_MAX:
        seconds = 0
    created = datetime.fromtimestamp(seconds, UTC)
    return {"type": "model", "id": model["id"], "display_name": model["id"], "created_at": created.isoformat()}


class PassedOn(OpenRequest):
    """Request that goes to the model server as it is."""

    model = fields.String(allow_none=True, about="Passed on.")


def _passed_on(path: str) -> Any:
    """Return the decorator of a call whose request goes to the model server as it is."""
    return blueprint.post(
        path,
        body=PassedOn,
        scope=CHAT,
        slow=True,
        errors={400: chat.REFUSED, 501: "The built-in model does not do this.", 502: chat.NO_SERVER},
    )


@_passed_on("/embeddings")
def embed(body: dict[str, Any]) -> Response:
    """Embed texts with the model server

    The request is passed on unchanged. Nothing is stored.
    """
    return Response(current_engine().model_server.models.ask("/embeddings", body), mimetype="application/json")


@_passed_on("/completions")
def complete_text(body: dict[str, Any]) -> Response:
    """Complete a text with the model server, as programs do to complete code

    The request is passed on, with the main model in the place of `recap`, and answered without memory. Nothing is
    stored. A stream is sent in one piece.
    """
    engine = current_engine()
    owner = client_caller(body)
    engine.budgets.check_caller(owner, None)
    models = engine.model_server.models
    completed = models.ask("/completions", {**body, "model": models.choose(body.get("model")).name})
    prompt = tokens.estimate(str(body.get("prompt")))
    text = tokens.estimate(completed.decode("utf-8", "replace"))
    engine.budgets.add_caller_usage_now(owner, None, [Usage(prompt, text, estimated=True)])
    return Response(completed, mimetype="text/event-stream" if body.get("stream") else "application/json")


@_passed_on("/moderations")
def moderate(body: dict[str, Any]) -> Response:
    """Classify texts with the model server

    The request is passed on unchanged. Nothing is stored.
    """
    return Response(current_engine().model_server.models.ask("/moderations", body), mimetype="application/json")


def openai_error(error: RecapError) -> tuple[Body, int]:
    """Return an error in OpenAI's shape, and its status.

    OpenAI's shape is close to ours: `param` and `code` are always there, `type` has OpenAI's words, and a wrong field
    is answered with 400.  What the model server said is passed on unchanged.
    """
    upstream = error.upstream if isinstance(error, ModelError) else None
    if upstream is None or not 400 <= upstream.status < 600:
        status = 400 if error.status == 422 else error.status
        code = "invalid_api_key" if status == 401 else error.code
        upstream = Upstream(status, error.message, param=error.param, code=code)
    usual = "server_error" if upstream.status >= 500 else "invalid_request_error"
    kind = upstream.type or ("rate_limit_error" if upstream.status == 429 else usual)
    detail = {"message": upstream.message, "type": kind, "code": upstream.code, "param": upstream.param}
    return {"error": detail}, upstream.status


RENDERERS["/v1/"] = openai_error
