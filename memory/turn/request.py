"""Values of a turn: the request, the turn that has begun, and the events that its caller gets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from typing import Any, Literal, NamedTuple

from memory import tokens
from memory.errors import ModelError
from memory.leases import Lease
from memory.llm import CancelToken, RawChunk, TextDelta, Thought, ToolCall, Waiting
from memory.transcripts.matching import conversation_fingerprint
from memory.transcripts.transcript import TranscriptMessage, TranscriptRequest, attachments_of, message_key, text_of
from memory.turn.memory_report import MemoryReport
from models.messages import Message, MessageDraft
from models.owners import Caller, Usage
from models.sessions import SessionState

NAME_CHARS = 128  # of a message's
ATTACHMENT_TOKENS = 800  # of an image that a client sends; models count from 85 to 1,600
_STORED = ("prompt_tokens", "completion_tokens", "estimated")  # cached tokens are for the metrics alone


@dataclass(frozen=True)
class TurnRequest:
    """Message to answer, on behalf of `caller`.

    message: its words. sent: with the images and text files that the model gets beside them.
    recall: the mode; None: the setting RECALL. model: None for the main model.
    remember: if not, no fact is taken from the turn and no other session recalls it.
    summary_prompt: the name of the prompt for this turn's summary.
    timezone: where the person's days begin.
    temporary: nothing is stored. history: the earlier messages of a temporary chat, which nobody else keeps.
    replaces: the id of the user message of this session that this one replaces, with all after it.
    on_disconnect: what becomes of the reply when the reader leaves: it is finished, or interrupted and kept so far.
    transcript: the whole request of a program that sends its conversation each time (a client), whose last user message
    is `message`. Such a request is answered also where memory breaks. None: a person's message.
    block_tokens: the most tokens of a memory block; the caller's own model answers then.
    also: whose memory the turn reads beside its own: spaces, and the person who acts in one.
    lock_timeout: seconds that each write waits for the database, if not its own limit.
    cancel: ends the reply early when it is cancelled.
    """

    caller: Caller
    message: str
    session_id: str | None = None
    name: str | None = None
    sent: TranscriptMessage | None = None
    recall: str | None = None
    model: str | None = None
    remember: bool = True
    summary_prompt: str | None = None
    system_prompt: str | None = None
    stream: bool = False
    timezone: tzinfo = UTC
    temporary: bool = False
    history: tuple[MessageDraft, ...] = ()
    idempotency_key: str | None = None
    replaces: int | None = None
    on_disconnect: Literal["finish", "interrupt"] = "finish"
    transcript: TranscriptRequest | None = None
    block_tokens: int | None = None
    also: tuple[Caller, ...] = ()
    lock_timeout: float | None = None
    cancel: CancelToken = field(default_factory=CancelToken, compare=False)

    def opening(self, *replies: MessageDraft) -> str | None:
        """Return by what a client's conversation without a session's name is known again, once these are said."""
        if self.transcript is None or self.session_id is not None:
            return None
        return conversation_fingerprint(self.caller, [*self.transcript.keys, *map(message_key, replies)])

    @property
    def appends(self) -> bool:
        """Return whether its message comes after all others, and takes no other's place."""
        return self.replaces is None and self.transcript is None

    @cached_property
    def attached_tokens(self) -> int:
        """Return the tokens of the images and text files that the model gets beside the words of a message."""
        if self.sent is None:
            return 0
        words, images = tokens.estimate(self.message), len(attachments_of(self.sent.raw))
        return ATTACHMENT_TOKENS * images + max(0, tokens.estimate(text_of(self.sent.raw)) - words)

    @property
    def draft(self) -> MessageDraft:
        """Return the message as it is stored."""
        speaker = self.caller.user_id if self.caller.space is not None else None  # a space has several
        name = self.name or (speaker[:NAME_CHARS] if speaker is not None else None)
        if self.sent is not None:
            return replace(self.sent.draft, name=name)
        return MessageDraft("user", self.message, name)

    @property
    def fingerprint(self) -> str | None:
        """Return the hash that the same request has when it is sent again; None for one that is not known again."""
        if self.transcript is not None:
            return self.transcript.fingerprint
        if self.idempotency_key is None:
            return None
        replaces = () if self.replaces is None else (self.replaces,)  # stored fingerprints stay as they are
        attachments = self.sent.key.attachments if self.sent is not None else ()
        parts = self.caller.user_id, self.session_id, self.message, self.system_prompt, self.summary_prompt
        parts += (*replaces, *attachments, *(() if self.caller.space is None else ("space", self.caller.space)))
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Turn:
    """Turn that has begun: its session as it was then, and what keeps others out of it.

    session: None where memory takes no part. session_id: None where the caller has no session.
    new_messages: the message to answer; in a client's conversation followed by calls of tools and their results.
    history: the earlier messages of a temporary turn, which are not stored.
    as_sent: messages as the client sent them, by their ids. continued_turn: the turn that calls of tools go on from.
    lease, turn_id: of the session and of the turn's row; a turn that stores nothing has neither.
    is_appended: this turn stored its message, at the end of the session. is_new_session: and its session.
    finished: the end that this request has come to before.
    """

    request: TurnRequest
    session: SessionState | None = None
    session_id: str | None = None
    new_messages: tuple[Message, ...] = ()
    history: tuple[Message, ...] = ()
    as_sent: Mapping[int, TranscriptMessage] = field(default_factory=dict)
    continued_turn: TurnStarted | None = None
    lease: Lease | None = None
    turn_id: int | None = None
    is_appended: bool = False
    is_new_session: bool = False
    finished: TurnFinished | None = None


class PrefixChoice(NamedTuple):
    """Choice of a turn for the prefix; it is stored with the reply, unless the prefix has changed by then.

    version: the summary that the prefix showed.
    """

    version: int
    fact_ids: list[int]
    type: str | None
    at: datetime


@dataclass(frozen=True)
class TurnUsage:
    """Tokens of the main model.

    full_history_tokens: what sending every message would have cost, but for hidden and refused ones, in this model's
    tokens.
    """

    spent: Usage
    full_history_tokens: int

    @property
    def saved_tokens(self) -> int:
        """Below zero while a conversation is short."""
        return self.full_history_tokens - self.spent.prompt_tokens

    def to_stored(self) -> dict[str, Any]:
        kept = {name: getattr(self.spent, name) for name in _STORED}
        return kept | {"full_history_tokens": self.full_history_tokens}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TurnUsage:
        return cls(Usage(**{name: stored[name] for name in _STORED}), stored["full_history_tokens"])


@dataclass(frozen=True)
class TurnStarted:
    """Event: the model has begun to answer `user_message_id`, which may be the result of a tool.

    session_id: None for a temporary turn without a session. user_message_id: None where nothing is stored.
    saved_tokens: an estimate. problem: why a client's request was answered without all of its memory.
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
    """Event: the turn is over and stored.

    finish_reason: the model's, or `interrupted` or `cut_off`. failure: why the reply was cut off; its words are kept.
    calls: the reply's calls of a client's tools.
    """

    started: TurnStarted
    reply: str
    reply_message_id: int | None
    finish_reason: str
    model: str
    usage: TurnUsage
    calls: tuple[ToolCall, ...] = ()
    failure: ModelError | None = None


TurnEvent = TurnStarted | TextDelta | Thought | Waiting | RawChunk | TurnFinished
