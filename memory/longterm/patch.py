"""Profiles as values, and the JSON Patches (RFC 6902) that change them.

A profile has a JSON document, and in the same shape what each of its values rests on: words of the person or, for what
a person wrote into it, nothing.  A patch changes both alike, so a value and its source never part.

Guarantee: the document fits its JSON Schema.  A value that a model adds rests on a quote, by the rules for facts (see
`facts.grounding`), or is left out.  A model takes a value away only by a quote that is younger than the value and
contradicts it: it denies or corrects it in its own words, or says what holds in its place where there is one place.
Otherwise its whole patch is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointer, JsonPointerException
from jsonschema import Draft202012Validator

from memory.domain import FactDraft, Message
from memory.facts.corrections import CORRECTS
from memory.facts.grounding import NEGATIVE, Grounding, Ungrounded, stems, straight
from memory.llm import DigestMaterial
from memory.llm.mini import Unusable
from memory.sections import Sections

DOCUMENT_BYTES = 16_000  # of a profile as JSON
Operation = Mapping[str, Any]


@dataclass(frozen=True)
class Profile:
    """A document, and `sources` in its shape: each value's is an object with `quote`, `session_id` and `position` of
    the message, `since` (when it was said or written), and `author`, `model` or `person`."""

    document: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Any) -> Profile:
        """A profile as it was stored; an empty one for what is none, which an import may bring."""
        try:
            found = cls(stored["document"], stored["sources"])
            times = [datetime.fromisoformat(source["since"]).tzinfo for *_, source in found.values()]
        except (TypeError, ValueError, LookupError):
            return cls()
        return found if isinstance(found.document, dict) and all(times) else cls()

    def values(self) -> Iterator[tuple[tuple[str | int, ...], Any, dict[str, Any]]]:
        """Each value with its place and its source, in the document's order."""
        return _values(self.document, self.sources, ())

    def seeded(self, schema: Mapping[str, Any]) -> Profile:
        """The profile with an empty list wherever the schema has one at its top, so that a patch can add to it."""
        lists: dict[str, Any] = {
            name: [] for name, inner in schema.get("properties", {}).items() if inner.get("type") == "array"
        }
        return Profile(lists | self.document, lists | self.sources)

    def stored(self, schema: Mapping[str, Any]) -> Profile:
        """The profile without what is empty, in the order of the schema."""
        kept, order = self.without(lambda _: False), list(schema.get("properties", {}))
        names = sorted(kept.document, key=lambda name: order.index(name) if name in order else len(order))
        return Profile({name: kept.document[name] for name in names}, {name: kept.sources[name] for name in names})

    def patched(self, operation: Operation, source: dict[str, Any], schema: Draft202012Validator) -> Profile:
        """The profile after one operation whose values have this source.  Raises Unusable."""
        beside = {**operation, "value": _like(operation["value"], source)} if "value" in operation else operation
        try:
            document = JsonPatch([operation]).apply(self.document)
            sources = self.sources if operation["op"] == "test" else JsonPatch([beside]).apply(self.sources)
        except (JsonPatchException, JsonPointerException, TypeError, KeyError):
            raise Unusable(f"The operation `{operation['op']}` does not apply at {operation['path']!r}.") from None
        if not isinstance(document, dict):
            raise Unusable("A profile is a JSON object.")
        if wrong := next(schema.iter_errors(document), None):
            at = "/".join(map(str, wrong.absolute_path))
            raise Unusable(f"The schema refuses /{at} after `{operation['op']}` at {operation['path']!r}.")
        if len(json.dumps(document, ensure_ascii=False).encode()) > DOCUMENT_BYTES:
            raise Unusable(f"A profile may have {DOCUMENT_BYTES:,} bytes.")
        return Profile(document, sources)

    def without(self, rests: Callable[[dict[str, Any]], bool]) -> Profile:
        """The profile without the values whose source `rests` on something; what is empty then goes too."""
        kept = _kept(self.document, self.sources, rests)
        return Profile(*kept) if kept else Profile()


@dataclass(frozen=True)
class Proposal:
    """An operation of a model's, with the words that it rests on."""

    op: str
    path: str
    value: Any
    draft: FactDraft


def accept(
    profile: Profile, proposals: Sequence[Proposal], messages: Sequence[Message], schema: Draft202012Validator
) -> tuple[Profile, set[int], int]:
    """The profile with what the proposals say, the ids of the messages that this rests on, and how many were left out.

    The messages are numbered from 1, and a draft's source is such a number.  Raises Unusable for a refused patch.
    """
    numbered = [message._replace(position=number) for number, message in enumerate(messages, 1)]
    grounding = Grounding(DigestMaterial(Sections(), numbered, ()))
    used, refused = set[int](), 0
    for one in proposals:
        parent, old = _found(profile.document, one.path)
        known = parent if isinstance(parent, list) else [old]
        if one.op != "remove" and one.value in known:
            continue
        lost = [] if one.op == "add" and isinstance(parent, list) else list(_under(profile, one.path))
        try:
            source = _grounded(one, grounding)
        except Ungrounded as reason:
            if lost:
                raise Unusable(f"At {one.path!r} it takes a value away, and {reason}.") from None
            refused += 1
            continue
        in_place = one.op != "remove" and isinstance(parent, dict) and not isinstance(old, dict | list)
        for value, rests_on in lost:
            older = source.created_at <= datetime.fromisoformat(rests_on["since"])
            if older or not (in_place or _contradicts(one.draft.quote, source, value)):
                raise Unusable(f"At {one.path!r} it takes a value away, and its quote does not contradict that value.")
        profile = _changed(profile, one, messages[source.position - 1], schema)
        used.add(source.id)
    return profile, used, refused


def _grounded(one: Proposal, grounding: Grounding) -> Message:
    """The message that a proposal rests on, with every value in it.  Raises Ungrounded."""
    named = " ".join(re.sub(r"/(?:\d+|-)(?=/|$)", "", one.path).replace("_", " ").split("/"))
    said = [f"{named} {value}" for _, value, _ in _values(one.value, _like(one.value, {}), ())]
    texts = [one.draft.quote] if one.op == "remove" else said or [named]
    sources = [grounding.source(replace(one.draft, text=text)) for text in texts]
    return sources[0]


def _changed(profile: Profile, one: Proposal, message: Message, schema: Draft202012Validator) -> Profile:
    place = {"session_id": message.session_id, "position": message.position}
    source = {"quote": one.draft.quote, **place, "since": message.created_at.isoformat(), "author": "model"}
    try:
        return profile.patched({"op": one.op, "path": one.path, "value": one.value}, source, schema)
    except Unusable:
        try:  # a strict answer has texts alone, so what is no text is written as JSON
            value = json.loads(one.value)
        except (ValueError, TypeError):
            value = one.value
        return profile.patched({"op": one.op, "path": one.path, "value": value}, source, schema)


def _contradicts(quote: str, message: Message, value: Any) -> bool:
    """Whether words deny or correct a value: they name it, and deny or correct something."""
    said = straight(message.content)
    named = not set(stems(str(value))).isdisjoint(stems(quote))
    return named and any(pattern.search(said) for pattern in (NEGATIVE, CORRECTS))


# -- places


def _found(document: Any, path: str) -> tuple[Any, Any]:
    """What holds the place, and what is there (None: nothing).  Raises Unusable for what is no place in a profile."""
    try:
        pointer = JsonPointer(path)
        parent = pointer.to_last(document)[0] if pointer.parts else None
        old = None if path.endswith("/-") else pointer.resolve(document, None)
    except JsonPointerException:
        parent = old = None
    if parent is None:
        raise Unusable(f"There is no place {path!r} in the profile.")
    return parent, old


def _under(profile: Profile, path: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The values at and below a place, with their sources."""
    _, old = _found(profile.document, path)
    if old is not None:
        _, sources = _found(profile.sources, path)
        for _, value, source in _values(old, sources, ()):
            yield value, source


def _values(value: Any, sources: Any, place: tuple[str | int, ...]) -> Iterator[tuple[Any, Any, Any]]:
    if not isinstance(value, dict | list):
        yield place, value, sources
        return
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _values(one, sources[key], (*place, key))


def _like(value: Any, source: dict[str, Any]) -> Any:
    """`source` in the place of every value."""
    if isinstance(value, dict):
        return {key: _like(one, source) for key, one in value.items()}
    return [_like(one, source) for one in value] if isinstance(value, list) else source


def _kept(value: Any, sources: Any, rests: Callable[[dict[str, Any]], bool]) -> tuple[Any, Any] | None:
    """What does not rest on something, of a value and its sources; None when that is nothing."""
    if not isinstance(value, dict | list):
        return None if rests(sources) else (value, sources)
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    kept = {key: pair for key, one in pairs if (pair := _kept(one, sources[key], rests)) is not None}
    if not kept:
        return None
    if isinstance(value, dict):
        return {key: one for key, (one, _) in kept.items()}, {key: source for key, (_, source) in kept.items()}
    return [one for one, _ in kept.values()], [source for _, source in kept.values()]
