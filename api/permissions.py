"""Permissions: the scope that a call needs, the right in a space, and who may change what a tenant shares."""

from collections.abc import Sequence
from typing import Any

from flask import current_app, g, request

from api.current_request import current_engine
from memory.access.keys import Principal
from memory.errors import Forbidden, InvalidRequest
from models.keys import ADMIN, CHAT, READ, WRITE
from models.owners import Caller
from schemas.chat import SPACES_READ_MAX

ANY_SCOPE = "any"  # of a call that every key may make


def need_right_for_call(principal: Principal, space: str) -> None:
    """Raise NotFound or Forbidden where the key may not make the current call: to change something it needs `write`."""
    view: Any = current_app.view_functions.get(request.endpoint or "")
    reads = request.method in ("GET", "HEAD") or getattr(view, "scope", ADMIN) in (READ, ANY_SCOPE)
    principal.require_right(space, READ if reads else WRITE)


def other_memories_to_read(caller: Caller, spaces: Sequence[str] | None, person: bool | None) -> tuple[Caller, ...]:  # noqa: FBT001
    """Return the owners whose memory a turn reads beside its own: these `spaces`, and in a space the `person`.

    Where the request names none, a person's own key decides: outside of spaces the turn reads all spaces that the key
    names, and in a space it reads the person's memory.
    Raises NotFound for a space that the key does not open, Forbidden and InvalidRequest where no person can be read.
    """
    principal: Principal = g.principal
    is_own = principal.user_id is not None
    if spaces is None:
        spaces = list(principal.spaces or ())[:SPACES_READ_MAX] if is_own and caller.space is None else ()
    for space in spaces:
        principal.require_right(space, READ)
    also = [Caller(caller.tenant, caller.user_id, space) for space in dict.fromkeys(spaces) if space != caller.space]
    if caller.space is not None and (is_own if person is None else person):
        if not (is_own or principal.is_whole_tenant):
            raise Forbidden(
                "key_of_a_space",
                "A key of spaces alone reads no person's memory. Nothing was done. Leave `person` out.",
            )
        if caller.user_id is None:
            text = "`person` is true, but no `user_id` names the person. Nothing was done. Send it."
            raise InvalidRequest("person_needed", text, param="user_id")
        also.append(Caller(caller.tenant, caller.user_id))
    return tuple(also)


def tenant() -> Caller:
    """Return the caller of a call about what a tenant's people share."""
    return Caller(g.principal.tenant)


def whole_tenant() -> Caller:
    """Return the caller of a change for all of a tenant. Raises Forbidden for one person's key."""
    if not g.principal.is_whole_tenant:
        raise Forbidden(
            "key_of_one_person",
            "This key belongs to one person or space, but the call changes something for everyone. Nothing was "
            "changed. Use a key that was made without a user_id and without spaces.",
        )
    return tenant()


def is_only_tenant() -> bool:
    """Return whether no other tenant has a key."""
    return not current_engine().keys.tenants - {g.principal.tenant}


def whole_server() -> None:
    """Raise Forbidden for a change for all tenants, if there is another than the caller's."""
    whole_tenant()
    if not is_only_tenant():
        raise Forbidden(
            "several_tenants",
            "The model server serves every tenant, and this server has keys of more than one, so none of them may see "
            "or change it. Nothing was changed. Its operator sets OPENAI_BASE_URL and OPENAI_API_KEY.",
        )


def permissions() -> dict[str, bool]:
    """Return the rights of the request's key; other calls are refused."""
    principal: Principal = g.principal
    change = principal.has_scope(ADMIN)
    tenant = change and principal.is_whole_tenant
    return {
        "chat": principal.has_scope(CHAT),
        "read": principal.has_scope(READ),
        "change": change,
        "tenant": tenant,
        "server": tenant and is_only_tenant(),
    }
