"""The engine, wired once for a process."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from config import Settings, SettingsError
from memory.access.budgets import Budgets
from memory.access.keys import Keys
from memory.clients.arrival import Arrivals
from memory.clients.relay import Relay
from memory.domain import Message
from memory.facts.facts import Facts
from memory.jobs.listing import Backlog, Jobs
from memory.jobs.outbox import Outbox
from memory.languages import analysis_in
from memory.leases.holders import Holder
from memory.leases.leases import Leases
from memory.llm import DigestMaterial, LanguageModel, ModelRequest, complete
from memory.llm.builtin import ExtractiveModel
from memory.llm.client import Endpoint
from memory.llm.completions import OpenAIModel
from memory.llm.counted import CountedModel
from memory.llm.embeddings import OpenAIEmbedder
from memory.notice import builtin_notice
from memory.ops import logs
from memory.ops.data_lock import DataLock
from memory.ops.database_errors import DAMAGED, in_short
from memory.ops.metrics import Metrics, Standing
from memory.people.erasing import Erasing
from memory.people.imports import Imports
from memory.people.users import Users
from memory.prompts.prompts import Prompts
from memory.recall.indexing import Indexing
from memory.recall.recall import Recall
from memory.sections import Sections
from memory.sessions.sessions import Sessions
from memory.summary.answer import read
from memory.summary.digest import prompt_variables
from memory.summary.summaries import Summaries
from memory.summary.updates import Updates
from memory.turn.admission import Admission
from memory.turn.pipeline import ChatPipeline
from memory.turn.preparing import Preparing
from memory.turn.stops import Stops
from memory.turn.taken import Turns
from memory.turn.views import Views
from models import Database
from search_index import Embedder, Recipe, SearchIndex, WordLlamaEmbedder

log = logging.getLogger(__name__)

ROOM_BYTES = 1 << 20  # free on the disk; with less the database's log can't grow by a large message
STOP_SECONDS = 10.0  # for running jobs to end when a process does; those that don't are done again
SUMMARY_WORKERS = 4  # summaries updated at once: each waits on the mini model, none holds up another person's


@dataclass(frozen=True)
class Checked:
    """What was found when the parts were looked at: `ok`, or in words what is wrong; jobs by state.

    `late` says so where jobs are due and nobody does them: turns are taken all the same, so it is no reason to send
    requests elsewhere.
    """

    database: str
    data_dir: str
    jobs: dict[str, int]
    late: str | None

    @property
    def ready(self) -> bool:
        return self.database == self.data_dir == "ok"


@dataclass(frozen=True)
class Services:
    """What the HTTP layer and the commands call."""

    settings: Settings
    database: Database
    index: SearchIndex
    metrics: Metrics
    endpoint: Endpoint | None
    main: LanguageModel
    mini: LanguageModel
    leases: Leases
    stops: Stops
    outbox: Outbox
    jobs: Jobs
    sessions: Sessions
    facts: Facts
    prompts: Prompts
    recall: Recall
    summaries: Summaries
    indexing: Indexing
    pipeline: ChatPipeline
    turns: Turns
    relay: Relay
    updates: Updates
    users: Users
    erasing: Erasing
    imports: Imports
    keys: Keys
    data_lock: DataLock

    def start(self, *, worker: bool = False) -> None:
        """Start what this process does in the background, and say in the log which models answer.

        The jobs are the web workers', or with JOBS=worker those of processes that are nothing but a `worker`.  Raises
        Conflict while the database is being restored.
        """
        self.data_lock.share()
        notice = builtin_notice(self.settings)
        if notice:
            log.warning("%s", notice)
        else:
            at = self.endpoint.address if self.endpoint is not None else None
            log.info("models", extra=logs.fields(main=self.main.name, mini=self.mini.name, at=at))
        checked = self.check()
        for part, found in (("database", checked.database), ("data directory", checked.data_dir)):
            if found != "ok":
                log.error("the %s is not fit for use: %s", part, found)
        self.index.warm_up()
        self.indexing.renew()
        if worker or self.settings.jobs == "web":
            self.outbox.start({("index", "unindex", "scrub"): 1, ("summary",): SUMMARY_WORKERS})

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Let running jobs end, at most `timeout` seconds.  What is left waits in the table."""
        self.outbox.stop(timeout)
        self.stops.close()
        self.leases.close()
        if self.endpoint is not None:
            self.endpoint.close()
        self.database.close()
        self.data_lock.release()

    def figures(self, version: str) -> bytes:
        """The metrics, in Prometheus' text format."""
        jobs: dict[tuple[str, str], int] | None = None
        try:
            with self.database.read() as tx:
                jobs = dict(self.jobs.backlog(tx).counts)
        except SQLAlchemyError as error:
            log.error("the jobs can't be counted", extra=logs.fields(error=logs.told(error)))
        return self.metrics.text(Standing(version, jobs))

    def check(self) -> Checked:
        """Look at what serving needs, without changing anything."""
        backlog = Backlog({}, None)
        try:
            with self.database.read() as tx:
                backlog = self.jobs.backlog(tx)
            database = "ok"
        except SQLAlchemyError as error:
            log.error("the database can't be read", extra=logs.fields(error=logs.told(error)))
            database = in_short(error)
        if database == "ok" and self.database.damaged():
            database = DAMAGED
        return Checked(database, _room(self.settings.data_dir), backlog.by_state, backlog.warning(self.settings.jobs))


def _room(data_dir: Path) -> str:
    """`ok`, or why nothing can be stored in the data directory, and what to do."""
    try:
        if not os.access(data_dir, os.W_OK):
            return f"{data_dir} can't be written: nothing is stored. Make it writable; no restart is needed"
        if shutil.disk_usage(data_dir).free < ROOM_BYTES:
            return f"the disk of {data_dir} is full: nothing is stored. Free some space; no restart is needed"
    except OSError as error:
        return f"{data_dir} can't be looked at: {error.strerror}"
    return "ok"


def utc_now() -> datetime:
    return datetime.now(UTC)


def build(settings: Settings, engine: Engine, now: Callable[[], datetime] = utc_now) -> Services:
    """Wire the engine for `settings` on `engine`.  Nothing runs in the background until `start`."""
    database = Database(engine)
    endpoint = None if settings.uses_builtin_model else Endpoint(settings)
    index = SearchIndex(
        settings.index_dir,
        recipe=_recipe(settings),
        embedder=_embedder(settings, endpoint),
        analysis=analysis_in(settings.search_language),
    )
    metrics = Metrics()
    main, mini = _models(settings, endpoint)
    mini = CountedModel(mini, metrics.digested)
    leases = Leases(database, Holder(settings.data_dir / "processes"), now)
    stops = Stops(database, leases)
    outbox = Outbox(database, leases, now, settings.job_attempts, metrics)
    sessions = Sessions(settings, database, outbox, leases, now)
    budgets = Budgets(settings, database, now)
    facts = Facts(settings, database, now)
    prompts = Prompts(database, settings.prompts_path, now, [prompt_variables(first) for first in (True, False)])
    recall = Recall(settings, database, index, outbox)
    summaries = Summaries(settings, database, outbox, budgets, now)
    updates = Updates(settings, database, prompts, facts, leases, mini, budgets, metrics, now)
    indexing = Indexing(database, index, outbox)
    arrivals = Arrivals(settings, sessions, leases, now)
    views = Views(settings, facts, prompts, now)
    admission = Admission(settings, database, sessions, arrivals, views, prompts, leases, budgets, now)
    preparing = Preparing(settings, facts, recall, main, now)
    pipeline = ChatPipeline(
        settings, database, admission, sessions, facts, preparing, leases, stops, outbox, budgets, metrics, main, now
    )
    erasing = Erasing(settings, database, index, leases, outbox, now)
    outbox.register("index", indexing.feed)
    outbox.register("unindex", indexing.clear)
    outbox.register("scrub", erasing.scrub)
    outbox.register("summary", updates.run)
    return Services(
        settings,
        database,
        index,
        metrics,
        endpoint,
        main,
        mini,
        leases,
        stops,
        outbox,
        Jobs(database, outbox, now),
        sessions,
        facts,
        prompts,
        recall,
        summaries,
        indexing,
        pipeline,
        Turns(database, leases),
        Relay(endpoint, main.name),
        updates,
        Users(database, now),
        erasing,
        Imports(database, sessions, leases, now),
        Keys(settings.api_keys, database, now),
        DataLock(settings.data_dir),
    )


def stated_facts(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the built-in model takes for facts: a measure for other models, where nobody named the facts."""
    text, _ = complete(ExtractiveModel(), ModelRequest((), DigestMaterial(Sections(), messages, ())))
    return tuple(fact.text for fact in read(text, Sections()).facts)


def _recipe(settings: Settings) -> Recipe:
    if settings.ranking == "words":
        return Recipe()
    return Recipe(
        meaning=settings.rank_meaning if settings.embeddings != "off" else 0.0,
        neighbours=settings.rank_neighbours,
        session=settings.rank_session,
        time=settings.rank_time,
        fusion=settings.fusion,
        formula=settings.ranking,
    )


def _embedder(settings: Settings, endpoint: Endpoint | None) -> Embedder | None:
    if settings.embeddings == "off" or settings.ranking != "context":
        return None
    if settings.embeddings == "wordllama":
        return WordLlamaEmbedder()
    if endpoint is None:
        raise SettingsError("EMBEDDINGS=openai needs OPENAI_API_KEY or OPENAI_BASE_URL: the model server makes them.")
    return OpenAIEmbedder(endpoint, settings.embedding_model)


def _models(settings: Settings, endpoint: Endpoint | None) -> tuple[LanguageModel, LanguageModel]:
    """The main and the mini model, at one server."""
    if endpoint is None:
        builtin = ExtractiveModel()
        return builtin, builtin
    main = OpenAIModel(endpoint, settings.openai_model)
    return main, OpenAIModel(endpoint, settings.mini_model, "OPENAI_SUMMARY_MODEL")
