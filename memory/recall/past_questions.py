"""Past questions: a question asked before, or the answer that nothing is known, is no memory.

Both have the words of the same question asked again, so they would stand above the statement that answers it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from memory.languages import text_pattern
from memory.recall.excerpts import LocatedMessage
from models.messages import Message
from search_index import Hit

DENIAL_CHARS = 200  # a longer answer tells something beside what it does not know
QUESTION_SHARE = 0.8  # of a message's characters; the rest may greet
_DENIAL = text_pattern(lambda language: language.denials)
_SENTENCE = re.compile(r"[^.!?。！？\n]++[.!?。！？\s]*+")


def is_question(message: Message) -> bool:
    """Return whether the message only asks."""
    content = message.content
    end = max(content.rfind("?"), content.rfind("？")) + 1
    if not end or len(content) - len(content[end:].lstrip()) < QUESTION_SHARE * len(content):
        return not content
    asked = sum(len(sentence) for sentence in _SENTENCE.findall(content) if sentence.rstrip()[-1:] in ("?", "？"))
    return asked >= QUESTION_SHARE * len(content)


def is_denial(message: Message) -> bool:
    """Return whether the message only says that nothing is known."""
    short = message.role == "assistant" and len(message.content) <= DENIAL_CHARS
    return short and _DENIAL.search(message.content) is not None


def empty_exchanges(window: Mapping[int, LocatedMessage]) -> frozenset[int]:
    """Return the ids of denials, and of the questions directly before them: what came of them was nothing."""
    denied = {
        (located.session_id, located.message.position) for located in window.values() if is_denial(located.message)
    }
    return frozenset(
        message_id
        for message_id, located in window.items()
        if (located.session_id, located.message.position) in denied
        or ((located.session_id, located.message.position + 1) in denied and is_question(located.message))
    )


def statements(hits: Sequence[Hit], window: Mapping[int, LocatedMessage]) -> list[Hit]:
    """Return the hits that tell something; all of them if none does."""
    telling = [hit for hit in hits if not is_question(window[hit.message_id].message)]
    return telling or list(hits)
