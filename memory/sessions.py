"""Sessions and their messages: the raw words, never thrown away.

Guarantee: a message and the request to index it commit together; positions count from 1 without gaps; an
`external_id` is stored once a session however often it is sent.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, or_, select, update
from sqlalchemy.orm import Session

from config import Settings
from memory import tokens
from memory.domain import Caller, Message
from memory.errors import Conflict, InvalidRequest, NotFound, TooLarge
from memory.fold import outgrown
from memory.leases import Leases
from memory.outbox import Outbox
from memory.paging import Page, decode_cursor, page_of
from models import Database, FactRow, MessageRow, OwnerRow, SessionRow

MESSAGE_CHARS_MAX = 100_000  # longer than any prompt it could enter; a book belongs in pieces
INDEX_DELAY = 2.0  # seconds in which messages gather: a commit of the index costs the same for one or for twenty
TITLE_CHARS = 60
APPEND_WAIT = 30.0  # seconds; most replies end sooner


@dataclass(frozen=True)
class SessionInfo:
    """A session as it is shown."""

    id: str
    user_id: str | None
    title: str
    system_prompt: str | None
    message_count: int
    tokens: int
    summary_version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class MessageDraft:
    """A message to append.  Without `created_at` it was said now."""

    role: str
    content: str
    name: str | None = None
    created_at: datetime | None = None
    external_id: str | None = None


@dataclass(frozen=True)
class Appended:
    """What an append did: the ids of all messages sent, in order, and how many of them were new."""

    session: SessionInfo
    message_ids: tuple[int, ...]
    created: int


class Sessions:
    """Reads and writes sessions on behalf of callers."""

    def __init__(
        self, settings: Settings, database: Database, outbox: Outbox, leases: Leases, now: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._database = database
        self._outbox = outbox
        self._leases = leases
        self._now = now

    # -- for callers

    def create(
        self, caller: Caller, session_id: str | None = None, title: str = "", system_prompt: str | None = None
    ) -> SessionInfo:
        """A new, empty session.  Raises Conflict when the id is taken."""
        with self._database.write() as tx:
            if session_id is not None and _find(tx, caller.tenant, session_id) is not None:
                raise Conflict("session_exists", f"There is a session {session_id!r} already. Choose another id.")
            row = self._make(tx, caller, session_id)
            row.title = title[:200]
            row.system_prompt = system_prompt
            return info(row)

    def get(self, caller: Caller, session_id: str) -> SessionInfo:
        """Raises NotFound."""
        with self._database.read() as tx:
            return info(find_session(tx, caller, session_id))

    def page(
        self,
        caller: Caller,
        *,
        q: str | None = None,
        before: datetime | None = None,
        after: datetime | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> Page[SessionInfo]:
        """The caller's sessions, newest first; `q` is looked for in titles, `after` <= updated_at < `before`."""
        query = owned(select(SessionRow).join(OwnerRow), caller)
        if q:
            query = query.where(SessionRow.title.icontains(q, autoescape=True))
        if before:
            query = query.where(SessionRow.updated_at < before)
        if after:
            query = query.where(SessionRow.updated_at >= after)
        if cursor:
            stamp, row_id = decode_cursor(cursor, str, int)
            try:
                last = datetime.fromisoformat(stamp)
            except ValueError:
                raise InvalidRequest("bad_cursor", "This cursor is not one Recap gave out.", param="cursor") from None
            query = query.where(
                or_(SessionRow.updated_at < last, and_(SessionRow.updated_at == last, SessionRow.id < row_id))
            )
        query = query.order_by(SessionRow.updated_at.desc(), SessionRow.id.desc()).limit(limit + 1)
        with self._database.read() as tx:
            rows = tx.scalars(query).all()
        page = page_of(rows, limit, lambda row: (row.updated_at.isoformat(), row.id))
        return Page(tuple(info(row) for row in page.items), page.next_cursor)

    def change(self, caller: Caller, session_id: str, changes: dict[str, Any]) -> SessionInfo:
        """Set `title` or `system_prompt`.  Raises NotFound."""
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            for name in ("title", "system_prompt"):
                if name in changes:
                    setattr(row, name, changes[name])
            return info(row)

    def delete(self, caller: Caller, session_id: str) -> None:
        """Erase a session with all that came of it; the index follows as a job.  Raises NotFound."""
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            owner = row.owner
            if owner.kind == "session":
                self._outbox.enqueue(tx, "unindex", owner.index_key, owner_id=None, payload={"owner": owner.index_key})
                tx.delete(owner)
            else:
                corrections = select(FactRow.id).where(FactRow.session_id == row.id)
                tx.execute(  # what only this session corrected holds again
                    update(FactRow)
                    .where(FactRow.superseded_by.in_(corrections))
                    .values(valid_to=None, superseded_by=None)
                    .execution_options(synchronize_session=False)
                )
                payload = {"owner": owner.index_key, "session": row.id}
                self._outbox.enqueue(tx, "unindex", f"{owner.id}/{row.id}", owner_id=None, payload=payload)
                tx.delete(row)
        self._outbox.notify()

    def messages(
        self, caller: Caller, session_id: str, *, cursor: str | None = None, limit: int = 50, newest_first: bool = False
    ) -> Page[Message]:
        """A session's messages in the order they were said, or the other way round.  Raises NotFound."""
        with self._database.read() as tx:
            row = find_session(tx, caller, session_id)
            query = select(MessageRow).where(MessageRow.session_id == row.id)
            if cursor:
                (position,) = decode_cursor(cursor, int)
                query = query.where(MessageRow.position < position if newest_first else MessageRow.position > position)
            order = MessageRow.position.desc() if newest_first else MessageRow.position
            found = [as_message(m, row) for m in tx.scalars(query.order_by(order).limit(limit + 1))]
        return page_of(found, limit, lambda message: (message.position,))

    def append(self, caller: Caller, session_id: str, drafts: Sequence[MessageDraft]) -> Appended:
        """Store messages without calling a model; the session is made if it is new.

        Those whose `external_id` the session has already are left as they are.  Waits for a turn that is being taken
        in the session.  Raises TooLarge, and Conflict when that turn takes longer than APPEND_WAIT.
        """
        for number, draft in enumerate(drafts):
            check_size(draft.content, f"messages.{number}.content")
        deadline = time.monotonic() + APPEND_WAIT
        while True:
            with self._database.write() as tx:
                row = self.find_or_make(tx, caller, session_id)
                if self._leases.free(row):
                    result = self._append(tx, row, drafts)
                    break
            if not self._leases.wait_free(SessionRow, row.id, deadline):
                raise Conflict(
                    "session_busy",
                    f"A reply is being written in session {session_id!r}. Nothing was stored; send this again later.",
                    retry_after=5.0,
                )
        self._outbox.notify()
        return result

    def _append(self, tx: Session, row: SessionRow, drafts: Sequence[MessageDraft]) -> Appended:
        known = _known_ids(tx, row, [draft.external_id for draft in drafts if draft.external_id])
        new: list[MessageRow] = []
        sent: list[MessageRow | int] = []
        for draft in drafts:
            stored = known.get(draft.external_id) if draft.external_id else None
            if stored is None:
                stored = add_message(row, draft, self._now())
                new.append(stored)
                if draft.external_id:
                    known[draft.external_id] = stored
            sent.append(stored)
        tx.add_all(new)
        tx.flush()
        if new:
            self.follow_up(tx, row, index_delay=0.0)
        return Appended(info(row), tuple(item if isinstance(item, int) else item.id for item in sent), created=len(new))

    # -- for the engine's own transactions

    def find_or_make(self, tx: Session, caller: Caller, session_id: str | None) -> SessionRow:
        """The caller's session of this id, made if there is none.  Raises NotFound when it is someone else's."""
        if session_id is not None:
            row = _find(tx, caller.tenant, session_id)
            if row is not None:
                return _checked(row, caller, session_id)
        return self._make(tx, caller, session_id)

    def index_soon(self, tx: Session, row: SessionRow, delay: float = INDEX_DELAY) -> None:
        """Ask for the owner's new messages to be indexed."""
        self._outbox.enqueue(tx, "index", row.owner_id, owner_id=row.owner_id, delay=delay)

    def follow_up(
        self, tx: Session, row: SessionRow, *, index_delay: float = INDEX_DELAY, prompt: str | None = None
    ) -> None:
        """Ask for what a session's new messages call for: to be indexed, and to be summarised (with `prompt`).

        The summary waits for a pause in the talk, and not at all once the tail has outgrown its limits.
        """
        self.index_soon(tx, row, index_delay)
        full = outgrown(row, self._settings)
        if full or row.message_count - row.summary_through >= 2 * self._settings.summary_every - 1:
            self._outbox.enqueue(
                tx,
                "summary",
                row.id,
                owner_id=row.owner_id,
                session_row_id=row.id,
                delay=0.0 if full else self._settings.summary_debounce,
                postpone=True,
                payload={"prompt": prompt} if prompt else None,
            )

    def _make(self, tx: Session, caller: Caller, session_id: str | None) -> SessionRow:
        row = self.unstored(tx, caller, session_id)
        tx.add(row)
        tx.flush()
        return row

    def unstored(self, tx: Session, caller: Caller, session_id: str | None = None) -> SessionRow:
        """A new session's row, not added to the transaction: as it is, it serves a turn that leaves nothing behind."""
        now = self._now()
        public_id = session_id or uuid.uuid4().hex
        kind, name = ("user", caller.user_id) if caller.user_id is not None else ("session", public_id)
        owner = tx.scalar(
            select(OwnerRow).where(OwnerRow.tenant == caller.tenant, OwnerRow.kind == kind, OwnerRow.name == name)
        )
        return SessionRow(
            tenant=caller.tenant,
            public_id=public_id,
            owner=owner or OwnerRow(tenant=caller.tenant, kind=kind, name=name, created_at=now),
            owner_id=owner.id if owner else None,
            title="",
            created_at=now,
            updated_at=now,
            message_count=0,
            tokens=0,
            summary_version=0,
            summary_through=0,
            facts_through=0,
            head_version=0,
            head_through=0,
            head_tokens=0,
        )


def find_session(tx: Session, caller: Caller, session_id: str) -> SessionRow:
    """The caller's session.  Raises NotFound, also when it is someone else's."""
    return _checked(_find(tx, caller.tenant, session_id), caller, session_id)


def find_user(tx: Session, caller: Caller) -> OwnerRow | None:
    """The owner row of the caller's user; None when nothing was ever stored for them, or no user is named."""
    return tx.scalar(
        select(OwnerRow).where(
            OwnerRow.tenant == caller.tenant, OwnerRow.kind == "user", OwnerRow.name == caller.user_id
        )
    )


def owned(query: Select[*tuple[Any, ...]], caller: Caller) -> Select[*tuple[Any, ...]]:
    """`query`, which joins OwnerRow, narrowed to what the caller may see."""
    query = query.where(OwnerRow.tenant == caller.tenant)
    if caller.user_id is not None:
        query = query.where(OwnerRow.kind == "user", OwnerRow.name == caller.user_id)
    return query


def _find(tx: Session, tenant: str, session_id: str) -> SessionRow | None:
    return tx.scalar(select(SessionRow).where(SessionRow.tenant == tenant, SessionRow.public_id == session_id))


def _checked(row: SessionRow | None, caller: Caller, session_id: str) -> SessionRow:
    if row is None or (caller.user_id is not None and row.owner.user_id != caller.user_id):
        raise NotFound("session_not_found", f"There is no session {session_id!r}.", param="session_id")
    return row


def _known_ids(tx: Session, row: SessionRow, external_ids: Sequence[str]) -> dict[str, MessageRow | int]:
    known: dict[str, MessageRow | int] = {}
    for start in range(0, len(external_ids), 500):  # databases bound the number of values in one statement
        some = external_ids[start : start + 500]
        query = select(MessageRow.external_id, MessageRow.id).where(
            MessageRow.session_id == row.id, MessageRow.external_id.in_(some)
        )
        known.update({key: message_id for key, message_id in tx.execute(query) if key})
    return known


def check_size(content: str, param: str) -> None:
    """Raises TooLarge for more than a message may hold."""
    if len(content) > MESSAGE_CHARS_MAX:
        raise TooLarge(
            "message_too_large",
            f"A message may hold {MESSAGE_CHARS_MAX:,} characters; this one has {len(content):,}. "
            "Nothing was stored. Send it in pieces.",
            param=param,
        )


def add_message(row: SessionRow, draft: MessageDraft, now: datetime) -> MessageRow:
    """The next message of a session as a row, not yet added to the transaction; keeps the session's own figures."""
    created_at = draft.created_at or now
    row.updated_at = created_at if row.message_count == 0 else max(row.updated_at, created_at)
    row.created_at = min(row.created_at, created_at)
    row.message_count += 1
    size = tokens.estimate_message(draft.content)
    row.tokens += size
    if not row.title and draft.role == "user":
        row.title = title_from(draft.content)
    return MessageRow(
        session_id=row.id,
        owner_id=row.owner_id,
        position=row.message_count,
        role=draft.role,
        name=draft.name,
        content=draft.content,
        created_at=created_at,
        external_id=draft.external_id,
        tokens=size,
    )


def title_from(content: str) -> str:
    """A session's title from its first message: its first line, cut at a word's end."""
    line = " ".join(content.strip().split("\n", 1)[0].split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[:TITLE_CHARS].rsplit(" ", 1)[0] + "…"


def as_message(row: MessageRow, session: SessionRow) -> Message:
    return Message(
        id=row.id,
        session_id=session.public_id,
        position=row.position,
        role=row.role,
        content=row.content,
        created_at=row.created_at,
        tokens=row.tokens,
        name=row.name,
        external_id=row.external_id,
    )


def info(row: SessionRow) -> SessionInfo:
    return SessionInfo(
        id=row.public_id,
        user_id=row.owner.user_id,
        title=row.title,
        system_prompt=row.system_prompt,
        message_count=row.message_count,
        tokens=row.tokens,
        summary_version=row.summary_version,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
