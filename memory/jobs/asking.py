"""Asking for jobs: what a request says, and how it merges with a job of the same kind and key that exists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Boolean, bindparam, case, func, or_

from models import JobRow, Transaction, Upsert


@dataclass(frozen=True)
class JobRequest:
    """Work to ask for: one job for each `kind` and `key`, due in `delay` seconds.

    If the job waits already, the earlier time holds; with `postpone` and a delay the new one does (a debounce).  A job
    that runs will run again then.  A job that failed keeps the pause before its next try, unless the request does
    `insist`.  The payload of a job without an owner names its `tenant`.
    """

    kind: str
    key: str | int
    owner_id: int | None
    session_row_id: int | None = None
    delay: float = 0.0
    postpone: bool = False
    insist: bool = False
    payload: Mapping[str, Any] | None = None


def _merge(new: Any) -> dict[str, Any]:
    """What a request changes in a job that exists; `new` is the row that would have been inserted."""
    job = JobRow.__table__.c
    insist, postpone = bindparam("insist", type_=Boolean()), bindparam("postpone", type_=Boolean())
    running = job.state == "running"
    paused = (job.state == "pending") & (job.attempts > 0) & ~insist
    restarts = (job.state == "failed") | (~running & insist)
    earlier = case((job.run_at < new.run_at, job.run_at), else_=new.run_at)
    return {
        "state": case((restarts, "pending"), else_=job.state),
        "attempts": case((restarts, 0), else_=job.attempts),
        "revision": case((running, job.revision + 1), else_=job.revision),
        "run_at": case((paused, job.run_at), (or_(restarts, running, postpone), new.run_at), else_=earlier),
        "payload": func.coalesce(new.payload, job.payload),
        "updated_at": case((paused, job.updated_at), else_=new.updated_at),
    }


_ASK = Upsert(JobRow, ("kind", "key"), _merge)


def store(tx: Transaction, requests: Sequence[JobRequest], now: datetime) -> None:
    """Insert the jobs, or merge the requests with those that exist, in one statement."""
    rows = [
        {
            "kind": request.kind,
            "key": str(request.key),
            "owner_id": request.owner_id,
            "session_id": request.session_row_id,
            "payload": dict(request.payload) if request.payload else None,
            "state": "pending",
            "run_at": now + timedelta(seconds=request.delay),
            "created_at": now,
            "updated_at": now,
            "insist": request.insist,
            "postpone": request.postpone and request.delay > 0,
        }
        for request in requests
    ]
    _ASK.execute(tx, rows)
