"""Import sessions with their memory, facts, and the store's items.

A session that the person has already continues if it begins with the same messages. If it is another conversation, the
session gets a new id, the same one each time. No model is called (see `memory.knowledge.summaries`).

Invariants:
- Each session is stored whole, in one transaction; the same import a second time changes nothing (test_import).
- Text, order and times of messages stay. What was erased here does not come back (test_import).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from typing import Any

from sqlalchemy import select

from memory.access.owners import find_or_make_owner, find_own_session, lock_owner
from memory.engine import Engine
from memory.errors import Conflict
from memory.knowledge import overview
from memory.knowledge.fact_writes import mark_changed, schedule_end
from memory.knowledge.rule_set import rules_of
from memory.llm.thoughts import without_thoughts
from memory.passages import passages
from memory.sessions.messages import append, covered_position, tombstone
from memory.store.item_rows import expire_job, restore
from memory.transfer.export import FORMAT, DocumentRecord, FactRecord, ItemRecord, SessionRecord, TurnRecord
from memory.transfer.imported_items import imported_item
from models import (
    FactRevisionRow,
    FactRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    Transaction,
    TurnRow,
    columns_of,
    retry_on_conflict,
)
from models.messages import MessageDraft
from models.owners import Caller

BATCH_ROWS = 500  # facts or items in one transaction: others write in between
NOTHING_ELSE = "…"  # in the place of an answer of thoughts alone


@dataclass(frozen=True)
class ImportDocument:
    """Checked document. Its records are read once, while they are imported. length: the number of sessions.

    remember: False for a person who has turned their memory off. skipped: number of items that could not be read.
    unread_times: texts that stand in the place of times, and are none.
    """

    format: str
    length: int
    sessions: Iterable[SessionRecord]
    facts: Iterable[FactRecord]
    items: Iterable[ItemRecord]
    documents: Iterable[DocumentRecord] = ()
    remember: bool = True
    skipped: int = 0
    skipped_items: tuple[str, ...] = ()
    unread_times: tuple[str, ...] = ()


def store_import(engine: Engine, caller: Caller, document: ImportDocument, *, owner_id: int | None = None) -> "Import":
    """Store sessions and documents, and the facts and items that name them, for the caller's user or this owner.

    Raises Conflict when a turn in one of the sessions does not end, or when the person is erased meanwhile. What was
    stored until then stays; sending the same again continues.
    """
    work = Import(engine, caller, document, owner_id)
    for record in document.sessions:
        work.store_session(record)
    facts, items = iter(document.facts), iter(document.items)
    while batch := list(islice(facts, BATCH_ROWS)):
        work.store_facts(batch)
    work.link_facts()
    for document_record in document.documents:
        work.store_document(document_record)
    while part := list(islice(items, BATCH_ROWS)):
        work.store_items(part)
    if not document.remember and owner_id is None:
        with engine.database.write() as tx:
            work.owner(tx).remember = False
    return work


@dataclass
class Import:
    """Import of a document, and its result.

    created, known: numbers of rows by kind. renamed: sessions that got another id.
    """

    engine: Engine
    caller: Caller
    document: ImportDocument
    owner_id: int | None
    created: Counter[str] = field(
        default_factory=lambda: Counter(sessions=0, messages=0, summaries=0, turns=0, facts=0, items=0, documents=0)
    )
    known: Counter[str] = field(default_factory=lambda: Counter(sessions=0, messages=0, facts=0, items=0, documents=0))
    renamed: dict[str, str] = field(default_factory=dict)
    session_rows: dict[str | None, int] = field(default_factory=dict)  # by the session's id in the document
    fact_rows: dict[int, int] = field(default_factory=dict)  # by the fact's number in the document
    superseded: list[tuple[int, int]] = field(default_factory=list)  # a new fact's row, and its successor's number

    @retry_on_conflict
    def store_session(self, record: SessionRecord) -> None:
        """Store the new part of a session, once no turn runs in it."""
        drafts = tuple(map(_without_thoughts, record.messages))
        fresh, is_new = drafts, False

        def find(tx: Transaction) -> SessionRow:
            nonlocal fresh, is_new
            row, fresh, is_new = self._place(tx, record, drafts)
            return row

        busy = "The sessions before it are imported; send the same again later, nothing is stored twice."
        with self.engine.leases.free_session(find, busy) as (tx, row):
            if fresh:
                row.imported_at = self.engine.now()
                append(tx, row, fresh, row.imported_at)
            self._summaries(tx, row, record)
            self._turns(tx, row, tuple(record.turns))
            if fresh:
                if record.updated_at is not None:  # replaced messages may be newer than those stored
                    row.updated_at = max(row.updated_at, record.updated_at)
                self.engine.sessions.enqueue_follow_ups(tx, row, index_delay=0.0, summarise=False)
        self.session_rows[record.id] = row.id
        self.owner_id = row.owner_id
        (self.created if is_new else self.known)["sessions"] += 1
        self.created["messages"] += len(fresh)
        self.known["messages"] += len(drafts) - len(fresh)
        if row.public_id != record.id:
            self.renamed[record.id] = row.public_id

    def _place(
        self, tx: Transaction, record: SessionRecord, drafts: tuple[MessageDraft, ...]
    ) -> tuple[SessionRow, tuple[MessageDraft, ...], bool]:
        """Return the session's row, the messages that are new to it, and whether the row is new."""
        self.owner(tx)
        for number in count(1):
            public_id = record.id if number == 1 else f"{record.id[:120]}-{number}"
            row = find_own_session(tx, self.caller, public_id)
            if row is None:
                break
            if row.owner_id == self.owner_id:
                fresh = _new_by_id(tx, row, drafts) if record.by_external_id else _new_at_end(tx, row, drafts)
                if fresh is not None:
                    return row, fresh, False
        row = self.engine.sessions.make(tx, self.caller, public_id)
        for name, value in columns_of(record, SessionRow).items():
            if value is not None and name not in ("id", "facts_through"):  # these are set apart
                setattr(row, name, value)
        return row, drafts, True

    def _summaries(self, tx: Transaction, row: SessionRow, record: SessionRecord) -> None:
        """Store the summaries, unless the session has some already."""
        summaries = tuple(record.summaries)
        if not summaries or row.summary_version:
            return
        rules = rules_of(tx, row.owner_id, row.tenant)
        for version in summaries:
            sections = rules.kept_of(version.sections.map_texts(without_thoughts))
            through = min(version.through, row.message_count)
            own = {"session_id": row.id, "sections": sections.as_dict(), "through": through}
            tx.add(SummaryRow(**columns_of(version, SummaryRow) | own))
        latest = max(summaries, key=lambda version: version.version)
        row.summary_version = latest.version
        row.summary_through = covered_position(tx, row, min(latest.through, row.message_count))
        row.facts_through = min(record.facts_through, row.message_count)
        self.created["summaries"] += len(summaries)

    def _turns(self, tx: Transaction, row: SessionRow, turns: Collection[TurnRecord]) -> None:
        if not turns:
            return
        active = select(MessageRow.position, MessageRow.id).where(
            MessageRow.session_id == row.id, MessageRow.branch == 0
        )
        ids = dict(tx.execute(active).all())
        of_session = TurnRow.session_id == row.id
        taken = set(tx.scalars(select(TurnRow.user_message_id).where(of_session)))
        unanswered = tx.scalars(select(TurnRow).where(of_session, TurnRow.reply_message_id.is_(None)))
        stored = {turn.user_message_id: turn for turn in unanswered}
        for turn in turns:
            message = ids.get(turn.user_position)
            reply = ids.get(turn.reply_position or 0)
            usage = turn.usage.to_stored() if turn.usage else None
            values = {**columns_of(turn, TurnRow), "usage": usage, "reply_message_id": reply}
            if message in stored and reply is not None:  # it was exported before the reply came
                for name, value in {**values, "so_far": None}.items():
                    setattr(stored[message], name, value)
            elif message is not None and message not in taken:
                tx.add(TurnRow(tenant=row.tenant, session_id=row.id, user_message_id=message, **values))
                self.created["turns"] += 1

    def store_facts(self, facts: Sequence[FactRecord]) -> None:
        """Store the facts that are new, in one transaction."""
        with self.engine.database.write() as tx:
            owner = self.owner(tx)
            owner_id = owner.id
            kept = rules_of(tx, owner.id, owner.tenant)
            times = FactRow.created_at.in_({fact.created_at for fact in facts})
            texts = FactRow.text.in_({fact.text for fact in facts if fact.by_text})
            existing: dict[str | tuple[Any, ...], int] = {}
            for row in tx.scalars(select(FactRow).where(FactRow.owner_id == owner_id, times | texts)):
                existing[row.text] = existing[row.text, row.created_at, row.session_id] = row.id
            new: list[tuple[FactRecord, FactRow]] = []
            for fact in facts:
                session = self.session_rows.get(fact.session_id)
                if session is not None and tx.get(SessionRow, session) is None:
                    raise _lost()
                same = existing.get(fact.text if fact.by_text else (fact.text, fact.created_at, session))
                source = _source(tx, session, fact.source_position)
                if same is not None:
                    self.fact_rows[fact.id] = same
                elif source is None or source.erased_at is None:
                    columns = kept.columns_of(fact, by_model=self.document.format != FORMAT)
                    if columns is None:
                        continue
                    own = {"id": None, "superseded_by": None, "owner_id": owner_id, "session_id": session}
                    row = FactRow(**columns_of(fact, FactRow) | columns | own)
                    row.source_message_id = source.id if source else None
                    new.append((fact, row))
            tx.add_all(row for _, row in new)
            tx.flush()
            mark_changed(tx, [owner_id])
            for fact, row in new:
                self.fact_rows[fact.id] = row.id
                if fact.superseded_by is not None:
                    self.superseded.append((row.id, fact.superseded_by))
                tx.add_all(
                    FactRevisionRow(**columns_of(revision, FactRevisionRow) | {"fact_id": row.id})
                    for revision in fact.revisions
                )
            schedule_end(self.engine, tx, owner.id, owner.tenant, *(row.expires_at for _, row in new))
        self.created["facts"] += len(new)
        self.known["facts"] += len(facts) - len(new)

    def link_facts(self) -> None:
        """Link each new fact to the one that superseded it, once all are stored."""
        successors: dict[int | None, int | None] = {
            fact_id: self.fact_rows.get(number) for fact_id, number in self.superseded
        }
        rest = dict(successors)
        for fact_id in list(successors):
            path = [fact_id]
            while path[-1] in rest:
                path.append(rest.pop(path[-1]))
            if path[-1] in path[:-1]:  # else whoever follows the links would never come to an end
                successors[path[-2]] = None
        with self.engine.database.write() as tx:
            for fact_id, successor in successors.items():
                row = tx.get(FactRow, fact_id)
                if row is not None:
                    row.superseded_by = successor

    def store_items(self, records: Sequence[ItemRecord]) -> None:
        """Store the items whose names are free, in one transaction.

        An item that lost a source, or that its kind would not store, is left out.
        """
        now = self.engine.now()
        new: list[ItemRecord] = []
        with self.engine.database.write() as tx:
            owner = self.owner(tx)
            rules = rules_of(tx, owner.id, owner.tenant)
            sessions = {name: self.renamed.get(name, name) for name in self.session_rows if name is not None}
            moved = partial(overview.moved, facts=self.fact_rows, sessions=sessions)
            for record in records:
                sources = [
                    _source(tx, self.session_rows.get(place.session_id), place.position) for place in record.sources
                ]
                ids = [source.id for source in sources if source is not None and source.erased_at is None]
                item = imported_item(record, rules, moved) if len(ids) == len(sources) else None
                if item is not None and restore(tx, owner.id, item, item.versions, ids, now):
                    new.append(item)
            if ends := [record.expires_at for record in new if record.expires_at is not None]:
                self.engine.job_queue.enqueue(tx, expire_job(owner.id, owner.tenant, min(ends), now))
        self.created["items"] += len(new)
        self.known["items"] += len(records) - len(new)

    def store_document(self, record: DocumentRecord) -> None:
        """Store a document, unless the person has it, or another of its `external_id`."""
        with self.engine.database.write() as tx:
            owner = self.owner(tx)
            known = passages.find(tx, owner.id, record.external_id, record.digest)
            row, document = known or passages.store(self.engine, tx, owner, record)
            if record.id is not None and document.digest == record.digest:
                self.session_rows[record.id] = row.id
        (self.created if known is None else self.known)["documents"] += 1

    def owner(self, tx: Transaction) -> OwnerRow:
        """Return the person's row, made if they are new. Raises Conflict when they were erased during the import."""
        if self.owner_id is not None:
            owner = lock_owner(tx, self.owner_id)
        else:
            owner = find_or_make_owner(tx, self.caller, self.engine.now())
        if owner is None:
            raise _lost()
        self.owner_id = owner.id
        return owner


def _without_thoughts(draft: MessageDraft) -> MessageDraft:
    content = without_thoughts(draft.content) if draft.role == "assistant" else draft.content
    return draft if content == draft.content else replace(draft, content=content or NOTHING_ELSE)


def _lost() -> Conflict:
    return Conflict(
        "import_lost",
        "The person, or a session of the document, was erased during the import. What was imported before stays; send "
        "the same again to import the rest.",
    )


def _new_by_id(tx: Transaction, row: SessionRow, drafts: tuple[MessageDraft, ...]) -> tuple[MessageDraft, ...]:
    """Return the messages whose `external_id` the session does not have."""
    query = select(MessageRow.external_id).where(MessageRow.session_id == row.id, MessageRow.external_id.is_not(None))
    existing = set(tx.scalars(query))
    return tuple(
        draft for draft in drafts if existing.isdisjoint({draft.external_id, tombstone(draft.external_id or "")})
    )


def _new_at_end(tx: Transaction, row: SessionRow, drafts: tuple[MessageDraft, ...]) -> tuple[MessageDraft, ...] | None:
    """Return the messages that continue the session; None when the two are different conversations."""
    query = select(MessageRow).where(MessageRow.session_id == row.id, MessageRow.branch == 0)
    for stored, draft in zip(tx.scalars(query.order_by(MessageRow.position)), drafts, strict=False):
        is_place = stored.erased_at is not None or draft.erased_at is not None
        same = is_place or (stored.name, stored.content) == (draft.name, draft.content)
        if not same or stored.role != draft.role or draft.created_at not in (None, stored.created_at):
            return None
    rest = drafts[row.message_count :]
    named = tuple(draft for draft in rest if draft.external_id is not None)
    # An id may be on a message that was replaced: then the session has gone another way.
    return None if named and len(_new_by_id(tx, row, named)) < len(named) else rest


def _source(tx: Transaction, session: int | None, position: int | None) -> MessageRow | None:
    """Return the message at a position of the current branch."""
    at = MessageRow.session_id == session, MessageRow.branch == 0, MessageRow.position == position
    return tx.scalar(select(MessageRow).where(*at))
