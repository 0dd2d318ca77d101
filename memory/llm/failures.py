"""What can go wrong with a model server, as errors for the person who reads them.

Each sentence says what happened and what to do, and names the setting to change.  The caller adds what became of the
message.  Guarantee: no error quotes a secret, even if the server sends it back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.errors import ModelError, Upstream

WORTH_ANOTHER_TRY = frozenset({"model_unreachable", "model_busy", "model_failed", "model_cut_off"})
"""The codes of failures that another try a moment later may avoid."""

_SENTENCES = {
    "model_unreachable": "The model server at {address} could not be reached ({why}). "
    "Check that it is running and that OPENAI_BASE_URL is right.",
    "model_timeout": "The model {model} did not finish within {why} seconds. "
    "Try again, or raise MODEL_TIMEOUT if this model needs longer.",
    "model_bad_answer": "The model server at {address} answered something that is not a chat completion: {why}. "
    "Check that OPENAI_BASE_URL is the address of an OpenAI-compatible API; it usually ends in /v1.",
    "model_empty_answer": "The model {model} answered without any text: {why}, or choose another model with {setting}.",
    "model_cut_off": "The connection to the model server at {address} broke off before the answer was complete. "
    "Try again; if it happens often, look at the server's log and at proxies before OPENAI_BASE_URL.",
    "model_quota_exhausted": "The account at the model server has no credit left{why}. "
    "Add credit there, or set OPENAI_API_KEY to another account's key.",
    "model_busy": "The model server takes no more requests at the moment{why}. Try again a little later.",
    "model_not_found": "The model server at {address} does not know the model {model} or has no chat completions "
    "there{why}. Check {setting} and OPENAI_BASE_URL.",
    "model_key_refused": "The model server at {address} refused the key (HTTP {status}){why}. Check OPENAI_API_KEY.",
    "model_failed": "The model server at {address} failed (HTTP {status}){why}. Try again in a moment.",
    "model_context_exceeded": "The prompt is longer than the model {model} can read{why}. "
    "Lower CONTEXT_TOKENS to what the model takes.",
    "model_rejected_request": "The model server at {address} does not take this request (HTTP {status}){why}. "
    "Check OPENAI_BASE_URL and whether {model} ({setting}) is a chat model.",
}
_OWN_STATUS = {"model_timeout": 504, "model_quota_exhausted": 503, "model_busy": 503}
_WHY_EMPTY = {
    "length": "it reached its limit of tokens before the first word. Raise that limit at the server",
    "content_filter": "the server's content filter withheld the answer. Put it in other words",
}
_TOO_LONG = ("context length", "context window", "context size", "prompt is too long")
_LONGEST_QUOTE = 80
_LONGEST_REASON = 300
_LONGEST_MESSAGE = 4000  # of the server's own words to an OpenAI client
_SECONDS = re.compile(r"\d{1,5}(?:\.\d+)?")  # to wait: a day at most; servers send dates and nonsense too


@dataclass(frozen=True)
class Failures:
    """Makes the errors of one model.

    `address` is its server's, `setting` the environment variable that names it, `seconds` the time an answer may take.
    `url_setting` and `key_setting` are the variables of the server.
    """

    address: str
    model: str
    setting: str
    seconds: float
    secrets: tuple[str, ...] = field(default=(), repr=False)
    url_setting: str = "OPENAI_BASE_URL"
    key_setting: str = "OPENAI_API_KEY"

    def unreachable(self, why: str) -> ModelError:
        return self._error("model_unreachable", self._quote(why))

    def timed_out(self) -> ModelError:
        return self._error("model_timeout", f"{self.seconds:g}")

    def cut_off(self) -> ModelError:
        return self._error("model_cut_off")

    def bad_answer(self, what: str, came: str = "") -> ModelError:
        return self._error("model_bad_answer", what, quoted=repr(self._quote(came)) if came else "")

    def empty_answer(self, reason: str) -> ModelError:
        return self._error("model_empty_answer", _WHY_EMPTY.get(reason, "it ended at once. Try again"))

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """The error for an HTTP status other than success."""
        detail: Any = body.decode("utf-8", "replace")
        try:
            detail = json.loads(detail)
        except (ValueError, RecursionError):
            pass
        if isinstance(detail, dict):
            detail = detail.get("error") or detail.get("detail") or detail
        error = self._refusal(status, detail)
        asked = _SECONDS.fullmatch(headers.get("retry-after", ""))
        error.retry_after = float(asked[0]) if asked and error.code in WORTH_ANOTHER_TRY else None
        return error

    def told(self, detail: Any) -> ModelError:
        """The error for an `error` inside a body that began well."""
        named = detail if isinstance(detail, dict) else {}
        said = (str(named.get(name)) for name in ("code", "status", "status_code", "type"))
        status = next((int(text) for text in said if re.fullmatch("[45][0-9][0-9]", text)), 500)
        return self._refusal(status, detail)

    def _refusal(self, status: int, detail: Any) -> ModelError:
        named = detail if isinstance(detail, dict) else {}
        said = named.get("message") or named.get("error") or "" if named else detail
        said = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        said = "" if said.lstrip().startswith("<") else said.strip()  # an HTML page explains nothing
        quoted = self._quote(said.rstrip("."), _LONGEST_REASON)
        error = self._error(_code(status, named, said), status=status, quoted=quoted)
        given = {name: named.get(name) for name in ("type", "param", "code")}
        error.upstream = Upstream(
            status,
            self._quote(said, _LONGEST_MESSAGE) or f"The model server answered with HTTP status {status}.",
            **{name: self._quote(str(value)) for name, value in given.items() if isinstance(value, str | int)},
        )
        return error

    def _error(self, code: str, why: str = "", status: int = 0, quoted: str = "") -> ModelError:
        """The error of a code.  `quoted` is the server's own words, which follow `why` in the message."""
        why = f"{why}: {quoted}" if quoted else why
        values = {"address": self.address, "model": self.model, "setting": self.setting, "why": why, "status": status}
        sentence = _SENTENCES[code].replace("OPENAI_API_KEY", self.key_setting)
        if self.setting == self.url_setting:  # which names models with their addresses
            sentence = sentence.replace("{setting} and OPENAI_BASE_URL", "{setting}")
        sentence = sentence.replace("OPENAI_BASE_URL", self.url_setting)
        return ModelError(code, sentence.format(**values), status=_OWN_STATUS.get(code, 502), quoted=quoted)

    def _quote(self, text: str, longest: int = _LONGEST_QUOTE) -> str:
        """`text` fit to be shown: no secrets, one line, printable, at most `longest` characters."""
        for secret in self.secrets:
            # A short one ("ollama", "x") is no secret, and only struck out as a word of its own.
            pattern = re.escape(secret) if len(secret) >= 8 else rf"(?<!\w){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, "[secret]", text)
        line = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * longest]).split())
        return line if len(line) <= longest else line[: longest - 1] + "…"


def _code(status: int, named: Mapping[str, Any], said: str) -> str:
    """The code of our error for what the server said."""
    theirs = {str(named.get(name)) for name in ("code", "type")}
    if status == 402 or "insufficient_quota" in theirs:
        return "model_quota_exhausted"
    if status == 429 or "rate_limit_exceeded" in theirs:
        return "model_busy"
    if status == 404 or "model_not_found" in theirs:  # OpenAI answers 403 for a model that a key may not use
        return "model_not_found"
    if status in (401, 403):
        return "model_key_refused"
    if "context_length_exceeded" in theirs or any(words in said.lower() for words in _TOO_LONG):
        return "model_context_exceeded"
    if status >= 500 or status in (408, 409):  # the server's own timeout or lock; the request itself is fine
        return "model_failed"
    return "model_rejected_request"
