"""What both clients share of HTTP: the request of a call, whether it is sent again, and what was answered."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from recap_client.calls import Call, storable
from recap_client.errors import NoAnswer, error_of

PAUSE = 0.5  # seconds before a call is sent again, doubled each time
PAUSE_MAX = 60.0  # a longer Retry-After is the program's to wait for
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_AWAY = (502, 503, 504)

Outcome = httpx.Response | httpx.TransportError


def request_parts(call: Call, user_id: str | None) -> dict[str, Any]:
    """Return the arguments of httpx's `build_request` for a call on behalf of a person.

    Raises ValueError for a call about a person without one, and for a call that names another person than the client.
    """
    ids = dict(call.ids)
    body = call.body
    query = {name: ".".join(value) if isinstance(value, list | tuple) else value for name, value in call.query.items()}
    person = call.user_id if call.user_id is not None else user_id
    if user_id is not None and person != user_id:
        raise ValueError(f"This client is for {user_id!r}. Use for_user({person!r}) to call for another person.")
    if call.person == "path":
        if person is None:
            raise ValueError("This call is about a person. Make the client with a user_id, or use for_user.")
        ids["user_id"] = person
    elif person is not None and call.person == "query":
        query["user_id"] = person
    elif person is not None and call.person is not None:
        named = {**(body.get("metadata") or {}), "user_id": person} if call.person == "metadata" else person
        body = {**(body or {}), call.person: named}
    path = call.path.format_map({name: quote(str(value), safe="") for name, value in ids.items()})
    headers = {"Idempotency-Key": call.key} if call.key is not None else {}
    sent: dict[str, Any] = {}
    if call.file is not None:
        name, data = call.file if isinstance(call.file, tuple) else (Path(call.file).name, Path(call.file).read_bytes())
        sent = {"data": storable(body), "files": {"file": (storable(name), data)}}
    elif isinstance(body, bytes):
        headers["Content-Type"] = "application/octet-stream"
        sent = {"content": body}
    elif body is not None:
        headers["Content-Type"] = "application/json"
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, default=_plain)
        sent = {"content": text.encode("utf-8", "backslashreplace")}  # JSON escapes half a surrogate pair in this form
    return {"method": call.method, "url": path, "params": query, **sent, "headers": headers}


def _plain(value: Any) -> str:
    """Return a time as JSON has it.  Raises TypeError for anything else that JSON does not have."""
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"A {type(value).__name__} can't be sent as JSON.")


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
        raise NoAnswer(repr(outcome), is_sent=not isinstance(outcome, _NOT_SENT)) from outcome
    if outcome.is_success:
        return outcome
    try:
        body = outcome.json()
    except ValueError:
        body = None
    raise error_of(outcome.status_code, body, _retry_after(outcome))


def answer_of(response: httpx.Response) -> Any:
    """Return the JSON of a response, its text where it is no JSON, and None for one without a body."""
    if not response.content:
        return None
    is_json = response.headers.get("Content-Type", "").startswith("application/json")
    return response.json() if is_json else response.text


def _retry_after(response: httpx.Response) -> float | None:
    """Return the seconds of the header Retry-After, if it has any.  A date is not read."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
