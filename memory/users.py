"""List the persons, and count what is stored of one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, select

from memory.access.budgets import spent_today
from memory.access.keys import Principal
from memory.access.owners import find_or_make_owner, get_user
from memory.engine import Engine
from memory.events import count_forgotten
from memory.knowledge.fact_reads import valid_at
from memory.paging import Page, read_page
from memory.sessions.messages import CURRENT
from memory.store.item_rows import unexpired
from models import ArchiveRow, DocumentRow, FactRow, ItemRow, MessageRow, OwnerRow, SessionRow, SummaryRow, Transaction
from models.messages import PASSAGE
from models.owners import Caller


def list_users(engine: Engine, principal: Principal, *, cursor: str | None, limit: int) -> Page[OwnerRow]:
    """List the persons whose data a key opens, the newest first; there are those of whom something is stored."""
    query = select(OwnerRow).where(OwnerRow.tenant == principal.tenant, OwnerRow.kind == "user")
    if not principal.is_whole_tenant:
        query = query.where(OwnerRow.name == principal.user_id)
    with engine.database.read() as tx:
        return read_page(tx, query, cursor, limit, OwnerRow.id).map(lambda row: row.OwnerRow)


def get_user_info(engine: Engine, caller: Caller) -> dict[str, Any]:
    """Return the numbers of the caller's user, by their names in `schemas.users.User`.

    Raises NotFound when nothing was ever stored, or all was erased.
    """
    now = engine.now()
    with engine.database.read() as tx:
        owner = get_user(tx, caller)
        sessions = select(SessionRow.id).where(SessionRow.owner_id == owner.id, SessionRow.is_document.is_(False))
        valid = select(FactRow.id).where(FactRow.owner_id == owner.id, valid_at(None, now))
        forgotten, last_forgotten_at = count_forgotten(tx, owner.id, now)
        count, first, last = message_span(tx, and_(MessageRow.owner_id == owner.id, MessageRow.role != PASSAGE))
        return {
            "user_id": owner.user_id,
            "space": owner.space,
            "remember": owner.remember,
            "sessions": count_of(tx, sessions),
            "messages": count,
            "facts": count_of(tx, valid),
            "items": count_of(tx, select(ItemRow.id).where(ItemRow.owner_id == owner.id, unexpired(now))),
            "documents": count_of(tx, select(DocumentRow.session_id).where(DocumentRow.owner_id == owner.id)),
            "archives": count_of(tx, select(ArchiveRow.id).where(ArchiveRow.owner_id == owner.id)),
            "summaries": count_of(tx, select(SummaryRow.id).where(SummaryRow.session_id.in_(sessions))),
            "created_at": owner.created_at,
            "first_message_at": first,
            "last_message_at": last,
            "tokens_today": spent_today(tx, owner.id, now),
            "facts_forgotten": forgotten,
            "last_forgotten_at": last_forgotten_at,
        }


def change_user(engine: Engine, caller: Caller, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the memory of the caller's user on or off, also of one of whom nothing is stored yet."""
    with engine.database.write() as tx:
        owner = find_or_make_owner(tx, caller, engine.now())
        for name, value in changes.items():
            setattr(owner, name, value)
    return get_user_info(engine, caller)


def message_span(tx: Transaction, condition: ColumnElement[bool]) -> tuple[int, datetime | None, datetime | None]:
    """Return the number of messages that meet the condition, and the times of the first and the last.

    Replaced and erased ones do not count.
    """
    figures = select(func.count(), func.min(MessageRow.created_at), func.max(MessageRow.created_at))
    count, first, last = tx.execute(figures.where(condition, *CURRENT)).one()
    return count, first, last


def count_of(tx: Transaction, ids: Select[int]) -> int:
    """Return the number of rows that a query of ids selects."""
    return tx.scalar(select(func.count()).select_from(ids.subquery())) or 0
