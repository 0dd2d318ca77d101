"""A clock that is put back, as when a machine's was wrong: nothing stalls, hides or changes its place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import services_of
from memory.services import Services
from tests.conftest import MakeApp
from tests.resources import good
from tests.talking import chat, jobs, said, stored, summary

AHEAD = datetime(2026, 5, 20, 15, 0, tzinfo=UTC)
RIGHT = AHEAD - timedelta(days=3)  # Sunday the 17th


class Clock:
    """What a machine believes the time is; each look at it is a little later than the last."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def __call__(self) -> datetime:
        self._now += timedelta(milliseconds=1)
        return self._now

    def set(self, now: datetime) -> None:
        self._now = now


@pytest.fixture
def clock() -> Clock:
    return Clock(AHEAD)


@pytest.fixture
def make(make_app: MakeApp, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Flask]:
    """Applications that go by the clock."""
    monkeypatch.setattr("app.Services", partial(Services, now=clock))
    return make_app


@pytest.fixture
def app(make: Callable[..., Flask]) -> Flask:
    return make()


@pytest.fixture
def ada(app: Flask) -> Callable[..., dict[str, Any]]:
    """Says something in session s and lets the jobs that are due be done."""

    def says(words: str, **more: Any) -> dict[str, Any]:
        answer = chat(app.test_client(), words, session_id=more.pop("session_id", "s"), user_id="ada", **more)
        services_of(app).outbox.run_due()
        return answer

    return says


def facts(client: FlaskClient, **query: Any) -> list[str]:
    return [fact["text"] for fact in good(client.get("/api/facts", query_string={"user_id": "ada", **query}))["items"]]


def found(client: FlaskClient, q: str, **query: Any) -> list[str]:
    results = good(client.get("/api/search", query_string={"q": q, "user_id": "ada", **query}))["results"]
    return [result["content"] for result in results if result["role"] == "user"]


def test_a_correction_counts_once_the_clock_has_passed_what_it_corrects(
    ada: Callable[..., Any], clock: Clock, client: FlaskClient
) -> None:
    """Words that are older than a fact, as those of an import are, do not correct it; these can't be told from them."""
    ada("I live in Tallinn.")
    clock.set(RIGHT)
    ada("We moved: I live in Lyon now.")
    assert any("Tallinn" in text for text in facts(client))
    clock.set(AHEAD + timedelta(minutes=1))
    ada("Yes, we moved to Lyon.")
    now = facts(client)
    assert any("Lyon" in text for text in now)
    assert not any("Tallinn" in text for text in now)
    assert "Lyon" in ada("Where do I live?", session_id="other")["reply"]


def test_what_was_said_is_found_by_its_words_and_by_the_time_it_was_said_at(
    ada: Callable[..., Any], clock: Clock, client: FlaskClient
) -> None:
    ada("The lighthouse was painted red.")
    clock.set(RIGHT)
    ada("The lighthouse was painted white.")
    assert sorted(found(client, "lighthouse painted")) == [
        "The lighthouse was painted red.",
        "The lighthouse was painted white.",
    ]
    early = {"after": "2026-05-17T00:00:00Z", "before": "2026-05-18T00:00:00Z"}
    late = {"after": "2026-05-20T00:00:00Z", "before": "2026-05-21T00:00:00Z"}
    assert found(client, "lighthouse", **early) == ["The lighthouse was painted white."]
    assert found(client, "lighthouse", **late) == ["The lighthouse was painted red."]


def test_a_clock_that_jumps_to_and_fro_leaves_everything_in_order(
    ada: Callable[..., Any], app: Flask, clock: Clock, client: FlaskClient
) -> None:
    for number in range(12):
        clock.set(AHEAD + timedelta(hours=(-1) ** number * 7 * number))
        ada(f"Thing number {number} is a boat called Boat{number}.")
    services_of(app).outbox.run_due()
    clock.set(AHEAD + timedelta(days=30))
    services_of(app).outbox.run_due()
    assert [message["position"] for message in stored(client, "s")] == list(range(1, 25))
    users = [words for role, words in said(client, "s") if role == "user"]
    assert users == [f"Thing number {number} is a boat called Boat{number}." for number in range(12)]
    assert summary(client, "s")["state"] == "current"
    assert jobs(client) == jobs(client, "index") == []
    (verified,) = services_of(app).indexing.verify()
    assert verified.consistent and not verified.waiting
