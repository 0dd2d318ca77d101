"""The command line of a benchmark: common options, storing the results, and errors.

    command = Command("turns", __doc__)                        # a benchmark's docstring is its help
    command.add_argument("--turns", type=int, default=200)
    options = command.parse_args(arguments)
    results = about_now() | {"turns": options.turns}
    with breaking_off():
        results |= measured(options.turns)
    command.publish(options.results, results, table)

Guarantee: results are stored before they are printed.  Invalid options exit with 2 and the usage.  A failure during the
measurement exits with 1 and one sentence.
"""

from __future__ import annotations

import argparse
import json
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
from benchmarks.conversation import Conversation
from benchmarks.results import machine
from config import Settings

RESULTS = Path(__file__).parent / "results"  # the default folder of the JSON files


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """The docstring as it is, and the default of each option."""


class Command(argparse.ArgumentParser):
    """The options of a benchmark: its own, and those that several benchmarks share."""

    def __init__(self, name: str, about: str | None) -> None:
        description, _, details = (about or "").partition("\n\n")
        super().__init__(
            prog=f"python -m benchmarks.{name}",
            description=description,
            epilog=details,
            formatter_class=_Help,
        )
        self._name = name
        self.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON")

    def takes_settings(self) -> None:
        """Add the option `--set`, which changes settings of Recap.  `options.set` is a list of (name, value)."""
        told = "a setting of Recap, such as EMBEDDINGS=off; can be repeated"
        self.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=told)

    def takes_conversations(self) -> None:
        """Add the argument for recorded conversations.  Pass `options.conversations` to `loaded`."""
        self.add_argument("conversations", nargs="+", type=Path, metavar="CONVERSATION.json | FOLDER")

    def loaded(self, paths: Sequence[Path]) -> list[Conversation]:
        """Load the conversations in these files and folders, which need different names; see `Conversation.load`."""
        try:
            files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
            loaded = [one for file in files for one in Conversation.load(file)]
        except (OSError, ValueError) as error:
            self.error(str(error))
        if len({one.name for one in loaded}) < len(loaded):
            self.error("two of the conversations have the same name")
        return loaded

    def publish(self, folder: Path, results: Mapping[str, Any], table: Callable[[Mapping[str, Any]], str]) -> None:
        """Store the results and print their table."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self._name}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
        file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(table(results))
        print(f"\nAs JSON: {file}")


@contextmanager
def breaking_off() -> Iterator[None]:
    """End the benchmark with one sentence if the measurement within the block fails."""
    try:
        yield
    except (RuntimeError, httpx2.HTTPError, *FAILURES) as error:
        raise SystemExit(f"The benchmark failed: {error}") from error


def about_now() -> dict[str, Any]:
    """The time, the machine, and its load before the measurement."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": os.getloadavg()[0],
    }


def progress(total: int, unit: str, of: str | None = None) -> Any:
    """A progress bar on standard error: `with progress(10, "turn") as bar: bar.update()`."""
    return tqdm(total=total, unit=unit, desc=of, file=sys.stderr, dynamic_ncols=True)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in Settings.variables():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with the name of a setting")
    return name, value
