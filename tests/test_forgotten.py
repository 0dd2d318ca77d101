"""How many facts of a person were forgotten lately, however it came, without a word of them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from flask.testing import FlaskClient

from tests.http import append, chat, good, read_all, said
from tests.jobs import jobs_done
from tests.knowledge import Talk, digest_of, fact

ADA, TEAM = {"user_id": "ada"}, {"space": "team"}


@pytest.fixture
def talk(model_app, model_server):
    """Two facts of Ada, from two messages of session `s`; and one of Bob."""
    talk = Talk(model_app, model_server, user="ada")
    talk.say("I am allergic to walnuts.", "I live in Oslo.")
    both = (fact("Allergic to walnuts", 1, "allergic to walnuts"), fact("Lives in Oslo", 2, "I live in Oslo"))
    model_server.mini.queue(digest_of(*both))
    jobs_done(talk.client, "summary", "index")
    good(talk.client.post("/api/facts", json={"user_id": "bob", "text": "Plays the oboe"}))
    assert sorted(talk.texts()) == ["Allergic to walnuts", "Lives in Oslo"]
    return talk


def forgotten(client: FlaskClient, owner: str = "users/ada") -> int:
    """The figure, once its time is seen to be now, or none."""
    stored = good(client.get(f"/api/{owner}"))
    count, last = stored["facts_forgotten"], stored["last_forgotten_at"]
    assert (last is None) == (count == 0)
    assert last is None or datetime.now(UTC) - datetime.fromisoformat(last) < timedelta(minutes=5)
    assert "walnut" not in json.dumps(stored)
    return int(count)


def corrected(talk: Talk) -> int:
    """The id of the fact that takes the place of one."""
    talk.say("I moved to Bergen.")
    oslo = next(one["id"] for one in talk.facts() if "Oslo" in one["text"])
    talk.server.mini.queue(digest_of(fact("Lives in Bergen", 3, "moved to Bergen", supersedes=[oslo])))
    jobs_done(talk.client, "summary", "index")
    return next(int(one["id"]) for one in talk.facts() if "Bergen" in one["text"])


def test_each_way_of_forgetting_is_counted_for_its_owner_alone(talk):
    """What is corrected or undone is not: it is still known, or never was."""
    assert forgotten(talk.client) == 0
    good(talk.client.delete(f"/api/facts/{corrected(talk)}", query_string={"restore": "true"}))
    assert forgotten(talk.client) == 0 and sorted(talk.texts()) == ["Allergic to walnuts", "Lives in Oslo"]
    oslo = corrected(talk)
    assert good(talk.client.delete(f"/api/facts/{oslo}"))["erased"]["facts"] == 2
    assert forgotten(talk.client) == 1, "a fact and what it corrected count as one"
    (walnuts,) = talk.facts()
    talk.say("Forget that I'm allergic to walnuts.")
    talk.server.mini.queue({**digest_of(), "forget": [f"F{walnuts['id']}"]})
    jobs_done(talk.client, "summary", "index")
    assert (forgotten(talk.client), forgotten(talk.client, "users/bob")) == (2, 0)
    assert talk.facts() == []
    stated = good(talk.client.post("/api/facts", json={"text": "Ships on Fridays", **TEAM}))
    good(talk.client.delete(f"/api/facts/{stated['id']}", query_string=TEAM))
    assert (forgotten(talk.client, "spaces/team"), forgotten(talk.client)) == (1, 2)


@pytest.mark.parametrize("archived", [False, True])
def test_what_goes_with_a_session_is_counted_unless_it_is_archived(talk, archived):
    append(talk.client, "t", [said("Hello")], **ADA)
    good(talk.client.put("/api/retention", json={"sessions": 1, "archive": archived}))
    jobs_done(talk.client, "retention")
    assert read_all(talk.client, "/api/facts", **ADA) == [] and forgotten(talk.client) == (0 if archived else 2)


def test_what_was_refused_or_said_otherwise_is_not_counted(talk):
    good(talk.client.put("/api/rules", json={"words": ["walnuts"], "close": True, "review": True, **ADA}))
    talk.say("I have a dog.")
    talk.server.mini.queue(digest_of(fact("Has a dog", 3, "I have a dog")))
    jobs_done(talk.client, "summary", "index")
    (dog,) = talk.facts(state="waiting")
    assert good(talk.client.post("/api/facts/review", json={"refused": [dog["id"]], **ADA}))["refused"] == 1
    assert talk.texts() == ["Lives in Oslo"] and forgotten(talk.client) == 0
    message = talk.facts()[0]["source_message_id"]
    chat(talk.client, "I live in Bergen.", session_id="s", replaces=message, **ADA)
    assert talk.facts() == [] and forgotten(talk.client) == 0
