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

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flask.testing import FlaskClient
from flask_migrate import upgrade
from sqlalchemy import create_engine

from app import build_app, engine_of
from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.results import load_line, machine_line, rows
from config import Settings
from config.parsers import When
from memory.background import register_jobs
from memory.engine import Engine
from memory.llm import ConsolidationMaterial, LanguageModel, ModelEvent, ModelRequest, StreamEnd, TextDelta
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

Figures = dict[str, Any]
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
    """What somebody may say in several wordings: one of WORDINGS with its values, or its denial."""

    wording: int
    values: tuple[tuple[str, str], ...]
    denied: bool = False

    def texts(self) -> list[str]:
        wordings = [DENIED[str(self.wording)]] if self.denied else WORDINGS[self.wording]
        return [wording.format(**dict(self.values)) for wording in wordings]


def statements(rng: random.Random, facts: int) -> tuple[list[Statement], dict[Statement, Statement]]:
    """Statements that all differ: plain ones, and near-misses, each with the plain one that it misses."""
    near, plain = round(facts * NEAR_MISSES), facts - round(facts * DUPLICATES) - round(facts * NEAR_MISSES)
    known: dict[Statement, None] = {}
    while len(known) < plain:
        number = rng.randrange(len(WORDINGS))
        slots = sorted(set(re.findall(r"\{(\w+)\}", WORDINGS[number][0])))
        known[Statement(number, tuple((slot, rng.choice(VALUES[slot])) for slot in slots))] = None
    first, missing = list(known), dict[Statement, Statement]()
    while len(missing) < near:
        one = rng.choice(first)
        if (missed := _missed(rng, one)) not in known:
            missing[missed] = one
    return first, missing


def _missed(rng: random.Random, one: Statement) -> Statement:
    """A statement that differs from another one in a number or a name, or denies it."""
    values, slots = dict(one.values), [slot for slot, _ in one.values if slot in NUMBERS_AND_NAMES]
    if str(one.wording) in DENIED and (not slots or rng.random() < 1 / 3):
        return Statement(one.wording, one.values, denied=True)
    for slot in rng.sample(slots, min(1, len(slots))):
        values[slot] = rng.choice(VALUES[slot])
    return Statement(one.wording, tuple(values.items()))


def texts_of(rng: random.Random, facts: int) -> tuple[list[str], Truth, Mapping[int, int]]:
    """The texts of the facts, in the order they were stated; which statement each makes; and the near-misses, each with
    the statement that it misses."""
    plain, near = statements(rng, facts)
    numbers = {one: number for number, one in enumerate([*plain, *near])}
    unused = {one: rng.sample(one.texts(), len(one.texts())) for one in numbers}
    texts = {unused[one].pop(): number for one, number in numbers.items()}
    while len(texts) < facts:
        one = rng.choice(plain)
        if unused[one]:
            texts.setdefault(unused[one].pop(), numbers[one])
    return rng.sample(list(texts), facts), texts, {numbers[one]: numbers[other] for one, other in near.items()}


@dataclass(frozen=True)
class Judge:
    """A mini model that says of a pair of facts what `same` says of their texts."""

    same: Callable[[str, str], bool]
    name = "judge"
    supports_tools = False
    window = None

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        assert isinstance(request.material, ConsolidationMaterial)
        pairs = enumerate(request.material.pairs, 1)
        found = [number for number, (older, newer) in pairs if self.same(older.text, newer.text)]
        yield TextDelta(json.dumps({"same": found, "contradicts": []}))
        yield StreamEnd("stop", self.name, Usage(0, 0))


@dataclass
class Counted:
    """A model that counts its calls."""

    model: LanguageModel
    calls: int = 0
    name = "counted"
    supports_tools = False
    window = None

    def answer(self, request: ModelRequest) -> Iterator[ModelEvent]:
        self.calls += 1
        yield from self.model.answer(request)


def measured(
    folder: Path, model: LanguageModel, texts: Sequence[str], truth: Truth, near: Mapping[int, int]
) -> Figures:
    """The figures of the facts with these texts, of which this mini model judges the pairs."""
    app = build_app(Settings(data_dir=folder, log_level="error", consolidation=When("manual")))
    with app.app_context():
        upgrade()
    client, today, mini = app.test_client(), BEGAN, Counted(model)
    engine = create_engine(engine_of(app).database.engine.url)
    services = Engine(engine_of(app).settings, engine, now=lambda: today)
    register_jobs(services)
    services.model_server.models.mini = mini
    imported = client.post("/api/import", query_string=WHO, json=document(texts))
    assert imported.status_code == 200, imported.text
    planted, days, longest, first = len(texts) - len(set(truth.values())), 0, 0.0, Figures()
    while mini.calls == days:
        days, today = days + 1, today + timedelta(days=1)
        services.consolidation.start(Caller(**WHO))
        began = time.process_time()
        services.job_queue.run_due(["consolidation"])
        longest = max(longest, time.process_time() - began)
        first = first or judged(client, truth, near)
    found = judged(client, truth, near)
    for each in (services, engine_of(app)):
        each.stop()
    return {
        **found,
        "calls": mini.calls,
        "precision": found["right"] / max(1, found["merged"]),
        "recall": found["right"] / planted,
        "recall_first_day": first["right"] / planted,
        "longest_seconds": longest,
    }


def document(texts: Sequence[str]) -> Figures:
    """An export whose facts have these texts, stated an hour apart."""
    times = [(BEGAN - timedelta(hours=len(texts) - number)).isoformat() for number in range(len(texts))]
    about = {"category": "other", "importance": 3, "scope": "user"}
    facts = [
        {**about, "id": number, "text": text, "quote": text, "valid_from": at, "created_at": at}
        for number, (text, at) in enumerate(zip(texts, times, strict=True), 1)
    ]
    return {"format": "recap-export", "version": 1, "sessions": [], "facts": facts}


def judged(client: FlaskClient, truth: Truth, near: Mapping[int, int]) -> Figures:
    """How many facts were merged, how many of them into a fact that says the same, and how many near-misses were
    brought together with what they miss."""
    merged, missed = list[tuple[int, int]](), 0
    query: dict[str, Any] | None = {**WHO, "limit": 100}
    while query is not None:
        page: Figures = client.get("/api/facts", query_string=query).get_json()
        for one in page["items"]:
            together = [truth[one["text"]], *(truth[proof["text"]] for proof in one["proofs"])]
            merged += [(together[0], other) for other in together[1:]]
            missed += sum(near.get(statement) in together for statement in set(together))
        query = {**query, "cursor": page["next_cursor"]} if page["next_cursor"] else None
    right = sum(one == other for one, other in merged)
    return {"merged": len(merged), "right": right, "near_misses_merged": missed}


def table(results: Mapping[str, Any]) -> str:
    """The figures of the three models as text."""
    of = "{facts:,} facts: {duplicates:,} duplicates, {near_misses:,} near-misses".format(**results)
    lines = [of, f"{'':30}" + "".join(name.rjust(14) for name in results["models"])]
    lines += rows(ROWS, list(results["models"].values()), 30, 14)
    return "\n".join([*lines, load_line(results["load"]), machine_line(results["machine"])])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("consolidation", __doc__)
    command.add_argument("--facts", type=int, default=5_000, help="how many")
    options = command.parse_args(arguments)
    texts, truth, near = texts_of(random.Random(7), options.facts)  # nosec B311
    models: dict[str, LanguageModel] = {
        "built-in": BuiltinModel(),
        "right": Judge(lambda one, other: truth[one] == truth[other]),
        "always same": Judge(lambda *_: True),
    }
    results: Figures = about_now() | {"facts": len(texts), "near_misses": len(near), "models": {}}
    results["duplicates"] = len(texts) - len(set(truth.values()))
    with breaking_off(), progress(len(models), "model") as bar:
        for name, model in models.items():
            with TemporaryDirectory(prefix="recap-bench-") as folder:
                results["models"][name] = measured(Path(folder), model, texts, truth, near)
            bar.update()
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
