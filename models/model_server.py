"""Store the model server that an administrator set."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class ModelServerRow(Base):
    """The model server that an administrator set; there is one row or none.  `api_key` is encrypted."""

    __tablename__ = "model_server"

    id: Mapped[int] = mapped_column(primary_key=True)
    base_url: Mapped[str] = mapped_column(Text)
    api_key: Mapped[str] = mapped_column(Text)
    main: Mapped[str] = mapped_column(String(256))
    mini: Mapped[str] = mapped_column(String(256))
    updated_at: Mapped[datetime]
