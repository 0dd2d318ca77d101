"""`flask prompts`: the instructions the models are given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from api.resource import current_engine
from cli.commands import Commands
from cli.prompt_comparison import Comparison, compare, read_messages
from memory.engine import stated_facts
from models.owners import Caller

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
    engine = current_engine()
    try:
        data = json.loads(conversation.read_text(encoding="utf-8"))
        messages = read_messages(data)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    facts = tuple(data.get("stated_facts") or stated_facts(messages))
    named = [engine.prompts.get(Caller(), name.strip()) for name in names.split(",")]
    repair = engine.prompts.get(Caller(), "repair")
    language = engine.settings.search_language
    mini = engine.model_server.models.mini
    results = [compare(prompt, repair, mini, messages, facts, language, every) for prompt in named]
    click.echo(table(facts, results))


def table(facts: Sequence[str], results: Sequence[Comparison]) -> str:
    """Prompts side by side: what each cost and kept, then each stated fact and which summaries still hold it."""
    width = max(18, *(len(result.prompt) for result in results))
    rows: list[tuple[str, list[object]]] = [
        ("", [r.prompt for r in results]),
        ("mini-model calls", [r.calls for r in results]),
        ("prompt tokens", [r.usage.prompt_tokens for r in results]),
        ("completion tokens", [r.usage.completion_tokens for r in results]),
        ("summary tokens", [r.summary_tokens for r in results]),
        ("facts kept", [r.facts for r in results]),
        ("facts refused", [r.refused for r in results]),
        ("stated facts held", [f"{sum(r.held)} of {len(facts)}" for r in results]),
    ]
    for number, fact in enumerate(facts):
        label = fact if len(fact) <= 50 else fact[:49] + "…"
        rows.append((label, ["held" if r.held[number] else "-" for r in results]))
    return "\n".join(f"{label:52}" + "".join(str(cell).rjust(width) for cell in cells) for label, cells in rows)
