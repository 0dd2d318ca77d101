"""A client of Recap's HTTP API, for benchmarks that store conversations."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from benchmarks.conversation import Said

BATCH = 1_000  # messages in one call: the API's maximum
QUIET_SECONDS = 600.0  # a real mini model may take this long over the summaries of an import


class Recap:
    """A client of the HTTP API, for the benchmark's own users."""

    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=180.0, trust_env=False)

    def ready(self) -> dict[str, Any]:
        return self._call("GET", "/health/ready")

    def append(self, user: str, session: str, messages: Sequence[Said]) -> None:
        for start in range(0, len(messages), BATCH):
            batch = [one.to_import() for one in messages[start : start + BATCH]]
            self._call("POST", f"/api/sessions/{session}/messages", json={"user_id": user, "messages": batch})

    def restore(self, user: str, sessions: Mapping[str, Sequence[Said]]) -> None:
        """Store sessions without calling a model: neither summaries nor facts are made of them."""
        restored = [
            {
                "id": f"{user}-{name}",
                "created_at": messages[0].created_at,
                "updated_at": messages[-1].created_at,
                "messages": [one.to_import() for one in messages],
            }
            for name, messages in sessions.items()
        ]
        document = {"format": "recap-export", "version": 1, "sessions": restored}
        self._call("POST", "/api/import", params={"user_id": user}, json=document)

    def summarise(self, user: str) -> int:
        """Have summaries and facts made of all sessions of the user.  Returns the tokens of the user's model calls."""
        self._call("POST", f"/api/users/{user}/summaries")
        self.wait_for_jobs(user, "summary")
        tokens: int = self._call("GET", f"/api/users/{user}")["tokens_today"]
        return tokens

    def wait_for_jobs(self, user: str, *kinds: str) -> None:
        """Wait until the user has no job of these kinds.  Raises RuntimeError if a job fails or takes too long."""
        deadline = time.monotonic() + QUIET_SECONDS
        while waiting := [job for job in self._jobs(user) if job["kind"] in kinds]:
            failed = [job for job in waiting if job["state"] == "failed"]
            if failed or time.monotonic() > deadline:
                raise RuntimeError(f"jobs failed or did not end in time: {failed or waiting}")
            time.sleep(0.01)

    def _jobs(self, user: str) -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = self._call("GET", "/api/jobs", params={"user_id": user, "limit": 100})["items"]
        return jobs

    def search(self, user: str, text: str, limit: int) -> dict[str, Any]:
        return self._call("GET", "/api/search", params={"q": text, "user_id": user, "limit": limit})

    def chat(self, user: str, session: str, message: str) -> dict[str, Any]:
        return self._call("POST", "/api/chat", json={"user_id": user, "session_id": session, "message": message})

    def ask(self, user: str, message: str, system_prompt: str) -> dict[str, Any]:
        """Ask something in a turn that uses the user's memory and leaves nothing in it."""
        asked = {"user_id": user, "message": message, "system_prompt": system_prompt, "temporary": True}
        return self._call("POST", "/api/chat", json=asked)

    def forget(self, user: str) -> None:
        """Erase everything of the user."""
        self._call("DELETE", f"/api/users/{user}")

    def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = self._http.request(method, path, **more)
        if not answer.is_success:
            raise RuntimeError(f"{method} {path} answered {answer.status_code}: {answer.text[:1000]}")
        body: dict[str, Any] = answer.json()
        return body
