"""Statements that are put together once, and asked of the database's driver many times.

What SQLAlchemy does at each execution takes several times as long as SQLite needs to answer (docs/performance.md).  A
`Statement` is written in SQLAlchemy's words all the same: its dialect writes it when it is first asked, and values pass
through the same conversions, so that it means the same on SQLite and on PostgreSQL.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

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
            values = dict(values)
            for name in self._lists:
                values[name] = padded = _padded(values[name])
                kind += (len(padded),)
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


class _Plan:
    """A statement as a dialect writes it for one set of names, and all that can be decided before its values come."""

    def __init__(self, statement: Any, dialect: Dialect, values: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._inserts = isinstance(statement, Insert)
        if isinstance(statement, Insert) and dialect.name != "sqlite":  # which tells the new row's id anyway
            assert isinstance(statement.table, Table)
            counted = statement.table.autoincrement_column
            statement = statement if counted is None else statement.returning(counted)
        compiled = statement.compile(dialect=dialect, column_keys=list(values))
        written = compiled.construct_expanded_state(dict(values))
        processors = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect) for bind, name in compiled.bind_names.items()
        }
        listed = {one: name for name, ones in written.parameter_expansion.items() for one in ones}
        converts = {name: processors[listed.get(name, name)] for name in written.parameters}
        own = written.parameters | {one.key: one.default.arg for one in compiled.insert_prefetch}

        self._sql = written.statement
        self._in_order = written.positiontup
        self._lists = list(written.parameter_expansion.items())
        self._fixed: dict[str, Any] = {}  # what the statement itself says, and columns' defaults
        self._converts: list[tuple[str, Convert]] = []
        for name, convert in converts.items():
            if name not in values and name not in listed:
                self._fixed[name] = own[name] if convert is None else convert(own[name])
            elif convert is not None:
                self._converts.append((name, convert))
        self._columns = list(statement.selected_columns) if isinstance(statement, Select) else []
        row = namedtuple("Row", [column.key or "" for column in self._columns], rename=True)  # type: ignore[misc]
        self._row = partial(tuple.__new__, row)  # as its `_make`, which counts the columns of every row once more
        self._reads: list[tuple[int, Convert]] | None = None  # made when the driver has said what its types are

    def ask(self, driver: Any, values: Mapping[str, Any]) -> Rows:
        given = {**self._fixed, **values}
        for name, ones in self._lists:
            given.update(zip(ones, given[name], strict=True))
        for name, convert in self._converts:
            given[name] = convert(given[name])
        order = self._in_order
        cursor = driver.cursor()
        try:
            cursor.execute(self._sql, given if order is None else [given[name] for name in order])
        except BaseException:  # SQLite keeps a closed connection open for a cursor that somebody's traceback holds
            cursor.close()
            raise
        if self._columns:
            return Rows(map(self._row, self._found(cursor)))
        rows = Rows()
        rows.met = cursor.rowcount
        if self._inserts:
            rows.inserted_id = cursor.fetchone()[0] if cursor.description else getattr(cursor, "lastrowid", 0)
        return rows

    def _found(self, cursor: Any) -> list[Any]:
        if self._reads is None:
            self._reads = self._made_to_read(cursor.description)
        found: list[Any] = cursor.fetchall()
        if self._reads:
            found = list(map(list, found))
            for at, convert in self._reads:
                for row in found:
                    if row[at] is not None:  # which is NULL, of any type
                        row[at] = convert(row[at])
        return found

    def _made_to_read(self, description: Any) -> list[tuple[int, Convert]]:
        """How values of columns are read, for those that don't come as they are."""
        made = [
            column.type.dialect_impl(self._dialect).result_processor(self._dialect, described[1])
            for column, described in zip(self._columns, description, strict=True)
        ]
        return [(at, convert) for at, convert in enumerate(made) if convert is not None]
