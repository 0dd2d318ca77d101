"""Turns on one PostgreSQL with 1, 2 and 4 nodes beside SQLite with one node, and a PostgreSQL full of messages.

    python -m benchmarks.cluster                                          # some minutes
    python -m benchmarks.cluster --nodes --owners 10000 --messages 2000000 --data pg    # hours: only the full one

Turns: the clients send one turn after the other, each in a session of its own person, and turn to the nodes directly.
Each node is a server of one worker of 32 threads.  The model answers at once.

    turns a second     of all clients together; a turn is measured at the client
    alone              the overhead of turns of one client, when nobody else sends any
    CPU                until no job waits, with summaries and the index: of all nodes, and of PostgreSQL's processes
    WAL                bytes of PostgreSQL's write-ahead log; whole pages in it, which a page's first change after a
                       checkpoint costs; and how often the log was written to the disk
    pages              of 8 KB, found in PostgreSQL's cache (hit) or read from the system, and written until the next
                       checkpoint; the measurement begins and ends with one

Messages: people get messages as in `benchmarks.scale`, at each of the sizes, through one server of two workers.  With
--data the PostgreSQL's folder is kept, and a run that was stopped goes on where it was.  At each size, after a VACUUM:

    filled             messages stored, summarised and indexed in a second, and what one of them cost; left out where
                       most of them were there already
    cold               one turn of each of some people with about 1,000 messages, after PostgreSQL was started again:
                       neither it nor a node has anything of them in memory, and each turn has a summary of its own
    bytes a message    of each table and index.  Filled messages have no row in `turns`; `bytes a turn` is measured
                       where the turns were taken

Clients, model, nodes and database share the machine, so turns a second tell how the databases compare, not what more
machines would do: see CPU for that.  docs/scale.md derives what a large installation needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.filling import Filled, Person
from benchmarks.model import ModelProcess, Script
from benchmarks.needs import MEASURED, Assumed, measured_in
from benchmarks.needs import table as needs_table
from benchmarks.nodes import Conditions, Figures, Load, cluster, each
from benchmarks.postgres import PostgreSQL
from benchmarks.resources import worker_memory
from benchmarks.results import Row, cell, load_line, machine_line, markdown, settings_told
from benchmarks.scale import spread
from benchmarks.serving import terminable

NODES = (1, 2, 4)
WARM_UP = 3  # turns of each client before the measurement
WORKERS = 2  # of the server that is filled
SCRIPT = Script(words=200, facts=1, keeps=False)
TURN_ROWS: tuple[Row, ...] = (
    ("turns a second", "{:,.0f}", ("per_second",)),
    ("a turn, ms: median", "{:,.0f}", ("turn_ms", "p50")),
    ("a turn, ms: p95", "{:,.0f}", ("turn_ms", "p95")),
    ("alone, ms: median", "{:,.1f}", ("alone_ms", "p50")),
    ("alone, ms: p95", "{:,.1f}", ("alone_ms", "p95")),
    ("CPU of the nodes, ms", "{:,.1f}", ("each", "nodes_cpu_ms")),
    ("CPU of PostgreSQL, ms", "{:,.1f}", ("each", "cpu_ms")),
    ("commits", "{:,.1f}", ("each", "commits")),
    ("WAL, bytes", "{:,.0f}", ("each", "wal_bytes")),
    ("WAL, whole pages", "{:,.2f}", ("each", "wal_pages")),
    ("WAL, written to the disk", "{:,.2f}", ("each", "syncs")),
    ("pages hit", "{:,.0f}", ("each", "hit")),
    ("pages read", "{:,.1f}", ("each", "read")),
    ("pages written", "{:,.1f}", ("each", "writes")),
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
    ("search, a median person, ms: median", "{:,.1f}", ("search_ms", "p50")),
    ("search, a median person, ms: p95", "{:,.1f}", ("search_ms", "p95")),
    ("search, the person with most, ms: median", "{:,.1f}", ("search_most_ms", "p50")),
    ("search, the person with most, ms: p95", "{:,.1f}", ("search_most_ms", "p95")),
    ("overhead of a turn, median people, ms: median", "{:,.1f}", ("alone_ms", "p50")),
    ("overhead of a turn, median people, ms: p95", "{:,.1f}", ("alone_ms", "p95")),
    ("overhead of a turn, the person with most, ms: median", "{:,.1f}", ("alone_most_ms", "p50")),
    ("overhead of a turn, the person with most, ms: p95", "{:,.1f}", ("alone_most_ms", "p95")),
    ("index pages hit in these, %", "{:,.1f}", ("index_hit_percent",)),
    *(
        (f"cold: {label}", shape, ("cold", *path))
        for label, shape, path in TURN_ROWS
        if path[0] in ("turn_ms", "each", "failed")
    ),
    ("VACUUM (ANALYZE), s", "{:,.1f}", ("vacuum_seconds",)),
    ("REINDEX of `messages`, s", "{:,.1f}", ("reindex_seconds", "messages")),
    ("REINDEX of `search_messages`, s", "{:,.1f}", ("reindex_seconds", "search_messages")),
)
HELD = (  # how many messages each person was given; those of turns are in other sessions
    "SELECT name, CAST(sum(message_count) AS bigint) AS held FROM owners JOIN sessions ON owner_id = owners.id"
    " WHERE public_id SIMILAR TO 'person-[0-9]+-[0-9]+' GROUP BY name"
)


def turns(under: Conditions, numbers: Sequence[int], count: int) -> Figures:
    """SQLite with one node, PostgreSQL with each of these numbers of nodes, and the sizes of what they stored there.

    Each client sends `count` turns.
    """

    def column(name: str, nodes: int, postgres: PostgreSQL | None) -> Figures:
        under.bar.set_postfix_str(name)
        with cluster(under, nodes, postgres) as running:
            running.send(Load.warm(name, under.clients, range(WARM_UP)))
            running.settle()
            if postgres:  # autovacuum would do so within a minute; until then new tables are joined in a poor order
                postgres.seconds("VACUUM (ANALYZE)")
            figures = running.measured(Load.warm(name, under.clients, range(WARM_UP, WARM_UP + count)))
            memory = worker_memory(running.nodes[0].pid)
            return {**figures, "alone_ms": running.alone(name), "memory_mb": memory and memory.pss}

    columns = {"SQLite, 1 node": column("sqlite", 1, None)}
    with TemporaryDirectory(prefix="recap-bench-") as folder, PostgreSQL(Path(folder) / "data") as postgres:
        for nodes in numbers:
            columns[f"PostgreSQL, {nodes}"] = column(f"postgres-{nodes}", nodes, postgres)
        postgres.seconds("VACUUM (ANALYZE)")
        return {"columns": columns, "sizes": postgres.sizes()}


def filled(under: Conditions, postgres: PostgreSQL, people: Sequence[Person]) -> Figures:
    """The figures when these people have their messages."""
    under.bar.set_postfix_str(f"{sum(person.messages for person in people):,} messages")
    with cluster(under, 1, postgres, workers=WORKERS) as running:
        (server,) = running.nodes
        full = Filled(server, under.model, under.bar)
        full.people.update({name: Person(name, held) for name, held in postgres.held(HELD).items()})
        held, before = full.messages, running.counters()
        rate, new = full.fill(people), full.messages - held
        filling = {"per_second": round(rate, 1), **each(before, running.counters(), new)} if new > held else {}
        vacuum = postgres.seconds("VACUUM (ANALYZE)")
        own = sorted(full.people.values(), key=lambda one: -one.messages)
        middle = own[len(own) * 2 // 5 : len(own) * 3 // 5 + 1]
        before = running.counters()
        figures = {
            "messages": full.messages,
            "people": len(own),
            "largest": own[0].messages,
            "filled": filling,
            "vacuum_seconds": vacuum,
            "sizes": postgres.sizes(),
            "search_ms": full.searches(middle),
            "search_most_ms": full.searches(own[:1]),
            "alone_ms": full.turns(middle),
            "alone_most_ms": full.turns(own[:1]),
        }
        running.settle()
        figures |= {"index_hit_percent": each(before, running.counters(), 1).get("index_hit_percent")}
        server.stop()
        postgres.restart()
        server.start()
        running.send(Load.warm("connecting", under.clients, range(WARM_UP)))  # a new connection costs more than a turn
        running.settle()
        figures["cold"] = running.measured(Load.cold(own, under.clients))
    figures["reindex_seconds"] = {
        name: postgres.seconds(f"REINDEX TABLE {name}") for name in ("messages", "search_messages")
    }
    return figures


def derived_from(results: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that `benchmarks.needs` starts from: of one node, and of the fullest PostgreSQL.

    Without /proc, CPU and memory are None.
    """
    first, full = list(results["turns"]["columns"].values())[1], results["filled"][-1]
    million = full["messages"] / 1e6
    return {
        "message_bytes": _total(full["sizes"]) / full["messages"],
        "turn_bytes": _total(results["turns"]["sizes"], "turns") / _entries(results["turns"]["sizes"], "turns"),
        "node_ms": full["cold"]["each"].get("nodes_cpu_ms"),
        "database_ms": full["cold"]["each"].get("cpu_ms"),
        "pages_read": full["cold"]["each"]["read"],
        "pages_written": full["cold"]["each"]["writes"],
        "wal_bytes": full["cold"]["each"]["wal_bytes"],
        "wal_syncs": full["cold"]["each"]["syncs"],
        "memory_mb": first["memory_mb"],
        "reindex_seconds": sum(full["reindex_seconds"].values()) / million,
        "vacuum_seconds": full["vacuum_seconds"] / million,
    }


def table(results: Mapping[str, Any]) -> str:
    """The tables of docs/scale.md, as far as they were measured."""
    parts = []
    if turns := results["turns"]:
        parts.append(_columns("a turn", turns["columns"], TURN_ROWS))
        parts += [f"The first failure: {one['first_failure']}" for one in turns["columns"].values() if one["failed"]]
    if full := results["filled"]:
        parts.append(_columns("messages", {f"{one['messages']:,}": one for one in full}, FILLED_ROWS))
    if turns and full:
        parts.append(_sizes(full[-1], turns["sizes"]))
        measured = derived_from(results)
        if None not in measured.values():
            start = markdown(
                ("derived from", "measured"), [(MEASURED[name], _figure(measured[name])) for name in MEASURED]
            )
            parts += [start, needs_table(measured_in(start), Assumed())]
    if results["ended_early"]:
        parts.append(f"Not everything was measured. {results['ended_early']}")
    what = f"{results['clients']} clients, {results['each']} turns each{settings_told(results['settings'])}."
    return "\n\n".join([*parts, f"{what} {load_line(results['load'])} {machine_line(results['machine'])}"])


def _columns(what: str, columns: Mapping[str, Figures], of: Sequence[Row]) -> str:
    lines = [(label, *(cell(figures, shape, path) for figures in columns.values())) for label, shape, path in of]
    return markdown((what, *columns), lines)


def _sizes(full: Figures, turned: Sequence[Figures]) -> str:
    """What each table and index takes, but for those that take next to nothing."""
    count, of_turns = _entries(turned, "turns"), {(one["of"], one["part"]): one["bytes"] for one in turned}
    lines = list[tuple[str, ...]]()
    for one in full["sizes"]:
        each_message, each_turn = one["bytes"] / full["messages"], of_turns.get((one["of"], one["part"]), 0) / count
        if each_message >= 1 or one["of"] == "turns":
            uses = "" if one["part"] == "rows" else f"{one['entries']:,}"
            lines.append((f"`{one['of']}`", one["part"], f"{each_message:,.0f}", f"{each_turn:,.0f}", uses))
    whole = _total(full["sizes"]) / full["messages"], _total(turned) / count
    lines.append(("all", "", *(f"{one:,.0f}" for one in whole), ""))
    return markdown(("table", "part", "bytes a message", "bytes a turn", "uses of the index"), lines)


def _figure(value: float) -> str:
    return f"{value:,.{0 if value >= 100 else 2}f}"


def _total(sizes: Sequence[Figures], table: str | None = None) -> float:
    return float(sum(one["bytes"] for one in sizes if table in (None, one["of"])))


def _entries(sizes: Sequence[Figures], table: str) -> int:
    return max(1, next(one["entries"] for one in sizes if (one["of"], one["part"]) == (table, "rows")))


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("cluster", __doc__)
    shown = "(default: %(default)s)"
    command.add_argument("--nodes", nargs="*", type=int, default=NODES, help=f"numbers of nodes {shown}")
    command.add_argument("--clients", type=int, default=20, help=f"clients at once {shown}")
    command.add_argument("--turns", type=int, default=40, help=f"turns of each client {shown}")
    command.add_argument("--owners", type=int, default=50, help=f"people with messages {shown}")
    command.add_argument("--messages", nargs="*", type=int, default=(50_000,), help=f"sizes to be filled {shown}")
    command.add_argument("--data", type=Path, help="the PostgreSQL's folder, kept (default: a temporary one)")
    command.takes_settings()
    options = command.parse_args(arguments)
    if min([options.clients, options.turns, options.owners, *options.nodes, *options.messages]) < 1:
        command.error("clients, turns, owners, nodes and messages must be at least 1")
    results = about_now() | {
        "clients": options.clients,
        "each": options.turns,
        "settings": dict(options.set),
        "turns": None,
        "filled": [],
        "ended_early": "",
    }
    try:
        with breaking_off():
            measured(options, results)
    except (KeyboardInterrupt, SystemExit) as end:
        results["ended_early"] = next((one for one in end.args if isinstance(one, str)), "It was stopped.")
    command.publish(options.results, results, table)
    if results["ended_early"]:
        sys.exit(1)


def measured(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Add the figures of each part to `results` as soon as they are measured."""
    total = max(options.messages, default=0)
    with (
        terminable(),
        ModelProcess() as model,
        progress(total, "message or turn") as bar,
        TemporaryDirectory(prefix="recap-bench-") as folder,
    ):
        model.follow(SCRIPT)
        under = Conditions(model, options.clients, results["settings"], bar)
        if options.nodes:
            results["turns"] = turns(under, options.nodes, options.turns)
        if options.messages:
            with PostgreSQL(options.data or Path(folder) / "data") as postgres:
                for size in sorted(options.messages):
                    results["filled"].append(filled(under, postgres, spread(options.owners, size)))


if __name__ == "__main__":
    main()
