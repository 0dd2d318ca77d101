"""Schema that this code needs, and the one that a database has: revisions of the migrations."""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

MIGRATIONS = Path(__file__).parent.parent / "migrations"

UPGRADE = "`recap db upgrade` (`recap serve` does)"
NEWER = "run the version of Recap that made it, or restore a backup of this one"
_VERSIONS = table("alembic_version", column("version_num"))


@cache
def revisions() -> tuple[str, ...]:
    """Return every revision with a migration here, the newest first. This code needs the newest.

    The names of the files say them, so that servers need no Alembic.
    """
    return tuple(sorted((path.name[:4] for path in MIGRATIONS.glob("versions/[0-9]*.py")), reverse=True))


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; None when no migration was run on it."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return " and ".join(sorted(connection.scalars(select(_VERSIONS.c.version_num)))) or None


def why_too_old(revision: str | None) -> str | None:
    """Say why a database can't be upgraded from `revision`, and what to do; return None if it can."""
    if revision is None or revision >= revisions()[-1]:  # revisions begin with their number, of four digits
        return None
    return (
        f"its schema is {revision}, too old for this version of Recap: run `recap db upgrade` with the last "
        'version that can upgrade it, then with this one; docs/operations.md, "Upgrading", says how'
    )


def schema_differs(revision: str | None) -> str | None:
    """Return why a database of this revision can't be used, and what to do; None for the right one."""
    needed = revisions()[0]
    if revision == needed:
        return None
    if revision is None or revision in revisions():
        return f"its schema is {revision or 'missing'}, this version of Recap needs {needed}: run {UPGRADE}"
    return why_too_old(revision) or f"its schema is {revision}, which this version of Recap does not know: {NEWER}"
