"""Every setting and its default, in one place.

The environment is read once, in `Settings.from_env`; everything else is handed a frozen `Settings`.
A value that cannot be used stops the start with a sentence that names the variable.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dotenv import dotenv_values

DEFAULT_MAIN_MODEL = "gpt-4o"
DEFAULT_MINI_MODEL = "gpt-4o-mini"
API_KEY_CHARS_MIN = 16  # a shorter one can be found by trying
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_API_KEY = re.compile(r"[!-~]*")  # what a header can carry


class SettingsError(ValueError):
    """A setting that cannot be used; the message names the variable and says what it takes."""


def _text(name: str, raw: str) -> str:
    return raw


def _path(name: str, raw: str) -> Path:
    return Path(raw).expanduser()


def _integer(low: int) -> Callable[[str, str], int]:
    def parse(name: str, raw: str) -> int:
        try:
            value = int(raw)
        except ValueError:
            raise SettingsError(f"{name} must be a whole number, not {raw!r}.") from None
        if value < low:
            raise SettingsError(f"{name} must be at least {low}, not {value}.")
        return value

    return parse


def _number(unit: str, high: float) -> Callable[[str, str], float]:
    def parse(name: str, raw: str) -> float:
        try:
            value = float(raw)
        except ValueError:
            raise SettingsError(f"{name} must be a number of {unit}, not {raw!r}.") from None
        if not 0 <= value <= high:
            raise SettingsError(f"{name} must lie between 0 and {high:g} {unit}, not {raw}.")
        return value

    return parse


_seconds = _number("seconds", 86_400)
_days = _number("days", 36_500)
_weight = _number("points", 100)


def _one_of(*choices: str) -> Callable[[str, str], str]:
    def parse(name: str, raw: str) -> str:
        value = raw.strip().lower()
        if value not in choices:
            raise SettingsError(f"{name} must be one of {', '.join(choices)}, not {raw!r}.")
        return value

    return parse


@dataclass(frozen=True)
class FactWeights:
    """What each part counts for when facts are ranked for a prompt; the parts lie in 0..1 each.

    Importance leads because it is the only part that was judged with the words in view; relevance comes
    next because a fact nobody asked about costs tokens; recency and use settle what is left.
    """

    importance: float = 0.4
    recency: float = 0.2
    use: float = 0.1
    relevance: float = 0.3

    @classmethod
    def parse(cls, name: str, raw: str) -> FactWeights:
        known = {f.name for f in fields(cls)}
        weights: dict[str, float] = {}
        for item in filter(None, (part.strip() for part in raw.split(","))):
            key, _, number = item.partition(":")
            if key.strip() not in known:
                raise SettingsError(f"{name} knows {', '.join(sorted(known))}; it does not know {key.strip()!r}.")
            try:
                weights[key.strip()] = float(number)
            except ValueError:
                raise SettingsError(f"{name} needs a number after {key.strip()!r}, as in importance:0.4.") from None
            if not 0 <= weights[key.strip()] <= 1000:
                raise SettingsError(f"{name} takes weights of 0 or more, 1000 at most, not {number.strip()!r}.")
        return cls(**weights)


@dataclass(frozen=True)
class ApiKey:
    """A key and the tenant whose data it opens.  The key is never shown."""

    tenant: str
    key: str = field(repr=False)


def _api_keys(name: str, raw: str) -> tuple[ApiKey, ...]:
    """`tenant:key,tenant:key`.  A pair that is wrong is named by its number: what it holds may be a key."""
    pairs: list[ApiKey] = []
    for number, pair in enumerate(raw.split(","), 1):
        tenant, colon, key = (part.strip() for part in pair.partition(":"))
        if not colon:
            raise SettingsError(f"{name} takes tenant:key pairs, separated by commas; pair {number} is none.")
        if not _TENANT.fullmatch(tenant):
            raise SettingsError(
                f"{name}: the tenant of pair {number} must be 1 to 64 letters, digits and any of _ . - after the first."
            )
        if len(key) < API_KEY_CHARS_MIN or not _API_KEY.fullmatch(key):
            raise SettingsError(
                f"{name}: the key of pair {number} must have at least {API_KEY_CHARS_MIN} characters, none of them a "
                "space or beyond ASCII; `openssl rand -hex 32` makes one."
            )
        if any(key == known.key for known in pairs):
            raise SettingsError(f"{name}: the key of pair {number} is there twice; a key opens one tenant.")
        pairs.append(ApiKey(tenant, key))
    return tuple(pairs)


def _setting(default: Any, env: str, parse: Callable[[str, str], Any], about: str, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"env": env, "parse": parse, "about": about})


@dataclass(frozen=True)
class Settings:
    """One process's settings.  `about` is what the README's table says of each, with the reason for its default."""

    data_dir: Path = _setting(Path("data"), "RECAP_DATA_DIR", _path, "Where the database and the index live.")
    database_url: str = _setting("", "DATABASE_URL", _text, "A SQLAlchemy URL; empty: SQLite in the data directory.")
    host: str = _setting(
        "127.0.0.1", "HOST", _text, "Address to listen on; loopback, since without keys nobody is asked who they are."
    )
    port: int = _setting(8000, "PORT", _integer(1), "Port to listen on.")
    workers: int = _setting(
        2, "WEB_WORKERS", _integer(1), "Server processes; two, so that one busy core never stops all."
    )
    threads: int = _setting(
        32, "WEB_THREADS", _integer(1), "Threads a process; a turn waits on the model, not on a core."
    )

    api_keys: tuple[ApiKey, ...] = _setting(
        (),
        "RECAP_API_KEYS",
        _api_keys,
        f"`tenant:key,tenant:key`: who may call, and whose data they see. Keys of {API_KEY_CHARS_MIN} characters or "
        "more, as shorter ones can be guessed. Empty: anyone, as tenant `default`.",
        secret=True,
    )

    openai_api_key: str = _setting("", "OPENAI_API_KEY", _text, "Key for the model server.", secret=True)
    openai_base_url: str = _setting("", "OPENAI_BASE_URL", _text, "Any OpenAI-compatible server; empty: OpenAI's own.")
    openai_model: str = _setting(DEFAULT_MAIN_MODEL, "OPENAI_MODEL", _text, "The main model: it answers.")
    openai_summary_model: str = _setting(
        "",
        "OPENAI_SUMMARY_MODEL",
        _text,
        f"The mini model: it keeps summary and facts. Empty: {DEFAULT_MINI_MODEL} at OpenAI, the main model elsewhere.",
    )
    model_timeout: float = _setting(
        120.0,
        "MODEL_TIMEOUT",
        _seconds,
        "Seconds a model call may take in all, retries included; long answers need them.",
    )

    summary_mode: str = _setting(
        "background",
        "SUMMARY_MODE",
        _one_of("background", "inline"),
        "`background` updates the summary after the reply has left; `inline` before, as a one-endpoint service would.",
    )
    summary_every: int = _setting(1, "SUMMARY_EVERY", _integer(1), "Turns between updates of the stored summary.")
    summary_debounce: float = _setting(
        3.0,
        "SUMMARY_DEBOUNCE",
        _seconds,
        "Seconds of quiet before the update, so that a burst of turns costs one call.",
    )
    summary_prompt: str = _setting("summary", "SUMMARY_PROMPT", _text, "Name of the prompt the mini model is given.")
    system_prompt: str = _setting(
        "", "SYSTEM_PROMPT", _text, "What the main model is told first; empty: the prompt named `system`."
    )
    prompts_dir: str = _setting(
        "",
        "PROMPTS_DIR",
        _text,
        "A folder of NAME.txt files that replace or add prompts; empty: `prompts` in the data directory.",
    )

    prompt_cache_key: str = _setting(
        "auto",
        "PROMPT_CACHE_KEY",
        _one_of("auto", "on", "off"),
        "Whether to name the session as `prompt_cache_key`, so that prompts which begin alike meet the same cache. "
        "`auto`: at OpenAI's own server, since others may refuse what they don't know.",
    )
    tail_messages_min: int = _setting(
        2, "TAIL_MESSAGES_MIN", _integer(0), "Messages a fold keeps word for word: the last turn."
    )
    tail_messages_max: int = _setting(
        16,
        "TAIL_MESSAGES_MAX",
        _integer(2),
        "Messages after which the tail folds into the summary: eight turns a fold.",
    )
    tail_tokens_max: int = _setting(
        3000, "TAIL_TOKENS_MAX", _integer(100), "Tokens after which it folds, if that comes first."
    )
    context_tokens: int = _setting(
        16_000, "CONTEXT_TOKENS", _integer(500), "Largest prompt ever sent; fits the small models people run at home."
    )
    embeddings: str = _setting(
        "wordllama",
        "EMBEDDINGS",
        _one_of("wordllama", "openai", "off"),
        "What meaning is measured with: `wordllama` works offline; `openai` asks the model server; or `off`.",
    )
    embedding_model: str = _setting(
        "text-embedding-3-small", "OPENAI_EMBEDDING_MODEL", _text, "The model that `EMBEDDINGS=openai` asks for."
    )
    search_language: str = _setting(
        "en",
        "SEARCH_LANGUAGE",
        _one_of("da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv"),
        "Whose words are searched by their stems; any text is found. Another language makes the index anew.",
    )
    ranking: str = _setting(
        "context",
        "RANKING",
        _one_of("context", "words", "fuzzy"),
        "`context` weighs words, meaning and what is around a message; `words` is BM25; `fuzzy` to compare.",
    )
    fusion: str = _setting(
        "weighted",
        "FUSION",
        _one_of("weighted", "rrf"),
        "How the parts are added: by value, or by rank (measured worse).",
    )
    rank_meaning: float = _setting(
        0.8,
        "RANK_MEANING",
        _weight,
        "Weight of meaning beside words' 1; without it recall@10 is 1.2 lower.",
    )
    rank_neighbours: float = _setting(
        1.0, "RANK_NEIGHBOURS", _weight, "Weight of the messages around; without it recall@10 is 3.9 lower."
    )
    rank_session: float = _setting(
        1.0,
        "RANK_SESSION",
        _weight,
        "Weight of the whole session; without it recall@10 is 1.7 lower.",
    )
    rank_time: float = _setting(
        1.5, "RANK_TIME", _weight, "Weight of a time the message speaks of; without it recall@10 is 1.4 lower."
    )
    recall_tokens: int = _setting(
        600,
        "RECALL_TOKENS",
        _integer(0),
        "Tokens of recalled excerpts in a prompt; a sixth of them for a message that asks for nothing.",
    )
    recall: str = _setting(
        "auto",
        "RECALL",
        _one_of("auto", "always", "tools", "off"),
        "When to look back unless a request says: `auto` reads the message; `tools` lets the model ask.",
    )
    recall_tool_rounds: int = _setting(
        3,
        "RECALL_TOOL_ROUNDS",
        _integer(2),
        "Model calls a turn in recall mode `tools`: a look back, another with better words, then the answer.",
    )
    recall_scope: str = _setting(
        "user",
        "RECALL_SCOPE",
        _one_of("user", "session"),
        "How far: all of the person's sessions, or the one talked in. Without a user_id both are the session.",
    )
    recall_limit: int = _setting(
        16, "RECALL_LIMIT", _integer(0), "Messages recalled for a prompt at most; the tokens run out first."
    )
    recall_window: int = _setting(
        0, "RECALL_WINDOW", _integer(0), "Messages shown around each; the ranking finds those that matter by itself."
    )
    fact_tokens: int = _setting(
        300, "FACT_TOKENS", _integer(0), "Tokens of facts in a prompt; half at most sit in its head."
    )
    fact_weights: FactWeights = _setting(
        FactWeights(),
        "FACT_WEIGHTS",
        FactWeights.parse,
        "What counts in ranking facts, as `importance:0.4,recency:0.2`.",
    )
    fact_half_life_days: float = _setting(
        30.0, "FACT_HALF_LIFE_DAYS", _days, "Days after which a fact's recency has halved: last month still counts."
    )

    log_level: str = _setting(
        "info", "LOG_LEVEL", _one_of("debug", "info", "warning", "error"), "One line a turn at `info`."
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Settings:
        """Settings from `environ` (default: the process's), with the file `dotenv` filling what is not set there.

        Raises SettingsError for a value that cannot be used.
        """
        values: dict[str, str] = {}
        if dotenv is not None and dotenv.is_file():
            values.update({k: v for k, v in dotenv_values(dotenv).items() if v is not None})
        values.update(os.environ if environ is None else environ)
        chosen: dict[str, Any] = {}
        for item in fields(cls):
            raw = values.get(item.metadata["env"], "")
            if raw.strip():
                chosen[item.name] = item.metadata["parse"](item.metadata["env"], raw.strip())
        return cls(**chosen)

    def __post_init__(self) -> None:
        if self.tail_messages_min >= self.tail_messages_max:
            raise SettingsError("TAIL_MESSAGES_MIN must be below TAIL_MESSAGES_MAX, or no fold would make room.")

    @property
    def uses_builtin_model(self) -> bool:
        """True when neither a key nor a base URL is set: the extractive model answers."""
        return not (self.openai_api_key or self.openai_base_url)

    @property
    def sends_cache_key(self) -> bool:
        """Whether prompts go with a `prompt_cache_key`."""
        openais_own = not self.openai_base_url or urlsplit(self.openai_base_url).hostname == "api.openai.com"
        return self.prompt_cache_key == "on" or (self.prompt_cache_key == "auto" and openais_own)

    @property
    def mini_model(self) -> str:
        """The mini model's name: as set, else OpenAI's small one, else the main model of whatever server was named."""
        return self.openai_summary_model or (self.openai_model if self.openai_base_url else DEFAULT_MINI_MODEL)

    @property
    def sqlalchemy_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir.resolve() / 'recap.db'}"

    @property
    def index_dir(self) -> Path:
        return self.data_dir / "index"

    @property
    def prompts_path(self) -> Path:
        return Path(self.prompts_dir).expanduser() if self.prompts_dir else self.data_dir / "prompts"
