"""Other conversations in a prompt: how the latest ended, where a message refers to them, and summaries that fit it."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from memory.recall.recall import LATEST, MISSING
from memory.turn.prompt import NOTES
from tests.http import append, chat, good, said
from tests.knowledge import summarise
from tests.model_server import ModelServer, at
from tests.recall import last, recalled, words

pytestmark = pytest.mark.scripted

ADA = {"user_id": "ada"}
REFERENCES = (
    "Where were we?",
    "Is there anything new on our project?",
    "继续上次的话题",
)


def talked(client: FlaskClient, session: str, *texts: str, day: int = 10, **who: Any) -> None:
    roles = ("user", "assistant")
    lines = [said(text, roles[at % 2], created_at=f"2024-05-{day:02}T09:{at:02}:00Z") for at, text in enumerate(texts)]
    append(client, session, lines, **(who or ADA))


def kind(answer: dict[str, Any]) -> str:
    return str(answer["memory"]["recall"]["kind"])


@pytest.fixture
def past(client, model_server):
    """Three conversations of Ada's, the kitchen being the latest; and one of Bob's that is newer."""
    talked(client, "garden", "The hedge is too high.", "Cut it in June.", day=8)
    summarise(client, model_server, topic="Cutting the hedge")
    talked(client, "boat", "The mast is cracked.", "Call a rigger.", day=9)
    summarise(client, model_server, topic="Repairing the mast")
    texts = ("The oven is broken.", "Which make?", "A Neff.", "Try the fuse.", "It is fine.", "Then the door switch.")
    talked(client, "kitchen", *texts, day=10)
    summarise(client, model_server, topic="Repairing the oven", open_questions=["Is it the <door> switch?"])
    talked(client, "other", "Bob's secret.", "Noted.", day=12, user_id="bob")
    return client


@pytest.mark.parametrize("message", REFERENCES)
def test_a_reference_without_content_shows_how_the_latest_conversations_ended(past, model_server, message):
    answer = chat(past, message, session_id="new", **ADA)
    assert kind(answer) == LATEST and "so the latest conversations are shown" in answer["memory"]["recall"]["reason"]
    assert recalled(answer) == [["A Neff.", "Try the fuse.", "It is fine.", "Then the door switch."], [], []]
    text = last(model_server)
    assert NOTES[LATEST] in text and "Bob" not in text
    assert "Topic: Repairing the oven\nOpen questions: Is it the &lt;door&gt; switch?\n...\n2024" not in text
    assert 'uri="recap://sessions/kitchen/messages/' in text and "Topic: Repairing the mast" in text
    assert text.index("the hedge") < text.index("the mast") < text.index("door&gt;") < text.index("A Neff.")
    shown = [one["summary"] and one["summary"]["text"] for one in answer["memory"]["excerpts"]]
    assert shown == [
        "Topic: Repairing the oven\nOpen questions: Is it the <door> switch?",
        "Topic: Repairing the mast",
        "Topic: Cutting the hedge",
    ]
    assert [one["session_id"] for one in answer["memory"]["excerpts"]] == ["kitchen", "boat", "garden"]
    turn = good(past.get(f"/api/sessions/new/turns/{answer['message_id']}"))
    assert turn["memory"]["excerpts"] == answer["memory"]["excerpts"], "the record of the turn shows the same"
    good(past.delete("/api/sessions/kitchen"))
    turn = good(past.get(f"/api/sessions/new/turns/{answer['message_id']}"))
    assert [one["session_id"] for one in turn["memory"]["excerpts"]] == ["boat", "garden"]


def test_a_list_question_without_content_shows_a_line_of_each_of_the_latest_conversations(past, model_server):
    talked(past, "bike", "The chain is loose.", "Tighten it.", day=7)
    answer = chat(past, "List the topics in the order I raised them.", session_id="new", **ADA)
    assert kind(answer) == "reference" and recalled(answer) == [[], [], [], []]
    text = last(model_server)
    assert text.index("sessions/bike") < text.index("Cutting the hedge") < text.index("Repairing the mast\n")
    assert text.index("Repairing the mast") < text.index("Repairing the oven\n</chat>")
    assert NOTES[LATEST] not in text and "Bob" not in text


def test_what_names_something_or_has_it_in_sight_is_no_such_reference(past, model_server):
    talked(past, "new", "I bought a red bicycle yesterday.", "A red bicycle, how nice!", day=15)
    for message, session in (
        ("As you said.", "new"),
        ("What did you tell me about the hedge?", "other-new"),
        ("What is a thread?", "other-new"),
    ):
        answer = chat(past, message, session_id=session, **ADA)
        assert kind(answer) != LATEST and not any(one["summary"] for one in answer["memory"]["excerpts"])
        assert NOTES[LATEST] not in last(model_server)


def test_a_conversation_may_be_named_by_its_place(past):
    for message, told in (
        ("What was our second last chat about?", "Call a rigger."),
        ("What did we say three chats ago?", "Cut it in June."),
        ("Worum ging es im vorletzten Gespräch?", "Call a rigger."),
    ):
        answer = chat(past, message, temporary=True, **ADA)
        assert kind(answer) == LATEST
        assert answer["memory"]["excerpts"][0]["messages"][-1]["content"] == told


def test_another_conversation_may_be_meant_in_the_middle_of_one(past):
    talked(past, "new", "I bought a red bicycle yesterday.", "A red bicycle, how nice!", day=15)
    assert kind(chat(past, "Where did we leave off last time?", session_id="new", **ADA)) == LATEST


def test_where_nothing_fits_the_prompt_says_so(client, model_server):
    for message in ("Where did we leave off?", "What did you tell me about the otter?"):
        answer = chat(client, message, user_id="eve", temporary=True)
        assert kind(answer) == MISSING and answer["memory"]["excerpts"] == []
        assert last(model_server).endswith(f"{NOTES[MISSING]}\n</memory>\n\n{message}")
    assert "the model is told to ask" in answer["memory"]["recall"]["reason"]


def test_a_fact_that_fits_is_something_earlier(client, model_server):
    good(client.post("/api/facts", json={"user_id": "eve", "text": "The otter is called Ollie"}))
    for message, missing in (("What did you tell me about the otter?", False), ("What did you say of the boat?", True)):
        answer = chat(client, message, user_id="eve", temporary=True)
        assert (kind(answer) == MISSING, NOTES[MISSING] in last(model_server)) == (missing, missing)
        assert ("only facts fit" in answer["memory"]["recall"]["reason"]) is not missing


def test_facts_take_the_tokens_of_excerpts_where_a_reference_finds_no_message(client, model_server):
    for number in range(40):
        text = f"The library in quarter {number} is pinned to version {number}"
        good(client.post("/api/facts", json={"user_id": "eve", "text": text}))

    def shown(message: str) -> int:
        return len(chat(client, message, user_id="eve", temporary=True)["memory"]["facts"])

    few, many = shown("Which library has a version?"), shown("List the versions as we agreed.")
    assert few < many <= few * 5
    note = "What's left to do before we ship?"
    assert NOTES[MISSING] not in last(model_server) and shown(note) > few
    assert NOTES[MISSING] not in last(model_server), "all facts may tell how things stand"


def test_what_is_not_to_be_seen_elsewhere_stays_out(client, model_server):
    talked(client, "old", "I painted the gate blue.", "Nice colour.", day=3)
    chat(client, "SECRET diagnosis", session_id="private", remember=False, **ADA)
    chat(client, "SECRET of the moment", temporary=True, **ADA)
    talked(client, "partly", "The gate squeaks.", "Oil it.", "SECRET hidden line", "Noted.", day=4)
    hidden = client.post("/api/sessions/partly/messages/hide", json={**ADA, "first": 3, "last": 4})
    assert hidden.status_code == 200
    talked(client, "gone", "SECRET erased.", day=5)
    (erased,) = good(client.get("/api/sessions/gone/messages", query_string=ADA))["items"]
    good(client.delete(f"/api/sessions/gone/messages/{erased['id']}", query_string=ADA))
    answer = chat(client, "Where were we?", session_id="new", **ADA)
    assert words(answer) == {"The gate squeaks.", "Oil it."}
    assert "SECRET" not in last(model_server)
    assert {one["session_id"] for one in answer["memory"]["excerpts"]} == {"partly", "old"}


def test_recall_scope_session_shows_only_what_this_session_dropped(make_app, model_server):
    client = make_app(**at(model_server, recall_scope="session")).test_client()
    talked(client, "old", "The oven is broken.", "Try the fuse.")
    answer = chat(client, "Where did we leave off?", session_id="new", **ADA)
    assert kind(answer) == MISSING and answer["memory"]["excerpts"] == []


def test_the_latest_conversations_take_320_tokens_at_most(client, model_server):
    for day in (1, 2, 3):
        talked(client, f"long-{day}", *("word " * 500,) * 6, day=day)
        summarise(client, model_server, topic="topic " * 60, open_questions=["why " * 90, "how " * 90])
    bare = good(client.post("/api/recall", json={**ADA, "message": "Good morning!"}))["tokens"]
    block = good(client.post("/api/recall", json={**ADA, "message": "Where were we?"}))
    assert 200 < block["tokens"] - bare <= 320 + 60


def test_a_chat_links_to_its_message_where_the_page_has_an_address(make_app, model_server):
    client = make_app(**at(model_server, public_url="https://recap.example.com/chat")).test_client()
    talked(client, 'my "old" <chat>', "The locker code is 1111.")
    answer = chat(client, "Which locker code?", temporary=True, **ADA)
    ((found,),) = [one["hits"] for one in answer["memory"]["excerpts"]]
    session = "my%20%22old%22%20%3Cchat%3E"
    uri, url = f"recap://sessions/{session}/messages/{found}", f"https://recap.example.com/chat/#/{session}/{found}"
    assert f'uri="{uri}" url="{url}">' in last(model_server)


# -- summaries beside the excerpts

QUESTION = "Which insulation for the attic roof?"


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
