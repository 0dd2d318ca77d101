"""From text to the terms that are indexed and searched.

One analysis serves texts and queries, in the index and outside it.  Nothing here raises, whatever the text.

    1. One spelling of what looks the same, and its words (`spelling`).
    2. Each word gives the term of the whole and, as of a name of things (`user-dashboard`, `TypeError`), of its parts.
       Stop words give none; words of the language are stemmed.
    3. A run of a script without spaces gives its pairs of characters.
    4. A text to be found also gets the terms by which a query in its own language finds it, or a part of a compound.

A query in another language goes another way: `without_function_words`, then `forms` in place of `query_terms`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from itertools import groupby, pairwise
from typing import get_args

from Stemmer import Stemmer
from whoosh.lang import NoStopWords, stopwords_for_language
from whoosh.lang.porter2 import stem as porter2

from config import SearchLanguage
from search_index.caches import cached
from search_index.han import SIMPLIFIED
from search_index.spelling import (
    ASCII_WORD,
    LETTERS,
    PAIRED_RUN,
    SCRIPT,
    SCRIPTS,
    UNSPACED_RUN,
    WORD,
    WRITTEN_WORD,
    characters,
    folded,
    languages_of_script,
    normalised,
    written_words,
)

MAX_TERM = 64  # characters of a term that count: what is longer is a key or a blob
STEMMED: tuple[str, ...] = get_args(SearchLanguage)
FOREIGN_WORDS = 2  # of another language's function words, and more than of its own: a text is in that language
JOINING = frozenset(["da", "de", "nl", "no", "sv"])  # languages that write compounds as one word
COMPOUND_LETTERS_MIN, PART_LETTERS_MIN = 9, 4  # of a compound, and of each of its two parts
NAME_WEIGHT = 2  # how often the speaker's name counts: having said it is more than being mentioned once

# A question names the event ("when did she go", "what did he buy"), the message tells it in the past ("I went", "I
# bought"), and no stemmer knows that these are one word.  The commonest irregular verbs and plurals of speech, the
# word as it is looked up first.
_IRREGULAR_FORMS = """
    go went gone goes; buy bought; eat ate eaten; take took taken; make made; see saw seen; get got gotten;
    give gave given; come came; find found; think thought; tell told; say said; feel felt; leave left; keep kept;
    begin began begun; meet met; write wrote written; run ran; bring brought; hold held; sit sat; stand stood;
    lose lost; pay paid; speak spoke spoken; teach taught; catch caught; win won; build built; fall fell fallen;
    send sent; spend spent; grow grew grown; know knew known; draw drew drawn; sing sang sung; swim swam swum;
    drive drove driven; ride rode ridden; fly flew flown; throw threw thrown; choose chose chosen;
    break broke broken; wear wore worn; sleep slept; sell sold; forget forgot forgotten; become became;
    understand understood; fight fought; hear heard; lead led; learn learnt; dream dreamt; drink drank drunk;
    ring rang rung; steal stole stolen; wake woke woken; hide hid hidden; bite bit bitten; child children;
    person people; man men; woman women; wife wives; foot feet; tooth teeth; mouse mice
"""
_BASE_OF = {form: base for base, *forms in (line.split() for line in _IRREGULAR_FORMS.split(";")) for form in forms}

# Endings and beginnings of words in languages that Snowball has no stemmer for, or none that bears folded accents.
_AFFIXES = {
    "pl": re.compile(
        "(?<=\\w{3})(?:owie|iami|iach|iego|iemu|ami|ach|owi|ego|emu|iem|ymi|imi|iu|ie|ia|io|ow|em|om|ej|ym|im|[aeiouy])$"
    ),
    "uk": re.compile(
        "(?<=\\w{3})(?:[ое]го|[ое]му|[иі]ми|[оеє]ві|[ая]ми|[ая]х|[иі]х|[иії]й|[иі]м|[оеє]ю|[ії]в|ої|ей|[аяуює]ть|[аеєиіїоуюяьй])$"
    ),
    "he": re.compile("^(?:ו?(?:כש|[הבלכמש]ה?)|ו)(?=\\w{3})|(?<=\\w{3})(?:ים|ות|[הת])$"),
}

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CONTRACTION = re.compile(r"'(?:s|d|m|re|ve|ll)$", re.IGNORECASE)
_JOINT = re.compile(r"['._@&-]")
# Letters and accents that only Turkish or Vietnamese has, of the languages in Latin letters.
_OWN_LETTER = re.compile(
    "(?P<tr>[\u011e\u011f\u0130\u0131])|(?P<vi>[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9\u0309\u031b\u0323])"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class Analysis:
    """Analysis for one language: its stemmer, its stop words, and all else as for every other."""

    def __init__(
        self,
        language: str,
        stop_words: frozenset[str] | None = None,
        idle_words: Mapping[str, frozenset[str]] = {},
        particles: str = "",
    ) -> None:
        """Make the analysis.

        stop_words: left out of the terms; without them Whoosh's list for the language serves.
        idle_words: left out of queries in other languages, beside their lists, by the codes of these.
        particles: a pattern of the function words of unspaced scripts, which are left out of queries; what its group
        `keep` matches stays.
        """
        self.language = language
        self.joins = language in JOINING
        self._english = language == "en"
        self._stop_words = stop_words or _listed(language)
        self._idle_words = idle_words
        self._particles = re.compile(particles) if particles else None
        self._stem = _stemmer(language)
        self._terms_of = cached(16_384)(self._analysed)
        self._stem_in = cached(16_384)(self._stemmed)
        self.has_terms = cached(16_384)(lambda word: bool(self.terms(word)))
        # A turn asks several times.
        self.likely_languages = cached(64)(self._likely_languages)
        self.content = cached(64)(self._content)
        # As a set, for comparing texts: of facts, which consecutive turns compare.
        self.words = cached(2_048)(lambda text: frozenset(self.terms(text)))

    # -- terms

    def terms(self, text: str, name: str | None = None, *, is_indexed: bool = False) -> list[str]:
        """Return the terms of `text`, in the order of its words (those of unspaced scripts last), repeats kept.

        name: the speaker's: "what did Ana say" prefers what Ana said.
        is_indexed: the text is one to be found, no query. It also gets what only some queries for it have: every
        character of an unspaced script, stems of another language that it is in, and parts of compounds.
        """
        pattern = ASCII_WORD
        runs = []
        if not text.isascii():
            text = normalised(text)
            pattern = WORD
            runs = PAIRED_RUN.findall(text)
            text = PAIRED_RUN.sub(" ", text)
        if "," in text:
            text = _THOUSANDS.sub("", text)
        terms: list[str] = []
        words = pattern.findall(text)
        for word in words:  # long ones, such as addresses, would fill the cache
            terms += self._terms_of(word) if len(word) <= MAX_TERM else self._analysed(word)
        for run in runs:
            signs = [character[: MAX_TERM // 2] for character in characters(run)]  # people pile up marks on one
            terms += map("".join, pairwise(signs))
            if len(signs) == 1 or is_indexed:
                terms += signs
        if is_indexed:
            terms += self._further_terms(text, words, terms)
        return terms + NAME_WEIGHT * self.terms(name, is_indexed=is_indexed) if name else terms

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms to look for, in the order of the text."""
        return list(dict.fromkeys(self.terms(text)))

    def rows(self, text: str) -> list[list[str]]:
        """Return the terms of `text` in rows, as they follow each other in any text that says the same.

        One row has the words; each run of an unspaced script has a row of its own.
        """
        text = normalised(text)
        parts = [PAIRED_RUN.sub(" ", text), *PAIRED_RUN.findall(text)]
        return [terms for part in parts if (terms := self.terms(part))]

    def _analysed(self, word: str) -> tuple[str, ...]:
        """Return the terms of one word as written: of the whole, then of its parts."""
        if word.replace("'", "").casefold() in self._stop_words:  # don't
            return ()
        if not self._english and self._stop_words.issuperset(_JOINT.split(word.casefold())):  # qu'est-ce
            return ()
        word = _CONTRACTION.sub("", word)
        parts = _JOINT.split(word)
        number = word.isascii() and all(map(str.isdigit, parts))
        if not number:
            parts = [piece for part in parts for piece in _CAMEL.split(part)]
        if len(parts) == 1:
            return self._single(word)
        # Joined, "e-mail" is "email" and user_dashboard is userDashboard; the dot stays where it tells v2.1 from v21.
        whole = self._single(re.sub(r"(?<!\d)\.|\.(?!\d)|['_@&-]", "", word))
        if number and "." in word:
            return whole  # 3 and 14 are no parts of 3.14
        return whole + tuple(term for part in parts if len(part) > 1 for term in self._single(part))

    def _single(self, word: str) -> tuple[str, ...]:
        """Return the term of a word that has no parts, its stem; none for a stop word."""
        word = word.casefold()[:MAX_TERM]
        if word in self._stop_words:
            return ()
        if self._english:
            word = _BASE_OF.get(word, word)
        if (word.isascii() and word.isalpha()) or (not self._english and LETTERS.fullmatch(word)):
            word = self._stem(word) or word  # accents are folded already, as people leave them out: the stems bear it
        return (word,)

    # -- other languages

    @cached_property
    def _others(self) -> dict[str, frozenset[str]]:
        """Function words of other languages, by their codes; made when needed, as most analyses only stem words."""
        more = {code: frozenset(map(folded, words)) for code, words in self._idle_words.items() if words}
        return {
            code: _listed(code) | more.get(code, frozenset())
            for code in sorted({*STEMMED, *more}.union(*SCRIPTS.values()) - {self.language})
        }

    @cached_property
    def _foreign(self) -> dict[str, list[str]]:
        """Languages that have a word as a function word, by the word."""
        foreign = defaultdict[str, list[str]](list)
        for code, listed in self._others.items():
            for word in listed:
                foreign[word].append(code)
        return foreign

    @cached_property
    def _hints(self) -> frozenset[str]:
        """Function words of other languages alone, also as sentences begin with them."""
        hints = frozenset(self._foreign).difference(self._stop_words)
        return hints | frozenset(map(str.capitalize, hints))

    def _likely_languages(self, text: str, least: int = FOREIGN_WORDS) -> Sequence[str]:
        """Return the languages that a text may be in: this one, unless it has more of others' function words.

        One such word of another language may be a word of this one, unless `least` is 1: then a text without any may be
        in each language that has idle words.  A script tells more than words; of one whose languages are not known
        here, or not told apart, there are none.
        """
        words = written_words(folded(text).replace("'", " "))
        counts = Counter([code for word in words if word in self._foreign for code in self._foreign[word]])
        if not text.isascii():
            letters = filter(None, map(_OWN_LETTER.search, text.split()))
            counts.update([code for match in letters if (code := match.lastgroup) and code != self.language])
        if (known := languages_of_script(text)) is not None:
            most = max((counts[code] for code in known), default=0)
            return [self.language] if self.language in known else [code for code in known if counts[code] == most]
        most = max(counts.values(), default=0)
        own = sum(map(self._stop_words.__contains__, words))
        if least == 1 and not (most or own):
            return list(self._idle_words)
        if most < least or most <= own:
            return [self.language]
        return [code for code, count in counts.items() if count == most]

    def _foreign_languages(self, text: str) -> tuple[Sequence[str], bool]:
        """Return the languages that a text may be in, none if it is in that of the analysis.

        Return also whether its language writes compounds as one word.
        """
        likely = self.likely_languages(text)
        languages = () if likely == [self.language] else likely
        return languages, not JOINING.isdisjoint(languages or [self.language])

    def _further_terms(self, text: str, words: Sequence[str], terms: Sequence[str]) -> Iterator[str]:
        """Yield the terms of words that a text gets beside its usual `terms` to be found."""
        if not (self.joins or self._hints & {*words} or (not text.isascii() and SCRIPT.search(text))):
            return  # it is in the language of the analysis
        languages, is_joining = self._foreign_languages(text)
        if languages:
            own = {*terms}
            yield from (stem for word in words for stem in self._stems(word, languages) if stem not in own)
        if is_joining:
            yield from (part for word in words for part in self._compound_parts(word, languages))

    def _stems(self, word: str, languages: Sequence[str]) -> list[str]:
        """Return the distinct stems of the parts of a word that are no function words."""
        stems = [self._stem_in(code, part) for part in _JOINT.split(word) for code in languages]
        return list(dict.fromkeys(filter(None, stems)))

    def _stemmed(self, code: str, word: str) -> str:
        """Return the stem of a word of another language; "" if it has none."""
        word = word.casefold()[:MAX_TERM]
        if code == self.language or not LETTERS.fullmatch(word) or len(word) == 1 or word in self._others[code]:
            return ""
        return _stemmer(code)(word)

    def _compound_parts(self, word: str, languages: Sequence[str]) -> list[str]:
        """Return every beginning and ending of a long word that may be a word of its own, marked at the joint."""
        word = word.casefold()
        if not COMPOUND_LETTERS_MIN <= len(word) <= MAX_TERM or not word.isalpha():
            return []
        places = range(PART_LETTERS_MIN, len(word) - PART_LETTERS_MIN + 1)
        endings = (f"~{form[at:]}" for form in (word, *self._stems(word, languages)) for at in places)
        return list(dict.fromkeys([*(f"{word[:at]}~" for at in places), *endings]))

    def _compound_forms(self, word: str, languages: Sequence[str]) -> list[str]:
        """Return the terms of compounds that a word may be a part of, and its own last part, if it is a compound."""
        word = word.casefold()
        stems = {word, *self._stems(word, languages)}
        parts = [form for form in sorted(stems) if len(form) >= PART_LETTERS_MIN]
        own = {part[1:]: None for part in self._compound_parts(word, languages) if part[0] == "~"}
        if any(not own.keys().isdisjoint(self._others[code]) for code in languages):
            own = {}  # Schuhgröße is no kind of "große"
        return [*(f"~{part}" for part in parts), *(f"{part}~" for part in parts), *own]

    def without_function_words(self, text: str) -> str:
        """Return a query without the function words of its language, if it is in another one than the analysis.

        Every message in that language has them, so they would find any.
        """
        if self._particles is not None and not text.isascii():
            cut = partial(self._particles.sub, lambda match: match[0] if match.groupdict().get("keep") else " ")
            text = UNSPACED_RUN.sub(lambda run: cut(run[0]), text.translate(SIMPLIFIED))
        if (languages := self.likely_languages(text)) == [self.language]:
            return text
        function_words = frozenset[str]().union(*map(self._others.__getitem__, languages))

        def content(word: re.Match[str]) -> str:
            if function_words.issuperset(map(folded, word[0].split("-"))):  # dois-je
                return ""
            return "'".join(part for part in word[0].split("'") if folded(part) not in function_words)

        return WRITTEN_WORD.sub(content, text)

    def forms(self, text: str, bare: str) -> dict[str, list[str]]:
        """Return the terms to look for in a query of another language, one for each word, with its other forms.

        bare: the query without its function words.  A message has the word's stem as well if its language was seen.
        """
        languages, is_joining = self._foreign_languages(text)
        found: dict[str, list[str]] = {}
        for word in WRITTEN_WORD.findall(bare if bare.isascii() else normalised(bare)):
            own = self.terms(word)
            if PAIRED_RUN.match(word):
                found |= {term: [] for term in own}
            elif forms := [*self._stems(word, languages), *own]:
                first = next((term for term in forms if term in found), forms[0])
                forms += self._compound_forms(word, languages) if is_joining else []
                found.setdefault(first, []).extend(form for form in forms if form != first)
        return found

    # -- words of a text as they are written there

    def highlights(self, text: str, terms: Collection[str], prefixes: tuple[str, ...] = ()) -> list[str]:
        """Return the words of `text`, as written there, that have one of `terms` or begin with one of `prefixes`."""
        words: dict[str, None] = {}
        languages, is_joining = self._foreign_languages(text)
        for word in written_words(text):
            if PAIRED_RUN.match(word):
                words |= dict.fromkeys(_highlighted_parts(word, terms))
                continue
            plain = folded(word)
            parts = self._compound_parts(plain, languages) if is_joining else ()
            forms = (*self.terms(word), *self._stems(plain, languages), *parts)
            if any(form in terms or form.startswith(prefixes) for form in forms):
                words[word] = None
        return list(words)

    def without(self, text: str, terms: Collection[str]) -> str:
        """Return `text` without the words that have one of `terms`."""
        return WRITTEN_WORD.sub(lambda word: word[0] if self.words(word[0]).isdisjoint(terms) else "", text)

    def _content(self, text: str) -> str:
        """Return the words of `text` but stop words; if none is left, `text`."""
        words = written_words(text)
        return " ".join([word for word in words if len(word) > MAX_TERM or self.has_terms(word)]) or text


def _highlighted_parts(run: str, terms: Collection[str]) -> Iterator[str]:
    """Yield the parts of a run of an unspaced script whose characters, or pairs of them, are terms."""
    plain = characters(run.translate(SIMPLIFIED))
    marked: set[int] = set()
    for start in range(len(plain)):
        for end in (start + 1, start + 2):
            marked.update(range(start, end) if "".join(plain[start:end]) in terms else ())
    written = characters(run)
    for is_marked, places in groupby(range(len(written)), key=marked.__contains__):
        if is_marked:
            yield "".join(written[at] for at in places)


def _stemmer(code: str) -> Callable[[str], str]:
    """Return the function that cuts the endings off words of a language."""
    if code in _AFFIXES:
        return lambda word: _AFFIXES[code].sub("", word)
    if code not in STEMMED:
        return str
    return porter2 if code == "en" else lambda word: Stemmer(code).stemWord(word)  # no two threads may share one


@lru_cache(maxsize=len(STEMMED))
def _listed(language: str) -> frozenset[str]:
    """Return Whoosh's stop words for a language."""
    with suppress(NoStopWords):  # Romanian has none
        return frozenset(normalised(word).casefold() for word in stopwords_for_language(language))
    return frozenset()


DEFAULT_ANALYSIS = Analysis("en")  # with no words but the search library's; see `memory.languages.ENGLISH`
