"""Tell whether a text denies what a fact states.

The fact's words are compared with the text's, and the longest runs that both have count.  A run is denied where a "not"
stands before it in its clause ("I have no children"), or where words after it deny it ("rauche nicht", "子供はいない").
Between them stand only words that tell nothing, words of the fact, and where the fact has its verb in another form,
that of the text ("non vado in palestra").
"""

import re
from collections.abc import Collection
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

from memory.languages import (
    ENGLISH,
    LANGUAGES,
    NEGATION,
    NEGATIVE,
    alternatives,
    languages_in,
    pattern,
    plain_apostrophes,
    vocabulary,
)
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.spelling import PAIRED

AROUND = 200  # characters around a quote that are searched for a "not", and after one for what it denies
FORM_LETTERS_MIN = 2  # at the beginning of two forms of one word
BETWEEN_CHARS_MAX = 12  # from what is denied to a later word that denies it: an adverb, or an object

_WORD = re.compile(rf"[{PAIRED}]|[^\W\d_]+(?:'[^\W\d_]+)?|\d+|[,.;:!?。，；！？،؟\n]")
_BEFORE = pattern(lambda language: "" if language.denies_after_only else language.negations)
_AFTER = pattern(lambda language: language.later_negations)
_PUNCTUATION = re.compile(r"[,.;:!?。，、；！？،؟\n]")
_CONJUNCTIONS = {  # by language: the Polish "and" is an English article
    language.code: re.compile(alternatives(lambda language: language.conjunctions, [language]), re.I)
    for language in LANGUAGES
    if language.conjunctions
}
_FUNCTION_WORDS = vocabulary(lambda language: language.function_words) | {"currently"}
_PORTUGUESE_IN = re.compile(r"\bno\b", re.I)
_OTHER_LETTERS = re.compile(r"(?![a-zA-Z\u3400-\u9fff])[^\W\d_]")  # of languages in which words may deny unknown here


class _Word(NamedTuple):
    stem: str
    start: int
    end: int


def do_negations_agree(text: str, quote: str, content: str) -> bool:
    """Return whether a fact's "not" has a reason in the content, and the content around the quote denies no other fact.

    quote and content: with white space and typographic marks as `grounding` compares them.
    """
    text = plain_apostrophes(text)
    if ENGLISH.likely_languages(content) == ["pt"]:
        content = _PORTUGUESE_IN.sub("em", content)
    if NEGATION.search(text):
        return NEGATIVE.search(content) is not None or _OTHER_LETTERS.search(content) is not None
    place = max(0, content.find(quote))
    near = content[max(0, place - AROUND) : place + len(quote) + AROUND]
    if not NEGATION.search(near):
        return True  # nothing is denied
    spoken = {word.stem for word in _words(near)}
    own = " ".join(text[word.start : word.end] for word in _words(text) if word.stem not in spoken)
    return NEGATIVE.search(own) is not None or not _denies(near, text)


def denied_words(text: str) -> set[str]:
    """Return the first content word after each "not"."""
    text = plain_apostrophes(text)
    after = (text[negation.end() : negation.end() + AROUND] for negation in NEGATION.finditer(text))
    return {word for terms in map(DEFAULT_ANALYSIS.terms, after) for word in terms[:1]}


def _denies(content: str, text: str) -> bool:
    """Return whether one of the longest runs of words that both have is denied wherever it stands in the content.

    It does not count if more that the text says stands only in later clauses: "I don't work at Acme, but at Bosch".
    """
    words, stated = _words(content), [word.stem for word in _words(text)]
    stems = [word.stem for word in words]
    aligned = [
        stem if stem in stems else next(filter(partial(_differ_in_endings, stem), stems), stem) for stem in stated
    ]
    length = SequenceMatcher(None, aligned, stems, autojunk=False).find_longest_match().size
    terms = DEFAULT_ANALYSIS.terms(text)
    breaks = _breaks(content)
    for start in range(len(stated) - length + 1):
        end = start + length
        places = [place for place in range(len(stems)) if stems[place : place + length] == aligned[start:end]]
        # A term may be several characters of a run.
        if not places or not any(term in "".join(stated[start:end]) for term in terms):
            continue
        clause_end, _ = _end_of_clause(breaks, words[places[-1] + length - 1].end)
        later = {word.stem for word in words if word.start >= clause_end}.difference(stems[: places[-1]])
        others = [*zip(stated[:start] + stated[end:], aligned[:start] + aligned[end:], strict=True)]
        if any(word in terms and same in later for word, same in others):
            continue
        missing = [word for word, _ in others]
        if all(_is_denied(content, breaks, words[place : place + length], aligned, missing) for place in places):
            return True
    return False


def _is_denied(
    content: str, breaks: list[tuple[int, int]], run: list[_Word], stated: Collection[str], missing: list[str]
) -> bool:
    """Return whether the clause of a run of words denies it.

    breaks: where clauses end, and others begin.  stated: the fact's words, as the content has them.  missing: those
    outside of the run, perhaps its verb in another form.
    """
    begin, end = run[0].start, run[-1].end
    start = max((stop for _, stop in breaks if stop <= begin), default=0)
    start = max(start, begin - AROUND)
    clause_end, behind = _end_of_clause(breaks, end)
    before, after = content[start:begin], content[end:behind]
    verbs = list(missing)
    negation_ends = {negation.end() for negation in _BEFORE.finditer(content, start, end)}
    for word in reversed(_words(before)):
        if start + word.end in negation_ends:
            return True
        if _tells_nothing(before, word, stated):
            continue
        verb = next((verb for verb in verbs if _share_most(verb, word.stem)), None)
        if verb is None:
            break
        verbs.remove(verb)
    for denial in _AFTER.finditer(after):
        is_near = bool(missing) and denial.start() <= BETWEEN_CHARS_MAX
        around = content[end + denial.end() : clause_end] + ("" if is_near else f" {after[: denial.start()]}")
        if all(_tells_nothing(around, word, stated) for word in _words(around)):
            return True
    return False


def _breaks(content: str) -> list[tuple[int, int]]:
    """Return where clauses end, and others begin."""
    codes = languages_in(content)
    unsure = {language.code for language in LANGUAGES if not codes or not language.spaced}
    patterns = [_PUNCTUATION, *(_CONJUNCTIONS[code] for code in _CONJUNCTIONS.keys() & (codes | unsure))]
    spans = [place.span() for found in patterns for place in found.finditer(content)]
    return [*spans, (len(content), len(content))]


def _end_of_clause(breaks: list[tuple[int, int]], place: int) -> tuple[int, int]:
    return min(span for span in breaks if span[0] >= place)


def _tells_nothing(text: str, word: _Word, stated: Collection[str]) -> bool:
    """Return whether a word is of the fact, or a function word that denies nothing: "mi", but not "only"."""
    written = text[word.start : word.end].casefold()
    return word.stem in stated or (written in _FUNCTION_WORDS and NEGATIVE.fullmatch(written) is None)


def _differ_in_endings(word: str, other: str) -> bool:
    """Return whether two words differ in their endings alone (tomo, toma)."""
    beginning = max(FORM_LETTERS_MIN, len(word) - 2, len(other) - 2)
    return word[:beginning] == other[:beginning]


def _share_most(word: str, other: str) -> bool:
    """Return whether two words share most of the shorter one in one piece: va and vado, يشرب and أشرب."""
    size = SequenceMatcher(None, word, other, autojunk=False).find_longest_match().size
    return size >= FORM_LETTERS_MIN and size > min(len(word), len(other)) / 2


def _words(text: str) -> list[_Word]:
    return [_Word(_stem(word[0].casefold()), word.start(), word.end()) for word in _WORD.finditer(text)]


def _stem(word: str) -> str:
    """Return a word without its ending."""
    terms = DEFAULT_ANALYSIS.terms(word)
    return terms[0] if terms else word
