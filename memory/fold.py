"""The fold: when a prompt's tail gives way to the summary.

A prompt shows [head: system, summary, facts][tail: every message since that summary, word for word].  Between folds
the head does not change and the tail only grows at its end, so consecutive prompts share a long identical prefix,
which providers bill at a fraction.  When the tail has outgrown its limits, the head advances to the newest stored
summary and the tail begins after what that covers.

Guarantee: no message is ever in neither the summary nor the tail.  While no newer summary is there (the mini model
is slow, or down), the tail stays as long as it is.
"""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from config import Settings
from models import MessageRow, SessionRow


def outgrown(row: SessionRow, settings: Settings, new: MessageRow | None = None) -> bool:
    """Whether the session's tail is longer than the prompt should carry word for word; a `new` message, which is to be
    answered and stored already, is no part of it."""
    messages, size = (row.message_count - 1, row.tokens - new.tokens) if new else (row.message_count, row.tokens)
    return messages - row.head_through > settings.tail_messages_max or size - row.head_tokens > settings.tail_tokens_max


def fold(tx: Session, row: SessionRow, settings: Settings, new: MessageRow, *, crowded: bool = False) -> bool:
    """At the start of a turn on the message `new`: advance the head if a summary can stand in for the tail's start,
    and the tail has outgrown its limits or is `crowded`: it does not fit the prompt."""
    before = row.message_count - 1
    through = min(row.summary_through, before - settings.tail_messages_min)
    if not (crowded or outgrown(row, settings, new)) or through <= row.head_through:
        return False
    show_newest(tx, row, settings, before)
    return True


def show_newest(tx: Session, row: SessionRow, settings: Settings, before: int | None = None) -> None:
    """Let the head show the newest summary, and facts chosen anew.

    The last TAIL_MESSAGES_MIN messages (of the first `before`, or of all) stay in the tail even if the summary covers
    them, so that a fold never takes the words just spoken out of sight.
    """
    before = row.message_count if before is None else before
    row.head_version = row.summary_version
    row.head_through = max(0, min(row.summary_through, before - settings.tail_messages_min))
    covered = select(func.sum(MessageRow.tokens)).where(
        MessageRow.session_id == row.id, MessageRow.position <= row.head_through
    )
    row.head_tokens = tx.scalar(covered) or 0
    row.head_facts = None
