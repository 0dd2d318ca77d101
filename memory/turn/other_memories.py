"""Read the memory of other owners for a turn: of spaces that it reads, and of the person who acts in a space.

It is quoted in blocks of its own, in the last message of the prompt; the prefix shows the session's owner alone. It
does not become memory of the session's owner: jobs read the stored messages, and no prompts.

Invariants:
- A turn that reads no other memory runs no statement for it (test_spaces).
- All others together get as many tokens as the session's owner (test_spaces).
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import NamedTuple

from sqlalchemy import Connection, select, tuple_

from memory.engine import Engine
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.fact_reads import current_facts
from memory.quoting import facts_block, fit_facts, owner_block
from memory.recall import recall
from memory.recall.excerpts import excerpt_blocks
from memory.recall.recall import LATEST, MISSING, Findings, PreparedRecall
from memory.recall.search import SearchScope
from memory.turn.memory_report import OtherMemory
from memory.turn.request import TurnRequest
from models import OwnerRow
from models.facts import Fact
from models.owners import index_key

_O = OwnerRow.__table__.c
_COLUMNS = _O.id, _O.kind, _O.name, _O.created_at, _O.facts_revision
OWNER_TAG_TOKENS = 12  # of the tags around the block of an owner


class OtherOwner(NamedTuple):
    """Other owner whose memory a turn reads. space: its name; None: the person who acts in a space."""

    space: str | None
    scope: SearchScope
    facts_revision: int


OtherFindings = tuple[OtherOwner, Sequence[Fact], Findings]
"""An owner, with the rows that a turn may show of theirs, of one snapshot."""


def find_others(engine: Engine, request: TurnRequest) -> list[OtherOwner]:
    """Return the owners that `request.also` names, in its order, without those whose memory is off or empty.

    Call it before the snapshot begins, because it reads the generation of each index.
    """
    pairs = [owner for caller in request.also if (owner := caller.owner) is not None]
    query = select(*_COLUMNS).where(_O.tenant == request.caller.tenant, tuple_(_O.kind, _O.name).in_(pairs))
    with engine.database.connect() as tx:
        rows = {(row.kind, row.name): row for row in tx.execute(query.where(_O.remember))}
    others = []
    for kind, name in filter(rows.__contains__, pairs):
        row = rows[kind, name]
        key = index_key(request.caller.tenant, kind, name, row.id, row.created_at)
        only_session = engine.settings.recall_scope == "session"
        scope = SearchScope(row.id, key, engine.index.generation(key), only_session=only_session)
        others.append(OtherOwner(name if kind == "space" else None, scope, row.facts_revision))
    return others


def read_others(
    tx: Connection, engine: Engine, others: Sequence[OtherOwner], visible_texts: Sequence[str], prepared: PreparedRecall
) -> list[OtherFindings]:
    """Read what the others may show, in the snapshot of `tx`. visible_texts: before the new message."""
    prepared = replace(prepared, budget=prepared.budget // len(others))
    found: list[OtherFindings] = []
    for other in others:
        facts = current_facts(engine, tx, other.scope.owner_id, 0, other.facts_revision)
        findings = recall.search_in_snapshot(engine, tx, other.scope, prepared, visible_texts)
        found.append((other, facts, findings))
    return found


def select_others(
    engine: Engine, found: Sequence[OtherFindings], question: str, fact_tokens: int, *, is_personal: bool
) -> tuple[OtherMemory, ...]:
    """Select facts and excerpts of the others for the message.  May call the mini model.

    is_personal: the message is about the person who speaks.
    """
    ranking = Ranking.of(engine)
    shown: list[OtherMemory] = []
    budget = ranking.message_budget(question, fact_tokens // len(found))
    for other, facts, findings in found:
        result = recall.choose_excerpts(engine, findings)
        excerpts = result.excerpts if result.kind not in (LATEST, MISSING) else ()
        corrections = {fact.id: fact for fact in result.corrections}
        unseen = [*({fact.id: fact for fact in facts} | corrections).values()]
        fitting = ranking.for_message(
            unseen, question, budget, engine.now(), is_personal=is_personal, first=corrections
        )
        if fitting or excerpts:
            shown.append(OtherMemory(other.scope.owner_id, other.space, fitting, excerpts))
    return tuple(shown)


def quote_others(
    others: Sequence[OtherMemory], room: int, zone: tzinfo
) -> tuple[list[str], tuple[OtherMemory, ...], int]:
    """Return the blocks of the others that fit into `room` tokens, the memory that they show, and the room left.

    zone: in which the person's days begin.
    """
    blocks, kept = list[str](), list[OtherMemory]()
    for other in others:
        facts, left = fit_facts(other.facts, room - OWNER_TAG_TOKENS)
        excerpt_texts, left = excerpt_blocks(other.excerpts, left, zone)
        if facts or excerpt_texts:
            blocks.append(owner_block(other.space, [*excerpt_texts, facts_block(facts, zone)]))
            kept.append(replace(other, facts=facts, excerpts=other.excerpts[: len(excerpt_texts)]))
            room = left
    return blocks, tuple(kept), room
