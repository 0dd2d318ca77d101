"""The vocabulary as values: what the engine's modules pass to each other.

All are frozen.  Times are aware and in UTC.  Token counts are estimates (see `tokens`) unless they are called usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from models import Refusal

UNREMEMBERED = {"memory": "off"}  # the `extra` of a message that is not remembered
INTERRUPTED = "interrupted"  # the finish_reason of a reply that was stopped, or whose client left
CUT_OFF = "cut_off"  # that of a reply in whose middle the model failed

FACT_CATEGORIES = (
    *("identity", "preference", "plan", "event", "requirement", "constraint"),
    *("relationship", "work", "other"),
)

RECALL_MODES = ("auto", "always", "tools", "off")
ENTITY_KINDS = ("person", "place", "organisation", "thing")


@dataclass(frozen=True)
class Caller:
    """On whose behalf a call is made: a tenant, and within it a user where the application named one."""

    tenant: str = "default"
    user_id: str | None = None


class Message(NamedTuple):
    """One stored message.  `position` counts from 1 within its session's line; `id` is unique everywhere.

    `extra` is what it carries beside its words, as JSON's types: calls of tools, the call it answers, what stood for
    an image, or that it is not `remembered`.  One that was hidden at `hidden_at` is in no prompt of its session, and
    one that a model server `refused` is in no prompt at all, unless it is sent again.
    """

    id: int
    session_id: str
    position: int
    role: str
    content: str
    created_at: datetime
    tokens: int
    name: str | None = None
    external_id: str | None = None
    extra: Mapping[str, Any] | None = None
    hidden_at: datetime | None = None
    refused: Refusal | None = None

    @property
    def remembered(self) -> bool:
        """Whether it may be recalled in other sessions, and read for facts."""
        return (self.extra or {}).get("memory") != "off"


@dataclass(frozen=True)
class FactScore:
    """Why a fact is ranked where it is: the weighted parts and their sum.  Pinned facts come before all others."""

    total: float = 0.0
    importance: float = 0.0
    recency: float = 0.0
    use: float = 0.0
    relevance: float = 0.0


@dataclass(frozen=True)
class Fact:
    """One statement with its source.  It holds from `valid_from` until `valid_to` (None: it still holds).

    One that was `merged` says the same as its successor, and is one of its `proofs` (where these are read).
    """

    id: int
    text: str
    valid_from: datetime
    created_at: datetime
    category: str = "other"
    importance: int = 3
    scope: str = "session"
    session_id: str | None = None
    source_message_id: int | None = None
    quote: str = ""
    pinned: bool = False
    recalled_count: int = 0
    valid_to: datetime | None = None
    superseded_by: int | None = None
    merged: bool = False
    score: FactScore = FactScore()
    proofs: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class FactRevision:
    """A fact as it was after one change."""

    fact_id: int
    action: str
    author: str
    text: str
    category: str
    importance: int
    pinned: bool
    at: datetime


@dataclass(frozen=True)
class Link:
    """A relation between two entities, known by their names (see `facts.entities`).  A link belongs to a fact."""

    subject: str
    relation: str
    object: str
    subject_kind: str = "thing"
    object_kind: str = "thing"

    def __str__(self) -> str:
        return f"{self.subject} {self.relation} {self.object}"


@dataclass(frozen=True)
class FactDraft:
    """A fact as the mini model proposes it, not yet checked against its source.

    `source` is the position of the message it rests on, `supersedes` the ids of known facts that it corrects.
    """

    text: str
    source: int
    quote: str
    category: str = "other"
    importance: int = 3
    scope: str = "session"
    supersedes: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Gist:
    """The lines that an excerpt shows of its session's summary.

    session_row_id, summary_id: the rows they were made from, for the record of a turn; no summary: None.
    updated_at: when the session was last talked in.
    in_full: with the open questions, not only title and topic.
    """

    session_row_id: int
    summary_id: int | None
    updated_at: datetime
    lines: tuple[str, ...]
    in_full: bool = False


@dataclass(frozen=True)
class Excerpt:
    """What is recalled of one session: messages that were found and those around them, in order, with gaps.

    `hits` are the ids of the messages that were found, `score` is the best one's, and `why` are its parts.
    gist: lines of the session's summary, before the messages or in their place.
    """

    session_id: str
    title: str
    messages: tuple[Message, ...]
    hits: tuple[int, ...]
    score: float
    why: Mapping[str, float] = field(default_factory=dict)
    gist: Gist | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of model calls, as the provider reports them; `estimated` when it reported none.

    `cached_tokens` are those of the prompt that the provider read from its cache, as far as it says so.
    """

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
            self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
