"""Store events that leave no other row, and hold events as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

EVENT_TYPES = {
    "message.stored": "a message was stored: said in a turn, appended, imported, or sent by a client's program",
    "summary.updated": "a session's summary has a new version",
    "fact.created": "a fact was made",
    "fact.corrected": "a fact was edited, superseded, merged, contradicted, excluded, ended, expired or reopened",
    "fact.forgotten": "a fact was deleted, by itself or with its message or session",
    "profile.updated": "a person's profile has a new version",
    "overview.updated": "the overview of a person has a new version",
    "document.stored": "a document was added or replaced",
    "document.erased": "a document was deleted",
    "job.failed": "a job failed for the last time, until somebody retries it",
    "person.erased": "everything of a person was erased; only those who listen to the whole tenant get this",
    "space.erased": "everything of a space was erased; told as `person.erased` is",
}


class EventRow(Base):
    """Event of an owner that no other row tells; see `memory.events`. `data` has no words of anybody."""

    __tablename__ = "events"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), index=True)
    type: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(index=True)


class Position(NamedTuple):
    """Place in the log: the last id of each kind of rows that it is made from. As text, `12-3-4-1-0`."""

    messages: int = 0
    summaries: int = 0
    revisions: int = 0
    profiles: int = 0
    others: int = 0

    def __str__(self) -> str:
        return "-".join(map(str, self))


@dataclass(frozen=True)
class Event:
    """Event. `id` stays the same however often it is told; `position` is the place behind it in the log."""

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any]
    position: Position
