"""Messages: from what was said to a row, and from a row to a value.

Guarantee: a message never changes once it is stored, unless to be erased, and its session's figures change in the same
step that makes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import bindparam, insert, select

from memory import tokens
from memory.domain import Message
from memory.errors import TooLarge
from models import MessageRow, SessionRow, Transaction

_MESSAGES = MessageRow.__table__
_M, _S = _MESSAGES.c, SessionRow.__table__.c
_NEW = insert(_MESSAGES).returning(_M.id)
_OF_MESSAGE = ("position", "role", "content", "created_at", "tokens", "name", "external_id", "extra")
COLUMNS = (
    _M.id,
    _S.public_id,
    _M.position,
    _M.role,
    _M.content,
    _M.created_at,
    _M.tokens,
    _M.name,
    _M.external_id,
    _M.extra,
)
"""What a query of messages joined with their sessions selects for `of_columns`.  A prompt reads dozens of messages and
changes none: as rows that can be changed they would cost four times as much."""

SAID = _M.branch == 0, _M.erased_at.is_(None)
"""What a message is that counts: on its session's current line, neither replaced nor erased."""

LINE_AFTER = (
    select(*COLUMNS)
    .join(SessionRow.__table__, _S.id == _M.session_id)
    .where(_M.session_id == bindparam("session"), *SAID, _M.position > bindparam("after"))
    .order_by(_M.position)
)
"""A session's current line after a position."""

MESSAGE_CHARS_MAX = 100_000  # longer than any prompt it could enter; a book belongs in pieces
TITLE_CHARS = 60


@dataclass(frozen=True)
class MessageDraft:
    """A message to append.  Without `created_at` it was said now; `extra` is what it carries beside its words.

    With `erased_at` it is the place of one that was erased, without words.
    """

    role: str
    content: str
    name: str | None = None
    created_at: datetime | None = None
    external_id: str | None = None
    extra: dict[str, Any] | None = None
    erased_at: datetime | None = None


def check_size(content: str, param: str) -> None:
    """Raises TooLarge for more than a message may hold."""
    if len(content) > MESSAGE_CHARS_MAX:
        raise TooLarge(
            "message_too_large",
            f"A message may hold {MESSAGE_CHARS_MAX:,} characters; this one has {len(content):,}. "
            "Nothing was stored. Send it in pieces.",
            param=param,
        )


def store_message(tx: Transaction, session: SessionRow, draft: MessageDraft, now: datetime) -> Message:
    """Store the next message of a session; the session's own figures change in `session`."""
    values = _next(session, draft, now)
    message_id = tx.scalars(_NEW, values).one()
    return Message(message_id, session.public_id, **{name: values[name] for name in _OF_MESSAGE})


def add_message(row: SessionRow, draft: MessageDraft, now: datetime) -> MessageRow:
    """The next message of a session as a row, not yet added to the transaction; keeps the session's own figures."""
    return MessageRow(**_next(row, draft, now))


def _next(row: SessionRow, draft: MessageDraft, now: datetime) -> dict[str, Any]:
    """The next message's columns; the session's figures count it."""
    created_at = draft.created_at or now
    row.updated_at = created_at if row.message_count == 0 else max(row.updated_at, created_at)
    if created_at < row.created_at:
        row.created_at = created_at
    row.message_count += 1
    if draft.erased_at is not None:
        draft = MessageDraft(draft.role, "", None, created_at, draft.external_id, None, draft.erased_at)
    size = tokens.estimate_message(draft.content) if draft.erased_at is None else 0
    if draft.extra:  # much of it is sent again with the message
        size += tokens.estimate(json.dumps(draft.extra, ensure_ascii=False))
    row.tokens += size
    if not row.title and draft.role == "user":
        row.title = title_from(draft.content)
    return {
        "session_id": row.id,
        "owner_id": row.owner_id,
        "position": row.message_count,
        "role": draft.role,
        "name": draft.name,
        "content": draft.content,
        "created_at": created_at,
        "external_id": draft.external_id,
        "tokens": size,
        "extra": draft.extra,
        "erased_at": draft.erased_at,
    }


def remains(id: str) -> str:
    """What stays of an id when what it named is erased: a digest, by which the same is known when it is sent again."""
    return f"erased:{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def title_from(content: str) -> str:
    """A session's title from its first message: its first line, cut at a word's end."""
    line = " ".join(content.strip().split("\n", 1)[0].split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


of_columns: Callable[[Sequence[Any]], Message] = partial(tuple.__new__, Message)  # as its `_make`, uncounted
"""A message from its COLUMNS."""


def as_message(row: MessageRow, session: SessionRow) -> Message:
    return Message(
        id=row.id,
        session_id=session.public_id,
        position=row.position,
        role=row.role,
        content=row.content,
        created_at=row.created_at,
        tokens=row.tokens,
        name=row.name,
        external_id=row.external_id,
        extra=row.extra,
    )
