"""Documents to import: Recap's own export, and ChatGPT's conversations.json.

Guarantee: `checked` reads a document to its end before anything of it is stored, and names the place of what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import IO, Any

from marshmallow import Schema, ValidationError, fields

from memory.errors import InvalidRequest
from memory.people.export import FactRecord, ItemRecord, SessionRecord
from schemas import chatgpt
from schemas.errors import flat
from schemas.export import (
    FORMAT,
    VERSION,
    ExportDocument,
    ExportedFact,
    ExportedItem,
    ExportedMessage,
    ExportedRevision,
    ExportedSession,
    ExportedSummary,
    ExportedTurn,
    ExportedVersion,
)
from schemas.fields import Input, UserId, about, counts
from schemas.json_items import Apart, NotJson, is_array, walk

_SCHEMAS = {  # of what is read of an export, by the names in its path
    ("sessions",): ExportedSession(),
    ("sessions", "messages"): ExportedMessage(),
    ("sessions", "summaries"): ExportedSummary(),
    ("sessions", "turns"): ExportedTurn(),
    ("facts",): ExportedFact(),
    ("facts", "revisions"): ExportedRevision(),
    ("items",): ExportedItem(),
    ("items", "versions"): ExportedVersion(),
}
_PARTS: Apart = {  # of an export; and of ChatGPT's conversations, which are in an array
    "sessions": dict.fromkeys(("messages", "summaries", "turns"), "start_array"),
    "facts": {"revisions": "start_array"},
    "items": {"versions": "start_array"},
    None: {"mapping": "start_map"},
}
_NAMES = ExportDocument().fields


class ImportQuery(Input):
    user_id = UserId(required=True)


class Imported(Schema):
    """What an import did.  What was stored already is left as it is."""

    format = fields.String(metadata=about(f"`{FORMAT}` or `chatgpt`."))
    created = counts("How many sessions, messages, summaries, turns, facts and items are new.")
    known = counts("How many sessions, messages, facts and items were stored already, or rest on what was erased.")
    renamed = fields.Dict(metadata=about("Sessions whose id was taken, and the id that each has here."))


@dataclass(frozen=True)
class Document:
    """A document that was checked.  Each call reads its sessions, facts or items from the start."""

    format: str
    sessions: Callable[[], Iterator[SessionRecord]]
    facts: Callable[[], Iterator[FactRecord]]
    items: Callable[[], Iterator[ItemRecord]]


def checked(file: IO[bytes]) -> Document:
    """The document in `file`.  Raises InvalidRequest."""
    try:
        return _chatgpt(file) if is_array(file) else _recap(file)
    except NotJson as error:
        message = f"The document is not valid JSON: {error}. Nothing was stored."
        raise InvalidRequest("invalid_json", message, status=400) from None


def _chatgpt(file: IO[bytes]) -> Document:
    for number, conversation in enumerate(_conversations(file)):
        if not chatgpt.looks_right(conversation):
            raise _unknown(f"item {number} of its list is not a conversation with a `mapping`")

    def sessions() -> Iterator[SessionRecord]:
        records = map(chatgpt.session, _conversations(file))
        return (record for record in records if record.messages)

    return Document("chatgpt", sessions, lambda: iter(()), lambda: iter(()))


def _conversations(file: IO[bytes]) -> Iterator[Any]:
    nodes: dict[str, Any] = {}
    for (_, _, *node), value in walk(file, _PARTS):
        if node:
            nodes[node[1]] = value
        else:
            yield {**value, "mapping": nodes} if nodes else value
            nodes = {}


def _recap(file: IO[bytes]) -> Document:
    lengths: dict[str, int] = {}
    for number, session in enumerate(_records(_of_an_export(file), "sessions")):
        place = f"sessions.{number}"
        if session.id in lengths:
            raise _invalid(f"{place}.id", f"{session.id!r} is there twice")
        lengths[session.id] = len(session.messages)
        _check_distinct(f"{place}.messages", "external_id", session.messages)
        _check_distinct(f"{place}.summaries", "version", session.summaries)
        _check_distinct(f"{place}.turns", "user_position", session.turns)
        _check_distinct(f"{place}.turns", "reply_position", session.turns)
    for number, record in enumerate(_records(walk(file, _PARTS), "facts")):
        fact = record.fact
        if fact.session_id is None and (fact.scope == "session" or record.source_position):
            raise _invalid(f"facts.{number}.session_id", "it is missing")
        if fact.session_id is not None and (record.source_position or 0) > lengths.get(fact.session_id, -1):
            raise _invalid(f"facts.{number}", "its session, or its source message, is not in the document")
    for number, record in enumerate(_records(walk(file, _PARTS), "items")):
        if any(source.position > lengths.get(source.session_id, -1) for source in record.sources):
            raise _invalid(f"items.{number}.sources", "a session, or a message of it, is not in the document")
        _check_distinct(f"items.{number}.versions", "version", record.versions)

    def read(name: str) -> Callable[[], Iterator[Any]]:
        return lambda: _records(walk(file, _PARTS), name)

    return Document(FORMAT, read("sessions"), read("facts"), read("items"))


def _of_an_export(file: IO[bytes]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The items of a document.  Raises InvalidRequest as soon as they show that it is no export."""
    head: dict[str, Any] = {}
    for path, value in walk(file, _PARTS):
        if len(path) == 1:
            head[path[0]] = value
        elif path[0] in ("facts", "items"):  # which are read only when all sessions are known
            _loaded(path, value)
        if "format" in head or path[0] not in (_NAMES if len(path) == 1 else ("sessions", "facts", "items")):
            _check_head({"version": VERSION, **head})
        yield path, value
    _check_head(head)


def _check_head(head: Mapping[str, Any]) -> None:
    if head.get("format") != FORMAT:
        raise _unknown(f"it is an object whose `format` is not {FORMAT!r}")
    if head.get("version") != VERSION:
        raise InvalidRequest(
            "export_version_unknown",
            f"This export has version {str(head.get('version'))[:20]}, but this Recap reads version {VERSION}. Nothing "
            "was stored. Import it into a Recap as new as the one that exported it.",
            param="version",
        )


def _records(items: Iterable[tuple[tuple[Any, ...], Any]], wanted: str) -> Iterator[Any]:
    """The records of sessions, facts or items."""
    lists: dict[str, list[Any]] = {}
    for path, value in items:
        if path[0] != wanted:
            continue
        loaded = _loaded(path, value)
        if len(path) > 2:
            lists.setdefault(path[2], []).append(loaded)
        else:
            yield replace(loaded, **lists)
            lists = {}


def _loaded(path: tuple[Any, ...], value: Any) -> Any:
    try:
        return _SCHEMAS[path[0], *path[2:3]].load(value)
    except ValidationError as error:
        place, texts = next(iter(flat(error.messages, ".".join(map(str, path))).items()))
        raise _invalid(place, texts[0].rstrip(".")) from None


def _check_distinct(place: str, name: str, items: Iterable[Any]) -> None:
    """Raise InvalidRequest when two items have the same value for `name`, unless it is None."""
    seen: set[Any] = set()
    for number, item in enumerate(items):
        value = getattr(item, name)
        if value in seen:
            raise _invalid(f"{place}.{number}.{name}", f"{value!r} is there twice")
        if value is not None:
            seen.add(value)


def _invalid(place: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_import", f"{place}: {problem}. Nothing was stored.", param=place)


def _unknown(reason: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_format",
        f"This is neither an export of Recap nor ChatGPT's conversations.json: {reason}. Nothing was stored.",
    )
