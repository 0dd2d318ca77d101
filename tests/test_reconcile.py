"""What a client sends of its conversation: what is read of it, and what becomes of the stored line.

Whole talks over HTTP are in test_openai_memory.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.transcripts.reconcile import MessageKey, reconcile
from memory.transcripts.transcript import (
    Transcript,
    TranscriptMessage,
    client_messages,
    message_key,
    passthrough_messages,
)
from models.messages import Message, MessageDraft
from schemas.fields import MESSAGE_CHARS_MAX


def user(text: str) -> MessageKey:
    return MessageKey("user", text)


def talk(texts: str) -> list[MessageKey]:
    """Messages by turns, the person first; but "a..." is always the assistant's and "u..." the person's.

    Of one written as "-" the place is left.
    """
    roles = {"a": "assistant", "u": "user"}
    return [
        MessageKey(roles.get(text[0], "assistant" if place % 2 else "user"), text.strip("-"), erased=text == "-")
        for place, text in enumerate(texts.split())
    ]


def after(line: Sequence[MessageKey], sent: Sequence[MessageKey], **known: bool) -> list[str]:
    plan = reconcile(line, sent, **known)
    return [one.text or "-" for one in (*line[: plan.keep], *sent[plan.new :])]


@pytest.mark.parametrize(
    ("line", "sent", "expected"),
    [
        pytest.param("u1 a1", "u2 u3", "u1 a1 u2 u3", id="two new messages"),
        pytest.param("u1 a1 u2 a2", "a2 u3", "u1 a1 u2 a2 u3", id="with the last answer alone"),
        pytest.param("u1 a1 u2 a2 u3 a3", "u-sum u3 a3 u4", "u1 a1 u2 a2 u3 a3 u4", id="a summary for the oldest"),
        pytest.param("u1 a1 u2 a2 u3 a3", "u1 a1 u-cut u3 a3 u4", "u1 a1 u2 a2 u3 a3 u4", id="a note in between"),
        pytest.param("u1 a1 u2 a2", "u1 a1 u2b", "u1 a1 u2b", id="an earlier question edited"),
        pytest.param("u1 a1 u2 a2", "u1 a1 u2", "u1 a1 u2", id="another answer wanted"),
        pytest.param("u1 a1 u2 a2 u3 a3", "a2 u3", "u1 a1 u2 a2 u3", id="another answer wanted, without the oldest"),
        pytest.param("u1 a1 u2 a2", "u1 a1b u2 a2 u3", "u1 a1b u2 a2 u3", id="an answer changed in its place"),
        pytest.param("u1 a1 u2 a2", "u5 a5 u6", "u1 a1 u2 a2 u5 a5 u6", id="another conversation"),
        pytest.param("u1 a1 u2 a2", "a5 u6", "u1 a1 u2 a2 a5 u6", id="another agent, who begins"),
        pytest.param("u1 a1 a5 u6 a6", "a5 u6 a6 u7", "u1 a1 a5 u6 a6 u7", id="another agent goes on"),
        pytest.param("- a1 u2 a2", "u1 a1 u2 a2 u3", "- a1 u2 a2 u3", id="the first one erased"),
        pytest.param("- - - -", "u1 a1 u2 a2 u3", "- - - - u3", id="all erased"),
        pytest.param("u1 a1 - -", "u1 a1 u2 a2 u3", "u1 a1 - - u3", id="the end erased"),
        pytest.param("- a1", "u2", "- a1 u2", id="the newest message alone, after one that was erased"),
        pytest.param("u1 a1 -", "u1 a1 u2", "u1 a1 u2", id="asked again after it was erased"),
        pytest.param("u1 a1 u2 a2 - - u4 a4", "u2 a2 u3 a3 u4 a4 u5", "u1 a1 u2 a2 - - u4 a4 u5", id="no oldest"),
    ],
)
def test_what_a_client_may_send(line, sent, expected):
    assert after(talk(line), talk(sent)) == expected.split()


def test_the_same_words_alone_are_said_again_unless_the_request_is_known_to_be_repeated():
    line = talk("story once next then")
    assert after(line, [user("next")]) == ["story", "once", "next", "then", "next"]
    assert after(line, [user("next")], is_retry=True) == ["story", "once", "next"]
    assert after(line, [user("story")]) == ["story", "once", "next", "then", "story"]


def tool(text: str) -> MessageKey:
    return MessageKey("tool", text)


def test_results_of_the_last_calls_are_new_though_the_same_ones_came_before():
    """Of a client that sends its newest messages alone."""
    for question in ["warm", "again"]:
        calls = MessageKey("assistant", "", calls=(("weather", '{"city":"Lyon"}'),))
        line = [user("warm"), calls, tool("21"), answer("It is 21."), user(question), calls]
        sent = [user(question), calls, tool("21")]
        assert after(line, sent) == ["warm", "-", "21", "It is 21.", question, "-", "21"]
        assert after([*line, tool("21")], sent)[4:] == [question, "-", "21"], "sent again"


LONG = "There are three things to say about that, and the first of them is that it was long ago."


def answer(text: str, **more: Any) -> MessageKey:
    return MessageKey("assistant", text, **more)


def test_a_message_is_known_again_though_it_came_back_a_little_different():
    for sent, stored, same in [
        (answer("One\n\ntwo "), answer("One two"), True),
        (answer("The answer."), answer("<think>Let me see.</think>\n\nThe answer."), True),
        (answer('<details type="reasoning" done="true">Hm.</details>The answer.'), answer("The answer."), True),
        (answer(LONG[:60]), answer(LONG), True),
        (answer(LONG[:60] + "…"), answer(LONG), True),
        (answer(LONG[:60].upper()), answer(LONG), False),
        (answer(LONG[:12]), answer(LONG), False),
        (answer(LONG + " Not so."), answer(LONG), False),
        (answer(""), answer(LONG), False),
        (answer("Bram: The answer."), answer("The answer."), True),  # in a group of characters
        (answer("Bram: The answer."), answer("Another answer."), False),
        (answer("Bram: Here is the plan: go."), answer("Here is the plan: go."), True),
        (answer("Bram: Here is the plan: go."), answer("Here is the plan: stay."), False),
        (user("Note: the answer."), user("the answer."), False),
        (answer("There"), answer(LONG, cut=True), True),  # what was received of an interrupted answer
        (answer("Here"), answer(LONG, cut=True), False),
        (answer("", calls=(("f", "{}"),)), answer(""), False),
        (user(" Hello\n there"), user("Hello there"), True),
        (user(LONG[:60]), user(LONG), False),
        (user("Hello"), answer("Hello"), False),
        (MessageKey("user", "yes", name="Ann"), MessageKey("user", "yes", name="Bob"), False),
        (MessageKey("user", "yes", name="Ann"), MessageKey("user", "yes"), True),
        (MessageKey("user", "[image]", attachments=("a",)), MessageKey("user", "[image]", attachments=("b",)), False),
    ]:
        assert sent.matches(stored) is same


def test_a_message_is_understood_further_by_whole_words():
    for later, earlier, further in [
        ("I want to fly to Porto.", "i want to", True),
        ("Yes, please", "Yes.", True),
        ("Yes.", "yes", True),
        ("我想去波尔图", "我想去", True),
        ("Now flights", "No", False),
        ("I want to", "I want to fly", False),
        ("C is a language", "C# is", False),
        ("What?", "?", False),
        ("yes", "yes", False),
    ]:
        assert user(later).completes(user(earlier)) is further
    assert not MessageKey("user", "Yes, please", name="Ann").completes(MessageKey("user", "Yes", name="Bob"))


words = st.sampled_from(["yes", "no", "next", "Hello.", LONG, LONG[:50]])
messages = st.lists(st.builds(MessageKey, st.sampled_from(["user", "assistant", "tool"]), words), max_size=8)


@settings(max_examples=200, deadline=None)
@given(messages, messages.filter(bool), st.booleans(), st.booleans())
def test_a_line_ends_with_what_was_sent_last_and_keeps_its_beginning(line, sent, again, whole):
    plan = reconcile(line, sent, is_retry=again, is_complete=whole)
    assert 0 <= plan.keep <= len(line) and 0 <= plan.new <= len(sent)
    result = [*line[: plan.keep], *sent[plan.new :]]
    assert sent[-1].matches(result[-1])
    assert all(sent[there].matches(line[here]) for here, there in plan.places.items())
    assert all(here < plan.keep and there < plan.new for here, there in plan.places.items())
    if sent[-1].role == "user":  # an unanswered request is taken up, not doubled
        once_more = reconcile(result, sent, is_retry=True, is_complete=whole)
        assert (once_more.keep, once_more.new) == (len(result), len(sent))


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lyon", "days": 2}'}}


def read(*raw: dict[str, Any]) -> Transcript:
    return Transcript.read(raw)


def only(raw: dict[str, Any]) -> TranscriptMessage:
    (sent,) = read(raw).messages
    return sent


def stored(sent: TranscriptMessage) -> Message:
    draft = sent.draft
    return Message(1, "s", 1, draft.role, draft.content, datetime.now(UTC), 1, draft.name, extra=draft.extra)


def test_an_image_that_was_stored_as_a_hash_alone_is_known_again():
    sent = only({"role": "user", "content": [IMAGE]})
    assert sent.draft.extra is not None
    (reference,) = sent.draft.extra["attachments"]
    older = MessageDraft("user", "[image]", extra={"attachments": [reference["hash"]]})
    assert sent.key.matches(message_key(older))


def test_a_call_is_known_again_by_what_it_calls():
    call = only({"role": "assistant", "content": None, "tool_calls": [CALL]})
    renamed = {
        **CALL,
        "id": "chatcmpl-tool-9",
        "function": {"name": "weather", "arguments": '{"days":2,"city":"Lyon"}'},
    }
    assert only({"role": "assistant", "tool_calls": [renamed]}).key.matches(call.key)
    other = {**CALL, "function": {"name": "weather", "arguments": '{"city": "Paris", "days": 2}'}}
    assert not only({"role": "assistant", "tool_calls": [other]}).key.matches(call.key)


def test_text_too_long_to_store_is_cut_the_same_way_each_time():
    raw = {"role": "user", "content": "word " * MESSAGE_CHARS_MAX}
    sent = only(raw)
    assert len(sent.draft.content) == MESSAGE_CHARS_MAX and sent.draft.content.endswith("…")
    assert only(dict(raw)).key.matches(sent.key)


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


@settings(max_examples=50)
@given(st.lists(odd_messages, max_size=6))
def test_nothing_that_comes_in_is_too_odd_to_read(raw):
    conversation = Transcript.read(raw)
    counted = [*conversation.instructions, *conversation.after]
    for one in conversation.messages:
        counted += [*one.before, one.raw]
        one.draft.content.encode()  # can be stored
        assert one.key.matches(message_key(one.draft))
        assert client_messages(conversation, {}, "Memory.", [stored(one)], stored(one), "Recalled.")
    assert sorted(map(id, counted)) == sorted(map(id, raw))  # each once, nothing lost


def test_what_no_prompt_shows_is_left_out_of_what_came_also_with_its_thoughts():
    """Where memory fails, what a client sends goes on to the model as it came."""
    thoughtful = "<think>\nA secret.\n</think>\n\nIt is 1111."
    raw = ({"role": "user", "content": "My code?"}, {"role": "assistant", "content": thoughtful})
    conversation = read(*raw, {"role": "user", "content": "And?"})
    assert [message.content for message in passthrough_messages(conversation)] == ["My code?", thoughtful, "And?"]
    left = passthrough_messages(conversation, conversation.messages[:2])
    assert [message.content for message in left] == ["And?"]
