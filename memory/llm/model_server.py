"""Model server: as the environment names it, or else as an administrator set it on the page.

If the environment has OPENAI_API_KEY or OPENAI_BASE_URL, all is taken from it, and the stored server is not read: no
key is ever combined with another server's address.

Guarantee: the key is stored encrypted or not at all.  It is sent to the address that it was given
with and to no other, and never shown but for its end.  Every process answers by a change after KNOWN_SECONDS.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from cachetools.func import ttl_cache
from sqlalchemy import delete, select
from sqlalchemy.exc import SQLAlchemyError

from config import Settings, SettingsError
from config.model_servers import OPENAI_URL
from memory.access.encryption import KEY_FILE, Encryption, Undecryptable
from memory.errors import Conflict, InvalidRequest, ModelError
from memory.llm import ModelRequest, StreamEnd, TextDelta
from memory.llm.model_check import ModelCheck, check_models
from memory.llm.registry import ModelRegistry
from memory.ops import logs
from models import Database, ModelServerRow, retry_on_conflict
from models.model_server import ServerDraft

log = logging.getLogger(__name__)

KNOWN_SECONDS = 2.0  # for so long a process keeps what it has read
TRY_SECONDS = 30.0  # an administrator waits for it
SHOWN_CHARS, KEY_CHARS_MIN = 4, 16  # of a key's end, and of a key whose end says little of it

BY_ENVIRONMENT = (
    "The server's environment sets OPENAI_API_KEY or OPENAI_BASE_URL, and that holds. Change it there "
    "and restart, or remove both to set the model server here."
)
UNREADABLE = (
    "The stored key of the model server can't be decrypted, because ENCRYPTION_KEY, or without it the file "
    f"`{KEY_FILE}` of the data folder, is missing or another one than it was stored with. Put the former one back, on "
    "every node, and restart, or enter the model server again."
)
_R = ModelServerRow.__table__.c


@dataclass(frozen=True)
class ServerInfo:
    """Model server in use as it is shown.  `source` is `environment`, `stored`, or `none`: the built-in model.

    `key_end` is the end of its key.  `refusal` says why no other can be stored, `problem` why this one can't be used.
    """

    source: str
    base_url: str
    main: str
    mini: str
    key_end: str | None
    refusal: str | None
    problem: str | None


class _Unavailable:
    """`LanguageModel` that says why the stored model server can't be used."""

    supports_tools = False
    window = None
    down = None

    def __init__(self, name: str, problem: str) -> None:
        self.name = name
        self._problem = problem

    def answer(self, request: ModelRequest) -> Iterator[TextDelta | StreamEnd]:
        raise ModelError("model_server_unusable", self._problem, status=503)


class ModelServer:
    """Knows the model server in use, and the models there.  Thread-safe.

    `environment` are the models that `settings` name, and `models_of` makes those that others name.
    """

    def __init__(
        self,
        settings: Settings,
        database: Database,
        now: Callable[[], datetime],
        environment: ModelRegistry,
        models_of: Callable[..., ModelRegistry],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._database = database
        self._now = now
        self._models_of = models_of
        self._encryption = Encryption(settings)
        self._is_replaceable = environment.builtin  # a server that an operator or a program named stays
        self._stored = ttl_cache(maxsize=1, ttl=KNOWN_SECONDS, timer=clock)(self._read)
        self._lock = threading.Lock()
        self._in_use: tuple[ServerDraft | None, ModelRegistry] = None, environment

    @property
    def models(self) -> ModelRegistry:
        """Return the models in use. While the database can't be read, they are those that were in use before."""
        try:
            stored = self._stored()
        except SQLAlchemyError:
            return self._in_use[1]
        with self._lock:
            if stored != self._in_use[0]:
                self._in_use = stored, self._made(stored)
                self._log()
            return self._in_use[1]

    def log_models(self) -> None:
        """Log which models are in use, unless they have just changed, which is logged anyway."""
        before = self._in_use[1]
        now = self.models
        if now is before:
            self._log()

    def _log(self) -> None:
        models = self._in_use[1]
        if models.notice is not None:
            log.warning("%s", models.notice)
        else:
            names = {"main": models.main.name, "mini": models.mini.name}
            at = models.provider.address if models.provider is not None else None
            mini_at = models.mini_provider.address if models.mini_provider not in (None, models.provider) else None
            log.info("models", extra=logs.fields(**names, at=at, mini_at=mini_at))

    def close(self) -> None:
        """Close the connections to the servers in use."""
        self._in_use[1].close()

    # -- for an administrator

    def get(self) -> ServerInfo:
        """Return the model server in use."""
        stored = self._stored()
        settings, problem = self._named_by(stored)
        key = settings.openai_api_key
        of_environment = "none" if self._is_replaceable else "environment"
        return ServerInfo(
            "stored" if stored is not None else of_environment,
            _address(settings),
            main=settings.openai_model,
            mini=settings.mini_model,
            key_end=key[-SHOWN_CHARS:] if len(key) >= KEY_CHARS_MIN else None,
            refusal=self._refusal(),
            problem=problem,
        )

    @retry_on_conflict
    def put(self, draft: ServerDraft) -> ServerInfo:
        """Store a model server, and use it from now on.  Raises Conflict where none can be stored, InvalidRequest."""
        refusal = self._refusal()
        if refusal is not None:
            raise Conflict("model_server_not_storable", f"{refusal} Nothing was stored.")
        settings = self._drafted(draft)
        self._checked(settings)
        key = settings.openai_api_key
        try:
            encrypted = self._encryption.encrypt(key) if key else ""
        except Undecryptable as error:
            raise Conflict("model_server_not_storable", f"{error} Nothing was stored.") from None
        row = ModelServerRow(
            id=1, base_url=draft.base_url, api_key=encrypted, main=draft.main, mini=draft.mini, updated_at=self._now()
        )
        with self._database.write() as tx:
            tx.merge(row)
        self._stored.cache_clear()
        return self.get()

    def delete(self) -> ServerInfo:
        """Forget the stored model server and its key."""
        with self._database.write() as tx:
            tx.execute(delete(ModelServerRow))
        self._stored.cache_clear()
        return self.get()

    def try_out(self, draft: ServerDraft) -> list[ModelCheck]:
        """Ask each model of a draft one short question, the main model first.  Nothing is stored.

        Raises InvalidRequest, and ModelError if the main model fails.
        """
        settings = self._drafted(draft)
        seconds = min(TRY_SECONDS, settings.model_timeout)
        models = self._checked(settings.model_copy(update={"model_timeout": seconds}))
        checks = check_models(models, settings.context_tokens)
        main = next(checks)
        if main.error is not None:
            raise main.error
        return [main, *checks]

    def list_models(self, draft: ServerDraft) -> list[str]:
        """Return the models that a draft's server lists.  Nothing is stored.  Raises InvalidRequest, ModelError."""
        models = self._checked(self._drafted(draft))
        try:
            return models.on_server()
        finally:
            models.close()

    # -- inside

    def _read(self) -> ServerDraft | None:
        """Return the stored server, with its key as it is stored."""
        if not self._is_replaceable:
            return None
        with self._database.read() as tx:
            row = tx.execute(select(_R.base_url, _R.api_key, _R.main, _R.mini)).first()
        return ServerDraft(*row) if row is not None else None

    def _named_by(self, stored: ServerDraft | None) -> tuple[Settings, str | None]:
        """Return the settings with the stored server in them, and why it can't be used: nobody can decrypt its key."""
        if stored is None:
            return self._settings, None
        try:
            key = self._encryption.decrypt(stored.api_key) if stored.api_key else ""
        except Undecryptable:
            return self._with(stored, ""), UNREADABLE
        return self._with(stored, key), None

    def _with(self, draft: ServerDraft, key: str) -> Settings:
        """Return the settings, with a main model's server.

        Servers of other tasks stay what the environment makes them.
        """
        changes = {
            "openai_base_url": draft.base_url,
            "openai_api_key": key,
            "openai_model": draft.main or self._settings.openai_model,
            "openai_summary_model": draft.mini or self._settings.openai_summary_model,
        }
        servers = self._settings.servers
        if servers.mini is not None:
            changes["openai_summary_base_url"] = servers.mini.url or OPENAI_URL
            changes["openai_summary_model"] = self._settings.mini_model
        if servers.embedding is not None:
            changes["embedding_base_url"] = servers.embedding.url or OPENAI_URL
        return self._settings.model_copy(update=changes)

    def _made(self, stored: ServerDraft | None) -> ModelRegistry:
        settings, problem = self._named_by(stored)
        try:
            if problem is None:
                return self._models_of(settings)
        except SettingsError as error:
            problem = str(error)
        models = self._models_of(self._settings, model=_Unavailable(settings.openai_model, problem))
        models.notice = problem
        return models

    def _refusal(self) -> str | None:
        """Return why no model server can be stored; None: it can."""
        return self._encryption.refusal if self._is_replaceable else BY_ENVIRONMENT

    def _drafted(self, draft: ServerDraft) -> Settings:
        """Return the settings with a draft in them.  Raises InvalidRequest."""
        if "@" in draft.base_url:
            text = "An address with a password in it can't be set here, because addresses are stored as they are."
            raise InvalidRequest("bad_model_server", f"{text} Use OPENAI_BASE_URL for it.", param="base_url")
        key = draft.api_key
        if key is None:
            settings, problem = self._named_by(self._stored())
            if problem is not None:
                raise InvalidRequest("api_key_needed", problem, param="api_key")
            key = settings.openai_api_key
            if key and draft.base_url.rstrip("/") != _address(settings).rstrip("/"):
                place = _address(settings) or "OpenAI"
                text = f"The key in use is sent to {place} alone. Send the `base_url` of that, or another key."
                raise InvalidRequest("api_key_needed", text, param="api_key")
        if not key and not draft.base_url:
            text = "Enter the address of a model server, or a key of OpenAI."
            raise InvalidRequest("bad_model_server", text, param="base_url")
        return self._with(draft, key)

    def _checked(self, settings: Settings) -> ModelRegistry:
        try:
            return self._models_of(settings)
        except SettingsError as error:
            raise InvalidRequest("bad_model_server", f"{error} Nothing was stored.") from None


def _address(settings: Settings) -> str:
    """Return where the server is, without a password that the environment's address may have."""
    parts = urlsplit(settings.openai_base_url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
