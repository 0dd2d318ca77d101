"""`recap jobs`: the work that follows a reply, for whoever operates the service.  It works beside a running server."""

import signal
import sys
import time

import click

from api.current_request import current_engine
from cli import NUMBER, Commands
from memory import job_listing
from memory.engine import Engine
from memory.job_listing import JobInfo
from memory.ops.metrics import FOLDER
from models.jobs import Job
from schemas.jobs import STATES

LISTED_MAX = 1_000_000
STOP_CALLS = 2  # of the mini model that a job may still make as its process ends: an update and its repair

jobs = Commands("jobs", help="The work that follows a reply: summaries, indexing, erasing.")


@jobs.command("work")
@click.option("--once", is_flag=True, help="Do what is due and end. Exits with 1 when something failed.")
def work(once: bool) -> None:
    """Do jobs, beside the web workers or with JOBS=worker in their place, until SIGTERM or Ctrl-C.

    Then running jobs are finished and no other is begun. Several may run at once: no job is done by two.
    """
    engine = current_engine()
    engine.data_lock.share()
    report = engine.health.check(begins_jobs=True)
    if not report.ready:
        raise click.ClickException(
            f"Nothing can be done. Database: {report.database}. Data directory: {report.data_dir}."
        )
    if once:
        sys.exit(_work_once(engine))
    _work_until_signal(engine)


def _work_once(engine: Engine) -> int:
    failures: list[str] = []

    def tell(job: Job, error: str | None) -> None:
        click.echo(f"job {job.id} ({job.kind}): {error or 'done'}")
        failures.extend([error] if error else [])

    count = engine.job_queue.run_due(each=tell)
    engine.stop()
    click.echo(f"{count} {_jobs(count)} ran, {len(failures)} of them failed.")
    return 1 if failures else 0


def _work_until_signal(engine: Engine) -> None:
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.append(number))
    engine.metrics.share(engine.settings.data_dir / FOLDER)
    engine.start(worker=True)
    click.echo("Doing jobs; SIGTERM or Ctrl-C ends it.", err=True)
    while not signals:
        time.sleep(0.2)  # a signal that came to another thread is handled when this one wakes
    click.echo("Finishing the jobs that run.", err=True)
    engine.stop(engine.settings.model_timeout * STOP_CALLS)


@jobs.command("list")
@click.option("--state", type=click.Choice(STATES), help="Only those. Without it, all.")
def show(state: str | None) -> None:
    """List jobs that are not done, of all owners, with what failed and why."""
    listed = job_listing.page(current_engine(), None, state, limit=LISTED_MAX).items
    for info in listed:
        click.echo(_line(info))
    click.echo(f"{len(listed)} {_jobs(len(listed))}.", err=True)


@jobs.command("retry")
@click.argument("job_id", metavar="[ID]", type=NUMBER, required=False)
@click.option("--all", "every", is_flag=True, help="Every job that failed.")
def retry(job_id: int | None, every: bool) -> None:
    """Try a job again now that failed or waits, or every one that failed; whoever does jobs then takes it."""
    if every == (job_id is not None):
        raise click.UsageError("Name one job by its ID, or all with --all.")
    if job_id is None:
        count = job_listing.retry_failed(current_engine())
        click.echo(f"{count} {_jobs(count)} made due.")
        return
    click.echo(_line(job_listing.retry(current_engine(), None, job_id)))


def _line(info: JobInfo) -> str:
    session = f"  session {info.session_id}" if info.session_id is not None else ""
    error = f"\n    {info.error}" if info.error else ""
    place = f"  position {info.position}" if info.position is not None else ""
    due = f"due {info.run_at:%Y-%m-%d %H:%M:%S} UTC  {info.age} seconds old  tried {info.attempts} times"
    return f"{info.id}  {info.kind}  {info.state}{place}  {due}{session}{error}"


def _jobs(count: int) -> str:
    return "job" if count == 1 else "jobs"
