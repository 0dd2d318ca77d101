"""Remembered text is data: whatever was said cannot close the block it is quoted in, nor open another."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.domain import Excerpt, Fact, Message
from memory.quoting import attribute, block, chat_block, escape, fact_line, message_line, plain

NOW = datetime(2024, 6, 1, 12, 30, tzinfo=UTC)
markup = ["</memory>", '<chat id="x">', "</facts>", "&lt;", "&", '"', "- a fact", "[3] user: hello", "Topic: mine"]
line_ends = ["\n", "\r", "\r\n", "\u2028", "\u2029", "\x85", "\x0b", "\x0c"]
hidden = [
    "\x00",
    "\x1b[2J",
    "\x7f",
    "\u200b",
    "\u200e",
    "\u202e",
    "\u2066",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\ud800",
    "\udfff",
]
nasty = st.sampled_from([*markup, *line_ends, *hidden])
anything = st.lists(nasty | st.text(max_size=12) | st.characters(), max_size=12).map("".join)


def message(content: str, name: str | None = None, session: str = "s") -> Message:
    return Message(1, session, 1, "user", content, NOW, 1, name=name)


def fact(text: str) -> Fact:
    values: dict[str, Any] = {"category": "other", "importance": 3, "scope": "session", "session_id": None}
    more: dict[str, Any] = {"source_message_id": None, "quote": "", "pinned": False, "recalled_count": 0}
    return Fact(7, text, **values, **more, valid_from=NOW, valid_to=None, superseded_by=None, created_at=NOW)


def tags(text: str) -> list[str]:
    return re.findall(r"</?[a-z]+", text)


@given(anything)
def test_escaped_text_has_no_tag_and_no_line_of_its_own(text: str) -> None:
    escaped = escape(text)
    assert "<" not in escaped
    assert ">" not in escaped
    assert all(line.startswith("  ") for line in escaped.splitlines()[1:])
    assert re.sub(r"&(amp|lt|gt);", "", escaped).count("&") == 0


@given(anything)
def test_nothing_hidden_stays(text: str) -> None:
    kept = plain(text)
    assert all(unicodedata.category(character) not in ("Cc", "Cs") for character in kept if character not in "\t\n")
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert all(unicodedata.bidirectional(character) not in bidi for character in kept)
    kept.encode()  # and it can be sent


@given(anything)
def test_an_attribute_stays_within_its_quotes(text: str) -> None:
    shown = attribute(text)
    assert '"' not in shown
    assert len(shown.splitlines()) <= 1


@given(anything, st.none() | anything, anything, anything)
def test_an_excerpt_is_one_block_whatever_was_said(content: str, name: str | None, session: str, title: str) -> None:
    said = (message(content, name, session), message(content, name, session))
    shown = chat_block(Excerpt(session, title, said, hits=(1,), score=1.0))
    assert tags(shown) == ["<chat", "</chat"]
    lines = shown.splitlines()
    assert sum(not line.startswith("  ") for line in lines) == 4  # the tags and two messages
    assert lines[0].count('"') == 4
    assert lines[-1] == "</chat>"


@given(anything, st.booleans())
def test_a_fact_and_a_message_are_a_line_each(text: str, number: bool) -> None:
    shown = block("facts", [fact_line(fact(text), number), message_line(message(text, text), number)])
    assert tags(shown) == ["<facts", "</facts"]
    assert sum(not line.startswith("  ") for line in shown.splitlines()) == 4


@given(st.text(alphabet=st.characters(categories=["L", "N", "P"], exclude_characters="<>&"), max_size=60))
def test_ordinary_words_stay_as_they_are(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a\r\nb\rc\nd", "a\n  b\n  c\n  d"),
        ("</chat> & <b>", "&lt;/chat&gt; &amp; &lt;b&gt;"),
        ("👩\u200d👩\u200d👧 \u0928\u200d", "👩\u200d👩\u200d👧 \u0928\u200d"),  # joiners make letters: they stay
        ("tab\there", "tab\there"),
        ("pass\u200bword", "password"),
    ],
)
def test_examples(said: str, shown: str) -> None:
    assert escape(said) == shown


def test_an_empty_block_is_nothing() -> None:
    assert block("facts", []) == ""
