"""Sections of a structured summary: their table, and the value that holds a summary.

A section is one line in the class `Sections`.  The JSON schema of the mini model, the reader of its answers, the schema
of the API, the prompts and the page all read `SECTIONS`.  The table is in order of weight: a summary that grows too
long loses items of its last sections first.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, Self

ITEM_CHARS_MAX = 400
ITEMS_MAX = 40  # in one section

Kind = Literal["line", "items", "options"]  # one line of text; many; many options with a reason each


@dataclass(frozen=True)
class Excluded:
    """Option that the person ruled out, and why."""

    option: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.option}: {self.reason}" if self.reason else self.option


def _section(title: str, instruction: str, kind: Kind = "items") -> Any:
    return field(default="" if kind == "line" else (), metadata={"about": (title, instruction, kind)})


@dataclass(frozen=True)
class Sections:
    """Structured summary. Each field has its title, the instruction for the mini model, and its kind."""

    topic: str = _section("Topic", "what the conversation is about, in one line", "line")
    requirements: tuple[str, ...] = _section("Requirements", "what the person needs or decided")
    constraints: tuple[str, ...] = _section("Constraints", "limits: budget, time, must not, has to work with")
    excluded: tuple[Excluded, ...] = _section(
        "Ruled out",
        "options the person ruled out, not merely passed over, each with the reason; take one out when they reopen it",
        "options",
    )
    data: tuple[str, ...] = _section("Facts and figures", "facts, figures and conclusions reached")
    open_questions: tuple[str, ...] = _section("Open questions", "asked or left to decide, and not settled yet")
    discussed: tuple[str, ...] = _section("Discussed", "what else was talked about, in the order it came up")

    @property
    def empty(self) -> bool:
        return self == Sections()

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON's types, in the order of the table."""
        return {section.name: _stored(section.kind, getattr(self, section.name)) for section in SECTIONS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read well-formed data, as `as_dict` returns it; `knowledge.summary_update` reads the answers of models."""
        present = [section for section in SECTIONS if section.name in data]
        return cls(**{section.name: _value(section.kind, data[section.name]) for section in present})

    def map_texts(self, change: Callable[[str], str]) -> Self:
        """Return the summary with each text changed, and without items that are empty or repeated then."""
        changed: dict[str, Any] = {}
        for name, _, _, kind in SECTIONS:
            value = getattr(self, name)
            if kind == "line":
                changed[name] = change(value)
            elif kind == "options":
                options = (Excluded(change(item.option), change(item.reason)) for item in value)
                changed[name] = tuple(item for item in options if item.option)
            else:
                changed[name] = tuple(dict.fromkeys(filter(None, map(change, value))))
        return type(self)(**changed)

    def lines(self, first: Collection[str] = ()) -> list[str]:
        """Return the summary as lines for models and people: a line for each text, below the title of its section.

        first: sections that come right after the topic.
        """
        out: list[str] = []
        for name, title, _, kind in sorted(
            SECTIONS, key=lambda section: (section.kind != "line", section.name not in first)
        ):
            value = getattr(self, name)
            if value and kind == "line":
                out.append(f"{title}: {value}")
            elif value:
                out += [f"{title}:", *(f"- {item}" for item in value)]
        return out

    def __str__(self) -> str:
        return "\n".join(self.lines())


class Section(NamedTuple):
    name: str
    title: str
    instruction: str
    kind: Kind


SECTIONS = tuple(Section(section.name, *section.metadata["about"]) for section in fields(Sections))


def _stored(kind: Kind, value: Any) -> Any:
    if kind == "options":
        return [dict(vars(option)) for option in value]
    return value if kind == "line" else list(value)


def _value(kind: Kind, stored: Any) -> Any:
    if kind == "options":
        return tuple(Excluded(item["option"], item.get("reason", "")) for item in stored)
    return stored if kind == "line" else tuple(stored)
