"""Bringing in what a person takes along: sessions with their memory, and facts.

Guarantee: each session is stored whole, in one transaction, and the same import a second time changes nothing.  A
session that the person has already is continued if it begins with the same messages.  If its id is another person's,
or the conversation is another one, the session gets a new id, the same one each time.  Words, order and times of
messages stay.  What was erased here does not come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import TypeVar

from sqlalchemy import select

from memory.access.owners import find_user
from memory.domain import Caller
from memory.errors import Conflict
from memory.leases import Leases
from memory.people.records import FactRecord, SessionRecord, TurnRecord, summary_row
from memory.sessions.messages import MessageDraft, append, figures_of, remains
from memory.sessions.sessions import APPEND_WAIT, Sessions
from memory.summary.summaries import skip_erased
from models import Database, FactRow, MessageRow, OwnerRow, SessionRow, Transaction, TurnRow

BATCH = 500  # facts in one transaction: others write in between
SAME_ID_MAX = 1000  # conversations that may want the same id
KINDS = ("sessions", "messages", "summaries", "turns", "facts")
KINDS_KNOWN = ("sessions", "messages", "facts")

T = TypeVar("T")


@dataclass(frozen=True)
class Imported:
    """How many of each kind are new, how many were known, and the sessions that got another id."""

    created: Mapping[str, int]
    known: Mapping[str, int]
    renamed: Mapping[str, str]


class Imports:
    """Imports, on behalf of a caller that names a user."""

    def __init__(self, database: Database, sessions: Sessions, leases: Leases, now: Callable[[], datetime]) -> None:
        self._parts = database, sessions, leases, now

    def restore(self, caller: Caller, sessions: Iterable[SessionRecord], facts: Iterable[FactRecord]) -> Imported:
        """Store sessions, then the facts that name them.

        Raises Conflict when a turn in one of the sessions does not end, or when the person is erased meanwhile.  What
        was stored until then stays, and sending the same again goes on from there.
        """
        run = _Import(*self._parts, caller)
        for record in sessions:
            run.session(record)
        for batch in _batches(facts, BATCH):
            run.facts(batch)
        run.link_facts()
        return Imported(
            {kind: run.created[kind] for kind in KINDS}, {kind: run.known[kind] for kind in KINDS_KNOWN}, run.renamed
        )


@dataclass
class _Import:
    """One import under way: which rows its sessions and facts became."""

    database: Database
    sessions: Sessions
    leases: Leases
    now: Callable[[], datetime]
    caller: Caller
    owner_id: int | None = None
    session_rows: dict[str, int] = field(default_factory=dict)  # by the session's id in the document
    fact_rows: dict[int, int] = field(default_factory=dict)  # by the fact's number in the document
    superseded: list[tuple[int, int]] = field(default_factory=list)  # a new fact's row, and its successor's number
    created: Counter[str] = field(default_factory=Counter)
    known: Counter[str] = field(default_factory=Counter)
    renamed: dict[str, str] = field(default_factory=dict)

    # -- sessions

    def session(self, record: SessionRecord) -> None:
        """Store what is new of a session, once no turn is being taken in it."""
        drafts = tuple(record.messages)
        fresh, made = drafts, False

        def find(tx: Transaction) -> SessionRow:
            nonlocal fresh, made
            row, fresh, made = self._place(tx, record, drafts)
            return row

        busy = "The sessions before it are imported; send the same again later, nothing is stored twice."
        with self.leases.free_session(find, APPEND_WAIT, busy) as (tx, row):
            append(tx, row, fresh, self.now())
            self._summaries(tx, row, record)
            self._turns(tx, row, record.turns)
            if fresh:
                if record.updated_at is not None:  # replaced messages may be newer than those stored
                    row.updated_at = max(row.updated_at, record.updated_at)
                self.sessions.follow_up(tx, figures_of(row), index_delay=0.0)
        self.session_rows[record.id] = row.id
        self.owner_id = row.owner_id
        (self.created if made else self.known)["sessions"] += 1
        self.created["messages"] += len(fresh)
        self.known["messages"] += len(drafts) - len(fresh)
        if row.public_id != record.id:
            self.renamed[record.id] = row.public_id

    def _place(
        self, tx: Transaction, record: SessionRecord, drafts: tuple[MessageDraft, ...]
    ) -> tuple[SessionRow, tuple[MessageDraft, ...], bool]:
        """The session's row, the messages that are new to it, and whether the row was made now."""
        for public_id in _ids_like(record.id):
            query = select(SessionRow).where(SessionRow.tenant == self.caller.tenant, SessionRow.public_id == public_id)
            row = tx.scalar(query)
            if row is None:
                self._owner(tx)
                row = self.sessions.find_or_make(tx, self.caller, public_id)
                row.title, row.system_prompt = record.title, record.system_prompt
                row.created_at = record.created_at or row.created_at
                row.updated_at = record.updated_at or row.updated_at
                return row, drafts, True
            if row.owner.user_id == self.caller.user_id:
                fresh = _new_by_id(tx, row, drafts) if record.by_external_id else _new_at_end(tx, row, drafts)
                if fresh is not None:
                    return row, fresh, False
        raise Conflict(
            "session_ids_taken",
            f"{SAME_ID_MAX:,} other sessions have ids like {record.id!r}. The sessions before it are imported.",
        )

    def _summaries(self, tx: Transaction, row: SessionRow, record: SessionRecord) -> None:
        """Store the summaries, unless the session has some already."""
        summaries = tuple(record.summaries)
        if summaries and not row.summary_version:
            tx.add_all(summary_row(row, version) for version in summaries)
            latest = max(summaries, key=lambda version: version.version)
            row.summary_version = latest.version
            row.summary_through = skip_erased(tx, row, min(latest.through, row.message_count))
            row.facts_through = min(record.facts_through, row.message_count)
            self.created["summaries"] += len(summaries)

    def _turns(self, tx: Transaction, row: SessionRow, turns: Iterable[TurnRecord]) -> None:
        line = select(MessageRow.position, MessageRow.id).where(MessageRow.session_id == row.id, MessageRow.branch == 0)
        ids = dict(tx.execute(line).all())
        taken = set(tx.scalars(select(TurnRow.user_message_id).where(TurnRow.session_id == row.id)))
        new = [turn for turn in turns if turn.user_position in ids and ids[turn.user_position] not in taken]
        tx.add_all(turn.to_row(row, ids) for turn in new)
        self.created["turns"] += len(new)

    # -- facts

    def facts(self, records: Sequence[FactRecord]) -> None:
        """Store those of the facts that are new, in one transaction."""
        with self.database.write() as tx:
            owner_id = self._owner(tx).id
            times = {record.fact.created_at for record in records}
            query = select(FactRow).where(FactRow.owner_id == owner_id, FactRow.created_at.in_(times))
            there = {(row.text, row.created_at, row.session_id): row.id for row in tx.scalars(query)}
            new: list[tuple[FactRecord, FactRow]] = []
            for record in records:
                fact = record.fact
                session = self._session_row(tx, fact.session_id)
                same = there.get((fact.text, fact.created_at, session))
                if same is not None:
                    self.fact_rows[fact.id] = same
                    continue
                source = _source(tx, session, record.source_position)
                if source is None or source.erased_at is None:
                    new.append((record, record.to_row(owner_id, session, source.id if source else None)))
            tx.add_all(row for _, row in new)
            tx.flush()
            for record, row in new:
                self.fact_rows[record.fact.id] = row.id
                if record.fact.superseded_by is not None:
                    self.superseded.append((row.id, record.fact.superseded_by))
                tx.add_all(record.revision_rows(row))
        self.created["facts"] += len(new)
        self.known["facts"] += len(records) - len(new)

    def link_facts(self) -> None:
        """Link each new fact to the one that superseded it, once all are stored."""
        with self.database.write() as tx:
            for fact_id, successor in self.superseded:
                row = tx.get(FactRow, fact_id)
                if row is not None and successor in self.fact_rows:
                    row.superseded_by = self.fact_rows[successor]

    def _session_row(self, tx: Transaction, session_id: str | None) -> int | None:
        if session_id is None:
            return None
        row_id = self.session_rows[session_id]
        if tx.get(SessionRow, row_id) is None:
            raise _lost()
        return row_id

    def _owner(self, tx: Transaction) -> OwnerRow:
        """The person's row, made if they are new.  Raises Conflict when they were erased during the import."""
        owner = find_user(tx, self.caller)
        if owner is None and self.owner_id is None:
            owner = OwnerRow(tenant=self.caller.tenant, kind="user", name=self.caller.user_id, created_at=self.now())
            tx.add(owner)
            tx.flush()
        if owner is None or self.owner_id not in (None, owner.id):
            raise _lost()
        self.owner_id = owner.id
        return owner


def _lost() -> Conflict:
    return Conflict(
        "import_lost",
        "The person, or a session of the document, was erased during the import. What was imported before stays; send "
        "the same again to import the rest.",
    )


def _ids_like(session_id: str) -> Iterator[str]:
    """The id, then those to try when it is taken."""
    yield session_id
    for number in range(2, SAME_ID_MAX + 1):
        yield f"{session_id[:120]}-{number}"


def _new_by_id(tx: Transaction, row: SessionRow, drafts: tuple[MessageDraft, ...]) -> tuple[MessageDraft, ...]:
    """The messages whose `external_id` the session does not have."""
    query = select(MessageRow.external_id).where(MessageRow.session_id == row.id, MessageRow.external_id.is_not(None))
    known = set(tx.scalars(query))
    return tuple(draft for draft in drafts if known.isdisjoint({draft.external_id, remains(draft.external_id or "")}))


def _new_at_end(tx: Transaction, row: SessionRow, drafts: tuple[MessageDraft, ...]) -> tuple[MessageDraft, ...] | None:
    """The messages that continue the session; None when the two are different conversations."""
    query = (
        select(MessageRow.role, MessageRow.created_at, MessageRow.name, MessageRow.content, MessageRow.erased_at)
        .where(MessageRow.session_id == row.id, MessageRow.branch == 0)
        .order_by(MessageRow.position)
    )
    stored = tx.execute(query)
    for (role, said_at, name, content, erased_at), draft in zip(stored, drafts, strict=False):
        place = erased_at is not None or draft.erased_at is not None
        if (role, said_at) != (draft.role, draft.created_at) or not (
            place or (name, content) == (draft.name, draft.content)
        ):
            return None
    rest = drafts[row.message_count :]
    named = tuple(draft for draft in rest if draft.external_id is not None)
    # An id may be on a message that was replaced: then the session has gone another way.
    return None if named and len(_new_by_id(tx, row, named)) < len(named) else rest


def _source(tx: Transaction, session: int | None, position: int | None) -> MessageRow | None:
    """The message a fact was taken from."""
    if session is None or position is None:
        return None
    return tx.scalar(
        select(MessageRow).where(
            MessageRow.session_id == session, MessageRow.branch == 0, MessageRow.position == position
        )
    )


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
