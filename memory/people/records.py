"""What a person takes along: sessions and facts as values that name nothing by this database's ids.

A message is known by its position in its session, a session by its public id, and a fact by a number that has a
meaning within one document only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.domain import Fact, FactRevision
from memory.sessions.messages import MessageDraft
from memory.summary.summaries import SummaryVersion
from memory.turn.values import TurnUsage
from models import FactRevisionRow, FactRow, SessionRow, SummaryRow, TurnRow

# The columns that a record and its row share.
_OF_TURN = ("model", "finish_reason", "started_at", "finished_at")
_OF_SUMMARY = ("version", "tokens", "author", "model", "prompt", "usage", "restores", "created_at")
_OF_FACT = (
    *("text", "category", "importance", "scope", "quote", "pinned", "recalled_count"),
    *("valid_from", "valid_to", "created_at"),
)
_OF_REVISION = ("action", "author", "text", "category", "importance", "pinned", "at")


@dataclass(frozen=True)
class TurnRecord:
    """A turn and what it cost, with the positions of its message and its reply (None: there was no reply)."""

    user_position: int
    reply_position: int | None
    model: str | None
    finish_reason: str | None
    usage: TurnUsage | None
    started_at: datetime
    finished_at: datetime | None

    def to_row(self, session: SessionRow, message_ids: Mapping[int, int]) -> TurnRow:
        """The row to store; `message_ids` are those at the turn's positions."""
        return TurnRow(
            tenant=session.tenant,
            session_id=session.id,
            user_message_id=message_ids[self.user_position],
            reply_message_id=message_ids.get(self.reply_position or 0),
            usage=self.usage.to_stored() if self.usage else None,
            **_columns(self, _OF_TURN),
        )


@dataclass(frozen=True)
class SessionRecord:
    """A session with all that is in it.  Facts were taken from its messages up to `facts_through`.

    Times that are None are taken from the messages.  With `by_external_id` the messages are known by their
    `external_id`, else by their position.  Read the iterables once, in this order, before the next session.
    """

    id: str
    title: str
    system_prompt: str | None
    created_at: datetime | None
    updated_at: datetime | None
    facts_through: int
    messages: Iterable[MessageDraft]
    summaries: Iterable[SummaryVersion] = ()
    turns: Iterable[TurnRecord] = ()
    by_external_id: bool = False


@dataclass(frozen=True)
class FactRecord:
    """A fact with its history.  Its source is the message at `source_position` of its session."""

    fact: Fact
    source_position: int | None
    revisions: tuple[FactRevision, ...]

    def to_row(self, owner_id: int, session_id: int | None, source_id: int | None) -> FactRow:
        columns = _columns(self.fact, _OF_FACT)
        return FactRow(owner_id=owner_id, session_id=session_id, source_message_id=source_id, **columns)

    def revision_rows(self, fact: FactRow) -> list[FactRevisionRow]:
        return [FactRevisionRow(fact_id=fact.id, **_columns(each, _OF_REVISION)) for each in self.revisions]


def summary_row(session: SessionRow, version: SummaryVersion) -> SummaryRow:
    through = min(version.through, session.message_count)
    columns = _columns(version, _OF_SUMMARY)
    return SummaryRow(session_id=session.id, sections=version.sections.as_dict(), through=through, **columns)


def _columns(value: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}
