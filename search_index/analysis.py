"""From text to the terms that are indexed and searched.

One analysis serves texts and queries, in the index and outside it.  Words of one language are stemmed and its stop
words left out; names of things (`user-dashboard`, `TypeError`, `v2.1`) are found whole and by their parts; scripts
written without spaces become pairs of characters; accents and the many spellings of one character count as one.
Nothing here raises, whatever the text.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from itertools import groupby, pairwise
from statistics import mode
from typing import get_args

from Stemmer import Stemmer
from whoosh.lang import NoStopWords, stopwords_for_language
from whoosh.lang.porter2 import stem as porter2

from config import SearchLanguage
from search_index.caches import cached
from search_index.han import SIMPLIFIED

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

# Scripts written without spaces between words, as ranges of characters: Thai to Burmese, Khmer, kana, bopomofo, Han.
UNSPACED = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17d3\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u312f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
PAIRED = f"{UNSPACED}\uac00-\ud7a3"  # these and Hangul, whose words have endings that are not told apart here
PAIR = re.compile(f"[{PAIRED}]{{2}}")
# A character with the signs written on it, and in Thai and Lao with the vowels that are written before or after it.
_CHARACTER = re.compile("[\u0e40-\u0e44\u0ec0-\u0ec4]?\\w\\W*[\u0e30\u0e32\u0e45\u0eb0\u0eb2]?|\\W+")
_PAIRED, _UNSPACED = re.compile(f"[{PAIRED}]+"), re.compile(f"[{UNSPACED}]+")
# A word: letters and digits, joined by single marks into a compound; C++ and C# keep what tells them from C.
# Vowel signs of the Indic scripts are marks to Unicode, but parts of their words.
_LETTER = "(?:[^\\W_]|[\u0900-\u0963\u0970-\u0dff])"
_WORD = re.compile(f"{_LETTER}+(?:['._@&-]{_LETTER}+)*(?:\\+\\+|#(?!\\w))?")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+(?:['._@&-][A-Za-z0-9]+)*(?:\+\+|#(?!\w))?")
# What Hebrew and Arabic are written with or without: vowel points, and the lengthening of a line.
_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u0640\u064b-\u065f\u0670"
# A word or a run of an unspaced script as it is written, before accents are folded.
_WRITTEN = re.compile(
    f"{_PAIRED.pattern}|(?:{_LETTER}(?<![{PAIRED}])[\u0300-\u036f{_POINTS}]*|['\u2019._@&-](?={_LETTER}))+"
    "(?:\\+\\+|#(?!\\w))?"
)
_ASCII_WRITTEN = re.compile(rf"['._@&-]?{_ASCII_WORD.pattern}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_CONTRACTION = re.compile(r"'(?:s|d|m|re|ve|ll)$", re.IGNORECASE)
_JOINT = re.compile(r"['._@&-]")
# Ranges of letters of scripts that are not Latin, with the languages in them that are known here.
_SCRIPTS = {
    "\u0370-\u03ff": ("el",),
    "\u0400-\u052f": ("ru", "uk"),
    "\u0530-\u058f": ("hy",),
    "\u0590-\u05ff": ("he",),
    "\u0600-\u06ff": ("ar", "fa"),
    "\u0900-\u097f": ("hi",),
    "\u0b80-\u0bff": ("ta",),
    "\uac00-\ud7a3": ("ko",),
    "^\\W\\d_A-Za-z\u00aa-\u024f\u1e00-\u1eff": (),  # all others
}
_SCRIPT = re.compile("|".join(f"([{letters}])" for letters in _SCRIPTS))
# Letters and accents that only Turkish or Vietnamese has, of the languages in Latin letters.
_OWN_LETTER = re.compile(
    "(?P<tr>[\u011e\u011f\u0130\u0131])|(?P<vi>[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9\u0309\u031b\u0323])"
)
_LETTERS = re.compile(f"(?:(?!\\d){_LETTER})+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Accents on Latin and Greek letters, stress and the dots of ё on Cyrillic ones, points, and the dot of Hindi letters
# for foreign sounds.
_ACCENTS = re.compile(
    f"(?<=[A-Za-z\u0370-\u03ff])[\u0300-\u036f]+|(?<=[\u0400-\u04ff])[\u0300\u0301]|(?<=[Ее])\u0308|[{_POINTS}\u093c]+"
)
# Normalising takes the square of the length of a run of accents: a long text goes piece by piece, cut at spaces.
_CHUNK = 300
_CHUNKS = re.compile(f".{{1,{_CHUNK - 1}}}\\s|.{{1,{_CHUNK}}}", re.DOTALL)
# Letters that Unicode does not take apart, or that keyboards of Arabic and Persian have two of; digits of other
# scripts; typographic apostrophes and dashes; invisible characters.
_VARIANTS = str.maketrans(
    {"ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "ı": "i"}
    | {"ى": "ي", "ی": "ي", "ک": "ك", "ँ": "ं"}
    | {digit: str(unicodedata.decimal(digit)) for digit in map(chr, range(0x660, 0xE5A)) if digit.isdecimal()}
    | dict.fromkeys("\u2018\u2019\u02bc\u2032\uff07", "'")
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\u200c", "-")  # the last parts endings from words in Persian
    | dict.fromkeys("\u00ad\u200b\u200d\u2060\ufeff", "")
    | SIMPLIFIED
)


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
        self._english = language == "en"
        self._stop_words = stop_words or _listed(language)
        self._idle_words = idle_words
        self._particles = re.compile(particles) if particles else None
        self._stem = _stemmer(language)
        self.joins = language in JOINING
        self._terms_of = cached(16_384)(self._analysed)
        self._stem_in = cached(16_384)(self._stemmed)
        self.has_terms = cached(16_384)(lambda word: bool(self.terms(word)))
        # A turn asks several times.
        self.likely_languages = cached(64)(self._likely_languages)
        self.content = cached(64)(self._content)
        # As a set, for comparing texts: of facts, which consecutive turns compare.
        self.words = cached(2_048)(lambda text: frozenset(self.terms(text)))

    @cached_property
    def _others(self) -> dict[str, frozenset[str]]:
        """Function words of other languages, by their codes; made when needed, as most analyses only stem words."""
        more = {code: frozenset(map(self.folded, words)) for code, words in self._idle_words.items() if words}
        return {
            code: _listed(code) | more.get(code, frozenset())
            for code in sorted({*STEMMED, *more}.union(*_SCRIPTS.values()) - {self.language})
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

    def terms(self, text: str, name: str | None = None, *, singles: bool = False) -> list[str]:
        """Return the terms of `text`, in the order of its words (those of unspaced scripts last), repeats kept.

        `name` is the speaker's: "what did Ana say" prefers what Ana said.  A run of an unspaced script gives its pairs
        of neighbouring characters; `singles` adds every character, for texts, so that a query of one finds them.
        It also adds the stems of a text in another language, and parts of compounds.
        """
        pattern = _ASCII_WORD
        runs = []
        if not text.isascii():
            text = _normalised(text)
            pattern = _WORD
            runs = _PAIRED.findall(text)
            text = _PAIRED.sub(" ", text)
        if "," in text:
            text = _THOUSANDS.sub("", text)
        terms: list[str] = []
        words = pattern.findall(text)
        for word in words:  # long ones, such as addresses, would fill the cache
            terms += self._terms_of(word) if len(word) <= MAX_TERM else self._analysed(word)
        for run in runs:
            signs = [character[: MAX_TERM // 2] for character in characters(run)]  # people pile up marks on one
            if len(signs) > 1:
                terms += map("".join, pairwise(signs))
            if len(signs) == 1 or singles:
                terms += signs
        if singles and (self.joins or self._hints & {*words} or (pattern is _WORD and _SCRIPT.search(text))):
            languages = self._foreign_languages(text)
            own = {*terms}
            terms += [stem for word in words for stem in self._stems(word, languages) if stem not in own]
            if not JOINING.isdisjoint(languages or [self.language]):
                terms += [part for word in words for part in self._compound_parts(word, languages)]
        return terms + NAME_WEIGHT * self.terms(name, singles=singles) if name else terms

    def rows(self, text: str) -> list[list[str]]:
        """Return the terms of `text` in rows, as they follow each other in any text that says the same.

        One row has the words; each run of an unspaced script has a row of its own.
        """
        text = _normalised(text)
        parts = [_PAIRED.sub(" ", text), *_PAIRED.findall(text)]
        return [terms for part in parts if (terms := self.terms(part))]

    def highlights(self, text: str, terms: Collection[str], prefixes: tuple[str, ...] = ()) -> list[str]:
        """Return the words of `text`, as written there, that have one of `terms` or begin with one of `prefixes`."""
        words: dict[str, None] = {}
        languages = self._foreign_languages(text)
        is_joining = not JOINING.isdisjoint(languages or [self.language])
        for word in _written(text):
            folded = self.folded(word)
            parts = self._compound_parts(folded, languages) if is_joining else ()
            forms = (*self.terms(word), *self._stems(folded, languages), *parts)
            if _PAIRED.match(word):
                plain = characters(word.translate(SIMPLIFIED))
                written = characters(word)
                marked: set[int] = set()
                for start in range(len(plain)):
                    for end in (start + 1, start + 2):
                        marked.update(range(start, end) if "".join(plain[start:end]) in terms else ())
                for is_marked, run in groupby(range(len(written)), key=marked.__contains__):
                    if is_marked:
                        words["".join(written[at] for at in run)] = None
            elif any(form in terms or form.startswith(prefixes) for form in forms):
                words[word] = None
        return list(words)

    def without(self, text: str, terms: Collection[str]) -> str:
        """`text` without the words that have one of `terms`."""
        return _WRITTEN.sub(lambda word: word[0] if self.words(word[0]).isdisjoint(terms) else "", text)

    def _content(self, text: str) -> str:
        """Return the words of `text` but stop words; if none is left, `text`."""
        words = _written(text)
        return " ".join([word for word in words if len(word) > MAX_TERM or self.has_terms(word)]) or text

    def folded(self, text: str) -> str:
        """`text` in the spelling in which terms are compared, but not stemmed."""
        return (text if text.isascii() else _normalised(text)).casefold()

    def query_terms(self, text: str) -> list[str]:
        """Return the distinct terms to look for, in the order of the text."""
        return list(dict.fromkeys(self.terms(text)))

    def _likely_languages(self, text: str, least: int = FOREIGN_WORDS) -> Sequence[str]:
        """Return the languages that a text may be in: this one, unless it has more of others' function words.

        One such word of another language may be a word of this one, unless `least` is 1: then a text without any may be
        in each language that has idle words.  A script tells more than words; of one whose languages are not known
        here, or not told apart, there are none.
        """
        words = _written(self.folded(text).replace("'", " "))
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

    def without_function_words(self, text: str) -> str:
        """Return a query without the function words of its language, if it is in another one than the analysis.

        Every message in that language has them, so they would find any.
        """
        if self._particles is not None and not text.isascii():
            cut = partial(self._particles.sub, lambda match: match[0] if match.groupdict().get("keep") else " ")
            text = _UNSPACED.sub(lambda run: cut(run[0]), text.translate(SIMPLIFIED))
        if (languages := self.likely_languages(text)) == [self.language]:
            return text
        function_words = frozenset[str]().union(*map(self._others.__getitem__, languages))

        def content(word: re.Match[str]) -> str:
            if function_words.issuperset(map(self.folded, word[0].split("-"))):  # dois-je
                return ""
            return "'".join(part for part in word[0].split("'") if self.folded(part) not in function_words)

        return _WRITTEN.sub(content, text)

    def _foreign_languages(self, text: str) -> Sequence[str]:
        """Return the languages that a text may be in, none if it is in that of the analysis."""
        languages = self.likely_languages(text)
        return () if languages == [self.language] else languages

    def forms(self, text: str, bare: str) -> dict[str, list[str]]:
        """Return the terms to look for in a text of another language, one for each word, with its other forms.

        bare: the text without its function words.  A message has the word's stem as well if its language was seen.
        """
        languages = self._foreign_languages(text)
        is_joining = not JOINING.isdisjoint(languages or [self.language])
        found: dict[str, list[str]] = {}
        for word in _WRITTEN.findall(bare if bare.isascii() else _normalised(bare)):
            own = self.terms(word)
            if _PAIRED.match(word):
                found |= {term: [] for term in own}
            elif forms := [*self._stems(word, languages), *own]:
                first = next((term for term in forms if term in found), forms[0])
                forms += self._compound_forms(word, languages) if is_joining else []
                found.setdefault(first, []).extend(form for form in forms if form != first)
        return found

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

    def _stems(self, word: str, languages: Sequence[str]) -> list[str]:
        """Return the distinct stems of the parts of a word that are no function words."""
        stems = [self._stem_in(code, part) for part in _JOINT.split(word) for code in languages]
        return list(dict.fromkeys(filter(None, stems)))

    def _stemmed(self, code: str, word: str) -> str:
        """Return the stem of a word of another language; "" if it has none."""
        word = word.casefold()[:MAX_TERM]
        if code == self.language or not _LETTERS.fullmatch(word) or len(word) == 1 or word in self._others[code]:
            return ""
        return _stemmer(code)(word)

    def _analysed(self, word: str) -> tuple[str, ...]:
        """Return the terms of one word as written."""
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
        word = word.casefold()[:MAX_TERM]
        if word in self._stop_words:
            return ()
        if self._english:
            word = _BASE_OF.get(word, word)
        if (word.isascii() and word.isalpha()) or (not self._english and _LETTERS.fullmatch(word)):
            word = self._stem(word) or word  # accents are folded already, as people leave them out: the stems bear it
        return (word,)


def _stemmer(code: str) -> Callable[[str], str]:
    """Return the function that cuts the endings off words of a language."""
    if code in _AFFIXES:
        return lambda word: _AFFIXES[code].sub("", word)
    if code not in STEMMED:
        return str
    return porter2 if code == "en" else lambda word: Stemmer(code).stemWord(word)  # no two threads may share one


def characters(run: str) -> list[str]:
    """Return the characters of a run of an unspaced script, each with the vowels and tones that belong to it."""
    return _CHARACTER.findall(run)


@cached(64)
def languages_of_script(text: str) -> Sequence[str] | None:
    """Return the languages known here of the script that most words of a text are in; None if that is Latin."""
    words = [] if text.isascii() else _written(text)
    scripts = [match.lastindex or 0 for match in map(_SCRIPT.match, words) if match]
    return list(_SCRIPTS.values())[mode(scripts) - 1] if 2 * len(scripts) > len(words) else None


def _written(text: str) -> list[str]:
    """Return the words of a text as they are written there."""
    return (_ASCII_WRITTEN if text.isascii() else _WRITTEN).findall(text)


@lru_cache(maxsize=len(STEMMED))
def _listed(language: str) -> frozenset[str]:
    """Return Whoosh's stop words for a language."""
    with suppress(NoStopWords):  # Romanian has none
        return frozenset(_normalised(word).casefold() for word in stopwords_for_language(language))
    return frozenset()


def _normalised(text: str) -> str:
    """Return one spelling of texts that look the same: compatibility forms, accents, apostrophes and dashes folded."""
    if len(text) > _CHUNK:
        return "".join(map(_normalised, _CHUNKS.findall(text)))
    apart = unicodedata.normalize("NFKD", text.translate(_VARIANTS)).translate(_VARIANTS)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart))


DEFAULT_ANALYSIS = Analysis("en")  # with no words but the search library's; see `memory.languages.ENGLISH`
