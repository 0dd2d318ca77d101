"""Why a job failed, in words that repeat nothing of a conversation."""

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from memory.errors import RecapError
from memory.ops import logs
from search_index import EmbeddingUnavailable, IndexBusy

REASON_CHARS = 2000


def reason(error: Exception) -> str:
    """The sentence that is stored and shown for an error.

    The messages of our own errors, SQLite and the disk repeat nothing that anybody said.  A model server's message and
    that of an unexpected exception may, so they are left out.
    """
    if isinstance(error, RecapError):
        return error.kept[:REASON_CHARS]
    if isinstance(error, EmbeddingUnavailable):
        return str(error)[:REASON_CHARS]
    if isinstance(error, sqlite3.Error | IndexBusy):
        return f"{type(error).__name__}: {error}"[:REASON_CHARS]
    if isinstance(error, DBAPIError | OSError):
        return f"{type(error).__name__}: {logs.told(error)}"[:REASON_CHARS]
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"{type(error).__name__} in {where}; the log has more, under the job's id."
