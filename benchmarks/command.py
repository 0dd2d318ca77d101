"""A benchmark at the command line: what all of them have alike, from their options to the file with their figures.

    command = Command("turns", __doc__)                        # a benchmark's docstring is its help
    command.add_argument("--turns", type=int, default=200)
    options = command.parse_args(arguments)
    results = about_now() | {"turns": options.turns}
    with breaking_off():
        results |= measured(options.turns)
    command.publish(options.results, results, table)

Guarantee: what was measured is on the disk before it is printed.  What can't be asked for ends with 2 and the usage,
what fails meanwhile with 1 and one sentence.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from tqdm import tqdm

from benchmarks.calling import FAILURES
from benchmarks.conversation import Conversation, files_of
from benchmarks.results import machine, stored
from config import Settings

RESULTS = Path(__file__).parent / "results"  # where the JSON goes unless told otherwise


class Command(argparse.ArgumentParser):
    """The options of a benchmark: the folder of its results, those that several have, and its own."""

    def __init__(self, name: str, about: str | None) -> None:
        description, _, details = (about or "").partition("\n\n")
        super().__init__(
            prog=f"python -m benchmarks.{name}",
            description=description,
            epilog=details,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._name = name
        self.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON (default: %(default)s)")

    def takes_settings(self) -> None:
        """Recap's settings, where they are not to be the defaults: `options.set` has them as pairs."""
        self.add_argument(
            "--set",
            type=_setting,
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a setting, as EMBEDDINGS=off",
        )

    def takes_conversations(self) -> None:
        """Recorded conversations: `loaded` reads what `options.conversations` names."""
        self.add_argument("conversations", nargs="+", type=Path, metavar="CONVERSATION.json | FOLDER")

    def loaded(self, paths: Sequence[Path], *, unanswerable: bool = False) -> list[Conversation]:
        """The conversations of these files and folders; see `Conversation.load`."""
        try:
            return [Conversation.load(file, unanswerable=unanswerable) for file in files_of(paths)]
        except (OSError, ValueError) as error:
            self.error(str(error))

    def publish(self, folder: Path, results: Mapping[str, Any], table: Callable[[Mapping[str, Any]], str]) -> None:
        """Store the results and print their table."""
        file = stored(folder, self._name, results)
        print(table(results))
        print(f"\nAs JSON: {file}")


@contextmanager
def breaking_off() -> Iterator[None]:
    """Within it, what fails of what is measured ends the benchmark with a sentence."""
    try:
        yield
    except (RuntimeError, httpx2.HTTPError, *FAILURES) as error:
        raise SystemExit(f"The benchmark broke off: {error}") from error


def about_now() -> dict[str, Any]:
    """When and on what it is measured, and how busy that was already."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": os.getloadavg()[0],
    }


def progress(total: int, unit: str, of: str | None = None) -> Any:
    """A bar for whoever waits, beside the table: `with progress(10, "turn") as bar: bar.update()`."""
    return tqdm(total=total, unit=unit, desc=of, file=sys.stderr, dynamic_ncols=True)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in Settings.variables():
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE of a setting of Recap")
    return name, value
