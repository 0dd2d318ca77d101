"""Streaming, and retries by Idempotency-Key: the same turn, told in another way or another time."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from app import engine_of
from memory.llm import StreamEnd, TextDelta
from models.owners import Usage
from tests.http import ask, chat, events, failed, history, jobs, stored, stream, streamed_text
from tests.http import summary as summary_of
from tests.model_server import CutStream, Dictation, Status, Text, at, prompts
from tests.recall import talker

pytestmark = pytest.mark.scripted


def test_the_memory_comes_first_then_pieces_then_usage_then_done(client, model_server):
    model_server.main.queue(Text("Green tea, then."))
    first, *pieces, last, done = stream(client, "Which tea?", session_id="s")
    user, assistant = stored(client, "s")
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (first["session_id"], first["user_message_id"]) == ("s", user["id"])
    assert first["memory"]["summary"]["version"] == 0 and first["memory"]["recall"]["mode"] == "auto"
    assert [piece["choices"][0]["delta"]["content"] for piece in pieces] == ["Green", " tea,", " then."]
    assert last["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "stop"}
    assert last["message_id"] == assistant["id"] and last["usage"]["completion_tokens"] == 3
    assert {event["object"] for event in (first, *pieces, last)} == {"chat.completion.chunk"}
    assert len({event["id"] for event in (first, *pieces, last)}) == 1
    assert done == "[DONE]"
    assert assistant["content"] == "Green tea, then."


def test_streamed_and_plain_say_the_same(make_app, model_server, monkeypatch):
    client = talker(make_app, model_server, monkeypatch, summary_mode="inline")
    for session in ("plain", "streamed"):
        chat(client, "I have a dog called Rex.", session_id=session, name="Ann")
    model_server.main.queue(Text("Rex it is."), Text("Rex it is."))
    plain = chat(client, "What is my dog called?", session_id="plain")
    first, *_, last, _ = stream(client, "What is my dog called?", session_id="streamed")
    assert first["memory"] == plain["memory"] and last["usage"] == plain["usage"]
    one, other = prompts(model_server)[-2:]
    assert one == other
    assert history(client, "plain") == history(client, "streamed")
    assert summary_of(client, "plain")["latest"]["version"] == summary_of(client, "streamed")["latest"]["version"] == 2


def test_pieces_leave_the_moment_they_are_written(client, model_server):
    """The first piece is here while the model still holds back the rest."""
    reply = Dictation()
    model_server.main.queue(reply)
    reply.say("One")
    with ask(client, "Count.", session_id="s", stream=True) as response:
        assert response.headers["X-Accel-Buffering"] == "no", "no proxy gathers the pieces"
        assert "no-transform" in response.headers["Cache-Control"], "nor to compress them"
        parts = response.iter_encoded()
        next(parts)
        assert streamed_text(events(next(parts).decode())) == "One"
        assert len(history(client, "s")) == 1  # the reply is not stored: it is being written
        reply.say(" two.")
        reply.end()
        assert [event for part in parts for event in events(part.decode())][-1] == "[DONE]"
    assert history(client, "s")[-1] == ("assistant", "One two.")


@pytest.mark.parametrize("heard", [0, 2])
def test_a_reply_is_finished_and_stored_when_its_listener_has_gone(client, model_server, heard):
    model_server.main.queue(Text("One two three four five."))
    response = ask(client, "Count.", session_id="s", stream=True, key="k")
    parts = response.iter_encoded()
    for _ in range(heard):
        next(parts)
    response.close()
    assert history(client, "s") == [("user", "Count."), ("assistant", "One two three four five.")]
    assert [job["state"] for job in jobs(client)] == ["pending"]  # its summary is asked for as well
    assert streamed_text(stream(client, "Count.", session_id="s", key="k")) == "One two three four five."
    assert chat(client, "And on?", session_id="s")["memory"]["tail"]["messages"] == 2
    assert len(prompts(model_server)) == 2


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (CutStream(after=2), "model_cut_off"),
        (Text("piece 0 piece 1 ", finish=None, done=False), "model_cut_off"),
    ],
    ids=["cut", "no end"],
)
def test_a_reply_in_whose_middle_the_model_fails_stays_and_says_so(client, model_server, caplog, reply, code):
    model_server.main.queue(reply)
    with caplog.at_level(logging.WARNING):
        parts = stream(client, "Count.", session_id="s")
    assert vars(caplog.records[0])["fields"] == {"code": code}
    assert streamed_text(parts) == "piece 0 piece 1 "
    assert parts[-2]["choices"][0]["finish_reason"] == "cut_off"
    assert parts[-1]["error"]["code"] == code, "no [DONE] follows a reply that is not whole"
    half = [("user", "Count."), ("assistant", "piece 0 piece 1 ")]
    assert history(client, "s") == half
    (turn,) = client.get("/api/sessions/s/turns").json["items"]
    assert (turn["state"], turn["finish_reason"]) == ("interrupted", "cut_off")
    model_server.main.queue(Text("One."))
    again = {"replaces": turn["user_message_id"]}
    assert streamed_text(stream(client, "Count.", session_id="s", **again)) == "One."
    assert history(client, "s") == [("user", "Count."), ("assistant", "One.")]


def retried(answer: dict[str, Any]) -> dict[str, Any]:
    """What of an answer a retry has to repeat to the letter."""
    return {name: value for name, value in answer.items() if name != "memory"}


def test_a_key_gets_the_first_answer_again_also_after_a_restart(make_app, model_server):
    client = make_app(**at(model_server)).test_client()
    chat(client, "My dog is called Rex.", session_id="old", user_id="ann")
    body = {"session_id": "s", "user_id": "ann", "key": "k-1"}
    first = chat(client, "What is my dog called?", **body)
    assert first["memory"]["excerpts"]
    chat(client, "Thanks.", session_id="s", user_id="ann")
    again = chat(client, "What is my dog called?", **body)
    restarted = make_app(**at(model_server)).test_client()
    assert retried(again) == retried(first) == retried(chat(restarted, "What is my dog called?", **body))
    for name in ("summary", "facts", "recall", "tail"):
        assert again["memory"][name] == first["memory"][name]
    (then,), (now,) = first["memory"]["excerpts"], again["memory"]["excerpts"]
    assert [m["content"] for m in now["messages"]] == [m["content"] for m in then["messages"]]
    assert now["score"] == pytest.approx(then["score"], abs=1e-4)
    assert len(prompts(model_server)) == 3 and len(history(restarted, "s")) == 4
    parts = stream(restarted, "What is my dog called?", **body)
    assert streamed_text(parts) == first["reply"] and parts[-2]["usage"] == first["usage"]
    assert parts[-1] == "[DONE]"


def test_an_unfinished_turn_is_taken_up_though_others_came_between(client, model_server):
    model_server.main.queue(Status(401))
    failed(ask(client, "Is it raining?", session_id="s", key="k"), 502, "model_key_refused")
    model_server.main.queue("Hello.", "No.")
    chat(client, "Hello", session_id="s")
    answer = chat(client, "Is it raining?", session_id="s", key="k")
    messages = stored(client, "s")
    assert [m["content"] for m in messages if m["role"] == "user"] == ["Is it raining?", "Hello"]
    assert messages[-1]["content"] == "No." and answer["user_message_id"] == messages[0]["id"]
    prompt = prompts(model_server)[-1]
    assert prompt[-1]["content"].endswith("Is it raining?") and "Hello" in str(prompt)
    assert str(prompt).count("Is it raining?") == 1
    assert chat(client, "Is it raining?", session_id="s", key="k")["reply"] == "No."


def test_a_piece_of_a_reply_is_never_added_to_all_that_came_before(client, model_app, monkeypatch):
    """A model that repeats itself without end sends a hundred thousand pieces: time must not grow with their square."""
    copied = list[int]()

    class Piece(str):
        def __radd__(self, before: str) -> str:
            copied.append(len(before))
            return before + str(self)

    def answer(request: Any) -> Iterator[Any]:
        yield from (TextDelta(Piece("over and ")) for _ in range(1_000))
        yield StreamEnd("stop", "m", Usage(1, 1))

    monkeypatch.setattr(engine_of(model_app).model_server.models.main, "answer", answer)
    assert chat(client, "hello")["reply"] == "over and " * 1_000
    assert sum(copied) < 100


def test_a_reply_that_never_ends_is_cut_off(client, model_server):
    model_server.main.queue(Text(f"{'x' * 99_999} " * 12))
    *_, last = stream(client, "hello", session_id="tea")
    assert last["error"]["code"] == "model_bad_answer"
    assert len(history(client, "tea")[-1][1]) == 999_999
