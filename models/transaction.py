"""Transaction: what is asked and changed within one `with` block of `Database`.

A `Statement` goes to the driver as it is.  Rows that can be changed are SQLAlchemy's, of a session that is made when
the first of them is asked for: most transactions of a turn need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, SessionTransaction

from models.statement import Rows, Statement

R = TypeVar("R")


class Transaction:
    """An open transaction.  What was changed of rows is written by `flush`, and at the end.

    Raises SQLAlchemy's errors, also for statements that go to the driver.
    """

    def __init__(self, connection: Connection, damaged: Callable[[BaseException], bool]) -> None:
        """`damaged` says of a driver's error whether the database is."""
        self._connection = connection
        self._driver = connection.connection.driver_connection
        self._damaged = damaged
        self._rows: Session | None = None

    @property
    def rows(self) -> Session:
        """The rows that can be changed."""
        if self._rows is None:
            # What is written, and when, is said by flush: not by whichever query comes next.
            self._rows = Session(self._connection, expire_on_commit=False, autoflush=False)
        return self._rows

    def execute(self, statement: Any, values: Mapping[str, Any] | None = None, **options: Any) -> Any:
        """All that a statement finds or does: of a Statement its Rows, of others SQLAlchemy's result."""
        if isinstance(statement, Statement):
            return self._ask(statement, values or {})
        return self.rows.execute(statement, values, **options)

    def scalar(self, statement: Any, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of the first row, or None."""
        if isinstance(statement, Statement):
            return self._ask(statement, values or {}).scalar()
        return self.rows.scalar(statement, values)

    def scalars(self, statement: Any, values: Mapping[str, Any] | None = None) -> Any:
        """The first column of every row."""
        if isinstance(statement, Statement):
            return [row[0] for row in self._ask(statement, values or {})]
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

    def close(self) -> None:
        """Let go of the rows, which stay as they are."""
        if self._rows is not None:
            self._rows.close()

    def _ask(self, statement: Statement, values: Mapping[str, Any]) -> Rows:
        dialect = self._connection.dialect
        try:
            return statement.ask(self._driver, dialect, values)
        except dialect.loaded_dbapi.Error as error:
            lost = self._damaged(error) or dialect.is_disconnect(error, self._driver, None)
            if lost:  # nobody goes on with such a connection, nor with the others that were made to the same
                self._connection.invalidate(error)
                self._connection.engine.dispose()
            raised = DBAPIError.instance(
                str(statement),
                None,
                error,
                dialect.loaded_dbapi.Error,
                hide_parameters=True,
                connection_invalidated=lost,
            )
            raise raised from error
