"""Read the memory of other owners for a turn: of spaces that it reads, and of the person who acts in a space.

What is found is quoted in blocks of its own, in the last message of the prompt: the prefix stays that of the session's
owner. It is of nobody's memory afterwards but where it was: jobs read the messages of a session, and no prompts.

Invariants:
- A turn that reads no other memory runs no statement for it (test_spaces).
- All others together get as many tokens as the session's owner (test_spaces).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, select, tuple_

from config import Settings
from memory import tokens
from memory.engine import Engine
from memory.quoting import block, fact_line, owner_block
from memory.recall.recall import LATEST, MISSING, Findings, PreparedPlan
from memory.recall.search import SearchScope
from memory.recall.triggers import about
from memory.turn.request import OtherMemory, Turn
from memory.turn.tools import fit_excerpts
from models import OwnerRow
from models.facts import Fact
from models.owners import index_key

_O = OwnerRow.__table__.c
_COLUMNS = _O.id, _O.kind, _O.name, _O.created_at, _O.facts_revision
TAG_TOKENS = 12  # of the tags around the memory of an owner


class Other(NamedTuple):
    """Owner whose memory a turn reads too. space: its name; None: it is the person who acts in a space."""

    space: str | None
    owner_id: int
    owner_key: str
    generation: str
    facts_revision: int


class FoundOther(NamedTuple):
    """Rows of one snapshot that a turn may show of an owner."""

    other: Other
    facts: Sequence[Fact]
    findings: Findings


def find_others(engine: Engine, turn: Turn) -> list[Other]:
    """Return the owners that the turn reads too, in its order, without those whose memory is off or empty.

    Call it before the snapshot: the generation of an index is read before the rows.
    """
    if not turn.request.also or turn.continued_turn is not None:
        return []
    pairs = [owner for caller in turn.request.also if (owner := caller.owner) is not None]
    query = select(*_COLUMNS).where(_O.tenant == turn.request.caller.tenant, tuple_(_O.kind, _O.name).in_(pairs))
    with engine.database.connect() as tx:
        rows = {(row.kind, row.name): row for row in tx.execute(query.where(_O.remember))}
    others = []
    for kind, name in filter(rows.__contains__, pairs):
        row = rows[kind, name]
        key = index_key(turn.request.caller.tenant, kind, name, row.id, row.created_at)
        space = name if kind == "space" else None
        others.append(Other(space, row.id, key, engine.index.generation(key), row.facts_revision))
    return others


def scope_of(other: Other, scope: SearchScope) -> SearchScope:
    """Return where to search in another memory; scope: that of the session."""
    return SearchScope(other.owner_id, other.owner_key, visible_texts=scope.visible_texts)


def share(plan: PreparedPlan, others: Sequence[Other]) -> PreparedPlan:
    """Return the plan for each of the others."""
    return replace(plan, budget=plan.budget // max(1, len(others)))


def read_others(
    tx: Connection, engine: Engine, others: Sequence[Other], scope: SearchScope, plan: PreparedPlan
) -> list[FoundOther]:
    """Read what the others may show, in the snapshot of `tx`."""
    plan = share(plan, others)
    return [
        FoundOther(
            other,
            engine.current_facts.read(tx, other.owner_id, 0, other.facts_revision),
            engine.recall.find(tx, scope_of(other, scope), plan, other.generation),
        )
        for other in others
    ]


def select_others(
    engine: Engine, found: Sequence[FoundOther], plan: PreparedPlan, question: str, settings: Settings
) -> tuple[OtherMemory, ...]:
    """Return the facts and excerpts of the others that suit the message.  May call the mini model."""
    plan, budget = share(plan, [one.other for one in found]), settings.fact_tokens // max(1, len(found))
    ranking, is_personal, shown = engine.facts.ranking, about(question) is not None, list[OtherMemory]()
    for other, facts, findings in found:
        result = engine.recall.select(findings, plan)
        excerpts = result.excerpts if result.kind not in (LATEST, MISSING) else ()
        fitting = ranking.for_message(facts, question, budget, engine.now(), is_personal=is_personal)
        if fitting or excerpts:
            shown.append(OtherMemory(other.owner_id, other.space, fitting, excerpts))
    return tuple(shown)


def quote_others(others: Sequence[OtherMemory], room: int) -> tuple[list[str], tuple[OtherMemory, ...], int]:
    """Return the blocks of the others, what of them fits into `room` tokens, and the room that is left."""
    blocks, kept = list[str](), list[OtherMemory]()
    for other in others:
        lines, left = tokens.fit_budget(room - TAG_TOKENS, map(fact_line, other.facts))
        chats, left = fit_excerpts(left, other.excerpts)
        if lines or chats:
            blocks.append(owner_block(other.space, [*chats, block("facts", lines)]))
            kept.append(replace(other, facts=other.facts[: len(lines)], excerpts=other.excerpts[: len(chats)]))
            room = left
    return blocks, tuple(kept), room
