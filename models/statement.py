"""Statements that are put together once, and asked of the database's driver many times.

What SQLAlchemy does at each execution takes several times as long as SQLite needs to answer (docs/performance.md).  A
`Statement` is written in SQLAlchemy's words all the same: its dialect writes it when it is first asked, and values pass
through the same conversions, so that it means the same on SQLite and on PostgreSQL.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import Insert, Select, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.expression import ClauseElement

Convert = Callable[[Any], Any]


class Rows(list[Any]):
    """What a statement found, as named tuples in their order.

    `met` says how many rows one changed or deleted, `inserted_id` which one an insert made.
    """

    met = 0
    inserted_id = 0

    def first(self) -> Any:
        """The first row, or None."""
        return self[0] if self else None

    def scalar(self) -> Any:
        """The first column of the first row, or None."""
        return self[0][0] if self else None


class Statement:
    """A statement of tables (see `table_of`), made at a module's level.

    It is asked with the values of its `bindparam`s by name and, to insert or update, those of the columns to write.
    Where one is expanding, its list may have any length.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._lists = [bind.key for bind in statement.compile().bind_names if bind.expanding]  # type: ignore[attr-defined]
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def ask(self, driver: Any, dialect: Dialect, values: Mapping[str, Any]) -> Rows:
        """Ask it on a connection of the driver's.  Raises the driver's own errors."""
        kind: tuple[Any, ...] = (dialect.name, *values)
        if self._lists:
            values = {**values, **{name: _padded(values[name]) for name in self._lists}}
            kind = (*kind, *(len(values[name]) for name in self._lists))
        plan = self._plans.get(kind)
        if plan is None:
            plan = self._plans[kind] = _Plan(self._statement, dialect, values)
        return plan.ask(driver, values)

    def __str__(self) -> str:
        return str(self._statement)


def _padded(values: Any) -> list[Any]:
    """A list, none or with its last value so often that its length is a power of two: to be among them means the same,
    and a few plans do for all lengths."""
    found = list(values)
    wanted = 1 << (len(found) - 1).bit_length() if found else 0
    return found + found[-1:] * (wanted - len(found))


class _Value(NamedTuple):
    """Where a value comes from: the one `given` by this name, `at` its place of a list; or it is always `fixed`."""

    given: str | None
    at: int | None
    fixed: Any
    convert: Convert | None

    def of(self, values: Mapping[str, Any]) -> Any:
        if self.given is None:
            return self.fixed
        value = values[self.given] if self.at is None else values[self.given][self.at]
        return value if self.convert is None else self.convert(value)


class _Plan:
    """A statement as one dialect writes it for one set of names."""

    def __init__(self, statement: Any, dialect: Dialect, values: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._inserts = isinstance(statement, Insert)
        if isinstance(statement, Insert) and dialect.name != "sqlite":  # which tells the new row's id anyway
            assert isinstance(statement.table, Table)
            counted = statement.table.autoincrement_column
            statement = statement if counted is None else statement.returning(counted)
        compiled = statement.compile(dialect=dialect, column_keys=list(values))
        written = compiled.construct_expanded_state(dict(values))
        types = {name: bind.type.dialect_impl(dialect) for bind, name in compiled.bind_names.items()}
        fixed = written.parameters | {one.key: one.default.arg for one in compiled.insert_prefetch}
        listed = {one: (name, at) for name, ones in written.parameter_expansion.items() for at, one in enumerate(ones)}

        def value(name: str) -> _Value:
            given, at = listed.get(name, (name, None))
            convert = types[given].bind_processor(dialect)
            if given in values:
                return _Value(given, at, None, convert)
            return _Value(None, None, fixed[name] if convert is None else convert(fixed[name]), None)

        self._sql = written.statement
        self._in_order = None if written.positiontup is None else [value(name) for name in written.positiontup]
        self._by_name = {name: value(name) for name in written.parameters} if self._in_order is None else {}
        self._columns = list(statement.selected_columns) if isinstance(statement, Select) else []
        self._row: Any = namedtuple("Row", [column.key or "" for column in self._columns], rename=True)  # type: ignore[misc]
        self._converts: list[tuple[int, Convert]] | None = None  # made when the driver has said what its types are

    def ask(self, driver: Any, values: Mapping[str, Any]) -> Rows:
        cursor = driver.cursor()
        try:
            if self._in_order is not None:
                cursor.execute(self._sql, [value.of(values) for value in self._in_order])
            else:
                cursor.execute(self._sql, {name: value.of(values) for name, value in self._by_name.items()})
            rows = Rows(self._found(cursor) if self._columns else ())
            rows.met = cursor.rowcount
            if self._inserts:
                rows.inserted_id = cursor.fetchone()[0] if cursor.description else getattr(cursor, "lastrowid", 0)
            return rows
        finally:
            cursor.close()

    def _found(self, cursor: Any) -> Iterable[Any]:
        if self._converts is None:
            about = zip(self._columns, cursor.description, strict=True)
            converts = [
                column.type.dialect_impl(self._dialect).result_processor(self._dialect, described[1])
                for column, described in about
            ]
            self._converts = [(at, convert) for at, convert in enumerate(converts) if convert is not None]
        make, found = self._row._make, cursor.fetchall()
        return map(make, map(self._converted, found) if self._converts else found)

    def _converted(self, found: Any) -> list[Any]:
        row = list(found)
        for at, convert in self._converts or ():
            row[at] = convert(row[at])
        return row
