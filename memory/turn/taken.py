"""Turns that were taken: how each ended, what it cost, and what its prompt showed of the memory.

Read only; `admission` and `pipeline` write them.  A turn is of the line its message is on: those of replaced messages
are kept, and not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import aliased

from memory.access.owners import find_session
from memory.domain import INTERRUPTED, Caller
from memory.errors import NotFound
from memory.leases.leases import Leases
from memory.paging import Page, decode_cursor, page_of
from memory.turn.report import MemoryReport
from memory.turn.values import TurnUsage
from models import Database, MessageRow, SessionRow, TurnRow


@dataclass(frozen=True)
class TurnInfo:
    """A turn as it is shown.

    `state` is `answering`, `finished`, `interrupted` (stopped, or left by its listener: the reply is what was said
    until then), or `broken_off`: no reply came, and the same message sent again takes it up.  A turn without a reply
    has no `message_id`, `model`, `finish_reason`, `usage` and `finished_at`.  `memory` is there where one turn is read.
    """

    user_message_id: int
    message_id: int | None
    state: str
    model: str | None
    finish_reason: str | None
    usage: TurnUsage | None
    started_at: datetime
    finished_at: datetime | None
    memory: MemoryReport | None = None


class Turns:
    """Reads turns on behalf of callers."""

    def __init__(self, database: Database, leases: Leases) -> None:
        self._database = database
        self._leases = leases

    def page(
        self,
        caller: Caller,
        session_id: str,
        *,
        cursor: str | None = None,
        limit: int = 100,
        newest_first: bool = True,
    ) -> Page[TurnInfo]:
        """A session's turns in the order of their messages, or the other way round.  Raises NotFound."""
        with self._database.read() as tx:
            row = find_session(tx, caller, session_id)
            query = _of_line(row)
            if cursor:
                (last,) = decode_cursor(cursor, int)
                query = query.where(TurnRow.user_message_id < last if newest_first else TurnRow.user_message_id > last)
            order = TurnRow.user_message_id.desc() if newest_first else TurnRow.user_message_id
            found = [self._info(turn, row) for turn in tx.scalars(query.order_by(order).limit(limit + 1))]
        return page_of(found, limit, lambda turn: (turn.user_message_id,))

    def get(self, caller: Caller, session_id: str, message_id: int) -> TurnInfo:
        """The turn that a message is of, its own or its reply, with its memory.  Raises NotFound."""
        with self._database.read() as tx:
            row = find_session(tx, caller, session_id)
            either = or_(TurnRow.user_message_id == message_id, TurnRow.reply_message_id == message_id)
            turn = tx.scalar(_of_line(row).where(either))
            if turn is None:
                raise NotFound(
                    "turn_not_found",
                    f"Message {message_id} is of no turn in session {session_id!r}: it was not said there, or appended "
                    "without a model, or it was replaced or erased.",
                )
            memory = MemoryReport.from_stored(tx, turn.memory) if turn.memory is not None else None
            return self._info(turn, row, memory)

    def _info(self, turn: TurnRow, row: SessionRow, memory: MemoryReport | None = None) -> TurnInfo:
        return TurnInfo(
            user_message_id=turn.user_message_id,
            message_id=turn.reply_message_id,
            state=self._state(turn, row),
            model=turn.model,
            finish_reason=turn.finish_reason,
            usage=TurnUsage.from_stored(turn.usage) if turn.usage is not None else None,
            started_at=turn.started_at,
            finished_at=turn.finished_at,
            memory=memory,
        )

    def _state(self, turn: TurnRow, row: SessionRow) -> str:
        if turn.finished_at is not None:
            return "interrupted" if turn.finish_reason == INTERRUPTED else "finished"
        taken = turn.lease_token is not None and turn.lease_token == row.lease_token
        return "answering" if taken and not self._leases.free(row) else "broken_off"


def _of_line(row: SessionRow) -> Any:
    """The turns on the session's current line of which something is left: the message or the reply."""
    said, reply = aliased(MessageRow), aliased(MessageRow)
    return (
        select(TurnRow)
        .join(said, said.id == TurnRow.user_message_id)
        .outerjoin(reply, reply.id == TurnRow.reply_message_id)
        .where(TurnRow.session_id == row.id, said.branch == 0)
        .where(or_(said.erased_at.is_(None), and_(reply.id.is_not(None), reply.erased_at.is_(None))))
    )
