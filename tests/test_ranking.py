"""The ranking: what each part lifts, that no part hides anything, and that only what was said decides."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_index import RANKING_PROFILES, Hit, Query, RankingProfile, SearchableText, SearchIndex, WordLlamaEmbedder
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.ranking import GRACE_DAYS
from tests.search_index import T0, WORDS, Rows, message
from tests.search_index import search as asked

DEFAULT, WORDS_ALONE = RANKING_PROFILES["context"], RANKING_PROFILES["words"]
EMBEDDER = WordLlamaEmbedder()


def search(
    root: Path, profile: RankingProfile, query: Query, documents: Sequence[SearchableText], indexed: Any = ()
) -> list[Hit]:
    """What an index of its own finds among `documents`, of which those with the ids `indexed` are in it."""
    index = SearchIndex(root, profile=profile, embedder=EMBEDDER if profile.uses("meaning") else None)
    index.drop("ana")
    rows = Rows(*documents)
    rows.index(index, ids=[one.message_id for one in documents if one.message_id in indexed])
    return asked(index, rows, query)


def ids(hits: Sequence[Hit]) -> list[int]:
    return [hit.message_id for hit in hits]


# What each part lifts

MOVE = [
    message(1, "Which city did you move to after the wedding?", session_id=1),
    message(2, "Tallinn, right by the sea.", session_id=1),
    message(3, "My sister is at the dentist.", session_id=2),
    message(4, "A city is loud.", session_id=2),
    message(5, "Pancakes are good.", session_id=2),
]
QUESTION = "What city did they move to after their wedding?"


@pytest.mark.parametrize("indexed", [(), range(1, 6)])
def test_neighbours_lift_an_answer_that_repeats_no_word_of_the_question(tmp_path, indexed):
    assert ids(search(tmp_path, WORDS_ALONE, Query(QUESTION), MOVE, indexed)) == [1, 4]
    found = search(tmp_path, DEFAULT.only("words", "neighbours"), Query(QUESTION, limit=3), MOVE, indexed)
    assert ids(found) == [1, 2, 4]
    assert found[1].why["words"] == 0.0 < found[1].why["neighbours"]
    assert ids(search(tmp_path, DEFAULT, Query(QUESTION), MOVE, indexed))[:3] == [1, 2, 4]


def test_who_looks_for_one_word_finds_the_messages_that_have_it_first(tmp_path):
    (first, *others) = search(tmp_path, DEFAULT, Query("wedding", nearest=True), MOVE)
    assert first.message_id == 1 and len(others) == 4
    assert set(ids(search(tmp_path, DEFAULT, Query("the city", limit=2, nearest=True), MOVE))) == {1, 4}


def test_of_two_like_messages_the_one_in_the_fitting_session_comes_first(tmp_path):
    said = [
        message(1, "It leaks again.", session_id=1),
        *(message(at, "Plain words.", session_id=1) for at in (2, 3, 4)),
        message(5, "The kettle has a crack.", session_id=1),
        message(6, "It leaks again.", session_id=2),
        *(message(at, "Plain words.", session_id=2) for at in (7, 8, 9)),
        message(10, "The roof has a crack.", session_id=2),
    ]
    assert ids(search(tmp_path, WORDS_ALONE, Query("kettle leaks"), said)) == [5, 6, 1]
    found = search(tmp_path, DEFAULT.only("words", "session"), Query("kettle leaks"), said)
    assert ids(found) == [5, 1, 6]
    assert found[1].why["words"] == found[2].why["words"] and found[1].why["session"] > found[2].why["session"]


def test_meaning_finds_what_is_said_in_other_words(tmp_path):
    said = [
        message(1, "The invoice is due on the first of the month."),
        message(2, "I adopted a small puppy from the animal shelter."),
        message(3, "The train to the coast was late."),
    ]
    query = Query("Did she adopt a dog, a puppy, from a shelter for animals?")
    found = search(tmp_path, DEFAULT.weighing(neighbours=0.0), query, said)
    assert ids(found)[0] == 2 and found[0].why["meaning"] == 1.0
    animals = [message(1, "my canine friend"), message(2, "the dog walks with me daily")]
    assert ids(search(tmp_path, WORDS_ALONE, Query("canine companion"), animals)) == [1]


DAY = timedelta(days=1)


def times(first: float, last: float) -> list[tuple[datetime, datetime]]:
    return [(T0 + first * DAY, T0 + last * DAY)]


TEA = [message(at, "we had tea", session_id=at, created_at=T0 + (at - 1) * DAY) for at in range(1, 9)]


def test_a_time_prefers_what_was_said_then_or_in_the_days_after(tmp_path):
    found = search(tmp_path, DEFAULT.only("words", "time").weighing(time=1.0), Query("tea", times=times(1, 2)), TEA)
    inside = [2, *(2 + day for day in range(1, int(GRACE_DAYS) + 1))]
    assert ids(found) == [*sorted(inside, reverse=True), 8, 7, 6, 1][: len(TEA)]
    assert {hit.why["time"] for hit in found if hit.message_id in inside} == {1.0}
    assert {hit.why["time"] for hit in found if hit.message_id not in inside} == {0.0}


def said_by(*said: tuple[str | None, str, str]) -> list[SearchableText]:
    """Messages with these names, roles and contents, of one session."""
    return [message(at, content, role=role, name=name) for at, (name, role, content) in enumerate(said, 1)]


def said(*texts: str) -> list[SearchableText]:
    """The same of the person, who has no name."""
    return said_by(*((None, "user", text) for text in texts))


TO_BEN = said_by(
    ("Ana", "user", "Ben, Ben has the kettle, the kettle of Ben"), ("Ben", "assistant", "I have a white kettle now")
)
ROLES = said_by((None, "user", "a kettle"), (None, "assistant", "a kettle"))
SISTER = said("my sister called", "She lives in Porto", "Hello")
SELDOM = said("tea was good", "tea in Tallinn", *["tea was good"] * 4)
TOLD = said("Tea! I like it.", "Tea? Do you like it?")
PREFERRED: dict[str, tuple[str, list[SearchableText], Query, list[int]]] = {  # the part, what was said, the order found
    "who is named": ("speaker", TO_BEN, Query("Which kettle does Ben have?"), [2, 1]),
    "whose role is asked about": ("speaker", ROLES, Query("my kettle", about="user"), [1, 2]),
    "what belongs to who is named": ("linked", SISTER, Query("my sister", linked={2: 1.0, 9: 1.0}), [2, 1]),
    "what is seldom said": ("rare", SELDOM, Query("tea", limit=1), [2]),
    "no question": ("tells", TOLD, Query("tea"), [1, 2]),
}


@pytest.mark.parametrize("indexed", [(), range(1, 9)])
def test_what_each_part_prefers(tmp_path, indexed):
    for name in PREFERRED:
        part, messages, query, expected = PREFERRED[name]
        profile = DEFAULT.only("words", part).weighing(**{part: 3.0})
        assert ids(search(tmp_path, profile, query, messages, indexed)) == expected
        assert ids(search(tmp_path, WORDS_ALONE, query, messages, indexed)) != expected


# The formulas


def test_a_question_that_names_two_speakers_asks_for_neither(tmp_path):
    said = said_by(("Ana", "user", "a kettle for Ben"), ("Ben", "assistant", "a kettle for Ana"))
    hits = search(tmp_path, DEFAULT, Query("a kettle for Ana and Ben"), said)
    assert [hit.why["speaker"] for hit in hits] == [0.0, 0.0]


def test_the_meaning_of_a_question_is_not_in_the_name_of_who_is_asked_about():
    said = said_by(
        ("Rose", "user", "The puppy is from a shelter for animals."), ("Rose", "user", "A tulip blooms red.")
    )
    index = SearchIndex(Path("nowhere"), profile=DEFAULT, embedder=EMBEDDER)
    hits = asked(index, Rows(*said), Query("Where did Rose adopt the dog?"))
    assert hits[0].message_id == 1
    assert hits[0].why["meaning"] > hits[1].why["meaning"]


def test_fuzzy_is_the_studys_formula(tmp_path):
    """Two fifths by the share of all words that both have, two by the cosine of their counts, one by how old it is."""
    said = (("kettle tea", 0), ("kettle kettle boat", 12), ("tea boat", 48), ("boat", 0))
    now = datetime.now(UTC)
    messages = [message(n, text, created_at=now - timedelta(hours=age)) for n, (text, age) in enumerate(said, 1)]
    found = {hit.message_id: hit for hit in search(tmp_path, RANKING_PROFILES["fuzzy"], Query("kettle tea"), messages)}
    assert {number: tuple(hit.why.values()) for number, hit in found.items()} == {
        1: pytest.approx((0.4, 0.4, 0.2), abs=0.001),  # since time goes on
        2: pytest.approx((0.4 / 3, 0.4 * 2 / math.sqrt(5 * 2), 0.2 * 0.85), abs=0.001),
        3: pytest.approx((0.4 / 3, 0.4 / 2, 0.2 * 0.7), abs=0.001),
    }


# What does not matter, and what does not break


TALK = st.lists(
    st.tuples(st.lists(st.sampled_from(WORDS[:6]), max_size=6).map(" ".join), st.integers(1, 3), st.integers(0, 9)),
    max_size=9,
)
WEIGHTS = st.fixed_dictionaries({part.name: st.sampled_from([0.0, 0.4, 1.0, 100.0]) for part in DEFAULT.features[1:]})
RANKINGS = st.one_of(
    st.builds(
        lambda weights, fusion: replace(DEFAULT.weighing(**weights), fusion=fusion),
        WEIGHTS,
        st.sampled_from(["weighted", "rrf"]),
    ),
    st.just(RANKING_PROFILES["fuzzy"]),
)
ASKED = st.lists(st.sampled_from(WORDS[:7]), min_size=1, max_size=4).map(" ".join)


def said_in(talk: Sequence[tuple[str, int, int]]) -> list[SearchableText]:
    return [
        message(at, text, session_id=session, created_at=T0 + day * DAY) for at, (text, session, day) in enumerate(talk)
    ]


@settings(deadline=None, max_examples=60)
@given(TALK, RANKINGS, ASKED, st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter_and_scores_are_sums_of_their_parts(talk, profile, text, shuffled):
    documents = said_in(talk)
    other = documents.copy()
    shuffled.shuffle(other)
    query = Query(text, limit=100, times=times(2, 4))
    index = SearchIndex(Path("nowhere"), profile=profile, embedder=EMBEDDER if profile.uses("meaning") else None)
    hits = asked(index, Rows(*documents), query)
    assert hits == asked(index, Rows(*other), query)
    for hit in hits:
        assert all(map(math.isfinite, (hit.score, *hit.why.values())))
        assert hit.score == pytest.approx(sum(hit.why.values())) and min(hit.why.values()) >= 0
    order = [(-hit.score, -hit.message_id) for hit in hits]
    assert order == sorted(order)


@settings(deadline=None, max_examples=60)
@given(TALK, RANKINGS, ASKED, st.sets(st.integers(0, 8)))
def test_what_is_excluded_was_never_said_and_a_time_hides_nothing(talk, profile, text, excluded):
    documents = said_in(talk)
    left = [one for one in documents if one.message_id not in excluded]
    index = SearchIndex(Path("nowhere"), profile=profile, embedder=EMBEDDER if profile.uses("meaning") else None)
    query = Query(text, limit=100, times=times(2, 4), exclude=excluded)
    hits = asked(index, Rows(*documents), query)
    assert ids(hits) == ids(asked(index, Rows(*left), replace(query, exclude=())))
    if profile.uses("words"):
        assert set(ids(asked(index, Rows(*documents), replace(query, times=())))) <= set(ids(hits))
        held = {
            one.message_id
            for one in left
            if set(DEFAULT_ANALYSIS.terms(one.content)) & set(DEFAULT_ANALYSIS.terms(text))
        }
        assert held <= set(ids(hits))
