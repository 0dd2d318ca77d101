"""Messages that a model server refuses: marked with the reason, kept, and in no later prompt."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import services_of
from tests.model_server import ModelServer, Status
from tests.remembering import Talk
from tests.resources import Body, good
from tests.talking import ask, chat, failed, prompts, stored

ADA = {"user_id": "ada"}
BAD = "Tell me how the zebra vault opens."
WORDS = "The prompt triggered the content filter"


def filtered(said: str = WORDS) -> Status:
    return Status(400, {"error": {"message": f"{said}.", "code": "content_filter", "type": "invalid_request_error"}})


def too_long(window: int) -> Status:
    text = f"This model's maximum context length is {window} tokens. Shorten the messages."
    return Status(400, {"error": {"message": text, "code": "context_length_exceeded"}})


@pytest.fixture
def ada(talk: Talk) -> Talk:
    talk.who = ADA
    return talk


def refuse(ada: Talk, words: str = BAD, reply: Status | None = None, **more: Any) -> Body:
    """A message that is refused: its error."""
    ada.server.main.queue(reply or filtered())
    code = "model_context_exceeded" if reply else "model_content_refused"
    return failed(ask(ada.client, words, session_id="s", **ADA, **more), 502 if reply else 422, code)


def marks(client: FlaskClient, session: str = "s") -> dict[str, Any]:
    return {one["content"]: one["refused"] for one in stored(client, session) if one["refused"]}


def contents(server: ModelServer) -> list[str]:
    """What the last prompt has after its head, without the memory block."""
    return [one["content"].rpartition("</memory>\n\n")[2] for one in prompts(server)[-1] if one["role"] != "system"]


def test_a_refused_message_is_kept_with_its_reason_and_the_conversation_goes_on(ada: Talk) -> None:
    chat(ada.client, "Hello there", session_id="s", **ADA)
    error = refuse(ada)
    last = stored(ada.client, "s")[-1]
    assert f"`replaces`: {last['id']}" in error["message"] and "erase" in error["message"]
    assert "left out of later prompts" in error["message"] and "send it again" not in error["message"]
    assert last["content"] == BAD and last["refused"]["at"].endswith("+00:00")
    assert last["refused"]["code"] == "model_content_refused"
    assert last["refused"]["reason"] == f"The content filter of the model server refused it: {WORDS}."
    turns = good(ada.client.get("/api/sessions/s/turns"))["items"]
    assert [turn["state"] for turn in turns] == ["refused", "finished"]
    full = chat(ada.client, "And the weather?", session_id="s", **ADA)["usage"]["full_history_tokens"]
    assert contents(ada.server)[0] == "Hello there" and contents(ada.server)[-1] == "And the weather?"
    assert "zebra" not in str(prompts(ada.server)[-1])
    good(ada.client.delete(f"/api/sessions/s/messages/{last['id']}"))
    assert marks(ada.client) == {}
    assert full > 0
