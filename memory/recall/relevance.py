"""Relevance: how near the best hit must be to a message before it is shown unasked.

A score depends on the question: it orders hits, and does not say how good they are.  A gate compares the share of the
message's words that a hit has, and its nearness in meaning, which `search_index.calibration` makes comparable for every
embedder.  docs/performance.md shows which answers and which junk other limits would let through.

A question asked before, or the answer that nothing is known, is no memory: both have the words of the same question
asked again, so they would stand above the statement that answers it.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from memory.languages import QUESTION_MARKS, split_question, text_pattern
from memory.recall.excerpts import LocatedMessage
from memory.recall.triggers import UNASKED, SearchPlan, asking, role_meant
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
PERSONAL = REFERRING._replace(both=1.25)
OTHER = Gate(0.6, 1.3, both=1.65)
BY_MEANING = Gate(2.0, 0.9)  # generic words, such as "work" or "old", are in many messages
JUDGED = Gate(0.5, 0.7)  # before the mini model re-ranks the hits, since it may say that none of them fits
FOREIGN_SUMMARY = Gate(0.6, math.inf)  # of a summary in a line, for a message in another language than the search

GATES = {
    "document": PERSONAL,  # the best hit is of a document: who adds one means to ask about it
    "reference": REFERRING,  # the message points at an earlier one
    "personal": PERSONAL,  # it is about the person, or about somebody who spoke
    "other": OTHER,  # a question that anybody could ask a model is seldom about the past
}
FOREIGN_GATES = {
    "document": Gate(0.28, 0.9),
    "statement": Gate(0.5, math.inf),  # the message asks for nothing
    "reference": Gate(0.15, math.inf),
    "personal": Gate(0.15, math.inf),
    "other": Gate(0.28, math.inf),
}
"""Gates of a message in another language than the search: for it static vectors find its language rather than its
meaning. Of its content words one in three counts, and one in six if it points at an earlier one or is personal."""


def possible_gates(plan: SearchPlan, *, is_foreign: bool) -> Collection[Gate]:
    """Return the gates of which `gate_for` chooses one, by what is found."""
    if plan.conversation_place:  # the message has generic words alone
        return [BY_MEANING]
    return (FOREIGN_GATES if is_foreign else GATES).values()


def gate_for(
    plan: SearchPlan, hits: Sequence[Hit], query: Query, *, is_passage: bool = False, is_foreign: bool = False
) -> Gate:
    """Return the gate of the message with this plan, by the first row of GATES or FOREIGN_GATES that fits.

    hits: found for its query, the best first. is_passage: the best one is of a document.
    """
    gates = FOREIGN_GATES if is_foreign else GATES
    asks = plan.budget_share > UNASKED
    if plan.conversation_place:
        gate = BY_MEANING
    elif is_passage:
        gate = gates["document"]
    elif is_foreign and not asks:
        gate = gates["statement"]
    elif plan.points_back:
        gate = gates["reference"]
    else:
        gate = gates["personal" if _is_personal(hits, query) else "other"]
    return gate._replace(dated=plan.points_back or asks)  # "I was in Oslo yesterday" asks for nothing of that day


def _is_personal(hits: Sequence[Hit], query: Query) -> bool:
    """Return whether a query is about the person who speaks, or about somebody who is named and spoke."""
    if query.about is not None:  # the person speaks of themselves (`role_meant`)
        return _HOW_TO.search(asking(query.text) or query.text) is None
    return any(hit.why.get("speaker") for hit in hits)


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
    least = QUESTION_SHARE * len(content)
    if len(content) - len(content[end:].lstrip()) < least:
        return False
    questions = [sentence for sentence in _SENTENCE.findall(content) if sentence.rstrip().endswith(QUESTION_MARKS)]
    return sum(map(len, questions)) >= least and sum(len(_asking_part(question)) for question in questions) >= least


def _asking_part(sentence: str) -> str:
    """Return the part of a question that asks; not what it tells before, but for an address ("Hey Recap, ...")."""
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
