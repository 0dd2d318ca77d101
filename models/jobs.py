"""Store jobs and the order in which tenants are served."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId

ATTEMPTS = 6  # of a job before it counts as failed; with the pauses between they outlast eight minutes


class JobRow(Base):
    """Job: background work, one row for each `kind` and `key`. The row of a finished job is deleted.

    `state` is `pending`, `running` or `failed`.  `revision` counts the requests that came while the job ran, so that
    none is lost when it ends.  A job that outlives its owner has no `owner_id`.  `round` is its place in the tenant's
    queue (see `memory.job_statements`).
    """

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("kind", "key"),
        Index("ix_jobs_due", "kind", "state", "run_at"),
        Index("ix_jobs_queue", "kind", "state", "tenant", "round", "run_at", "id", "updated_at"),
        Index("ix_jobs_owner_kind", "owner_id", "kind", "round"),
        Index("ix_jobs_tenant", "tenant", "id"),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    key: Mapped[str] = mapped_column(String(64))
    tenant: Mapped[str] = mapped_column(String(64))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    session_id: Mapped[int | None] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"), index=True)
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    state: Mapped[str] = mapped_column(String(8))
    revision: Mapped[int] = mapped_column(default=1)
    attempts: Mapped[int] = mapped_column(default=0)
    round: Mapped[int] = mapped_column(default=0)
    run_at: Mapped[datetime]
    lease_token: Mapped[str | None] = mapped_column(String(64))
    lease_until: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class QueueRow(Base):
    """Queue of a tenant's jobs of one kind: the highest `round` that one was taken of, and when that was.

    `served` counts the jobs of that kind taken of all tenants, up to this tenant's last one; a clock may be put back.
    """

    __tablename__ = "queues"

    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64), primary_key=True)
    served: Mapped[int] = mapped_column(BigInteger)
    round: Mapped[int]


class Job(NamedTuple):
    """Claimed job, with the error of its last try, and the names of its owner and session for the log."""

    id: int
    kind: str
    key: str
    tenant: str
    owner_id: int | None
    session_id: int | None
    payload: dict[str, Any] | None
    attempts: int
    revision: int
    round: int
    lease_token: str
    error: str | None
    owner_kind: str | None = None
    owner_name: str | None = None
    session_name: str | None = None

    @property
    def is_last_try(self) -> bool:
        """Return whether the job counts as failed if it fails now."""
        return self.attempts >= ATTEMPTS


@dataclass(frozen=True)
class JobRequest:
    """Work to ask for: one job for each `kind` and `key`, due in `delay` seconds.

    If the job is pending already, the earlier time holds; with `debounce` the new one does.  A job that runs
    will run again then.  A job that failed keeps the pause before its next try, unless the request has `force`.  A
    job that outlives its owner has none.
    """

    kind: str
    key: str | int
    tenant: str
    owner_id: int | None = None
    session_id: int | None = None
    delay: float = 0.0
    debounce: bool = False
    force: bool = False
    payload: Mapping[str, Any] | None = None
