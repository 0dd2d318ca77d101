"""`recap backup`, `recap restore` and `recap move-to`: copy everything that is stored."""

from pathlib import Path
from urllib.parse import quote

import click
from sqlalchemy import make_url

from api.current_request import current_engine
from app import on_database
from cli import Command
from config import Settings, parsers
from memory.engine import utc_now
from memory.ops.backup import DataLock, back_up
from memory.ops.backup import restore as put_back
from memory.ops.move import count, move
from models.schema import revision_of, schema_differs


@click.command("backup", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def backup(file: Path, force: bool) -> None:
    """Write all that is stored to FILE, beside a running server.

    Keys are in it as digests, words as they are: the file is for your eyes only, and so are its copies.
    """
    made = back_up(current_engine().database.engine, file, force=force)
    click.echo(f"{file}: {made}.")


@click.command("restore", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Put the backup FILE in the place of the database.  Stop the server first.

    The database that was there is kept beside it, under the date.
    """
    engine = current_engine()
    restored, former = put_back(engine.database.engine, engine.settings.data_dir, file, upgrade=_upgrade, now=utc_now())
    click.echo(f"Restored: {restored}.")
    if former is not None:
        click.echo(f"The database that was there is {former}. Delete it when you don't need it any more.")
    click.echo("What was erased since that backup is back, and revoked keys work: erase and revoke again.", err=True)


def _upgrade(file: Path) -> None:
    """Bring the schema of a database file up to date."""
    with on_database(current_engine().settings, f"sqlite:///{quote(str(file.absolute()))}"):
        pass


@click.command("move-to", cls=Command)
@click.argument("database_url")
def move_to(database_url: str) -> None:
    """Copy all that is stored to DATABASE_URL, and compare every row.  Stop all servers first.

    The target is empty, or has what an earlier call that broke off copied.  The search index is made again where it is
    needed.
    """
    source = current_engine()
    try:
        target_settings = source.settings.model_copy(update={"database_url": parsers.database_url(database_url)})
        if target_settings.is_in_memory or _place(target_settings) == _place(source.settings):
            raise ValueError("it takes another database, in a file or on a server")
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="DATABASE_URL") from None
    with source.database.read() as tx:
        if differs := schema_differs(revision_of(tx.connection())):
            raise click.ClickException(f"The database can't be moved: {differs}. Nothing was changed.")
    with (
        DataLock(source.settings.data_dir).alone(),
        on_database(source.settings, target_settings.database_url) as target,
    ):
        rows = count(source.database)
        with click.progressbar(length=2 * rows, label=f"Copying and comparing {rows} rows") as bar:
            move(source.database, target.database, lambda _table, done: bar.update(done))
    click.echo(f"Moved {rows} rows. Set DATABASE_URL to the new database, start Recap, and delete the former database")
    click.echo("when you don't need it any more: it still has everything.")


def _place(settings: Settings) -> tuple[object, ...]:
    """Return where a database is."""
    url = make_url(settings.sqlalchemy_url)
    return (
        (url.host, url.port or 5432, url.database) if settings.on_postgresql else (Path(url.database or "").resolve(),)
    )
