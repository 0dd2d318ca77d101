"""`recap logs`: finding in the logs what they name by a hash alone."""

import click

from api.current_request import current_engine
from cli import Commands
from memory.ops.logs import Pseudonym, Pseudonymizer

logs = Commands("logs", help="The logs, which name people and sessions by a hash alone.")


@logs.command("hash")
@click.argument("name")
@click.option("--session", "kind", flag_value="session", help="NAME is a session's id.")
@click.option("--space", "kind", flag_value="space", help="NAME is a space's name.")
@click.option("--user", "kind", flag_value="user", default="user", help="NAME is a user_id; the default.")
@click.option("--tenant", default="default", show_default=True, help="Whose it is.")
def show(name: str, kind: str, tenant: str) -> None:
    """Say by which hash this installation's logs name a person, a space or a session."""
    click.echo(Pseudonymizer.of(current_engine().settings.data_dir).hash(Pseudonym(kind, tenant, name)))
