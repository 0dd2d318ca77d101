"""Languages as data: each is one TOML file in `phrases`, named by its ISO code.

Code asks for a pattern or a table and gets that of all languages together, since people mix them.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from memory.languages.language import Language, load
from search_index.analysis import DEFAULT_ANALYSIS, MAX_TERM, Analysis
from search_index.caches import cached
from search_index.han import SIMPLIFIED

LANGUAGES: tuple[Language, ...] = tuple(map(load, sorted(Path(__file__).parent.glob("phrases/*.toml"))))

_LATIN = [language for language in LANGUAGES if language.is_latin]

CONTENT_WORDS = 8_192  # whose terms are cached: to ask all languages for a word takes long
QUESTION_MARKS = ("?", "？", "؟")
CLAUSE_END = re.compile(r"(?<![.;!?,])[.;!?,]+(?:\s|$)|\band\b|\n")


def pattern(part: Callable[[Language], str]) -> re.Pattern[str]:
    """Return one pattern for that part of all languages, with case ignored."""
    return re.compile(alternatives(part), re.IGNORECASE)


def alternatives(part: Callable[[Language], str], languages: Sequence[Language] = LANGUAGES) -> str:
    """Return that part of all languages as one regular expression."""
    spaced = "|".join(f"(?:{part(language)})" for language in languages if language.spaced and part(language))
    unspaced = [f"(?:{part(language)})" for language in languages if not language.spaced and part(language)]
    return "|".join([rf"(?<!\w)(?:{spaced})(?!\w)", *unspaced]) if spaced else "|".join(unspaced)


def plain_apostrophes(text: str) -> str:
    """Replace typographic apostrophes; the length stays."""
    return text.replace("’", "'").replace("‘", "'").replace("ʼ", "'")


class TextPattern:
    """Regular expression with case ignored, which most texts do not match.  Typographic apostrophes are read as plain.

    To ignore case takes several times as long, so ASCII texts are first searched in small letters.  It is compiled when
    it is first used: all of them take a fifth of the time in which Recap is imported, and commands need none.
    """

    def __init__(self, source: str, ascii_source: str | None = None) -> None:
        """`ascii_source` is what an ASCII text may match of the pattern; None: all."""
        self._source = source
        self._ascii_source = source if ascii_source is None else ascii_source

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile(self._source, re.IGNORECASE)

    @cached_property
    def _lower(self) -> re.Pattern[str]:
        """Return what finds a match wherever the pattern does, and where letters ought to be capitals."""
        source = self._ascii_source.replace("(?-i:", "(?:")
        return re.compile(re.sub(r"(?<!\\)(?<!\(\?)[A-Z]", lambda letter: letter[0].lower(), source))

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Return the first match from `start` on."""
        if not (text := plain_apostrophes(text)).isascii():
            return self._pattern.search(text, start)
        small = text.lower()
        while first := self._lower.search(small, start):
            if match := self._pattern.match(text, first.start()):
                return match
            start = first.start() + 1
        return None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches, none of which is empty."""
        match = self.search(text)
        while match:
            yield match
            match = self.search(text, match.end())

    def match(self, text: str) -> re.Match[str] | None:
        """Return the match that begins the text."""
        text = plain_apostrophes(text)
        if text.isascii() and self._lower.match(text.lower()) is None:
            return None
        return self._pattern.match(text)


def text_pattern(part: Callable[[Language], str]) -> TextPattern:
    """Return one pattern for that part of all languages."""
    return TextPattern(alternatives(part), alternatives(part, _LATIN))


def table(part: Callable[[Language], Any]) -> dict[str, Any]:
    """Return that table of all languages in one."""
    return {word: value for language in LANGUAGES for word, value in part(language).items()}


def vocabulary(part: Callable[[Language], frozenset[str]]) -> frozenset[str]:
    """Return those words of all languages."""
    return frozenset().union(*map(part, LANGUAGES))


@cache
def analysis_in(code: str) -> Analysis:
    """Return the analysis of the search index for a language of SEARCH_LANGUAGE, with the stop words known here."""
    stop_words = next((language.stop_words for language in LANGUAGES if language.code == code), None)
    return Analysis(code, stop_words, _FUNCTION_WORDS, _PARTICLES)


def languages_in(text: str) -> frozenset[str]:
    """Return the codes of the languages that words of a text may be of; none if its words do not tell.

    These are the text's own, and each of which it has a function word that its own lack: people mix languages. English
    counts with any of its words ("has hay fever"), and one word of another language alone tells none ("ist gay").
    """
    words = set(re.findall(r"[^\W\d_]{2,}", text.casefold()))
    has_english = not words.isdisjoint(_STOP_WORDS["en"])
    own = frozenset(ENGLISH.likely_languages(text))
    if own == {"en"} and not has_english:
        return frozenset()
    others = words.difference(*(listed for code, listed in _STOP_WORDS.items() if code in own))
    codes = {code for code, listed in _STOP_WORDS.items() if not listed.isdisjoint(others)}
    if has_english:
        codes.add("en")
    return own | codes


def content_terms(text: str) -> frozenset[str]:
    """Return the terms of the words in a text that no language here leaves out of searches."""
    words = set(re.findall(r"[^\W_]+(?:['’][^\W_]+)?", text))
    found = (_content_terms(word) if len(word) <= MAX_TERM else DEFAULT_ANALYSIS.terms(word) for word in words)
    return frozenset(term for terms in found for term in terms if not term.isdigit())


@cached(CONTENT_WORDS)
def _content_terms(word: str) -> Sequence[str]:
    return DEFAULT_ANALYSIS.terms(word) if all(analysis.terms(word) for analysis in _ANALYSES) else ()


def shared(terms: Collection[str], others: Collection[str]) -> int:
    """Count the terms that are among others, in another form of the word perhaps (Vegetarier, vegetarian)."""
    return sum(any(_is_form(term, other) for other in others) for term in terms)


def states(text: Collection[str], statement: Collection[str], share: float = 0.5) -> bool:
    """Return whether a text says what a statement says: it has half of its words. Both are given as terms."""
    return shared(statement, text) >= share * len(statement)


def _is_form(word: str, other: str) -> bool:
    return word == other or (min(len(word), len(other)) >= 4 and (word.startswith(other) or other.startswith(word)))


NEGATION = pattern(lambda language: language.negations)
NEGATIVE = pattern(lambda language: "|".join(filter(None, (language.negations, language.negatives))))
CORRECTS = text_pattern(lambda language: language.corrects)
ASKS = text_pattern(lambda language: language.asks)  # how a sentence begins that asks for something
_BEFORE_ASKING = re.compile(r"[,;，،]\s*|\s[–—-]+\s|\s(?=(?:so|and|but)\s)")
MONTHS: dict[str, int] = table(lambda language: language.months if language.spaced else {})
"""Numbers of months by their names, in languages with spaces between words."""
# No sentence ends after "4." in "4. Juli", or after "Dr.".
SENTENCE_END = re.compile(
    r"""(?:(?<=[.!?…])|(?<=[.!?…]["'”’)*_]))(?<!\b[DMS][rst]\.)(?<!\bMrs\.)(?<!\bProf\.)(?<!\bvs\.)(?<!\b[ap]\.m\.)"""
    r"(?<!\b(?:der|die|das|den|dem) \d\.)(?<!\b[ai]m \d\.)(?<!\b[ai]m \d\d\.)"
    rf"(?:(?<!\d\.)|(?!\s+(?:{'|'.join(MONTHS)})\b))\s+|(?<=[。！？；\n])",
    re.I,
)


def split_question(sentence: str) -> list[str]:
    """Return the statement before the clause that asks, and that clause: "I'm vegan", "what can I cook?".

    A sentence that does not do both is returned as it is.
    """
    joints = _BEFORE_ASKING.finditer(sentence) if sentence.rstrip().endswith(QUESTION_MARKS) else ()
    asking = next((joint for joint in joints if ASKS.search(sentence[joint.end() :])), None)
    return [sentence[: asking.start()], sentence[asking.end() :]] if asking else [sentence]


_STOP_WORDS = {language.code: language.listed_words for language in LANGUAGES}
_FUNCTION_WORDS = {language.code: language.function_words for language in LANGUAGES}
_PARTICLES = alternatives(lambda language: language.particles).translate(SIMPLIFIED)
_ANALYSES = [analysis_in(language.code) for language in LANGUAGES if language.spaced]
ENGLISH = analysis_in("en")  # it tells English from all languages here
