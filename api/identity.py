"""Find out who is asking: the principal of the key, the person or space that the request names, and its retry key."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from flask import g, request

from api.oauth import token_principal
from api.permissions import ANY_SCOPE, need_right_for_call, other_memories_to_read
from config import Settings
from memory.access.keys import ANONYMOUS, Keys, Principal, why_not_local
from memory.access.oauth import TOKEN_PREFIX
from memory.errors import Forbidden, InvalidRequest, TokenRefused, Unauthenticated, owner_not_found
from memory.ops import logs
from models.keys import ADMIN
from models.owners import Caller
from models.turns import IDEMPOTENCY_KEY_CHARS
from schemas.chat import SPACES_READ_MAX
from schemas.fields import ID, USER_ID

# Of WSGI: the headers in which programs send their key. The last two are those of Anthropic's and of Azure's clients.
KEY_VARIABLES = ("HTTP_AUTHORIZATION", "HTTP_X_API_KEY", "HTTP_API_KEY")
METRICS = "/metrics"  # it covers all tenants, so no tenant's key opens it


def authenticate(view: Any, keys: Keys, settings: Settings) -> Principal | None:
    """Return the principal of the request's key, also as `g.principal`; None for METRICS_KEY.

    Raises Unauthenticated, Forbidden.
    `view` has the scope; without one, the request is answered with 404 or 405.
    """
    metrics = request.path == METRICS
    bearer = _bearer()
    expected = settings.metrics_key.encode()
    if metrics and expected and hmac.compare_digest(bearer.encode("utf-8", "surrogatepass"), expected):
        return None  # also while the database, which has the other keys, can't be read
    if not keys.required:
        if not settings.allow_anonymous:
            _check_local(settings)
        g.principal = ANONYMOUS
        return ANONYMOUS
    if metrics:
        raise Unauthenticated(
            "metrics_key_missing",
            "The metrics cover all tenants, so no API key opens them. Send the server's METRICS_KEY as "
            "`Authorization: Bearer <METRICS_KEY>`.",
        )
    others = (request.environ.get(name, "").strip() for name in KEY_VARIABLES[1:])
    key = bearer or next(filter(None, others), "")
    if not key:
        raise Unauthenticated(
            "api_key_missing",
            "This server asks for an API key. Nothing was done. Send it as `Authorization: Bearer <key>`, or in "
            "the header x-api-key or api-key.",
        )
    if key.startswith(TOKEN_PREFIX):
        principal = token_principal(key)
        if principal is None:
            raise TokenRefused(
                "token_unknown", "This token expired or was revoked, or is for another server. Sign in again."
            )
    else:
        principal = keys.find_principal(key)
    if principal is None:
        raise Unauthenticated(
            "api_key_unknown",
            "This API key is unknown or was revoked. Nothing was done. Ask the server's operator for a key.",
        )
    g.principal = principal
    if view is not None and (scope := getattr(view, "scope", ADMIN)) != ANY_SCOPE:
        principal.require_scope(scope, own=getattr(view, "own", False))
    return principal


def _bearer() -> str:
    """Return the key that was sent, or an empty string."""
    # By hand: werkzeug does not read a token with an equals sign inside.
    scheme, _, key = request.headers.get("Authorization", "").strip().partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _check_local(settings: Settings) -> None:
    """Raise Forbidden for a request that is not this machine's own."""
    problem = why_not_local(request.environ, settings.cors_origins)
    if problem is not None:
        raise Forbidden(
            "not_local",
            f"A server without API keys serves only its own machine, and {problem}. Nothing was done. Make a key with "
            "`recap keys create`, or set RECAP_ALLOW_ANONYMOUS=1 if everyone who reaches this server may "
            "do everything.",
        )


def caller(user_id: str | None, space: str | None, *, by_address: bool = False) -> Caller:
    """Return the caller of this request: the key's tenant, the person that the application names, and the space.

    A key of one person fills in that person, and one of a single space the space, unless the address names a person.
    Raises NotFound when another is named, Forbidden where the key may only read in the space, LimitReached at the
    person's limit.
    """
    principal: Principal = g.principal
    own = principal.user_id
    if own is not None and user_id is not None and user_id != own:
        raise owner_not_found(user_id)
    if own is None and space is None and principal.spaces is not None:
        if by_address:
            raise owner_not_found(user_id)
        if len(principal.spaces) > 1:
            names = ", ".join(sorted(principal.spaces))
            text = f"This key is for several spaces: {names}. Nothing was done. Name a `space`."
            raise InvalidRequest("space_needed", text, param="space")
        space = next(iter(principal.spaces))
    caller = Caller(principal.tenant, user_id if own is None else own, space)
    if space is not None:
        need_right_for_call(principal, space)
    if caller.owner is not None:
        logs.add(owner=logs.Pseudonym(caller.owner[0], caller.tenant, caller.owner[1]))
    if caller.user_id is not None and "concurrency" in g:
        g.concurrency.acquire_for(Caller(caller.tenant, caller.user_id))
    return caller


def idempotency_key(caller: Caller) -> str | None:
    """Return the request's Idempotency-Key as it is stored.

    A person has a namespace of their own in the tenant, and one in each space, by a hash. A long value is hashed too.
    """
    key = request.headers.get("Idempotency-Key") or None
    if key is None or (caller.owner is None and len(key) <= IDEMPOTENCY_KEY_CHARS):
        return key
    own = (caller.user_id or "") + (f"\0{caller.space}" if caller.space is not None else "")
    return hashlib.sha256(f"{len(own)} {own} {key}".encode("utf-8", "surrogatepass")).hexdigest()


# -- whom the request of another program names, in headers and in its body


PERSON_HEADERS = ("X-OpenWebUI-User-Id", "x-litellm-end-user-id")
NOBODY = ("", "user")  # some programs send the role, for everybody


def client_caller(parameters: Mapping[str, Any], user_id: Any = None) -> Caller:
    """Return the caller of a client's request. Raises NotFound, Forbidden and LimitReached as `caller` does.

    The person is named in a header, else as `safety_identifier`, `user` or `user_id`. A key of one person counts before
    them: many programs send a name of their own.
    """
    in_body = map(text_of_name, (parameters.get("safety_identifier"), parameters.get("user"), user_id))
    person = g.principal.user_id or person_in_headers() or next((name for name in in_body if name not in NOBODY), "")
    fits = g.principal.user_id is not None or USER_ID.fullmatch(person) is not None
    return caller(storable(person, fits=fits) if person else None, space_in_header())


def space_in_header() -> str | None:
    """Return the name of the space that a request is made in, if a header says so."""
    space = header("X-Memory-Space")
    return storable(space, fits=ID.fullmatch(space) is not None) if space else None


def others_in_headers(caller: Caller) -> tuple[Caller, ...]:
    """Return the owners whose memory a turn reads too, as far as headers say so.

    Raises NotFound, Forbidden and InvalidRequest as `other_memories_to_read` does.
    """
    spaces = header("X-Memory-Spaces")
    person = header("X-Memory-Person").lower()
    names = [name.strip() for name in spaces.split(",") if name.strip()][:SPACES_READ_MAX] if spaces else None
    return other_memories_to_read(caller, names, {"on": True, "off": False}.get(person))


def person_in_headers(*first: str) -> str:
    """Return the person that one of these headers names, or one of PERSON_HEADERS; "" for nobody."""
    return next(filter(None, map(header, (*first, *PERSON_HEADERS))), "")


def header(name: str) -> str:
    """Return a header's text. WSGI decodes it as Latin-1, but clients send UTF-8."""
    value = request.headers.get(name, "")
    try:
        return value.encode("latin-1").decode("utf-8").strip()
    except UnicodeError:
        return value.strip()


def text_of_name(value: Any) -> str:
    """Return a name in a body, also when it is a number, as some programs number their users."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return str(value).strip()


def storable(name: str, *, fits: bool) -> str:
    """Return a name that can be stored: its hash where it does not fit."""
    return name if fits else f"id-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
