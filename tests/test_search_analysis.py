"""What counts as the same word, and that no text breaks the analysis."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.languages import analysis_in

terms, query_terms = analysis_in("en").terms, analysis_in("en").query_terms


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("running", "she runs"),
        ("When did she go?", "I went there"),
        ("dashboard", "the user-dashboard is slow"),
        ("userDashboard", "the user-dashboard"),
        ("type error", "it raised TypeError"),
        ("fastapi", "we use FastAPI"),
        ("http server", "class HTTPServer"),
        ("c#", "C# is fine"),
        ("email", "an e-mail"),
        ("bob", "write to bob.smith@example.com"),
        ("BOB.SMITH@EXAMPLE.COM", "write to bob.smith@example.com"),
        ("example.com", "https://www.example.com/some/path?x=1"),
        ("Caroline", "Caroline’s brother"),
        ("obrien", "Mr O'Brien"),
        ("cafe", "the Café"),
        ("strasse", "die Straße"),
        ("Lodz", "Łódź"),
        ("猫", "我有一只猫"),
        ("Python", "我用Python写代码"),
        ("カメラ", "新しいカメラを買った"),
        ("สวัสดี", "สวัสดีครับ"),
        ("Привет", "привет, мир"),
        ("Will May", "will said in may"),
    ],
)
def test_finds(asked, said):
    assert set(query_terms(asked)) & set(terms(said, singles=True))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("C++", "C is old"),
        ("v2.1", "v21"),
        ("14", "3.14"),
        ("猫", "狗"),
        ("数据", "据数"),
        ("car", "care"),
    ],
)
def test_tells_apart(asked, said):
    assert not set(query_terms(asked)) & set(terms(said, singles=True))


@pytest.mark.parametrize(
    "text", ["", "  \n", "What did you do?", "I don't, you're, it’s, can't", "👍 !?", "\x00\ud800", "_"]
)
def test_nothing_to_search(text):
    assert query_terms(text) == []


@given(st.text())
def test_the_same_text_in_another_unicode_form_is_the_same(text):
    composed = unicodedata.normalize("NFC", text)
    assert terms(composed) == terms(unicodedata.normalize("NFD", composed))


@given(st.lists(st.text(st.characters(categories=["Ll"], max_codepoint=0x24F), min_size=1), max_size=8))
def test_case_of_whole_words_does_not_matter(words):
    lower = " ".join(words).casefold()
    assert terms(lower.upper()) == terms(lower.upper().lower())


@pytest.mark.parametrize(
    "piece", ["word ", "a.", "aB", "1,", "漢", "é", "'s", "C++", "\u0301\u0316", "\x00", "x", "İ", "x\u0301-"]
)
def test_a_megabyte_takes_no_more_than_seconds(piece):
    text = "é" + piece * (1_000_000 // len(piece))
    started = time.process_time()
    terms(text, singles=True)
    assert time.process_time() - started < 5
