"""Store documents, and hold them as values.

A document's text lies in a session of its own (`SessionRow.is_document`), whose messages are its passages, of the role
PASSAGE.  So they are indexed, recalled, erased and moved as messages are.  No list of sessions shows it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, BigId


class DocumentRow(Base):
    """Document: what is known of it beside its session's id, title and times.

    digest: of the file or text, with all that the request says of it. size: in bytes. pages: None where it has none.
    """

    __tablename__ = "documents"
    __table_args__ = (
        Index("uq_documents_owner_external", "owner_id", "external_id", unique=True),
        Index("ix_documents_owner_digest", "owner_id", "digest"),
    )

    session_id: Mapped[int] = mapped_column(BigId, ForeignKey("sessions.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    external_id: Mapped[str | None] = mapped_column(String(256))
    uri: Mapped[str | None] = mapped_column(Text)
    media_type: Mapped[str] = mapped_column(String(64))
    digest: Mapped[str] = mapped_column(String(64))
    size: Mapped[int]
    pages: Mapped[int | None]


class Passage(NamedTuple):
    """Part of a document, after the headings that it stands under. page: its number in a PDF, from 1."""

    text: str
    page: int | None = None


@dataclass(frozen=True)
class DocumentRecord:
    """Document to store, or to export: what its row has, its passages, and when it was added and last replaced.

    id: in an export, by which items name the passages that they rest on.
    """

    title: str
    uri: str | None
    external_id: str | None
    media_type: str
    digest: str
    size: int
    pages: int | None
    passages: Iterable[Passage]
    created_at: datetime
    updated_at: datetime
    id: str | None = None


@dataclass(frozen=True)
class Document:
    """Document as it is listed.

    state: "created", "replaced" or "unchanged", of one that was just sent.
    """

    id: str
    user_id: str | None
    space: str | None
    title: str
    uri: str | None
    external_id: str | None
    media_type: str
    size: int
    pages: int | None
    passages: int
    tokens: int
    created_at: datetime
    updated_at: datetime
    state: str | None = None
