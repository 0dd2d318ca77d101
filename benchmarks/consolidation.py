"""How well consolidation tells which facts say the same.

    make bench-consolidation                              # 5,000 facts, some minutes
    make bench-consolidation OPTIONS="--facts 500"        # seconds

One person has many facts, made of the wordings in `statements.json` by a fixed seed.  30 % of them are duplicates: they
say in other words what another fact says.  10 % are near-misses: one number or name differs from another fact, or it is
denied.  They are imported, and the job runs once a day, on the clock of the benchmark, until it has compared them all.
Three mini models judge the pairs that the words leave open:

    built-in      Recap's built-in model, which decides none: what is merged, the words alone have told
    right         a model that knows which facts say the same
    always same   a model that says that the facts of every pair say the same: only the words restrain it

precision is the share of the merged facts that say the same as the fact that they were merged into, recall the share of
the duplicates that were merged.
"""

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import create_engine

from app import build_app, engine_of, upgrade_schema
from benchmarks.harness import Command, Figures, by_column, progress
from config import Settings
from config.parsers import When
from memory.engine import Engine
from memory.job_kinds import register_jobs
from memory.knowledge import consolidation
from memory.llm import ModelEvent, ModelRequest, StreamEnd, TextDelta
from memory.llm.builtin import BuiltinModel
from models.owners import Caller, Usage

DUPLICATES, NEAR_MISSES = 0.3, 0.1  # of all facts
NUMBERS_AND_NAMES = ("n", "year", "name", "other", "city", "company")
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
WHO = {"user_id": "ada"}
STATEMENTS = json.loads(Path(__file__).with_name("statements.json").read_text("utf-8"))
VALUES: dict[str, list[str]] = {name: values.split() for name, values in STATEMENTS["values"].items()}
WORDINGS: list[list[str]] = STATEMENTS["wordings"]
DENIED: dict[str, str] = STATEMENTS["denied"]

Truth = Mapping[str, int]
"""Which statement a text makes."""

ROWS = (
    ("merged", "{:,}", ("merged",)),
    ("precision", "{:.4f}", ("precision",)),
    ("recall", "{:.3f}", ("recall",)),
    ("  after the first day", "{:.3f}", ("recall_first_day",)),
    ("near-misses merged", "{:,}", ("near_misses_merged",)),
    ("calls, one a day", "{:,}", ("calls",)),
    ("longest run, seconds of CPU", "{:.1f}", ("longest_seconds",)),
)


@dataclass(frozen=True)
class Statement:
    """Something that can be said in several wordings: one of WORDINGS with its values, or its denial."""

    wording: int
    values: tuple[tuple[str, str], ...]
    denied: bool = False

    def texts(self) -> list[str]:
        wordings = [DENIED[str(self.wording)]] if self.denied else WORDINGS[self.wording]
        return [wording.format(**dict(self.values)) for wording in wordings]

    def missed_by(self, rng: random.Random) -> "Statement":
        """Return a statement that differs in a number or a name, or denies this one."""
        values, slots = dict(self.values), [slot for slot, _ in self.values if slot in NUMBERS_AND_NAMES]
        if str(self.wording) in DENIED and (not slots or rng.random() < 1 / 3):
            return Statement(self.wording, self.values, denied=True)
        for slot in rng.sample(slots, min(1, len(slots))):
            values[slot] = rng.choice(VALUES[slot])
        return Statement(self.wording, tuple(values.items()))


def make_texts(rng: random.Random, facts: int) -> tuple[list[str], Truth, Mapping[int, int]]:
    """Return the texts of the facts in their order, the statement of each text, and the near-misses.

    A near-miss comes with the statement that it misses.
    """
    near, plain = round(facts * NEAR_MISSES), facts - round(facts * DUPLICATES) - round(facts * NEAR_MISSES)
    known: dict[Statement, None] = {}
    while len(known) < plain:
        number = rng.randrange(len(WORDINGS))
        slots = sorted(set(re.findall(r"\{(\w+)\}", WORDINGS[number][0])))
        known[Statement(number, tuple((slot, rng.choice(VALUES[slot])) for slot in slots))] = None
    statements, missed = list(known), dict[Statement, Statement]()
    while len(missed) < near:
        statement = rng.choice(statements)
        if (other := statement.missed_by(rng)) not in known:
            missed[other] = statement
    numbers = {statement: number for number, statement in enumerate([*statements, *missed])}
    unused = {statement: rng.sample(statement.texts(), len(statement.texts())) for statement in numbers}
    texts = {unused[statement].pop(): number for statement, number in numbers.items()}
    while len(texts) < facts:
        statement = rng.choice(statements)
        if unused[statement]:
            texts.setdefault(unused[statement].pop(), numbers[statement])
    pairs = {numbers[other]: numbers[statement] for other, statement in missed.items()}
    return rng.sample(list(texts), facts), texts, pairs


_PAIR = re.compile(r"^\[(\d+)\] older: - (.*) \(said .*\n\[\1\] newer: - (.*) \(said", re.M)


@dataclass
class Mini:
    """A mini model that counts its calls."""

    reply: Callable[[ModelRequest], Iterator[ModelEvent]]
    calls: int = 0
    name = "mini"
    supports_tools = False
    window = None
    down = None

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        self.calls += 1
        yield from self.reply(request)


def judge(same: Callable[[str, str], bool], request: ModelRequest) -> Iterator[ModelEvent]:
    """Say of each pair of facts what `same` says of their texts."""
    pairs = _PAIR.findall(unescape(request.messages[-1].content))
    found = [int(number) for number, older, newer in pairs if same(older, newer)]
    yield TextDelta(json.dumps({"same": found, "contradicts": []}))
    yield StreamEnd("stop", "judge", Usage(0, 0))


def measure(folder: Path, mini: Mini, texts: Sequence[str], truth: Truth, near: Mapping[int, int]) -> Figures:
    """Return the figures of the facts with these texts, of which this mini model judges the pairs."""
    app = build_app(Settings(data_dir=folder, log_level="error", consolidation=When("manual")))
    upgrade_schema(app)
    client, today = app.test_client(), BEGAN
    engine = create_engine(engine_of(app).database.engine.url)
    recap = Engine(engine_of(app).settings, engine, now=lambda: today)
    register_jobs(recap)
    recap.model_server.models.mini = mini
    response = client.post("/api/import", query_string=WHO, json=document(texts))
    assert response.status_code == 200, response.text
    duplicates, days, longest, first = len(texts) - len(set(truth.values())), 0, 0.0, Figures()
    while mini.calls == days:
        days, today = days + 1, today + timedelta(days=1)
        consolidation.start(recap, Caller(**WHO))
        started = time.process_time()
        recap.job_queue.run_due(["consolidation"])
        longest = max(longest, time.process_time() - started)
        first = first or count_merged(client, truth, near)
    merged = count_merged(client, truth, near)
    for engine_in_use in (recap, engine_of(app)):
        engine_in_use.stop()
    return {
        **merged,
        "calls": mini.calls,
        "precision": merged["right"] / max(1, merged["merged"]),
        "recall": merged["right"] / duplicates,
        "recall_first_day": first["right"] / duplicates,
        "longest_seconds": longest,
    }


def document(texts: Sequence[str]) -> Figures:
    """Return an export whose facts have these texts, stated an hour apart."""
    times = [(BEGAN - timedelta(hours=len(texts) - number)).isoformat() for number in range(len(texts))]
    common = {"category": "other", "importance": 3, "scope": "user"}
    facts = [
        {**common, "id": number, "text": text, "quote": text, "valid_from": at, "created_at": at}
        for number, (text, at) in enumerate(zip(texts, times, strict=True), 1)
    ]
    return {"format": "recap-export", "version": 1, "sessions": [], "facts": facts}


def count_merged(client: FlaskClient, truth: Truth, near: Mapping[int, int]) -> Figures:
    """Count the merged facts, and those that say the same as the fact that they were merged into.

    Counts also the near-misses that were brought together with the statement they miss.
    """
    merged, missed = list[tuple[int, int]](), 0
    query: Figures | None = {**WHO, "limit": 100}
    while query is not None:
        page: Figures = client.get("/api/facts", query_string=query).get_json()
        for fact in page["items"]:
            together = [truth[fact["text"]], *(truth[proof["text"]] for proof in fact["proofs"])]
            merged += [(together[0], other) for other in together[1:]]
            missed += sum(near.get(statement) in together for statement in set(together))
        query = {**query, "cursor": page["next_cursor"]} if page["next_cursor"] else None
    right = sum(statement == other for statement, other in merged)
    return {"merged": len(merged), "right": right, "near_misses_merged": missed}


def table(results: Mapping[str, Any]) -> str:
    """Return a column for each of the three models."""
    title = "{facts:,} facts: {duplicates:,} duplicates, {near_misses:,} near-misses".format(**results)
    return by_column(title, results["models"], ROWS)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("consolidation", __doc__)
    command.add_argument("--facts", type=int, default=5_000, help="how many")
    options = command.parse_args(arguments)
    texts, truth, near = make_texts(random.Random(7), options.facts)  # nosec B311
    models = {
        "built-in": Mini(BuiltinModel().answer),
        "right": Mini(partial(judge, lambda older, newer: truth[older] == truth[newer])),
        "always same": Mini(partial(judge, lambda *_: True)),
    }

    def measure_models(results: Figures) -> None:
        duplicates = len(texts) - len(set(truth.values()))
        results |= {"facts": len(texts), "near_misses": len(near), "duplicates": duplicates, "models": {}}
        with progress(len(models), "model") as bar:
            for name, model in models.items():
                with TemporaryDirectory(prefix="recap-bench-") as folder:
                    results["models"][name] = measure(Path(folder), model, texts, truth, near)
                bar.update()

    command.report(options, measure_models, table)


if __name__ == "__main__":
    main()
