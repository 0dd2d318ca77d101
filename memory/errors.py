"""The errors Recap raises on purpose.  Each is written for the person who reads it: what happened, what it
means for their data, what to do.  `app.py` turns them into HTTP answers, in one place.
"""

from __future__ import annotations

from dataclasses import dataclass


class RecapError(Exception):
    """An error with a stable `code` for programs and a `message` for people.

    `status` is the HTTP status it becomes, `retry_after` the seconds worth waiting (None: waiting won't help),
    `param` the request field that caused it.
    """

    status = 500
    type = "server_error"

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.retry_after = retry_after
        if status is not None:
            self.status = status

    @property
    def kept(self) -> str:
        """The message as it may be stored and logged."""
        return self.message


class InvalidRequest(RecapError):
    """The request has the right shape but cannot be carried out as asked (422)."""

    status = 422
    type = "invalid_request_error"


class TooLarge(InvalidRequest):
    """More than Recap takes in one piece (413)."""

    status = 413


class Unauthenticated(RecapError):
    """Nobody knows who is calling (401)."""

    status = 401
    type = "authentication_error"


class Forbidden(RecapError):
    """It is known who is calling, and this is not for them to do (403).  Never said of what is someone else's."""

    status = 403
    type = "permission_error"


class NotFound(RecapError):
    """There is no such thing, or it belongs to someone else: the two look the same on purpose (404)."""

    status = 404
    type = "not_found_error"


def user_not_found(user_id: str | None) -> NotFound:
    """The one way to say so: of a person of whom nothing is stored, and of one who is not for the caller to name."""
    return NotFound("user_not_found", f"Nothing is stored of a user {user_id!r}.", param="user_id")


class Conflict(RecapError):
    """Something else got there first (409)."""

    status = 409
    type = "conflict_error"


class LimitReached(RecapError):
    """A limit that the operator has set is reached, and opens again by itself (429, with `retry_after`)."""

    status = 429
    type = "rate_limit_error"


@dataclass(frozen=True)
class Upstream:
    """What a model server said when it refused, for those who speak its language: the HTTP status, and the fields of
    OpenAI's error object, as far as it gave them."""

    status: int
    message: str
    type: str | None = None
    param: str | None = None
    code: str | None = None


class ModelError(RecapError):
    """The model server failed: 502 it answered badly, 503 it is busy, 504 it took too long.

    `passing` says whether the same call may succeed later: jobs that fail so are tried again either way, but a
    caller need not wait for a key that is wrong.  `upstream` is what the server itself said, if it said something;
    `quoted` is as much of that as stands in the message.
    """

    status = 502
    type = "model_error"

    def __init__(
        self, code: str, message: str, *, status: int = 502, retry_after: float | None = None, passing: bool = True
    ) -> None:
        super().__init__(code, message, status=status, retry_after=retry_after)
        self.passing = passing
        self.upstream: Upstream | None = None
        self.quoted = ""

    @property
    def kept(self) -> str:
        """The message without what the server said: that may repeat the conversation."""
        return self.message.replace(f": {self.quoted}", "") if self.quoted else self.message


class SummaryRefused(RecapError):
    """The mini model's answer was not good enough to replace the last good summary."""

    status = 502
    type = "model_error"
