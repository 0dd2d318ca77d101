"""The calendar on a person's wall: from "the third day before today" to a range of instants.

Days, weeks and months are counted on local dates and only then turned into UTC, so a day is as long as it was where
the person lives (23 or 25 hours when the clocks change).  Hours and minutes are counted on instants.
A date the calendar doesn't have (30 February, year 10000) raises ValueError or OverflowError, and nothing else does.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

BEGINNING = datetime(1900, 1, 1, tzinfo=UTC)
"""Where "before Christmas" begins: earlier than any message."""

PARTS = {
    "small hours": (0, 6),
    "morning": (4, 12),
    "noon": (11, 14),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "night": (18, 30),
}
"""Hours of a local day, generously; a night ends at six the next morning."""

NIGHT_ENDS = 4  # before this hour "tonight" and "this evening" are still those of the day before
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
"""First month of three: the northern seasons.  The winter of a year is the one that begins in its December."""

DAY = timedelta(days=1)
Count = tuple[float, float]
"""At least and at most: (2, 2) for two, (2, 6) for a few."""

_CLOCK_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_SLACK = {"minute": timedelta(minutes=5), "hour": timedelta(minutes=30)}
_HALVES = {"year": (6, "month"), "month": (2, "week"), "day": (12, "hour"), "hour": (30, "minute")}
_IN_DAYS = {"day": 1, "night": 1, "week": 7, "weekend": 7, "fortnight": 14}
_IN_MONTHS = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True)
class Span:
    """Half-open: `after` is inside, `before` is not.  Aware, in UTC."""

    after: datetime
    before: datetime


def first_of(year: int, month: int) -> date:
    """The first of a month; months below 1 and above 12 run into other years."""
    years, month = divmod(month - 1, 12)
    return date(year + years, month + 1, 1)


def add_months(day: date, months: int) -> date:
    """The same day of another month, or its last day where that month is shorter."""
    first = first_of(day.year, day.month + months)
    return first.replace(day=min(day.day, calendar.monthrange(first.year, first.month)[1]))


def easter(year: int) -> date:
    """Western Easter Sunday (the anonymous Gregorian computus, Meeus 1991)."""
    century, rest = divmod(year, 100)
    golden = year % 19
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - century // 4 - correction + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


class Calendar:
    """What phrases mean at one instant, in one time zone."""

    def __init__(self, now: datetime, zone: tzinfo) -> None:
        self.now = now.astimezone(UTC)
        self.zone = zone
        local = now.astimezone(zone)
        self.today = local.date()
        self.waking_day = self.today - DAY if local.hour < NIGHT_ENDS else self.today

    # -- spans of local days

    def moment(self, day: date, hour: int = 0, minute: int = 0) -> datetime:
        """A local wall-clock time as an instant; hours from 24 on belong to the next day.

        A time the clocks skip is the instant they skip it; of a time they repeat it is the first.
        """
        local = datetime.combine(day + DAY * (hour // 24), time(hour % 24, minute), tzinfo=self.zone)
        return local.astimezone(UTC)

    def days(self, first: date, end: date) -> Span:
        return Span(self.moment(first), self.moment(end))

    def day(self, day: date) -> Span:
        return self.days(day, day + DAY)

    def days_ago(self, days: int) -> Span:
        return self.day(self.today - DAY * days)

    def week(self, shift: int = 0) -> Span:
        """A week from Monday to Monday, `shift` weeks from the present one."""
        monday = self.monday(shift)
        return self.days(monday, monday + 7 * DAY)

    def monday(self, shift: int = 0) -> date:
        return self.today + DAY * (7 * shift - self.today.weekday())

    def weekend(self, back: int) -> Span:
        """Saturday and Sunday: 0 is the latest that has begun, 1 the latest that is over, 2 the one before that."""
        now_weekend = self.today.weekday() >= 5
        saturday = self.monday(0 if now_weekend else -1) + 5 * DAY
        saturday -= 7 * DAY * (back if now_weekend else max(back - 1, 0))
        return self.days(saturday, saturday + 2 * DAY)

    def months(self, year: int, month: int, count: int = 1) -> Span:
        return self.days(first_of(year, month), first_of(year, month + count))

    def month(self, shift: int = 0) -> Span:
        return self.months(self.today.year, self.today.month + shift)

    def quarter(self, shift: int = 0) -> Span:
        return self.months(self.today.year, (self.today.month - 1) // 3 * 3 + 1 + 3 * shift, 3)

    def year(self, year: int) -> Span:
        return self.months(year, 1, 12)

    def period(self, unit: str, shift: int) -> Span:
        """The present week, month, quarter or year, moved by `shift` of them."""
        if unit == "week":
            return self.week(shift)
        if unit == "month":
            return self.month(shift)
        return self.quarter(shift) if unit == "quarter" else self.year(self.today.year + shift)

    def weekday(self, weekday: int, which: str = "", week: int | None = None) -> Span:
        """The latest past one, never today; with `which` "this" the one of this week, with `week` of that week."""
        if week is not None or which == "this":
            return self.day(self.monday(week or 0) + DAY * weekday)
        return self.days_ago((self.today.weekday() - weekday - 1) % 7 + 1)

    def day_of_month(self, day: int) -> Span | None:
        """The latest 12th, today included."""
        for shift in range(3):
            first = first_of(self.today.year, self.today.month - shift)
            if day <= calendar.monthrange(first.year, first.month)[1] and first.replace(day=day) <= self.today:
                return self.day(first.replace(day=day))
        return None

    # -- what comes once a year

    def yearly(self, make: Callable[[int], Span], which: str = "", year: int | None = None) -> Span | None:
        """`make(year)` of the year that is meant: the one said; "last", the latest that is over; "this", this
        year's; and with nothing said the latest that has begun."""
        if year is not None:
            return make(year)
        for candidate in range(self.today.year, self.today.year - 9, -1):  # leap days can be eight years apart
            try:
                span = make(candidate)
            except ValueError:
                continue
            if (span.before if which == "last" else span.after) <= self.now and (
                which != "this" or candidate == self.today.year or span.before > self.now
            ):
                return span
        return None

    # -- parts of days and of longer spans

    def part(self, day: date, name: str) -> Span:
        start, end = PARTS[name]
        return Span(self.moment(day, start), self.moment(day, end))

    def clock(self, day: date, hour: int, minute: int) -> Span:
        """The hour around a time of day."""
        moment = self.moment(day, hour, minute)
        return Span(moment - timedelta(minutes=30), moment + timedelta(minutes=30))

    def bounds(self, span: Span) -> tuple[date, date]:
        """The local dates a span of whole days runs from and to."""
        return span.after.astimezone(self.zone).date(), span.before.astimezone(self.zone).date()

    def single_day(self, span: Span) -> date | None:
        """The local day a span is, if it is one."""
        day, end = self.bounds(span)
        return day if end == day + DAY and self.day(day) == span else None

    def slice(self, span: Span, name: str) -> Span | None:
        """The "early", "mid" or "late" third, or the "first" or "second" half.  A month's thirds are of ten days, a
        year's of four months; early in the week is until Tuesday, late from Friday on."""
        start, end = self.bounds(span)
        length = (end - start).days
        if length < 7:
            return None
        if length >= 365:
            cuts = [add_months(start, 4), add_months(start, 8)]
            half = add_months(start, 6)
        else:
            days = {7: (2, 4)}.get(length, (10, 20) if length <= 31 else (length // 3, 2 * length // 3))
            cuts = [start + DAY * cut for cut in days]
            half = start + DAY * (length // 2)
        ends = {
            "early": (start, cuts[0]),
            "mid": (cuts[0], cuts[1]),
            "late": (cuts[1], end),
            "first": (start, half),
            "second": (half, end),
        }
        return self.days(*ends[name])

    # -- counted back from now

    def ago(self, count: Count, unit: str) -> Span | None:
        """Around a time so long ago.  An exact count gives one unit centred on the day it names (so "two weeks ago" is
        the seven days around that day); minutes and hours allow a quarter of the time either way, at least five and
        thirty minutes; an inexact count covers all it may mean."""
        least, most = count
        if least == 0.5:
            if unit not in _HALVES:
                return None
            whole, unit = _HALVES[unit]
            least = most = whole
        if unit in _CLOCK_UNITS:
            slack = max(_SLACK[unit], _CLOCK_UNITS[unit] * least / 4) if least == most else timedelta(0)
            span = Span(self.now - _CLOCK_UNITS[unit] * most - slack, self.now - _CLOCK_UNITS[unit] * least + slack)
            return Span(span.after, min(span.before, self.now))
        first, last = self._back(most, unit), self._back(least, unit)
        if least < most:
            return self.days(first, last + DAY)
        if unit == "night":
            return self.part(first, "night")
        if unit == "weekend":
            return self.weekend(int(least))
        if unit == "year":
            return self.days(add_months(first, -6), add_months(first, 6))
        reach = {"day": 0, "week": 3, "fortnight": 7, "month": 15, "quarter": 45}[unit]
        return self.days(first - DAY * reach, first + DAY * (reach + 1))

    def lately(self, count: Count, unit: str) -> Span | None:
        """From so long ago until now; days count from their midnight."""
        most = count[1]
        if unit in _CLOCK_UNITS:
            return Span(self.now - _CLOCK_UNITS[unit] * most, self.now)
        if most < 1:
            if unit not in _HALVES:
                return None
            return self.lately((_HALVES[unit][0],) * 2, _HALVES[unit][1])
        if unit == "weekend":
            return self.since(self.weekend(int(most)))
        return Span(self.moment(self._back(most, unit)), self.now)

    def _back(self, count: float, unit: str) -> date:
        if unit in _IN_DAYS:
            return self.today - DAY * int(count) * _IN_DAYS[unit]
        return add_months(self.today, -int(count) * _IN_MONTHS[unit])

    # -- open at one end, and from one to another

    def since(self, span: Span) -> Span:
        return Span(span.after, self.now)

    def following(self, span: Span) -> Span:
        return Span(span.before, self.now)

    def preceding(self, span: Span) -> Span | None:
        """Until a span begins; nothing while it hasn't begun, since that leaves nothing out."""
        return Span(BEGINNING, span.after) if span.after < self.now else None

    def until(self, span: Span) -> Span | None:
        return Span(BEGINNING, span.before) if span.before < self.now else None

    def at_end_of(self, span: Span) -> Calendar:
        """The calendar as it hung when a span ended (or now), to read "Monday" in "from Monday to Wednesday"."""
        return Calendar(min(self.now, span.before - timedelta(microseconds=1)), self.zone)
