"""What was made of messages and can be searched too: facts, and the summaries of sessions.

Guarantee: only what holds now is found.  It is read from the rows for each search, so that no index has to follow it.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import null, select

from memory.knowledge.fact_writes import valid_at
from models import FactRow, SessionRow, SummaryRow, Transaction
from models.sections import Sections
from search_index import Document

READ_MAX = 2_000  # facts, or summaries, of an owner that are searched, the newest first
MESSAGES_MAX = 3  # of its session that come with a summary
RANKED_MAX = 500  # messages of the owner among which those are looked for

_F, _S, _V = FactRow.__table__.c, SessionRow.__table__.c, SummaryRow.__table__.c
_SESSION = _S.id.label("session"), _S.public_id, _S.title
_KINDS = {
    "fact": select(_F.id, _F.text, _F.valid_from, _F.source_message_id, *_SESSION, _F.owner_id)
    .outerjoin(SessionRow, _S.id == _F.session_id)
    .where(valid_at(None)),
    "summary": select(_V.id, _V.sections, _V.created_at, null(), *_SESSION, _S.owner_id).join(
        SessionRow, (_S.id == _V.session_id) & (_S.summary_version == _V.version)
    ),
}


class FactOrSummary(NamedTuple):
    """A fact or a summary, since when it holds, and where it comes from: for a fact the id of its message, and the
    session by row id, public id and title, if there is one."""

    id: int
    text: str
    created_at: datetime
    source: int | None
    session_row_id: int | None
    session_id: str | None
    title: str | None

    @property
    def document(self) -> Document:
        return Document(self.id, self.session_row_id or 0, "", self.created_at, self.text)


def facts_and_summaries(
    tx: Transaction, kind: str, owner_id: int, session_row_id: int | None, limit: int = READ_MAX
) -> list[FactOrSummary]:
    """The newest facts or summaries of an owner, or of one session, by `kind`."""
    query = _KINDS[kind]
    query = query.where(query.selected_columns.owner_id == owner_id)
    if session_row_id is not None:
        query = query.where(_S.id == session_row_id)
    rows = tx.execute(query.order_by(query.selected_columns.id.desc()).limit(limit))
    return [
        FactOrSummary(id, text if kind == "fact" else str(Sections.from_dict(text)), *more)
        for id, text, *more, _ in rows
    ]
