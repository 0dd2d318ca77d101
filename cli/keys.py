"""`flask keys`: who may call, whose data they see, and what for.  It works beside a running server."""

from __future__ import annotations

import click

from cli.engine import Commands, engine
from memory.access.keys import KNOWN_SECONDS, SCOPES, KeyInfo

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
@click.option("--label", default="", help="What you call it.")
def create(tenant: str, user_id: str | None, scopes: tuple[str, ...], label: str) -> None:
    """Make a key, and show it once."""
    key, info = engine().keys.create(tenant, user_id, scopes or tuple(SCOPES), label)
    click.echo(key)
    click.echo(
        f"This is key {info.id}, {_for_whom(info)}, with {_scopes(info)}. It is shown this once, as only a digest "
        f"is kept. Every server takes it within {KNOWN_SECONDS:g} seconds, and serves nobody without one from then on.",
        err=True,  # so that `key=$(flask keys create)` gets the key alone
    )


@keys.command("list")
def show() -> None:
    """List the keys that were made, revoked ones too."""
    made = engine().keys.all()
    if made:
        click.echo(_table(made))
    click.echo(f"{len(made)} made. Those in RECAP_API_KEYS: {len(engine().settings.api_keys)}, not listed.", err=True)


@keys.command("revoke")
@click.argument("key_id", metavar="ID", type=click.IntRange(min=1))
def revoke(key_id: int) -> None:
    """Let the key in no more.  A key stays asked for, also when it was the last."""
    info = engine().keys.revoke(key_id)
    click.echo(
        f"Key {info.id}, {_for_whom(info)}, is revoked since {info.revoked_at:%Y-%m-%d %H:%M} UTC. Every server "
        f"refuses it within {KNOWN_SECONDS:g} seconds."
    )


def _for_whom(info: KeyInfo) -> str:
    return f"of the tenant {info.tenant}" if info.user_id is None else f"of {info.user_id} in the tenant {info.tenant}"


def _scopes(info: KeyInfo) -> str:
    return ", ".join(info.scopes)


def _table(made: list[KeyInfo]) -> str:
    rows: list[tuple[str, ...]] = [("ID", "KEY", "TENANT", "USER", "SCOPES", "MADE (UTC)", "REVOKED (UTC)", "LABEL")]
    for one in made:
        times = [f"{at:%Y-%m-%d %H:%M}" if at else "-" for at in (one.created_at, one.revoked_at)]
        rows.append(
            (str(one.id), f"{one.hint}...", one.tenant, one.user_id or "any", _scopes(one), *times, one.label or "-")
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
