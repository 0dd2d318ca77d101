"""Base of all rows, and column types that mean the same on SQLite and PostgreSQL."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sqlalchemy import JSON, BigInteger, DateTime, Integer, MetaData, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

# SQLite numbers rows only in a column declared INTEGER; everywhere else ids are 64 bits wide.
BigId = BigInteger().with_variant(Integer, "sqlite")

# By default SQLite gives a deleted row's id to the next row.  An id of an erased message must never come to mean
# another message: the index, a client's bookmark or a fact's source may still hold it.
MODEL_NAME_CHARS = 128  # stored of the name of a model, which may be a path
NEVER_REUSED = {"sqlite_autoincrement": True}


class UTCDateTime(TypeDecorator[datetime]):
    """Aware time, stored as naive UTC, because SQLite has no time zones."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a time zone reached the database")
        return value.astimezone(UTC).replace(tzinfo=None)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        """Return what reads a time of a row."""
        read: Callable[[Any], Any] = self.impl_instance.result_processor(dialect, coltype) or (lambda value: value)
        return lambda value: None if value is None else read(value).replace(tzinfo=UTC)


def local_time(moment: datetime, zone: tzinfo) -> datetime:
    """Return a time in a zone; one of the first or the last hours of the calendar, which end there, stays in UTC."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


@dataclass(frozen=True)
class Refusal:
    """Reason why no model may read a message: a model server refused it at that time.

    code: that of the error. reason: a sentence for the person, with the server's own words.
    """

    code: str
    reason: str
    at: datetime


class RefusalType(TypeDecorator[Refusal]):
    """Refusal as JSON; NULL without one."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Refusal | None, dialect: Dialect) -> dict[str, str] | None:
        return None if value is None else {**vars(value), "at": value.at.isoformat()}

    def process_result_value(self, value: Any, dialect: Dialect) -> Refusal | None:
        return value and Refusal(value["code"], value["reason"], datetime.fromisoformat(value["at"]))


class Base(DeclarativeBase):
    """Base of all rows. Statements on the path of a turn use `__table__`: they return plain columns."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {datetime: UTCDateTime, dict[str, Any]: JSON, list[int]: JSON, Refusal: RefusalType}

    if TYPE_CHECKING:
        __table__: ClassVar[Table]  # DeclarativeBase allows any FROM clause; every row here has a table of its own


def as_value(kind: type[T], row: object, **own: Any) -> T:
    """Return a value of a dataclass with these fields of its own, and else what the row has under their names."""
    names = (field.name for field in fields(kind) if field.name not in own)
    return kind(**{name: getattr(row, name) for name in names if hasattr(row, name)}, **own)


def columns_of(value: object, table: type[Base]) -> dict[str, Any]:
    return {name: item for name, item in vars(value).items() if name in table.__table__.c}
