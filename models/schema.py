"""Schema that this code needs, and the one that a database has: revisions of the migrations."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

MIGRATIONS = Path(__file__).parent.parent / "migrations"


@cache
def revisions() -> tuple[str, ...]:
    """Return every revision with a migration here, the newest first.  This code needs the newest."""
    return tuple(script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions())


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; None when no migration was run on it."""
    return " and ".join(sorted(MigrationContext.configure(connection).get_current_heads())) or None


def why_too_old(revision: str | None) -> str | None:
    """Say why a database can't be upgraded from `revision`, and what to do; return None if it can."""
    if revision is None or revision >= revisions()[-1]:  # revisions begin with their number, of four digits
        return None
    return (
        f"its schema is {revision}, too old for this version of Recap: run `flask --app wsgi db upgrade` with the last "
        'version that can upgrade it, then with this one; docs/operations.md, "Upgrading", says how'
    )
