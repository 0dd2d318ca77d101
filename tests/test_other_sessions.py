"""References without content: how the latest conversations ended is shown, or that nothing fits."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from memory.recall.recall import LATEST, MISSING
from memory.turn.prompt import NOTES
from tests.http import append, chat, good, said
from tests.knowledge import summarise
from tests.model_server import at
from tests.recall import last, recalled, words

ADA = {"user_id": "ada"}
REFERENCES = (
    "Where were we?",
    "Is there anything new on our project?",
    "继续上次的话题",
)


@pytest.fixture
def client(model_app):
    return model_app.test_client()


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
