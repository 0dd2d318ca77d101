"""Files of other programs: JSON, JSON Lines, Markdown, a database of LangGraph, or a .zip, which is read in place.

Invariants:
- Memory holds one chat at a time, and nothing is written to disk (test_sources).
- A .zip with too many files or too much text is refused (test_sources).
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import chain, groupby, islice
from typing import IO, Any

from memory.errors import InvalidRequest
from memory.transfer.export import SessionRecord
from memory.transfer.json_reader import NotJson, iter_items
from memory.transfer.sources import chatgpt, chats, claude, gemini, langgraph, markdown, memories
from memory.transfer.sources.values import Record, mapping, refused

JOINED_MAX = 500  # items of one session, where each is listed alone
_LISTS = ("results", "memories", "facts", "edges")  # of items, in the response of an API
UNPACKED_BYTES_MAX = 1 << 31  # of the text in a .zip
DIRECTORY_BYTES_MAX = 1 << 23  # of the list of its files, which is read at once
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
_TEXT = re.compile(r"\.(json|jsonl|ndjson|md)$", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """Program: recognises an item of its export, and returns the records of it."""

    name: str
    recognises: Callable[[Mapping[str, Any]], bool]
    records: Callable[[Mapping[str, Any], datetime], Iterator[Record]]


SOURCES = (
    Source("chatgpt", chatgpt.recognises, chatgpt.records),
    Source("claude", claude.recognises, claude.records),
    Source("gemini", gemini.recognises, gemini.records),
    Source("mem0", memories.recognises_mem0, memories.of_mem0),
    Source("zep", memories.recognises_zep, memories.of_zep),
    Source("langgraph", langgraph.recognises, chats.records),
    Source("chats", chats.recognises, chats.records),
)
_BESIDE = "What was said is in conversations.json beside it"
_ACTIVITY = "Google's record of another activity. That of Gemini is in My Activity/Gemini Apps/MyActivity.json"
_OTHER_FILES = {  # of exports, by a field that only they have
    "chatgpt_plus_user": f"ChatGPT's user.json. {_BESIDE}",
    "is_anonymous": f"ChatGPT's shared_conversations.json. {_BESIDE}",
    "rating": f"ChatGPT's message_feedback.json. {_BESIDE}",
    "full_name": f"Claude's users.json. {_BESIDE}",
    "titleUrl": _ACTIVITY,
    "activityControls": _ACTIVITY,
}
Items = Iterable[tuple[Source, Mapping[str, Any]]]


def records(items: Items, now: datetime) -> Iterator[Record]:
    """Yield the records of items, with consecutive parts of a session joined, without empty sessions.

    now: for records without a time. Raises InvalidRequest, also for items of several people, and NotJson.
    """
    for session_id, group in groupby(
        _each(items, now), lambda record: record.id if isinstance(record, SessionRecord) else None
    ):
        while session_id is not None and (parts := list(islice(group, JOINED_MAX))):
            session = _join([part for part in parts if isinstance(part, SessionRecord)])
            if session.messages:
                yield session
        yield from group


def _each(items: Items, now: datetime) -> Iterator[Record]:
    people = set[str]()
    for source, item in items:
        ids = (item.get("user_id"), item.get("account_uuid"), mapping(item.get("account")).get("uuid"))
        people.update(person for person in ids if isinstance(person, str))
        if len(people) > 1:
            names = " and ".join(sorted(people))[:300]
            raise refused("several_people", f"This export is of several people: {names}. Import each one's alone")
        yield from source.records(item, now)


def open_export(file: IO[bytes]) -> Callable[[], Items]:
    """Return a function that reads the items of another program's export from the start.

    Raises InvalidRequest for a .zip that can't be read, or has nothing to import.
    """
    file.seek(0)
    if file.read(4) != b"PK\x03\x04":
        return partial(_items, file)
    archive = _Archive(file)
    names = [name for name in archive.names if _is_known(archive, name)]
    if not names:
        raise refused("unknown_format", f"This is a .zip without chats. It begins with: {archive.begins}")

    def items() -> Items:
        for name in names:
            with archive.open(name) as part:
                yield from _items(part)

    return items


def _is_known(archive: _Archive, name: str) -> bool:
    """Return whether a file begins with an item of a known source. Exports have other files beside."""
    try:
        with archive.open(name) as file:
            return next(_items(file), None) is not None
    except NotJson:
        return False
    except InvalidRequest as error:
        if error.code != "unknown_format":
            raise
        return False


def _items(file: IO[bytes]) -> Iterator[tuple[Source, Mapping[str, Any]]]:
    """Yield the items of one file, each with its source. Raises InvalidRequest for an unknown item, and NotJson."""
    if langgraph.is_database(file):
        items: Iterator[Any] = langgraph.threads(file)
    else:
        items = markdown.chats(file) if markdown.is_markdown(file) else _of_json(file)
    for number, item in enumerate(items):
        source = next((source for source in SOURCES if source.recognises(mapping(item))), None)
        if source is None:
            raise _unknown(number, mapping(item))
        yield source, item


def _of_json(file: IO[bytes]) -> Iterator[Any]:
    """Yield the items of a JSON document; of the response of an API, those of its lists."""
    for _, item in iter_items(file, lines=True):
        lists = [value for name, value in mapping(item).items() if name in _LISTS and isinstance(value, list)]
        yield from chain(*lists) if any(lists) else [item]


def _unknown(number: int, item: Mapping[str, Any]) -> InvalidRequest:
    other = next((text for name, text in _OTHER_FILES.items() if name in item), None)
    if other is not None:
        return refused("unknown_format", f"This is {other}")
    return refused(
        "unknown_format",
        "This is neither an export of Recap nor one that Recap knows of another program: item "
        f"{number} of it is no conversation, and has no memory of a person. docs/export.md lists the formats",
    )


def _join(parts: list[SessionRecord]) -> SessionRecord:
    """Join the parts of a session: each message once, in order of time if all have one."""
    messages = {draft.external_id: draft for part in parts for draft in part.messages}
    drafts = list(messages.values())
    if len(parts) > 1 and all(draft.created_at for draft in drafts):
        drafts.sort(key=lambda draft: draft.created_at or datetime.min)
    return replace(parts[0], messages=tuple(drafts))


class _Archive:
    """Files of a .zip. Raises InvalidRequest for a damaged one, now or while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        with _errors():
            self._zip = zipfile.ZipFile(_Bounded(file))
        files = self._zip.infolist()
        text = [file for file in files if _TEXT.search(file.filename)]
        self.names = sorted({file.filename for file in text})
        self.begins = ", ".join(file.filename[:60] for file in files[:3])
        if sum(file.file_size for file in text) > UNPACKED_BYTES_MAX:
            raise refused("zip_too_large", "This .zip holds too much to read at once. Unpack it, and import each file")

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        with _errors((*_DAMAGED, RuntimeError)):  # a password, or a compression that Python does not know
            part = self._zip.open(name)
        with _errors(), part:
            yield part


class _Bounded:
    """File of a .zip, with reads below DIRECTORY_BYTES_MAX: a .zip declares the size of its list."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(DIRECTORY_BYTES_MAX if size < 0 else min(size, DIRECTORY_BYTES_MAX))
        if len(data) == DIRECTORY_BYTES_MAX:
            raise zipfile.BadZipFile
        return data


@contextmanager
def _errors(kinds: tuple[type[Exception], ...] = _DAMAGED) -> Iterator[None]:
    try:
        yield
    except kinds:
        problem = (
            "This .zip can't be read: it is damaged, cut off, has a password, or lists too many files. Download it "
            "again, or unpack it and import each file"
        )
        raise refused("bad_zip", problem) from None
