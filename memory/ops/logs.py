"""Logs: one line an event, in logfmt or JSON, on standard error.

    time=2026-05-12T09:30:00.123Z level=info logger=memory.turn.pipeline request=5f1c owner=9a3e... event="turn" ...

A line says which request or job it belongs to and, as a hash, on whose behalf: `about` sets that for all lines of a
piece of work.  A call gives figures of its own with `extra=fields(...)`; what names somebody goes there as `Private`.

Guarantee: what goes through this formatter names nobody.  A person and a session are a hash made with a salt of this
installation, so that it can't be guessed from a list of names.  Of an unexpected error the log has its type and where
it was raised; its message, which may quote what a person said, only at LOG_LEVEL=debug.

The standard library is enough for this, and what the libraries log comes in the same form.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import os
import secrets
import sys
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from config import Settings
from memory.errors import RecapError

SALT_FILE = "log-salt"
HASH_CHARS = 12  # 48 bits: enough that two of a million people hardly ever share one
QUIET = ("httpx2", "httpcore2", "alembic", "whoosh", "filelock")  # what they tell at info is no event of ours
_ROOT = Path(__file__).resolve().parent.parent.parent
_NEEDS_QUOTES = frozenset(' "=\\')
_BARE = frozenset((int, float))  # whose text never needs them


@dataclass(frozen=True)
class Private:
    """A name that a line may have as a hash only: of the `kind` `user` or `session`, within a tenant."""

    kind: str
    tenant: str
    name: str

    def __repr__(self) -> str:  # wherever else it may end up
        return f"<{self.kind}>"


_context: ContextVar[dict[str, Any] | None] = ContextVar("recap_log", default=None)


def begin(**context: Any) -> None:
    """All lines of this thread are about this, until the next `begin`."""
    _context.set(context)


def add(**context: Any) -> None:
    """They are about this too."""
    _context.set({**(_context.get() or {}), **context})


@contextlib.contextmanager
def about(**context: Any) -> Iterator[None]:
    """Lines within the block are about this and nothing else."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def fields(**values: Any) -> dict[str, Any]:
    """Figures of one line: `log.info("turn", extra=fields(recalled=3))`."""
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
            if not path.exists():
                _make(path)
            salt = path.read_bytes()
            if len(salt) >= 16:
                return cls(salt)
        return cls(secrets.token_bytes(32))

    def hash(self, private: Private) -> str:
        said = "\0".join((private.kind, private.tenant, private.name)).encode("utf-8", "surrogatepass")
        return hmac.digest(self._salt, said, "sha256").hex()[:HASH_CHARS]


class Formatter(logging.Formatter):
    """A record as one line: time, level, logger, what it is about, the event, its figures, its error."""

    def __init__(self, names: Names, *, form: str = "logfmt", messages: bool = False) -> None:
        super().__init__()
        self._names = names
        self._line = _json if form == "json" else _logfmt
        self._messages = messages

    def format(self, record: logging.LogRecord) -> str:
        parts: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **(_context.get() or {}),
            "event": _event(record),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            parts["error"] = type(error).__name__
            said = str(error) if self._messages else told(error)
            if said != type(error).__name__:
                parts["said"] = said
            parts["at"] = _raised_at(error)
        for key, value in [*parts.items()]:  # most stay as they are
            if value is None:
                del parts[key]
            elif isinstance(value, Private):
                parts[key] = self._names.hash(value)
            elif isinstance(value, float):
                parts[key] = round(value, 6)
        return self._line(parts)


class _ToStandardError(logging.StreamHandler[Any]):
    """To standard error as it is now: whoever runs this may have put another in its place since."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


class _NoRequestLines(logging.Filter):
    """Without those of a server for development: they show addresses, which name people."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.name == "werkzeug" and " - - [" in str(record.msg))


def set_up(settings: Settings) -> None:
    """Let everything that is logged in this process come as lines of `settings`."""
    root = logging.getLogger()
    root.setLevel(settings.log_level.upper())
    for old in [handler for handler in root.handlers if isinstance(handler.formatter, Formatter)]:
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
    handler.setFormatter(Formatter(names, form=settings.log_format, messages=settings.log_level == "debug"))
    handler.addFilter(_NoRequestLines())
    return handler


def _event(record: logging.LogRecord) -> str:
    if record.name == "gunicorn.error" and str(record.msg).startswith("Error handling request"):
        return "Error handling request"  # its address names people
    return record.getMessage()


def _raised_at(error: BaseException) -> str:
    """Where it was raised, from the outside in: `api/chat.py:61 chat > memory/...`."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{_short(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)


def _short(filename: str) -> str:
    path = Path(filename)
    if "site-packages" in path.parts:
        return "/".join(path.parts[path.parts.index("site-packages") + 1 :])
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name


def _logfmt(parts: dict[str, Any]) -> str:
    return " ".join([f"{key}={value if type(value) in _BARE else _quoted(value)}" for key, value in parts.items()])


def _quoted(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text and text.isprintable() and not _NEEDS_QUOTES.intersection(text):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _json(parts: dict[str, Any]) -> str:
    return json.dumps(parts, default=str)


def _make(path: Path) -> None:
    """A salt of our own, whichever of several processes is first."""
    mine = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(32))
    try:
        with contextlib.suppress(FileExistsError):
            os.link(mine, path)
    finally:
        mine.unlink()
