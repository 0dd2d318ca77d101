"""Arrival: which session a client's request belongs to, and how the messages it brings are stored.

A request that names no session is known by its conversation: see `carried_on`.  What was sent is reconciled with what
is stored (see `reconcile`): new messages are appended, changed ones replace the old ones, which stay on a branch.

Frontends also send errands: a request for a title, for tags, for the next question.  An errand is a single message
that quotes the last exchange or has a known form.  It is answered without memory, and nothing of it is stored.

All of this happens in the transaction that begins the turn, under the session's lease.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Select, or_, select

from config import Settings
from memory.access.owners import known_session, owned
from memory.branches import replace_from
from memory.clients.conversation import ClientRequest, Sent, said
from memory.clients.reconcile import Said, common, reconcile
from memory.domain import INTERRUPTED, Caller, Message
from memory.leases import Leases
from memory.sessions.messages import add_message, as_message
from models import MessageRow, OwnerRow, SessionRow, Transaction, TurnRow

AGAIN_SECONDS = 2.0  # nobody reads an answer and repeats the question in this time: it is a program or a double click
TURN_MESSAGES = 8  # that hold a question and its answer; calls of tools may stand between them
LATEST = 32  # stored messages compared with one that came alone
OPENINGS_MAX = 32  # sessions of one opening that are compared, the newest: a person may begin each day with "hi"
QUOTED_MIN = 20  # characters of an answer that nobody repeats by chance
ERRANDS = (  # how errands of Open WebUI and LibreChat begin, and what they contain
    ("### Task:", "<chat_history>"),
    ("Provide a concise, 5-word-or-less title for the conversation", " User: "),
    ("Analyze this conversation and provide:", " User: "),
)


@dataclass(frozen=True)
class _Stored:
    id: int
    position: int
    said: Said


def opening(caller: Caller, sent: Sequence[Said]) -> str | None:
    """A hash of the person, their first question and the answer to it; None while there is no answer.

    The question alone would mix the conversations of people who begin with the same greeting.
    """
    asked = next((place for place, one in enumerate(sent) if one.role == "user"), len(sent))
    answer = next((one for one in sent[asked:] if one.role == "assistant"), None)
    if answer is None:
        return None
    parts = (caller.tenant, caller.user_id, sent[asked].words, answer.words, answer.calls)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def carried_on(
    tx: Transaction, caller: Caller, client: ClientRequest, leases: Leases, arrived_at: datetime
) -> SessionRow | None:
    """The session that a request without a session id carries on; None when it begins a new conversation.

    It is looked up by its opening, or, while the client has no answer yet, as a retry of the request that began it.
    Of several sessions with one opening the one that has most in common is meant.  Where no user is named, two
    strangers may begin with the same words, so everything stored must be part of what was sent.  A session that is
    being answered is meant only by the same request sent again.
    """
    sent = [one.said for one in client.conversation.messages]
    begun = opening(caller, sent)
    best: tuple[bool, int] = (False, 0)
    found: SessionRow | None = None
    for row in tx.scalars(_candidates(caller, client, begun, arrived_at)).unique().all():
        line = [one.said for one in _line(tx, row)]
        shared = common(line, sent)
        all_sent = shared == len(line)
        busy = not leases.free(row)
        if busy and not (all_sent and (begun or client.retried)):
            continue
        if (all_sent or caller.user_id is not None) and (all_sent, shared) > best:
            best, found = (all_sent, shared), row
    return found


def _candidates(caller: Caller, client: ClientRequest, begun: str | None, arrived_at: datetime) -> Select[SessionRow]:
    sessions = owned(select(SessionRow).join(OwnerRow), caller)
    if begun is not None:
        return sessions.where(SessionRow.opening == begun).order_by(SessionRow.id.desc()).limit(OPENINGS_MAX)
    began = sessions.join(TurnRow, TurnRow.session_id == SessionRow.id)
    began = began.where(TurnRow.fingerprint == client.fingerprint).order_by(TurnRow.id.desc()).limit(1)
    if client.retried:
        return began
    return began.where(or_(TurnRow.finished_at.is_(None), TurnRow.finished_at > _again_since(arrived_at)))


def is_errand(tx: Transaction, caller: Caller, session_id: str | None, client: ClientRequest) -> bool:
    """Whether a request is about a conversation and no part of it, or there is nothing in it that may be stored."""
    messages = client.conversation.messages
    if client.temporary or not messages:
        return True
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


def repeated(tx: Transaction, row: SessionRow, client: ClientRequest, arrived_at: datetime) -> TurnRow | None:
    """The session's last turn, if this request is the one that began it, sent again."""
    turn = tx.scalar(
        select(TurnRow)
        .join(MessageRow, MessageRow.id == TurnRow.user_message_id)
        .where(TurnRow.session_id == row.id, MessageRow.branch == 0)
        .order_by(TurnRow.user_message_id.desc())
        .limit(1)
    )
    if turn is None or turn.fingerprint != client.fingerprint:
        return None
    again = client.retried or turn.finished_at is None or turn.finished_at > _again_since(arrived_at)
    return turn if again else None


def store(
    tx: Transaction, row: SessionRow, client: ClientRequest, settings: Settings, now: datetime, *, again: bool
) -> tuple[Message, Mapping[int, Sent]]:
    """Make the session's line the client's conversation, as far as it was sent.

    The message that waits for an answer, and the stored messages as the client sent them, by their ids.
    """
    sent = client.conversation.messages
    alone = len(sent) == 1 and not client.whole
    line = _line(tx, row, LATEST if alone else None)
    plan = reconcile([one.said for one in line], [one.said for one in sent], again=again, whole=client.whole)
    as_sent = {line[here].id: sent[there] for here, there in plan.places.items()}
    new = sent[plan.new :]
    rows: list[MessageRow] = []
    if plan.keep < len(line):
        new = new or sent[-1:]  # for another answer the question is stored again in the place of its first copy
        position = line[plan.keep - (plan.new == len(sent))].position
        rows = [replace_from(tx, row, position, new[0].draft, settings, now)]
    for one in new[len(rows) :]:
        rows.append(add_message(row, one.draft, now))
        tx.add(rows[-1])
    tx.flush()
    if not rows:
        return as_message(tx.get_one(MessageRow, line[-1].id), row), as_sent
    as_sent |= {stored.id: one for stored, one in zip(rows, new, strict=True)}
    return as_message(rows[-1], row), as_sent


def _again_since(arrived_at: datetime) -> datetime:
    return arrived_at - timedelta(seconds=AGAIN_SECONDS)


def _line(tx: Transaction, row: SessionRow, last: int | None = None) -> list[_Stored]:
    """The session's stored messages as they are compared: all, or the `last` ones."""
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
    return [
        _Stored(id, position, said(role, text, name, extra, cut=reason == INTERRUPTED, erased=erased is not None))
        for id, position, role, text, name, extra, erased, reason in tx.execute(query)
    ]
