"""Read a document to import: Recap's own export, or one of another program (see `memory.transfer.sources`).

Invariant: `read_import` reads a document to its end before anything of it is stored, and names the place of a fault
(test_import, test_sources).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import IO, Any

from marshmallow import Schema, ValidationError, validates_schema

from memory.errors import InvalidRequest
from memory.json_values import dict_in
from memory.transfer import export_format
from memory.transfer.export import FORMAT, FactRecord, ItemRecord, SessionRecord
from memory.transfer.imports import ImportDocument
from memory.transfer.json_reader import NotJson, Parts, first_byte, iter_items
from memory.transfer.sources import files, memories
from memory.transfer.sources.values import refused
from schemas import fields
from schemas.errors import flat
from schemas.shapes import CallerQuery

_PART_SCHEMAS: dict[str, dict[str, Schema]] = {  # of the lists within records, which are read item by item
    kind: export_format.lists_of(schema)
    for kind, schema in export_format.LISTS.items()
    if kind != "archives"  # which are named, not imported
}
_PARTS: Parts = {kind: dict.fromkeys(schemas, "start_array") for kind, schemas in _PART_SCHEMAS.items()}
_NAMES = export_format.ExportDocument().fields


class ImportQuery(CallerQuery):
    """Person or space whose memory it becomes."""

    @validates_schema
    def _is_named(self, data: dict[str, Any], **_: Any) -> None:
        if data["user_id"] is None and data["space"] is None:
            raise ValidationError("Missing data for required field: say whose memory it becomes.", "user_id")


class Imported(Schema):
    """Result of an import. Rows that were stored already are left as they are."""

    format = fields.String(
        attribute="document.format",
        about=f"`{FORMAT}`, or {', '.join(f'`{source.name}`' for source in files.SOURCES)}.",
    )
    created = fields.counts("How many sessions, messages, summaries, turns, facts, items and documents are new.")
    known = fields.counts(
        "How many sessions, messages, facts, items and documents were stored already, or rest on what was erased."
    )
    renamed = fields.Dict(about="Sessions whose id was taken, and the id that each has here.")
    skipped = fields.Integer(
        attribute="document.skipped",
        about="How many items of another program's export were left out, as they are damaged or unknown.",
    )
    skipped_items = fields.List(
        fields.String(),
        attribute="document.skipped_items",
        about="The place and the title of the first of these, at most 20.",
    )
    unread_times = fields.List(
        fields.String(),
        attribute="document.unread_times",
        about="Times that could not be read, or that could be two days, as 05/06/2025: each once, at most 20. Messages "
        "with them have the time of their conversation or, if it has none, of the import.",
    )


def read_import(file: IO[bytes], now: datetime) -> ImportDocument:
    """Return the document in `file`. Records without a time get `now`. Raises InvalidRequest."""
    try:
        return _read_export(file) if _is_export(file) else _read_third_party(file, now)
    except NotJson as error:
        message = f"The document is not valid JSON: {error}. Nothing was stored."
        raise InvalidRequest("invalid_json", message, status=400) from None


def _is_export(file: IO[bytes]) -> bool:
    """Return whether this looks like an export of Recap: an object that begins with `format` or other names of one."""
    if first_byte(file) != b"{":
        return False
    try:
        for path, value in iter_items(file, _PARTS):
            if path == ("format",) or path[0] not in _NAMES:
                return path == ("format",)
            if len(path) > 1:
                return not memories.recognises_zep(dict_in(value))  # Zep has lists of facts too
    except NotJson:
        return False
    return False


def _read_third_party(file: IO[bytes], now: datetime) -> ImportDocument:
    export = files.ThirdPartyExport(file, now)
    kinds = Counter[type]()
    newest: dict[tuple[Any, ...], ItemRecord] = {}
    for record in export.records():
        kinds[type(record)] += 1
        if isinstance(record, ItemRecord):
            name = *record.namespace, record.key
            newest[name] = max(record, newest.get(name, record), key=lambda item: item.updated_at)
    if export.read_files and not kinds:
        raise refused(
            "unknown_format", f"No message of a person or a model, as `role` says, is in this file. {files.FORMATS}"
        )
    return ImportDocument(
        export.format,
        kinds[SessionRecord],
        (record for record in export.records() if isinstance(record, SessionRecord)),
        (record for record in export.records() if isinstance(record, FactRecord)) if kinds[FactRecord] else (),
        newest.values(),
        skipped=export.skipped,
        skipped_items=tuple(export.skipped_items),
        unread_times=export.times.unread,
    )


def _read_export(file: IO[bytes]) -> ImportDocument:
    lengths: dict[str, int] = {}
    head: dict[str, Any] = {}
    for number, session in enumerate(_records(_checked_items(file, head), "sessions")):
        place = f"sessions.{number}"
        if session.id in lengths:
            raise _invalid(f"{place}.id", f"{session.id!r} occurs twice")
        lengths[session.id] = len(session.messages)
        _check_distinct(f"{place}.messages", "external_id", session.messages)
        _check_distinct(f"{place}.summaries", "version", session.summaries)
        _check_distinct(f"{place}.turns", "user_position", session.turns)
        _check_distinct(f"{place}.turns", "reply_position", session.turns)
    for number, fact in enumerate(_records(iter_items(file, _PARTS), "facts")):
        if fact.session_id is None and (fact.scope == "session" or fact.source_position):
            raise _invalid(f"facts.{number}.session_id", "it is missing")
        if fact.session_id is not None and (fact.source_position or 0) > lengths.get(fact.session_id, -1):
            raise _invalid(f"facts.{number}", "its session, or its source message, is not in the document")
    for number, record in enumerate(_records(iter_items(file, _PARTS), "items")):
        _check_distinct(f"items.{number}.versions", "version", record.versions)
    records: dict[str, Any] = {kind: _records(iter_items(file, _PARTS), kind) for kind in _PART_SCHEMAS}
    remember = head.get("remember") is not False
    return ImportDocument(FORMAT, len(lengths), **records, remember=remember)


def _checked_items(file: IO[bytes], head: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the items of an export, and fill in its `head`.

    Raises InvalidRequest at the first item that an export does not have.
    """
    for path, value in iter_items(file, _PARTS):
        if len(path) == 1:
            head[path[0]] = value
        elif path[0] in _PART_SCHEMAS.keys() - {"sessions"}:  # their sessions may come later: check only their shape
            _load(path, value)
        if "format" in head or path[0] not in (_NAMES if len(path) == 1 else export_format.LISTS):
            _check_head({"version": export_format.VERSION, **head})
        yield path, value
    _check_head(head)


def _check_head(head: Mapping[str, Any]) -> None:
    if head.get("format") != FORMAT:
        raise refused("unknown_format", f"This is no export of Recap: its `format` is not {FORMAT!r}")
    if head.get("version") != export_format.VERSION:
        raise InvalidRequest(
            "export_version_unknown",
            f"This export has version {str(head.get('version'))[:20]}, but this Recap reads version "
            f"{export_format.VERSION}. Nothing was stored. Import it into a Recap as new as the one that exported it.",
            param="version",
        )


def _records(items: Iterable[tuple[tuple[Any, ...], Any]], kind: str) -> Iterator[Any]:
    """Yield the records of `sessions`, `facts` or `items`, joined from their parts."""
    lists: dict[str, list[Any]] = {}
    for path, value in items:
        if path[0] != kind:
            continue
        loaded = _load(path, value)
        if len(path) > 2:
            lists.setdefault(path[2], []).append(loaded)
        else:
            yield replace(loaded, **lists)
            lists = {}


def _load(path: tuple[Any, ...], value: Any) -> Any:
    schema = _PART_SCHEMAS[path[0]][path[2]] if len(path) > 2 else export_format.LISTS[path[0]]
    try:
        return schema.load(value)
    except ValidationError as error:
        place, texts = next(iter(flat(error.messages, ".".join(map(str, path))).items()))
        raise _invalid(place, texts[0].rstrip(".")) from None


def _check_distinct(place: str, name: str, items: Iterable[Any]) -> None:
    """Raise InvalidRequest when two items have the same value for `name`, unless it is None."""
    seen: set[Any] = set()
    for number, item in enumerate(items):
        value = getattr(item, name)
        if value in seen:
            raise _invalid(f"{place}.{number}.{name}", f"{value!r} occurs twice")
        if value is not None:
            seen.add(value)


def _invalid(place: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_import", f"{place}: {problem}. Nothing was stored.", param=place)
