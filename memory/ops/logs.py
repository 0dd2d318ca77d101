"""Logs: one line an event, in logfmt or JSON, on standard error; structlog renders them.

    time=2026-05-12T09:30:00.123456Z level=info logger=memory.turn.turn event=turn request=5f1c owner=9a3e...

A line says which request or job it belongs to and, as a hash, on whose behalf: `add` and `about` set that for all
lines that follow.  A call gives figures of its own with `extra=fields(...)`.  A name goes there as `Pseudonym`.

Invariants:
- No line names anybody. A person and a session appear as a hash with a salt of this installation (test_logs).
- Of an unexpected error a line has its type and where it was raised. Its message, which may quote what a person said,
  appears only at LOG_LEVEL=debug (test_secrets_in_logs).
"""

import contextlib
import hmac
import logging
import os
import secrets
import sys
import traceback
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Self

import structlog

from config import Settings

SALT_FILE, SALT_BYTES = "log-salt", 32
HASH_CHARS = 12  # 48 bits: enough that two of a million people hardly ever share one
# Their info is no event of ours.
QUIET = ("httpx2", "httpcore2", "openai", "alembic", "whoosh", "filelock", "flask_cors")
_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Pseudonym:
    """Name that a line may have as a hash only: of the `kind` `user` or `session`, within a tenant."""

    kind: str
    tenant: str
    name: str

    def __repr__(self) -> str:  # wherever else it may end up
        return f"<{self.kind}>"


begin = structlog.contextvars.clear_contextvars  # the lines that follow are about nothing yet
add = structlog.contextvars.bind_contextvars  # add(owner=...): the lines that follow are about this too
current = structlog.contextvars.get_contextvars  # what the lines that follow are about
about = structlog.contextvars.bound_contextvars  # with about(job=7): lines within the block are about this too


def fields(**values: Any) -> dict[str, Any]:
    """Return figures of one line: `log.info("turn", extra=fields(recalled=3))`."""
    return {"fields": values}


def safe_message(error: BaseException) -> str:
    """Return the text of an error for a log, without words that may quote a person or a model."""
    from sqlalchemy.exc import DBAPIError  # here, so that gunicorn's first process needs neither

    from memory.errors import RecapError
    from models.database_faults import DatabaseLost

    if isinstance(error, RecapError):
        return error.code
    if isinstance(error, DatabaseLost):
        return str(error)
    if isinstance(error, DBAPIError):  # without the statement and its values, and PostgreSQL's second line has some too
        return (str(error.orig).splitlines() or [""])[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


class Pseudonymizer:
    """Makes the hashes by which a log tells people and sessions apart."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    @classmethod
    def of(cls, data_dir: Path) -> Self:
        """Use the installation's salt. Make it if there is none, for this process alone where it can't be kept."""
        path = data_dir / SALT_FILE
        with contextlib.suppress(OSError):
            if path.is_file() and not path.stat().st_size:  # an earlier version left it so on a full disk
                path.unlink()
            if not path.exists():
                with NamedTemporaryFile(dir=data_dir, prefix=f".{SALT_FILE}.") as new:  # of mode 600
                    new.write(secrets.token_bytes(SALT_BYTES))
                    new.flush()
                    with contextlib.suppress(FileExistsError):  # another process was first
                        os.link(new.name, path)
            return cls(path.read_bytes())
        return cls(secrets.token_bytes(SALT_BYTES))

    def hash(self, pseudonym: Pseudonym) -> str:
        name = "\0".join((pseudonym.kind, pseudonym.tenant, pseudonym.name)).encode("utf-8", "surrogatepass")
        return hmac.digest(self._salt, name, "sha256").hex()[:HASH_CHARS]


def formatter(pseudonymizer: Pseudonymizer, *, form: str = "logfmt", messages: bool = False) -> logging.Formatter:
    """Render a record as one line; with `messages` also what unexpected errors say."""
    render: Any = structlog.processors.JSONRenderer(default=str)
    if form == "logfmt":
        order = ("time", "level", "logger")
        render = structlog.processors.LogfmtRenderer(key_order=order, drop_missing=True, bool_as_flag=False)

    def redact(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> dict[str, Any]:
        """Return the line with its figures and its error, names as hashes, without empty fields."""
        record = line.pop("_record")
        _, error, _ = line.pop("exc_info", None) or (None, None, None)
        values = {**line, **getattr(record, "fields", {}), **(_failure(error, messages=messages) if error else {})}
        return {
            key: _shown(pseudonymizer.hash(value) if isinstance(value, Pseudonym) else value)
            for key, value in values.items()
            if value is not None and not key.startswith("_")
        }

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.processors.TimeStamper("iso", key="time"),
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.contextvars.merge_contextvars,
        ],
        processors=[redact, render],
    )


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str) and not value.isprintable():  # structlog's logfmt leaves line breaks in a value
        return "".join(char if char.isprintable() else repr(char)[1:-1] for char in value)
    return value


def _failure(error: BaseException, *, messages: bool) -> dict[str, Any]:
    """Return an error by its type and where it was raised, from the outside in: `api/chat.py:61 chat > memory/...`."""
    kind = type(error).__name__
    text = str(error) if messages else safe_message(error)
    frames = traceback.extract_tb(error.__traceback__)
    at = (f"{frame.filename.removeprefix(f'{_ROOT}/')}:{frame.lineno} {frame.name}" for frame in frames)
    return {"error": kind, "said": text if text != kind else None, "at": " > ".join(at)}


class _ToStandardError(logging.StreamHandler[Any]):
    """Write to standard error as it is now: a test or a server may have replaced it since.

    Servers log addresses, which name people: lines of the development server go, gunicorn's lose their address.
    """

    def __init__(self, settings: Settings) -> None:
        logging.Handler.__init__(self)
        names = Pseudonymizer.of(settings.data_dir)
        self.setFormatter(formatter(names, form=settings.log_format, messages=settings.log_level == "debug"))

    @property
    def stream(self) -> Any:
        return sys.stderr

    def filter(self, record: logging.LogRecord) -> bool:
        message = str(record.msg)
        if message.startswith("Error handling request"):
            record.msg = "a request broke off"
            record.args = ()
        return not (record.name == "werkzeug" and " - - [" in message)


def set_up(settings: Settings, *, is_embedded: bool = False) -> None:
    """Write everything that this process logs as lines of `settings`.

    is_embedded: in another program, whose own set-up of logging counts if there is one before.
    """
    root = logging.getLogger()
    if is_embedded and root.handlers and not any(isinstance(handler, _ToStandardError) for handler in root.handlers):
        return
    root.setLevel(settings.log_level.upper())
    for old in [handler for handler in root.handlers if isinstance(handler, _ToStandardError)]:
        root.removeHandler(old)
    root.addHandler(_ToStandardError(settings))
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def for_gunicorn(settings: Settings) -> dict[str, Any]:
    """Return gunicorn's own logging in the same form, as `logconfig_dict` takes it."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "root": {"level": settings.log_level.upper(), "handlers": []},
        "loggers": {"gunicorn.error": {"level": "INFO", "handlers": ["recap"], "propagate": False}},
        "handlers": {"recap": {"()": lambda: _ToStandardError(settings)}},
    }
