"""Gemini in Google's Takeout: `My Activity/Gemini Apps/MyActivity.json`, with JSON chosen as the format.

It lists questions, each with the answer as HTML, the newest first, without sessions. The questions of one day, in UTC,
become one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.transfer.sources.values import Record, chat, drafts, moment, objects, text

_ASKED = re.compile(r"(?:Prompted|Asked|Said|Branched|Answered)(?: (?:with|Gemini|Bard):)? ")
_DID = re.compile(r"(?:Created|Used|Added|Gave|Selected|Shared|Deleted|Viewed|Edited|Pinned|Renamed|Updated) ")
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
