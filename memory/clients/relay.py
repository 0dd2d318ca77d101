"""What is passed on to the model server and back without a word of Recap's: its models, and embeddings."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from memory.errors import NotFound, RecapError
from memory.llm.failures import Failures
from memory.llm.transport import Opened, Refused, Transport


class Relay:
    """Passes calls on to the server of `transport`; None stands for the built-in model, called `builtin`."""

    def __init__(self, transport: Transport | None, builtin: str) -> None:
        self._transport = transport
        self._builtin = builtin

    def models(self) -> bytes:
        """The list of models, as the server wrote it.  Raises ModelError."""
        if self._transport is None:
            return json.dumps({"object": "list", "data": [self._builtin_model]}).encode()
        return self._read("/models")

    def model(self, name: str) -> bytes:
        """One model, as the server wrote it.  Raises ModelError, and NotFound for one that can't be."""
        if self._transport is None and name == self._builtin:
            return json.dumps(self._builtin_model).encode()
        if self._transport is None or name in (".", ".."):  # an address with dots leads elsewhere on the server
            raise NotFound("model_not_found", f"There is no model {name!r}.", param="model")
        return self._read(f"/models/{quote(name, safe='')}")

    def embeddings(self, body: Mapping[str, Any]) -> bytes:
        """Embeddings, as the server wrote them.  Raises ModelError, and RecapError with the built-in model: the word
        vectors it searches with are no stand-in for those of a model that a client knows the size of."""
        if self._transport is None:
            raise RecapError(
                "embeddings_unavailable",
                "Recap's built-in model makes no embeddings for clients. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
                "local server, and they are passed on to it.",
                status=501,
            )
        transport = self._transport
        return self._passed_on(lambda failures, deadline: transport.post("/embeddings", body, failures, deadline))

    @property
    def _builtin_model(self) -> dict[str, Any]:
        return {"id": self._builtin, "object": "model", "created": 0, "owned_by": "recap"}

    def _read(self, path: str) -> bytes:
        transport = self._transport
        assert transport is not None
        return self._passed_on(lambda failures, deadline: transport.get(path, failures, deadline))

    def _passed_on(self, send: Callable[[Failures, float], Opened]) -> bytes:
        assert self._transport is not None
        failures = self._transport.failures("of the server", "OPENAI_MODEL")
        try:
            with contextlib.closing(send(failures, time.monotonic() + self._transport.timeout)) as answer:
                return b"".join(answer)
        except Refused as refusal:
            raise failures.refused(refusal.status, refusal.headers, refusal.body) from None
