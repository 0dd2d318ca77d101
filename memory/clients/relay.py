"""What is passed on to the model server and back without a word of Recap's: its models, and embeddings."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from memory.errors import RecapError
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
            model = {"id": self._builtin, "object": "model", "created": 0, "owned_by": "recap"}
            return json.dumps({"object": "list", "data": [model]}).encode()
        transport = self._transport
        return self._passed_on(lambda failures, deadline: transport.get("/models", failures, deadline))

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

    def _passed_on(self, send: Callable[[Failures, float], Opened]) -> bytes:
        assert self._transport is not None
        failures = self._transport.failures("of the server", "OPENAI_MODEL")
        try:
            with contextlib.closing(send(failures, time.monotonic() + self._transport.timeout)) as answer:
                return b"".join(answer)
        except Refused as refusal:
            raise failures.refused(refusal.status, refusal.headers, refusal.body) from None
