"""English phrases around the names of `words`: "since May", "at 3 pm yesterday", "from Monday to Wednesday".

Also what tells a time from a word that looks like one: whether "may" is the month, whether "on Monday" lies ahead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

from memory.recall.times.calendar import DAY, Calendar, Span
from memory.recall.times.words import (
    ALSO_WORDS,
    COUNTS,
    HOLIDAYS,
    MONTHS,
    NOUNS,
    SLOTS,
    WEEKDAYS,
    Noun,
    Said,
    compiled,
    part_of,
)


@dataclass(frozen=True)
class Phrase:
    """A phrase where it stands.  Without a span it is known to say nothing about the past; `plan`: undated, so that
    it may as well lie ahead."""

    start: int
    end: int
    span: Span | None
    plan: bool = False
    noun: Noun | None = None


def read(plain: str, text: str, at: int, calendar: Calendar, last: Phrase | None) -> Phrase | None:
    """The phrase that begins at `at`, if one does.  `plain` is `text` in lower case, `last` the phrase before."""
    phrase = _opened(plain, text, at, calendar) or _timed(plain, text, at, calendar)
    phrase = phrase or _placed(plain, text, at, calendar, last)
    if phrase is None:
        return None
    before = _WORD_BEFORE.search(plain, max(at - 24, 0), at)
    word = before[1] if before else ""
    if word in _NEVER or (phrase.plan and (word in _AHEAD or _tense(plain, at, phrase.end) == "future")):
        return replace(phrase, span=None)
    return phrase


_WORD_BEFORE = re.compile(r"([a-z']{1,12})\W{1,3}\Z")
_WHOSE = frozenset(["my", "his", "her", "our", "their", "your", "its", "whose"])
_NEVER = _WHOSE | {"every", "each", "next", "coming", "upcoming", "later", "any", "most", "per"}
_AHEAD = frozenset(["by", "due", "is", "are", "be", "it's", "that's", "deadline", "than"])

# -- openings: since, before, after, from ... to


def _opened(plain: str, text: str, at: int, calendar: Calendar) -> Phrase | None:
    opening = _OPENING.match(plain, at)
    if opening is None:
        return None
    first = _timed(plain, text, opening.end(), calendar) or _noun(plain, text, opening.end(), calendar)
    if first is None or first.span is None:
        return None
    word = opening["word"]
    if word in ("from", "between"):
        return _between(plain, text, at, first, calendar)
    span = _OPEN_ENDS[word](calendar, first.span) if word else _beside(calendar, opening["unit"], first.span, opening)
    if word == "by" and first.plan:
        return Phrase(at, first.end, None)
    return Phrase(at, first.end, span, first.plan and _OPEN_ENDS.get(word) is not Calendar.since)


_OPENING = compiled(
    r"(?:(?:ever )?(?P<word>since|after|before|prior to|until|till|by|between|from|the week of)|"
    r"the (?P<unit>day|week|month|<weekday>) (?P<side>before|after)) ",
    end="",
)
_OPEN_ENDS: dict[str, Callable[[Calendar, Span], Span | None]] = {
    "the week of": lambda calendar, span: Calendar(span.after, calendar.zone).week(),
    "since": Calendar.since,
    "after": Calendar.following,
    "before": Calendar.preceding,
    "prior to": Calendar.preceding,
    "until": Calendar.until,
    "till": Calendar.until,
    "by": Calendar.until,
}


def _beside(calendar: Calendar, unit: str, span: Span, opening: re.Match[str]) -> Span:
    """ "the week before Easter": so many days beside the span, or the nearest such weekday."""
    first, end = calendar.bounds(span)
    before = opening["side"] == "before"
    if opening["weekday"]:
        wanted = WEEKDAYS[opening["weekday"]]
        if before:
            return calendar.day(first - DAY * ((first.weekday() - wanted - 1) % 7 + 1))
        return calendar.day(end + DAY * ((wanted - end.weekday()) % 7))
    days = DAY * {"day": 1, "week": 7, "month": 30}[unit]
    return calendar.days(first - days, first) if before else calendar.days(end, end + days)


def _between(plain: str, text: str, at: int, first: Phrase, calendar: Calendar) -> Phrase | None:
    """The end is read first; the beginning is the latest one before it."""
    onwards = _ONWARDS.match(plain, first.end)
    if onwards and first.span:
        return Phrase(at, onwards.end(), calendar.since(first.span))
    to = _TO.match(plain, first.end)
    last = _noun(plain, text, to.end(), calendar) if to else None
    if last is None or last.span is None:
        return None
    begun = _noun(plain, text, first.start, calendar.at_end_of(last.span))
    if begun is None or begun.span is None or begun.span.after >= last.span.before:
        return None
    return Phrase(at, last.end, Span(begun.span.after, last.span.before), first.plan and last.plan)


_TO = compiled(r"(?:,? (?:up )?(?:to|until|till|through|and|-) | ?- ?)", end="")
_ONWARDS = compiled(r"(?: (?:on|onwards?)| and (?:later|after))")

# -- times of a day


def _timed(plain: str, text: str, at: int, calendar: Calendar) -> Phrase | None:
    said = _TIME_FIRST.match(plain, at) or _CLOCK_FIRST.match(plain, at)
    noun = _noun(plain, text, said.end(), calendar) if said else None
    day = calendar.single_day(noun.span) if noun and noun.span else None
    if said is None or noun is None or day is None:
        return None
    return replace(noun, start=at, span=_time_of_day(calendar, day, said.groupdict("")))


def _time_of_day(calendar: Calendar, day: date, said: Said) -> Span:
    """Hours from 1 to 6 with neither am nor pm are the afternoon's: people talk of those more."""
    if said["part"]:
        return calendar.part(day, part_of(said["part"]))
    if said["named"]:
        return calendar.clock(day, 12 if said["named"] == "noon" else 0, 0)
    written, half = said["hour"], said["half"].replace(".", "")
    hour = int(written)
    if half in ("am", "pm"):
        if not 1 <= hour <= 12:
            raise ValueError(f"No clock shows {written} {half}.")
        hour = hour % 12 + 12 * (half == "pm")
    elif 1 <= hour <= 6 and not written.startswith("0"):
        hour += 12
    return calendar.clock(day, hour, int(said["minute"] or 0))


_HOUR = r"[01]?[0-9]|2[0-3]"
_TIME = (
    rf"(?:(?P<hour>{_HOUR})(?::(?P<minute>[0-5][0-9]))?(?: ?(?P<half>am|pm|a\.m\.|p\.m\.|o'clock))?"
    r"|(?P<named>noon|midnight))(?![0-9:])"
)
_TIME_FIRST = compiled(
    rf"(?:(?:at|around|about) {_TIME},? (?:on )?|(?:(?:in|on|during) )?the <part> (?:of|on) )", end=""
)
_CLOCK_FIRST = compiled(
    rf"(?P<part>)(?P<named>)(?P<hour>{_HOUR})(?=:| ?[ap])(?::(?P<minute>[0-5][0-9]))?"
    r"(?: ?(?P<half>am|pm|a\.m\.|p\.m\.))?,? (?:on )?",
    end="",
)
_TIME_LAST = compiled(rf",? (?:(?:in the |at )?<part>|(?:at|around|about) {_TIME})")

# -- names with what belongs to them


def _placed(plain: str, text: str, at: int, calendar: Calendar, last: Phrase | None) -> Phrase | None:
    """A name that stands alone, or after its preposition, or in a list after one that did ("in May and June")."""
    place = _PREPOSITION.match(plain, at)
    listed = last.noun if last and last.noun and _AND.fullmatch(plain, last.end, at) else None
    start = place.end() if place else at
    phrase = _noun(plain, text, start, calendar, place["word"] if place else "", listed)
    if phrase is None or (place and place["word"] in ("on", "at") and _ADVERB.match(plain, start)):
        return phrase  # "what is going on lately": the preposition is not its own
    return replace(phrase, start=at)


_ADVERB = compiled(r"(?:recently|lately|yesterday|today|tonight|last (?:night|week|month|year|weekend))")
_PREPOSITION = compiled(
    r"(?:sometime |back )?(?P<word>in|on|at|during|over|throughout|around|from|within|between) ", end=""
)
_AND = compiled(r"(?:,|,? (?:and|or)) ", end="")


def _noun(
    plain: str, text: str, at: int, calendar: Calendar, preposition: str | None = None, listed: Noun | None = None
) -> Phrase | None:
    """A name, a part of what it names ("late May") or a time of the day it names ("Monday morning").

    `preposition` is the one before it, "" where there is none; None where the context makes any name a time.
    """
    edge = _EDGE.match(plain, at)
    inner = _name(plain, text, edge.end(), calendar, None, None) if edge else None
    if edge and inner and inner.span:
        span = calendar.slice(inner.span, _EDGES[edge["edge"].split()[0]])
        return replace(inner, start=at, span=span) if span else None
    name = _name(plain, text, at, calendar, preposition, listed)
    day = calendar.single_day(name.span) if name and name.span else None
    time = _TIME_LAST.match(plain, name.end) if name and day else None
    if name and day and time:
        return replace(name, end=time.end(), span=_time_of_day(calendar, day, time.groupdict("")))
    return name


_EDGES = {"early": "early", "beginning": "early", "start": "early", "mid": "mid", "middle": "mid"}
_EDGES |= {"late": "late", "end": "late", "first": "first", "second": "second"}
_EDGE = compiled(
    r"(?:the )?(?P<edge>early|mid|late|beginning of|start of|middle of|end of|first half of|second half of)"
    r"(?:-| )(?:in )?",
    end="",
)


def _name(
    plain: str, text: str, at: int, calendar: Calendar, preposition: str | None, listed: Noun | None
) -> Phrase | None:
    """The longest name that begins here and stands where names of its kind do."""
    best: tuple[Noun, re.Match[str]] | None = None
    for noun in NOUNS:
        found = noun.pattern.match(plain, at)
        if found is None or (best and found.end() <= best[1].end()):
            continue
        said = found.groupdict("")
        dated = bool(said.get("which") or said.get("year") or said.get("of"))
        if not (dated or preposition is None or not noun.after or noun is listed or preposition in noun.after):
            if preposition or not noun.bare:
                continue
            if not _TIME_LAST.match(plain, found.end()) and _tense(plain, at, found.end()) != "past":
                continue
        if not _is_word(plain, text, found, preposition):
            best = noun, found
    if best is None:
        return None
    noun, found = best
    said = found.groupdict("")
    plan = noun.plan and not (said.get("which") or said.get("year"))
    try:
        span = noun.resolve(calendar, said)
    except (ValueError, OverflowError):  # a date the calendar doesn't have, and no part of it is meant either
        span = None
    return Phrase(at, found.end(), span, plan, noun)


# -- words that only look like times


def _is_word(plain: str, text: str, found: re.Match[str], preposition: str | None) -> bool:
    """Whether "may" is a verb, "sun" a star, "June" somebody, as far as the words beside it tell."""
    said, start = found.groupdict(""), found.start()
    month, dated = said.get("month", ""), bool(said.get("year") or said.get("day"))
    if said.get("weekday") in ALSO_WORDS:
        return text[found.start("weekday")].islower()
    if not month.isalpha():
        return False
    if not dated:
        if month in ALSO_WORDS and text[found.start("month")].islower():
            return True
        if month in _NAMES and plain.startswith("'s", found.end()):
            return True
        if month in _NAMES and preposition == "from" and not _TALK_FROM.search(plain, max(start - 24, 0), start):
            return True
        if said.get("which") and plain.endswith("the ", 0, start):  # "the last may"
            return True
        if _NO_MONTH.match(plain, found.start("month")):
            return True
    if month in ("may", "march", "mar") and not said.get("year") and text[found.start("month")].islower():
        return preposition not in ("in", "during", "throughout", "on") and not _ENDS.match(plain, found.end())
    return False


_NAMES = frozenset(["april", "may", "june", "august"])
_TALK_FROM = re.compile(r"(?:chats?|conversations?|talks?|discussions?|sessions?|notes?|meetings?)\s{1,3}from\s{1,3}\Z")
_NO_MONTH = compiled(r"(?:march (?:time|step|order)|august (?:company|body|presence))")
_ENDS = re.compile(
    r"\s{0,3}(?:\Z|[^\w\s]|(?:about|and|at|during|for|from|in|of|on|or|through|to|until|we|when|with)\b)"
)


def _tense(plain: str, start: int, end: int) -> str:
    """ "past" or "future", by the last verb before the phrase or else the first after it; "" when neither tells."""
    before = _SENTENCE.split(plain[max(start - _CLAUSE, 0) : start])[-1]
    verbs = list(_VERBS.finditer(before))
    after = None if verbs else _VERBS.search(_SENTENCE.split(plain[end : end + _CLAUSE], maxsplit=1)[0])
    verb = verbs[-1] if verbs else after
    return ("past" if verb["past"] else "future") if verb else ""


_CLAUSE = 80  # characters on either side in which the verb is looked for
_SENTENCE = re.compile(r"[.!?;\n]\s|\n")
_VERBS = re.compile(
    r"\b(?:(?:will(?! (?:said|told|asked|wrote))|won't|shall|gonna|going to|let's|let us|need|have to|has to|must|"
    r"want to|"
    r"remind|plan to|planning|should we|can we|could we|book|schedule|tomorrow|next|deadline|due)"
    r"|(?P<past>did|was|were|had|said|told|went|got|made|met|saw|wrote|came|took|gave|thought|bought|sent|found|left|"
    r"began|spoke|ate|ran|read|chose|kept|i've|we've|you've|"
    r"(?!(?:need|indeed|feed|speed|proceed|exceed|succeed)\b)[a-z]{2,20}ed))\b|'ll\b"
)


# -- where a phrase may begin

_FIRST_WORDS = """
    a about after an around at back before between beginning by couple day during early earlier end ever few first
    from half in just last late lately mid middle moments past prior q[1-4] recently second several since sometime
    start the these this those till throughout today tonight until up within yesterday on over
"""
FIRST = "[0-9]|(?:" + "|".join([*_FIRST_WORDS.split(), *MONTHS, *WEEKDAYS, SLOTS["holiday"], SLOTS["season"]])
FIRST += "|" + "|".join(COUNTS) + r")(?![a-z])"
"""The words that an English phrase begins with."""


def _any(*patterns: re.Pattern[str]) -> str:
    """Where one of these matches, this does; it may where none does."""
    sources = (pattern.pattern.replace("(?P=s)", "[-./]") for pattern in patterns)
    return "(?:" + "|".join(re.sub(r"\(\?P<\w+>", "(?:", source) for source in sources) + ")"


START = f"(?={FIRST}){_any(_OPENING, _PREPOSITION)}?{_any(_TIME_FIRST, _CLOCK_FIRST)}?{_any(_EDGE)}?" + _any(
    *(noun.pattern for noun in NOUNS)
)
"""What an English phrase begins with, to the end of its first name: most of the words that may begin one do not, and
this knows it at one go.  That it matches does not say yet that a phrase stands there."""


# -- what a text without any phrase lacks

_UNITS = SLOTS["unit"].split("|")
_LETTERS = re.compile("[a-z]+")
_NAMING = frozenset(
    [
        *("today", "tonight", "yesterday", "now", "ago", "recently", "lately", *MONTHS, *WEEKDAYS),
        *(*_UNITS, *(f"{unit}s" for unit in _UNITS), *SLOTS["part"].split("|"), *SLOTS["season"].split("|")),
        *(max(_LETTERS.findall(holiday), key=len) for holiday in HOLIDAYS),
    ]
)
_IN_DIGITS = re.compile(r"[0-9](?:[-./][0-9]|[snrt])|(?:19|20)[0-9]{2}|q[1-4]")  # 5/12, 12th, 2023, q2


def may_stand_in(plain: str) -> bool:
    """Whether an English phrase may stand in a text: each has one of these words, or names a date in digits.  Most
    texts have neither, and a look at their words takes a fifth of the search for `START`."""
    return not _NAMING.isdisjoint(_LETTERS.findall(plain)) or _IN_DIGITS.search(plain) is not None
