"""Failures of a model server, as errors for the person who reads them.

Each sentence says what happened and what to do, and names the setting to change.  The caller adds what became of the
message.  Guarantee: no error quotes a secret, even if the server sends it back.
"""

import contextlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from config import Server
from memory.errors import CONTENT_REFUSED, CONTEXT_EXCEEDED, IMAGES_REFUSED, ModelError, Upstream
from memory.json_values import dict_in, list_in
from memory.llm.retries import PASSING

_SENTENCES = {
    "model_unreachable": "The model server at {address} could not be reached ({why}). "
    "Check that it is running and that OPENAI_BASE_URL is right.{inside}",
    "model_timeout": "The model {model} {why}. Try again, or raise MODEL_TIMEOUT if this model needs longer.",
    "model_bad_answer": "The model server at {address} answered something that is not a chat completion: {why}. "
    "Check that OPENAI_BASE_URL is the address of an OpenAI-compatible API; it usually ends in /v1.",
    "model_empty_answer": "The model {model} answered without any text: {why}, or choose another model with {setting}.",
    "model_cut_off": "The connection to the model server at {address} broke off before the answer was complete. "
    "Try again; if it happens often, look at the server's log and at proxies before OPENAI_BASE_URL.",
    "model_quota_exhausted": "The account at the model server {address} has no credit left{why}. "
    "Add credit there, or set OPENAI_API_KEY to another account's key.",
    "model_busy": "The model server takes no more requests at the moment{why}. Try again a little later.",
    "model_loading": "The model server at {address} is still loading the model {model}{why}. Try again in a moment.",
    "model_not_found": "The model server at {address} does not know the model {model}, or has no such "
    "endpoint{why}. Check {setting} and OPENAI_BASE_URL, which usually ends in /v1.",
    "model_key_refused": "The model server at {address} refused the key (HTTP {status}){why}. Check OPENAI_API_KEY.",
    "model_failed": "The model server at {address} failed (HTTP {status}){why}. Try again in a moment.",
    CONTEXT_EXCEEDED: "The prompt is longer than the model {model} can read in one piece{why}. Recap sends shorter "
    "prompts from now on. Set CONTEXT_TOKENS to what the model takes, or give it a larger window at the server.",
    CONTENT_REFUSED: "The content filter of the model server at {address} refused this message{why}. "
    "Put it in other words.",
    IMAGES_REFUSED: "The model {model} reads no images{why}. Choose one that does with {setting}, or send the message "
    "without them.",
    "model_rejected_request": "The model server at {address} does not take this request (HTTP {status}){why}. "
    "Check OPENAI_BASE_URL and whether {model} ({setting}) is a chat model.",
}
_OWN_STATUS = {
    "model_timeout": 504,
    **dict.fromkeys(("model_quota_exhausted", "model_busy", "model_loading"), 503),
    **dict.fromkeys((CONTENT_REFUSED, IMAGES_REFUSED), 422),
}
_WHY_EMPTY = {
    "length": "it reached its limit of tokens before the first word. Raise that limit at the server",
    "thoughts": "it only thought, and then stopped. Try again, turn its thinking off at the server",
    "thoughts length": "it reached its limit of tokens while it was thinking. Raise that limit at the server",
}
_REFUSED_CODES = {"content_filter", "content_policy_violation", "invalid_prompt", "data_inspection_failed", "1301"}
_REFUSED_WORDS = re.compile(
    r"content management policy|content exists risk|PROHIBITED_CONTENT|(?:input|prompt) was (?:flagged|blocked)"
    r"|requires moderation|violat\w+ (?:our|the) (?:usage|content) polic|ResponsibleAIPolicyViolation",
    re.I,
)
_NO_CREDIT = re.compile(
    r"credit balance is too low|insufficient (?:balance|credits|quota)|balance is insufficient|余额不足"
    r"|(?:usage|spending|budget) limits?\b|budget has been exceeded|have any credits|arrearage|in good standing",
    re.I,
)
_LOADING = re.compile(
    r"^loading model|model .{0,200}\b(?:currently|still|being) load|model (?:\S+ )?is (?:loading|starting|unloaded)"
    r"|model (?:\S+ )?is not (?:yet )?ready|waiting for \w+ runner to start",
    re.I,
)
_NO_IMAGES = re.compile(  # as OpenAI, llama.cpp, Ollama, LM Studio, vLLM, OpenRouter, Mistral and DeepSeek say it
    r"image.?(?:input|url|content)?s?\b.{0,20}(?:\bnot (?:supported|enabled)|only supported|unsupported)"
    r"|(?:not support|not accept|no .{0,40}that support|missing data required for) (?:the )?(?:image|vision|multimodal)"
    r"|not a (?:multimodal|vision) model|at most 0 image|unknown variant .?image_url",
    re.I,
)
_NO_MODEL = re.compile(
    r"model not exist|not supported by any provider|(?:invalid|unknown|unsupported|no such) model\b|not a valid model"
    r"|^model: \S+$|unable to access model|\bmodels?\b.{0,200}?\b(?:does not exist|not found|is not found"
    r"|not supported for generateContent|decommissioned|no longer (?:supported|available))",
    re.I | re.S,
)
_BAD_KEY = re.compile(r"api key not valid|invalid api.?key|incorrect api.?key|API_KEY_INVALID", re.I)
_TOO_LONG = re.compile(
    r"context (?:length|window|size|limit)|maximum (?:context|prompt length|supported sequence)"
    r"|max_new_tokens`? must be <=|(?:prompt|input|request|message)(?: \([^)]{0,40}\))? (?:is |are )?too (?:long|large)"
    r"|maximum number of (?:input )?tokens|too many (?:input )?tokens|tokens per min\w*|exceed_context_size"
    r"|\bn_keep\b|range of input length",  # LM Studio's, DashScope's
    re.I,
)
_WINDOW = re.compile(
    r"(?:maximum (?:context|prompt|supported sequence)|context (?:length|window|size)|max_new_tokens`? must be|max size"
    r"|cannot exceed|number of tokens allowed|\blimit\b|\bn_ctx\b|\bmax_seq_len\b)(?: length| size| window)?"
    r"[^\d]{0,40}(\d{3,8})\b(?! \+|\)? ?>| is greater)"  # and no size of the prompt, which is compared with it
    r"|> (\d{3,8})\b|(\d{3,8}) (?:tokens? )?maximum context|\[1, (\d{3,8})\]",
    re.I,
)
_WAIT = re.compile(r"(?:retry|try again) (?:in|after) (?:(\d{1,3})m)?(\d{1,5}(?:\.\d+)?)(ms| ?s(?:econds)?\b)", re.I)
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,300})</title>", re.I)
_ANSWER_FAILED = {"json_validate_failed", "tool_use_failed"}  # Groq's, with status 400: another answer may not fail
_MARKUP = re.compile(r"\s*<[!?/a-z]", re.I)  # and not DashScope's "<400> InternalError"
_LONGEST_QUOTE = 80
_LONGEST_REASON = 300
_LONGEST_MESSAGE = 4000  # of the server's own words to an OpenAI client
THIS_MACHINE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # as the host of a server's address
_INSIDE = (
    " If Recap runs in a container, this address is the container itself: docs/models.md says how to reach the host."
)
_SECONDS = re.compile(r"(\d{1,5}(?:\.\d+)?)s?")  # to wait: a day at most; servers send dates and nonsense too


@dataclass(frozen=True)
class ProviderErrors:
    """Makes the errors of one model.

    `address` is that of its `server`, `setting` the environment variable that names it, `seconds` the time an answer
    may take.
    """

    address: str
    model: str
    setting: str
    seconds: float
    secrets: tuple[str, ...] = field(default=(), repr=False)
    server: Server = Server()

    def unreachable(self, why: str) -> ModelError:
        return self._error("model_unreachable", self._quote(why))

    def timed_out(self, *, silent: bool = False) -> ModelError:
        """Return the error for an answer that takes more than `seconds` in all, or of which nothing comes so long."""
        why = ": its server sent nothing for" if silent else " within"
        return self._error("model_timeout", f"did not finish{why} {self.seconds:g} seconds")

    def cut_off(self) -> ModelError:
        return self._error("model_cut_off")

    def bad_answer(self, what: str, came: str = "") -> ModelError:
        return self._error("model_bad_answer", what, quoted=_page(came) or (repr(self._quote(came)) if came else ""))

    def empty_answer(self, reason: str, *, thought: bool = False) -> ModelError:
        """Return the error for an answer without a word. thought: there were thoughts in it."""
        if reason == "content_filter":
            return self._error(CONTENT_REFUSED, ", or the answer to it")
        if reason == "load":
            return self._error("model_loading")
        kind = " ".join(filter(None, ("thoughts" if thought else "", "length" if reason == "length" else "")))
        return self._error("model_empty_answer", _WHY_EMPTY.get(kind, "it ended at once. Try again"))

    def refused(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Return the error for an HTTP status other than success."""
        detail: Any = body.decode("utf-8", "replace")
        with contextlib.suppress(ValueError, RecursionError):
            detail = json.loads(detail)
        return self._refusal(status, _unwrapped(detail), headers)

    def reported(self, detail: Any) -> ModelError:
        """Return the error for an `error` inside a body that began well."""
        detail = _unwrapped(detail)
        fields = dict_in(detail)
        codes = (str(fields.get(name)) for name in ("code", "status", "status_code", "type"))
        status = next((int(text) for text in codes if re.fullmatch("[45][0-9][0-9]", text)), 500)
        return self._refusal(status, detail, {})

    def _refusal(self, status: int, detail: Any, headers: Mapping[str, str]) -> ModelError:
        fields = dict_in(detail)
        whole = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
        message = fields.get("message") or fields.get("error") or fields.get("msg") or "" if fields else detail
        message = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
        if relayed := dict_in(fields.get("metadata")).get("raw"):  # what OpenRouter was told by the model's provider
            message = f"{message}: {relayed}"
        message = _page(message) or ("" if _MARKUP.match(message) else message.strip())
        quoted = self._quote(message.rstrip(".。"), _LONGEST_REASON)
        code = _code(status, fields, message, whole)
        error = self._error(code, status=status, quoted=quoted)
        if code == CONTEXT_EXCEEDED:
            error.window = _window_in(fields, message)
        details = {name: fields.get(name) for name in ("type", "param", "code")}
        error.upstream = Upstream(
            status,
            self._quote(message, _LONGEST_MESSAGE) or f"The model server answered with HTTP status {status}.",
            **{name: self._quote(str(value)) for name, value in details.items() if isinstance(value, str | int)},
        )
        if code in PASSING:
            error.retry_after = _pause(headers, fields, message)
        return error

    def _error(self, code: str, why: str = "", status: int = 0, quoted: str = "") -> ModelError:
        """Return the error of a code.  `quoted` is the server's own words, which follow `why` in the message."""
        why = f"{why}: {quoted}" if quoted else why
        values = {"address": self.address, "model": self.model, "setting": self.setting, "why": why, "status": status}
        values["inside"] = _INSIDE if urlsplit(self.address).hostname in THIS_MACHINE else ""
        sentence = _SENTENCES[code].replace("OPENAI_API_KEY", self.server.key_setting)
        if self.setting == self.server.url_setting:  # which names models with their addresses
            sentence = sentence.replace("{setting} and OPENAI_BASE_URL", "{setting}")
        sentence = sentence.replace("OPENAI_BASE_URL", self.server.url_setting)
        return ModelError(code, sentence.format(**values), status=_OWN_STATUS.get(code, 502), quoted=quoted)

    def _quote(self, text: str, longest: int = _LONGEST_QUOTE) -> str:
        """Return text fit to be shown: no secrets, one line, printable, at most `longest` characters."""
        for secret in self.secrets:
            # A short one ("ollama", "x") is no secret, and only struck out as a word of its own.
            pattern = re.escape(secret) if len(secret) >= 8 else rf"(?<!\w){re.escape(secret)}(?!\w)"
            text = re.sub(pattern, "[secret]", text)
        line = " ".join("".join(c if c.isprintable() else " " for c in text[: 20 * longest]).split())
        end = longest // 3  # where templates and proxies say what is wrong
        return line if len(line) <= longest else f"{line[: longest - end - 1]}…{line[-end:]}"


def _unwrapped(detail: Any) -> Any:
    """Return the error in a body, without the list and the objects that servers wrap around it."""
    if isinstance(detail, list) and len(detail) == 1:
        detail = detail[0]
    if isinstance(detail, dict):
        several = list_in(detail.get("errors"))  # Cloudflare's
        detail = detail.get("error") or next(iter(several), None) or detail.get("detail") or detail
    return detail


def _page(text: str) -> str | None:
    """Return a description of an HTML page by its title; None for another text, or a page without one."""
    title = _TITLE.search(text) if text.lstrip().startswith("<") else None
    return f'a web page with the title "{unescape(title[1]).strip()}"' if title else None


def _code(status: int, fields: Mapping[str, Any], message: str, whole: str) -> str:
    """Return the code of our error for what the server says. whole: all of its error, also what stands deeper in it."""
    names = {str(fields.get(name)) for name in ("code", "type")}
    # 429 is a matter of waiting, unless the prompt alone is too long for the tokens that an account has in a minute.
    too_long = status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(message))
    too_long = "too large" in message.lower() if status == 429 else too_long
    # OpenAI and LiteLLM answer 403 for a model that a key may not use.
    no_endpoint = message.startswith("Unexpected endpoint")  # LM Studio says so with the status 200
    no_access = status in (401, 403) and fields.get("param") == "model"
    no_model = names & {"model_not_found", "invalid_model"} or (status < 500 and _NO_MODEL.search(message))
    checks = {  # the first that holds counts
        CONTENT_REFUSED: names & _REFUSED_CODES or (400 <= status < 500 and _REFUSED_WORDS.search(whole)),
        "model_quota_exhausted": status == 402 or "insufficient_quota" in names or _NO_CREDIT.search(message),
        CONTEXT_EXCEEDED: "context_length_exceeded" in names or too_long,
        IMAGES_REFUSED: status not in (401, 403, 429) and _NO_IMAGES.search(message),
        "model_loading": status not in (401, 403, 404) and _LOADING.search(message),
        "model_busy": status in (429, 498, 529) or "rate_limit_exceeded" in names,
        "model_not_found": status in (404, 410, 501) or no_endpoint or no_model or no_access,
        "model_key_refused": status in (401, 403) or _BAD_KEY.search(whole),
        # 408 and 409 are its own timeout or lock. Ollama fails for good at a text whose embedding is no number.
        "model_failed": (status >= 500 and "value: NaN" not in message)
        or status in (408, 409)
        or names & _ANSWER_FAILED,
    }
    return next((code for code, holds in checks.items() if holds), "model_rejected_request")


def _window_in(fields: Mapping[str, Any], message: str) -> int | None:
    """Return the tokens that the model can read: llama.cpp has a field for it, others say it in words."""
    if isinstance(window := fields.get("n_ctx"), int):
        return window
    match = _WINDOW.search(message)
    return int(next(filter(None, match.groups()))) if match is not None else None


def _pause(headers: Mapping[str, str], fields: Mapping[str, Any], message: str) -> float | None:
    """Return the seconds that the server asks to wait: in a header, in Google's details, or in its words."""
    delays = (dict_in(detail).get("retryDelay") for detail in list_in(fields.get("details")))
    header = headers.get("retry-after", "")
    if milliseconds := _SECONDS.fullmatch(headers.get("retry-after-ms", "")):
        return float(milliseconds[1]) / 1000
    with contextlib.suppress(ValueError):
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    for text in (header, *delays):
        if isinstance(text, str) and (seconds := _SECONDS.fullmatch(text)):
            return float(seconds[1])
    if wait := _WAIT.search(message):
        return int(wait[1] or 0) * 60 + float(wait[2]) / (1000 if wait[3].lower() == "ms" else 1)
    return None
