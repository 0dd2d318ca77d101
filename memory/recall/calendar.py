"""The calendar on a person's wall: from "three days before today" to a range of instants.

Days, weeks and months are counted on local dates and only then turned into UTC, so a day is as long as it was where
the person lives (23 or 25 hours when the clocks change).  A date the calendar doesn't have (30 February, year 10000)
raises ValueError or OverflowError, and nothing else does.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

DAY = timedelta(days=1)
_PARTS = {"morning": (4, 12), "afternoon": (12, 18), "night": (18, 30)}  # hours of a local day
_NIGHT_ENDS = 4  # before this hour "tonight" is still that of the day before
_CLOCK = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_SLACK = {"minute": timedelta(minutes=5), "hour": timedelta(minutes=30)}
_DAYS = {"day": 1, "week": 7, "weekend": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_REACH = {"day": 0, "week": 3, "month": 15, "quarter": 45, "year": 182}  # days that "two weeks ago" means either way


@dataclass(frozen=True)
class Span:
    """Half-open: `after` is inside, `before` is not.  Aware, in UTC."""

    after: datetime
    before: datetime


def first_of(year: int, month: int) -> date:
    """The first of a month; months below 1 and above 12 run into other years."""
    years, month = divmod(month - 1, 12)
    return date(year + years, month + 1, 1)


class Calendar:
    """What phrases mean at one instant, in one time zone."""

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
        """The present day, part of a day, week, weekend, month, quarter or year, moved by `shift` of them."""
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

    def weekday(self, weekday: int) -> Span:
        """The latest such day before today."""
        return self.period("day", -((self.today.weekday() - weekday - 1) % 7 + 1))

    def weekday_of(self, weekday: int, week: int) -> Span:
        """That day of the present week, or of another one."""
        return self.period("day", 7 * week - self.today.weekday() + weekday)

    def yearly(self, make: Callable[[int], Span], over: bool) -> Span | None:
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
        """Around a time so long ago: an exact count gives one unit centred on the day it names, an inexact one all
        it may mean."""
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
        """From so long ago until now; days count from their midnight."""
        if unit in _CLOCK:
            return Span(self.now - _CLOCK[unit] * most, self.now)
        return Span(self._moment(self._back(most, unit)), self.now)

    def _moment(self, day: date, hour: int = 0) -> datetime:
        """A local time as an instant; hours from 24 on belong to the next day."""
        local = datetime.combine(day + DAY * (hour // 24), time(hour % 24), tzinfo=self.zone)
        return local.astimezone(UTC)

    def _back(self, count: int, unit: str) -> date:
        if unit in _DAYS:
            return self.today - DAY * count * _DAYS[unit]
        first = first_of(self.today.year, self.today.month - count * _MONTHS[unit])
        return first.replace(day=min(self.today.day, calendar.monthrange(first.year, first.month)[1]))
