"""A turn as values: what is asked, what the session remembers, what is reported, and how the turn ended."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal

from config import Settings
from memory.errors import ModelError
from memory.examples import Example
from memory.leases import Lease
from memory.llm import CancelToken, RawChunk, TextDelta, Thought, ToolCall, Waiting
from memory.recall.recall import RecallResult
from memory.recall.search import SearchScope
from memory.transcripts.transcript import TranscriptMessage, TranscriptRequest
from models.facts import Fact
from models.messages import Message, MessageDraft
from models.owners import Caller, Usage
from models.sections import Sections

_STORED = ("prompt_tokens", "completion_tokens", "estimated")  # cached tokens are for the metrics alone


@dataclass(frozen=True)
class TurnRequest:
    """A message to answer, on behalf of `caller`.  `recall` None means the setting RECALL, and `model` None the main
    model.  `timezone` is where the person's days begin.

    A turn that is not to `remember` is answered from its session alone, and nothing of it comes up in another: no fact
    is taken from it, and it is not recalled.

    replaces: the id of the user message of this session that this one replaces, with all after it.
    on_disconnect: what becomes of the reply when the reader leaves: it is finished, or interrupted and kept so far.
    history: what was said before in a temporary chat, which nobody else keeps.
    client: the whole request of an OpenAI client, whose last user message is `message`.
    block_tokens: the most tokens of a memory block; the caller's own model answers then.
    lock_timeout: seconds that each write waits for the database, if not its own limit.
    """

    caller: Caller
    message: str
    session_id: str | None = None
    name: str | None = None
    recall: str | None = None
    model: str | None = None
    remember: bool = True
    prompt: str | None = None
    system_prompt: str | None = None
    stream: bool = False
    timezone: tzinfo = UTC
    temporary: bool = False
    history: tuple[MessageDraft, ...] = ()
    idempotency_key: str | None = None
    replaces: int | None = None
    on_disconnect: Literal["finish", "interrupt"] = "finish"
    client: TranscriptRequest | None = None
    block_tokens: int | None = None
    lock_timeout: float | None = None

    @property
    def fingerprint(self) -> str:
        """What two requests with one Idempotency-Key must have in common to be the same request."""
        if self.client is not None:
            return self.client.fingerprint
        replaces = () if self.replaces is None else (self.replaces,)  # stored fingerprints stay as they are
        parts = (self.caller.user_id, self.session_id, self.message, self.system_prompt, self.prompt, *replaces)
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class RecallToolCall:
    """A model's call: the tool, what it asked for as far as that was understood, and how many excerpts it was given, or
    the `error` that it was told.  `query` is None when the words are not kept."""

    name: str
    query: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    limit: int | None = None
    excerpts: int = 0
    error: str | None = None


@dataclass(frozen=True)
class MemoryReport:
    """The `memory` of a reply.

    `summary_version` is the one stored when the turn began, `state` how it stood, `head_version` the one that the
    prompt showed, `profile_version` that of the profile in it (0: none).  `type` is that of the conversation.
    `tail_dropped` counts messages that did not fit CONTEXT_TOKENS.  `calls` are the model's own looks back; their words
    are not stored.
    """

    summary_version: int = 0
    head_version: int = 0
    profile_version: int = 0
    type: str | None = None
    state: str = "none"
    facts: tuple[Fact, ...] = ()
    recalled: RecallResult = RecallResult()
    examples: tuple[Example, ...] = ()
    tail_messages: int = 0
    tail_dropped: int = 0
    calls: tuple[RecallToolCall, ...] = ()


@dataclass(frozen=True)
class StoredHead:
    """What is stored for the head of a session, and which other kinds of memory there are.

    `state` is how the summary stands, and `failing` says that its update fails.  `system_text` is the tenant's stored
    system prompt.  Of `instructions` and conversation `types` with one name there is the person's own rather than the
    tenant's.  `profile` is its version and value.  The last six say whether there is anything to ask for: facts of
    this session or of its person, the owner's links, examples of the owner or the tenant, excerpts that did not help
    the owner, summaries of the owner's other sessions, and hidden or refused messages.
    """

    summary: Sections = Sections()
    state: str = "none"
    failing: bool = False
    system_text: str | None = None
    instructions: str = ""
    types: Mapping[str, Any] = field(default_factory=dict)
    profile: tuple[int, Any] | None = None
    facts: bool = False
    facts_revision: int = 0
    links: bool = False
    examples: bool = False
    unhelpful: bool = False
    summaries: bool = False
    unshown: bool = False


@dataclass(frozen=True)
class Head:
    """The first message of a prompt, and what it was made from.

    `text` begins with the `instructions`; what is remembered follows.  `explained` says that it tells how to read that.
    `profile_version` is that of the profile it shows (0: none), whose values say `told_facts` already; `facts` are
    those it lists, and `other_facts` what else holds.
    """

    text: str = ""
    instructions: str = ""
    explained: bool = True
    profile_version: int = 0
    told_facts: tuple[Fact, ...] = ()
    facts: tuple[Fact, ...] = ()
    other_facts: tuple[Fact, ...] = ()
    stored: StoredHead = StoredHead()


@dataclass(frozen=True)
class Admitted:
    """The turn of a `request` that may go on, and what its session remembers, read in one transaction.

    `lease` keeps others out of the session and `turn_id` is the turn's row; a temporary turn has neither, nor has one
    without memory.  `session_id` is None outside any session.

    `exchange` is the new message, in a client's conversation followed by calls of tools and their results.  `began` is
    the turn that such an exchange goes on from; `sent` are the messages as the client sent them, by their ids.  `tail`
    is what fits of the messages since the head's summary.  `tokens` is the estimated size of all these in the prompt,
    `full_history_tokens` that of every message instead, but for the `unshown` ones, which are hidden or refused.
    `past` is where the turn may look back: not at the messages that the prompt shows anyway.  `report` has no facts and
    excerpts yet.  `settings` are those for the conversation's type.  A stop ends the `call` of the model.
    """

    request: TurnRequest
    session_id: str | None
    exchange: tuple[Message, ...]
    tokens: int
    full_history_tokens: int
    report: MemoryReport
    settings: Settings
    past: SearchScope = SearchScope(0, "")
    head: Head = Head()
    tail: tuple[Message, ...] = ()
    began: TurnStarted | None = None
    sent: Mapping[int, TranscriptMessage] = field(default_factory=dict)
    unshown: frozenset[int] = frozenset()
    lease: Lease | None = None
    turn_id: int | None = None
    cancel: CancelToken = field(default_factory=CancelToken, compare=False)


@dataclass(frozen=True)
class TurnUsage:
    """Tokens of the main model.  `full_history_tokens` is what sending every message would have cost, but for hidden
    and refused ones, in this model's tokens; `saved_tokens` is below zero while a conversation is short."""

    spent: Usage
    full_history_tokens: int

    @property
    def saved_tokens(self) -> int:
        return self.full_history_tokens - self.spent.prompt_tokens

    def to_stored(self) -> dict[str, Any]:
        kept = {name: getattr(self.spent, name) for name in _STORED}
        return kept | {"full_history_tokens": self.full_history_tokens}

    @classmethod
    def from_stored(cls, stored: Mapping[str, Any]) -> TurnUsage:
        return cls(Usage(**{name: stored[name] for name in _STORED}), stored["full_history_tokens"])


@dataclass(frozen=True)
class TurnStarted:
    """The model has begun to answer `user_message_id`, in a client's exchange the result of a tool that came last.

    `session_id` is None for a temporary turn without a session, as the message's id is where nothing is stored.
    `saved_tokens` is an estimate.  `problem` says why a client's request was answered without all of its memory.
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
    a client's tools.  `failure` is why the reply was `cut_off`; its words so far are kept."""

    started: TurnStarted
    reply: str
    reply_message_id: int | None
    finish_reason: str
    model: str
    usage: TurnUsage
    replayed: bool = False
    calls: tuple[ToolCall, ...] = ()
    failure: ModelError | None = None


TurnEvent = TurnStarted | TextDelta | Thought | Waiting | RawChunk | TurnFinished
