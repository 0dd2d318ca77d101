"""Draws the tables of docs/performance.md as docs/plots/*.svg: `make plots`.

The figures live in the tables alone: whoever changes one draws the plots again, and a test compares them.
"""

import argparse
import math
import re
from dataclasses import dataclass
from pathlib import Path

from matplotlib import rcParams
from matplotlib.figure import Figure

PAGE = Path(__file__).with_name("performance.md")
FOLDER = PAGE.with_name("plots")
BLUE, ORANGE = ("#283593", "#5c6bc0", "#9fa8da"), ("#e65100", "#fb8c00", "#ffcc80")  # from dark to light


@dataclass(frozen=True)
class Plot:
    """Bars for some `columns` of a table, which is the one with these columns under the heading `section`.

    With `lost`, they show by how much each other row is below the first one.
    """

    name: str
    section: str
    columns: tuple[str, ...]
    axis: str
    colours: tuple[str, ...] = (BLUE[0], ORANGE[1])
    lost: bool = False
    logarithmic: bool = False


PLOTS = (
    Plot("rankings", "Recall", ("recall@10", "in 1,000"), "% of the messages with the answer"),
    Plot(
        "parts",
        "Recall",
        ("recall@10", "first person: recall@10"),
        "recall@10 lost without the part, in percentage points",
        lost=True,
    ),
    Plot(
        "store",
        "The store",
        tuple(f"{store}, {items}" for store in ("Recap", "SqliteStore") for items in ("1,000", "100,000", "1,000,000")),
        "operations a second",
        colours=(*BLUE, *ORANGE),
        logarithmic=True,
    ),
    Plot(
        "consolidation", "Consolidation", ("precision", "recall"), "share of the merged facts; share of those to merge"
    ),
)


def figures_of(plot: Plot) -> tuple[list[str], list[list[float]]]:
    """Return the plot's labels, and for each of its columns the figures.  Raises ValueError if there is no table."""
    section = re.search(rf"^## {re.escape(plot.section)}$.*?(?=^## |\Z)", PAGE.read_text("utf-8"), re.M | re.S)
    for lines in re.findall(r"(?:^\|.*\n)+", section[0] if section else "", re.M):
        headings, _, *rows = ([cell.strip(" *") for cell in line[1:-1].split("|")] for line in lines.splitlines())
        if set(plot.columns) <= set(headings):
            labels = [row[0].replace("`", "").partition(": a second")[0] for row in rows]
            series = [[number(row[headings.index(column)]) for row in rows] for column in plot.columns]
            if plot.lost:
                return labels[1:], [[round(first - value, 1) for value in rest] for first, *rest in series]
            return labels, series
    raise ValueError(f"{PAGE.name} has no table under {plot.section!r} with the columns {plot.columns}.")


def number(cell: str) -> float:
    """Return the first number of a cell; NaN if it does not begin with one."""
    digits = re.match(r"[\d,.]+", cell)
    return float(digits[0].replace(",", "")) if digits else math.nan


def draw(plot: Plot) -> Figure:
    labels, series = figures_of(plot)
    height = 0.84 / len(plot.columns)
    figure = Figure(figsize=(8, 1 + len(labels) * max(0.3, 0.15 * len(plot.columns))), layout="constrained")
    axes = figure.subplots()
    for place, (column, values, colour) in enumerate(zip(plot.columns, series, plot.colours, strict=True)):
        bars = axes.barh([y + place * height for y in range(len(labels))], values, height, label=column, color=colour)
        axes.bar_label(bars, ["" if math.isnan(value) else f"{value:,g}" for value in values], padding=2, fontsize=7)
    axes.set_yticks([y + 0.42 - height / 2 for y in range(len(labels))], labels)
    axes.invert_yaxis()
    axes.set_xscale("log" if plot.logarithmic else "linear")
    axes.set_xlabel(plot.axis)
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside upper right", ncols=3, frameon=False)
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the plots are written")
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(exist_ok=True)
    # Text stays text, and the same figures give the same file.
    rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "recap", "font.size": 9})
    rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True})
    for plot in PLOTS:
        draw(plot).savefig(folder / f"{plot.name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
