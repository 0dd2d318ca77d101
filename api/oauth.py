"""OAuth 2.1 for MCP: programs such as claude.ai and ChatGPT connect by URL, with a key that the person enters.

There are no accounts and no cookies: whoever enters a key on the page at /oauth/authorize connects a program that asked
for it, and the program gets tokens in the place of the key. It is off where no key exists, and where the server's
address is neither https nor this machine's.

Invariants:
- Nobody is sent to an address that the program did not register, nor anywhere before they press a button (test_oauth).
- Another site's page can neither show the sign-in page in a frame nor send its form (test_oauth).
- Wrong keys on it, and descriptions that can't be fetched, count as wrong keys anywhere do (test_oauth).
"""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from flask import Blueprint, Response, current_app, jsonify, make_response, render_template, request
from marshmallow import Schema, ValidationError
from werkzeug.datastructures import MultiDict

from api.bodies import check_values
from api.current_request import current_engine, note_error_code
from api.errors import CHALLENGES, RENDERERS
from api.limits import RATE_LIMITER, RateLimiter
from memory.access.keys import Principal, is_loopback, why_not_direct
from memory.access.oauth_clients import find_client, may_return_to, register
from memory.errors import Forbidden, InvalidRequest, NotFound, RecapError
from models.keys import ADMIN
from models.oauth import MCP_SCOPES, Authorization, OAuthClient
from schemas.errors import flat
from schemas.oauth import AuthorizationQuery, Registration, RevocationForm, TokenForm

MCP = "/mcp"  # what the tokens are for
PREFIX, WELL_KNOWN = "/oauth", "/.well-known"
BODY_BYTES = 64_000
GRANTS = ["authorization_code", "refresh_token"]
_HOST = re.compile(r"[\w.:\[\]-]+")

blueprint = Blueprint("oauth", __name__)


def public_address() -> str | None:
    """Return this server's address in OAuth; None where it is off."""
    engine = current_engine()
    if not engine.keys.required:
        return None
    address = engine.settings.public_url
    if not address:
        host = request.headers.get("Host", "")
        is_local = why_not_direct(request.environ) is None
        return f"http://{host}" if is_local and _HOST.fullmatch(host) else None
    parts = urlsplit(address)
    return address if parts.scheme == "https" or is_loopback(parts.hostname or "") else None


def token_principal(token: str) -> Principal | None:
    """Return the principal of an access token for the current request; None for one that does not open it."""
    address = public_address()
    if address is None or request.path.removesuffix("/") != MCP:
        return None
    return current_engine().oauth.find_principal(token, address + MCP)


def _address() -> str:
    address = public_address()
    if address is None:
        text = (
            "Programs can't sign in here: that needs an API key on the server, and PUBLIC_URL with https or a call "
            "from this machine."
        )
        raise NotFound("oauth_off", text)
    return address


def _challenge(_: RecapError) -> str:
    """Return the challenge to a call of MCP without a valid key: where to sign in."""
    address = public_address()
    if address is None:
        return "Bearer"
    ended = 'error="invalid_token", ' if "Authorization" in request.headers else ""
    return f'Bearer {ended}resource_metadata="{address}{WELL_KNOWN}/oauth-protected-resource{MCP}", scope="read admin"'


# -- metadata


@blueprint.get(f"{WELL_KNOWN}/oauth-protected-resource")
@blueprint.get(f"{WELL_KNOWN}/oauth-protected-resource{MCP}", strict_slashes=False)
def resource_metadata() -> Any:
    """Describe the MCP server as a protected resource (RFC 9728)."""
    address = _address()
    return jsonify(
        resource=address + MCP,
        authorization_servers=[address],
        scopes_supported=MCP_SCOPES,
        bearer_methods_supported=["header"],
        resource_name="Recap",
    )


@blueprint.get(f"{WELL_KNOWN}/oauth-authorization-server")
@blueprint.get(f"{WELL_KNOWN}/openid-configuration")
def server_metadata() -> Any:
    """Describe the authorization server (RFC 8414). Some clients look for it where OpenID Connect has it."""
    address = _address()
    return jsonify(
        issuer=address,
        authorization_endpoint=f"{address}{PREFIX}/authorize",
        token_endpoint=f"{address}{PREFIX}/token",
        registration_endpoint=f"{address}{PREFIX}/register",
        revocation_endpoint=f"{address}{PREFIX}/revoke",
        scopes_supported=MCP_SCOPES,
        response_types_supported=["code"],
        response_modes_supported=["query"],
        grant_types_supported=GRANTS,
        token_endpoint_auth_methods_supported=["none"],
        revocation_endpoint_auth_methods_supported=["none"],
        code_challenge_methods_supported=["S256"],
        authorization_response_iss_parameter_supported=True,
        client_id_metadata_document_supported=True,
    )


# -- the program's side


@blueprint.post(f"{PREFIX}/register")
def register_client() -> Any:
    """Register a program (RFC 7591)."""
    _address()
    request.max_content_length = BODY_BYTES
    check_values(request.get_data())
    try:
        registration = Registration().load(request.get_json())
    except ValidationError as error:
        wrong = flat(error.messages)
        code = "invalid_redirect_uri" if any("redirect_uri" in name for name in wrong) else "invalid_client_metadata"
        raise _wrong(wrong, code) from None
    client = register(registration["client_name"], registration["redirect_uris"])
    described = {
        "client_id": client.id,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",  # nosec B105
        "scope": " ".join(MCP_SCOPES),
    }
    return jsonify(described), 201


@blueprint.post(f"{PREFIX}/token")
def exchange_token() -> Any:
    """Exchange a code or a refresh token for tokens."""
    address = _address()
    form = _form(TokenForm())
    oauth = current_engine().oauth
    client_id = form["client_id"]
    resource = _resource(form["resource"], address)
    if form["grant_type"] == "authorization_code":
        tokens = oauth.redeem(form["code"], client_id, form["redirect_uri"], form["code_verifier"], resource)
    elif form["grant_type"] == "refresh_token":
        tokens = oauth.renew(form["refresh_token"], client_id, resource)
    else:
        raise _error("unsupported_grant_type", f"There are the grants {' and '.join(GRANTS)}.")
    return jsonify(  # nosec B106 - the type is no password
        access_token=tokens.access,
        token_type="Bearer",
        expires_in=tokens.seconds,
        refresh_token=tokens.refresh,
        scope=tokens.scopes,
    )


@blueprint.post(f"{PREFIX}/revoke")
def revoke_token() -> Any:
    """End the connection of a token (RFC 7009)."""
    _address()
    current_engine().oauth.revoke(_form(RevocationForm())["token"])
    return Response()


# -- the person's side


@blueprint.route(f"{PREFIX}/authorize", methods=("GET", "POST"))
def authorize() -> Any:
    """Show the sign-in page; send who agreed back to the program, with a code.

    The person reads what is wrong with a request: an error sent to its redirect URI would lead anybody anywhere.
    """
    client = authorization = None
    limits: RateLimiter = current_app.extensions[RATE_LIMITER]
    try:
        address = _address()
        authorization = _load(AuthorizationQuery(), request.args)
        authorization = replace(authorization, resource=_resource(authorization.resource, address) or address + MCP)
        with limits.limit_key_guesses():  # or anybody could have any number of addresses fetched
            client = find_client(authorization.client_id)
        if not may_return_to(client, authorization.redirect_uri):
            client = None
            raise _error(
                "invalid_redirect_uri",
                "The program asks to send you to an address that it did not register. Nothing was done.",
            )
        if request.method == "POST":
            return _decide(address, client, authorization, limits)
        return _page(client, authorization)
    except RecapError as error:
        return _page(client, authorization, error)


authorize.slow = True  # type: ignore[attr-defined] # for the middleware


def _decide(address: str, client: OAuthClient, authorization: Authorization, limits: RateLimiter) -> Response:
    """Connect the program with the key in the form, or not. Raises RecapError."""
    # A browser says so with every form; what is no browser holds nobody's key but its own person's.
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Forbidden("origin_refused", "A page of another site sent this form. Nothing was done.")
    request.max_content_length = BODY_BYTES
    form = request.form
    answer = {"error": "access_denied"}
    if form.get("decision") == "connect":
        scopes = authorization.scopes - (set() if "change" in form else {ADMIN})
        with limits.limit_key_guesses():
            key = form.get("key", "").strip()
            answer = {"code": current_engine().oauth.authorize(key, client, replace(authorization, scopes=scopes))}
    answer |= {"iss": address} | ({} if authorization.state is None else {"state": authorization.state})
    separator = "&" if "?" in authorization.redirect_uri else "?"
    location = f"{authorization.redirect_uri}{separator}{urlencode(answer)}"
    return _guarded(Response("", 303, {"Location": location}), authorization)


def _page(client: OAuthClient | None, authorization: Authorization | None, error: RecapError | None = None) -> Response:
    target = urlsplit(authorization.redirect_uri) if client is not None and authorization is not None else None
    page = render_template(
        "authorize.html",  # in web/templates, with the texts of web/texts
        client=client,
        target=target and (target.hostname or target.scheme),
        is_local=target is not None and target.scheme == "http",
        can_change=authorization is not None and ADMIN in authorization.scopes,
        problem=error,
    )
    response = make_response(page, 200 if error is None else error.status)
    response.vary.add("Accept-Language")
    if error is not None:
        note_error_code(error.code)
    return _guarded(response, authorization if client is not None else None)


def _guarded(response: Response, authorization: Authorization | None) -> Response:
    """Add the policy of the sign-in page. Browsers apply `form-action` to where a form's answer leads as well."""
    scheme = f" {urlsplit(authorization.redirect_uri).scheme}:" if authorization is not None else ""
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'{scheme}; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    # The program may have opened this page in a window that has to tell it of the end.
    response.headers["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return response


# -- parameters


def _form(schema: Schema) -> Any:
    request.max_content_length = BODY_BYTES
    return _load(schema, request.form)


def _load(schema: Schema, values: MultiDict[str, str]) -> Any:
    """Load parameters, each of which may come once. Raises InvalidRequest."""
    repeated = {name: ["Was sent more than once."] for name in schema.fields if len(values.getlist(name)) > 1}
    if repeated:
        raise _wrong(repeated)
    try:
        return schema.load(values.to_dict())
    except ValidationError as error:
        raise _wrong(flat(error.messages)) from None


def _resource(resource: str | None, address: str) -> str | None:
    """Return the MCP server's address if a program names it, with or without `user_id`. Raises InvalidRequest."""
    if not resource:
        return None
    with suppress(ValueError):  # of what is no address, as one with an open bracket
        parts = urlsplit(resource)
        named = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        if named.lower() == (address + MCP).lower() and not parts.fragment:
            return address + MCP
    raise _error("invalid_target", f"Tokens of this server are for {address}{MCP} alone.")


def _wrong(wrong: dict[str, list[str]], code: str = "invalid_request") -> InvalidRequest:
    name, texts = next(iter(wrong.items()))
    return _error(code, f"{name}: {texts[0]}")


def _error(code: str, text: str) -> InvalidRequest:
    return InvalidRequest(code, text, status=400)


def _render(error: RecapError) -> tuple[dict[str, Any], int]:
    """Return an error in OAuth's shape."""
    code = error.code if isinstance(error, InvalidRequest) else "invalid_request"
    code = "temporarily_unavailable" if error.retry_after is not None else code
    code = "server_error" if error.status == 500 else code
    return {"error": code, "error_description": error.message}, error.status


RENDERERS[f"{PREFIX}/"] = _render
CHALLENGES[MCP] = _challenge
