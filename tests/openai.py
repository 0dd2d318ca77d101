"""What the tests of the OpenAI protocol share: asking as a client does, and reading what it gets."""

from collections.abc import Callable, Sequence
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.http import events
from tests.model_server import ModelServer

Message = dict[str, Any]

ADDRESS = "/v1/chat/completions"
BODIES: dict[str, Callable[[Sequence[Message]], dict[str, Any]]] = {  # by protocol, a request with these messages
    ADDRESS: lambda messages: {"model": "gpt-9", "messages": messages},
    "/v1/messages": lambda messages: {"model": "gpt-9", "messages": messages, "max_tokens": 100},
    "/v1/responses": lambda messages: {"model": "gpt-9", "input": messages},
}


def user(content: Any, **more: Any) -> Message:
    return {"role": "user", "content": content, **more}


def assistant(content: Any, **more: Any) -> Message:
    return {"role": "assistant", "content": content, **more}


def result(call: Message, content: str) -> Message:
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def talk(*texts: str) -> list[Message]:
    """Return messages by turns, the person first."""
    return [assistant(text) if place % 2 else user(text) for place, text in enumerate(texts)]


def post(
    client: FlaskClient, messages: Sequence[Message], session: str | None = "s", headers: Any = None, **more: Any
) -> TestResponse:
    """Send POST /v1/chat/completions, whatever comes of it."""
    named = {"X-Session-Id": session} if session is not None else {}
    body = {"model": "gpt-9", "messages": list(messages), **more}
    return client.post(ADDRESS, json=body, headers={**named, **(headers or {})})


def answered(client: FlaskClient, messages: Sequence[Message], session: str | None = "s", **more: Any) -> Message:
    response = post(client, messages, session, **more)
    assert response.status_code == 200, response.text
    (choice,) = response.json["choices"]
    message: Message = choice["message"]
    return message


def complete(client: FlaskClient, messages: Sequence[Message], session: str | None = "s", **more: Any) -> str:
    return str(answered(client, messages, session, **more)["content"])


def stream(client: FlaskClient, messages: Sequence[Message], session: str | None = "s", **more: Any) -> list[Any]:
    with post(client, messages, session, stream=True, **more) as response:
        assert response.status_code == 200, response.text
        assert response.mimetype == "text/event-stream"
        return events(response.text)


def failed(response: TestResponse, status: int) -> dict[str, Any]:
    """Return the error of a response that has to be one, in OpenAI's envelope."""
    assert response.status_code == status, response.text
    assert response.is_json and set(response.json or {}) == {"error"}
    error: dict[str, Any] = response.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def sent(server: ModelServer) -> list[dict[str, Any]]:
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
        """Send a message with the whole conversation, `alone`, or with the `last` messages."""
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
        """Send another message in the place of one; later messages are gone."""
        del self.messages[place:]
        return self.says(text)

    def regenerates(self) -> str:
        """Ask for another answer to the last message."""
        self.messages.pop()
        return self.sends(self.messages)

    @property
    def said(self) -> list[tuple[str, str]]:
        """Return the conversation as the client shows it."""
        return [(message["role"], message["content"]) for message in self.messages]
