"""Store the model server that an administrator set."""

from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base


class ModelServerRow(Base):
    """Model server that an administrator set; there is one row or none.  `api_key` is encrypted."""

    __tablename__ = "model_server"

    id: Mapped[int] = mapped_column(primary_key=True)
    base_url: Mapped[str] = mapped_column(Text)
    api_key: Mapped[str] = mapped_column(Text)
    main: Mapped[str] = mapped_column(String(256))
    mini: Mapped[str] = mapped_column(String(256))
    updated_at: Mapped[datetime]


@dataclass(frozen=True)
class ServerDraft:
    """Model server as it is entered.  `base_url` empty means OpenAI, `main` and `mini` empty the settings' models.

    `api_key` None means the key in use, which only the address in use gets.
    """

    base_url: str
    api_key: str | None = field(repr=False)
    main: str
    mini: str
