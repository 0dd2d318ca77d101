"""What the built-in model knows of languages: one file of phrases and patterns each, read once.

Patterns of all languages count together, since people mix them; a reply is in one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from memory.languages import LANGUAGES, pattern, tables
from search_index.analysis import ENGLISH

_FILES = _EN, _ZH = [tables(Path(__file__).with_name(f"{code}.toml")) for code in ("en", "zh")]


def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """The patterns of a table by their names, each of all languages that have it."""
    sources: dict[str, list[str]] = {}
    for file in _FILES:
        for name, source in file.get(table, {}).items():
            sources.setdefault(name, []).append(source)
    return {name: re.compile("|".join(either), re.I) for name, either in sources.items()}


def rows(table: str, columns: int) -> list[tuple[Any, ...]]:
    """The rows of a table of all languages.  Columns stand two spaces apart; the last is a pattern."""
    split = (row.split("  ", columns - 1) for file in _FILES for row in file[table].strip().splitlines())
    return [(*columns, re.compile(source, re.I)) for *columns, source in split]


SWAPS = [re.compile(source, re.I) for file in _FILES for source in file["swaps"]]
THIRD_PERSONS = _EN["third_persons"]
OF_A_KIND = frozenset(ENGLISH.terms(_EN["words"]["of_a_kind"]))
_ASKS = patterns("asks") | {"own": pattern(lambda language: language.own)}
_SOUGHT = patterns("sought")
_SMALL_TALK = pattern(lambda language: language.small_talk)
_PADDING = pattern(lambda language: language.padding)
_IDLE = frozenset().union(*(one.courtesies | one.idle_words | (one.stop_words or set()) for one in LANGUAGES))
_ASKING, _CHINESE_ASKING = set(ENGLISH.terms(_EN["words"]["asking"])), _ZH["words"]["asking"].split()
_MEANING = {term: same[0] for same in map(ENGLISH.terms, _EN["words"]["meanings"].split(";")) for term in same}


def asks(name: str, text: str) -> set[str]:
    """The words in a text that a pattern of the table `asks` reads; none where it asks, or holds, nothing such."""
    return {match.group().lower() for match in _ASKS[name].finditer(straight(text))}


def sought(question: str) -> set[str]:
    """What a question asks for: keys of statements that answer, and sections of the summary."""
    return {name for name, source in _SOUGHT.items() if source.search(straight(question))}


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, with its question mark or without."""
    bare = straight(sentence).rstrip("\"'”’)*_ 。.!！")
    return bare.endswith(("?", "？")) or _ASKS["question"].match(bare) is not None


def is_small_talk(text: str) -> bool:
    """Whether a text greets, thanks or nods, and says nothing else."""
    left = _PADDING.sub(" ", _SMALL_TALK.sub(" ", straight(text[:300])))
    words = set(re.findall(r"[^\W\d_]+(?:'\w+)?|\d+", left.lower()))
    return words <= _IDLE and not (is_question(text) and terms(left))


def straight(text: str) -> str:
    """`text` with plain apostrophes, at the same length."""
    return text.replace("’", "'").replace("‘", "'")


def terms(text: str) -> list[str]:
    """The words of `text` as the search index compares them, words of one meaning as one."""
    for word in _CHINESE_ASKING:
        text = text.replace(word, " ")
    return [_MEANING.get(term, term) for term in ENGLISH.terms(straight(text)) if term not in _ASKING]


def phrases_for(text: str) -> dict[str, str]:
    """The phrases of the language in which an answer to `text` had better be."""
    chinese = 3 * len(re.findall("[\u3400-\u9fff]", text)) > len(re.findall("[A-Za-z]", text))
    return dict((_ZH if chinese else _EN)["phrases"])
