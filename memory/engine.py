"""Engine: holds the parts that are made once for a process: database, models, sessions, search index and others.

Knowledge, recall, turns, erasing, transfer, users and the handlers of jobs are functions over an engine.
"""

import logging
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import Engine as DatabaseEngine

from config import Settings, SettingsError
from memory.access.budgets import Budgets
from memory.access.keys import Keys
from memory.access.oauth import OAuth
from memory.conversation_types import ConversationTypes
from memory.deliveries import Deliveries
from memory.events import Events
from memory.jobs import JobQueue
from memory.languages import analysis_in
from memory.leases import Leases
from memory.llm.mini_model import MiniModel
from memory.llm.model_server import ModelServer
from memory.llm.registry import Model, ModelRegistry, embedder_of
from memory.ops.backup import DataLock
from memory.ops.health import Health
from memory.ops.metrics import Metrics
from memory.prompts.prompts import Prompts
from memory.sessions.sessions import Sessions
from memory.store.store import Items
from models import Database
from search_index import RANKING_PROFILES, SearchIndex
from search_index.caches import ByteLRU

log = logging.getLogger(__name__)

utc_now = partial(datetime.now, UTC)

KEPT_FACTS_BYTES = 8 << 20
STOP_SECONDS = 10.0  # for running jobs to end when a process does; those that don't are done again


class Engine:
    """Holds every part by name. Nothing runs in the background until `start`."""

    def __init__(
        self,
        settings: Settings,
        database_engine: DatabaseEngine,
        now: Callable[[], datetime] = utc_now,
        *,
        model: "Model | None" = None,
    ) -> None:
        self.settings = settings
        self.now = now
        self._starting = threading.Lock()
        self._started_in = 0  # the process in which the background work runs
        self.data_lock = DataLock(settings.data_dir)
        self.database = database = Database(database_engine)
        self.metrics = metrics = _metrics(settings.otel_exporter_otlp_endpoint)
        models_of = partial(ModelRegistry, on_fallback=metrics.count_fallback, model=model)
        models = models_of(settings)
        self.model_server = model_server = ModelServer(settings, database, now, models, models_of)
        self.embedder = embedder = embedder_of(settings, models.embedding_provider, metrics)
        profile = RANKING_PROFILES[settings.ranking]
        if settings.ranking == "context":
            profile = replace(profile, fusion=settings.fusion)
        self.index = index = SearchIndex(
            database_engine if settings.searches_database else settings.index_dir,
            profile=profile,
            embedder=embedder,
            analysis=analysis_in(settings.search_language),
        )
        self.events = events = Events(database, now)
        self.leases = leases = Leases(database, now)
        self.job_queue = job_queue = JobQueue(database, leases, now, metrics)
        self.deliveries = Deliveries(settings, database, events, job_queue, now)
        self.health = Health(database, settings.data_dir, embedder, metrics, now)
        self.keys = keys = Keys(settings.api_keys, database, now)
        self.oauth = OAuth(keys, database, now)
        self.budgets = budgets = Budgets(settings, database, now)
        self.prompts = prompts = Prompts(database, settings.prompts_path, now)
        turns_first = settings.summary_mode == "background"
        self.mini = mini = MiniModel(model_server, budgets, metrics, leases, prompts, turns_first)
        # Of what a turn's search has found: the turn waits for it.
        self.reranker = replace(mini, turns_first=False) if settings.rerank == "model" else None
        self.types = types = ConversationTypes(settings, database, now)
        self.sessions = Sessions(settings, database, job_queue, leases, now, types)
        self.kept_facts = ByteLRU(KEPT_FACTS_BYTES)  # see memory.knowledge.fact_reads
        self.items = Items(database, index, job_queue, now)

    @property
    def has_started(self) -> bool:
        """Return whether `start` has done its work in this process; threads do not survive a fork."""
        return self._started_in == os.getpid()

    def start(self, *, worker: bool = False) -> None:
        """Start this process's background work, once; log which models answer.

        Web workers run the jobs; with JOBS=worker only a `worker` does. Raises Conflict while the database is being
        restored, SettingsError if the search index can't be used.
        """
        with self._starting:
            if self.has_started:
                return
            self.data_lock.share()
            self.model_server.log_models()
            if self.settings.on_postgresql and not self.settings.searches_database:
                log.warning(
                    "SEARCH=whoosh is for one node: of several, each has a search index in its own data folder, and "
                    "what is erased at one stays in the files of the others"
                )
            runs_jobs = worker or self.settings.jobs == "web"
            report = self.health.check(begins_jobs=runs_jobs)
            for part, state in (("database", report.database), ("data directory", report.data_dir)):
                if state != "ok":
                    log.error("the %s is not fit for use: %s", part, state)
            self.index.warm_up()
            if runs_jobs:
                self.job_queue.start()
            self._started_in = os.getpid()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Let running jobs end, at most `timeout` seconds. Others wait in the table."""
        self.events.stop()
        self.job_queue.stop(timeout)
        self.leases.close()
        self.model_server.close()
        self.database.close()
        self.data_lock.release()


def _metrics(collector: str) -> Metrics:
    """Return metrics, with traces if a `collector` is named. Raises SettingsError."""
    if not collector:
        return Metrics()
    try:
        from memory.ops.traces import Traces
    except ImportError as error:
        raise SettingsError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT needs more packages: pip install '.[traces]' in Recap's folder ({error})."
        ) from error
    return Traces(collector)
