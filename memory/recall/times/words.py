"""English words for times, and what each means on a `Calendar`.

`NOUNS` is the grammar: names of spans ("last week", "12 May", "Christmas"), the prepositions without which a name is
not taken for a time ("May I ask" is no month, "in May" is), and how it is resolved.  `phrases` joins
them into phrases.  In the patterns a space stands for short white space (` ?`: or none) and `<slot>` for one of
`SLOTS`, captured under its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

from memory.recall.times.calendar import DAY, SEASONS, Calendar, Count, Span, easter, first_of

Said = Mapping[str, str]
"""What a pattern's groups matched, lower-cased; a group that took no part is an empty string."""

Resolve = Callable[[Calendar, Said], Span | None]

_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
MONTHS = {name: at for at, name in enumerate(_MONTH_NAMES, 1)}
MONTHS |= {name[:3]: at for name, at in MONTHS.items()} | {"sept": 9}
WEEKDAYS = {name: at for at, name in enumerate(_WEEKDAY_NAMES)}
WEEKDAYS |= {name[:3]: at for name, at in WEEKDAYS.items()} | {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
ALSO_WORDS = frozenset(["mon", "wed", "sat", "sun", "mar", "jan"])
"""Short forms that are words or names in lower case."""

ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
COUNTS: dict[str, Count] = {word: (at, at) for at, word in enumerate(_NUMBERS, 1)}
COUNTS |= {word: (at, at) for word, at in (("fifteen", 15), ("twenty", 20), ("thirty", 30), ("fifty", 50))}
COUNTS |= {"a": (1, 1), "an": (1, 1), "couple": (1, 3), "few": (2, 6), "several": (3, 8), "half": (0.5, 0.5)}
UNITS = {"min": "minute", "hr": "hour"}


def _either(words: Mapping[str, object]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_DAY = r"0?[1-9]|[12][0-9]|3[01]"
SLOTS = {
    "month": rf"(?:{_either(MONTHS)})(?![a-z])",
    "weekday": rf"(?:{_either(WEEKDAYS)})(?![a-z])",
    "day": _DAY,
    "to": _DAY,
    "year": r"(?:19|20)[0-9]{2}(?![0-9])|last year|this year",
    "which": "last|this past|past|this",
    "ordinal": _either(ORDINALS),
    "count": r"[1-9][0-9]{0,2}|half an?|(?:a )?couple(?: of)?|a few|few|several|" + _either(COUNTS),
    "unit": "minute|min|hour|hr|day|night|weekend|week|fortnight|month|quarter|year",
    "part": "morning|noon|lunchtime|afternoon|evening|night",
    "season": "spring|summer|autumn|fall|winter",
}
END = r"(?![^\W\u3000-\u9fff])"
"""No word goes on here; Chinese may follow without a space."""


def compiled(template: str, end: str = END) -> re.Pattern[str]:
    slots = re.sub(r"(?<!\?P)<(\w+)>", lambda found: f"(?P<{found[1]}>{SLOTS[found[1]]})", template)
    return re.compile(slots.replace(" ?", r"\s{0,3}").replace(" ", r"\s{1,3}") + end)


@dataclass(frozen=True)
class Noun:
    """A name for a span.  `after` are the prepositions it needs (none: it stands alone, as it does when "last" or
    a year is said with it); `plan` says that it may as well lie ahead, `bare` that a verb in the past will do."""

    pattern: re.Pattern[str]
    resolve: Resolve
    after: frozenset[str] = frozenset()
    plan: bool = False
    bare: bool = False


def count_of(said: str) -> Count:
    for word in said.split():
        if word in COUNTS and not (word == "a" and said != "a"):  # "a few" is few
            return COUNTS[word]
    return int(said), int(said)


def unit_of(said: str) -> str:
    return UNITS.get(said, said)


def year_of(calendar: Calendar, said: str) -> int | None:
    if not said:
        return None
    return int(said) if said.isdigit() else calendar.today.year - said.startswith("last")


def which_of(said: str) -> str:
    return "last" if said.endswith("past") else said


def _yearly(make: Callable[[int], Span], calendar: Calendar, said: Said) -> Span | None:
    return calendar.yearly(make, which_of(said.get("which", "")), year_of(calendar, said.get("year", "")))


# -- what the names mean


def _other_days(calendar: Calendar, said: Said) -> Span:
    back = {"today": 0, "yesterday": 1}.get(said["word"])
    if back is not None:
        return calendar.days_ago(back)
    if "other" in said["word"]:  # "the other day": within the last week
        return calendar.days(calendar.today - 7 * DAY, calendar.today)
    return calendar.days_ago(2)


def _nights(calendar: Calendar, said: Said) -> Span:
    word = said["word"]
    if word.startswith("last"):
        return calendar.part(calendar.waking_day - DAY, "night" if word.endswith("night") else "evening")
    return calendar.part(calendar.waking_day - 2 * DAY * (word != "tonight"), "night")


def _this_part(calendar: Calendar, said: Said) -> Span:
    return calendar.part(calendar.waking_day, part_of(said["part"]))


def part_of(said: str) -> str:
    return "noon" if said == "lunchtime" else said


def _just_now(calendar: Calendar, said: Said) -> Span:
    return Span(calendar.now - timedelta(minutes=15), calendar.now)


def _recently(calendar: Calendar, said: Said) -> Span | None:
    return calendar.lately((2, 2), "week")


def _earlier(calendar: Calendar, said: Said) -> Span:
    span = calendar.days_ago(0) if said["word"] == "today" else calendar.period(said["word"].split()[-1], 0)
    return calendar.since(span)


def _period(calendar: Calendar, said: Said) -> Span:
    return calendar.period(said["word"], -(said["which"] == "last"))


def _before_last(calendar: Calendar, said: Said) -> Span:
    return calendar.weekend(2) if said["word"] == "weekend" else calendar.period(said["word"], -2)


def _rolling(calendar: Calendar, said: Said) -> Span | None:
    return calendar.lately(count_of(said["count"] or "one"), unit_of(said["unit"]))


def _ago(calendar: Calendar, said: Said) -> Span | None:
    return calendar.ago(count_of(said["count"]), unit_of(said["unit"]))


def _weekend(calendar: Calendar, said: Said) -> Span | None:
    which = which_of(said["which"])
    if which == "this":
        return calendar.weekend(0) if calendar.today.weekday() >= 5 else None
    return calendar.weekend(1 if which == "last" else 0)


def _weekday(calendar: Calendar, said: Said) -> Span:
    week = said.get("week", "")
    shift = (-1 if week.startswith("last") else 0) if week else None
    return calendar.weekday(WEEKDAYS[said["weekday"]], which_of(said.get("which", "")), shift)


def _month(calendar: Calendar, said: Said) -> Span | None:
    return _yearly(lambda year: calendar.months(year, MONTHS[said["month"]]), calendar, said)


def _date(calendar: Calendar, said: Said) -> Span | None:
    def make(year: int) -> Span:
        first = date(year, MONTHS[said["month"]], int(said["day"]))
        return calendar.days(first, first.replace(day=int(said.get("to") or said["day"])) + DAY)

    return _yearly(make, calendar, said)


def _numeric_date(calendar: Calendar, said: Said) -> Span:
    first, second = int(said["first"]), int(said["second"])
    day, month = (first, second) if second <= 12 else (second, first)
    year = int(said["year"])
    return calendar.day(date(year + 2000 if year < 100 else year, month, day))


def _iso_date(calendar: Calendar, said: Said) -> Span:
    return calendar.day(date(int(said["year"]), int(said["month"]), int(said["day"])))


def _number_month(calendar: Calendar, said: Said) -> Span:
    return calendar.months(int(said["number"]), int(said["month"]))


def _day_of_month(calendar: Calendar, said: Said) -> Span | None:
    if not said["of"]:
        return calendar.day_of_month(int(said["day"]))
    first, _ = calendar.bounds(calendar.month(-(said["of"] == "last")))
    return calendar.day(first.replace(day=int(said["day"])))


def _year(calendar: Calendar, said: Said) -> Span:
    return calendar.year(int(said["number"]))


def _quarter(calendar: Calendar, said: Said) -> Span | None:
    quarter = int(said["quarter"]) if said["quarter"] else ORDINALS[said["ordinal"]]
    return _yearly(lambda year: calendar.months(year, 3 * quarter - 2, 3), calendar, said)


def _season(calendar: Calendar, said: Said) -> Span | None:
    first = SEASONS["autumn" if said["season"] == "fall" else said["season"]]
    return _yearly(lambda year: calendar.months(year, first, 3), calendar, said)


def _nth_of_month(calendar: Calendar, said: Said) -> Span | None:
    """A month's weeks are its days 1-7, 8-14 and so on, the last one its last seven days."""
    nth = ORDINALS.get(said["ordinal"], 0)

    def make(year: int) -> Span:
        first, end = calendar.bounds(calendar.months(year, MONTHS[said["month"]]))
        start = first + 7 * DAY * (nth - 1) if nth else end - 7 * DAY
        if not said["weekday"]:
            return calendar.days(start, start + 7 * DAY)
        return calendar.day(start + DAY * ((WEEKDAYS[said["weekday"]] - start.weekday()) % 7))

    return _yearly(make, calendar, said)


def _fixed(month: int, day: int, days: int, year: int) -> tuple[date, date]:
    first = date(year, month, day)
    return first, first + DAY * days


def _easter_days(first: int, days: int, year: int) -> tuple[date, date]:
    start = easter(year) + DAY * first
    return start, start + DAY * days


def _thanksgiving(year: int) -> tuple[date, date]:
    first = first_of(year, 11)
    day = first + DAY * ((3 - first.weekday()) % 7 + 21)
    return day, day + DAY


HOLIDAYS: dict[str, Callable[[int], tuple[date, date]]] = {
    "christmas eve": partial(_fixed, 12, 24, 1),
    "christmas day": partial(_fixed, 12, 25, 1),
    "christmas": partial(_fixed, 12, 24, 3),
    "xmas": partial(_fixed, 12, 24, 3),
    "boxing day": partial(_fixed, 12, 26, 1),
    "new year's eve": partial(_fixed, 12, 31, 1),
    "new year's day": partial(_fixed, 1, 1, 1),
    "new year's": partial(_fixed, 12, 31, 2),
    "new year": partial(_fixed, 12, 31, 2),
    "valentine's day": partial(_fixed, 2, 14, 1),
    "halloween": partial(_fixed, 10, 31, 1),
    "thanksgiving": _thanksgiving,
    "good friday": partial(_easter_days, -2, 1),
    "easter sunday": partial(_easter_days, 0, 1),
    "easter monday": partial(_easter_days, 1, 1),
    "easter": partial(_easter_days, -2, 4),
}


def _holiday(calendar: Calendar, said: Said) -> Span | None:
    days = HOLIDAYS[" ".join(said["holiday"].split())]
    return _yearly(lambda year: calendar.days(*days(year)), calendar, said)


SLOTS["holiday"] = _either(HOLIDAYS)

# -- the grammar

_IN = frozenset(["in", "during", "throughout", "over", "around", "from"])
_ON = frozenset(["on", "from"])
_AT = frozenset(["at", "on", "over", "during", "around", "in", "from"])
_OF_YEAR = r"(?:(?:, ?| )(?:of |in )?<year>)?"
_TH = r"(?:st|nd|rd|th)"
_ON_WEEKDAY = r"(?:<weekday>\.?,? (?:the )?)?"
# After "in 2000" or "March 5" these make a quantity of it.
_A_QUANTITY = (
    r"(?! (?:words|char|token|step|line|piece|way|byte|bit|unit|people|person|mile|kilomet|km|met(?:er|re)s?\b|"
    r"feet|foot|hour|day|week|month|minute|second|ms\b|times|dollar|euro|usd|eur\b|pixel|px\b|place|cit(?:y|ies)|"
    r"countr|case|item|row|file|percent|%))"
)
_NOT_A_NUMBER = r"(?![.,:/%-]?[0-9])"  # a version, an address, a larger number
# "on the 12th floor", "last week of school", "in March step" are no dates; a phrase that goes on like this is one.
_GOES_ON = (
    r"(?=\s{0,3}(?:$|[^\w\s]|(?:a|about|after|and|as|at|because|before|but|by|did|during|for|from|had|he|how|i|if|in|"
    r"it|last|my|of|on|or|our|she|that|the|they|this|to|was|we|were|what|when|where|which|while|who|with|you)\b))"
)


def _noun(template: str, resolve: Resolve, after: frozenset[str] = frozenset(), **traits: bool) -> Noun:
    return Noun(compiled(template), resolve, after, **traits)


NOUNS = (
    _noun(r"(?P<word>today|yesterday|(?:the )?day before yesterday|the other (?:day|night|evening))", _other_days),
    _noun(r"(?P<word>tonight|last night|last evening|(?:the )?night before last)", _nights),
    _noun(r"this <part>", _this_part),
    _noun(r"(?:just now|moments ago|a (?:few |couple of )?(?:moments?|minutes?|seconds?|secs?|mins?) ago)", _just_now),
    _noun(r"(?:recently|lately)", _recently),
    _noun(r"earlier (?:on )?(?P<word>today|this (?:week|month|quarter|year))", _earlier),
    _noun(r"(?P<which>last|this) (?P<word>week|month|quarter|year)(?! of\b)", _period),
    _noun(r"the (?P<word>weekend|week|month|quarter|year) before last", _before_last),
    _noun(r"(?:(?:the|this|these|those) )?(?:last|past) <count> <unit>s?(?! of\b)", _rolling),
    _noun(r"(?:the last|(?:the |this )?past) (?P<count>)(?P<unit>hour|week|month|quarter|year)(?! of\b)", _rolling),
    _noun(r"<count> <unit>s? (?:ago|back(?! (?:to|in|pay|from)\b))", _ago),
    _noun(r"<which> weekend", _weekend),
    _noun(r"(?P<which>)the weekend", _weekend, frozenset(["over", "at", "on", "during"]), plan=True),
    _noun(r"(?:<which> )?<weekday>(?:'s)?", _weekday, _ON | {"in", "at", "during"}, plan=True, bare=True),
    _noun(r"<weekday>,? (?:of |in )?(?P<week>(?:last|this) week)", _weekday),
    _noun(r"(?P<week>(?:last|this) week)(?: on|'s)? <weekday>", _weekday),
    _noun(r"(?:<which> )?<month>\.?" + _OF_YEAR, _month, _IN, plan=True),
    _noun(r"(?P<year>last year|this year),? (?:in )?<month>", _month),
    _noun(_ON_WEEKDAY + rf"(?:the )?<day>{_TH}?(?: of)? <month>\.?" + _OF_YEAR, _date, plan=True),
    _noun(_ON_WEEKDAY + rf"<month>\.? (?:the )?<day>{_TH}?(?![0-9:])" + _A_QUANTITY + _OF_YEAR, _date, plan=True),
    _noun(rf"<day>{_TH}? ?(?:and|to|through|until|till|-) ?<to>{_TH}?(?: of)? <month>" + _OF_YEAR, _date, plan=True),
    _noun(
        rf"<month>\.? <day>{_TH}? ?(?:and|to|through|until|till|-) ?<to>{_TH}?(?![0-9:])" + _OF_YEAR, _date, plan=True
    ),
    _noun(
        r"(?P<year>[0-9]{4})(?P<s>[-/])(?P<month>[0-9]{1,2})(?P=s)(?P<day>[0-9]{1,2})(?:t[0-9:.]{1,20}z?)?"
        + _NOT_A_NUMBER,
        _iso_date,
    ),
    _noun(r"(?P<number>[0-9]{4})-(?P<month>0[1-9]|1[0-2])", _number_month, _IN),
    _noun(
        r"(?P<first>[0-9]{1,2})(?P<s>[./-])(?P<second>[0-9]{1,2})(?P=s)(?P<year>(?:19|20)[0-9]{2}|(?<=/)[0-9]{2})"
        + _NOT_A_NUMBER,
        _numeric_date,
    ),
    _noun(_ON_WEEKDAY + rf"the <day>{_TH}(?: of (?P<of>last|this) month)?" + _GOES_ON, _day_of_month, _ON, plan=True),
    _noun(r"(?P<number>(?:19|20)[0-9]{2})" + _NOT_A_NUMBER + _A_QUANTITY, _year, _IN),
    _noun(r"(?P<ordinal>)(?:<which> )?q(?P<quarter>[1-4])" + _OF_YEAR, _quarter, _IN, plan=True),
    _noun(r"the (?P<quarter>)<ordinal> quarter of <year>", _quarter),
    _noun(
        r"(?:the |<which> )?<season>(?! (?:of (?!last|this|[0-9])|boot\b|framework\b|mvc\b))" + _OF_YEAR,
        _season,
        _IN,
        plan=True,
    ),
    _noun(
        r"(?:the )?(?:<ordinal>|last) (?:week|<weekday>) (?:of|in) <month>" + _OF_YEAR,
        _nth_of_month,
        plan=True,
    ),
    _noun(r"(?:<which> )?<holiday>" + _OF_YEAR, _holiday, _AT, plan=True, bare=True),
)
