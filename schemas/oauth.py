"""Parameters of OAuth 2.1. Unknown ones are ignored, as it says."""

from __future__ import annotations

from typing import Any

from marshmallow import EXCLUDE, Schema, fields, post_load, validate

from models.keys import ADMIN, READ
from models.oauth import MCP_SCOPES, Authorization
from schemas.fields import Items, Text

URI_CHARS = 4000
_URI = validate.Length(1, URI_CHARS)
_SECRET = validate.Length(1, 256)


class Parameters(Schema):
    class Meta:
        unknown = EXCLUDE


class AuthorizationQuery(Parameters):
    """Request of a program to be connected. PKCE is required, and of its methods S256."""

    response_type = fields.String(required=True, validate=validate.Equal("code"))
    client_id = Text(required=True, validate=_URI)
    redirect_uri = Text(required=True, validate=_URI)
    code_challenge = fields.String(required=True, validate=validate.Regexp(r"^[A-Za-z0-9_-]{43}\Z"))
    code_challenge_method = fields.String(required=True, validate=validate.Equal("S256"))
    state = Text(load_default=None, validate=validate.Length(0, 2000))
    scope = Text(load_default="", validate=validate.Length(0, 1000))
    resource = Text(load_default="", validate=_URI)

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> Authorization:
        del data["response_type"], data["code_challenge_method"]
        names = set(data.pop("scope").split())
        scopes = {READ} | (names & {ADMIN}) if names & set(MCP_SCOPES) else MCP_SCOPES  # unknown ones are ignored
        return Authorization(scopes=frozenset(scopes), **data)


class Registration(Parameters):
    """Program that registers itself (RFC 7591)."""

    client_name = Text(load_default="", validate=validate.Length(0, 1000))
    redirect_uris = Items(Text(), 20, 1, required=True)


class TokenForm(Parameters):
    """Exchange of a code or a refresh token for tokens."""

    grant_type = fields.String(required=True)
    client_id = Text(required=True, validate=_URI)
    code = Text(load_default="", validate=_SECRET)
    redirect_uri = Text(load_default="", validate=_URI)
    code_verifier = Text(load_default="", validate=_SECRET)
    refresh_token = Text(load_default="", validate=_SECRET)
    resource = Text(load_default=None, validate=_URI)


class RevocationForm(Parameters):
    """Token to revoke (RFC 7009)."""

    token = Text(required=True, validate=_SECRET)
