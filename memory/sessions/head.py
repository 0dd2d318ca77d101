"""The fold: when a prompt's tail gives way to the summary.

A prompt shows [head: system, summary, facts][tail: every message since that summary, word for word].  Between folds
the head does not change and the tail only grows at its end, so consecutive prompts share a long identical prefix,
which providers bill at a fraction.  When the tail has outgrown its limits, the head advances to the newest stored
summary and the tail begins after what that covers.

Guarantee: no message is ever in neither the summary nor the tail.  While no newer summary is there (the mini model
is slow, or down), the tail stays as long as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, func, select

from config import Settings
from memory.domain import Message
from memory.sessions.messages import SAID
from models import JobRow, MessageRow, SessionRow, Transaction

TURN = 2  # messages: what is said, and its answer

_M, _J = MessageRow.__table__.c, JobRow.__table__.c
_OF_SESSION = _M.session_id == bindparam("session")
_TOKENS = select(func.sum(_M.tokens)).where(_OF_SESSION, _M.branch == 0, _M.position <= bindparam("last"))
_LAST_QUESTION = select(func.max(_M.position)).where(
    _OF_SESSION, *SAID, _M.role == "user", _M.position.between(bindparam("first"), bindparam("last"))
)
_BEING_MADE = select(_J.id).where(_J.kind == "summary", _J.key == bindparam("session"), _J.state == "running")


def outgrown(row: SessionRow, settings: Settings, exchange: Sequence[Message] = ()) -> bool:
    """Whether the session's tail is longer than the prompt should carry word for word; its last messages, the
    `exchange` that is to be answered and stored already, are no part of it."""
    messages = row.message_count - row.head_through - len(exchange)
    size = row.tokens - row.head_tokens - sum(message.tokens for message in exchange)
    return messages > settings.tail_messages_max or size > settings.tail_tokens_max


def pressing(tx: Transaction, row: SessionRow, settings: Settings) -> bool:
    """Whether the session's summary is wanted now, and can't wait for a pause in the talk: another turn like those of
    the tail makes it too long, and no summary stands in for any of it, nor is one being made.

    Asked a turn ahead, the summary is there when the fold is due.  That turn is left out of it at no loss: a fold keeps
    the last messages anyway.
    """
    if row.summary_through > row.head_through:  # the next fold makes room already
        full = row.message_count - row.summary_through + TURN > settings.tail_messages_max
    else:
        messages, size = row.message_count - row.head_through, row.tokens - row.head_tokens
        another = size * TURN / max(messages, TURN)
        full = messages + TURN > settings.tail_messages_max or size + another > settings.tail_tokens_max
    return full and tx.scalar(_BEING_MADE, {"session": str(row.id)}) is None


def fold(
    tx: Transaction, row: SessionRow, settings: Settings, exchange: Sequence[Message], *, crowded: bool = False
) -> bool:
    """At the start of a turn on the messages `exchange`: advance the head if a summary can stand in for the tail's
    start, and the tail has outgrown its limits or is `crowded`: it does not fit the prompt."""
    if not (crowded or outgrown(row, settings, exchange)):
        return False
    before = exchange[0].position - 1
    if _through(tx, row, settings, before) <= row.head_through:
        return False
    show_newest(tx, row, settings, before)
    return True


def show_newest(tx: Transaction, row: SessionRow, settings: Settings, before: int | None = None) -> None:
    """Let the head show the newest summary, and facts chosen anew.

    The last TAIL_MESSAGES_MIN messages (of the first `before`, or of all) stay in the tail even if the summary covers
    them, so that a fold never takes the words just spoken out of sight; and the tail begins with what the person said,
    so that no answer stands there without its question, and no tool's result without its call.
    """
    row.head_through = _through(tx, row, settings, row.message_count if before is None else before)
    row.head_version = row.summary_version
    row.head_tokens = tx.scalar(_TOKENS, {"session": row.id, "last": row.head_through}) or 0
    row.head_facts = None


def _through(tx: Transaction, row: SessionRow, settings: Settings, before: int) -> int:
    """The last position that the newest summary may stand in for."""
    through = min(row.summary_through, before - settings.tail_messages_min)
    if through <= 0:
        return 0
    onward = row.head_through if through > row.head_through else 0  # a version brought back may cover less
    begins = tx.scalar(_LAST_QUESTION, {"session": row.id, "first": onward + 2, "last": through + 1})
    # Without such a place, as within one long exchange, anything is better than a tail that never ends.
    return int(begins or through + 1) - 1
