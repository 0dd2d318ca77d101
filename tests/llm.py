"""What the tests of the OpenAI-compatible client share: a server, models at it, requests, and pieces of the wire."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from config import Settings
from memory.errors import ModelError
from memory.llm import ChatMessage, ModelRequest, complete
from memory.llm.openai import ProviderClient
from memory.llm.openai_model import OpenAIModel
from tests.model_server import ModelServer

both = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])

Make = Callable[..., OpenAIModel]
KEY = "sk-test-0123456789abcdef"
SCHEMA = {"type": "object", "properties": {"topic": {"type": "string"}}}


@contextmanager
def connected(
    server: ModelServer,
    name: str = "gpt-4o",
    setting: str = "OPENAI_MODEL",
    clock: Callable[[], float] = time.monotonic,
    **settings: Any,
) -> Iterator[OpenAIModel]:
    """Make a model at `server` whose retries come at once."""
    settings = {
        "openai_base_url": server.url,
        "openai_api_key": KEY,
        "model_timeout": 20.0,
        "prompt_cache_key": "on",
    } | settings
    named = Settings(**settings)
    with closing(ProviderClient(named.servers.main, named.model_timeout)) as provider:
        yield OpenAIModel(provider, name, setting, backoff=0.005, clock=clock)


def ask(stream: bool = False, schema: Any = None, content: str = "Hello, how are you?") -> ModelRequest:
    return ModelRequest((ChatMessage("system", "Be brief."), ChatMessage("user", content)), schema, stream)


def failure(model: OpenAIModel, request: ModelRequest) -> ModelError:
    with pytest.raises(ModelError) as caught:
        complete(model, request)
    return caught.value


def chunk(delta: Any, finish: str | None = None, **more: Any) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}).encode()


def data(*payloads: bytes) -> bytes:
    """Return the payloads as server-sent events."""
    return b"".join(b"data: " + payload + b"\n\n" for payload in payloads)
