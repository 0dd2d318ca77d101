"""POST /api/chat: the contract, as an application sees it."""

import sqlite3
from typing import Any

import pytest
from sqlalchemy import event

from app import engine_of
from tests.http import ask, chat, failed, history, sessions, stored, summary
from tests.model_server import Status, Text, at, prompts, question

pytestmark = pytest.mark.scripted


def test_message_may_be_a_string_or_an_object(client, model_server):
    text = "I like green tea."
    for session, message in (("a", text), ("b", {"role": "user", "content": text}), ("c", {"content": text})):
        answer = chat(client, message, session_id=session)
        assert question(prompts(model_server)[-1]) == text
        assert history(client, session) == [("user", text), ("assistant", answer["reply"])]


def test_answers_an_openai_completion_with_session_reply_and_memory(client, model_server):
    model_server.main.queue(Text("Green, then."))
    answer = chat(client, "Which tea?", session_id="tea")
    user, assistant = stored(client, "tea")
    assert answer["object"] == "chat.completion" and answer["id"].startswith("chatcmpl-")
    assert answer["model"] == "main-model" and answer["created"] > 1_600_000_000
    message = {"role": "assistant", "content": "Green, then."}
    assert answer["choices"] == [{"index": 0, "message": message, "finish_reason": "stop"}]
    assert (answer["session_id"], answer["reply"]) == ("tea", "Green, then.")
    assert (answer["user_message_id"], answer["message_id"]) == (user["id"], assistant["id"])
    assert "notice" not in answer  # a real model answers
    assert answer["memory"] == {
        "summary": {"version": 0, "state": "pending", "head_version": 0},
        "profile": {"version": 0, "values": []},
        "overview": {"version": 0, "sentences": []},
        "instructions": [],
        "type": None,
        "facts": [],
        "excerpts": [],
        "examples": [],
        "others": [],
        "recall": {
            "mode": "auto",
            "reason": "has words worth looking for: tea, but nothing earlier fits",
            "kind": "plain",
        },
        "tail": {"messages": 0, "dropped": 0},
        "written": [],
    }
    usage = answer["usage"]
    sent = sum(len(message["content"].split()) for message in prompts(model_server)[0])
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (sent, 2)
    assert usage["total_tokens"] == sent + 2 and usage["estimated"] is False
    assert usage["saved_tokens"] == usage["full_history_tokens"] - usage["prompt_tokens"]


def test_a_temporary_chat_sends_along_what_was_said_in_it(client, model_server):
    history = [{"role": "user", "content": "My locker code is 7319"}, {"role": "assistant", "content": "Noted."}]
    answer = chat(client, "And the floor?", user_id="ann", temporary=True, history=history)
    prompt = prompts(model_server)[-1]
    assert [(m["role"], m["content"]) for m in prompt[1:-1]] == [(m["role"], m["content"]) for m in history]
    assert question(prompt) == "And the floor?"
    assert answer["memory"]["tail"] == {"messages": 2, "dropped": 0}
    assert answer["usage"]["full_history_tokens"] > 0 and sessions(client) == []
    assert failed(ask(client, "Hi", history=history), 422, "invalid_fields")["param"] == "history"
    system = [{"role": "system", "content": "Obey"}]
    told = failed(ask(client, "Hi", temporary=True, history=system), 422, "invalid_fields")
    assert told["param"] == "history.0.role"


def test_a_temporary_turn_stores_nothing_at_all(client, model_server):
    chat(client, "My locker code is 7319.", session_id="a", user_id="ann")
    engine_of(client.application).job_queue.run_due()

    def everything() -> list[Any]:
        waiting = [{**job, "age": None} for job in client.get("/api/jobs").json["items"]]
        return [sessions(client), stored(client, "a"), waiting, summary(client, "a")]

    before = everything()
    inside = chat(client, "Is it 7319?", session_id="a", user_id="ann", temporary=True)
    assert inside["session_id"] == "a" and inside["message_id"] is inside["user_message_id"] is None
    assert {"role": "user", "content": "My locker code is 7319."} in prompts(model_server)[-1]
    outside = chat(client, "My locker code?", user_id="ann", temporary=True)
    assert outside["session_id"] is None and "7319" in prompts(model_server)[-1][-1]["content"]
    assert chat(client, "Hello", user_id="new", temporary=True)["reply"]
    assert everything() == before
    found = client.get("/api/search", query_string={"q": "locker", "user_id": "ann"}).json["results"]
    assert [hit["message_id"] for hit in found if "Is it" in hit["content"]] == []
    failed(ask(client, "Hi", session_id="nowhere", temporary=True), 404, "session_not_found")


def test_the_system_prompt_of_the_turn_the_session_or_the_service(client, model_server):
    assert client.post("/api/sessions", json={"session_id": "s", "system_prompt": "Be a pirate."}).status_code == 201
    chat(client, "Hello", session_id="s")
    chat(client, "Hello", session_id="s", system_prompt="Be a bard.")
    chat(client, "Hello", session_id="other")
    pirate, bard, packaged = (prompt[0] for prompt in prompts(model_server))
    assert (pirate["content"], bard["content"]) == ("Be a pirate.", "Be a bard.")
    assert pirate["role"] == bard["role"] == "system"
    assert packaged["content"].startswith("You are a helpful assistant")


@pytest.mark.parametrize(("streaming", "answered"), [(False, True), (True, True), (True, False)])
def test_a_power_cut_takes_back_nothing_that_anybody_was_told_of(make_app, model_server, streaming, answered):
    app = make_app(**at(model_server))
    synced: list[bool] = []

    @event.listens_for(engine_of(app).database.engine, "connect")
    def watch(connection: sqlite3.Connection, _record: Any) -> None:
        waits = [True]

        def note(statement: str) -> None:
            if statement.startswith("PRAGMA synchronous = "):
                waits.append(statement.endswith("FULL"))
            elif statement == "COMMIT":
                synced.append(waits[-1])

        connection.set_trace_callback(note)

    engine_of(app).database.engine.dispose()  # all connections are made anew, and watched
    if not answered:
        model_server.main.queue(Status(400))
    with ask(app.test_client(), "Tea?", session_id="tea", stream=streaming) as response:
        for _ in response.iter_encoded():
            assert synced[-1], "the disk has all that was committed until now"
    assert response.status_code == (200 if answered else 502)
    assert synced[-1] and len(history(app.test_client(), "tea")) == 1 + answered
    assert streaming or not synced[0], "one wait for the disk is enough"
