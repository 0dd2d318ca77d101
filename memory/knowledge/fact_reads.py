"""Read facts, and keep a session's valid ones and a person's corrected ones in the process, until one of them changes.

Invariants:
- What is kept is used only under the revision that the same transaction reads of the owner, and until the first of
  the facts ends, so a change, an erasure or a roll-back in any process shows at once [test_current_facts].
"""

from collections.abc import Iterable
from dataclasses import fields
from datetime import UTC, datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, not_, or_, select

from memory.engine import Engine
from models import FactRow, OwnerRow, SessionRow, Transaction
from models.facts import Fact

CURRENT_FACTS_MAX = 500  # facts of one session and its person that are read at once, the most important first
FACT_BYTES = 700  # of a fact beside its words

FACTS = select(
    *(
        SessionRow.public_id if field.name == "session_id" else getattr(FactRow, field.name)
        for field in fields(Fact)
        if field.name not in ("score", "merged_facts")
    )
).outerjoin(SessionRow, SessionRow.id == FactRow.session_id)
"""Facts with the fields of a `Fact`, without its score."""

NOW = bindparam("valid_now", type_=FactRow.valid_from.type, callable_=partial(datetime.now, UTC))
"""The present, which a statement may be given as a parameter."""

CORRECTED = FactRow.owner_id == bindparam("owner"), FactRow.valid_to.is_not(None), FactRow.superseded_by.is_not(None)
"""True of an owner's facts in whose place another one was put."""


CORRECTED_FACTS = (
    FACTS.where(*CORRECTED, not_(FactRow.merged))
    .order_by(FactRow.valid_to.desc(), FactRow.id.desc())
    .limit(CURRENT_FACTS_MAX)
)
"""An owner's corrected facts, the last ended first; one that was only merged with others is none."""


def valid_at(as_of: datetime | None, now: Any = NOW) -> ColumnElement[bool]:
    """Return a condition for the facts that are valid now, or were at `as_of`; they have not reached their end."""
    unended = or_(FactRow.expires_at.is_(None), FactRow.expires_at > (now if as_of is None else as_of))
    if as_of is None:  # else without the clock, which may have been set back since a fact was stated
        return and_(FactRow.valid_to.is_(None), unended)
    return and_(or_(FactRow.valid_to.is_(None), FactRow.valid_to > as_of), unended, FactRow.valid_from <= as_of)


IN_ALL_SESSIONS = FactRow.scope == "user", valid_at(None)
"""True of the facts that are valid now in all sessions of their person."""


def in_scope(session: Any, owner: Any) -> ColumnElement[bool]:
    """Return a condition for the facts of a session and of its person; both are ids, or parameters for them."""
    return or_(FactRow.session_id == session, and_(FactRow.owner_id == owner, FactRow.scope == "user"))


def read_facts(tx: Transaction, *conditions: Any) -> list[Fact]:
    """Return the facts that meet the conditions."""
    return [Fact(*row) for row in tx.execute(FACTS.where(*conditions))]


def supersession_chain(tx: Transaction, fact_ids: Iterable[int], *conditions: ColumnElement[bool]) -> set[int]:
    """Return the ids of these facts and of all that they superseded, step by step.

    conditions: for each superseded fact.
    """
    chain = step = set(fact_ids)
    while step:
        step = set(tx.scalars(select(FactRow.id).where(FactRow.superseded_by.in_(step), *conditions))) - chain
        chain = chain | step
    return chain


_REVISION = select(OwnerRow.__table__.c.facts_revision).where(OwnerRow.__table__.c.id == bindparam("owner"))
_CURRENT = (
    FACTS.where(valid_at(None), in_scope(bindparam("session"), bindparam("owner")))
    .order_by(FactRow.pinned.desc(), FactRow.importance.desc(), FactRow.id.desc())
    .limit(CURRENT_FACTS_MAX)
)


def current_facts(
    engine: Engine, tx: Transaction | Connection, owner_id: int, session_row_id: int, revision: int | None = None
) -> tuple[Fact, ...]:
    """Return the valid facts of a session and of its person, at most CURRENT_FACTS_MAX.

    Pinned ones come first, then the most important, then the newest.

    revision: the owner's `facts_revision`, where this transaction has read it already.
    `recalled_count` may be older than in the database (see `add_uses`).
    """
    of_session = {"owner": owner_id, "session": session_row_id, NOW.key: engine.now()}
    return _kept(engine, tx, _CURRENT, of_session, revision)


def corrected_facts(engine: Engine, tx: Connection, owner_id: int) -> tuple[Fact, ...]:
    """Return a person's facts in whose place others were put, at most CURRENT_FACTS_MAX, the last ended first.

    Those whose messages were hidden or refused since are among them.
    """
    return _kept(engine, tx, CORRECTED_FACTS, {"owner": owner_id}, None)


def _kept(
    engine: Engine, tx: Transaction | Connection, statement: Select[Any], params: dict[str, Any], revision: int | None
) -> tuple[Fact, ...]:
    """Return the facts of a statement, from the process if they are still as in the database."""
    if revision is None:
        revision = tx.execute(_REVISION, {"owner": params["owner"]}).scalar_one_or_none()
    key = params["owner"], params.get("session")
    kept = engine.kept_facts.get(key)
    if kept is not None and kept[0] == revision and (kept[2] is None or kept[2] > engine.now()):
        facts: tuple[Fact, ...] = kept[1]
        return facts
    facts = tuple(Fact(*row) for row in tx.execute(statement, params))
    size = sum(FACT_BYTES + 2 * len(fact.text) + 2 * len(fact.quote) for fact in facts)
    ends = (fact.expires_at for fact in facts if fact.expires_at is not None and fact.valid_to is None)
    engine.kept_facts.put(key, (revision, facts, min(ends, default=None)), size + FACT_BYTES)
    return facts
