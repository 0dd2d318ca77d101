"""The rankings that the recall benchmark compares, and the figures that score their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import log2
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.conversation import Conversation, Question
from config import Settings
from memory import tokens
from memory.languages import analysis_in
from memory.quoting import excerpt_block
from memory.recall.excerpts import LocatedMessage, fit_budget, line_tokens, truncate_message
from memory.recall.gate import gate_for, relevant
from memory.recall.times import time_ranges
from memory.recall.triggers import about
from models.messages import Message
from search_index import RANKING_PROFILES, Document, Embedder, Hit, Query, RankingProfile, SearchIndex
from search_index.embeddings import cosines, norms, quantize, rows_of

ENGLISH = analysis_in("en")
BATCH = 200  # messages in one commit, as in `memory.recall.indexing`
BUDGETS = (500, 1_000, 2_000)  # prompt tokens

_DEFAULTS = Settings()
DEFAULT = RANKING_PROFILES["context"]
"""The profile of the default settings."""

MEANING_ALONE = "WordLlama alone"
COMPARED = {
    "fuzzy (the study's)": RANKING_PROFILES["fuzzy"],
    "BM25": RANKING_PROFILES["words"],
    "BM25 + meaning, rrf": replace(DEFAULT.only("words", "meaning"), fusion="rrf"),
    "BM25 + context": DEFAULT.only("words", "neighbours", "session"),
    "all by rrf": replace(DEFAULT, fusion="rrf"),
    "default": DEFAULT,
    **{f"  without {part.name}": DEFAULT.weighing(**{part.name: 0.0}) for part in DEFAULT.parts},
}

Search = Callable[[Query], list[Hit]]
"""What is found, best first."""


@dataclass(frozen=True)
class Corpus:
    """A conversation as it is indexed.  Messages and sessions are numbered from 1, in order."""

    conversation: Conversation
    documents: tuple[Document, ...]

    @classmethod
    def of(cls, conversation: Conversation) -> Corpus:
        sessions = {name: number for number, name in enumerate(conversation.sessions, 1)}
        documents = [
            Document(at, sessions[one.session], one.role, datetime.fromisoformat(one.created_at), one.content, one.name)
            for at, one in enumerate(conversation.said, 1)
        ]
        return cls(conversation, tuple(documents))

    @property
    def owner(self) -> str:
        return self.conversation.name

    def evidence(self, question: Question) -> frozenset[int]:
        """The ids of the messages that answer it."""
        return frozenset(at for at, one in enumerate(self.conversation.said, 1) if one.external_id in question.evidence)

    def query(self, question: Question, limit: int) -> Query:
        """The query of a question, with the times it names as of when it is asked."""
        asked_at = self.conversation.asked_at(question).replace(tzinfo=UTC)
        times = [(time.after, time.before) for time in time_ranges(question.text, asked_at, UTC)]
        return Query(question.text, limit, times=times, about=about(question.text))


def feed(index: SearchIndex, owner: str, documents: Sequence[Document]) -> float:
    """Index `documents` in batches.  Returns the duration in seconds."""
    begun = perf_counter()
    for start in range(0, len(documents), BATCH):
        index.add(owner, documents[start : start + BATCH])
    return perf_counter() - begun


def search(index: SearchIndex, owner: str, query: Query) -> list[Hit]:
    """The hits of a search when all messages are indexed."""
    return index.search(owner, index.prepare(query), index.generation(owner), [])


def by_index(root: Path, profile: RankingProfile, embedder: Embedder | None, owner: str) -> Search:
    """A search through `SearchIndex` when all messages are indexed."""
    index = SearchIndex(root, profile=profile, embedder=embedder, analysis=ENGLISH)
    return lambda query: search(index, owner, query)


def by_meaning(embedder: Embedder, documents: Sequence[Document]) -> Search:
    """A search by cosine alone, for comparison with services that only use embeddings.  No profile does this."""
    vectors = quantize(embedder, [f"{one.name}: {one.content}" for one in documents])
    rows = rows_of(vectors)
    lengths = norms(rows)
    ids = np.array([one.message_id for one in documents])

    def search(query: Query) -> list[Hit]:
        cosine_similarity = cosines(rows, quantize(embedder, [query.text])[0], lengths)
        best = np.lexsort((-ids, -cosine_similarity))[: query.limit]
        return [Hit(documents[at].message_id, documents[at].session_id, cosine_similarity[at], {}) for at in best]

    return search


class Scorer:
    """Scores the results for the questions of one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._session = {document.message_id: document.session_id for document in corpus.documents}
        self._window = _DEFAULTS.recall_window
        self._costs: dict[tuple[int, bool, bool], int] = {}
        self._stored = {one.message_id: LocatedMessage(_message(one), one.session_id, "") for one in corpus.documents}

    def scores(self, question: Question, found: Sequence[int]) -> dict[str, float]:
        """The figures of one question: shares of its evidence in percent, and scores of the ranking of sessions."""
        evidence = self._corpus.evidence(question)
        sessions = list(dict.fromkeys(self._session[message_id] for message_id in found))
        relevant = {self._session[message_id] for message_id in evidence}
        gains = [1 / log2(rank + 1) for rank, session in enumerate(sessions[:5], 1) if session in relevant]
        ideal = [1 / log2(rank + 1) for rank in range(1, min(5, len(relevant)) + 1)]
        return {
            **{f"recall@{depth}": _share(evidence, found[:depth]) for depth in (5, 10, 20)},
            "hit@1": float(bool(sessions) and sessions[0] in relevant),
            "ndcg@5": sum(gains) / sum(ideal),
            **{f"in {budget}": _share(evidence, self._shown(found, budget)) for budget in BUDGETS},
        }

    def in_prompt(self, question: Question, hits: Sequence[Hit]) -> dict[str, float]:
        """The share of its evidence that a prompt with the default settings has, and the tokens of its excerpts."""
        best = hits[: _DEFAULTS.recall_limit]
        is_open = gate_for(best, is_personal=about(question.text) is not None).is_open(best)
        best = relevant(best) if is_open else []
        excerpts = fit_budget(self._stored, best, budget=_DEFAULTS.recall_tokens, window_size=_DEFAULTS.recall_window)
        shown = {message.id for excerpt in excerpts for message in excerpt.messages}
        return {
            "in the prompt": _share(self._corpus.evidence(question), shown),
            "prompt tokens": sum(tokens.estimate(excerpt_block(excerpt)) for excerpt in excerpts),
        }

    def _shown(self, found: Sequence[int], budget: int) -> set[int]:
        """The messages that excerpts of `budget` tokens show, chosen as in `memory.recall.excerpts`."""
        hits, shown, opened = set(found), set[int](), set[object]()
        for hit in found:
            near = sorted(range(hit - self._window, hit + self._window + 1), key=lambda at: abs(at - hit))
            for at in near:
                if at in shown or self._session.get(at) != self._session[hit]:
                    continue
                session = self._session[at]
                cost = self._cost(at, at in hits, session not in opened)
                if cost > budget:
                    break
                budget -= cost
                opened.add(session)
                shown.add(at)
            if budget < 10:
                break
        return shown

    def _cost(self, message_id: int, found: bool, first: bool) -> int:
        key = (message_id, found, first)
        if key not in self._costs:
            message = truncate_message(self._stored[message_id].message, found=found)
            self._costs[key] = line_tokens(message, first=first)
        return self._costs[key]


def _message(said: Document) -> Message:
    """As it stands in an excerpt; its position is its id."""
    at = said.created_at.replace(tzinfo=UTC)
    session = f"{said.session_id:032x}"  # as long as the ids that Recap makes
    return Message(said.message_id, session, said.message_id, said.role, said.content, at, 0, said.name)


def _share(evidence: frozenset[int], found: Sequence[int] | set[int]) -> float:
    return 100 * len(evidence.intersection(found)) / len(evidence)
