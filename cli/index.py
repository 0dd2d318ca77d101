"""`recap index`: the search index, derived data that is made from the messages."""

import os
import sys

import click

from api.current_request import current_engine
from cli import Commands
from memory.recall import indexing

index = Commands("index", help="The search index: derived data, made from the messages.")


@index.command("verify")
def verify() -> None:
    """Compare every owner's index with the messages.  Exits with 1 when they disagree."""
    wrong = total = 0
    for check in indexing.verify(current_engine()):
        total += 1
        if not check.consistent:
            wrong += 1
            click.echo(f"{check.owner}: {check.missing} missing, {check.surplus} surplus of {check.messages} messages")
        elif check.unindexed:
            click.echo(
                f"{check.owner}: {check.unindexed} of {check.messages} messages wait to be indexed; all are searched"
            )
    if wrong:
        click.echo(f"{wrong} of {total} indexes disagree with the messages. `recap index rebuild` makes them again.")
        sys.exit(1)
    click.echo(f"{total} indexes agree with the messages.")


@index.command("rebuild")
def rebuild() -> None:
    """Make every index again from the messages.  Searches go on meanwhile."""
    settings = current_engine().settings
    count = 0
    place = (settings.index_dir if settings.index_dir.exists() else settings.data_dir).stat()
    if os.geteuid() == 0:  # the server's account has to write what root makes
        os.setegid(place.st_gid)
        os.seteuid(place.st_uid)
    for owner, messages in indexing.rebuild(current_engine()):
        count += messages
        click.echo(f"{owner}: {messages} messages")
    click.echo(f"{count} messages indexed.")
