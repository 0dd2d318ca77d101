"""Prioritising: which facts a prompt shows, in which order, and why."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

from app import engine_of
from config import FactWeights, Settings
from memory import tokens
from memory.knowledge.fact_ranking import Ranking
from memory.quoting import fact_line
from models.facts import Fact
from tests.http import chat, good, read_all
from tests.model_server import at, prompts

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)


def ranking(**settings: Any) -> Ranking:
    return Ranking(Settings(**settings))


def held(number: int, text: str = "Likes tea", valid_from: datetime = NOW, **more: Any) -> Fact:
    return Fact(number, text, valid_from, NOW, **more)


def order(facts: list[Fact], message: str, **settings: Any) -> list[int]:
    scored = ranking(**settings).scored(facts, message, NOW)
    return [fact.id for fact in sorted(scored, key=lambda fact: fact.score.total, reverse=True)]


def test_a_weight_of_zero_silences_its_part_and_a_great_one_decides():
    columns = {"importance": "importance", "recency": "valid_from", "use": "recalled_count", "relevance": "text"}
    strong: dict[str, Any] = {"importance": 5, "valid_from": NOW, "recalled_count": 100, "text": "Likes tea"}
    weak = {"importance": 1, "valid_from": NOW - timedelta(days=300), "recalled_count": 0, "text": "Likes rain"}
    for part, column in columns.items():
        favourite, rival = held(1, **{**weak, column: strong[column]}), held(2, **{**strong, column: weak[column]})
        alone = FactWeights(**{**dict.fromkeys(columns, 0.0), part: 1.0})
        silent = FactWeights(**{**dict.fromkeys(columns, 1.0), part: 0.0})
        assert order([favourite, rival], "tea?", fact_weights=alone) == [1, 2], part
        assert order([favourite, rival], "tea?", fact_weights=silent) == [2, 1], part


MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
facts_of_any_kind = st.lists(
    st.builds(
        held,
        st.integers(1, 10**6),
        st.text(min_size=1, max_size=80),
        MOMENTS,
        importance=st.integers(1, 5),
        pinned=st.booleans(),
        recalled_count=st.integers(0, 10**6),
    ),
    max_size=12,
    unique_by=lambda fact: fact.id,
)


@settings(max_examples=40)
@given(facts_of_any_kind, st.integers(0, 120), st.randoms(use_true_random=False))
def test_the_budget_holds_and_the_order_of_arrival_does_not_matter(facts, budget, chance):
    rank = ranking().prioritise
    chosen = rank(facts, budget, NOW)
    costs = {fact.id: tokens.estimate(fact_line(fact)) for fact in facts}
    left = budget - sum(costs.pop(fact.id) for fact in chosen)
    assert left >= 0 and all(cost > left for cost in costs.values())  # nothing that still fits is left out
    order = [(fact.pinned, fact.score.total) for fact in chosen]
    assert order == sorted(order, reverse=True)
    shuffled = list(facts)
    chance.shuffle(shuffled)
    assert rank(shuffled, budget, NOW) == chosen


def state(client: FlaskClient, text: str, **more: Any) -> None:
    good(client.post("/api/facts", json={"user_id": "ada", "text": text, **more}))


def shown(client: FlaskClient, message: str) -> list[str]:
    """The facts that a turn shows."""
    return [fact["text"] for fact in chat(client, message, session_id="s", user_id="ada")["memory"]["facts"]]


@pytest.mark.parametrize("budget", [0, 40])
def test_a_prompts_facts_keep_to_fact_tokens(make_app, model_server, budget):
    client = make_app(**at(model_server, fact_tokens=budget)).test_client()
    for number in range(24):
        state(client, f"Likes tea number {number}", pinned=number % 5 == 0)
    told = shown(client, "Which tea?")
    sent = "\n".join(message["content"] for message in prompts(model_server)[0])
    lines = [line for line in sent.splitlines() if line.startswith("- Likes tea")]
    assert sum(tokens.estimate(line) for line in lines) <= budget
    assert len(lines) == len(told) and bool(lines) == (budget > 0)
    assert all(int(text.split()[-1]) % 5 == 0 for text in told[:3])  # pinned ones first


@pytest.mark.parametrize(
    ("message", "most"),
    [("Write the note from what we decided.", 300 + 400), ("Escreve a nota com o que decidimos.", 600 + 400)],
)
def test_where_no_message_fits_what_is_meant_facts_take_the_place_of_excerpts(make_app, model_server, message, most):
    """They have at most RECALL_TOKENS beside half of FACT_TOKENS, or beside all of it in another language."""
    client = make_app(**at(model_server, fact_tokens=600, recall_tokens=400)).test_client()
    chat(client, "Hello.", session_id="s", user_id="ada")  # the prefix is chosen before there are facts
    for number in range(120):
        state(client, f"Chose the paint number {number} for the door of the shed")
    texts = shown(client, message)
    taken = sum(tokens.estimate(fact_line(held(1, text))) for text in texts)
    assert most - 100 < taken <= most


def test_use_is_counted_where_a_fact_goes_with_the_message(model_app):
    client = model_app.test_client()
    for text in ("Likes tea", "Has a dog"):
        state(client, text)
    for message in ("Which tea?", "And which other tea?", "Hello."):
        shown(client, message)
    for job in read_all(client, "/api/jobs"):
        client.post(f"/api/jobs/{job['id']}/retry")
    engine_of(model_app).job_queue.run_due(["index"])
    counts = {item["text"]: item["recalled_count"] for item in read_all(client, "/api/facts", user_id="ada")}
    assert counts == {"Likes tea": 2, "Has a dog": 0}
    facts = chat(client, "Which tea?", session_id="s", user_id="ada")["memory"]["facts"]
    assert [fact["score"]["use"] > 0 for fact in facts] == [fact["text"] == "Likes tea" for fact in facts]


def test_outside_the_head_only_what_goes_with_the_message_is_shown(model_app):
    """A message in another language gets facts with which it can share no word."""
    client, german = model_app.test_client(), "Die Bänke gehen am Freitag an den Wirt"
    state(client, "Likes tea")
    assert shown(client, "Hello.") == ["Likes tea"]  # the head is chosen now, and does not change with every fact
    english = "The table is delivered to the customer on Wednesday"
    for text in ("Has a dog", english, german):
        state(client, text)
    assert {*shown(client, "¿Cuándo entrego la mesa de nogal?")} == {"Likes tea", "Has a dog", english, german}
    assert german not in shown(client, "Wie lange kocht man Reis in der Mikrowelle?")
    assert german in shown(client, "Wann gehen die Bänke raus?") and shown(client, "Which cup?") == ["Likes tea"]
    state(client, "Is allergic to nuts", pinned=True)
    assert shown(client, "Which cup?") == ["Likes tea", "Is allergic to nuts"]
    assert shown(client, "Is the dog hungry?") == ["Likes tea", "Is allergic to nuts", "Has a dog"]
