"""What is stored of a person, counted or exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, select

from memory.access.budgets import spent_today
from memory.access.owners import get_user
from memory.sessions.messages import CURRENT
from memory.store.documents import alive
from memory.transfer.export import Export
from models import ArchiveRow, Database, FactRow, ItemRow, MessageRow, SessionRow, SummaryRow, Transaction
from models.owners import Caller


@dataclass(frozen=True)
class UserInfo:
    """What is stored of a person.  `messages` and `facts` count what the listings show: none that was replaced, erased
    or corrected.  `tokens_today` is what model calls for them took on this day of UTC."""

    user_id: str
    sessions: int
    messages: int
    facts: int
    items: int
    archives: int
    summaries: int
    created_at: datetime
    first_message_at: datetime | None
    last_message_at: datetime | None
    tokens_today: int


@dataclass(frozen=True)
class Users:
    """Reads and exports, on behalf of a caller that names a user."""

    database: Database
    now: Callable[[], datetime]

    def get(self, caller: Caller) -> UserInfo:
        """Raises NotFound when nothing was ever stored, or all was erased."""
        with self.database.read() as tx:
            owner = get_user(tx, caller)
            sessions = select(SessionRow.id).where(SessionRow.owner_id == owner.id)
            current = select(FactRow.id).where(FactRow.owner_id == owner.id, FactRow.valid_to.is_(None))
            summaries = select(SummaryRow.id).where(SummaryRow.session_id.in_(sessions))
            messages, first, last = messages_of(tx, MessageRow.owner_id == owner.id)
            return UserInfo(
                user_id=owner.name,
                sessions=count_of(tx, sessions),
                messages=messages,
                facts=count_of(tx, current),
                items=count_of(tx, select(ItemRow.id).where(ItemRow.owner_id == owner.id, alive(self.now()))),
                archives=count_of(tx, select(ArchiveRow.id).where(ArchiveRow.owner_id == owner.id)),
                summaries=count_of(tx, summaries),
                created_at=owner.created_at,
                first_message_at=first,
                last_message_at=last,
                tokens_today=spent_today(tx, owner.id, self.now()),
            )

    def export(self, caller: Caller) -> Export:
        """Everything of the person, as of now, read page by page.  Raises NotFound."""
        with self.database.read() as tx:
            return Export(self.database.read, tx, get_user(tx, caller), self.now())


def messages_of(tx: Transaction, whose: ColumnElement[bool]) -> tuple[int, datetime | None, datetime | None]:
    """How many messages meet the condition, without those replaced or erased; when the first and the last was said."""
    figures = select(func.count(), func.min(MessageRow.created_at), func.max(MessageRow.created_at))
    count, first, last = tx.execute(figures.where(whose, *CURRENT)).one()
    return count, first, last


def count_of(tx: Transaction, ids: Select[int]) -> int:
    """How many rows a query of their ids finds."""
    return tx.scalar(select(func.count()).select_from(ids.subquery())) or 0
