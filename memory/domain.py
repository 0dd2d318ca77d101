"""The vocabulary as values: what passes between the engine's modules.

All are frozen.  Times are aware and in UTC; token counts are `tokens.estimate`'s unless they are called usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

Role = Literal["user", "assistant", "system", "tool"]

INTERRUPTED = "interrupted"  # the finish_reason of a reply that was stopped, or whose listener went away

TEXT_SECTIONS = ("requirements", "constraints", "data", "open_questions", "discussed")
FACT_CATEGORIES = (
    "identity",
    "preference",
    "plan",
    "event",
    "requirement",
    "constraint",
    "relationship",
    "work",
    "other",
)


@dataclass(frozen=True)
class Caller:
    """On whose behalf a call is made: a tenant, and within it a user where the application named one."""

    tenant: str = "default"
    user_id: str | None = None


class Message(NamedTuple):  # as dozens are read each turn, and a frozen dataclass takes five times as long to make
    """One stored message.  `position` counts from 1 within its session's line; `id` is unique everywhere.

    `extra` is what it carries beside its words, as JSON's types: calls of tools, the call it answers, what stood for
    an image.
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

    @property
    def speaker(self) -> str:
        """Who is speaking, as a person would call them."""
        return self.name or self.role


@dataclass(frozen=True)
class Excluded:
    """An option the person ruled out, and why."""

    option: str
    reason: str = ""


@dataclass(frozen=True)
class Sections:
    """The structured summary's seven sections (see the design's study of what people keep in mind)."""

    topic: str = ""
    requirements: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    data: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    discussed: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return self == Sections()

    def as_dict(self) -> dict[str, Any]:
        """The sections as JSON's types, in the order of the vocabulary."""
        return {
            "topic": self.topic,
            "requirements": list(self.requirements),
            "constraints": list(self.constraints),
            "excluded": [{"option": item.option, "reason": item.reason} for item in self.excluded],
            "data": list(self.data),
            "open_questions": list(self.open_questions),
            "discussed": list(self.discussed),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Sections:
        """The inverse of `as_dict`.  Expects well-formed data; `digest.parse` is for what a model wrote."""
        return cls(
            topic=data.get("topic", ""),
            excluded=tuple(Excluded(item["option"], item.get("reason", "")) for item in data.get("excluded", ())),
            **{name: tuple(data.get(name, ())) for name in TEXT_SECTIONS},
        )

    def lines(self) -> list[str]:
        """The summary as text a model or a person reads: one line for the topic, one for each item."""
        out = [f"Topic: {self.topic}"] if self.topic else []
        for name, title in (
            ("requirements", "Requirements"),
            ("constraints", "Constraints"),
            ("excluded", "Ruled out"),
            ("data", "Facts and figures"),
            ("open_questions", "Open questions"),
            ("discussed", "Discussed"),
        ):
            items = getattr(self, name)
            if items:
                out.append(f"{title}:")
                for item in items:
                    if isinstance(item, Excluded):
                        out.append(f"- {item.option}" + (f" (because {item.reason})" if item.reason else ""))
                    else:
                        out.append(f"- {item}")
        return out

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class FactScore:
    """Why a fact stands where it stands: the weighted parts, and their sum.  Pinned facts come before all."""

    total: float
    importance: float
    recency: float
    use: float
    relevance: float


@dataclass(frozen=True)
class Fact:
    """One statement with its source.  It holds from `valid_from` until `valid_to` (None: it still holds)."""

    id: int
    text: str
    category: str
    importance: int
    scope: str
    session_id: str | None
    source_message_id: int | None
    quote: str
    pinned: bool
    recalled_count: int
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: int | None
    created_at: datetime
    score: FactScore | None = None

    def __hash__(self) -> int:
        return self.id ^ self.recalled_count << 32  # what tells facts apart: hundreds are looked up each turn

    def scored(self, score: FactScore) -> Fact:
        scored = object.__new__(Fact)  # as `replace` does, without setting field by field: each turn for a dozen
        vars(scored).update(vars(self), score=score)
        return scored


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
class FactDraft:
    """A fact as the mini model proposes it, not yet checked against its source.

    `source` is the position of the message it was taken from; `supersedes` the ids of known facts it corrects.
    """

    text: str
    source: int
    quote: str
    category: str = "other"
    importance: int = 3
    scope: str = "session"
    supersedes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Excerpt:
    """What is recalled of one session: its messages that were found and those around them, in order, with gaps.

    `score` is the best hit's; `hits` says which of the messages were found, and `why` how the score came about.
    """

    session_id: str
    title: str
    messages: tuple[Message, ...]
    hits: tuple[int, ...]
    score: float
    why: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Tokens the provider says it took; `estimated` when it said nothing and the figures are our own.

    `cached_tokens` of the prompt's it had from its cache, as far as it says so.
    """

    prompt_tokens: int
    completion_tokens: int
    estimated: bool = False
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """What two calls took together."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.estimated or other.estimated,
            self.cached_tokens + other.cached_tokens,
        )

    @property
    def total_tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens
