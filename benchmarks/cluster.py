"""Turns on one PostgreSQL with 1, 2 and 4 nodes beside SQLite with one node, and both full of messages.

Turns: the clients send one turn after the other, each in a session of its own person, and turn to the nodes directly.
Each node is a server of one worker of 32 threads.  The model answers at once.

    turns a second     of all clients together; a turn is measured at the client
    alone              the overhead of turns of one client, when nobody else sends any
    CPU                until no job waits, with summaries and the index: of all nodes, and of PostgreSQL's processes
    WAL                bytes of PostgreSQL's write-ahead log; whole pages in it, which a page's first change after a
                       checkpoint costs; and how often the log was written to the disk
    pages              of 8 KB, found in PostgreSQL's cache (hit) or read from the system, and written until the next
                       checkpoint; the measurement begins and ends with one

Messages: people get messages, some far more than others, at each of the sizes, through one server of two workers.  With
--data the PostgreSQL's folder is kept, and a run that was stopped goes on where it was.  At each size, after a VACUUM:

    filled             messages stored, summarised and indexed in a second, and what one of them cost; left out where
                       most of them were there already
    search             at the client, for a question about one of the person's messages
    overhead           of turns, one after the other
    bytes              of SQLite's database and Whoosh's index for each message
    cold               one turn of each of some people with about 1,000 messages, after PostgreSQL was started again:
                       neither it nor a node has anything of them in memory, and each turn has a summary of its own
    bytes a message    of each table and index of PostgreSQL.  Filled messages have no row in `turns`; `bytes a turn`
                       is measured where the turns were taken

Clients, model, nodes and database share the machine, so turns a second tell how the databases compare, not what more
machines would do: see CPU for that.  docs/scale.md derives what a large installation needs.
"""

import random
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.conversation import answer, note
from benchmarks.harness import (
    Command,
    Connection,
    Figures,
    Row,
    TurnTimes,
    by_column,
    changed_settings,
    converse_at_once,
    cpu_seconds,
    database_bytes,
    folder_bytes,
    markdown,
    percentiles,
    progress,
    worker_memory,
)
from benchmarks.model import ModelProcess, Script
from benchmarks.scale import MEASURED, Assumed, measured_in, needs_table
from benchmarks.serving import Counters, PostgreSQL, Server, temporary_server, terminable
from benchmarks.turns import overheads

NODES = (1, 2, 4)
ON = ("sqlite", "postgres")
THREADS = 32
WARM_UP = 3  # turns of each client before the measurement
WORKERS = 2  # of the server that is filled
COLD = 5  # people of each client
COLD_MESSAGES = 1_000  # of such a person, about
SETTLE_SECONDS = 300.0
UNEVEN = 0.7  # a person's share is 1 / rank to this power
FILLERS = 2  # connections
SESSION = 100  # messages
SEARCHES = 200
ALONE_TURNS = 40
PAUSE = 0.01  # seconds between turns
BEGIN = datetime(2018, 1, 1, 8)
SCRIPT = Script(words=200, facts=1, keeps=False)
COST_ROWS: tuple[Row, ...] = (
    ("CPU of the nodes, ms", "{:,.1f}", ("each", "nodes_cpu_ms")),
    ("CPU of PostgreSQL, ms", "{:,.1f}", ("each", "cpu_ms")),
    ("commits", "{:,.1f}", ("each", "commits")),
    ("WAL, bytes", "{:,.0f}", ("each", "wal_bytes")),
    ("WAL, whole pages", "{:,.2f}", ("each", "wal_pages")),
    ("WAL, written to the disk", "{:,.2f}", ("each", "syncs")),
    ("pages hit", "{:,.0f}", ("each", "hit")),
    ("pages read", "{:,.1f}", ("each", "read")),
    ("pages written", "{:,.1f}", ("each", "writes")),
)
TURN_ROWS: tuple[Row, ...] = (
    ("a turn, ms: median", "{:,.0f}", ("turn_ms", "p50")),
    ("a turn, ms: p95", "{:,.0f}", ("turn_ms", "p95")),
)
NODE_ROWS: tuple[Row, ...] = (
    ("turns a second", "{:,.0f}", ("per_second",)),
    *TURN_ROWS,
    ("alone, ms: median", "{:,.1f}", ("alone_ms", "p50")),
    ("alone, ms: p95", "{:,.1f}", ("alone_ms", "p95")),
    *COST_ROWS,
    ("index pages hit, %", "{:,.1f}", ("index_hit_percent",)),
    ("connections", "{:,}", ("connections",)),
    ("memory of a node's process, MB", "{:,.0f}", ("memory_mb",)),
    ("failed turns", "{:,}", ("failed",)),
)
FILLED_ROWS: tuple[Row, ...] = (
    ("people", "{:,}", ("people",)),
    ("messages of the person with most", "{:,}", ("largest",)),
    ("filled a second", "{:,.0f}", ("filled", "per_second")),
    ("filled: CPU of the nodes, ms", "{:,.2f}", ("filled", "each", "nodes_cpu_ms")),
    ("filled: CPU of PostgreSQL, ms", "{:,.2f}", ("filled", "each", "cpu_ms")),
    ("filled: WAL, bytes", "{:,.0f}", ("filled", "each", "wal_bytes")),
    *(
        (f"{label}, ms: {share}", "{:,.1f}", (name, path))
        for label, name in (
            ("search, a median person", "search_ms"),
            ("search, the person with most", "search_most_ms"),
            ("overhead of a turn, median people", "alone_ms"),
            ("overhead of a turn, the person with most", "alone_most_ms"),
        )
        for share, path in (("median", "p50"), ("p95", "p95"))
    ),
    ("index pages hit in these, %", "{:,.1f}", ("index_hit_percent",)),
    ("index, bytes a message", "{:,.0f}", ("index_bytes",)),
    ("database, bytes a message", "{:,.0f}", ("database_bytes",)),
    *((f"cold: {label}", shape, ("cold", *path)) for label, shape, path in (*TURN_ROWS, *COST_ROWS, NODE_ROWS[-1])),
    ("VACUUM (ANALYZE), s", "{:,.1f}", ("vacuum_seconds",)),
    ("REINDEX of `messages`, s", "{:,.1f}", ("reindex_seconds", "messages")),
    ("REINDEX of `search_messages`, s", "{:,.1f}", ("reindex_seconds", "search_messages")),
)


# -- people with messages


@dataclass(frozen=True)
class Person:
    """A person, and how many messages they have: notes and the answers to them, SESSION a day."""

    name: str
    messages: int

    def question(self, rng: random.Random) -> str:
        """Return a question about one of the person's notes."""
        about = note(self.name, rng.randrange(max(1, self.messages // 2)))
        return rng.choice((about.question, about.reminder))

    def batches_after(self, count: int) -> Iterator[tuple[str, list[dict[str, str]]]]:
        """Yield the messages after the first `count`, one batch for each call: a session, and its next messages."""
        while count < self.messages:
            number = count // SESSION
            end = min(self.messages, (number + 1) * SESSION)
            yield f"{self.name}-{number}", [self._message(at) for at in range(count, end)]
            count = end

    def _message(self, at: int) -> dict[str, str]:
        text = note(self.name, at // 2).text
        session, within = divmod(at, SESSION)
        return {
            "role": "assistant" if at % 2 else "user",
            "content": answer(text) if at % 2 else text,
            "created_at": (BEGIN + timedelta(days=session, minutes=within)).isoformat(),
        }


def spread(owners: int, messages: int) -> list[Person]:
    """Return people with about `messages` messages in total, the largest first.  A larger total gives nobody fewer."""
    weights = [1 / rank**UNEVEN for rank in range(1, owners + 1)]
    return [Person(f"person-{number}", round(messages * it / sum(weights))) for number, it in enumerate(weights)]


def median_people(people: Sequence[Person]) -> Sequence[Person]:
    """Return the middle fifth of people, sorted by their messages."""
    return people[len(people) * 2 // 5 : len(people) * 3 // 5 + 1]


# -- nodes on one database, and the turns that clients send them

Load = Sequence[Sequence[Mapping[str, str]]]
"""For each client the bodies of its turns."""


def warm_load(prefix: str, clients: int, turns: range) -> Load:
    """Return turns of clients that each stay with one person and session."""
    names = [f"{prefix}-{client}" for client in range(clients)]
    return [
        [{"user_id": name, "session_id": name, "message": note(name, number).text} for number in turns]
        for name in names
    ]


def cold_load(people: Sequence[Person], clients: int) -> Load:
    """Return one turn of each of the people who have about COLD_MESSAGES, with a question about a note of theirs."""
    rng = random.Random(1)  # nosec B311 # the same at each run
    some = sorted(people, key=lambda person: abs(person.messages - COLD_MESSAGES))[: clients * COLD]
    turns = [
        {"user_id": person.name, "session_id": f"{person.name}-again", "message": person.question(rng)}
        for person in some
    ]
    return [turns[client::clients] for client in range(min(clients, len(turns)))]


@dataclass(frozen=True)
class Run:
    """Conditions that all clusters of a run share."""

    model: ModelProcess
    clients: int
    settings: Mapping[str, str]  # of Recap, other than the defaults
    bar: Any


@dataclass(frozen=True)
class Cluster:
    """Running nodes on one database; without `postgres`, one node on SQLite."""

    run: Run
    nodes: Sequence[Server]
    postgres: PostgreSQL | None
    people: dict[str, Person] = field(default_factory=dict)  # with messages

    def send(self, load: Load) -> Figures:
        """Send all turns, the clients at once; each keeps to one node."""
        started = time.monotonic()
        done = converse_at_once([node.url for node in self.nodes], "/api/chat", load, self.run.bar)
        return {"per_second": round(len(done.turns) / (time.monotonic() - started), 1), **done.figures()}

    def measure(self, load: Load) -> Figures:
        """Return the figures of these turns, with the cost of each."""
        before = self.counters()
        figures = self.send(load)
        connections = self.postgres.connections() if self.postgres else None
        self.settle()
        count = sum(map(len, load)) - figures["failed"]
        return {**figures, "connections": connections, **cost_of_each(before, self.counters(), count)}

    def fill(self, people: Sequence[Person]) -> float:
        """Add the messages that each person lacks, and wait for the jobs.  Return messages per second.

        Raises ValueError if a call is refused, OSError if the server is unreachable, RuntimeError if jobs fail.
        """
        before, started = self.messages(), time.monotonic()

        def bring(person: Person) -> None:
            count = self.people.get(person.name, Person(person.name, 0)).messages
            with Connection(self.nodes[0].url) as connection:
                for session, batch in person.batches_after(count):
                    body = {"user_id": person.name, "messages": batch}
                    connection.call("POST", f"/api/sessions/{session}/messages", body)
                    count += len(batch)
                    self.people[person.name] = Person(person.name, count)
                    self.run.bar.update(len(batch))

        with ThreadPoolExecutor(FILLERS) as pool:
            list(pool.map(bring, people))
        new = self.messages() - before
        self.nodes[0].settle(600 + new / 10)
        return new / (time.monotonic() - started)

    def searches(self, people: Sequence[Person]) -> dict[str, float]:
        """Return the milliseconds of searches at the client, each for a question about a message of the person."""
        rng, took = random.Random(1), list[float]()  # nosec B311 # the same at each run
        with Connection(self.nodes[0].url) as connection:
            for number in range(SEARCHES):
                person = people[number % len(people)]
                words = person.question(rng)
                started = time.monotonic()
                found = connection.call("GET", "/api/search", q=words, user_id=person.name, limit=10)
                took.append(1000 * (time.monotonic() - started))
                if not found["results"]:
                    raise RuntimeError(f"no results for {words!r} among {person.messages:,} messages")
        return percentiles(took)

    def alone(self, people: Sequence[Person]) -> dict[str, float]:
        """Return the overhead in milliseconds of one client's turns.  Those of a person go into one new session."""
        turns, before = list[TurnTimes](), len(self.run.model.calls())
        with Connection(self.nodes[0].url) as connection:
            for number in range(ALONE_TURNS):
                name = people[number % len(people)].name
                session = f"{name}-among-{self.messages()}"
                body = {"user_id": name, "session_id": session, "message": note(session, number).text}
                turns.append(connection.turn("/api/chat", body))
                time.sleep(PAUSE)
        self.settle()
        overhead: dict[str, float] = overheads(turns, self.run.model.calls()[before:])["overhead_ms"]
        return overhead

    def messages(self) -> int:
        return sum(person.messages for person in self.people.values())

    def settle(self) -> None:
        for node in self.nodes:
            node.settle(SETTLE_SECONDS)

    def counters(self) -> Counters:
        counters = self.postgres.counters() if self.postgres else {}
        cpu = [cpu_seconds(node.pid) for node in self.nodes]
        return counters | ({} if None in cpu else {"nodes_cpu_ms": 1000 * sum(filter(None, cpu))})


def cost_of_each(before: Counters, after: Counters, count: int) -> Figures:
    """Return the cost of one turn or message, and the share of an index's pages found in PostgreSQL's cache."""
    done = {name: after[name] - before[name] for name in after}
    shares = {}
    if indexed := done.get("index_hit", 0) + done.get("index_read", 0):
        shares = {"index_hit_percent": round(100 * done["index_hit"] / indexed, 1)}
    return {"each": {name: round(value / max(1, count), 2) for name, value in done.items()}, **shares}


@contextmanager
def start_cluster(run: Run, nodes: int, postgres: PostgreSQL | None = None, *, workers: int = 1) -> Iterator[Cluster]:
    """Run nodes of so many workers each."""
    settings = {"WEB_WORKERS": str(workers), "WEB_THREADS": str(THREADS)}
    settings |= {"DATABASE_URL": postgres.url} if postgres else {}
    with ExitStack() as stack:
        servers = [temporary_server(run.model.url, **{**settings, **run.settings}) for _ in range(nodes)]
        yield Cluster(run, [stack.enter_context(server) for server in servers], postgres)


# -- the two parts of the benchmark


def measure_turns(run: Run, numbers: Sequence[int], count: int) -> Figures:
    """Return the figures of each number of nodes, and the sizes of PostgreSQL's tables.

    Each client sends `count` turns.
    """

    def column(name: str, nodes: int, postgres: PostgreSQL | None) -> Figures:
        run.bar.set_postfix_str(name)
        with start_cluster(run, nodes, postgres) as cluster:
            cluster.send(warm_load(name, run.clients, range(WARM_UP)))
            cluster.settle()
            if postgres:  # autovacuum would do so within a minute; until then new tables are joined in a poor order
                postgres.seconds("VACUUM (ANALYZE)")
            figures = cluster.measure(warm_load(name, run.clients, range(WARM_UP, WARM_UP + count)))
            memory = worker_memory(cluster.nodes[0].pid).get("pss")
            return {**figures, "alone_ms": cluster.alone([Person(name, 0)]), "memory_mb": memory}

    columns = {"SQLite, 1 node": column("sqlite", 1, None)}
    with TemporaryDirectory(prefix="recap-bench-") as folder, PostgreSQL(Path(folder) / "data") as postgres:
        for nodes in numbers:
            columns[f"PostgreSQL, {nodes}"] = column(f"postgres-{nodes}", nodes, postgres)
        postgres.seconds("VACUUM (ANALYZE)")
        return {"columns": columns, "sizes": postgres.sizes()}


def measure_filled(run: Run, people: Sequence[Person], postgres: PostgreSQL | None = None) -> Figures:
    """Return the figures when these people have their messages, on PostgreSQL or on a new SQLite."""
    run.bar.set_postfix_str(f"{sum(person.messages for person in people):,} messages")
    with start_cluster(run, 1, postgres, workers=WORKERS) as cluster:
        (server,) = cluster.nodes
        if postgres:
            cluster.people.update({name: Person(name, had) for name, had in postgres.messages_of_people().items()})
        present, before = cluster.messages(), cluster.counters()
        rate, new = cluster.fill(people), cluster.messages() - present
        filling = {"per_second": round(rate, 1), **cost_of_each(before, cluster.counters(), new)}
        everybody = sorted(cluster.people.values(), key=lambda person: -person.messages)
        figures: Figures = {
            "messages": cluster.messages(),
            "people": len(everybody),
            "largest": everybody[0].messages,
            "filled": filling if new > present else {},
        }
        if postgres:
            figures |= {"vacuum_seconds": postgres.seconds("VACUUM (ANALYZE)"), "sizes": postgres.sizes()}
        else:
            figures["index_bytes"] = folder_bytes(server.data_dir / "index") / cluster.messages()
            figures["database_bytes"] = database_bytes(server.data_dir) / cluster.messages()
        before = cluster.counters()
        for name, some in (("", median_people(everybody)), ("most_", everybody[:1])):
            figures |= {f"search_{name}ms": cluster.searches(some), f"alone_{name}ms": cluster.alone(some)}
        cluster.settle()
        figures |= {"index_hit_percent": cost_of_each(before, cluster.counters(), 1).get("index_hit_percent")}
        if postgres:
            figures["cold"] = measure_cold(cluster, postgres, everybody)
            tables = "messages", "search_messages"
            figures["reindex_seconds"] = {name: postgres.seconds(f"REINDEX TABLE {name}") for name in tables}
        return figures


def measure_cold(cluster: Cluster, postgres: PostgreSQL, people: Sequence[Person]) -> Figures:
    """Return the figures of turns of people of whom neither PostgreSQL nor the node has anything in memory."""
    (server,) = cluster.nodes
    server.stop()
    postgres.restart()
    server.start()
    clients = cluster.run.clients
    cluster.send(warm_load("connecting", clients, range(WARM_UP)))  # a new connection costs more than a turn
    cluster.settle()
    return cluster.measure(cold_load(people, clients))


def measure(options: Namespace, results: Figures) -> None:
    results |= {"clients": options.clients, "each": options.turns, "settings": dict(options.set)}
    results |= {"turns": None, "filled": {}}
    sizes = {size: spread(options.owners, size) for size in sorted(options.messages)}
    with (
        terminable(),
        ModelProcess() as model,
        progress(max(sizes, default=0), "message or turn") as bar,
        TemporaryDirectory(prefix="recap-bench-") as folder,
    ):
        model.follow(SCRIPT)
        run = Run(model, options.clients, results["settings"], bar)
        if options.nodes:
            results["turns"] = measure_turns(run, options.nodes, options.turns)
        if "sqlite" in options.on:
            for size, people in sizes.items():
                results["filled"][f"SQLite, {size:,}"] = measure_filled(run, people)
        if "postgres" in options.on and sizes:
            with PostgreSQL(options.data or Path(folder) / "data") as postgres:
                for size, people in sizes.items():
                    results["filled"][f"PostgreSQL, {size:,}"] = measure_filled(run, people, postgres)


# -- the tables of docs/scale.md


def figures_for_needs(turns: Figures, full: Figures) -> Figures:
    """Return what `needs_table` starts from: one node, and the fullest PostgreSQL.  Without /proc some are None."""
    first, million, cold = list(turns["columns"].values())[1], full["messages"] / 1e6, full["cold"]["each"]
    return {
        "message_bytes": _bytes(full["sizes"]) / full["messages"],
        "turn_bytes": _bytes(turns["sizes"], "turns") / _entries(turns["sizes"], "turns"),
        "node_ms": cold.get("nodes_cpu_ms"),
        "database_ms": cold.get("cpu_ms"),
        "pages_read": cold["read"],
        "pages_written": cold["writes"],
        "wal_bytes": cold["wal_bytes"],
        "wal_syncs": cold["syncs"],
        "memory_mb": first["memory_mb"],
        "reindex_seconds": sum(full["reindex_seconds"].values()) / million,
        "vacuum_seconds": full["vacuum_seconds"] / million,
    }


def table(results: Mapping[str, Any]) -> str:
    """Return the tables of docs/scale.md, as far as they were measured."""
    parts, turns, filled = list[str](), results["turns"], results["filled"]
    if turns:
        parts.append(by_column("a turn", turns["columns"], NODE_ROWS))
        parts += [f"The first failure: {it['first_failure']}" for it in turns["columns"].values() if it["failed"]]
    if filled:
        parts.append(by_column("messages", filled, FILLED_ROWS))
    full = next((figures for figures in reversed(filled.values()) if "sizes" in figures), None)
    if turns and full:
        parts.append(_sizes(full, turns["sizes"]))
        measured = figures_for_needs(turns, full)
        if None not in measured.values():
            figures = {name: f"{value:,.{0 if value >= 100 else 2}f}" for name, value in measured.items()}
            start = markdown(("derived from", "measured"), [(MEASURED[name], figures[name]) for name in MEASURED])
            parts += [start, needs_table(measured_in(start), Assumed())]
    parts.append(f"{results['clients']} clients, {results['each']} turns each{changed_settings(results['settings'])}.")
    return "\n\n".join(parts)


def _sizes(full: Figures, turns: Sequence[Figures]) -> str:
    """Return what each table and index takes, but for those that take next to nothing."""
    count, of_turns = _entries(turns, "turns"), {(size["of"], size["part"]): size["bytes"] for size in turns}
    lines = list[tuple[str, ...]]()
    for size in full["sizes"]:
        each_message, each_turn = size["bytes"] / full["messages"], of_turns.get((size["of"], size["part"]), 0) / count
        if each_message >= 1 or size["of"] == "turns":
            uses = "" if size["part"] == "rows" else f"{size['entries']:,}"
            lines.append((f"`{size['of']}`", size["part"], f"{each_message:,.0f}", f"{each_turn:,.0f}", uses))
    lines.append(("all", "", f"{_bytes(full['sizes']) / full['messages']:,.0f}", f"{_bytes(turns) / count:,.0f}", ""))
    return markdown(("table", "part", "bytes a message", "bytes a turn", "uses of the index"), lines)


def _bytes(sizes: Sequence[Figures], table: str | None = None) -> float:
    return float(sum(size["bytes"] for size in sizes if table in (None, size["of"])))


def _entries(sizes: Sequence[Figures], table: str) -> int:
    return max(1, next(size["entries"] for size in sizes if (size["of"], size["part"]) == (table, "rows")))


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("cluster", __doc__)
    command.add_argument("--nodes", nargs="*", type=int, default=NODES, help="numbers of nodes")
    command.add_argument("--clients", type=int, default=20, help="clients at once")
    command.add_argument("--turns", type=int, default=40, help="turns of each client")
    command.add_argument("--owners", type=int, default=50, help="people with messages")
    command.add_argument("--messages", nargs="*", type=int, default=(50_000,), help="sizes to be filled")
    command.add_argument("--on", nargs="+", choices=ON, default=ON, help="what is filled")
    command.add_argument("--data", type=Path, help="the PostgreSQL's folder, kept; without it a temporary one")
    command.takes_settings()
    options = command.parse_args(arguments)
    if min([options.clients, options.turns, options.owners, *options.nodes, *options.messages]) < 1:
        command.error("clients, turns, owners, nodes and messages must be at least 1")
    command.report(options, lambda results: measure(options, results), table)


if __name__ == "__main__":
    main()
