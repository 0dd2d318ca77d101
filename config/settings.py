"""Every setting and its default, in one place.

`Settings.from_env` reads the environment once; everything else is handed a frozen `Settings`.  The text under a
setting says what it does and why its default is what it is; the README's table says the same.  A value that cannot be
used stops the start with a sentence that names the variable.

pydantic, which the openai package brings along, checks the values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import AfterValidator, AliasGenerator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from config import values
from config.values import ApiKey, FactWeights

T = TypeVar("T")


def _from_text(parse: Callable[[str], Any]) -> BeforeValidator:
    """Of a variable; a value is taken as it is."""
    return BeforeValidator(lambda raw: parse(raw) if isinstance(raw, str) else raw)


Choice = Annotated[T, _from_text(str.lower)]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]
Days = Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class SettingsError(ValueError):
    """A setting that cannot be used; the message names the variable and says what it takes."""


class Settings(BaseModel):
    """One process's settings."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=AliasGenerator(validation_alias=str.upper),  # the variable of `port` is PORT
        populate_by_name=True,
        protected_namespaces=(),
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
    )

    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Field(Path("data"), validation_alias="RECAP_DATA_DIR")
    """Where the database and the index live."""

    database_url: str = ""
    """A SQLAlchemy URL; empty: SQLite in the data directory."""

    host: str = "127.0.0.1"
    """Address to listen on; loopback, since without keys nobody is asked who they are."""

    port: int = Field(8000, ge=1)
    """Port to listen on."""

    workers: int = Field(2, ge=1, validation_alias="WEB_WORKERS")
    """Server processes; two, so that one busy core never stops all."""

    threads: int = Field(32, ge=1, validation_alias="WEB_THREADS")
    """Threads a process; a turn waits on the model, not on a core."""

    api_keys: Annotated[tuple[ApiKey, ...], _from_text(values.api_keys)] = Field(
        (), validation_alias="RECAP_API_KEYS", repr=False
    )
    """`tenant:key,tenant:key`: who may call, and whose data they see. Keys of 16 characters or more, as shorter ones
    can be guessed. Beside them there are those of `flask keys create`."""

    allow_anonymous: bool = Field(False, validation_alias="RECAP_ALLOW_ANONYMOUS")
    """`1`: serve whoever comes, without a key, on any address. Without it a server that has no keys serves its own
    machine alone, since everyone could read everything."""

    rate_limit: Annotated[str, AfterValidator(values.rate_limit)] = ""
    """Requests a key may make, or an address where no key is asked for, as `120 per minute; 10 per second`; `off`: any
    number. Empty: 6000 per minute; where no key is asked for, any number from this machine."""

    rate_limit_storage: Annotated[str, AfterValidator(values.rate_limit_storage)] = Field("memory://", repr=False)
    """Where requests are counted. `memory://`: by each worker for itself, so that WEB_WORKERS times the limit may get
    through; `redis://host:6379/0`: by all workers and machines together."""

    daily_tokens: int = Field(0, ge=0)
    """Tokens that a person's turns and summaries may take on a day of UTC. 0: any number, since only you know what
    your model costs."""

    cors_origins: Annotated[tuple[str, ...], _from_text(values.origins)] = ()
    """Sites whose pages may call this from a browser, as `https://app.example.com,http://localhost:3000`. Empty: none,
    only Recap's own page may."""

    trusted_proxies: int = Field(0, ge=0)
    """Proxies before Recap that write X-Forwarded-For: 1 behind nginx. With 0 the header is not believed, since anyone
    may send it."""

    openai_api_key: str = Field("", repr=False)
    """Key for the model server."""

    openai_base_url: str = ""
    """Any OpenAI-compatible server; empty: OpenAI's own."""

    openai_model: str = "gpt-4o"
    """The main model: it answers."""

    openai_summary_model: str = ""
    """The mini model: it keeps summary and facts. Empty: gpt-4o-mini at OpenAI, the main model elsewhere."""

    request_timeout: Annotated[Seconds, Field(ge=1)] = 20.0
    """Seconds a request may take to arrive, its body a second more for every 16 KB, and the client to take a piece of
    the answer; so that slow clients hold no thread for long."""

    model_timeout: Seconds = 120.0
    """Seconds a model call may take in all, retries included; long answers need them."""

    summary_mode: Choice[Literal["background", "inline"]] = "background"
    """`background` updates the summary after the reply has left; `inline` before, as a one-endpoint service would."""

    jobs: Choice[Literal["web", "worker"]] = "web"
    """Who does what follows a reply: `web`, the web workers beside the requests, so that one program is all there is;
    or `worker`, processes of their own, `flask jobs work`."""

    job_attempts: int = Field(6, ge=1)
    """Tries of a job before it is left for you to look at; with the pauses between, six outlast eight minutes without
    the model."""

    summary_every: int = Field(1, ge=1)
    """Turns between updates of the stored summary."""

    summary_debounce: Seconds = 3.0
    """Seconds of quiet before the update, so that a burst of turns costs one call."""

    summary_prompt: str = "summary"
    """Name of the prompt the mini model is given."""

    system_prompt: str = ""
    """What the main model is told first; empty: the prompt named `system`."""

    prompts_dir: str = ""
    """A folder of NAME.txt files that replace or add prompts; empty: `prompts` in the data directory."""

    prompt_cache_key: Choice[Literal["auto", "on", "off"]] = "auto"
    """Whether to name the session as `prompt_cache_key`, so that prompts which begin alike meet the same cache.
    `auto`: at OpenAI's own server, since others may refuse what they don't know."""

    tail_messages_min: int = Field(2, ge=0)
    """Messages a fold keeps word for word: the last turn."""

    tail_messages_max: int = Field(12, ge=2)
    """Messages after which the tail folds into the summary: six turns a fold, where a turn takes fewest tokens of both
    models, with one call of the mini model in six turns."""

    tail_tokens_max: int = Field(3000, ge=100)
    """Tokens after which it folds, if that comes first."""

    context_tokens: int = Field(16_000, ge=500)
    """Largest prompt ever sent; fits the small models people run at home."""

    embeddings: Choice[Literal["wordllama", "openai", "off"]] = "wordllama"
    """What meaning is measured with: `wordllama` works offline; `openai` asks the model server; or `off`."""

    embedding_model: str = Field("text-embedding-3-small", validation_alias="OPENAI_EMBEDDING_MODEL")
    """The model that `EMBEDDINGS=openai` asks for."""

    search_language: Choice[
        Literal["da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv"]
    ] = "en"
    """Whose words are searched by their stems; any text is found. Another language makes the index anew."""

    ranking: Choice[Literal["context", "words", "fuzzy"]] = "context"
    """`context` weighs words, meaning and what is around a message; `words` is BM25; `fuzzy` to compare."""

    fusion: Choice[Literal["weighted", "rrf"]] = "weighted"
    """How the parts are added: by value, or by rank (measured worse)."""

    rank_meaning: Weight = 0.8
    """Weight of meaning beside words' 1; without it recall@10 is 1.2 lower."""

    rank_neighbours: Weight = 1.0
    """Weight of the messages around; without it recall@10 is 3.8 lower."""

    rank_session: Weight = 1.0
    """Weight of the whole session; without it recall@10 is 1.8 lower."""

    rank_time: Weight = 1.5
    """Weight of a time the message speaks of; without it recall@10 is 1.5 lower."""

    recall_tokens: int = Field(600, ge=0)
    """Tokens of recalled excerpts in a prompt; two fifths of them for a message that tells more than it asks, a sixth
    for one that asks for nothing."""

    recall: Choice[Literal["auto", "always", "tools", "off"]] = "auto"
    """When to look back unless a request says: `auto` reads the message; `tools` lets the model ask."""

    recall_tool_rounds: int = Field(3, ge=2)
    """Model calls a turn in recall mode `tools`: a look back, another with better words, then the answer."""

    recall_scope: Choice[Literal["user", "session"]] = "user"
    """How far: all of the person's sessions, or the one talked in. Without a user_id both are the session."""

    recall_limit: int = Field(16, ge=0)
    """Messages recalled for a prompt at most; the tokens run out first."""

    recall_window: int = Field(0, ge=0)
    """Messages shown around each; the ranking finds those that matter by itself."""

    fact_tokens: int = Field(300, ge=0)
    """Tokens of facts in a prompt; half at most sit in its head."""

    fact_weights: Annotated[FactWeights, _from_text(values.weights)] = FactWeights()
    """What counts in ranking facts, as `importance:0.4,recency:0.2`."""

    fact_half_life_days: Days = 30.0
    """Days after which a fact's recency has halved: last month still counts."""

    metrics_key: Annotated[str, AfterValidator(values.header_key)] = Field("", repr=False)
    """What Prometheus shows as its bearer token at `/metrics` where API keys are asked for, since its figures are of
    all tenants. Empty: nobody reads them there."""

    log_level: Choice[Literal["debug", "info", "warning", "error"]] = "info"
    """One line a turn at `info`, and one a request that is no turn or was refused."""

    log_format: Choice[Literal["logfmt", "json"]] = "logfmt"
    """`logfmt` reads well and parses well; `json` for collectors that take nothing else."""

    @classmethod
    def variables(cls) -> dict[str, str]:
        """The environment variables, each with its setting's name."""
        return {str(item.validation_alias): name for name, item in cls.model_fields.items()}

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Settings:
        """Settings from `environ` (default: the process's), with the file `dotenv` filling what is not set there.

        An empty variable counts as not set.  Raises SettingsError for a value that cannot be used.
        """
        found = dotenv_values(dotenv) if dotenv is not None else {}
        found |= os.environ if environ is None else environ
        chosen = {name: value for name in cls.variables() if (value := (found.get(name) or "").strip())}
        try:
            settings = cls.model_validate(chosen)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            raise SettingsError(" ".join(map(_sentence, problems))) from None
        if settings.tail_messages_min >= settings.tail_messages_max:
            raise SettingsError("TAIL_MESSAGES_MIN must be below TAIL_MESSAGES_MAX, or no fold would make room.")
        return settings

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
        return self.openai_summary_model or (self.openai_model if self.openai_base_url else "gpt-4o-mini")

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


def _sentence(problem: Any) -> str:
    """What is wrong with one variable, without its value."""
    reason = str(problem.get("ctx", {}).get("error") or problem["msg"])
    variable, *part = map(str, problem["loc"])
    return f"{': '.join([f'{variable} cannot be used', *part])}: {reason[0].lower()}{reason[1:]}."
