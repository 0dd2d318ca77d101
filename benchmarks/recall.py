"""How well each ranking finds the messages that answer a question.

    python -m benchmarks.recall CONVERSATION.json | FOLDER ...

The benchmark indexes each conversation as one owner, in a temporary directory, and asks its questions as of the day
after its last message.  Below, the same in the first person: nobody has a name, one speaker is the user, the other the
assistant, and each asks what is asked about them.  It needs no server and no network.

    recall@10     share of a question's evidence messages among the first ten, averaged over questions of categories 1-4
    Hit@1         how often the session of the first message found contains evidence, over all questions
    in 1000       share of the evidence that excerpts of 1,000 tokens in a prompt contain, categories 1-4
    prompt        the same for the excerpts of a prompt with the default settings; tokens: what these excerpts have

`benchmarks.cluster` measures how long a search takes.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.conversation import ANSWERABLE, CATEGORIES, Conversation, Question
from benchmarks.harness import Command, Figures, Row, by_line, folder_bytes, progress
from config import Settings
from memory import tokens
from memory.languages import analysis_in
from memory.quoting import message_line
from memory.recall.excerpts import LocatedMessage, excerpt_block, line_tokens, make_excerpts, truncate_message
from memory.recall.relevance import gate_for, relevant
from memory.recall.times import time_ranges
from memory.recall.triggers import ALL, SearchPlan, role_meant
from models.messages import Message
from search_index import RANKING_PROFILES, Hit, Query, RankingProfile, SearchableText, SearchIndex, WordLlamaEmbedder
from search_index.embeddings import Vectors, quantize

ENGLISH = analysis_in("en")
BATCH = 200  # messages in one commit, as in `memory.recall.indexing`
DEPTH = 10  # messages
BUDGET = 1_000  # prompt tokens
DEFAULTS = Settings()
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
    **{f"  without {part.name}": DEFAULT.weighing(**{part.name: 0.0}) for part in DEFAULT.features},
}
ON_ALL = ("hit@1",)  # figures over all questions; the others are over those that have an answer
COLUMNS: tuple[Row, ...] = (
    ("r@10", "{:.1f}", ("recall@10",)),
    *((f"@10 c{key}", "{:.1f}", (f"recall@10, {name}",)) for key, name in CATEGORIES.items()),
    ("Hit@1", "{:.3f}", ("hit@1",)),
    ("in 1000", "{:.1f}", ("in 1000",)),
    ("prompt", "{:.1f}", ("in the prompt",)),
    ("tokens", "{:.0f}", ("prompt tokens",)),
)

Search = Callable[[Query], list[Hit]]


@dataclass(frozen=True)
class Corpus:
    """A conversation as it is indexed.  Messages and sessions are numbered from 1, in order."""

    conversation: Conversation
    documents: tuple[SearchableText, ...]

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        sessions = {name: number for number, name in enumerate(conversation.sessions, 1)}
        documents = [
            SearchableText(
                at,
                sessions[message.session],
                message.role,
                datetime.fromisoformat(message.created_at),
                message.content,
                message.name,
            )
            for at, message in enumerate(conversation.messages, 1)
        ]
        return cls(conversation, tuple(documents))

    @property
    def owner(self) -> str:
        return self.conversation.name

    def evidence(self, question: Question) -> frozenset[int]:
        """Return the ids of the messages that answer a question."""
        messages = enumerate(self.conversation.messages, 1)
        return frozenset(at for at, message in messages if message.external_id in question.evidence)

    def query(self, question: Question, limit: int) -> Query:
        """Return the query of a question, with the times it names as of when it is asked."""
        asked_at = self.conversation.asked_at(question).replace(tzinfo=UTC)
        times = [(time.after, time.before) for time in time_ranges(question.text, asked_at, UTC)]
        return Query(question.text, limit, times=times, about=role_meant(question.text))


def index_of(root: Path, profile: RankingProfile, *, vectors: bool) -> SearchIndex:
    return SearchIndex(root, profile=profile, embedder=WordLlamaEmbedder() if vectors else None, analysis=ENGLISH)


def fill(index: SearchIndex, corpus: Corpus) -> None:
    """Index the documents in batches."""
    for start in range(0, len(corpus.documents), BATCH):
        index.add(corpus.owner, corpus.documents[start : start + BATCH])


def search_by_index(index: SearchIndex, owner: str) -> Search:
    """Return the search of an index that has all messages."""
    return lambda query: index.search(owner, index.prepare(query), index.generation(owner))


def search_by_meaning(documents: Sequence[SearchableText]) -> Search:
    """Return a search by cosine alone, for comparison with services that only use embeddings."""
    embedder = WordLlamaEmbedder()
    vectors = Vectors.of(quantize(embedder, [f"{document.name}: {document.content}" for document in documents]))
    ids = np.array([document.message_id for document in documents])

    def search(query: Query) -> list[Hit]:
        similarity = vectors.cosines(quantize(embedder, [query.text])[0])
        best = np.lexsort((-ids, -similarity))[: query.limit]
        return [Hit(documents[at].message_id, documents[at].session_id, similarity[at], {}) for at in best]

    return search


class Scorer:
    """Scores the results for the questions of one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._session = {document.message_id: document.session_id for document in corpus.documents}
        self._stored = {
            document.message_id: LocatedMessage(_message(document), document.session_id, "")
            for document in corpus.documents
        }
        self._tokens = cache(self._line_tokens)

    def scores(self, question: Question, found: Sequence[int]) -> dict[str, float]:
        """Return the figures of one question: shares of its evidence in percent, and whether the first hit is right."""
        evidence = self._corpus.evidence(question)
        right = {self._session[message_id] for message_id in evidence}
        return {
            "recall@10": _share(evidence, found[:DEPTH]),
            "hit@1": float(bool(found) and self._session[found[0]] in right),
            "in 1000": _share(evidence, self._shown(found, BUDGET)),
        }

    def in_prompt(self, question: Question, hits: Sequence[Hit]) -> dict[str, float]:
        """Return the share of its evidence in a prompt with the default settings, and the tokens of its excerpts."""
        best = hits[: DEFAULTS.recall_limit]
        query = Query(question.text, about=role_meant(question.text))
        is_open = gate_for(SearchPlan("plain", "", ALL), best, query).is_open(best)
        best = relevant(best) if is_open else []
        excerpts = make_excerpts(self._stored, best, budget=DEFAULTS.recall_tokens, window_size=DEFAULTS.recall_window)
        shown = {message.id for excerpt in excerpts for message in excerpt.messages}
        return {
            "in the prompt": _share(self._corpus.evidence(question), shown),
            "prompt tokens": sum(tokens.estimate(excerpt_block(excerpt)) for excerpt in excerpts),
        }

    def _shown(self, found: Sequence[int], budget: int) -> set[int]:
        """Return the messages that excerpts of `budget` tokens show, chosen as in `memory.recall.excerpts`."""
        hits, shown, opened, window = set(found), set[int](), set[int](), DEFAULTS.recall_window
        for hit in found:
            for at in sorted(range(hit - window, hit + window + 1), key=lambda at: abs(at - hit)):
                session = self._session.get(at)
                if at in shown or session is None or session != self._session[hit]:
                    continue
                cost = self._tokens(at, at in hits, session not in opened)
                if cost > budget:
                    break
                budget -= cost
                opened.add(session)
                shown.add(at)
            if budget < 10:
                break
        return shown

    def _line_tokens(self, message_id: int, found: bool, first: bool) -> int:
        message = truncate_message(self._stored[message_id].message, found=found)
        return line_tokens(message_line(message), first=first)


def _message(document: SearchableText) -> Message:
    """Return the message as it stands in an excerpt; its position is its id."""
    at, session = document.created_at.replace(tzinfo=UTC), f"{document.session_id:032x}"  # as long as Recap's ids
    number = document.message_id
    size = tokens.estimate_message(document.content)
    return Message(number, session, number, document.role, document.content, at, size, document.name)


def _share(evidence: frozenset[int], found: Sequence[int] | set[int]) -> float:
    return 100 * len(evidence.intersection(found)) / len(evidence)


# -- comparing rankings


def compare(corpora: Sequence[Corpus], root: Path, profiles: Mapping[str, RankingProfile]) -> Figures:
    """Return the figures of each profile over all questions, and the size of the indexes."""
    roots = {True: root / "vectors", False: root / "words"}
    messages = sum(len(corpus.documents) for corpus in corpora)
    for corpus in corpora:
        for vectors, folder in roots.items():
            fill(index_of(folder, DEFAULT, vectors=vectors), corpus)
    questions = sum(len(corpus.conversation.questions) for corpus in corpora)
    figures = {}
    with progress((len(profiles) + 1) * questions, "question") as bar:
        for name in (MEANING_ALONE, *profiles):
            bar.set_postfix_str(name.strip())
            figures[name] = _measured(corpora, profiles.get(name), roots, bar)
    return {
        "messages": messages,
        "questions": questions,
        "rankings": figures,
        "index": {
            "bytes_per_message": round(folder_bytes(roots[True]) / messages),
            "bytes_per_message_without_vectors": round(folder_bytes(roots[False]) / messages),
        },
    }


def _measured(
    corpora: Sequence[Corpus], profile: RankingProfile | None, roots: Mapping[bool, Path], bar: Any
) -> Figures:
    """Return the figures of one ranking; without a `profile`, those of the ranking by meaning alone."""
    scored = list[tuple[int, dict[str, float]]]()
    for corpus in corpora:
        scorer, search = Scorer(corpus), search_by_meaning(corpus.documents)
        if profile is not None:
            vectors = profile.uses("meaning")
            search = search_by_index(index_of(roots[vectors], profile, vectors=vectors), corpus.owner)
        for question in corpus.conversation.questions:
            hits = search(corpus.query(question, len(corpus.documents)))
            scores = scorer.scores(question, [hit.message_id for hit in hits])
            scored.append((question.category, scores | (scorer.in_prompt(question, hits) if profile else {})))
            bar.update()
    answerable = [scores for category, scores in scored if category in ANSWERABLE]
    return {
        **{
            name: round(fmean(scores[name] for scores in answerable), 2) for name in answerable[0] if name not in ON_ALL
        },
        **{name: round(fmean(scores[name] for _, scores in scored), 4) for name in ON_ALL},
        **{
            f"recall@10, {name}": round(fmean(shares), 2)
            for key, name in CATEGORIES.items()
            if (shares := [scores["recall@10"] for category, scores in scored if category == key])
        },
    }


# -- choosing weights on all conversations but one, and scoring them on that one: the value of tuning on unseen data

STEPS = (0.6, 1.5)
"""Each weight in turn is multiplied by these, and the best is kept.  Finer steps would fit noise."""

TUNED_FIGURES = ("recall@10", "recall@10, several messages", "in 1000", "hit@1")
PARTS = tuple(part.name for part in DEFAULT.features)
Weights = tuple[float, ...]


def leave_one_out(corpora: Sequence[Corpus], root: Path) -> Figures:
    """Return the weights chosen on the other conversations, and the figures of all questions with them.

    Chosen are the weights with the best sum of recall@10 and evidence in 1,000 tokens, where Hit@1 is not below that of
    the defaults.

    root: the folder of the corpora's index with vectors.
    """
    # With all weights at 1, a hit's `why` has the unweighted parts: one search a question is enough for all weights.
    index = index_of(root, DEFAULT.weighing(**dict.fromkeys(PARTS, 1.0)), vectors=True)
    hits = {
        (corpus.owner, question): search_by_index(index, corpus.owner)(corpus.query(question, len(corpus.documents)))
        for corpus in corpora
        for question in corpus.conversation.questions
    }
    arrays = {
        key: (
            np.array([hit.message_id for hit in found], np.int64),
            np.array([[hit.why[name] for name in PARTS] for hit in found]).reshape(-1, len(PARTS)),
        )
        for key, found in hits.items()
    }
    scorers = {corpus.owner: (Scorer(corpus), corpus.conversation.questions) for corpus in corpora}

    @cache
    def sums(owner: str, weights: Weights) -> NDArray[np.float64]:
        """Return the sums of the figures of one conversation, and below over how many questions each is."""
        scorer, questions = scorers[owner]
        total = np.zeros((2, len(TUNED_FIGURES)))
        for question in questions:
            ids, parts = arrays[owner, question]
            scores = scorer.scores(question, ids[np.lexsort((-ids, -(parts @ np.array(weights))))].tolist())
            scores["recall@10, several messages"] = scores["recall@10"]
            several = question.category == ANSWERABLE[0]
            counted = [
                name in ON_ALL or (several if "several" in name else question.category in ANSWERABLE)
                for name in TUNED_FIGURES
            ]
            total += np.array(counted) * np.array([[scores[name] for name in TUNED_FIGURES], [1.0] * len(counted)])
        return total

    def means(owners: Sequence[str], weights: Weights) -> NDArray[np.float64]:
        totals = np.sum([sums(owner, weights) for owner in owners], axis=0)
        mean: NDArray[np.float64] = totals[0] / totals[1]
        return mean

    defaults = tuple(part.weight for part in DEFAULT.features)
    chosen, held_out = {}, np.zeros((2, len(TUNED_FIGURES)))
    with progress(len(scorers) * len(defaults), "weight", "leave one out") as bar:
        for owner in scorers:
            others = [other for other in scorers if other != owner]
            best, least = defaults, means(others, defaults)
            reached = least
            for at in range(len(defaults)):
                for step in STEPS:
                    trial = (*best[:at], defaults[at] * step, *best[at + 1 :])
                    mean = means(others, trial)
                    if mean[0] + mean[2] > reached[0] + reached[2] and mean[3] >= least[3]:
                        best, reached = trial, mean
                bar.update()
            chosen[owner] = dict(zip(PARTS, best, strict=True))
            held_out += sums(owner, best)
    named = {"held out": held_out[0] / held_out[1], "defaults": means([*scorers], defaults)}
    return {"chosen": chosen} | {
        title: {name: round(float(value), 4) for name, value in zip(TUNED_FIGURES, values, strict=True)}
        for title, values in named.items()
    }


def table(results: Mapping[str, Any]) -> str:
    """Return a row for each ranking.  Below them stand the chosen weights, if they were asked for."""
    index = results["index"]
    lines = [
        by_line("ranking", results["rankings"], COLUMNS),
        "",
        by_line("first person", results["first person"], COLUMNS),
        "",
        f"{results['messages']:,} messages, {results['questions']:,} questions; "
        + ", ".join(f"c{key} {name}" for key, name in CATEGORIES.items()),
        "Index: {bytes_per_message:,} bytes a message, {bytes_per_message_without_vectors:,} without vectors.".format(
            **index
        ),
    ]
    if tuned := results.get("leave_one_out"):
        lines += ["", f"Weights chosen on all conversations but one, each the default or that times one of {STEPS}:"]
        lines += [f"  left out {name:>12}: {_listed(chosen)}" for name, chosen in tuned["chosen"].items()]
        lines += [f"  {title}: {_listed(tuned[title])}" for title in ("held out", "defaults")]
    return "\n".join([*lines, ""])


def _listed(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in figures.items())


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("recall", __doc__)
    command.takes_conversations()
    command.add_argument("--leave-one-out", action="store_true", help="choose the weights on all conversations but one")
    options = command.parse_args(arguments)
    conversations = command.load(options.conversations)
    corpora = [Corpus.of(conversation.with_evidence(unanswerable=True)) for conversation in conversations]
    if not any(corpus.conversation.questions for corpus in corpora):
        command.error("there is no conversation with a question that has evidence")
    if options.leave_one_out and len(corpora) < 2:
        command.error("--leave-one-out needs more than one conversation")

    def measure(results: Figures) -> None:
        with tempfile.TemporaryDirectory(prefix="recap-bench-") as folder:
            results |= compare(corpora, Path(folder), COMPARED)
            first_person = [Corpus.of(person) for corpus in corpora for person in corpus.conversation.in_first_person()]
            profiles = {name: it for name, it in COMPARED.items() if name == "default" or name.startswith(" ")}
            results["first person"] = compare(first_person, Path(folder) / "first person", profiles)["rankings"]
            if options.leave_one_out:
                results["leave_one_out"] = leave_one_out(corpora, Path(folder) / "vectors")

    command.report(options, measure, table)


if __name__ == "__main__":
    main()
