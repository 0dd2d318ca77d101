"""Every setting and its default, in one place.

The environment is read once, in `Settings.from_env`; everything else is handed a frozen `Settings`.
A value that cannot be used stops the start with a sentence that names the variable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dotenv import dotenv_values

from config.parsing import (
    API_KEY_CHARS_MIN,
    ApiKey,
    FactWeights,
    SettingsError,
    api_keys,
    days,
    integer,
    metrics_key,
    one_of,
    origins,
    path,
    rate_limit,
    rate_limit_storage,
    seconds,
    switch,
    text,
    weight,
)

DEFAULT_MAIN_MODEL = "gpt-4o"
DEFAULT_MINI_MODEL = "gpt-4o-mini"


def _setting(default: Any, env: str, parse: Callable[[str, str], Any], about: str, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"env": env, "parse": parse, "about": about})


@dataclass(frozen=True)
class Settings:
    """One process's settings.  `about` is what the README's table says of each, with the reason for its default."""

    data_dir: Path = _setting(Path("data"), "RECAP_DATA_DIR", path, "Where the database and the index live.")
    database_url: str = _setting("", "DATABASE_URL", text, "A SQLAlchemy URL; empty: SQLite in the data directory.")
    host: str = _setting(
        "127.0.0.1", "HOST", text, "Address to listen on; loopback, since without keys nobody is asked who they are."
    )
    port: int = _setting(8000, "PORT", integer(1), "Port to listen on.")
    workers: int = _setting(
        2, "WEB_WORKERS", integer(1), "Server processes; two, so that one busy core never stops all."
    )
    threads: int = _setting(
        32, "WEB_THREADS", integer(1), "Threads a process; a turn waits on the model, not on a core."
    )

    api_keys: tuple[ApiKey, ...] = _setting(
        (),
        "RECAP_API_KEYS",
        api_keys,
        f"`tenant:key,tenant:key`: who may call, and whose data they see. Keys of {API_KEY_CHARS_MIN} characters or "
        "more, as shorter ones can be guessed. Beside them there are those of `flask keys create`.",
        secret=True,
    )

    allow_anonymous: bool = _setting(
        False,
        "RECAP_ALLOW_ANONYMOUS",
        switch,
        "`1`: serve whoever comes, without a key, on any address. Without it a server that has no keys serves its own "
        "machine alone, since everyone could read everything.",
    )

    rate_limit: str = _setting(
        "",
        "RATE_LIMIT",
        rate_limit,
        "Requests a key may make, or an address where no key is asked for, as `120 per minute; 10 per second`; `off`: "
        "any number. Empty: 6000 per minute, about what a small machine can answer, and any number from this machine "
        "where no key is asked for.",
    )
    rate_limit_storage: str = _setting(
        "memory://",
        "RATE_LIMIT_STORAGE",
        rate_limit_storage,
        "Where requests are counted. `memory://`: by each worker for itself, so that WEB_WORKERS times the limit may "
        "get through; `redis://host:6379/0`: by all workers and machines together.",
        secret=True,
    )
    daily_tokens: int = _setting(
        0,
        "DAILY_TOKENS",
        integer(0),
        "Tokens that a person's turns and summaries may take on a day of UTC. 0: any number, since only you know "
        "what your model costs.",
    )
    cors_origins: tuple[str, ...] = _setting(
        (),
        "CORS_ORIGINS",
        origins,
        "Sites whose pages may call this from a browser, as `https://app.example.com,http://localhost:3000`. Empty: "
        "none, only Recap's own page may.",
    )
    trusted_proxies: int = _setting(
        0,
        "TRUSTED_PROXIES",
        integer(0),
        "Proxies before Recap that write X-Forwarded-For: 1 behind nginx. With 0 the header is not believed, since "
        "anyone may send it.",
    )

    openai_api_key: str = _setting("", "OPENAI_API_KEY", text, "Key for the model server.", secret=True)
    openai_base_url: str = _setting("", "OPENAI_BASE_URL", text, "Any OpenAI-compatible server; empty: OpenAI's own.")
    openai_model: str = _setting(DEFAULT_MAIN_MODEL, "OPENAI_MODEL", text, "The main model: it answers.")
    openai_summary_model: str = _setting(
        "",
        "OPENAI_SUMMARY_MODEL",
        text,
        f"The mini model: it keeps summary and facts. Empty: {DEFAULT_MINI_MODEL} at OpenAI, the main model elsewhere.",
    )
    request_timeout: float = _setting(
        20.0,
        "REQUEST_TIMEOUT",
        seconds,
        "Seconds a request may take to arrive, its body a second more for every 16 KB, and the client to take a piece "
        "of the answer; so that slow clients hold no thread for long.",
    )
    model_timeout: float = _setting(
        120.0,
        "MODEL_TIMEOUT",
        seconds,
        "Seconds a model call may take in all, retries included; long answers need them.",
    )

    summary_mode: str = _setting(
        "background",
        "SUMMARY_MODE",
        one_of("background", "inline"),
        "`background` updates the summary after the reply has left; `inline` before, as a one-endpoint service would.",
    )
    jobs: str = _setting(
        "web",
        "JOBS",
        one_of("web", "worker"),
        "Who does what follows a reply: `web`, the web workers beside the requests, so that one program is all there "
        "is; or `worker`, processes of their own, `flask jobs work`.",
    )
    job_attempts: int = _setting(
        6,
        "JOB_ATTEMPTS",
        integer(1),
        "Tries of a job before it is left for you to look at; with the pauses between, six outlast eight minutes "
        "without the model.",
    )
    summary_every: int = _setting(1, "SUMMARY_EVERY", integer(1), "Turns between updates of the stored summary.")
    summary_debounce: float = _setting(
        3.0,
        "SUMMARY_DEBOUNCE",
        seconds,
        "Seconds of quiet before the update, so that a burst of turns costs one call.",
    )
    summary_prompt: str = _setting("summary", "SUMMARY_PROMPT", text, "Name of the prompt the mini model is given.")
    system_prompt: str = _setting(
        "", "SYSTEM_PROMPT", text, "What the main model is told first; empty: the prompt named `system`."
    )
    prompts_dir: str = _setting(
        "",
        "PROMPTS_DIR",
        text,
        "A folder of NAME.txt files that replace or add prompts; empty: `prompts` in the data directory.",
    )

    prompt_cache_key: str = _setting(
        "auto",
        "PROMPT_CACHE_KEY",
        one_of("auto", "on", "off"),
        "Whether to name the session as `prompt_cache_key`, so that prompts which begin alike meet the same cache. "
        "`auto`: at OpenAI's own server, since others may refuse what they don't know.",
    )
    tail_messages_min: int = _setting(
        2, "TAIL_MESSAGES_MIN", integer(0), "Messages a fold keeps word for word: the last turn."
    )
    tail_messages_max: int = _setting(
        12,
        "TAIL_MESSAGES_MAX",
        integer(2),
        "Messages after which the tail folds into the summary: six turns a fold, where a turn takes fewest tokens of "
        "both models, with one call of the mini model in six turns.",
    )
    tail_tokens_max: int = _setting(
        3000, "TAIL_TOKENS_MAX", integer(100), "Tokens after which it folds, if that comes first."
    )
    context_tokens: int = _setting(
        16_000, "CONTEXT_TOKENS", integer(500), "Largest prompt ever sent; fits the small models people run at home."
    )
    embeddings: str = _setting(
        "wordllama",
        "EMBEDDINGS",
        one_of("wordllama", "openai", "off"),
        "What meaning is measured with: `wordllama` works offline; `openai` asks the model server; or `off`.",
    )
    embedding_model: str = _setting(
        "text-embedding-3-small", "OPENAI_EMBEDDING_MODEL", text, "The model that `EMBEDDINGS=openai` asks for."
    )
    search_language: str = _setting(
        "en",
        "SEARCH_LANGUAGE",
        one_of("da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv"),
        "Whose words are searched by their stems; any text is found. Another language makes the index anew.",
    )
    ranking: str = _setting(
        "context",
        "RANKING",
        one_of("context", "words", "fuzzy"),
        "`context` weighs words, meaning and what is around a message; `words` is BM25; `fuzzy` to compare.",
    )
    fusion: str = _setting(
        "weighted",
        "FUSION",
        one_of("weighted", "rrf"),
        "How the parts are added: by value, or by rank (measured worse).",
    )
    rank_meaning: float = _setting(
        0.8,
        "RANK_MEANING",
        weight,
        "Weight of meaning beside words' 1; without it recall@10 is 1.2 lower.",
    )
    rank_neighbours: float = _setting(
        1.0, "RANK_NEIGHBOURS", weight, "Weight of the messages around; without it recall@10 is 3.9 lower."
    )
    rank_session: float = _setting(
        1.0,
        "RANK_SESSION",
        weight,
        "Weight of the whole session; without it recall@10 is 1.7 lower.",
    )
    rank_time: float = _setting(
        1.5, "RANK_TIME", weight, "Weight of a time the message speaks of; without it recall@10 is 1.4 lower."
    )
    recall_tokens: int = _setting(
        600,
        "RECALL_TOKENS",
        integer(0),
        "Tokens of recalled excerpts in a prompt; two fifths of them for a message that tells more than it asks, a "
        "sixth for one that asks for nothing.",
    )
    recall: str = _setting(
        "auto",
        "RECALL",
        one_of("auto", "always", "tools", "off"),
        "When to look back unless a request says: `auto` reads the message; `tools` lets the model ask.",
    )
    recall_tool_rounds: int = _setting(
        3,
        "RECALL_TOOL_ROUNDS",
        integer(2),
        "Model calls a turn in recall mode `tools`: a look back, another with better words, then the answer.",
    )
    recall_scope: str = _setting(
        "user",
        "RECALL_SCOPE",
        one_of("user", "session"),
        "How far: all of the person's sessions, or the one talked in. Without a user_id both are the session.",
    )
    recall_limit: int = _setting(
        16, "RECALL_LIMIT", integer(0), "Messages recalled for a prompt at most; the tokens run out first."
    )
    recall_window: int = _setting(
        0, "RECALL_WINDOW", integer(0), "Messages shown around each; the ranking finds those that matter by itself."
    )
    fact_tokens: int = _setting(
        300, "FACT_TOKENS", integer(0), "Tokens of facts in a prompt; half at most sit in its head."
    )
    fact_weights: FactWeights = _setting(
        FactWeights(),
        "FACT_WEIGHTS",
        FactWeights.parse,
        "What counts in ranking facts, as `importance:0.4,recency:0.2`.",
    )
    fact_half_life_days: float = _setting(
        30.0, "FACT_HALF_LIFE_DAYS", days, "Days after which a fact's recency has halved: last month still counts."
    )

    metrics_key: str = _setting(
        "",
        "METRICS_KEY",
        metrics_key,
        "What Prometheus shows as its bearer token at `/metrics` where API keys are asked for, since its figures are "
        "of all tenants. Empty: nobody reads them there.",
        secret=True,
    )
    log_level: str = _setting(
        "info",
        "LOG_LEVEL",
        one_of("debug", "info", "warning", "error"),
        "One line a turn at `info`, and one a request that is no turn or was refused.",
    )
    log_format: str = _setting(
        "logfmt",
        "LOG_FORMAT",
        one_of("logfmt", "json"),
        "`logfmt` reads well and parses well; `json` for collectors that take nothing else.",
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
        if self.request_timeout < 1:
            raise SettingsError("REQUEST_TIMEOUT must be at least 1 second, or hardly a request would arrive in time.")
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
    def turn_seconds(self) -> float:
        """The longest a turn may take: its calls of the main model, and inline the mini's with a repair, in a row."""
        calls = self.recall_tool_rounds + (2 if self.summary_mode == "inline" else 0)
        return calls * self.model_timeout

    @property
    def sqlalchemy_url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir.resolve() / 'recap.db'}"

    @property
    def index_dir(self) -> Path:
        return self.data_dir / "index"

    @property
    def prompts_path(self) -> Path:
        return Path(self.prompts_dir).expanduser() if self.prompts_dir else self.data_dir / "prompts"
