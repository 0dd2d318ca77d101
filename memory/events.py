"""Events: what happened in memory, for streams and webhooks, in the order of each person.

The log is read from rows that stay and whose ids grow: messages, versions of summaries and documents, and revisions of
facts. So a turn writes nothing for events, and erasing a row erases its event. A table of its own would cost each turn
two statements and hold the words twice. Only what leaves no row is written as an `EventRow`, and only where the tenant
has a webhook or had a stream open within KEPT. That a fact was forgotten is always written, because it is counted.

Invariants:
- No event is passed over: what lies before a place is read only when no older transaction can add to it [test_events].
- Of an owner, events of one kind come in the order of their ids, and kinds are merged by time [test_events].
- Nothing of an erased person is in the log but that they were erased [test_events].
"""

import logging
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from operator import gt
from typing import Any, NamedTuple, cast

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    CursorResult,
    Select,
    and_,
    bindparam,
    case,
    column,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    table,
    union_all,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import find_or_make_owner, of_caller
from memory.errors import InvalidRequest, RecapError
from memory.ops import logs
from models import (
    Database,
    EventRow,
    FactRevisionRow,
    FactRow,
    ItemRow,
    ItemVersionRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    Transaction,
    WebhookRow,
)
from models.base import UTCDateTime
from models.events import EVENT_TYPES, Event, Position
from models.jobs import Job
from models.messages import KEPT_OUT, PASSAGE
from models.owners import Caller
from models.store import OWN

log = logging.getLogger(__name__)

KEPT = timedelta(days=7)  # of rows that tell only an event
COUNTED = timedelta(days=30)  # of rows that tell of forgotten facts, and are counted
FORGOTTEN = "fact.forgotten"
LISTENED_AGAIN = timedelta(hours=1)  # after which a tenant's `listened_at` is written again
BATCH = 100  # events that are read at a time
POLL_SECONDS = 1.0  # between looks of a stream for news; a process has few streams
QUIET_SECONDS = 15.0  # without events, after which a stream sends a comment
SETTLE_SECONDS = 0.5  # that a look waits for transactions that may still add older rows
START_SECONDS = 15.0  # that a new stream waits for them

_M, _S, _R, _V, _E = (row.__table__.c for row in (MessageRow, SummaryRow, FactRevisionRow, ItemVersionRow, EventRow))
_F, _I, _O, _SESSION = (row.__table__.c for row in (FactRow, ItemRow, OwnerRow, SessionRow))
_DOCUMENTS = _I.key.in_(("profile", "overview")), _I.namespace.in_((f"{OWN}.profile", f"{OWN}.overview"))
_TOLD = ("document", "sources", "sentences")  # parts of a profile and of an overview
_IS_PROFILE = _I.namespace == f"{OWN}.profile"


class _Source(NamedTuple):
    """Kind of rows that are events.

    rows: selects their `id`, `at`, `owner_id` and `type`. data, words: the columns of an event's data, and those with
    people's words.
    """

    mark: str
    types: tuple[str, ...]
    rows: Select[Any]
    data: Mapping[str, Any]
    words: Mapping[str, Any]

    @property
    def columns(self) -> Any:
        return self.rows.selected_columns


def _select(id: Any, at: Any, owner_id: Any, type: Any) -> Select[Any]:
    return select(id, at.label("at"), owner_id, type.label("type"))


_IS_REMEMBERED = func.coalesce(_M.extra["memory"].as_string(), "") != KEPT_OUT["memory"]
_FACT_TYPE = case((_R.action.in_(("made", "accepted")), "fact.created"), else_="fact.corrected")
_OF_SESSION = {"session_id": _SESSION.public_id}
_SOURCES = (
    _Source(
        "m",
        ("message.stored",),
        _select(_M.id, _M.created_at, _M.owner_id, literal("message.stored"))
        .join(SessionRow)
        .where(_M.erased_at.is_(None), _M.role != PASSAGE),
        {**_OF_SESSION, "message_id": _M.id, "role": _M.role, "position": _M.position, "created_at": _M.created_at},
        {"content": case((_IS_REMEMBERED, _M.content)), "name": _M.name},
    ),
    _Source(
        "s",
        ("summary.updated",),
        _select(_S.id, _S.created_at, _SESSION.owner_id, literal("summary.updated")).join(SessionRow),
        {**_OF_SESSION, "version": _S.version, "through": _S.through, "author": _S.author},
        {"sections": _S.sections},
    ),
    _Source(
        "f",
        ("fact.created", "fact.corrected"),
        _select(_R.id, _R.at, _F.owner_id, _FACT_TYPE)
        .select_from(FactRevisionRow)
        .join(FactRow)
        .outerjoin(SessionRow, _SESSION.id == _F.session_id)
        .where(_F.replaces.is_(None), _R.action != "proposed"),  # else it waits for review, or did
        {
            **_OF_SESSION,
            **{name: _R[name] for name in ("fact_id", "action", "author", "category", "importance", "pinned")},
            **{name: _F[name] for name in ("scope", "superseded_by")},
        },
        {"text": _R.text},
    ),
    _Source(
        "p",
        ("profile.updated", "overview.updated"),
        _select(_V.id, _V.created_at, _I.owner_id, case((_IS_PROFILE, "profile.updated"), else_="overview.updated"))
        .select_from(ItemVersionRow)
        .join(ItemRow)
        .where(*_DOCUMENTS),
        {"version": _V.version, "author": _V.author},
        {"document": _V.value},
    ),
    _Source(
        "e",
        (FORGOTTEN, "document.stored", "document.erased", "job.failed", "person.erased", "space.erased"),
        _select(_E.id, _E.at, _E.owner_id, _E.type),
        {"more": _E.data},
        {},
    ),
)
assert len(_SOURCES) == len(Position._fields)
assert {name for source in _SOURCES for name in source.types} == set(EVENT_TYPES)

_NEWEST = select(*(select(func.coalesce(func.max(source.columns.id), 0)).scalar_subquery() for source in _SOURCES))
_LOCKS = table("pg_locks", *map(column, ("virtualtransaction", "mode", "database", "relation")))
_DATABASE: Select[int] = (
    select(column("oid")).select_from(table("pg_database")).where(column("datname") == func.current_database())
)
_WRITERS = select(_LOCKS.c.virtualtransaction).where(
    _LOCKS.c.mode == "RowExclusiveLock",
    _LOCKS.c.database == _DATABASE.scalar_subquery(),
    _LOCKS.c.relation.in_([func.to_regclass(source.columns.id.table.name) for source in _SOURCES]),
)
"""On PostgreSQL the transactions that write such rows: it numbers rows before it commits them."""


# -- reading the log


def parse_position(raw: str) -> Position:
    """Return the place in the log that a text says. Raises InvalidRequest."""
    parts = raw.split("-")
    if len(parts) != len(Position._fields) or not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidRequest(
            "bad_event_id", "Send the `id` of an event of this stream, unchanged, or no Last-Event-ID.", param="after"
        )
    return Position(*(min(int(part), 2**63 - 1) for part in parts))


def read_events(  # noqa: PLR0913 - whose, between which places, and what of them
    tx: Transaction,
    which: ColumnElement[bool],
    after: Position,
    upto: Position,
    *,
    types: Collection[str] = (),
    words: bool = False,
    most: int = BATCH,
) -> tuple[list[Event], Position]:
    """Return the next events between two places, at most `most`, and the place behind them.

    which: condition for the owners' rows. types: empty for all. words: with what people and models said.
    """
    after = Position(*map(min, after, upto))  # rows at its end were erased, or the database is a restored one
    kinds = _kinds(after, upto, types)
    events: list[Event] = []
    position = after
    by_kind = (_read(tx, kind, _between(kind, which, after, upto, types).limit(most), words=words) for kind in kinds)
    for event in islice(merge(*by_kind, key=lambda event: event.timestamp), most):
        position = Position(*map(max, position, event.position))
        events.append(replace(event, position=position))
    return events, position if len(events) == most else upto


def find_owners(
    tx: Transaction, which: ColumnElement[bool], after: Position, upto: Position, types: Collection[str] = ()
) -> Sequence[int]:
    """Return the ids of the owners that have events of these types, or any, between two places."""
    queries = [
        _between(kind, which, after, upto, types)
        .with_only_columns(_SOURCES[kind].columns.owner_id.label("owner"))
        .order_by(None)
        for kind in _kinds(after, upto, types)
    ]
    return tx.scalars(select(union_all(*queries).subquery().c.owner).distinct()).all() if queries else ()


def _kinds(after: Position, upto: Position, types: Collection[str]) -> list[int]:
    """Return the kinds of rows to look at, by their numbers."""
    return [
        kind
        for kind, source in enumerate(_SOURCES)
        if after[kind] < upto[kind] and (not types or not set(types).isdisjoint(source.types))
    ]


def _between(
    kind: int, which: ColumnElement[bool], after: Position, upto: Position, types: Collection[str]
) -> Select[Any]:
    """Return a query for the rows of a kind, in order. It reads no rows before `after`."""
    source = _SOURCES[kind]
    columns = _SOURCES[kind].columns
    owned = select(_O.id).where(_O.id == columns.owner_id, which).exists()  # no join: it would begin at the owner
    rows = source.rows.where(columns.id > after[kind], columns.id <= upto[kind], owned).order_by(columns.id)
    return rows.where(columns.type.in_(types)) if types and len(source.types) > 1 else rows


def _read(tx: Transaction, kind: int, rows: Select[Any], *, words: bool) -> list[Event]:
    """Return the events of a kind in `rows`. The position of each says its own row alone."""
    source = _SOURCES[kind]
    columns = _SOURCES[kind].columns
    parts = {**source.data, **(source.words if words else {})}
    labelled = (part.label(f"data_{name}") for name, part in parts.items())
    owner = (select(name).where(_O.id == columns.owner_id).scalar_subquery() for name in (_O.kind, _O.name))
    events = []
    query = rows.with_only_columns(columns.id, columns.at, columns.type, *owner, *labelled)
    for row_id, at, event_type, owner_kind, name, *values in tx.execute(query):
        data = dict(zip(parts, values, strict=True))
        if "document" in data:
            document = data.pop("document")  # of an overview also with the sentences that the person took out
            data[event_type.removesuffix(".updated")] = {part: document[part] for part in _TOLD if part in document}
        of_space = {"space": name} if owner_kind == "space" else {}
        named = {"user_id": name if owner_kind == "user" else None, **of_space}
        place = Position()._replace(**{Position._fields[kind]: row_id})
        events.append(Event(f"{source.mark}{row_id}", event_type, at, {**named, **data.pop("more", {}), **data}, place))
    return events


# -- writing what leaves no row

_TYPE = bindparam("event_type", type_=_E.type.type)
_LISTENER = OwnerRow.__table__.alias().c
_LISTENS = or_(
    _LISTENER.listened_at > bindparam("since", type_=UTCDateTime()),
    select(WebhookRow.id).where(WebhookRow.owner_id == _LISTENER.id).exists(),
)
_OWN_OR_TENANTS = or_(_LISTENER.id == _O.id, and_(_LISTENER.tenant == _O.tenant, _LISTENER.kind == "tenant"))
_TELL = insert(EventRow.__table__).from_select(
    ["owner_id", "type", "data", "at"],
    select(
        _O.id,
        _TYPE,
        bindparam("event_data", type_=JSON()),
        bindparam("event_at", type_=UTCDateTime()),
    ).where(
        _O.id == bindparam("owner"),
        or_(_TYPE == FORGOTTEN, select(_LISTENER.id).where(_OWN_OR_TENANTS, _LISTENS).exists()),
    ),
)


def tell(
    tx: Transaction | Connection, type: str, owners: Sequence[tuple[int, Mapping[str, Any]]], at: datetime
) -> bool:
    """Store an event of each owner, with its data, if anybody listens or it is counted; return whether one was stored.

    Old ones go. The data has no words and no names but those of a person who is erased.
    """
    rows = [
        {"owner": owner_id, "event_type": type, "event_data": {**data}, "event_at": at, "since": at - KEPT}
        for owner_id, data in owners
    ]
    is_stored = bool(rows) and cast(CursorResult[Any], tx.execute(_TELL, rows)).rowcount > 0
    if is_stored:
        remove_old(tx, at)
    return is_stored


def remove_old(tx: Transaction | Connection, now: datetime) -> None:
    """Delete the rows of events that are older than KEPT, and of forgotten facts those older than COUNTED."""
    is_over = or_(_E.type != FORGOTTEN, _E.at <= now - COUNTED)
    tx.execute(delete(EventRow.__table__).where(_E.at <= now - KEPT, is_over))


def count_forgotten(tx: Transaction, owner_id: int, now: datetime) -> tuple[int, datetime | None]:
    """Return how many facts of an owner were forgotten within COUNTED, and when the last one was.

    Only those that no other fact stands for: no superseded ones, and none whose message was replaced or archived.
    """
    its = _E.owner_id == owner_id, _E.type == FORGOTTEN, _E.at > now - COUNTED
    figures = select(func.count(), func.max(_E.at)).where(*its, _E.data["action"].as_string() == "forgotten")
    count, last = tx.execute(figures).one()
    return count, last


# -- listening


class Events:
    """Follows the log. Each stream looks for news in its own thread."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database, self._now = database, now
        self._stopping = False  # set by a signal, in whose handler no lock may be taken

    def newest(self, patience: float = SETTLE_SECONDS) -> Position | None:
        """Return the end of the log, once no older transaction can add to what is before it.

        None when one goes on for longer than `patience` seconds.
        """
        until = time.monotonic() + patience
        with self._database.read() as tx:
            newest = Position(*tx.execute(_NEWEST).one())
        writers = self._writers()
        while left := writers & self._writers() if writers else None:
            if time.monotonic() >= until:
                return None
            writers = left
            time.sleep(0.02)
        return newest

    def end(self) -> Position:
        """Return the end of the log for a new reader. Raises RecapError when transactions go on before it for long."""
        newest = self.newest(START_SECONDS)
        if newest is None:
            raise RecapError("server_busy", "The database is busy. Send this again.", status=503, retry_after=2.0)
        return newest

    def _writers(self) -> set[str]:
        """Return the transactions that write rows of the log; SQLite has one at a time, whose rows come last."""
        if self._database.engine.dialect.name == "sqlite":
            return set()
        with self._database.read() as tx:
            return set(tx.scalars(_WRITERS))

    def follow(
        self, caller: Caller, *, after: Position | None, types: Collection[str], words: bool, seconds: float
    ) -> Generator[Event | Position]:
        """Yield the place where the stream begins, then events as they come, and its place again when there are none.

        after: where the reader was before; None for the end of the log. It ends after `seconds`, and when the process
        stops. Raises RecapError before it yields anything.
        """
        which = of_caller(caller)
        until = time.monotonic() + seconds
        self._note_listener(caller.tenant)
        newest = self.end()
        position = Position(*map(min, after or newest, newest))  # a restored database has fewer rows than it had
        yield position
        while True:
            while position != newest:
                with self._database.read() as tx:
                    events, position = read_events(tx, which, position, newest, types=types, words=words)
                yield from events
            if self._stopping or time.monotonic() >= until:
                return
            newest = self._wait(position, min(QUIET_SECONDS, until - time.monotonic()))
            if newest == position:
                yield position

    def stop(self) -> None:
        """End all streams within a second: their readers come back to another process, or to the next one."""
        self._stopping = True

    def _wait(self, known: Position, seconds: float) -> Position:
        """Return the end of the log when it lies behind the known one, and the known one after some seconds."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._stopping:
            time.sleep(min(POLL_SECONDS, left))
            try:
                newest = self.newest() or known
            except SQLAlchemyError as error:
                log.error("events: the database can't be read", extra=logs.fields(error=logs.safe_message(error)))
                continue
            if any(map(gt, newest, known)):
                return Position(*map(max, newest, known))
        return known

    def _note_listener(self, tenant: str) -> None:
        """Have events that leave no row written for this tenant from now on."""
        with self._database.read() as tx:
            known = select(_O.id).where(_O.tenant == tenant, _O.kind == "tenant")
            if tx.scalar(known.where(_O.listened_at > self._now() - LISTENED_AGAIN)) is not None:
                return
        with self._database.write() as tx:
            owner = find_or_make_owner(tx, Caller(tenant), self._now())
            tx.execute(update(OwnerRow.__table__).where(_O.id == owner.id).values(listened_at=self._now()))

    def expire(self, _job: Job) -> None:
        """Run the job that deletes events when they are old. Idempotent."""
        with self._database.write() as tx:
            remove_old(tx, self._now())
