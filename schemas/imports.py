"""A document to import: which of the known formats it has, that all of it is right, and what is in it.

Guarantee: `checked` reads to the end before anything is stored.  What is wrong is named by its place, and nothing of
the document was stored then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from marshmallow import Schema, ValidationError, fields

from memory.errors import InvalidRequest
from memory.people.records import FactRecord, SessionRecord
from schemas import chatgpt
from schemas.export import FORMAT, VERSION, ExportedFact, ExportedSession
from schemas.fields import UserId
from schemas.streamed_json import NotJson, walk

_session, _fact = ExportedSession(), ExportedFact()


class ImportQuery(Schema):
    user_id = UserId(required=True)


class KnownThings(Schema):
    """How many of each were there already."""

    sessions = fields.Integer()
    messages = fields.Integer()
    facts = fields.Integer()


class ImportedThings(KnownThings):
    """How many of each are new."""

    summaries = fields.Integer()
    turns = fields.Integer()


class Imported(Schema):
    """What an import did.  What is known already is left as it is."""

    format = fields.String(metadata={"description": f"`{FORMAT}` or `chatgpt`."})
    created = fields.Nested(ImportedThings)
    known = fields.Nested(KnownThings)
    renamed = fields.Dict(
        keys=fields.String(),
        values=fields.String(),
        metadata={"description": "Sessions whose id was taken, and the id each has here."},
    )


def checked(file: IO[bytes]) -> _ChatGpt | _Recap:
    """The document in `file`: its format, sessions and facts, each read from the start when asked for.

    Raises InvalidRequest.
    """
    try:
        a_list = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        document: _ChatGpt | _Recap = _ChatGpt(file) if a_list else _Recap(file)
        document.check()
    except NotJson as error:
        raise InvalidRequest(
            "invalid_json", f"The document is not valid JSON: {error}. Nothing was stored.", status=400
        ) from None
    return document


@dataclass(frozen=True)
class _ChatGpt:
    """ChatGPT's conversations.json."""

    file: IO[bytes]
    format: str = "chatgpt"

    def check(self) -> None:
        for number, (_, conversation) in enumerate(self._items()):
            if not chatgpt.looks_right(conversation):
                raise _unknown(f"item {number} of its list is no conversation with a `mapping`")

    def sessions(self) -> Iterator[SessionRecord]:
        records = (chatgpt.session(conversation) for _, conversation in self._items())
        return (record for record in records if record.messages)

    def facts(self) -> Iterator[FactRecord]:
        return iter(())

    def _items(self) -> Iterator[tuple[str | None, Any]]:
        self.file.seek(0)
        return walk(self.file)


@dataclass(frozen=True)
class _Recap:
    """Recap's own export."""

    file: IO[bytes]
    format: str = FORMAT

    def check(self) -> None:
        self._check_head()
        lengths: dict[str, int] = {}
        for number, session in enumerate(self.sessions()):
            if session.id in lengths:
                raise _invalid(f"sessions.{number}.id", f"{session.id!r} is there twice")
            lengths[session.id] = len(tuple(session.messages))
            _check_distinct(f"sessions.{number}.messages", "external_id", session.messages)
            _check_distinct(f"sessions.{number}.summaries", "version", session.summaries)
            _check_distinct(f"sessions.{number}.turns", "user_position", session.turns)
            _check_distinct(f"sessions.{number}.turns", "reply_position", session.turns)
        for number, record in enumerate(self.facts()):
            fact = record.fact
            if fact.session_id is None and (fact.scope == "session" or record.source_position):
                raise _invalid(f"facts.{number}.session_id", "it is missing")
            if fact.session_id is not None and (record.source_position or 0) > lengths.get(fact.session_id, -1):
                raise _invalid(f"facts.{number}", "there is no such session, or no such message in it")

    def _check_head(self) -> None:
        head: dict[str, Any] = {}
        self.file.seek(0)
        for key, value in walk(self.file):
            if key in ("format", "version"):
                head[key] = value
            if len(head) == 2:  # they come first, unless somebody has put the keys in another order
                break
        version = head.get("version")
        if head.get("format") != FORMAT:
            raise _unknown(f"it is an object whose `format` is not {FORMAT!r}")
        if version != VERSION:
            raise InvalidRequest(
                "export_version_unknown",
                f"This export has version {version!r}; this Recap reads version {VERSION}. Nothing was "
                "stored. Import it into a Recap as new as the one it comes from.",
                param="version",
            )

    def sessions(self) -> Iterator[SessionRecord]:
        return self._load("sessions", _session)

    def facts(self) -> Iterator[FactRecord]:
        return self._load("facts", _fact)

    def _load(self, key: str, schema: Schema) -> Iterator[Any]:
        self.file.seek(0)
        items = (item for name, item in walk(self.file) if name == key)
        for number, item in enumerate(items):
            try:
                yield schema.load(item)
            except ValidationError as error:
                place, problem = _first(error.messages, f"{key}.{number}")
                raise _invalid(place, problem.rstrip(".")) from None


def _check_distinct(place: str, name: str, items: Iterable[Any]) -> None:
    """Raises InvalidRequest when two of the items have the same value under a name; None is no value."""
    seen: set[Any] = set()
    for number, item in enumerate(items):
        value = getattr(item, name)
        if value in seen:
            raise _invalid(f"{place}.{number}.{name}", f"{value!r} is there twice")
        if value is not None:
            seen.add(value)


def _first(messages: Any, place: str) -> tuple[str, str]:
    """The first of marshmallow's messages, and the place it is about."""
    while isinstance(messages, dict):
        key, messages = next(iter(messages.items()))
        place = place if key == "_schema" else f"{place}.{key}"
    return place, str(messages[0])


def _invalid(place: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_import", f"{place}: {problem}. Nothing was stored.", param=place)


def _unknown(reason: str) -> InvalidRequest:
    return InvalidRequest(
        "unknown_format",
        f"This is neither an export of Recap's nor ChatGPT's conversations.json: {reason}. Nothing was stored.",
    )
