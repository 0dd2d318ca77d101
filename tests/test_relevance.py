"""What a turn shows unasked: what is near enough in other words, and nothing for what was never told."""

from datetime import UTC, datetime, timedelta
from math import log
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from benchmarks.conversation import note
from memory.recall.relevance import OTHER, PERSONAL, REFERRING, gate_for, relevant
from memory.recall.triggers import ALL, UNASKED, SearchPlan, role_meant
from search_index import RANKING_PROFILES, Hit, Query, SearchIndex, WordLlamaEmbedder
from tests.http import append, chat, find, good, said
from tests.recall import reason, recalled, talker, words
from tests.search_index import message

TOLD = [
    "Our cottage stands at the edge of the marsh.",
    "The surgeon removed my tonsils when I was six.",
    "I bake sourdough on Saturdays.",
    "Grandfather sold the tractor to a neighbour.",
    "My brother conducts an orchestra in Graz.",
    "I lost two fingernails in a car door.",
    "We rent a van for the flea market.",
    "The printer jams on thick paper.",
    "I paid off the loan for the kitchen.",
    "The heron stole three goldfish.",
]
ANSWERED = [  # none shares a word with what answers it
    ("What kind of bread do I make?", 2),
    ("Does anyone in my family work in music?", 4),
    ("Which operations have I had?", 1),
    ("What bird ate my fish?", 9),
]
NEAR = [("What kind of bread do I make?", 2), ("Which surgery did I have?", 1)]  # nearer than most answers


@pytest.fixture
def start(make_app, model_server, monkeypatch):
    def begin(**settings: Any) -> FlaskClient:
        client = talker(make_app, model_server, monkeypatch, **settings)
        for number, text in enumerate(TOLD):
            day = datetime(2024, 3, 1, tzinfo=UTC) + number * timedelta(days=1)
            append(client, f"s{number}", [said(text, created_at=day.isoformat())], user_id="ada")
        return client

    return begin


def test_among_many_messages_one_must_be_nearer(tmp_path):
    index = SearchIndex(tmp_path, profile=RANKING_PROFILES["context"], embedder=WordLlamaEmbedder())
    told = message(1, TOLD[1])
    for owner, others in (("few", 199), ("many", 1499)):
        index.add(owner, [told, *(message(number + 2, note("others", number).text) for number in range(others))])
    query = index.prepare(Query("Which surgery did I have?", nearest=True))
    found = (index.search(owner, query, index.generation(owner)) for owner in ("few", "many"))
    few, many = (next(hit for hit in hits if hit.message_id == told.message_id) for hits in found)
    assert few.own == many.own and few.near - many.near == pytest.approx(0.2 * log(1500 / 500), abs=0.1)


def shown(client: FlaskClient, question: str) -> set[str]:
    """What a turn shows beside a question."""
    return words(chat(client, question, user_id="ada", temporary=True))


def test_what_is_asked_in_other_words_is_shown_if_it_is_near_and_always_found(start):
    client = start()
    assert all(TOLD[at] in shown(client, question) for question, at in NEAR)
    assert TOLD[9] in shown(client, "Is my heron blue?")  # neither its word nor its nearness would be enough alone
    for question, at in ANSWERED:  # a search always shows the nearest
        assert TOLD[at] in [one["content"] for one in find(client, question, user_id="ada", limit=3)]


def test_what_nobody_told_brings_nothing_in_a_turn_but_the_nearest_where_it_is_asked_for(start):
    client = start()
    for question in ("Explain how tides come about.", "Who wrote the Odyssey?", "Convert 12 miles to kilometres."):
        answer = chat(client, question, user_id="ada", temporary=True)
        assert (recalled(answer), reason(answer).endswith("nothing earlier fits")) == ([], True)
        block = {"message": question, "user_id": "ada"}
        assert not good(client.post("/api/recall", json=block))["memory"]["excerpts"]
        assert good(client.post("/api/recall", json={**block, "recall": "always"}))["memory"]["excerpts"]
        assert recalled(chat(client, question, user_id="ada", temporary=True, recall="always"))
        assert len(find(client, question, user_id="ada")) == len(TOLD)


def test_messages_of_a_day_are_shown_where_the_person_asks_for_theirs(start):
    client = start()
    for day, text in (("14", "We planted tulips along the fence."), ("15", "The bus broke down at the bridge.")):
        append(client, f"day {day}", [said(text, created_at=f"2024-05-{day}T07:00:00+00:00")], user_id="ada")
    for text in ("I slept badly yesterday.", "What's the weather today?", "Tell me a joke about today."):
        assert not recalled(chat(client, text, user_id="ada", temporary=True)), text
    assert "We planted tulips along the fence." in shown(client, "What did I tell you yesterday?")
    assert "The bus broke down at the bridge." in shown(client, "How was my journey today?")


# What is told in a language, a question about it, and one that anybody could ask a model.
ABROAD = (
    ("Die Heizung ist kaputt, der Monteur kommt.", "wann kommt nochmal der monteur", "wie heiß ist die sonne"),
    ("Le plombier passe mardi pour la fuite.", "quand est-ce que le plombier passe", "qui a peint la joconde"),
    ("El fontanero viene por la fuga.", "qué día viene el fontanero", "cómo se hace una tortilla de patatas"),
)


def test_the_function_words_of_another_language_open_no_gate(start):
    client = start()
    for number, (told, asked, general) in enumerate(ABROAD):
        append(client, f"abroad-{number}", [said(told)], user_id="ada")
        assert told in shown(client, asked)
        assert not recalled(chat(client, general, user_id="ada", temporary=True))


def test_meanings_of_any_size_open_the_gate(start, model_server):
    """A service's vectors, once calibrated, decide as the local ones do."""
    from search_index import WordLlamaEmbedder
    from tests.model_server import Json

    local = WordLlamaEmbedder()

    def answer(body: Any) -> Json:  # twice as long, and far from the origin
        rows = [[*(row * 3).tolist(), *[40.0] * 256] for row in local.embed(body["input"])]
        return Json({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]})

    model_server.embeddings.default = answer
    client = start(embeddings="openai")
    engine_of(client.application).job_queue.run_due(["index"])
    assert all(TOLD[at] in shown(client, question) for question, at in NEAR)
    assert not recalled(chat(client, "Convert 12 miles to kilometres.", user_id="ada", temporary=True))


@pytest.mark.parametrize("denial", ["You have not told me that.", "Das hast du mir noch nicht gesagt."])
def test_questions_asked_before_and_denials_are_no_memories(start, denial):
    client = start()
    question, told = "What is my blood type?", "My blood type is A negative."
    append(client, "asked", [said(question), said(denial, "assistant")], user_id="ada")
    for _ in range(3):  # it was asked, and nothing was known: that answers nothing
        assert question not in shown(client, question)
    append(client, "told", [said(told), said("Noted.", "assistant")], user_id="ada")
    said_before = shown(client, question)
    assert told in said_before and not {question, denial} & said_before


def test_a_question_is_a_memory_if_it_tells_something_or_questions_are_asked_for(start):
    client = start()
    told, greeted = "I'm allergic to lupins, can I eat this bread?", "Hey Recap, are lupins good for me?"
    exchanges = [said(told), said("No.", "assistant"), said(greeted), said("They are.", "assistant")]
    append(client, "lupins", exchanges, user_id="ada")
    found = shown(client, "What did the doctor say of me and lupins?")
    assert told in found and greeted not in found
    append(client, "asked", [said("How deep is the fjord at Odda?")], user_id="ada")
    for mode in ("auto", "always"):
        body = {"user_id": "ada", "message": "What did I ask you about the fjord at Odda?", "recall": mode}
        assert "How deep is the fjord at Odda?" in good(client.post("/api/recall", json=body))["block"]


def test_with_a_judge_the_gate_is_wider_and_the_judge_may_close_it(start, model_server):
    question = "What bird ate my fish?"
    assert not shown(start(), question)
    client = start(rerank="model")
    for best, is_shown in (([1], True), ([], False)):
        model_server.mini.queue({"best": best})
        answer = chat(client, question, user_id="ada", temporary=True)
        assert bool(recalled(answer)) == is_shown
    model_server.mini.queue({"best": []})  # what is asked for is shown, whatever a judge says
    asked = {"message": question, "user_id": "ada", "recall": "always"}
    assert good(client.post("/api/recall", json=asked))["memory"]["excerpts"]


def test_a_short_reply_beside_what_was_found_is_not_shown(model_app):
    client = model_app.test_client()
    told = (
        ("The boiler in the cellar was repaired by Kim.", "Noted."),
        ("Kim wants 90 euros for the boiler.", "Reasonable."),
    )
    lines = [said(text, role) for pair in told for text, role in zip(pair, ("user", "assistant"), strict=True)]
    append(client, "old", lines, user_id="ada")
    answer = good(
        client.post("/api/recall", json={"user_id": "ada", "message": "Who repaired the boiler in the cellar?"})
    )
    assert "repaired by Kim" in answer["block"] and "90 euros" in answer["block"]
    assert "Noted." not in answer["block"] and "Reasonable." not in answer["block"]


def hit(score: float = 1.0, own: float = 0.0, near: float = 0.0, **why: float) -> Hit:
    return Hit(1, 1, score, why, 0.0, own, near)


PLAIN = SearchPlan("plain", "", ALL)


def asked(text: str) -> Query:
    return Query(text, about=role_meant(text))


def test_a_message_about_the_person_opens_the_gate_sooner():
    between = [hit(own=0.55)], [hit(near=1.0)], [hit(own=0.4, near=1.0)]
    assert all(PERSONAL.is_open(hits) and not OTHER.is_open(hits) for hits in between)
    personal = "Where do I work?", "What is my cat called?", "How do I usually take my coffee?"
    assert {gate_for(PLAIN, [], asked(text)) for text in personal} == {PERSONAL}
    assert gate_for(PLAIN, [], asked("I need to call her. Where does my sister live?")) == PERSONAL
    assert gate_for(PLAIN, [hit(speaker=1.0)], asked("What is it?")) == PERSONAL
    assert gate_for(PLAIN._replace(kind="reference"), [], asked("What is it?")) == REFERRING
    assert REFERRING.is_open([hit(own=0.5, near=0.2)])
    anybody = (
        "What is rain?",
        "How do I pick a lock?",
        "Where can I buy a lamp?",
        "I want to learn chess",
        "Can I eat it?",
    )
    assert {gate_for(PLAIN, [hit(words=1.0)], asked(text)) for text in anybody} == {OTHER}
    said_by_the_person = [hit(speaker=1.0)]  # as most is
    assert gate_for(PLAIN, said_by_the_person, asked("How do I pick a lock?")) == OTHER
    plans = PLAIN, PLAIN._replace(budget_share=UNASKED)
    question, statement = (gate_for(plan, [], asked("My lock?"), is_foreign=True) for plan in plans)
    assert (
        question.is_open([hit(own=0.3)])
        and not statement.is_open([hit(own=0.45)])
        and statement.is_open([hit(own=0.5)])
    )
    assert OTHER.is_open([hit(time=1.0)]) and OTHER.is_open([hit(linked=1.0)]) and not OTHER.is_open([])


def test_words_and_meaning_count_together_unless_one_of_them_cannot_be_told():
    common_word, far_meaning = hit(own=0.5, near=0.3), hit(own=0.2, near=0.9)
    assert not any(PERSONAL.is_open([one]) for one in (common_word, far_meaning))
    assert all(
        PERSONAL.is_open([one]) for one in (hit(own=0.5, near=0.6), hit(own=0.2, near=1.0), hit(own=0.9, near=0.1))
    )
    assert PERSONAL.is_open([hit(near=0.9)]) and not PERSONAL.is_open([hit(near=0.95), hit(own=0.2)])  # other words
    assert PERSONAL.is_open([hit(own=0.5)]) and not PERSONAL.is_open([hit(own=0.45)])  # no embedder


def test_beside_the_best_stands_what_has_its_words_around_it_or_is_near():
    best, near, beside = hit(5.0), hit(4.0, near=0.7), hit(4.0, neighbours=0.2)
    assert relevant([best, near, beside, hit(4.0, near=0.2, rare=2.0), hit(2.0, near=2.0)]) == [best, near, beside]
    assert relevant([]) == []
