"""Which words are worth searching for, and that every one of them stands in the text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.languages import analysis_in
from memory.recall.keywords import keywords
from tests.resources import soon_over

ENGLISH = analysis_in("en")
# A text, and its keywords.
FOUND = """
    How do I fix a TypeError in FastAPI? | TypeError FastAPI
    the user-dashboard loads slowly since v2.1 | user-dashboard loads slowly v2.1
    I moved to San Francisco with Anna's sister | San Francisco Anna sister
    is C++ or C# older | C++ C# older
    see src/main.py. | src/main.py
    open ~/notes/todo.md please | open notes/todo.md
    rename snake_case to camelCase | rename snake_case camelCase
    use std::vector | std::vector
    ERR_CONNECTION_REFUSED and ORA-00942 | ERR_CONNECTION_REFUSED ORA-00942
    error 0x80070005 again | error 0x80070005
    mail bob.smith@example.com | mail bob.smith@example.com
    how many calories in 100 g of lentils | calories 100 g lentils
    16GB of RAM | 16GB RAM
    it cost $10,000 | cost 10,000
    on 2023-05-08 at 10:30 | 2023-05-08 10:30
    pi is 3.14 | pi 3.14
    tell me something about the meeting yesterday | meeting
    what did you make this morning |
    I want to know a lot of things |
    he/she and/or it |
    ask May about the plan | May plan
    ask Will about April | Will
    where do I work |
    how is my work | work
    I NEED HELP WITH MY TAXES NOW | TAXES
    NASA and the US | NASA US
    hello, thanks, ok lol |
    don't won't you're |
    a cat and the cat and Cats | cat Cats
    ¿Dónde está la biblioteca? | Dónde está la biblioteca
    Über den Wolken | Über den Wolken
    где моя книга | где моя книга
    한국어를 배워요 | 한국어를 배워요
    我用Python写代码 | Python 代码
    我们用的数据库是什么 | 数据 据库
    我有一只猫 | 猫
    推荐一家北京的川菜馆 | 北京 川菜 菜馆
    怎么用Python读取CSV文件？ | Python 取 CSV 文件
    还记得我的猫叫什么吗 | 猫
    你好，帮我写一封辞职信 | 辞职 职信
    我花了500元 | 花 500 元
    它的目的地是成都 | 目的 的地 成都
    我们之前讨论了什么？ |
    ＡＢＣ１２３ | ABC123
"""
ANY_TEXT = st.text(st.characters(codec=None, categories=None))
PIECES = [*"aAzZ09 .,/-_'\"`+#@:\n", " in May", *"e\u0301 我 数据 的 カ 한 Anna New v2.1 ﬁ ﷺ km".split()]  # noqa: SIM905
CHAT = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize("line", FOUND.strip().splitlines())
def test_keywords(line):
    text, _, found = line.strip().partition(" |")
    assert keywords(text, ENGLISH) == found.split()


@given(ANY_TEXT | CHAT)
def test_every_keyword_stands_in_the_text_and_in_the_index(text):
    normal = unicodedata.normalize("NFKC", text)
    found = keywords(text, ENGLISH)
    for word in found:
        assert word in normal
        assert ENGLISH.terms(word)
    assert len({word.casefold() for word in found}) == len(found)


@pytest.mark.parametrize(
    "piece",
    ["a", "Ab ", "a/", "/", "a.", "_", '"', "\u0301", "e\u0301", "1", "1,", "的", "数据库的", "「", "`", "~/", "a-",
     "::", "http://", "in ", "1 a ", "'", "-_a", "\U0001f600", "カ", "x1 ", "\n", "12ab"],
)  # fmt: skip
def test_linear_on_hostile_text(piece):
    text = (piece * 100_000)[:100_000]
    with soon_over():
        keywords(text, ENGLISH)
