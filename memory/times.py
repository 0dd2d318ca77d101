"""The times a message speaks of, as ranges to look for past messages in.

A small grammar recognises phrases (`calendar_words` for English, `calendar_words_zh` for Chinese) and resolves them on
the person's own calendar (`local_calendar`).  Recall looks back, so everything is read as past: "on Monday" is the
latest Monday before today, "in December" the latest December that has begun.  Plans were made in the past too: what
names the future only ("tomorrow", "next week", "I will call on Monday") says nothing about when it was said and gives
no range.  A phrase that is doubtful gives none either, since a wrong range hides what a search would have found.

Guarantee: no text raises; every range is aware, in UTC, not empty and has begun; ranges follow the order of the text
and their phrases do not overlap; the time taken grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from io import BytesIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory import calendar_words_zh
from memory.calendar_words import ALSO_WORDS, NOUNS, Noun, Said, compiled, part_of
from memory.local_calendar import Calendar, Span


@dataclass(frozen=True)
class TimeRange:
    """From `after` (inside) to `before` (outside), in UTC, and the `phrase` it was read from: `text[start:end]`."""

    after: datetime
    before: datetime
    phrase: str
    start: int
    end: int


def time_ranges(text: str, now: datetime, zone: tzinfo) -> list[TimeRange]:
    """The ranges `text` speaks of, said at `now` (aware) by a person who lives in `zone`."""
    if now.tzinfo is None:
        raise ValueError("now must be aware: a time without a zone is no instant.")
    try:
        calendar = Calendar(now, zone)
    except (ValueError, OverflowError):  # at the very ends of the calendar
        return []
    plain = text.translate(_PLAIN)
    ranges = []
    for phrase in _phrases(plain, text, calendar):
        span = phrase.span
        if span is not None and span.after < min(span.before, calendar.now):
            words = text[phrase.start : phrase.end]
            ranges.append(TimeRange(span.after, span.before, words, phrase.start, phrase.end))
    return ranges


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name ("Europe/Tallinn").  Raises ValueError, with a sentence, for an unknown one.

    UTC is always known; the others are where the machine has a time zone database (or the tzdata package).
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        if name.upper() in ("UTC", "ETC/UTC"):
            return ZoneInfo.from_file(BytesIO(_UTC_FILE), key="UTC")
    try:
        ZoneInfo("Europe/London")
    except ZoneInfoNotFoundError:
        raise ValueError(
            f"This machine has no time zone database, so only UTC is known, not {name[:60]!r}: install tzdata."
        ) from None
    raise ValueError(f'There is no time zone called {name[:60]!r}: use a name like "Europe/Tallinn" or "UTC".')


# A TZif file (RFC 8536) with one type: UTC.
_UTC_FILE = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 0, 0, 0) + b"UTC\0"

# One character for one, so that places in the plain text are places in the text.
_PLAIN = {at: chr(at).lower() for at in range(ord("A"), ord("Z") + 1)}
_PLAIN |= {0xFF10 + digit: str(digit) for digit in range(10)}
_PLAIN |= str.maketrans("‘’ʼ‐‑‒–—~～至，：", "'''------到到到,:")

_CLAUSE = 80  # characters before and after a phrase in which its verb is looked for


@dataclass(frozen=True)
class _Read:
    """A noun or a phrase where it stands; without a span it is known to say nothing about the past."""

    start: int
    end: int
    span: Span | None
    noun: Noun | None = None
    plan: bool = False


def _phrases(plain: str, text: str, calendar: Calendar) -> Iterator[_Read]:
    """Left to right, the longest reading at each place, none inside another."""
    at, listed = 0, None
    while (start := _START.search(plain, at)) is not None:
        at = start.start()
        if plain[at] > "z":
            read = calendar_words_zh.read(plain, at, calendar)
            phrase = _Read(at, *read) if read else None
        else:
            phrase = _english(plain, text, at, calendar, listed)
        if phrase is None:
            at = max(_WORD_END.match(plain, at).end(), at + 1)  # type: ignore[union-attr]
            continue
        yield phrase
        at = phrase.end
        comma = _AND.match(plain, at)
        listed = (comma.end(), phrase.noun) if comma and phrase.noun and phrase.span else None


_START = re.compile(rf"(?<![^\W\u3000-\u9fff])(?<![0-9][.,:/-])(?<![/$€£@#_-])[a-z0-9]|{calendar_words_zh.START}")
_WORD_END = re.compile(r"[a-z0-9]*")
_AND = re.compile(r",?\s{1,3}(?:and|or)\s{1,3}(?:on\s{1,3}|in\s{1,3})?")


def _english(plain: str, text: str, at: int, calendar: Calendar, listed: tuple[int, Noun] | None) -> _Read | None:
    read = _opened(plain, text, at, calendar) or _timed(plain, text, at, calendar)
    read = read or _placed(plain, text, at, calendar, listed)
    if read is None:
        return None
    before = _LAST_WORD.search(plain, max(at - 24, 0), at)
    if before and (before[1] in _NEVER or (read.plan and before[1] in _PLANNED)):
        return _Read(at, read.end, None)
    if read.plan and _tense(plain, at, read.end) == "future":
        return _Read(at, read.end, None)
    return read


_LAST_WORD = re.compile(r"([a-z']{1,12})\W{1,3}\Z")
_NEVER = frozenset("every each next coming upcoming later any most my his her our their your its whose per".split())
_PLANNED = frozenset("by due is are be it's deadline than other the a an for".split())

# -- phrases around a noun


def _opened(plain: str, text: str, at: int, calendar: Calendar) -> _Read | None:
    """ "since May", "before Christmas", "the week before Easter", "from Monday to Wednesday" """
    opening = _OPENING.match(plain, at)
    if opening is None:
        return None
    first = _noun(plain, text, opening.end(), calendar)
    if first is None or first.span is None:
        return None
    word = opening["word"]
    if word in ("from", "between"):
        return _between(plain, text, at, first, calendar)
    if opening["unit"]:
        span = _beside(calendar, opening["unit"], first.span, opening["side"])
    else:
        span = _OPEN_ENDS[word.split()[-1]](calendar, first.span)
    plan = first.plan and not word.endswith(("since", "as of"))
    return _Read(at, first.end, span, None, plan)


_OPEN_ENDS: dict[str, Callable[[Calendar, Span], Span | None]] = {
    "since": Calendar.since,
    "of": Calendar.since,
    "after": Calendar.following,
    "before": Calendar.preceding,
    "to": Calendar.preceding,
    "until": Calendar.until,
    "till": Calendar.until,
}
_OPENING = compiled(
    r"(?P<word>(?:ever )?since|as of|after|before|prior to|(?:up )?until|till|between|from|"
    r"the (?P<unit>day|week|month|weekend) (?P<side>before|after)) ?\b"
)
_TO = compiled(r",? ?(?:to|until|till|through|and|-) ?(?:the )?")
_ONWARDS = compiled(r" (?:on|onwards?)(?! )|[ -](?:onwards?)")


def _beside(calendar: Calendar, unit: str, span: Span, side: str) -> Span | None:
    then = Calendar(span.after if side == "before" else span.before, calendar.zone)
    if unit == "weekend":
        return then.weekend(1) if side == "before" else None
    days = {"day": 1, "week": 7, "month": 30}[unit]
    first, end = calendar.bounds(span)
    edge = first.toordinal() - days if side == "before" else end.toordinal()
    return calendar.days(date.fromordinal(edge), date.fromordinal(edge + days))


def _between(plain: str, text: str, at: int, first: _Read, calendar: Calendar) -> _Read | None:
    onwards = _ONWARDS.match(plain, first.end)
    if onwards and first.span:
        return _Read(at, onwards.end(), calendar.since(first.span))
    to = _TO.match(plain, first.end)
    last = _noun(plain, text, to.end(), calendar) if to else None
    if last is None or last.span is None:
        return None
    begun = _noun(plain, text, first.start, calendar.at_end_of(last.span))
    if begun is None or begun.span is None or begun.span.after >= last.span.before:
        return None
    return _Read(at, last.end, Span(begun.span.after, last.span.before), None, first.plan and last.plan)


def _timed(plain: str, text: str, at: int, calendar: Calendar) -> _Read | None:
    """ "at 3 pm yesterday", "on the morning of 12 May" """
    said = _CLOCK_FIRST.match(plain, at) or _PART_FIRST.match(plain, at)
    day = _noun(plain, text, said.end(), calendar) if said else None
    date = calendar.single_day(day.span) if day and day.span else None
    if said is None or day is None or date is None:
        return None
    return _Read(at, day.end, _time_of_day(calendar, date, said.groupdict("")), None, day.plan)


def _time_of_day(calendar: Calendar, day: date, said: Said) -> Span:
    """Hours from 1 to 6 without am or pm are of the afternoon: fewer people chat at night."""
    if said.get("part"):
        return calendar.part(day, part_of(said["part"]))
    if said.get("named"):
        return calendar.clock(day, 12 if said["named"] == "noon" else 0, 0)
    hour, half = int(said["hour"]), said["half"].replace(".", "")
    if half in ("am", "pm"):
        if not 1 <= hour <= 12:
            raise ValueError("No such hour.")
        hour = hour % 12 + 12 * (half == "pm")
    elif 1 <= hour <= 6 and not said["hour"].startswith("0"):
        hour += 12
    return calendar.clock(day, hour, int(said["minute"] or 0))


_HOUR = r"(?P<hour>[01]?[0-9]|2[0-3])"
_MINUTE = r"[:.](?P<minute>[0-5][0-9])"
_HALF = r"(?P<half>am|pm|a\.m\.|p\.m\.|o'clock)"
_AT_CLOCK = rf"(?:at|around|about|@) (?:{_HOUR}(?:{_MINUTE})?(?: ?{_HALF})?|(?P<named>noon|midnight))"
_CLOCK_FIRST = compiled(rf"{_AT_CLOCK},? (?:on )?(?=\w)".replace("(?=", "(?:(?=") + ")")
_PART_FIRST = compiled(r"(?:(?:on|in|during) )?the <part> (?:of|on) (?:(?=\w))")
_SUFFIX = compiled(rf",? (?:(?:in the |at )?<part>|{_AT_CLOCK})")
