"""`recap prompts`: compare summary prompts on one conversation, replayed with each prompt as a session would be.

Nothing is stored. A summary holds a stated fact if it has all its numbers and most of its other searchable words.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from api.current_request import current_engine
from cli import Commands
from memory import tokens
from memory.engine import Engine
from memory.errors import AnswerRefused
from memory.knowledge.grounding import Ungrounded
from memory.knowledge.summary_update import SummaryInput, read, update_summary
from memory.languages import analysis_in
from memory.llm import complete
from memory.llm.builtin import BuiltinModel
from memory.prompts.prompts import PromptTemplate
from models.facts import Fact
from models.messages import Message
from models.owners import Caller, Usage
from models.sections import Sections
from search_index.analysis import Analysis

HELD_SHARE = 0.6
KNOWN_FACTS_MAX = 40

prompts = Commands("prompts", help="The instructions the models are given.")


@prompts.command("compare")
@click.argument("conversation", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--prompts", "names", required=True, help="Names of summary prompts, separated by commas.")
@click.option(
    "--every", type=click.IntRange(1), default=10, show_default=True, help="Messages between updates of the summary."
)
def compare_prompts(conversation: Path, names: str, every: int) -> None:
    """Replay CONVERSATION through several summary prompts and compare what each keeps.

    CONVERSATION is JSON: {"messages": [{"role", "content", "name"?, "created_at"?}], "stated_facts"?: ["..."]}.
    Without stated_facts, those the built-in rules find in it are looked for.
    """
    engine = current_engine()
    try:
        data = json.loads(conversation.read_text(encoding="utf-8-sig"))
        messages = read_messages(data)
    except ValueError as error:
        raise click.ClickException(f"{conversation} is no conversation, whose form `--help` shows: {error}") from error
    facts = tuple(map(str, data.get("stated_facts") or extract_facts(messages)))
    named = [engine.prompts.get(Caller(), name.strip()) for name in names.split(",")]
    results = [compare(engine, prompt, messages, facts, every) for prompt in named]
    click.echo(table(results))


def table(results: Sequence[Mapping[str, object]]) -> str:
    """Return the prompts side by side: what each cost and kept, then which stated facts its summary still holds."""
    width = max(18, *(len(str(result[""])) for result in results))
    lines = []
    for label in results[0]:
        shown = label if len(label) <= 50 else label[:49] + "…"
        lines.append(f"{shown:52}" + "".join(str(result[label]).rjust(width) for result in results))
    return "\n".join(lines)


def read_messages(data: Any) -> list[Message]:
    """Return the messages of `{"messages": [...]}`.  Raises ValueError that says what is wrong."""
    if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list) or not data["messages"]:
        raise ValueError('A conversation is a JSON object with a list of "messages".')
    messages: list[Message] = []
    for position, item in enumerate(data["messages"], start=1):
        if not isinstance(item, Mapping) or not isinstance(item.get("content"), str):
            raise ValueError(f'Message {position} has no "content".')
        created_at = datetime.fromisoformat(str(item["created_at"])) if item.get("created_at") else datetime.now(UTC)
        created_at = created_at if created_at.tzinfo else created_at.replace(tzinfo=UTC)
        message = Message(
            id=position,
            session_id="",
            position=position,
            role=item.get("role", "user"),
            content=item["content"],
            created_at=created_at,
            tokens=tokens.estimate_message(item["content"]),
            name=item.get("name"),
        )
        messages.append(message)
    return messages


def compare(
    engine: Engine, prompt: PromptTemplate, messages: Sequence[Message], stated_facts: Sequence[str], every: int
) -> dict[str, object]:
    """Replay `messages` with a prompt, updating the summary every `every` messages; return its column of the table.

    An update whose answer is refused is skipped, as in a session.  Raises ModelError when the model fails.
    """
    summary = Sections()
    refused = 0
    spent, facts, unread = list[Usage](), list[Fact](), list[Message]()
    ask = partial(engine.mini.ask, 0, tenant=Caller().tenant, spent=spent)
    for start in range(0, len(messages), every):
        unread += messages[start : start + every]
        source = SummaryInput(summary, unread, facts[-KNOWN_FACTS_MAX:])
        try:
            update = update_summary(ask, prompt, source).value
        except AnswerRefused:
            continue
        grounding = source.grounding()
        for draft in update.facts:
            try:
                since = grounding.check(draft).created_at
                facts.append(Fact(len(facts) + 1, draft.text, valid_from=since, created_at=since))
            except Ungrounded:
                refused += 1
        summary = update.sections
        unread = []
    analysis = analysis_in(engine.settings.search_language)
    total = sum(spent, Usage(0, 0))
    is_kept = {fact: _holds(str(summary), fact, analysis) for fact in stated_facts}
    return {
        "": prompt.label,
        "mini-model calls": len(spent),
        "prompt tokens": total.prompt_tokens,
        "completion tokens": total.completion_tokens,
        "summary tokens": tokens.estimate(str(summary)),
        "facts kept": len(facts),
        "facts refused": refused,
        "stated facts held": f"{sum(is_kept.values())} of {len(is_kept)}",
        **{fact: "held" if kept else "-" for fact, kept in is_kept.items()},
    }


def _holds(summary: str, fact: str, analysis: Analysis) -> bool:
    """Return whether the summary still says the fact, judged by words."""
    of_summary, terms = analysis.words(summary), analysis.words(fact)
    numbers = {term for term in terms if any(character.isdigit() for character in term)}
    words = terms - numbers
    return numbers <= of_summary and len(words & of_summary) >= HELD_SHARE * len(words)


def extract_facts(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return what the built-in model takes for facts: a measure for other models, where nobody named the facts."""
    source = SummaryInput(Sections(), messages, ())
    text, _ = complete(BuiltinModel(), source.request(""))
    return tuple(fact.text for fact in read(text, source).facts)
