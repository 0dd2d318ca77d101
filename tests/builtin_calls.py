"""Calls of the built-in model as the tests make them: a reply or a digest from what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.domain import Excerpt, Fact, Message
from memory.llm import DigestMaterial, ModelRequest, ReplyMaterial, complete
from memory.llm.builtin import BuiltinModel
from memory.sections import Sections

MODEL = BuiltinModel()
START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
ADA = ["My name is Ada and I live in Tallinn. I'm allergic to peanuts.", "I work as a nurse. I have a dog named Rex."]


def message(position: int, content: str, role: str = "user", name: str | None = None) -> Message:
    return Message(position, "s", position, role, content, START + timedelta(days=position - 1), 1, name)


def fact(number: int, text: str, quote: str, day: int = 0, category: str = "identity") -> Fact:
    at = START + timedelta(days=day)
    return Fact(number, text, at, at, category, 4, "user", "s", source_message_id=1, quote=quote)


def reply(
    question: str,
    tail: Sequence[str | Message] = (),
    facts: Sequence[Fact] = (),
    excerpts: Sequence[Excerpt] = (),
    summary: Sections | None = None,
) -> str:
    messages = [message(n, said) if isinstance(said, str) else said for n, said in enumerate(tail, 1)]
    material = ReplyMaterial(question, START, summary or Sections(), facts, excerpts, messages)
    return complete(MODEL, ModelRequest((), material))[0]


def request(
    said: Sequence[str | Message], previous: Sections | None = None, known: Sequence[Fact] = ()
) -> ModelRequest:
    messages = [message(n, text) if isinstance(text, str) else text for n, text in enumerate(said, 1)]
    return ModelRequest((), DigestMaterial(previous or Sections(), messages, known))


def digest(
    said: Sequence[str | Message], previous: Sections | None = None, known: Sequence[Fact] = ()
) -> tuple[Sections, list[dict[str, Any]]]:
    text, _ = complete(MODEL, request(said, previous, known))
    data = json.loads(text)
    assert list(data) == ["summary", "facts"]
    return Sections.from_dict(data["summary"]), data["facts"]


def texts(facts: list[dict[str, Any]]) -> list[str]:
    return [entry["text"] for entry in facts]


def quotations(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text) + re.findall(r"“([^”]*)”", text)
