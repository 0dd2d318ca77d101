"""Health: what serving needs, looked up without changing anything."""

import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from memory.ops import logs
from memory.ops.metrics import Metrics
from models import Database, JobRow, Transaction, WebhookRow
from models.database import clock_ahead, is_read_only
from models.database_faults import DAMAGED, DatabaseFault, fault_of, in_short
from models.schema import revision_of, schema_differs
from search_index import Embedder

log = logging.getLogger(__name__)

FREE_BYTES_MIN = 1 << 20  # with less free on the disk, the database's log can't grow by a large message
_RETRIED = select(func.count()).where(JobRow.state == "pending", JobRow.error.is_not(None))
_DISABLED = select(func.count()).where(WebhookRow.problem.is_not(None))
READ_ONLY = "takes no writes: it is a replica, or set to read-only. What is stored can be read; no restart is needed"
CLOCK_SECONDS = 5.0  # by which a node's clock may be wrong; leases last twice as long (see `memory.leases`)
LATE = timedelta(seconds=60)  # a living worker takes a due job sooner, unless it is busy with another


@dataclass(frozen=True)
class HealthReport:
    """State of the database and of the data directory: `ok`, or what is wrong.

    jobs: the number in each state, and `retried`, of the pending ones that failed and wait for another try.
    jobs_late: why due jobs are not run. embeddings: why there are none. webhooks: how many are disabled because they
    failed. Turns are taken in spite of all three.
    migrated: False if the database needs a command before any process can use it.
    """

    database: str
    data_dir: str
    jobs: dict[str, int]
    jobs_late: str | None
    embeddings: str | None
    webhooks: str | None
    migrated: bool

    @property
    def ready(self) -> bool:
        return self.database == self.data_dir == "ok"


class Health:
    """Reports the health and the metrics of this process and its database."""

    def __init__(
        self,
        database: Database,
        data_dir: Path,
        embedder: Embedder | None,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._database, self._data_dir, self._embedder = database, data_dir, embedder
        self._metrics, self._now = metrics, now
        self._late = self._clock_differs = False  # whether the log says so already

    def check(self, *, begins_jobs: bool = False) -> HealthReport:
        """Look at what serving needs. begins_jobs: this process begins to run jobs now, so none is late any more."""
        jobs: dict[str, int] = {}
        late = None
        disabled = 0
        migrated = True
        try:
            with self._database.read() as tx:
                differs = schema_differs(revision_of(tx.connection()))
                database = differs or (READ_ONLY if is_read_only(tx) else "ok")
                migrated = differs is None
                for (_, state), count in _count_jobs(tx).items():
                    jobs[state] = jobs.get(state, 0) + count
                if retried := tx.scalar(_RETRIED):
                    jobs["retried"] = retried
                late = None if begins_jobs else self._why_late(tx)
                disabled = tx.scalar(_DISABLED) or 0
                self._compare_clocks(tx)
        except SQLAlchemyError as error:
            if migrated:
                log.error("the database can't be read", extra=logs.fields(error=logs.safe_message(error)))
                database = in_short(error)
                migrated = fault_of(error) is not DatabaseFault.MISSING
        if database == "ok" and self._database.damaged():
            database = DAMAGED
        if late is not None and not self._late:
            log.warning(late)
        self._late = late is not None
        failing = self._embedder.failure if self._embedder is not None else None
        webhooks = f"{disabled} webhooks were disabled: GET /api/webhooks says why" if disabled else None
        return HealthReport(database, _check_folder(self._data_dir), jobs, late, failing, webhooks, migrated)

    def metrics_text(self, version: str) -> bytes:
        """Return the metrics in Prometheus' text format."""
        jobs: dict[tuple[str, str], int] | None = None
        try:
            with self._database.read() as tx:
                jobs = _count_jobs(tx)
        except SQLAlchemyError as error:
            log.error("the jobs can't be counted", extra=logs.fields(error=logs.safe_message(error)))
        return self._metrics.text(version, jobs)

    def _compare_clocks(self, tx: Transaction) -> None:
        """Log when this node's clock differs from that of the database's server, as far as other nodes notice."""
        ahead = clock_ahead(tx, self._now())
        differs = abs(ahead) > CLOCK_SECONDS
        if differs and not self._clock_differs:
            log.warning(
                "this node's clock differs from the database server's by %.0f seconds: set it by NTP, or nodes take "
                "each other's turns and jobs for abandoned",
                ahead,
            )
        self._clock_differs = differs

    def _why_late(self, tx: Transaction) -> str | None:
        """Return the problem if a job has been due for long while none is running."""
        due = tx.scalar(select(func.min(JobRow.run_at)).where(JobRow.state == "pending"))
        running = tx.scalar(select(JobRow.id).where(JobRow.state == "running").limit(1))
        if due is None or running is not None or (late := self._now() - due) <= LATE:
            return None
        return (
            f"Jobs have been due for {late.total_seconds() / 60:.0f} minutes and nobody runs them: summaries are not "
            "updated and new messages not indexed, but none is lost and all are searched. With JOBS=worker start "
            "`recap jobs work`; with JOBS=web the log of the web workers says why they do not run them."
        )


def _count_jobs(tx: Transaction) -> dict[tuple[str, str], int]:
    """Count the jobs of all owners by kind and state."""
    by_kind = select(JobRow.kind, JobRow.state, func.count()).group_by(JobRow.kind, JobRow.state)
    return {(kind, state): count for kind, state, count in tx.execute(by_kind)}


def _check_folder(data_dir: Path) -> str:
    """Return `ok`, or why nothing can be stored in the data directory and what to do."""
    try:
        if not os.access(data_dir, os.W_OK):
            return f"{data_dir} can't be written: nothing is stored. Make it writable; no restart is needed"
        if shutil.disk_usage(data_dir).free < FREE_BYTES_MIN:
            return f"the disk of {data_dir} is full: nothing is stored. Free some space; no restart is needed"
    except OSError as error:
        return f"{data_dir} can't be looked at: {error.strerror}"
    return "ok"
