"""Chats as Markdown: each message under a heading, or after a name in bold, that says who speaks, and maybe when.

`# On tea` begins a chat; `## user, 2026-03-01 10:00`, `### Assistant` and `**You:** Hello` begin a message.  A message
that is quoted (`> `), as in Recap's own export of a person, is read without the marks.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import IO, Any

from memory.transfer.json_reader import first_byte
from memory.transfer.sources.values import refused, role_of

LINE_MAX = 1 << 20  # characters that are read at once
_NOT_SAID = ("system", "tool", "summary")  # what may stand between messages, under a heading of its own
_NAME = r"\W{0,4}(?P<name>[A-Za-z]{1,20})(?: said| \(.{0,200}\))?"
_SPEAKERS = (
    re.compile(rf"#{{1,6}} {{1,3}}{_NAME}(?:, .{{0,60}}|\W{{1,3}}\d.{{0,60}})?\W{{0,4}}"),
    re.compile(rf"\*\*{_NAME}(?::\*\*|\*\*:)(?P<words>.*)"),
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?")
_TITLE = re.compile(r"# +(?P<title>.+)")


def looks_so(file: IO[bytes]) -> bool:
    """Whether a file begins as Markdown does."""
    return first_byte(file) in (b"#", b"*", b"-")


def chats(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """The chats of a file, as `chats` reads them.  Raises InvalidRequest for one that has none."""
    file.seek(0)
    text, chat, found = io.TextIOWrapper(file, "utf-8-sig", errors="replace"), _chat(""), False
    try:
        for line in iter(lambda: text.readline(LINE_MAX), ""):
            title = _TITLE.fullmatch(line.rstrip())
            if message := _message(line.rstrip()):
                chat["messages"].append(message)
                found = True
            elif title:
                yield from _finished(chat)
                chat = _chat(title["title"])
            elif chat["messages"]:
                chat["messages"][-1]["lines"].append(line)
        yield from _finished(chat)
    finally:
        text.detach()
    if not found:
        problem = "This Markdown has no messages: each begins with a line such as `## user` or `**You:**`"
        raise refused("unknown_format", problem)


def _message(line: str) -> dict[str, Any] | None:
    """The message that a line begins."""
    found = next((match for speaker in _SPEAKERS if (match := speaker.fullmatch(line))), None)
    if found is None or not (role_of(found["name"]) or found["name"].lower() in _NOT_SAID):
        return None
    time = _TIME.search(line[found.end("name") :])
    words = found.groupdict().get("words", "")
    return {"role": found["name"], "created_at": time and time.group(), "lines": [f"{words.strip()}\n"]}


def _chat(title: str) -> dict[str, Any]:
    return {"title": title, "messages": []}


def _finished(chat: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in chat["messages"]:
        lines = message.pop("lines")
        quoted = all(line.startswith(">") for line in lines if line.strip())
        message["content"] = "".join(re.sub("^> ?", "", line) if quoted else line for line in lines)
    if chat["messages"]:
        yield chat
