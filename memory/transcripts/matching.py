"""Match a client's request with a session, and store the messages that it brings.

A request that names no session is known by its conversation (`find_session_of`).  What was sent is reconciled with
what is stored: new messages are appended, changed ones replace the old ones, which stay on a branch.

All of this happens in the transaction that begins the turn, under the session's lease.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, select

from memory.access.owners import find_session, visible_to
from memory.engine import Engine
from memory.leases import Leases
from memory.message_versions import replace_messages
from memory.sessions.messages import append, find
from memory.transcripts.reconcile import MessageKey, common_prefix, ends_with, goes_on, is_same_utterance, reconcile
from memory.transcripts.transcript import Transcript, TranscriptMessage, TranscriptRequest, message_key, text_of
from models import MessageRow, OwnerRow, SessionRow, Transaction, TurnRow, for_update
from models.messages import Message, MessageDraft
from models.owners import Caller
from models.turns import INTERRUPTED

AGAIN_SECONDS = 2.0  # nobody reads an answer and repeats the question in this time: it is a program or a double click
REGENERATED_SECONDS = 3600.0  # in which the same first question asks for another answer to it
LATEST = 32  # stored messages that are compared with one that came alone
OPENINGS_MAX = 32  # sessions of one opening that are compared, the newest: a person may begin each day with "hi"
RECENT_MAX = 8  # sessions of a person, the latest used, that are compared with a list that lacks its beginning
QUOTED_MIN = 20  # characters of an answer that nobody repeats by chance
QUOTED_MAX = 100  # characters of a message that a program quotes
_COMPARED = MessageRow.role, MessageRow.content, MessageRow.name, MessageRow.extra


def conversation_fingerprint(caller: Caller, sent: Sequence[MessageKey], *, answered: bool = True) -> str | None:
    """Hash the person, their first question and the answer to it; None if there is none.

    answered: there is a whole answer. Without one, the question alone is hashed.
    """
    first = next((place for place, key in enumerate(sent) if key.role == "user"), len(sent))
    answer = next((key for key in sent[first:] if key.role == "assistant"), None) if answered else None
    if first == len(sent) or (answer is None and answered):
        return None
    parts: list[Any] = [caller.tenant, caller.user_id, sent[first].words]
    if answer is not None:
        parts += [answer.words, answer.calls]
    if caller.space is not None:  # else stored fingerprints stay as they are
        parts.append(caller.space)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def find_session_of(
    tx: Transaction, caller: Caller, client: TranscriptRequest, leases: Leases, arrived_at: datetime
) -> SessionRow | None:
    """Find the session that a request without a session id carries on; None if it begins a new conversation.

    Tried in this order:
    - While the client has no answer yet, by the request that began it, sent again or for another answer.
    - By its opening, the first question and its answer, which may have been interrupted or be on its way (`goes_on`).
      Of several sessions with one opening the one that has most in common is meant.
    - By its first exchange, where the client leaves out a reply that nobody heard.
    - A named person's by its latest messages: many programs send these alone, or a summary of their own before them.

    Where no owner is named, two strangers may begin with the same words, so everything stored must be part of what was
    sent.  A session that is being answered is meant only by the same request sent again.
    """
    sent = client.keys
    opening = conversation_fingerprint(caller, sent)
    # Where nobody is named, it would mix the conversations of strangers who begin with the same greeting.
    unanswered = conversation_fingerprint(caller, sent, answered=False) if caller.owner is not None else None
    rows = _find_begun(tx, caller, client, arrived_at) if opening is None else []
    is_known = opening is not None or bool(rows)  # else the first answer may have broken off, and be left out
    if not rows and (opening is not None or len(sent) > 1):
        query = visible_to(select(SessionRow).join(OwnerRow), caller)
        query = query.where(SessionRow.opening.in_(list(filter(None, (opening, unanswered)))))
        query = query.order_by(SessionRow.id.desc()).limit(OPENINGS_MAX)
        rows = list(tx.scalars(for_update(tx, query, OwnerRow, SessionRow)).unique())
    best: tuple[bool, int] = (False, 0)
    match: SessionRow | None = None
    for row in rows:
        line = list(active_keys(tx, row).values())
        shared = common_prefix(line, sent)
        all_sent = shared == len(line)
        if leases.is_free(row):
            is_theirs = caller.owner is not None and is_known and any(_is_of_turn(line, at) for at in range(shared))
            fits = all_sent or is_theirs or goes_on(line[shared:], sent[shared:])
        elif all_sent:
            fits = opening is not None or shared < len(sent) or client.is_declared_retry
        else:
            is_version = shared < min(len(line), len(sent)) and is_same_utterance(line[shared], sent[shared])
            fits = is_version and opening is not None and caller.owner is not None
        if fits and (all_sent, shared) > best:
            best = (all_sent, shared)
            match = row
    match = match or _find_first_exchange(tx, caller, sent, leases, arrived_at)
    if match is None and caller.owner and any(key.role == "assistant" for key in sent):
        match = _find_by_latest_messages(tx, caller, sent, leases)
    return match


def _find_begun(tx: Transaction, caller: Caller, client: TranscriptRequest, arrived_at: datetime) -> list[SessionRow]:
    """Find the session that this very request began, if it is sent again, or asks for another answer.

    A program's prompt around the same words is the same request if it has the answer, too: each step of an agent has
    more in it than the one before.
    """
    sessions = visible_to(select(SessionRow).join(OwnerRow), caller)
    query = sessions.add_columns(TurnRow).join(TurnRow, TurnRow.session_id == SessionRow.id)
    query = query.where(TurnRow.fingerprint == client.fingerprint).order_by(TurnRow.id.desc()).limit(1)
    rows = []
    for row, turn in tx.execute(for_update(tx, query, OwnerRow, SessionRow, TurnRow)).unique():
        is_answer_all = row.message_count == len(client.keys) + 1  # then another answer may be asked for
        if _is_again(turn, client, arrived_at, REGENERATED_SECONDS if is_answer_all else AGAIN_SECONDS):
            rows.append(row)
    if not rows and caller.owner is not None and client.conversation.is_filled_in:
        since = arrived_at - timedelta(seconds=REGENERATED_SECONDS)
        again = sessions.join(MessageRow).where(
            SessionRow.updated_at > since, SessionRow.message_count == 2, MessageRow.branch == 0
        )
        again = again.where(MessageRow.content == client.conversation.asked).order_by(SessionRow.id.desc()).limit(1)
        prompt = " ".join(text_of(client.conversation.messages[0].raw).split())
        found = tx.scalars(for_update(tx, again, OwnerRow, SessionRow)).unique()
        rows += [row for row in found if all(opening(key.text) in prompt for key in active_keys(tx, row).values())]
    return rows


def _find_first_exchange(
    tx: Transaction, caller: Caller, sent: Sequence[MessageKey], leases: Leases, arrived_at: datetime
) -> SessionRow | None:
    """Find a session, used lately, that the list goes on from without the reply that the session is known by."""
    since = arrived_at - timedelta(seconds=REGENERATED_SECONDS)
    latest = latest_sessions(caller).where(SessionRow.opening.is_not(None), SessionRow.updated_at > since)
    latest = latest.where(SessionRow.message_count <= len(sent) + 1)
    if caller.owner is None:
        latest = latest.where(OwnerRow.kind == "session")
    rows = [row for row in tx.scalars(latest).unique() if leases.is_free(row)]
    lines = _active_lines(tx, MessageRow.session_id.in_([row.id for row in rows])) if rows else {}
    for row in rows:
        line = list(lines.get(row.id, {}).values())
        if any(key.erased for key in line):  # which may have been anything
            continue
        shared = common_prefix(line, sent)
        is_heard = shared == len(line) > 0 and line[-1].role == "assistant"
        if is_heard or goes_on(line[shared:], sent[shared:]):
            return _locked(tx, caller, row)
    return None


def _find_by_latest_messages(
    tx: Transaction, caller: Caller, sent: Sequence[MessageKey], leases: Leases
) -> SessionRow | None:
    """Find the person's session that has most of what they said, or of the answers, in the history that was sent.

    A program that shortens or rewrites a conversation puts a summary into the place of the one, its own form of a call
    into that of the other.
    """
    answered = max(place for place, key in enumerate(sent, 1) if key.role == "assistant")
    roles = Counter(key.role for key in sent[:answered])
    for row in tx.scalars(latest_sessions(caller)).unique().all():
        line = list(active_keys(tx, row, len(sent) + LATEST).values()) if leases.is_free(row) else []
        places = reconcile(line, sent).places
        kept = [line[place] for place in places if not line[place].erased and _is_of_turn(line, place)]
        counts = Counter(key.role for key in kept if len(key.words) >= QUOTED_MIN or len(kept) > 1)
        if any(2 * counts[role] > roles[role] for role in ("user", "assistant")):
            return _locked(tx, caller, row)
    return None


def _locked(tx: Transaction, caller: Caller, row: SessionRow) -> SessionRow | None:
    query = latest_sessions(caller).where(SessionRow.id == row.id)
    return tx.scalars(for_update(tx, query, OwnerRow, SessionRow)).unique().one_or_none()


def latest_sessions(caller: Caller) -> Select[Any]:
    """Return the query of the sessions of a person's that were used last."""
    sessions = visible_to(select(SessionRow).join(OwnerRow), caller).where(SessionRow.is_document.is_(False))
    return sessions.order_by(SessionRow.updated_at.desc()).limit(RECENT_MAX)


def opening(text: str) -> str:
    """Return how a message begins, as far as a program may quote it: lines may be divided in another way."""
    first_line = " ".join(text.strip().partition("\n")[0].split())
    return (first_line if len(first_line) >= QUOTED_MIN else " ".join(text.split()))[:QUOTED_MAX]


def _is_of_turn(line: Sequence[MessageKey], place: int) -> bool:
    """Return whether a message is a reply of a turn, or has one.

    Others came with the first request of a conversation: every conversation of a program may begin with its examples.
    """
    return any(key.is_reply for key in line[place : place + 2])


def is_another_conversation(tx: Transaction, caller: Caller, session_id: str | None, client: TranscriptRequest) -> bool:
    """Return whether the named session has a conversation that does not begin with what the client asked first.

    False where the client's sessions have one conversation each.
    """
    row = find_session(tx, caller, session_id) if client.holds_several and session_id is not None else None
    question = next((key for key in client.keys if key.role == "user"), None)
    if row is None or question is None or client.conversation.is_abridged:
        return False
    first = tx.execute(_questions(row).order_by(MessageRow.position).limit(1)).first()
    return first is not None and not question.matches(message_key(first, erased=first.erased_at is not None))


def supersedes(tx: Transaction, row: SessionRow, client: TranscriptRequest) -> bool:
    """Return whether the person said what the session is answering, and more: nobody waits for that answer."""
    newest = _newest_question(tx, row)
    return newest is not None and client.keys[-1].completes(message_key(newest))


def is_superseded(tx: Transaction, row: SessionRow, client: TranscriptRequest, arrived_at: datetime) -> bool:
    """Return whether, since the request arrived, the session has got what the person said in it, or more."""
    if row.updated_at <= arrived_at:  # nothing has been said since
        return False
    newest = _newest_question(tx, row)
    if newest is None or newest.created_at <= arrived_at:
        return False
    stored = message_key(newest)
    question = client.keys[-1]
    return question.matches(stored) or stored.completes(question)


def _newest_question(tx: Transaction, row: SessionRow) -> Row[Any] | None:
    return tx.execute(_questions(row).order_by(MessageRow.position.desc()).limit(1)).first()


def _questions(row: SessionRow) -> Select[Any]:
    query = select(*_COMPARED, MessageRow.erased_at, MessageRow.created_at)
    return query.where(MessageRow.session_id == row.id, MessageRow.branch == 0, MessageRow.role == "user")


def find_resumable(tx: Transaction, row: SessionRow, client: TranscriptRequest, arrived_at: datetime) -> TurnRow | None:
    """Find the session's last turn, if this request is the one that began it, sent again."""
    turn = tx.scalar(
        select(TurnRow)
        .join(MessageRow, MessageRow.id == TurnRow.user_message_id)
        .where(TurnRow.session_id == row.id, MessageRow.branch == 0)
        .order_by(TurnRow.user_message_id.desc())
        .limit(1)
    )
    return turn if turn is not None and _is_again(turn, client, arrived_at, AGAIN_SECONDS) else None


def _is_again(turn: TurnRow, client: TranscriptRequest, arrived_at: datetime, seconds: float) -> bool:
    """Return whether this request began the turn and is sent again: it says so, or came in so many `seconds`."""
    if turn.fingerprint != client.fingerprint:
        return False
    return (
        client.is_declared_retry
        or turn.finished_at is None
        or turn.finished_at > arrived_at - timedelta(seconds=seconds)
    )


def sync_transcript(
    engine: Engine, tx: Transaction, row: SessionRow, client: TranscriptRequest, caller: Caller, *, is_retry: bool
) -> tuple[Message, Mapping[int, TranscriptMessage]]:
    """Make the session's active branch the client's conversation, as far as it was sent.

    Returns the message that waits for an answer, and the stored messages as the client sent them, by their ids.
    """
    sent = client.conversation.messages
    line = active_keys(tx, row, _compared(tx, row, client))
    ids = list(line)
    before = row.message_count - len(line)  # so many messages come before these
    plan = reconcile(list(line.values()), client.keys, is_retry=is_retry, is_complete=client.is_complete)
    as_sent = {ids[here]: sent[there] for here, there in plan.places.items()}
    new = sent[plan.new :]
    is_replaced = plan.keep < len(line)
    drafts = [message.draft.said_by(caller) for message in new]
    position = before + plan.keep + 1
    if is_replaced and not new:  # for another answer the question is stored again in the place of its first copy
        position -= 1
        new = sent[-1:]
        question = sent[-1].draft
        drafts = [replace(question, name=question.name or line[ids[plan.keep - 1]].name)]
    if not row.is_remembered:
        drafts = [draft.unremembered() for draft in drafts]
    stored: list[Message] = []
    if is_replaced:
        stored = [replace_messages(engine, tx, row, position, drafts[0])]
    stored += append(tx, row, drafts[len(stored) :], engine.now())
    as_sent |= {message.id: as_new for message, as_new in zip(stored, new, strict=True)}
    last = stored[-1] if stored else find(tx, ids[-1])
    assert last is not None
    return last, as_sent


def new_drafts(
    stored: Sequence[Message], raw: Sequence[Mapping[str, Any]]
) -> tuple[list[MessageDraft], list[MessageDraft]]:
    """Return the messages of a client's list as they are stored, and those of them that come after the last ones.

    A program that keeps its own copy appends a reply that its session ends with already, as its turn was stored.
    """
    sent = Transcript.read(raw)
    drafts = [message.draft for message in sent.messages]
    if sent.prefill:
        drafts.append(MessageDraft("assistant", sent.prefill))
    keys = list(map(message_key, drafts))
    line = list(map(message_key, stored))
    answers = (place for place, key in enumerate(keys, 1) if key.role == "assistant")
    stored_ends = (place for place in answers if ends_with(line, len(line), keys[:place]))
    return drafts, drafts[max(stored_ends, default=0) :]


def _compared(tx: Transaction, row: SessionRow, client: TranscriptRequest) -> int | None:
    """Return with how many of the session's last messages the sent ones are compared; None: with all."""
    if client.previous_reply_id is not None:
        reply = find(tx, client.previous_reply_id)
        return row.message_count - reply.position if reply is not None else 0
    return LATEST if len(client.conversation.messages) == 1 and not client.is_complete else None


def active_keys(tx: Transaction, row: SessionRow, last: int | None = None) -> dict[int, MessageKey]:
    """Return the active messages by their ids, in order, as they are compared: all, or the `last` ones."""
    of_row = MessageRow.session_id == row.id
    if last is not None:
        of_row = and_(of_row, MessageRow.position > row.message_count - last)
    return _active_lines(tx, of_row).get(row.id, {})


def _active_lines(tx: Transaction, condition: ColumnElement[bool]) -> dict[int, dict[int, MessageKey]]:
    """Return the active messages of which a condition is true, by their sessions' row ids; see `active_keys`."""
    query = (
        select(MessageRow.session_id, MessageRow.id, *_COMPARED, MessageRow.erased_at, TurnRow.finish_reason)
        .outerjoin(TurnRow, TurnRow.reply_message_id == MessageRow.id)
        .where(condition, MessageRow.branch == 0)
        .order_by(MessageRow.position)
    )
    lines = defaultdict[int, dict[int, MessageKey]](dict)
    for stored in tx.execute(query):
        lines[stored.session_id][stored.id] = message_key(
            stored,
            is_reply=stored.finish_reason is not None,
            cut=stored.finish_reason == INTERRUPTED,
            erased=stored.erased_at is not None,
        )
    return lines
