"""Logs: one line an event, in logfmt or JSON, on standard error; structlog renders them.

    time=2026-05-12T09:30:00.123456Z level=info logger=memory.turn.pipeline event=turn request=5f1c owner=9a3e...

A line says which request or job it belongs to and, as a hash, on whose behalf: `begin`, `add` and `about` set that for
all lines that follow.  A call gives figures of its own with `extra=fields(...)`.  A name goes there as `Private`.

Guarantee: no line names anybody.  A person and a session appear as a hash with a salt of this installation, which
nobody can guess from a list of names.  Of an unexpected error the log has its type and where it was raised; its
message, which may quote what a person said, only at LOG_LEVEL=debug.
"""

from __future__ import annotations

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
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError

from config import Settings
from memory.errors import RecapError

SALT_FILE, SALT_BYTES = "log-salt", 32
HASH_CHARS = 12  # 48 bits: enough that two of a million people hardly ever share one
# Their info is no event of ours.
QUIET = ("httpx2", "httpcore2", "openai", "alembic", "whoosh", "filelock", "flask_cors")
_ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Private:
    """A name that a line may have as a hash only: of the `kind` `user` or `session`, within a tenant."""

    kind: str
    tenant: str
    name: str

    def __repr__(self) -> str:  # wherever else it may end up
        return f"<{self.kind}>"


begin = structlog.contextvars.clear_contextvars  # the lines that follow are about nothing yet
add = structlog.contextvars.bind_contextvars  # add(owner=...): the lines that follow are about this too
about = structlog.contextvars.bound_contextvars  # with about(job=7): lines within the block are about this too


def fields(**values: Any) -> dict[str, Any]:
    """Figures of one line: `log.info("turn", extra=fields(recalled=3))`.  Their names may be any."""
    return {"fields": values}


def told(error: BaseException) -> str:
    """What a log may say of an error: nothing that may quote what a person said, or what a model answered."""
    if isinstance(error, RecapError):
        return error.code
    if isinstance(error, DBAPIError):  # without the statement and its values, and PostgreSQL's second line has some too
        return (str(error.orig).splitlines() or [""])[0]
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return type(error).__name__


class Names:
    """Makes the hashes by which a log tells people and sessions apart."""

    def __init__(self, salt: bytes) -> None:
        self._salt = salt

    @classmethod
    def of(cls, data_dir: Path) -> Names:
        """With the installation's salt, which is made if there is none; a passing one where it can't be kept."""
        path = data_dir / SALT_FILE
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError), open(path, "xb", opener=_for_owner_alone) as file:
                file.write(secrets.token_bytes(SALT_BYTES))
            salt = path.read_bytes()
            if len(salt) == SALT_BYTES:  # else another process is writing it, or the disk is full
                return cls(salt)
        return cls(secrets.token_bytes(SALT_BYTES))

    def hash(self, private: Private) -> str:
        said = "\0".join((private.kind, private.tenant, private.name)).encode("utf-8", "surrogatepass")
        return hmac.digest(self._salt, said, "sha256").hex()[:HASH_CHARS]


def formatter(names: Names, *, form: str = "logfmt", messages: bool = False) -> logging.Formatter:
    """Renders a record as one line; with `messages` also what unexpected errors say."""
    render: Any = structlog.processors.JSONRenderer(default=str)
    if form == "logfmt":
        render = structlog.processors.LogfmtRenderer(
            key_order=("time", "level", "logger"), drop_missing=True, bool_as_flag=False
        )
        render = _printable(render)

    def discreet(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> dict[str, Any]:
        """The line with its figures and its error, names as hashes, without what is not known."""
        record = line.pop("_record")
        _, error, _ = line.pop("exc_info", None) or (None, None, None)
        values = {**line, **getattr(record, "fields", {}), **(_failure(error, messages) if error else {})}
        return {
            key: names.hash(value) if isinstance(value, Private) else round(value, 6) if type(value) is float else value
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
        processors=[discreet, render],
    )


def _printable(render: Any) -> Any:
    """structlog's logfmt leaves control characters and other line breaks in a value; they are escaped before."""

    def rendered(logger: Any, method: str, line: dict[str, Any]) -> str:
        for key, value in line.items():
            if isinstance(value, str) and not value.isprintable():
                line[key] = "".join(one if one.isprintable() else repr(one)[1:-1] for one in value)
        return str(render(logger, method, line))

    return rendered


def _failure(error: BaseException, messages: bool) -> dict[str, Any]:
    kind = type(error).__name__
    said = str(error) if messages else told(error)
    return {"error": kind, "said": said if said != kind else None, "at": _raised_at(error)}


class _Discretion(logging.Filter):
    """Servers log addresses, which name people: lines of the development server go, gunicorn's lose their address."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = str(record.msg)
        if message.startswith("Error handling request"):
            record.msg, record.args = "a request broke off", ()
        elif message.startswith("Invalid request from"):
            record.msg, record.args = "a request that can't be read was refused", ()
        return not (record.name == "werkzeug" and " - - [" in message)


class _ToStandardError(logging.StreamHandler[Any]):
    """To standard error as it is now: whoever runs this may have put another in its place since."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def set_up(settings: Settings) -> None:
    """Let everything that is logged in this process come as lines of `settings`."""
    root = logging.getLogger()
    root.setLevel(settings.log_level.upper())
    for old in [handler for handler in root.handlers if isinstance(handler, _ToStandardError)]:
        root.removeHandler(old)
    root.addHandler(_handler(settings))
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def for_gunicorn(settings: Settings) -> dict[str, Any]:
    """gunicorn's own logging, in the same form; what `logconfig_dict` takes."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "root": {"level": settings.log_level.upper(), "handlers": []},
        "loggers": {"gunicorn.error": {"level": "INFO", "handlers": ["recap"], "propagate": False}},
        "handlers": {"recap": {"()": lambda: _handler(settings)}},
    }


def _handler(settings: Settings) -> logging.Handler:
    handler = _ToStandardError()
    names = Names.of(settings.data_dir)
    handler.setFormatter(formatter(names, form=settings.log_format, messages=settings.log_level == "debug"))
    handler.addFilter(_Discretion())
    return handler


def _raised_at(error: BaseException) -> str:
    """Where it was raised, from the outside in: `api/chat.py:61 chat > memory/...`."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name


def _for_owner_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
