"""Files of other programs: JSON, JSON Lines, Markdown, a database of LangGraph, or a .zip.

Invariant: memory holds one chat at a time (test_sources).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, islice
from typing import IO, Any

from memory.errors import InvalidRequest
from memory.transfer.export import SessionRecord
from memory.transfer.json_reader import NotJson, Parts, iter_items
from memory.transfer.sources import chatgpt, chats, claude, gemini, langgraph, markdown, memories
from memory.transfer.sources.archive import Archive, is_zip
from memory.transfer.sources.values import Record, mapping, refused

JOINED_MAX = 500  # items of one session, where each is listed alone
_LISTS = ("results", "memories", "facts", "edges")  # of items, in the response of an API
_PARTS: Parts = {
    None: {"mapping": "start_map", **dict.fromkeys(("chat_messages", "messages", "docs", *_LISTS), "start_array")}
}


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


@dataclass(frozen=True)
class ThirdPartyExport:
    """Items of another program's export. Each iteration reads the file from the start."""

    items: Callable[[], Iterator[tuple[Source, Mapping[str, Any]]]]
    now: datetime  # for records without a time

    @property
    def format(self) -> str:
        return next((source.name for source, _ in self.items()), SOURCES[-1].name)

    def records(self) -> Iterator[Record]:
        """Yield the records, with consecutive parts of a session joined, without empty sessions.

        Raises InvalidRequest, also for an export of several people, and NotJson.
        """
        for session_id, group in groupby(
            self._each(), lambda record: record.id if isinstance(record, SessionRecord) else None
        ):
            while session_id is not None and (parts := list(islice(group, JOINED_MAX))):
                session = _join([part for part in parts if isinstance(part, SessionRecord)])
                if session.messages:
                    yield session
            yield from group

    def _each(self) -> Iterator[Record]:
        people = set[str]()
        for source, item in self.items():
            ids = (item.get("user_id"), item.get("account_uuid"), mapping(item.get("account")).get("uuid"))
            people.update(person for person in ids if isinstance(person, str))
            if len(people) > 1:
                names = " and ".join(sorted(people))[:300]
                raise refused("several_people", f"This export is of several people: {names}. Import each one's alone")
            yield from source.records(item, self.now)


def open_export(file: IO[bytes], now: datetime) -> ThirdPartyExport:
    """Return the export in a file. Raises InvalidRequest for a .zip that can't be read, or has nothing to import."""
    if not is_zip(file):
        return ThirdPartyExport(lambda: _items(file), now)
    archive = Archive(file)
    read = [name for name in archive.names if _is_known(archive, name)]
    if not read:
        raise refused("unknown_format", f"This is a .zip without chats. It begins with: {archive.begins}")

    def items() -> Iterator[tuple[Source, Mapping[str, Any]]]:
        for name in read:
            with archive.open(name) as part:
                yield from _items(part)

    return ThirdPartyExport(items, now)


def _is_known(archive: Archive, name: str) -> bool:
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
    """Yield the items of one file, each with its source.  Raises InvalidRequest for an unknown item, and NotJson."""
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
    """Yield the items of a JSON document, joined from their parts; of the response of an API, those of its list."""
    parts: dict[str, Any] = {}
    listed = False
    for (_, _, *part), value in iter_items(file, _PARTS, lines=True):
        if not part:
            if not listed:
                yield {**value, **parts} if parts else value
            parts, listed = {}, False
            continue
        name, place = part
        if name in _LISTS:
            listed = True
            yield value
        elif isinstance(place, int):
            parts.setdefault(name, []).append(value)
        else:
            parts.setdefault(name, {})[place] = value


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
