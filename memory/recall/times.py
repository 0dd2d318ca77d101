"""Times that a message names, as ranges to look for past messages in.

One grammar over the phrases of `memory.languages`.  Recall looks back, so everything is read as past: "on Monday" is
the latest Monday before today, "in December" the latest December that has begun.  Plans ("next week", "I will call on
Monday") and phrases that are doubtful give no range, since a wrong range hides what a search would have found.

Days, weeks and months are counted on the person's calendar and only then turned into UTC, so a day is as long as it was
where they live.

Guarantee: no text raises; every range is aware, in UTC, not empty and has begun; ranges follow the order of the text
and do not overlap; the time taken grows with the length of the text and no faster.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Set
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import NamedTuple

from memory.languages import ENGLISH, LANGUAGES, TextPattern, table
from memory.languages.language import Language, Times
from search_index.han import SIMPLIFIED, in_both_scripts

READ_CHARS = 2000  # of a message; text that somebody pastes after that is not a question
_BEFORE = 32  # characters before a name in which "since" or "every" may stand
_CLAUSE = 80  # characters on either side in which the verb is looked for


class TimeRange(NamedTuple):
    """From `after` (inside) to `before` (outside), in UTC, and the `phrase` it was read from: `text[start:end]`."""

    after: datetime
    before: datetime
    phrase: str
    start: int
    end: int


def time_ranges(text: str, now: datetime, zone: tzinfo) -> list[TimeRange]:
    """Return the ranges `text` speaks of, said at `now` (aware) by a person who lives in `zone`."""
    plain = text[:READ_CHARS].translate(_PLAIN)
    ranges: list[TimeRange] = []
    words = set(_WORD.findall(plain.lower()))
    has_date = _DATE.search(plain) is not None
    grammars = [grammar for grammar in _GRAMMARS if grammar.may_read(words, has_date=has_date)]
    for grammar in grammars:
        for start, end, span in grammar.read(plain, now, zone):
            apart = all(end <= other.start or other.end <= start for other in ranges)
            if apart and span.after < min(span.before, now):
                ranges.append(TimeRange(*span, text[start:end], start, end))
    return sorted(ranges, key=lambda time_range: time_range.start)


# -- the calendar

DAY = timedelta(days=1)
_PARTS = {"morning": (4, 12), "afternoon": (12, 18), "night": (18, 30)}  # hours of a local day
_NIGHT_ENDS = 4  # before this hour "tonight" is still that of the day before
_CLOCK = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_SLACK = {"minute": timedelta(minutes=5), "hour": timedelta(minutes=30)}
_DAYS = {"day": 1, "week": 7, "weekend": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_REACH = {"day": 0, "week": 3, "month": 15, "quarter": 45, "year": 182}  # days that "two weeks ago" means either way


class Span(NamedTuple):
    """Half-open: `after` is inside, `before` is not.  Aware, in UTC."""

    after: datetime
    before: datetime


def first_of(year: int, month: int) -> date:
    """Return the first of a month; months below 1 and above 12 run into other years."""
    years, month = divmod(month - 1, 12)
    return date(year + years, month + 1, 1)


class Calendar:
    """Meaning of phrases at one instant, in one time zone.

    A date that is not there (30 February, year 10000) raises ValueError or OverflowError.
    """

    def __init__(self, now: datetime, zone: tzinfo) -> None:
        local = now.astimezone(zone)
        self.now = now.astimezone(UTC)
        self.zone = zone
        self.today = local.date()
        self._waking_day = self.today - DAY if local.hour < _NIGHT_ENDS else self.today

    def days(self, first: date, end: date) -> Span:
        return Span(self._moment(first), self._moment(end))

    def months(self, year: int, month: int, count: int = 1) -> Span:
        return self.days(first_of(year, month), first_of(year, month + count))

    def period(self, unit: str, shift: int) -> Span:
        """Return the present day, part of a day, week, weekend, month, quarter or year, moved by `shift` of them."""
        if unit in _PARTS:
            start, end = _PARTS[unit]
            day = self._waking_day + DAY * shift
            return Span(self._moment(day, start), self._moment(day, end))
        if unit in _MONTHS:
            count = _MONTHS[unit]
            month = (self.today.month - 1) // count * count + 1
            return self.months(self.today.year, month + count * shift, count)
        if unit == "day":
            return self.days(self.today + DAY * shift, self.today + DAY * (shift + 1))
        monday = self.today + DAY * (7 * shift - self.today.weekday())
        return self.days(monday + 5 * DAY if unit == "weekend" else monday, monday + 7 * DAY)

    def weekday(self, weekday: int, week: int | None) -> Span:
        """Return that day of the present week, moved by as many weeks; None: the latest such day before today."""
        days = weekday - self.today.weekday()
        if week is None:
            week = -1 if days >= 0 else 0
        return self.period("day", days + 7 * week)

    def yearly(self, make: Callable[[int], Span], *, over: bool) -> Span | None:
        """`make(year)` of the latest year in which that has begun, or is `over`."""
        for year in range(self.today.year, self.today.year - 9, -1):  # leap days can be eight years apart
            try:
                span = make(year)
            except ValueError:
                continue
            if (span.before if over else span.after) <= self.now:
                return span
        return None

    def ago(self, least: int, most: int, unit: str) -> Span:
        """Return the span around a time so long ago.

        Of an exact count it is one unit around the day, of an inexact one everything that the words may mean.
        """
        if unit in _CLOCK:
            slack = max(_SLACK[unit], _CLOCK[unit] * least / 4)
            return Span(self.now - _CLOCK[unit] * most - slack, min(self.now - _CLOCK[unit] * least + slack, self.now))
        if least < most:
            return self.days(self._back(most, unit), self._back(least, unit) + DAY)
        if unit == "weekend":
            return self.period(unit, -most)
        day = self._back(most, unit)
        return self.days(day - DAY * _REACH[unit], day + DAY * (_REACH[unit] + 1))

    def lately(self, most: int, unit: str) -> Span:
        """Return the span from so long ago until now; days count from their midnight."""
        if unit in _CLOCK:
            return Span(self.now - _CLOCK[unit] * most, self.now)
        return Span(self._moment(self._back(most, unit)), self.now)

    def _moment(self, day: date, hour: int = 0) -> datetime:
        """Return a local time as an instant; hours from 24 on belong to the next day."""
        local = datetime.combine(day + DAY * (hour // 24), time(hour % 24), tzinfo=self.zone)
        return local.astimezone(UTC)

    def _back(self, count: int, unit: str) -> date:
        if unit in _DAYS:
            return self.today - DAY * count * _DAYS[unit]
        first = first_of(self.today.year, self.today.month - count * _MONTHS[unit])
        return first.replace(day=min(self.today.day, monthrange(first.year, first.month)[1]))


# -- the grammar

# One character for one, so that a place in the plain text is the same place in the text.
_PLAIN = str.maketrans("０１２３４５６７８９‘’ʼ‐‑‒–—，：", "0123456789'''-----,:")
# A name is no part of a number, a version, a path, a price or a name with marks in it.
_NO_NUMBER = r"(?<![0-9.])"
_ENDS = r"(?![^\W\u3000-\u9fff])"
_APART = r"(?<![^\W\u3000-\u9fff])(?<![0-9][.,:/-])(?<![/\\$€£@#_.-])"
_DIGITS = (
    r"(?P<year>[0-9]{4})[-/](?P<month>[0-9]{1,2})[-/](?P<day>[0-9]{1,2})(?![.,:/%-]?[0-9])",
    r"(?P<day>[0-9]{1,2})[./-](?P<month>[0-9]{1,2})[./-](?P<year>(?:19|20)[0-9]{2})(?![.,:/%-]?[0-9])",
)
_SENTENCE = re.compile(r"[.!?;]\s|\n")
_WORD = re.compile(r"\w+")
_DATE = re.compile(r"(?:19|20)[0-9]{2}(?![0-9])|[0-9][./-][0-9]")
_ENGLISH_UNITS = {
    f"{unit}{end}"
    for unit in table(lambda one: one.times.units if one.times and one.code == "en" else {})
    for end in ("", "s")
}
_AGO = re.compile(r"\(\?P<ago>(\w+)\)")
_UNDATED = frozenset(("shift", "year", "ago", "past", "named"))  # without any of these a phrase may be a plan
Said = Mapping[str, str]
"""Matches of the groups of a phrase, in lower case, without the groups that took no part."""


class _Grammar:
    """Phrases of one language."""

    def __init__(self, language: Language, times: Times) -> None:
        self._times = times
        self._spaced = language.spaced
        self._script = re.compile(times.script)
        self._code = language.code
        phrases = (*_DIGITS, *times.phrases) if language.code == "en" else times.phrases
        apart, end = (_APART, _ENDS) if language.spaced else (_NO_NUMBER, "")
        either = "|".join(self._numbered(at, phrase) for at, phrase in enumerate(phrases))
        self._name = TextPattern(_spaced(f"{apart}(?:{either}){end}"))
        never_after, verbs = rf"\b(?:{times.never_after})\W{{1,3}}\Z", rf"\b(?:{times.verbs})\b"
        self._never_after = re.compile(_spaced(never_after), re.IGNORECASE) if times.never_after else None
        self._verbs = re.compile(_spaced(verbs if language.spaced else times.verbs), re.IGNORECASE)
        # Each phrase has a year in digits, a date in digits, or one of these words, of whose parts one tells it.
        keys = {*times.named, *times.units, *times.years, *times.months, *times.weekdays, *times.periods}
        words = {max(_WORD.findall(key.lower()), key=len) for key in keys}
        words |= {f"{word}s" for word in words}
        if language.code != "en":  # "week" is Dutch too, beside a word that only Dutch has
            words = words.difference(_ENGLISH_UNITS) | times.shifts.keys() | {*_AGO.findall(" ".join(phrases))}
        self._hints = words

    def may_read(self, words: Set[str], *, has_date: bool) -> bool:
        """Return whether one of its phrases may stand in a text with these words, or with a date or year in digits."""
        if not self._spaced:
            return any(map(self._script.search, words))
        return has_date or not self._hints.isdisjoint(words)

    def read(self, text: str, now: datetime, zone: tzinfo) -> Iterator[tuple[int, int, Span]]:
        """Return the spans a text speaks of, and where their phrases stand in it."""
        matches = list(self._name.finditer(text))
        if matches and self._code != "en":
            written_in = ENGLISH.likely_languages(text) or ["en"]
            if {self._code, "en"}.isdisjoint(written_in):  # "hier" is yesterday in French, and here in German
                return
        for match in matches:
            said = {name.rpartition("_")[0]: text for name, text in match.groupdict().items() if text is not None}
            groups = {name: " ".join(text.lower().translate(SIMPLIFIED).split()) for name, text in said.items()}
            if self._never_after and self._never_after.search(text, max(match.start() - _BEFORE, 0), match.start()):
                continue
            if _UNDATED.isdisjoint(groups) and self._lies_ahead(text, *match.span()):
                continue
            try:
                span = self._span(Calendar(now, zone), groups)
            except (ValueError, OverflowError):  # a date the calendar doesn't have
                continue
            if span:
                yield *match.span(), span

    def _lies_ahead(self, text: str, start: int, end: int) -> bool:
        """Return whether the last verb before the phrase, or else the first after it, speaks of the future."""
        before = _SENTENCE.split(text[max(start - _CLAUSE, 0) : start])[-1]
        verbs = list(self._verbs.finditer(before))
        verb = verbs[-1] if verbs else self._verbs.search(_SENTENCE.split(text[end : end + _CLAUSE], maxsplit=1)[0])
        return verb is not None and not verb["past"]

    def _span(self, calendar: Calendar, groups: Said) -> Span | None:
        times = self._times
        shift = times.shifts.get(groups.get("shift", ""), 0)
        if "named" in groups:
            return calendar.period(*times.named[groups["named"]])
        if "unit" in groups:
            unit = times.units[groups["unit"]]
            count = groups.get("count", "1")
            least, most = times.numbers[count] if count in times.numbers else (int(count), int(count))
            if "ago" in groups:
                return calendar.ago(least, most, unit)
            return calendar.lately(most, unit) if "past" in groups else calendar.period(unit, shift)
        if "weekday" in groups and "day" not in groups:
            weekday = times.weekdays[groups["weekday"]]
            week_is_named = "shift" in groups and (shift == 0 or not times.last_is_latest)
            return calendar.weekday(weekday, shift if week_is_named else None)
        make = partial(self._in_year, calendar, groups)
        if "year" in groups:
            year = groups["year"]
            return make(int(year) if year.isdigit() else calendar.today.year + times.years[year])
        is_this = "shift" in groups and shift == 0
        return make(calendar.today.year) if is_this else calendar.yearly(make, over=shift < 0)

    def _in_year(self, calendar: Calendar, groups: Said, year: int) -> Span:
        times = self._times
        if "period" in groups:
            start, end = (date(year, *divmod(day, 100)) for day in times.periods[groups["period"]])
            return calendar.days(start, (end if start <= end else end.replace(year=year + 1)) + DAY)
        if "month" not in groups:
            return calendar.months(year, 1, 12)
        month = times.months.get(groups["month"]) or int(groups["month"])
        if "day" in groups:
            day = times.days.get(groups["day"]) or int(groups["day"])
            first = date(year, day, month) if month > 12 else date(year, month, day)
            return calendar.days(first, first + DAY)
        if "part" in groups:
            begins, ends = times.parts[groups["part"]]
            first = date(year, month, begins)
            last = first_of(year, month + 1)
            return calendar.days(first, min(first + DAY * (ends - begins + 1), last))
        return calendar.months(year, month)

    def _numbered(self, at: int, phrase: str) -> str:
        """Return a phrase with its slots filled in and its groups marked with its number: `year` becomes `year_3`."""
        times = self._times
        slots = {
            "named": _keys(times.named),
            "shift": _keys(times.shifts),
            "count": "[1-9][0-9]{0,2}|" + _keys(times.numbers),
            "unit": _keys(times.units),
            "month": _keys(times.months, times.capitalised),
            "weekday": _keys(times.weekdays, times.capitalised),
            "part": _keys(times.parts),
            "period": _keys(times.periods),
            "year": "(?:19|20)[0-9]{2}(?![0-9])|" + _keys(times.years),
            "day": "0?[1-9]|[12][0-9]|3[01]|" + _keys(times.days),
        }
        filled = re.sub(r"(?<!\?P)<(\w+)>", lambda slot: f"(?P<{slot[1]}>{slots[slot[1]]})", phrase)
        return re.sub(r"\(\?P<(\w+)>", rf"(?P<\1_{at}>", filled)


def _keys(table: Mapping[str, object], capitalised: frozenset[str] = frozenset()) -> str:
    """Return the keys of a table as alternatives, the longest first; `capitalised` ones count with a capital only."""
    keys = sorted(table, key=len, reverse=True)
    either = "|".join(f"(?-i:{key.capitalize()})" if key in capitalised else key for key in keys)
    return in_both_scripts(either) or "(?!)"


def _spaced(template: str) -> str:
    """Return the pattern of a template, whose spaces stand for several, and ` ?` for white space or none."""
    return template.replace(" ?", r"\s{0,3}").replace(" ", r"\s{1,3}")


_GRAMMARS = [_Grammar(language, language.times) for language in LANGUAGES if language.times]
