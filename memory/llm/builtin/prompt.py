"""Read a prompt that Recap composed: the built-in model knows of a conversation what any other model is shown.

`memory.quoting` writes these blocks and lines; what is read here must be what is written there
(tests/test_builtin_model.py).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, NamedTuple, Self

from memory.llm import ChatMessage
from memory.quoting import CHAT_BLOCK, DOCUMENT_BLOCK, MEMORY_BLOCK
from models.messages import KEPT_OUT_TEXT
from models.sections import SECTIONS, Sections

_PASSAGE = re.compile(r"(?:page \d+|text): (.*)", re.S)
_ATTACHED = re.compile(
    r'^(?:<file name="[^"\n]*">\n.*?\n</file>|\[(?:image|file|audio)(?: [^\n]*)?\])$\n?', re.M | re.S
)
_ITEM_END = re.compile(r"\n(?!  )")  # lines of one item are indented
_MESSAGE = re.compile(
    r"(?:\[(?P<number>\d+)\] )?(?:(?P<day>\d{4}-\d\d-\d\d)(?: [A-Z][a-z]+)? )?\d\d:\d\d "
    r'(?P<role>\w+)(?: "(?P<name>[^"]*)")?: (?P<text>.*)',
    re.S,
)
_FACT = re.compile(
    r"(?:-|\[F?(?P<number>\d+)\]) (?P<text>.*) \(said (?P<day>[\d-]{10})(?: [\d:]{5})?(?: elsewhere)?\)", re.S
)
_TITLES = {section.title: section for section in SECTIONS}


class PromptLine(NamedTuple):
    """Message or, with the role `fact`, a fact or a value of the profile.

    day: as YYYY-MM-DD, empty where the prompt does not tell. number: of a line in a list with numbers. name: who spoke.
    """

    text: str
    role: str = "user"
    day: str = ""
    number: int = 0
    name: str = ""


@dataclass(frozen=True)
class ParsedPrompt:
    """Prompt for a reply, read again from its messages.

    recalled: messages of earlier conversations; messages: those of this one.
    has_attachments: images or files came with the question.
    """

    question: str
    messages: tuple[PromptLine, ...] = ()
    recalled: tuple[PromptLine, ...] = ()
    facts: tuple[PromptLine, ...] = ()
    summary: Sections = Sections()
    today: str = ""
    has_attachments: bool = False

    @classmethod
    def read(cls, messages: Sequence[ChatMessage]) -> Self:
        """Read the messages of a turn. Without one of the person, the question is empty."""
        newest = max((at for at, message in enumerate(messages) if message.role == "user"), default=len(messages))
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        before = [PromptLine(message.content, message.role) for message in messages[:newest]]
        content = messages[newest].content if newest < len(messages) else ""
        memory = MEMORY_BLOCK.search(content)
        today, quoted = memory.groups() if memory else ("", "")
        question = content[memory.end() :] if memory else content
        attached = 0
        if newest < len(messages) and isinstance((messages[newest].raw or {}).get("content"), list):
            question, attached = _ATTACHED.subn("", question)
        if memory and memory.start():  # a neighbour of the same role, joined to the newest message
            before.append(PromptLine(content[: memory.start()]))
        spoken = [line for line in before if line.role in ("user", "assistant")]
        recalled = [line for day, body in CHAT_BLOCK.findall(quoted) for line in messages_in(_items(body), day)]
        recalled += [line for document in DOCUMENT_BLOCK.findall(quoted) for line in _passages(*document)]
        facts = [*items(system, "profile"), *items(system, "facts"), *items(quoted, "facts")]
        return cls(
            question,
            messages=tuple(line for line in spoken if not line.text.startswith("<message ")),
            recalled=tuple(recalled),
            facts=tuple(facts_in(facts)),
            summary=_summary(items(system, "summary")),
            today=today,
            has_attachments=attached > 0,
        )


def items(text: str, name: str) -> list[str]:
    """Return the items of the last block of a name, unescaped."""
    start, end = text.rfind(f"<{name}>\n"), text.rfind(f"\n</{name}>")
    body = text[start + len(name) + 3 : end] if 0 <= start < end else ""
    return _items(body)


def _items(body: str) -> list[str]:
    return [unescape(item.replace("\n  ", "\n")) for item in _ITEM_END.split(body)] if body else []


def messages_in(items: Sequence[str], day: str = "") -> Iterator[PromptLine]:
    """Read lines of messages. day: the day of the first ones."""
    for item in items:
        if line := _MESSAGE.fullmatch(item):
            day = line["day"] or day
            if line["text"] != KEPT_OUT_TEXT:
                yield PromptLine(line["text"], line["role"], day, int(line["number"] or 0), line["name"] or "")


def _passages(title: str, day: str, body: str) -> Iterator[PromptLine]:
    """Read the passages of a document, which speaks by its title."""
    for item in _items(body):
        if line := _PASSAGE.fullmatch(item):
            yield PromptLine(line[1], "document", day, name=unescape(title))


def facts_in(items: Sequence[str]) -> Iterator[PromptLine]:
    """Read lines of facts, and of a profile."""
    for item in items:
        if line := _FACT.fullmatch(item):
            yield PromptLine(line["text"], "fact", line["day"], int(line["number"] or 0))


def _summary(lines: Sequence[str]) -> Sections:
    """Read the lines of a summary, as `Sections.lines` writes them."""
    sections: dict[str, Any] = {}
    name = ""
    for line in lines:
        title, colon, rest = line.partition(":")
        section = _TITLES.get(title) if colon else None
        if section is not None and section.kind == "line":
            sections[section.name] = rest.strip()
        elif section is not None and not rest:
            name = section.name
        elif name and line.startswith("- "):
            option, _, reason = line[2:].partition(": ")
            item = {"option": option, "reason": reason} if name == "excluded" else line[2:]
            sections.setdefault(name, []).append(item)
    return Sections.from_dict(sections)
