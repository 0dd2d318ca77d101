"""Generated notes for benchmarks that need many messages, each with a detail to remember and a question about it.

The words are in notes.json; a note has about 35.  Its names are built from syllables of varying frequency: with a small
vocabulary every search would find every note.

Invariants: the same conversation and number always give the same note.  Within 90,000 notes of a conversation each tag
is unique, so a tag in a prompt comes from its own note.
"""

from __future__ import annotations

import json
import random
import zlib
from dataclasses import dataclass
from pathlib import Path

WORDS: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
TAGS = 90_000  # of five digits


@dataclass(frozen=True)
class Note:
    """A message of a person, the detail to remember, and two questions about it."""

    text: str
    tag: str  # five digits
    question: str  # its answer is the tag
    reminder: str  # asks by the names in the note


def note(conversation: str, number: int) -> Note:
    """Return the note with that number, from 0."""
    rng = random.Random(f"{conversation}/{number}")  # nosec B311 # the same at each run
    who, name, place = rng.choice(WORDS["who"]), _name(rng, 1), _name(rng, 2)
    thing, label, where = rng.choice(WORDS["thing"]), rng.choice(WORDS["label"]), number + 101
    tag = str(10_000 + (number * 7_919 + zlib.crc32(conversation.encode())) % TAGS)
    did, when, so, kept, ask = (rng.choice(WORDS[kind]) for kind in ("did", "when", "so", "kept", "ask"))
    did, kept = did.format(what=rng.choice(WORDS["what"])), kept.format(label=label, thing=thing, where=where, tag=tag)
    return Note(
        text=f"{who.capitalize()} {name} from {place} {did} {when}, {so}. {kept[0].upper()}{kept[1:]}. {ask}",
        tag=tag,
        question=f"What was the {label} of {thing} {where}?",
        reminder=f"What was it with {name} from {place}?",
    )


def answer(text: str) -> str:
    """Return the scripted model's answer to `text`: about 40 words, always the same for the same text."""
    return WORDS["answers"][zlib.crc32(text.encode()) % len(WORDS["answers"])]


def _name(rng: random.Random, length: int) -> str:
    """Return a name of `length` first syllables and an ending.  Syllables early in the lists are far more frequent."""
    starts, ends = WORDS["starts"], WORDS["ends"]
    name = "".join(starts[int(len(starts) * rng.random() ** 2)] for _ in range(length))
    return name.capitalize() + ends[int(len(ends) * rng.random() ** 2)]
