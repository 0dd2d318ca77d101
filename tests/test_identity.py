"""Which session a client's request without an id carries on, and which it never does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.completing import Person, post, sent, talk
from tests.conftest import MakeApp
from tests.model_server import Delay, ModelServer
from tests.openai_calls import scripted_server
from tests.talking import at, meanwhile, said, sessions

RETRY = {"X-Stainless-Retry-Count": "1"}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with scripted_server() as server:
        numbers = iter(range(1, 10_000))
        server.main.default = lambda body: f"Answer {next(numbers)}."
        yield server


@pytest.fixture
def client(make_app: MakeApp, server: ModelServer) -> FlaskClient:
    return make_app(**at(server)).test_client()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is repeated at once: each request comes long after the one before."""
    monkeypatch.setattr("memory.clients.arrival.AGAIN_SECONDS", -1.0)


def session_of(person: Person) -> str:
    return str(person.headers["X-Memory-Session-Id"])


@pytest.mark.usefixtures("later")
def test_a_conversation_is_known_by_its_messages(client: FlaskClient) -> None:
    ada = Person(client, None, user="ada")
    for text in ("My name is Ada.", "I live in Lyon.", "Who am I?"):
        ada.says(text)
    ada.edits(2, "I live in Tallinn.")
    ada.regenerates()
    (session,) = sessions(client)
    assert session["id"] == session_of(ada) and said(client, session["id"]) == ada.said


@pytest.mark.usefixtures("later")
def test_conversations_that_begin_alike_are_kept_apart(client: FlaskClient, server: ModelServer) -> None:
    server.main.default = lambda body: "Hello!"
    first, second = Person(client, None, user="ada"), Person(client, None, user="ada")
    first.says("Hi")
    first.says("Let us talk about tea.")
    second.says("Hi")
    second.says("Let us talk about ships.")
    first.says("Green tea.")
    bob = Person(client, None, user="bob")
    bob.says("Hi")
    people = (first, second, bob)
    assert len(set(map(session_of, people))) == 3
    for person in people:
        assert said(client, session_of(person)) == person.said
        assert said(client, session_of(person), branch=1) == []


@pytest.mark.usefixtures("later")
def test_strangers_who_begin_alike_never_meet(client: FlaskClient, server: ModelServer) -> None:
    """Nobody is named: two people may say and hear the very same words first."""
    server.main.default = lambda body: "Hello! How can I help?"
    ann, bob = Person(client, None), Person(client, None)
    ann.says("Hi")
    bob.says("Hi")
    ann.says("My code is 7319.")
    bob.says("What is my code?")
    ann.says("Thanks.")
    assert not any("7319" in json.dumps(body) for body in sent(server) if "What is my code?" in json.dumps(body))
    assert [said(client, session_of(person)) for person in (ann, bob)] == [ann.said, bob.said]
    ann.edits(2, "My code is 9999.")  # where nobody is named, an edit is another conversation
    assert session_of(ann) != session_of(bob) and len(sessions(client)) == 3
    assert said(client, session_of(ann)) == ann.said


@pytest.mark.parametrize("named", [{"user": "ada"}, {}])
def test_a_first_question_asked_again_later_begins_anew(client: FlaskClient, later: None, named: Any) -> None:
    for _ in range(2):
        Person(client, None, **named).says("Hi")
    assert len(sessions(client)) == 2


def test_a_first_question_repeated_at_once_or_by_a_retry_is_the_same(
    client: FlaskClient, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = Person(client, None, user="ada")
    ada.says("Hi")
    ada.regenerates()
    assert said(client, session_of(ada)) == [("user", "Hi"), ("assistant", "Answer 2.")]
    monkeypatch.setattr("memory.clients.arrival.AGAIN_SECONDS", -1.0)
    ada.messages.pop()
    assert ada.sends(ada.messages, RETRY) == "Answer 2."
    ada.says("What is new?")  # after the second answer
    (session,) = sessions(client)
    assert said(client, session["id"]) == ada.said and len(sent(server)) == 3


@pytest.mark.parametrize(("headers", "sessions_made"), [(RETRY, 1), ({}, 2)])
def test_while_a_first_question_is_being_answered_only_a_retry_waits_for_the_answer(
    client: FlaskClient, server: ModelServer, headers: Any, sessions_made: int
) -> None:
    """The same question without that may be another window of the same person."""
    go = threading.Event()
    server.main.queue(Delay(go, "Hello!"))

    def ask(**more: Any) -> str:
        answer = post(client.application.test_client(), talk("Hi"), None, user="ada", **more)
        return str(answer.json["choices"][0]["message"]["content"])

    with meanwhile(ask):
        server.wait_for_requests(1)
        with meanwhile(lambda: ask(headers=headers)) as again:
            assert server.wait_for(lambda: len(server.requests) > 1, 0.2) is not bool(headers)
            go.set()
    assert again == ["Hello!" if headers else "Answer 1."]
    assert len(sessions(client)) == sessions_made


def test_what_is_being_answered_is_not_edited_by_another_request(client: FlaskClient, server: ModelServer) -> None:
    ada = Person(client, None, user="ada")
    ada.says("Hi")
    go = threading.Event()
    server.main.queue(Delay(go, "Green."))
    with meanwhile(lambda: post(client.application.test_client(), [*ada.messages, *talk("Tea?")], None, user="ada")):
        server.wait_for_requests(2)
        other = post(client, [*ada.messages, *talk("Ships?")], None, user="ada")
        go.set()
    assert other.headers["X-Memory-Session-Id"] != session_of(ada)
    assert said(client, session_of(ada))[2:] == [("user", "Tea?"), ("assistant", "Green.")]
