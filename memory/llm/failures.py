"""What can go wrong with a model server, as sentences for the person who reads them.

Each says what happened and what to do, naming the setting; what became of a message is for the caller to say.
Guarantee: nothing secret is in a sentence, also when the server sends it back; secrets are struck out before anything
is cut short.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.errors import ModelError, Upstream

WORTH_ANOTHER_TRY = frozenset({"model_unreachable", "model_busy", "model_failed", "model_cut_off"})
"""The codes of failures that a second call a moment later may not meet."""

_NOT_NOW = (408, 409)  # the server's own time-out and a lock: 4xx, but nothing is wrong with the request
_STATUS_OF = {
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "context_length_exceeded": 400,
    "invalid_request_error": 400,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "model_not_found": 404,
}
_TOO_LONG = ("context length", "context window", "context size", "prompt is too long")
_LONGEST_QUOTE = 80
_LONGEST_REASON = 300
_LONGEST_MESSAGE = 4000  # for the server's own words to its client, of which nothing but secrets should be lost
_LONGEST_WAIT = 86_400.0


@dataclass(frozen=True)
class Failures:
    """Makes the errors of one model: `address` is its server's, `setting` the variable that names it."""

    address: str
    model: str
    setting: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def unreachable(self, why: str) -> ModelError:
        return ModelError(
            "model_unreachable",
            f"The model server at {self.address} could not be reached ({self.quote(why)}). "
            "Check that it is running and that OPENAI_BASE_URL is right.",
        )

    def timed_out(self, seconds: float) -> ModelError:
        return ModelError(
            "model_timeout",
            f"The model {self.model} did not finish within {seconds:g} seconds. "
            "Try again, or raise MODEL_TIMEOUT if this model needs longer.",
            status=504,
        )

    def bad_answer(self, what: str, came: str | bytes = b"") -> ModelError:
        quoted = self.quote(came.decode("utf-8", "replace") if isinstance(came, bytes) else came)
        error = ModelError(
            "model_bad_answer",
            f"The model server at {self.address} answered something that is not a chat completion: {what}"
            f"{f': {quoted!r}' if quoted else ''}. "
            "Check that OPENAI_BASE_URL is the address of an OpenAI-compatible API; it usually ends in /v1.",
        )
        error.quoted = repr(quoted) if quoted else ""
        return error

    def empty_answer(self, reason: str) -> ModelError:
        if reason == "content_filter":
            return ModelError(
                "model_empty_answer",
                f"The model server's content filter withheld the answer of {self.model}. Put it in other words.",
                passing=False,
            )
        if reason == "length":
            why = "it reached its limit of tokens before the first word. Raise that limit at the server"
        else:
            why = "it ended at once. Try again"
        return ModelError(
            "model_empty_answer",
            f"The model {self.model} answered without any text: {why}, or choose another model with {self.setting}.",
        )

    def cut_off(self) -> ModelError:
        return ModelError(
            "model_cut_off",
            f"The connection to the model server at {self.address} broke off before the answer was complete. "
            "Try again; if it happens often, look at the server's log and at proxies before OPENAI_BASE_URL.",
        )

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """The error for an HTTP status that is no success, with what the server said of it."""
        error = self._refused(status, headers, body)
        error.quoted = self.quote(_message(body), _LONGEST_REASON)
        detail = _detail(body)
        named = {name: detail.get(name) for name in ("type", "param", "code")} if isinstance(detail, dict) else {}
        told = {name: self.quote(str(value)) for name, value in named.items() if isinstance(value, str | int)}
        said = self.quote(_said(body), _LONGEST_MESSAGE) or f"The model server answered with HTTP status {status}."
        error.upstream = Upstream(status, said, **told)
        return error

    def _refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        wait = _retry_after(headers)
        said = self.quote(_message(body), _LONGEST_REASON)
        because = f": {said}" if said else ""
        code = _code(body)
        if status == 402 or (status == 429 and code == "insufficient_quota"):
            return ModelError(
                "model_quota_exhausted",
                f"The account at the model server has no credit left{because}. "
                "Add credit there, or set OPENAI_API_KEY to another account's key.",
                status=503,
                passing=False,
            )
        if status == 429:
            return ModelError(
                "model_busy",
                f"The model server takes no more requests at the moment{because}. Try again a little later.",
                status=503,
                retry_after=wait,
            )
        if status == 404 or code == "model_not_found":  # OpenAI's 403 for a model that a key may not use
            return ModelError(
                "model_not_found",
                f"The model server at {self.address} does not know the model {self.model} or has no chat completions "
                f"there{because}. Check {self.setting} and OPENAI_BASE_URL.",
                passing=False,
            )
        if status in (401, 403):
            return ModelError(
                "model_key_refused",
                f"The model server at {self.address} refused the key (HTTP {status}){because}. Check OPENAI_API_KEY.",
                passing=False,
            )
        if status >= 500 or status in _NOT_NOW:
            return ModelError(
                "model_failed",
                f"The model server at {self.address} failed (HTTP {status}){because}. Try again in a moment.",
                retry_after=wait,
            )
        if code == "context_length_exceeded":
            return ModelError(
                "model_context_exceeded",
                f"The prompt is longer than the model {self.model} can read{because}. "
                "Lower CONTEXT_TOKENS to what the model takes.",
                passing=False,
            )
        moved = headers.get("location", "") if 300 <= status < 400 else ""
        return ModelError(
            "model_rejected_request",
            f"The model server at {self.address} does not take this request (HTTP {status}"
            f"{f', moved to {self.quote(moved)}' if moved else ''}){because}. "
            f"Check OPENAI_BASE_URL and whether {self.model} ({self.setting}) is a chat model.",
            passing=False,
        )

    def told(self, error: Any) -> ModelError:
        """The error for an `error` that came inside a body which began well; its code: HTTP's or a word."""
        detail = error if isinstance(error, dict) else {"message": str(error)}
        said = (_as_status(detail.get(name)) for name in ("code", "status", "status_code", "type"))
        status = next((status for status in said if status), 500)
        return self.refused(status, {}, json.dumps({"error": detail}).encode())

    def quote(self, text: str, longest: int = _LONGEST_QUOTE) -> str:
        """`text` fit to be shown: no secrets, one line, printable, at most `longest` characters."""
        for secret in self.secrets:
            # A short one ("ollama", "x") is no secret and only struck out as a word of its own.
            pattern = re.escape(secret) if len(secret) >= 8 else rf"(?<!\w){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, "[secret]", text)
        line = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * longest]).split())
        return line if len(line) <= longest else line[: longest - 1] + "…"


def parameter_refused(status: int, body: bytes, parameters: Mapping[str, tuple[str, ...]]) -> str | None:
    """Which of `parameters` (name: the words that betray it) a server objects to, if that is what its 400 is about."""
    if status not in (400, 404, 422):  # 422 is how servers built on pydantic say it, 404 how routers do
        return None
    said = body.decode("utf-8", "replace").lower()
    return next((name for name, words in parameters.items() if any(word in said for word in words)), None)


def _detail(body: bytes) -> Any:
    """What a server says of an error, wherever it puts it: `error`, `detail`, or the whole body."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
    if isinstance(data, dict):
        return data.get("error") or data.get("detail") or data
    return data


def _said(body: bytes) -> str:
    detail = _detail(body)
    if isinstance(detail, dict):
        detail = detail.get("message") or detail.get("error") or ""
    text = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
    return "" if text.lstrip().startswith("<") else text.strip()  # an HTML page explains nothing


def _message(body: bytes) -> str:
    """What was said, as it may stand within a sentence."""
    return _said(body).rstrip(".")


def _code(body: bytes) -> str:
    """The error's code, as far as it matters here; "" for all others."""
    detail = _detail(body)
    values = [str(detail.get(name)) for name in ("code", "type")] if isinstance(detail, dict) else []
    known = ("insufficient_quota", "context_length_exceeded", "model_not_found")
    if found := next((value for value in values if value in known), None):
        return found
    said = _message(body).lower()  # servers other than OpenAI's say it in words alone
    return "context_length_exceeded" if any(words in said for words in _TOO_LONG) else ""


def _as_status(value: Any) -> int | None:
    text = str(value)
    if text in _STATUS_OF:
        return _STATUS_OF[text]
    return int(text) if text.isascii() and text.isdigit() and len(text) == 3 and 400 <= int(text) < 600 else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a server asks to wait, by a number or a date; None if it does not, or not sensibly."""
    raw = headers.get("retry-after", "")
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        else:
            seconds = float(raw)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(raw).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT) if math.isfinite(seconds) else None
