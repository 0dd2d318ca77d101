"""Which conversation a list without an id carries on, and which it never does."""

from __future__ import annotations

import pytest

from memory.clients.identity import CARRIED_ON, EDITED, ONCE_MORE, TRUNCATED, kinship, numbered, opening
from memory.clients.reconcile import Said
from memory.domain import Caller


def talk(*texts: str) -> list[Said]:
    return [Said("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]


LINE = talk("Hi", "Hello!", "I moved to Lyon.", "Nice.")


def rank(line: list[Said], sent: list[Said], *, busy: bool = False, named: bool = True) -> int:
    return kinship(line, sent, busy=busy, named=named)[0]


def test_ids_begin_alike_for_the_same_first_words_of_the_same_person_under_the_same_key() -> None:
    ada, bob = Caller("acme", "ada"), Caller("acme", "bob")
    assert opening(ada, LINE) == opening(ada, talk("  Hi\n", "other"))
    others = [opening(bob, LINE), opening(Caller("other", "ada"), LINE), opening(Caller("acme"), LINE)]
    others.append(opening(ada, talk("Hi!")))
    assert len({opening(ada, LINE), *others}) == 5
    greeted = [Said("assistant", "How can I help?"), *LINE]
    assert opening(ada, greeted) == opening(ada, LINE)  # the person's first words


def test_sessions_with_one_opening_are_numbered() -> None:
    assert numbered("auto-x", []) == "auto-x"
    assert numbered("auto-x", ["auto-x"]) == "auto-x-2"
    assert numbered("auto-x", ["auto-x", "auto-x-3"]) == "auto-x-4"  # the second was erased


@pytest.mark.parametrize("named", [True, False])
def test_what_is_near_to_what_is_stored(named: bool) -> None:
    assert rank(LINE, [*LINE, Said("user", "And now?")], named=named) == CARRIED_ON
    assert rank(LINE[:3], LINE[:3], named=named) == CARRIED_ON  # it was never answered
    assert rank(LINE, LINE[:3], named=named) == ONCE_MORE
    assert rank(LINE, [*LINE[:2], Said("user", "I moved to Paris.")], named=named) == EDITED
    later = [*LINE[1:], Said("user", "And now?")]
    assert rank(LINE, later, named=named) == TRUNCATED


def test_another_conversation_that_begins_alike_is_none_of_it() -> None:
    assert rank(LINE, talk("Hi")) == 0  # it has gone on
    assert rank(LINE, talk("Hi", "Good morning!", "I moved to Lyon.")) == 0  # another answer
    assert rank(LINE, talk("What is new?", "Nothing.", "I see.")) == 0
    assert rank(LINE, [Said("assistant", "Nice."), Said("user", "Thanks.")]) == 0  # too little to tell
    assert rank([], talk("Hi")) == 0


def test_a_first_question_asked_again_is_the_same_only_of_a_person_who_is_known() -> None:
    assert rank(talk("Hi", "Hello!"), talk("Hi"), named=True) == ONCE_MORE
    assert rank(talk("Hi", "Hello!"), talk("Hi"), named=False) == 0


def test_what_is_being_answered_is_meant_only_by_the_same_request_with_an_answer_in_it() -> None:
    assert rank(LINE[:3], LINE[:3], busy=True) == CARRIED_ON
    assert rank(LINE[:3], [*LINE[:2], Said("user", "Something else.")], busy=True) == 0
    assert rank(LINE[:1], LINE[:1], busy=True) == 0  # many at once, perhaps


def test_the_longest_that_is_carried_on_is_the_nearest() -> None:
    sent = [*LINE, Said("user", "And now?")]
    assert kinship(LINE, sent, busy=False, named=True) > kinship(LINE[:2], sent, busy=False, named=True)
    edited = [*LINE[:3], Said("assistant", "Oh?"), Said("user", "Yes.")]
    assert kinship(LINE[:2], edited, busy=False, named=True) > kinship(LINE, edited, busy=False, named=True)
