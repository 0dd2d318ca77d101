"""Calls of a Recap server over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

TIMEOUT = 30.0  # seconds


class RecapError(Exception):
    """Recap refused a call.  `status` is its HTTP status, `code` a stable word for programs."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class Recap:
    """A Recap server, and on whose behalf it is called.  Thread-safe."""

    def __init__(self, base_url: str, api_key: str | None = None, user_id: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key is not None else {}
        self._client = httpx.Client(base_url=base_url, headers=headers, timeout=TIMEOUT)
        self._whose = {"user_id": user_id} if user_id is not None else {}

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """What a call answers.  Raises RecapError, and httpx.TransportError when the server can't be reached."""
        return _answer(self._client.get(path, params={**query, **self._whose}))

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        """As `get`, for a call with a body."""
        return _answer(self._client.post(path, json={**body, **self._whose}))

    def delete(self, path: str) -> dict[str, Any]:
        """As `get`, for a call that erases."""
        return _answer(self._client.delete(path, params=self._whose))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _answer(response: httpx.Response) -> dict[str, Any]:
    if response.is_success:
        answer: dict[str, Any] = response.json()
        return answer
    try:
        error = response.json()["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, TypeError, KeyError):  # of a proxy, or not of Recap
        code, message = "not_recap", f"The server answered with status {response.status_code}, and not as Recap does."
    raise RecapError(response.status_code, code, message)
