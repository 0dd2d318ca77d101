"""Why a job failed, as it is kept and shown."""

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
    """Why a job failed, as it is kept and shown: a sentence of our own, without what anybody said.

    A model server's own words may repeat the conversation, and so may whatever an unexpected exception says: of the
    one they are left out, of the other only its kind and place are kept.  The disk and SQLite speak of neither.
    """
    if isinstance(error, RecapError):
        return error.kept[:REASON_CHARS]
    if isinstance(error, EmbeddingUnavailable):  # said by us as well
        return str(error)[:REASON_CHARS]
    if isinstance(error, sqlite3.Error | IndexBusy):
        return f"{type(error).__name__}: {error}"[:REASON_CHARS]
    if isinstance(error, DBAPIError | OSError):
        return f"{type(error).__name__}: {logs.told(error)}"[:REASON_CHARS]
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}, line {place.lineno}"
    return f"{type(error).__name__} in {where}; the log has more, under the job's id."
