"""What all rows share: the declarative base, and columns that mean the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from types import new_class
from typing import Any, TypeVar, cast

from sqlalchemy import JSON, BigInteger, DateTime, Integer, MetaData, Table, bindparam, inspect, update
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.orm.attributes import instance_state
from sqlalchemy.types import TypeDecorator

from models.statement import Statement
from models.transaction import Transaction

# SQLite numbers rows only in a column declared INTEGER; everywhere else ids are 64 bits wide.
BigId = BigInteger().with_variant(Integer, "sqlite")

# SQLite hands a deleted row's number out again unless told not to.  An id that meant an erased message must never
# come to mean another: the index, a client's bookmark or a fact's source may still hold it.
NEVER_REUSED = {"sqlite_autoincrement": True}

_ZONE = "+00:00"  # of a time in UTC, where it is text

R = TypeVar("R", bound="Base")


class UTCDateTime(TypeDecorator[datetime]):
    """An aware time, kept as naive UTC: SQLite has no time zones, and mixing the two kinds is how hours get lost.

    SQLite keeps the text that SQLAlchemy's own type would write there; that takes twice as long to write, and five
    times as long to read.
    """

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else _in_utc(value).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)

    def bind_processor(self, dialect: Dialect) -> Any:
        return _to_text if dialect.name == "sqlite" else super().bind_processor(dialect)

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return _from_text if dialect.name == "sqlite" else super().result_processor(dialect, coltype)


def _in_utc(time: datetime) -> datetime:
    if time.tzinfo is None:
        raise ValueError("a time without a time zone reached the database")
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def _to_text(time: datetime | None) -> str | None:
    return None if time is None else _in_utc(time).isoformat(" ", "microseconds").removesuffix(_ZONE)


def _from_text(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text + _ZONE)


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UTCDateTime, dict[str, Any]: JSON, list[int]: JSON}


def table_of(row: type[Base]) -> Table:
    """The table of these rows, for a `Statement` in the path of a turn: a row costs a fifth of one that can be
    changed, and so does a change (docs/performance.md).  A row loaded before doesn't see such a change."""
    return cast(Table, row.__table__)


def loaded(row: type[R], columns: Mapping[str, Any], **related: Base) -> R:
    """A row of these columns' values that no transaction knows: what is changed of it is written by `write_changes`."""
    made: R = object.__new__(_plain(row))
    vars(made).update(columns, **related, as_loaded=columns)
    return made


@cache
def _plain(row: type[R]) -> type[R]:
    """The class of such rows: its columns are attributes like any others.  SQLAlchemy's, which notice each change, take
    ten times as long, and a turn uses a hundred."""
    own = dict.fromkeys((attribute.key for attribute in inspect(row).attrs), None)
    made: Any = new_class(row.__name__, (row,), exec_body=lambda body: body.update(own, __abstract__=True))
    return cast(type[R], made)


def write_changes(tx: Transaction, row: Base, id: int) -> None:
    """Write what was changed of a row that was loaded by its `id`, as a flush would at five times the cost.

    The row is the transaction's no more: what is changed of it afterwards is not written.
    """
    values = vars(row)
    before = values.get("as_loaded")
    if before is not None:
        changed = {name: values[name] for name, value in before.items() if values[name] is not value}
    else:
        changed = {name: values[name] for name in instance_state(row).committed_state}
        tx.expunge(row)
    if changed:
        tx.execute(_changing(type(row)), {"row_id": id, **changed})


@cache
def _changing(row: type[Base]) -> Statement:
    return Statement(update(table_of(row)).where(table_of(row).c.id == bindparam("row_id")))
