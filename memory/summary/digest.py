"""Digest: one mini-model call that brings a summary up to date and finds the facts in what was said since.

Guarantee: what comes back fits to replace the previous summary, or SummaryRefused is raised; at most one repair is
asked for.  Nothing is stored here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from memory.domain import Usage
from memory.errors import SummaryRefused
from memory.llm import ChatMessage, DigestMaterial, LanguageModel, ModelRequest, complete
from memory.prompts.prompts import Prompt, render
from memory.rendering import block, escape, fact_line, numbered, one_line
from memory.summary.digest_format import INSTRUCTION, SCHEMA, Digest, UnusableDigest, read


@dataclass(frozen=True)
class Digested:
    """A usable digest, who wrote it, and what all its calls cost."""

    digest: Digest
    model: str
    usage: Usage
    calls: int

    @property
    def cost(self) -> dict[str, Any]:
        """What its calls cost, as a version of the summary keeps it."""
        return {
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "calls": self.calls,
        }


def digest(model: LanguageModel, instruction: Prompt, repair: Prompt, material: DigestMaterial) -> Digested:
    """Bring the previous summary up to date with the messages since.

    Raises ModelError when the model can't be had, SummaryRefused when its answer can't be used, even repaired.
    """
    previous = material.previous
    request = ModelRequest(
        messages=(
            ChatMessage("system", f"{render(instruction, first=previous.empty)}\n\n{INSTRUCTION}"),
            ChatMessage("user", _rendered(material)),
        ),
        material=material,
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
    usage = first + finish.usage
    try:
        return Digested(read(text, previous), finish.model, usage, calls=2)
    except UnusableDigest as problem:
        raise SummaryRefused(
            "summary_refused",
            f"The mini model's summary was refused, and its repair too: {problem} "
            "The last good summary stays in use and no message is lost.",
        ) from None


def _rendered(material: DigestMaterial) -> str:
    previous = material.previous
    filled = {name: _plain(value) for name, value in previous.as_dict().items() if value}
    summary = [escape(json.dumps(filled, ensure_ascii=False))] if filled else []
    blocks = (
        block("summary_so_far", summary),
        block("known_facts", (fact_line(fact, number=True) for fact in material.known_facts)),
        block("messages", numbered(material.messages)),
    )
    return "\n\n".join(filter(None, blocks))


def _plain(value: Any) -> Any:
    """JSON with plain text on one line each, so that it is one line itself, whatever a person wrote into it."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {name: _plain(item) for name, item in value.items()}
