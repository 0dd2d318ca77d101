"""The structured summary of a session: its versions, and the job that brings it up to date.

Guarantee: every version is kept; a new one replaces the last only when the mini model's answer passed all checks,
and only when nobody else changed the summary meanwhile (compare and swap on the version) nor replaced or erased a
message it was made from.  A summary that covers fewer messages never replaces one that covers more.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import String, bindparam, cast, func, insert, select

from config import Settings
from memory import tokens
from memory.access.budgets import Budgets
from memory.access.owners import find_session
from memory.domain import Caller, Message, Sections, Usage
from memory.errors import Conflict, InvalidRequest, NotFound, RecapError
from memory.facts.facts import Facts
from memory.facts.grounding import Shown
from memory.jobs.outbox import Job, Outbox
from memory.llm import DigestMaterial, LanguageModel
from memory.llm.counted import CountedModel
from memory.ops import logs
from memory.ops.metrics import Metrics
from memory.paging import Page, decode_cursor, page_of
from memory.prompts.prompts import Prompt, Prompts
from memory.sessions.head import show_newest
from memory.sessions.messages import SAID
from memory.summary.corrected import corrected, says
from memory.summary.digest import Digested, digest
from memory.summary.digest_format import SUMMARY_TOKENS_MAX
from memory.summary.material import Materials
from models import Database, JobRow, MessageRow, SessionRow, SummaryRow, Transaction
from search_index.remembered import remembered

log = logging.getLogger(__name__)

SHOWN_MAX = 128  # summaries that heads show, kept for the next turn

_V, _M, _J = SummaryRow.__table__.c, MessageRow.__table__.c, JobRow.__table__.c
_NEW = insert(SummaryRow.__table__)
_THERE = select(func.count()).where(_M.id.in_(bindparam("ids", expanding=True)), *SAID)
_FOLLOWING = select(func.min(_M.position)).where(
    _M.session_id == bindparam("session"), *SAID, _M.position > bindparam("last")
)
_SECTIONS = select(cast(_V.sections, String)).where(
    _V.session_id == bindparam("session"), _V.version == bindparam("version")
)
_UPDATE_JOB = select(_J.id, _J.state, _J.error).where(_J.kind == "summary", _J.key == bindparam("key"))


@dataclass(frozen=True)
class SummaryVersion:
    """One version: what it says, which messages it covers (positions up to `through`), who made it.

    `replaced`: it covers messages that were replaced since, so it can't be brought back.
    """

    version: int
    sections: Sections
    through: int
    tokens: int
    author: str
    model: str | None
    prompt: str | None
    usage: dict[str, Any] | None
    restores: int | None
    created_at: datetime
    replaced: bool


@dataclass(frozen=True)
class SummaryState:
    """The newest version (None: there is none yet) and how it stands to the conversation.

    `state` is `none`, `current`, `pending` (messages wait to be summarised), `updating` or `failed` with its `error`.
    """

    session_id: str
    latest: SummaryVersion | None
    state: str
    error: str | None
    job_id: int | None
    head_version: int
    message_count: int


@dataclass(frozen=True)
class UpdateJob:
    """The job that brings a session's summary up to date, and why its last try failed, if it did."""

    id: int
    state: str
    error: str | None


@dataclass(frozen=True)
class _Work:
    """A snapshot of what one call of the mini model is to digest; the session has so many messages in all."""

    version: int
    message_count: int
    owner_id: int
    material: DigestMaterial
    prompt: Prompt
    repair: Prompt


class Summaries:
    """Reads, edits and updates summaries."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        outbox: Outbox,
        prompts: Prompts,
        facts: Facts,
        materials: Materials,
        mini: LanguageModel,
        budgets: Budgets,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._outbox = outbox
        self._prompts = prompts
        self._facts = facts
        self._materials = materials
        self._mini = mini
        self._budgets = budgets
        self._metrics = metrics
        self._now = now

    # -- for callers

    def get(self, caller: Caller, session_id: str) -> SummaryState:
        """Raises NotFound."""
        with self._database.read() as tx:
            return state_of(tx, find_session(tx, caller, session_id))

    def versions(
        self, caller: Caller, session_id: str, *, cursor: str | None = None, limit: int = 20
    ) -> Page[SummaryVersion]:
        """All versions, newest first.  Raises NotFound."""
        with self._database.read() as tx:
            row = find_session(tx, caller, session_id)
            query = select(SummaryRow).where(SummaryRow.session_id == row.id)
            if cursor:
                query = query.where(SummaryRow.version < decode_cursor(cursor, int)[0])
            rows = tx.scalars(query.order_by(SummaryRow.version.desc()).limit(limit + 1))
            found = [as_version(row) for row in rows]
        return page_of(found, limit, lambda version: (version.version,))

    def edit(self, caller: Caller, session_id: str, sections: Sections, expected: int | None = None) -> SummaryState:
        """The person's own summary, shown from the next prompt on.

        With `expected`, only if that is still the newest version.  Raises NotFound, Conflict, and InvalidRequest when
        it is longer than the mini model's may be: every prompt has to carry it.
        """
        size = tokens.estimate(str(sections))
        if size > SUMMARY_TOKENS_MAX:
            raise InvalidRequest(
                "summary_too_large",
                f"A summary may have about {SUMMARY_TOKENS_MAX:,} tokens, since every prompt carries it; this one has "
                f"{size:,}. Nothing was changed. Shorten it.",
                param="sections",
            )
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            if expected is not None and expected != row.summary_version:
                raise Conflict(
                    "summary_changed",
                    f"The summary is at version {row.summary_version} by now, not {expected}. "
                    "Nothing was changed; read it again and apply your edit to that.",
                )
            through = row.summary_through if row.summary_version else row.message_count
            add_version(tx, row, sections, through, self._now(), author="person")
            show_newest(tx, row, self._settings)
            return state_of(tx, row)

    def rollback(self, caller: Caller, session_id: str, version: int) -> SummaryState:
        """Make an earlier version the newest again.

        Messages it does not cover go word for word until the next update summarises them anew.  Raises NotFound, and
        Conflict for a version made from messages that were replaced.
        """
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            old = _find(tx, row, version)
            if old is None:
                raise NotFound("version_not_found", f"The summary has no version {version}.", param="version")
            if old.branch:
                raise Conflict(
                    "version_replaced",
                    f"Version {version} was made from messages that have been replaced since, so it would bring them "
                    "back. Nothing was changed. Choose another version, or write what you want to keep into the "
                    "summary yourself.",
                )
            sections = Sections.from_dict(old.sections)
            add_version(tx, row, sections, old.through, self._now(), author="rollback", restores=version)
            show_newest(tx, row, self._settings)
            return state_of(tx, row)

    def refresh(self, caller: Caller, session_id: str) -> SummaryState:
        """Ask for an update now, also after a failure.  Raises NotFound, and LimitReached when the day is spent."""
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            self._budgets.check(tx, row.owner_id)
            self._outbox.enqueue(tx, "summary", row.id, owner_id=row.owner_id, session_row_id=row.id, insist=True)
            tx.flush()
            state = state_of(tx, row)
        self._outbox.notify()
        return state

    # -- the job

    def update(self, job: Job) -> None:
        """Bring the job's session up to date, in as many steps as its new messages need.  Idempotent.

        What is said meanwhile is left to the job its turn asks for, which a burst puts off.
        Raises ModelError and SummaryRefused; steps that were done stay done.
        """
        caller_prompt = job.payload.get("prompt")
        until = 0
        while job.session_row_id is not None:
            work = self._look(job.session_row_id, caller_prompt)
            if work is None or (until and work.material.messages[-1].position > until):
                return
            until = until or work.message_count
            spent: list[Usage] = []
            try:
                made = digest(CountedModel(self._mini, spent.append), work.prompt, work.repair, work.material)
            except RecapError:
                self._budgets.charge(work.owner_id, spent)  # a refused answer has been paid for
                raise
            self._commit(job.session_row_id, work, made)

    def _look(self, row_id: int, prompt: str | None) -> _Work | None:
        with self._database.read() as tx:
            row = tx.get(SessionRow, row_id)
            material = self._materials.since(tx, row, _find(tx, row, row.summary_version)) if row is not None else None
            if row is None or material is None:
                return None
            caller = Caller(row.tenant)
            return _Work(
                version=row.summary_version,
                message_count=row.message_count,
                owner_id=row.owner_id,
                material=material,
                prompt=self._prompts.find(tx, caller, prompt or self._settings.summary_prompt),
                repair=self._prompts.find(tx, caller, "repair"),
            )

    def _commit(self, row_id: int, work: _Work, made: Digested) -> None:
        newest = work.material.messages[-1]
        with self._database.write() as tx:
            row = tx.get(SessionRow, row_id)
            if row is not None:
                self._budgets.spend(tx, row.owner_id, [made.usage])
            if row is None or row.summary_version != work.version or not _all_there(tx, work.material.messages):
                log.info("the session changed while its summary was being updated; doing it again")
                return
            given = Shown(work.material.messages, work.material.known_facts, work.material.previous)
            accepted = self._facts.accept(tx, row, made.digest.facts, given)
            add_version(
                tx,
                row,
                corrected(made.digest.sections, accepted.corrected),
                newest.position,
                self._now(),
                author="model",
                model=made.model,
                prompt=work.prompt.label,
                usage={**made.cost, "facts": accepted.counts},
            )
            if says(shown(tx, row), tuple(accepted.corrected)):
                show_newest(tx, row, self._settings)  # a stable head is worth less than a true one
        self._metrics.facts_taken(accepted.counts)
        figures = {f"facts_{outcome}": count for outcome, count in accepted.counts.items()}
        log.info(
            "summary",
            extra=logs.fields(version=work.version + 1, through=newest.position, model=made.model, **figures),
        )


def add_version(
    tx: Transaction, row: SessionRow, sections: Sections, through: int, now: datetime, **about: Any
) -> None:
    """Make `sections` the session's newest version, which covers the messages up to position `through`."""
    through = over_places(tx, row, through)
    row.summary_version += 1
    row.summary_through = through
    made = {"session_id": row.id, "version": row.summary_version, "sections": sections.as_dict(), "through": through}
    tx.execute(_NEW, {**made, "tokens": tokens.estimate(str(sections)), "created_at": now, **about})


def over_places(tx: Transaction, row: SessionRow, through: int) -> int:
    """The last position from `through` on with nothing in between but places of erased messages: nothing is to be
    summarised there."""
    following = tx.scalar(_FOLLOWING, {"session": row.id, "last": through})
    return row.message_count if following is None else following - 1


def _all_there(tx: Transaction, messages: Sequence[Message]) -> bool:
    """Whether none of the messages was replaced or erased."""
    found = tx.scalar(_THERE, {"ids": [message.id for message in messages]})
    return found == len(messages)


def shown(tx: Transaction, row: SessionRow) -> Sections:
    """The summary the head shows."""
    if not row.head_version:
        return Sections()
    stored = tx.scalar(_SECTIONS, {"session": row.id, "version": row.head_version})
    return _as_stored(stored) if stored else Sections()


@remembered(SHOWN_MAX)
def _as_stored(text: str) -> Sections:
    """Sections from their JSON: turn after turn shows the same ones, until the tail folds."""
    return Sections.from_dict(json.loads(text) or {})


def standing(row: SessionRow, job: UpdateJob | None) -> str:
    """How the session's summary stands to its messages: a `SummaryState.state`."""
    if job is not None and job.state == "failed":
        return "failed"
    if job is not None and job.state == "running":
        return "updating"
    if row.summary_through < row.message_count:
        return "pending"
    return "current" if row.summary_version else "none"


def update_job(tx: Transaction, row: SessionRow) -> UpdateJob | None:
    """The job that will bring, or failed to bring, the session's summary up to date."""
    job = tx.execute(_UPDATE_JOB, {"key": str(row.id)}).first()
    return None if job is None else UpdateJob(*job)


def state_of(tx: Transaction, row: SessionRow) -> SummaryState:
    """How the session's summary stands, with its newest version."""
    latest = _find(tx, row, row.summary_version)
    job = update_job(tx, row)
    return SummaryState(
        session_id=row.public_id,
        latest=as_version(latest) if latest else None,
        state=standing(row, job),
        error=job.error if job is not None else None,
        job_id=job.id if job is not None else None,
        head_version=row.head_version,
        message_count=row.message_count,
    )


def _find(tx: Transaction, row: SessionRow, version: int) -> SummaryRow | None:
    if not version:
        return None
    return tx.scalar(select(SummaryRow).where(SummaryRow.session_id == row.id, SummaryRow.version == version))


def as_version(row: SummaryRow) -> SummaryVersion:
    return SummaryVersion(
        version=row.version,
        sections=Sections.from_dict(row.sections),
        through=row.through,
        tokens=row.tokens,
        author=row.author,
        model=row.model,
        prompt=row.prompt,
        usage=row.usage,
        restores=row.restores,
        created_at=row.created_at,
        replaced=row.branch > 0,
    )
