"""What a turn says of its memory: which facts and excerpts its prompt showed, and why.

It is stored with the turn by ids and scores alone, so what is erased later is gone from here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select

from memory.domain import Excerpt, Fact, FactScore, Message
from memory.facts.facts import as_fact
from memory.recall.excerpts import shown_in_part
from memory.recall.recall import Recalled
from memory.sessions.messages import as_message
from memory.turn.tools import RecallCall
from models import FactRow, MessageRow, SessionRow, Transaction


@dataclass(frozen=True)
class MemoryReport:
    """The `memory` of a reply.

    `summary_version` is the one stored when the turn began, `state` how it stood, `head_version` the one that the
    prompt showed.  `tail_dropped` counts messages that did not fit CONTEXT_TOKENS.  `calls` are the model's own looks
    back; their words are not stored.
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
            "facts": [[fact.id, *(round(part, 4) for part in vars(fact.score).values())] for fact in self.facts],
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
        calls = [
            {**call, **{name: datetime.fromisoformat(call[name]) for name in ("after", "before") if call[name]}}
            for call in stored.get("calls", ())
        ]
        return cls(
            summary_version=stored["summary_version"],
            head_version=stored["head_version"],
            state=stored["state"],
            facts=_facts(tx, stored["facts"]),
            recalled=Recalled(_excerpts(tx, stored["excerpts"]), stored["mode"], stored["reason"]),
            tail_messages=stored["tail_messages"],
            tail_dropped=stored["tail_dropped"],
            calls=tuple(RecallCall(**call) for call in calls),
        )


def _facts(tx: Transaction, stored: list[list[Any]]) -> tuple[Fact, ...]:
    query = select(FactRow, SessionRow.public_id).outerjoin(SessionRow, SessionRow.id == FactRow.session_id)
    rows = tx.execute(query.where(FactRow.id.in_([fact_id for fact_id, *_ in stored])))
    there = {row.id: as_fact(row, session_id) for row, session_id in rows}
    return tuple(replace(there[fact_id], score=FactScore(*score)) for fact_id, *score in stored if fact_id in there)


def _excerpts(tx: Transaction, stored: list[dict[str, Any]]) -> tuple[Excerpt, ...]:
    query = select(MessageRow, SessionRow).join(SessionRow, SessionRow.id == MessageRow.session_id)
    query = query.where(MessageRow.id.in_([message_id for item in stored for message_id in item["messages"]]))
    rows = tx.execute(query.where(MessageRow.erased_at.is_(None)))
    there: dict[int, tuple[Message, str]] = {row.id: (as_message(row, session), session.title) for row, session in rows}
    found = []
    for item in stored:
        shown = [there[message_id] for message_id in item["messages"] if message_id in there]
        if shown:
            messages = tuple(shown_in_part(message, found=message.id in item["hits"]) for message, _ in shown)
            (first, title), hits = shown[0], tuple(item["hits"])
            found.append(Excerpt(first.session_id, title, messages, hits, item["score"], item["why"]))
    return tuple(found)
