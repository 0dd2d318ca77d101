"""What the built-in model knows of languages: one file of phrases and patterns each, read once.

Patterns of all languages count together, since people mix them; a reply is in one.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from memory.languages import LANGUAGES, pattern, tables
from search_index.analysis import ENGLISH

_FILES = [tables(Path(__file__).with_name(f"{code}.toml")) for code in ("en", "zh")]
ROWS = [tuple(row.split("  ", 3)) for file in _FILES for row in file["statements"].strip().splitlines()]
LINKS = [tuple(row.split("  ", 4)) for file in _FILES for row in file["links"].strip().splitlines()]
_CAPTURED = ("name", "place", "taste", "what", "label", "figure", "plan", "past")
_PARTS = (
    _FILES[0]["parts"]
    | _FILES[1]["parts"]
    | {name.upper(): f"(?P<{name}>.+)" for name in _CAPTURED}
    | {"VALUE": "(?P<v>.+)", "OPTION": "([^,;:!?，。]{2,80}?)"}
)
_NAMED_PART = re.compile("|".join(sorted(_PARTS, key=len, reverse=True)))


def compiled(source: str) -> re.Pattern[str]:
    """A pattern in which words in capitals stand for parts."""
    while _NAMED_PART.search(source):
        source = _NAMED_PART.sub(lambda part: f"(?:{_PARTS[part.group()]})", source)
    return re.compile(source, re.I)


def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """The patterns of a table by their names, each of all languages that have it."""
    names = {name: None for file in _FILES for name in file.get(table, {})}
    return {
        name: compiled("|".join(file[table][name] for file in _FILES if name in file.get(table, {}))) for name in names
    }


SWAPS = [compiled(source) for file in _FILES for source in file["swaps"]]
_SOUGHT = patterns("sought")
_ASKS = patterns("asks")
_SMALL_TALK = pattern(lambda language: language.small_talk)
_PADDING = pattern(lambda language: language.padding)
_IDLE = frozenset().union(*(one.courtesies | one.idle_words | (one.stop_words or set()) for one in LANGUAGES))
_PARTICLES = re.compile("[呀啊吧了的你您嘛哦]")
WORDS = _FILES[0]["words"]
_ASKING, _CHINESE_ASKING = set(ENGLISH.terms(WORDS["asking"])), _FILES[1]["words"]["asking"].split()
_GROUPS = [ENGLISH.terms(group) for group in WORDS["meanings"].split(";")]
_MEANING = {term: group[0] for group in _GROUPS for term in group}


def asks(name: str, text: str) -> bool:
    """Whether a text asks, or holds, what a pattern of the table `asks` reads."""
    return _ASKS[name].search(straight(text)) is not None


def found(name: str, text: str) -> set[str]:
    """The words in a text that a pattern of the table `asks` reads."""
    return {match.group().lower() for match in _ASKS[name].finditer(straight(text))}


def sought(question: str) -> list[str]:
    """What a question asks for: keys of statements that answer, and sections of the summary."""
    return [name for name, source in _SOUGHT.items() if source.search(straight(question))]


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, with its question mark or without."""
    bare = straight(sentence).rstrip("\"'”’)*_ 。.!！")
    return bare.endswith(("?", "？")) or _ASKS["question"].match(bare) is not None


def is_small_talk(text: str) -> bool:
    """Whether a text greets, thanks or nods, and says nothing else."""
    left = _PADDING.sub(" ", _SMALL_TALK.sub(" ", straight(text[:300])))
    return set(re.findall(r"[^\W\d_]+(?:'\w+)?|\d+", _PARTICLES.sub("", left.lower()))) <= _IDLE


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
    return dict(_FILES[chinese]["phrases"])


def day(moment: datetime, phrases: dict[str, str]) -> str:
    """A date as people write it: "20 November 2026"."""
    return phrases["day"].format(day=moment.day, month=moment.month, name=f"{moment:%B}", year=moment.year)
