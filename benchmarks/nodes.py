"""Nodes on one database, the turns that clients send them, and what a turn costs each part.

The clients turn to the nodes directly, in turn, one turn after the other.  CPU time is counted until no job waits, so
it includes the work after replies.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.calling import FAILURES, Connection
from benchmarks.filling import Filled, Person
from benchmarks.model import ModelProcess
from benchmarks.notes import note
from benchmarks.postgres import Counters, PostgreSQL
from benchmarks.resources import cpu_seconds
from benchmarks.results import percentiles
from benchmarks.serving import Server, temporary_server

THREADS = 32
COLD = 5  # people of each client
COLD_MESSAGES = 1_000  # of such a person, about
SETTLE_SECONDS = 300.0

Figures = dict[str, Any]


@dataclass(frozen=True)
class Load:
    """What the clients send: for each, the bodies of its turns."""

    bodies: Sequence[Sequence[Mapping[str, str]]]

    @classmethod
    def warm(cls, prefix: str, clients: int, turns: range) -> Load:
        """Each client stays with one person and session."""
        return cls([[_turn(f"{prefix}-{client}", number) for number in turns] for client in range(clients)])

    @classmethod
    def cold(cls, people: Sequence[Person], clients: int) -> Load:
        """One turn of each of the people who have about COLD_MESSAGES, about something that they once said."""
        chosen = random.Random(1)  # nosec B311 # the same at each run
        some = sorted(people, key=lambda one: abs(one.messages - COLD_MESSAGES))[: clients * COLD]
        turns = [
            {"user_id": one.name, "session_id": f"{one.name}-again", "message": one.asked(chosen)[0]} for one in some
        ]
        return cls([turns[client::clients] for client in range(min(clients, len(turns)))])

    def __len__(self) -> int:
        return sum(map(len, self.bodies))


@dataclass(frozen=True)
class Conditions:
    """What is the same for all clusters of a run."""

    model: ModelProcess
    clients: int
    settings: Mapping[str, str]  # of Recap, other than the defaults
    bar: Any


@dataclass(frozen=True)
class Cluster:
    """Running nodes on one database; without `postgres`, one node on SQLite."""

    under: Conditions
    nodes: Sequence[Server]
    postgres: PostgreSQL | None

    def send(self, load: Load) -> Figures:
        """Send all turns, the clients at once."""
        took, errors = list[float](), list[str]()

        def converse(client: int) -> None:
            with Connection(self.nodes[client % len(self.nodes)].url) as connection:
                for body in load.bodies[client]:
                    try:
                        took.append(connection.turn("/api/chat", body).seconds)
                    except FAILURES as error:
                        errors.append(f"{type(error).__name__}: {error}")
                    self.under.bar.update()

        begun = time.monotonic()
        with ThreadPoolExecutor(len(load.bodies)) as pool:
            list(pool.map(converse, range(len(load.bodies))))
        return {
            "per_second": round(len(took) / (time.monotonic() - begun), 1),
            "turn_ms": percentiles([1000 * one for one in took]),
            "failed": len(errors),
            "first_failure": errors[0] if errors else None,
        }

    def measured(self, load: Load) -> Figures:
        """The figures of these turns, with what they cost each."""
        before = self.counters()
        figures = self.send(load)
        connections = self.postgres.connections() if self.postgres else None
        self.settle()
        return {**figures, "connections": connections, **each(before, self.counters(), len(load) - figures["failed"])}

    def alone(self, prefix: str) -> Figures:
        """The overhead of one client's turns."""
        overhead = Filled(self.nodes[0], self.under.model, self.under.bar).turns([Person(prefix, 0)])
        self.settle()
        return overhead

    def settle(self) -> None:
        for node in self.nodes:
            node.settle(SETTLE_SECONDS)

    def counters(self) -> Counters:
        counters = self.postgres.counters() if self.postgres else {}
        cpu = [cpu_seconds(node.pid) for node in self.nodes]
        return counters | ({} if None in cpu else {"nodes_cpu_ms": 1000 * sum(filter(None, cpu))})


def each(before: Counters, after: Counters, count: int) -> Figures:
    """What one turn or message did, and the share of an index's pages that were found in PostgreSQL's cache."""
    done = {name: after[name] - before[name] for name in after}
    shares = {}
    if indexed := done.get("index_hit", 0) + done.get("index_read", 0):
        shares = {"index_hit_percent": round(100 * done["index_hit"] / indexed, 1)}
    return {"each": {name: round(value / max(1, count), 2) for name, value in done.items()}, **shares}


@contextmanager
def cluster(
    under: Conditions, nodes: int, postgres: PostgreSQL | None = None, *, workers: int = 1
) -> Iterator[Cluster]:
    """Running nodes of so many workers each."""
    settings = {"WEB_WORKERS": str(workers), "WEB_THREADS": str(THREADS)}
    settings |= {"DATABASE_URL": postgres.url} if postgres else {}
    with ExitStack() as stack:
        servers = [temporary_server(under.model.url, **{**settings, **under.settings}) for _ in range(nodes)]
        yield Cluster(under, [stack.enter_context(server) for server in servers], postgres)


def _turn(name: str, number: int) -> dict[str, str]:
    return {"user_id": name, "session_id": name, "message": note(name, number).text}
