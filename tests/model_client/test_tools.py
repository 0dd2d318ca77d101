"""Tools over the OpenAI protocol: how they are offered, and calls in every shape that servers give them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm import ChatMessage, ModelRequest, StreamEnd, TextDelta, Tool, ToolCall, complete
from memory.llm.openai_model import OpenAIModel
from memory.llm.provider_errors import ProviderErrors
from memory.llm.response_parser import parse_completion
from memory.llm.thoughts import ThoughtSplitter
from tests.llm import ask, both, chunk, data
from tests.model_server import Raw, ToolCalls

TOOL = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
OTHER = Tool("listen", "Listens.", {"type": "object", "properties": {}})
ARGUMENTS = '{"at": "the café"}'


def offering(stream: bool = False, *messages: ChatMessage) -> ModelRequest:
    request = ask(stream)
    return replace(request, messages=(*request.messages, *messages), tools=(TOOL, OTHER))


def calls(model: OpenAIModel, request: ModelRequest) -> list[tuple[str, str]]:
    """The name and arguments of each call of an answer that ends in calls."""
    *parts, finish = model.answer(request)
    assert isinstance(finish, StreamEnd) and finish.reason == "tool_calls"
    made = [part for part in parts if isinstance(part, ToolCall)]
    assert len({one.id for one in made}) == len(made) and all(one.id for one in made)
    return [(one.name, one.arguments) for one in made]


def test_tools_and_their_answers_are_sent_as_the_protocol_has_them(server, model):
    made = ToolCall("c1", "look", ARGUMENTS, {"google": {"thought_signature": "abc"}})
    asked, answered = ChatMessage("assistant", "", (made,)), ChatMessage("tool", "Nobody.", tool_call_id="c1")
    complete(model, offering(False, asked, answered))
    body = server.requests[0].body
    function = {"name": "look", "description": "Looks.", "parameters": TOOL.parameters}
    assert body["tools"][0] == {"type": "function", "function": function}
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": ARGUMENTS}}
    assert body["messages"][2:] == [
        {"role": "assistant", "content": None, "tool_calls": [{**call, "extra_content": made.extra}]},
        {"role": "tool", "content": "Nobody.", "tool_call_id": "c1"},
    ]


@both
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("text", ["", "Let me look."])
def test_calls_come_after_the_text_and_before_the_end(server, model, stream, finish, text):
    server.main.queue(ToolCalls((("look", {"at": "it"}), ("listen", {})), text, finish))
    *parts, end = model.answer(offering(stream))
    spoken = [part for part in parts if isinstance(part, TextDelta)]
    assert "".join(piece.text for piece in spoken) == text and bool(spoken) == bool(text)
    assert parts[len(spoken) :] == [
        ToolCall("call_2_0", "look", '{"at": "it"}'),
        ToolCall("call_2_1", "listen", "{}"),
    ]
    assert isinstance(end, StreamEnd) and end.reason == "tool_calls" and not end.usage.estimated


def fragment(index: int | None = None, id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    """A call in a delta or message, without what is None."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    place = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**place, "function": function}


def deltas(*each: list[Any]) -> bytes:
    chunks = [chunk({"tool_calls": fragments}) for fragments in each]
    return data(*chunks, chunk({}, "tool_calls"), b"[DONE]")


ONE, TWO = [("look", ARGUMENTS)], [("look", ARGUMENTS), ("listen", "{}")]
LOOK, LISTEN = ("look", ARGUMENTS), ("listen", "{}")
STREAMS: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "whole, no index": (deltas([fragment(None, "a", *LOOK)]), ONE),
    "whole, two chunks, no index, no id": (deltas([fragment(None, None, *LOOK)], [fragment(None, None, *LISTEN)]), TWO),
    "whole, one index, two ids": (deltas([fragment(0, "a", *LOOK)], [fragment(0, "b", *LISTEN)]), TWO),
    "whole, one index, no ids": (deltas([fragment(0, "", *LOOK), fragment(0, "", *LISTEN)]), TWO),
    "whole, one index, no ids, two chunks": (deltas([fragment(0, "", *LOOK)], [fragment(0, "", *LISTEN)]), TWO),
    "the same id twice": (deltas([fragment(0, "a", *LOOK)], [fragment(1, "a", *LISTEN)]), TWO),
    "fragments, no index": (
        deltas([fragment(None, "a", "look", "")], [fragment(arguments=ARGUMENTS[:5])], [fragment(arguments="1}")]),
        [("look", ARGUMENTS[:5] + "1}")],
    ),
    "fragments, id and name each time": (deltas(*([fragment(0, "a", "look", c)] for c in ARGUMENTS)), ONE),
    "fragments, id each time, no index": (deltas(*([fragment(None, "a", "look", c)] for c in ARGUMENTS)), ONE),
    "fragments, nulls": (
        deltas(
            [{"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": None}}],
            [{"index": 0, "id": None, "function": {"name": None, "arguments": ARGUMENTS}}],
            [{"index": 0, "id": "", "function": {"name": "", "arguments": ""}}],
        ),
        ONE,
    ),
    "interleaved": (
        deltas(
            [fragment(0, "a", "look", "")],
            [fragment(1, "b", "listen", "")],
            [fragment(0, arguments=ARGUMENTS[:4]), fragment(1, arguments="{")],
            [fragment(1, arguments="}")],
            [fragment(0, arguments=ARGUMENTS[4:])],
        ),
        TWO,
    ),
    "a signature on its own": (
        deltas([fragment(0, "a", *LOOK)], [{"index": 0, "extra_content": {"google": 1}}]),
        ONE,
    ),
    "an object as arguments": (deltas([fragment(0, "a", "look", {"at": "the café"})]), ONE),
    "no name": (deltas([fragment(0, "a", "", "{}"), fragment(1, "b", *LOOK)]), ONE),
    "whole messages": (
        data(json.dumps({"choices": [{"message": {"tool_calls": [fragment(None, "a", *LOOK)]}}]}).encode(), b"[DONE]"),
        ONE,
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_odd_streams_of_calls_are_understood(server, model, name):
    body, expected = STREAMS[name]
    server.main.queue(Raw([body]), Raw([bytes([byte]) for byte in body]))
    assert calls(model, offering(True)) == calls(model, offering()) == expected


def test_a_signature_that_comes_on_its_own_goes_with_its_call(server, model):
    server.main.queue(Raw([STREAMS["a signature on its own"][0]]))
    (call,) = [part for part in model.answer(offering(True)) if isinstance(part, ToolCall)]
    assert call.extra == {"google": 1}


FAILURES = ProviderErrors("http://127.0.0.1/v1", "gpt-4o", "OPENAI_MODEL", 1.0)
FUNCTIONS = st.dictionaries(
    st.sampled_from(["name", "arguments"]), st.one_of(st.none(), st.text(), st.integers(), st.just({"a": 1}))
)
VALUES = st.one_of(st.none(), st.integers(0, 2), st.sampled_from(["", "a", "b"]), FUNCTIONS)
FRAGMENTS = st.dictionaries(st.sampled_from(["index", "id", "function", "x"]), VALUES)


@given(st.lists(st.lists(FRAGMENTS, max_size=3), max_size=4))
def test_whatever_comes_calls_have_names_and_ids_of_their_own(chunks):
    body = data(chunk({"content": "Hi"}), *(chunk({"tool_calls": fragments}) for fragments in chunks), b"[DONE]")
    made = [
        part for part in parse_completion([body], offering(), FAILURES, ThoughtSplitter()) if isinstance(part, ToolCall)
    ]
    assert all(one.name and one.id and isinstance(one.arguments, str) for one in made)
    assert len({one.id for one in made}) == len(made)
