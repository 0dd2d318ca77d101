"""The schema that this code needs, and the one that a database has: revisions of the migrations."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

MIGRATIONS = Path(__file__).parent.parent / "migrations"


@cache
def revisions() -> tuple[str, ...]:
    """Every revision that this code knows.  It needs the first, which is the newest."""
    return tuple(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())


def revision_of(connection: Connection) -> str | None:
    """The revision of a database; None when no migration was run on it."""
    return " and ".join(sorted(MigrationContext.configure(connection).get_current_heads())) or None
