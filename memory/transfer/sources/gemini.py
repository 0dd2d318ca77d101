"""Gemini in Google's Takeout: `My Activity/Gemini Apps/MyActivity.json` or, without JSON chosen, `MyActivity.html`.

It lists questions, each with the answer as HTML, the newest first, without sessions. The questions of one day, in UTC,
become one session. The page says the same as the JSON, with times as the account's language writes them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import IO, Any

from memory.errors import InvalidRequest
from memory.json_values import dicts_in
from memory.transfer.json_reader import first_byte
from memory.transfer.sources.times import Times, moment, written_time
from memory.transfer.sources.values import Record, chat, drafts, refused, text

_ASKED = re.compile(
    r"(?:(?:Prompted|Asked|Said|Branched|Answered)(?: (?:with|Gemini|Bard):)?"
    r"|Eingegebener Prompt:|送信したメッセージ:) "
)
_DID = re.compile(r"(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Edited|Pinned|Renamed|Updated) ")
_CELL = b'<div class="outer-cell'
PAGE_HEAD_BYTES = 1 << 20  # in which the first cell begins, after the style
CELL_BYTES_MAX = 1 << 20
CELL_TAGS_MAX = 20_000
_LINES = ["p", "br", "li", "div", "tr", "pre", "h1", "h2", "h3", "h4", "h5", "h6"]


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is activity in Gemini, or in Bard as it was called."""
    products = f"{item.get('header')} {item.get('products')}"
    is_of_gemini = "Gemini" in products or "Bard" in products
    return is_of_gemini and "title" in item and moment(item.get("time")) is not None


def records(activity: Mapping[str, Any], times: Times) -> Iterator[Record]:
    at = times.read(activity.get("time"))
    title = text(activity.get("title"))
    answer = "\n".join(_words(text(item.get("html"))) for item in dicts_in(activity.get("safeHtmlItem")))
    # An account in another language has another verb: with an answer, it is a question all the same.
    if at is not None and not _DID.match(title) and (answer or _ASKED.match(title)):
        files = (text(file.get("name")).lstrip("- ") for file in dicts_in(activity.get("subtitles")) if "url" in file)
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
    times = list(map(written_time, texts))
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
    product = text(header.get_text()) if header is not None else ""
    at = times[place]
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
