"""Digest: one mini-model call that brings a summary up to date and finds the facts in what was said since.

Guarantee: what comes back fits to replace the previous summary, or SummaryRefused is raised; at most one repair is
asked for.  Nothing is stored here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.digest_format import INSTRUCTION, SCHEMA, Digest, UnusableDigest, read
from memory.domain import Fact, Message, Sections, Usage
from memory.errors import SummaryRefused
from memory.llm import ChatMessage, DigestMaterial, LanguageModel, ModelRequest, complete
from memory.prompts import Prompt, render
from memory.quoting import block, escape, fact_line, message_line


@dataclass(frozen=True)
class Digested:
    """A usable digest, who wrote it, and what all its calls cost."""

    digest: Digest
    model: str
    usage: Usage
    calls: int


def digest(
    model: LanguageModel,
    instruction: Prompt,
    repair: Prompt,
    *,
    previous: Sections,
    messages: Sequence[Message],
    known_facts: Sequence[Fact],
) -> Digested:
    """Bring `previous` up to date with `messages`, the ones since.

    Raises ModelError when the model can't be had, SummaryRefused when its answer can't be used, even repaired.
    """
    request = ModelRequest(
        messages=(
            ChatMessage("system", f"{render(instruction, first=previous.empty)}\n\n{INSTRUCTION}"),
            ChatMessage("user", _material(previous, messages, known_facts)),
        ),
        material=DigestMaterial(previous, messages, known_facts),
        schema=SCHEMA,
    )
    text, finish = complete(model, request)
    try:
        return Digested(read(text, previous), finish.model, finish.usage, calls=1)
    except UnusableDigest as problem:
        first = finish.usage
        again = replace(
            request,
            messages=(
                *request.messages,
                ChatMessage("assistant", text),
                ChatMessage("user", render(repair, problem=str(problem))),
            ),
        )
    text, finish = complete(model, again)
    usage = Usage(
        first.prompt_tokens + finish.usage.prompt_tokens,
        first.completion_tokens + finish.usage.completion_tokens,
        first.estimated or finish.usage.estimated,
    )
    try:
        return Digested(read(text, previous), finish.model, usage, calls=2)
    except UnusableDigest as problem:
        raise SummaryRefused(
            "summary_refused",
            f"The mini model's summary was refused, and its repair too: {problem} "
            "The last good summary stays in use and no message is lost.",
        ) from None


def _material(previous: Sections, messages: Sequence[Message], known_facts: Sequence[Fact]) -> str:
    summary = [] if previous.empty else [escape(json.dumps(previous.as_dict(), ensure_ascii=False))]
    blocks = (
        block("summary_so_far", summary),
        block("known_facts", (fact_line(fact, number=True) for fact in known_facts)),
        block("messages", (message_line(message, number=True) for message in messages)),
    )
    return "\n\n".join(filter(None, blocks))
