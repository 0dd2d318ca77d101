"""Facts that a person edits: the new text is their own statement, and the old one stays with its quote and message."""

import pytest

from app import engine_of
from tests.http import chat, find, good, read_all, said
from tests.knowledge import Talk, digest_of, fact
from tests.test_mcp import use
from tests.test_profile import HOME, Person, change, patch
from tests.test_rules import put

ADA = {"user_id": "ada"}
SAID = "The kayak costs 400 euros."


@pytest.fixture
def talk(model_app, model_server):
    """Ada's kayak, a fact of which is known."""
    talk = Talk(model_app, model_server, "kayak", "ada")
    talk.hear(SAID, reply=digest_of(fact("The kayak costs 400 euros", 1, SAID, scope="user")))
    return talk


def edit(talk: Talk, **changes: object) -> dict[str, object]:
    (old,) = talk.facts()
    edited: dict[str, object] = good(talk.client.patch(f"/api/facts/{old['id']}", json=changes))
    (listed,) = talk.facts()
    assert edited | {"score": None} == listed | {"score": None} and edited["id"] == old["id"]  # its age is in the score
    return edited


def test_an_edited_text_has_no_quote_and_the_old_one_keeps_its_own(talk):
    (old,) = talk.facts()
    assert edit(talk, pinned=True)["quote"] == SAID, "the text is as it was"
    edited = edit(talk, text="The kayak costs 480 euros")
    assert (edited["quote"], edited["source_message_id"], edited["pinned"]) == ("", None, True)
    (before,) = talk.facts(as_of=old["valid_from"])
    assert (before["text"], before["quote"]) == (old["text"], SAID)
    assert (before["source_message_id"], before["superseded_by"]) == (old["source_message_id"], edited["id"])
    assert before["valid_to"] == edited["valid_from"]
    history = good(talk.client.get(f"/api/facts/{edited['id']}/history"))["items"]
    assert [one["text"][-9:] for one in history] == ["400 euros", "400 euros", "480 euros"]


@pytest.mark.parametrize("new", ["Plays the violin", "Plays the cello", "Plays the cello in an orchestra"])
def test_an_edit_is_all_that_the_fact_says(client, new):
    """Whoever edits a text sees all of it, and leaves out what is not so: no rest of it stays as a fact."""
    stated = good(client.post("/api/facts", json={**ADA, "text": "Plays the cello, but not at night"}))
    good(client.patch(f"/api/facts/{stated['id']}", json={"text": new}))
    assert [fact["text"] for fact in good(client.get("/api/facts", query_string=ADA))["items"]] == [new]


def test_what_was_said_is_found_with_the_edited_text(talk, model_server):
    edit(talk, text="The kayak costs 450 euros")
    edit(talk, text="The kayak costs 480 euros")
    (result,) = find(talk.client, "kayak", **ADA)
    assert [one["text"] for one in result["corrections"]] == ["The kayak costs 480 euros"]
    answer = chat(talk.client, "What does the kayak cost?", session_id="new", **ADA)
    assert [one["text"] for one in answer["memory"]["facts"]] == ["The kayak costs 480 euros"]


def test_the_old_text_goes_with_its_message_and_the_edited_one_stays(talk):
    edited = edit(talk, text="It costs 480 euros")
    message = good(talk.client.get("/api/sessions/kayak/messages", query_string=ADA))["items"][0]["id"]
    receipt = good(talk.client.delete(f"/api/sessions/kayak/messages/{message}", query_string=ADA))
    assert receipt["erased"]["facts"] == 1
    assert talk.texts() == ["It costs 480 euros"]
    history = good(talk.client.get(f"/api/facts/{edited['id']}/history"))["items"]
    assert [one["text"] for one in history] == ["It costs 480 euros"]
    assert SAID[:-1] not in str(good(talk.client.get("/api/users/ada/export")))


def test_forgetting_it_forgets_both_and_undoing_it_brings_the_old_one_back(talk):
    edited = edit(talk, text="It costs 480 euros")
    good(talk.client.delete(f"/api/facts/{edited['id']}", query_string={**ADA, "restore": "true"}))
    (back,) = talk.facts()
    assert (back["text"], back["quote"]) == (SAID[:-1], SAID)
    edited = edit(talk, text="It costs 490 euros")
    assert good(talk.client.delete(f"/api/facts/{edited['id']}", query_string=ADA))["erased"]["facts"] == 2
    assert talk.facts() == [] and talk.facts(as_of="2100-01-01") == []


def test_facts_that_said_the_same_do_not_prove_the_new_text(model_app, model_server):
    talk = Talk(model_app, model_server, "one", "ada")
    for session, text in (("one", "Went to Porto with Ida"), ("two", "With Ida the user went to Porto")):
        Talk(model_app, model_server, session, "ada").hear(text, reply=digest_of(fact(text, 1, scope="user")))
    good(talk.client.post("/api/users/ada/consolidation"))
    engine_of(model_app).job_queue.run_due(["consolidation"])
    (left,) = talk.facts()
    assert left["proof_count"] == 2
    edited = edit(talk, text="Went to Faro with Ida")
    assert (edited["proof_count"], edited["proofs"]) == (1, [])
    message = left["proofs"][0]["session_id"], left["proofs"][0]["source_message_id"]
    good(talk.client.delete("/api/sessions/{}/messages/{}".format(*message), query_string=ADA))
    assert talk.texts() == ["Went to Faro with Ida"]
    assert find(talk.client, "Porto", **ADA)[0]["corrections"][0]["text"] == "Went to Faro with Ida"


def test_an_export_brings_the_edit_along(talk):
    edited = edit(talk, text="It costs 480 euros")
    document = good(talk.client.get("/api/users/ada/export"))
    assert {(one["text"], one["quote"], one["source_position"]) for one in document["facts"]} == {
        ("It costs 480 euros", "", None),
        (SAID[:-1], SAID, 1),
    }
    good(talk.client.post("/api/import", query_string={"user_id": "bob"}, json=document))
    (known,) = read_all(talk.client, "/api/facts", user_id="bob")
    assert (known["text"], known["quote"], known["source_message_id"]) == (edited["text"], "", None)


def test_a_model_that_edits_it_over_mcp_gives_the_new_text_its_own_quote(talk):
    (old,) = talk.facts()
    use(talk.client, "update_memory", id=old["id"], text="The kayak costs 480 euros", quote="it costs 480 euros")
    (edited,) = talk.facts()
    assert (edited["quote"], edited["source_message_id"]) == ("it costs 480 euros", None)


def test_an_edited_fact_that_waits_has_no_source(talk):
    put(talk.client, "ada", review=True)
    (costs,) = talk.facts()
    words = "Now the kayak costs 450 euros."
    talk.hear(
        words, reply=digest_of(fact("The kayak costs 450 euros", 2, words, scope="user", supersedes=[costs["id"]]))
    )
    (waits,) = talk.facts(state="waiting")
    changed = good(talk.client.patch(f"/api/facts/{waits['id']}", json={"text": "It costs 480 euros"}))
    assert (changed["quote"], changed["source_message_id"], changed["waiting"]) == ("", None, True)
    assert changed["valid_to"] == changed["valid_from"] and talk.texts() == [costs["text"]]
    good(talk.client.post("/api/facts/review", json={**ADA, "accepted": [waits["id"]]}))
    assert talk.texts() == ["It costs 480 euros"]
    good(talk.client.delete(f"/api/sessions/kayak/messages/{waits['source_message_id']}", query_string=ADA))
    assert talk.texts() == ["It costs 480 euros"]
    assert "450 euros" not in str(good(talk.client.get("/api/users/ada/export")))


def test_an_edited_fact_that_is_valid_no_longer_says_what_was_so_then(model_app, model_server):
    talk = Talk(model_app, model_server, "kayak", "ada")
    for number, (price, known) in enumerate(((400, []), (450, ["F1"])), 1):
        stated = said(f"It costs {price} euros", created_at=f"2024-0{number}-01T00:00:00Z")
        costs = fact(stated["content"], number, scope="user", supersedes=known)
        talk.hear(stated, reply=digest_of(costs, data=[stated["content"]]))
    (old,) = talk.facts(as_of="2024-01-15")
    changed = good(talk.client.patch(f"/api/facts/{old['id']}", json={"text": "It costs 450 euros"}))
    times = ("valid_from", "valid_to", "superseded_by")
    assert [changed[name] for name in times] == [old[name] for name in times]
    assert talk.texts(as_of="2024-01-15") == [changed["text"]] and talk.texts() == ["It costs 450 euros"]
    good(talk.client.patch(f"/api/facts/{old['id']}", json={"text": "It costs 400 euros with the paddle"}))
    assert talk.summary()["latest"]["sections"]["data"] == ["It costs 450 euros"]
    good(talk.client.delete(f"/api/sessions/kayak/messages/{old['source_message_id']}", query_string=ADA))
    assert talk.texts(as_of="2024-01-15") == ["It costs 400 euros with the paddle"]


def test_what_was_told_since_is_still_read_for_the_profile(model_app, model_server):
    ada = Person(model_app, model_server)
    ada.tell("I live in Tallinn.")
    assert ada.update(patch(HOME))["document"] == {"home": "Tallinn"}
    ada.tell("I love green tea.")
    home = next(one for one in read_all(ada.client, "/api/facts", user_id="ada") if "Tallinn" in one["text"])
    good(ada.client.patch(f"/api/facts/{home['id']}", json={"text": "Lives in Riga"}))
    assert ada.profile()["document"] == {}
    assert ada.update(patch(change("add", "/likes/-", "green tea", "I love green tea.", 2)))["document"] == {
        "likes": ["green tea"]
    }
