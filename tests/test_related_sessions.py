"""Relations between conversations: what they share, whose they are, and links that a question follows."""

from itertools import pairwise
from typing import Any

from flask import Flask

from app import engine_of
from tests.http import error, find, good
from tests.knowledge import Talk, digest_of, fact, link
from tests.model_server import ModelServer

SISTER = [link("user", "sister", "Ida", "person person")]


def told(
    app: Flask, server: ModelServer, session: str, text: str, links: Any = (), user: str = "ada", **more: Any
) -> Talk:
    """A session with one message, a fact with these links, and a summary."""
    talk = Talk(app, server, session, user)
    found = [fact(text, 1, text, links=list(links))] if links else []
    talk.hear(text, reply=digest_of(*found, **{"topic": text, **more}))
    return talk


def related(talk: Talk, session: str = "", **query: Any) -> list[dict[str, Any]]:
    address = f"/api/sessions/{session or talk.session}/related"
    items: list[dict[str, Any]] = good(talk.client.get(address, query_string={**talk.who, **query}))["items"]
    return items


def test_conversations_that_name_the_same_entities_are_related(model_app, model_server):
    first = told(model_app, model_server, "one", "My sister Ida paints boats.", SISTER)
    told(
        model_app,
        model_server,
        "two",
        "My sister has rented a studio.",
        [link("my sister", "rents", "studio", "person place")],
    )
    told(model_app, model_server, "three", "The bakery is closed.")
    told(
        model_app,
        model_server,
        "four",
        "Ida called me, bob.",
        [link("user", "friend", "Ida", "person person")],
        user="bob",
    )
    (item,) = related(first)
    assert (item["session_id"], item["why"]["entities"]) == ("two", ["Ida"]), "an alias leads to the same"
    assert 0 < item["score"] <= 1
    assert related(first, "three") == []
    assert error(first.client.get("/api/sessions/four/related?user_id=ada"), 404)["code"] == "session_not_found"


def test_conversations_with_near_summaries_are_related_the_closest_first(model_app, model_server):
    first = told(model_app, model_server, "one", "Repairing the roof of the summer house")
    told(model_app, model_server, "two", "Costs of repairing a roof")
    told(model_app, model_server, "three", "Recipes with lentils")
    told(model_app, model_server, "other", "Repairing the roof of the summer house", user="bob")
    good(
        first.client.post("/api/chat", json={"session_id": "private", "message": "Hi", "remember": False, **first.who})
    )
    model_server.mini.queue(digest_of(topic="Repairing the roof of the summer house"))
    engine_of(model_app).job_queue.run_due(["summary"])
    (item,) = related(first)
    assert item["session_id"] == "two" and item["why"]["entities"] == []
    assert 0 < item["why"]["summary"] <= 1
    assert related(first, limit=1) == [item]
    assert error(first.client.get("/api/sessions/one/related?limit=0"), 422)


def test_a_question_follows_links_up_to_three_steps(model_app, model_server):
    chain = ["Ida", "Marlin", "Bergen", "Rasmus", "Hof"]
    talk = Talk(model_app, model_server, "s", "ada")
    texts = [f"{one} goes with {other}." for one, other in pairwise(chain)]
    noise = [f"The city council wrote about waste bin {number}." for number in range(30)]
    talk.say(*texts, *noise)
    facts = [
        fact(text, number, text, links=[link(one, "goes with", other)])
        for number, (text, one, other) in enumerate(zip(texts, chain, chain[1:], strict=False), 1)
    ]
    talk.digest(digest_of(*facts))
    found = [one["content"] for one in find(talk.client, "What about Ida?", user_id="ada", limit=10)]
    assert next(text for text in found if text in texts) == texts[0]
    assert set(texts[:3]) <= set(found) and texts[3] not in found
