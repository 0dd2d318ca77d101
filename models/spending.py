"""What owners have spent."""

from __future__ import annotations

from datetime import date

from sqlalchemy import BigInteger, Date, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class SpendingRow(Base):
    """The tokens an owner's model calls took on one day of UTC, the main model's and the mini model's."""

    __tablename__ = "spending"

    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    tokens: Mapped[int] = mapped_column(BigInteger, default=0)
