"""Cleaning: taking out the thoughts of models that older versions stored as words of their replies.

A job goes through all messages, then through all summaries, a batch at a time.  Its row notes how far it is, so a
killed job goes on from there, and what was cleaned before stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import bindparam, case, or_, select, update

from memory import tokens
from memory.access.owners import lock_session
from memory.jobs import JobQueue
from memory.llm.thoughts import TAGS, without_thoughts
from models import Database, JobRow, MessageRow, SessionRow, SummaryRow, Transaction
from models.jobs import Job, JobRequest
from models.messages import MessageDraft
from models.sections import SECTIONS, Excluded, Sections

BATCH_ROWS = 500  # rows that one transaction reads
QUIET = 5.0  # seconds after the last change of an owner until their index is made anew
NOTHING_ELSE = "…"  # in the place of a message of thoughts alone

_M, _V = MessageRow.__table__.c, SummaryRow.__table__.c
_MAY_THINK = or_(*(_M.content.icontains(f"{tag}>") for tag in TAGS))
_MESSAGES = (
    select(_M.id, _M.session_id, case((_MAY_THINK & (_M.role == "assistant"), _M.content), else_=""))
    .where(_M.id > bindparam("after"))
    .order_by(_M.id)
)
_SUMMARIES = select(_V.id, _V.session_id, _V.sections).where(_V.id > bindparam("after")).order_by(_V.id)


def clean_draft(draft: MessageDraft) -> MessageDraft:
    """Return a message to import without a model's thoughts."""
    if draft.role != "assistant":
        return draft
    content = _without(draft.content)
    return draft if content == draft.content else replace(draft, content=content)


def clean_sections(sections: Sections) -> Sections:
    """Return a summary without thoughts in its texts, and without texts that were thoughts alone."""
    cleaned: dict[str, Any] = {}
    for section in SECTIONS:
        value = getattr(sections, section.name)
        if section.kind == "line":
            cleaned[section.name] = without_thoughts(value)
        elif section.kind == "items":
            cleaned[section.name] = tuple(filter(None, map(without_thoughts, value)))
        else:
            options = (Excluded(without_thoughts(option.option), without_thoughts(option.reason)) for option in value)
            cleaned[section.name] = tuple(option for option in options if option.option)
    return Sections(**cleaned)


@dataclass(frozen=True)
class Cleaning:
    """Cleans what is stored."""

    database: Database
    job_queue: JobQueue

    def run(self, job: Job) -> bool:
        """Clean the next batch of messages or, when these are done, of summaries; return whether there is more.

        Idempotent.
        """
        reached = {"messages": 0, "summaries": 0, **(job.payload or {})}
        query, clean, name = _MESSAGES, self._clean_messages, "messages"
        with self.database.read() as tx:
            batch = tx.execute(query.limit(BATCH_ROWS), {"after": reached[name]}).all()
            if not batch:
                query, clean, name = _SUMMARIES, _clean_summaries, "summaries"
                batch = tx.execute(query.limit(BATCH_ROWS), {"after": reached[name]}).all()
        if not batch:
            return False
        of_session: dict[int, list[Any]] = defaultdict(list)
        for row in batch:
            if _needs_cleaning(row[2]):
                of_session[row.session_id].append(row)
        for session_id, rows in of_session.items():
            with self.database.write() as tx:
                session = lock_session(tx, session_id)
                if session is not None:
                    clean(tx, session, [row.id for row in rows])
        with self.database.write(durable=False) as tx:
            reached[name] = batch[-1].id
            tx.execute(update(JobRow).where(JobRow.id == job.id).values(payload=reached))
        return True

    def _clean_messages(self, tx: Transaction, session: SessionRow, ids: Sequence[int]) -> None:
        """Rewrite messages, and what counts their tokens, and ask for their place in the index."""
        for message in tx.scalars(select(MessageRow).where(MessageRow.id.in_(ids), MessageRow.erased_at.is_(None))):
            content = _without(message.content)
            change = tokens.estimate_message(content) - tokens.estimate_message(message.content)
            message.content = content
            message.tokens += change
            if message.branch:
                continue
            message.indexed_in = None
            session.tokens += change
            session.head_tokens += change if message.position <= session.head_through else 0
        owner = session.owner
        erased = {"owner": owner.index_key}
        self.job_queue.enqueue(
            tx,
            # An index never takes other words for a message that it holds, so it is made anew.
            JobRequest("unindex", owner.index_key, owner.tenant, delay=QUIET, debounce=True, payload=erased),
            JobRequest("index", owner.id, owner.tenant, owner.id, delay=2 * QUIET, debounce=True),
        )


def _clean_summaries(tx: Transaction, session: SessionRow, ids: Sequence[int]) -> None:
    of_session = SummaryRow.session_id == session.id
    for version in tx.scalars(select(SummaryRow).where(of_session, SummaryRow.id.in_(ids))):
        sections = clean_sections(Sections.from_dict(version.sections))
        version.sections, version.tokens = sections.as_dict(), tokens.estimate(str(sections))


def _needs_cleaning(stored: str | Mapping[str, Any]) -> bool:
    if isinstance(stored, str):
        return _without(stored) != stored
    sections = Sections.from_dict(stored)
    return clean_sections(sections) != sections


def _without(content: str) -> str:
    """Return the words of an answer without its thoughts, or a mark where nothing else is left."""
    return without_thoughts(content) or (NOTHING_ELSE if content else "")
