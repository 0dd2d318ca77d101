"""Store webhooks, and how far each was told of the events of each owner."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId


class WebhookRow(Base):
    """Address that gets the events of a person or, where the owner is a tenant, of all of the tenant.

    `secret` is encrypted, and holds after a rotation also the former secret and until when that one signs, with spaces
    between. `position`: the events up to there are in lanes, each to be delivered in its owner's. `types`
    is None for all. `deliveries` are the last tries, newest first. `failing_since`: no try has succeeded since then.
    `problem`: why it was disabled, unless a person did it.
    """

    __tablename__ = "webhooks"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), index=True)
    url: Mapped[str] = mapped_column(Text)
    secret: Mapped[str] = mapped_column(Text)
    types: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    words: Mapped[bool]
    enabled: Mapped[bool]
    position: Mapped[str] = mapped_column(String(128))
    deliveries: Mapped[list[Any]] = mapped_column(JSON)
    failing_since: Mapped[datetime | None]
    problem: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class LaneRow(Base):
    """Lane of a webhook: the events of one owner, of which those up to `position` were delivered."""

    __tablename__ = "webhook_lanes"

    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[int] = mapped_column(ForeignKey("owners.id", ondelete="CASCADE"), primary_key=True, index=True)
    position: Mapped[str] = mapped_column(String(128))


@dataclass(frozen=True)
class Webhook:
    """Webhook as it is shown. user_id, space: whose events it gets; neither: the whole tenant's. secret: shown once."""

    id: int
    user_id: str | None
    space: str | None
    url: str
    types: list[str]
    words: bool
    enabled: bool
    deliveries: list[dict[str, Any]]
    failing_since: datetime | None
    problem: str | None
    created_at: datetime
    updated_at: datetime
    secret: str | None = None
