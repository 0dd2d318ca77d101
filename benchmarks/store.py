"""How fast the store is with many items, beside LangGraph's SqliteStore.

    make bench-store                                      # up to a million items: a quarter of an hour or more
    make bench-store OPTIONS="--items 1000 10000"         # a minute

Both are driven by the same calls of LangGraph's BaseStore, from one thread, one call after the other.  Recap's is
RecapStore, over HTTP to a server with one worker; every write is on the disk before it is acknowledged.  SqliteStore
works in the process of the benchmark, without a server.  All items belong to one owner, 100 to a namespace, and are
stored in batches of 500.  At each size the benchmark measures:

    filled            items stored in a second
    put, get          of one item
    search            in one namespace, by a filter on a number, 10 items
    search everywhere by a filter that no item meets: both look at every value
    query             in one namespace by words and meaning, 10 items: Recap alone, SqliteStore needs a model for that
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langgraph.store.base import BaseStore, PutOp
from langgraph.store.sqlite import SqliteStore

from benchmarks.harness import Command, Figures, by_column, percentiles, progress
from benchmarks.serving import temporary_server
from recap_client.langgraph import RecapStore

ITEMS = (1_000, 100_000, 1_000_000)
TO_A_NAMESPACE = 100
BATCH = 500
CALLS = 300
SLOW_CALLS = 5  # of a kind that looks at every value
WORDS = ("tea", "coffee", "kettle", "garden", "river", "piano", "winter", "lamp", "bread", "letter", "harbour", "cloud")

KINDS = ("put", "get", "search", "search everywhere", "query")
ROWS = (
    ("filled a second", "{:,.0f}", ("filled_per_second",)),
    *(
        row
        for kind in KINDS
        for row in (
            (f"{kind}: a second", "{:,.0f}", (kind, "per_second")),
            ("  p95, ms", "{:,.2f}", (kind, "ms", "p95")),
        )
    ),
)


def name_of(number: int) -> tuple[tuple[str, ...], str]:
    """Return the namespace and the key of an item."""
    return ("notes", f"n{number // TO_A_NAMESPACE}"), f"item-{number}"


def value_of(number: int) -> dict[str, Any]:
    """Return a note of some words, and numbers to filter by."""
    words = random.Random(number).choices(WORDS, k=12)  # nosec B311
    return {"text": " ".join(words), "size": number % TO_A_NAMESPACE, "number": number}


def fill(store: BaseStore, begin: int, end: int) -> float:
    """Store the items from `begin` to `end`; return how many in a second."""
    started = time.monotonic()
    with progress(end - begin, "item") as bar:
        for first in range(begin, end, BATCH):
            numbers = range(first, min(first + BATCH, end))
            store.batch([PutOp(*name_of(number), value_of(number)) for number in numbers])
            bar.update(len(numbers))
    return (end - begin) / (time.monotonic() - started)


def time_calls(call: Callable[[int], object], numbers: Sequence[int]) -> Figures:
    """Make a call for each number."""
    times = []
    for number in numbers:
        started = time.perf_counter()
        call(number)
        times.append((time.perf_counter() - started) * 1000)
    return {"per_second": round(1000 * len(times) / sum(times), 1), "ms": percentiles(times)}


def measure(store: BaseStore, items: int, calls: int, *, queries: bool) -> Figures:
    """Return the figures of a store with so many items."""
    numbers = random.Random(items).choices(range(items), k=calls)  # nosec B311
    few = numbers[:SLOW_CALLS]
    figures = {
        "get": time_calls(lambda number: store.get(*name_of(number)), numbers),
        "put": time_calls(lambda number: store.put(*name_of(number), value_of(number)), numbers),
        "search": time_calls(lambda at: store.search(name_of(at)[0], filter={"size": {"$gt": at % 90}}), numbers),
        "search everywhere": time_calls(lambda at: store.search((), filter={"number": -1 - at}), few),
    }
    if queries:
        figures["query"] = time_calls(lambda at: store.search(name_of(at)[0], query=WORDS[at % len(WORDS)]), numbers)
    return figures


def grow(store: BaseStore, sizes: Sequence[int], calls: int, *, queries: bool = False) -> list[Figures]:
    """Return the figures at each size, as the store grows."""
    columns = list[Figures]()
    for before, items in pairwise((0, *sizes)):
        rate = round(fill(store, before, items), 1)
        columns.append({"items": items, "filled_per_second": rate, **measure(store, items, calls, queries=queries)})
    return columns


def table(results: Mapping[str, Any]) -> str:
    """Return the figures of both stores, size by size."""
    stores = {"Recap": results["recap"], "SqliteStore": results["sqlite_store"]}
    columns = {f"{name}, {column['items']:,}": column for name, sizes in stores.items() for column in sizes}
    return by_column("", columns, ROWS)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("store", __doc__)
    command.add_argument("--items", type=int, nargs="+", default=list(ITEMS), help="sizes")
    command.add_argument("--calls", type=int, default=CALLS, help="calls of each kind")
    options = command.parse_args(arguments)
    sizes = sorted(options.items)

    def measure_both(results: Figures) -> None:
        with (
            TemporaryDirectory(prefix="recap-bench-") as folder,
            SqliteStore.from_conn_string(str(Path(folder) / "store.db")) as other,
        ):
            other.setup()
            results["sqlite_store"] = grow(other, sizes, options.calls)
        with temporary_server(WEB_WORKERS="1") as server:
            store = RecapStore(server.url)
            results["recap"] = grow(store, sizes, options.calls, queries=True)
            store.close()

    command.report(options, measure_both, table)


if __name__ == "__main__":
    main()
