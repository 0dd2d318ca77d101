"""What the tests of the OpenAI protocol share: asking as a client does, and reading what it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.model_server import ModelServer
from tests.talking import events

Message = dict[str, Any]

ADDRESS = "/v1/chat/completions"


def user(content: Any, **more: Any) -> Message:
    return {"role": "user", "content": content, **more}


def assistant(content: Any, **more: Any) -> Message:
    return {"role": "assistant", "content": content, **more}


def result(call: Message, content: str) -> Message:
    """What came of a call of a tool."""
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def talk(*texts: str) -> list[Message]:
    """Messages by turns, the person first."""
    return [assistant(text) if place % 2 else user(text) for place, text in enumerate(texts)]


def post(
    client: FlaskClient, messages: Sequence[Message], session: str | None = "s", headers: Any = None, **more: Any
) -> TestResponse:
    """POST /v1/chat/completions, whatever comes of it."""
    named = {"X-Session-Id": session} if session is not None else {}
    body = {"model": "gpt-9", "messages": list(messages), **more}
    return client.post(ADDRESS, json=body, headers={**named, **(headers or {})})


def answered(client: FlaskClient, messages: Sequence[Message], session: str | None = "s", **more: Any) -> Message:
    """The message of a plain answer."""
    response = post(client, messages, session, **more)
    assert response.status_code == 200, response.text
    (choice,) = response.json["choices"]
    message: Message = choice["message"]
    return message


def complete(client: FlaskClient, messages: Sequence[Message], session: str | None = "s", **more: Any) -> str:
    """The text of a plain answer."""
    return str(answered(client, messages, session, **more)["content"])


def stream(client: FlaskClient, messages: Sequence[Message], session: str | None = "s", **more: Any) -> list[Any]:
    """The events of a streamed answer."""
    with post(client, messages, session, stream=True, **more) as response:
        assert response.status_code == 200, response.text
        assert response.mimetype == "text/event-stream"
        return events(response.text)


def failed(response: TestResponse, status: int) -> dict[str, Any]:
    """The error of a response that has to be one, in OpenAI's envelope."""
    assert response.status_code == status, response.text
    assert response.is_json and set(response.json or {}) == {"error"}
    error: dict[str, Any] = response.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def sent(server: ModelServer) -> list[dict[str, Any]]:
    """The bodies of all requests that the main model got."""
    return [request.body for request in list(server.requests) if request.model == "main"]


class Person:
    """A client that keeps the conversation, as a chat window does: asks, and shows what it is answered."""

    def __init__(self, client: FlaskClient, session: str | None = "s", **more: Any) -> None:
        self.client = client
        self.session = session
        self.more = more
        self.messages: list[Message] = []
        self.last_sent: list[Message] = []
        self.headers: Any = {}

    def says(self, text: str, *, alone: bool = False, last: int = 0) -> str:
        """Say something: sends the whole conversation, what is new `alone`, or the `last` messages."""
        self.messages.append(user(text))
        return self.sends(self.messages[-1:] if alone else self.messages[-last:])

    def sends(self, messages: Sequence[Message], headers: Any = None) -> str:
        self.last_sent = list(messages)
        more = {**self.more, "headers": {**self.more.get("headers", {}), **(headers or {})}}
        response = post(self.client, messages, self.session, **more)
        assert response.status_code == 200, response.text
        self.headers = response.headers
        self.messages.append(response.json["choices"][0]["message"])
        return str(self.messages[-1]["content"])

    def edits(self, place: int, text: str) -> str:
        """Say something else in the place of a message; what came after it is gone."""
        del self.messages[place:]
        return self.says(text)

    def regenerates(self) -> str:
        """Ask for another answer to what was said last."""
        self.messages.pop()
        return self.sends(self.messages)

    @property
    def said(self) -> list[tuple[str, str]]:
        """The conversation as the client shows it."""
        return [(message["role"], message["content"]) for message in self.messages]
