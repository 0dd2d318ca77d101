"""Overview: what matters now about a person, in a few sentences, each with the facts and summaries that it rests on.

Invariants [test_overview, test_erasing]:
- When a source is erased, its sentences go with it from every version; when it holds no longer, from the newest one.
- A prompt shows whole sentences, at most OVERVIEW_TOKENS of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, select

from memory import tokens
from memory.knowledge.grounding import stems
from memory.llm.mini_model import INTEGER, TEXT, list_of, object_of
from memory.quoting import escape, one_line
from memory.store import documents
from models import FactRow, ItemRow, MessageRow, SessionRow, Transaction
from models.overview import Sentence
from models.store import OWN, Item, Put

NAMESPACE, KEY = (OWN, "overview"), "overview"
OVERVIEW_TOKENS = 150  # of the sentences in a prompt's prefix

_PLACE = {"type": "array", "prefixItems": [TEXT, INTEGER], "minItems": 2, "maxItems": 2}
_SENTENCES = list_of(object_of(text=TEXT, facts=list_of(INTEGER), summaries=list_of(_PLACE), author=TEXT))
SHAPE = object_of(sentences=_SENTENCES, removed=_SENTENCES, read=TEXT)

Value = Mapping[str, Any]


def sentence_line(sentence: Sentence) -> str:
    return f"- {escape(one_line(sentence.text))}"


def fitting(sentences: Iterable[Sentence]) -> tuple[Sentence, ...]:
    """Return the first sentences that have at most OVERVIEW_TOKENS together."""
    all_sentences = tuple(sentences)
    lines, _ = tokens.fit_budget(OVERVIEW_TOKENS, map(sentence_line, all_sentences))
    return all_sentences[: len(lines)]


@dataclass(frozen=True)
class OverviewBlock:
    """Overview as a prompt's prefix shows it."""

    item_id: int = 0
    version: int = 0
    sentences: tuple[Sentence, ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Any) -> OverviewBlock:
        """Return the block of an item's version. row: its `item_id`, `version`, `value` and `written_at`."""
        shown = fitting(map(Sentence.of, row.value["sentences"]))
        lines = (f"As of {row.written_at:%Y-%m-%d}:", *map(sentence_line, shown)) if shown else ()
        return cls(row.item_id, row.version, shown, lines)


# -- sentences whose source is gone; in the caller's transaction


def of_owners(messages: Select[int]) -> ColumnElement[bool]:
    """Return the condition for the overviews of those who own these messages."""
    owners = select(MessageRow.owner_id).where(MessageRow.id.in_(messages))
    return and_(ItemRow.namespace == documents.join_namespace(NAMESPACE), ItemRow.owner_id.in_(owners))


def forget_facts(tx: Transaction, facts: Iterable[FactRow], now: datetime) -> None:
    """Remove from every version the sentences that rest on erased facts, or say what these say."""
    by_owner: dict[int, list[FactRow]] = defaultdict(list)
    for fact in facts:
        by_owner[fact.owner_id].append(fact)
    for owner_id, erased in by_owner.items():
        ids, words = {fact.id for fact in erased}, [set(stems(fact.text)) for fact in erased]
        item = documents.read(tx, owner_id, NAMESPACE, KEY, now)
        if item is not None:
            is_gone = partial(_is_said, ids, list(filter(None, words)))
            documents.drop_versions(tx, owner_id, item, partial(_without, is_gone), now)


def forget_sessions(tx: Transaction, owner_id: int, item: Item, messages: Select[int], now: datetime) -> Counter[str]:
    """Remove from every version the sentences that rest on summaries of sessions with these messages.

    The next update writes them anew from what is left. Return the number of rows by kind.
    """
    of_messages = select(MessageRow.session_id).where(MessageRow.id.in_(messages))
    session_ids = set(tx.scalars(select(SessionRow.public_id).where(SessionRow.id.in_(of_messages))))
    return documents.drop_versions(tx, owner_id, item, partial(_without, partial(_is_of_session, session_ids)), now)


def outdate_facts(tx: Transaction, owner_id: int, fact_ids: Iterable[int], now: datetime) -> None:
    """Remove from the newest version the sentences that rest on facts which hold no longer."""
    _outdate(tx, owner_id, partial(_is_said, set(fact_ids), ()), now)


def outdate_session(tx: Transaction, owner_id: int, session_id: str, now: datetime) -> None:
    """Remove from the newest version the sentences that rest on summaries of a session."""
    _outdate(tx, owner_id, partial(_is_of_session, {session_id}), now)


def _is_said(ids: set[int], words: Sequence[set[str]], sentence: Value) -> bool:
    """Return whether a sentence rests on one of these facts, or says one.

    A summary may say a fact in other words, so half of its words are enough in a sentence that rests on one.
    """
    if not ids.isdisjoint(sentence["facts"]):
        return True
    own, share = set(stems(sentence["text"])), 0.5 if sentence["summaries"] else 1.0
    return any(len(fact & own) >= share * len(fact) for fact in words)


def _is_of_session(session_ids: set[str], sentence: Value) -> bool:
    return any(session_id in session_ids for session_id, _ in sentence["summaries"])


def _without(is_gone: Callable[[Value], bool], value: Value) -> Value:
    lists = {name: [sentence for sentence in value[name] if not is_gone(sentence)] for name in ("sentences", "removed")}
    return {**value, **lists}


def _outdate(tx: Transaction, owner_id: int, is_gone: Callable[[Value], bool], now: datetime) -> None:
    item = documents.read(tx, owner_id, NAMESPACE, KEY, now)
    if item is not None and (left := _without(is_gone, item.value)) != item.value:
        documents.write(tx, owner_id, Put(NAMESPACE, KEY, left), now, author="correction")


# -- in another database


def moved(value: Any, facts: Mapping[int, int], sessions: Mapping[str, str]) -> Any:
    """Return a value of an export as it may be stored here, without sentences whose source did not come along.

    facts, sessions: the ids here by those in the export. value: of SHAPE.
    """

    def here(sentence: Sentence) -> Sentence | None:
        of_facts = tuple(facts[fact_id] for fact_id in sentence.facts if fact_id in facts)
        summaries = tuple((sessions[key], version) for key, version in sentence.summaries if key in sessions)
        is_whole = len(of_facts) == len(sentence.facts) and len(summaries) == len(sentence.summaries)
        return replace(sentence, facts=of_facts, summaries=summaries) if is_whole else None

    lists = {name: filter(None, map(here, map(Sentence.of, value[name]))) for name in ("sentences", "removed")}
    return {**value, **{name: [sentence.value for sentence in there] for name, there in lists.items()}}
