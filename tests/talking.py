"""What the tests of the turn share: asking, reading what was sent to the models, and reading what was stored."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.model_server import Delay, ModelServer
from tests.resources import good, read_all

Prompt = list[dict[str, str]]


def at(server: ModelServer, **changes: Any) -> dict[str, Any]:
    """Return settings for `make_app` of an application that answers with the scripted server's models."""
    return {
        "openai_base_url": server.url,
        "openai_api_key": "test-key",
        "openai_model": "main-model",
        "openai_summary_model": "mini-model",
        "model_timeout": 5.0,
        **changes,
    }


def ask(client: FlaskClient, message: Any, *, key: str | None = None, **more: Any) -> TestResponse:
    """Send POST /api/chat, whatever comes of it."""
    headers = {"Idempotency-Key": key} if key is not None else {}
    return client.post("/api/chat", json={"message": message, **more}, headers=headers)


def chat(client: FlaskClient, message: Any, **more: Any) -> dict[str, Any]:
    return good(ask(client, message, **more))


def stream(client: FlaskClient, message: str, **more: Any) -> list[Any]:
    with ask(client, message, stream=True, **more) as response:
        assert response.status_code == 200, response.text
        assert response.mimetype == "text/event-stream"
        return events(response.text)


def events(text: str) -> list[Any]:
    """Return the JSON of server-sent events, and "[DONE]" as it is; comments are left out."""
    out: list[Any] = []
    for part in text.split("\n\n")[:-1]:
        if part.startswith(":"):
            continue
        assert part.startswith("data: ") and "\n" not in part
        data = part.removeprefix("data: ")
        out.append(data if data == "[DONE]" else json.loads(data))
    return out


def streamed_text(parts: list[Any]) -> str:
    return "".join(part["choices"][0]["delta"].get("content", "") for part in parts if "choices" in part)


def failed(response: TestResponse, status: int, code: str) -> dict[str, Any]:
    """Return the error of a response that has to be one, after checking its shape."""
    assert response.status_code == status, response.text
    assert response.is_json and set(response.json or {}) == {"error"}
    error: dict[str, Any] = response.json["error"]
    assert {"message", "type", "code"} <= set(error) <= {"message", "type", "code", "param", "fields", "wrong"}
    assert error["code"] == code
    assert error["type"] and error["message"].strip().endswith((".", "?"))
    assert response.headers["X-Request-ID"]
    return error


def prompts(server: ModelServer, model: str = "main") -> list[Prompt]:
    """Return the messages of every prompt that the model got."""
    return [request.body["messages"] for request in list(server.requests) if request.model == model]


def question(prompt: Prompt) -> str:
    """Return the last message without the memory block before it."""
    block, end, text = prompt[-1]["content"].rpartition("</memory>\n\n")
    assert end, block
    return text


def stored(client: FlaskClient, session_id: str, **query: Any) -> list[dict[str, Any]]:
    return read_all(client, f"/api/sessions/{session_id}/messages", limit=100, **query)


def said(client: FlaskClient, session_id: str, **query: Any) -> list[tuple[str, str]]:
    """Return all messages of a session as role and words."""
    return [(message["role"], message["content"]) for message in stored(client, session_id, **query)]


def sessions(client: FlaskClient) -> list[dict[str, Any]]:
    return read_all(client, "/api/sessions")


def summary(client: FlaskClient, session_id: str) -> dict[str, Any]:
    return good(client.get(f"/api/sessions/{session_id}/summary"))


def jobs(client: FlaskClient, kind: str = "summary") -> list[dict[str, Any]]:
    """Return the jobs of a kind that are not done."""
    return [job for job in client.get("/api/jobs").json["items"] if job["kind"] == kind]


@contextmanager
def meanwhile(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """Do `work` in a thread while the block runs; what it returned is in the list once the block is over.

    What it raises is raised at the end of the block.
    """
    result: list[Any] = []
    problem: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised below, in the test's own thread
            problem.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield result
    thread.join(20.0)
    assert not thread.is_alive(), "the work did not end"
    if problem:
        raise problem[0]


@contextmanager
def answering(server: ModelServer, app: Flask, message: str, **more: Any) -> Iterator[threading.Event]:
    """Keep a turn's model at work all through the block; set the event to let it end sooner."""
    release = threading.Event()
    server.main.queue(Delay(release, f"Answer to {message}"))
    came = len(server.requests)
    with meanwhile(lambda: chat(app.test_client(), message, **more)):
        server.wait_for_requests(came + 1)
        try:
            yield release
        finally:
            release.set()
