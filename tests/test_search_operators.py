"""\"Phrases\", -exclusions and prefixes*, in the index and beside it; and which words of a text they found."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_index import Query, SearchIndex
from search_index.analysis import DEFAULT_ANALYSIS
from tests.search_index import Rows, found, message

SAID = {
    1: "We drink green tea in the harbor.",
    2: "The tea is black, the walls are green.",
    3: "I broke the kettle; two kettles are left.",
    4: "A city by the mountains, with a tea-house.",
    5: "我们用数据库喝茶",
    6: "Don't forget Ana's Kettle-Haus.",
}


@pytest.mark.parametrize("indexed", [[*SAID], [], [1, 3, 5]], ids=["all", "none", "half"])
def test_operators(place, indexed):
    index, rows = SearchIndex(place), Rows(*(message(number, text) for number, text in SAID.items()))
    rows.index(index, ids=indexed)
    for text, expected in (
        ("green tea", {1, 2, 4}),
        ('"green tea"', {1}),
        ('tea -"green tea"', {2, 4}),
        ("-tea", set()),
        ("kettl*", {3, 6}),
        ("tea mount*", {4}),
        ("tea -mount*", {1, 2}),
        ('"数据库"', {5}),
        ('"tea house"', {4}),
        ('"" -"" * tea', {1, 2, 4}),
        ('"the of" tea', {1, 2, 4}),
    ):
        assert set(found(index, rows, text, operators=True)) == expected, text


@pytest.mark.parametrize("indexed", [True, False])
def test_a_phrase_of_several_scripts_or_with_signs_in_it_is_found(place, indexed):
    told = {
        1: "我说：你好，世界！第3章用Python写代码。",
        2: "世界好，你们看第4章，不用Python。",
        3: "今日は「東京」へ行く",
    }
    index, rows = SearchIndex(place), Rows(*(message(number, text) for number, text in told.items()))
    index.drop("ana")
    if indexed:
        rows.index(index)
    for text, expected in (
        ('"你好，世界"', {1}),
        ('"用Python写"', {1}),
        ('"第3章"', {1}),
        ('Python -"第3章"', {2}),
        ('"今日は「東京」へ"', {3}),
        ('"世界，你好"', {1}),  # their order is not told apart
    ):
        assert set(found(index, rows, text, operators=True)) == expected, text


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from('tea green "-*\\ kettle:()'), max_size=30))
def test_any_text_is_understood_alike_indexed_and_waiting(place, text):
    index, rows = SearchIndex(place), Rows(*(message(n, said) for n, said in SAID.items()))
    index.drop("ana")
    waiting = found(index, rows, text, operators=True)
    rows.index(index)
    assert found(index, rows, text, operators=True) == waiting


def test_highlights_are_the_words_as_they_are_written(tmp_path):
    for text, asked, expected in [
        (SAID[3], "kettle", ["kettle", "kettles"]),
        (SAID[6], "kettle ana", ["Ana's", "Kettle-Haus"]),
        (SAID[5], "数据库", ["数据库"]),
        ("Un cafe\u0301, un café.", "cafe", ["cafe\u0301", "café"]),
        (SAID[4], "moun* -tea city", ["city", "mountains"]),
        (SAID[1], '"green tea"', ["green", "tea"]),
        (SAID[1], "what is it", []),
        ("Die Einbauküche ist mir zu teuer.", "Wo ist meine Küche?", ["Einbauküche"]),
        ("Meine Küche ist nicht hier.", "Was kostet die Einbauküche?", ["Küche"]),
        ("كِتَابٌ جديد عن البحر", "كتاب", ["كِتَابٌ"]),
        ("שָׁלוֹם לכל החברים", "שלום", ["שָׁלוֹם"]),
    ]:
        index = SearchIndex(tmp_path, analysis=DEFAULT_ANALYSIS)
        assert index.highlights(index.prepare(Query(asked, operators=True)), text) == expected
