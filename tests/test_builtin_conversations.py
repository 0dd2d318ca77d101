"""The built-in model behind the API: what was said is answered, there and in a later chat, and corrections hold."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.builtin import CORRECTIONS, QUESTIONS, cases
from tests.http import chat, good, read_all


def say(client: FlaskClient, words: str, session: str | None = "s", **more: Any) -> str:
    """The reply to what the person says, when all jobs that follow are done."""
    named = {"session_id": session} if session else {}
    reply = str(chat(client, words, user_id="ada", **named, **more)["reply"])
    engine_of(client.application).job_queue.run_due()
    return reply


def ask(client: FlaskClient, question: str, session: str | None = "s") -> str:
    """What is answered in a chat, or in a new one; the question is not stored."""
    return say(client, question, session, temporary=True)


def by_chat(table: str) -> list[tuple[list[str], list[Any]]]:
    """Each chat of a table, and the rows that are about it."""
    return [(said, [row[1:] for row in rows]) for said, rows in groupby(cases(table), itemgetter(0))]


CHATS = [
    (said, questions, corrections)
    for (said, questions), (_, corrections) in zip(by_chat(QUESTIONS), by_chat(CORRECTIONS), strict=True)
]
BEYOND_IT = {"How much can we spend?", "What is the budget?", "What did I rule out?"}  # in the second of the chats
DATES = "Actually, we changed the dates: 10 to 24 April."


@pytest.mark.parametrize(("said", "questions", "corrections"), CHATS)
def test_what_was_said_is_answered_and_corrections_hold_there_and_in_a_new_chat(
    client: FlaskClient, said: list[str], questions: list[Any], corrections: list[Any]
) -> None:
    for words in said:
        say(client, words)
    wrong = [
        (question, answer)
        for question, expected in questions
        if expected not in (answer := ask(client, question, None))
    ]
    for correction, question, expected, stale in corrections:
        say(client, correction)
        answers = [ask(client, question, session) for session in ("s", None)]
        wrong += [(question, answer) for answer in answers if expected not in answer or stale in answer]
    assert [one for one in wrong if one[0] not in BEYOND_IT] == []


def test_a_change_that_is_not_understood_is_told_with_the_answer(client: FlaskClient) -> None:
    say(client, "We're going to Japan from 3 to 17 April.")
    assert "can't tell what it changes" in say(client, DATES)
    assert ask(client, "When are we going to Japan?").endswith(f'After that you said: "{DATES}"')


def test_what_the_person_edited_is_answered(client: FlaskClient) -> None:
    say(client, "We're going to Japan from 3 to 17 April.")
    (fact,) = read_all(client, "/api/facts", user_id="ada")
    edited = {"text": "Going to Japan from 12 to 26 April", "pinned": True}
    good(client.patch(f"/api/facts/{fact['id']}?user_id=ada", json=edited))
    assert "12 to 26 April" in ask(client, "When are we going to Japan?")


def test_a_first_message_replaces_nothing_and_the_same_message_again_neither(client: FlaskClient) -> None:
    said = "I live in Rome. Actually, I moved to Lyon. No wait, the dentist is Tuesday at 11."
    first = say(client, said)
    assert "replaces" not in first and "ruled out" not in first
    assert "replaces" not in say(client, said, "another")


REFERRING = """
I saw a red Brompton. Yes, that one is the bike I want. | Which bike do I want? | a red Brompton. Yes, that one
We take a ferry on Thursday. It leaves at 7. | When does the ferry leave? | ferry on Thursday. It leaves at 7
The hall is booked. The oven comes on the 4th. | When does the oven come? | : "The oven comes on the 4th."
"""


@pytest.mark.parametrize(("said", "question", "expected"), [row.split(" | ") for row in REFERRING.strip().splitlines()])
def test_a_sentence_that_refers_is_quoted_with_its_neighbour(
    client: FlaskClient, said: str, question: str, expected: str
) -> None:
    say(client, said)
    assert expected in ask(client, question)
