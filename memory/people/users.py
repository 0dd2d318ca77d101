"""A person as a whole: what is stored of them, taking it along, and erasing it.

Guarantee: a receipt with nothing `pending` means that no byte of the person's words, names and ids is left in the
database's files or in the search index, nor in a cache of this process.  The rows go in one transaction, which also
asks for the rest as jobs: a process that is killed half-way leaves work that another one finishes.  A turn, an import
or an update of a summary that is going on then finds nothing to write to, and stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session

from memory.domain import Caller
from memory.errors import NotFound, RecapError
from memory.outbox import Job, Outbox
from memory.people.export import Export, export
from memory.sessions import find_user
from models import (
    Database,
    FactRevisionRow,
    FactRow,
    JobRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    TurnRow,
)
from search_index import SearchIndex

LATER = 30.0  # seconds until the jobs are due that finish what this process begins at once
REST = {"unindex": "search_index", "scrub": "database_files"}  # what is left when the rows are gone: job, and its name


@dataclass(frozen=True)
class UserInfo:
    """What is stored of a person.  `messages` and `facts` are what the listings show: none replaced or corrected."""

    user_id: str
    sessions: int
    messages: int
    facts: int
    summaries: int
    created_at: datetime
    first_message_at: datetime | None
    last_message_at: datetime | None


@dataclass(frozen=True)
class Receipt:
    """What was erased, by kind.  `pending` names what is not free of the person yet (see REST); a job goes on."""

    user_id: str
    erased: Mapping[str, int]
    pending: tuple[str, ...]
    erased_at: datetime


class Users:
    """Reads, exports and erases, on behalf of a caller that names a user."""

    def __init__(self, database: Database, index: SearchIndex, outbox: Outbox, now: Callable[[], datetime]) -> None:
        self._database = database
        self._index = index
        self._outbox = outbox
        self._now = now

    def get(self, caller: Caller) -> UserInfo:
        """Raises NotFound when nothing was ever stored, or all was erased."""
        with self._database.read() as tx:
            owner = _find(tx, caller)
            sessions = select(SessionRow.id).where(SessionRow.owner_id == owner.id)
            line = (MessageRow.owner_id == owner.id, MessageRow.branch == 0)
            messages, first, last = tx.execute(
                select(func.count(), func.min(MessageRow.created_at), func.max(MessageRow.created_at)).where(*line)
            ).one()
            return UserInfo(
                user_id=owner.name,
                sessions=_count(tx, SessionRow.owner_id == owner.id),
                messages=messages,
                facts=_count(tx, FactRow.owner_id == owner.id, FactRow.valid_to.is_(None)),
                summaries=_count(tx, SummaryRow.session_id.in_(sessions)),
                created_at=owner.created_at,
                first_message_at=first,
                last_message_at=last,
            )

    def export(self, caller: Caller) -> Export:
        """Everything of the person, as of now; it is read bit by bit.  Raises NotFound."""
        with self._database.read() as tx:
            owner = _find(tx, caller)
            return export(self._database, tx, owner.name, owner.id, self._now())

    def erase(self, caller: Caller) -> Receipt:
        """Erase everything of the person, for good.  Raises NotFound."""
        with self._database.read() as tx:
            key = _find(tx, caller).index_key
        documents = len(self._index.held(key)[1])
        with self._database.write() as tx:
            owner = _find(tx, caller)
            user_id, key = owner.name, owner.index_key
            erased = {**_counts(tx, owner), "index_documents": documents}
            for kind in REST:
                payload = {"tenant": caller.tenant, "owner": key}
                self._outbox.enqueue(tx, kind, key, owner_id=None, delay=LATER, payload=payload)
            tx.execute(delete(OwnerRow).where(OwnerRow.id == owner.id))
        self._index.forget_texts()
        for kind in REST:
            self._outbox.run_now(kind, key)
        return Receipt(user_id, erased, self._pending(key), self._now())

    def scrub(self, job: Job) -> None:
        """The job that leaves no copy of deleted rows in the database's files.  Idempotent."""
        if not self._database.scrub():
            raise RecapError(
                "log_in_use",
                "What was erased is gone from the database, but not from its write-ahead log: somebody went on reading "
                "from it. This is tried again.",
            )

    def _pending(self, key: str) -> tuple[str, ...]:
        with self._database.read() as tx:
            left = set(tx.scalars(select(JobRow.kind).where(JobRow.key == key)))
        return tuple(name for kind, name in REST.items() if kind in left)


def _find(tx: Session, caller: Caller) -> OwnerRow:
    owner = find_user(tx, caller)
    if owner is None:
        raise NotFound("user_not_found", f"Nothing is stored of a user {caller.user_id!r}.", param="user_id")
    return owner


def _counts(tx: Session, owner: OwnerRow) -> dict[str, int]:
    """How many rows of each kind go with their owner."""
    sessions = select(SessionRow.id).where(SessionRow.owner_id == owner.id)
    facts = select(FactRow.id).where(FactRow.owner_id == owner.id)
    return {
        "sessions": _count(tx, SessionRow.owner_id == owner.id),
        "messages": _count(tx, MessageRow.owner_id == owner.id),
        "turns": _count(tx, TurnRow.session_id.in_(sessions)),
        "summaries": _count(tx, SummaryRow.session_id.in_(sessions)),
        "facts": _count(tx, FactRow.owner_id == owner.id),
        "fact_revisions": _count(tx, FactRevisionRow.fact_id.in_(facts)),
        "jobs": _count(tx, JobRow.owner_id == owner.id),
    }


def _count(tx: Session, *where: ColumnElement[bool]) -> int:
    return tx.scalar(select(func.count()).where(*where)) or 0
