"""Rows of archives: sessions that retention took out of memory."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class ArchiveRow(Base):
    """Session as a document of the export's format, compressed with gzip, with the fields that a list shows.

    `session_id` is the id that the session had for callers.
    """

    __tablename__ = "archives"
    __table_args__ = (Index("ix_archives_owner", "owner_id", "id"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"))
    session_id: Mapped[str] = mapped_column(String(128))
    title: Mapped[str] = mapped_column(String(200))
    message_count: Mapped[int]
    first_message_at: Mapped[datetime | None]
    last_message_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    document: Mapped[bytes] = mapped_column(LargeBinary)


@dataclass(frozen=True)
class Policy:
    """Rule by which sessions stay.

    days: since the last message or import. sessions: of each owner, the newest. None: no limit.
    archive: a session that is taken out becomes an archive.
    """

    days: int | None = None
    sessions: int | None = None
    archive: bool = True
