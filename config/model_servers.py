"""Model servers as values: where each is, the key for it, and the settings that say so.

Invariants:
- A key goes only to the origin of the address that it was set for [test_a_key_goes_only_to_its_own_server].
"""

from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

OPENAI_URL = "https://api.openai.com/v1"
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class FallbackModel:
    """Model that answers when another fails. url: empty for the main server."""

    name: str
    url: str = ""


@dataclass(frozen=True)
class Server:
    """Model server. url: empty for OpenAI's. url_setting, key_setting: the variables that an error names.

    cache_key: the setting PROMPT_CACHE_KEY.
    """

    url: str = ""
    key: str = field(default="", repr=False)
    cache_key: str = "off"
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

    @property
    def is_self_hosted(self) -> bool:
        """Return whether it is the operator's own, as Ollama: it needs no key."""
        return bool(self.url) and not self.key

    @property
    def takes_cache_key(self) -> bool:
        """Return whether its requests may have the parameter `prompt_cache_key`."""
        return self.cache_key == "on" or (self.cache_key == "auto" and self.is_openai)

    def of_task(self, url: str, key: str, prefix: str) -> "Server | None":
        """Return the server of one task, of which this one is the main server; None without an address and a key.

        The main server's key goes along only to the main server's origin.
        """
        if not (url or key):
            return None
        url_setting = f"{prefix}_BASE_URL" if url else self.url_setting
        server = Server(url or self.url, key, self.cache_key, url_setting, f"{prefix}_API_KEY")
        if not key and server.origin == self.origin:
            return replace(server, key=self.key, key_setting=self.key_setting)
        return server


@dataclass(frozen=True)
class Servers:
    """Model servers of all tasks. mini, embedding: None without a server of their own."""

    main: Server
    mini: Server | None
    embedding: Server | None
    fallback_key: str = field(repr=False)

    def of_fallback(self, model: FallbackModel) -> Server:
        """Return the server of a fallback model. One that another setting names is called with its key."""
        if not model.url:
            return self.main
        server = Server(
            model.url, self.fallback_key, self.main.cache_key, "OPENAI_FALLBACK_MODELS", "OPENAI_FALLBACK_API_KEY"
        )
        for configured in filter(None, (self.main, self.mini, self.embedding)):
            if configured.origin == server.origin and configured.key:
                return replace(server, key=configured.key, key_setting=configured.key_setting)
        return server


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
