"""The models there are to choose from."""

from __future__ import annotations

from typing import Any

from api.blueprint import resource, services
from schemas.models import ModelNames

blueprint = resource("models", "The models that answer.")


@blueprint.get("/models", slow=True)
@blueprint.response(200, ModelNames)
def list_models() -> dict[str, Any]:
    """List the models that a chat can be answered by

    They are what the model server lists, kept for a minute, or those of the setting OPENAI_MODELS. A server that lists
    none offers only its main model, and so does the built-in model.
    """
    models = services().models
    return {"main": models.main.name, "items": models.names()}
