"""What a person takes along: sessions and facts as values that name nothing by this database's ids.

A message is known by its position in its session, a session by its public id, and a fact by a number that has a
meaning within one document only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.domain import Fact, FactRevision
from memory.sessions.messages import MessageDraft
from memory.summary.summaries import SummaryVersion
from memory.turn.values import TurnUsage


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
