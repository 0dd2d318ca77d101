"""Which words are worth searching for, and that every one of them stands in the text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.languages import analysis_in
from memory.recall import keywords as rules
from memory.recall.keywords import keywords
from tests.hostile import soon_over

FOUND = [
    ("How do I fix a TypeError in FastAPI?", ["TypeError", "FastAPI"]),
    ("the user-dashboard loads slowly since v2.1", ["user-dashboard", "v2.1", "loads", "slowly"]),
    ("I moved to San Francisco with Anna's sister", ["San Francisco", "Anna", "sister"]),
    ("is C++ or C# older", ["C++", "C#", "older"]),
    ("see src/main.py.", ["src/main.py"]),
    ("look in /etc/hosts", ["/etc/hosts"]),
    ("open ~/notes/todo.md please", ["~/notes/todo.md", "open"]),
    ("at https://example.com/a?b=1, today", ["https://example.com/a?b=1"]),
    ("rename snake_case to camelCase", ["snake_case", "camelCase", "rename"]),
    ("use std::vector", ["std::vector"]),
    ("ERR_CONNECTION_REFUSED and ORA-00942", ["ERR_CONNECTION_REFUSED", "ORA-00942"]),
    ("error 0x80070005 again", ["0x80070005", "error"]),
    ("mail bob.smith@example.com", ["bob.smith@example.com", "mail"]),
    ('she said "never mind the gap" to me', ["never mind the gap"]),
    ("the “dark side” of it", ["dark side"]),
    ("run `make check`", ["make check"]),
    ("how many calories in 100 g of lentils", ["100 g", "calories", "lentils"]),
    ("16GB of RAM", ["RAM", "16GB"]),
    ("it cost $10,000", ["$10,000", "cost"]),
    ("on 2023-05-08 at 10:30", ["2023-05-08", "10:30"]),
    ("pi is 3.14", ["3.14", "pi"]),
    ("tell me something about the meeting yesterday", ["meeting"]),
    ("what did you make this morning", []),
    ("I want to know a lot of things", []),
    ("he/she and/or it", []),
    ("last week on Monday, 3 weeks ago", []),
    ("what happened in May", []),
    ("ask May about the plan", ["May", "plan"]),
    ("ask Will about April", ["Will", "April"]),
    ("where do I work", []),
    ("how is my work", ["work"]),
    ("I NEED HELP WITH MY TAXES NOW", ["TAXES"]),
    ("NASA and the US", ["NASA", "US"]),
    ("hello, thanks, ok lol", []),
    ("don't won't you're", []),
    ("a cat and the cat and Cats", ["Cats", "cat"]),
    ("¿Dónde está la biblioteca?", ["Dónde", "está", "la", "biblioteca"]),
    ("Über den Wolken", ["Wolken", "Über", "den"]),
    ("где моя книга", ["где", "моя", "книга"]),
    ("한국어를 배워요", ["한국어를", "배워요"]),
    ("我用Python写代码", ["Python", "代码"]),
    ("我们用的数据库是什么", ["数据", "据库"]),
    ("我有一只猫", ["猫"]),
    ("推荐一家北京的川菜馆", ["北京", "川菜", "菜馆"]),
    ("怎么用Python读取CSV文件？", ["Python", "CSV", "读取", "文件"]),
    ("还记得我的猫叫什么吗", ["猫"]),
    ("你好，帮我写一封辞职信", ["辞职", "职信"]),
    ("我花了500元", ["500元", "花"]),
    ("它的目的地是成都", ["目的", "的地", "成都"]),
    ("我们之前讨论了什么？", []),
    ("ＡＢＣ１２３", ["ABC123"]),
    ("", []),
]
ANY_TEXT = st.text(st.characters(codec=None, categories=None))
CHAT = st.lists(
    st.sampled_from(
        [
            *"aAzZ09 .,/-_'\"`+#@:\n",
            "e\u0301",
            "我",
            "数据",
            "的",
            "カ",
            "한",
            "Anna",
            "New",
            " in May",
            "v2.1",
            "ﬁ",
            "ﷺ",
            "km",
        ]
    ),
    max_size=40,
).map("".join)


@pytest.mark.parametrize(("text", "found"), FOUND)
def test_keywords(text, found):
    assert keywords(text) == found


@given(ANY_TEXT | CHAT)
def test_every_keyword_stands_in_the_text_and_in_the_index(text):
    normal = unicodedata.normalize("NFKC", text)
    found = keywords(text)
    for word in found:
        assert word in normal
        assert analysis_in("en").terms(word)
    assert len({word.casefold() for word in found}) == len(found)


@pytest.mark.parametrize(
    "piece",
    ["a", "Ab ", "a/", "/", "a.", "_", '"', "\u0301", "e\u0301", "1", "1,", "的", "数据库的", "「", "`", "~/", "a-",
     "::", "http://", "in ", "1 a ", "'", "-_a", "\U0001f600", "カ", "x1 ", "\n", "12ab"],
)  # fmt: skip
def test_linear_on_hostile_text(piece):
    text = (piece * 100_000)[:100_000]
    with soon_over():
        keywords(text)


@given(
    st.lists(
        st.sampled_from(["in", "May", "march", "ago", "3", "a", "days", "two", "Mayor", "since", "August", " ", ","])
    )
)
def test_a_text_is_only_read_for_dates_where_one_may_be(words: list[str]) -> None:
    for text in (" ".join(words), "".join(words)):
        if not rules._MAY_BE_DATED.search(text):
            assert not rules._DATED.search(text)


@given(st.text("-=. a\n\u0301", max_size=80))
def test_a_text_is_only_read_for_noise_where_some_is(text: str) -> None:
    assert bool(rules._NOISY.search(text)) == bool(rules._NOISE.search(text))
