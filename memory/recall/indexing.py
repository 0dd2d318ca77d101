"""Keep the search index in step with the rows.

The rows are the truth.  Each message names the generation of its owner's index that has it (`indexed_in`).  If an index
is lost or replaced, its generation changes, so no message counts as indexed: searches read them from the rows, and the
next job indexes them again.  A message that is replaced, erased or refused is marked REVISED until the index has
removed it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    String,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    update,
)

from memory.access.owners import lock_owner
from memory.engine import Engine
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.facts import count_uses
from memory.sessions.messages import INDEXED
from models import JobRow, MessageRow, OwnerRow
from models.jobs import Job
from search_index import NO_INDEX, SearchableText, UnindexedMessages

_M = MessageRow.__table__.c
_INDEXED = and_(*INDEXED)
LOADED = 1_000  # messages in one statement
BATCH_MESSAGES = 200  # messages in one commit of the index: larger ones gain nothing, and a kill loses less work

_NOTE = (
    update(MessageRow.__table__)
    .where(  # one that was replaced, erased or refused a moment ago is still to be taken out
        or_(
            and_(_M.id.in_(bindparam("noted", expanding=True)), _INDEXED),
            _M.id.in_(bindparam("deleted", expanding=True)),
        )
    )
    .values(indexed_in=bindparam("generation"))
)


_J = JobRow.__table__.c
_OF_OWNER = _M.owner_id == bindparam("owner")
# So that SQLite takes these three parts of its index, and does not go through all that the owner has.
_IS_UNINDEXED = or_(
    _OF_OWNER & _M.indexed_in.is_(None),
    _OF_OWNER & (_M.indexed_in < bindparam("generation")),
    _OF_OWNER & (_M.indexed_in > bindparam("generation")),
)
_DOCUMENT = _M.id, _M.session_id, _M.role, _M.created_at, _M.content, _M.name
_BATCH = (
    select(*_DOCUMENT, _INDEXED.label("is_indexed"), _M.erased_at)
    .where(_IS_UNINDEXED)
    .order_by(_M.id)
    .limit(BATCH_MESSAGES)
)
_SEARCHABLE = select(*_DOCUMENT).where(_M.id.in_(bindparam("ids", expanding=True)))
_ID = cast(_M.id, String)
_COMMA: Any = literal_column("','")  # a value would be written into the statement's text again each time
UNINDEXED = select(
    func.aggregate_strings(case((_INDEXED, _ID)), _COMMA).label("unindexed"),
    func.aggregate_strings(case((_INDEXED, null()), else_=_ID), _COMMA).label("deleted"),
    func.max(case((_M.indexed_in.is_not(None), 1), else_=0)).label("was_indexed"),
    exists().where(_J.kind == "index", _J.key == cast(bindparam("owner"), String)).label("has_index_job"),
).where(_IS_UNINDEXED)
"""Selects what a `generation` of an `owner`'s index does not have, as one row for `to_unindexed`."""


def find_unindexed(tx: Connection, owner_id: int, generation: str) -> UnindexedMessages:
    """Find the messages that this generation of the owner's index does not have.

    Read the generation before, and search the index after: a message that is indexed in between is then seen twice, and
    none is missed.
    """
    return to_unindexed(tx, tx.execute(UNINDEXED, {"owner": owner_id, "generation": generation}).one())


def to_unindexed(tx: Connection, row: Any) -> UnindexedMessages:
    """Read a row of UNINDEXED; the texts of its messages are loaded in `tx` when a search needs them."""

    def load(ids: Sequence[int]) -> list[SearchableText]:
        pieces = (ids[at : at + LOADED] for at in range(0, len(ids), LOADED))
        return [SearchableText(*row) for piece in pieces for row in tx.execute(_SEARCHABLE, {"ids": piece})]

    ids = list(map(int, row.unindexed.split(","))) if row.unindexed else []
    deleted_ids = list(map(int, row.deleted.split(","))) if row.deleted else []
    return UnindexedMessages(ids, deleted_ids, load, is_lost=bool(row.was_indexed and not row.has_index_job))


@dataclass(frozen=True)
class Verified:
    """Counts of messages that compare one owner's index with the rows."""

    owner: str
    messages: int
    indexed: int
    unindexed: int
    missing: int
    surplus: int

    @property
    def consistent(self) -> bool:
        """Return whether no indexed message is missing and no other is there."""
        return self.missing == 0 and self.surplus == 0


def run(engine: Engine, job: Job) -> bool:
    """Index the next batch of the owner's unindexed messages; return whether there are more.  Idempotent."""
    with engine.database.read() as tx:
        owner = tx.get(OwnerRow, job.owner_id)
    return owner is not None and _index_next(engine, owner)[1]


def _index_next(engine: Engine, owner: OwnerRow) -> tuple[int, bool]:
    """Index a batch; return how many messages it had, and whether there are more."""
    before = engine.index.generation(owner.index_key)
    rows: list[Any] = []

    def searchable() -> Iterator[SearchableText]:
        """Read the batch after the index has taken its lock, so that a message erased before is not indexed again."""
        with engine.database.read() as tx:
            rows.extend(tx.execute(_BATCH, {"owner": owner.id, "generation": before}))
        yield from (SearchableText(*columns) for *columns, is_indexed, _ in rows if is_indexed)

    generation = engine.index.add(owner.index_key, searchable())
    noted = [row.id for row in rows if row.is_indexed]
    deleted = [row.id for row in rows if not row.is_indexed]  # replaced, erased or refused messages
    is_erased = any(row.erased_at is not None for row in rows)
    if deleted:
        engine.index.remove(owner.index_key, message_ids=deleted, scrub=is_erased)
    if is_erased:  # a search may have read it a moment ago, and cached it
        engine.index.clear_caches()
    with engine.database.write(durable=False) as tx:  # a lost note is made again: adding is idempotent
        lock_owner(tx, owner.id)  # before the facts that are counted
        count_uses(tx, Ranking.of(engine), noted)
        tx.execute(_NOTE, {"noted": noted, "deleted": deleted, "generation": generation})
        engine.budgets.forget_past_days(tx, owner.id)  # here because this runs for each owner who has taken turns
    replaced = before not in (generation, NO_INDEX)  # it was damaged: its messages are to be indexed again
    return len(noted), len(rows) == BATCH_MESSAGES or replaced


def remove_erased(engine: Engine, job: Job) -> None:
    """Take an erased session, or a whole erased owner, out of the index.  Idempotent."""
    erased = job.payload or {}
    if "session" in erased:
        engine.index.remove(erased["owner"], session_id=erased["session"])
    else:
        engine.index.drop(erased["owner"])
    engine.index.clear_caches()  # a search may have read it a moment ago, and cached it


def verify(engine: Engine) -> Iterator[Verified]:
    """Compare every owner's index with the rows."""
    for owner in _owners(engine):
        generation, held = engine.index.held(owner.index_key)
        with engine.database.read() as tx:
            rows = tx.execute(select(_M.id, _M.indexed_in, _INDEXED).where(_M.owner_id == owner.id)).all()
        current = {message_id for message_id, _, is_indexed in rows if is_indexed}
        noted = {message_id for message_id, indexed_in, _ in rows if indexed_in == generation}
        unnoted = {message_id for message_id, _, _ in rows} - noted
        yield Verified(
            owner=f"{owner.kind}:{owner.name}",
            messages=len(current),
            indexed=len(current & noted),
            unindexed=len(unnoted),
            missing=len((current & noted) - held),
            surplus=len(held - current - unnoted),
        )


def rebuild(engine: Engine) -> Iterator[tuple[str, int]]:
    """Make every index again; yield each owner and how many messages were indexed.

    Searches go on meanwhile and find every message.
    """
    for owner in _owners(engine):
        engine.index.drop(owner.index_key)
        count, more = 0, True
        while more:
            fed, more = _index_next(engine, owner)
            count += fed
        yield f"{owner.kind}:{owner.name}", count


def _owners(engine: Engine) -> list[OwnerRow]:
    with engine.database.read() as tx:
        return list(tx.scalars(select(OwnerRow).order_by(OwnerRow.id)))
