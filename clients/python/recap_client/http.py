"""What both clients share of HTTP: the request of a call, whether it is sent again, and what was answered."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from recap_client.calls import Call
from recap_client.errors import NoAnswer, error_of

PAUSE = 0.5  # seconds before a call is sent again, doubled each time
PAUSE_MAX = 60.0  # a longer Retry-After is the program's to wait for
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_AWAY = (502, 503, 504)

Outcome = httpx.Response | httpx.TransportError


def request_parts(call: Call, user_id: str | None) -> dict[str, Any]:
    """Return the arguments of httpx's `build_request`.  Raises ValueError for a call about a person without one."""
    ids, query, body = dict(call.ids), dict(call.query), call.body
    if user_id is None:
        if "{user_id}" in call.path:
            raise ValueError("This call is about a person. Make the client with a user_id, or use for_user.")
    elif "{user_id}" in call.path:
        ids["user_id"] = user_id
    elif call.method in ("POST", "PUT"):
        body = {**(body or {}), "user_id": user_id}
    else:
        query["user_id"] = user_id
    path = call.path.format_map({name: quote(str(value), safe="") for name, value in ids.items()})
    headers = {"Idempotency-Key": call.key} if call.key is not None else {}
    return {"method": call.method, "url": path, "params": query, "json": body, "headers": headers}


def pause_after(attempt: int, call: Call, outcome: Outcome) -> float | None:
    """Return the seconds after which a call is sent again; None if its outcome stands.

    A call is sent again when the server asks for it with Retry-After or was not reached.  When nobody knows what became
    of the call, it is sent again only if sending it twice does no more than sending it once.
    """
    retry_after = None
    if isinstance(outcome, httpx.TransportError):
        again = call.is_repeatable or isinstance(outcome, _NOT_SENT)
    elif (retry_after := _retry_after(outcome)) is not None:
        again = not outcome.is_success and retry_after <= PAUSE_MAX
    else:
        again = call.is_repeatable and outcome.status_code in _AWAY
    pause = PAUSE * 2**attempt if retry_after is None else retry_after
    return pause if again else None


def succeeded(outcome: Outcome) -> httpx.Response:
    """Return the response, if it is a good one.  Raises RecapError."""
    if not isinstance(outcome, httpx.Response):
        raise NoAnswer(repr(outcome)) from outcome
    if outcome.is_success:
        return outcome
    try:
        body = outcome.json()
    except ValueError:
        body = None
    raise error_of(outcome.status_code, body, _retry_after(outcome))


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of the header Retry-After, if it has any.  A date is not read."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
