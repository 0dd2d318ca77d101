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
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo
from typing import NamedTuple

from memory.languages import LANGUAGES, analysis_in, pattern, vocabulary
from memory.recall.times import TimeRange, time_ranges
from search_index.analysis import MAX_TERM, UNSPACED, Analysis

READ_CHARS = 2000
SMALL_TALK_CHARS = 300  # no longer text is small talk
KEYWORDS_SHOWN = 5  # in a reason
ALONE_WORDS = 3  # words to look for, in a question that says by itself what it is about, or in a talk of something
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
_OWN = pattern(lambda language: language.own)
_REPLIED = pattern(lambda language: language.replied)
_ELSEWHERE = pattern(lambda language: language.elsewhere)
_VAGUE = vocabulary(lambda language: language.vague_nouns)
_ASKS = pattern(lambda language: language.asks)
_SMALL_TALK = pattern(lambda language: language.small_talk)
_OPENING = re.compile(
    rf"\W*(?:(?:{pattern(lambda language: language.padding).pattern})\W+)*(?:{_SMALL_TALK.pattern})", re.IGNORECASE
)
_COURTESIES = vocabulary(lambda language: language.courtesies)
_EMOTICON = re.compile(r"[:;=8xX][-'^]?[)(\]\[DPpOo/\\|*3]+|<3+|[\^>oO;T][_.-]?[\^<oO;T]")
_POSSESSIVE = re.compile(r"^['’]s\b")  # after a time: "yesterday's topic"
_ANSWER = re.compile(r"\W*(?:\d{1,2}|[a-zA-Z]|option \w|number \d)\W*", re.IGNORECASE)  # to a choice that was offered
_ASKING_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")


class Trigger(NamedTuple):
    """What a message says about the past, and why in one short sentence.

    `kind` is "reference" (the past in so many words), "implicit" (it points at something not shown), "plain" (words
    worth looking for), "small_talk", or "nothing" (no words to look for).  The last two do not look back.
    """

    kind: str
    reason: str
    looks_back: bool = True


class RecallPlan(NamedTuple):
    """What to look for, and why: `text` if there is any, else whatever was said at the `times` that a message names.

    `kind` is the trigger's, or what decided instead: "time" (the message names one) or "always".  `share` is how much
    of the budget it may take; 0 for a message that does not look back.

    dangling: it refers to something, and no text in sight says to what.
    latest: it also has no content, so it means the latest conversations unless `text` finds something.
    """

    kind: str
    reason: str
    share: float = 0.0
    text: str = ""
    times: Sequence[tuple[datetime, datetime]] = ()
    dangling: bool = False
    latest: bool = False


def plan_recall(
    message: str, before: Sequence[str], now: datetime, zone: tzinfo, analysis: Analysis, *, always: bool = False
) -> RecallPlan:
    """Whether and how a message looks back; `always` looks for everything that has words to look for.

    `before` are the texts the prompt shows anyway, the newest last.  Days begin in `zone`.
    """
    message = message[:READ_CHARS]
    trigger = classify(message, before, analysis)
    looks_back = always or trigger.looks_back
    times = time_ranges(message, now, zone) if always or trigger.kind != "small_talk" else []
    reasons = [trigger.reason] if looks_back or not times else []
    reason = ", ".join([*reasons, *(f'speaks of "{time.phrase}"' for time in times)])
    if not (looks_back or times):
        return RecallPlan(trigger.kind, reason)
    kind = trigger.kind if trigger.looks_back else "time" if times else "always"
    spans = [(time.after, time.before) for time in times]
    empty = not times and without_content(message, trigger, analysis)
    dangling = (empty or trigger.kind in ("reference", "implicit")) and not _in_sight(message, before, analysis)
    if empty and dangling:
        # "left off" would find a left shoe, and "it does not work" every broken thing; "where do I live" is told.
        text = message if trigger.kind == "implicit" and about(message) else ""
        return RecallPlan(kind, reason, ALL, text, spans, dangling, latest=True)
    if times and _is_vague(keywords(_without(message, times), analysis)):  # "what did we do yesterday?"
        return RecallPlan(kind, reason, ALL, "", spans, dangling)
    asked = asking(message)
    of_past = trigger.kind == "reference" or any(time.phrase in asked for time in times)
    share = ALL if always or of_past or 2 * len(asked) >= len(message) else ALSO_ASKED if asked else UNASKED
    text = asked if len(asked) < len(message) and stands_alone(asked, analysis) else message
    return RecallPlan(kind, reason, share, text, spans, dangling)


def without_content(message: str, trigger: Trigger, analysis: Analysis) -> bool:
    """Return whether a message refers to something without a word that says to what: "What did we decide?"

    A message that only names the person's own project, topic or chat refers to something too.
    """
    words = keywords(message, analysis)
    refers = trigger.kind in ("reference", "implicit") or (
        words and (_OWN.search(message) or _ELSEWHERE.search(message))
    )
    return bool(refers) and _is_vague(words)


def _is_vague(words: Sequence[str]) -> bool:
    return all(word.casefold() in _VAGUE for word in words)


def _in_sight(message: str, before: Sequence[str], analysis: Analysis) -> bool:
    """Return whether the texts `before` may show what a message refers to."""
    if _ELSEWHERE.search(message):
        return False
    words = 0
    for text in reversed(before):
        words += len(keywords(text[-READ_CHARS:], analysis))
        if words >= ALONE_WORDS:
            return True
    return False


def _without(text: str, times: Sequence[TimeRange]) -> str:
    """What a text says beside the times it names."""
    for time in reversed(times):
        text = f"{text[: time.start]} {_POSSESSIVE.sub('', text[time.end :])}"
    return text


def classify(message: str, before: Sequence[str], analysis: Analysis) -> Trigger:
    """Whether `message` looks back.  `before` are the texts the prompt shows anyway, the newest last."""
    text = " ".join(unicodedata.normalize("NFKC", message[:READ_CHARS]).translate(_APOSTROPHES).split())
    if reference := _REFERENCE.search(text):
        return Trigger("reference", f'refers to the past ("{reference[0].strip(" ,.?!")}")')
    if pointer := _POINTER.search(text):
        return Trigger("implicit", f'points at what was said before ("{pointer[0]}")')
    small_talk = _is_small_talk(text, analysis)
    if missing := _missing(text, [one[-READ_CHARS:] for one in before], small_talk, analysis):
        return Trigger("implicit", f'"{missing}" has nothing before it to refer to')
    if small_talk:
        return Trigger("small_talk", "small talk", looks_back=False)
    words = keywords(text, analysis)
    if words and not _ANSWER.fullmatch(text):
        return Trigger("plain", f"has words worth looking for: {', '.join(words[:KEYWORDS_SHOWN])}")
    return Trigger("nothing", "has no words to look for", looks_back=False)


def about(question: str) -> str | None:
    """The role whose words are likely to answer: the person's own if they speak of themselves, else of either."""
    return "user" if _OWN.search(question) and not _REPLIED.search(question) else None


def asking(message: str) -> str:
    """The sentences of a message that ask for something, rather than tell something."""
    sentences = _ASKING_END.split(message.strip())
    return " ".join(sentence for sentence in sentences if "?" in sentence or _ASKS.search(sentence))


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


# -- keywords

_LETTER = f"(?:[^\\W_{UNSPACED}]|[\u0900-\u0963\u0970-\u0dff])"
_TOKEN = re.compile(
    # words, joined by single marks into a compound, as the index joins them; paths and addresses
    rf"(?P<word>{_LETTER}++(?:(?:['’._@&-]|__|::|://|/(?=\w)|(?<=\d)[:,](?=\d)){_LETTER}++)*+(?:\+\+|\#(?!\w))?)|(?P<unspaced>[{UNSPACED}]++)"
)
_NOISE = re.compile(r"\w?[^\w\s]{31,}")  # endless marks and accents, which would make normalising quadratic
_CONTRACTION = re.compile(r"['’](?:s|d|m|re|ve|ll)$", re.IGNORECASE)
_TECHNICAL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}|\d|[._@&:+#/]|\w-\w")  # has what no plain word has
_SENTENCE_END = re.compile(r"[.!?:;\n。！？：；…]")
_IDLE_WORDS = vocabulary(lambda language: language.idle_words)
_TIME_WORDS = vocabulary(lambda language: language.time_words)
_GENERIC_VERBS = vocabulary(lambda language: language.generic_verbs)
_DETERMINERS = vocabulary(lambda language: language.determiners)
_IDLE = pattern(lambda language: language.idle)
_IDLE_LEADING = "".join(language.idle_leading for language in LANGUAGES)
_ENGLISH = analysis_in("en")


def keywords(text: str, analysis: Analysis) -> list[str]:
    """The words worth searching for, in the order of the text, each once, as they stand in it (after NFKC).

    They are nouns, names, technical terms and numbers that have terms in the index, whose `analysis` this is.  A run of
    Chinese gives its pairs of characters, as in the index.
    """
    text = unicodedata.normalize("NFKC", _NOISE.sub(" ", text))
    found: dict[str, str] = {}
    shouting, determined, end = text.isupper(), False, 0
    for match in _TOKEN.finditer(text):
        between, end = text[end : match.start()], match.end()
        if match["unspaced"]:
            for pair in _unspaced(match[0]):
                found.setdefault(pair.casefold(), pair)
            determined = False
            continue
        word = _CONTRACTION.sub("", match[0])[:MAX_TERM]
        lower = word.casefold()
        opens = match.start() == 0 or _SENTENCE_END.search(between) is not None
        name = (word[0].isupper() and not opens and not shouting and word != "I") or bool(_TECHNICAL.search(word))
        idle = lower in _IDLE_WORDS or (lower in _GENERIC_VERBS and not determined)
        determined = lower in _DETERMINERS
        if lower not in _TIME_WORDS and (name or not idle):
            found.setdefault(lower, word)
    # English stop words are left out of texts in any language, since people mix it into theirs.
    return [word for word in found.values() if analysis.terms(word) and (analysis is _ENGLISH or _ENGLISH.terms(word))]


def _unspaced(run: str) -> Iterator[str]:
    """The pairs of characters of what is left of a run without its idle words."""
    kept = _IDLE.sub(lambda match: match[0] if match.groupdict().get("keep") else " ", run)
    for part in kept.split():
        content = part.lstrip(_IDLE_LEADING)
        for at in range(max(len(content) - 1, min(len(content), 1))):
            yield content[at : at + 2]
