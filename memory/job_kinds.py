"""Kinds of jobs: the function that runs each, and how many of a kind run at once."""

from __future__ import annotations

from functools import partial

from memory.engine import Engine
from memory.erasing.erasing import vacuum
from memory.erasing.retention import expire_sessions

SUMMARY_WORKERS = 4  # each waits for the mini model, and none holds up another person's summary

WEBHOOK_WORKERS = 4  # each waits for a receiver


def register_jobs(engine: Engine) -> None:
    """Register the handler of every kind of job."""
    queue = engine.job_queue
    queue.register("index", engine.indexing.index_batch)
    queue.register("unindex", engine.indexing.remove_erased)
    queue.register("scrub", partial(vacuum, engine))
    queue.register("expire", engine.items.expire)
    queue.register("retention", partial(expire_sessions, engine))
    queue.register("summary", engine.summary_job.run, SUMMARY_WORKERS)
    queue.register("fact_ends", engine.rules.close_ended)
    queue.register("profile", engine.profiles.run)
    queue.register("overview", engine.overviews.run)
    queue.register("feedback", engine.feedback.run)
    queue.register("consolidation", engine.consolidation.run)
    queue.register("webhook", engine.webhooks.run, WEBHOOK_WORKERS)
    queue.register("events", engine.events.expire)
    queue.watch(engine.webhooks.dispatch)
