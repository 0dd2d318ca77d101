"""Marks of excerpts that did not help: a person makes them, and recall then lowers the score of the excerpt's hits.

A mark is a document without words, whose sources are the question and the excerpt's hits; so it goes when one of these
messages is erased or replaced.  The question is the newest of its sources.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, select

from memory.access.owners import owner_and_session
from memory.engine import Engine
from memory.errors import NotFound
from memory.paging import Page, read_page
from memory.sessions.messages import MESSAGES, QUOTABLE, find_exchange
from memory.store import item_rows
from models import ItemRow, ItemSourceRow, MessageRow
from models.messages import Message
from models.owners import Caller
from models.store import OWN, Put

NAMESPACE = (OWN, "unhelpful")
SHAPE = {"type": "object", "properties": {}, "additionalProperties": False}

_I, _M, _R = ItemRow.__table__.c, MessageRow.__table__.c, ItemSourceRow.__table__.c
_OF_KIND = _I.namespace == item_rows.join_namespace(NAMESPACE)
OF_OWNER = select(_I.id).where(_I.owner_id == bindparam("owner"), _OF_KIND)
"""Selects the ids of an `owner`'s marks."""
_MARKS = (
    MESSAGES.add_columns(_I.id.label("mark_id"), _I.created_at.label("marked_at"))
    .join(ItemSourceRow.__table__, _R.message_id == _M.id)
    .join(ItemRow.__table__, _I.id == _R.item_id)
    .where(_OF_KIND)
    .order_by(_I.id.desc(), _M.created_at, _M.id)
)


@dataclass(frozen=True)
class UnhelpfulExcerpt:
    """Mark: a question, and the hits that did not help with it."""

    id: int
    created_at: datetime
    question: Message
    messages: Sequence[Message]


def add_mark(
    engine: Engine, caller: Caller, session_id: str, message_id: int, hits: Collection[int]
) -> UnhelpfulExcerpt:
    """Mark an excerpt as not helpful for the exchange that a message or its reply names.  Idempotent.

    hits: the messages of the excerpt that were found.

    Raises NotFound, and InvalidRequest for an exchange that is not to be remembered.
    """
    with engine.database.write() as tx:
        exchange = find_exchange(tx, caller, session_id, message_id)
        question = exchange.message
        owner_id = exchange.session.owner_id
        of_owner = _M.owner_id == owner_id, _M.id.in_(hits), _M.id.not_in(exchange.ids), *QUOTABLE
        query = MESSAGES.where(*of_owner, _M.created_at <= question.created_at)
        messages = [Message._make(row) for row in tx.execute(query.order_by(_M.id))]
        if missing := sorted({*hits}.difference(message.id for message in messages)):
            raise NotFound(
                "message_not_found",
                f"The person has no message {missing[0]} that was said before that exchange. Nothing was stored.",
                param="hits",
            )
        put = Put(NAMESPACE, f"{question.created_at.isoformat()}/{messages[0].session_id}", {})
        item = item_rows.write(tx, owner_id, put, engine.now(), sources=[question.id, *hits])
        return marks(tx.connection(), _I.id == item.id)[0]


def list_marks(
    engine: Engine, caller: Caller, *, session_id: str | None, message_id: int | None, cursor: str | None, limit: int
) -> Page[UnhelpfulExcerpt]:
    """Return the marks of the caller's user or of a session's owner, or those on one message, newest first.

    Raises NotFound, and InvalidRequest when neither a session nor a user is named.
    """
    with engine.database.read() as tx:
        owner, _ = owner_and_session(tx, caller, session_id)
        wanted = select(_I.id).where(_OF_KIND, _I.owner_id == (owner.id if owner is not None else None))
        if message_id is not None:
            wanted = wanted.where(_I.id.in_(item_rows.resting_on([message_id])))
        page = read_page(tx, wanted, cursor, limit, _I.id)
        excerpts = marks(tx.connection(), _I.id.in_([row.id for row in page.items]))
    return Page(tuple(excerpts), page.next_cursor)


def marks(tx: Connection, which: ColumnElement[bool]) -> list[UnhelpfulExcerpt]:
    """Return the marks whose items are these, newest first."""
    excerpts = []
    rows: Sequence[Any] = tx.execute(_MARKS.where(which)).all()
    for (mark_id, marked_at), of_mark in groupby(rows, key=lambda row: (row.mark_id, row.marked_at)):
        *messages, question = [Message._make(row[:-2]) for row in of_mark]  # without the columns of the mark
        excerpts.append(UnhelpfulExcerpt(mark_id, marked_at, question, messages))
    return excerpts


def marks_on(tx: Connection, owner_id: int, message_ids: Collection[int]) -> list[UnhelpfulExcerpt]:
    """Return the owner's marks that rest on any of these messages."""
    return marks(tx, (_I.owner_id == owner_id) & _I.id.in_(item_rows.resting_on(message_ids)))
