"""A client's messages: what of them is stored, and that they are known again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory.transcripts.transcript import Conversation, Sent, client_messages, said
from models.messages import Message
from schemas.sessions import MESSAGE_CHARS_MAX

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lyon", "days": 2}'}}


def read(*raw: dict[str, Any]) -> Conversation:
    return Conversation.read(raw)


def only(raw: dict[str, Any]) -> Sent:
    (sent,) = read(raw).messages
    return sent


def stored(sent: Sent) -> Message:
    """The message as it is read back from the store."""
    draft = sent.draft
    return Message(1, "s", 1, draft.role, draft.content, datetime.now(UTC), 1, draft.name, extra=draft.extra)


def test_images_and_files_leave_a_placeholder_and_a_fingerprint() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        IMAGE,
        {"type": "file", "file": {"filename": "report.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]
    sent = only({"role": "user", "content": parts})
    assert sent.draft.content == "Look:\n[image]\n[file report.pdf]\n[audio]"
    assert sent.raw["content"] == parts
    assert sent.draft.extra is not None and len(sent.draft.extra["attachments"]) == 3
    assert "base64" not in str(sent.draft.extra)
    other = only(
        {"role": "user", "content": [parts[0], {**IMAGE, "image_url": {"url": "https://x/y.png"}}, *parts[2:]]}
    )
    assert other.draft.content == sent.draft.content and not other.said.same(sent.said)


def test_a_call_is_known_again_by_what_it_calls() -> None:
    call = only({"role": "assistant", "content": None, "tool_calls": [CALL]})
    renamed = {
        **CALL,
        "id": "chatcmpl-tool-9",
        "function": {"name": "weather", "arguments": '{"days":2,"city":"Lyon"}'},
    }
    assert only({"role": "assistant", "tool_calls": [renamed]}).said.same(call.said)
    other = {**CALL, "function": {"name": "weather", "arguments": '{"city": "Paris", "days": 2}'}}
    assert not only({"role": "assistant", "tool_calls": [other]}).said.same(call.said)


def test_text_too_long_to_store_is_cut_the_same_way_each_time() -> None:
    raw = {"role": "user", "content": "word " * MESSAGE_CHARS_MAX}
    sent = only(raw)
    assert len(sent.draft.content) == MESSAGE_CHARS_MAX and sent.draft.content.endswith("…")
    assert only(dict(raw)).said.same(sent.said)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "type", "text", "file"]
odd_messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "function", "?"]) | json_values},
    optional={
        name: json_values | st.lists(st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=4), max_size=3)
        for name in FIELDS[1:]
    },
)


@given(st.lists(odd_messages, max_size=6))
def test_nothing_that_comes_in_is_too_odd_to_read(raw: list[dict[str, Any]]) -> None:
    conversation = Conversation.read(raw)
    counted = [*conversation.instructions, *conversation.after]
    for one in conversation.messages:
        counted += [*one.before, one.raw]
        one.draft.content.encode()  # can be stored
        assert one.said.same(said(one.draft))
        assert client_messages(conversation, {}, "Memory.", [stored(one)], stored(one), "Recalled.")
    assert sorted(map(id, counted)) == sorted(map(id, raw))  # each once, nothing lost
