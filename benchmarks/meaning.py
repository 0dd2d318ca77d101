"""How well Recap finds what was said in other words, and when it rather shows nothing.

    make bench-meaning SETS=folder
    make bench-meaning SETS=folder OPTIONS="--set EMBEDDINGS=minilm"

The folder holds JSON files: `corpus` (remarks of one person and stock replies to them), questions with the remarks that
answer them (`paraphrase` shares no word with its answer, `short` has one or two words), questions that nothing answers
(`unanswerable_*`, `general`), `small_talk`, `references` to earlier conversations, and `facts` with questions.

One person says all remarks, five in a session, a session each 17 hours, each followed by a reply that a fixed seed
chooses.  The questions `unanswerable_locomo` are asked of the conversations named by `--conversations`, as each of
their speakers would have had them with an assistant.  Everything goes through Recap's own functions, on SQLite, with
the built-in model.

    first, in 3, in 10   questions for which a right remark is among so many results of a search
    shown                questions whose excerpts, in a turn that asks for nothing, have a right remark
    junk                 questions that nothing answers and that get at least one excerpt all the same
    tokens               what the excerpts of these take, on average over all of the questions
    facts                questions for which the right fact is among those that the message brings into a prompt
    found                references that bring at least one excerpt
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any

from flask_migrate import upgrade

from app import build_app, engine_of
from benchmarks.command import Command, about_now, breaking_off
from benchmarks.conversation import Conversation
from benchmarks.results import load_line, machine_line, percentiles
from config import Settings
from memory import tokens
from memory.engine import Engine
from memory.knowledge.fact_ranking import Ranking
from memory.quoting import excerpt_block
from memory.recall.search import SearchScope
from memory.recall.triggers import about
from models import OwnerRow
from models.facts import Fact
from models.messages import Excerpt
from models.owners import Caller

BEGAN = datetime(2024, 1, 1, 9, tzinfo=UTC)
HOURS = 17  # between two sessions
SEED = 7
WHO = {"user_id": "rik"}
DEPTHS = (1, 3, 10)
UNANSWERED = ("unanswerable_personal", "general", "small_talk")
Sessions = dict[str, list[dict[str, Any]]]
Sets = Mapping[str, Any]
Figures = dict[str, Any]


def loaded(folder: Path) -> Sets:
    """The sets of a folder, by the names of their files."""
    return {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))}


def remarks(corpus: Sets) -> Sessions:
    """The messages of a corpus, by session."""
    rng, size = random.Random(SEED), corpus["sessions_of"]  # nosec B311
    sessions: Sessions = {}
    for number in range(0, len(corpus["messages"]), size):
        at, messages = BEGAN + timedelta(hours=HOURS * number // size), []
        for remark in corpus["messages"][number : number + size]:
            for role, content in (("user", remark), ("assistant", rng.choice(corpus["replies"]))):
                at += timedelta(minutes=1)
                messages.append({"role": role, "content": content, "created_at": at.isoformat()})
        sessions[f"s{number}"] = messages
    return sessions


def recorded(conversation: Conversation) -> Sessions:
    """The messages of a conversation, by session."""
    return {
        name: [{"role": one.role, "content": one.content, "created_at": f"{one.created_at}Z"} for one in said]
        for name, said in conversation.sessions.items()
    }


class Person:
    """Somebody who has said all messages of some sessions, and whose application is ready to be asked."""

    def __init__(self, folder: Path, sessions: Sessions, settings: Sequence[tuple[str, str]]) -> None:
        chosen = {"RECAP_DATA_DIR": str(folder), "LOG_LEVEL": "error", **dict(settings)}
        self.app = build_app(Settings.from_env(chosen))
        with self.app.app_context():
            upgrade()
        self.services: Engine = engine_of(self.app)
        for name, messages in sessions.items():
            body = {**WHO, "messages": messages}
            answer = self.app.test_client().post(f"/api/sessions/{name}/messages", json=body)
            assert answer.status_code in (200, 201), answer.text
        self.services.job_queue.run_due(["index"])
        last = max(message["created_at"] for messages in sessions.values() for message in messages)
        self.now = datetime.fromisoformat(last) + timedelta(days=1)
        with self.services.database.read() as tx:
            owner = tx.query(OwnerRow).filter_by(name=WHO["user_id"]).one()
            self.scope = SearchScope(owner.id, owner.index_key)

    def search(self, text: str) -> list[str]:
        found = self.services.search.find(Caller(**WHO), self.now, text=text, limit=max(DEPTHS))
        return [one.message.content for one in found if one.message is not None]

    def excerpts(self, text: str) -> tuple[Excerpt, ...]:
        """What a turn shows beside a message, unasked."""
        budget = self.services.settings.recall_tokens
        recall, key = self.services.recall, self.scope.owner_key
        plan = recall.plan(text, key, self.now, UTC, mode="auto", budget=budget)
        generation = self.services.index.generation(key)
        with self.services.database.read() as tx:
            found = recall.find(tx, self.scope, plan, generation)
        return recall.select(found, plan).excerpts


def measured(
    folder: Path, sets: Sets, conversations: Sequence[Conversation], settings: Sequence[tuple[str, str]]
) -> Figures:
    """All figures, with these settings."""
    person = Person(folder, remarks(sets["corpus"]), settings)
    try:
        figures: Figures = {name: _answered(person, sets[name]) for name in ("paraphrase", "short") if name in sets}
        figures |= {name: _unanswered([person], sets[name]) for name in UNANSWERED if name in sets}
        if "references" in sets:
            figures["references"] = {"of": len(sets["references"]), "found": _count(person, sets["references"])}
        if "facts" in sets:
            figures["facts"] = _facts(
                person.services.facts.ranking, sets["facts"], person.services.settings.fact_tokens
            )
    finally:
        person.services.stop()
    asked = [Person(folder / one.name, recorded(one), settings) for one in conversations]
    try:
        if asked and "unanswerable_locomo" in sets:
            figures["unanswerable_locomo"] = _unanswered(asked, sets["unanswerable_locomo"])
    finally:
        for person in asked:
            person.services.stop()
    return figures


def _answered(person: Person, questions: Sequence[Sets]) -> Figures:
    places, shown, took = [], 0, []
    for one in questions:
        began = perf_counter()
        found = person.search(one["q"])
        took.append((perf_counter() - began) * 1000)
        places.append(min((found.index(answer) for answer in one["a"] if answer in found), default=max(DEPTHS)))
        said = {message.content for excerpt in person.excerpts(one["q"]) for message in excerpt.messages}
        shown += not said.isdisjoint(one["a"])
    within = {f"in {depth}": sum(place < depth for place in places) for depth in DEPTHS}
    return {"of": len(questions), **within, "shown": shown, **percentiles(took)}


def _unanswered(people: Sequence[Person], questions: Sequence[str]) -> Figures:
    found = [person.excerpts(question) for person in people for question in questions]
    spent = fmean(sum(tokens.estimate(excerpt_block(one)) for one in each) for each in found)
    junk = sum(map(bool, found))
    return {"of": len(found), "junk": junk, "percent": round(100 * junk / len(found)), "tokens": round(spent)}


def _count(person: Person, messages: Sequence[str]) -> int:
    return sum(bool(person.excerpts(message)) for message in messages)


def _facts(ranking: Ranking, told: Sets, budget: int) -> Figures:
    """How often the right fact is among those that the message brings, is the first, and is among the first three."""
    facts = [_fact(number, text, importance) for number, (text, importance) in enumerate(told["facts"], 1)]
    counts = dict.fromkeys(("shown", "in 1", "in 3"), 0)
    for question, right in told["questions"]:
        shown = ranking.for_message(facts, question, budget, BEGAN, is_personal=about(question) is not None)
        place = next((at for at, fact in enumerate(shown) if right in fact.text), None)
        counts["shown"] += place is not None
        counts["in 1"] += place == 0
        counts["in 3"] += place is not None and place < 3
    return {"of": len(told["questions"]), **counts}


def _fact(number: int, text: str, importance: int) -> Fact:
    return Fact(number, text, BEGAN - timedelta(days=1), BEGAN, importance=importance, scope="user")


def table(results: Mapping[str, Any]) -> str:
    """A line for each set."""
    lines = [f"{results['settings'] or 'The default settings'}:", ""]
    for name, figures in results["sets"].items():
        told = ", ".join(f"{label} {value}" for label, value in figures.items() if label != "of")
        lines.append(f"{name:24}of {figures['of']:3}: {told}")
    return "\n".join([*lines, "", load_line(results["load"]), machine_line(results["machine"])])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("meaning", __doc__)
    command.add_argument("folder", type=Path, help="with the sets")
    command.add_argument("--conversations", nargs="*", type=Path, default=[], metavar="CONVERSATION.json | FOLDER")
    command.takes_settings()
    options = command.parse_args(arguments)
    sets = loaded(options.folder)
    if "corpus" not in sets:
        command.error(f"there is no corpus.json in {options.folder}")
    results: Figures = about_now() | {"settings": ", ".join(f"{name}={value}" for name, value in options.set)}
    with breaking_off(), tempfile.TemporaryDirectory(prefix="recap-bench-") as folder:
        talks = [talk for one in command.loaded(options.conversations) for talk in one.in_first_person()]
        results["sets"] = measured(Path(folder), sets, talks, options.set)
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
