"""What the client asks, and answers in every shape that servers give them, over real HTTP."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.llm import ChatMessage, ModelRequest, complete, text_of
from memory.llm.provider_errors import ProviderErrors
from memory.llm.response_parser import events, parse_completion
from memory.llm.thoughts import ThoughtSplitter
from tests.llm import ask, both, chunk, data
from tests.model_server import Raw, Text


def test_text_that_has_no_bytes_is_sent_all_the_same(server, model):
    assert complete(model, ask(content="half \ud83d of it, 完整"))[0] == "Reply to: half ? of it, 完整"


def good(*payloads: bytes, end: bytes = b"data: [DONE]\n\n") -> bytes:
    return data(*payloads) + end


PART = {"type": "text", "text": "Hi"}
LAST = (
    b'{"choices": [{"delta": {"content": "i"}, "message": {"content": "Hi"}}]}\n\n'
    b'data: {"choices": [{"delta": {}, "message": {"content": "Hi"}, "finish_reason": "stop"}]}'
)
ODD_STREAMS = {
    "crlf": good(chunk({"content": "Hi"}, "stop")).replace(b"\n", b"\r\n"),
    "bom": b"\xef\xbb\xbf" + good(chunk({"content": "Hi"}, "stop")),
    "events without data": b"event: ping\ndata: \n\ndata:\n\n" + good(chunk({"content": "Hi"}, "stop")),
    "comments": b": OPENROUTER PROCESSING\n\n:\n" + good(chunk({"content": "Hi"}, "stop")),
    "other fields": b"id: 7\nretry: 10\nevent: message\nodd\n" + good(chunk({"content": "Hi"}, "stop")),
    "data over lines": b'data: {"choices": [{"delta":\ndata: {"content": "Hi"}, "finish_reason": "stop"}]}\n\n',
    "nulls": good(chunk(None), chunk({"content": None}), chunk({"content": "Hi"}), chunk(None, "stop", usage=None)),
    "empty choices": good(chunk({"content": "Hi"}, "stop"), b'{"choices": [], "usage": {}}', b'{"object": "x"}'),
    "parts": good(chunk({"content": [{"type": "thinking", "thinking": [PART]}, PART]}, "stop")),
    "all so far beside it": good(b'{"choices": [{"delta": {"content": "H"}, "message": {"content": "H"}}]}', LAST),
    "a number": good(chunk({"content": "Hi"}), chunk({"content": 2}, "stop")),
    "refusal": good(chunk({"content": None, "refusal": "Hi"}, "stop")),
    "reasoning": good(chunk({"reasoning_content": "Hmm"}), chunk({"content": "Hi"}, "stop")),
    "tags": good(chunk({"content": "<think>\nHmm"}), chunk({"content": "\n</think>\n\nHi"}, "stop")),
    "no reason": good(chunk({"content": "Hi"})),
    "no done": good(chunk({"content": "Hi"}, "stop"), end=b""),
    "no last blank line": good(chunk({"content": "Hi"}), end=b"data: [DONE]"),
    "whole messages": good(b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}'),
    "half a pair and NUL": good(chunk({"content": "Hi\0\ud83d"}, "stop")),
    "after done": good(chunk({"content": "Hi"}, "stop")) + b"data: garbage\n\n",
}


@pytest.mark.parametrize("name", ODD_STREAMS)
def test_odd_streams_are_understood(server, model, name):
    body = ODD_STREAMS[name]
    server.main.queue(Raw([body]), Raw([bytes([byte]) for byte in body]), Raw([body], content_type="text/plain"))
    for stream in (True, True, False):
        text, finish = complete(model, ask(stream))
        assert text.removesuffix("\ufffd").removesuffix("2") == "Hi" and ("2" in text) == (name == "a number")
        assert finish.reason == "stop"
    assert len(server.requests) == 3


@both
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": None}, (12, 3)),
        ({"prompt_tokens": 12, "completion_tokens": 3, "prompt_cache_hit_tokens": 8}, (12, 3)),
        ({"prompt_tokens": 12, "completion_tokens": None}, None),
        ({"prompt_tokens": -1, "completion_tokens": "3"}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 1}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ("many", None),
    ],
)
def test_usage_is_taken_if_it_can_be_read(server, model, stream, usage, expected):
    server.main.queue(Text(usage=usage))
    finish = complete(model, ask(stream))[1]
    assert finish.usage.estimated is (expected is None)
    if expected:
        assert (finish.usage.prompt_tokens, finish.usage.completion_tokens) == expected
        assert finish.usage.cached_tokens == usage.get("prompt_cache_hit_tokens", 0)


def test_a_stream_may_begin_with_blank_lines_and_be_cut_anywhere():
    stream = b"\n\n" + good(chunk({"content": "Hi"}))
    request = ModelRequest((ChatMessage("user", "Hello"),), stream=True)
    errors = ProviderErrors("http://localhost", "m", "OPENAI_MODEL", 1.0)
    for cut in range(len(stream)):
        parts = [part for part in (stream[:cut], stream[cut:]) if part]
        assert text_of(parse_completion(parts, request, errors, ThoughtSplitter())) == "Hi", cut


@given(st.lists(st.sampled_from([b"data: a", b"data:b", b":c", b"event: d", b"", b"", "data: é…".encode()])), st.data())
def test_events_do_not_depend_on_how_the_bytes_arrive(written, draw):
    ends = [draw.draw(st.sampled_from([b"\n", b"\r\n"])) for _ in written]
    body = b"".join(line + end for line, end in zip(written, ends, strict=True))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(body)))))
    parts = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    heard = [event for event in events(part for part in parts if part) if event is not None]
    assert heard == [event for event in events([body] if body else []) if event is not None]
