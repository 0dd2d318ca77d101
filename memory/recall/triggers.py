"""When to look back, for what, and how much: read from the words of a message alone.

Looking back costs a search and tokens, so small talk never does, nor a message without any words to look for.
Everything else does: in so many words ("what did we discuss"), by a word that points at the past ("you suggested",
"she" with nobody before it), or because past words may matter to it.  When in doubt a message looks back, since a
search too many costs little and a past that was missed costs the person's trust.

Guarantee: pure and deterministic, and linear: of a message the first `READ_CHARS` characters are read, of each text
before it the last `READ_CHARS`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from memory.languages import LANGUAGES, pattern
from memory.recall.keywords import keywords
from memory.recall.times import TimeRange, time_ranges
from search_index.analysis import Analysis

READ_CHARS = 2000
SMALL_TALK_CHARS = 300  # no longer text is small talk
KEYWORDS_SHOWN = 5  # in a reason
ALONE_WORDS = 3  # words to look for, in a question that says by itself what it is about
NEAR = 8  # words of a message in which a pronoun is what it is about

# Shares of RECALL_TOKENS.  What is recalled stands after the part of a prompt that providers bill as cached, so a
# message that tells more than it asks gets less.  On LoCoMo, after other words, its questions find more than all of it.
ALL = 1.0
ALSO_ASKED = 0.4
UNASKED = 1 / 6  # it asks for nothing, but what is recalled may matter

_APOSTROPHES = str.maketrans("\u2018\u2019\u02bc\u2032", "''''")
_REFERENCE = pattern(lambda language: language.references)
_POINTER = pattern(lambda language: language.pointers)
_PERSON = pattern(lambda language: language.persons)
_PEOPLE = pattern(lambda language: language.people)
_THING = pattern(lambda language: language.things)
_ASKS = pattern(lambda language: language.asks)
_SMALL_TALK = pattern(lambda language: language.small_talk)
_OPENING = re.compile(
    rf"\W*(?:(?:{pattern(lambda language: language.padding).pattern})\W+)*(?:{_SMALL_TALK.pattern})", re.IGNORECASE
)
_COURTESIES = frozenset().union(*(language.courtesies for language in LANGUAGES))
_EMOTICON = re.compile(r"[:;=8xX][-'^]?[)(\]\[DPpOo/\\|*3]+|<3+|[\^>oO;T][_.-]?[\^<oO;T]")
_ANSWER = re.compile(r"\W*(?:\d{1,2}|[a-zA-Z]|option \w|number \d)\W*", re.IGNORECASE)  # to a choice that was offered
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


@dataclass(frozen=True)
class Trigger:
    """What a message says about the past, and why in one short sentence.

    `kind` is "reference" (the past in so many words), "implicit" (it points at something not shown), "plain" (words
    worth looking for), "small_talk", or "nothing" (no words to look for).  The last two do not look back.
    """

    kind: str
    look_back: bool
    reason: str


@dataclass(frozen=True)
class LookBack:
    """What to look for, and why: `text` if there is any, else whatever was said at the `times` that a message names.

    `share` is how much of the budget it may take; 0 for a message that does not look back.
    """

    reason: str
    share: float = 0.0
    text: str = ""
    times: Sequence[tuple[datetime, datetime]] = ()


def decide(
    message: str, before: Sequence[str], now: datetime, zone: tzinfo, analysis: Analysis, *, always: bool = False
) -> LookBack:
    """Whether and how a message looks back; `always` looks for everything that has words to look for.

    `before` are the texts the prompt shows anyway, the newest last.  Days begin in `zone`.
    """
    trigger = read(message, before, analysis)
    times = time_ranges(message, now, zone) if always or trigger.kind != "small_talk" else []
    reasons = [trigger.reason] if trigger.look_back or not times else []
    reason = ", ".join([*reasons, *(f'speaks of "{time.phrase}"' for time in times)])
    if not (trigger.look_back or times or always):
        return LookBack(reason)
    asked = asking(message)
    only_times = bool(times) and not keywords(_without(message, times), analysis)  # "what did we do yesterday?"
    of_past = only_times or trigger.kind == "reference" or any(time.phrase in asked for time in times)
    share = ALL if always or of_past or 2 * len(asked) >= len(message) else ALSO_ASKED if asked else UNASKED
    text = "" if only_times else asked if stands_alone(asked, analysis) else message
    if not only_times and not analysis.query_terms(text):
        return LookBack(f"{reason}, but has no words to look for")
    return LookBack(reason, share, text, [(time.after, time.before) for time in times])


def _without(text: str, times: Sequence[TimeRange]) -> str:
    """What a text says beside the times it names."""
    for time in reversed(times):
        text = f"{text[: time.start]} {text[time.end :]}"
    return text


def read(message: str, before: Sequence[str], analysis: Analysis) -> Trigger:
    """Whether `message` looks back.  `before` are the texts the prompt shows anyway, the newest last."""
    text = " ".join(unicodedata.normalize("NFKC", message[:READ_CHARS]).translate(_APOSTROPHES).split())
    if reference := _REFERENCE.search(text):
        return Trigger("reference", True, f'refers to the past ("{reference[0].strip(" ,.?!")}")')
    small_talk = _is_small_talk(text, analysis)
    if pointer := _POINTER.search(text):
        return Trigger("implicit", True, f'points at what was said before ("{pointer[0]}")')
    missing = _missing(text, [one[-READ_CHARS:] for one in before], small_talk, analysis)
    if missing:
        return Trigger("implicit", True, f'"{missing}" has nothing before it to refer to')
    if small_talk:
        return Trigger("small_talk", False, "small talk")
    words = keywords(text, analysis)
    if words and not _ANSWER.fullmatch(text):
        return Trigger("plain", True, f"has words worth looking for: {', '.join(words[:KEYWORDS_SHOWN])}")
    return Trigger("nothing", False, "has no words to look for")


def asks(message: str) -> bool:
    """Whether a message asks for something, rather than tells something."""
    said = message[:READ_CHARS]
    return "?" in said or _ASKS.search(said) is not None


def asking(message: str) -> str:
    """The sentences of a message that ask for something."""
    return " ".join(sentence for sentence in _SENTENCE_END.split(message[:READ_CHARS].strip()) if asks(sentence))


def stands_alone(question: str, analysis: Analysis) -> bool:
    """Whether a question can be understood without what was told beside it."""
    if len(analysis.query_terms(question)) < ALONE_WORDS:
        return False
    pronouns = filter(None, (_PERSON.search(question), _THING.search(question)))
    return all(keywords(question[: pronoun.start()], analysis) for pronoun in pronouns)


def _is_small_talk(text: str, analysis: Analysis) -> bool:
    """Whether a text begins with small talk and has no other content; emoji alone are small talk too."""
    if len(text) > SMALL_TALK_CHARS:
        return False
    if not any(char.isalnum() for char in _EMOTICON.sub(" ", text)):
        return _EMOTICON.search(text) is not None or any(unicodedata.category(char) in ("So", "Sk") for char in text)
    if not _OPENING.match(text):
        return False
    return all(word.casefold() in _COURTESIES for word in keywords(_SMALL_TALK.sub(" ", text), analysis))


def _missing(text: str, before: Sequence[str], small_talk: bool, analysis: Analysis) -> str:
    """The pronoun a short text is about, if nobody and nothing before it can be meant; in small talk "that" points
    at nothing."""
    if text.count(" ") >= NEAR:
        return ""
    person = _PERSON.search(text)
    if person and not any(_PEOPLE.search(earlier) for earlier in (text[: person.start()], *before)):
        return person[0]
    thing = None if small_talk else _THING.search(text)
    if thing is None or text.count(" ", thing.end()) > 3:
        return ""
    return "" if any(keywords(one, analysis) for one in (text[: thing.start()], *before)) else thing[0]
