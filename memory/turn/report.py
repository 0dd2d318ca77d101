"""What a turn says of its memory: which facts and excerpts its prompt showed, and why.

Kept with the turn by reference only (ids and scores): what is erased later is gone from here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import repeat
from typing import Any

from memory.domain import Excerpt, Fact, FactScore
from memory.facts.facts import as_fact
from memory.recall.excerpts import shown_in_part
from memory.recall.recall import Recalled
from memory.sessions.messages import as_message
from memory.turn.tools import RecallCall
from models import FactRow, MessageRow, SessionRow, Transaction


@dataclass(frozen=True)
class MemoryReport:
    """The `memory` of a reply.

    `summary_version` is the one stored when the turn began, `head_version` the one its prompt showed, `state` how the
    stored one stood.  `tail_dropped` counts messages too many for CONTEXT_TOKENS, which went unseen.  `calls` are the
    model's own looks back; the words it looked for are not stored.
    """

    summary_version: int
    head_version: int
    state: str
    facts: tuple[Fact, ...]
    recalled: Recalled
    tail_messages: int
    tail_dropped: int
    calls: tuple[RecallCall, ...] = ()

    def to_stored(self) -> dict[str, Any]:
        """This report as JSON's types, without any remembered words."""
        return {
            "summary_version": self.summary_version,
            "head_version": self.head_version,
            "state": self.state,
            "tail_messages": self.tail_messages,
            "tail_dropped": self.tail_dropped,
            "mode": self.recalled.mode,
            "reason": self.recalled.reason,
            "calls": [
                {
                    "name": call.name,
                    "after": call.after.isoformat() if call.after else None,
                    "before": call.before.isoformat() if call.before else None,
                    "limit": call.limit,
                    "excerpts": call.excerpts,
                    "error": call.error,
                }
                for call in self.calls
            ],
            "facts": [
                [fact.id, *map(round, vars(fact.score).values(), repeat(4))] for fact in self.facts if fact.score
            ],
            "excerpts": [
                {
                    "messages": [message.id for message in excerpt.messages],
                    "hits": list(excerpt.hits),
                    "score": round(excerpt.score, 4),
                    "why": {name: round(part, 4) for name, part in excerpt.why.items()},
                }
                for excerpt in self.recalled.excerpts
            ],
        }

    @classmethod
    def from_stored(cls, tx: Transaction, stored: Mapping[str, Any]) -> MemoryReport:
        """The report as it was, with the words that are still there."""
        facts = []
        for fact_id, *score in stored["facts"]:
            row = tx.get(FactRow, fact_id)
            if row is not None:
                session = tx.get(SessionRow, row.session_id) if row.session_id is not None else None
                facts.append(replace(as_fact(row, session.public_id if session else None), score=FactScore(*score)))
        excerpts = []
        for item in stored["excerpts"]:
            rows = [
                row
                for row in (tx.get(MessageRow, message_id) for message_id in item["messages"])
                if row is not None and row.erased_at is None
            ]
            session = tx.get(SessionRow, rows[0].session_id) if rows else None
            if session is not None:
                excerpts.append(
                    Excerpt(
                        session_id=session.public_id,
                        title=session.title,
                        messages=tuple(
                            shown_in_part(as_message(row, session), found=row.id in item["hits"]) for row in rows
                        ),
                        hits=tuple(item["hits"]),
                        score=item["score"],
                        why=item["why"],
                    )
                )
        return cls(
            summary_version=stored["summary_version"],
            head_version=stored["head_version"],
            state=stored["state"],
            facts=tuple(facts),
            recalled=Recalled(tuple(excerpts), stored["mode"], stored["reason"]),
            tail_messages=stored["tail_messages"],
            tail_dropped=stored["tail_dropped"],
            calls=tuple(_call(call) for call in stored.get("calls", ())),
        )


def _call(stored: Mapping[str, Any]) -> RecallCall:
    times = {name: datetime.fromisoformat(stored[name]) for name in ("after", "before") if stored[name]}
    return RecallCall(**{**stored, **times})
