"""Instructions learned from talk: what the person asks of every later reply, as the call for the summary reads it.

Invariant: one rests on the person's own words, which ask for something lasting, and repeats nothing that the assistant
said or the person quoted (test_learned_instructions).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

from memory import instructions
from memory.engine import Engine
from memory.knowledge.grounding import Ungrounded, check_own_words
from memory.languages import CLAUSE_END, LANGUAGES, SENTENCE_END, TextPattern, alternatives, text_pattern
from memory.quoting import own_words
from models import OwnerRow, Transaction
from models.facts import InstructionDraft
from models.messages import Message

TEXT_CHARS_MAX = 300  # of one
_LASTING = text_pattern(attrgetter("lasting"))
_BY_LANGUAGE = [  # of each language words for what lasts, and words to the assistant
    tuple(TextPattern(alternatives(part, [language])) for part in (attrgetter("lasting"), attrgetter("addressed")))
    for language in LANGUAGES
    if language.lasting
]
_STANDING = text_pattern(lambda language: language.standing)


def may_be_in(engine: Engine, messages: Iterable[Message]) -> bool:
    """Return whether the mini model is asked about these messages."""
    return engine.settings.feedback != "off" and any(map(asks_for_lasting, messages))


def propose(
    engine: Engine, tx: Transaction, session: Any, drafts: Sequence[InstructionDraft], messages: Sequence[Message]
) -> None:
    """Propose the drafts that rest on messages which were not read before, to the person or the space of a session."""
    if not drafts or not may_be_in(engine, messages):
        return
    unread = (message for message in messages if message.position > session.facts_through)
    sources = {message.position: message for message in unread if asks_for_lasting(message)}
    others = [message.content for message in messages if message.role != "user"]
    learned = []
    for draft in drafts:
        source = sources.get(draft.source)
        if source is None or not 0 < len(draft.text) <= TEXT_CHARS_MAX:
            continue
        own = own_words(source.content)
        with suppress(Ungrounded):
            check_own_words(draft.text, draft.quote, own, [*others, source.content.replace(own, " ")])
            learned.append((draft.text, draft.quote, source.id))
    if learned and (owner := tx.get_one(OwnerRow, session.owner_id)).is_named:
        instructions.learn(engine, tx, owner, learned)


def asks_for_lasting(message: Message) -> bool:
    """Return whether a message may ask for something of every later reply; the mini model tells whether it does.

    A sentence does that says "from now on" or "never" to the assistant: "from now on I work nights" does not.
    """
    is_read = message.role == "user" and message.remembered
    sentences = SENTENCE_END.split(own_words(message.content)) if is_read else ()
    return any(
        any(map(_STANDING.match, (sentence, *CLAUSE_END.split(sentence))))
        or (_LASTING.search(sentence) and any(all(words.search(sentence) for words in pair) for pair in _BY_LANGUAGE))
        for sentence in sentences
    )
