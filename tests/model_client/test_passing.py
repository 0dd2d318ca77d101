"""A client's request passed on to the model server: nothing is lost on the way there, and nothing on the way back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from memory.errors import ModelError
from memory.llm import ChatMessage, Chunk, Finish, ModelRequest, Piece, ToolCall
from memory.llm.completions import OpenAIModel
from tests.model_replies import Json
from tests.model_server import ModelServer, Raw, Status
from tests.openai_calls import MATERIAL, chunk, connected, data

RAW = {"role": "user", "content": [{"type": "text", "text": "Hello"}], "cache_control": {"type": "ephemeral"}}
PARAMETERS = {"model": "gpt-9", "temperature": 0.25, "logit_bias": {"50256": -100}, "x_of_theirs": [1, {"deep": None}]}


@pytest.fixture
def model(server: ModelServer) -> Iterator[OpenAIModel]:
    """One that no server has refused a parameter yet: it would not send that again."""
    with connected(server) as model:
        yield model


def passed(stream: bool = False, cache_key: str | None = None, **parameters: Any) -> ModelRequest:
    """A client's request with these parameters."""
    messages = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello", raw=RAW))
    client = {**PARAMETERS, **parameters}
    return ModelRequest(messages, MATERIAL, stream=stream, client=client, cache_key=cache_key)


def answered(model: OpenAIModel, request: ModelRequest) -> tuple[list[dict[str, Any]], str, list[ToolCall], Finish]:
    """What came: the chunks, the text, the calls, the end."""
    parts = list(model.answer(request))
    chunks = [dict(part.data) for part in parts if isinstance(part, Chunk)]
    text = "".join(part.text for part in parts if isinstance(part, Piece))
    assert isinstance(parts[-1], Finish)
    return chunks, text, [part for part in parts if isinstance(part, ToolCall)], parts[-1]


def test_a_request_that_names_no_model_is_for_the_main_one(server: ModelServer, model: OpenAIModel) -> None:
    request = ModelRequest((ChatMessage("user", "Hello"),), MATERIAL, client={})
    answered(model, request)
    assert server.requests[0].body["model"] == "gpt-4o"


COMPLETION = {
    "id": "chatcmpl-x",
    "object": "chat.completion",
    "created": 123,
    "model": "gpt-9-2026",
    "system_fingerprint": "fp_1",
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}


def test_a_plain_answer_to_a_streamed_request_comes_as_a_chunk(server: ModelServer, model: OpenAIModel) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "Hello.", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    server.main.queue(Json({**COMPLETION, "choices": [choice]}))
    chunks, text, calls, _ = answered(model, passed(stream=True))
    assert text == "Hello." and [one.id for one in calls] == ["call_1"]
    assert chunks == [
        {
            **COMPLETION,
            "object": "chat.completion.chunk",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "delta": {**message, "tool_calls": [{"index": 0, **call}]},
                }
            ],
        }
    ]


def test_a_stream_in_answer_to_a_plain_request_comes_as_one_completion(server: ModelServer, model: OpenAIModel) -> None:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}
    rest = {"index": 0, "function": {"arguments": ":1}"}}
    events = [
        chunk({"role": "assistant", "content": "He", "reasoning_content": "Hm"}, id="c", model="m", usage=None),
        chunk({"content": "llo"}),
        chunk({"tool_calls": [call]}),
        chunk({"tool_calls": [rest]}),
        chunk({}, "tool_calls", usage={"prompt_tokens": 1, "completion_tokens": 2}),
    ]
    server.main.queue(Raw([data(*events, b"[DONE]")]))
    (shown,), text, calls, _ = answered(model, passed())
    assert text == "Hello" and [one.arguments for one in calls] == ['{"a":1}']
    (choice,) = shown["choices"]
    assert (shown["id"], shown["model"], shown["object"]) == ("c", "m", "chat.completion")
    assert shown["usage"] == {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", "Hello")
    assert choice["message"]["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    ]


REFUSED = Status(400, {"error": {"message": "Unknown parameter: 'stream_options'.", "type": "invalid_request_error"}})


def test_what_is_added_to_a_request_is_left_out_where_it_is_refused(server: ModelServer, model: OpenAIModel) -> None:
    key_refused = Status(400, {"error": {"message": "Unrecognized request argument: prompt_cache_key"}})
    server.main.queue(key_refused, REFUSED)
    answered(model, passed(stream=True, cache_key="session-1"))
    first, second, third = (request.body for request in server.requests)
    assert first["prompt_cache_key"] == "session-1" and first["stream_options"] == {"include_usage": True}
    assert "prompt_cache_key" not in second and "stream_options" in second
    assert "stream_options" not in third
    answered(model, passed(stream=True, cache_key="session-1"))
    assert server.requests[-1].body == third and len(server.requests) == 4  # it is not tried again


def test_what_the_client_sent_itself_is_never_left_out(server: ModelServer, model: OpenAIModel) -> None:
    server.main.queue(REFUSED)
    with pytest.raises(ModelError) as caught:
        answered(model, passed(stream=True, stream_options={"include_usage": True}))
    assert caught.value.upstream is not None and caught.value.upstream.status == 400
    assert len(server.requests) == 1


def test_a_long_name_makes_a_cache_key_that_servers_take(server: ModelServer, model: OpenAIModel) -> None:
    answered(model, passed(cache_key="s" * 128))
    answered(model, passed(cache_key="s" * 128, prompt_cache_key="theirs"))
    assert len(server.requests[0].body["prompt_cache_key"]) == 64
    assert server.requests[1].body["prompt_cache_key"] == "theirs"
