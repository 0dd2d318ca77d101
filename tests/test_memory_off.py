"""Memory off: a session or a person whose turns recall nothing, show nothing of the memory, and teach it nothing."""

import json

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.http import append, chat, error, good, said, stored
from tests.knowledge import digest_of, fact
from tests.model_server import ModelServer, prompts
from tests.openai import answered, talk
from tests.recall import talker
from tests.test_mcp import told

ADA = {"user_id": "ada"}


@pytest.fixture
def client(make_app, model_server, monkeypatch):
    """Ada said in another session what her code is, and that she likes green."""
    client = talker(make_app, model_server, monkeypatch)
    append(client, "before", [said("My locker code is 1111.")], **ADA)
    good(client.post("/api/facts", json={**ADA, "text": "Likes green lockers"}))
    return client


def switch(client: FlaskClient, what: str, *, on: bool) -> None:
    if what == "session":
        if not on:
            good(client.post("/api/sessions", json={**ADA, "session_id": "s"}))
        changed = good(client.patch("/api/sessions/s?user_id=ada", json={"remember": on}))
        assert changed["remember"] is good(client.get("/api/sessions/s"))["remember"] is on
    else:
        assert good(client.patch("/api/users/ada", json={"remember": on}))["remember"] is on
        assert good(client.get("/api/users/ada"))["remember"] is on


def shows_memory(server: ModelServer) -> bool:
    sent = str(prompts(server)[-1])
    assert ("1111" in sent) is ("green" in sent)
    return "1111" in sent


def through_v1(client: FlaskClient, message: str) -> None:
    answered(client, talk(message), "s", user="ada")


def through_chat(client: FlaskClient, message: str) -> None:
    chat(client, message, session_id="s", **ADA, recall="always")


def through_a_temporary_chat(client: FlaskClient, message: str) -> None:
    chat(client, message, session_id="s", **ADA, temporary=True)


@pytest.mark.parametrize("what", ["session", "person"])
@pytest.mark.parametrize("speak", [through_chat, through_v1, through_a_temporary_chat])
def test_a_turn_neither_shows_nor_teaches_while_it_is_off(client, model_server, what, speak):
    switch(client, what, on=False)
    if speak is through_a_temporary_chat:
        chat(client, "Hello", session_id="s", **ADA)
    speak(client, "What is the locker code? Mine is 5555.")
    assert not shows_memory(model_server)
    model_server.mini.queue(digest_of(fact("Locker code is 5555", 1, "5555")))
    engine_of(client.application).job_queue.run_due(["summary"])
    assert [item["text"] for item in good(client.get("/api/facts?user_id=ada"))["items"]] == ["Likes green lockers"]
    switch(client, what, on=True)
    chat(client, "What is the locker code?", session_id="other", **ADA, recall="always")
    assert shows_memory(model_server) and "5555" not in str(prompts(model_server)[-1]), "it came up nowhere else"
    speak(client, "What is the locker code?")
    assert shows_memory(model_server), "once it is on again"


def test_a_new_session_may_begin_with_it_off_and_what_is_appended_counts_too(client, model_server):
    assert good(client.post("/api/sessions", json={**ADA, "session_id": "s", "remember": False}))["remember"] is False
    append(client, "s", [said("My bike code is 7777.")], **ADA)
    assert stored(client, "s")[0]["extra"] == {"memory": "off"}
    chat(client, "What is the bike code?", session_id="t", **ADA, recall="always")
    assert "7777" not in str(prompts(model_server)[-1])


def test_the_switch_of_a_person_holds_for_memory_blocks_and_the_tools_of_mcp(client):
    body = {**ADA, "message": "What is the locker code?"}
    assert "1111" in good(client.post("/api/recall", json=body))["block"]
    assert not told(client, "search", query="locker code")[0]
    switch(client, "person", on=False)
    assert "1111" not in good(client.post("/api/recall", json=body))["block"]
    assert "green" not in good(client.post("/api/recall", json=body))["block"]
    for tool, arguments in (
        ("search", {"query": "locker"}),
        ("recall", {"message": "locker code"}),
        ("add_memory", {"text": "Likes tea", "quote": "I like tea"}),
    ):
        is_error, text = told(client, tool, **arguments)
        assert is_error and "turned their memory off" in text, tool
    assert not told(client, "search", {"X-User-Id": "bob"}, query="locker")[0]


def test_a_person_of_whom_nothing_is_stored_may_turn_it_off(client, model_server):
    assert good(client.patch("/api/users/eve", json={"remember": False}))["sessions"] == 0
    chat(client, "My code is 9999.", user_id="eve", session_id="e")
    assert [message["extra"] for message in stored(client, "e")] == [{"memory": "off"}] * 2
    good(client.delete("/api/users/eve"))
    error(client.get("/api/users/eve"), 404)
    chat(client, "Hello", user_id="eve", session_id="f")
    assert good(client.get("/api/users/eve"))["remember"] is True, "erased with the person"


def test_both_are_in_the_export_and_an_import_turns_it_off_and_never_on(client):
    switch(client, "session", on=False)
    document = json.loads(client.get("/api/users/ada/export").text)
    assert document["remember"] is True
    assert {session["id"]: session["remember"] for session in document["sessions"]} == {"s": False, "before": True}
    good(client.patch("/api/users/bob", json={"remember": False}))
    good(client.post("/api/import?user_id=bob", json=document))
    assert good(client.get("/api/users/bob"))["remember"] is False
    assert good(client.get("/api/sessions/s?user_id=bob"))["remember"] is False
    switch(client, "person", on=False)
    good(client.post("/api/import?user_id=cyd", json=json.loads(client.get("/api/users/ada/export").text)))
    assert good(client.get("/api/users/cyd"))["remember"] is False
