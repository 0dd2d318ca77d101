"""Read the times of exports: ISO 8601, seconds since 1970, and dates as people and programs write them.

A date of three numbers is read where it can be one day only: 31.12.2025 and 12/31/2025, but not 05/06/2025.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from memory.languages import table

UNREAD_MAX = 20  # times that are named
_TIME_CHARS = 80  # of a date in words
_NO_TIME = "0001-01-01T00:00:00"  # so begins what Go and .NET write for a time that was never set
_YEARS = range(1970, 2200)  # others are of another calendar, or no years
_MILLISECONDS = 100_000_000_000  # seconds would be in the year 5138
_SECONDS = re.compile(r"\d{10}(?:\d{3})?(?:\.\d+)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?\s?(?:([AP])\.?\s?M\.?)?\s?(\S{0,12})", re.IGNORECASE)
_OFFSET = re.compile(r"(?:GMT|UTC)?([+-])(\d{1,2})(?::?(\d\d))?")
_IN_BRACKETS = re.compile(r"\s*\([^()]*\)$")  # the name of the zone, as JavaScript writes it
_AFTERNOON = ("오후", "下午", "午後")
_ZONES = """
WEST=1 BST=1 CET=1 MEZ=1 CEST=2 MESZ=2 EET=2 EEST=3 MSK=3 IST=5.5 JST=9 KST=9 AEST=10 AEDT=11
BRT=-3 EDT=-4 EST=-5 CDT=-5 CST=-6 MDT=-6 MST=-7 PDT=-7 PST=-8
"""
_HOURS = {zone: float(hours) for zone, hours in (pair.split("=") for pair in _ZONES.split())}  # of others: as in UTC
_OTHER_MONTHS = """
maj=5 avg=8 mrt=3 mei=5 fev=2 out=10 sty=1 lut=2 kwi=4 cze=6 lip=7 sie=8 wrz=9 paź=10 lis=11 gru=12
oca=1 şub=2 nis=4 haz=6 tem=7 ağu=8 eyl=9 eki=10 kas=11 ara=12
"""
_MONTHS = {  # by their names and the first letters of these
    **{name: int(number) for name, number in (pair.split("=") for pair in _OTHER_MONTHS.split())},
    **table(lambda language: language.months),
}


class Times:
    """Times of one export. now: for records without a time. unread: texts that are no time, or could be several."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.unread: tuple[str, ...] = ()

    def read(self, *values: Any) -> datetime | None:
        """Return the first of the values that is a time. If none is, note the first that there is."""
        set_values = [value for value in values if not str(value or "").startswith(_NO_TIME)]
        for value in set_values:
            if (at := moment(value)) is not None:
                return at
        given = next((str(value)[:_TIME_CHARS] for value in set_values if value not in (None, "")), None)
        if given is not None and given not in self.unread and len(self.unread) < UNREAD_MAX:
            self.unread = (*self.unread, given)
        return None


def moment(value: Any) -> datetime | None:
    """Return a time from ISO 8601, from seconds or milliseconds since 1970, as MongoDB writes it, or in words."""
    try:
        if isinstance(value, Mapping):
            date = value.get("$date")
            return moment(int(date["$numberLong"]) if isinstance(date, Mapping) else date)
        if isinstance(value, str) and _SECONDS.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, str):
            return _from_iso(value.strip()) or written_time(value)
        if isinstance(value, bool):
            return None
        return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS else value, UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _from_iso(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def written_time(line: str) -> datetime | None:
    """Return the date, with or without a time of day, that a line is; None if it is something else or ambiguous."""
    line = re.sub(r"\s+", " ", line[: 2 * _TIME_CHARS]).strip()
    line = _IN_BRACKETS.sub("", line)
    clock = _CLOCK.search(line)
    if len(line) > _TIME_CHARS or (clock is not None and clock.end() < len(line)):
        return None
    day = _day(line[: clock.start()] if clock is not None else line)
    if day is None or clock is None:
        return day
    hour, minute, second = (int(part or 0) for part in clock.groups()[:3])
    half = (clock[4] or "").upper()
    zone = clock[5].upper()
    is_afternoon = half == "P" or any(name in line for name in _AFTERNOON)
    hour = hour % 12 + 12 * is_afternoon if half or is_afternoon else hour
    offset = _OFFSET.match(zone)
    hours = int(offset[2]) + int(offset[3] or 0) / 60 if offset else _HOURS.get(zone, 0.0)
    hours *= -1 if offset and offset[1] == "-" else 1
    try:
        return day.replace(hour=hour, minute=minute, second=second, tzinfo=timezone(timedelta(hours=hours))).astimezone(
            UTC
        )
    except (ValueError, OverflowError):
        return None


def _day(words: str) -> datetime | None:
    """Return the day that the words name with one or two numbers and a month, or with three numbers."""
    written = re.findall(r"\d+", words)
    numbers = [int(number) for number in written]
    beginnings = [word.lower() for word in re.findall(r"[^\W\d_]{3,}", words)]
    found = (next((month for name, month in _MONTHS.items() if name.startswith(word)), None) for word in beginnings)
    months = list(filter(None, found))
    if len(numbers) != (2 if months else 3) or len(written[0 if numbers[0] > 31 else -1]) not in (2, 4):
        return None
    year, *others = numbers if numbers[0] > 31 else numbers[::-1]
    year += 2000 * (year < 100)
    if months:  # the last, as the day of the week may look like a month: "mar. 31 déc."
        orders = [(months[-1], others[0])]
    elif numbers[0] > 31 or re.search(r"\d\s?\.\s?\d", words):
        orders = [(others[0], others[1])]
    else:
        orders = [(others[0], others[1]), (others[1], others[0])]
    days = {datetime(year, *order, tzinfo=UTC) for order in orders if year in _YEARS and _is_day(year, *order)}
    return days.pop() if len(days) == 1 else None


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        datetime(year, month, day)
    except ValueError:
        return False
    return True
