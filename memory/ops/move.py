"""Moving all rows from one database to another, between SQLite and PostgreSQL in either direction.

Rows go table by table, in the order of their references and in batches; each batch is committed before the next is
read.  A move that broke off is begun again: rows that are there already are compared, the others follow.

Invariants:
- The source is only read (test_moving).
- A move that ends well has compared every row of the two databases (test_moving).
- New rows get numbers that no row of the source ever had (test_moving).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, RowMapping, Table, bindparam, func, insert, literal, select, tuple_, update
from sqlalchemy import column as sql_column
from sqlalchemy import table as sql_table

from memory.errors import Conflict
from models import Base, Database, Transaction

BATCH_ROWS = 500  # rows: with the widest table, fewer values than a statement of either database may have

Progress = Callable[[str, int], None]
"""Told the name of a table, and how many of its rows were copied or compared since the last call."""


def count(source: Database) -> int:
    """Return how many rows there are to move."""
    with source.read() as tx:
        return sum(_count(tx, table) for table in Base.metadata.sorted_tables)


def move(source: Database, target: Database, progress: Progress) -> None:
    """Copy what the target does not have yet, then compare every row.  Both have the schema that this code needs.

    Raises Conflict when the target has rows that are not the source's: those of another installation, or those of an
    earlier move, after which the source was used again.
    """
    for table in Base.metadata.sorted_tables:
        with source.read() as tx, target.read() as there:
            if _count(there, table) > _count(tx, table):
                raise _differs(table)
    for table in Base.metadata.sorted_tables:
        # References to rows of the same table, which may come later: they are filled when all rows are there.
        later = [key.parent for key in table.foreign_keys if key.column.table is table]
        now = [column for column in table.c if column.name not in {column.name for column in later}]
        for rows in _batches(source, table, now):
            with target.write() as tx:
                if missing := _missing(tx, table, now, rows):
                    tx.execute(insert(table), [dict(row) for row in missing])
            progress(table.name, len(rows))
        for column in later:
            for rows in _batches(source, table, [*table.primary_key, column]):
                _refer(target, table, column, rows)
    with source.read() as tx, target.write() as there:
        go_on_from(there, last_numbers(tx))
    compare(source, target, progress)


def compare(source: Database, target: Database, progress: Progress) -> None:
    """Compare every row of the two.  Raises Conflict when they differ."""
    for table in Base.metadata.sorted_tables:
        for rows in _batches(source, table, list(table.c)):
            with target.read() as tx:
                if _missing(tx, table, list(table.c), rows):
                    raise _differs(table)
            progress(table.name, len(rows))
        with source.read() as tx, target.read() as there:
            if _count(tx, table) != _count(there, table):
                raise _differs(table)


def _batches(source: Database, table: Table, columns: Sequence[Column[Any]]) -> Iterator[Sequence[RowMapping]]:
    """Yield the rows of a table in the order of their keys."""
    key = list(table.primary_key)
    query = select(*columns).order_by(*key).limit(BATCH_ROWS)
    rows: Sequence[RowMapping] = ()
    while True:
        after = [literal(rows[-1][column.name], column.type) for column in key] if rows else []
        with source.read() as tx:
            rows = tx.execute(query.where(tuple_(*key) > tuple_(*after)) if after else query).mappings().all()
        if not rows:
            return
        yield rows


def _missing(
    tx: Transaction, table: Table, columns: Sequence[Column[Any]], rows: Sequence[RowMapping]
) -> list[RowMapping]:
    """Return the rows that are not in the target. Raises Conflict when one is there with other values."""

    def key(row: RowMapping) -> tuple[Any, ...]:
        return tuple(row[column.name] for column in table.primary_key)

    same_keys = tuple_(*table.primary_key).in_([key(row) for row in rows])
    known = {key(row): row for row in tx.execute(select(*columns).where(same_keys)).mappings()}
    if any(known.get(key(row), row) != row for row in rows):
        raise _differs(table)
    return [row for row in rows if key(row) not in known]


def _refer(target: Database, table: Table, column: Column[Any], rows: Sequence[RowMapping]) -> None:
    (key,) = table.primary_key
    refer = update(table).where(key == bindparam("of")).values({column: bindparam("to")})
    if referring := [{"of": row[key.name], "to": row[column.name]} for row in rows if row[column.name] is not None]:
        with target.write() as tx:
            tx.connection().execute(refer, referring)


def _count(tx: Transaction, table: Table) -> int:
    return tx.scalar(select(func.count()).select_from(table)) or 0


def _differs(table: Table) -> Conflict:
    return Conflict(
        "target_differs",
        f"The databases differ in their {table.name}: the target has data of something else, or of an earlier move "
        "after which the source was used again. The source is unchanged. Empty the target database, stop every server "
        "that uses either, and move again.",
    )


_COUNTED = sql_table("sqlite_sequence", sql_column("name"), sql_column("seq"))


def last_numbers(tx: Transaction) -> dict[str, int]:
    """Return the last number given in each table that counts its rows, as far as the database tells."""
    if tx.get_bind().dialect.name == "sqlite":
        return {name: seq for name, seq in tx.execute(select(_COUNTED)) if name in Base.metadata.tables}
    sequences = {table.name: _sequence(tx, table) for table in Base.metadata.sorted_tables}
    given = {name: tx.scalar(select(func.pg_sequence_last_value(of))) for name, of in sequences.items() if of}
    return {name: number or 0 for name, number in given.items()}


def go_on_from(tx: Transaction, numbers: Mapping[str, int]) -> None:
    """Let tables that have been numbered up to fewer number their new rows from these on."""
    known = last_numbers(tx)
    for name, number in numbers.items():
        if number <= known.get(name, 0):
            continue
        if tx.get_bind().dialect.name != "sqlite":
            tx.execute(select(func.setval(_sequence(tx, Base.metadata.tables[name]), number)))
        elif name in known:
            tx.execute(update(_COUNTED).where(_COUNTED.c.name == name).values(seq=number))
        else:
            tx.execute(insert(_COUNTED).values(name=name, seq=number))


def _sequence(tx: Transaction, of: Table) -> str | None:
    """Return the name of PostgreSQL's sequence behind the ids of a table, if it has one."""
    if "id" not in of.c:
        return None
    name: str | None = tx.scalar(select(func.pg_get_serial_sequence(of.name, "id")))
    return name
