"""Rows of what a person takes along, as an import stores them; `export` reads the same columns."""

from __future__ import annotations

from collections.abc import Mapping

from memory.domain import Fact, FactRevision
from memory.people.records import TurnRecord
from memory.summary.summaries import SummaryVersion
from models import FactRevisionRow, FactRow, SessionRow, SummaryRow, TurnRow


def summary_row(row: SessionRow, version: SummaryVersion) -> SummaryRow:
    return SummaryRow(
        session_id=row.id,
        version=version.version,
        sections=version.sections.as_dict(),
        through=min(version.through, row.message_count),
        tokens=version.tokens,
        author=version.author,
        model=version.model,
        prompt=version.prompt,
        usage=version.usage,
        restores=version.restores,
        created_at=version.created_at,
    )


def turn_row(row: SessionRow, turn: TurnRecord, ids: Mapping[int, int]) -> TurnRow:
    return TurnRow(
        tenant=row.tenant,
        session_id=row.id,
        user_message_id=ids[turn.user_position],
        reply_message_id=ids.get(turn.reply_position or 0),
        model=turn.model,
        finish_reason=turn.finish_reason,
        usage=turn.usage.to_stored() if turn.usage else None,
        started_at=turn.started_at,
        finished_at=turn.finished_at,
    )


def fact_row(owner_id: int, session: int | None, source: int | None, fact: Fact) -> FactRow:
    return FactRow(
        owner_id=owner_id,
        session_id=session,
        source_message_id=source,
        text=fact.text,
        category=fact.category,
        importance=fact.importance,
        scope=fact.scope,
        quote=fact.quote,
        pinned=fact.pinned,
        recalled_count=fact.recalled_count,
        valid_from=fact.valid_from,
        valid_to=fact.valid_to,
        created_at=fact.created_at,
    )


def revision_row(row: FactRow, was: FactRevision) -> FactRevisionRow:
    return FactRevisionRow(
        fact_id=row.id,
        action=was.action,
        author=was.author,
        text=was.text,
        category=was.category,
        importance=was.importance,
        pinned=was.pinned,
        at=was.at,
    )
