"""Looking for the next job: what is due, whose it is, and what may have been left behind.

Read only, by statements that are made once, and by no more of them than it takes: every worker looks again and again,
mostly to find nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, func, or_, select

from memory.ops import logs
from models import JobRow, OwnerRow, SessionRow, Transaction

CLOCK_SECONDS = 60.0  # how far the clocks of several machines may differ; what was asked for later than that is due
OTHERS = 4  # jobs looked at beside each other: other workers may be first at some

_J, _O, _S = JobRow.__table__.c, OwnerRow.__table__.c, SessionRow.__table__.c
_OF_KINDS = _J.kind.in_(bindparam("kinds", expanding=True))
_PENDING, _TAKEN = (_OF_KINDS, _J.state == "pending"), (_OF_KINDS, _J.state == "running")
_OWNER = func.coalesce(_J.owner_id, 0)
# Its time has come, or it was asked for in the future: then the clock was put back, and nobody knows.
DUE = or_(_J.run_at <= bindparam("now"), _J.updated_at > bindparam("future"))
_STANDING = select(
    select(func.min(_J.run_at)).where(*_PENDING).scalar_subquery(),
    select(func.count()).where(*_TAKEN).scalar_subquery(),
)
_RUNNING = select(_J.id).where(*_TAKEN)
_DUE = select(_J.id, _OWNER).where(*_PENDING, DUE).order_by(_J.run_at, _J.id).limit(OTHERS)
_NEXT = _DUE
_NEXT_OF_OTHERS = _DUE.where(_OWNER.not_in(bindparam("served", expanding=True)))
_WHOSE = (
    select(_O.kind, _O.tenant, _O.name, _S.tenant, _S.public_id)
    .select_from(JobRow.__table__)
    .outerjoin(OwnerRow.__table__, _O.id == _J.owner_id)
    .outerjoin(SessionRow.__table__, _S.id == _J.session_id)
    .where(_J.id == bindparam("job"))
)


@dataclass(frozen=True)
class Seen:
    """What a look found: the first few jobs that are `due`, with their owners (0: nobody's); those that others are
    doing, or `left` when their process ended; and when the `soonest` of all that wait is due (None: none waits)."""

    due: list[tuple[int, int]]
    left: list[int]
    soonest: datetime | None

    def pause(self, now: datetime, most: float) -> float:
        """Seconds until there may be something to do, at `most` so many."""
        return most if self.soonest is None else min(most, max(0.001, (self.soonest - now).total_seconds()))


def due_by(now: datetime) -> dict[str, datetime]:
    """What DUE compares with."""
    return {"now": now, "future": now + timedelta(seconds=CLOCK_SECONDS)}


def look(
    tx: Transaction, kinds: Sequence[str], now: datetime, *, served: Collection[int] = (), own: Collection[int] = ()
) -> Seen:
    """Look at the jobs of these kinds.  The due ones are of owners who were not `served`, if there is one; `own` are
    those that this process is doing."""
    asked: dict[str, Any] = {"kinds": kinds}
    soonest, running = tx.execute(_STANDING, asked).one()
    left = [job for job in tx.scalars(_RUNNING, asked) if job not in own] if running > len(own) else []
    if soonest is None:
        return Seen([], left, None)
    asked |= due_by(now)
    found = tx.execute(_NEXT_OF_OTHERS, {**asked, "served": list(served)}).all() if served else []
    return Seen([(job, owner) for job, owner in found or tx.execute(_NEXT, asked)], left, soonest)


def whose(tx: Transaction, job_id: int) -> dict[str, Any]:
    """Whose job it is, as the log tells it."""
    kind, tenant, name, session_tenant, session = tx.execute(_WHOSE, {"job": job_id}).one()
    return {
        "owner": logs.Private(kind, tenant, name) if kind is not None else None,
        "session": logs.Private("session", session_tenant, session) if session is not None else None,
    }
