"""Read what the built-in model knows of languages: one file of phrases and patterns each.

Patterns of all languages count together, since people mix them; a reply is in one.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memory.languages import ENGLISH, LANGUAGES, QUESTION_MARKS, pattern, plain_apostrophes, vocabulary
from memory.languages.language import tables
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.han import in_both_scripts

_FOLDER = Path(__file__).parent / "phrases"
# Of two rows that match the first counts: English ones come before others.
_PATHS = sorted(_FOLDER.glob("*.toml"), key=lambda path: (path.stem != "en", path))
_FILES = {path.stem: tables(path) for path in _PATHS}
_EN = _FILES["en"]


def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """Return the patterns of a table by their names, each of all languages that have it."""
    sources: dict[str, list[str]] = {}
    for file in _FILES.values():
        for name, source in file.get(table, {}).items():
            sources.setdefault(name, []).append(source)
    return {name: re.compile(in_both_scripts("|".join(alternatives)), re.I) for name, alternatives in sources.items()}


def rows(table: str, columns: int) -> list[tuple[Any, ...]]:
    """Return the rows of a table. Columns stand two spaces apart; the last is a pattern."""
    lines = (line for file in _FILES.values() for line in file.get(table, "").strip().splitlines())
    split = (line.split("  ", columns - 1) for line in lines)
    return [(*columns, re.compile(in_both_scripts(source), re.I)) for *columns, source in split]


THIRD_PERSONS = {verb: form for file in _FILES.values() for verb, form in file.get("third_persons", {}).items()}
_ASKS = patterns("asks") | {
    "own": pattern(lambda language: language.own),
    "keep out": pattern(lambda language: language.keep_out),
    "forget": pattern(lambda language: language.forget),
    "standing": pattern(lambda language: language.standing),
    "remember": pattern(lambda language: language.remember),
    "asking abroad": pattern(lambda language: "" if language.code in ("en", "zh") else language.asks),
}
_SOUGHT = patterns("sought")
_SPACED = [language for language in LANGUAGES if language.spaced]
_HINTS = {
    code: re.compile(rf"\b(?:{file['reading']['carried']}|{file['asks']['hello']}|{file['asks']['thanks']})", re.I)
    for code, file in _FILES.items()
    if code in {language.code for language in _SPACED}
}
_SMALL_TALK = pattern(lambda language: language.small_talk)
_PADDING = pattern(lambda language: language.padding)
# Names stay names: Ben and Kim are function words in Turkish.
_IDLE = frozenset[str]().union(
    *(known.courtesies | known.function_words for known in LANGUAGES if known.code in _FILES)
)
_ASKING = set(DEFAULT_ANALYSIS.terms(_EN["words"]["asking"]))
_UNSPACED_ASKING = [word for code in ("zh", "ja") for word in _FILES[code]["words"]["asking"].split()]
_MEANING = {term: same[0] for same in map(DEFAULT_ANALYSIS.terms, _EN["words"]["meanings"].split(";")) for term in same}
_TIME_WORDS = vocabulary(lambda language: language.time_words)
TIME_TERMS = frozenset(term for word in _TIME_WORDS for term in DEFAULT_ANALYSIS.terms(word))


def asks(name: str, text: str) -> set[str]:
    """Return the parts of a text that match a pattern of the table `asks`; the empty set if it asks nothing such."""
    return {match.group().lower() for match in _ASKS[name].finditer(plain_apostrophes(text))}


def remembered(sentence: str) -> str:
    """Return the part of a sentence that it asks to remember; "" if it asks nothing such."""
    match = _ASKS["remember"].search(sentence)
    return sentence[match.end() :] if match else ""


def sought(question: str) -> set[str]:
    """Return the names that a question asks for: keys of statements that answer, and sections of the summary."""
    return {name for name, source in _SOUGHT.items() if source.search(plain_apostrophes(question))}


def is_question(sentence: str) -> bool:
    """Return whether a sentence asks, with its question mark or without."""
    bare = plain_apostrophes(sentence).rstrip("\"'”’)*_ 。.!！")
    match = _ASKS["question"].match(bare) or _ASKS["asking abroad"].match(sentence)
    return bare.endswith(QUESTION_MARKS) or match is not None


def is_small_talk(text: str) -> bool:
    """Return whether a text greets, thanks or nods, and says nothing else."""
    # Of the whole text: a part may not tell its language.
    content = ENGLISH.without_function_words(plain_apostrophes(text[:300]))
    content = _PADDING.sub(" ", _SMALL_TALK.sub(" ", _ASKS["bye"].sub(" ", content)))
    words = set(re.findall(r"[^\W\d_]+(?:'\w+)?|\d+", content.lower()))
    return words <= _IDLE and not (is_question(text) and (asks("self", text) or terms(content)))


def terms(text: str) -> list[str]:
    """Return the words of a text as the search index compares them, words of one meaning as one."""
    for word in _UNSPACED_ASKING:
        text = text.replace(word, " ")
    of_text = DEFAULT_ANALYSIS.terms(ENGLISH.without_function_words(plain_apostrophes(text)))
    return [_MEANING.get(term, term) for term in of_text if term not in _ASKING]


def phrases_for(texts: Iterable[str]) -> dict[str, str]:
    """Return the phrases of the language that the first of the texts is in whose words tell a language."""
    code = next(filter(None, map(_reply_language, texts)), "en")
    return dict(_FILES.get(code, _EN)["phrases"])


def _reply_language(text: str) -> str:
    """Return the code of the one language whose function words, verbs and greetings a text has most of; "" for none.

    A greeting is enough to answer it. To search, `Analysis.likely_languages` wants several function words.
    """
    if re.search("[\u3041-\u30ff]", text):
        return "ja"
    if 3 * len(re.findall("[\u3400-\u9fff]", text)) > len(re.findall("[A-Za-z]", text)):
        return "zh"
    words = re.findall(r"[^\W\d_]+", plain_apostrophes(text[:1000]).lower())
    counts = {language.code: sum(map(language.function_words.__contains__, words)) for language in _SPACED}
    for code, hint in _HINTS.items():
        counts[code] += len(hint.findall(text))
    return max(counts, key=counts.__getitem__) if any(counts.values()) else ""
