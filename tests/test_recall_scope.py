"""Whose past a turn recalls, how far back it looks among a person's sessions, and in which languages."""

from itertools import product

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.recall.recall import MISSING
from memory.turn.prompt import NOTES
from tests.http import append, chat, said, stored
from tests.knowledge import digest_of, fact
from tests.model_server import ToolCalls, prompts
from tests.recall import BARE, last, recalled, talker, words

LOOK_BACKS = (
    "What is the locker code?",
    "What did we talk about yesterday?",
    "Which locker did I mention yesterday?",
    "locker 7319",
)
YESTERDAY = "2024-05-14T09:00:00Z"


@pytest.fixture
def client(make_app, model_server, monkeypatch):
    """Two people, and two sessions of nobody, who all spoke of a locker yesterday."""
    return peopled(talker(make_app, model_server, monkeypatch))


def peopled(client: FlaskClient) -> FlaskClient:
    for session, user, text in (
        ("ada-1", "ada", "Ada's locker code is 1111."),
        ("ada-2", "ada", "Ada's other locker is green."),
        ("bob-1", "bob", "Bob's locker code is 2222."),
        ("lone-1", None, "A locker code is 3333."),
        ("lone-2", None, "The locker code is 4444."),
    ):
        append(client, session, [said(text, created_at=YESTERDAY)], **({"user_id": user} if user else {}))
    return client


ADA = {"Ada's locker code is 1111.", "Ada's other locker is green."}


def test_only_ones_own_past_is_recalled(client, model_server):
    whose = (
        ({"user_id": "ada"}, ADA),
        ({"user_id": "ada", "session_id": "new"}, ADA),
        ({"user_id": "bob"}, {"Bob's locker code is 2222."}),
        ({"user_id": "eve"}, set()),
        ({"session_id": "lone-3"}, set()),
        ({"temporary": True}, set()),
    )
    for _ in range(2):  # waiting, then indexed
        for (who, mine), message in product(whose, LOOK_BACKS):
            answer = chat(client, message, recall="always", **who)
            assert words(answer) <= mine and bool(words(answer)) is bool(mine), message
            if message == "What did we talk about yesterday?":
                assert words(answer) == mine
            for text in ("1111", "2222", "3333", "4444"):
                assert (text in last(model_server)) is any(text in one for one in words(answer)), message
            assert mine or last(model_server).replace(f"{NOTES[MISSING]}\n", "") == BARE + message
            if not who.get("temporary"):
                assert client.delete(f"/api/sessions/{answer['session_id']}").status_code == 200
        engine_of(client.application).job_queue.run_due()


@pytest.mark.parametrize("message", LOOK_BACKS[1:3])
def test_recall_scope_session_looks_into_the_one_session_only(make_app, model_server, monkeypatch, message):
    settings = {"recall_scope": "session", "tail_messages_max": 2, "tail_messages_min": 0, "summary_mode": "inline"}
    client = peopled(talker(make_app, model_server, monkeypatch, **settings))
    model_server.main.default = lambda body: "Noted."
    chat(client, "Good morning", session_id="ada-1", user_id="ada")
    chat(client, "Thanks", session_id="ada-1", user_id="ada")  # what came before is in the summary now
    here = chat(client, message, session_id="ada-1", user_id="ada", recall="always")
    assert here["memory"]["tail"]["messages"] < len(stored(client, "ada-1")) - 2
    assert "Ada's locker code is 1111." in words(here) and "Ada's other locker is green." not in words(here)
    for who in ({"session_id": "new"}, {}, {"temporary": True}):
        elsewhere = chat(client, message, user_id="ada", recall="always", **who)
        assert recalled(elsewhere) == [], who


@pytest.mark.parametrize("tool", [("conversation_search", {"query": "locker code"}), ("recent_chats", {})])
def test_recall_scope_session_holds_for_the_tools(make_app, model_server, monkeypatch, tool):
    for scope, finds in (("session", False), ("user", True)):
        client = peopled(talker(make_app, model_server, monkeypatch, recall_scope=scope, recall="tools"))
        for who in ({"session_id": f"new-{scope}"}, {"temporary": True}):
            model_server.main.queue(ToolCalls((tool,)), "Noted.")
            chat(client, "Which locker was it?", user_id="ada", **who)
            assert prompts(model_server)[-1][-1]["role"] == "tool"
            assert ("Ada's locker code is 1111." in last(model_server)) is finds, (scope, who)


def test_a_turn_without_memory_looks_at_its_session_alone_and_comes_up_in_no_other(client, model_server):
    client.post("/api/facts", json={"user_id": "ada", "text": "Likes green lockers"})
    private = {"session_id": "ada-3", "user_id": "ada", "remember": False}
    answer = chat(client, "My locker code is 5555.", **private, recall="always")
    assert answer["memory"]["facts"] == answer["memory"]["excerpts"] == []
    assert not any("1111" in str(message) or "green" in str(message) for message in prompts(model_server)[-1])
    model_server.mini.queue(digest_of(fact("Locker code is 5555", 1, "locker code is 5555"), data=["Code 5555"]))
    engine_of(client.application).job_queue.run_due(["summary"])
    texts = [item["text"] for item in client.get("/api/facts?user_id=ada").json["items"]]
    assert texts == ["Likes green lockers"]
    elsewhere = chat(client, "What is the locker code?", session_id="ada-4", user_id="ada", recall="always")
    assert "Ada's locker code is 1111." in words(elsewhere) <= ADA
    found = client.get("/api/search?user_id=ada&q=5555").json["results"]
    assert "My locker code is 5555." in [result["content"] for result in found], "the person's own search finds it"
    chat(client, "And my bike is red.", session_id="ada-3", user_id="ada")
    assert "5555" in str(prompts(model_server)[-1]), "in its session it is still known"
