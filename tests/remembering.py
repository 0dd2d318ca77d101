"""What the tests of facts share: a session whose mini model answers what the test queues."""

from __future__ import annotations

from typing import Any

from flask import Flask

from app import services_of
from tests.model_server import ModelServer
from tests.resources import append, good, read_all, said


class Talk:
    """A session whose mini model answers what the test queues; with None, what its default makes of the request."""

    def __init__(self, app: Flask, server: ModelServer, session: str = "s", user: str | None = None) -> None:
        self.app, self.server, self.session = app, server, session
        self.client = app.test_client()
        self.who = {"user_id": user} if user else {}

    def hear(self, *messages: Any, reply: Any = None) -> None:
        """Append messages and digest them; the mini model answers `reply`."""
        append(self.client, self.session, [m if isinstance(m, dict) else said(m) for m in messages], **self.who)
        if reply is not None:
            self.server.mini.queue(reply)
        services_of(self.app).outbox.run_due(["summary"])
        assert good(self.client.get(f"/api/sessions/{self.session}/summary"))["state"] == "current"

    def facts(self, **query: Any) -> list[dict[str, Any]]:
        return read_all(self.client, "/api/facts", session_id=self.session, **query)

    def texts(self, **query: Any) -> list[str]:
        return [item["text"] for item in self.facts(**query)]

    def prompt(self, message: str) -> str:
        """All that the main model is sent with this message."""
        good(self.client.post("/api/chat", json={"session_id": self.session, "message": message, **self.who}))
        sent = [request.body["messages"] for request in self.server.requests if request.model == "main"][-1]
        return "\n".join(message["content"] for message in sent)

    def counts(self) -> dict[str, int]:
        """What became of the facts that the last digest proposed."""
        latest = good(self.client.get(f"/api/sessions/{self.session}/summary"))["latest"]
        counts: dict[str, int] = latest["usage"]["facts"]
        return counts
