"""The facts that a process keeps: what another process changes, or a transaction takes back, shows at once."""

from collections.abc import Callable

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


CHANGES: dict[str, tuple[Callable[[FlaskClient, int], object], list[str]]] = {
    "add": (lambda client, _: client.post("/api/facts", json={**TEA, "text": "Likes green tea"}), ["Likes tea"]),
    "edit": (lambda client, id: client.patch(f"/api/facts/{id}", json={"text": "Likes mint tea"}), ["Likes mint tea"]),
    "forget": (lambda client, id: client.delete(f"/api/facts/{id}"), []),
    "erase": (lambda client, _: client.delete("/api/users/ada"), []),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_by_another_process_shows_at_once(apps, change):
    one, other = (app.test_client() for app in apps)
    fact_id = good(one.post("/api/facts", json=TEA))["id"]
    assert shown(one) == shown(other) == shown(one) == ["Likes tea"]
    act, left = CHANGES[change]
    act(other, fact_id)
    both = shown(one), shown(other)
    assert both[0] == both[1] and (set(left) <= set(both[0])) and (both[0] != ["Likes tea"])


def test_nothing_is_kept_of_a_transaction_that_rolls_back(model_app):
    client, engine = model_app.test_client(), engine_of(model_app)
    fact_id = good(client.post("/api/facts", json=TEA))["id"]
    assert shown(client) == ["Likes tea"]
    with pytest.raises(RuntimeError), engine.database.write() as tx:
        delete_with_history(tx, [fact_id], engine.now())
        assert current_facts(engine, tx, 1, 1) == ()
        raise RuntimeError
    assert shown(client) == ["Likes tea"]
