"""The four ways to erase, and the receipt.

Guarantee: the rows go in one transaction, which also asks for the rest as jobs, so that a process that is killed
half-way leaves work that another one finishes.  From then on nothing of it is found, shown or sent to a model.  Once
those jobs are done (for a receipt with nothing `pending` they are), no byte of the erased words, names and ids is left
in the database's files, its log or the search index, nor in the caches of a process that has looked at the index since.
What is going on meanwhile (a turn, an import, an update of a summary) finds what it wrote for changed, and stores
nothing of it.

Writing the database's files anew takes a second for 100 MB.  For a session and a person that is done before the
receipt is given; single messages and facts go one after the other, so theirs waits SOON, and many cost one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select

from config import Settings
from memory.access.owners import find_session, find_user, owned
from memory.domain import Caller
from memory.errors import Conflict, NotFound, RecapError, user_not_found
from memory.facts.corrections import line_up_to, withdraw
from memory.jobs.outbox import Job, Outbox
from memory.leases.leases import Leases
from memory.people.erased_message import erase_message
from memory.sessions.sessions import APPEND_WAIT
from models import (
    Database,
    FactRevisionRow,
    FactRow,
    JobRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    Transaction,
    TurnRow,
)
from search_index import SearchIndex

SOON = 5.0  # seconds in which erased messages and facts gather, before the files are written anew for all of them
LATER = 30.0  # seconds until the jobs are due that finish what this process begins at once
INDEX, FILES = "search_index", "database_files"  # what may be `pending`
KINDS = (
    "sessions",
    "messages",
    "turns",
    "summaries",
    "edited_summaries",
    "facts",
    "fact_revisions",
    "jobs",
    "index_documents",
)


@dataclass(frozen=True)
class Receipt:
    """What was erased, by kind (see KINDS), and what was named.  `pending` says what is not free of it yet; a job goes
    on.  `forgotten` counts the facts that were named and there; `erased` also has those that they had corrected."""

    erased: Mapping[str, int]
    pending: tuple[str, ...]
    erased_at: datetime
    user_id: str | None = None
    session_id: str | None = None
    message_id: int | None = None
    fact_id: int | None = None
    forgotten: int = 0


class Erasing:
    """Erases, on behalf of callers."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        index: SearchIndex,
        leases: Leases,
        outbox: Outbox,
        now: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._database = database
        self._index = index
        self._leases = leases
        self._outbox = outbox
        self._now = now

    def user(self, caller: Caller) -> Receipt:
        """Erase everything of a person, for good.  Raises NotFound."""
        with self._database.read() as tx:
            held = self._held(_user(tx, caller))
        with self._database.write() as tx:
            owner = _user(tx, caller)
            user_id = owner.name
            erased = self._erase_owner(tx, caller, owner, held)
            unindexed = owner.index_key
        return self._finished(caller, erased, unindexed, user_id=user_id)

    def session(self, caller: Caller, session_id: str) -> Receipt:
        """Erase a session with its messages, summaries and facts.  Raises NotFound."""
        with self._database.read() as tx:
            held = self._held(find_session(tx, caller, session_id).owner)
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            if row.owner.kind == "session":
                unindexed = row.owner.index_key
                erased = self._erase_owner(tx, caller, row.owner, held)
            else:
                unindexed = f"{row.owner_id}/{row.id}"
                erased = self._erase_session(tx, caller, row, held)
        return self._finished(caller, erased, unindexed, session_id=session_id)

    def message(self, caller: Caller, session_id: str, message_id: int) -> Receipt:
        """Erase a message, replaced or not: its words, the facts taken from it, and every version of the summary that
        was made from it, which is made anew without it.

        Its place is kept without words.  The other messages stay, the reply to it too: that is a message of its own.
        Waits for a turn that is being taken in the session.  Raises NotFound, and Conflict when that turn takes longer
        than APPEND_WAIT; then nothing was erased.
        """
        deadline = time.monotonic() + APPEND_WAIT
        with self._database.read() as tx:
            held = self._held(find_session(tx, caller, session_id).owner)
        while True:
            with self._database.write() as tx:
                row = find_session(tx, caller, session_id)
                message = _message(tx, row, message_id)
                if self._leases.free(row):
                    erased = Counter(index_documents=int(message_id in held))
                    erased += erase_message(tx, row, message, self._settings, self._now())
                    self._follow_up(tx, caller, row, rebuild=erased["summaries"] > 0)
                    break
            if not self._leases.wait_free(SessionRow, row.id, deadline):
                raise Conflict(
                    "session_busy",
                    f"A reply is being written in session {session_id!r}. Nothing was erased; stop the reply, or try "
                    "this again later.",
                    retry_after=5.0,
                )
        return self._gathered(erased, (INDEX, FILES), session_id=session_id, message_id=message_id)

    def fact(self, caller: Caller, fact_id: int) -> Receipt:
        """Forget a fact, with its history: also the facts that it took the place of, which don't hold again.

        The message it came from stays, and so do summaries.  Raises NotFound.
        """
        receipt = self.facts(caller, [fact_id])
        if not receipt.forgotten:
            raise NotFound("fact_not_found", f"There is no fact {fact_id}.")
        return Receipt(receipt.erased, receipt.pending, receipt.erased_at, fact_id=fact_id, forgotten=1)

    def facts(self, caller: Caller, fact_ids: Sequence[int]) -> Receipt:
        """Forget those of the facts that are there, each as `fact` does."""
        theirs = owned(select(FactRow.id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
        with self._database.write() as tx:
            named = tx.scalars(theirs.where(FactRow.id.in_(fact_ids))).all()
            line = line_up_to(tx, named)
            revisions = _count(tx, FactRevisionRow.fact_id.in_(line))
            tx.execute(delete(FactRow).where(FactRow.id.in_(line)))
            if named:
                self._scrub(tx, caller, SOON)
        erased = {"facts": len(line), "fact_revisions": revisions}
        return self._gathered(erased, (FILES,) if named else (), forgotten=len(named))

    def scrub(self, job: Job) -> None:
        """The job that leaves no copy of deleted rows in the database's files.  Idempotent."""
        if not self._database.scrub():
            raise RecapError(
                "log_in_use",
                "What was erased is gone from the database, but not from its write-ahead log: somebody went on reading "
                "from it. This is tried again.",
            )

    # -- rows

    def _erase_owner(self, tx: Transaction, caller: Caller, owner: OwnerRow, held: Collection[int]) -> Counter[str]:
        erased = _counted(
            tx, SessionRow.owner_id == owner.id, FactRow.owner_id == owner.id, JobRow.owner_id == owner.id
        )
        erased["index_documents"] = len(held)
        self._follow_erased(tx, caller, owner.index_key, {"owner": owner.index_key})
        tx.execute(delete(OwnerRow).where(OwnerRow.id == owner.id))
        return erased

    def _erase_session(self, tx: Transaction, caller: Caller, row: SessionRow, held: Collection[int]) -> Counter[str]:
        of_session = FactRow.session_id == row.id
        erased = _counted(tx, SessionRow.id == row.id, of_session, JobRow.session_id == row.id)
        said = tx.scalars(select(MessageRow.id).where(MessageRow.session_id == row.id))
        erased["index_documents"] = sum(message_id in held for message_id in said)
        withdraw(tx, tx.scalars(select(FactRow.id).where(of_session)))
        self._follow_erased(tx, caller, f"{row.owner_id}/{row.id}", {"owner": row.owner.index_key, "session": row.id})
        tx.execute(delete(SessionRow).where(SessionRow.id == row.id))
        return erased

    # -- what follows

    def _follow_erased(self, tx: Transaction, caller: Caller, key: str, what: Mapping[str, Any]) -> None:
        """Ask for what `_finished` does at once, should this process not get there."""
        payload = {"tenant": caller.tenant, **what}
        self._outbox.enqueue(tx, "unindex", key, owner_id=None, delay=LATER, payload=payload)
        self._scrub(tx, caller, LATER)

    def _follow_up(self, tx: Transaction, caller: Caller, row: SessionRow, *, rebuild: bool) -> None:
        """Ask for what follows an erased message: the index, the files, and a summary without it."""
        self._outbox.enqueue(tx, "index", row.owner_id, owner_id=row.owner_id, delay=SOON)
        self._scrub(tx, caller, SOON)
        if rebuild and row.summary_through < row.message_count:
            self._outbox.enqueue(
                tx,
                "summary",
                row.id,
                owner_id=row.owner_id,
                session_row_id=row.id,
                delay=self._settings.summary_debounce,
                postpone=True,
            )

    def _scrub(self, tx: Transaction, caller: Caller, delay: float) -> None:
        """Ask for the files to be written anew: one job a tenant, so that many erasures cost one."""
        running = select(JobRow.id).where(
            JobRow.kind == "scrub", JobRow.key == caller.tenant, JobRow.state == "running"
        )
        self._outbox.enqueue(
            tx,
            "scrub",
            caller.tenant,
            owner_id=None,
            delay=delay,
            postpone=tx.scalar(running) is not None,  # once it is done, not at once again
            payload={"tenant": caller.tenant},
        )

    def _finished(self, caller: Caller, erased: Mapping[str, int], unindexed: str, **named: Any) -> Receipt:
        """The receipt of what was asked for, after doing it at once."""
        self._index.clear_caches()
        jobs = {("unindex", unindexed): INDEX, ("scrub", caller.tenant): FILES}
        for kind, key in jobs:
            self._outbox.run_now(kind, key)
        with self._database.read() as tx:
            asked = select(JobRow.kind, JobRow.key).where(JobRow.kind.in_(kind for kind, _ in jobs))
            left = {(kind, key) for kind, key in tx.execute(asked)}
        pending = tuple(name for job, name in jobs.items() if job in left)
        return Receipt(_all_kinds(erased), pending, self._now(), **named)

    def _gathered(self, erased: Mapping[str, int], pending: tuple[str, ...], **named: Any) -> Receipt:
        """The receipt of what was asked for, which is done with what else is erased SOON."""
        self._index.clear_caches()
        self._outbox.notify()
        return Receipt(_all_kinds(erased), pending, self._now(), **named)

    def _held(self, owner: OwnerRow) -> Collection[int]:
        """The ids of the messages that the owner's index holds."""
        return self._index.held(owner.index_key)[1]


def _all_kinds(erased: Mapping[str, int]) -> dict[str, int]:
    return {kind: erased.get(kind, 0) for kind in KINDS}


def _user(tx: Transaction, caller: Caller) -> OwnerRow:
    owner = find_user(tx, caller)
    if owner is None:
        raise user_not_found(caller.user_id)
    return owner


def _message(tx: Transaction, row: SessionRow, message_id: int) -> MessageRow:
    """A message of the session, replaced or not, that was not erased."""
    message = tx.get(MessageRow, message_id)
    if message is None or message.session_id != row.id or message.erased_at is not None:
        raise NotFound("message_not_found", f"There is no message {message_id} in session {row.public_id!r}.")
    return message


def _counted(
    tx: Transaction, sessions: ColumnElement[bool], facts: ColumnElement[bool], jobs: ColumnElement[bool]
) -> Counter[str]:
    """How many rows of each kind go with these sessions, facts and jobs."""
    ids = select(SessionRow.id).where(sessions)
    of_sessions = SummaryRow.session_id.in_(ids)
    return Counter(
        sessions=_count(tx, sessions),
        messages=_count(tx, MessageRow.session_id.in_(ids), MessageRow.erased_at.is_(None)),
        turns=_count(tx, TurnRow.session_id.in_(ids)),
        summaries=_count(tx, of_sessions),
        edited_summaries=_count(tx, of_sessions, SummaryRow.author == "person"),
        facts=_count(tx, facts),
        fact_revisions=_count(tx, FactRevisionRow.fact_id.in_(select(FactRow.id).where(facts))),
        jobs=_count(tx, jobs),
    )


def _count(tx: Transaction, *where: ColumnElement[bool]) -> int:
    return tx.scalar(select(func.count()).where(*where)) or 0
