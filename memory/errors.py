"""Errors that Recap raises on purpose.

Messages are for people: what happened, what it means for their data, what to do. api/errors turns them into responses.
"""

from dataclasses import dataclass, replace

from models.database_faults import DatabaseFault, fault_of, message_of


class RecapError(Exception):
    """Error with a stable `code` for programs and a `message` for people.

    status: of HTTP. retry_after: seconds worth waiting (None: waiting won't help). param: the request field that caused
    it. kept: the message as it may be stored and logged.
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
    """Request that is well formed but can't be carried out (422)."""

    status = 422
    type = "invalid_request_error"


class TooLarge(InvalidRequest):
    """Request with more than Recap takes in one piece (413)."""

    status = 413


class Unauthenticated(RecapError):
    """Caller that is unknown (401)."""

    status = 401
    type = "authentication_error"


class TokenRefused(Unauthenticated):
    """Caller whose access token expired, as each does, or opens nothing here. Nobody guesses 256 bits (401)."""


class Forbidden(RecapError):
    """Call that the caller may not make (403). Another owner's data is NotFound instead."""

    status = 403
    type = "permission_error"


class NotFound(RecapError):
    """It does not exist, or belongs to another owner: both look the same on purpose (404)."""

    status = 404
    type = "not_found_error"


def owner_not_found(user_id: str | None = None, space: str | None = None) -> NotFound:
    """Return the error for a user or a space without rows; the same for one that the key does not open."""
    if space is not None:
        return NotFound("space_not_found", f"Nothing is stored of a space {space!r}.", param="space")
    return NotFound("user_not_found", f"Nothing is stored of a user {user_id!r}.", param="user_id")


class Conflict(RecapError):
    """Another request or job got there first (409)."""

    status = 409
    type = "conflict_error"


class LimitReached(RecapError):
    """Limit of the operator's that is reached; it is lifted by itself (429, with `retry_after`)."""

    status = 429
    type = "rate_limit_error"


@dataclass(frozen=True)
class Upstream:
    """Model server's error: the HTTP status and the fields of OpenAI's error object that it sent."""

    status: int
    message: str
    type: str | None = None
    param: str | None = None
    code: str | None = None


CONTENT_REFUSED = "model_content_refused"
"""The code of a ModelError: the server's content filter refused the prompt, and will refuse it again."""
CONTEXT_EXCEEDED = "model_context_exceeded"
"""The code of a ModelError: the prompt is longer than the model's window."""
IMAGES_REFUSED = "model_images_refused"


class ModelError(RecapError):
    """Failure of the model server: 502 a bad answer, 503 busy or loading, 504 too slow, 422 it refuses the prompt.

    upstream: the server's own error, if it sent one. quoted: the part of the message that is the server's text; it may
    repeat the conversation, so it is not `kept`. window: tokens of a prompt that the model can read, with
    CONTEXT_EXCEEDED: reported by the server, or a guess below the refused prompt.
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

    @property
    def is_away(self) -> bool:
        """Return whether the server does not work at the moment, whatever it is asked."""
        by_proxy = self.upstream is not None and self.upstream.status in (502, 503, 504)
        return by_proxy or self.code in ("model_unreachable", "model_loading", "model_busy", "model_quota_exhausted")

    def add(self, sentence: str) -> None:
        """Append a sentence, also for a client that gets the server's own text."""
        self.message += sentence
        self.kept += sentence
        if self.upstream is not None:
            self.upstream = replace(self.upstream, message=self.upstream.message + sentence)


class DeliveryFailed(RecapError):
    """Receiver of a webhook that does not take an event now."""

    def __init__(self, webhook_id: int, reason: str) -> None:
        super().__init__("delivery_failed", f"Webhook {webhook_id}: {reason}.", status=502)


class AnswerRefused(ModelError):
    """Answer of the mini model that can't be used, even repaired, so that what it was to replace stays as it was."""


NOT_STORED = "Nothing of this request was stored."
DATABASE_RETRY_SECONDS = 5.0  # in which a database server restarts


def database_failed(error: BaseException, consequence: str = NOT_STORED) -> RecapError | None:
    """Return the error to report (503); None for an error of Recap's own. consequence: what it means for the data."""
    fault = fault_of(error)
    if fault is None:
        return None
    consequence = "What this request wrote may be lost." if fault.may_lose_writes else consequence
    code, message = message_of(fault, consequence, "send it again; no restart is needed")
    retry_after = DATABASE_RETRY_SECONDS if fault in (DatabaseFault.UNAVAILABLE, DatabaseFault.CUT_OFF) else None
    return RecapError(code, message, status=503, retry_after=retry_after)


def code_of(error: BaseException, unexpected: str = "internal_error") -> str:
    """Return the code that an error is reported by. unexpected: of an error of Recap's own."""
    reported = error if isinstance(error, RecapError) else database_failed(error)
    return reported.code if reported is not None else unexpected
