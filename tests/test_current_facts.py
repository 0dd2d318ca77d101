"""The facts that a process keeps: what another process changes, or a transaction takes back, shows at once."""

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.knowledge.fact_reads import current_facts
from memory.knowledge.fact_writes import delete_with_history
from tests.http import chat, good

TEA = {"user_id": "ada", "text": "Likes tea"}


def shown(client: FlaskClient) -> list[str]:
    """Return the facts that a turn shows."""
    turn = chat(client, "Which tea do I like?", session_id="s", user_id="ada")
    return [fact["text"] for fact in turn["memory"]["facts"]]


def test_a_change_by_another_process_shows_at_once(apps):
    one, other = (app.test_client() for app in apps)
    fact_id = good(one.post("/api/facts", json=TEA))["id"]
    assert shown(one) == shown(other) == shown(one) == ["Likes tea"]
    good(other.patch(f"/api/facts/{fact_id}", json={"text": "Likes mint tea"}))
    assert shown(one) == shown(other) == ["Likes mint tea"]
    good(other.post("/api/facts", json={**TEA, "text": "Likes green tea", "pinned": True}))
    assert set(shown(one)) == set(shown(other)) == {"Likes mint tea", "Likes green tea"}
    good(other.delete(f"/api/facts/{fact_id}"))
    assert shown(one) == shown(other) == ["Likes green tea"]
    good(other.delete("/api/users/ada"))
    assert shown(one) == shown(other) == []


def test_nothing_is_kept_of_a_transaction_that_rolls_back(model_app):
    client, engine = model_app.test_client(), engine_of(model_app)
    fact_id = good(client.post("/api/facts", json=TEA))["id"]
    assert shown(client) == ["Likes tea"]
    with pytest.raises(RuntimeError), engine.database.write() as tx:
        delete_with_history(tx, [fact_id], engine.now())
        assert current_facts(engine, tx, 1, 1) == ()
        raise RuntimeError
    assert shown(client) == ["Likes tea"]
