"""Relevance: how near the best hit must be to a message before it is shown unasked.

A score depends on the question: it orders hits, and does not say how good they are.  A gate compares the share of the
message's words that a hit has, and its nearness in meaning, which `search_index.calibration` makes comparable for every
embedder.  docs/performance.md shows which answers and which junk other limits would let through.

A question asked before, or the answer that nothing is known, is no memory: both have the words of the same question
asked again, so they would stand above the statement that answers it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory.languages import QUESTION_MARKS, split_question, text_pattern
from memory.recall.excerpts import LocatedMessage
from memory.recall.triggers import POINTING, asking, role_meant
from models.messages import Message
from search_index import SIGNS, Hit, Query

RELEVANT_SHARE = 0.55  # of the best hit's score: beside a clear match, a message that shares a common word is noise
WORDS_WEIGHT = 1.5  # of the share of words, where it is added to nearness
A_WORD = 0.1  # share of the words; a hit with less has none of them
NEAR_ENOUGH = 0.6  # nearness of a hit without the message's words in it or beside it
DENIAL_CHARS = 200  # a longer answer tells something beside what it does not know
BARE_CHARS = 40  # a longer reply tells something beside that it agrees
ADDRESS_WORDS_MAX = 2  # before a question, of whom it addresses
QUESTION_SHARE = 0.8  # of a message's characters; the rest may greet
VAGUE = "vague"  # kind of a message without content
_DENIAL = text_pattern(lambda language: language.denials)
_HOW_TO = text_pattern(lambda language: language.how_tos)
_SENTENCE = re.compile(r"[^.!?。！？؟।\n]++[.!?。！？؟।\s]*+")


class Gate(NamedTuple):
    """Least share of the message's words, and least nearness in meaning: one hit must reach either.

    dated: a hit of a time that the message names opens it as well.
    both: if set, what nearness and WORDS_WEIGHT times the share must come to instead, where a hit has a word of the
    message and meaning is compared. Each alone is often chance: a common word is in some message, and of many messages
    some is near to anything. So 0.4 of the words and a nearness of 0.7 come to 1.3: enough for PERSONAL, not for OTHER.
    """

    words: float
    near: float
    both: float = 0.0
    dated: bool = True

    def is_open(self, hits: Sequence[Hit]) -> bool:
        """Return whether one of the hits is near enough, or is of an entity that the message names."""
        if self.both and any(hit.near for hit in hits) and any(hit.own >= A_WORD for hit in hits):
            is_near = any(hit.near + WORDS_WEIGHT * hit.own >= self.both for hit in hits)
        else:
            is_near = any(hit.own >= self.words or hit.near >= self.near for hit in hits)
        return is_near or any((self.dated and hit.why.get("time")) or hit.why.get("linked") for hit in hits)


REFERRING = Gate(0.5, 0.9)
"""For a message that refers to something earlier: the widest gate."""
PERSONAL = REFERRING._replace(both=1.25)
"""For a message about the person, or about somebody who spoke."""
OTHER = Gate(0.6, 1.3, both=1.65)
"""For other messages: a question that anybody could ask a model is seldom about the past."""
FOREIGN_PASSAGE = Gate(0.28, 0.9)
FOREIGN_QUESTION = Gate(0.28, math.inf)
FOREIGN = Gate(0.5, math.inf)
FOREIGN_PERSONAL = Gate(0.15, math.inf)
FOREIGN_WIDEST = Gate(0.15, 0.9)
FOREIGN_SUMMARY = Gate(0.6, math.inf)
"""The same for a message in another language than the search: of the content words of a question one in three counts,
since static vectors find its language rather than its meaning, and one in six of a question that refers to something
earlier or is about the person; who adds a document means to ask about it."""
BY_MEANING = Gate(2.0, 0.9)
"""For a message of generic words, such as "work" or "old", which are in many messages."""
JUDGED = Gate(0.5, 0.7)
"""Before the mini model re-ranks the hits, since it may say that none of them fits."""


def gate_for(
    hits: Sequence[Hit],
    query: Query,
    gate_kind: str = "",
    *,
    is_question: bool = True,
    is_passage: bool = False,
    is_foreign: bool = False,
) -> Gate:
    """Return the gate of a message, for whose query these were found.

    The first row that fits decides; one without a gate for the language of the message fits no message in it:

        message                                     gate          in another language than the search
        of generic words (VAGUE)                    BY_MEANING    BY_MEANING
        whose best hit is of a document             PERSONAL      FOREIGN_PASSAGE
        that asks for nothing                                     FOREIGN
        that points at an earlier one (POINTING)    REFERRING     FOREIGN_PERSONAL
        about the person or somebody who spoke      PERSONAL      FOREIGN_PERSONAL
        any other                                   OTHER         FOREIGN_QUESTION

    gate_kind: the kind of the message, or VAGUE.
    is_question: the message asks for something; else it opens no gate by a time that it names.
    """
    if gate_kind == VAGUE:
        return BY_MEANING
    if query.about is not None:  # the person speaks of themselves (`role_meant`)
        is_personal = _HOW_TO.search(asking(query.text) or query.text) is None
    else:  # the part `speaker` is of somebody who is named
        is_personal = any(hit.why.get("speaker") for hit in hits)
    points_back = gate_kind in POINTING
    if is_passage:
        gate = FOREIGN_PASSAGE if is_foreign else PERSONAL
    elif is_foreign and not is_question:
        gate = FOREIGN
    elif is_foreign:
        gate = FOREIGN_PERSONAL if points_back or is_personal else FOREIGN_QUESTION
    elif points_back:
        gate = REFERRING
    else:
        gate = PERSONAL if is_personal else OTHER
    return gate._replace(dated=points_back or is_question)  # "I was in Oslo yesterday" asks for nothing of that day


def widest_gate(gate_kind: str, *, is_foreign: bool) -> Gate:
    """Return a gate that is open for all hits for which `gate_for` gives an open one."""
    if gate_kind == VAGUE:
        return BY_MEANING
    return FOREIGN_WIDEST if is_foreign else REFERRING


def relevant(hits: Sequence[Hit], *, is_foreign: bool = False) -> list[Hit]:
    """Return the best hit, and the other hits that are relevant beside it: of a foreign message by words alone."""
    least = RELEVANT_SHARE * hits[0].score if hits else 0.0
    clear = [hit for hit in hits[1:] if hit.score >= least]
    near = NEAR_ENOUGH if not is_foreign else math.inf
    return [*hits[:1], *(hit for hit in clear if hit.near >= near or any(map(hit.why.get, SIGNS)))]


# -- past questions


def is_mere_question(message: Message) -> bool:
    """Return whether the message only asks."""
    content = message.content
    end = max(map(content.rfind, QUESTION_MARKS)) + 1
    if not end:
        return not content
    if len(content) - len(content[end:].lstrip()) < QUESTION_SHARE * len(content):
        return False
    asked = sum(len(_asking_part(sentence)) for sentence in _SENTENCE.findall(content))
    return asked >= QUESTION_SHARE * len(content)


def _asking_part(sentence: str) -> str:
    """Return the part of a sentence that asks; not what it tells before, but for an address ("Hey Recap, ...")."""
    if not sentence.rstrip().endswith(QUESTION_MARKS):
        return ""
    *before, asked = split_question(sentence)
    tells = before and (role_meant(before[0]) is not None or len(before[0].split()) > ADDRESS_WORDS_MAX)
    return asked if tells else sentence


def empty_exchanges(loaded: Mapping[int, LocatedMessage]) -> frozenset[int]:
    """Return the ids of denials, and of the questions directly before them: what came of them was nothing."""
    denied: set[tuple[int, int]] = set()
    for message, session_row_id, _ in loaded.values():
        is_short = message.role == "assistant" and len(message.content) <= DENIAL_CHARS
        if is_short and _DENIAL.search(message.content) is not None:
            denied.add((session_row_id, message.position))
    return frozenset(
        message_id
        for message_id, located in loaded.items()
        if (located.session_row_id, located.message.position) in denied
        or ((located.session_row_id, located.message.position + 1) in denied and is_mere_question(located.message))
    )


def without_bare_replies(hits: Sequence[Hit], loaded: Mapping[int, LocatedMessage]) -> list[Hit]:
    """Return the hits without short replies that have no word of the message: only what is beside them was found."""
    replies = ((message_id, near.message) for message_id, near in loaded.items() if near.message.role == "assistant")
    short = {message_id for message_id, reply in replies if len(reply.content) <= BARE_CHARS}
    return [hit for hit in hits if hit.message_id not in short or hit.own >= A_WORD or hit.near >= NEAR_ENOUGH]


def without_questions(hits: Sequence[Hit], loaded: Mapping[int, LocatedMessage]) -> list[Hit]:
    """Return the hits that tell something; all of them if none does."""
    telling = [hit for hit in hits if not is_mere_question(loaded[hit.message_id].message)]
    return telling or list(hits)
