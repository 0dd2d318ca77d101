"""Documents are found: 20 questions about three documents of different kinds, in English and German.

Questions and documents were written before the first search ran.  Each question names words of the passage that
answers it.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from tests.http import chat, find, good
from tests.pdf import pdf

FOLDER = Path(__file__).parent / "documents"
MACHINE = (FOLDER / "machine.txt").read_text().split("\n\f\n")  # the pages of a manual
QUESTIONS = (
    ("How many vacation days do we get per year?", "28 days of leave"),
    ("Until when can I use leftover vacation?", "lapse on 31 March"),
    ("My laptop was stolen, what should I do?", "+46 18 555 0199"),
    ("Do I need a doctor's note if I am sick?", "From the fourth day on"),
    ("How much can I spend on food during a business trip?", "54 euros for meals"),
    ("Can I work remotely from Spain for a month?", "longer than two weeks"),
    ("Who has the key for the chemicals?", "Dr. Abara"),
    ("How long is the notice period?", "two months for you"),
    ("Wann muss es im Haus ruhig sein?", "von 22 bis 6 Uhr"),
    ("Welche Münzen braucht der Wäschetrockner?", "Münzen zu 50 Cent"),
    ("Wann wird das Altpapier abgeholt?", "am ersten Freitag"),
    ("Darf ich mir einen Hund anschaffen?", "fragt vorher schriftlich"),
    ("Darf man auf dem Balkon grillen?", "nur elektrisch gegrillt"),
    ("Was kostet es, wenn ich meinen Schlüssel verliere?", "240 Euro"),
    ("Die Heizung ist kaputt, wen rufe ich an?", "0761 555 210"),
    ("What does error E20 mean?", "does not run out"),
    ("How many kilos of wool may go into the drum?", "2 kg of wool"),
    ("How often should the filter of the washing machine be cleaned?", "every two months"),
    ("How long is the guarantee for the motor?", "five years on the motor"),
    ("What has to be removed before the washing machine is switched on?", "transport bolts"),
)


@pytest.fixture
def known(client: FlaskClient) -> FlaskClient:
    """A client of a person with the three documents, and some talk about the same things."""
    for name, data in (
        ("handbook.md", (FOLDER / "handbook.md").read_bytes()),
        ("hausordnung.html", (FOLDER / "hausordnung.html").read_bytes()),
        ("washing-machine.pdf", pdf(MACHINE, Title="Norvik WM 814")),
    ):
        form = {"user_id": "ada", "file": (io.BytesIO(data), name)}
        good(client.post("/api/documents", data=form, content_type="multipart/form-data"))
    for message in ("I want to wash my wool jumper today.", "Ich suche einen Hund aus dem Tierheim.", "I feel ill."):
        chat(client, message, user_id="ada", session_id="talk")
    return client


def test_questions_find_their_passage_among_the_first_three(known: FlaskClient) -> None:
    missed = [
        question
        for question, answer in QUESTIONS
        if not any(answer in one["content"].replace("\n", " ") for one in find(known, question, user_id="ada", limit=3))
    ]
    assert len(missed) <= 2, missed


def test_turns_show_the_passages(known: FlaskClient) -> None:
    missed = []
    for question, answer in QUESTIONS:
        memory = chat(known, question, user_id="ada", temporary=True)["memory"]
        shown = [message["content"].replace("\n", " ") for one in memory["excerpts"] for message in one["messages"]]
        if not any(answer in content for content in shown):
            missed.append((question, memory["recall"]["reason"]))
    assert len(missed) <= 4, missed
