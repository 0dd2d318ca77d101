"""Messages that are hidden: out of their session's prompts until they are shown again, and still there otherwise."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.http import Body, append, chat, error, good, said, stored
from tests.knowledge import Talk, digest_of
from tests.model_server import prompts
from tests.recall import words

ADA = {"user_id": "ada"}
CODE = "The locker code is 1111."


@pytest.fixture
def ada(talk):
    talk.who = ADA
    talk.say(CODE, said("Noted.", "assistant"), "The bike is red.", said("Nice.", "assistant"))
    return talk


def change(client: FlaskClient, call: str, session: str = "s", **body: Any) -> tuple[list[int], list[int]]:
    """What a call has hidden, and what it has shown again."""
    done = good(client.post(f"/api/sessions/{session}/messages/{call}", json=body))
    return done["hidden"], done["shown"]


def hidden(client: FlaskClient, session: str = "s") -> list[int]:
    return [one["position"] for one in stored(client, session) if one["hidden_at"]]


def turn(ada: Talk, **where: str) -> Body:
    return chat(ada.client, "What is the locker code?", **ADA, recall="always", temporary=True, **where)


def test_hidden_messages_are_in_no_prompt_of_their_session_until_they_are_shown_again(ada):
    before = turn(ada, session_id="s")
    assert change(ada.client, "hide", first=1, last=2) == ([1, 2], [])
    assert hidden(ada.client) == [1, 2]
    there = turn(ada, session_id="s")
    assert "1111" not in str(prompts(ada.server)[-1]), "neither in the tail nor recalled"
    assert there["memory"]["tail"] == {"messages": 2, "dropped": 0}
    assert there["usage"]["full_history_tokens"] < before["usage"]["full_history_tokens"], "memory saved none of it"
    assert CODE in words(turn(ada)), "outside its session it is recalled"
    found = good(ada.client.get("/api/search", query_string={"q": "locker", "session_id": "s"}))["results"]
    assert found[0]["content"] == CODE
    assert change(ada.client, "hide", first=2, last=3) == ([3, 4], []), "an answer goes with its question"
    first, second, *_ = (message["id"] for message in stored(ada.client, "s"))
    assert change(ada.client, "show", ids=[first, second]) == ([], [1, 2])
    assert change(ada.client, "show", first=-1, last=-1) == ([], []), "an answer only with its question"
    assert change(ada.client, "show") == ([], [3, 4])
    again = turn(ada, session_id="s")
    assert [one["content"] for one in prompts(ada.server)[-1][1:3]] == [CODE, "Noted."]
    assert again["usage"]["full_history_tokens"] == before["usage"]["full_history_tokens"]


ROLES = ("user", "assistant", "user", "assistant", "tool", "tool", "assistant", "user", "assistant")
EACH = 9  # tokens of each of these


def test_no_answer_is_left_without_its_question_and_no_result_without_its_call(client):
    for number, (body, expected) in enumerate(
        (
            ({"first": 3, "last": 3}, [3, 4, 5, 6, 7]),
            ({"first": 1, "last": 1}, [1, 2]),
            ({"first": 4, "last": 4}, [4, 5, 6]),
            ({"first": 6, "last": 6}, [4, 5, 6]),
            ({"keep": True, "first": 3, "last": 5}, [1, 2, 4, 5, 6, 7, 8, 9]),
            ({"first": -2, "last": -1}, [8, 9]),
            ({"first": -9, "last": 1}, [1, 2]),
            ({"keep": True, "first": -2, "last": -1}, [1, 2, 3, 4, 5, 6, 7]),
            ({"ids": [1, 6]}, [1, 2, 4, 5, 6]),
            ({"keep": True, "ids": [8, 9]}, [1, 2, 3, 4, 5, 6, 7]),
            ({"tokens": 7 * EACH}, [1, 2]),
            ({"tokens": 7 * EACH - 1}, [1, 2, 3, 4, 5, 6, 7]),
            ({"tokens": 2 * EACH - 1}, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
            ({"tokens": 9 * EACH}, []),
        )
    ):
        session = f"s{number}"
        append(client, session, [said(f"Words of {at:03}.", role) for at, role in enumerate(ROLES)])
        messages = stored(client, session)
        assert {one["tokens"] for one in messages} == {EACH}
        if "ids" in body:  # above, by their positions
            body = {**body, "ids": [messages[position - 1]["id"] for position in body["ids"]]}
        assert change(client, "hide", session, **body) == (expected, []), body
        assert hidden(client, session) == expected
        assert change(client, "hide", session, **body) == ([], []), "again, it changes nothing"
        assert change(client, "show", session) == ([], expected)


def test_a_summary_reads_no_hidden_message_and_goes_back_for_one_that_is_shown_again(ada):
    def read() -> str:
        return str(ada.digests()[-1])

    change(ada.client, "hide", first=3, last=4)
    assert ada.digest(digest_of(topic="Codes"))["state"] == "current"
    assert "1111" in read() and "bike" not in read()
    ada.hear("The cat is Tom.", reply=digest_of(topic="Codes and cats"))
    assert "Tom" in read() and "bike" not in read()
    assert ada.edit("By hand").status_code == 200
    change(ada.client, "show")
    assert ada.topics()[0] == "4 By hand", "with an older reach, and the person's own words"
    assert ada.digest(digest_of(topic="All"))["state"] == "current"
    assert "By hand" in read() and "bike" in read() and "Tom" in read() and "1111" not in read()
    change(ada.client, "hide", first=1, last=2)
    change(ada.client, "show")
    assert ada.topics()[0] == "5 All", "no update has passed them over"
    assert ada.summary()["state"] == "current"


def test_hidden_messages_come_back_hidden_from_an_export_and_are_erased_as_any(ada):
    change(ada.client, "hide", first=1, last=2)
    document = good(ada.client.get("/api/users/ada/export"))
    good(ada.client.delete("/api/users/ada"))
    good(ada.client.post("/api/import", json=document, query_string=ADA))
    assert hidden(ada.client) == [1, 2]
    first = stored(ada.client, "s")[0]["id"]
    good(ada.client.delete(f"/api/sessions/s/messages/{first}"))
    assert hidden(ada.client) == [2]


def test_a_client_sends_hidden_messages_in_vain(ada, model_server):
    history = [said(CODE), said("Noted.", "assistant"), said("The bike is red."), said("Nice.", "assistant")]

    def complete(*newest: Body) -> list[Any]:
        body = {"model": "any", "user": "ada", "messages": [*history, *newest]}
        good(ada.client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": "s"}))
        return [one["content"] for one in prompts(model_server)[-1] if one["role"] != "system"]

    change(ada.client, "hide", first=1, last=2)
    assert complete(said("And the cat?")) == ["The bike is red.", "Nice.", "And the cat?"]
    assert len(stored(ada.client, "s")) == 6, "what was sent again is not stored again"
    change(ada.client, "hide", first=5, last=6)
    assert complete(said("And the cat?"))[-1] == "And the cat?", "what it asks is answered"


def test_what_can_not_be_hidden_is_refused_and_nothing_changes(ada):
    change(ada.client, "hide", first=1, last=2)
    append(ada.client, "t", [said("Elsewhere.")], **ADA)
    elsewhere = stored(ada.client, "t")[0]["id"]
    for call, body, status, code in (
        ("hide", {}, 422, "invalid_fields"),
        ("hide", {"first": 2, "last": 1}, 422, "invalid_fields"),
        ("hide", {"first": 0, "last": 1}, 422, "invalid_fields"),
        ("hide", {"first": 1, "last": 2, "tokens": 5}, 422, "invalid_fields"),
        ("hide", {"tokens": -1}, 422, "invalid_fields"),
        ("hide", {"first": 1, "last": 5}, 422, "no_such_position"),
        ("show", {"first": 5, "last": 5}, 422, "no_such_position"),
        ("hide", {"first": -1, "last": -2}, 422, "invalid_fields"),
        ("hide", {"first": 3, "last": -3}, 422, "no_such_position"),
        ("hide", {"first": 1, "last": 2, "ids": [1]}, 422, "invalid_fields"),
        ("hide", {"ids": []}, 422, "invalid_fields"),
        ("hide", {"ids": [10**9]}, 404, "message_not_found"),
        ("show", {"ids": [elsewhere]}, 404, "message_not_found"),
        ("hide", {"first": 3, "last": 3, "user_id": "bob"}, 404, "session_not_found"),
        ("show", {"user_id": "bob"}, 404, "session_not_found"),
    ):
        found = error(ada.client.post(f"/api/sessions/s/messages/{call}", json=body), status)
        assert (found["code"], hidden(ada.client)) == (code, [1, 2]), body
