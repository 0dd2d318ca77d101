"""Calls of the built-in model as the tests make them: a reply or a digest of what was said."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory.knowledge.summary_update import SummaryInput
from memory.llm import ChatMessage, ModelRequest, complete
from memory.llm.builtin import BuiltinModel
from memory.quoting import block, escape, fact_line, format_time, to_prompt_message
from memory.recall.excerpts import excerpt_block
from models.facts import Fact
from models.messages import Excerpt, Message
from models.sections import Sections

MODEL = BuiltinModel()
START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
ADA = ["My name is Ada and I live in Tallinn. I'm allergic to peanuts.", "I work as a nurse. I have a dog named Rex."]


MOVE = """
Hi! My name is Nora and I live in Graz. / I work as a paramedic at the Red Cross. / I'm allergic to penicillin.
We have two kids and a dog named Bruno. / My sister Lena lives in Vienna. / My budget for the flat is 900 euros.
The viewing is on Monday at 9. / I hate long commutes, and I love old buildings. / My landlord is Mr. Huber.
"""


def chat_of(text: str) -> list[str]:
    return [said.strip() for said in text.strip().replace("\n", " / ").split(" / ")]


def message(position: int, content: str, role: str = "user", name: str | None = None) -> Message:
    return Message(position, "s", position, role, content, START + timedelta(days=position - 1), 1, name)


def fact(number: int, text: str, quote: str, day: int = 0, category: str = "identity") -> Fact:
    at = START + timedelta(days=day)
    return Fact(number, text, at, at, category, 4, "user", "s", 1, quote)


def prompt(
    question: str,
    tail: Sequence[str | Message] = (),
    facts: Sequence[Fact] = (),
    excerpts: Sequence[Excerpt] = (),
    summary: Sections | None = None,
) -> ModelRequest:
    """Return the request of a turn, as Recap composes it."""
    messages = [message(n, said) if isinstance(said, str) else said for n, said in enumerate(tail, 1)]
    system = "\n\n".join(filter(None, ["Be brief.", block("summary", map(escape, (summary or Sections()).lines()))]))
    body = "\n".join([*map(excerpt_block, excerpts), block("facts", map(fact_line, facts))])
    memory = f'<memory now="{format_time(START)} UTC, Friday">\n{body}\n</memory>'
    spoken = [ChatMessage(*to_prompt_message(one)) for one in messages]
    return ModelRequest((ChatMessage("system", system), *spoken, ChatMessage("user", f"{memory}\n\n{question}")))


def reply(question: str, *shown: Any, **more: Any) -> str:
    return complete(MODEL, prompt(question, *shown, **more))[0]


def request(
    said: Sequence[str | Message], previous: Sections | None = None, known: Sequence[Fact] = ()
) -> ModelRequest:
    messages = [message(n, text) if isinstance(text, str) else text for n, text in enumerate(said, 1)]
    return SummaryInput(previous or Sections(), messages, known, links=True).request("Summarise.")


def digest(
    said: Sequence[str | Message], previous: Sections | None = None, known: Sequence[Fact] = ()
) -> tuple[Sections, list[dict[str, Any]]]:
    text, _ = complete(MODEL, request(said, previous, known))
    data = json.loads(text)
    assert {*data} - {"forget"} == {"summary", "facts"}
    return Sections.from_dict(data["summary"]), data["facts"]


def texts(facts: list[dict[str, Any]]) -> list[str]:
    return [entry["text"] for entry in facts]


def quotations(text: str) -> list[str]:
    return re.findall(r'"([^"]*)"', text) + re.findall(r"“([^”]*)”", text)
