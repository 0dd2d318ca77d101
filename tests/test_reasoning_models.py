"""Models that think before they answer: their thoughts reach whoever listens, and nothing else of Recap."""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.http import append, chat, history, stream, streamed_text
from tests.model_server import Delay, Json, ModelServer, Text, ToolCalls, at
from tests.openai import BODIES, assistant, complete, post, sent, talk, user
from tests.openai import stream as stream_completion

pytestmark = pytest.mark.scripted

THOUGHT = "The person wants a zebrafish"
TAGGED = f"<think>\n{THOUGHT}.\n</think>\n\nA green one."
UNOPENED = f"{THOUGHT}.\n</think>\n\nA green one."


def heard(parts: list[Any]) -> tuple[str, str]:
    """What a stream of /api/chat told of the model's thoughts, and of its reply."""
    thought = reply = ""
    for part in parts:
        if isinstance(part, dict) and "choices" in part:
            delta = part["choices"][0]["delta"]
            thought += (reply if part.get("withdraws") else "") + delta.get("reasoning_content", "")
            reply = ("" if part.get("withdraws") else reply) + delta.get("content", "")
    return thought, reply


def by_chat(client: FlaskClient, message: str) -> str:
    return str(chat(client, message, session_id="s", user_id="ann")["reply"])


def by_chat_stream(client: FlaskClient, message: str) -> str:
    parts = stream(client, message, session_id="s", user_id="ann")
    thought, reply = heard(parts)
    assert THOUGHT in thought
    return reply


def by_messages(client: FlaskClient, message: str) -> str:
    body = {"model": "m", "max_tokens": 99, "messages": [user(message)], "metadata": {"user_id": "ann"}}
    answer = client.post("/v1/messages", json=body, headers={"X-Session-Id": "s"})
    assert answer.status_code == 200, answer.text
    return str(answer.json["content"][0]["text"])


def by_responses(client: FlaskClient, message: str) -> str:
    body = {"model": "m", "input": message, "user": "ann"}
    answer = client.post("/v1/responses", json=body, headers={"X-Session-Id": "s"})
    assert answer.status_code == 200, answer.text
    return str(answer.json["output"][0]["content"][0]["text"])


@pytest.mark.parametrize(
    ("tell", "content"),
    [(by_chat, UNOPENED), (by_chat_stream, TAGGED), (by_messages, TAGGED), (by_responses, UNOPENED)],
)
def test_no_thought_is_said_stored_sent_again_found_or_exported(client, model_server, tell, content):
    model_server.main.queue(Text(content))
    assert tell(client, "Which fish?") == "A green one."
    assert history(client, "s", user_id="ann") == [("user", "Which fish?"), ("assistant", "A green one.")]
    chat(client, "And the next?", session_id="s", user_id="ann")
    engine_of(client.application).job_queue.run_due()
    chat(client, "What did we say about the zebrafish?", session_id="t", user_id="ann")
    asked = [json.dumps(request.body) for request in model_server.requests]
    assert not any(THOUGHT in body for body in asked), "neither prompts nor digests"
    assert THOUGHT not in client.get("/api/users/ann/export").text
    assert THOUGHT not in client.get("/api/search", query_string={"q": "wants", "user_id": "ann"}).text


@pytest.mark.parametrize("content", [TAGGED, UNOPENED], ids=["tagged", "closing tag only"])
def test_a_client_gets_the_answer_as_it_came_and_may_send_it_back(client, model_server, content):
    model_server.main.queue(Text(content), Text(content), Text("Yes."))
    assert complete(client, talk("Which fish?")) == content
    first = [*talk("Which fish?"), assistant(content)]
    parts = stream_completion(client, [*first, user("Sure?")])
    assert streamed_text(parts) == content
    assert complete(client, [*first, user("Sure?"), assistant(content), user("Really?")]) == "Yes."
    answers = [text for role, text in history(client, "s") if role == "assistant"]
    assert answers == ["A green one.", "A green one.", "Yes."], "the same messages, found again"
    assert THOUGHT not in json.dumps(sent(model_server)[-1])


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thoughts_beside_the_content_are_told_while_streaming(client, model_server, field):
    message = {"content": "A green one.", field: f"{THOUGHT}."}
    model_server.main.queue(Json({"choices": [{"message": message, "finish_reason": "stop"}]}))
    parts = stream(client, "Which fish?", session_id="s")
    assert heard(parts) == (f"{THOUGHT}.", "A green one.")


def test_thoughts_go_back_with_the_calls_in_mode_tools(client, model_server):
    """DeepSeek refuses the conversation without them."""
    (call,) = ToolCalls((("conversation_search", {"query": "fish"}),)).calls
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    calls = [{"id": "1", "type": "function", "function": function}]
    message = {"content": None, "reasoning_content": f"{THOUGHT}.", "tool_calls": calls}
    model_server.main.queue(Json({"choices": [{"message": message, "finish_reason": "tool_calls"}]}), "A green one.")
    assert chat(client, "Which fish?", session_id="s", user_id="ann", recall="tools")["reply"] == "A green one."
    again = model_server.requests[-1].body["messages"]
    assert [one["reasoning_content"] for one in again if "reasoning_content" in one] == [f"{THOUGHT}."]


@pytest.mark.parametrize("asks", [True, False])
def test_programs_of_other_protocols_are_shown_thoughts_if_they_ask(client, model_server, asks):
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"content": "A green one.", "reasoning_content": f"{THOUGHT}.", "tool_calls": [call]}
    model_server.main.default = lambda body: Json({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    more: Any = {
        "/v1/messages": {"thinking": {"type": "adaptive"}},
        "/v1/responses": {"reasoning": {"summary": "auto"}},
    }
    for path in more:
        body = {**BODIES[path](talk("Which fish?")), **(more[path] if asks else {})}
        whole = client.post(path, json=body).json
        lines = client.post(path, json={**body, "stream": True}).text.splitlines()
        sent_events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        if path == "/v1/messages":
            blocks = whole["content"]
            begun = [event["content_block"]["type"] for event in sent_events if event["type"] == "content_block_start"]
            deltas = [event["delta"] for event in sent_events if event["type"] == "content_block_delta"]
            told = "".join(delta.get("thinking", "") for delta in deltas)
        else:
            blocks = whole["output"]
            begun = [item["item"]["type"] for item in sent_events if item["type"] == "response.output_item.added"]
            done = [item["item"] for item in sent_events if item["type"] == "response.output_item.done"]
            assert (
                [item["type"] for item in done]
                == begun
                == [item["type"] for item in sent_events[-1]["response"]["output"]]
            )
            told = "".join(event["delta"] for event in sent_events if event["type"].endswith("summary_text.delta"))
            places = [item["output_index"] for item in sent_events if item["type"] == "response.output_item.added"]
            assert places == list(range(len(begun)))
        assert [block["type"] for block in blocks] == begun and len(begun) == (3 if asks else 2)
        assert told == (f"{THOUGHT}." if asks else "") and (f"{THOUGHT}." in str(blocks[0])) is asks
    assert THOUGHT not in client.get("/api/sessions").text


def test_thoughts_that_a_client_sends_again_are_left_out(client, model_server):
    kept = {"role": "assistant", "content": [{"type": "thinking", "thinking": THOUGHT, "signature": ""}]}
    kept["content"].append({"type": "text", "text": "A green one."})
    body = BODIES["/v1/messages"]([*talk("Which fish?"), kept, *talk("Sure?")])
    assert client.post("/v1/messages", json=body).status_code == 200
    for item in ({"type": "reasoning", "id": "rs_1", "summary": []}, {"type": "item_reference", "id": "rs_1"}):
        answer = client.post("/v1/responses", json=BODIES["/v1/responses"]([*talk("Which fish?"), item]))
        assert answer.status_code == 200
    assert THOUGHT not in str([request.body for request in model_server.requests])


@pytest.mark.parametrize("path", ["/api/chat", *BODIES])
def test_a_silent_model_keeps_the_connection_alive(client, model_server, path):
    body = BODIES[path](talk("Hello")) if path in BODIES else {"message": "Hello"}
    model_server.main.queue(Delay(1.3, "At last."))
    with client.post(path, json={**body, "stream": True}) as response:
        assert response.status_code == 200
        text = response.text
    sign = "event: ping\n" if path == "/v1/messages" else ": keep-alive\n\n"
    assert sign in text and text.index(sign) < text.index("last")
    assert "At" in text


def test_a_stream_may_last_longer_than_its_silences(make_app, model_server):
    client = make_app(**at(model_server, model_timeout=0.5)).test_client()
    model_server.main.queue(Text("One two three four five.", seconds_each=0.2))
    assert streamed_text(stream(client, "Count.", session_id="s")) == "One two three four five."


@pytest.fixture
def small():
    """A server whose model reads 2,000 tokens, as vLLM tells it."""
    with ModelServer() as server:

        def answer(body: Any) -> Any:
            size = len(json.dumps(body["messages"])) // 4
            if size <= 2000:
                return "Short enough."
            words = f"This model's maximum context length is 2000 tokens. Your request has {size} input tokens."
            return Json({"error": {"message": words, "code": 400}})

        server.main.default = answer
        yield server


def test_a_prompt_that_is_too_long_is_shortened_in_the_same_turn(make_app, small):
    client = make_app(**at(small, tail_tokens_max=9000, tail_messages_max=50)).test_client()
    append(client, "s", talk(*(f"Number {place} " + "word " * 200 for place in range(16))))
    assert chat(client, "Is that too long?", session_id="s")["reply"] == "Short enough."
    calls = len(small.requests)
    assert calls >= 2
    assert chat(client, "And now?", session_id="s")["reply"] == "Short enough."
    mains = [request for request in small.requests[calls:] if request.model == "main"]
    assert len(mains) == 1, "the window is known now"


def test_metadata_that_recap_reads_goes_no_further(client, model_server):
    assert post(client, talk("Hello"), None, metadata={"session_id": "meta"}).status_code == 200
    assert "metadata" not in sent(model_server)[-1]
    assert post(client, talk("Hello"), None, metadata={"session_id": "meta", "team": "x"}).status_code == 200
    assert sent(model_server)[-1]["metadata"] == {"team": "x"}


def test_a_thought_after_a_call_of_a_tool_leaves_the_words_before_the_call(client, model_server):
    model_server.main.queue(
        ToolCalls((("recent_chats", {}),), "Let me look."), "They ask for it.\n</think>\nThere it is."
    )
    parts = stream(client, "Where is it?", session_id="s", user_id="ada", recall="tools")
    _, reply = heard(parts)
    assert reply == history(client, "s")[-1][1] == "Let me look.\n\nThere it is."
