"""Find the person that another program's request names, in a header or its body, and the space, in a header."""

import hashlib
from collections.abc import Mapping
from typing import Any

from flask import g, request

from api.identity import caller
from models.owners import Caller
from schemas.chat import SPACES_READ_MAX
from schemas.fields import ID, USER_ID

SPACE_HEADER = "X-Memory-Space"
SPACES_HEADER, PERSON_HEADER = "X-Memory-Spaces", "X-Memory-Person"  # what the turn reads beside its own memory
PERSON_HEADERS = ("X-OpenWebUI-User-Id", "x-litellm-end-user-id")


def person_named(parameters: Mapping[str, Any]) -> str | None:
    """Return whom a client's request names: in a header, else as `safety_identifier` or `user` (`metadata.user_id`).

    A key of one person counts before them: many programs send a name of their own.
    """
    own: str | None = g.principal.user_id
    if own is not None:
        return own
    in_body = map(text_of_name, (parameters.get("safety_identifier"), parameters.get("user")))
    person = person_in_headers() or next(filter(None, in_body), "")
    return storable(person, fits=USER_ID.fullmatch(person) is not None) if person else None


def client_caller(parameters: Mapping[str, Any]) -> Caller:
    """Return the caller of a client's request. Raises NotFound, Forbidden and LimitReached as `caller` does."""
    return caller(person_named(parameters), space_in_header())


def space_in_header() -> str | None:
    """Return the name of the space that a request is made in, if a header says so."""
    space = header(SPACE_HEADER)
    return storable(space, fits=ID.fullmatch(space) is not None) if space else None


def others_in_headers() -> tuple[list[str] | None, bool | None]:
    """Return the spaces that the turn reads too, and whether it reads the person's memory, as far as headers say so."""
    spaces, person = header(SPACES_HEADER), header(PERSON_HEADER).lower()
    names = [name.strip() for name in spaces.split(",") if name.strip()][:SPACES_READ_MAX] if spaces else None
    return names, {"on": True, "off": False}.get(person)


def person_in_headers(*first: str) -> str:
    """Return whom one of these headers names, or one of PERSON_HEADERS; empty text for nobody."""
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
