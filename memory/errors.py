"""The errors that Recap raises on purpose.

Messages are for people: what happened, what it means for their data, what to do.  One place turns errors into HTTP
answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


class RecapError(Exception):
    """An error with a stable `code` for programs and a `message` for people.

    `status` is its HTTP status, `retry_after` the seconds worth waiting (None: waiting won't help), `param` the request
    field that caused it, and `kept` the message as it may be stored and logged.
    """

    status = 500
    type = "server_error"

    def __init__(
        self, code: str, message: str, *, param: str | None = None, retry_after: float | None = None, status: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = self.kept = message
        self.param = param
        self.retry_after = retry_after
        self.status = status or self.status


class InvalidRequest(RecapError):
    """The request has the right shape but can't be carried out (422)."""

    status = 422
    type = "invalid_request_error"


class TooLarge(InvalidRequest):
    """More than Recap takes in one piece (413)."""

    status = 413


class Unauthenticated(RecapError):
    """The caller is unknown (401)."""

    status = 401
    type = "authentication_error"


class Forbidden(RecapError):
    """The caller may not do this (403).  Another owner's data is NotFound instead."""

    status = 403
    type = "permission_error"


class NotFound(RecapError):
    """There is no such thing, or it belongs to another owner: both look the same on purpose (404)."""

    status = 404
    type = "not_found_error"


def user_not_found(user_id: str | None) -> NotFound:
    """The same for a user of whom nothing is stored and for one whom the caller may not name."""
    return NotFound("user_not_found", f"Nothing is stored of a user {user_id!r}.", param="user_id")


class Conflict(RecapError):
    """Something else got there first (409)."""

    status = 409
    type = "conflict_error"


class LimitReached(RecapError):
    """A limit that the operator set is reached; it opens again by itself (429, with `retry_after`)."""

    status = 429
    type = "rate_limit_error"


@dataclass(frozen=True)
class Upstream:
    """A model server's refusal: the HTTP status and the fields of OpenAI's error object, as far as it gave them."""

    status: int
    message: str
    type: str | None = None
    param: str | None = None
    code: str | None = None


CONTENT_REFUSED = "model_content_refused"
"""The code of a ModelError: the server's content filter refused the prompt, so the same words are refused again."""
CONTEXT_EXCEEDED = "model_context_exceeded"
"""The code of a ModelError: the prompt is longer than the model's window."""


class ModelError(RecapError):
    """The model server failed: 502 it answered badly, 503 it is busy, 504 it took too long, 422 it refuses the words.

    `upstream` is the server's own answer, if there was one.  What the message quotes of it may repeat the conversation,
    so it is not `kept`.  `quoted` are these words.  `window` is how many tokens of a prompt the model can read, told
    with CONTEXT_EXCEEDED: as the server says, or a guess below what it refused.
    """

    status = 502
    type = "model_error"
    upstream: Upstream | None = None
    window: int | None = None

    def __init__(self, code: str, message: str, *, status: int = 502, quoted: str = "") -> None:
        super().__init__(code, message, status=status)
        self.quoted = quoted
        if quoted:
            self.kept = message.replace(f": {quoted}", "")

    def add(self, sentence: str) -> None:
        """Tell one thing more, also to a client that gets the server's own words."""
        self.message += sentence
        self.kept += sentence
        if self.upstream is not None:
            self.upstream = replace(self.upstream, message=self.upstream.message + sentence)

    def again(self, retry_after: float) -> ModelError:
        """Return the same error for a later request, which may be sent again after so many seconds."""
        error = ModelError(self.code, str(self), status=self.status, quoted=self.quoted)
        error.upstream, error.retry_after = self.upstream, max(1.0, retry_after)
        return error


class SummaryRefused(ModelError):
    """The mini model's answer can't replace the last good summary."""
