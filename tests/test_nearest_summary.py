"""Summaries of other conversations beside the excerpts of a prompt: the best match in a line, or those of the hits."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.http import append, chat, good, said
from tests.knowledge import summarise
from tests.model_server import ModelServer, at
from tests.recall import last, recalled

ADA = {"user_id": "ada"}
QUESTION = "Which insulation for the attic roof?"


@pytest.fixture
def client(model_app):
    return model_app.test_client()


def held(
    client: FlaskClient, server: ModelServer, session: str, words: str, topic: str, user_id: str = "ada", **more: Any
) -> None:
    append(client, session, [said(words)], user_id=user_id)
    summarise(client, server, topic=topic, **more)


def summaries(answer: dict[str, Any]) -> list[str]:
    return [one["summary"]["text"] for one in answer["memory"]["excerpts"] if one["summary"]]


def test_a_summary_that_fits_stands_beside_the_excerpts(client, model_server):
    held(client, model_server, "house", "We need hemp wool up there.", "Attic roof insulation")
    held(client, model_server, "soup", "Red lentils are fine.", "Lentil soup")
    held(client, model_server, "bobs", "Nothing.", "Attic roof insulation of Bob", user_id="bob")
    answer = chat(client, QUESTION, session_id="new", **ADA)
    assert summaries(answer) == ["Topic: Attic roof insulation"]
    text = last(model_server)
    assert 'uri="recap://sessions/house">\nTopic: Attic roof insulation\n</chat>' in text and "Bob" not in text
    turn = good(client.get(f"/api/sessions/new/turns/{answer['message_id']}"))
    assert turn["memory"]["excerpts"] == answer["memory"]["excerpts"]
    assert summaries(chat(client, "Good morning!", session_id="new", **ADA)) == []
    assert summaries(chat(client, "Which shoes for the marathon?", session_id="new", **ADA)) == []


def test_it_stays_out_where_an_excerpt_is_of_the_same_session_or_has_no_room(make_app, model_server):
    client = make_app(**at(model_server)).test_client()
    held(client, model_server, "house", "The attic roof insulation is hemp wool.", "Attic roof insulation")
    answer = chat(client, QUESTION, temporary=True, **ADA)
    assert answer["memory"]["excerpts"] and summaries(answer) == []
    held(client, model_server, "second", "Up there it is cold.", "Attic roof insulation, again")
    assert summaries(chat(client, QUESTION, temporary=True, **ADA)) == ["Topic: Attic roof insulation, again"]
    client = make_app(**at(model_server, recall_tokens=40)).test_client()
    assert summaries(chat(client, QUESTION, temporary=True, **ADA)) == []
    client = make_app(**at(model_server, recall_scope="session")).test_client()
    assert summaries(chat(client, QUESTION, temporary=True, **ADA)) == []


# -- how things stand

TRIP = ("We plan a trip to Lisbon for 900 euros.", "Stay in Alfama!", *("Will it rain there?", "Hardly.") * 6)
STANDING = {
    "requirements": ["Stay in Príncipe </chat> Real"],
    "constraints": ["1100 euros"],
    "excluded": [{"option": "Alfama", "reason": "stairs"}],
    "discussed": ["Rain"],
}


@pytest.fixture
def trip(client, model_server):
    """Ada's trip, whose summary says what her first messages do not; and one of Bob's."""
    for session, user in (("trip", "ada"), ("bobs", "bob")):
        append(
            client, session, [said(words, ("user", "assistant")[at % 2]) for at, words in enumerate(TRIP)], user_id=user
        )
        summarise(client, model_server, topic=f"Lisbon trip of {user}", **STANDING)
    return client


@pytest.mark.parametrize(
    "message",
    [
        "Where were we with the trip to Lisbon?",
        "Status of our trip?",
    ],
)
def test_a_question_for_how_things_stand_shows_the_summary_before_the_messages_that_are_found(
    trip, model_server, message
):
    answer = chat(trip, message, session_id="new", **ADA)
    (excerpt,) = answer["memory"]["excerpts"]
    assert excerpt["session_id"] == "trip" and recalled(answer)[0][0] == TRIP[0]
    assert excerpt["summary"]["text"].splitlines() == [
        "Topic: Lisbon trip of ada",
        "Requirements: Stay in Príncipe </chat> Real",
        "Constraints: 1100 euros",
        "Ruled out: Alfama: stairs",
    ]
    text = last(model_server)
    assert text.index("Príncipe &lt;/chat&gt; Real") < text.index("900 euros") and "bob" not in text
    (stored,) = good(trip.get(f"/api/sessions/new/turns/{answer['message_id']}"))["memory"]["excerpts"]
    assert (stored["summary"], stored["messages"]) == (excerpt["summary"], excerpt["messages"])


def test_other_questions_and_too_small_budgets_show_messages_alone(trip, make_app, model_server):
    assert summaries(chat(trip, "Is Lisbon a good place for a trip with me?", temporary=True, **ADA)) == []
    small = make_app(**at(model_server, recall_tokens=80)).test_client()
    answer = chat(small, "Where were we with the trip to Lisbon?", temporary=True, **ADA)
    assert TRIP[0] in recalled(answer)[0] and summaries(answer) == []
    own = chat(trip, "Where were we with the trip to Lisbon?", session_id="trip", **ADA)
    assert summaries(own) == [], "the prefix shows the summary of the session itself"


def test_summaries_take_half_of_the_tokens_of_excerpts(client, model_server):
    for number in range(4):
        append(client, f"trip-{number}", [said(f"Plan {number} of the trip to Lisbon. {'word ' * 99}")], **ADA)
        long = {"requirements": ["north " * 60], "data": ["south " * 90], "open_questions": ["why " * 90]}
        summarise(client, model_server, topic="Trip", **long)
    bare = good(client.post("/api/recall", json={**ADA, "message": "Good morning!"}))["tokens"]
    block = good(client.post("/api/recall", json={**ADA, "message": "Where were we with the trip to Lisbon?"}))
    assert 400 < block["tokens"] - bare <= 520 + 4 * 20
    texts = [one["summary"]["text"] for one in block["memory"]["excerpts"] if one["summary"]]
    assert len(texts) == 1 and all(part in texts[0] for part in ("Trip", "north", "why", "south"))


def test_a_summary_in_full_shows_whole_items(client, model_server):
    append(client, "trip", [said("The trip to Lisbon takes a week.")], **ADA)
    items = {
        name: [f"{name} {number} {'word ' * 12}".strip() for number in range(9)] for name in ("data", "constraints")
    }
    summarise(client, model_server, topic="Trip to Lisbon", **items)
    block = good(client.post("/api/recall", json={**ADA, "message": "Where were we with the trip to Lisbon?"}))
    (text,) = (one["summary"]["text"] for one in block["memory"]["excerpts"] if one["summary"])
    for line in text.splitlines()[1:]:
        *shown, rest = line.partition(": ")[2].split("; ")
        assert shown and rest == "…" and set(shown) <= {item for values in items.values() for item in values}


def test_a_session_that_is_not_to_be_remembered_stays_out(client, model_server):
    chat(client, "SECRET attic", session_id="private", remember=False, **ADA)
    summarise(client, model_server, topic="Attic roof insulation SECRET")
    answer = chat(client, QUESTION, temporary=True, **ADA)
    assert summaries(answer) == [] and "SECRET" not in last(model_server)
    held(
        client, model_server, "partly", "The attic roof needs insulation.", "Attic SECRET", requirements=["SECRET wool"]
    )
    chat(client, "SECRET attic", session_id="partly", remember=False, **ADA)
    answer = chat(client, "What did we decide about the attic roof?", temporary=True, **ADA)
    assert recalled(answer) == [["The attic roof needs insulation."]] and "SECRET" not in last(model_server)
