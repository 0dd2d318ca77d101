"""Profiles as values, and the JSON Patches (RFC 6902) that change them.

A profile has a JSON document, and in the same shape what each of its values rests on: words of the person or, for what
a person wrote into it, nothing.  A patch changes both alike, so a value and its source never part.

Invariants [test_profile]:
- The document fits its JSON Schema.
- A value that a model adds rests on a quote, as facts do (see `grounding`), or is left out.
- A model takes a value away only by a younger quote that denies or corrects it, or says what is true instead.
  Otherwise its whole patch is refused.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, NamedTuple, Self

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import EndOfList, JsonPointer, JsonPointerException
from jsonschema import Draft202012Validator

from memory.knowledge.grounding import Grounding, Ungrounded, stems
from memory.knowledge.rule_set import EVERYTHING, RuleSet
from memory.languages import CORRECTS, NEGATIVE, plain_apostrophes
from memory.llm.mini_model import InvalidAnswer
from memory.quoting import escape, one_line
from models.base import local_time
from models.facts import Fact, FactDraft
from models.messages import Message

log = logging.getLogger(__name__)

DOCUMENT_BYTES = 16_000  # of a profile as JSON
Operation = Mapping[str, Any]


class Value(NamedTuple):
    """Value of a profile, its path in the document, and what it rests on."""

    path: tuple[str | int, ...]
    value: Any
    source: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Return the names in its path, without indexes of lists."""
        return " ".join(part.replace("_", " ") for part in self.path if isinstance(part, str))

    @property
    def text(self) -> str:
        """Return its name and value, as a fact would say them."""
        return f"{self.name} {self.value}"

    def line(self, zone: tzinfo) -> str:
        """Return it as a line of a prompt. zone: in which the person's days begin."""
        name = escape(one_line(self.name))
        text = escape(one_line(str(self.value)))
        since = local_time(datetime.fromisoformat(self.source["since"]), zone)
        return f"- {name}: {text} (said {since:%Y-%m-%d})"

    @property
    def statement(self) -> tuple[str, Any]:
        return self.name, self.value


@dataclass(frozen=True)
class Profile:
    """Document, and `sources` in its shape.

    A source has the `quote`, `session_id` and `position` of the message, `since` (its time) and `author`, which is
    `model` or `person`.
    """

    document: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, stored: Any) -> Self:
        """Return a profile as it was stored; an empty one for another value, which an import may bring."""
        try:
            profile = cls(stored["document"], stored["sources"])
            times = [datetime.fromisoformat(item.source["since"]).tzinfo for item in profile.values()]
        except (TypeError, ValueError, LookupError):
            return cls()
        return profile if isinstance(profile.document, dict) and all(times) else cls()

    def values(self) -> list[Value]:
        """Return each value, in the document's order."""
        return list(_values(self.document, self.sources, ()))

    def has(self, value: Value) -> bool:
        """Return whether it has a value from the same source, maybe elsewhere in its list."""
        return any((item.statement, item.source) == (value.statement, value.source) for item in self.values())

    def fitting(self, schema: Mapping[str, Any]) -> "Profile":
        """Return the parts that fit a schema, which may have been changed since."""
        fits = Draft202012Validator(schema).is_valid
        names = [name for name, value in self.document.items() if fits({name: value})]
        return Profile({name: self.document[name] for name in names}, {name: self.sources[name] for name in names})

    def without(self, is_gone: Callable[[Value], bool]) -> "Profile":
        """Return the profile without some values, and without what is empty."""
        kept = _kept(self.document, self.sources, is_gone)
        return Profile(*kept) if kept else Profile()

    def kept_by(self, rules: RuleSet) -> "Profile":
        """Return the profile without the values that the rules keep out."""
        return self.without(lambda value: rules.keeps_out(value.text))

    def patched(self, operation: Operation, source: Mapping[str, Any], schema: Mapping[str, Any]) -> "Profile":
        """Return the profile after one operation whose values have this source. `/likes/-` also begins that list.

        Raises InvalidAnswer.
        """
        of_sources = {**operation}
        if "value" in operation:
            of_sources["value"] = with_source(operation["value"], source)
        name, _, place = operation["path"][1:].partition("/")
        new_list: dict[str, Any] = {name: []} if place == "-" and name not in self.document else {}
        try:
            document = JsonPatch([operation]).apply(self.document | new_list)
            sources = self.sources
            if operation["op"] != "test":
                sources = JsonPatch([of_sources]).apply(self.sources | new_list)
        except (JsonPatchException, JsonPointerException, TypeError, KeyError):
            raise InvalidAnswer(f"The operation `{operation['op']}` does not apply at {operation['path']!r}.") from None
        if not isinstance(document, dict):
            raise InvalidAnswer("A profile is a JSON object.")
        if wrong := next(Draft202012Validator(schema).iter_errors(document), None):
            at = "/".join(map(str, wrong.absolute_path))
            raise InvalidAnswer(
                f"The schema refuses /{at} by `{wrong.validator}` after `{operation['op']}` at {operation['path']!r}."
            )
        if len(json.dumps(document, ensure_ascii=False).encode()) > DOCUMENT_BYTES:
            raise InvalidAnswer(f"A profile may have {DOCUMENT_BYTES:,} bytes.")
        return Profile(document, sources).without(lambda _: False)


def apply_patch(
    profile: Profile,
    operations: Sequence[Operation],
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    rules: RuleSet = EVERYTHING,
    facts: Sequence[Fact] = (),
) -> tuple[Profile, set[int]]:
    """Return the profile with what a model's operations say, and the ids of the messages that this rests on.

    An operation also has a `quote`, and as `source` the number of its message, from 1. facts: taken from the messages;
    they say whom these mean.  Raises InvalidAnswer for a patch that is refused.
    """
    numbered = dict(enumerate(messages, 1))
    shown = [message._replace(position=number) for number, message in numbered.items()]
    grounding = Grounding(shown, facts=facts)
    used: set[int] = set()
    for operation in operations:
        path, quote = operation["path"], operation["quote"]
        if not path:
            raise InvalidAnswer("It replaces the whole document.")
        message = messages[0]
        with suppress(Ungrounded):  # the check below raises it again
            message = numbered[grounding.find_source(FactDraft("", operation["source"], quote)).position]
        after = _patched(profile, operation, message, schema)
        if {each.statement for each in after.values()} == {each.statement for each in profile.values()}:
            continue
        lost = [each for each in profile.values() if not after.has(each)]
        added = [each.text for each in after.values() if not profile.has(each)]
        if added and rules.keeps_out(*added, quote):
            log.info("an addition to a profile is left out: its topic is kept out of memory")
            continue
        try:
            for text in added or [quote]:
                grounding.check(FactDraft(text, operation["source"], quote))
        except Ungrounded as reason:
            if lost:
                raise InvalidAnswer(f"At {path!r} it takes a value away, and {reason}.") from None
            log.info("an addition to a profile is left out: %s", reason)
            continue
        replaced = {each.path for each in after.values() if isinstance(each.path[-1], str)}  # not items of lists
        for each in lost:
            older = message.created_at <= datetime.fromisoformat(each.source["since"])
            if older or not (each.path in replaced or _contradicts(quote, message, each.value)):
                raise InvalidAnswer(f"At {path!r} it takes a value away, and its quote does not contradict that value.")
        profile = after
        used |= {message.id} if added else set()
    return profile, used


def _patched(profile: Profile, proposed: Operation, message: Message, schema: Mapping[str, Any]) -> Profile:
    """Return the profile after a model's operation, whose value is a text or, where that does not fit, JSON."""
    place = {"session_id": message.session_id, "position": message.position}
    source = {"quote": proposed["quote"], **place, "since": message.created_at.isoformat(), "author": "model"}
    operation = {name: proposed[name] for name in ("op", "path", "value")}
    if operation["op"] == "replace" and not _has_value(profile.document, operation["path"]):
        operation["op"] = "add"  # models replace what is not there yet
    with suppress(InvalidAnswer):
        return profile.patched(operation, source, schema)
    with suppress(ValueError):
        operation["value"] = json.loads(proposed["value"])
    return profile.patched(operation, source, schema)


def _has_value(document: Mapping[str, Any], path: str) -> bool:
    """Return whether there is a value at a JSON Pointer."""
    with suppress(JsonPointerException):
        return not isinstance(JsonPointer(path).resolve(document), EndOfList)
    return False


def _contradicts(quote: str, message: Message, value: Any) -> bool:
    """Return whether words deny or correct a value: they name it, and deny or correct something."""
    text = plain_apostrophes(message.content)
    is_named = not set(stems(str(value))).isdisjoint(stems(quote))
    return is_named and any(pattern.search(text) for pattern in (NEGATIVE, CORRECTS))


def _values(value: Any, sources: Any, place: tuple[str | int, ...]) -> Iterator[Value]:
    if not isinstance(value, dict | list):
        yield Value(place, value, sources)
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _values(item, sources[key], (*place, key))


def _kept(
    value: Any, sources: Any, is_gone: Callable[[Value], bool], place: tuple[str | int, ...] = ()
) -> tuple[Any, Any] | None:
    """Return the rest of a value and of its sources; None when nothing is left."""
    if not isinstance(value, dict | list):
        return None if is_gone(Value(place, value, sources)) else (value, sources)
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    pairs = ((key, _kept(item, sources[key], is_gone, (*place, key))) for key, item in parts)
    kept = [(key, *pair) for key, pair in pairs if pair is not None]
    if not kept:
        return None
    if isinstance(value, dict):
        return {key: item for key, item, _ in kept}, {key: source for key, _, source in kept}
    return [item for _, item, _ in kept], [source for *_, source in kept]


def with_source(value: Any, source: Mapping[str, Any]) -> Any:
    """Put `source` in the place of every value."""
    if isinstance(value, dict):
        return {key: with_source(item, source) for key, item in value.items()}
    return [with_source(item, source) for item in value] if isinstance(value, list) else source
