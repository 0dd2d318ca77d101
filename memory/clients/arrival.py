"""Arrival: how a client's request finds its session, and how what it brought is stored.

The session is the one the client names, or else the one whose conversation it carries on (see `identity`).  What it
sent is reconciled with what is stored (see `reconcile`): new messages are appended, changed ones replace the old, which
stay on a branch.

Not everything that is sent on a conversation belongs to it.  Frontends have their errands: a title for it, tags, what
to ask next.  Such a request is one message that holds the conversation's last words, or follows a known form, and it
is answered without memory: nothing is added to it, and nothing of it is stored.

All of it happens within the transaction that begins the turn, under the session's lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Select, select

from config import Settings
from memory.access.owners import find_user, known_session
from memory.branches import replace_from
from memory.clients.conversation import ClientRequest, Sent, said
from memory.clients.identity import PREFIX, TRUNCATED_MIN, kinship, numbered, opening
from memory.clients.reconcile import Said, common, reconcile
from memory.domain import INTERRUPTED, Caller, Message
from memory.leases.leases import Leases
from memory.sessions.messages import add_message, as_message
from memory.sessions.sessions import Sessions
from models import MessageRow, OwnerRow, SessionRow, Transaction, TurnRow

AGAIN_SECONDS = 2.0  # in which nobody reads an answer and says the same once more, but a program or a double click does
TURN_MESSAGES = 8  # within which a question and its answer stand; calls of tools may be between them
LATEST = 32  # messages looked at for one that came alone
KIN_MAX = 64  # sessions of one opening that are looked at, the newest; a person may begin every day with "hi"
READ_MAX = 4  # of them that are read whole
BEGINNING = 4  # messages by which those are chosen
RECENT_MAX = 20  # sessions in which a conversation without its beginning is looked for
QUOTED_MIN = 20  # characters of an answer that nobody repeats by chance
ERRANDS = (  # how known ones begin, and what they hold: Open WebUI's, then LibreChat's, sent beside the first answer
    ("### Task:", "<chat_history>"),
    ("Provide a concise, 5-word-or-less title for the conversation", " User: "),
    ("Analyze this conversation and provide:", " User: "),
)


@dataclass(frozen=True)
class Arrived:
    """What a request brought is stored: its `last` message waits for an answer.

    `sent` gives stored messages as the client sent them, by their ids.
    """

    last: Message
    sent: Mapping[int, Sent] = field(default_factory=dict)


@dataclass(frozen=True)
class _Stored:
    id: int
    position: int
    said: Said


class Arrivals:
    """Takes in what clients send."""

    def __init__(self, settings: Settings, sessions: Sessions, leases: Leases, now: Callable[[], datetime]) -> None:
        self._settings = settings
        self._sessions = sessions
        self._leases = leases
        self._now = now

    def session(self, tx: Transaction, caller: Caller, session_id: str | None, client: ClientRequest) -> SessionRow:
        """The session a request is for, made if it is new.  Raises NotFound when it is someone else's."""
        if session_id is not None:
            return self._sessions.find_or_make(tx, caller, session_id)
        sent = [one.said for one in client.conversation.messages]
        begins = opening(caller, sent)
        named = SessionRow.public_id >= begins, SessionRow.public_id < f"{begins}z"  # what the index finds by its start
        kin = tx.scalars(
            _of_person(tx, caller).where(*named).order_by(SessionRow.updated_at.desc()).limit(KIN_MAX)
        ).all()
        found = self._nearest(tx, caller, kin, sent) or self._truncated(tx, caller, sent)
        if found is not None:
            return found
        taken = tx.scalars(select(SessionRow.public_id).where(SessionRow.tenant == caller.tenant, *named)).all()
        return self._sessions.find_or_make(tx, caller, numbered(begins, taken))

    def errand(self, tx: Transaction, caller: Caller, session_id: str | None, client: ClientRequest) -> bool:
        """Whether a request is about a conversation and no part of it."""
        messages = client.conversation.messages
        if len(messages) != 1 or messages[0].role != "user":
            return False
        asked = messages[0].said.words
        if any(asked.startswith(beginning) and inside in asked for beginning, inside in ERRANDS):
            return True
        row = known_session(tx, caller, session_id) if session_id is not None else None
        line = [one.said for one in _line(tx, row, TURN_MESSAGES)] if row is not None else []
        if not line or line[-1].role != "assistant" or len(line[-1].words) < QUOTED_MIN:
            return False
        question = next((one.words for one in reversed(line) if one.role == "user"), "")
        return bool(question) and asked != question and question in asked and line[-1].words in asked

    def repeated(self, tx: Transaction, row: SessionRow, client: ClientRequest, arrived_at: datetime) -> TurnRow | None:
        """The session's last turn, if it was begun by the same request and this one can only be that once more."""
        turn = tx.scalar(
            select(TurnRow)
            .join(MessageRow, MessageRow.id == TurnRow.user_message_id)
            .where(TurnRow.session_id == row.id, MessageRow.branch == 0)
            .order_by(TurnRow.user_message_id.desc())
            .limit(1)
        )
        if turn is None or turn.fingerprint != client.fingerprint:
            return None
        too_soon = turn.finished_at is None or arrived_at < turn.finished_at + timedelta(seconds=AGAIN_SECONDS)
        return turn if client.retried or too_soon else None

    def store(self, tx: Transaction, row: SessionRow, client: ClientRequest, *, again: bool) -> Arrived:
        """Make the session's line the client's conversation, as far as it was sent."""
        sent = client.conversation.messages
        alone = len(sent) == 1 and not client.whole
        line = _line(tx, row, LATEST if alone else None)
        known = [one.said for one in line]
        plan = reconcile(known, [one.said for one in sent], again=again, whole=client.whole)
        as_sent = {line[here].id: sent[there] for here, there in plan.places.items()}
        new = sent[plan.new :]
        if plan.keep < len(line):
            new = new or sent[-1:]  # for another answer the question is stored once more, and its first copy replaced
            position = line[plan.keep - (plan.new == len(sent))].position
            rows = [replace_from(tx, row, position, new[0].draft, self._settings, self._now())]
        else:
            rows = []
        for one in new[len(rows) :]:
            rows.append(add_message(row, one.draft, self._now()))
            tx.add(rows[-1])
        tx.flush()
        if not rows:
            return Arrived(as_message(tx.get_one(MessageRow, line[-1].id), row), as_sent)
        self._sessions.index_soon(tx, row)
        as_sent |= {stored.id: one for stored, one in zip(rows, new, strict=True)}
        return Arrived(as_message(rows[-1], row), as_sent)

    def _nearest(
        self, tx: Transaction, caller: Caller, kin: Sequence[SessionRow], sent: Sequence[Said]
    ) -> SessionRow | None:
        """Of sessions that begin alike the one that is carried on."""
        if len(kin) > READ_MAX:
            begun = {
                row.id: common([one.said for one in _line(tx, row, None, BEGINNING)], sent[:BEGINNING]) for row in kin
            }
            kin = sorted(kin, key=lambda row: (-begun[row.id], row.message_count > len(sent)))[:READ_MAX]
        near = [(self._kinship(caller, row, _line(tx, row), sent), row) for row in kin]
        best, found = max(near, key=lambda one: one[0], default=((0, 0), None))
        return found if best > (0, 0) else None

    def _truncated(self, tx: Transaction, caller: Caller, sent: Sequence[Said]) -> SessionRow | None:
        """The session whose end a list goes on from that lacks the beginning."""
        if not any(one.role == "assistant" for one in sent):
            return None
        recent = _of_person(tx, caller).where(SessionRow.public_id.startswith(PREFIX))
        for row in tx.scalars(recent.order_by(SessionRow.updated_at.desc()).limit(RECENT_MAX)).all():
            line = _line(tx, row, len(sent) + 1)
            rank, certain = self._kinship(caller, row, line, sent)
            if rank and (certain >= TRUNCATED_MIN or not any(one.said.erased for one in line)):
                return row
        return None

    def _kinship(
        self, caller: Caller, row: SessionRow, line: Sequence[_Stored], sent: Sequence[Said]
    ) -> tuple[int, int]:
        known = [one.said for one in line]
        return kinship(known, sent, busy=not self._leases.free(row), named=caller.user_id is not None)


def _of_person(tx: Transaction, caller: Caller) -> Select[SessionRow]:
    """The sessions that a conversation of the caller's may be: the person's, or where nobody is named, nobody's.

    Not all whose id fits: anybody may have chosen such an id, to have another's words come to them.
    """
    of_tenant = select(SessionRow).where(SessionRow.tenant == caller.tenant)
    if caller.user_id is None:
        return of_tenant.join(OwnerRow).where(OwnerRow.kind == "session")
    owner = find_user(tx, caller)
    return of_tenant.where(SessionRow.owner_id == (owner.id if owner is not None else 0))


def _line(tx: Transaction, row: SessionRow, last: int | None = None, first: int | None = None) -> list[_Stored]:
    """The session's stored messages as they are compared: all, the `last` ones, or the `first`."""
    query = (
        select(
            MessageRow.id,
            MessageRow.position,
            MessageRow.role,
            MessageRow.content,
            MessageRow.name,
            MessageRow.extra,
            MessageRow.erased_at,
            TurnRow.finish_reason,
        )
        .outerjoin(TurnRow, TurnRow.reply_message_id == MessageRow.id)
        .where(MessageRow.session_id == row.id, MessageRow.branch == 0)
        .order_by(MessageRow.position)
    )
    if last is not None:
        query = query.where(MessageRow.position > row.message_count - last)
    if first is not None:
        query = query.where(MessageRow.position <= first)
    return [
        _Stored(id, position, said(role, text, name, extra, cut=reason == INTERRUPTED, erased=erased is not None))
        for id, position, role, text, name, extra, erased, reason in tx.execute(query)
    ]
