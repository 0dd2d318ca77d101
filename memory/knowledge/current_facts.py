"""Keep the facts that are valid for a session in the process, until one of them changes.

Invariants:
- What is kept is used only under the revision that the same transaction reads of the owner, and until the first of
  the facts ends, so a change, an erasure or a roll-back in any process shows at once [test_current_facts].
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, bindparam, select

from memory.knowledge.fact_writes import FACTS, NOW, in_scope, valid_at
from models import FactRow, OwnerRow, Transaction
from models.facts import Fact
from search_index.caches import ByteLRU

CURRENT_FACTS_MAX = 500  # facts of one session and its person that are read at once, the most important first
CACHE_BYTES = 8 << 20
FACT_BYTES = 700  # of a fact beside its words

_REVISION = select(OwnerRow.__table__.c.facts_revision).where(OwnerRow.__table__.c.id == bindparam("owner"))
_CURRENT = (
    FACTS.where(valid_at(None), in_scope(bindparam("session"), bindparam("owner")))
    .order_by(FactRow.pinned.desc(), FactRow.importance.desc(), FactRow.id.desc())
    .limit(CURRENT_FACTS_MAX)
)


class CurrentFacts:
    """Reads what is valid now: a session's own facts and those of its person, at most CURRENT_FACTS_MAX."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._cache = ByteLRU(CACHE_BYTES)

    def read(
        self, tx: Transaction | Connection, owner_id: int, session_id: int, revision: int | None = None
    ) -> tuple[Fact, ...]:
        """Return the facts: pinned ones first, then the most important, then the newest.

        session_id: of the row. revision: the owner's `facts_revision`, where this transaction has read it already.
        `recalled_count` may be older than in the database (see `count_recalls`).
        """
        now = self._now()
        key = {"owner": owner_id, "session": session_id, NOW.key: now}
        if revision is None:
            revision = tx.execute(_REVISION, key).scalar_one_or_none()
        kept = self._cache.get((owner_id, session_id))
        if kept is not None and kept[0] == revision and (kept[2] is None or kept[2] > now):
            facts: tuple[Fact, ...] = kept[1]
            return facts
        facts = tuple(Fact(*row) for row in tx.execute(_CURRENT, key))
        size = sum(FACT_BYTES + 2 * len(fact.text) + 2 * len(fact.quote) for fact in facts)
        first_end = min((fact.expires_at for fact in facts if fact.expires_at is not None), default=None)
        self._cache.put((owner_id, session_id), (revision, facts, first_end), size + FACT_BYTES)
        return facts
