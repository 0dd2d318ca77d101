"""Chinese words for times: 昨天下午, 上周三, 三天前, 2023年5月12日, 五月以来, 从周一到周三.

Chinese has no spaces, so a name is taken for a time unless the characters beside it make another word of it (去年轻人的
地方 holds no 去年) or move it to the future (明年5月, 每周一).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

from memory.recall.times.calendar import DAY, SEASONS, Calendar, Count, Span
from memory.recall.times.phrases import Phrase
from memory.recall.times.words import Said

_DIGITS = {digit: at for at, digit in enumerate("〇一二三四五六七八九")} | {"两": 2, "零": 0}
_N = r"(?:[0-9]{1,3}|[一二两三四五六七八九十]{1,3})"
_SOME = rf"(?:两三|三四|{_N}|几|好几|数|半)"
_WEEK = r"(?:周|星期|礼拜)"
_UNITS = r"(?P<unit>分钟|小时|钟头|天|日|周|星期|礼拜|月|年)"
_PART = r"(?:的?(?P<part>凌晨|清晨|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|夜晚|晚|早))?"
_CLOCK = rf"(?:(?P<hour>{_N})点(?:钟|(?P<half>半)|(?P<minute>{_N})分?)?)?"
_DAY = rf"(?P<day>{_N})[日号](?!线|楼)"
_MONTH = rf"(?P<month>{_N})月(?!球|亮|饼)份?"
_EDGE = r"(?P<edge>上旬|中旬|下旬|初|底|末)?"
_PARTS = {"凌晨": "small hours", "中午": "noon", "下午": "afternoon", "傍晚": "evening"}
_PARTS |= dict.fromkeys(("清晨", "早上", "早晨", "上午", "早", "晨"), "morning")
_PARTS |= dict.fromkeys(("晚上", "夜里", "夜晚", "晚", "夜"), "night")
_EDGES = {"上旬": "early", "初": "early", "中旬": "mid", "下旬": "late", "底": "late", "末": "late"}
_UNIT_NAMES = {"分钟": "minute", "小时": "hour", "钟头": "hour", "天": "day", "日": "day", "月": "month", "年": "year"}
_DAYS_BACK = {"今": 0, "昨": 1, "前": 2, "大前": 3}
_YEARS_BACK = {"今年": 0, "去年": 1, "前年": 2, "大前年": 3}
_SEASONS = dict(zip("春夏秋冬", SEASONS.values(), strict=True))
_HOLIDAYS = {"圣诞": (12, 24, 3), "元旦": (1, 1, 1), "国庆": (10, 1, 7)}

START = (
    r"(?<![0-9.])(?:[0-9]{1,4}|[一二两三四五六七八九十]{1,3})(?=个?[年月天日周星礼小钟分])|两三|三四|[半几数](?=个?[年月天周星礼小分])|"
    r"好几|[今昨前](?=[天日儿早晨晚夜年几些两阵])|大前|去年|[上这本](?=[上一个周星礼月几两三四二五六七八九十0-9])|"
    r"[过最]?[去近]|刚才|周(?=[一二三四五六日天末])|[星礼][期拜]|圣诞|元旦|国庆"
)
"""What a Chinese phrase begins with."""


def _number(said: str) -> int:
    """Up to 99, in digits or characters; anything else is a ValueError."""
    if said.isdigit() and said.isascii():
        return int(said)
    tens, ten, ones = said.rpartition("十")
    if not ten:
        return _DIGITS[said] if said in _DIGITS else int("x")
    return 10 * (_DIGITS[tens] if tens else 1) + (_DIGITS[ones] if ones else 0)


def _count(said: str) -> Count:
    some: dict[str, Count] = {
        "几": (2, 6),
        "好几": (3, 8),
        "数": (2, 6),
        "半": (0.5, 0.5),
        "两三": (2, 3),
        "三四": (3, 4),
    }
    return some.get(said) or (_number(said), _number(said))


def _unit(said: str) -> str:
    return _UNIT_NAMES.get(said, "week")


def _within(calendar: Calendar, day: date, said: Said) -> Span:
    """A day, its part, or the hour around its clock."""
    part = _PARTS.get(said["part"], "")
    if said.get("hour"):
        hour = _number(said["hour"])
        if hour < 12 and part in ("afternoon", "evening", "night"):
            hour += 12
        return calendar.clock(day, hour, 30 if said["half"] else _number(said["minute"] or "0"))
    return calendar.part(day, part) if part else calendar.day(day)


def _edge(calendar: Calendar, span: Span, said: Said) -> Span | None:
    return calendar.slice(span, _EDGES[said["edge"]]) if said.get("edge") else span


def _day(calendar: Calendar, said: Said) -> Span:
    back = _DAYS_BACK[said["back"]]
    return _within(
        calendar, (calendar.waking_day if said["part"] in ("晚", "夜") else calendar.today) - DAY * back, said
    )


def _week(calendar: Calendar, said: Said) -> Span:
    shift = {"上": -1, "上上": -2}.get(said["which"], 0)
    if said["weekday"] == "末":
        saturday = calendar.monday(shift) + 5 * DAY
        return calendar.days(saturday, saturday + 2 * DAY)
    if said["weekday"]:
        return _within(calendar, calendar.monday(shift) + DAY * _weekday_at(said["weekday"]), said)
    return calendar.week(shift)


def _weekday_at(said: str) -> int:
    return "一二三四五六日".index(said.replace("天", "日"))


def _weekday(calendar: Calendar, said: Said) -> Span:
    if said["weekday"] == "末":
        return calendar.weekend(0)
    day, _ = calendar.bounds(calendar.weekday(_weekday_at(said["weekday"])))
    return _within(calendar, day, said)


def _month_back(calendar: Calendar, said: Said) -> Span | None:
    span = calendar.month({"上": -1, "上上": -2}.get(said["which"], 0))
    if not said["day"]:
        return _edge(calendar, span, said)
    return _within(calendar, calendar.bounds(span)[0].replace(day=_number(said["day"])), said)


def _dated(calendar: Calendar, said: Said) -> Span | None:
    """A year, a month or a day, as much of it as was said."""
    year = None
    if said["year"]:
        back = _YEARS_BACK.get(said["year"])
        year = int(said["year"][:4]) if back is None else calendar.today.year - back

    def make(year: int) -> Span:
        if said.get("season"):
            return calendar.months(year, _SEASONS[said["season"]], 3)
        if said.get("holiday"):
            month, first, days = _HOLIDAYS[said["holiday"]]
            return calendar.days(date(year, month, first), date(year, month, first) + DAY * days)
        if not said.get("month"):
            return calendar.year(year)
        month = _number(said["month"])
        if said.get("day"):
            return _within(calendar, date(year, month, _number(said["day"])), said)
        if not 1 <= month <= 12:
            raise ValueError(f"There is no month {month}.")
        return calendar.months(year, month)

    span = calendar.yearly(make, year=year)
    return _edge(calendar, span, said) if span else None


def _ago(calendar: Calendar, said: Said) -> Span | None:
    return calendar.ago(_count(said["count"]), _unit(said["unit"]))


def _rolling(calendar: Calendar, said: Said) -> Span | None:
    return calendar.lately(_count(said["count"]), _unit(said["unit"]))


def _lately(calendar: Calendar, said: Said) -> Span | None:
    if said["word"] == "刚才":
        return Span(calendar.now - timedelta(minutes=15), calendar.now)
    if said["word"].startswith("前"):  # 前几天, the other day
        return calendar.days(calendar.today - 7 * DAY, calendar.today)
    return calendar.lately((7, 7) if said["word"] == "这几天" else (14, 14), "day")


_YEAR = r"(?P<year>(?:19|20)[0-9]{2}年|大前年|前年|去年(?!轻|龄)|今年(?!轻|龄))"
_UNDATED = r"(?<!明年)(?<!后年)(?<!每年)(?<![0-9.第个每下一二两三四五六七八九十几])"
_NOUNS: tuple[tuple[re.Pattern[str], Callable[[Calendar, Said], Span | None], bool], ...] = tuple(
    (re.compile(pattern), resolve, plan)
    for pattern, resolve, plan in (
        (rf"(?<![之以])(?P<back>大前|前|昨|今)(?:天(?!气|空)|日|儿个?){_PART}{_CLOCK}", _day, False),
        (rf"(?P<back>今|昨|前)(?P<part>早|晨|晚|夜)上?{_CLOCK}", _day, False),
        (
            rf"(?<![晚早马])(?P<which>上上|上|这|本)一?个?{_WEEK}(?:(?P<weekday>[一二三四五六天末]|日(?!常|期)){_PART}{_CLOCK})?",
            _week,
            False,
        ),
        (
            rf"(?<!晚)(?P<which>上上|上|这|本)个?月(?!亮|球|饼)(?:份?{_DAY}{_PART}{_CLOCK}|{_EDGE})",
            _month_back,
            False,
        ),
        (rf"{_YEAR}的?{_MONTH}的?(?:{_DAY}{_PART}{_CLOCK}|{_EDGE})", _dated, False),
        (rf"{_YEAR}的?(?P<season>[春夏秋冬])[天季]?", _dated, False),
        (rf"{_YEAR}的?(?P<holiday>{'|'.join(_HOLIDAYS)})节?", _dated, False),
        (rf"{_YEAR}(?!级)(?:年?(?P<edge>初|底|末))?", _dated, False),
        (rf"{_UNDATED}(?P<year>){_MONTH}(?:{_DAY}{_PART}{_CLOCK}|{_EDGE})", _dated, True),
        (rf"(?P<year>)(?P<holiday>{'|'.join(_HOLIDAYS)})节", _dated, True),
        (rf"{_UNDATED}{_WEEK}(?P<weekday>[一二三四五六天末]|日(?!常|期))(?!次){_PART}{_CLOCK}", _weekday, True),
        (rf"(?P<count>{_SOME})个?半?{_UNITS}(?:之|以)?前(?!天|年|面)", _ago, False),
        (rf"(?:最近|过去|近|这)(?:的)?(?P<count>{_SOME})个?{_UNITS}", _rolling, False),
        (r"(?P<word>刚才|最近|近来|这几天|前几天|前些天|前两天|前阵子|前些日子)", _lately, False),
    )
)
_TO = re.compile(r"\s?(?:到|至|-|~|～)\s?")
_AFTERWARDS = re.compile(r"(?P<since>以来|起(?!来)|开始)|(?P<after>之后|以后)|(?P<before>之前|以前)")
_AHEAD = re.compile(r"[我你他她它们咱]{0,2}(?:要|将|打算|计划|准备|得)")


def read(plain: str, at: int, calendar: Calendar) -> Phrase | None:
    """The Chinese phrase that begins at `at`, if one does."""
    first = _noun(plain, at, calendar)
    if first is None or first.span is None:
        return first
    to = _TO.match(plain, first.end)
    last = _noun(plain, to.end(), calendar) if to else None
    if last and last.span:
        begun = _noun(plain, at, calendar.at_end_of(last.span))
        if begun and begun.span:
            return Phrase(at, last.end, Span(begun.span.after, last.span.before))
    beside = _AFTERWARDS.match(plain, first.end)
    if beside:
        join = {"since": calendar.since, "after": calendar.following, "before": calendar.preceding}
        return Phrase(at, beside.end(), join[str(beside.lastgroup)](first.span))
    if first.plan and _AHEAD.match(plain, first.end):
        return replace(first, span=None)
    return first


def _noun(plain: str, at: int, calendar: Calendar) -> Phrase | None:
    best, named, planned = None, None, False
    for pattern, resolve, plan in _NOUNS:
        found = pattern.match(plain, at)
        if found and (best is None or found.end() > best.end()):
            best, named, planned = found, resolve, plan
    if best is None or named is None:
        return None
    try:
        span = named(calendar, best.groupdict(""))
    except (ValueError, OverflowError):  # a date the calendar doesn't have, and no part of it is meant either
        span = None
    return Phrase(at, best.end(), span, planned)
