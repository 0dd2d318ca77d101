"""Read everything of a person, or of one session, to be taken along.

Records name nothing by this database's ids: a message is known by its position in its session, a session by its public
id, an item by its name, and a fact by a number that means something within one document only.

Invariants:
- The export holds what was stored when it began, without what is erased meanwhile (test_users).
- A slow download holds up nobody: each page of rows has a transaction of its own (test_users).
- Replaced messages and what came of them are left out; erased messages are places without text, as positions count
  them. Archived sessions are named, not exported (test_users, test_retention).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, case, exists, false, func, select
from sqlalchemy.orm import aliased

from memory.access.owners import get_user
from memory.engine import Engine
from memory.knowledge.summaries import SummaryVersion, as_version
from memory.store.item_rows import ITEMS, as_item, histories, resting_on, sources_of, unexpired
from memory.turn.request import TurnUsage
from models import (
    ArchiveRow,
    DocumentRow,
    FactRevisionRow,
    FactRow,
    ItemRow,
    ItemSourceRow,
    MessageRow,
    OwnerRow,
    SessionRow,
    SummaryRow,
    Transaction,
    TurnRow,
    as_value,
)
from models.documents import DocumentRecord, Passage
from models.facts import Fact, FactRevision, Relation
from models.messages import MessageDraft
from models.owners import Caller
from models.store import Item, ItemVersion, Source

PAGE_ROWS = 200
FORMAT = "recap-export"


@dataclass(frozen=True)
class TurnRecord:
    """Turn and its usage. reply_position: None if there was no reply."""

    user_position: int
    reply_position: int | None
    model: str | None
    finish_reason: str | None
    usage: TurnUsage | None
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True)
class SessionRecord:
    """Session with all that is in it. Read the iterables once, in this order, before the next session.

    facts_through: the last position that facts were extracted from. Times that are None are taken from the messages.
    by_external_id: messages are known by their `external_id`, else by their position.
    """

    id: str
    title: str
    system_prompt: str | None
    created_at: datetime | None
    updated_at: datetime | None
    facts_through: int
    messages: Iterable[MessageDraft]
    summaries: Iterable[SummaryVersion] = ()
    turns: Iterable[TurnRecord] = ()
    by_external_id: bool = False
    pinned: bool = False
    archived: bool = False
    remember: bool = True
    type: str | None = None
    client_metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class FactRecord(Fact):
    """Fact with its history and its relations. Its ids are numbers within one document.

    source_position: of the source message in the fact's session. by_text: the fact is known by its text alone, else by
    its time of creation as well.
    """

    source_position: int | None = None
    revisions: Sequence[FactRevision] = ()
    links: Sequence[Relation] = ()
    by_text: bool = False


@dataclass(frozen=True)
class ItemRecord(Item):
    """Item of the store, its source messages, and its earlier values."""

    sources: Sequence[Source] = ()
    versions: Sequence[ItemVersion] = ()


_MESSAGE, _REPLY = aliased(MessageRow), aliased(MessageRow)  # made once: it takes longer than to read a session
_A, _O = ArchiveRow.__table__.c, OwnerRow.__table__.c
ARCHIVES = select(
    *(_A.id, _A.session_id, _A.title, _A.message_count, _A.first_message_at, _A.last_message_at, _A.created_at),
    case((_O.kind == "user", _O.name)).label("user_id"),
    case((_O.kind == "space", _O.name)).label("space"),
).join(OwnerRow, OwnerRow.id == ArchiveRow.owner_id)
"""Sessions that retention took out, without their documents. The number of messages is without erased ones."""


class Export:
    """Person's data as of the transaction `tx`. Read its parts in the order of the document, each to its end.

    read: begins the transaction of a page. only: export what is erased with this session.
    """

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Transaction]],
        tx: Transaction,
        owner: OwnerRow,
        now: datetime,
        only: SessionRow | None = None,
    ) -> None:
        self.name = owner.name
        self.user_id = owner.user_id
        self.space = owner.space
        self.remember = only is not None or owner.remember
        self.exported_at = now
        self._read = read
        tables: tuple[Any, ...] = (SessionRow, MessageRow, SummaryRow, TurnRow, FactRow, ItemRow, ArchiveRow)
        self._condition: dict[Any, ColumnElement[bool]] = (
            {table: table.owner_id == owner.id for table in (SessionRow, FactRow, ItemRow, DocumentRow, ArchiveRow)}
            if only is None
            else {
                SessionRow: SessionRow.id == only.id,
                FactRow: FactRow.session_id == only.id,
                ItemRow: _resting_on_alone(only.id),
                DocumentRow: false(),
                ArchiveRow: false(),
            }
        )
        self._last = {table: tx.scalar(select(func.max(table.id))) or 0 for table in tables}

    @property
    def sessions(self) -> Iterator[SessionRecord]:
        query = select(SessionRow.id, SessionRow).where(self._condition[SessionRow], SessionRow.is_document.is_(False))
        for _, row in self._rows(query, SessionRow):
            yield as_value(
                SessionRecord,
                row,
                id=row.public_id,
                messages=self._messages(row.id),
                summaries=self._summaries(row.id) if row.summary_version else (),
                turns=self._turns(row.id),
            )

    def _messages(self, session: int) -> Iterator[MessageDraft]:
        query = select(MessageRow.position, MessageRow).where(MessageRow.session_id == session, MessageRow.branch == 0)
        for _, row in self._rows(query, MessageRow):
            yield as_value(MessageDraft, row)

    def _summaries(self, session: int) -> Iterator[SummaryVersion]:
        query = select(SummaryRow.version, SummaryRow).where(SummaryRow.session_id == session, SummaryRow.branch == 0)
        return (as_version(row) for _, row in self._rows(query, SummaryRow))

    def _turns(self, session: int) -> Iterator[TurnRecord]:
        query = (
            select(TurnRow.id, TurnRow, _MESSAGE.position, _REPLY.position)
            .join(_MESSAGE, _MESSAGE.id == TurnRow.user_message_id)
            .outerjoin(_REPLY, (_REPLY.id == TurnRow.reply_message_id) & (_REPLY.id <= self._last[MessageRow]))
            .where(TurnRow.session_id == session, _MESSAGE.branch == 0, _MESSAGE.id <= self._last[MessageRow])
        )
        for _, row, position, reply_position in self._rows(query, TurnRow):
            yield as_value(
                TurnRecord,
                row,
                user_position=position,
                reply_position=reply_position,
                usage=TurnUsage.from_stored(row.usage) if row.usage else None,
                finished_at=row.finished_at if reply_position else None,
            )

    @property
    def facts(self) -> Iterator[FactRecord]:
        query = (
            select(FactRow.id, FactRow, SessionRow.public_id, MessageRow.position)
            .outerjoin(SessionRow, SessionRow.id == FactRow.session_id)
            .outerjoin(MessageRow, (MessageRow.id == FactRow.source_message_id) & (MessageRow.branch == 0))
            .where(self._condition[FactRow])
        )
        for page in self._pages(query, FactRow):
            revisions: dict[int, list[FactRevision]] = defaultdict(list)
            ids = [fact_id for fact_id, *_ in page]
            of_page = select(FactRevisionRow).where(FactRevisionRow.fact_id.in_(ids)).order_by(FactRevisionRow.id)
            with self._read() as tx:
                for row in tx.scalars(of_page):
                    revisions[row.fact_id].append(as_value(FactRevision, row))
            for fact_id, row, session, position in page:
                yield as_value(
                    FactRecord,
                    row,
                    session_id=session,
                    source_message_id=None,
                    source_position=position,
                    revisions=revisions[fact_id],
                )

    @property
    def items(self) -> Iterator[ItemRecord]:
        query = ITEMS.where(self._condition[ItemRow], unexpired(self.exported_at))
        for page in self._pages(query, ItemRow):
            ids = [row[0] for row in page]
            with self._read() as tx:
                sources = sources_of(tx, ids, self._last[MessageRow])
                history = histories(tx, ids)
            for row in page:
                yield ItemRecord(**vars(as_item(row)), sources=sources[row[0]], versions=history[row[0]])

    @property
    def documents(self) -> Iterator[DocumentRecord]:
        query = (
            select(SessionRow.id, SessionRow, DocumentRow)
            .join(DocumentRow, DocumentRow.session_id == SessionRow.id)
            .where(self._condition[DocumentRow])
        )
        for _, row, document in self._rows(query, SessionRow):
            passages = (Passage(draft.content, (draft.extra or {}).get("page")) for draft in self._messages(row.id))
            own = {"id": row.public_id, "title": row.title, "created_at": row.created_at, "updated_at": row.updated_at}
            yield as_value(DocumentRecord, document, passages=passages, **own)

    @property
    def archives(self) -> Iterator[Any]:
        return self._rows(ARCHIVES.where(self._condition[ArchiveRow]), ArchiveRow)

    def _rows(self, query: Select[*tuple[Any, ...]], table: Any) -> Iterator[Any]:
        for page in self._pages(query, table):
            yield from page

    def _pages(self, query: Select[*tuple[Any, ...]], table: Any) -> Iterator[list[Any]]:
        """Yield the rows of a query, in the order of its first column, which is unique."""
        key = next(iter(query.selected_columns))
        query = query.where(table.id <= self._last[table]).order_by(key).limit(PAGE_ROWS)
        last = 0
        while True:
            with self._read() as tx:
                page = list(tx.execute(query.where(key > last)).all())
            if page:
                yield page
            if len(page) < PAGE_ROWS:
                return
            last = page[-1][0]


def open_export(engine: Engine, caller: Caller) -> Export:
    """Return everything of the caller's user, as of now. Raises NotFound."""
    with engine.database.read() as tx:
        return Export(engine.database.read, tx, get_user(tx, caller), engine.now())


def _resting_on_alone(session: int) -> ColumnElement[bool]:
    """Return the condition of items whose sources are all messages of this session."""
    messages = select(MessageRow.id).where(MessageRow.session_id == session)
    others = exists().where(ItemSourceRow.item_id == ItemRow.id, ItemSourceRow.message_id.not_in(messages))
    return ItemRow.id.in_(resting_on(messages)) & ~others
