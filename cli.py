"""Commands for operators: `flask --app wsgi index verify`, and the like.  `--help` says the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click
from flask import Flask, current_app
from flask.cli import AppGroup

from app import services_of
from memory.errors import RecapError
from memory.summary.compare import Comparison, Conversation, compare


def register_commands(app: Flask) -> None:
    """Add every command to the application."""
    app.cli.add_command(index)
    app.cli.add_command(prompts)


index = AppGroup("index", help="The search index: derived data, made from the messages.")
prompts = AppGroup("prompts", help="The instructions the models are given.")


@index.command("verify")
def verify() -> None:
    """Compare every owner's index with the messages.  Exits with 1 when they disagree."""
    wrong = 0
    total = 0
    for one in services_of(current_app._get_current_object()).indexing.verify():  # type: ignore[attr-defined]
        total += 1
        if not one.consistent:
            wrong += 1
            click.echo(f"{one.owner}: {one.missing} missing, {one.surplus} surplus of {one.messages} messages")
        elif one.waiting:
            click.echo(
                f"{one.owner}: {one.waiting} of {one.messages} messages wait to be indexed (searched all the same)"
            )
    if wrong:
        click.echo(f"{wrong} of {total} indexes disagree with the messages. `flask index rebuild` makes them again.")
        sys.exit(1)
    click.echo(f"{total} indexes agree with the messages.")


@index.command("rebuild")
def rebuild() -> None:
    """Make every index again from the messages.  Searches go on meanwhile."""
    count = 0
    for owner, messages in services_of(current_app._get_current_object()).indexing.rebuild():  # type: ignore[attr-defined]
        count += messages
        click.echo(f"{owner}: {messages} messages")
    click.echo(f"{count} messages indexed.")


@prompts.command("compare")
@click.argument("conversation", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prompts", "names", required=True, help="Names of summary prompts, separated by commas.")
@click.option("--every", default=10, show_default=True, help="Messages between updates of the summary.")
def compare_prompts(conversation: Path, names: str, every: int) -> None:
    """Replay CONVERSATION through several summary prompts and compare what each keeps.

    CONVERSATION is JSON: {"messages": [{"role", "content", "name"?, "created_at"?}], "stated_facts"?: ["..."]}.
    Without stated_facts, those the built-in rules find in it are looked for.
    """
    try:
        talk = Conversation.from_json(json.loads(conversation.read_text(encoding="utf-8")))
        results = compare(services_of(current_app._get_current_object()), talk, names.split(","), every)  # type: ignore[attr-defined]
    except (ValueError, RecapError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(table(talk, results))


def table(talk: Conversation, results: list[Comparison]) -> str:
    """Prompts side by side: what each cost and kept, then each stated fact and which summaries still hold it."""
    width = max(18, *(len(result.prompt) for result in results))
    names = [result.prompt.rjust(width) for result in results]
    figures = [
        ("mini-model calls", [str(r.calls) for r in results]),
        ("prompt tokens", [str(r.prompt_tokens) for r in results]),
        ("completion tokens", [str(r.completion_tokens) for r in results]),
        ("summary tokens", [str(r.summary_tokens) for r in results]),
        ("facts kept", [str(r.facts) for r in results]),
        ("facts refused", [str(r.refused) for r in results]),
        ("stated facts held", [f"{sum(r.held)} of {len(talk.stated_facts)}" for r in results]),
    ]
    lines = [f"{'':52}" + "".join(names)]
    lines += [f"{label:52}" + "".join(cell.rjust(width) for cell in cells) for label, cells in figures]
    for number, fact in enumerate(talk.stated_facts):
        label = fact if len(fact) <= 50 else fact[:49] + "…"
        lines.append(f"{label:52}" + "".join(("held" if r.held[number] else "-").rjust(width) for r in results))
    return "\n".join(lines)
