"""`flask jobs`: the work that follows a reply, for whoever operates the service.  It works beside a running server."""

from __future__ import annotations

import os
import signal
import sys

import click

from cli.engine import Commands, engine
from memory.jobs.listing import JobInfo
from memory.ops.metrics import FOLDER
from memory.services import Services
from models import JobRow

STATES = ("pending", "running", "failed")
STOP_CALLS = 2  # of the mini model that a job may still make when its process is told to end: a digest and its repair

jobs = Commands("jobs", help="The work that follows a reply: summaries, indexing, erasing.")


@jobs.command("work")
@click.option("--once", is_flag=True, help="Do what is due and end. Exits with 1 when something failed.")
def work(once: bool) -> None:
    """Do jobs, beside the web workers or with JOBS=worker in their place, until SIGTERM or Ctrl-C.

    Then running jobs are finished and no other is begun. Several may run at once: no job is done by two.
    """
    services = engine()
    services.data_lock.share()
    checked = services.check()
    if not checked.ready:
        raise click.ClickException(f"Nothing can be done: database {checked.database}, data {checked.data_dir}.")
    if once:
        sys.exit(_work_once(services))
    _work_until_told(services)


def _work_once(services: Services) -> int:
    failures: list[str] = []

    def tell(job: JobRow, error: str | None) -> None:
        click.echo(f"job {job.id} ({job.kind}): {error or 'done'}")
        failures.extend([error] if error else [])

    try:
        count = services.outbox.run_due(each=tell)
    finally:
        services.stop()
    click.echo(f"{count} {_jobs(count)} ran, {len(failures)} of them failed.")
    return 1 if failures else 0


def _work_until_told(services: Services) -> None:
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)  # at once, whichever thread the signal comes to; a handler waits for this one to wake
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    services.metrics.share(services.settings.data_dir / FOLDER)
    services.start(worker=True)
    click.echo("Doing jobs; SIGTERM or Ctrl-C ends it.", err=True)
    os.read(told, 1)
    click.echo("Finishing the jobs that run.", err=True)
    services.stop(services.settings.model_timeout * STOP_CALLS)


@jobs.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only those. Without it, all.")
def show(state: str | None) -> None:
    """List jobs that are not done, of all owners, with what failed and why."""
    count, cursor = 0, None
    while True:
        page = engine().jobs.page(None, state, cursor=cursor)
        for info in page.items:
            click.echo(_line(info))
        count, cursor = count + len(page.items), page.next_cursor
        if cursor is None:
            break
    click.echo(f"{count} {_jobs(count)}.", err=True)


@jobs.command("retry")
@click.argument("job_id", metavar="ID", type=click.IntRange(min=1), required=False)
@click.option("--all", "every", is_flag=True, help="Every job that failed.")
def retry(job_id: int | None, every: bool) -> None:
    """Try a job again now that failed or waits, or every one that failed; whoever does jobs then takes it."""
    if every == (job_id is not None):
        raise click.UsageError("Name one job by its ID, or all with --all.")
    if job_id is None:
        count = engine().jobs.retry_failed()
        click.echo(f"{count} {_jobs(count)} made due.")
        return
    click.echo(_line(engine().jobs.retry(None, job_id)))


def _line(info: JobInfo) -> str:
    parts = [
        f"{info.id}",
        info.kind,
        info.state,
        f"due {info.run_at:%Y-%m-%d %H:%M:%S} UTC",
        f"tried {info.attempts} times",
    ]
    if info.session_id is not None:
        parts.append(f"session {info.session_id}")
    return "  ".join(parts) + (f"\n    {info.error}" if info.error else "")


def _jobs(count: int) -> str:
    return "job" if count == 1 else "jobs"
