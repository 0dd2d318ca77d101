"""What can go wrong with a model server, as errors for the person who reads them.

Each sentence says what happened and what to do, and names the setting to change.  The caller adds what became of the
message.  Guarantee: no error quotes a secret, even if the server sends it back.
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
"""The codes of failures that another try a moment later may avoid."""

_NOT_NOW = (408, 409)  # the server's own timeout or lock; the request itself is fine
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
_LONGEST_MESSAGE = 4000  # of what an OpenAI client is told in the server's own words
_LONGEST_WAIT = 86_400.0


@dataclass(frozen=True)
class Failures:
    """Makes the errors of one model.  `address` is its server's, `setting` the environment variable that names it."""

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

    def bad_answer(self, what: str, came: str = "") -> ModelError:
        quoted = self.quote(came)
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
        """The error for an HTTP status other than success."""
        detail = _detail(body)
        said = _said(detail)
        reason = self.quote(said.rstrip("."), _LONGEST_REASON)
        error = self._refused(status, headers, _code(detail, said), f": {reason}" if reason else "")
        error.quoted = reason
        named = {name: detail.get(name) for name in ("type", "param", "code")} if isinstance(detail, dict) else {}
        error.upstream = Upstream(
            status,
            self.quote(said, _LONGEST_MESSAGE) or f"The model server answered with HTTP status {status}.",
            **{name: self.quote(str(value)) for name, value in named.items() if isinstance(value, str | int)},
        )
        return error

    def _refused(self, status: int, headers: Mapping[str, str], code: str, because: str) -> ModelError:
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
                retry_after=_retry_after(headers),
            )
        if status == 404 or code == "model_not_found":  # OpenAI answers 403 for a model that a key may not use
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
                retry_after=_retry_after(headers),
            )
        if code == "context_length_exceeded":
            return ModelError(
                "model_context_exceeded",
                f"The prompt is longer than the model {self.model} can read{because}. "
                "Lower CONTEXT_TOKENS to what the model takes.",
                passing=False,
            )
        return ModelError(
            "model_rejected_request",
            f"The model server at {self.address} does not take this request (HTTP {status}){because}. "
            f"Check OPENAI_BASE_URL and whether {self.model} ({self.setting}) is a chat model.",
            passing=False,
        )

    def told(self, error: Any) -> ModelError:
        """The error for an `error` inside a body that began well.  Its code is a status or a word."""
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
    """Which of `parameters` the server's refusal is about, if any.  Their values are the words that tell."""
    if status not in (400, 404, 422):  # servers built on pydantic say 422, routers 404
        return None
    said = body.decode("utf-8", "replace").lower()
    return next((name for name, words in parameters.items() if any(word in said for word in words)), None)


def _detail(body: bytes) -> Any:
    """What the server says of an error: its `error`, its `detail`, or the whole body."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
    return data.get("error") or data.get("detail") or data if isinstance(data, dict) else data


def _said(detail: Any) -> str:
    if isinstance(detail, dict):
        detail = detail.get("message") or detail.get("error") or ""
    text = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
    return "" if text.lstrip().startswith("<") else text.strip()  # an HTML page explains nothing


def _code(detail: Any, said: str) -> str:
    """The error's code, if it is one that matters here."""
    values = [str(detail.get(name)) for name in ("code", "type")] if isinstance(detail, dict) else []
    for known in ("insufficient_quota", "context_length_exceeded", "model_not_found"):
        if known in values:
            return known
    # Servers other than OpenAI's say it in words alone.
    return "context_length_exceeded" if any(words in said.lower() for words in _TOO_LONG) else ""


def _as_status(value: Any) -> int | None:
    text = str(value)
    if text in _STATUS_OF:
        return _STATUS_OF[text]
    return int(text) if text.isascii() and text.isdigit() and len(text) == 3 and 400 <= int(text) < 600 else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait, as a number or a date; None if it does not, or not sensibly."""
    raw = headers.get("retry-after", "")
    try:
        milliseconds = headers.get("retry-after-ms")
        seconds = float(raw) if milliseconds is None else float(milliseconds) / 1000
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(raw).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT) if math.isfinite(seconds) else None
