"""A client that keeps its own copy of a conversation goes on sending what was erased: it is not stored again."""

import pytest
from flask import Flask
from flask.testing import FlaskClient

import memory.erasing.erasing
from app import engine_of
from tests.http import good, read_all, sessions
from tests.model_server import at
from tests.openai import Person, complete, post, sent, talk, user
from tests.traces import SENTINEL, traces_of

SECRET = f"{SENTINEL} is my secret."


@pytest.fixture
def app(make_app, model_server, monkeypatch):
    monkeypatch.setattr(memory.erasing.erasing, "GATHER_SECONDS", 0.0)
    model_server.main.default = lambda body: "Noted."
    return make_app(**at(model_server))


def erase(client: FlaskClient, session: str, position: int) -> None:
    (message,) = [one for one in read_all(client, f"/api/sessions/{session}/messages") if one["position"] == position]
    good(client.delete(f"/api/sessions/{session}/messages/{message['id']}"))


def nothing_left(app: Flask) -> bool:
    engine_of(app).job_queue.run_due(["index", "scrub"])
    return traces_of(app) == {}


def test_a_client_that_sends_all_of_it_again_goes_on(app, client, model_server):
    person = Person(client, user="ada")
    person.says(SECRET)
    person.says("I like tea.")
    engine_of(app).job_queue.run_due()
    erase(client, "s", 1)
    person.says("And jam.")
    assert SECRET in str(person.last_sent)
    assert SENTINEL not in str(sent(model_server)[-1]), "it is kept from the model too"
    person.says("And bread.", alone=True)
    held = read_all(client, "/api/sessions/s/messages")
    assert [(one["position"], one["content"]) for one in held if one["role"] == "user"] == [
        (3, "I like tea."),
        (5, "And jam."),
        (7, "And bread."),
    ]
    assert read_all(client, "/api/sessions/s/messages", branch=1) == []
    assert SECRET not in str(good(client.get("/api/search?q=secret&user_id=ada"))["results"])
    engine_of(app).job_queue.run_due(["summary"])
    assert nothing_left(app)


def test_a_conversation_without_an_id_is_found_by_its_first_message_though_it_is_erased(app, client):
    person = Person(client, None, user="ada")
    person.says(SECRET)
    (session,) = sessions(client)
    erase(client, session["id"], 1)
    erase(client, session["id"], 2)
    person.says("I like tea.")
    assert [one["id"] for one in sessions(client)] == [session["id"]]
    assert [one["position"] for one in read_all(client, f"/api/sessions/{session['id']}/messages")] == [3, 4]
    assert nothing_left(app)


def test_a_conversation_that_was_erased_takes_no_other_in(app, client):
    complete(client, talk("I like tea."), None, user="ada")
    (session,) = sessions(client)
    erase(client, session["id"], 1)
    complete(client, talk("Another thing.", "Noted.", "And more of it."), None, user="ada")
    assert len(sessions(client)) == 2


def test_what_is_asked_now_is_asked_again_not_taken_for_what_was_erased(app, client):
    complete(client, [user(SECRET)], user="ada")
    erase(client, "s", 1)
    complete(client, [user("Something else?")], user="ada")
    assert [one["content"] for one in read_all(client, "/api/sessions/s/messages")] == [
        "Noted.",
        "Something else?",
        "Noted.",
    ]
    assert nothing_left(app)


def test_calls_of_tools_and_their_results_are_erased_with_all_they_carry(app, client, model_server):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": f'{{"for": "{SENTINEL}"}}'}}
    exchange = [
        user("What is there?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": f"{SENTINEL} is there."},
    ]
    complete(client, exchange, user="ada")
    engine_of(app).job_queue.run_due(["index"])
    assert not nothing_left(app)
    erase(client, "s", 2)
    erase(client, "s", 3)
    assert nothing_left(app)
    answer = post(client, [*exchange, *talk("x", "Noted.")[1:], user("And now?")], user="ada")
    assert answer.status_code == 200 and "X-Memory-Error" not in answer.headers
    assert [one["position"] for one in read_all(client, "/api/sessions/s/messages")] == [1, 4, 5, 6]
    assert SENTINEL not in str(sent(model_server)[-1])
    assert nothing_left(app)
