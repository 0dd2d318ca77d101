"""Errors that Recap raises on purpose.

Messages are for people: what happened, what it means for their data, what to do. api/errors turns them into responses.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from models.errors import DatabaseFault, fault_of
from models.schema import revisions, why_too_old


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


def user_not_found(user_id: str | None) -> NotFound:
    """Return the error for a user without rows; the same for one whom the caller may not name."""
    return NotFound("user_not_found", f"Nothing is stored of a user {user_id!r}.", param="user_id")


def space_not_found(space: str) -> NotFound:
    """Return the error for a space without rows; the same for one that the key does not open."""
    return NotFound("space_not_found", f"Nothing is stored of a space {space!r}.", param="space")


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
    """Failure of the model server: 502 a bad answer, 503 busy, 504 too slow, 422 it refuses the prompt.

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
        return by_proxy or self.code in ("model_unreachable", "model_busy", "model_quota_exhausted")

    def add(self, sentence: str) -> None:
        """Append a sentence, also for a client that gets the server's own text."""
        self.message += sentence
        self.kept += sentence
        if self.upstream is not None:
            self.upstream = replace(self.upstream, message=self.upstream.message + sentence)

    def again(self, retry_after: float) -> ModelError:
        """Return the same error for a later request."""
        error = ModelError(self.code, str(self), status=self.status, quoted=self.quoted)
        error.upstream, error.retry_after = self.upstream, max(1.0, retry_after)
        return error


class DeliveryFailed(RecapError):
    """Receiver of a webhook that does not take an event now."""

    def __init__(self, webhook_id: int, reason: str) -> None:
        super().__init__("delivery_failed", f"Webhook {webhook_id}: {reason}.", status=502)


class SummaryRefused(ModelError):
    """Answer of the mini model that can't replace the last good summary."""


NOT_STORED = "Nothing of this request was stored."
DATABASE_RETRY_SECONDS = 5.0  # in which a database server restarts
RESTORE = "Stop Recap and bring back a backup with `recap restore FILE`; docs/operations.md says how."
DAMAGED = f"damaged. {RESTORE}"
_PUT_BACK = "Put the file back, or stop Recap and bring back a backup with `recap restore FILE`"
_RESTART = "If this lasts, restart Recap with SIGTERM: it then writes what it holds into the database"
_UPGRADE = "`recap db upgrade` (`recap serve` does)"
_NEWER = "run the version of Recap that made it, or restore a backup of this one"


# For each fault: the error's code, its message around the consequence and what to do at the end, and its short form for
# /health/ready.
_MESSAGES = {
    DatabaseFault.DAMAGED: (
        "database_damaged",
        "The database file is damaged: a part of it is not what was written. {0} What lies in other parts can still be "
        f"read. {RESTORE}",
        DAMAGED,
    ),
    DatabaseFault.FULL: (
        "disk_full",
        "The disk is full. {0} Free some space, then {1}.",
        "the disk is full: free some space",
    ),
    DatabaseFault.READ_ONLY: (
        "database_read_only",
        "The data directory can't be written. {0} What is stored can be read. Make it writable, then {1}.",
        "can't be written: make the data directory writable",
    ),
    DatabaseFault.MISSING: (
        "database_missing",
        f"The database file is missing, empty, or another one. {{0}} {_PUT_BACK}, then {{1}}. For a new database run "
        f"{_UPGRADE}.",
        f"the file is missing, empty, or another one. {_PUT_BACK}. For a new database run {_UPGRADE}",
    ),
    DatabaseFault.LOG_MISSING: (
        "database_log_missing",
        "A file beside the database, its log (-wal) or the log's index (-shm), was removed or replaced. {0} Try again. "
        f"{_RESTART}.",
        f"its -wal or -shm file was removed or replaced. {_RESTART}",
    ),
    DatabaseFault.SCHEMA: (
        "database_schema",
        f"The database does not have the tables that this version of Recap needs. {{0}} Run {_UPGRADE}, then try "
        f"again; if that finds an unknown revision, {_NEWER}.",
        f"tables are missing or differ: run {_UPGRADE}",
    ),
    DatabaseFault.UNAVAILABLE: (
        "database_unavailable",
        "The database can't be used right now. {0} Wait, then {1}. If this lasts, look at the server's log.",
        "can't be read; see the log",
    ),
}


def database_failed(error: BaseException, consequence: str = NOT_STORED) -> RecapError | None:
    """Return the error to report (503); None for an error of Recap's own. consequence: what it means for the data."""
    fault = fault_of(error)
    if fault is None:
        return None
    if fault in (DatabaseFault.MISSING, DatabaseFault.LOG_MISSING):
        consequence = "What this request wrote may be lost."
    code, message, _ = _MESSAGES[fault]
    retry_after = DATABASE_RETRY_SECONDS if fault is DatabaseFault.UNAVAILABLE else None
    text = message.format(consequence, "send it again; no restart is needed")
    return RecapError(code, text, status=503, retry_after=retry_after)


def command_failed(error: SQLAlchemyError | sqlite3.Error, url: URL) -> str | None:
    """Return what to tell who ran a command, which changed nothing; None for an error of Recap's own."""
    fault = fault_of(error)
    if fault is None:
        return None
    consequence = f"The database is {url.render_as_string()} by the settings here. Nothing was changed."
    if fault is DatabaseFault.UNAVAILABLE:
        reason = str(error.orig if isinstance(error, DBAPIError) else error).strip().partition("\n")[0]
        consequence += f' It says: "{reason}".'
    return _MESSAGES[fault][1].format(consequence, "run this again")


def in_short(error: BaseException) -> str:
    """Return the fault in a few words, for health checks."""
    return _MESSAGES[fault_of(error) or DatabaseFault.UNAVAILABLE][2]


def schema_differs(revision: str | None) -> str | None:
    """Return why a database of this revision can't be used, and what to do; None for the right one."""
    needed = revisions()[0]
    if revision == needed:
        return None
    if revision is None or revision in revisions():
        return f"its schema is {revision or 'missing'}, this version of Recap needs {needed}: run {_UPGRADE}"
    return why_too_old(revision) or f"its schema is {revision}, which this version of Recap does not know: {_NEWER}"
