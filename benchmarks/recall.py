"""How well and how fast each ranking finds the messages that answer a question.

    python -m benchmarks.recall CONVERSATION.json | FOLDER ...

The benchmark indexes each conversation as one owner, in a temporary directory, and asks its questions as of the day
after its last message.  Below, the same in the first person: nobody has a name, one speaker is the user, the other the
assistant, and each asks what is asked about them.  It needs no server and no network.

    recall@k      share of a question's evidence messages among the first k, averaged over questions of categories 1-4
    Hit@1         how often the session of the first message found contains evidence, over all questions
    NDCG@5        of the first five sessions, over all questions; a session with evidence is relevant
    in n tokens   share of the evidence that excerpts of n tokens in a prompt contain, categories 1-4
    prompt        the same for the excerpts of a prompt with the default settings; tokens: what these excerpts have
    p50, p95      milliseconds of a search for 10 messages
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from benchmarks.command import Command, about_now, progress
from benchmarks.conversation import ANSWERABLE, CATEGORIES
from benchmarks.rankings import (
    BUDGETS,
    COMPARED,
    ENGLISH,
    MEANING_ALONE,
    Corpus,
    Scorer,
    by_index,
    by_meaning,
    feed,
)
from benchmarks.resources import folder_bytes
from benchmarks.results import Row, by_name, machine_line, percentiles
from benchmarks.tuning import STEPS, leave_one_out
from search_index import RankingProfile, SearchIndex, WordLlamaEmbedder

LIMIT = 10  # results of a timed search

_COLUMNS: tuple[Row, ...] = (
    *((f"r@{depth}", "{:.1f}", (f"recall@{depth}",)) for depth in (5, 10, 20)),
    *((f"@10 c{key}", "{:.1f}", (f"recall@10, {name}",)) for key, name in CATEGORIES.items()),
    ("Hit@1", "{:.3f}", ("hit@1",)),
    ("NDCG@5", "{:.3f}", ("ndcg@5",)),
    *((f"in {budget}", "{:.1f}", (f"in {budget}",)) for budget in BUDGETS),
    ("prompt", "{:.1f}", ("in the prompt",)),
    ("tokens", "{:.0f}", ("prompt tokens",)),
    ("p50 ms", "{:.1f}", ("p50",)),
    ("p95 ms", "{:.1f}", ("p95",)),
)


def compare(corpora: Sequence[Corpus], root: Path, profiles: Mapping[str, RankingProfile]) -> dict[str, Any]:
    """The figures of each of `profiles` over all questions, and the size and speed of the indexes."""
    embedder = WordLlamaEmbedder()
    embedder.embed(["loaded before anything is timed"])
    # The index with vectors is timed, so it comes first: the other then reuses its cached text analysis.
    roots = {True: root / "vectors", False: root / "words"}
    messages = sum(len(corpus.documents) for corpus in corpora)
    seconds = 0.0
    for corpus in corpora:
        seconds += feed(SearchIndex(roots[True], embedder=embedder, analysis=ENGLISH), corpus.owner, corpus.documents)
        feed(SearchIndex(roots[False], analysis=ENGLISH), corpus.owner, corpus.documents)
    asked = sum(len(corpus.conversation.questions) for corpus in corpora)
    figures = {}
    with progress((len(profiles) + 1) * asked, "question") as bar:
        for name in (MEANING_ALONE, *profiles):
            bar.set_postfix_str(name.strip())
            figures[name] = _measured(corpora, profiles.get(name), roots, embedder, bar)
    return {
        "messages": messages,
        "questions": asked,
        "rankings": figures,
        "index": {
            "messages_per_second": round(messages / seconds),
            "bytes_per_message": round(folder_bytes(roots[True]) / messages),
            "bytes_per_message_without_vectors": round(folder_bytes(roots[False]) / messages),
        },
    }


def _measured(
    corpora: Sequence[Corpus],
    profile: RankingProfile | None,
    roots: Mapping[bool, Path],
    embedder: WordLlamaEmbedder,
    bar: Any,
) -> dict[str, float]:
    """The figures of one ranking; without a `profile`, those of the ranking by meaning alone."""
    answerable: list[dict[str, float]] = []
    every: list[dict[str, float]] = []
    by_category: dict[int, list[float]] = {}
    took: list[float] = []
    for corpus in corpora:
        scorer = Scorer(corpus)
        if profile is None:
            search = by_meaning(embedder, corpus.documents)
        else:
            with_vectors = profile.uses("meaning")
            search = by_index(roots[with_vectors], profile, embedder if with_vectors else None, corpus.owner)
        for question in corpus.conversation.questions:
            begun = perf_counter()
            search(corpus.query(question, LIMIT))
            took.append((perf_counter() - begun) * 1000)
            hits = search(corpus.query(question, len(corpus.documents)))
            scores = scorer.scores(question, [hit.message_id for hit in hits])
            if profile is not None:
                scores |= scorer.in_prompt(question, hits)
            every.append(scores)
            if question.category in ANSWERABLE:
                answerable.append(scores)
                by_category.setdefault(question.category, []).append(scores["recall@10"])
            bar.update()
    return {
        **{
            name: round(fmean(one[name] for one in answerable), 2)
            for name in answerable[0]
            if name not in ("hit@1", "ndcg@5")
        },
        **{name: round(fmean(one[name] for one in every), 4) for name in ("hit@1", "ndcg@5")},
        **{f"recall@10, {CATEGORIES[key]}": round(fmean(of), 2) for key, of in sorted(by_category.items())},
        **percentiles(took),
    }


def table(results: Mapping[str, Any]) -> str:
    """A row for each ranking.  Below them the chosen weights, if they were asked for."""
    categories = ", ".join(f"c{key} {name}" for key, name in CATEGORIES.items())
    index = results["index"]
    lines = [
        *by_name("", _COLUMNS, results["rankings"], 22, 9),
        "",
        *by_name("first person", _COLUMNS, results["first person"], 22, 9),
        "",
        f"{results['messages']:,} messages, {results['questions']:,} questions; {categories}.",
        f"Index: {index['bytes_per_message']:,} bytes a message, {index['bytes_per_message_without_vectors']:,} without"
        f" vectors; {index['messages_per_second']:,} messages indexed a second.",
        *(tuning_lines(results["leave_one_out"]) if "leave_one_out" in results else ()),
        "",
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def tuning_lines(tuned: Mapping[str, Any]) -> list[str]:
    """For each conversation the weights chosen on the others, and the figures with these weights."""
    lines = ["", f"Weights chosen on all conversations but one, each the default or that times one of {STEPS}:"]
    for name, chosen in tuned["chosen"].items():
        weights = ", ".join(f"{part} {value:g}" for part, value in chosen.items())
        lines.append(f"  left out {name:>12}: {weights}")
    for title in ("held out", "defaults"):
        figures = ", ".join(f"{name} {value:g}" for name, value in tuned[title].items())
        lines.append(f"  {title}: {figures}")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("recall", __doc__)
    command.takes_conversations()
    command.add_argument("--leave-one-out", action="store_true", help="choose the weights on all conversations but one")
    options = command.parse_args(arguments)
    conversations = command.loaded(options.conversations)
    corpora = [Corpus.of(one.with_evidence(unanswerable=True)) for one in conversations]
    if not any(corpus.conversation.questions for corpus in corpora):
        command.error("there is no conversation with a question that has evidence")
    if options.leave_one_out and len(corpora) < 2:
        command.error("--leave-one-out needs more than one conversation")
    results = about_now()
    with tempfile.TemporaryDirectory(prefix="recap-bench-") as folder:
        results |= compare(corpora, Path(folder), COMPARED)
        first_person = [Corpus.of(one) for corpus in corpora for one in corpus.conversation.in_first_person()]
        compared = {name: profile for name, profile in COMPARED.items() if name == "default" or name.startswith(" ")}
        results["first person"] = compare(first_person, Path(folder) / "first person", compared)["rankings"]
        if options.leave_one_out:
            results["leave_one_out"] = leave_one_out(corpora, Path(folder) / "vectors")
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
