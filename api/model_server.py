"""Models there are to choose from, and the model server."""

from typing import Any

from api.blueprint import ApiBlueprint, current_engine
from api.permissions import whole_server
from models.keys import ADMIN
from models.model_server import ServerDraft
from schemas import model_server as schema

blueprint = ApiBlueprint("models", "The models that answer.")


@blueprint.get("/models", returns=schema.ModelNames, slow=True)
def list_models() -> dict[str, Any]:
    """List the models that a chat can be answered by

    The model server's list is kept for a minute, without those whose names tell that they answer no chat, as embedding
    models; the setting OPENAI_MODELS replaces it. A server that lists no models offers only its main model, and so does
    the built-in model.
    """
    models = current_engine().model_server.models
    return {"main": models.main.name, "items": models.names()}


@blueprint.get("/model-server", returns=schema.ModelServer, scope=ADMIN)
def get_model_server() -> Any:
    """Read which model server is in use

    It serves all tenants. Where there are keys of more than one, only the operator sets it, in the environment.
    """
    whole_server()
    return current_engine().model_server.get()


@blueprint.put(
    "/model-server",
    body=schema.ModelServerDraft,
    returns=schema.ModelServer,
    errors={409: "The environment names the model server, or there is no ENCRYPTION_KEY."},
)
def put_model_server(draft: ServerDraft) -> Any:
    """Store the model server

    Its key is stored encrypted. Every process answers with it after at most two seconds.
    """
    whole_server()
    return current_engine().model_server.put(draft)


@blueprint.delete("/model-server", returns=schema.ModelServer)
def delete_model_server() -> Any:
    """Forget the stored model server and its key"""
    whole_server()
    return current_engine().model_server.delete()


@blueprint.post(
    "/model-server/test",
    body=schema.ModelServerDraft,
    returns=schema.ModelTried,
    slow=True,
    errors={
        502: "The model server failed, or could not be reached; the message says what to check.",
        504: "The model took too long.",
    },
)
def test_model_server(draft: ServerDraft) -> Any:
    """Ask the models of a model server one short question

    The answer tells of each model whether it works, what its server does not take, and whether it can read prompts of
    CONTEXT_TOKENS. Nothing is stored, and the calls count for nobody's daily tokens.
    """
    whole_server()
    checks = current_engine().model_server.try_out(draft)
    main = checks[0]
    return {"model": main.model, "reply": main.reply, "seconds": main.seconds, "checks": checks}


@blueprint.post(
    "/model-server/models",
    body=schema.ModelServerDraft,
    returns=schema.ModelsListed,
    slow=True,
    errors={502: "The model server failed, or could not be reached; the message says what to check."},
)
def list_models_of_server(draft: ServerDraft) -> dict[str, Any]:
    """List the models of a model server, to choose from before it is stored

    Those whose names tell that they answer no chat are left out. Nothing is stored.
    """
    whole_server()
    return {"items": current_engine().model_server.list_models(draft)}
