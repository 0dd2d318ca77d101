"""What a large installation needs, by the figures in docs/scale.md, which `benchmarks.cluster` measures.

`python -m benchmarks.scale --people 100000` derives what other numbers of people and messages need.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil

from benchmarks.harness import markdown
from benchmarks.serving import ROOT

PAGE = ROOT / "docs" / "scale.md"
PAGE_BYTES = 8192  # of PostgreSQL
DAY = 86_400.0
MEASURED = {
    "message_bytes": "bytes of a message, with its index and its share of all other rows",
    "turn_bytes": "bytes of a turn's own row",
    "node_ms": "CPU of the nodes for a turn, ms",
    "database_ms": "CPU of PostgreSQL for a turn, ms",
    "pages_read": "pages read for a person's first turn",
    "pages_written": "pages written for a turn",
    "wal_bytes": "WAL of a turn, bytes",
    "wal_syncs": "times that a turn writes the WAL to the disk",
    "memory_mb": "memory of a node's process, MB",
    "reindex_seconds": "seconds to build the indexes of a million messages",
    "vacuum_seconds": "seconds to vacuum a million messages",
}
"""The figures that are derived from, by the names of their rows on the page."""


@dataclass(frozen=True)
class Assumed:
    """Assumptions that nobody can measure beforehand."""

    people: float = 10e6
    messages: float = 10e9
    active: float = 0.1  # of the people on a day
    turns: float = 10  # of such a person on that day; the first reads from the disk
    peak: float = 4  # the busiest hour by the mean one
    busy: float = 0.5  # of a core at the peak, so that one may fail
    full: float = 0.7  # of a disk
    copies: float = 2  # of each database, one of which stands by
    server_tb: float = 2  # in one PostgreSQL server: what can be copied in a night
    server_cores: float = 16
    core_price: float = 25  # for a month, as the following
    memory_price: float = 3  # of a GB
    disk_price: float = 0.1  # of a GB of SSD


Need = tuple[str, str, str]
"""What is needed, how it follows, and how much."""


def needs(measured: Mapping[str, float], assumed: Assumed) -> list[Need]:
    """Return what all databases and nodes together need."""
    of, turns = measured, assumed.people * assumed.active * assumed.turns
    peak, first = turns / DAY * assumed.peak, 1 / assumed.turns
    turn_bytes = 2 * of["message_bytes"] + of["turn_bytes"]
    stored = assumed.messages / 2 * turn_bytes
    node_cores = peak * of["node_ms"] / 1000 / assumed.busy
    cores = peak * of["database_ms"] / 1000 / assumed.busy
    node_memory = node_cores * of["memory_mb"] * 1e6
    hot = assumed.people * assumed.active * assumed.peak / 24 * of["pages_read"] * PAGE_BYTES
    writes = of["pages_written"] + of["wal_syncs"]
    servers = ceil(max(stored / (assumed.server_tb * 1e12), cores / assumed.server_cores))
    millions = assumed.messages / servers / 1e6
    node_cost = node_cores * assumed.core_price + node_memory / 1e9 * assumed.memory_price
    each_copy = cores * assumed.core_price + hot / 1e9 * assumed.memory_price
    cost = assumed.copies * (each_copy + stored / assumed.full / 1e9 * assumed.disk_price)
    for_thousand = (node_cost + cost) / assumed.people * 1000
    return [
        ("rows of `messages`, and of `search_messages`", "messages", f"{assumed.messages:,.0f}"),
        ("rows of `turns`", "messages / 2", f"{assumed.messages / 2:,.0f}"),
        ("stored", "rows of `turns` x (2 messages and a turn's own row)", f"{stored / 1e12:,.1f} TB"),
        ("turns a day", "people x active x turns", f"{turns:,.0f}"),
        ("stored a day", "turns a day x the same", _gigabytes(turns * turn_bytes)),
        ("turns a second at the peak", "turns a day / 86,400 x peak", f"{peak:,.0f}"),
        ("cores of nodes", "peak x CPU of the nodes / busy", f"{node_cores:,.0f}"),
        ("memory of nodes", "a process for each core", _gigabytes(node_memory)),
        ("cores of PostgreSQL", "peak x CPU of PostgreSQL / busy", f"{cores:,.0f}"),
        ("memory of PostgreSQL", "people of the busiest hour x pages read x 8 KB", _gigabytes(hot)),
        ("WAL at the peak", "peak x WAL of a turn", f"{peak * of['wal_bytes'] / 1e6:,.0f} MB/s"),
        ("WAL a day", "turns a day x WAL of a turn", _gigabytes(turns * of["wal_bytes"])),
        ("reads at the peak", "first turns at the peak x pages read", f"{peak * first * of['pages_read']:,.0f} IOPS"),
        ("writes at the peak", "peak x (pages written + writes of the WAL)", f"{peak * writes:,.0f} IOPS"),
        (
            "PostgreSQL servers",
            "stored / bytes of a server, or cores / its cores",
            f"{servers:,}, and as many standing by",
        ),
        ("people of a server", "people / servers", f"{assumed.people / servers:,.0f}"),
        ("connections of a server", "32 at most for each of its nodes' cores", f"{32 * ceil(node_cores / servers):,}"),
        ("building the indexes of a server", "its messages", _hours(millions * of["reindex_seconds"])),
        ("vacuuming a server", "its messages", _hours(millions * of["vacuum_seconds"])),
        ("a month of the nodes", "cores and memory by their prices", f"{node_cost:,.0f}"),
        ("a month of PostgreSQL", "copies x (cores, memory and disks / full)", f"{cost:,.0f}"),
        ("a month for 1,000 people", "both / people x 1,000", f"{for_thousand:,.2f}"),
    ]


def needs_table(measured: Mapping[str, float], assumed: Assumed) -> str:
    return markdown(("needed", "how", "how much"), needs(measured, assumed))


def measured_in(page: str) -> dict[str, float]:
    """Return the figures of a page's tables.  Raises ValueError if one is missing."""
    values = dict(re.findall(r"^\| (.+?) \| ([\d,.]+) \|$", page, re.M))
    if missing := [label for label in MEASURED.values() if label not in values]:
        raise ValueError(f"{PAGE.name} has no row for: {', '.join(missing)}.")
    return {name: float(values[label].replace(",", "")) for name, label in MEASURED.items()}


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:,.0f} GB"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} hours"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what a large installation needs, by the figures in docs/scale.md and these assumptions."""
    parser = argparse.ArgumentParser("python -m benchmarks.scale", description=main.__doc__)
    for field in fields(Assumed):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=float, default=field.default)
    print(needs_table(measured_in(PAGE.read_text("utf-8")), Assumed(**vars(parser.parse_args(arguments)))))


if __name__ == "__main__":
    main()
