"""Hiding: messages that a person takes out of a session's prompts, and puts back.

A hidden message stays stored: it is listed as hidden, searched, exported, and recalled in other sessions.  In its own
session no prompt and no excerpt shows it, no later update of the summary reads it, and `full_history_tokens` does not
count it.  A summary or a fact that was made from it before stays.

Invariants:
- The messages that prompts show are a sequence that models accept.  An answer is hidden with its question, and the call
  of a tool with its results, so the recent messages begin with a message of the person (test_hiding).
- A message that is shown again is among the recent messages or in the summary.  If an update has skipped it, the
  summary goes back to the version before, and the next update reads the message (test_hiding).
- Facts that the person has forgotten since do not come back: no facts are taken from messages that were skipped
  (test_hiding).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, null, or_, select, update

from memory.access.owners import get_session
from memory.engine import Engine
from memory.errors import InvalidRequest, NotFound
from memory.knowledge.summaries import bring_back, find_version
from memory.sessions.compaction import use_newest_summary
from memory.sessions.messages import CURRENT, covered_position
from memory.sessions.titles import title_taken_anew
from models import MessageRow, SessionRow, SummaryRow, Transaction, retry_on_conflict
from models.messages import Message
from models.owners import Caller


@dataclass(frozen=True)
class Hidden:
    """Positions that a call changed: those it has `hidden`, and those it has `shown` again."""

    hidden: Sequence[int]
    shown: Sequence[int]


Line = Sequence[Row[int, int, str, int, datetime | None]]  # a session's messages, by the columns of _LINE
_M = MessageRow.__table__.c
_LINE = (
    select(_M.id, _M.position, _M.role, _M.tokens, _M.hidden_at)
    .where(_M.session_id == bindparam("session"), *CURRENT)
    .order_by(_M.position)
)
_MARK = (
    update(MessageRow.__table__)
    .where(_M.session_id == bindparam("session"), _M.branch == 0, _M.position == bindparam("at"))
    .values(hidden_at=bindparam("hidden"))
)


def hide_messages(
    engine: Engine, caller: Caller, session_id: str, *, keep: bool, tokens: int | None, **named: Any
) -> Hidden:
    """Hide the messages that are `named` (see `_positions`); with `keep` all others.

    tokens: hide the recent messages before the newest ones that have so many.

    Waits for a turn in the session.  Raises NotFound, also for ids that the session does not have, InvalidRequest for
    such positions, and Conflict when the turn takes too long or too many requests wait.
    """

    def chosen(row: SessionRow, line: Line, positions: set[int]) -> set[int]:
        if tokens is not None:
            room = tokens
            recent = [message for message in line if message.position > row.head_through]
            recent = [message for message in recent if message.hidden_at is None]
            while recent and room >= recent[-1].tokens:
                room -= recent.pop().tokens
            return _hidden(line).keys() | {message.position for message in recent}
        return _hidden(line).keys() | {message.position for message in line if (message.position in positions) != keep}

    return _change(engine, caller, session_id, named, chosen)


def show_messages(engine: Engine, caller: Caller, session_id: str, **named: Any) -> Hidden:
    """Show the hidden messages that are `named` again (see `_positions`), or if none are all of them.

    Waits, and raises, as `hide_messages` does.
    """

    def chosen(_: SessionRow, line: Line, positions: set[int]) -> set[int]:
        return _hidden(line).keys() - positions if named else set()

    return _change(engine, caller, session_id, named, chosen)


@retry_on_conflict
def _change(
    engine: Engine,
    caller: Caller,
    session_id: str,
    named: Mapping[str, Any],
    chosen: Callable[[SessionRow, Line, set[int]], set[int]],
) -> Hidden:
    """Hide the `chosen` messages, with those that can't be shown without them, and show all others."""
    busy = "Nothing was changed; stop the reply, or try this again later."
    with engine.leases.free_session(lambda tx: get_session(tx, caller, session_id), busy) as (tx, row):
        line = tx.execute(_LINE, {"session": row.id}).all()
        before = _hidden(line)
        after = _in_sequence(line, chosen(row, line, _positions(row, line, **named)))
        changed = Hidden(sorted(after - before.keys()), sorted(before.keys() - after))
        marks = dict.fromkeys(changed.hidden, engine.now()) | dict.fromkeys(changed.shown)
        if marks:
            tx.execute(_MARK, [{"session": row.id, "at": at, "hidden": mark} for at, mark in marks.items()])
        since = min((before[at] for at in changed.shown), default=None)
        if row.summary_version and follow_shown(engine, tx, row, changed.shown, since):
            engine.sessions.enqueue_follow_ups(tx, row)
        return changed


def follow_shown(
    engine: Engine, tx: Transaction, row: SessionRow, shown: Sequence[int], since: datetime | None
) -> bool:
    """Let the summary cover the messages at these positions, which are `shown` again after being hidden `since`.

    The session has a summary.  Returns whether it went back to an earlier version, so that an update reads them.
    """
    newest = find_version(tx, row, row.summary_version)
    assert newest is not None
    if since is None or newest.created_at < since or newest.through < shown[0]:
        row.summary_through = covered_position(tx, row, newest.through)
        return False
    # A person's summary stays theirs.
    fits = or_(SummaryRow.through < shown[0], SummaryRow.author == "person")
    versions = select(SummaryRow).where(SummaryRow.session_id == row.id, SummaryRow.branch == 0, fits)
    back = tx.scalar(versions.order_by(SummaryRow.version.desc()).limit(1))
    bring_back(engine, tx, row, back, "rollback", before=shown[0])
    use_newest_summary(tx, row, engine.settings)
    return True


def _positions(row: SessionRow, line: Line, *, first: int = 0, last: int = 0, ids: Collection[int] = ()) -> set[int]:
    """Return the positions of messages: of those from `first` to `last`, counted from the end below 0, or of `ids`."""
    by_id = {message.id: message.position for message in line}
    if unknown := next((id for id in ids if id not in by_id), None):
        text = f"There is no message {unknown} in session {row.public_id!r}. Nothing was changed."
        raise NotFound("message_not_found", text, param="ids")
    if not first:
        return {by_id[id] for id in ids}
    begin, end = (row.message_count + 1 + at if at < 0 else at for at in (first, last))
    if not 1 <= begin <= end <= row.message_count:
        raise InvalidRequest(
            "no_such_position",
            f"Session {row.public_id!r} has {row.message_count:,} messages, so no span from position {first:,} "
            f"to {last:,}. Nothing was changed.",
            param="last",
        )
    return set(range(begin, end + 1))


def _hidden(line: Line) -> dict[int, datetime]:
    return {message.position: message.hidden_at for message in line if message.hidden_at is not None}


def _in_sequence(line: Line, chosen: set[int]) -> set[int]:
    """Return the `chosen` positions, with those that can't be shown while the chosen ones are hidden."""
    hidden = set(chosen)
    unasked = False  # is the question of the next answers hidden?
    calls: list[int] = []  # the latest answer, with the results of its tools that follow it
    for message in line:
        if message.role == "user":
            unasked = message.position in hidden
            calls = []
        elif message.role == "assistant" or (message.role == "tool" and (calls or unasked)):
            calls = [message.position] if message.role == "assistant" else [*calls, message.position]
            if unasked or not hidden.isdisjoint(calls):
                hidden.update(calls)
    return hidden


def accept_messages(engine: Engine, tx: Transaction, row: SessionRow, answered: Sequence[Message]) -> None:
    """Take the marks from refused messages that a model has answered; the summary reads them again."""
    marked = [message for message in answered if message.refused is not None]
    with title_taken_anew(tx, row):
        ids = [message.id for message in marked]
        tx.execute(update(MessageRow).where(MessageRow.id.in_(ids)).values(refused=null(), indexed_in=None))
    if row.summary_version:
        since = min(message.refused.at for message in marked if message.refused is not None)
        follow_shown(engine, tx, row, [message.position for message in marked], since)
