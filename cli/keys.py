"""`recap keys`: who may call, whose data they see, and what for.  It works beside a running server."""

from urllib.parse import urlsplit

import click
from flask import current_app

from api.current_request import current_engine
from app import make_schema
from cli import NUMBER, Commands
from memory.access.keys import CACHE_SECONDS
from models.keys import SCOPES, KeyRow
from models.keys import SPACE_RIGHTS as RIGHTS

keys = Commands("keys", help="API keys: who may call, whose data they see, and what for.")


@keys.command("create")
@click.option("--tenant", default="default", show_default=True, help="Whose data it opens.")
@click.option("--user", "user_id", help="The one person it speaks for. Without it, any of the tenant's.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(list(SCOPES)),
    help=f"What it is for: {'; '.join(f'{name}: {about}' for name, about in SCOPES.items())}. Repeat it for several; "
    "without it, all.",
)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="NAME:RIGHT",
    help=f"A space that it opens, and what for: {'; '.join(f'{name}: {text}' for name, text in RIGHTS.items())}. "
    "Repeat it for several. Without --user, the key is for these spaces alone; with neither, for everybody and all.",
)
@click.option("--label", default="", help="What you call it.")
def create(tenant: str, user_id: str | None, scopes: tuple[str, ...], spaces: tuple[str, ...], label: str) -> None:
    """Make a key, and show it once.  A new database gets its tables."""
    if make_schema(current_app):
        url = current_engine().database.engine.url.render_as_string()
        click.echo(f"A new database was made: {url}. Only a server on this database knows the key.", err=True)
    rights = {name: right for name, _, right in (space.rpartition(":") for space in spaces)}
    key, info = current_engine().keys.create(tenant, user_id, scopes or tuple(SCOPES), label, rights)
    click.echo(key)
    click.echo(
        f"This is key {info.id}, {_for_whom(info)}, with {', '.join(info.scopes.split())}. Keep it: Recap stores a "
        f"digest and can't show it again. Within {CACHE_SECONDS:g} seconds every server accepts it, and refuses calls "
        "without a key.",
        err=True,  # so that `key=$(recap keys create)` gets the key alone
    )


@keys.command("list")
def show() -> None:
    """List the keys that were made, revoked ones too, each with the programs that it connected."""
    made, connections = current_engine().keys.list_keys(), current_engine().oauth.list_connections()
    for info in made:
        click.echo(_line(info))
        for connection in connections:
            if connection.key_id == info.id:
                place = urlsplit(connection.redirect_uri)
                since = f"connected {connection.created_at:%Y-%m-%d}"
                program = f"{connection.name}  {place.hostname or place.scheme}  {connection.scopes}"
                since += f", renewed {connection.renewed_at:%Y-%m-%d %H:%M} UTC"
                click.echo(f"    connection {connection.id}  {program}  {since}")
    click.echo(
        f"{len(made)} made. Those in RECAP_API_KEYS: {len(current_engine().settings.api_keys)}, not listed.", err=True
    )


@keys.command("revoke")
@click.argument("key_id", metavar="ID", type=NUMBER)
def revoke(key_id: int) -> None:
    """Refuse a key from now on, and the programs that it connected.  Callers need a key all the same."""
    info = current_engine().keys.revoke(key_id)
    click.echo(
        f"Key {info.id}, {_for_whom(info)}, is revoked since {info.revoked_at:%Y-%m-%d %H:%M} UTC. Every server "
        f"refuses it within {CACHE_SECONDS:g} seconds."
    )


@keys.command("disconnect")
@click.argument("connection_id", metavar="ID", type=NUMBER)
def disconnect(connection_id: int) -> None:
    """End the connection of one program, as `recap keys list` shows it.  Its key stays."""
    current_engine().oauth.disconnect(connection_id)
    click.echo(f"Connection {connection_id} has ended. The program has to ask its person again.")


def _for_whom(row: KeyRow) -> str:
    spaces = ", ".join(f"{name} ({right})" for name, right in (row.spaces or {}).items())
    if row.user_id is None:
        return f"of the space {spaces} in the tenant {row.tenant}" if spaces else f"of the tenant {row.tenant}"
    return f"of {row.user_id or 'an erased person'}{f' with {spaces}' if spaces else ''} in the tenant {row.tenant}"


def _line(row: KeyRow) -> str:
    revoked = f"  revoked {row.revoked_at:%Y-%m-%d %H:%M} UTC" if row.revoked_at else ""
    made = f"made {row.created_at:%Y-%m-%d %H:%M} UTC{revoked}"
    return f"{row.id}  {row.hint}...  {_for_whom(row)}  {', '.join(row.scopes.split())}  {made}  {row.label}".rstrip()
