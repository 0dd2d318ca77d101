"""How Recap performs with many messages: a million messages of 1,000 people, and 100,000 of one person.

    python -m benchmarks.scale                                       # the whole benchmark: a quarter of an hour or more
    python -m benchmarks.scale --messages 1000 10000 --single 1000   # minutes
    python -m benchmarks.scale --messages --single 1000 10000 100000 # only the part with one person

The benchmark fills a server with two workers over HTTP, with the calls an application would use, one size after the
other.  Messages are distributed unevenly: the person with most messages has 4 % of them, and half of the people have
less than 60 % of the mean.  A scripted model writes the summaries.  At each size, when no job waits, it measures:

    filled        messages stored, indexed and summarised in a second
    overhead      the duration of a turn at the client minus that of the model.  The turns are those of people with a
                  median number of messages, one person after the other
    search        the duration at the client of a search for a question about one of the messages
    bytes         of the index and the database for each message, with the write-ahead log merged
    memory        of the largest worker.  PSS divides shared memory among its processes, RSS counts it in full
    start         seconds from the start command to the first response
    rebuild       duration of `flask index rebuild`, which rebuilds the index from the messages

Ctrl-C or SIGTERM stops the benchmark early.  It then prints what it has measured so far.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.filling import Filled, Person
from benchmarks.model import ModelProcess, Script
from benchmarks.resources import database_bytes, folder_bytes, worker_memory
from benchmarks.results import load_line, machine_line, rows, settings_told
from benchmarks.serving import Server, temporary_server, terminable

OWNERS = 1_000
MESSAGES = (1_000, 10_000, 100_000, 1_000_000)
SINGLE = (1_000, 10_000, 100_000)
WORKERS = 2
UNEVEN = 0.7  # a person's share is 1 / rank to this power
FACTS = 1  # in each digest at most: most messages state no lasting fact
ENOUGH_MS = 250.0
"""The highest p95 of a search, and of a turn without the model, at which Whoosh counts as fast enough.

Both delay the reply.  Users keep their attention if the first words come within a second, and models take 300 to 700 ms
of that second.
"""
USUAL_RATE = 1_500  # messages stored in a second on two cores, for the first estimate of the duration

Figures = dict[str, Any]

_TURN = (("turn overhead, ms: median", "{:.1f}", ("overhead_ms", "p50")), ("  p95", "{:.1f}", ("overhead_ms", "p95")))
_SIZE = (
    ("index, bytes a message", "{:,.0f}", ("index_bytes",)),
    ("database, bytes a message", "{:,.0f}", ("database_bytes",)),
    ("memory of a worker, MB: PSS", "{:.0f}", ("memory_mb", "pss")),
    ("  RSS", "{:.0f}", ("memory_mb", "rss")),
)
MANY_ROWS = (
    ("messages", "{:,}", ("messages",)),
    ("people with messages", "{:,}", ("people",)),
    ("filled a second", "{:,.0f}", ("filled_per_second",)),
    *_TURN,
    ("search, median person, ms: p50", "{:.1f}", ("search_ms", "p50")),
    ("  p95", "{:.1f}", ("search_ms", "p95")),
    ("search, largest person, ms: p50", "{:.1f}", ("search_most_ms", "p50")),
    ("  p95", "{:.1f}", ("search_most_ms", "p95")),
    *_SIZE,
    ("start, s", "{:.1f}", ("start_seconds",)),
)
SINGLE_ROWS = (
    ("messages", "{:,}", ("messages",)),
    ("filled a second", "{:,.0f}", ("filled_per_second",)),
    *_TURN,
    ("search, ms: p50", "{:.1f}", ("search_ms", "p50")),
    ("  p95", "{:.1f}", ("search_ms", "p95")),
    ("search in one session, ms: p50", "{:.1f}", ("search_session_ms", "p50")),
    ("  p95", "{:.1f}", ("search_session_ms", "p95")),
    *_SIZE,
    ("rebuild, s", "{:.1f}", ("rebuild_seconds",)),
)


def spread(owners: int, messages: int) -> list[Person]:
    """People with about `messages` messages in total, the one with most first.  A larger total gives nobody fewer."""
    weights = [1 / rank**UNEVEN for rank in range(1, owners + 1)]
    return [
        Person(f"person-{number}", round(messages * weight / sum(weights))) for number, weight in enumerate(weights)
    ]


def many(filled: Filled, owners: int, messages: int) -> Figures:
    """The figures with `messages` messages of `owners` people."""
    people = spread(owners, messages)
    rate = filled.fill(people)
    own = [person for person in people if person.messages]
    middle = own[len(own) * 2 // 5 : len(own) * 3 // 5 + 1]
    sizes = _sizes(filled)
    figures = {
        "messages": filled.messages,
        "people": len(own),
        "filled_per_second": round(rate, 1),
        "search_ms": filled.searches(middle),
        "search_most_ms": filled.searches(own[:1]),
        "overhead_ms": filled.turns(middle),
        **sizes,
        "memory_mb": _memory(filled.server),
    }
    filled.server.stop()
    begun = time.monotonic()
    filled.server.start()
    return {**figures, "start_seconds": round(time.monotonic() - begun, 2)}


def single(filled: Filled, messages: int) -> Figures:
    """The figures with `messages` messages of one person.  Raises RuntimeError if the index cannot be rebuilt."""
    person = Person("one", messages)
    rate = filled.fill([person])
    figures = {
        "messages": filled.messages,
        "filled_per_second": round(rate, 1),
        "search_ms": filled.searches([person]),
        "search_session_ms": filled.searches([person], in_session=True),
        **_sizes(filled),
        "overhead_ms": filled.turns([person]),
        "memory_mb": _memory(filled.server),
    }
    begun = time.monotonic()
    done = filled.server.flask("index", "rebuild", seconds=600 + messages / 10)
    if done.returncode:
        raise RuntimeError(f"flask index rebuild failed:\n{done.stderr}")
    return {**figures, "rebuild_seconds": round(time.monotonic() - begun, 1)}


def verdict(columns: Sequence[Mapping[str, Any]]) -> str:
    """At how many messages of one person Whoosh becomes too slow.

    Both searches and turns count: a turn searches with its whole message, which takes longer than a short question.
    """
    p95 = {one["messages"]: max(one["search_ms"]["p95"], one["overhead_ms"]["p95"]) for one in columns}
    slow = sorted(messages for messages, ms in p95.items() if ms > ENOUGH_MS)
    most = max(p95)
    if not slow:
        return (
            f"Whoosh is fast enough for {most:,} messages of one person: 95 % of searches, and of turns without the "
            f"model, take {p95[most]:,.0f} ms or less. Users do not notice up to {ENOUGH_MS:.0f} ms."
        )
    enough = max((messages for messages in p95 if messages < slow[0]), default=None)
    return (
        f"Whoosh becomes too slow {f'between {enough:,} and' if enough else 'before'} {slow[0]:,} messages of one "
        f"person: at {slow[0]:,}, 95 % of searches, or of turns without the model, take up to {p95[slow[0]]:,.0f} ms. "
        f"Users notice more than {ENOUGH_MS:.0f} ms before each reply. Give each project its own user_id, or export "
        "and erase what is no longer needed; docs/performance.md lists more remedies."
    )


def _sizes(filled: Filled) -> Figures:
    data = filled.server.data_dir
    return {
        "index_bytes": round(folder_bytes(data / "index") / filled.messages),
        "database_bytes": round(database_bytes(data) / filled.messages),
    }


def _memory(server: Server) -> Figures:
    memory = worker_memory(server.pid)
    return {"pss": memory.pss, "rss": memory.rss} if memory else {}


@contextmanager
def _filling(bar: Any, settings: Mapping[str, str]) -> Iterator[Filled]:
    """An empty server and its scripted model."""
    with ModelProcess() as model, temporary_server(model.url, **{"WEB_WORKERS": str(WORKERS), **settings}) as server:
        model.follow(Script(facts=FACTS, keeps=False))
        yield Filled(server, model, bar)


def measured(owners: int, messages: Sequence[int], one: Sequence[int], results: dict[str, Any]) -> None:
    """Add the figures of each size to `results` as soon as they are measured."""
    parts: tuple[tuple[str, Sequence[int], Callable[[Filled, int], Figures]], ...] = (
        ("many", messages, lambda filled, size: many(filled, owners, size)),
        ("single", one, single),
    )
    total = sum(max(sizes, default=0) for _, sizes, _ in parts)
    minutes = total / USUAL_RATE / 60
    print(
        f"{total:,} messages: about {minutes:,.0f} minutes on two cores; the progress bar is more exact.",
        file=sys.stderr,
    )
    with terminable(), progress(total, "message") as bar:
        for name, sizes, measure in parts:
            if not sizes:
                continue
            with _filling(bar, results["settings"]) as filled:
                for size in sorted(sizes):
                    bar.set_postfix_str(f"{name}, {size:,}")
                    results[name].append(measure(filled, size))


def table(results: Mapping[str, Any]) -> str:
    """A column for each size; a block for many people, and one for the single person."""
    blocks = (
        (f"{results['owners']:,} people", results["many"], MANY_ROWS),
        ("one person", results["single"], SINGLE_ROWS),
    )
    lines: list[str] = []
    for title, columns, of in blocks:
        if columns:
            lines += [title, *(f"  {line}" for line in rows(of, columns, 34, 12)), ""]
    if results["single"]:
        lines += [verdict(results["single"]), ""]
    if results["ended_early"]:
        lines += ["The benchmark was stopped early: larger sizes were not measured.", ""]
    lines += [
        f"{WORKERS} workers{settings_told(results['settings'])}. {load_line(results['load'])}",
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("scale", __doc__)
    command.add_argument(
        "--messages",
        nargs="*",
        type=int,
        default=MESSAGES,
        help="numbers of messages of many people (default: %(default)s)",
    )
    command.add_argument("--owners", type=int, default=OWNERS, help="number of people (default: %(default)s)")
    command.add_argument(
        "--single", nargs="*", type=int, default=SINGLE, help="numbers of messages of one person (default: %(default)s)"
    )
    command.takes_settings()
    options = command.parse_args(arguments)
    if min([*options.messages, *options.single, options.owners]) < 1 or not [*options.messages, *options.single]:
        command.error("there is nothing to measure: sizes must be 1 or more")
    results = about_now() | {
        "owners": options.owners,
        "settings": dict(options.set),
        "many": [],
        "single": [],
        "ended_early": False,
    }
    with breaking_off():
        try:
            measured(options.owners, options.messages, options.single, results)
        except (KeyboardInterrupt, SystemExit):
            results["ended_early"] = True
    command.publish(options.results, results, table)
    if results["ended_early"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
