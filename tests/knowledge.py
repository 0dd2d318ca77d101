"""Facts and summaries in tests: what the mini model answers, and a session whose mini model answers what is queued."""

from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from app import engine_of
from models.sections import Sections
from tests.http import Body, append, good, read_all, said
from tests.model_server import ModelServer, Prompt, prompts


def fact(text: str, source: int, quote: str | None = None, **more: Any) -> Body:
    """A fact as the mini model writes it; its quote is its text unless said otherwise."""
    return {
        "text": text,
        "category": "other",
        "importance": 3,
        "scope": "session",
        "source": source,
        "quote": text if quote is None else quote,
        "supersedes": [],
        **more,
    }


def link(subject: str, relation: str, object: str, kinds: str = "person thing") -> Body:
    """A link of a fact as the mini model writes it."""
    first, second = kinds.split()
    ends = {"subject_kind": first, "object_kind": second}
    return {"subject": subject, "relation": relation, "object": object, **ends}


def digest_of(*facts: Body, **sections: Any) -> Body:
    """The mini model's answer with these facts and sections."""
    empty = Sections(topic="Tea").as_dict()
    return {"summary": {**empty, **sections}, "facts": list(facts)}


def summarise(client: FlaskClient, server: ModelServer, *facts: Body, **sections: Any) -> None:
    """Have the summaries that are due made, the first of them with these sections and facts."""
    server.mini.queue(digest_of(*facts, **sections))
    engine_of(client.application).job_queue.run_due(["summary"])


class Talk:
    """A session whose mini model answers what the test queues, then what its default makes of the request."""

    def __init__(self, app: Flask, server: ModelServer, session: str = "s", user: str | None = None) -> None:
        self.app, self.server, self.session = app, server, session
        self.client = app.test_client()
        self.who = {"user_id": user} if user else {}
        self.address = f"/api/sessions/{session}/summary"

    def say(self, *messages: Any) -> None:
        """Append messages: texts of the person, or whole messages."""
        append(self.client, self.session, [m if isinstance(m, dict) else said(m) for m in messages], **self.who)

    def digest(self, *replies: Any) -> dict[str, Any]:
        """Run the summary jobs; the mini model answers `replies`."""
        self.server.mini.queue(*replies)
        engine_of(self.app).job_queue.run_due(["summary"])
        return self.summary()

    def hear(self, *messages: Any, reply: Any = None) -> None:
        """Append messages and digest them; the mini model answers `reply`."""
        self.say(*messages)
        assert self.digest(*[reply] if reply is not None else [])["state"] == "current"

    def summary(self) -> dict[str, Any]:
        return good(self.client.get(self.address))

    def topics(self) -> list[str]:
        """The versions of the summary, newest first."""
        items = read_all(self.client, f"{self.address}/versions", limit=2)
        return [f"{item['version']} {item['sections']['topic']}" for item in items]

    def edit(self, topic: str, **more: Any) -> Any:
        return self.client.put(self.address, json={"sections": {"topic": topic}, **more})

    def digests(self) -> list[Prompt]:
        """What the mini model was sent."""
        return prompts(self.server, "mini")

    def facts(self, **query: Any) -> list[dict[str, Any]]:
        return read_all(self.client, "/api/facts", session_id=self.session, **query)

    def texts(self, **query: Any) -> list[str]:
        return [item["text"] for item in self.facts(**query)]

    def prompt(self, message: str) -> str:
        """All that the main model is sent with this message."""
        good(self.client.post("/api/chat", json={"session_id": self.session, "message": message, **self.who}))
        return "\n".join(message["content"] for message in prompts(self.server)[-1])

    def counts(self) -> dict[str, int]:
        """What became of the facts that the last digest proposed."""
        counts: dict[str, int] = self.summary()["latest"]["usage"]["facts"]
        return counts
