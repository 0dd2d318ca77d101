"""A profile brought up to date by rules: names, home, work, likes and dislikes, as the person states them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memory.llm import ProfileMaterial
from memory.llm.builtin import reading
from memory.llm.builtin.language import terms
from memory.llm.builtin.reading import Statement

_LINES = {"home": "home", "job": "work"}  # the places of one text, by the keys of statements


def profile(material: ProfileMaterial) -> dict[str, Any]:
    """A patch, in the shape a mini model answers."""
    places: Mapping[str, Any] = material.schema.get("properties", {})
    lists = {name: list(value) for name, value in material.document.items() if isinstance(value, list)}
    patch = []
    for number, message in enumerate(material.messages, 1):
        for one in (one for sentence in reading.sentences(message.content) for one in reading.statements(sentence)):
            for op, name, where, value in _changes(one, lists):
                if places.get(name, {}).get("type") == ("string" if where is None else "array"):
                    path = f"/{name}" if where is None else f"/{name}/{where}"
                    patch.append({"op": op, "path": path, "value": value, "quote": one.quote, "source": number})
    return {"patch": patch}


def _changes(one: Statement, lists: dict[str, list[str]]) -> Iterator[tuple[str, str, int | str | None, str]]:
    """What a statement changes: the operation, the place, where in its list, and the value."""
    if one.key in _LINES and one.mark != "-":
        yield "add", _LINES[one.key], None, one.value if one.key == "home" else one.text
    elif one.key == "name":
        yield "add", "names", "-", one.value
    elif one.key == "taste":
        said, other = ("dislikes", "likes") if one.mark == "-" else ("likes", "dislikes")
        taken = [number for number, old in enumerate(lists.get(other, ())) if terms(old) == terms(one.value)]
        for number in reversed(taken):
            del lists[other][number]
            yield "remove", other, number, ""
        if not (taken and one.mark == "-"):
            yield "add", said, "-", one.value
