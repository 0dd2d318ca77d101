"""Which words name a time, which only look like it, and exactly which instants are meant."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory.recall.times import TimeRange, time_ranges

TALLINN, NEW_YORK = ZoneInfo("Europe/Tallinn"), ZoneInfo("America/New_York")
ZONES = [TALLINN, NEW_YORK, ZoneInfo("UTC")]
FRIDAY = datetime(2026, 11, 20, 14, 30)  # on the person's wall
NOW = FRIDAY.isoformat()


def instant(said: str, zone: ZoneInfo) -> datetime:
    """A wall-clock time of `zone`, or an instant if it says its offset."""
    moment = datetime.fromisoformat(said)
    return moment if moment.tzinfo else moment.replace(tzinfo=zone).astimezone(UTC)


# A text, the phrase in it, and the range on the person's wall: "11-19" is midnight of that day of 2026.
PHRASES = """
    the day before yesterday | the day before yesterday | 11-18 | 11-19
    this morning | this morning | 11-20T04 | 11-20T12
    last week's plan | last week | 11-09 | 11-16
    last weekend | last weekend | 11-14 | 11-16
    remind me what we decided on Thu | on Thu | 11-19 | 11-20
    a month ago | a month ago | 10-05 | 11-05
    a couple of days ago | a couple of days ago | 11-17 | 11-20
    2 hours ago | 2 hours ago | 11-20T12 | 11-20T13
    in the last 24 hours | in the last 24 hours | 11-19T14:30 | NOW
    on December 1,2023 | on December 1,2023 | 2023-12-01 | 2023-12-02
    in May | in May | 05-01 | 06-01
    in December | in December | 2025-12-01 | 01-01
    last year in May | last year in May | 2025-05-01 | 2025-06-01
    early May | early May | 05-01 | 05-11
    the 12th of May | the 12th of May | 05-12 | 05-13
    (2023-05-12) | 2023-05-12 | 2023-05-12 | 2023-05-13
    on Monday, 16 November | on Monday, 16 November | 11-16 | 11-17
    on 29 February | on 29 February | 2024-02-29 | 2024-03-01
    on 31 December | on 31 December | 2025-12-31 | 01-01
    I was born in 1990 | in 1990 | 1990-01-01 | 1991-01-01
    昨天我们聊了什么 | 昨天 | 11-19 | 11-20
    今天早上 | 今天早上 | 11-20T04 | 11-20T12
    我们在十二月讨论过 | 十二月 | 2025-12-01 | 01-01
    2023年5月12日 | 2023年5月12日 | 2023-05-12 | 2023-05-13
    ５月１２号 | ５月１２号 | 05-12 | 05-13
    去年年底我定了什么目标 | 去年年底 | 2025-12-01 | 01-01
    上个季度的销售目标 | 上个季度 | 07-01 | 10-01
    国庆节那天我在做什么 | 国庆节那天 | 10-01 | 10-08
    先週の水曜日に話したこと | 先週の水曜日 | 11-11 | 11-12
    去年の夏の旅行 | 去年の夏 | 2025-06-01 | 2025-09-01
    last summer | last summer | 06-01 | 09-01
    in the winter | in the winter | 2025-12-01 | 03-01
    over Christmas | over Christmas | 2025-12-24 | 2025-12-27
    how did q1 2025 go | q1 2025 | 2025-01-01 | 2025-04-01
    was war gestern abend los | gestern abend | 11-19T18 | 11-20T06
    vor einer Woche | vor einer Woche | 11-10 | 11-17
    Ende Oktober | Ende Oktober | 10-21 | 11-01
    am Montag habe ich das gesagt | am Montag | 11-16 | 11-17
    qu'est-ce que j'ai dit hier | hier | 11-19 | 11-20
    le mois dernier | mois dernier | 10-01 | 11-01
    il y a deux jours | il y a deux jours | 11-18 | 11-19
    el lunes pasado | el lunes pasado | 11-16 | 11-17
    hace tres días | hace tres días | 11-17 | 11-18
    tre giorni fa | tre giorni fa | 11-17 | 11-18
    l'anno scorso | anno scorso | 2025-01-01 | 01-01
    на прошлой неделе | на прошлой неделе | 11-09 | 11-16
"""


def wall(said: str) -> str:
    if said == "NOW":
        return NOW
    return said if said.startswith(("19", "20")) else f"2026-{said}"


@pytest.mark.parametrize("line", PHRASES.strip().splitlines(), ids=lambda line: line.split("|")[0].strip())
def test_reads(line):
    text, phrase, after, before = (part.strip() for part in line.split("|"))
    now = FRIDAY.replace(tzinfo=TALLINN)
    start = text.index(phrase)
    assert time_ranges(text, now, TALLINN) == [
        TimeRange(instant(wall(after), TALLINN), instant(wall(before), TALLINN), phrase, start, start + len(phrase))
    ]


FALSE_FRIENDS = """
    may I ask you something; May I come in?; you may leave; maybe; we may 3 times try; the last may have gone
    early may be better; option 12 may be wrong; June said hello; Mr. May called; tell April and June; from June
    in June's opinion; march forward; in march step; march 5 miles; an august body
    we; wait a minute; wait a second; a second; second opinion; on second thought; the sun; the sun is out; I sat down
    sat down; mon ami; we wed in haste; fall down; the fall of Rome; spring to mind; in Spring Boot; will; will you help
    day by day; once a week; twice a month; every Monday; every Monday morning; on Mondays; each May; Black Friday
    two days; it takes two days; for three weeks; in two weeks; 24 hours; within reach; half past three; in the past
    24/7; 3/4 cup; 1.5.2; v2.1; version 12.05.2023.1; 192.168.20.23; at 100; in 2000 words; in 2048 bits; ticket #2023
    $2023; log-2023-05-12.txt; http://example.com/2023/05/12/post; from 9 to 5; between 1 and 10; a 5 year-old
    12 years old; the day after; week 3 of the plan; the first day; my last week at school; the last year of the war
    at last; last but not least; at the last minute; last time; since then; before that; after all; before I go
    on the 12th floor; on the 1st attempt; Christmas presents; merry Christmas; happy New Year; the weekend
    30 February 2023; 2023-13-45; on 31 April; at 15 pm; yesterdays; wednesdays; monthly; in summertime
    tomorrow; tomorrow morning; the day after tomorrow; next week; next Monday morning; later this week; this weekend
    tonight; this evening; in 2027; on 25 December 2026; since tomorrow; before 2030; until today; by 12 May
    I will do it on Monday; let's meet on Friday; remind me on Friday; it is due on 12 May
    I'll be done before Christmas; I need it before Friday; the meeting is on Monday; a letter from April
    this Christmas; fall is here; Weihnachtsgeschenke; was ist hier los; wir sind hier nicht allein; nächste Woche
    jeden Montag; bis Freitag; morgen; am Montag muss ich zum Arzt; alle zwei Wochen; in drei Tagen; ab Mai
    la semaine prochaine; tous les lundis; demain; en deux jours; la semana que viene; cada lunes; el lunes tengo que ir
    ogni mese; domani; tra due giorni
    каждый понедельник; завтра; на следующей неделе; через два дня
    明天; 下周; 下周一; 下个月; 明年5月; 每周一; 每年5月; 一周一次; 三天; 两个月; 五个月; 十年; 三年级; 去年轻人的地方
    晚上月亮很圆; 天气; 之前天气很好; 以前; 5月要去旅行; 周一要开会; 第三周三班; 2月30日; 13月
"""


HALVES = """
    half an hour ago; half a year ago; il y a un an et demi; il y a une heure et demie; hace un año y medio
    hace una hora y media; há um ano e meio; há uma hora e meia; полтора года назад; два с половиной года назад
    pół roku temu; półtora roku temu
"""


@pytest.mark.parametrize("text", [text.strip() for line in HALVES.strip().splitlines() for text in line.split(";")])
def test_takes_no_half_for_a_whole(text):
    assert time_ranges(f"{text}.", FRIDAY.replace(tzinfo=TALLINN), TALLINN) == []


@pytest.mark.parametrize("text", ["I paid half yesterday", "We did half two weeks ago", "Zapłaciłem pół wczoraj"])
def test_takes_half_of_a_thing_for_no_half_of_a_time(text):
    [said] = time_ranges(f"{text}.", FRIDAY.replace(tzinfo=TALLINN), TALLINN)
    assert said.before <= FRIDAY.replace(tzinfo=TALLINN)


@pytest.mark.parametrize(
    "text", [text.strip() for line in FALSE_FRIENDS.strip().splitlines() for text in line.split(";")]
)
def test_is_not_fooled_by(text):
    found = time_ranges(text, FRIDAY.replace(tzinfo=TALLINN), TALLINN)
    assert [one.phrase for one in found] == []


def test_days_are_as_long_as_they_were():
    for text, now, zone, after, before in [
        ("yesterday", "2026-03-30T10:00", TALLINN, "2026-03-28T22:00Z", "2026-03-29T21:00Z"),  # 23 hours
        ("yesterday", "2026-10-26T10:00", TALLINN, "2026-10-24T21:00Z", "2026-10-25T22:00Z"),  # 25 hours
        ("2 hours ago", "2026-03-29T05:00", TALLINN, "2026-03-28T23:30Z", "2026-03-29T00:30Z"),
        ("today", "2018-11-04T09:00", ZoneInfo("America/Sao_Paulo"), "2018-11-04T03:00Z", "2018-11-05T02:00Z"),
        ("last month", "2026-01-31T12:00", ZONES[2], "2025-12-01T00:00Z", "2026-01-01T00:00Z"),
        ("in the past month", "2024-03-31T12:00", ZONES[2], "2024-02-29T00:00Z", "2024-03-31T12:00Z"),
        ("last quarter", "2026-02-01T12:00", ZONES[2], "2025-10-01T00:00Z", "2026-01-01T00:00Z"),
        ("this weekend", "2026-11-22T12:00", ZONES[2], "2026-11-21T00:00Z", "2026-11-23T00:00Z"),
    ]:
        (found,) = time_ranges(text, datetime.fromisoformat(now).replace(tzinfo=zone), zone)
        assert (found.after, found.before) == (datetime.fromisoformat(after), datetime.fromisoformat(before))


def test_a_day_that_never_was_is_no_range():
    """Samoa went over the date line on 30 December 2011."""
    assert time_ranges("on 30 December 2011", datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("Pacific/Apia")) == []


def test_reads_several():
    for text, phrases in [
        ("in May and in June", ["in May", "in June"]),
        ("on Monday and on Tuesday", ["on Monday", "on Tuesday"]),
        ("yesterday, not last week; 昨天", ["yesterday", "last week", "昨天"]),
        ("next week we will see, last week we saw", ["last week"]),
        ("last\nweek and last   month", ["last\nweek", "last   month"]),
        ("Did it work yesterday?Or in 2023?", ["yesterday", "in 2023"]),
    ]:
        assert [one.phrase for one in time_ranges(text, FRIDAY.replace(tzinfo=UTC), UTC)] == phrases


WORDS = [part for line in PHRASES.strip().splitlines() for part in line.split("|")[0].split()]
NOWS = st.datetimes(timezones=st.sampled_from([*ZONES, ZoneInfo("Pacific/Apia"), ZoneInfo("America/Sao_Paulo")]))
TEXTS = st.text() | st.lists(st.sampled_from([*WORDS, "9999", "0", "999", "ſ", "İ"]), max_size=12).map(" ".join)


@given(text=TEXTS, now=NOWS)
@example(text="999 years ago 31 12 9999-12-31 前年 今年13月", now=datetime(1, 1, 1, tzinfo=UTC))
@example(text="today since 9999 in the last 999 years", now=datetime(9999, 12, 31, 23, 59, tzinfo=NEW_YORK))
def test_holds_for_any_text(text, now):
    end = 0
    for one in time_ranges(text, now, now.tzinfo):
        assert one.after < one.before and one.after < now
        assert one.after.tzinfo is UTC and one.before.tzinfo is UTC
        assert end <= one.start < one.end and one.phrase == text[one.start : one.end]
        end = one.end


WORDS = """
    today yesterday tonight the in on over mid- early end first half of ago back past last this these before May march
    June week weeks day months year years Monday friday sun 3 21 2nd 2025 2024-03-05 3.4.2025 07/08/2024 few couple
    , . 's midjune may maybe one a is will
"""


@given(
    words=st.lists(st.sampled_from(WORDS.split()), max_size=10),
    joint=st.sampled_from([" ", "", "  "]),
    now=st.sampled_from(ZONES),
)
def test_a_text_that_is_passed_over_names_no_time(words, joint, now):
    """Only ASCII texts are passed over."""
    text, now = joint.join(words), FRIDAY.replace(tzinfo=now)
    assert time_ranges(text, now, now.tzinfo) == time_ranges(f"{text}\n…", now, now.tzinfo)
