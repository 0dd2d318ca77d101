"""What an owner's search index was not told yet, read from the rows for each search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import and_, bindparam, case, exists, or_, select

from memory.sessions.messages import QUOTABLE
from models import JobRow, MessageRow, Transaction
from search_index import Document


@dataclass(frozen=True)
class Unindexed:
    """What an owner's index was not told yet: messages it lacks, oldest first; and the ids of those `gone`, replaced,
    erased or refused, that it may still hold and that nobody may find.

    `erased`: some of these were erased.  `lost`: another generation was told of some, and no job is there that would
    tell this one.
    """

    messages: Sequence[Document] = ()
    gone: Sequence[int] = ()
    erased: bool = False
    lost: bool = False


_M, _J = MessageRow.__table__.c, JobRow.__table__.c
_OF_OWNER = _M.owner_id == bindparam("owner")
_NOT_INDEXED = (
    select(
        _M.id,
        _M.session_id,
        _M.role,
        _M.created_at,
        _M.content,
        _M.name,
        case((and_(*QUOTABLE), 1), else_=0).label("said"),
        case((_M.erased_at.is_not(None), 1), else_=0).label("erased"),
        case((_M.indexed_in.is_(None), 1), else_=0).label("never_indexed"),
        case((exists().where(_J.kind == "index", _J.key == bindparam("key")), 1), else_=0).label("asked"),
    )
    .where(  # so that SQLite takes these three parts of its index, and does not go through all that the owner has
        or_(
            _OF_OWNER & _M.indexed_in.is_(None),
            _OF_OWNER & (_M.indexed_in < bindparam("generation")),
            _OF_OWNER & (_M.indexed_in > bindparam("generation")),
        ),
    )
    .order_by(_M.id)
)


def waiting(tx: Transaction, owner_id: int, generation: str, *, limit: int | None = None) -> Unindexed:
    """What this generation of the owner's index was not told yet.

    Read the generation first and the index last: a message that is indexed in between is then seen twice, never missed.
    """
    asked = {"owner": owner_id, "key": str(owner_id), "generation": generation}
    rows = tx.execute(_NOT_INDEXED if limit is None else _NOT_INDEXED.limit(limit), asked).all()
    return Unindexed(
        messages=[Document(*columns) for *columns, said, _, _, _ in rows if said],
        gone=[row[0] for row in rows if not row.said],
        erased=any(row.erased for row in rows),
        lost=any(not row.never_indexed and not row.asked for row in rows),
    )
