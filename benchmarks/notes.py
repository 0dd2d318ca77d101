"""Generated notes for benchmarks that need many messages, each with a detail to remember and a question about it.

Guarantee: the same conversation and number always give the same note.  Within 90,000 notes of a conversation each tag
is unique, so a tag in a prompt must come from its own note.

A note has about 35 words.  Its names are built from syllables of varying frequency.  With a small vocabulary every
search would find every note.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass

_WHO = (
    "the carpenter", "a colleague", "the nurse", "my cousin", "our landlord", "a former teacher", "the beekeeper",
    "the choir's treasurer", "a friend", "the piano tuner", "one of the rowers", "the ferry's mate",
)  # fmt: skip
_DID = (
    "rang about the {what}", "left the {what} at the door", "asked for the {what} again", "wants to swap the {what}",
    "has found the missing {what}", "would rather sell the {what}", "sent the bill for the {what}",
    "will look after the {what}", "offered to carry the {what}", "forgot the {what} in the hall",
    "is quite taken with the {what}", "needs a hand with the {what}",
)  # fmt: skip
_WHAT = (
    "trailer", "pears", "soup recipe", "bicycle pump", "window frames", "hens", "umbrella", "accordion", "boiler",
    "tent", "seed potatoes", "wallpaper", "kayak", "telescope", "oak table", "chess clock", "lampshade",
    "fishing net", "sledge", "sewing machine", "honey", "stilts", "map of the marsh", "old radio", "ladder",
    "violin case", "rain barrel", "costumes", "puppet stage", "walnut tree", "skates", "carpet", "microscope",
    "canoe paddle", "bread oven", "drum", "postcards", "anvil", "rope bridge", "greenhouse", "stamp album",
    "hammock", "weather vane", "loom", "wheelbarrow",
)  # fmt: skip
_WHEN = (
    "before breakfast", "late in the evening", "during the thunderstorm", "on the way home", "after the match",
    "between two trains", "at the fair", "in the queue at the baker's", "while it snowed", "from the harbour",
)  # fmt: skip
_SO = (
    "and I promised an answer by the weekend", "so the hallway has to be cleared first", "which nobody expected at all",
    "and that suits everyone but the dog", "so I moved the dentist to another day", "and we laughed about it for long",
    "though the garage is full already", "so somebody has to drive there", "and the neighbours heard of it too",
    "which makes the summer easier", "so the key goes to the bakery",
)  # fmt: skip
_THING = (
    "crate", "drawer", "tin", "suitcase", "shelf", "barrel", "folder", "cupboard", "basket", "jar", "hook", "chest",
)  # fmt: skip
_LABEL = ("tag", "label", "sticker", "mark", "stamp", "plate")
_KEPT = (
    "The {label} of {thing} {where} reads {tag}", "{thing} {where} has {tag} on its {label}",
    "On {thing} {where} the {label} says {tag}", "Write down that {tag} is the {label} of {thing} {where}",
    "It belongs in {thing} {where}, whose {label} is {tag}",
)  # fmt: skip
_ASK = (
    "What would you do first?", "Is that worth the trouble?", "Who else should know of it?",
    "How long might it take?", "Can it wait until the thaw?", "Would a list help here?", "Do you see a catch in it?",
    "Should we celebrate that?", "What might it cost us?", "Which tools are needed?",
)  # fmt: skip
_ANSWERS = (
    "That sounds like a good plan. Begin with what takes longest, keep the afternoon free for the rest, and tell the "
    "others early, so that nobody waits in vain. If it rains, the indoor half can be done just as well.",
    "I would leave it as it is for now. Most of it sorts itself out within a week, and what remains is easier to see "
    "then. Write the two open points on a card and put it where you pass every day.",
    "It depends on who can come. With two people it is a matter of an hour, alone it takes the better part of a day. "
    "Ask around first, set a time that suits the slowest, and keep something warm to drink at hand.",
)
_STARTS = (
    "Bra", "Dori", "Fen", "Gal", "Hal", "Iri", "Jor", "Kel", "Lun", "Mar", "Nev", "Os", "Pel", "Quin", "Ros", "Tam",
)  # fmt: skip
_ENDS = ("a", "en", "ick", "is", "o", "und", "ette", "wyn", "mir", "ka", "by", "holm", "ster", "vale", "mouth", "ford")
_TAGS = 90_000  # of five digits


@dataclass(frozen=True)
class Note:
    """A message of a person, the detail to remember, and two questions about it."""

    text: str
    tag: str  # five digits
    question: str  # its answer is the tag
    reminder: str  # asks by the names in the note


def note(conversation: str, number: int) -> Note:
    """The note with that number, from 0."""
    chosen = random.Random(f"{conversation}/{number}")  # nosec B311 # the same at each run
    who, name, place = chosen.choice(_WHO), _name(chosen, 1), _name(chosen, 2)
    thing, label, where = chosen.choice(_THING), chosen.choice(_LABEL), number + 101
    tag = str(10_000 + (number * 7_919 + zlib.crc32(conversation.encode())) % _TAGS)
    did, when, so, kept, ask = (chosen.choice(of) for of in (_DID, _WHEN, _SO, _KEPT, _ASK))
    did, kept = did.format(what=chosen.choice(_WHAT)), kept.format(label=label, thing=thing, where=where, tag=tag)
    return Note(
        text=f"{who.capitalize()} {name} from {place} {did} {when}, {so}. {kept[0].upper()}{kept[1:]}. {ask}",
        tag=tag,
        question=f"What was the {label} of {thing} {where}?",
        reminder=f"What was it with {name} from {place}?",
    )


def answer(text: str) -> str:
    """The scripted model's answer to `text`: about 40 words, always the same for the same text."""
    return _ANSWERS[zlib.crc32(text.encode()) % len(_ANSWERS)]


def _name(chosen: random.Random, length: int) -> str:
    """A name of `length` first syllables and an ending.  Syllables early in the lists are far more frequent."""
    starts = (_STARTS[int(len(_STARTS) * chosen.random() ** 2)] for _ in range(length))
    return "".join(starts).capitalize() + _ENDS[int(len(_ENDS) * chosen.random() ** 2)]
