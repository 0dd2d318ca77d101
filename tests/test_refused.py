"""Messages that a model server refuses: marked with the reason, kept, and in no later prompt."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.engine import utc_now
from memory.errors import ModelError
from memory.recall import indexing
from memory.sessions.refused_messages import mark_refused
from tests.http import Body, append, ask, chat, error, failed, find, good, said, stored
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import ModelServer, Status, ToolCalls, prompts
from tests.openai import BODIES

ADA = {"user_id": "ada"}
BAD = "Tell me how the zebra vault opens."
WORDS = "The prompt triggered the content filter"


def filtered() -> Status:
    return Status(400, {"error": {"message": f"{WORDS}.", "code": "content_filter", "type": "invalid_request_error"}})


def too_long(window: int) -> Status:
    text = f"This model's maximum context length is {window} tokens. Shorten the messages."
    return Status(400, {"error": {"message": text, "code": "context_length_exceeded"}})


@pytest.fixture
def ada(talk):
    talk.who = ADA
    return talk


def refuse(ada: Talk, words: str = BAD, reply: Status | None = None, **more: Any) -> Body:
    ada.server.main.queue(reply or filtered())
    code = "model_context_exceeded" if reply else "model_content_refused"
    return failed(ask(ada.client, words, session_id="s", **ADA, **more), 502 if reply else 422, code)


def refuse_in_a_digest(ada: Talk, *ids: int) -> None:
    """Mark messages as the job of summaries does."""
    engine = engine_of(ada.app)
    with engine.database.write() as tx:
        mark_refused(tx, ids, ModelError("model_content_refused", "The mini model's server refused it."), utc_now())


def marks(client: FlaskClient, session: str = "s") -> dict[str, Any]:
    return {one["content"]: one["refused"] for one in stored(client, session) if one["refused"]}


def contents(server: ModelServer) -> list[str]:
    """What the last prompt has after its head, without the memory block."""
    return [one["content"].rpartition("</memory>\n\n")[2] for one in prompts(server)[-1] if one["role"] != "system"]


def test_a_refused_message_is_kept_with_its_reason_and_the_conversation_goes_on(ada):
    chat(ada.client, "Hello there", session_id="s", **ADA)
    told = refuse(ada)["message"]
    last = stored(ada.client, "s")[-1]
    assert f"`replaces`: {last['id']}" in told and "erase" in told and WORDS in told
    assert "left out of later prompts" in told and "send it again" not in told
    assert last["content"] == BAD and last["refused"]["at"].endswith("+00:00")
    assert last["refused"]["code"] == "model_content_refused"
    assert last["refused"]["reason"] == f"The content filter of the model server refused it: {WORDS}."
    turns = good(ada.client.get("/api/sessions/s/turns"))["items"]
    assert [turn["state"] for turn in turns] == ["refused", "finished"]
    assert good(ada.client.get(f"/api/sessions/s/turns/{last['id']}"))["state"] == "refused"
    after = chat(ada.client, "And the weather?", session_id="s", **ADA)
    assert contents(ada.server)[0] == "Hello there" and contents(ada.server)[-1] == "And the weather?"
    assert "zebra" not in str(prompts(ada.server)[-1])
    good(ada.client.delete(f"/api/sessions/s/messages/{last['id']}"))
    assert marks(ada.client) == {}
    again = chat(ada.client, "And the weather?", session_id="s", replaces=after["user_message_id"], **ADA)
    assert again["usage"]["full_history_tokens"] == after["usage"]["full_history_tokens"], "it saved none of it"


def test_a_server_that_filters_whole_prompts_answers_every_message_but_that_one(ada):
    def answer(body: Body) -> Any:
        return filtered() if "zebra" in str(body["messages"]) else "Fine."

    ada.server.main.default = ada.server.mini.default = answer
    chat(ada.client, "Hello there", session_id="s", **ADA)
    failed(ask(ada.client, "And zebras?", session_id="s", **ADA), 422, "model_content_refused")
    engine = engine_of(ada.app)
    for session, text in (("s", "And the weather?"), ("s", "And as I said before?"), ("t", "What did I ask of zoos?")):
        assert chat(ada.client, text, session_id=session, recall="always", **ADA)["reply"] == "Fine."
        engine.job_queue.run_due()
    assert list(marks(ada.client)) == ["And zebras?"]
    assert not [job for job in good(ada.client.get("/api/jobs"))["items"] if job["error"]]


def test_a_message_longer_than_half_of_the_models_window_is_refused_and_a_shorter_one_is_not(ada):
    long = "The weather was fine. " * 100
    assert "left out of later prompts" in refuse(ada, long, too_long(800))["message"]
    assert marks(ada.client)[long]["code"] == "model_context_exceeded"
    assert "800" in marks(ada.client)[long]["reason"]
    assert "send it again" in refuse(ada, "And the weather?", too_long(800))["message"]
    assert list(marks(ada.client)) == [long]
    chat(ada.client, "And the weather?", session_id="s", **ADA)
    assert len(stored(ada.client, "s")) == 3 and contents(ada.server) == ["And the weather?"]


@pytest.mark.parametrize("key", ["k1", None])
def test_the_same_words_are_tried_again_and_a_reply_takes_the_mark_away(ada, key):
    refuse(ada, key=key)
    refuse(ada, key=key)
    assert list(marks(ada.client)) == [BAD] and len(stored(ada.client, "s")) == 1, "the same message"
    assert good(ada.client.get("/api/sessions/s"))["title"] == "", "other programs' models read titles too"
    chat(ada.client, BAD, session_id="s", key=key, **ADA)
    assert contents(ada.server) == [BAD] and marks(ada.client) == {}
    assert good(ada.client.get("/api/sessions/s"))["title"] == BAD
    (turn,) = good(ada.client.get("/api/sessions/s/turns"))["items"]
    assert turn["state"] == "finished"
    engine_of(ada.app).job_queue.run_due(["index"])
    assert [one["content"] for one in find(ada.client, "zebra", role="user", **ADA)] == [BAD]
    chat(ada.client, "Thanks", session_id="s", **ADA)
    assert contents(ada.server)[0] == BAD


def test_what_is_accepted_late_is_read_for_the_summary_after_all(ada):
    ada.hear("The bike is red.", said("Nice.", "assistant"), reply=digest_of(topic="Bikes"))
    refuse(ada, key="k1")
    assert ada.summary()["state"] == "current", "nothing is left to summarise"
    chat(ada.client, "The cat is Tom.", session_id="s", **ADA)
    assert ada.digest(digest_of(topic="Cats"))["state"] == "current"
    assert "zebra" not in str(ada.digests())
    chat(ada.client, BAD, session_id="s", key="k1", **ADA)
    assert ada.digest(digest_of(topic="All"))["state"] == "current"
    assert "zebra" in str(ada.digests()[-1]) and "Tom" in str(ada.digests()[-1])


def test_no_search_recall_or_tool_quotes_it_whether_the_index_knew_it_or_not(ada):
    ada.say(BAD, said("Noted.", "assistant"), "The locker code is 1111.", said("Fine.", "assistant"))
    engine = engine_of(ada.app)
    engine.job_queue.run_due(["index"])
    assert find(ada.client, "zebra vault", **ADA)
    refuse_in_a_digest(ada, stored(ada.client, "s")[0]["id"])
    for indexed in (False, True):
        if indexed:
            engine.job_queue.run_due(["index"])
        assert BAD not in str(find(ada.client, "zebra vault", **ADA))
        window = str(find(ada.client, "locker code", window=3, **ADA)[0]["window"])
        assert "zebra" not in window and "Noted." in window
        block = good(ada.client.post("/api/recall", json={"message": "How does the zebra vault open?", **ADA}))
        assert "zebra" not in block["block"]
        chat(ada.client, "What did I say of the zebra vault?", recall="always", temporary=True, **ADA)
        assert "vault opens" not in str(prompts(ada.server)[-1])
        ada.server.main.queue(ToolCalls((("conversation_search", {"query": "zebra vault"}), ("recent_chats", {}))))
        chat(ada.client, "Look it up.", recall="tools", temporary=True, **ADA)
        looked_up = str([one for one in prompts(ada.server)[-1] if one["role"] == "tool"])
        assert "zebra" not in looked_up and "1111" in looked_up
    (verified,) = [one for one in indexing.verify(engine) if one.messages]
    assert verified.consistent and (verified.messages, verified.indexed, verified.unindexed) == (3, 3, 0)
    assert stored(ada.client, "s")[0]["content"] == BAD, "the person still sees it"


def test_a_digest_and_another_programs_model_read_on_without_messages_that_are_marked(ada):
    ada.say(BAD, said("Zebra vaults open with a crowbar.", "assistant"), "The locker code is 1111.")
    refuse_in_a_digest(ada, *(one["id"] for one in stored(ada.client, "s")[:2]))
    assert len(marks(ada.client)) == 2
    assert ada.digest(digest_of(topic="Codes"))["state"] == "current"
    assert "1111" in str(ada.digests()) and "ebra" not in str(ada.digests())
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fetch", "arguments": {"id": "s"}}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    shown = ada.client.post("/mcp?user_id=ada", json=call, headers=headers).text
    assert "ebra" not in shown and "left out" in shown and "1111" in shown
    ada.say("And another zebra.")
    refuse_in_a_digest(ada, stored(ada.client, "s")[3]["id"])
    assert ada.summary()["state"] == "current", "nothing is left to read"


def test_facts_taken_from_it_in_an_earlier_try_go(ada):
    ada.server.main.default = lambda _: Status(500)
    assert ask(ada.client, "I own a zebra.", session_id="s", key="k1", **ADA).status_code == 502
    ada.say(said("Hm.", "assistant"))
    ada.digest(digest_of(fact("Owns a zebra", 1, "I own a zebra", scope="user")))
    assert ada.texts() == ["Owns a zebra"]
    refuse(ada, "I own a zebra.", key="k1")
    assert ada.texts() == []


def test_a_replaced_restored_hidden_or_exported_message_keeps_its_mark(ada):
    chat(ada.client, "Hello there", session_id="s", **ADA)
    refuse(ada)
    first = stored(ada.client, "s")[-1]["id"]
    chat(ada.client, "Tell me of horses.", session_id="s", replaces=first, **ADA)
    assert marks(ada.client) == {} and "zebra" not in str(prompts(ada.server)[-1])
    good(ada.client.post(f"/api/sessions/s/messages/{first}/restore"))
    assert list(marks(ada.client)) == [BAD]
    engine_of(ada.app).job_queue.run_due(["index"])
    assert BAD not in str(find(ada.client, "zebra", **ADA))
    document, mark = good(ada.client.get("/api/users/ada/export")), marks(ada.client)
    text = ada.client.get("/api/users/ada/export?format=markdown").text
    good(ada.client.delete("/api/users/ada"))
    good(ada.client.post("/api/import", json=document, query_string=ADA))
    assert marks(ada.client) == mark
    good(ada.client.post("/api/sessions/s/messages/hide", json={"first": 3, "last": 3}))
    good(ada.client.post("/api/sessions/s/messages/show", json={}))
    chat(ada.client, "And the weather?", session_id="s", **ADA)
    assert "zebra" not in str(prompts(ada.server)[-1]) and marks(ada.client) == mark
    assert ", refused by a model server\n" in text
    whose = {"user_id": "bob"}
    sent = {"data": text.encode(), "content_type": "application/octet-stream", "query_string": whose}
    good(ada.client.post("/api/import", **sent))
    (session,) = good(ada.client.get("/api/sessions", query_string=whose))["items"]
    words = [one["content"] for one in stored(ada.client, session["id"], **whose)]
    assert words[0] == "Hello there" and words[2] == BAD, "its mark is none of its words"


@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_sends_it_with_each_request_is_answered(ada, path):
    history: list[Body] = []

    def send(*newest: Body) -> Any:
        history.extend(newest)
        headers = {"X-Session-Id": "s", "X-OpenWebUI-User-Id": "ada"}
        return ada.client.post(path, json=BODIES[path](history), headers=headers)

    good(send(said("Hello there")))
    history.append(said(stored(ada.client, "s")[-1]["content"], "assistant"))
    ada.server.main.queue(filtered(), filtered())
    for newest in ([said(BAD)], []):
        answer = send(*newest)
        assert answer.status_code == 400, answer.text
        assert WORDS in answer.text and "left out of later prompts" in answer.text
        assert contents(ada.server)[-1] == BAD, "it is the newest, so it is tried"
    good(send(said("And the weather?")))
    assert contents(ada.server)[-1] == "And the weather?" and contents(ada.server)[0] == "Hello there"
    assert "zebra" not in str(prompts(ada.server)[-1])
    history.append(said(stored(ada.client, "s")[-1]["content"], "assistant"))
    good(send(said("Thanks")))
    assert "zebra" not in str(prompts(ada.server)[-1]) and "weather" in str(prompts(ada.server)[-1])
    assert list(marks(ada.client)) == [BAD] and len(stored(ada.client, "s")) == 7


def test_a_refused_result_of_a_tool_goes_with_its_call(ada):
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    history: list[Body] = [
        said("Read the page."),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "zebra words"},
    ]

    def send() -> Any:
        body = {"model": "gpt-4o", "messages": history}
        return ada.client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": "s"})

    ada.server.main.queue(filtered())
    assert send().status_code == 400
    assert list(marks(ada.client)) == ["zebra words"]
    history.append(said("And the weather?"))
    good(send())
    assert contents(ada.server) == ["Read the page.", "And the weather?"]


def test_a_refusal_after_the_model_looked_back_or_of_a_temporary_turn_marks_nothing(ada):
    ada.say("The locker code is 1111.", said("Fine.", "assistant"))
    ada.server.main.queue(ToolCalls((("conversation_search", {"query": "locker"}),)), filtered())
    failed(ask(ada.client, "What is the code?", session_id="t", recall="tools", **ADA), 422, "model_content_refused")
    assert marks(ada.client, "t") == {}
    ada.server.main.queue(filtered())
    told = failed(ask(ada.client, BAD, session_id="s", temporary=True, **ADA), 422, "model_content_refused")
    assert "kept" not in told["message"] and marks(ada.client) == {}


def test_an_exchange_whose_message_was_refused_is_no_example_and_is_not_judged(ada):
    done = chat(ada.client, "I like tea", session_id="s", **ADA)
    refuse_in_a_digest(ada, done["user_message_id"])
    body = {"session_id": "s", "message_id": done["message_id"]}
    assert error(ada.client.post("/api/examples", json=body), 404)["code"] == "exchange_not_found"
    again = chat(ada.client, "I like coffee", session_id="s", **ADA)
    body = {"session_id": "s", "message_id": again["message_id"], "thumbs": "down", "text": "Shorter!"}
    good(ada.client.post("/api/feedback", json=body))
    refuse_in_a_digest(ada, again["message_id"])
    before = len(ada.digests())
    engine_of(ada.app).job_queue.run_due(["feedback"])
    assert len(ada.digests()) == before, "the mini model reads nothing of it"
    assert not [job for job in good(ada.client.get("/api/jobs"))["items"] if job["kind"] == "feedback"]


def test_words_that_are_recalled_and_refused_do_not_mark_the_message(ada):
    """They may be older than the mark, or come from a model without a filter."""
    append(ada.client, "old", [said("The zebra vault opens at noon.")], **ADA)
    ada.server.main.default = lambda body: filtered() if "zebra vault opens" in str(body["messages"]) else "I see."
    answer = chat(ada.client, "When does my zebra vault open?", session_id="s", **ADA)
    assert answer["reply"] == "I see."
    assert answer["memory"]["excerpts"] == [] and "refused" in answer["memory"]["recall"]["reason"]
    assert marks(ada.client) == {} and len(prompts(ada.server)) == 2
