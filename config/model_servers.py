"""Model servers as values: where each is, the key for it, and the settings that say so.

Invariants:
- A key goes only to the origin of the address that it was set for [test_a_key_goes_only_to_its_own_server].
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from config.environment import SettingsError

if TYPE_CHECKING:
    from config.settings import Settings

OPENAI_URL = "https://api.openai.com/v1"
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class FallbackModel:
    """Model that answers when another fails. url: empty for the main server."""

    name: str
    url: str = ""


@dataclass(frozen=True)
class Server:
    """Model server. url: empty for OpenAI's. url_setting, key_setting: the variables that an error names."""

    url: str = ""
    key: str = field(default="", repr=False)
    takes_cache_key: bool = False
    url_setting: str = "OPENAI_BASE_URL"
    key_setting: str = "OPENAI_API_KEY"

    @property
    def origin(self) -> tuple[str, str | None, int | None]:
        """Scheme, host and port."""
        try:
            parts = urlsplit(self.url or OPENAI_URL)
            return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)
        except ValueError:  # no address; whoever connects to it says so
            return "", self.url, None

    @property
    def is_openai(self) -> bool:
        return self.origin == Server().origin


@dataclass(frozen=True)
class Servers:
    """Model servers of all tasks. cache_key: the setting PROMPT_CACHE_KEY.

    mini, embedding: None without a server of their own.
    """

    main: Server
    mini: Server | None
    embedding: Server | None
    fallback_key: str = field(repr=False)
    cache_key: str

    @classmethod
    def of(cls, settings: "Settings") -> Self:
        """Return the servers that settings name."""
        cache_key = settings.prompt_cache_key
        main = _with_cache_key(Server(settings.openai_base_url, settings.openai_api_key), cache_key)
        mini = settings.openai_summary_base_url, settings.openai_summary_api_key
        embedding = settings.embedding_base_url, settings.embedding_api_key
        return cls(
            main,
            _with_cache_key(_of_task(main, *mini, "OPENAI_SUMMARY"), cache_key) if any(mini) else None,
            _of_task(main, *embedding, "EMBEDDING") if any(embedding) else None,
            settings.openai_fallback_api_key,
            cache_key,
        )

    def of_fallback(self, model: FallbackModel) -> Server:
        """Return the server of a fallback model. One that another setting names is called with its key."""
        if not model.url:
            return self.main
        server = Server(
            model.url,
            self.fallback_key,
            url_setting="OPENAI_FALLBACK_MODELS",
            key_setting="OPENAI_FALLBACK_API_KEY",
        )
        for configured in filter(None, (self.main, self.mini, self.embedding)):
            if configured.origin == server.origin and configured.key:
                server = replace(server, key=configured.key, key_setting=configured.key_setting)
                break
        return _with_cache_key(server, self.cache_key)

    def mini_model(self, main_model: str) -> str:
        """Return the mini model where none is named: OpenAI's small one, elsewhere the main model.

        Raises SettingsError for a server of its own, whose models nobody knows.
        """
        server = self.mini or self.main
        if server.is_openai:
            return "gpt-4o-mini"
        if server.origin != self.main.origin:
            raise SettingsError(
                "OPENAI_SUMMARY_BASE_URL needs OPENAI_SUMMARY_MODEL too: the name of the mini model at that server."
            )
        return main_model


def _of_task(main: Server, url: str, key: str, prefix: str) -> Server:
    """Return the server of one task. The main server's key goes along only to the main server's origin."""
    server = Server(
        url or main.url,
        key,
        url_setting=f"{prefix}_BASE_URL" if url else main.url_setting,
        key_setting=f"{prefix}_API_KEY",
    )
    if not key and server.origin == main.origin:
        return replace(server, key=main.key, key_setting=main.key_setting)
    return server


def _with_cache_key(server: Server, setting: str) -> Server:
    return replace(server, takes_cache_key=setting == "on" or (setting == "auto" and server.is_openai))


def fallbacks(raw: str) -> tuple[FallbackModel, ...]:
    """Parse `model@https://server/v1, model`."""
    parsed = []
    for number, item in enumerate(filter(None, (part.strip() for part in raw.split(","))), 1):
        name, _, rest = item.partition("@http")
        is_address = rest.startswith(("://", "s://")) or "@http" not in item
        if not name or not is_address or len(item.split()) > 1:
            raise ValueError(f"it takes models as `model` or `model@https://server/v1`; item {number} is neither")
        parsed.append(FallbackModel(name, f"http{rest}" if rest else ""))
    return tuple(parsed)
