"""How well Recap finds what was said in other words, and when it rather shows nothing.

The folder holds JSON files: `corpus` (remarks of one person and stock replies to them), questions with the remarks that
answer them (`paraphrase` shares no word with its answer, `short` has one or two words), questions that nothing answers
(`unanswerable_*`, `general`), `small_talk`, `references` to earlier conversations such as "Let's continue where we left
off.", and `facts` with questions.  One person says all remarks, five in a session, a session each 17 hours, each
followed by a reply that a fixed seed chooses.  The questions `unanswerable_locomo` are asked of the conversations named
by `--conversations`, as each of their speakers would have had them with an assistant, and so are 250 `requests`: what
people asked a model first in the dialogues of HH-RLHF (`--requests`, github.com/anthropics/hh-rlhf).

    in 1, in 3, in 10    questions for which a right remark is among so many results of a search
    shown                questions whose excerpts, in a turn that asks for nothing, have a right remark
    junk                 questions that nothing answers and that get at least one excerpt all the same
    tokens               what the excerpts of these take, on average over all of the questions
    facts                questions for which the right fact is among those that the message brings into a prompt
    references           each begins a new session on the day after the last remark; right ones show the end of the
                         latest conversation.  The built-in model makes the summaries
    types                the conversations of `talks.json`, six of each built-in type: those whose words tell the type
"""

import gzip
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from app import build_app, engine_of, upgrade_schema
from benchmarks.conversation import Conversation
from benchmarks.harness import Command, Figures, percentiles
from config import Settings
from memory import tokens
from memory.engine import Engine
from memory.knowledge.fact_ranking import Ranking
from memory.recall import recall
from memory.recall.excerpts import excerpt_block
from memory.recall.search import SearchScope, search_memory
from memory.recall.triggers import role_meant
from models import OwnerRow
from models.facts import Fact
from models.messages import Excerpt
from models.owners import Caller

TALKS: Mapping[str, Sequence[Sequence[str]]] = json.loads(Path(__file__).with_name("talks.json").read_text("utf-8"))
BEGAN = datetime(2024, 1, 1, 9, tzinfo=UTC)
HOURS = 17  # between two sessions
SEED = 7
REQUESTS = 250
WHO = {"user_id": "rik"}
DEPTHS = (1, 3, 10)
UNANSWERED = ("unanswerable_personal", "general", "small_talk")
Sessions = dict[str, list[dict[str, Any]]]
Sets = Mapping[str, Any]


def remarks(corpus: Sets, began: datetime = BEGAN) -> Sessions:
    """Return the messages of a corpus, by session."""
    rng, size = random.Random(SEED), corpus["sessions_of"]  # nosec B311
    sessions: Sessions = {}
    for number in range(0, len(corpus["messages"]), size):
        at, messages = began + timedelta(hours=HOURS * number // size), []
        for remark in corpus["messages"][number : number + size]:
            for role, content in (("user", remark), ("assistant", rng.choice(corpus["replies"]))):
                at += timedelta(minutes=1)
                messages.append({"role": role, "content": content, "created_at": at.isoformat()})
        sessions[f"s{number}"] = messages
    return sessions


def first_requests(dialogues: Path) -> list[str]:
    """Return what people asked first in some dialogues of a file of HH-RLHF, such as `harmless-base/test.jsonl.gz`."""
    with gzip.open(dialogues, "rt", encoding="utf-8") as file:
        asked = {
            json.loads(line)["chosen"].split("\n\nAssistant:")[0].removeprefix("\n\nHuman:").strip() for line in file
        }
    return random.Random(SEED).sample(sorted(asked), REQUESTS)  # nosec B311


def recorded(conversation: Conversation) -> Sessions:
    """Return the messages of a conversation, by session."""
    return {
        name: [
            {"role": message.role, "content": message.content, "created_at": f"{message.created_at}Z"}
            for message in messages
        ]
        for name, messages in conversation.sessions.items()
    }


class Person:
    """Somebody who has said all messages of some sessions, in an application of their own."""

    def __init__(self, folder: Path, sessions: Sessions, settings: Sequence[tuple[str, str]] = ()) -> None:
        environ = {"RECAP_DATA_DIR": str(folder), "LOG_LEVEL": "error", "SUMMARY_DEBOUNCE": "0", **dict(settings)}
        app = build_app(Settings.from_env(environ))
        upgrade_schema(app)
        self.engine: Engine = engine_of(app)
        self._client = app.test_client()
        for name, messages in sessions.items():
            self._post(f"/api/sessions/{name}/messages", messages=messages)
        self.engine.job_queue.run_due(["index"])
        if not sessions:
            return
        last = max(message["created_at"] for messages in sessions.values() for message in messages)
        self.now = datetime.fromisoformat(last) + timedelta(days=1)
        with self.engine.database.read() as tx:
            owner = tx.query(OwnerRow).filter_by(name=WHO["user_id"]).one()
            self.scope = SearchScope(owner.id, owner.index_key, self.engine.index.generation(owner.index_key))

    def _post(self, path: str, **body: Any) -> Figures:
        response = self._client.post(path, json={**WHO, **body})
        assert response.status_code in (200, 201) and response.json is not None, response.text
        answer: Figures = response.json
        return answer

    def turn(self, message: str, **more: Any) -> tuple[Figures, float]:
        """Take a turn.  Return what it recalled and how long it took, in milliseconds."""
        started = perf_counter()
        answer = self._post("/api/chat", message=message, **more)
        return answer["memory"], (perf_counter() - started) * 1000

    def search(self, text: str) -> list[str]:
        found = search_memory(self.engine, Caller(**WHO), self.now, text=text, limit=max(DEPTHS))
        return [hit.message.content for hit in found if hit.message is not None]

    def excerpts(self, text: str) -> tuple[Excerpt, ...]:
        """Return the excerpts that a turn shows beside a message, unasked."""
        budget = self.engine.settings.recall_tokens
        key = self.scope.owner_key
        plan = recall.prepare_recall(self.engine, text, key, self.now, UTC, mode="auto", budget=budget)
        with self.engine.database.connect() as tx:
            found = recall.search_in_snapshot(self.engine, tx, self.scope, plan, ())
        return recall.choose_excerpts(self.engine, found).excerpts


def measure_sets(
    folder: Path, sets: Sets, conversations: Sequence[Conversation], settings: Sequence[tuple[str, str]]
) -> Figures:
    """Return the figures of all sets, with these settings."""
    with ExitStack() as stack:

        def person(name: str, sessions: Sessions) -> Person:
            created = Person(folder / name, sessions, settings)
            stack.callback(created.engine.stop)
            return created

        owner = person("", remarks(sets["corpus"]))
        figures: Figures = {name: _answered(owner, sets[name]) for name in ("paraphrase", "short") if name in sets}
        figures |= {name: _unanswered([owner], sets[name]) for name in UNANSWERED if name in sets}
        if "facts" in sets:
            figures["facts"] = _facts(Ranking.of(owner.engine), sets["facts"], owner.engine.settings.fact_tokens)
        people = [person(conversation.name, recorded(conversation)) for conversation in conversations]
        asked_of_all = [name for name in ("unanswerable_locomo", "requests") if people and name in sets]
        return figures | {name: _unanswered(people, sets[name]) for name in asked_of_all}


def _answered(person: Person, questions: Sequence[Sets]) -> Figures:
    places, shown, took = [], 0, []
    for question in questions:
        started = perf_counter()
        found = person.search(question["q"])
        took.append((perf_counter() - started) * 1000)
        places.append(min((found.index(answer) for answer in question["a"] if answer in found), default=max(DEPTHS)))
        excerpts = person.excerpts(question["q"])
        shown += any(message.content in question["a"] for excerpt in excerpts for message in excerpt.messages)
    within = {f"in {depth}": sum(place < depth for place in places) for depth in DEPTHS}
    return {"of": len(questions), **within, "shown": shown, **percentiles(took)}


def _unanswered(people: Sequence[Person], questions: Sequence[str]) -> Figures:
    shown = [person.excerpts(question) for person in people for question in questions]
    mean = fmean(sum(tokens.estimate(excerpt_block(excerpt)) for excerpt in excerpts) for excerpts in shown)
    junk = sum(map(bool, shown))
    return {"of": len(shown), "junk": junk, "percent": round(100 * junk / len(shown)), "tokens": round(mean)}


def _facts(ranking: Ranking, told: Sets, budget: int) -> Figures:
    """Count the questions whose right fact is shown, is the first, and is among the first three."""
    facts = [
        Fact(number, text, BEGAN - timedelta(days=1), BEGAN, importance=importance, scope="user")
        for number, (text, importance) in enumerate(told["facts"], 1)
    ]
    counts = dict.fromkeys(("shown", "in 1", "in 3"), 0)
    for question, right in told["questions"]:
        is_personal, room = role_meant(question) is not None, ranking.message_budget(question, budget)
        shown = ranking.for_message(facts, question, room, BEGAN, is_personal=is_personal)
        place = next((at for at, fact in enumerate(shown) if right in fact.text), None)
        if place is not None:
            counts["shown"] += 1
            counts["in 1"] += place < 1
            counts["in 3"] += place < 3
    return {"of": len(told["questions"]), **counts}


def measure_references(folder: Path, sets: Sets) -> Figures:
    """Return which references bring the end of the latest conversation, on the day after it."""
    corpus = sets["corpus"]
    hours = HOURS * ((len(corpus["messages"]) - 1) // corpus["sessions_of"])
    owner = Person(folder, remarks(corpus, datetime.now(UTC) - timedelta(days=1, hours=hours)))
    owner.engine.job_queue.run_due()
    right, more_ms = 0, []
    owner.turn("Good morning!", temporary=True)
    for text in sets["references"]:
        _, small_talk = owner.turn("Good morning!", temporary=True)
        memory, took = owner.turn(text, temporary=True)
        more_ms.append(took - small_talk)
        shown = [message["content"] for excerpt in memory["excerpts"] for message in excerpt["messages"]]
        right += corpus["messages"][-1] in shown
    owner.engine.stop()
    return {"of": len(more_ms), "right": right, "ms more than small talk": round(median(more_ms), 1)}


def measure_types(folder: Path) -> Figures:
    """Return for how many talks the cue words tell the type."""
    right, nobody = 0, Person(folder, {})
    for name, talks in TALKS.items():
        for number, talk in enumerate(talks):
            for message in talk:
                memory, _ = nobody.turn(message, session_id=f"{name}-{number}", recall="off")
            right += memory["type"] == name
    nobody.engine.stop()
    return {"of": sum(map(len, TALKS.values())), "right": right}


def table(results: Mapping[str, Any]) -> str:
    """Return a line for each set."""
    lines = [f"{results['settings'] or 'The default settings'}:", ""]
    for name, figures in results["sets"].items():
        values = ", ".join(f"{label} {value}" for label, value in figures.items() if label != "of")
        lines.append(f"{name:24}of {figures['of']:3}: {values}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("meaning", __doc__)
    command.add_argument("folder", type=Path, help="with the sets")
    command.add_argument("--conversations", nargs="*", type=Path, default=[], metavar="CONVERSATION.json | FOLDER")
    command.add_argument("--requests", type=Path, metavar="DIALOGUES.jsonl.gz")
    command.takes_settings()
    options = command.parse_args(arguments)
    sets = {file.stem: json.loads(file.read_text("utf-8")) for file in sorted(options.folder.glob("*.json"))}
    if "corpus" not in sets:
        command.error(f"there is no corpus.json in {options.folder}")
    if options.requests:
        sets["requests"] = first_requests(options.requests)
    talks = [talk for conversation in command.load(options.conversations) for talk in conversation.in_first_person()]

    def measure(results: Figures) -> None:
        results["settings"] = ", ".join(f"{name}={value}" for name, value in options.set)
        with tempfile.TemporaryDirectory(prefix="recap-bench-") as folder:
            results["sets"] = measure_sets(Path(folder) / "sets", sets, talks, options.set)
            if "references" in sets:
                results["sets"]["references"] = measure_references(Path(folder) / "references", sets)
            results["sets"]["types"] = measure_types(Path(folder) / "types")

    command.report(options, measure, table)


if __name__ == "__main__":
    main()
