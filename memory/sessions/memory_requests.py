"""Requests about memory: messages that ask to be kept out of it, or to forget or remember something.

A message that says "don't remember this" is answered, and stays in its chat until it leaves the prompt.  No summary,
fact, index or other chat has it, nor its reply (tests/test_memory_requests.py).  Of requests to forget, the mini model
says which facts they mean; of a message that asks for both, which no model reads, its own words do.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import aliased

from memory.languages import (
    CLAUSE_END,
    SENTENCE_END,
    TextPattern,
    content_terms,
    pattern,
    shared,
    states,
    text_pattern,
    vocabulary,
)
from memory.quoting import one_line, own_words
from models import REVISED, MessageRow, SessionRow, Transaction
from models.facts import Fact, FactDraft
from models.messages import KEPT_OUT, KEPT_OUT_TEXT, Message, is_kept_out
from search_index.caches import cached
from search_index.spelling import folded

READ_CHARS_MAX = 1_000  # at each end of a message; what stands between them is pasted rather than said

REPEATED = {"assistant": 0.5, "user": 0.85}
"""By the role of a message: it repeats a fact if it has more than this share of the fact's words."""
REPEATED_WORDS_MIN = 3  # of a fact that a message repeats, or all that it has

_FIGURE = re.compile(r"\d+")
_REMEMBER = text_pattern(lambda language: language.remember)
_KEEP_OUT = text_pattern(lambda language: language.keep_out)
_FORGET = text_pattern(lambda language: language.forget)
_EVERYTHING = pattern(lambda language: language.everything)
_VERBS = vocabulary(lambda language: language.generic_verbs)  # what somebody "knows", or was "told"


def asks_to_keep_out(text: str) -> bool:
    """Return whether a person's message asks not to be remembered itself, in their own words."""
    return _asks(_KEEP_OUT, text)


def asks_to_forget(text: str) -> bool:
    """Return whether a person's message asks to forget something said before, in their own words."""
    return _asks(_FORGET, text)


def requests_to_forget(text: str) -> list[str]:
    """Return the words that a message asks to forget: outside of quotations, parts of each sentence that asks."""
    parts = []
    for sentence in _own_sentences(text):
        if match := _FORGET.search(sentence):
            before = sentence[: match.start()]
            rest = sentence[match.end() :]
            parts += CLAUSE_END.split(rest if any(map(str.isalnum, rest)) else before)
    return parts


def _asks_to_forget_everything(text: str) -> bool:
    """Return whether a message asks to forget all that is known: "forget everything", but not "forget it, that's all".

    The clause that asks has the word, or a later one begins with it.
    """
    for sentence in _own_sentences(text):
        if match := _FORGET.search(sentence):
            has_rest = any(map(str.isalnum, sentence[match.end() :]))
            clause, *later = CLAUSE_END.split(sentence[match.start() :] if has_rest else sentence)
            if _EVERYTHING.search(clause) or any(_EVERYTHING.match(part.strip()) for part in later):
                return True
    return False


def unknown_to_forget(text: str, known: Iterable[str]) -> str:
    """Return the words of a message for the one thing that it asks to forget; "" if a known text says that."""
    asked = [words for words in requests_to_forget(text) if content_terms(words)]
    if len(asked) != 1 or any(states(content_terms(fact), content_terms(asked[0])) for fact in known):
        return ""
    return asked[0]


def named_to_forget(text: str, known: Iterable[Fact]) -> list[int]:
    """Return the ids of the known facts that say all words and figures of something that a message asks to forget."""
    parts = {part: terms for part in requests_to_forget(text) if (terms := content_terms(part))}
    said = ((fact.id, MessageWords("user", f"{fact.text} {fact.quote}")) for fact in known)
    return [fact_id for fact_id, words in said if any(words.has_all(part, parts[part]) for part in parts)]


def may_be_asked_to_forget(
    requests: Iterable[str], chosen: Collection[Fact], known: Collection[Fact], session_id: str
) -> set[int]:
    """Return the ids of the known facts that messages may ask to forget.

    They share a word with what a message asks to forget. Where none does, the facts `chosen` by the mini model may be
    meant in other words ("my salary", "Earns 50,000"), unless it chose most of all. A request that names nothing
    ("forget it") means the facts of its own session, and one to forget everything means all.
    """
    words = {fact: content_terms(f"{fact.text} {fact.quote}") for fact in known}
    found = set[int]()
    for text in requests:
        request = ", ".join(requests_to_forget(text))
        words_asked = (word for word in _EVERYTHING.sub(" ", request).split() if word not in _VERBS)
        asked = content_terms(" ".join(words_asked))
        if named := {fact.id for fact, terms in words.items() if shared(asked, terms)}:
            found |= named
        elif _asks_to_forget_everything(text):
            found |= {fact.id for fact in known}
        elif asked and len(chosen) <= max(1, len(known) // 2):
            found |= {fact.id for fact in chosen}
        else:
            found |= {fact.id for fact in known if fact.session_id == session_id}
    return found


def words_beside_requests(text: str) -> str:
    """Return the words beside a request to forget: of later clauses, and of other sentences."""
    others = []
    for sentence in _own_sentences(text):
        if match := _FORGET.search(sentence):
            rest = sentence[match.end() :].lstrip(" ,:，：")
            end = CLAUSE_END.search(rest)
            sentence = rest[end.end() :] if end is not None else ""
        others.append(sentence)
    return "\n".join(others)


def requests_to_remember(text: str) -> list[str]:
    """Return the words that a message asks to remember: outside of quotations, the rest of each sentence that asks."""
    parts = []
    for sentence in _own_sentences(text):
        match = _REMEMBER.search(sentence)
        if match and sentence.rstrip()[-1:] not in "?？" and any(map(str.isalnum, sentence[match.end() :])):
            parts.append(sentence[match.end() :].strip(" ,:，：\n"))
    return parts


def drafts_asked_for(messages: Iterable[Message], drafts: Collection[FactDraft]) -> list[FactDraft]:
    """Return drafts of what the person asks to remember, where the mini model has drafted nothing of it."""
    missing = []
    for message in messages:
        for quote in requests_to_remember(message.content) if message.role == "user" else ():
            words = content_terms(quote)
            others = (content_terms(f"{old.text} {old.quote}") for old in drafts if old.source == message.position)
            if not any(states(other, words) for other in others):
                text = one_line(quote).rstrip(".!。")
                draft = FactDraft(text[:1].upper() + text[1:], message.position, quote, importance=4, scope="user")
                missing.append(draft)
    return missing


def without_kept_out(messages: Iterable[Message]) -> list[Message]:
    """Return the messages as a mini model may read them: those that are kept out without their words."""
    return [
        message._replace(content=KEPT_OUT_TEXT, name=None, extra=KEPT_OUT) if is_kept_out(message.extra) else message
        for message in messages
    ]


def with_replies(tx: Transaction, message_ids: Collection[int]) -> Sequence[MessageRow]:
    """Return messages of a person with the replies to them, in order."""
    asked, other = aliased(MessageRow), aliased(MessageRow)
    of_session = asked.session_id == MessageRow.session_id, asked.branch == MessageRow.branch
    until = select(other.id).where(other.session_id == asked.session_id, other.branch == asked.branch)
    until = until.where(other.role == "user", other.position.between(asked.position + 1, MessageRow.position))
    replies = asked.id.in_(message_ids), asked.position <= MessageRow.position, ~until.exists()
    query = select(MessageRow).join(asked, and_(*of_session)).where(*replies)
    return tx.scalars(query.order_by(MessageRow.session_id, MessageRow.position)).unique().all()


@dataclass(frozen=True, eq=False)
class MessageWords:
    """Words of a message, which are read once for all facts that it may repeat."""

    role: str
    content: str

    @cached_property
    def _folded(self) -> str:
        return folded(self.content)

    @cached_property
    def _figures(self) -> frozenset[str]:
        return frozenset(_FIGURE.findall(self.content))

    @cached_property
    def _terms(self) -> frozenset[str]:
        return content_terms(self.content)

    def has_figures(self, text: str) -> bool:
        """Return whether the message has all figures of a text."""
        return self._figures.issuperset(_FIGURE.findall(text))

    def has_all(self, text: str, terms: frozenset[str]) -> bool:
        """Return whether the message has all figures and terms of a text."""
        return self.has_figures(text) and states(self._terms, terms, share=1)

    def repeats(self, text: str, quote: str) -> bool:
        """Return whether the message has most words of a fact's text or quote.

        What the person says again has the figures of the quote, too, and so has what repeats but two words.
        """
        with_figures = self.has_figures(quote)
        for part in (text, quote):
            words = _whole_words(part)
            if not words or (len(words) == 1 and not self.has_figures(part)):
                continue
            if not with_figures and (self.role == "user" or len(words) < REPEATED_WORDS_MIN):
                continue
            least = min(len(words), max(REPEATED_WORDS_MIN, int(REPEATED[self.role] * len(words)) + 1))
            # The beginnings of words first: to take a message's terms is slow.
            if sum(word[:4] in self._folded for word in words) >= least and shared(words, self._terms) >= least:
                return True
        return False


def find_repeating(tx: Transaction, owner_id: int, facts: Iterable[tuple[int, str, str]]) -> list[int]:
    """Return the ids of an owner's messages that repeat one of these facts, which were stated before.

    Replaced messages count as later ones: if they are restored, they are read anew.
    facts: of each the id of the message that stated it (0: none), its text and its quote.
    """
    stated = list(facts)
    is_later = or_(MessageRow.id > min(source for source, *_ in stated), MessageRow.branch != 0)
    later = select(MessageRow.id, MessageRow.branch, MessageRow.role, MessageRow.content).where(is_later)
    later = later.where(MessageRow.owner_id == owner_id, MessageRow.erased_at.is_(None), MessageRow.role.in_(REPEATED))
    messages = ((row.id, row.branch, MessageWords(row.role, row.content)) for row in tx.execute(later))
    return [
        message_id
        for message_id, branch, message in messages
        if any((branch or message_id > source) and message.repeats(text, quote) for source, text, quote in stated)
    ]


def find_saying(tx: Transaction, owner_id: int, text: str, requests: Collection[int]) -> list[int]:
    """Return the ids of messages that repeat a text before requests; none if no other message of the person's says it.

    Such a message has the text as it is, or a clause with its content words: languages order them otherwise after
    "forget that". It says it beside a request to forget: "Remove my name from the letter" may come twice.
    """
    repeating = [found for found in find_repeating(tx, owner_id, [(0, text, text)]) if found <= max(requests)]
    said = select(MessageRow.content).where(MessageRow.id.in_({*repeating} - {*requests}), MessageRow.role == "user")
    words = one_line(text).casefold()
    terms = content_terms(text)
    contents = (words_beside_requests(content) if asks_to_forget(content) else content for content in tx.scalars(said))
    is_said = any(
        words in one_line(content).casefold() or terms in map(content_terms, CLAUSE_END.split(content))
        for content in contents
    )
    return repeating if is_said else []


@cached(2_048)
def _whole_words(text: str) -> frozenset[str]:
    """Return the content words of a text, without the parts of compounds; none if there are too few to know it by.

    One is enough beside a figure, which whoever repeats the text says too.
    """
    terms = content_terms(text)
    words = frozenset(term for term in terms if not any(term != other and term in other for other in terms))
    return words if len(words) > 1 or _FIGURE.search(text) else frozenset()


def keep_out(row: SessionRow, messages: Sequence[MessageRow], now: datetime) -> None:
    """Keep exchanges of a session out of memory, and hide them but for the newest while its last reply is to come."""
    active = [message for message in messages if not message.branch]
    is_open = False
    if active and (last := active[-1]).position == row.message_count:
        is_answered = last.role == "user" or (last.role == "assistant" and "tool_calls" not in (last.extra or {}))
        is_open = not is_answered or (row.lease_until or now) > now
    question = max((message.position for message in active if message.role == "user"), default=0)
    for message in messages:
        message.extra = {**(message.extra or {}), **KEPT_OUT}
        message.indexed_in = message.indexed_in and REVISED
        if message.branch or not is_open or message.position < question:
            message.hidden_at = message.hidden_at or now


def _asks(request: TextPattern, text: str) -> bool:
    """Return whether a text has a request, and not only where it quotes: code and mails of others ask for much."""
    return request.search(_ends(text)) is not None and request.search(_ends(own_words(text))) is not None


def _own_sentences(text: str) -> list[str]:
    """Return the sentences of a message outside of quotations, those at its ends if it is long."""
    return SENTENCE_END.split(_ends(own_words(text)))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * READ_CHARS_MAX else f"{text[:READ_CHARS_MAX]}\n{text[-READ_CHARS_MAX:]}"
