"""Messages: from what was said to a row, and from a row to a value.

Guarantee: a stored message never changes, unless it is erased; its session's figures change in the transaction that
stores it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, exists, func, insert, null, or_, select

from memory import tokens
from memory.access.owners import get_session
from memory.errors import InvalidRequest, NotFound, TooLarge
from memory.sessions.memory_requests import asks_to_keep_out
from memory.store.item_rows import join_namespace
from models import ItemRow, ItemSourceRow, MessageRow, SessionRow, Transaction, TurnRow
from models.messages import KEPT_OUT, UNREMEMBERED, Message, MessageDraft, is_kept_out
from models.owners import Caller
from models.store import FEEDBACK
from schemas.fields import MESSAGE_CHARS_MAX

_M, _S = MessageRow.__table__.c, SessionRow.__table__.c
INSERT_MESSAGE = insert(MessageRow.__table__).returning(_M.id, sort_by_parameter_order=True)
_STORED = tuple(_S.public_id if name == "session_id" else _M[name] for name in Message._fields[:-1])  # without thumbs

CURRENT = _M.branch == 0, _M.erased_at.is_(None)
"""True of messages that are neither replaced nor erased."""

QUOTABLE = *CURRENT, _M.refused.is_(None)
"""True of those that a model may read: not of those that a model server refused (see `refused_messages`)."""

INDEXED = *QUOTABLE, func.coalesce(_M.extra["memory"].as_string(), "") != KEPT_OUT["memory"]
"""True of those that the index has: of them without the ones that the person asked not to remember."""

VISIBLE = *QUOTABLE, _M.hidden_at.is_(None)
"""True of those that prompts show and summaries read: of them without the hidden ones (see `hidden_messages`)."""

PRIVATE = exists().where(_M.session_id == _S.id, _M.extra["memory"].as_string() == UNREMEMBERED["memory"])
"""True of sessions that have a message which is not to be remembered, replaced ones included."""

_THUMBS = (
    select(ItemRow.value["thumbs"].as_string())
    .join(ItemSourceRow, ItemSourceRow.item_id == ItemRow.id)
    .where(ItemSourceRow.message_id == _M.id, ItemRow.owner_id == _M.owner_id, _M.role == "assistant")
    .where(ItemRow.namespace == join_namespace(FEEDBACK))
    .limit(1)
    .scalar_subquery()
)

UNSHOWN = select(_M.id, _M.tokens).where(
    _M.session_id == bindparam("session"), *CURRENT, or_(_M.hidden_at.is_not(None), _M.refused.is_not(None))
)
"""The ids of a session's hidden and refused messages, and their tokens."""

MESSAGES = select(*_STORED, null().label("thumbs")).join(SessionRow.__table__, _S.id == _M.session_id)
"""Messages with the fields of a `Message`: `Message._make` takes each row, less the columns that a query adds."""

LISTED = MESSAGES.with_only_columns(*_STORED, _THUMBS)
"""The same with what the person thinks of a reply."""

RECENT_MESSAGES = MESSAGES.where(
    _M.session_id == bindparam("session"), _M.position > bindparam("after"), *VISIBLE
).order_by(_M.position)
"""The visible messages of a session's active branch after a position."""

NEXT_VISIBLE = (
    select(func.min(_M.position))
    .where(_M.session_id == _S.id, *VISIBLE, _M.position > bindparam("through"))
    .correlate(SessionRow.__table__)
    .scalar_subquery()
)
"""The position of a session's first message after `through` that summaries read.

A summary of the messages up to `through` also covers the erased, hidden and refused messages before that one.
"""

_PLACE = ("role", "created_at", "external_id", "erased_at", "hidden_at")
ERASED = dict.fromkeys({field.name for field in fields(MessageDraft)}.difference(_PLACE)) | {"content": "", "tokens": 0}
"""The columns that an erased message loses: it keeps its place alone."""

TITLE_CHARS = 60


def require_message_size(content: str, param: str) -> None:
    """Raise TooLarge for more than a message may hold."""
    if len(content) > MESSAGE_CHARS_MAX:
        raise TooLarge(
            "message_too_large",
            f"A message may hold {MESSAGE_CHARS_MAX:,} characters; this one has {len(content):,}. "
            "Nothing was stored. Send it in pieces.",
            param=param,
        )


def append(tx: Transaction, row: SessionRow, drafts: Sequence[MessageDraft], now: datetime) -> list[Message]:
    """Store the next messages of a session.  Its figures count them from now on."""
    last = _M.session_id == row.id, _M.position == row.message_count, _M.branch == 0
    is_reply = bool(drafts) and drafts[0].role != "user"
    new = []
    keeps_out = is_reply and is_kept_out(tx.scalar(select(_M.extra).where(*last)))
    for draft in drafts:
        keeps_out = keeps_out and draft.role != "user"  # with a message that is kept out goes the reply to it
        values = message_values(draft.kept_out() if keeps_out else draft, now)
        keeps_out = is_kept_out(values["extra"])
        created_at = values["created_at"]
        row.updated_at = created_at if row.message_count == 0 else max(row.updated_at, created_at)
        row.created_at = min(row.created_at, created_at)
        row.message_count += 1
        row.tokens += values["tokens"]
        if not row.title and draft.role == "user" and not keeps_out:
            row.title = title_from(values["content"])
        new.append({**values, "session_id": row.id, "owner_id": row.owner_id, "position": row.message_count})
    ids = tx.scalars(INSERT_MESSAGE, new).all() if new else ()
    return [message_of(id, row.public_id, values) for id, values in zip(ids, new, strict=True)]


def message_of(id: int, session_id: str, values: Mapping[str, Any]) -> Message:
    """Return the message whose row has these `values`, its `position` among them.  id: 0 if it is not stored."""
    return Message(id, session_id, **{name: values[name] for name in Message._fields[2:-1]})


def find(tx: Transaction | Connection, message_id: int) -> Message | None:
    """Find the message of this id, unless it was replaced or erased."""
    row = tx.execute(MESSAGES.where(_M.id == message_id, *CURRENT)).first()
    return None if row is None else Message._make(row)


def message_values(draft: MessageDraft, now: datetime) -> dict[str, Any]:
    """Return the columns that a message brings itself."""
    if draft.role == "user" and asks_to_keep_out(draft.content):
        draft = draft.kept_out()
    values = vars(draft) | {
        "created_at": draft.created_at or now,
        "tokens": tokens.estimate_message(draft.content),
    }
    if draft.erased_at is not None:
        return {**values, **ERASED}
    sent_again = {name: value for name, value in (draft.extra or {}).items() if name not in ("memory", "attachments")}
    if sent_again:
        values["tokens"] += tokens.estimate(json.dumps(sent_again, ensure_ascii=False))
    return values


def covered_position(tx: Transaction, row: SessionRow, through: int) -> int:
    """Return the last position that a summary of the messages up to `through` covers: see NEXT_VISIBLE."""
    following: int | None = tx.scalar(select(NEXT_VISIBLE).where(_S.id == row.id), {"through": through})
    return row.message_count if following is None else following - 1


def tombstone(id: str) -> str:
    """Return the digest that replaces an erased message's id, and by which the message is known if it comes again."""
    return f"erased:{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def title_from(content: str) -> str:
    """Return a session's title from its first message: the first line, cut at the end of a word."""
    line = " ".join(content.strip().split("\n", 1)[0].split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


class Exchange(NamedTuple):
    """Exchange: the person's last message before a reply, the reply, and their session."""

    session: SessionRow
    message: Message
    reply: Message

    @property
    def ids(self) -> tuple[int, int]:
        return self.message.id, self.reply.id

    @property
    def key(self) -> str:
        """Return the key of its example and of its feedback, of which there is one each."""
        return f"{self.session.public_id}/{self.reply.created_at.isoformat()}"


def find_exchange(tx: Transaction, caller: Caller, session_id: str, message_id: int) -> Exchange:
    """Return the exchange of a turn, which its message or its reply names.

    Raises NotFound, and InvalidRequest for a turn that is not to be remembered.
    """
    row = get_session(tx, caller, session_id)
    either = or_(TurnRow.user_message_id == message_id, TurnRow.reply_message_id == message_id)
    answer = select(TurnRow.reply_message_id).where(TurnRow.session_id == row.id, either).scalar_subquery()
    reply = tx.execute(MESSAGES.where(_M.id == answer, *QUOTABLE)).first()
    question = None
    if reply is not None:
        before = MESSAGES.where(_M.session_id == row.id, _M.role == "user", _M.position < reply.position, *CURRENT)
        question = tx.execute(before.order_by(_M.position.desc()).limit(1)).first()
    if reply is None or question is None or question.refused is not None:
        raise NotFound(
            "exchange_not_found",
            f"Message {message_id} is of no exchange in session {session_id!r}: it has no reply, or no model made it, "
            "or it was replaced, erased or refused by a model server. Nothing was stored.",
            param="message_id",
        )
    exchange = Exchange(row, Message._make(question), Message._make(reply))
    if not (exchange.message.remembered and exchange.reply.remembered):
        raise InvalidRequest(
            "not_remembered",
            "This exchange is not to be remembered, so nothing can be made of it. Nothing was stored.",
            param="message_id",
        )
    return exchange
