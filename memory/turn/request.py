"""Values of a turn: the request, the turn that has begun, and the events that its caller gets (TurnEvent)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any, Literal, NamedTuple, Self

from config import Settings
from memory import tokens
from memory.errors import ModelError
from memory.leases import Lease
from memory.llm import CancelToken, RawChunk, TextDelta, Thought, ToolCall, Waiting
from memory.transcripts.matching import conversation_fingerprint
from memory.transcripts.transcript import TranscriptMessage, TranscriptRequest, attachments_of, message_key, text_of
from memory.turn.memory_report import MemoryReport
from models.messages import Message, MessageDraft, is_kept_out
from models.owners import Caller, Usage
from models.sessions import SessionState
from models.turns import CUT_OFF, INTERRUPTED

ATTACHMENT_TOKENS = 800  # estimated for an image that a client sends; models count from 85 to 1,600


@dataclass(frozen=True)
class TurnRequest:
    """Message to answer, on behalf of `caller`.

    message: the text. name: of its speaker, if several speak.
    sent: the same message with its images and text files, as the model gets it; None: text alone.
    recall: the mode; None: the setting RECALL. model: its name; None: the main model.
    remember: False: no fact is taken from the turn, and no other session recalls it.
    summary_prompt: the name of the prompt for this turn's summary.
    system_prompt: of this turn; None: the session's, the setting SYSTEM_PROMPT, or Recap's own.
    stream: the reply is sent piece by piece, before it is stored.
    timezone: in which the person's days begin; None: the session's, or the setting TIMEZONE.
    temporary: memory is read, and nothing is stored. history: its earlier messages, which only the caller has.
    idempotency_key: a turn that began with the same key is resumed, or its answer is returned again.
    replaces: the id of the user message of this session that this one replaces, with all messages after it.
    on_disconnect: finish the reply when the reader leaves, or interrupt it and store what was written until then.
    transcript: the request of a client, a program that sends its conversation each time; `message` is the last user
    message in it. Such a request fails open. None: a person's message.
    block_tokens: the largest size of a memory block, for an application that calls a model itself; None: a turn.
    also: owners whose memory the turn reads too: spaces, and the person who acts in one.
    lock_timeout: seconds that each write waits for the database; None: the database's own limit.
    cancel: cancel it to end the reply early.
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
    timezone: tzinfo | None = None
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

    def next_opening(self, reply: MessageDraft | None = None, reason: str = "") -> str | None:
        """Return a fingerprint of how the client's next request will begin, which finds this session by it.

        That request repeats the conversation of this one, and its reply.  A reply that ended for the `reason`
        INTERRUPTED or CUT_OFF is left out: nobody knows how much of it the client repeats.
        None: the request names its session, or is a person's.
        """
        if self.transcript is None or self.session_id is not None:
            return None
        replies = [] if reply is None or reason in (INTERRUPTED, CUT_OFF) else [message_key(reply)]
        keys = [*self.transcript.keys, *replies]
        whole = conversation_fingerprint(self.caller, keys)
        return whole or conversation_fingerprint(self.caller, keys, answered=False)

    @property
    def is_client(self) -> bool:
        """Return whether a client sent it, with its conversation (`transcript`)."""
        return self.transcript is not None

    @property
    def attached_tokens(self) -> int:
        """Return the estimated tokens of the images and text files of the message, which has some (`sent`)."""
        assert self.sent is not None
        words = tokens.estimate(self.message)
        images = len(attachments_of(self.sent.raw))
        return ATTACHMENT_TOKENS * images + max(0, tokens.estimate(text_of(self.sent.raw)) - words)

    @property
    def draft(self) -> MessageDraft:
        """Return the message to store."""
        draft = self.sent.draft if self.sent is not None else MessageDraft("user", self.message)
        return replace(draft, name=self.name).said_by(self.caller)

    @property
    def fingerprint(self) -> str:
        """Return a hash that recognises a retry: of a client, or of a person's message with an Idempotency-Key."""
        if self.transcript is not None:
            return self.transcript.fingerprint
        replaces = () if self.replaces is None else (self.replaces,)  # stored fingerprints stay as they are
        attachments = self.sent.key.attachments if self.sent is not None else ()
        parts = self.caller.user_id, self.session_id, self.message, self.system_prompt, self.summary_prompt
        parts += (*replaces, *attachments, *(() if self.caller.space is None else ("space", self.caller.space)))
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Turn(NamedTuple):
    """Turn that has begun, with the state of its session at that time.

    session: None if the turn uses and stores no memory, or has an `earlier_answer`.
    new_messages: the message to answer; in a client's conversation followed by calls of tools and their results.
    history: the earlier messages of a temporary turn, which are not stored.
    as_sent: messages as the client sent them, by id. continued_turn: the earlier turn whose calls of tools this one
    answers.
    lease: on the session. turn_id: of the turn's row. Both are None if the turn stores nothing.
    is_appended: this turn stored its message at the end of the session. is_new_session: it created the session too.
    earlier_answer: the end of the turn that answered this request before, if the request is a retry.
    """

    request: TurnRequest
    session: SessionState | None = None
    new_messages: tuple[Message, ...] = ()
    history: tuple[Message, ...] = ()
    as_sent: Mapping[int, TranscriptMessage] = {}
    continued_turn: "TurnStarted | None" = None
    lease: Lease | None = None
    turn_id: int | None = None
    is_appended: bool = False
    is_new_session: bool = False
    earlier_answer: "TurnFinished | None" = None

    @property
    def session_id(self) -> str | None:
        """Return the id of the session, or the one that the request of a turn that stores nothing names."""
        return self.request.session_id if self.session is None or self.lease is None else self.session.public_id

    def zone(self, settings: Settings) -> tzinfo:
        """Return the zone in which the person's days begin: of the request, the session, or the settings."""
        return self.request.timezone or settings.zone(self.session.timezone if self.session is not None else None)

    def recall_mode(self, settings: Settings) -> str:
        """Return the mode of recall that is asked for: by the request, or by the settings.  Replies report it."""
        return self.request.recall or settings.recall

    @property
    def keeps_out(self) -> bool:
        """Return whether the person asked not to remember one of the new messages."""
        return any(is_kept_out(message.extra) for message in self.new_messages)


@dataclass(frozen=True)
class TurnUsage:
    """Tokens of the main model.

    full_history_tokens: the prompt's size in this model's tokens if it had every message (without hidden and refused
    ones).
    """

    spent: Usage
    full_history_tokens: int

    @property
    def saved_tokens(self) -> int:
        """Below zero while a conversation is short."""
        return self.full_history_tokens - self.spent.prompt_tokens

    def to_stored(self) -> dict[str, Any]:
        """Return the figures that are stored: cached tokens are for the metrics alone."""
        figures = {**vars(self.spent), "full_history_tokens": self.full_history_tokens}
        del figures["cached_tokens"]
        if not self.spent.reasoning_tokens:
            del figures["reasoning_tokens"]
        return figures

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> Self:
        figures = dict(stored)
        return cls(full_history_tokens=figures.pop("full_history_tokens"), spent=Usage(**figures))


@dataclass(frozen=True)
class TurnStarted:
    """Event: the model has begun to answer `user_message_id`, which may be the result of a tool.

    session_id: None for a temporary turn without a session. user_message_id: None if nothing is stored.
    saved_tokens: an estimate. problem: a code that says why a client's request was answered without all of its memory.
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

    finish_reason: the model's own, `interrupted`, or `cut_off` (the model failed; `failure` is its error, and the text
    until then is kept). calls: of the client's tools.
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
