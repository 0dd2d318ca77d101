"""Keeping the search index in step with the rows.

The rows are the truth.  Each message says which generation of its owner's index holds it (`indexed_in`); when the
index is lost or replaced its generation changes, and with that every message counts as not indexed: it is searched
all the same, and indexed again by the next job.  Nothing has to be reset.  A replaced message (see `branches`) and an
erased one (see `erasing`) wait as REVISED, and are marked alike with the generation that was told to hold them no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import DateTime, and_, bindparam, case, exists, func, or_, select, type_coerce, update

from memory.jobs.outbox import Job, Outbox
from memory.sessions.messages import SAID
from models import Database, JobRow, MessageRow, OwnerRow, Transaction
from search_index import NO_INDEX, Document, SearchIndex

_M, _J = MessageRow.__table__.c, JobRow.__table__.c
_SAID = and_(*SAID)
BATCH = 200  # messages in one commit of the index: larger ones gain nothing, and a kill loses less work


@dataclass(frozen=True)
class AsOf:
    """A moment at which an owner's waiting messages were read: the index's generation, the last of them by its id and
    its time, and how many there were.

    Of those up to that one there are never more at a later moment, so as many are the same.  In a database that was put
    in this one's place the last is another, or all up to it are as they were.
    """

    generation: str
    last: int
    said_at: datetime | None
    many: int


@dataclass(frozen=True)
class Waiting:
    """What an owner's index was not told yet: messages it lacks, oldest first, and the ids of replaced and erased ones
    it may still hold, which are not to be found any more; `erased` are the erased of these.  `abandoned`: and no job is
    there that would tell it.

    `since`: the messages are those that came after the moment it was read before; all that waited then still do.
    """

    messages: list[Document]
    gone: list[int]
    erased: list[int]
    abandoned: bool = False
    as_of: AsOf | None = None
    since: bool = False

    def __len__(self) -> int:
        return len(self.messages) + len(self.gone)


@dataclass(frozen=True)
class Verified:
    """How one owner's index compares with the rows: counts of messages."""

    owner: str
    messages: int
    indexed: int
    waiting: int
    missing: int
    surplus: int

    @property
    def consistent(self) -> bool:
        """Nothing said to be indexed is missing, and nothing is held that should not be."""
        return self.missing == 0 and self.surplus == 0


class Indexing:
    """Feeds, clears, verifies and rebuilds."""

    def __init__(self, database: Database, index: SearchIndex, outbox: Outbox) -> None:
        self._database = database
        self._index = index
        self._outbox = outbox

    def feed(self, job: Job) -> None:
        """Index what the job's owner has that is not indexed yet.  Idempotent."""
        with self._database.read() as tx:
            owner = tx.get(OwnerRow, job.owner_id)
        if owner is not None:
            self._feed(owner)

    def _feed(self, owner: OwnerRow) -> int:
        count = 0
        while True:
            batch = Waiting([], [], [])
            before = self._index.generation(owner.index_key)
            generation = self._index.add(owner.index_key, self._batch(owner.id, before, batch))
            if batch.gone:
                self._index.remove(owner.index_key, message_ids=batch.gone)
            if batch.erased:  # a search may have read it a moment ago, and kept it
                self._index.forget_texts()
            noted = [document.message_id for document in batch.messages]
            with self._database.write(durable=False) as tx:  # told again what it holds, the index is the same
                tx.execute(_NOTE, {"noted": noted, "gone": batch.gone, "generation": generation})
            count += len(batch.messages)
            replaced = before not in (generation, NO_INDEX)  # it was damaged, and what it held is not in the batch
            if len(batch) < BATCH and not replaced:  # what has come since has a job of its own
                return count

    def _batch(self, owner_id: int, generation: str, batch: Waiting) -> Iterator[Document]:
        """The next rows to index, noted in `batch`; read only when the index asks, which is when it holds its lock:
        what was erased a moment before is not brought back."""
        with self._database.read() as tx:
            found = waiting(tx, owner_id, generation, limit=BATCH)
        batch.messages.extend(found.messages)
        batch.gone.extend(found.gone)
        batch.erased.extend(found.erased)
        yield from found.messages

    def clear(self, job: Job) -> None:
        """Take an erased session, or a whole erased owner, out of the index.  Idempotent."""
        session = job.payload.get("session")
        if session is None:
            self._index.drop(job.payload["owner"])
        else:
            self._index.remove(job.payload["owner"], session_id=session)
        self._index.forget_texts()  # a search may have read it a moment ago, and kept it

    def verify(self) -> Iterator[Verified]:
        """Compare every owner's index with the rows."""
        for owner in self._owners():
            generation, held = self._index.held(owner.index_key)
            with self._database.read() as tx:
                rows = tx.execute(
                    select(MessageRow.id, MessageRow.indexed_in, _SAID).where(MessageRow.owner_id == owner.id)
                ).all()
            current = {message_id for message_id, _, said in rows if said}
            noted = {message_id for message_id, indexed_in, _ in rows if indexed_in == generation}
            unnoted = {message_id for message_id, _, _ in rows} - noted
            yield Verified(
                owner=f"{owner.kind}:{owner.name}",
                messages=len(current),
                indexed=len(current & noted),
                waiting=len(unnoted),
                missing=len((current & noted) - held),
                surplus=len(held - current - unnoted),
            )

    def rebuild(self) -> Iterator[tuple[str, int]]:
        """Make every index again from nothing; yields each owner and how many messages were indexed.

        Searches go on meanwhile and miss nothing.
        """
        for owner in self._owners():
            self._index.drop(owner.index_key)
            yield f"{owner.kind}:{owner.name}", self._feed(owner)

    def _owners(self) -> list[OwnerRow]:
        with self._database.read() as tx:
            return list(tx.scalars(select(OwnerRow).order_by(OwnerRow.id)))


_OF_OWNER = _M.owner_id == bindparam("owner")
_UNTOLD = _OF_OWNER & _M.indexed_in.is_(None)  # no index was ever told of it
_CREATED_AT = type_coerce(_M.created_at, DateTime)  # in UTC, as it is stored: to make it aware takes as long again
_NOT_INDEXED = (
    select(
        # said, erased, untold, queued: as numbers, since nothing has to be made of those, row by row
        case((_SAID, 1), else_=0),
        case((_M.erased_at.is_not(None), 1), else_=0),
        case((_M.indexed_in.is_(None), 1), else_=0),
        case((exists().where(_J.kind == "index", _J.key == bindparam("key")), 1), else_=0),
        _M.id,
        _M.session_id,
        _M.role,
        _CREATED_AT,
        _M.content,
        _M.name,
    )
    .where(  # so that SQLite takes these three parts of its index, and does not go through all that the owner has
        or_(
            _UNTOLD & (_M.id > bindparam("last")),
            _OF_OWNER & (_M.indexed_in < bindparam("generation")),
            _OF_OWNER & (_M.indexed_in > bindparam("generation")),
        ),
    )
    .order_by(_M.id)
)
_LAST = select(_CREATED_AT).where(_M.id == bindparam("last")).scalar_subquery()
_STILL = select(func.count(), _LAST).where(_UNTOLD, _M.id <= bindparam("last"))
_NOTE = (
    update(MessageRow.__table__)
    .where(  # one that was replaced or erased a moment ago is still to be taken out
        or_(
            and_(_M.id.in_(bindparam("noted", expanding=True)), _SAID),
            _M.id.in_(bindparam("gone", expanding=True)),
        )
    )
    .values(indexed_in=bindparam("generation"))
)
_WAITING, _NEXT = _NOT_INDEXED, _NOT_INDEXED.limit(bindparam("most"))
_document = partial(tuple.__new__, Document)  # as its `_make`, which counts the columns of every row once more


def waiting(
    tx: Transaction, owner_id: int, generation: str, *, since: AsOf | None = None, limit: int | None = None
) -> Waiting:
    """What this generation of the owner's index was not told yet; of messages only those that came after `since` if all
    that waited then still do, which takes a search as long with a thousand of them as with none."""
    before = AsOf(generation, 0, None, 0)
    if since is not None and since.generation == generation:
        many, said_at = tx.execute(_STILL, {"owner": owner_id, "last": since.last}).one()
        if (many, said_at) == (since.many, since.said_at):
            before = since
    asked = {"owner": owner_id, "key": str(owner_id), "generation": generation, "last": before.last}
    rows = tx.execute(*((_WAITING, asked) if limit is None else (_NEXT, {**asked, "most": limit}))).all()
    messages = [_document(row[4:]) for row in rows if row[0]]
    as_of: AsOf | None = before
    if any(row[0] != row[2] for row in rows):  # another generation was told of some, which are not counted
        as_of = None
    elif messages:
        as_of = AsOf(generation, messages[-1].message_id, messages[-1].created_at, before.many + len(messages))
    return Waiting(
        messages,
        [row[4] for row in rows if not row[0]],
        [row[4] for row in rows if row[1]],
        abandoned=bool(rows) and not rows[0][3],
        as_of=as_of,
        since=before is since,
    )
