"""The registry of what belongs to an owner: one entry for each kind of data.

A new kind is one entry here, if its table has foreign keys ON DELETE CASCADE to its owner or session: erasing then
deletes and counts its rows, and an export knows up to which id it reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from models import FactRevisionRow, FactRow, JobRow, MessageRow, SessionRow, SummaryRow, Transaction, TurnRow


@dataclass(frozen=True)
class Scope:
    """Whose data: conditions on the rows of sessions, facts and jobs."""

    sessions: ColumnElement[bool]
    facts: ColumnElement[bool]
    jobs: ColumnElement[bool]

    @classmethod
    def of_owner(cls, owner_id: int) -> Scope:
        return cls(SessionRow.owner_id == owner_id, FactRow.owner_id == owner_id, JobRow.owner_id == owner_id)

    @classmethod
    def of_session(cls, row_id: int) -> Scope:
        return cls(SessionRow.id == row_id, FactRow.session_id == row_id, JobRow.session_id == row_id)

    @property
    def session_ids(self) -> Select[int]:
        return select(SessionRow.id).where(self.sessions)


@dataclass(frozen=True)
class Kind:
    """Rows of one table; `name` is what a receipt calls them."""

    name: str
    row: Any
    where: Callable[[Scope], ColumnElement[bool]]


KINDS = (
    Kind("sessions", SessionRow, lambda scope: scope.sessions),
    Kind(
        "messages",
        MessageRow,
        lambda scope: MessageRow.session_id.in_(scope.session_ids) & MessageRow.erased_at.is_(None),
    ),
    Kind("turns", TurnRow, lambda scope: TurnRow.session_id.in_(scope.session_ids)),
    Kind("summaries", SummaryRow, lambda scope: SummaryRow.session_id.in_(scope.session_ids)),
    Kind(
        "edited_summaries",
        SummaryRow,
        lambda scope: SummaryRow.session_id.in_(scope.session_ids) & (SummaryRow.author == "person"),
    ),
    Kind("facts", FactRow, lambda scope: scope.facts),
    Kind("fact_revisions", FactRevisionRow, lambda scope: FactRevisionRow.fact_id.in_(_fact_ids(scope))),
    Kind("jobs", JobRow, lambda scope: scope.jobs),
)
RECEIPT = (*(kind.name for kind in KINDS), "index_documents")
"""The names that a receipt counts by."""


def count(tx: Transaction, scope: Scope) -> Counter[str]:
    """How many rows of each kind there are."""
    return Counter(
        {kind.name: tx.scalar(select(func.count()).select_from(kind.row).where(kind.where(scope))) for kind in KINDS}
    )


def last_ids(tx: Transaction) -> dict[Any, int]:
    """The highest id of each table: what is stored later has a higher one."""
    return {row: tx.scalar(select(func.max(row.id))) or 0 for row in {kind.row for kind in KINDS}}


def _fact_ids(scope: Scope) -> Select[int]:
    return select(FactRow.id).where(scope.facts)
