"""A turn as values: what is asked, what is reported while it is taken, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from memory.clients.conversation import ClientRequest
from memory.domain import Usage
from memory.llm import Chunk, Piece, ToolCall
from memory.sessions.messages import MessageDraft
from memory.turn.report import MemoryReport


@dataclass(frozen=True)
class TurnRequest:
    """A message to answer.  `recall` None: as RECALL says.  `timezone` is where the person's days begin.

    `replaces` is the id of the user message of this session that it takes the place of, with all after that.
    `unheard` says what becomes of the reply when its listener goes away: it is written to its end (`finish`), or what
    was written is kept (`interrupt`).  `history` is what was said before in a temporary chat: nobody else keeps it.
    `client` is a whole request of an OpenAI client, of which `message` is what the person said last.
    """

    message: str
    session_id: str | None = None
    name: str | None = None
    recall: str | None = None
    prompt: str | None = None
    system_prompt: str | None = None
    stream: bool = False
    timezone: tzinfo = UTC
    temporary: bool = False
    history: tuple[MessageDraft, ...] = ()
    idempotency_key: str | None = None
    replaces: int | None = None
    unheard: Literal["finish", "interrupt"] = "finish"
    client: ClientRequest | None = None


@dataclass(frozen=True)
class TurnUsage:
    """Tokens of the main call.  `full_history` is what sending every message instead would have cost, at this
    model's own rate of tokens; `saved` the difference, below zero while a conversation is short."""

    spent: Usage
    full_history_tokens: int

    @property
    def saved_tokens(self) -> int:
        return self.full_history_tokens - self.spent.prompt_tokens

    def to_stored(self) -> dict[str, Any]:
        return {  # without those the provider had kept, which are for the metrics: a turn costs its owner the same
            "prompt_tokens": self.spent.prompt_tokens,
            "completion_tokens": self.spent.completion_tokens,
            "estimated": self.spent.estimated,
            "full_history_tokens": self.full_history_tokens,
        }

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TurnUsage:
        return cls(
            Usage(stored["prompt_tokens"], stored["completion_tokens"], stored["estimated"]),
            stored["full_history_tokens"],
        )


@dataclass(frozen=True)
class TurnStarted:
    """The prompt is composed and the model has begun; `session_id` is None for a temporary turn without a session.

    `saved_tokens` is an estimate, since nothing is counted yet.  `problem` is why nothing is remembered, or not all is
    stored, of a client's request that was answered all the same.
    """

    completion_id: str
    session_id: str | None
    user_message_id: int | None
    model: str
    created_at: datetime
    memory: MemoryReport
    saved_tokens: int = 0
    problem: str | None = None


@dataclass(frozen=True)
class TurnFinished:
    """The turn is over and stored.  `finish_reason` is the model's, or `interrupted`.  `calls` are the reply's calls of
    a client's tools."""

    started: TurnStarted
    reply: str
    reply_message_id: int | None
    finish_reason: str
    model: str
    usage: TurnUsage
    replayed: bool = False
    calls: tuple[ToolCall, ...] = ()


TurnEvent = TurnStarted | Piece | Chunk | TurnFinished
