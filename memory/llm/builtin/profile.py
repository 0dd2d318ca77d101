"""A profile brought up to date by rules: names, home, work, likes and dislikes, as the person states them."""

from __future__ import annotations

from typing import Any

from memory.llm import ProfileMaterial
from memory.llm.builtin.language import terms
from memory.llm.builtin.reading import sentences, statements

_PLACES = {"name": "names", "home": "home", "job": "work", "taste": "likes"}  # by what a statement is about


def profile(material: ProfileMaterial) -> dict[str, Any]:
    """A patch, in the shape a mini model answers."""
    kinds = {name: place.get("type") for name, place in material.schema.get("properties", {}).items()}
    lists = {name: list(value) for name, value in material.document.items() if isinstance(value, list)}
    patch = []
    for number, message in enumerate(material.messages, 1):
        for one in (one for sentence in sentences(message.content) for one in statements(sentence)):
            said = {"quote": one.quote, "source": number}
            name, ended = _PLACES.get(one.about, ""), one.mark == "-"
            if name == "likes":
                name, other = ("dislikes", "likes") if ended else ("likes", "dislikes")
                taken = [place for place, old in enumerate(lists.get(other, ())) if terms(old) == terms(one.value)]
                for place in reversed(taken):
                    del lists[other][place]
                    patch.append({"op": "remove", "path": f"/{other}/{place}", "value": "", **said})
                ended = ended and bool(taken)
            path = {"array": f"/{name}/-", "string": f"/{name}"}.get(str(kinds.get(name)))
            if path and not ended:
                value = one.text if name == "work" else one.value
                patch.append({"op": "add", "path": path, "value": value, **said})
    return {"patch": patch}
