"""`recap import`: what a person takes along from Recap or from another program."""

from dataclasses import replace
from pathlib import Path

import click

from api.current_request import current_engine
from cli import OWNER, Command
from memory.knowledge import backlog
from memory.quoting import one_line
from memory.transfer.import_reader import read_import
from memory.transfer.imports import store_import
from models.owners import Caller


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--user", "user_id", type=OWNER["user_id"], help="The person whose memory it becomes.")
@click.option("--space", type=OWNER["space"], help="The space whose memory it becomes.")
@click.option("--tenant", type=OWNER["tenant"], default="default", show_default=True, help="Whose person it is.")
@click.option("--summarise", is_flag=True, help="Have the mini model read it too, once you have seen what that takes.")
def import_files(files: tuple[Path, ...], user_id: str | None, space: str | None, tenant: str, summarise: bool) -> None:
    """Import FILES, beside a running server: a .zip, JSON, JSON Lines or Markdown.

    Each file is checked before anything of it is stored. What is stored already is left as it is, so the command can be
    repeated after it was interrupted. Without --summarise, no model is called.
    """
    if (user_id is None) == (space is None):
        raise click.UsageError("Say whose memory it becomes, with --user or --space.")
    engine = current_engine()
    caller = Caller(tenant, user_id, space)
    for path in files:
        with path.open("rb") as file:
            click.echo(f"{path.name}: reading", err=True)
            document = read_import(file, engine.now())
            with click.progressbar(document.sessions, document.length, label=path.name) as sessions:
                done = store_import(engine, caller, replace(document, sessions=sessions))
        counts = ", ".join(f"{count} {kind}" for kind, count in done.created.items() if count)
        click.echo(f"{path.name} ({document.format}): new are {counts or 'none'}.")
        if document.skipped:
            named = one_line("; ".join(document.skipped_items))  # titles of a stranger's file
            click.echo(f"{document.skipped} entries could not be read and were left out: {named}.", err=True)
        if document.unread_times:
            named = one_line("; ".join(document.unread_times))
            click.echo(f"Times that could not be read: {named}. Write them as 2026-03-01T10:00:00Z.", err=True)
    left = backlog.get(engine, caller)
    if left.sessions:
        click.echo(f"{left.sessions} sessions have no summary. It takes the mini model about {left.tokens:,} tokens.")
        if summarise and click.confirm("Have them summarised?"):
            backlog.start(engine, caller)
            click.echo("A running server, or `recap jobs work`, summarises them now.")
