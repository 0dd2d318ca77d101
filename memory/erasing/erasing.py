"""The ways to erase, and the receipt.

Guarantee: the rows go in one transaction, which also asks for the rest as jobs, so a process that is killed half-way
leaves work that another one finishes.  From the commit on nothing of the erased is found, shown or sent to a model; a
turn, an import or an update of a summary that is under way stores nothing of it.  Once those jobs are done (a receipt
with nothing `pending` says so) no byte of the erased words, names and ids is in the database's files, its log, the
search index or the caches of a process that has looked at the index since.

Rewriting the database's files takes long.  A session or a person waits for it; messages and facts are often erased
one by one, so one job rewrites the files for all that were erased within SOON.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, or_, select

from config import Settings
from memory import examples
from memory.access.owners import get_session, get_user, visible_to
from memory.conversation_types import ConversationTypes
from memory.erasing.archives import get_archive
from memory.erasing.message import erase_message
from memory.errors import NotFound, RecapError
from memory.forgetting import forget_facts, forget_messages
from memory.instructions import Instructions
from memory.jobs import JobQueue
from memory.knowledge.fact_writes import as_fact, delete_with_history, supersession_chain
from memory.knowledge.summaries import replace_texts_in_newest
from memory.leases import Leases
from memory.recall import unhelpful
from memory.store import documents
from memory.store.store import Items, item_not_found
from memory.users import count_of
from models import (
    ArchiveRow,
    Database,
    FactRevisionRow,
    FactRow,
    ItemRow,
    ItemVersionRow,
    JobRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    Transaction,
    TurnRow,
    for_update,
    retry_on_conflict,
)
from models.facts import Fact
from models.jobs import Job, JobRequest
from models.owners import Caller
from models.store import Delete
from search_index import SearchIndex

SOON = 5.0  # seconds within which erased messages and facts are gathered for one job
LATER = 30.0  # seconds until a job is due whose work this process does at once, unless it is killed
INDEX, FILES = "search_index", "database_files"  # what may be `pending`
RECEIPT = (
    *("sessions", "messages", "turns", "summaries", "edited_summaries", "facts", "fact_revisions"),
    *("items", "item_versions", "archives", "jobs", "index_documents"),
)
"""The names that a receipt counts by."""


@dataclass(frozen=True)
class Receipt:
    """What was erased, counted by kind.  `pending` says what still holds some of it, until a job is done.  `named` is
    what the call named, as its answer shows it."""

    erased: Mapping[str, int]
    pending: tuple[str, ...]
    erased_at: datetime
    named: Mapping[str, Any]


@dataclass(frozen=True)
class Erasing:
    """Erases, on behalf of callers."""

    settings: Settings
    database: Database
    index: SearchIndex
    items: Items
    instructions: Instructions
    types: ConversationTypes
    leases: Leases
    job_queue: JobQueue
    now: Callable[[], datetime]

    def user(self, caller: Caller) -> Receipt:
        """Erase everything of a person, for good.  Raises NotFound."""
        owner, erased = self._user(caller)
        return self._finish_now(erased, owner.tenant, owner.index_key, user_id=owner.name)

    @retry_on_conflict
    def _user(self, caller: Caller) -> tuple[OwnerRow, Counter[str]]:
        with self.database.write() as tx:
            owner = get_user(tx, caller)
            return owner, self._erase_owner(tx, owner)

    def session(self, caller: Caller, session_id: str) -> Receipt:
        """Erase a session with its messages, summaries and facts.  Raises NotFound."""
        tenant, key, erased = self._session(caller, session_id)
        return self._finish_now(erased, tenant, key, session_id=session_id)

    @retry_on_conflict
    def _session(self, caller: Caller, session_id: str) -> tuple[str, str, Counter[str]]:
        with self.database.write() as tx:
            row = get_session(tx, caller, session_id)
            if row.owner.kind == "session":
                return row.tenant, row.owner.index_key, self._erase_owner(tx, row.owner)
            return row.tenant, *self._erase_session(tx, row)

    def message(self, caller: Caller, session_id: str, message_id: int) -> Receipt:
        """Erase a message, replaced or not: its words, the facts taken from it, and every version of the summary that
        was made from it.  The summary is made anew.

        Its place stays, without words, and so do the other messages, the reply to it included.  Waits for a turn in the
        session.  Raises NotFound, and Conflict when that takes too long or others wait already; nothing is erased then.
        """
        with self.database.read() as tx:
            _message(tx, get_session(tx, caller, session_id), message_id)
        busy = "Nothing was erased; stop the reply, or try this again later."
        with self.leases.free_session(lambda tx: get_session(tx, caller, session_id), busy) as (tx, row):
            message = _message(tx, row, message_id)
            erased = erase_message(tx, row, message, self.settings, self.now())
            index = JobRequest("index", row.owner_id, row.tenant, row.owner_id, delay=SOON)
            self.job_queue.enqueue(tx, index, _scrub(row.tenant, SOON))
            if erased["summaries"] and row.summary_through < row.message_count:
                delay = self.settings.summary_debounce
                whose = row.id, row.tenant, row.owner_id, row.id
                self.job_queue.enqueue(tx, JobRequest("summary", *whose, delay, debounce=True))
        return self._receipt(erased, (INDEX, FILES), session_id=session_id, message_id=message_id)

    def fact(self, caller: Caller, fact_id: int, *, restore: bool = False) -> Receipt:
        """Forget a fact with its history and the facts that it corrected.  With `restore`, those hold again instead.

        The message it came from stays.  The newest summaries and the profile lose what says the same; earlier versions
        stay.
        Raises NotFound.
        """
        receipt = self.facts(caller, [fact_id], restore=restore)
        if not receipt.named["forgotten"]:
            raise NotFound("fact_not_found", f"There is no fact {fact_id}.")
        return replace(receipt, named={"fact_id": fact_id})

    @retry_on_conflict
    def facts(self, caller: Caller, fact_ids: Sequence[int], *, restore: bool = False) -> Receipt:
        """Forget those of the facts that exist, each as `fact` does.  The receipt also counts what they had corrected;
        `forgotten` does not."""
        theirs = visible_to(select(FactRow.id).join(OwnerRow, OwnerRow.id == FactRow.owner_id), caller)
        with self.database.write() as tx:
            named = tx.scalars(for_update(tx, theirs.where(FactRow.id.in_(fact_ids)), OwnerRow)).all()
            line = supersession_chain(tx, named, *([FactRow.merged.is_(True)] if restore else []))
            revisions = tx.scalar(select(func.count()).where(FactRevisionRow.fact_id.in_(line))) or 0
            by_owner: dict[int, list[Fact]] = defaultdict(list)
            for row in tx.scalars(select(FactRow).where(FactRow.id.in_(line))):
                by_owner[row.owner_id].append(as_fact(row, None))
            for owner_id, facts in by_owner.items():
                nothing, of_owner = dict.fromkeys(facts, ""), SessionRow.owner_id == owner_id
                replace_texts_in_newest(tx, of_owner, nothing, "erasure", self.settings, self.now())
                forget_facts(tx, owner_id, facts, self.now())
            delete_with_history(tx, line)
            if named:
                self.job_queue.enqueue(tx, _scrub(caller.tenant, SOON))
        erased = {"facts": len(line), "fact_revisions": revisions}
        return self._receipt(erased, (FILES,) if named else (), forgotten=len(named))

    def item(self, caller: Caller, which: Delete) -> Receipt:
        """Erase an item of the store.  Raises NotFound, and Conflict when it is of another version."""
        (erased,) = self.items.run(caller, [which])
        if not erased:
            raise item_not_found(which.namespace, which.key)
        return self._receipt(erased, (FILES,), namespace=which.namespace, key=which.key)

    def example(self, caller: Caller, example_id: int) -> Receipt:
        """Erase an example.  Raises NotFound."""
        which = examples.NAMESPACE, example_id, "example"
        return self._documents(caller, lambda tx: [documents.find(tx, caller, *which)], example_id=example_id)

    def unhelpful(self, caller: Caller, mark_id: int) -> Receipt:
        """Take back that an excerpt did not help.  Raises NotFound."""
        which = unhelpful.NAMESPACE, mark_id, "mark"
        return self._documents(caller, lambda tx: [documents.find(tx, caller, *which)], mark_id=mark_id)

    def instruction(self, caller: Caller, name: str) -> Receipt:
        """Erase an instruction with its versions, and the proposal that waits for it.  Raises NotFound."""
        return self._documents(caller, lambda tx: self.instructions.find(tx, caller, name), name=name)

    def conversation_type(self, caller: Caller, name: str) -> Receipt:
        """Erase what a type does.  Raises NotFound."""
        return self._documents(caller, lambda tx: self.types.find(tx, caller, name), name=name)

    def archive(self, caller: Caller, archive_id: int) -> Receipt:
        """Erase an archive.  Raises NotFound."""
        with self.database.write() as tx:
            row, owner = get_archive(tx, caller, archive_id)
            tx.execute(delete(ArchiveRow).where(ArchiveRow.id == row.id))
            self._drop_empty(tx, owner)
            self.job_queue.enqueue(tx, _scrub(owner.tenant, SOON))
        return self._receipt({"archives": 1}, (FILES,), archive_id=archive_id)

    def archive_and_erase(self, tx: Transaction, row: SessionRow) -> None:
        """In the caller's transaction, erase a session that retention takes out.  Jobs clear the index and files."""
        self._erase_session(tx, row)
        self._drop_empty(tx, row.owner)

    def _documents(self, caller: Caller, find: Callable[[Transaction], Collection[int]], **named: Any) -> Receipt:
        """Erase the documents of long-term memory that `find` finds, with their history."""
        with self.database.write() as tx:
            erased = documents.remove(tx, find(tx))
            self.job_queue.enqueue(tx, _scrub(caller.tenant, SOON))
        return self._receipt(erased, (FILES,), **named)

    def vacuum(self, job: Job) -> None:
        """The job that removes copies of deleted rows from the database's files, and from caches.  Idempotent."""
        self.index.clear_caches()
        if not self.database.vacuum():
            raise RecapError(
                "log_in_use",
                "What was erased is gone from the database, but not from its write-ahead log, because another process "
                "kept reading from it. This is tried again.",
            )

    def _erase_owner(self, tx: Transaction, owner: OwnerRow) -> Counter[str]:
        """Delete the owner's row; everything they have goes with it."""
        of = owner.id
        theirs = select(SessionRow.id).where(SessionRow.owner_id == of).order_by(SessionRow.id)
        tx.execute(for_update(tx, theirs, SessionRow))  # replies that are being stored come first
        erased = _count(tx, SessionRow.owner_id == of, FactRow.owner_id == of, JobRow.owner_id == of)
        items = select(ItemRow.id).where(ItemRow.owner_id == of)
        erased["items"] = count_of(tx, items)
        erased["item_versions"] = count_of(tx, select(ItemVersionRow.id).where(ItemVersionRow.item_id.in_(items)))
        erased["archives"] = count_of(tx, select(ArchiveRow.id).where(ArchiveRow.owner_id == of))
        self._ask_to_clear(tx, owner.tenant, owner.index_key, owner=owner.index_key)
        tx.execute(delete(OwnerRow).where(OwnerRow.id == owner.id))
        return erased

    def _erase_session(self, tx: Transaction, row: SessionRow) -> tuple[str, Counter[str]]:
        """Delete the session's row; everything in it goes with it.  The key of the job that clears the index, and what
        went."""
        of, key = row.id, f"{row.owner_id}/{row.id}"
        said = select(MessageRow.id).where(MessageRow.session_id == of)
        erased = _count(tx, SessionRow.id == of, FactRow.session_id == of, JobRow.session_id == of)
        delete_with_history(tx, tx.scalars(select(FactRow.id).where(FactRow.session_id == of)))
        erased += forget_messages(tx, said, self.now())
        self._ask_to_clear(tx, row.tenant, key, owner=row.owner.index_key, session=of)
        tx.execute(delete(SessionRow).where(SessionRow.id == of))
        return key, erased

    def _drop_empty(self, tx: Transaction, owner: OwnerRow) -> None:
        """Erase an owner that was a session, once neither the session nor an archive of it is left."""
        left = (select(kind.id).where(kind.owner_id == owner.id).exists() for kind in (SessionRow, ArchiveRow))
        if owner.kind == "session" and not tx.scalar(select(or_(*left))):
            self._erase_owner(tx, owner)

    def _ask_to_clear(self, tx: Transaction, tenant: str, key: str, **what: Any) -> None:
        """Ask for what `_finish_now` does, for the case that this process ends first."""
        unindex = JobRequest("unindex", key, tenant, delay=LATER, payload=what)
        self.job_queue.enqueue(tx, unindex, _scrub(tenant, LATER))

    def _finish_now(self, erased: Mapping[str, int], tenant: str, key: str, **named: Any) -> Receipt:
        """Run the jobs that were asked for, in this thread, and write the receipt."""
        self.index.clear_caches()
        jobs = {("unindex", key): INDEX, ("scrub", tenant): FILES}
        for job in jobs:
            self.job_queue.run_now(*job)
        with self.database.read() as tx:
            left = {tuple(job) for job in tx.execute(select(JobRow.kind, JobRow.key).where(JobRow.owner_id.is_(None)))}
        return self._receipt(erased, tuple(name for job, name in jobs.items() if job in left), **named)

    def _receipt(self, erased: Mapping[str, int], pending: tuple[str, ...], **named: Any) -> Receipt:
        self.index.clear_caches()
        return Receipt({kind: erased.get(kind, 0) for kind in RECEIPT}, pending, self.now(), named)


def _scrub(tenant: str, delay: float) -> JobRequest:
    """One job a tenant rewrites the files, however much is erased."""
    return JobRequest("scrub", tenant, tenant, delay=delay)


def _count(
    tx: Transaction,
    sessions: ColumnElement[bool],
    facts: ColumnElement[bool],
    jobs: ColumnElement[bool],
) -> Counter[str]:
    """How many rows go with those that meet the conditions.

    A new kind of rows needs foreign keys ON DELETE CASCADE to its owner or session, and a line here or in
    `_erase_owner`.
    """
    session_ids, fact_ids = select(SessionRow.id).where(sessions), select(FactRow.id).where(facts)
    said = select(MessageRow.id).where(MessageRow.session_id.in_(session_ids), MessageRow.erased_at.is_(None))
    summaries = select(SummaryRow.id).where(SummaryRow.session_id.in_(session_ids))
    kinds: dict[str, Select[int]] = {
        "sessions": session_ids,
        "messages": said,
        "index_documents": said.where(MessageRow.branch == 0, MessageRow.indexed_in.is_not(None)),
        "turns": select(TurnRow.id).where(TurnRow.session_id.in_(session_ids)),
        "summaries": summaries,
        "edited_summaries": summaries.where(SummaryRow.author == "person"),
        "facts": fact_ids,
        "fact_revisions": select(FactRevisionRow.id).where(FactRevisionRow.fact_id.in_(fact_ids)),
        "jobs": select(JobRow.id).where(jobs),
    }
    return Counter({kind: count_of(tx, ids) for kind, ids in kinds.items()})


def _message(tx: Transaction, row: SessionRow, message_id: int) -> MessageRow:
    """A message of the session, replaced or not, that was not erased."""
    message = tx.get(MessageRow, message_id)
    if message is None or message.session_id != row.id or message.erased_at is not None:
        raise NotFound("message_not_found", f"There is no message {message_id} in session {row.public_id!r}.")
    return message
