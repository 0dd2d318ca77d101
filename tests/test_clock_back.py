"""A clock that is put back, as when a machine's was wrong: nothing stalls, hides or changes its place."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.http import chat, good, read_all
from tests.jobs import Bench
from tests.processes import eventually

AHEAD = datetime(2026, 5, 20, 15, 0, tzinfo=UTC)
RIGHT = AHEAD - timedelta(days=3)  # Sunday the 17th


@pytest.fixture
def bench(bench):
    bench.clock.now = AHEAD
    return bench


def says(bench: Bench, words: str, session: str = "s") -> dict[str, Any]:
    """Ada says something, and the jobs that are due are done."""
    answer = chat(bench.client, words, session_id=session, user_id="ada")
    bench.clock.tick(0.001)
    bench.engine.job_queue.run_due()
    return answer


def facts(client: FlaskClient) -> list[str]:
    return [fact["text"] for fact in read_all(client, "/api/facts", user_id="ada")]


def found(client: FlaskClient, q: str, **query: Any) -> list[str]:
    results = good(client.get("/api/search", query_string={"q": q, "user_id": "ada", **query}))["results"]
    return [result["content"] for result in results if result["role"] == "user"]


def test_a_correction_counts_once_the_clock_has_passed_what_it_corrects(bench):
    """Words that are older than a fact, as those of an import are, do not correct it; these can't be told from them."""
    says(bench, "I live in Tallinn.")
    bench.clock.now = RIGHT
    says(bench, "We moved: I live in Lyon now.")
    assert any("Tallinn" in text for text in facts(bench.client))
    bench.clock.now = AHEAD + timedelta(minutes=1)
    says(bench, "Yes, we moved to Lyon.")
    now = facts(bench.client)
    assert any("Lyon" in text for text in now)
    assert not any("Tallinn" in text for text in now)
    assert "Lyon" in says(bench, "Where do I live?", "other")["reply"]


def test_what_was_said_is_found_by_its_words_and_by_the_time_it_was_said_at(bench):
    says(bench, "The lighthouse was painted red.")
    bench.clock.now = RIGHT
    says(bench, "The lighthouse was painted white.")
    assert sorted(found(bench.client, "lighthouse painted")) == [
        "The lighthouse was painted red.",
        "The lighthouse was painted white.",
    ]
    early = {"after": "2026-05-17T00:00:00Z", "before": "2026-05-18T00:00:00Z"}
    late = {"after": "2026-05-20T00:00:00Z", "before": "2026-05-21T00:00:00Z"}
    assert found(bench.client, "lighthouse", **early) == ["The lighthouse was painted white."]
    assert found(bench.client, "lighthouse", **late) == ["The lighthouse was painted red."]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_jobs_that_were_enqueued_before_are_all_done_soon(bench, is_restarted):
    """Those that take erased words out of the index would wait until the clock is there again."""
    engine = bench.process(bench.app) if is_restarted else bench.engine
    if not is_restarted:
        engine.start()
        bench.enqueue("first")
        assert eventually(lambda: bench.done == ["first"])
    for key in "abc":
        bench.enqueue(key, delay=30.0)
    bench.clock.now = RIGHT
    if is_restarted:
        engine.start()
    assert eventually(lambda: set("abc") <= set(bench.done))
    engine.stop()
