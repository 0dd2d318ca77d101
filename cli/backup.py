"""`flask backup` and `flask restore`: all that is stored, as one file."""

from __future__ import annotations

from pathlib import Path

import click
from flask.cli import with_appcontext

from api.resource import current_engine
from app import on_database
from cli.commands import Command
from memory.engine import utc_now
from memory.ops.backup import back_up
from memory.ops.backup import restore as put_back


@click.command("backup", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@with_appcontext
def backup(file: Path, force: bool) -> None:
    """Write all that is stored to FILE, beside a running server.

    Keys are in it as digests, words as they are: the file is for your eyes only, and so are its copies.
    """
    made = back_up(current_engine().database.engine, file, force=force)
    click.echo(f"{file}: {made}.")


@click.command("restore", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@with_appcontext
def restore(file: Path) -> None:
    """Put the backup FILE in the place of the database.  Stop the server first.

    The database that was there is kept beside it, under the date.
    """
    engine = current_engine()
    restored, former = put_back(engine.database.engine, engine.settings.data_dir, file, upgrade=_upgrade, now=utc_now())
    click.echo(f"Restored: {restored}.")
    if former is not None:
        click.echo(f"The database that was there is {former}. Delete it when you don't need it any more.")
    click.echo("What was erased, and which keys were revoked, since that backup is back too: do it again.", err=True)


def _upgrade(file: Path) -> None:
    """Bring the schema of a database file up to date."""
    with on_database(current_engine().settings, f"sqlite:///{file.absolute()}"):
        pass
