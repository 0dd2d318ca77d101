"""Models there are to choose from: those of the main model's server, or the built-in one alone.

Guarantee: where the operator lists models (OPENAI_MODELS), no request gets another one, by whatever protocol it comes,
but for the operator's own fallback models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cachetools.func import ttl_cache

from memory.errors import InvalidRequest, ModelError, NotFound, RecapError
from memory.llm import LanguageModel
from memory.llm.fallback import WithFallback

if TYPE_CHECKING:
    from memory.llm.openai import OpenAIModel, ProviderClient

LISTED_SECONDS = 60.0  # for so long a process keeps a server's list
LIST_TIMEOUT = 10.0  # seconds: the page waits for it
_NO_CHAT = re.compile(r"embed|whisper|transcri|\btts\b|dall-e|moderation|rerank|^sora|\bbge\b|gpt-image|realtime", re.I)
CHOSEN_MAX = 64  # models by name that are kept, each with what it has learned of its server


MAIN = "recap"  # always means the main model, so that a client's configuration works with any server


@dataclass(eq=False)
class ModelRegistry:
    """Models at `provider`, or the built-in one where that is None.  Threads may share it.

    single_main, single_mini: the models without substitutes; `main` and `mini` have them. named: makes another model of
    the server. listed: the models that can be chosen; empty: all of the server's. notice: why no server answers, so
    that nobody takes the built-in model for more than it is. fallbacks: answer where another model fails. on_takeover:
    gets the task, the model that answers, and why. mini_provider, embedding_provider: other servers of these tasks.
    """

    single_main: LanguageModel
    single_mini: LanguageModel
    provider: ProviderClient | None = None
    named: InitVar[Callable[[str], LanguageModel] | None] = None
    listed: tuple[str, ...] = ()
    notice: str | None = None
    builtin: bool = False
    fallbacks: Sequence[OpenAIModel] = ()
    mini_provider: ProviderClient | None = None
    embedding_provider: ProviderClient | None = None
    on_takeover: Callable[[str, str, str], None] | None = None

    def __post_init__(self, named: Callable[[str], LanguageModel] | None) -> None:
        self.main, self.mini = self._backed(self.single_main, "main"), self._backed(self.single_mini, "mini")
        self._named = lru_cache(CHOSEN_MAX)(named) if named is not None else None
        self._of_server = ttl_cache(maxsize=1, ttl=LISTED_SECONDS)(self._fetch)

    def _backed(self, model: LanguageModel, task: str, if_unknown: LanguageModel | None = None) -> LanguageModel:
        """Return the model with its substitutes, if it has any."""
        if not self.fallbacks and if_unknown is None:
            return model
        on_takeover = partial(self.on_takeover, task) if self.on_takeover is not None else None
        return WithFallback(model, self.fallbacks, on_takeover, if_unknown)

    def close(self) -> None:
        """Close the connections to all servers."""
        others = (model.provider for model in self.fallbacks)
        for provider in (self.provider, self.mini_provider, self.embedding_provider, *others):
            if provider is not None:
                provider.close()

    def choose(self, name: str | None, *, main_if_unknown: bool = False) -> LanguageModel:
        """Return the model of this name; the main model for None and MAIN, and where there is no server.

        Whether the server has it, its answer tells.  With `main_if_unknown` the main model answers if it has not.
        Raises InvalidRequest for one that the operator does not list.
        """
        if name in (None, MAIN, self.main.name) or self._named is None:
            return self.main
        if self.listed and name not in self.listed:
            there = ", ".join(self.names())
            text = f"This server does not offer the model {name!r}. Nothing was stored. Choose one of: {there}."
            raise InvalidRequest("model_not_offered", text, param="model")
        unknown = self.single_main if main_if_unknown and not self.listed else None
        return self._backed(self._named(name), "main", unknown)

    def names(self) -> list[str]:
        """Return what can be chosen, the main model first.  It is alone when the server can't list its models."""
        return list(dict.fromkeys([self.main.name, *(self.listed or self._of_server())]))

    def _fetch(self) -> list[str]:
        try:
            return self.on_server()
        except ModelError:
            return []

    def on_server(self) -> list[str]:
        """Return what the server lists, without those that answer no chat; none if it lists none. Raises ModelError."""
        names = sorted(model["id"] for model in self._described())
        return [name for name in names if not _NO_CHAT.search(name)]

    def _described(self) -> list[dict[str, Any]]:
        """Return the server's models as it describes them; none if its answer has another form. Raises ModelError."""
        if self.provider is None:
            return []
        try:
            answer = json.loads(self.provider.get("/models", seconds=LIST_TIMEOUT))
            return [{**model, "id": str(model["id"])} for model in answer["data"]]
        except (ValueError, LookupError, TypeError):
            return []

    # -- for clients of the OpenAI protocol

    def listing(self) -> bytes:
        """Return the list of models: MAIN, then those of the server or of the operator.  Raises ModelError."""
        own = self.provider is None or self.listed
        models = [_entry(MAIN), *(map(_entry, self.names()) if own else self._described())]
        return json.dumps({"object": "list", "data": list({model["id"]: model for model in models}.values())}).encode()

    def entry(self, name: str) -> bytes:
        """Return one model.  Raises ModelError, and NotFound for a name that no model has."""
        if name == MAIN or (self.provider is None and name == self.main.name):
            return json.dumps(_entry(name)).encode()
        if self.provider is None or name in (".", ".."):  # dots would lead elsewhere on the server
            raise NotFound("model_not_found", f"There is no model {name!r}.", param="model")
        return self.provider.get(f"/models/{quote(name, safe='')}")

    def ask(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Return what the server answers at `/embeddings`, `/completions` or `/moderations`.

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
