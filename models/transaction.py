"""Transaction: what is asked and changed within one `with` block of `Database`.

A `Statement` goes to the driver as it is.  Rows that can be changed are SQLAlchemy's, of a session that is made, as its
connection, when the first of them is asked for: most transactions of a turn need neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session, SessionTransaction
from sqlalchemy.pool import PoolProxiedConnection

from models.statement import Statement

R = TypeVar("R")

# SQLAlchemy's error for the driver's, at a statement on a connection.
Failed = Callable[[object, Any, PoolProxiedConnection], StatementError]
GiveBack = Callable[[PoolProxiedConnection], None]


class Transaction:
    """An open transaction.  What was changed of rows is written by `flush`, and by `commit`.

    Raises SQLAlchemy's errors, also for what goes to the driver.
    """

    def __init__(
        self,
        engine: Engine,
        pooled: PoolProxiedConnection,
        failed: Failed,
        give_back: GiveBack = PoolProxiedConnection.close,
        *,
        connection: Connection | None = None,
    ) -> None:
        """`pooled` is a connection of the pool on which it has begun, by SQLAlchemy's `connection` if there is one.
        One without is given back to whoever had it."""
        self._engine = engine
        self._pooled = pooled
        self._driver: Any = pooled.dbapi_connection
        self._dialect = engine.dialect
        self._failed = failed
        self._give_back = give_back
        self._connection = connection
        self._rows: Session | None = None

    @property
    def rows(self) -> Session:
        """The rows that can be changed."""
        if self._rows is None:
            if self._connection is None:
                self._connection = Connection(self._engine, self._pooled)
                self._connection.begin()  # goes on with what the driver has begun
            # What is written, and when, is said by flush: not by whichever query comes next.
            self._rows = Session(self._connection, expire_on_commit=False, autoflush=False)
        return self._rows

    def execute(self, statement: Any, values: Mapping[str, Any] | None = None) -> Any:
        """All that a statement finds or does: of a Statement its Rows, of others SQLAlchemy's result."""
        if not isinstance(statement, Statement):
            return self.rows.execute(statement, values)
        try:
            return statement.ask(self._driver, self._dialect, values or {})
        except self._dialect.loaded_dbapi.Error as error:
            raise self._failed(statement, error, self._pooled) from error

    def scalar(self, statement: Any, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        if isinstance(statement, Statement):
            return self.execute(statement, values).scalar()
        return self.rows.scalar(statement, values)

    def scalars(self, statement: Any, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of every row."""
        if isinstance(statement, Statement):
            return [row[0] for row in self.execute(statement, values)]
        return self.rows.scalars(statement, values)

    def get(self, row: type[R], id: Any) -> R | None:
        return self.rows.get(row, id)

    def get_one(self, row: type[R], id: Any) -> R:
        """Raises NoResultFound."""
        return self.rows.get_one(row, id)

    def add(self, row: object) -> None:
        self.rows.add(row)

    def add_all(self, rows: Iterable[object]) -> None:
        self.rows.add_all(rows)

    def expunge(self, row: object) -> None:
        """Write nothing of what is changed of a row from now on."""
        if self._rows is not None and row in self._rows:
            self._rows.expunge(row)

    def flush(self) -> None:
        if self._rows is not None:
            self._rows.flush()

    def begin_nested(self) -> SessionTransaction:
        """A part that may fail by itself."""
        return self.rows.begin_nested()

    def commit(self) -> None:
        self.flush()
        try:
            self._driver.commit()  # SQLAlchemy's would give back what could not commit as it is, still begun
        except self._dialect.loaded_dbapi.Error as error:
            raise self._failed("COMMIT", error, self._pooled) from error

    def close(self) -> None:
        """Undo what was not committed, and give the connection back.  Rows are let go of, and stay as they are."""
        if self._rows is not None:
            self._rows.close()
        if self._connection is not None:
            self._connection.close()
        else:
            self._give_back(self._pooled)
