"""Chats as text: Markdown, and the CSV of Microsoft Copilot's activity history.

In Markdown each message stands under a heading, or after a name in bold, of its speaker, maybe with a time. `# On tea`
begins a chat; `## user, 2026-03-01 10:00`, `### Assistant` and `**You:** Hello` begin a message.  A message that is
quoted (`> `), as in Recap's own export, is read without the marks.

Copilot's rows are messages, the newest first. Rows that follow each other under one title are a conversation.
"""

import csv
import io
import re
from collections.abc import Iterator
from itertools import groupby, islice
from typing import IO, Any

from memory.transfer.json_reader import first_byte
from memory.transfer.sources.values import digest, refused, role_of

LINE_CHARS_MAX = 1 << 20  # read at once
ROWS_MAX = 2_000  # of a conversation of Copilot's, in memory at once; a longer one becomes several sessions
_COLUMNS = ("Conversation", "Time", "Author", "Message")
_OTHER_HEADINGS = ("system", "tool", "summary")  # between messages
_NAME = r"\W{0,4}(?P<name>[A-Za-z]{1,20})(?: said| \(.{0,200}\))?"
_SPEAKERS = (
    re.compile(rf"#{{1,6}} {{1,3}}{_NAME}(?P<time>, .{{0,60}}|\W{{1,3}}\d.{{0,60}})?\W{{0,4}}"),
    re.compile(rf"\*\*{_NAME}(?::\*\*|\*\*:)(?P<words>.*)"),
)
_LIKE_TIME = re.compile(r"\d{4}|\d[./-]\d|\d:\d\d")
_AROUND_TIME = " ,:;()[]*_#|·–—-"
_TITLE = re.compile(r"# +(?P<title>.+)")


def is_markdown(file: IO[bytes]) -> bool:
    return first_byte(file) in (b"#", b"*", b"-")


def markdown_chats(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the chats of a file, as items for `chats`. Raises InvalidRequest without messages."""
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8-sig", errors="replace")
    chat = _chat("")
    has_messages = in_code = False
    try:
        for line in iter(lambda: text.readline(LINE_CHARS_MAX), ""):
            in_code ^= line.lstrip("> ").startswith("```")
            title = None if in_code else _TITLE.fullmatch(line.rstrip())
            if not in_code and (message := _message(line.rstrip())):
                chat["messages"].append(message)
                has_messages = True
            elif title:
                yield from _finished(chat)
                chat = _chat(title["title"])
            elif chat["messages"]:
                chat["messages"][-1]["lines"].append(line)
        yield from _finished(chat)
    finally:
        text.detach()
    if not has_messages:
        problem = "This Markdown has no messages: each begins with a line such as `## user` or `**You:**`"
        raise refused("unknown_format", problem)


def _message(line: str) -> dict[str, Any] | None:
    speaker = next((match for pattern in _SPEAKERS if (match := pattern.fullmatch(line))), None)
    if speaker is None or not (role_of(speaker["name"]) or speaker["name"].lower() in _OTHER_HEADINGS):
        return None
    groups = speaker.groupdict()
    words = groups.get("words", "")
    time = groups.get("time") or ""
    is_time = _LIKE_TIME.search(time) is not None
    at = time.strip(_AROUND_TIME) if is_time else None
    return {"role": speaker["name"], "created_at": at, "lines": [f"{words.strip()}\n"]}


def _chat(title: str) -> dict[str, Any]:
    return {"title": title, "messages": []}


def _finished(chat: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in chat["messages"]:
        lines = message.pop("lines")
        is_quoted = all(line.startswith(">") for line in lines if line.strip())
        message["content"] = "".join(re.sub("^> ?", "", line) if is_quoted else line for line in lines)
    if chat["messages"]:
        yield chat


def is_copilot(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(64).decode("utf-8-sig", "replace").replace('"', "").startswith(",".join(_COLUMNS))


def copilot_messages(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the messages, as items for `chats`. Raises InvalidRequest."""
    file.seek(0)
    page = io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
    try:
        for title, rows in groupby(csv.DictReader(page, restval=""), lambda row: row["Conversation"]):
            while part := list(islice(rows, ROWS_MAX)):
                session_id = f"copilot-{digest(title, part[-1]['Time'])}"
                for row in reversed(part):
                    message = {"created_at": row["Time"], "role": row["Author"], "content": row["Message"]}
                    yield {"session_id": session_id, "title": title, **message}
    except csv.Error as error:
        raise refused("unknown_format", f"This CSV can't be read: {error}") from None
    finally:
        page.detach()
