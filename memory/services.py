"""The engine, wired once for a process."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from config import Settings, SettingsError
from memory.clients.arrival import Arrivals
from memory.clients.relay import Relay
from memory.facts import Facts
from memory.indexing import Indexing
from memory.leases import Leases
from memory.llm import LanguageModel
from memory.llm.extractive import ExtractiveModel
from memory.llm.openai_client import OpenAIEmbedder, OpenAIModel
from memory.llm.transport import Transport, connect
from memory.notice import builtin_notice
from memory.outbox import Outbox
from memory.people.imports import Imports
from memory.people.users import Users
from memory.prompts import Prompts
from memory.recall.recall import Recall
from memory.sessions import Sessions
from memory.summary.material import Materials
from memory.summary.preview import Previews
from memory.summary.summaries import Summaries
from memory.turn.admission import Admission
from memory.turn.pipeline import ChatPipeline
from memory.turn.preparing import Preparing
from memory.turn.stops import Stops
from memory.turn.taken import Turns
from memory.turn.views import Views
from models import Database, JobRow
from search_index import Embedder, Recipe, SearchIndex, WordLlamaEmbedder
from search_index.analysis import analysis_for

log = logging.getLogger(__name__)

SUMMARY_LANES = 4  # summaries updated at once: each waits on the mini model, none holds up another person's


@dataclass(frozen=True)
class Checked:
    """What was found when the parts were looked at: `ok`, or in words what is wrong; jobs by state."""

    database: str
    data_dir: str
    jobs: dict[str, int]

    @property
    def ready(self) -> bool:
        return self.database == self.data_dir == "ok"


@dataclass(frozen=True)
class Services:
    """What the HTTP layer and the commands call."""

    settings: Settings
    database: Database
    index: SearchIndex
    transport: Transport | None
    main: LanguageModel
    mini: LanguageModel
    leases: Leases
    stops: Stops
    outbox: Outbox
    sessions: Sessions
    facts: Facts
    prompts: Prompts
    recall: Recall
    summaries: Summaries
    indexing: Indexing
    pipeline: ChatPipeline
    turns: Turns
    relay: Relay
    previews: Previews
    users: Users
    imports: Imports

    def start(self) -> None:
        """Start this process's background workers, and say in the log which models answer."""
        notice = builtin_notice(self.settings)
        if notice:
            log.warning("%s", notice)
        else:
            where = self.settings.openai_base_url or "OpenAI"
            log.info("main model %s, mini model %s, at %s", self.main.name, self.mini.name, where)
        self.index.warm_up()
        self.outbox.start([("index", "unindex", "scrub"), *[("summary",)] * SUMMARY_LANES])

    def stop(self, timeout: float = 10.0) -> None:
        """Let running jobs end, at most `timeout` seconds.  What is left waits in the table."""
        self.outbox.stop(timeout)
        self.stops.close()
        self.leases.close()
        if self.transport is not None:
            self.transport.close()

    def check(self) -> Checked:
        """Look at what serving needs, without changing anything."""
        jobs: dict[str, int] = {}
        try:
            with self.database.read() as tx:
                jobs = dict(tx.execute(select(JobRow.state, func.count()).group_by(JobRow.state)).all())
            database = "ok"
        except SQLAlchemyError as error:
            log.error("the database can't be read: %s", error)
            missing = "no such table" in str(error)
            database = "no tables: run `flask --app wsgi db upgrade`" if missing else "can't be read; see the log"
        writable = os.access(self.settings.data_dir, os.W_OK)
        return Checked(database, "ok" if writable else f"{self.settings.data_dir} is not writable", jobs)


def utc_now() -> datetime:
    return datetime.now(UTC)


def build(settings: Settings, engine: Engine, now: Callable[[], datetime] = utc_now) -> Services:
    """Wire the engine for `settings` on `engine`.  Nothing runs in the background until `start`."""
    database = Database(engine)
    transport = None if settings.uses_builtin_model else connect(settings)
    index = SearchIndex(
        settings.index_dir,
        recipe=_recipe(settings),
        embedder=_embedder(settings, transport),
        analysis=analysis_for(settings.search_language),
    )
    main, mini = _models(settings, transport)
    leases = Leases(database, now)
    stops = Stops(database, leases)
    outbox = Outbox(database, leases, now)
    sessions = Sessions(settings, database, outbox, leases, now)
    facts = Facts(settings, database, now)
    prompts = Prompts(database, settings.prompts_path, now)
    recall = Recall(settings, database, index, outbox)
    materials = Materials(facts, leases, now)
    summaries = Summaries(settings, database, outbox, prompts, facts, materials, mini, now)
    indexing = Indexing(database, index, outbox)
    arrivals = Arrivals(settings, sessions, leases, now)
    views = Views(settings, facts, prompts, now)
    admission = Admission(settings, database, sessions, arrivals, views, prompts, leases, now)
    preparing = Preparing(settings, facts, recall, main, now)
    pipeline = ChatPipeline(settings, database, admission, sessions, facts, preparing, leases, stops, outbox, main, now)
    users = Users(database, index, outbox, now)
    outbox.register("index", indexing.feed)
    outbox.register("unindex", indexing.clear)
    outbox.register("scrub", users.scrub)
    outbox.register("summary", summaries.update)
    return Services(
        settings,
        database,
        index,
        transport,
        main,
        mini,
        leases,
        stops,
        outbox,
        sessions,
        facts,
        prompts,
        recall,
        summaries,
        indexing,
        pipeline,
        Turns(database, leases),
        Relay(transport, main.name),
        Previews(settings, database, prompts, materials, mini),
        users,
        Imports(database, sessions, outbox, leases, now),
    )


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


def _embedder(settings: Settings, transport: Transport | None) -> Embedder | None:
    if settings.embeddings == "off" or settings.ranking != "context":
        return None
    if settings.embeddings == "wordllama":
        return WordLlamaEmbedder()
    if transport is None:
        raise SettingsError("EMBEDDINGS=openai needs OPENAI_API_KEY or OPENAI_BASE_URL: the model server makes them.")
    return OpenAIEmbedder(transport, settings.embedding_model)


def _models(settings: Settings, transport: Transport | None) -> tuple[LanguageModel, LanguageModel]:
    """The main and the mini model, over one connection."""
    if transport is None:
        builtin = ExtractiveModel()
        return builtin, builtin
    return OpenAIModel(transport, settings.openai_model), OpenAIModel(transport, settings.mini_model)
