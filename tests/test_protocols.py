"""Anthropic's Messages and OpenAI's Responses over HTTP: their own packages and the Agents SDK are remembered."""

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest
from agents import Agent, OpenAIConversationsSession, OpenAIResponsesModel, RunConfig, Runner, function_tool

from app import engine_of
from tests.http import history, sessions, stored
from tests.live import Loopback
from tests.model_server import CutStream, Status, Text, ToolCalls
from tests.openai import assistant, sent, user
from tests.test_auth import with_key

MODEL = "gpt-9"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: Any = {"name": "weather", "description": "How warm it is.", "input_schema": SCHEMA}
FUNCTION: Any = {"type": "function", "name": "weather", "description": "How warm it is.", "parameters": SCHEMA}
AS_CHAT = {"name": "weather", "description": "How warm it is.", "parameters": SCHEMA}
CALLING = ToolCalls((("weather", {"city": "Lyon"}),), text="Let me see.")
EXCHANGE = [
    ("user", "Is it warm in Lyon?"),
    ("assistant", "Let me see."),
    ("tool", "21 degrees"),
    ("assistant", "It is 21 degrees."),
]
PNG = "iVBORw0KGgo="
ELSEWHERE = {"type": "image", "source": {"type": "file", "file_id": "f"}}
CUSTOM = {"type": "custom", "name": "patch"}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": ["a"]}


@pytest.fixture
def key(model_app):
    return engine_of(model_app).keys.create("default", None)[0]


@pytest.fixture
def client(model_app, key):
    return with_key(model_app, key)


@pytest.fixture
def url(model_app):
    served = Loopback(model_app)
    yield f"http://127.0.0.1:{served.port}"
    served.stop()


@pytest.fixture
def claude(url, key):
    with anthropic.Anthropic(base_url=url, api_key=key, max_retries=0) as claude:
        yield claude


@pytest.fixture
def gpt(url, key):
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as gpt:
        yield gpt


def in_session(name: str) -> dict[str, str]:
    return {"X-Session-Id": name}


# -- Anthropic


def test_anthropics_package_is_remembered(claude, client, model_server):
    usage = {"prompt_tokens": 30, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 20}}
    model_server.main.queue(Text("Noted."), Text("Miso.", usage=usage))
    ask: Any = {"model": MODEL, "max_tokens": 99, "metadata": {"user_id": "ada"}}
    first = claude.messages.create(messages=[user("My cat is called Miso.")], system="Be brief.", **ask)
    assert first.to_dict()["content"] == [{"type": "text", "text": "Noted."}]
    assert (first.type, first.role, first.model, first.stop_reason) == ("message", "assistant", MODEL, "end_turn")
    raw = claude.messages.with_raw_response.create(messages=[user("What is my cat called?")], **ask)
    answer = raw.parse()
    assert raw.headers["request-id"] == raw.headers["X-Request-ID"] and raw.headers["X-Memory-Recalled"] == "1"
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens, answer.usage.output_tokens) == (10, 20, 2)
    assert "My cat is called Miso." in json.dumps(sent(model_server)[-1]["messages"])
    assert {one["user_id"] for one in sessions(client)} == {"ada"} and len(sessions(client)) == 2
    talk: Any = [user("My cat is called Miso."), first.to_param(), user("And she is grey.")]
    claude.messages.create(messages=talk, **ask)  # known by its messages
    assert len(sessions(client)) == 2


@pytest.mark.parametrize("streamed", [True, False])
def test_anthropics_package_streams_and_calls_tools(claude, client, model_server, streamed):
    model_server.main.queue(CALLING, "It is 21 degrees.")
    asked: Any = {"model": MODEL, "max_tokens": 99, "tools": [WEATHER], "extra_headers": in_session("s")}

    def answer(messages: Any) -> anthropic.types.Message:
        if not streamed:
            return claude.messages.create(messages=messages, **asked)
        with claude.messages.stream(messages=messages, **asked) as stream:
            assert "".join(stream.text_stream) in ("Let me see.", "It is 21 degrees.")
            return stream.get_final_message()

    talk = [user("Is it warm in Lyon?")]
    calling = answer(talk)
    words, call = calling.content
    assert words.type == "text" and words.text == "Let me see." and calling.stop_reason == "tool_use"
    assert call.type == "tool_use" and (call.name, call.input) == ("weather", {"city": "Lyon"})
    result = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "21 degrees"}]}
    talk += [calling.to_param(), user([result])]
    last = answer(talk)
    assert last.usage.output_tokens == 4 and last.usage.input_tokens > 0 and last.id != calling.id
    assert history(client, "s") == EXCHANGE
    body = sent(model_server)[1]
    assert body["tools"] == [{"type": "function", "function": AS_CHAT}] and body["max_completion_tokens"] == 99
    function = {"name": "weather", "arguments": '{"city": "Lyon"}'}
    made = {"id": call.id, "type": "function", "function": function}
    assert body["messages"][1:] == [
        assistant("Let me see.", tool_calls=[made]),
        {"role": "tool", "tool_call_id": call.id, "content": "21 degrees"},
    ]


def test_whatever_anthropics_messages_have_is_translated(claude, client, model_server):
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    elsewhere = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    failure = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [picture]}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
    drawing = {"type": "tool_use", "id": "t", "name": "draw", "input": {}}
    talk: Any = [
        user("Hello"),
        assistant([thought, drawing]),
        user([failure, {"type": "text", "text": "See?", "cache_control": {"type": "ephemeral"}}, elsewhere]),
        {"role": "system", "content": "Now."},
    ]
    claude.messages.create(
        model=MODEL,
        max_tokens=9,
        messages=talk,
        system=[{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}],
        stop_sequences=["END"],
        tools=[WEATHER],
        tool_choice={"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
        thinking={"type": "enabled", "budget_tokens": 1024},
        extra_body={"temperature": 0.5, "top_k": 5},
        extra_headers=in_session("s"),
    )
    here, there = (
        {"type": "image_url", "image_url": {"url": url}}
        for url in (f"data:image/png;base64,{PNG}", "https://example.org/a.png")
    )
    drawn = {"id": "t", "type": "function", "function": {"name": "draw", "arguments": "{}"}}
    assert sent(model_server)[0] == {
        "model": MODEL,
        "stream": False,
        "max_completion_tokens": 9,
        "stop": ["END"],
        "temperature": 0.5,
        "tools": [{"type": "function", "function": AS_CHAT}],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            user("Hello"),
            assistant(None, tool_calls=[drawn]),
            {"role": "tool", "tool_call_id": "t", "content": "Error: "},
            user([here, {"type": "text", "text": "See?"}, there]),
            {"role": "system", "content": "Now."},
        ],
    }
    assert history(client, "s")[3] == ("user", "[image]\nSee?\n[image]")


def test_why_a_message_ends_is_told(claude, model_server):
    for finish, reason in (("length", "max_tokens"), ("content_filter", "refusal")):
        model_server.main.queue(Text("One", finish=finish))
        answer = claude.messages.create(model=MODEL, max_tokens=1, messages=[user("Count.")])
        assert answer.stop_reason == reason


def test_anthropics_package_raises_its_own_errors(claude, client, model_server):
    ask: Any = {"model": MODEL, "max_tokens": 9, "messages": [user("Hello")]}
    with pytest.raises(anthropic.AuthenticationError) as unknown:
        claude.with_options(api_key="sk-of-nobody-0123456789").messages.create(**ask)
    body: Any = unknown.value.body
    assert body["type"] == "error" and body["error"]["type"] == "authentication_error"
    assert body["request_id"] == unknown.value.request_id
    with pytest.raises(anthropic.BadRequestError, match=r"messages\.0\.content\.0\.source"):
        claude.messages.create(**{**ask, "messages": [user([{"type": "document", "source": {}}])]})
    for person in ("ada", "bob"):
        client.post("/api/chat", json={"message": "Hello", "session_id": "main", "user_id": person})
    with pytest.raises(anthropic.BadRequestError) as ambiguous:
        claude.messages.create(**ask, extra_headers=in_session("main"))
    body = ambiguous.value.body
    assert (body["error"]["type"], body["error"]["code"]) == ("invalid_request_error", "session_ambiguous")
    model_server.main.queue(Status(404, {"error": {"message": "There is no such model."}}))
    with pytest.raises(anthropic.NotFoundError, match="no such model"):
        claude.messages.create(**{**ask, "model": "recap"})
    model_server.main.queue(Status(429, {"error": {"message": "Slow down."}}, {"Retry-After": "0"}))  # clients retry
    with pytest.raises(anthropic.RateLimitError, match="Slow down"):
        claude.messages.create(**ask)
    model_server.main.queue(CutStream(after=2))
    with pytest.raises(anthropic.APIStatusError, match="broke off"), claude.messages.stream(**ask) as stream:
        list(stream)


def test_a_model_server_that_is_overloaded_is_told_in_anthropics_word(claude, model_server):
    model_server.main.queue(*[Status(529, {"error": {"message": "Too much."}}, {"Retry-After": "0"})] * 5)
    with pytest.raises(anthropic.APIStatusError) as refused:
        claude.messages.create(model=MODEL, max_tokens=9, messages=[user("Hello")])
    body: Any = refused.value.body
    assert (refused.value.status_code, body["error"]["type"]) == (529, "overloaded_error")


def test_anthropics_threads_are_sent_whole_since_nobody_holds_them(client, model_server):
    """Its packages begin one where they run tools, and send the whole conversation after this error."""
    body: Any = {"model": MODEL, "max_tokens": 9, "messages": [user("Hello")], "metadata": {"user_id": "ada"}}
    first = client.post("/v1/messages", json={**body, "thread": {"type": "create"}})
    assert first.status_code == 200
    new = {**body, "messages": [user("And now?")]}
    answer = client.post(
        "/v1/messages", json={**new, "thread": {"type": "continue", "previous_message_id": first.json["id"]}}
    )
    assert answer.status_code == 404 and answer.json["error"]["type"] == "not_found_error"
    assert answer.json["error"]["details"] == {"error_code": "thread_not_found"}
    assert [role for role, _ in history(client, first.headers["X-Memory-Session-Id"])] == ["user", "assistant"]


# -- Responses


def contents(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"]]


def test_a_reference_to_a_reply_goes_on_from_its_response(gpt, client, model_server):
    """As Vercel's AI SDK sends a conversation from its second turn on: replies by their ids, calls whole."""
    model_server.main.queue("Noted.", ToolCalls((("weather", {"city": "Lyon"}),), "Let me see."), "Warm.")
    ask: Any = {"model": MODEL, "user": "ada", "tools": [{"type": "function", "name": "weather", "parameters": {}}]}
    items: Any = [{"role": "developer", "content": "Be brief."}, user("My cat is called Miso.")]
    first = gpt.responses.create(input=items, **ask)
    items += [{"type": "item_reference", "id": first.output[0].id}, user("Is it warm in Lyon?")]
    reply, call = gpt.responses.create(input=items, **ask).output
    items += [{"type": "item_reference", "id": reply.id}, call.to_dict()]
    items += [{"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}]
    assert gpt.responses.create(input=items, **ask).output_text == "Warm."
    asked = [one["role"] for one in sent(model_server)[2]["messages"]]
    assert asked == ["developer", "user", "assistant", "user", "assistant", "tool"]
    (session,) = sessions(client)
    words = ["My cat is called Miso.", "Noted.", "Is it warm in Lyon?", "Let me see.", "21 degrees", "Warm."]
    assert [text for _, text in history(client, session["id"])] == words
    with pytest.raises(openai.NotFoundError):
        gpt.responses.create(input=items, **{**ask, "user": "bob"})


def test_a_response_goes_on_from_the_one_before(gpt, client, model_server):
    model_server.main.queue("Noted.", "Miso.", "Grey.", "White.")
    ask: Any = {"model": MODEL, "user": "ada"}
    first = gpt.responses.create(input="My cat is called Miso.", instructions="Be brief.", **ask)
    assert (first.status, first.output_text, first.instructions) == ("completed", "Noted.", "Be brief.")
    assert first.usage is not None and first.usage.total_tokens == first.usage.input_tokens + 1
    second = gpt.responses.create(input="What is my cat called?", previous_response_id=first.id, **ask)
    assert second.previous_response_id == first.id
    assert contents(sent(model_server)[1]) == ["My cat is called Miso.", "Noted.", "What is my cat called?"]
    gpt.responses.create(input="What colour?", previous_response_id=second.id, **ask)
    other = gpt.responses.create(input="And her paws?", previous_response_id=first.id, **ask)
    assert contents(sent(model_server)[3]) == ["My cat is called Miso.", "Noted.", "And her paws?"]
    (session,) = sessions(client)  # and the later response is on a branch
    assert [words for _, words in history(client, session["id"])][2:] == ["And her paws?", "White."]
    with pytest.raises(openai.NotFoundError):
        gpt.responses.create(input="And?", previous_response_id=second.id, **ask)
    model_server.main.queue("Welcome.", "Any time.")
    thanks = [gpt.responses.create(input="Thanks.", previous_response_id=other.id, **ask) for _ in range(2)]
    assert thanks[0].id != thanks[1].id  # another answer to the same words
    assert [words for _, words in history(client, session["id"])][4:] == ["Thanks.", "Any time."]


def test_a_response_of_nobody_or_of_somebody_else_is_not_there(gpt, client, model_server):
    """Another tenant's is not there either: see test_owners_apart."""
    stored = gpt.responses.create(model=MODEL, user="ada", input="My code is 7319.").id
    unstored = gpt.responses.create(model=MODEL, user="ada", input="My code is 7319.", store=False).id
    for previous, person, streamed in (
        ("resp_0123456789", "ada", False),
        (stored, "bob", False),
        (stored, "bob", True),
        (unstored, "ada", True),
    ):
        ask: Any = {"model": MODEL, "user": person, "previous_response_id": previous, "stream": streamed}
        with pytest.raises(openai.NotFoundError) as refused:
            gpt.responses.create(input="What is my code?", **ask)
        error: Any = refused.value.body
        told = (error["type"], error["code"], error["param"])
        assert told == ("invalid_request_error", "previous_response_not_found", "previous_response_id")
        assert error["message"].startswith(f"There is no response {previous!r} to go on from")
    assert len(sent(model_server)) == 2 and len(sessions(client)) == 1


def test_responses_stream_and_call_functions(gpt, client, model_server):
    model_server.main.queue(CALLING, "It is 21 degrees.")
    ask: Any = {"model": MODEL, "tools": [FUNCTION], "user": "ada"}

    def answer(**more: Any) -> Any:
        with gpt.responses.stream(**ask, **more) as stream:
            events = list(stream)
            response = stream.get_final_response()
        assert [event.sequence_number for event in events] == list(range(len(events)))
        kinds = [event.type.removeprefix("response.") for event in events]
        assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
        texts = ["output_text.delta"] * len(response.output_text.split())
        done = ["output_text.done", "content_part.done", "output_item.done"]
        calls = [item for item in response.output if item.type == "function_call"]
        pieces = ["function_call_arguments.delta"] * sum(-(-len(call.arguments) // ToolCalls.SIZE) for call in calls)
        begun, ended = (["output_item.added"], ["function_call_arguments.done", done[-1]]) if calls else ([], [])
        assert kinds[4:] == [*texts, *begun, *pieces, *done, *ended, "completed"]
        return response

    calling = answer(input=[user("Is it warm in Lyon?")])
    words, call = calling.output
    assert words.content[0].text == "Let me see."
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "weather", {"city": "Lyon"})
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"}
    last = answer(input=[result], previous_response_id=calling.id)
    assert last.output_text == "It is 21 degrees." and last.id != calling.id
    (session,) = sessions(client)
    assert history(client, session["id"]) == EXCHANGE
    assert sent(model_server)[0]["tools"] == [{"type": "function", "function": AS_CHAT}]
    *before, came = sent(model_server)[1]["messages"]
    assert [one["role"] for one in before] == ["user", "assistant"]
    assert came == {"role": "tool", "tool_call_id": call.call_id, "content": "21 degrees"}


def test_whatever_responses_have_is_translated(gpt, client, model_server):
    picture = {"type": "input_image", "image_url": "https://a", "detail": "low"}
    items: Any = [
        {"role": "developer", "content": "Be kind."},
        user("Hello"),
        {"type": "reasoning", "id": "r", "summary": []},
        assistant([{"type": "output_text", "text": "Hi!", "annotations": []}], type="message"),
        user([{"type": "input_text", "text": "See?"}, picture, {"type": "input_file", "file_url": "https://a/b.pdf"}]),
    ]
    shape: Any = {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "strict": True}
    gpt.responses.create(
        model=MODEL,
        input=items,
        instructions="Be brief.",
        max_output_tokens=9,
        temperature=0.5,
        text={"format": shape},
        reasoning={"effort": "low", "summary": "auto"},
        tool_choice="auto",
        metadata={"session_id": "s"},
        include=["reasoning.encrypted_content"],
        truncation="auto",
        background=False,
    )
    passed = {"type": "image_url", "image_url": {"url": "https://a", "detail": "low"}}
    named = {"name": "x", "schema": {"type": "object"}, "strict": True}
    assert sent(model_server)[0] == {
        "model": MODEL,
        "stream": False,
        "max_completion_tokens": 9,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": named},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "Be kind."},
            user("Hello"),
            assistant("Hi!"),
            user([{"type": "text", "text": "See?"}, passed, {"type": "text", "text": "document: https://a/b.pdf"}]),
        ],
    }
    assert [words for _, words in history(client, "s")][:3] == [
        "Hello",
        "Hi!",
        "See?\n[image]\ndocument: https://a/b.pdf",
    ]


def test_of_its_tools_a_response_may_call_those_that_are_allowed(gpt, model_server):
    other = {**FUNCTION, "name": "clock"}
    for names in (["weather"], []):
        allowed = [{"type": "function", "name": name} for name in names]
        choice: Any = {"type": "allowed_tools", "mode": "required", "tools": allowed}
        gpt.responses.create(model=MODEL, input="Is it warm?", tools=[other, FUNCTION], tool_choice=choice)
    first, second = sent(model_server)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["weather"] and first["tool_choice"] == "required"
    assert not {"tools", "tool_choice"} & second.keys()


def test_what_the_output_of_a_function_shows_follows_as_the_persons(gpt, client, model_server):
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    calls = [{"type": "function_call", "call_id": id, "name": "view", "arguments": "{}"} for id in ("a", "b")]
    outputs = [
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "Here."}, picture]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call_output", "call_id": "b", "output": "none"},
    ]
    shown = user([{"type": "image_url", "image_url": {"url": picture["image_url"]}}])
    seen: Any = [user("Look."), *calls, *outputs]
    first = gpt.responses.create(model=MODEL, input=seen, user="ada")
    assert [message["role"] for message in sent(model_server)[0]["messages"]] == [
        *("user", "assistant", "tool", "tool", "user")
    ]
    assert sent(model_server)[0]["messages"][-1] == shown
    gpt.responses.create(model=MODEL, input=[*seen, first.output[0].to_dict(), user("And?")], user="ada")
    assert sent(model_server)[1]["messages"][4] == shown
    (session,) = sessions(client)
    texts = ["Look.", "", "Here.", "none", "[image]", first.output_text, "And?"]
    assert [text for _, text in history(client, session["id"])][:-1] == texts


def test_a_response_needs_something_to_answer(gpt, client, model_server):
    first = gpt.responses.create(model=MODEL, input="My cat is called Miso.", user="ada")
    thought: Any = {"type": "reasoning", "id": "rs_1", "summary": []}
    told: Any = {"role": "developer", "content": "Be brief."}
    begun = [{}, {"previous_response_id": first.id}, {"conversation": sessions(client)[0]["id"]}]
    for more, input in [(more, input) for more in begun for input in ([], [thought], [told], "")]:
        if more or input not in ([told], ""):  # which a model server may answer alone
            with pytest.raises(openai.BadRequestError) as refused:
                gpt.responses.create(model=MODEL, user="ada", input=input, extra_body=more)
            assert (refused.value.code, refused.value.param) == ("nothing_to_answer", "input")
    untyped: Any = {"type": None, "role": "user", "content": "What is she called?", "id": None}
    gpt.responses.create(model=MODEL, user="ada", input=[untyped], previous_response_id=first.id)
    assert len(sent(model_server)) == 2 and len(history(client, sessions(client)[0]["id"])) == 4


def test_why_a_response_is_incomplete_or_failed_is_told(gpt, model_server):
    model_server.main.queue(Text("One", finish="length"), CutStream(after=2))
    short = gpt.responses.create(model=MODEL, input="Count.")
    assert short.status == "incomplete" and short.incomplete_details is not None
    assert short.incomplete_details.reason == "max_output_tokens"
    *_, last = gpt.responses.create(model=MODEL, input="Count on.", stream=True)
    assert last.type == "response.failed" and last.response.error is not None
    assert "broke off" in last.response.error.message


def test_a_stored_response_is_read_and_erased(gpt, client, model_server):
    thinking = {"prompt_tokens": 30, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}}
    model_server.main.queue(Text("Noted.", usage=thinking), CALLING, "Warm.")
    ask: Any = {"model": MODEL, "user": "ada", "tools": [FUNCTION]}
    first = gpt.responses.create(input="My cat is called Miso.", **ask)
    second = gpt.responses.create(input="Is it warm in Lyon?", previous_response_id=first.id, **ask)
    result = {"type": "function_call_output", "call_id": second.output[1].call_id, "output": "21 degrees"}
    third = gpt.responses.create(input=[result], previous_response_id=second.id, **ask)
    for response in (first, second, third):
        read = gpt.responses.retrieve(response.id)
        assert (read.output, read.status, read.created_at) == (response.output, "completed", response.created_at)
        assert gpt.responses.retrieve(response.id, include=["message.output_text.logprobs"]).output == read.output
        assert read.usage == response.usage
        *_, end = events = list(gpt.responses.retrieve(response.id, stream=True))
        assert [event.sequence_number for event in events] == list(range(len(events)))
        words = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert "".join(words) == read.output_text
        assert end.type == "response.completed" and end.response.output == read.output
        *_, before, last = list(gpt.responses.retrieve(response.id, stream=True, starting_after=len(events) - 3))
        assert (before.sequence_number, last) == (len(events) - 2, end)
        assert list(gpt.responses.retrieve(response.id, stream=True, starting_after=10_000)) == [end]
    assert first.usage is not None and first.usage.output_tokens_details.reasoning_tokens == 7
    asked = [[item.to_dict() for item in gpt.responses.input_items.list(one.id)] for one in (first, second, third)]
    assert [[item.get("content", item.get("output")) for item in items] for items in asked] == [
        [[{"type": "input_text", "text": "My cat is called Miso."}]],
        [[{"type": "input_text", "text": "Is it warm in Lyon?"}]],
        ["21 degrees"],
    ]
    gpt.responses.delete(second.id)
    (session,) = sessions(client)
    assert [text for _, text in history(client, session["id"])] == [
        "My cat is called Miso.",
        "Noted.",
        "21 degrees",
        "Warm.",
    ]
    for gone in (second.id, "resp_0123456789"):
        with pytest.raises(openai.NotFoundError, match="There is no response"):
            gpt.responses.retrieve(gone)
    count = gpt.responses.input_tokens.count(model=MODEL, input="My cat is called Miso.")
    assert count.object == "response.input_tokens" and count.input_tokens > 5


def test_a_conversation_is_a_session(gpt, client, model_server):
    model_server.main.queue("Grey.", CALLING)
    begun: Any = [{"type": "message", "role": "user", "content": "My cat is called Miso."}]
    id = gpt.conversations.create(items=begun, metadata={"topic": "cats"}).id
    ask: Any = {"model": MODEL, "conversation": id, "tools": [FUNCTION]}
    answer = gpt.responses.create(input="What colour is she?", **ask)
    assert answer.conversation is not None and answer.conversation.id == id
    assert contents(sent(model_server)[0])[-2:] == ["My cat is called Miso.", "What colour is she?"]
    gpt.responses.create(input="Is it warm in Lyon?", **ask)
    texts = ["My cat is called Miso.", "What colour is she?", "Grey.", "Is it warm in Lyon?", "Let me see."]
    assert [text for _, text in history(client, id)] == texts
    listed = list(gpt.conversations.items.list(id, order="asc", limit=2))  # which reads on, page by page
    assert [getattr(item, "role", item.type) for item in listed] == [
        *("user", "user", "assistant", "user", "assistant", "function_call")
    ]
    assert [item.id for item in gpt.conversations.items.list(id, limit=1)] == [item.id for item in listed[::-1]]
    included = gpt.conversations.items.list(id, order="asc", limit=2, include=["message.output_text.logprobs"])
    assert list(included) == listed
    assert (
        gpt.conversations.items.retrieve(listed[5].id, conversation_id=id).to_dict()["arguments"] == '{"city": "Lyon"}'
    )
    new = gpt.conversations.items.create(id, items=[{"type": "message", "role": "assistant", "content": "It is"}])
    assert new.data[0].to_dict()["content"][0]["text"] == "It is"
    gpt.conversations.items.delete(listed[0].id, conversation_id=id)
    assert [text for _, text in history(client, id)] == [*texts[1:], "It is"]
    for other in (listed[0].id, listed[1].id.replace("conv", "vnoc")):
        with pytest.raises(openai.NotFoundError):
            gpt.conversations.items.retrieve(other, conversation_id=id)
    assert gpt.conversations.update(id, metadata={"topic": "weather"}).metadata == {"topic": "weather"}
    assert gpt.conversations.retrieve(id).metadata == {"topic": "weather"}
    assert gpt.conversations.delete(id).deleted and sessions(client) == []
    for wrong in ({"": 0}, {"type": "message", "role": "nobody", "content": "Hi"}, {"type": "function_call"}):
        refused = client.post("/v1/conversations", json={"items": [begun[0], wrong]})
        assert refused.status_code == 400 and "items.1" in refused.text and sessions(client) == []
    with pytest.raises(openai.NotFoundError) as missing:
        gpt.responses.create(input="Hello", **ask)
    assert missing.value.code == "conversation_not_found"


def test_what_is_kept_with_a_conversation_is_exported_and_imported(gpt, client):
    id = gpt.conversations.create(metadata={"topic": "cats"}, extra_body={"user": "ada"}).id
    exported = client.get("/api/users/ada/export").json
    client.delete("/api/users/ada")
    assert client.post("/api/import", query_string={"user_id": "ada"}, json=exported).status_code == 200
    assert gpt.conversations.retrieve(id).metadata == {"topic": "cats"}


def test_an_empty_conversation_is_the_first_persons_who_is_named_in_it(gpt, client, model_server):
    """As programs make it that name people by `user` or `safety_identifier`, which only a response takes."""
    model_server.main.queue("Noted.", "Miso.")
    id = gpt.conversations.create().id
    for question in ("My cat is called Miso.", "What is she called?"):
        gpt.responses.create(model=MODEL, conversation=id, user="ada", input=question)
    assert [(one["id"], one["user_id"], one["message_count"]) for one in sessions(client)] == [(id, "ada", 4)]
    with pytest.raises(openai.NotFoundError):
        gpt.responses.create(model=MODEL, conversation=id, user="bob", input="What is she called?")
    assert len(list(gpt.conversations.items.list(id))) == 4
    empty = gpt.conversations.create().id
    for whom in ({"X-Memory-Space": "team"}, {"X-Memory-Space": "team", "X-OpenWebUI-User-Id": "ada"}):
        for path in ("", "/items"):  # nothing moves a session into a space
            answer = client.get(f"/v1/conversations/{empty}{path}", headers=whom)
            assert (answer.status_code, answer.json["error"]["code"]) == (404, "conversation_not_found")
    for answer in (
        client.post("/v1/conversations/none", json={"metadata": {}}),
        client.delete("/v1/conversations/none"),
    ):
        assert (answer.status_code, answer.json["error"]["code"]) == (404, "conversation_not_found")
    for name in ("support", "conv_17"):  # of an application, which anybody guesses
        assert client.post("/api/sessions", json={"session_id": name, "system_prompt": "Secret."}).status_code == 201
        with pytest.raises(openai.NotFoundError):
            gpt.responses.create(model=MODEL, conversation=name, user="bob", input="Hello")


def test_the_agents_sdk_stores_a_conversation_once(url, client, model_server, model_app):
    """Its own session reads and appends items beside each request."""
    key = engine_of(model_app).keys.create("default", "ada")[0]

    @function_tool
    def weather(city: str) -> str:
        """How warm it is."""
        return "21 degrees"

    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as gpt:
            agent = Agent(name="Tea", model=OpenAIResponsesModel(MODEL, gpt), tools=[weather])
            kept = OpenAIConversationsSession(openai_client=gpt)
            for question in ("My cat is called Miso.", "Is it warm in Lyon?", "And tomorrow?"):
                await Runner.run(agent, question, run_config=RunConfig(tracing_disabled=True), session=kept)

    model_server.main.queue("Noted.", CALLING, "It is 21 degrees.", "The same.")
    asyncio.run(run())
    (session,) = sessions(client)
    said = [("user", "My cat is called Miso."), ("assistant", "Noted."), *EXCHANGE]
    assert history(client, session["id"]) == [*said, ("user", "And tomorrow?"), ("assistant", "The same.")]
    assert not any("<chat" in json.dumps(body) for body in sent(model_server))


# -- both

HI: dict[str, Any] = {"messages": [user("Is it warm?")], "max_tokens": 9}
PATHS = {"messages": HI, "responses": {"input": "Is it warm?"}, "chat/completions": HI}


def test_what_cannot_be_translated_is_refused_with_its_place(client, model_server):
    hi = [user("Hi")]
    for path, body, place in (
        ("messages", {"messages": hi}, "max_tokens"),
        ("messages", {"max_tokens": 9}, "messages"),
        ("messages", {"max_tokens": 9, "messages": [{"role": "tool", "content": "Hi"}]}, "messages.0.role"),
        ("messages", {"max_tokens": 9, "messages": [user(7)]}, "messages.0.content"),
        ("messages", {"max_tokens": 9, "messages": [user([7])]}, "messages.0.content.0"),
        ("messages", {"max_tokens": 9, "messages": [user([{"type": "text"}])]}, "messages.0.content.0.text"),
        ("messages", {"max_tokens": 9, "messages": [user([ELSEWHERE])]}, "messages.0.content.0.source"),
        ("messages", {"max_tokens": 9, "messages": hi, "tool_choice": {"type": "best"}}, "tool_choice"),
        ("responses", {}, "input"),
        ("responses", {"input": 7}, "input"),
        ("responses", {"input": [7]}, "input.0"),
        ("responses", {"input": [{"type": "item_reference", "id": "x"}]}, "input.0"),
        ("responses", {"input": [user([{"type": "input_image", "file_id": "f"}])]}, "input.0.content.0.image_url"),
        ("responses", {"input": [{"type": "function_call", "name": "f"}]}, "input.0.call_id"),
        ("responses", {"input": "Hi", "conversation": 7}, "conversation"),
        ("responses", {"input": "Hi", "conversation": "c", "previous_response_id": "resp_1_s"}, "conversation"),
        ("responses", {"input": "Hi", "background": True}, "background"),
        ("responses", {"input": "Hi", "store": False, "previous_response_id": "resp_1_s"}, "previous_response_id"),
        ("responses", {"input": "Hi", "text": {"format": {"type": "grammar"}}}, "text.format"),
        ("responses", {"input": "Hi", "tools": [{**CUSTOM, "format": "text"}]}, "tools.0.format"),
        ("responses", {"input": "Hi", "tools": [{**CUSTOM, "description": 5}]}, "tools.0.description"),
        ("responses", {"input": "Hi", "tools": [{**CUSTOM, "format": GRAMMAR}]}, "tools.0.format.definition"),
        ("responses/input_tokens", {"input": "Hi", "tools": [{**CUSTOM, "format": "text"}]}, "tools.0.format"),
        ("completions", {"model": ["a"], "prompt": "Hi"}, "model"),
        ("embeddings", {"model": {"a": 1}, "input": "Hi"}, "model"),
    ):
        answer = client.post(f"/v1/{path}", json={"model": MODEL, **body})
        assert answer.status_code == 400, answer.text
        error = answer.json["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_fields")
        assert f"First: {place}: " in error["message"]
        assert answer.json.get("type") == ("error" if path == "messages" else None)
    assert sessions(client) == [] and sent(model_server) == []


class SignedCalls(ToolCalls):
    """Calls that the server wants back with what it gave with the first of them, as Gemini does."""

    def _whole(self, exchange: Any) -> Any:
        first, *others = super()._whole(exchange)
        return [{**first, "extra_content": SIGNED}, *others]


SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}


def test_a_call_goes_back_to_the_server_as_the_server_gave_it(claude, gpt, model_server):
    """Neither Anthropic's calls nor those of responses have a place for it, and it is not lost."""
    call = ("weather", {"city": "Lyon"})
    model_server.main.queue(*[SignedCalls((call, call)), "Warm."] * 2)
    ask: Any = {"model": MODEL, "extra_headers": in_session("claude")}
    talk: Any = [user("Is it warm in Lyon?")]
    asked = {"messages": talk, "max_tokens": 99, "tools": [WEATHER], **ask}
    calling = claude.messages.create(**asked)
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "21"} for block in calling.content]
    claude.messages.create(**{**asked, "messages": [*talk, calling.to_param(), user(results)]})
    asked = {"input": talk, "tools": [FUNCTION], **ask, "extra_headers": in_session("gpt")}
    output = gpt.responses.create(**asked).output
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": "21"} for call in output]
    gpt.responses.create(**{**asked, "input": [*talk, *(call.to_dict() for call in output), *results]})
    calls = [one["tool_calls"] for body in sent(model_server) for one in body["messages"] if "tool_calls" in one]
    assert [[call.get("extra_content", "none") for call in each] for each in calls] == [[SIGNED, "none"]] * 2


def test_a_name_that_no_header_can_carry_is_no_failure(client):
    for path, body in PATHS.items():
        for named in ({"model": "a\r\nX-Evil: 1"}, {"model": "\ud800"}, {"metadata": {"session_id": "\ud800"}}):
            answer = client.post(f"/v1/{path}", json={"model": MODEL, **body, **named})
            assert answer.status_code == 200, answer.text
            assert "X-Evil" not in answer.headers and len(answer.headers["X-Memory-Model"].splitlines()) == 1


@pytest.mark.parametrize("streamed", [True, False])
def test_a_retry_gets_the_first_answer_under_its_first_id(client, model_server, streamed):
    by_count = {"X-Stainless-Retry-Count": "1"}  # of an SDK, which says no key
    calls = [*((path, {"Idempotency-Key": path}) for path in PATHS), ("chat/completions", by_count)]
    for number, (path, headers) in enumerate(calls):
        model_server.main.queue(CALLING)
        answers, session = [], f"s{number}"
        for more in ({"X-Stainless-Retry-Count": "0"} if headers is by_count else headers, headers):
            sending = {
                "json": {"model": MODEL, "stream": streamed, **PATHS[path]},
                "headers": in_session(session) | more,
            }
            with client.post(f"/v1/{path}", **sending) as answer:
                assert answer.status_code == 200, answer.text
                datas = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {")]
                told = [json.loads(data) for data in datas] if streamed else [answer.json]
            whole = told[0].get("message") or told[-1].get("response") or told[0]
            answers.append((whole["id"], "see." in json.dumps(told), "weather" in json.dumps(told)))
        assert answers[0] == answers[1] and all(answers[0])
        assert len(sent(model_server)) == number + 1 and len(stored(client, session)) == 2
