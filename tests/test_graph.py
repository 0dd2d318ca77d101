"""Links: what facts tie together.  They rest on the same words as their fact, and share its fate."""

from itertools import pairwise
from typing import Any

import pytest

from memory.tokens import estimate
from tests.http import error, find, good, read_all, said
from tests.knowledge import Talk, digest_of, fact, link
from tests.model_server import at


def edges(talk: Talk, **query: Any) -> list[str]:
    """The graph as lines, one for each edge."""
    found = read_all(talk.client, "/api/graph", session_id=talk.session, **query)
    return [f"{one['subject']['name']} -{one['relation']}-> {one['object']['name']}" for one in found]


IDA = fact("Has a sister called Ida", 1, "my sister Ida", links=[link("user", "sister", "Ida", "person person")])
PORTO = fact("Ida lives in Porto", 1, "lives in Porto", links=[link("Ida", "lives in", "Porto", "person place")])


def test_a_link_rests_on_the_words_of_its_fact(talk):
    talk.hear(
        said("Did I say that my sister Ida lives in Porto?", created_at="2026-03-01T10:00:00Z"),
        reply=digest_of(IDA, PORTO),
    )
    (first, second) = read_all(talk.client, "/api/graph", session_id="s", depth=2, limit=1)
    (source,) = read_all(talk.client, "/api/sessions/s/messages")
    facts = {one["text"]: one["id"] for one in talk.facts()}
    assert [(one["relation"], one["distance"]) for one in (first, second)] == [("sister", 1), ("lives in", 2)]
    assert second["subject"] == {"name": "Ida", "kind": "person"}
    assert second["object"] == {"name": "Porto", "kind": "place"}
    assert first["subject"] == {"name": "user", "kind": "person"}
    assert (second["fact_id"], second["quote"]) == (facts["Ida lives in Porto"], "lives in Porto")
    assert (second["session_id"], second["source_message_id"]) == ("s", source["id"])
    assert (second["valid_from"], second["valid_to"]) == ("2026-03-01T10:00:00+00:00", None)
    assert edges(talk) == ["user -sister-> Ida"]
    assert edges(talk, entity="porto") == ["Ida -lives in-> Porto"]
    assert edges(talk, entity="Lyon") == []


def test_a_link_that_was_not_said_is_left_out_and_its_fact_stays(model_app, model_server):
    saw, with_porto = ("my sister Ida", "I saw my sister Ida."), ("my sister Ida", "I saw my sister Ida. Porto is far.")
    denied = ("doesn't live in Porto", "Ida doesn't live in Porto.")
    for number, ((quote, text), wrong) in enumerate(
        (
            (saw, link("Ida", "lives in", "Porto")),  # nobody said Porto
            (with_porto, link("Porto", "is", "far")),  # not in the quote
            (denied, link("Ida", "lives in", "Porto")),  # the opposite
            (saw, link("Ida", "is", "ida")),  # of one thing with itself
            (saw, link("Ida", "", "my sister")),
            (saw, {"subject": "Ida"}),
            (saw, "Ida is my sister"),
        )
    ):
        talk, about = (
            Talk(model_app, model_server, f"s{number}"),
            "Ida doesn't live in Porto" if "n't" in quote else "Knows Ida",
        )
        talk.hear(text, said("Is she in Lisbon?", "assistant"), reply=digest_of(fact(about, 1, quote, links=[wrong])))
        assert (talk.texts(), edges(talk, entity="Ida")) == ([about], [])


def test_without_the_setting_nothing_is_asked_for_and_nothing_stored(make_app, model_server):
    asked = {}
    for session, setting in (("on", "on"), ("off", "off")):
        talk = Talk(make_app(**at(model_server), links=setting), model_server, session)
        talk.hear("I saw my sister Ida.", reply=digest_of(IDA))
        asked[setting] = talk.digests()[-1][0]["content"]
        assert edges(talk) == ["user -sister-> Ida"] * (setting == "on")
    assert "links" not in asked["off"]
    assert 0 < estimate(asked["on"]) - estimate(asked["off"]) <= 100


# -- names


@pytest.mark.parametrize("sister", ["my sister", "the user's sister"])
def test_all_names_of_somebody_lead_to_one_entity(talk, sister):
    doctor = fact("The sister is a doctor", 1, "My sister is a doctor", links=[link(sister, "works as", "doctor")])
    talk.hear("My sister is a doctor.", reply=digest_of(doctor))
    assert edges(talk, entity="my sister") == ["user's sister -works as-> doctor"]
    older = link("user", "has an older sister", "Ida", "person person")
    talk.hear("Ida, my older sister, moved.", reply=digest_of(fact("Ida is older", 2, "Ida, my older", links=[older])))
    both = ["user -has an older sister-> Ida", "Ida -works as-> doctor"]
    assert edges(talk, entity="Ida") == edges(talk, entity="my sister") == edges(talk, entity=sister) == both
    (named,) = [one["id"] for one in talk.facts() if one["text"] == "Ida is older"]
    good(talk.client.delete(f"/api/facts/{named}"))  # and nothing is left of the name
    assert edges(talk, entity="Ida") == []
    assert edges(talk, entity="my sister") == ["user's sister -works as-> doctor"]


def test_two_of_a_kind_stay_apart(talk):
    links = [link("user", "sister", name, "person person") for name in ("Ida", "Tia")]
    lives = link("my sister", "lives in", "Porto", "person place")
    talk.hear(
        "My sisters are Ida and Tia.",
        "My sister lives in Porto.",
        reply=digest_of(
            fact("Has sisters Ida and Tia", 1, "My sisters are Ida and Tia", links=links),
            fact("A sister lives in Porto", 2, "My sister lives in Porto", links=[lives]),
        ),
    )
    assert edges(talk, entity="my sister") == ["user -sister-> Ida", "user -sister-> Tia"]
    assert edges(talk, entity="Porto") == ["user's sister -lives in-> Porto"]


# -- the graph


def test_circles_are_walked_once_and_pages_are_of_all(talk):
    round_table = ["Ida", "Tia", "Una", "Vera", "Ida"]
    links = [link(one, "knows", other, "person person") for one, other in pairwise(round_table)]
    talk.hear(", ".join(round_table), reply=digest_of(fact("All of them", 1, ", ".join(round_table), links=links)))
    one = ["Ida -knows-> Tia", "Vera -knows-> Ida"]
    two = ["Tia -knows-> Una", "Una -knows-> Vera"]
    assert edges(talk, entity="Ida", limit=1) == edges(talk, entity="IDA") == one
    assert edges(talk, entity="Ida", depth=2, limit=1) == edges(talk, entity="Ida", depth=3) == one + two


def test_what_cannot_be_asked_is_explained(talk):
    talk.hear("Hello", reply=digest_of())
    for query in ("depth=4", "depth=0", "entity=", "as_of=soon", "cursor=x", "limit=0"):
        assert error(talk.client.get(f"/api/graph?session_id=s&{query}"), 422)["message"]
    assert error(talk.client.get("/api/graph"), 422)["code"] == "owner_needed"
    assert error(talk.client.get("/api/graph?session_id=none"), 404)["code"] == "session_not_found"
    assert good(talk.client.get("/api/graph?user_id=nobody"))["items"] == []


# -- recall


def found(talk: Talk, question: str) -> list[str]:
    """The messages that a search finds, best first."""
    return [one["content"] for one in find(talk.client, question, user_id="ada", limit=5)]


def test_a_question_about_somebody_finds_what_is_told_of_their_neighbours(model_app, model_server):
    talk = Talk(model_app, model_server, "before", "ada")
    talk.say(
        "My sister Ida called.",
        *(f"We had a barbecue with the people of house {number}." for number in range(20)),
        "She has found a flat in Porto.",
        *(f"The city council wrote about waste bin {number}." for number in range(20)),
    )
    question = "What is my sister's city like in winter?"
    assert "She has found a flat in Porto." not in found(talk, question)[:1]
    flat = fact("Ida lives in Porto", 22, "She has found a flat in Porto", links=PORTO["links"])
    talk.digest(digest_of({**IDA, **NAMED}, flat))
    assert "She has found a flat in Porto." in found(talk, question)[:2]
    assert "flat in Porto" in Talk(model_app, model_server, "later", "ada").prompt(question)


# -- what becomes of a link


@pytest.fixture
def moved(talk):
    """Ida lived in Porto, and moved to Lyon."""
    talk.hear(
        said("My sister Ida lives in Porto.", created_at="2026-03-01T10:00:00Z"),
        reply=digest_of({**IDA, **NAMED}, PORTO),
    )
    lyon = fact("Ida lives in Lyon", 2, "Ida moved to Lyon", links=[link("Ida", "lives in", "Lyon", "person place")])
    talk.hear(
        said("Ida moved to Lyon.", created_at="2026-05-01T10:00:00Z"),
        reply=digest_of({**lyon, "supersedes": [one["id"] for one in talk.facts() if "Porto" in one["text"]]}),
    )
    return talk


NAMED = {"quote": "My sister Ida"}
THEN, NOW = ["Ida -lives in-> Porto", "user -sister-> Ida"], ["Ida -lives in-> Lyon", "user -sister-> Ida"]


def test_a_correction_or_an_edit_closes_the_links_and_the_past_can_be_read(moved):
    assert edges(moved, entity="Ida") == NOW
    assert edges(moved, entity="Ida", as_of="2026-04-01T00:00:00Z") == THEN
    assert edges(moved, entity="Ida", as_of="2026-01-01T00:00:00Z") == []
    facts = {one["text"]: one["id"] for one in moved.facts()}
    edits = {"Ida lives in Lyon": "Ida lives in Nice", "Has a sister called Ida": "Ida is a sister of mine"}
    for old, new in edits.items():
        good(moved.client.patch(f"/api/facts/{facts[old]}", json={"text": new}))
    assert edges(moved, entity="Ida") == NOW[1:], "an edited fact keeps the links that its words still name"


def test_links_go_along_with_an_export_and_with_an_erased_person(model_app, model_server):
    talk = Talk(model_app, model_server, user="ada")
    talk.hear("I saw my sister Ida. She lives in Porto.", reply=digest_of(IDA, PORTO))
    export = good(talk.client.get("/api/users/ada/export"))
    assert [one["links"] for one in export["facts"]] == [IDA["links"], PORTO["links"]]
    good(talk.client.post("/api/import?user_id=bob", json=export))
    good(talk.client.post("/api/import?user_id=bob", json=export))
    assert good(talk.client.delete("/api/users/ada"))["erased"]["facts"] == 2
    bobs = read_all(talk.client, "/api/graph", user_id="bob", depth=2)
    assert [one["object"]["name"] for one in bobs] == ["Ida", "Porto"]
    export["facts"][0]["links"][0]["object"] = "User"
    refused = error(talk.client.post("/api/import?user_id=carl", json=export), 422)
    assert (refused["code"], refused["param"]) == ("invalid_import", "facts.0.links.0.object")
    assert error(talk.client.get("/api/users/carl"), 404)
