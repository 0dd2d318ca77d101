"""Form of a language's file: tables of words and patterns, no code.

    words      separated by spaces
    patterns   regular expressions without anchors, matched with case ignored; one alternative, or several separated by
               "|", on each line.  In a spaced language a pattern matches whole words only
    numbers    `word=number`, or `word=least-most`, separated by spaces; a TOML table where words have spaces

A line that begins with two spaces goes on from the one above.  `<NAME>` stands for a pattern of the table
`shorthands`, which may use those before it.  A file that does not have this form raises an error when it is loaded.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from whoosh.lang import stopwords_for_language

from search_index.han import SIMPLIFIED, in_both_scripts


def _alternatives(text: str) -> str:
    return in_both_scripts("|".join(text.strip().splitlines())).replace("ำ", "(?:ำ|ํา)")  # the latter in NFKC


def _pairs(table: str | Mapping[str, Any]) -> Mapping[str, Any]:
    pairs = (pair.split("=") for pair in table.split()) if isinstance(table, str) else table.items()
    return {word.translate(SIMPLIFIED): value for word, value in pairs}


def _range(value: Any) -> Any:
    if isinstance(value, str):
        least, _, most = value.partition("-")
        return least, most or least
    return value


Words = Annotated[frozenset[str], BeforeValidator(str.split)]
Pattern = Annotated[str, BeforeValidator(_alternatives)]
Numbers = Annotated[Mapping[str, int], BeforeValidator(_pairs)]
Ranges = Annotated[Mapping[str, Annotated[tuple[int, int], BeforeValidator(_range)]], BeforeValidator(_pairs)]


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Times(_Data):
    """Names of times in a language; `memory.recall.times` is the grammar.

    In a phrase `<unit>` stands for a group of that name that matches the keys of the table `units`, and likewise
    `<named>`, `<shift>`, `<count>`, `<month>`, `<weekday>`, `<part>`, `<period>`, `<day>` and `<year>`.  The group
    `ago` counts back from now, and `past` counts until now.  Of two phrases that begin at the same place the one
    listed first counts.
    """

    phrases: tuple[Pattern, ...]
    script: Pattern = r"[^\x00-\x7f]"  # a character that each text in an unspaced language has
    named: Annotated[Mapping[str, tuple[str, int]], BeforeValidator(_pairs)] = {}  # yesterday: ("day", -1)
    shifts: Numbers = {}  # last: -1
    last_is_latest: bool = True  # "last Friday" is the latest one, not that of the week before
    numbers: Ranges = {}  # at least, at most; a few: (2, 6)
    units: Annotated[Mapping[str, str], BeforeValidator(_pairs)] = {}
    years: Numbers = {}  # beside digits; last year: -1
    months: Numbers = {}
    parts: Ranges = {}  # of a month; early: (1, 10)
    days: Numbers = {}  # of a month, beside digits
    periods: Ranges = {}  # of a year, as month and day; summer: (601, 831).  One that ends before it begins ends later
    weekdays: Numbers = {}  # Monday is 0
    capitalised: Words = frozenset()  # months and weekdays that are other words in small letters
    never_after: Pattern = ""  # words before a phrase that make it no time of the past: "every Monday", "next week"
    verbs: Pattern = ""  # the group `past` has those of the past; all others speak of the future


class Language(_Data):
    """Knowledge of a language.  Every part but the code may be left out."""

    code: str  # ISO 639-1
    spaced: bool = True  # words are separated by spaces

    # What is left out of the index and of searches; None where the search library's own list serves.
    stop_words: Words | None = None
    # Words that are not worth a search of their own: function words and vague nouns, unless capitalised, and times.
    idle_words: Words = frozenset()
    time_words: Words = frozenset()
    # Verbs of little meaning: idle too, but not after a determiner ("the plan").  Of the regular ones every form is.
    regular_verbs: Words = frozenset()
    verb_forms: Words = frozenset()
    nouns_of_verbs: Words = frozenset()  # forms that are worth a search all the same
    determiners: Words = frozenset()
    # The same for an unspaced language: function words, which are cut out of a run, what else is not worth a search of
    # its own, and characters cut off where a run begins.
    particles: Pattern = ""
    idle: Pattern = ""
    idle_leading: str = ""

    # A message that begins with small talk, after any padding, and has no other content is small talk.
    small_talk: Pattern = ""
    padding: Pattern = ""
    courtesies: Words = frozenset()  # words that are no content beside small talk

    references: Pattern = ""  # the past in so many words: "as I said"
    how_things_stand: Pattern = ""  # asks it in fixed words, which name nothing to search: "bring me up to date on"
    list_questions: Pattern = ""  # asks for many messages at once: their order, number or sum; names nothing to search
    changes: Pattern = ""  # asks what was before, what changed or what still holds
    pointers: Pattern = ""  # what only somebody who knows the past understands: "you suggested", "where do I live"
    persons: Pattern = ""  # pronouns for a person, and words that name one
    people: Pattern = ""
    things: Pattern = ""  # pronouns for a thing
    own: Pattern = ""  # pronouns of the person who speaks
    replied: Pattern = ""  # asks for what the assistant said: "you suggested"
    elsewhere: Pattern = ""  # names another conversation: "last time", "where we left off"
    places: Numbers = {}  # of a conversation, counted from the newest: "second last"=2
    vague_nouns: Words = frozenset()  # nouns that tell nothing beside a reference: "our last chat", "my project"
    denials: Pattern = ""  # the assistant has nothing to tell: "you have not told me"
    how_tos: Pattern = ""  # asks how to do something, or what one could do: anybody could ask it
    asks: Pattern = ""  # how a sentence begins that asks for something, or what stands in it
    refusals: Pattern = ""  # how a model begins that declines a task
    keep_out: Pattern = ""  # asks not to remember the message that says it
    forget: Pattern = ""  # asks to forget what was said before
    everything: Pattern = ""  # what a request to forget has that means all that is known
    addressed: Pattern = ""  # what a sentence has that speaks to the assistant: "you", "please"
    lasting: Pattern = ""  # says that something holds from now on
    standing: Pattern = ""  # how a sentence begins that asks for something of every later reply
    remember: Pattern = ""  # asks to remember what follows in the sentence

    cardinals: Numbers = {}  # in a fact, each must have been said
    numbers: Numbers = {}  # other words that say a number, or may
    number_joints: Words = frozenset()  # between the parts of a number: "a hundred and five"
    multipliers: Numbers = {}
    one: Pattern = ""  # what may stand for one
    negations: Pattern = ""
    later_negations: Pattern = ""  # what denies the words before it in its clause: "nicht", where it ends that
    denies_after_only: bool = False  # no negation stands before what it denies
    conjunctions: Pattern = ""  # where another clause begins, or ends: "but", "and", "because"
    negatives: Pattern = ""  # what says "not" without a negation: "hates", "vegan"
    corrects: Pattern = ""  # stands in a message that corrects something: "actually", "no longer", "moved"
    copulas: Words = frozenset()  # what stands between a thing and what it is: "is"
    # Nouns with a figure for a name: "invoice" 17. Not "page": who is on page 45 is on page 30 no more.
    numbered: Words = frozenset()
    # How a fact begins that states what a person has one of at a time: `home`, `name`, `age` and `birthday`.
    sole: Mapping[str, Pattern] = {}
    factors: Pattern = ""  # words that double a number or halve it: "twice"
    quarters: Pattern = ""  # parts of an hour: "half past"
    dates: Pattern = ""  # beside the names of months in `times`
    relative_times: Pattern = ""  # what a date may have been worked out from, beside the units in `times`

    types: Mapping[str, Words] = {}  # of conversations: words that tell one; see `memory.conversation_types`

    # Topics that a rule may keep out of memory: what they are called, and words that tell one ("*": any letters).
    topic_names: Mapping[str, Words] = {}
    topics: Mapping[str, Words] = {}

    times: Times | None = None

    @cached_property
    def listed_words(self) -> frozenset[str]:
        """Return the stop words, by the search library's own list where the file has none."""
        listed = stopwords_for_language(self.code) if self.spaced and self.stop_words is None else ()
        return frozenset(self.stop_words or listed)

    @cached_property
    def function_words(self) -> frozenset[str]:
        """Return the words that stand in texts about anything: stop words and idle ones."""
        return self.idle_words | self.listed_words

    @property
    def months(self) -> Mapping[str, int]:
        """Return the numbers of the months by their names."""
        return self.times.months if self.times else {}

    @cached_property
    def calendar_dates(self) -> str:
        """Return the pattern of dates: also a day with the name of a month, as "4. Dezember 2026" or "3 de mayo"."""
        names = self.months if self.spaced else ()
        months = "|".join(sorted({form for name in names for form in (name, name[:3])}, key=len, reverse=True))
        of_month = rf"\d{{1,2}}(?:\.|º|er)? (?:de )?(?:{months})\.?(?: (?:de )?\d{{4}})?" if months else ""
        return "|".join(filter(None, (self.dates, of_month)))

    @cached_property
    def calendar_words(self) -> str:
        """Return the pattern of words from which a date may have been worked out: also the names of days and more."""
        named = self.times.units if self.spaced and self.times else {}
        units = (name for name, unit in named.items() if unit not in ("minute", "hour"))
        return "|".join(filter(None, (self.relative_times, *units)))

    @cached_property
    def is_latin(self) -> bool:
        """True where it is written in Latin letters, so that a text in it may be ASCII."""
        return any(map(str.isascii, self.function_words))

    @cached_property
    def generic_verbs(self) -> frozenset[str]:
        """Return every form of the verbs of little meaning."""
        regular = {form for verb in self.regular_verbs for form in _forms(verb)}
        return (self.verb_forms | regular) - self.nouns_of_verbs


def tables(file: Path) -> dict[str, Any]:
    """Return the tables of a file in this form, with the shorthands in all of its texts written out."""
    data = tomllib.loads(file.read_text("utf-8").replace("\n  ", ""))
    shorthands: dict[str, str] = {}
    for name, text in data.pop("shorthands", {}).items():
        shorthands[name] = _expanded("|".join(text.strip().splitlines()), shorthands)
    written: dict[str, Any] = _expanded(data, shorthands)
    return written


def load(file: Path) -> Language:
    """Return the language of a file.  Raises ValueError that says what is wrong with it."""
    return Language.model_validate({"code": file.stem} | tables(file))


def _expanded(value: Any, shorthands: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in shorthands.items():
            value = value.replace(f"<{name}>", text)
        return value
    if isinstance(value, list):
        return [_expanded(item, shorthands) for item in value]
    return {key: _expanded(item, shorthands) for key, item in value.items()} if isinstance(value, dict) else value


def _forms(verb: str) -> Iterator[str]:
    """Return the regular forms of an English verb, and some that do not exist."""
    stem = verb[:-1] + "i" if verb.endswith("y") else verb.removesuffix("e")
    yield from (verb, verb + "s", verb + "ing", stem + "es", stem + "ed", stem + "ing")
    yield from (verb + verb[-1] + "ed", verb + verb[-1] + "ing")
