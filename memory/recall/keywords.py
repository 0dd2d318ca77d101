"""The words of a message that are worth searching for: nouns, names, technical terms and numbers.

Function words, generic verbs, vague nouns and words of time are left out, as `memory.languages` lists them.  A run of
Chinese gives its pairs of characters, as in the index.

Guarantee: every keyword stands in the text (after NFKC) and has terms in the index; linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from memory.languages import LANGUAGES, analysis_in, pattern
from search_index.analysis import MAX_TERM, Analysis

# Scripts written without spaces: Thai to Burmese, Khmer, kana, bopomofo and Han.
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
_UNSPACED += "\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = f"(?:[^\\W_{_UNSPACED}]|[\u0900-\u0963\u0970-\u0dff])"
_TOKEN = re.compile(
    # words, joined by single marks into a compound, as the index joins them; paths and addresses
    rf"(?P<word>{_LETTER}++(?:(?:['’._@&-]|__|::|://|/(?=\w)|(?<=\d)[:,](?=\d)){_LETTER}++)*+(?:\+\+|\#(?!\w))?)|(?P<unspaced>[{_UNSPACED}]++)"
)
_NOISE = re.compile(r"\w?[^\w\s]{31,}")  # endless marks and accents, which would make normalising quadratic
_CONTRACTION = re.compile(r"['’](?:s|d|m|re|ve|ll)$", re.IGNORECASE)
_TECHNICAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\d|[._@&:+#/]|\w-\w")  # has what no plain word has
_SENTENCE_END = re.compile(r"[.!?:;\n。！？：；…]")

_ENGLISH = analysis_in("en")
_IDLE = pattern(lambda language: language.idle)
_IDLE_LEADING = "".join(language.idle_leading for language in LANGUAGES)


def keywords(text: str, analysis: Analysis) -> list[str]:
    """The words worth searching for, in the order of the text, each once, as they stand in it.

    `analysis` is that of the index they are looked for in.
    """
    text = unicodedata.normalize("NFKC", _NOISE.sub(" ", text))
    distinct: dict[str, str] = {}
    for word in _content(text, analysis.language):
        distinct.setdefault(word.casefold(), word)
    spoken = (analysis,) if analysis is _ENGLISH else (analysis, _ENGLISH)
    return [word for word in distinct.values() if all(one.terms(word) for one in spoken)]


@dataclass(frozen=True)
class _Idle:
    """The words that are no content where a language is spoken: English ones too, since people mix it into theirs."""

    times: frozenset[str]
    words: frozenset[str]
    verbs: frozenset[str]
    determiners: frozenset[str]

    @classmethod
    def of(cls, code: str) -> _Idle:
        spoken = [language for language in LANGUAGES if language.code in ("en", code)]
        return cls(
            frozenset().union(*(language.time_words for language in spoken)),
            frozenset().union(*(language.idle_words for language in spoken)),
            frozenset().union(*(language.generic_verbs for language in spoken)),
            frozenset().union(*(language.determiners for language in spoken)),
        )


_IDLE_ENGLISH = _Idle.of("en")
_IDLE_WORDS = {language.code: _Idle.of(language.code) for language in LANGUAGES}


def _content(text: str, code: str) -> Iterator[str]:
    idle = _IDLE_WORDS.get(code, _IDLE_ENGLISH)
    shouting, noun, end = text.isupper(), False, 0
    for match in _TOKEN.finditer(text):
        between, end = text[end : match.start()], match.end()
        if match["unspaced"]:
            yield from _unspaced(match[0])
            noun = False
            continue
        word = _CONTRACTION.sub("", match[0])[:MAX_TERM]
        lower = word.casefold()
        opens = match.start() == 0 or _SENTENCE_END.search(between) is not None
        name = (word[0].isupper() and not opens and not shouting and word != "I") or bool(_TECHNICAL.search(word))
        generic = lower in idle.words or (lower in idle.verbs and not noun)
        noun = lower in idle.determiners
        if lower not in idle.times and (name or not generic):
            yield word


def _unspaced(run: str) -> Iterator[str]:
    """The pairs of characters of what is left of a run without its idle words."""
    kept = _IDLE.sub(lambda match: match[0] if match.groupdict().get("keep") else " ", run)
    for part in kept.split():
        content = part.lstrip(_IDLE_LEADING)
        for at in range(max(len(content) - 1, min(len(content), 1))):
            yield content[at : at + 2]
