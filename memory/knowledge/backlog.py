"""Backlog of a person: sessions with messages that no summary covers, such as imported ones.

Their summaries may take many calls that cost money, so they are made only when the person asks for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Row, delete, func, select

from memory.access.owners import get_user
from memory.engine import Engine
from memory.llm.mini_model import BATCH_TOKENS
from memory.sessions.messages import VISIBLE
from models import JobRow, MessageRow, OwnerRow, SessionRow, Transaction
from models.jobs import JobRequest
from models.owners import Caller

CALL_TOKENS = 1_000  # of a call beside the messages: the prompt, its schema, the summary so far and the answer


@dataclass(frozen=True)
class Backlog:
    """Counts of a person's sessions with messages that no summary covers.

    tokens: about what the mini model's calls for them take. waiting: with a job that waits or runs. failed: whose job
    has failed.
    """

    sessions: int
    tokens: int
    waiting: int
    failed: int


def get(engine: Engine, caller: Caller) -> Backlog:
    """Return the backlog of the caller's user. Raises NotFound."""
    with engine.database.read() as tx:
        return _backlog(tx, get_user(tx, caller))


def start(engine: Engine, caller: Caller) -> Backlog:
    """Enqueue a summary of each of these sessions, the newest first, also where it was cancelled or has failed.

    With DAILY_TOKENS it takes as many as the rest of the day's tokens pays.  Raises NotFound, and LimitReached if that
    is none.
    """
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        engine.budgets.check(tx, owner.id)
        remaining = engine.budgets.remaining(tx, owner.id)
        requests: list[JobRequest] = []
        for session_id, messages in _unsummarised(tx, owner):
            remaining -= _cost(messages)
            if remaining < 0 and requests:
                break
            requests.append(JobRequest("summary", session_id, owner.tenant, owner.id, session_id, force=True))
        engine.job_queue.enqueue(tx, *requests)
        return _backlog(tx, owner)


def cancel(engine: Engine, caller: Caller) -> Backlog:
    """Remove the updates that have not begun.  A session that goes on is summarised as usual.  Raises NotFound."""
    with engine.database.write() as tx:
        owner = get_user(tx, caller)
        tx.execute(delete(JobRow).where(*_jobs(owner), JobRow.state != "running"))
        return _backlog(tx, owner)


def _unsummarised(tx: Transaction, owner: OwnerRow) -> Sequence[Row[int, int]]:
    """Return the ids of sessions with messages that no summary covers, and their tokens; the newest first."""
    beyond = MessageRow.position > SessionRow.summary_through
    query = (
        select(SessionRow.id, func.sum(MessageRow.tokens))
        .join(MessageRow, MessageRow.session_id == SessionRow.id)
        .where(SessionRow.owner_id == owner.id, beyond, *VISIBLE)
        .group_by(SessionRow.id)
        .order_by(SessionRow.updated_at.desc())
    )
    return tx.execute(query).all()


def _cost(messages: int) -> int:
    """Estimate how many tokens it takes to summarise so many tokens of messages."""
    calls = -(-messages // BATCH_TOKENS)
    return messages + calls * CALL_TOKENS


def _jobs(owner: OwnerRow) -> tuple[ColumnElement[bool], ...]:
    return JobRow.kind == "summary", JobRow.owner_id == owner.id


def _backlog(tx: Transaction, owner: OwnerRow) -> Backlog:
    costs = [_cost(messages) for _, messages in _unsummarised(tx, owner)]
    states = select(JobRow.state, func.count()).where(*_jobs(owner)).group_by(JobRow.state)
    jobs: dict[str, int] = dict(tx.execute(states).all())
    failed = jobs.pop("failed", 0)
    return Backlog(len(costs), sum(costs), waiting=sum(jobs.values()), failed=failed)
