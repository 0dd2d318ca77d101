"""Sessions and their messages.

Invariants [test_sessions, test_messages, test_message_versions]:
- Positions count from 1 without gaps. Replaced messages keep theirs on a branch, and an erased one leaves an empty
  place, which no read shows.
- A session stores an `external_id` once, also after its message was replaced or erased.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnDefault, Connection, or_, select

from config import Settings
from memory.access.owners import (
    find_or_make_owner,
    find_own_session,
    find_session,
    get_session,
    latest_timezone,
    visible_to,
)
from memory.conversation_types import ConversationTypes
from memory.errors import Conflict, NotFound
from memory.jobs import NO_DUE_TIMES, JobQueue
from memory.leases import Leases
from memory.paging import Page, encode_cursor, read_page
from memory.sessions.compaction import summary_request
from memory.sessions.messages import CURRENT, LISTED, append, require_message_size, tombstone
from models import Database, MessageRow, OwnerRow, SessionRow, Transaction, as_value, for_update, retry_on_conflict
from models.jobs import JobRequest
from models.messages import Message, MessageDraft
from models.owners import Caller
from models.sessions import SessionState

# Seconds in which messages gather for one job, since two cost nearly as much as twenty.  Searches read their rows.
INDEX_DELAY_SECONDS = 60.0
UNANSWERED_SECONDS = 60.0  # in which a program asks for the answer to what it appended
INDEX_MESSAGES = 200  # of a session, after which it is due at once


@dataclass(frozen=True)
class SessionInfo:
    """Session as it is shown.  An archived session is remembered as any other.

    busy: a reply is being written in it now. type: of its conversation, where one was given.
    imported_at: when messages were last imported. client_metadata: what a client keeps with its conversation.
    """

    id: str
    user_id: str | None
    space: str | None
    title: str
    system_prompt: str | None
    pinned: bool
    archived: bool
    remember: bool
    type: str | None
    message_count: int
    tokens: int
    summary_version: int
    created_at: datetime
    updated_at: datetime
    imported_at: datetime | None
    client_metadata: dict[str, Any] | None
    busy: bool


@dataclass(frozen=True)
class Appended:
    """Result of an append: the ids of all messages sent, in order, and how many of them were new."""

    session: SessionInfo
    message_ids: tuple[int, ...]
    created: int


@dataclass(frozen=True)
class Sessions:
    """Reads and writes sessions on behalf of callers, and for the engine's own transactions."""

    settings: Settings
    database: Database
    job_queue: JobQueue
    leases: Leases
    now: Callable[[], datetime]
    types: ConversationTypes

    @retry_on_conflict
    def create(self, caller: Caller, session_id: str | None = None, **columns: Any) -> SessionInfo:
        """Create an empty session.  Raises Conflict for an existing id, and InvalidRequest for an unknown type."""
        with self.database.write() as tx:
            if session_id is not None and find_session(tx, caller, session_id) is not None:
                raise Conflict("session_exists", f"There is a session {session_id!r} already. Choose another id.")
            return self._set(tx, self.make(tx, caller, session_id), columns)

    @retry_on_conflict
    def adopt(self, caller: Caller, session_id: str) -> SessionInfo | None:
        """Give the caller an empty session that was made without a name; return None where there is none."""
        with self.database.write() as tx:
            row = find_own_session(tx, Caller(caller.tenant), session_id)
            if row is None or row.message_count:
                return None
            row.owner = find_or_make_owner(tx, caller, self.now())
            return self.info(row)

    def get(self, caller: Caller, session_id: str) -> SessionInfo:
        """Return a session.  Raises NotFound."""
        with self.database.read() as tx:
            return self.info(get_session(tx, caller, session_id))

    def find_unanswered(self, caller: Caller, prefix: str, text: str) -> str | None:
        """Return the id of the person's newest session, with this prefix, that has only this message, just appended."""
        only = MessageRow.position == 1, MessageRow.branch == 0, MessageRow.role == "user", MessageRow.content == text
        since = self.now() - timedelta(seconds=UNANSWERED_SECONDS)
        query = visible_to(select(SessionRow.public_id).join(OwnerRow), caller)
        query = query.join(MessageRow, MessageRow.session_id == SessionRow.id).where(*only)
        query = query.where(SessionRow.message_count == 1, SessionRow.updated_at > since)
        query = query.where(SessionRow.public_id.startswith(prefix, autoescape=True))
        with self.database.read() as tx:
            return tx.scalar(query.order_by(SessionRow.id.desc()).limit(1))

    def page(self, caller: Caller, *, cursor: str | None = None, limit: int = 20, **filters: Any) -> Page[SessionInfo]:
        """List the caller's sessions, newest first.

        filters: parameters of the call that lists sessions; of times, `after` <= updated_at < `before`. None: any.
        """
        query = visible_to(select(SessionRow).join(OwnerRow), caller)
        updated_at = SessionRow.updated_at
        conditions = {
            "q": lambda text: SessionRow.title.icontains(text, autoescape=True),
            "pinned": SessionRow.pinned.is_,
            "archived": SessionRow.archived.is_,
            "before": updated_at.__lt__,
            "after": updated_at.__ge__,
            "except_user_id": lambda user_id: or_(OwnerRow.kind != "user", OwnerRow.name != user_id),
        }
        query = query.where(SessionRow.is_document.is_(False))
        query = query.where(*(conditions[name](value) for name, value in filters.items() if value not in (None, "")))
        with self.database.read() as tx:
            page = read_page(tx, query, cursor, limit, updated_at, SessionRow.id)
        return page.map(lambda row: self.info(row.SessionRow))

    @retry_on_conflict
    def change(self, caller: Caller, session_id: str, changes: dict[str, Any]) -> SessionInfo:
        """Set the session's fields that callers may change.  Raises NotFound, InvalidRequest."""
        with self.database.write() as tx:
            return self._set(tx, get_session(tx, caller, session_id), changes)

    def _set(self, tx: Transaction, row: SessionRow, columns: dict[str, Any]) -> SessionInfo:
        """Set fields of a session.  Raises InvalidRequest."""
        if columns.get("type") is not None:
            self.types.check(tx, row, columns["type"])
        for name, value in columns.items():
            setattr(row, name, value)
        return self.info(row)

    def messages(
        self,
        caller: Caller,
        session_id: str,
        *,
        cursor: str | None = None,
        limit: int = 50,
        newest_first: bool = False,
        branch: int = 0,
    ) -> Page[Message]:
        """List a session's messages, oldest or newest first; with `branch` those that were replaced together.

        Raises NotFound.
        """
        with self.database.read() as tx:
            row = get_session(tx, caller, session_id)
            query = LISTED.where(MessageRow.session_id == row.id, MessageRow.branch == branch)
            query = query.where(MessageRow.erased_at.is_(None))
            page = read_page(tx, query, cursor, limit, MessageRow.position, newest_first=newest_first)
            return page.map(lambda row: Message._make(row[:-1]))

    def messages_around(self, caller: Caller, session_id: str, message_id: int, limit: int = 50) -> Page[Message]:
        """List the messages around one, oldest first, with cursors for `messages` to go on either way.

        Raises NotFound, also for a message that was replaced or erased.
        """
        with self.database.read() as tx:
            row = get_session(tx, caller, session_id)
            positions = select(MessageRow.position).where(MessageRow.session_id == row.id, *CURRENT)
            middle = tx.scalar(positions.where(MessageRow.id == message_id))
            if middle is None:
                raise NotFound(
                    "message_not_found",
                    f"There is no message {message_id} in session {row.public_id!r}, or it was replaced or erased.",
                    param="around",
                )
            first = max(1, min(middle - (limit - 1) // 2, row.message_count - limit + 1))
            last = first + limit - 1
            near = LISTED.where(MessageRow.session_id == row.id, *CURRENT, MessageRow.position.between(first, last))
            items = tuple(map(Message._make, tx.execute(near.order_by(MessageRow.position))))
        return Page(
            items,
            next_cursor=encode_cursor(last) if last < row.message_count else None,
            previous_cursor=encode_cursor(first) if first > 1 else None,
        )

    @retry_on_conflict
    def append(self, caller: Caller, session_id: str, drafts: Sequence[MessageDraft]) -> Appended:
        """Store messages without calling a model; the session is made if it is new.

        A message whose `external_id` the session has already is not stored again.  Waits for a turn that is being taken
        in the session.  Raises TooLarge, and Conflict when that takes too long or others wait already.
        """
        for number, draft in enumerate(drafts):
            require_message_size(draft.content, f"messages.{number}.content")

        busy = "Nothing was stored; send this again later."
        with self.leases.free_session(
            lambda tx: find_session(tx, caller, session_id) or self.make(tx, caller, session_id), busy
        ) as (tx, row):
            return self._append(tx, row, [draft.said_by(caller) for draft in drafts])

    def _append(self, tx: Transaction, row: SessionRow, drafts: Sequence[MessageDraft]) -> Appended:
        keys = [draft.external_id or place for place, draft in enumerate(drafts)]  # a message without an id is new
        names = {name: name for name in keys if isinstance(name, str)}
        names |= {tombstone(name): name for name in names}  # erased messages are known, too
        query = select(MessageRow.external_id, MessageRow.id).where(MessageRow.session_id == row.id)
        rows = tx.execute(query.where(MessageRow.external_id.in_(names)))
        ids: dict[str | int, int] = {names[name]: message_id for name, message_id in rows if name}
        new: dict[str | int, MessageDraft] = {}
        for key, draft in zip(keys, drafts, strict=True):
            if key not in ids:
                new.setdefault(key, draft if row.is_remembered else draft.unremembered())
        stored = append(tx, row, list(new.values()), self.now())
        if new:
            self.enqueue_follow_ups(tx, row, index_delay=0.0)
        ids |= {key: message.id for key, message in zip(new, stored, strict=True)}
        return Appended(self.info(row), tuple(ids[key] for key in keys), created=len(new))

    def info(self, row: SessionRow) -> SessionInfo:
        owner = row.owner
        busy = not self.leases.is_free(row)
        return as_value(SessionInfo, row, id=row.public_id, user_id=owner.user_id, space=owner.space, busy=busy)

    def enqueue_follow_ups(
        self,
        tx: Transaction | Connection,
        session: SessionRow | SessionState,
        *,
        index_delay: float | None = None,
        summarise: bool = True,
        prompt: str | None = None,
        due: Mapping[str, datetime | None] = NO_DUE_TIMES,
    ) -> None:
        """Ask for the jobs that new messages need: to index them and, if `summarise`, to summarise them with `prompt`.

        due: as for `enqueue`.
        """
        if index_delay is None:  # unindexed messages are counted in each turn, so a long talk has them indexed sooner
            index_delay = INDEX_DELAY_SECONDS if session.message_count % INDEX_MESSAGES > 1 else 0.0
        jobs = [JobRequest("index", session.owner_id, session.tenant, session.owner_id, delay=index_delay)]
        if summarise and (request := summary_request(tx, session, self.settings, prompt)):
            jobs.append(request)
        self.job_queue.enqueue(tx, *jobs, due=due)

    def make(self, tx: Transaction, caller: Caller, session_id: str | None) -> SessionRow:
        """Create a session.  Raises Conflict if a document of the owner has its id."""
        row = self.unstored(tx, caller, session_id)
        same = SessionRow.owner_id == row.owner_id, SessionRow.public_id == session_id, SessionRow.is_document
        if session_id is not None and tx.scalar(select(SessionRow.id).where(*same)) is not None:
            text = f"{session_id!r} is the id of a document. Nothing was stored. Choose another id."
            raise Conflict("session_exists", text)
        tx.add(row)
        tx.flush()
        return row

    def unstored(self, tx: Transaction, caller: Caller, session_id: str | None = None) -> SessionRow:
        """Return the row of a new session that is not stored: enough for a temporary turn."""
        now = self.now()
        public_id = session_id or uuid.uuid4().hex
        kind, name = caller.owner or ("session", public_id)
        named = OwnerRow.tenant == caller.tenant, OwnerRow.kind == kind, OwnerRow.name == name
        owner = tx.scalar(for_update(tx, select(OwnerRow).where(*named), OwnerRow))
        owner = owner or OwnerRow(tenant=caller.tenant, kind=kind, name=name, created_at=now, remember=True)
        row = SessionRow(tenant=caller.tenant, public_id=public_id, owner=owner, owner_id=owner.id, title="")
        row.created_at = row.updated_at = now
        row.timezone = latest_timezone(tx, owner.id) if owner.id is not None else None
        for column in SessionRow.__table__.columns:
            if isinstance(column.default, ColumnDefault):  # a value; others are set with the stored row
                setattr(row, column.name, column.default.arg)
        return row
