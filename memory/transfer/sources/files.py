"""Files of other programs: JSON, JSON Lines, Markdown, a CSV of Copilot, a database of LangGraph, or a .zip.

Invariants:
- Memory holds one chat at a time (test_sources).
- A .zip is read in place: nothing is written to disk, and one with too many files or too much text is refused
  (test_sources).
"""

import codecs
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from itertools import groupby, islice
from typing import IO, Any

from memory.errors import InvalidRequest
from memory.json_values import dict_in
from memory.transfer.export import SessionRecord
from memory.transfer.json_reader import NotJson, Parts, first_byte, iter_items
from memory.transfer.sources import FORMATS, OTHER_FORMS, SOURCES, Source
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record, digest, refused, text

JOINED_MAX = 500  # items of one session, where each is listed alone
SKIPPED_MAX = 20  # items that are named
PICTURE_BYTES_MAX = 1 << 23  # of an item, as a message may hold a picture
UNKNOWN_FIRST_MAX = 1_000  # items at the beginning of a file that no source knows
UNKNOWN_MAX = 100_000  # items of one file that no source knows, from which on it is refused
_CHATS = ("conversations", "chats")  # lists of whole chats, which may be long
_LISTS = ("results", "memories", "facts", "edges", "agents", "blocks", *_CHATS)  # of items, in an object
_PARTS: Parts = {
    None: {"mapping": "start_map", **dict.fromkeys(("chat_messages", "messages", "docs", *_LISTS), "start_array")}
}
_AS_JSON = "Chats with Gemini are in My Activity/Gemini Apps of Google Takeout, as MyActivity.json or MyActivity.html"
UNPACKED_BYTES_MAX = 1 << 31  # of its text
DIRECTORY_BYTES_MAX = 1 << 23  # of its list of files, which is read at once
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError)
_TEXT_FILE = re.compile(r"\.(json|jsonl|ndjson|md|html)$", re.IGNORECASE)
_IN_ZIP = re.compile(r"(.*?\.zip)//(.*)", re.IGNORECASE)


class ThirdPartyExport:
    """Export of another program. `records` may be called again: each time, it reads the file from the start.

    After the first time, `format` is the name of its source, `read_files` names the files with an item that a source
    knows, `skipped` is the number of items that none knows, and `skipped_items` names the first of them. Other files of
    a .zip do not count. now: for records without a time, see `times`.
    """

    def __init__(self, file: IO[bytes], now: datetime) -> None:
        self._file = file
        self.times = Times(now)
        self._archive = Archive(file) if is_zip(file) else None
        self._names = self._archive.names if self._archive is not None else [""]
        self.read_files = list[str]()
        self.format = SOURCES[-1].name
        self.skipped = 0
        self.skipped_items = list[str]()

    def records(self) -> Iterator[Record]:
        """Yield the records, with consecutive parts of a session joined, without empty sessions.

        Raises InvalidRequest, also for an export of several people, and NotJson.
        """
        for session_id, group in groupby(
            self._each(),
            lambda record: record.id if isinstance(record, SessionRecord) and record.by_external_id else None,
        ):
            while session_id is not None and (parts := list(islice(group, JOINED_MAX))):
                session = _join([part for part in parts if isinstance(part, SessionRecord)])
                if session.messages:
                    yield session
            yield from (record for record in group if not isinstance(record, SessionRecord) or record.messages)

    def _each(self) -> Iterator[Record]:
        people: set[str] = set()
        for source, item in self._known_items():
            ids = (item.get("user_id"), item.get("account_uuid"), dict_in(item.get("account")).get("uuid"))
            people.update(person for person in ids if isinstance(person, str))
            if len(people) > 1:
                names = " and ".join(sorted(people))[:300]
                raise refused("several_people", f"This export is of several people: {names}. Import each one's alone")
            yield from source.records(item, self.times)

    def _known_items(self) -> Iterator[tuple[Source, Mapping[str, Any]]]:
        self.skipped = 0
        self.skipped_items = []
        self.read_files = list[str]()
        for name in self._names:
            try:
                yield from self._known_in(name)
            except (NotJson, InvalidRequest) as error:
                is_other_file = isinstance(error, NotJson) or error.code == "unknown_format"
                if self._archive is None or name in self.read_files or not is_other_file:
                    raise
        if self._archive is not None:
            self._names = self.read_files
            if not self.read_files:
                problem = f"This is a .zip without chats. It begins with: {self._archive.begins}. {_AS_JSON}"
                raise refused("unknown_format", problem)

    def _known_in(self, name: str) -> Iterator[tuple[Source, Mapping[str, Any]]]:
        """Yield the items of one file, each with its source.

        Raises InvalidRequest if no source knows any of them, or any of the first UNKNOWN_FIRST_MAX, or if there are
        more than UNKNOWN_MAX that none knows.
        """
        first = None
        skipped = 0
        named: list[str] = []
        with self._archive.open(name) if self._archive is not None else nullcontext(self._file) as file:
            for number, item in enumerate(_items(file)):
                source = next((source for source in SOURCES if source.recognises(dict_in(item))), None)
                if source is None:
                    first = first or _unknown(number)
                    skipped += 1
                    if len(named) < SKIPPED_MAX:
                        named.append(_name(name, number, dict_in(item)))
                    if skipped > (UNKNOWN_MAX if name in self.read_files else UNKNOWN_FIRST_MAX):
                        raise first
                    continue
                if name not in self.read_files:
                    self.format = self.format if self.read_files else source.name
                    self.read_files.append(name)
                yield source, item
        if first is not None and name not in self.read_files:
            raise first
        self.skipped += skipped
        self.skipped_items = [*self.skipped_items, *named][:SKIPPED_MAX]


def _items(file: IO[bytes]) -> Iterator[Any]:
    """Yield the items of one file. Raises InvalidRequest and NotJson."""
    file.seek(0)
    if file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):  # as PowerShell writes files
        return _of_json(codecs.EncodedFile(file, "utf-8", "utf-16"))
    read = next((read for is_of_form, read in OTHER_FORMS if is_of_form(file)), None)
    if read is not None:
        return read(file)
    begins = first_byte(file)
    if begins == b"<":
        raise refused("unknown_format", f"This is a web page. {FORMATS}. {_AS_JSON}")
    if begins == b'"':  # a JSON document that was written as JSON once more
        return _of_json(_unquoted(file))
    if begins not in (b"[", b"{"):
        raise NotJson(f"it begins with neither [ nor {{. {FORMATS}" if begins else "it is empty")
    return _under_head(_of_json(file))


def _unquoted(file: IO[bytes]) -> IO[bytes]:
    """Return the text that a file has as one JSON string. Raises NotJson, also for one above PICTURE_BYTES_MAX."""
    file.seek(0)
    try:
        return io.BytesIO(json.loads(file.read(PICTURE_BYTES_MAX + 1)).encode())
    except ValueError:
        raise NotJson("it begins like a text in quotation marks, which is damaged or too long") from None


def _of_json(file: IO[bytes]) -> Iterator[Any]:
    """Yield the items of a JSON document, joined from their parts; of the response of an API, those of its list."""
    parts: dict[str, Any] = {}
    listed = False
    items = iter_items(file, _PARTS, lines=True, part_bytes=PICTURE_BYTES_MAX, large=_CHATS, is_item=_is_item)
    for (_, _, *part), value in items:
        if not part:
            if not listed:
                yield {**value, **parts} if parts else value
            parts = {}
            listed = False
            continue
        name, place = part
        if _is_item(name, value):
            listed = True
            yield value
        elif isinstance(place, int):
            parts.setdefault(name, []).append(value)
        else:
            parts.setdefault(name, {})[place] = value


def _is_item(name: str, value: Any) -> bool:
    return name in _LISTS and "from" not in dict_in(value)  # ShareGPT calls the messages of a chat `conversations`


def _under_head(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items; of a file of SillyTavern, which begins with a head, with the id and the title of the chat."""
    head = None
    chat: dict[str, Any] = {}
    for item in items:
        if "chat_metadata" in dict_in(item):
            head = item
            chat = {}
            continue
        if head is not None and not chat:
            names = (text(value) for value in (head.get("character_name"), dict_in(item).get("name")))
            title = next((name for name in names if name not in ("", "unused")), "")
            chat = {"session_id": f"sillytavern-{digest(str(item))}", "title": title}
        yield {**item, **chat} if chat and isinstance(item, Mapping) else item


def _unknown(number: int) -> InvalidRequest:
    return refused(
        "unknown_format",
        f"This is neither an export of Recap nor one that Recap knows of another program: item {number} of it is no "
        f"conversation, and has no memory of a person. Of an unpacked export, choose conversations.json. {FORMATS}. "
        f"{_AS_JSON}",
    )


def _name(file: str, number: int, item: Mapping[str, Any]) -> str:
    """Return a name by which a person finds an item: its file in a .zip, its place, and its title."""
    title = next((text(item[name])[:60] for name in ("title", "name") if text(item.get(name))), "")
    return f"{file}, item {number}".removeprefix(", ") + (f": {title}" if title else "")


def _join(parts: list[SessionRecord]) -> SessionRecord:
    """Join the parts of a session: each message once, in order of time if all have one."""
    messages = {draft.external_id: draft for part in parts for draft in part.messages}
    drafts = list(messages.values())
    if len(parts) > 1 and all(draft.created_at for draft in drafts):
        drafts.sort(key=lambda draft: draft.created_at or datetime.min)
    return replace(parts[0], messages=tuple(drafts))


# -- a .zip


def is_zip(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(4) == b"PK\x03\x04"


class Archive:
    """Files of a .zip; where it has no text, those of each .zip in it.

    Raises InvalidRequest for a damaged one, now or while it is read.
    """

    def __init__(self, file: IO[bytes], *, is_inner: bool = False) -> None:
        with _errors():
            self._zip = zipfile.ZipFile(_Bounded(file))
        files = self._zip.infolist()
        sizes = {file.filename: file.file_size for file in files if _TEXT_FILE.search(file.filename)}
        self.size = sum(sizes.values())
        self.names: list[str] = sorted(sizes)
        self.begins = ", ".join(file.filename[:60] for file in files[:3])
        for inner in files if not (is_inner or sizes) else ():
            is_zip_file = inner.filename.lower().endswith(".zip")
            self.size += inner.file_size if is_zip_file else 0
            if is_zip_file and self.size <= UNPACKED_BYTES_MAX:
                with self.open(inner.filename) as part:
                    archive = Archive(part, is_inner=True)
                # To read one of its files, what is before it in the outer one is unpacked too.
                self.size += archive.size + inner.file_size * len(archive.names)
                self.names += [f"{inner.filename}//{name}" for name in archive.names]
        if self.size > UNPACKED_BYTES_MAX:
            raise refused("zip_too_large", "This .zip holds too much to read at once. Unpack it, and import each file")

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        if inner := _IN_ZIP.fullmatch(name):
            with self.open(inner[1]) as part, Archive(part, is_inner=True).open(inner[2]) as file:
                yield file
            return
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
