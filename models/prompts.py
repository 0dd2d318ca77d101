"""Store the versions of named prompts."""

from datetime import datetime

from sqlalchemy import String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class PromptRow(Base):
    """Version of a named prompt; the highest is in use."""

    __tablename__ = "prompts"
    __table_args__ = (UniqueConstraint("tenant", "name", "version"), NEVER_REUSED)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(64))
    version: Mapped[int]
    text: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]
