"""Gemini in Google's Takeout: `My Activity/Gemini Apps/MyActivity.json` or, without JSON chosen, `MyActivity.html`.

It lists questions, each with the answer as HTML, the newest first, without sessions. The questions of one day, in UTC,
become one session. The page says the same as the JSON, with times as the account's language writes them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from itertools import chain
from typing import IO, Any

from memory.errors import InvalidRequest
from memory.languages import LANGUAGES
from memory.transfer.json_reader import first_byte
from memory.transfer.sources.values import Record, chat, drafts, moment, objects, refused, text

_ASKED = re.compile(
    r"(?:(?:Prompted|Asked|Said|Branched|Answered)(?: (?:with|Gemini|Bard):)?"
    r"|Eingegebener Prompt:|送信したメッセージ:) "
)
_DID = re.compile(r"(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Edited|Pinned|Renamed|Updated) ")
_CELL = b'<div class="outer-cell'
PAGE_HEAD_BYTES = 1 << 20  # in which the first cell begins, after the style
CELL_BYTES_MAX, CELL_TAGS_MAX = 1 << 20, 20_000
_CLOCK = re.compile(r"(\d{1,2}):(\d\d):(\d\d)\s?(?:([AP])\.?\s?M\.?)?\s?(\S{0,12})")
_OFFSET = re.compile(r"(?:GMT|UTC)([+-])(\d{1,2})(?::?(\d\d))?")
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
    **{name: number for language in LANGUAGES if language.times for name, number in language.times.months.items()},
}
_LINES = ["p", "br", "li", "div", "tr", "pre", "h1", "h2", "h3", "h4", "h5", "h6"]


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is activity in Gemini, or in Bard as it was called."""
    products = f"{item.get('header')} {item.get('products')}"
    is_of_gemini = "Gemini" in products or "Bard" in products
    return is_of_gemini and "title" in item and moment(item.get("time")) is not None


def records(activity: Mapping[str, Any], now: datetime) -> Iterator[Record]:
    at, title = moment(activity.get("time")), text(activity.get("title"))
    answer = "\n".join(_words(text(item.get("html"))) for item in objects(activity.get("safeHtmlItem")))
    # An account in another language has another verb: with an answer, it is a question all the same.
    if at is not None and not _DID.match(title) and (answer or _ASKED.match(title)):
        files = (text(file.get("name")).lstrip("- ") for file in objects(activity.get("subtitles")) if "url" in file)
        question = "\n".join([_ASKED.sub("", title, count=1), *(f"[file: {name}]" for name in files)])
        key = at.isoformat()
        messages = *drafts("user", question, at, key), *drafts("assistant", text(answer), at, f"{key}#answer")
        yield chat("gemini", [f"gemini-{at:%Y-%m-%d}"], f"Gemini, {at:%Y-%m-%d}", messages)


def _words(html: str) -> str:
    """Return the text of HTML, with a line for each block."""
    from bs4 import BeautifulSoup  # not at the top: no other import needs it

    page = BeautifulSoup(html, "html.parser")
    for block in page.find_all(_LINES):
        block.insert_before("\n")
    return re.sub(r"\n\s*\n+", "\n", page.get_text()).strip()


def is_page(file: IO[bytes]) -> bool:
    """Return whether a file is a page of Google's activity."""
    if first_byte(file) != b"<":
        return False
    file.seek(0)
    return _CELL in file.read(PAGE_HEAD_BYTES)


def activities(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the activities of a page, as the JSON has them.  Raises InvalidRequest where one is too long."""
    file.seek(0)
    head = file.read(PAGE_HEAD_BYTES)
    rest = head[head.index(_CELL) + len(_CELL) :]
    for chunk in chain(iter(lambda: file.read(1 << 16), b""), [_CELL]):
        *cells, rest = (rest + chunk).split(_CELL)
        for cell in cells:
            yield _activity(cell)
        if len(rest) > CELL_BYTES_MAX:
            raise _too_long()


def _activity(cell: bytes) -> dict[str, Any]:
    """Return an activity of a page, in the form of the JSON."""
    from bs4 import BeautifulSoup, Tag

    if cell.count(b"<") > CELL_TAGS_MAX:
        raise _too_long()
    page = BeautifulSoup((_CELL + cell).decode("utf-8", "replace"), "html.parser")
    header, content = page.select_one(".mdl-typography--title"), page.select_one(".content-cell")
    lines = _lines(content.children if content is not None else ())
    texts = [text("".join(node.get_text() for node in line)) for line in lines]
    times = list(map(_time, texts))
    place = next((place for place, at in enumerate(times) if at is not None), 0)
    question, files = list[str](), list[str]()
    for line, words in zip(lines[:place], texts, strict=False):
        link = next((node for node in line if isinstance(node, Tag) and node.name == "a"), None)
        if link is not None and words.startswith("-"):
            question = question if files else question[:1] + question[1:-1]  # the last line says how many files
            files.append(link.get_text())
        elif words:
            question.append(words)
    verb, _, rest = "\n".join(question).partition("\xa0")
    is_known = _ASKED.match(f"{verb} ") or _DID.match(f"{verb} ")
    product, at = text(header.get_text()) if header is not None else "", times[place]
    return {
        "header": product,
        "products": [product],
        "title": rest if rest and not is_known else f"{verb} {rest}".strip(),
        "time": at.isoformat() if at is not None else None,
        "subtitles": [{"name": name, "url": name} for name in files],
        "safeHtmlItem": [{"html": "".join(str(node) for line in lines[place + 1 :] for node in line)}],
    }


def _lines(nodes: Iterable[Any]) -> list[list[Any]]:
    """Return nodes of a page by the lines in which a reader sees them."""
    lines: list[list[Any]] = [[]]
    for node in nodes:
        if node.name in _LINES:
            lines += [[node], []]
        else:
            lines[-1].append(node)
    return lines


def _too_long() -> InvalidRequest:
    return refused("unknown_format", "An activity on this page is too long to read. Choose JSON as the format")


def _time(line: str) -> datetime | None:
    """Return the time that a line of a page is, if it is nothing else."""
    line = re.sub(r"\s+", " ", line[:60])
    clock = _CLOCK.search(line)
    if clock is None or clock.end() < len(line):
        return None
    before = line[: clock.start()]
    numbers = [int(number) for number in re.findall(r"\d+", before)]
    month = next(filter(None, map(_month, re.findall(r"[^\W\d_]{3,}", before))), None)
    if len(numbers) != (3 if month is None else 2):
        return None
    is_year_first = numbers[0] > 31
    year, *others = numbers if is_year_first else numbers[::-1]
    month, day = others if month is None else (month, *others)
    hour, minute, second = map(int, clock.groups()[:3])
    is_afternoon = clock[4] == "P" or any(name in before for name in _AFTERNOON)
    hour = hour % 12 + 12 * is_afternoon if clock[4] or is_afternoon else hour
    offset = _OFFSET.match(clock[5])
    hours = int(offset[2]) + int(offset[3] or 0) / 60 if offset else _HOURS.get(clock[5], 0.0)
    hours *= -1 if offset and offset[1] == "-" else 1
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=timezone(timedelta(hours=hours))).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _month(word: str) -> int | None:
    """Return the number of a month by its name, or the beginning of it."""
    return next((number for name, number in _MONTHS.items() if name.startswith(word.lower())), None)
