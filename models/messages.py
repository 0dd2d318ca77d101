"""Store messages, and hold them as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple, Self

from sqlalchemy import JSON, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId, Refusal, local_time
from models.owners import Caller

_UNSHOWN = text("hidden_at IS NOT NULL OR refused IS NOT NULL")
NAME_CHARS = 128  # of who says a message, at most
REVISED = ""  # no generation of an index; NULL is a message that no index was ever told of


class MessageRow(Base):
    """Message, kept as it was said.

    branch: 0 for the active branch of the session.  Messages that were replaced together share a branch and keep their
    positions; `replaced_after` of the first one is the id of the message before it, 0 if there is none.
    indexed_in: the generation of the index that has the message, or has removed it.  None: no index had it.  REVISED:
    the index must still remove it, because it was replaced, erased or refused.
    erased_at: an erased message keeps its position and loses its words.
    hidden_at: no prompt of its session shows it. refused: no prompt shows it, and the index does not have it.
    """

    __tablename__ = "messages"
    __table_args__ = (
        UniqueConstraint("session_id", "branch", "position"),
        Index("uq_messages_session_external", "session_id", "external_id", unique=True),
        Index("ix_messages_owner_indexed", "owner_id", "indexed_in"),
        Index("ix_messages_unshown", "session_id", "branch", sqlite_where=_UNSHOWN, postgresql_where=_UNSHOWN),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    session_id: Mapped[int] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"))
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    branch: Mapped[int] = mapped_column(default=0, server_default="0")
    position: Mapped[int]
    role: Mapped[str] = mapped_column(String(16))
    name: Mapped[str | None] = mapped_column(String(128))
    content: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
    external_id: Mapped[str | None] = mapped_column(String(256))
    tokens: Mapped[int]
    extra: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))  # beside its words, as calls of tools
    indexed_in: Mapped[str | None] = mapped_column(String(32))
    replaced_after: Mapped[int | None] = mapped_column(BigId)
    erased_at: Mapped[datetime | None]
    hidden_at: Mapped[datetime | None]
    refused: Mapped[Refusal | None]


PASSAGE = "document"  # the role of a passage of a document (see `models.documents`)
UNREMEMBERED = {"memory": "off"}  # the `extra` of a message that its chat alone remembers
KEPT_OUT = {"memory": "never"}  # of one that the person asked not to remember: no summary and no index has it either
KEPT_OUT_TEXT = "[The person asked not to remember this message.]"  # what a mini model reads in its place


class Message(NamedTuple):
    """Stored message. `position` counts from 1 within its session's active branch; `id` is unique everywhere.

    `extra` is what it carries beside its words, as JSON's types: calls of tools, the call it answers, what stood for
    an image, or that it is not `remembered`.  One that was hidden at `hidden_at` is in no prompt of its session, and
    one that a model server `refused` is in no prompt at all, unless it is sent again.  `thumbs` are what the person
    thinks of a reply, `up` or `down`; only lists of messages read them.
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
    thumbs: str | None = None

    @classmethod
    def of_person(cls, content: str, at: datetime) -> Self:
        """Return words of the person as a message that is not stored, the first of its session."""
        return cls(0, "", 1, "user", content, at, 0)

    @property
    def remembered(self) -> bool:
        """Return whether it may be recalled in other sessions, and read for facts."""
        return "memory" not in (self.extra or {})

    @property
    def is_passage(self) -> bool:
        """Return whether nobody said it: it is of a document."""
        return self.role == PASSAGE


def is_kept_out(extra: Mapping[str, Any] | None) -> bool:
    """Return whether the person asked not to remember the message with this `extra`."""
    return (extra or {}).get("memory") == KEPT_OUT["memory"]


@dataclass(frozen=True)
class Gist:
    """Lines that an excerpt shows of its session's summary.

    session_row_id, summary_id: the rows they were made from, for the record of a turn; no summary: None.
    updated_at: when the session was last talked in.
    in_full: with the open questions, not only title and topic.
    """

    session_row_id: int
    summary_id: int | None
    updated_at: datetime
    lines: tuple[str, ...]
    in_full: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def in_zone(messages: Sequence[Message], zone: tzinfo) -> Sequence[Message]:
    """Return the messages with their times in a zone, in which their days begin."""
    if zone is UTC:
        return messages
    return tuple(message._replace(created_at=local_time(message.created_at, zone)) for message in messages)


@dataclass(frozen=True)
class Excerpt:
    """Recalled part of one session: messages that were found and those around them, in order, with gaps.

    `hits` are the ids of the messages that were found, `score` is the best one's, and `why` are its parts.
    gist: lines of the session's summary, before the messages or in their place.
    message_tokens: to which each message is cut; None: as usual. starts: where the words shown of a long message begin,
    by its id; else with the message.
    """

    session_id: str
    title: str
    messages: tuple[Message, ...]
    hits: tuple[int, ...]
    score: float
    why: Mapping[str, float] = field(default_factory=dict)
    gist: Gist | None = None
    message_tokens: int | None = None
    starts: Mapping[int, int] = field(default_factory=dict)

    @property
    def updated_at(self) -> datetime:
        """Return the time of its last message or, with a gist, when its session was last talked in."""
        return self.gist.updated_at if self.gist is not None else self.messages[-1].created_at

    @property
    def is_document(self) -> bool:
        """Return whether it is of a document, whose id and title stand in place of the session's."""
        return bool(self.messages) and self.messages[0].is_passage


@dataclass(frozen=True)
class MessageDraft:
    """Message to store: columns that it brings itself. Without `created_at` it was said now.

    With `erased_at` it is the place of an erased message, without words.
    """

    role: str
    content: str
    name: str | None = None
    created_at: datetime | None = None
    external_id: str | None = None
    extra: dict[str, Any] | None = None
    erased_at: datetime | None = None
    hidden_at: datetime | None = None
    refused: Refusal | None = None

    def said_by(self, caller: Caller) -> Self:
        """Return the draft with the name of who says it: in a space several persons speak."""
        if self.role != "user" or self.name or caller.space is None or caller.user_id is None:
            return self
        return replace(self, name=caller.user_id[:NAME_CHARS])

    def unremembered(self) -> Self:
        """Return the draft as a message that its chat alone remembers."""
        return replace(self, extra={**UNREMEMBERED, **(self.extra or {})})

    def kept_out(self) -> Self:
        """Return the draft as a message that the person asked not to remember."""
        return replace(self, extra={**(self.extra or {}), **KEPT_OUT})
