"""`flask prompts`: the instructions the models are given."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cli.engine import Commands, engine
from memory.summary.compare import Comparison, Conversation, compare

prompts = Commands("prompts", help="The instructions the models are given.")


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
        results = compare(engine(), talk, names.split(","), every)
    except ValueError as error:
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
