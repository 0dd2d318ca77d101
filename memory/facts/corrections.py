"""Lines of corrections: facts of which each took the place of those before it.

Guarantee: a fact that is withdrawn is as if it had never been taken: what it corrected goes to the correction after it,
or if there is none holds again.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete, select

from models import FactRow, Transaction


def withdraw(tx: Transaction, fact_ids: Iterable[int]) -> None:
    """Erase these facts, with their histories; nothing that they alone corrected stays corrected."""
    gone = {fact.id: fact for fact in tx.scalars(select(FactRow).where(FactRow.id.in_(set(fact_ids))))}
    if not gone:
        return
    corrected = select(FactRow).where(FactRow.superseded_by.in_(gone), FactRow.id.not_in(gone))
    for fact in tx.scalars(corrected).all():
        heir = fact.superseded_by
        while heir in gone:
            heir = gone[heir].superseded_by
        fact.superseded_by = heir
        if heir is None:
            fact.valid_to = None
    tx.flush()
    tx.execute(delete(FactRow).where(FactRow.id.in_(gone)))


def line_up_to(tx: Transaction, fact_ids: Iterable[int]) -> set[int]:
    """The ids of these facts and of all that they took the place of, one after the other."""
    line = wave = set(fact_ids)
    while wave:
        wave = set(tx.scalars(select(FactRow.id).where(FactRow.superseded_by.in_(wave)))) - line
        line = line | wave
    return line
