"""What a client sends of its conversation, and what becomes of the stored line.  (Whole talks: test_openai_memory.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.transcripts.reconcile import Plan, Said, reconcile


def user(text: str) -> Said:
    return Said("user", text)


def talk(texts: str) -> list[Said]:
    """Messages by turns, the person first; but "a..." is always the assistant's and "u..." the person's.

    Of one written as "-" the place is left.
    """
    roles = {"a": "assistant", "u": "user"}
    return [
        Said(roles.get(text[0], "assistant" if place % 2 else "user"), text.strip("-"), erased=text == "-")
        for place, text in enumerate(texts.split())
    ]


LINE = talk("u1 a1 u2 a2 u3 a3")


def after(line: Sequence[Said], sent: Sequence[Said], **known: bool) -> list[str]:
    """The texts of the line once the list was reconciled with it."""
    plan = reconcile(line, sent, **known)
    return [one.text or "-" for one in (*line[: plan.keep], *sent[plan.new :])]


@pytest.mark.parametrize(
    ("line", "sent", "expected"),
    [
        pytest.param("u1 a1", "u2 u3", "u1 a1 u2 u3", id="two new messages"),
        pytest.param("u1 a1 u2 a2", "a2 u3", "u1 a1 u2 a2 u3", id="with the last answer alone"),
        pytest.param("u1 a1 u2 a2 u3 a3", "u-sum u3 a3 u4", "u1 a1 u2 a2 u3 a3 u4", id="a summary for the oldest"),
        pytest.param("u1 a1 u2 a2 u3 a3", "u1 a1 u-cut u3 a3 u4", "u1 a1 u2 a2 u3 a3 u4", id="a note in between"),
        pytest.param("u1 a1 u2 a2 u3 a3", "u1 a1 u3 a3 u4", "u1 a1 u2 a2 u3 a3 u4", id="nothing in between"),
        pytest.param("u1 a1 u2 a2", "u1 a1 u2b", "u1 a1 u2b", id="an earlier question edited"),
        pytest.param("u1 a1 u2 a2 u3 a3", "a1 u2 a2 u3b", "u1 a1 u2 a2 u3b", id="edited, without the oldest"),
        pytest.param("u1 a1 u2 a2", "u1 a1 u2", "u1 a1 u2", id="another answer wanted"),
        pytest.param("u1 a1 u2 a2 u3 a3", "u1 a1 u2", "u1 a1 u2", id="another answer to an earlier question wanted"),
        pytest.param("u1 a1 u2 a2 u3 a3", "a2 u3", "u1 a1 u2 a2 u3", id="another answer wanted, without the oldest"),
        pytest.param("u1 a1 u2 a2", "u1 a1b u2 a2 u3", "u1 a1b u2 a2 u3", id="an answer changed in its place"),
        pytest.param("u1 a1 u2 a2", "u5 a5 u6", "u5 a5 u6", id="another conversation"),
        pytest.param("- a1 u2 a2", "u1 a1 u2 a2 u3", "- a1 u2 a2 u3", id="the first one erased"),
        pytest.param("u1 - u2 a2", "u1 a1 u2 a2 u3", "u1 - u2 a2 u3", id="an answer erased"),
        pytest.param("- - - -", "u1 a1 u2 a2 u3", "- - - - u3", id="all erased"),
        pytest.param("u1 a1 - -", "u1 a1 u2 a2 u3", "u1 a1 - - u3", id="the end erased"),
        pytest.param("- a1", "u2", "- a1 u2", id="the newest message alone, after one that was erased"),
        pytest.param("-", "u2", "- u2", id="the newest message alone, in place of nothing"),
        pytest.param("u1 a1 -", "u1 a1 u2", "u1 a1 u2", id="asked again after it was erased"),
        pytest.param("- a1 u2 a2", "u1 a1 u2b", "- a1 u2b", id="a question edited after one that was erased"),
        pytest.param("u1 a1 u2 a2 - - u4 a4", "u2 a2 u3 a3 u4 a4 u5", "u1 a1 u2 a2 - - u4 a4 u5", id="no oldest"),
    ],
)
def test_what_a_client_may_send(line: str, sent: str, expected: str) -> None:
    assert after(talk(line), talk(sent)) == expected.split()


def test_the_same_words_alone_are_said_again_unless_the_request_is_known_to_be_repeated() -> None:
    line = talk("story once next then")
    assert after(line, [user("next")]) == ["story", "once", "next", "then", "next"]
    assert after(line, [user("next")], again=True) == ["story", "once", "next"]
    assert after(line, [user("story")]) == ["story", "once", "next", "then", "story"]


def test_a_client_that_always_sends_everything_may_edit_its_first_question() -> None:
    assert after(LINE, [user("u1b")], whole=True) == ["u1b"]
    assert after(LINE, [user("u1")], whole=True) == ["u1"]
    assert after(LINE, [user("u1b")]) == ["u1", "a1", "u2", "a2", "u3", "a3", "u1b"]


def test_results_of_tools_are_appended_once() -> None:
    call = Said("assistant", "", calls=(("weather", '{"city":"Lyon"}'),))
    result = Said("tool", "21 degrees")
    line = [user("Is it warm?"), call]
    assert reconcile(line, [*line, result]) == Plan(2, 2, {0: 0, 1: 1})
    assert reconcile(line, [call, result]) == Plan(2, 1, {1: 0})
    assert reconcile(line, [result]) == Plan(2, 0)
    done = [*line, result, Said("assistant", "It is warm.")]
    assert reconcile(done, [result]) == Plan(3, 1, {2: 0})  # the same request once more
    waiting = [*line, replace(result, answers="call_1"), call]  # the same was called again, with the same result
    assert reconcile(waiting, [replace(result, answers="call_2")]) == Plan(4, 0)
    assert reconcile(done, [*line, result]) == Plan(3, 3, {0: 0, 1: 1, 2: 2})
    other = replace(call, calls=(("weather", '{"city":"Tallinn"}'),))
    assert reconcile(done, [user("Is it warm?"), other, result]) == Plan(1, 1, {0: 0})


LONG = "There are three things to say about that, and the first of them is that it was long ago."


def answer(text: str, **more: Any) -> Said:
    return Said("assistant", text, **more)


@pytest.mark.parametrize(
    ("sent", "stored", "same"),
    [
        (answer("One\n\ntwo "), answer("One two"), True),
        (answer("The answer."), answer("<think>Let me see.</think>\n\nThe answer."), True),
        (answer('<details type="reasoning" done="true">Hm.</details>The answer.'), answer("The answer."), True),
        (answer(LONG[:60]), answer(LONG), True),
        (answer(LONG[:60] + "…"), answer(LONG), True),
        (answer(LONG[:60].upper()), answer(LONG), False),
        (answer(LONG[:12]), answer(LONG), False),
        (answer(LONG + " Not so."), answer(LONG), False),
        (answer(""), answer(LONG), False),
        (answer("There"), answer(LONG, cut=True), True),  # what was received of an interrupted answer
        (answer("Here"), answer(LONG, cut=True), False),
        (answer("", calls=(("f", "{}"),)), answer(""), False),
        (user(" Hello\n there"), user("Hello there"), True),
        (user(LONG[:60]), user(LONG), False),
        (user("Hello"), answer("Hello"), False),
        (Said("user", "yes", name="Ann"), Said("user", "yes", name="Bob"), False),
        (Said("user", "yes", name="Ann"), Said("user", "yes"), True),
        (Said("user", "[image]", attachments=("a",)), Said("user", "[image]", attachments=("b",)), False),
    ],
)
def test_a_message_is_known_again_though_it_came_back_a_little_different(sent: Said, stored: Said, same: bool) -> None:
    assert sent.same(stored) is same


words = st.sampled_from(["yes", "no", "next", "Hello.", LONG, LONG[:50]])
messages = st.lists(st.builds(Said, st.sampled_from(["user", "assistant", "tool"]), words), max_size=8)


@settings(max_examples=400, deadline=None)
@given(messages, messages.filter(bool), st.booleans(), st.booleans())
def test_a_line_ends_with_what_was_sent_last_and_keeps_its_beginning(
    line: list[Said], sent: list[Said], again: bool, whole: bool
) -> None:
    plan = reconcile(line, sent, again=again, whole=whole)
    assert 0 <= plan.keep <= len(line) and 0 <= plan.new <= len(sent)
    result = [*line[: plan.keep], *sent[plan.new :]]
    assert sent[-1].same(result[-1])
    assert all(sent[there].same(line[here]) for here, there in plan.places.items())
    assert all(here < plan.keep and there < plan.new for here, there in plan.places.items())
    if sent[-1].role == "user":  # an unanswered request is taken up, not doubled
        once_more = reconcile(result, sent, again=True, whole=whole)
        assert (once_more.keep, once_more.new) == (len(result), len(sent))
