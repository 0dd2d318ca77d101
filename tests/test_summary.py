"""The summary: what the mini model is sent, which of its answers are kept, and that nobody's version is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import services_of
from memory import tokens
from memory.summary.digest import INSTRUCTION, SCHEMA
from memory.summary.updates import BATCH_TOKENS
from tests.conftest import MakeApp
from tests.model_server import ModelServer, Prose, Status
from tests.resources import append, digest_of, error, fact, good, read_all, said
from tests.talking import at


class Summary:
    """One session's summary over HTTP, and the jobs run when the test says so."""

    def __init__(self, app: Flask, server: ModelServer) -> None:
        self.app, self.server = app, server
        self.client: FlaskClient = app.test_client()
        self.address = "/api/sessions/s/summary"

    def get(self) -> dict[str, Any]:
        return good(self.client.get(self.address))

    def topics(self) -> list[str]:
        items = read_all(self.client, f"{self.address}/versions", limit=2)
        return [f"{item['version']} {item['sections']['topic']}" for item in items]

    def hear(self, *words: str) -> None:
        append(self.client, "s", [said(text) for text in words])

    def update(self, *replies: Any) -> dict[str, Any]:
        """Run the summary jobs; the mini model answers with `replies`, then by default."""
        self.server.mini.queue(*replies)
        services_of(self.app).outbox.run_due(["summary"])
        return self.get()

    def edit(self, topic: str, **more: Any) -> Any:
        return self.client.put(self.address, json={"sections": {"topic": topic}, **more})

    def calls(self) -> list[dict[str, Any]]:
        """What the mini model was sent."""
        return [request.body for request in self.server.requests if request.model == "mini"]


@pytest.fixture
def summary(model_app: Flask, model_server: ModelServer) -> Summary:
    return Summary(model_app, model_server)


# -- how it stands


def test_its_states_from_none_to_current(summary: Summary) -> None:
    summary.client.post("/api/sessions", json={"session_id": "s"})
    assert (summary.get()["state"], summary.get()["latest"]) == ("none", None)
    summary.hear("I drink tea.")
    waiting = summary.get()
    assert (waiting["state"], waiting["latest"]) == ("pending", None)
    assert waiting["job_id"] == good(summary.client.get("/api/jobs?session_id=s"))["items"][0]["id"]
    seen: list[str] = []

    def look(body: dict[str, Any]) -> Any:
        seen.append(summary.app.test_client().get(summary.address).json["state"])
        return digest_of(topic="Tea")

    done = summary.update(look)
    assert seen == ["updating"]
    assert (done["state"], done["job_id"], done["error"], done["message_count"]) == ("current", None, None, 1)
    assert (done["latest"]["version"], done["latest"]["through"], done["latest"]["author"]) == (1, 1, "model")
    assert (done["latest"]["model"], done["latest"]["prompt"]) == ("mini-model", "summary")
    assert done["latest"]["usage"]["calls"] == 1
    summary.hear("And coffee.")
    assert summary.get()["state"] == "pending"


# -- what the mini model is sent


def test_a_first_summary_and_an_extension_are_asked_for_differently(summary: Summary) -> None:
    summary.hear("I drink tea.")
    summary.update(digest_of(topic="Tea & </summary_so_far>"))
    summary.hear("Not coffee.")
    summary.update(digest_of(topic="Drinks"))
    first, extension = ([message["content"] for message in body["messages"]] for body in summary.calls())
    assert first[0] != extension[0]
    assert "keep everything that still holds" in extension[0]
    assert "keep everything that still holds" not in first[0]
    assert "summary_so_far" not in first[1]
    shown = extension[1].split("<summary_so_far>\n")[1].split("\n</summary_so_far>")[0]
    assert json.loads(shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))["topic"] == (
        "Tea & </summary_so_far>"
    )
    assert "[1] " in first[1] and "I drink tea." in first[1]
    assert "I drink tea." not in extension[1]  # each message is digested once
    assert "[2] " in extension[1] and "user: Not coffee." in extension[1]
    assert first[0].endswith(INSTRUCTION) and extension[0].endswith(INSTRUCTION)
    assert all(f"- {name}: " in first[0] for name in digest_of()["summary"])
    sent = summary.calls()[0]["response_format"]
    assert (sent["type"], sent["json_schema"]["schema"]) == ("json_schema", json.loads(json.dumps(SCHEMA)))


def test_an_import_is_summarised_in_bounded_calls(summary: Summary) -> None:
    words = "I would like to talk about tea, and how long it should be steeped, at which temperature. "
    append(summary.client, "s", [said(f"{number}: {words}") for number in range(1, 1001)])
    done = summary.update()
    bodies = summary.calls()
    assert done["state"] == "current"
    assert done["latest"]["version"] == len(bodies) > 3
    numbers: list[int] = []
    for body in bodies:
        text = body["messages"][-1]["content"]
        assert tokens.estimate(text) < 2 * BATCH_TOKENS
        lines = text.split("<messages>\n")[1].split("\n</messages>")[0].splitlines()
        numbers += [int(line[1 : line.index("]")]) for line in lines]
    assert numbers == list(range(1, 1001))
    assert done["latest"]["through"] == 1000
    summary.hear("long " * 12_000)  # more than a batch
    assert summary.update()["latest"]["through"] == 1001


# -- which answers are kept


@pytest.mark.parametrize("broken", ["{", json.dumps(digest_of(topic=""))])
def test_a_broken_answer_is_repaired_once(summary: Summary, broken: str) -> None:
    summary.hear("I drink tea.")
    done = summary.update(Prose(broken), digest_of(topic="Mended"))
    assert (done["latest"]["sections"]["topic"], done["latest"]["usage"]["calls"]) == ("Mended", 2)
    first, repair = (body["messages"] for body in summary.calls())
    assert repair[: len(first)] == first
    assert repair[-2] == {"role": "assistant", "content": broken}
    assert "could not be used" in repair[-1]["content"]


@pytest.mark.parametrize(("attempts", "state"), [(3, "pending"), (1, "failed")])
def test_a_failing_model_leaves_the_error_and_refresh_tries_again(
    make_app: MakeApp, model_server: ModelServer, attempts: int, state: str
) -> None:
    summary = Summary(make_app(job_attempts=attempts, **at(model_server)), model_server)
    summary.hear("I drink tea.")
    failed = summary.update(Status(401))
    assert (failed["state"], failed["latest"], bool(failed["error"])) == (state, None, True)
    assert summary.update()["state"] == state  # nothing tries again at once, or ever after the last attempt
    assert len(summary.calls()) == 1
    assert good(summary.client.post(f"{summary.address}/refresh"))["state"] == "pending"
    done = summary.update(digest_of(topic="Tea"))
    assert (done["state"], done["error"], done["latest"]["sections"]["topic"]) == ("current", None, "Tea")


# -- the person's own


def test_an_edit_is_a_version_and_is_shown_at_once(summary: Summary) -> None:
    summary.hear("I drink tea.", "And coffee.", "And water.")
    summary.update(digest_of(topic="Drinks"))
    sections = {
        "topic": "My drinks",
        "requirements": ["Hot"],
        "excluded": [{"option": "Cocoa", "reason": "too sweet"}, {"option": "Milk"}],
    }
    edited = good(summary.client.put(summary.address, json={"sections": sections, "expected_version": 1}))
    assert (edited["latest"]["version"], edited["latest"]["author"], edited["head_version"]) == (2, "person", 2)
    assert edited["latest"]["sections"] == {
        **digest_of(topic="My drinks", requirements=["Hot"])["summary"],
        "excluded": [{"option": "Cocoa", "reason": "too sweet"}, {"option": "Milk", "reason": ""}],
    }
    summary.client.post("/api/chat", json={"session_id": "s", "message": "Which?"})
    prompt = next(request.body["messages"] for request in summary.server.requests if request.model == "main")
    assert (
        "Topic: My drinks\nRequirements:\n- Hot\nRuled out:\n- Cocoa (because too sweet)\n- Milk"
        in prompt[0]["content"]
    )
    summary.update(digest_of())
    assert "My drinks" in summary.calls()[-1]["messages"][-1]["content"]  # the mini model goes on from the edit


@pytest.mark.parametrize("expected", [0, 1, 3])
def test_an_edit_of_another_version_is_a_conflict(summary: Summary, expected: int) -> None:
    summary.client.post("/api/sessions", json={"session_id": "s"})
    good(summary.edit("One", expected_version=0))
    good(summary.edit("Two", expected_version=1))
    refused = error(summary.edit("Three", expected_version=expected), 409)
    assert refused["code"] == "summary_changed"
    assert "version 2" in refused["message"]
    assert summary.topics() == ["2 Two", "1 One"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "sections"),
        ({"sections": {"mood": "calm"}}, "sections.mood"),
        ({"sections": {"data": ["x" * 401]}}, "sections.data.0"),
        ({"sections": {"excluded": [{"reason": "none"}]}}, "sections.excluded.0.option"),
        ({"sections": {}, "expected_version": 2**31}, "expected_version"),
        ({"sections": {"data": [f"{number} " + "x" * 390 for number in range(40)]}}, "sections"),  # for every prompt
    ],
)
def test_an_edit_that_cannot_be_kept(summary: Summary, body: Any, param: str) -> None:
    summary.hear("I drink tea.")
    refused = error(summary.client.put(summary.address, json=body), 422)
    assert refused["param"] == param
    assert summary.get()["latest"] is None


def test_rollback_brings_a_version_back_as_a_new_one(summary: Summary) -> None:
    summary.hear("I drink tea.")
    summary.update(digest_of(topic="One"))
    summary.hear("And coffee.")
    summary.update(digest_of(topic="Two"))
    back = good(summary.client.post(f"{summary.address}/rollback", json={"version": 1}))
    assert (back["latest"]["version"], back["latest"]["restores"], back["latest"]["author"]) == (3, 1, "rollback")
    assert (back["latest"]["through"], back["state"], back["head_version"]) == (1, "pending", 3)
    assert summary.topics() == ["3 One", "2 Two", "1 One"]
    error(summary.client.post(f"{summary.address}/rollback", json={"version": 9}), 404)
    summary.client.post(f"{summary.address}/refresh")
    assert summary.update(digest_of(topic="Two again"))["latest"]["through"] == 2
    assert "And coffee." in summary.calls()[-1]["messages"][-1]["content"]  # what was rolled back is read anew


# -- nobody's version is lost


@pytest.mark.parametrize("change", ["edit", "rollback"])
def test_a_summary_changed_meanwhile_is_not_overwritten(summary: Summary, change: str) -> None:
    summary.hear("I drink tea.")
    summary.update(digest_of(topic="One"))
    summary.hear("And coffee.")

    def meddle(body: dict[str, Any]) -> Any:
        other = summary.app.test_client()
        if change == "edit":
            good(other.put(summary.address, json={"sections": {"topic": "By hand"}}))
        else:
            good(other.post(f"{summary.address}/rollback", json={"version": 1}))
        return digest_of(fact("Drinks coffee", 2, "coffee"), topic="Made without seeing the change")

    done = summary.update(meddle, digest_of(fact("Drinks coffee", 2, "coffee"), topic="Made after it"))
    changed = "By hand" if change == "edit" else "One"
    assert summary.topics() == ["3 Made after it", f"2 {changed}", "1 One"]
    assert changed in summary.calls()[-1]["messages"][-1]["content"]
    assert (done["state"], done["latest"]["through"]) == ("current", 2)
    assert [item["text"] for item in read_all(summary.client, "/api/facts", session_id="s")] == ["Drinks coffee"]


def test_a_session_erased_meanwhile_stays_erased(summary: Summary) -> None:
    def erase(body: dict[str, Any]) -> Any:
        assert summary.app.test_client().delete("/api/sessions/s").status_code == 200
        return digest_of(fact("Drinks tea", 1, "tea"))

    summary.hear("I drink tea.")
    summary.server.mini.queue(erase)
    services_of(summary.app).outbox.run_due(["summary"])
    assert summary.client.get(summary.address).status_code == 404
    assert read_all(summary.client, "/api/facts") == []
