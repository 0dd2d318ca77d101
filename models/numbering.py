"""The numbers that a database gives to new rows.

Guarantee: a number that was given once is not given again, also after the rows have moved to another database: a
client's bookmark, or a fact's source, may still hold the id of a message that was erased.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Table, column, func, insert, select, table, update

from models.base import Base
from models.database import Transaction

_COUNTED = table("sqlite_sequence", column("name"), column("seq"))


def last_numbers(tx: Transaction) -> dict[str, int]:
    """The last number given in each table that counts its rows, as far as the database tells."""
    if tx.get_bind().dialect.name == "sqlite":
        return {name: seq for name, seq in tx.execute(select(_COUNTED)) if name in Base.metadata.tables}
    sequences = {one.name: _sequence(tx, one) for one in Base.metadata.sorted_tables}
    return {name: _last_value(tx, sequence) for name, sequence in sequences.items() if sequence}


def go_on_from(tx: Transaction, numbers: Mapping[str, int]) -> None:
    """Number new rows from these on, in tables that have been numbered up to fewer."""
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
    """The name of PostgreSQL's sequence behind the ids of a table, if it has one."""
    if "id" not in of.c:
        return None
    name: str | None = tx.scalar(select(func.pg_get_serial_sequence(of.name, "id")))
    return name


def _last_value(tx: Transaction, sequence: str) -> int:
    """0 while no number was given."""
    return tx.scalar(select(func.coalesce(func.pg_sequence_last_value(sequence), 0))) or 0
