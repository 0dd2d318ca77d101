"""The links of facts: read, and kept when a fact is edited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Row, select

from memory.domain import Link
from memory.facts.entities import SELF, bare
from memory.facts.grounding import named_in
from models import LinkRow, Transaction


def links_of(tx: Transaction, fact_ids: Collection[int]) -> Mapping[int, list[Link]]:
    """The links of each of these facts."""
    found: Mapping[int, list[Link]] = defaultdict(list)
    for row in tx.scalars(select(LinkRow).where(LinkRow.fact_id.in_(fact_ids)).order_by(LinkRow.id)):
        found[row.fact_id].append(as_link(row))
    return found


def as_link(row: LinkRow | Row[Any]) -> Link:
    return Link(row.subject, row.relation, row.object, row.subject_kind, row.object_kind)


def keep_named(tx: Transaction, fact_id: int, text: str) -> None:
    """Keep those links of a fact whose ends its new words name."""
    for link in tx.scalars(select(LinkRow).where(LinkRow.fact_id == fact_id)):
        if not all(end == SELF or named_in(bare(end), text) for end in (link.subject, link.object)):
            tx.delete(link)
