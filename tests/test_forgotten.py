"""How many facts of a person were forgotten lately, however it came, without a word of them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.http import append, chat, good, read_all, said
from tests.jobs import jobs_done
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import Text, ToolCalls

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


def first(talk: Talk) -> dict[str, Any]:
    return next(one for one in talk.facts() if "walnuts" in one["text"])


def forgotten(client: FlaskClient, owner: str = "users/ada") -> int:
    """The figure, once its time is seen to be now, or none."""
    stored = good(client.get(f"/api/{owner}"))
    count, last = stored["facts_forgotten"], stored["last_forgotten_at"]
    assert (last is None) == (count == 0)
    assert last is None or datetime.now(UTC) - datetime.fromisoformat(last) < timedelta(minutes=5)
    assert "walnut" not in json.dumps(stored)
    return int(count)


# -- each way of forgetting


def by_the_page(talk: Talk) -> None:
    good(talk.client.post("/api/facts/forget", json={"ids": [one["id"] for one in talk.facts()], **ADA}))


def by_its_address(talk: Talk) -> None:
    good(talk.client.delete(f"/api/facts/{first(talk)['id']}"))


def with_its_message(talk: Talk) -> None:
    good(talk.client.delete(f"/api/sessions/s/messages/{first(talk)['source_message_id']}"))


def with_its_session(talk: Talk) -> None:
    good(talk.client.delete("/api/sessions/s"))


def in_talk(talk: Talk) -> None:
    meant = first(talk)["id"]
    talk.say("Forget that I'm allergic to walnuts.")
    talk.server.mini.queue({**digest_of(), "forget": [f"F{meant}"]})
    jobs_done(talk.client, "summary", "index")


def by_the_models_tool(talk: Talk) -> None:
    call = {"fact": "Allergic to walnuts", "quote": "forget that I am allergic to walnuts"}
    talk.server.main.queue(ToolCalls([("forget", call)]), Text("Done."))
    chat(talk.client, "Please forget that I am allergic to walnuts.", session_id="s", recall="tools", **ADA)


def by_a_policy(talk: Talk) -> None:
    append(talk.client, "t", [said("Hello")], **ADA)
    good(talk.client.put("/api/retention", json={"sessions": 1, "archive": False}))
    jobs_done(talk.client, "retention")


def corrected(talk: Talk) -> int:
    """The id of the fact that takes the place of one."""
    talk.say("I moved to Bergen.")
    oslo = next(one["id"] for one in talk.facts() if "Oslo" in one["text"])
    talk.server.mini.queue(digest_of(fact("Lives in Bergen", 3, "moved to Bergen", supersedes=[oslo])))
    jobs_done(talk.client, "summary", "index")
    return next(int(one["id"]) for one in talk.facts() if "Bergen" in one["text"])


def after_a_correction(talk: Talk) -> None:
    assert good(talk.client.delete(f"/api/facts/{corrected(talk)}"))["erased"]["facts"] == 2


@pytest.mark.parametrize(
    ("way", "count"),
    [
        *((by_the_page, 2), (by_its_address, 1), (with_its_message, 1), (with_its_session, 2), (in_talk, 1)),
        *((by_the_models_tool, 1), (by_a_policy, 2), (after_a_correction, 1)),
    ],
)
def test_each_way_of_forgetting_is_counted_for_its_owner_alone(talk, way, count):
    assert forgotten(talk.client) == 0
    way(talk)
    left = {one["text"] for one in read_all(talk.client, "/api/facts", **ADA)}
    assert left <= {"Allergic to walnuts", "Lives in Oslo"} and len(left) < 2
    assert (forgotten(talk.client), forgotten(talk.client, "users/bob")) == (count, 0)


def test_a_space_has_its_own_figure(talk):
    stated = good(talk.client.post("/api/facts", json={"text": "Ships on Fridays", **TEAM}))
    good(talk.client.delete(f"/api/facts/{stated['id']}", query_string=TEAM))
    assert (forgotten(talk.client, "spaces/team"), forgotten(talk.client)) == (1, 0)


# -- what is not forgotten


def edit(talk: Talk) -> None:
    message = first(talk)["source_message_id"]
    chat(talk.client, "I am allergic to nothing.", session_id="s", replaces=message, **ADA)


def archive(talk: Talk) -> None:
    append(talk.client, "t", [said("Hello")], **ADA)
    good(talk.client.put("/api/retention", json={"sessions": 1, "archive": True}))
    jobs_done(talk.client, "retention")


def close(talk: Talk) -> None:
    good(talk.client.put("/api/rules", json={"words": ["walnuts"], "close": True, **ADA}))


def refuse(talk: Talk) -> None:
    good(talk.client.put("/api/rules", json={"review": True, **ADA}))
    talk.say("I have a dog.")
    talk.server.mini.queue(digest_of(fact("Has a dog", 3, "I have a dog")))
    jobs_done(talk.client, "summary", "index")
    (dog,) = talk.facts(state="waiting")
    assert good(talk.client.post("/api/facts/review", json={"refused": [dog["id"]], **ADA}))["refused"] == 1


def undo(talk: Talk) -> None:
    good(talk.client.delete(f"/api/facts/{corrected(talk)}", query_string={"restore": "true"}))


@pytest.mark.parametrize(
    ("way", "left"),
    [
        (edit, set()),  # the message after it went as well
        (archive, set()),
        (close, {"Lives in Oslo"}),
        *((way, {"Allergic to walnuts", "Lives in Oslo"}) for way in (refuse, undo)),
    ],
)
def test_what_was_said_otherwise_or_is_still_kept_is_not_counted(talk, way, left):
    way(talk)
    assert {one["text"] for one in read_all(talk.client, "/api/facts", **ADA)} == left
    assert forgotten(talk.client) == 0
