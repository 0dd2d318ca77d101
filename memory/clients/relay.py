"""Passes calls on to the model server unchanged: its list of models, and embeddings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from memory.errors import NotFound, RecapError
from memory.llm.model_server import ModelServer

if TYPE_CHECKING:
    from memory.llm.client import Endpoint


@dataclass(frozen=True)
class Relay:
    """Passes calls on to the model server in use."""

    model_server: ModelServer

    def list(self) -> bytes:
        """The list of models, as the server wrote it unless the operator lists others.  Raises ModelError."""
        models = self.model_server.models
        if models.endpoint is None or models.listed:
            return json.dumps({"object": "list", "data": list(map(_model, models.names()))}).encode()
        return _fetched(models.endpoint, "/models")

    def model(self, name: str) -> bytes:
        """One model, as the server wrote it.  Raises ModelError, and NotFound for a name that no model has."""
        models = self.model_server.models
        if models.endpoint is None and name == models.main.name:
            return json.dumps(_model(name)).encode()
        if models.endpoint is None or name in (".", ".."):  # dots would lead elsewhere on the server
            raise NotFound("model_not_found", f"There is no model {name!r}.", param="model")
        return _fetched(models.endpoint, f"/models/{quote(name, safe='')}")

    def embeddings(self, body: Mapping[str, Any]) -> bytes:
        """Embeddings, as the server wrote them.  Raises ModelError, and RecapError with the built-in model, whose word
        vectors do not have the size that a client expects of a model."""
        endpoint = self.model_server.models.endpoint
        if endpoint is None:
            raise RecapError(
                "embeddings_unavailable",
                "Recap's built-in model makes no embeddings for clients. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
                "local server, and they are passed on to it.",
                status=501,
            )
        return _fetched(endpoint, "/embeddings", body)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "recap"}


def _fetched(endpoint: Endpoint, path: str, body: Mapping[str, Any] | None = None) -> bytes:
    return endpoint.fetch(path, body, endpoint.failures("of the server", "OPENAI_MODEL"))
