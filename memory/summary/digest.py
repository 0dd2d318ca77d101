"""Digest: one call of the mini model that brings a summary up to date and proposes facts from the messages since.

Guarantee: the result fits to replace the previous summary, or SummaryRefused is raised.  The model may repair its
answer once.  Nothing is stored here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from memory.errors import SummaryRefused
from memory.llm import ChatMessage, DigestMaterial, LanguageModel, ModelRequest, complete
from memory.prompts.prompts import Prompt
from memory.rendering import block, fact_line, numbered, summary_json
from memory.sections import SECTIONS
from memory.summary.answer import INSTRUCTION, SCHEMA, Digest, UnusableDigest, read

MAX_WORDS = 400


def prompt_variables(first: bool) -> dict[str, Any]:
    """What a summary prompt is given; `first` for a conversation without a summary yet."""
    sections = [{"name": section.name, "about": section.instruction} for section in SECTIONS]
    return {"first": first, "sections": sections, "max_words": MAX_WORDS}


def digest(model: LanguageModel, instruction: Prompt, repair: Prompt, material: DigestMaterial) -> Digest:
    """Bring the previous summary up to date with the messages since.

    Raises ModelError when the model fails, SummaryRefused when its answer can't be used, even repaired.
    """
    previous = material.previous
    prompt = instruction.render(**prompt_variables(first=previous.empty))
    request = ModelRequest(
        messages=(ChatMessage("system", f"{prompt}\n\n{INSTRUCTION}"), ChatMessage("user", _rendered(material))),
        material=material,
        schema=SCHEMA,
    )
    for _ in ("answer", "repair"):
        text, finish = complete(model, request)
        try:
            return replace(read(text, previous), model=finish.model)
        except UnusableDigest as error:
            problem = str(error)
        repairing = (ChatMessage("assistant", text), ChatMessage("user", repair.render(problem=problem)))
        request = replace(request, messages=request.messages + repairing)
    raise SummaryRefused(
        "summary_refused",
        f"The mini model's summary was refused, and its repair too: {problem} "
        "The last good summary stays in use and no message is lost.",
    )


def _rendered(material: DigestMaterial) -> str:
    blocks = (
        block("summary_so_far", filter(None, [summary_json(material.previous)])),
        block("known_facts", (fact_line(fact, number=True) for fact in material.known_facts)),
        block("messages", numbered(material.messages)),
    )
    return "\n\n".join(filter(None, blocks))
