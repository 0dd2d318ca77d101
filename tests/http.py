"""HTTP in tests: calls of the API, what an answer has to be, and two calls at once."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.model_server import Delay, ModelServer

Body = dict[str, Any]


def said(content: str, role: str = "user", **more: Any) -> Body:
    """A message to append."""
    return {"role": role, "content": content, **more}


def append(client: FlaskClient, session: str, messages: Sequence[Body], **more: Any) -> Body:
    """Append messages; the answer's body, which has to be a good one."""
    return good(client.post(f"/api/sessions/{session}/messages", json={"messages": messages, **more}))


def good(answer: TestResponse) -> Body:
    """The body of an answer that went well."""
    assert answer.status_code in (200, 201, 202), answer.text[:500]
    body: Body = answer.json
    return body


def error(answer: TestResponse, status: int) -> Body:
    """The error of an answer that failed with `status`."""
    assert answer.status_code == status, answer.text[:500]
    found: Body = answer.json["error"]
    return found


def read_all(client: FlaskClient, address: str, **query: Any) -> list[Any]:
    """All items of a listing, page by page."""
    items: list[Any] = []
    cursor: str | None = None
    while True:
        page = good(client.get(address, query_string={**query, **({"cursor": cursor} if cursor else {})}))
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


def find(client: FlaskClient, q: str, **query: Any) -> list[Body]:
    """What a search finds, the best first."""
    results: list[Body] = good(client.get("/api/search", query_string={"q": q, **query}))["results"]
    return results


def listings(client: FlaskClient) -> list[str]:
    """The addresses of every listing that comes in pages."""
    paths = good(client.get("/openapi.json"))["paths"]
    return [
        path
        for path, calls in paths.items()
        if any(one["name"] == "cursor" for one in calls.get("get", {}).get("parameters", []))
    ]


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


def stored(client: FlaskClient, session_id: str, **query: Any) -> list[dict[str, Any]]:
    return read_all(client, f"/api/sessions/{session_id}/messages", limit=100, **query)


def history(client: FlaskClient, session_id: str, **query: Any) -> list[tuple[str, str]]:
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
