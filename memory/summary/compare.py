"""Comparing summary prompts: one conversation, replayed through each as it would have been kept.

Nothing is stored.  What a summary holds is judged by words, not by a model: a stated fact counts as held when all
its numbers and HELD_SHARE of its other searchable words stand in the last summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory import tokens
from memory.domain import Caller, Fact, FactDraft, Message, Sections
from memory.errors import RecapError
from memory.facts.grounding import Shown, problem_with
from memory.languages import analysis_in
from memory.llm import DigestMaterial, ModelRequest, complete
from memory.llm.builtin import ExtractiveModel
from memory.services import Services
from memory.summary.digest import digest
from memory.summary.digest_format import read
from search_index.analysis import Analysis

HELD_SHARE = 0.6


@dataclass(frozen=True)
class Conversation:
    """A conversation to replay, and the facts stated in it."""

    messages: tuple[Message, ...]
    stated_facts: tuple[str, ...]

    @classmethod
    def from_json(cls, data: Any) -> Conversation:
        """From `{"messages": [...], "stated_facts": [...]}`; see `flask prompts compare --help`.

        Messages without a role take turns by name.  Raises ValueError that says what is wrong.
        """
        if not isinstance(data, Mapping) or not isinstance(data.get("messages"), list):
            raise ValueError('A conversation is a JSON object with a list of "messages".')
        first_name = next((item.get("name") for item in data["messages"] if isinstance(item, Mapping)), None)
        messages = []
        for position, item in enumerate(data["messages"], start=1):
            if not isinstance(item, Mapping) or not isinstance(item.get("content"), str):
                raise ValueError(f'Message {position} has no "content".')
            role = item.get("role") or ("user" if item.get("name") == first_name else "assistant")
            said = datetime.fromisoformat(item["created_at"]) if item.get("created_at") else datetime.now(UTC)
            messages.append(
                Message(
                    id=position,
                    session_id="",
                    position=position,
                    role=role,
                    content=item["content"],
                    created_at=said if said.tzinfo else said.replace(tzinfo=UTC),
                    tokens=tokens.estimate_message(item["content"]),
                    name=item.get("name"),
                )
            )
        stated = data.get("stated_facts")
        return cls(tuple(messages), tuple(stated) if stated else _stated_by_rule(messages))


@dataclass(frozen=True)
class Comparison:
    """What one prompt cost and kept over the conversation; `held` runs along the stated facts."""

    prompt: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    summary: Sections
    facts: int
    refused: int
    held: tuple[bool, ...]

    @property
    def summary_tokens(self) -> int:
        return tokens.estimate(str(self.summary))


def compare(services: Services, talk: Conversation, names: Sequence[str], every: int) -> list[Comparison]:
    """Replay `talk` with the mini model through each prompt, updating the summary every `every` messages.

    An update whose answer is refused is skipped, as it would be in a session.  Raises NotFound for an unknown
    prompt, ModelError when the model can't be had.
    """
    prompts = [services.prompts.get(Caller(), name.strip()) for name in names]
    repair = services.prompts.get(Caller(), "repair")
    results = []
    for prompt in prompts:
        summary, calls, spent, written, refused = Sections(), 0, 0, 0, 0
        facts: list[Fact] = []
        unread: list[Message] = []
        for start in range(0, len(talk.messages), every):
            unread += talk.messages[start : start + every]
            try:
                made = digest(services.mini, prompt, repair, DigestMaterial(summary, unread, facts[-40:]))
            except RecapError as error:
                if error.code != "summary_refused":
                    raise
                calls += 2
                continue
            shown = Shown(unread, facts[-40:], summary)
            for draft in made.digest.facts:
                source = shown.source(draft)
                if source is not None and problem_with(draft, shown, 0) is None:
                    facts.append(_kept(draft, source, len(facts) + 1))
                else:
                    refused += 1
            summary, unread = made.digest.sections, []
            calls += made.calls
            spent += made.usage.prompt_tokens
            written += made.usage.completion_tokens
        analysis = analysis_in(services.settings.search_language)
        held = tuple(holds(str(summary), fact, analysis) for fact in talk.stated_facts)
        results.append(Comparison(prompt.label, calls, spent, written, summary, len(facts), refused, held))
    return results


def holds(summary: str, fact: str, analysis: Analysis) -> bool:
    """Whether the summary still says the fact, judged by words."""
    there, wanted = set(analysis.terms(summary)), set(analysis.terms(fact))
    numbers = {term for term in wanted if any(character.isdigit() for character in term)}
    words = wanted - numbers
    return numbers <= there and len(words & there) >= HELD_SHARE * len(words)


def _stated_by_rule(messages: Sequence[Message]) -> tuple[str, ...]:
    request = ModelRequest((), DigestMaterial(Sections(), messages, ()))
    text, _ = complete(ExtractiveModel(), request)
    return tuple(fact.text for fact in read(text, Sections()).facts)


def _kept(draft: FactDraft, source: Message, number: int) -> Fact:
    return Fact(
        id=number,
        text=draft.text,
        category=draft.category,
        importance=draft.importance,
        scope=draft.scope,
        session_id=None,
        source_message_id=source.id,
        quote=draft.quote,
        pinned=False,
        recalled_count=0,
        valid_from=source.created_at,
        valid_to=None,
        superseded_by=None,
        created_at=source.created_at,
    )
