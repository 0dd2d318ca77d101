"""The times a message speaks of, as ranges to look for past messages in.

A small grammar recognises phrases (`phrases` for English, `words_zh` for Chinese) and resolves them
on the person's own calendar (`calendar`).  Recall looks back, so everything is read as past: "on Monday" is the
latest Monday before today, "in December" the latest December that has begun.  Plans were made in the past too: what
names the future only ("tomorrow", "next week", "I will call on Monday") says nothing about when it was said and gives
no range.  A phrase that is doubtful gives none either, since a wrong range hides what a search would have found.

Guarantee: no text raises; every range is aware, in UTC, not empty and has begun; ranges follow the order of the text
and their phrases do not overlap; the time taken grows with the length of the text and no faster.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from io import BytesIO
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory.recall.times import phrases, words_zh
from memory.recall.times.calendar import Calendar
from memory.recall.times.phrases import Phrase


@dataclass(frozen=True)
class TimeRange:
    """From `after` (inside) to `before` (outside), in UTC, and the `phrase` it was read from: `text[start:end]`.

    "since" ends at the present moment; "before" begins at `calendar.BEGINNING`.
    """

    after: datetime
    before: datetime
    phrase: str
    start: int
    end: int


def time_ranges(text: str, now: datetime, zone: tzinfo) -> list[TimeRange]:
    """The ranges `text` speaks of, said at `now` (aware, or ValueError) by a person who lives in `zone`."""
    if now.tzinfo is None:
        raise ValueError("now must be aware: a time without a zone is no instant.")
    try:
        calendar = Calendar(now, zone)
    except (ValueError, OverflowError):  # within a day of the calendar's ends
        return []
    ranges = []
    for phrase in _phrases(text, calendar):
        span = phrase.span
        if span is not None and span.after < min(span.before, calendar.now):
            words = text[phrase.start : phrase.end]
            ranges.append(TimeRange(span.after, span.before, words, phrase.start, phrase.end))
    return ranges


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that name ("Europe/Tallinn").  Raises ValueError, with a sentence, for an unknown one.

    UTC is always known; the others where the machine has a time zone database (or the tzdata package).
    """
    if name.upper() in ("UTC", "ETC/UTC"):
        return ZoneInfo.from_file(BytesIO(_UTC_FILE), key="UTC")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    try:
        ZoneInfo("Europe/London")
    except ZoneInfoNotFoundError:
        raise ValueError(
            f"This machine has no time zone database, so only UTC is known, not {name[:60]!r}: install tzdata."
        ) from None
    raise ValueError(f'There is no time zone called {name[:60]!r}: use a name like "Europe/Tallinn" or "UTC".')


# A TZif file (RFC 8536) with one type: UTC.
_UTC_FILE = b"TZif" + bytes(16) + struct.pack(">6l", 0, 0, 0, 0, 1, 4) + struct.pack(">lbb", 0, 0, 0) + b"UTC\0"

# One character for one, so that a place in the plain text is the same place in the text.
_PLAIN = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ０１２３４５６７８９‘’ʼ‐‑‒–—，：", "abcdefghijklmnopqrstuvwxyz0123456789'''-----,:"
)
# A phrase begins at a word, not within a number, a version, a path, a price or a name with marks in it.
_WITHIN = r"(?<![^\W\u3000-\u9fff])(?<![0-9][.,:/-])(?<![/\\$€£@#_.-])"
_ENGLISH_START = re.compile(f"{_WITHIN}(?:{phrases.START})")
_START = re.compile(f"{_WITHIN}(?:{phrases.FIRST})|{words_zh.START}")
_HAN = re.compile("[\u4e00-\u9fff]")  # of which every Chinese phrase has some


def _phrases(text: str, calendar: Calendar) -> Iterator[Phrase]:
    """Left to right; none inside another."""
    plain = text.translate(_PLAIN)
    chinese = not plain.isascii() and _HAN.search(plain) is not None
    if not chinese and not phrases.may_stand_in(plain):
        return
    begins = _START if chinese else _ENGLISH_START
    last: Phrase | None = None
    start = begins.search(plain)
    while start is not None:
        at = start.start()
        try:
            phrase = words_zh.read(plain, at, calendar) if chinese else None
            if phrase is None and (not chinese or _ENGLISH_START.match(plain, at)):
                phrase = phrases.read(plain, text, at, calendar, last)
        except (ValueError, OverflowError):  # a date the calendar doesn't have
            phrase = None
        if phrase is not None:
            yield phrase
            last = phrase
        start = begins.search(plain, phrase.end if phrase is not None else at + 1)
