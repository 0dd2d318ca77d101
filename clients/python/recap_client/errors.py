"""The errors that calls raise."""

from __future__ import annotations

from typing import Any


class RecapError(Exception):
    """A call failed.  `str(error)` is for people, `code` is a stable word for programs.

    `status` is the HTTP status, 0 without an answer.  `param` is the field that is wrong, `fields` says what is wrong
    with each, and `retry_after` is the number of seconds worth waiting, if the server gave one.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        fields: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.fields = fields or {}
        self.retry_after = retry_after


class InvalidRequest(RecapError):
    """The call can't be carried out as it is: wrong fields, too large, no such address."""


class Unauthenticated(RecapError):
    """The API key is missing or wrong."""


class Forbidden(RecapError):
    """The API key may not make this call."""


class NotFound(RecapError):
    """There is no such thing, or it belongs to someone else."""


class Conflict(RecapError):
    """Something else got there first: the session is busy, or what the call expects has changed."""


class LimitReached(RecapError):
    """Too many calls, or the day's tokens are spent."""


class ModelError(RecapError):
    """The model server failed.  The message is kept."""


class ServerError(RecapError):
    """Recap can't answer now, or has an error of its own."""


class NoAnswer(RecapError):
    """The server can't be reached, or its answer did not come whole and in time.  The call may have happened."""

    def __init__(self, why: object, *, is_sent: bool = True) -> None:
        message = f"There is no answer, or not all of it: {why}. The call may have been carried out."
        if not is_sent:
            message = f"The server can't be reached: {why}. The call was not carried out."
        super().__init__(0, "no_answer", message)


_BY_TYPE: dict[str, type[RecapError]] = {
    "invalid_request_error": InvalidRequest,
    "authentication_error": Unauthenticated,
    "permission_error": Forbidden,
    "not_found_error": NotFound,
    "conflict_error": Conflict,
    "rate_limit_error": LimitReached,
    "model_error": ModelError,
    "server_error": ServerError,
}


def error_of(status: int, body: Any, retry_after: float | None = None) -> RecapError:
    """Return the error that Recap answered with; a plain RecapError for a body of another server, such as a proxy."""
    try:
        error = body["error"]
        kind, code, message = str(error["type"]), str(error["code"]), str(error["message"])
        more = {"param": error.get("param"), "fields": error.get("fields")}
    except (TypeError, KeyError):
        message = f"The server answered with status {status}, and not as Recap does."
        return RecapError(status, "not_recap", message, retry_after=retry_after)
    return _BY_TYPE.get(kind, RecapError)(status, code, message, **more, retry_after=retry_after)
