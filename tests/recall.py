"""What the tests of recall share: an application whose clock stands still, and what a turn recalled."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from flask.testing import FlaskClient

from memory.engine import Engine
from memory.quoting import CHAT_BLOCK
from tests.conftest import MakeApp
from tests.model_server import ModelServer, at, prompts

NOW = datetime(2024, 5, 15, 12, 0, tzinfo=UTC)
"""A Wednesday, at noon in London's winter and three in the afternoon in Tallinn."""

BARE = '<memory now="2024-05-15 12:00 UTC, Wednesday">\n</memory>\n\n'
"""What stands before a message for which nothing is recalled."""


def talker(
    make_app: MakeApp, server: ModelServer, monkeypatch: pytest.MonkeyPatch, now: datetime = NOW, **changes: Any
) -> FlaskClient:
    """A client of an application for which it is always `now`; the scripted server answers for its models."""
    monkeypatch.setattr("app.Engine", partial(Engine, now=lambda: now))
    return make_app(**at(server, **changes)).test_client()


def recalled(answer: dict[str, Any]) -> list[list[str]]:
    """The words of each excerpt, as they were said, the best excerpt first."""
    return [[message["content"] for message in excerpt["messages"]] for excerpt in answer["memory"]["excerpts"]]


def words(answer: dict[str, Any]) -> set[str]:
    """All words recalled, whatever the excerpt."""
    return {content for excerpt in recalled(answer) for content in excerpt}


def reason(answer: dict[str, Any]) -> str:
    text: str = answer["memory"]["recall"]["reason"]
    return text


def last(server: ModelServer) -> str:
    """The last message of the latest prompt: what was recalled, then what was asked."""
    return prompts(server)[-1][-1]["content"]


def blocks(server: ModelServer) -> list[str]:
    """The excerpts of the latest prompt, as they are quoted."""
    return [block.group() for block in CHAT_BLOCK.finditer(last(server))]
