"""Store the programs that people connected with a key of theirs, and the tokens of each."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from models.base import NEVER_REUSED, Base, BigId
from models.keys import ADMIN, READ

CODE, ACCESS, REFRESH = "code", "access", "refresh"
MCP_SCOPES = (READ, ADMIN)  # that the tools of MCP need


class GrantRow(Base):
    """Connection of a program: what a person allowed it, for the key that they signed in with.

    client: the digest of its client_id; `name` is what it calls itself. challenge: of PKCE, by S256. resource: the
    address of the MCP server that its tokens are for. renewed_at: when it last got tokens.
    """

    __tablename__ = "oauth_grants"
    __table_args__ = NEVER_REUSED

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key_id: Mapped[int] = mapped_column(ForeignKey("keys.id", ondelete="CASCADE"), index=True)
    client: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(100))
    redirect_uri: Mapped[str] = mapped_column(Text)
    challenge: Mapped[str] = mapped_column(String(43))
    resource: Mapped[str] = mapped_column(Text)
    scopes: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    renewed_at: Mapped[datetime]


class TokenRow(Base):
    """Code, access token or refresh token, of which only the digest is stored."""

    __tablename__ = "oauth_tokens"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    grant_id: Mapped[int] = mapped_column(ForeignKey("oauth_grants.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str] = mapped_column(String(8))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


@dataclass(frozen=True)
class OAuthClient:
    """Program that wants to connect. described_at: the host of its description, if it registered with an address."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    described_at: str | None = None


@dataclass(frozen=True)
class Authorization:
    """Request of a program to be connected; its parameters by their names in OAuth."""

    client_id: str
    redirect_uri: str
    code_challenge: str
    resource: str
    scopes: frozenset[str]
    state: str | None


@dataclass(frozen=True)
class Tokens:
    """Tokens of a program, as they are shown to it once."""

    access: str
    refresh: str
    seconds: int
    scopes: str
