"""The best matching summary of another conversation, in a line beside the excerpts of a prompt."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.http import append, chat, good, said
from tests.knowledge import digest_of
from tests.model_server import ModelServer, at
from tests.recall import last

ADA = {"user_id": "ada"}
QUESTION = "Which insulation for the attic roof?"


@pytest.fixture
def client(model_app):
    return model_app.test_client()


def held(client: FlaskClient, server: ModelServer, session: str, words: str, topic: str, **more: Any) -> None:
    append(client, session, [said(words)], **(more or ADA))
    server.mini.queue(digest_of(topic=topic))
    engine_of(client.application).job_queue.run_due(["summary"])


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


def test_a_session_that_is_not_to_be_remembered_stays_out(client, model_server):
    chat(client, "SECRET attic", session_id="private", remember=False, **ADA)
    model_server.mini.queue(digest_of(topic="Attic roof insulation SECRET"))
    engine_of(client.application).job_queue.run_due(["summary"])
    answer = chat(client, QUESTION, temporary=True, **ADA)
    assert summaries(answer) == [] and "SECRET" not in last(model_server)
