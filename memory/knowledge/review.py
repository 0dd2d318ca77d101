"""Review: facts that models found and that wait until somebody accepts or refuses them.

A fact that waits was never valid (see `models.facts`), so whatever reads valid facts passes it over. It is told to
nobody as an event, and no profile is made from it.

Invariant: what waits is in no prompt, search or list, but in that of what waits; a refused fact is erased [test_rules].
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memory.knowledge.consolidation import Consolidation
from memory.knowledge.fact_writes import (
    FACTS,
    accept,
    as_relations,
    delete_with_history,
    in_scope,
    valid_at,
)
from memory.knowledge.facts import facts_of
from memory.knowledge.profile import Profiles
from memory.knowledge.rules import Rules
from memory.knowledge.supersession import find_superseded
from memory.sessions.messages import MESSAGES
from models import Database, FactRow, MessageRow, OwnerRow, Transaction, as_value, for_update, retry_on_conflict
from models.facts import Fact, FactDraft
from models.messages import Message
from models.owners import Caller


class Reviewed(NamedTuple):
    """Numbers of the facts that were accepted, and of those that were refused and erased."""

    accepted: int
    refused: int


@dataclass(frozen=True)
class Review:
    """Accepts and refuses facts on behalf of callers."""

    database: Database
    rules: Rules
    profiles: Profiles
    consolidation: Consolidation
    now: Callable[[], datetime]

    @retry_on_conflict
    def decide(self, caller: Caller, accepted: Collection[int], refused: Collection[int]) -> Reviewed:
        """Accept and refuse facts that wait; others are passed over.

        An accepted fact is valid from when it was stated, in the place of those that it corrects. What the rules have
        come to keep out since is refused.
        """
        now = self.now()
        waiting = facts_of(caller).where(FactRow.waiting, FactRow.id.in_({*accepted, *refused}))
        with self.database.write() as tx:
            dropped, count = set[int](), 0
            for row, session_id in tx.execute(for_update(tx, waiting.order_by(FactRow.id), OwnerRow, FactRow)).all():
                fact, rules = as_value(Fact, row, session_id=session_id), self.rules.of(tx, row.owner_id, caller.tenant)
                decision = rules.decide(fact.category, fact.text, fact.quote, since=fact.valid_from)
                if fact.id in refused or decision.refused:
                    dropped.add(fact.id)
                    continue
                accept(tx, fact, _superseded(tx, row), now)
                self._follow(tx, row.owner_id, fact)
                count += 1
            delete_with_history(tx, dropped, now)
            return Reviewed(count, len(dropped))

    def _follow(self, tx: Transaction, owner_id: int, fact: Fact) -> None:
        """Have the fact read by the jobs that read each new fact, although newer ones were read before."""
        owner = tx.get_one(OwnerRow, owner_id)
        owner.profile_through = min(owner.profile_through, fact.id - 1)
        owner.consolidated_through = min(owner.consolidated_through, fact.id - 1)
        tx.flush()
        self.profiles.enqueue_update(tx, owner)
        self.consolidation.enqueue_run(tx, owner)
        self.rules.schedule_end(tx, owner.id, owner.tenant, fact.expires_at)


def _superseded(tx: Transaction, row: FactRow) -> list[Fact]:
    """Return the valid facts that a fact corrects which waits."""
    valid = FACTS.where(FactRow.owner_id == row.owner_id, valid_at(None), in_scope(row.session_id, row.owner_id))
    columns = tx.execute(MESSAGES.where(MessageRow.id == row.source_message_id)).first()
    source = Message._make(columns) if columns is not None else Message.of_person(row.quote, row.valid_from)
    draft = FactDraft(
        row.text, source.position, row.quote, supersedes=tuple(row.replaces or ()), links=as_relations(row.links)
    )
    return find_superseded(tx, draft, source, [Fact(*columns) for columns in tx.execute(valid)])
