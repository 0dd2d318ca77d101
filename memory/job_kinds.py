"""Kinds of jobs: the function that runs each, and how many of a kind run at once."""

from functools import partial

from memory import feedback
from memory.engine import Engine
from memory.erasing.erasing import vacuum
from memory.erasing.retention import expire_sessions
from memory.knowledge import consolidation, fact_writes, overview, profile, summary_job
from memory.recall import indexing

SUMMARY_WORKERS = 4  # each waits for the mini model for another person

WEBHOOK_WORKERS = 4  # each waits for a receiver


def register_jobs(engine: Engine) -> None:
    """Register the handler of every kind of job."""
    queue = engine.job_queue
    queue.register("index", partial(indexing.run, engine))
    queue.register("unindex", partial(indexing.remove_erased, engine))
    queue.register("scrub", partial(vacuum, engine))
    queue.register("expire", engine.items.expire)
    queue.register("retention", partial(expire_sessions, engine))
    queue.register("summary", partial(summary_job.run, engine), SUMMARY_WORKERS)
    queue.register("fact_ends", partial(fact_writes.close_ended, engine))
    queue.register("profile", partial(profile.run, engine))
    queue.register("overview", partial(overview.run, engine))
    queue.register("feedback", partial(feedback.run, engine))
    queue.register("consolidation", partial(consolidation.run, engine))
    queue.register("webhook", engine.deliveries.run, WEBHOOK_WORKERS)
    queue.register("events", engine.events.expire)
    queue.before_poll(engine.deliveries.dispatch)
