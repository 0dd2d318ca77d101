"""Parameters of OAuth 2.1. Unknown ones are ignored, as it says."""

from typing import Any

from marshmallow import EXCLUDE, Schema, post_load, validate

from models.keys import ADMIN, READ
from models.oauth import MCP_SCOPES, Authorization
from schemas import fields

URI_CHARS = 4000
_URI = validate.Length(1, URI_CHARS)
_SECRET = validate.Length(1, 256)


class Parameters(Schema):
    class Meta:
        unknown = EXCLUDE


class AuthorizationQuery(Parameters):
    """Request of a program to be connected. PKCE is required, and of its methods S256."""

    response_type = fields.String(required=True, validate=validate.Equal("code"))
    client_id = fields.Text(required=True, validate=_URI)
    redirect_uri = fields.Text(required=True, validate=_URI)
    code_challenge = fields.String(required=True, validate=validate.Regexp(r"^[A-Za-z0-9_-]{43}\Z"))
    code_challenge_method = fields.String(required=True, validate=validate.Equal("S256"))
    state = fields.text(0, 2000, load_default=None)
    scope = fields.text(0, 1000, load_default="")
    resource = fields.Text(load_default="", validate=_URI)

    @post_load
    def _value(self, data: dict[str, Any], **_: Any) -> Authorization:
        del data["response_type"], data["code_challenge_method"]
        names = set(data.pop("scope").split())
        scopes = {READ} | (names & {ADMIN}) if names & set(MCP_SCOPES) else MCP_SCOPES  # unknown ones are ignored
        return Authorization(scopes=frozenset(scopes), **data)


class Registration(Parameters):
    """Program that registers itself (RFC 7591)."""

    client_name = fields.text(0, 1000, load_default="")
    redirect_uris = fields.Items(fields.Text(), 20, 1, required=True)


class TokenForm(Parameters):
    """Exchange of a code or a refresh token for tokens."""

    grant_type = fields.String(required=True)
    client_id = fields.Text(required=True, validate=_URI)
    code = fields.Text(load_default="", validate=_SECRET)
    redirect_uri = fields.Text(load_default="", validate=_URI)
    code_verifier = fields.Text(load_default="", validate=_SECRET)
    refresh_token = fields.Text(load_default="", validate=_SECRET)
    resource = fields.Text(load_default=None, validate=_URI)


class RevocationForm(Parameters):
    """Token to revoke (RFC 7009)."""

    token = fields.Text(required=True, validate=_SECRET)
