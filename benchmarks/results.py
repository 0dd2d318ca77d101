"""Common parts of all results: the machine, and the lines of a table."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from math import ceil
from typing import Any

import psutil

PACKAGES = ("flask", "gunicorn", "sqlalchemy", "whoosh-reloaded", "httpx2")

Row = tuple[str, str, tuple[str, ...]]
"""A row of a table: its label, the format of its figures, and the path to them."""


def machine() -> dict[str, Any]:
    """The machine and the versions of the main packages."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1024**3, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def machine_line(on: Mapping[str, Any]) -> str:
    """The result of `machine` as the last line of a table."""
    return f"Measured on {on['cores']} cores, {on['memory_gb']} GB, {on['system']}, Python {on['python']}."


def load_line(before: float) -> str:
    """The load of the machine before the measurement, by `os.getloadavg`, as a line of a table."""
    return f"The machine's load before the run was {before:.1f}; other load makes the times longer."


def by_conversation(results: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of each conversation, and of all together if there are several."""
    each: dict[str, Any] = results["conversations"]
    return {**each, "all": results["all"]} if len(each) > 1 else each


def width_of(names: Iterable[str]) -> int:
    """The width of columns with these names."""
    return max(12, *(len(name) + 2 for name in names))


def rows(of: Iterable[Row], columns: Sequence[Mapping[str, Any]], label: int, width: int) -> list[str]:
    """The lines of a table: a label of width `label`, then a figure of width `width` for each column."""
    return [
        f"{title:{label}}" + "".join(cell(figures, shape, path).rjust(width) for figures in columns)
        for title, shape, path in of
    ]


def by_name(title: str, of: Sequence[Row], lines: Mapping[str, Mapping[str, Any]], label: int, width: int) -> list[str]:
    """The lines of a table the other way round: a line for each name, and a column for each figure."""
    heads = "".join(head.rjust(width) for head, _, _ in of)
    cells = {name: "".join(cell(one, shape, path).rjust(width) for _, shape, path in of) for name, one in lines.items()}
    return [f"{name:{label}}{line}" for name, line in {title: heads, **cells}.items()]


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table for a page of the documentation."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *lines))


def settings_told(settings: Mapping[str, str]) -> str:
    """The changed settings, to be appended to the description of the server."""
    return "".join(f", {name}={value}" for name, value in settings.items())


def cell(figures: Mapping[str, Any], shape: str, path: tuple[str, ...]) -> str:
    """The figure at `path`, formatted with `shape`; a dash if there is none."""
    value: Any = figures
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return "-" if value is None else shape.format(value)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The median and the 95th percentile; empty without values."""
    return {f"p{share}": round(quantile(values, share), 2) for share in (50, 95)} if values else {}


def quantile(values: Sequence[float], percent: int) -> float:
    """The smallest value that is not exceeded by `percent` % of the values."""
    return sorted(values)[ceil(len(values) * percent / 100) - 1]
