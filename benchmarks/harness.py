"""What benchmarks share: the command line, results and their tables, a server's resources, and connections to it.

Results are stored before they are printed, as tables that a page of the documentation can take.  Invalid options exit
with 2, a failed measurement with 1 and one sentence.
"""

import argparse
import http.client
import json
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from inspect import cleandoc
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx2
import psutil
from tqdm import tqdm

from benchmarks.conversation import Conversation
from config import Settings

RESULTS_FOLDER = Path(__file__).parent / "results"
PACKAGES = ("flask", "gunicorn", "sqlalchemy", "whoosh-reloaded", "httpx2")
READ_SECONDS = 180.0  # without a byte, after which a call counts as failed
FAILURES = (OSError, http.client.HTTPException, ValueError)  # raised by calls; see Connection

Figures = dict[str, Any]
Table = Callable[[Mapping[str, Any]], str]
Row = tuple[str, str, tuple[str, ...]]
"""A row of a table: its label, the format of its figures, and the path to them."""


# -- the command line


class _Help(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
    """Print the docstring as it is, and the default of each option."""


class Command(argparse.ArgumentParser):
    """The options of a benchmark: its own, and those that several benchmarks share."""

    def __init__(self, name: str, docstring: str | None) -> None:
        description, _, details = cleandoc(docstring or "").partition("\n\n")
        super().__init__(f"python -m benchmarks.{name}", None, description, details, formatter_class=_Help)
        self._name = name.split()[-1]
        self.add_argument("--results", type=Path, default=RESULTS_FOLDER, help="folder for the JSON")

    def takes_settings(self) -> None:
        """Add the option `--set`, which changes settings of Recap; `options.set` is a list of (name, value)."""
        text = "a setting of Recap, such as EMBEDDINGS=off; can be repeated"
        self.add_argument("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=text)

    def takes_conversations(self) -> None:
        """Add the argument for recorded conversations.  Pass `options.conversations` to `load`."""
        self.add_argument("conversations", nargs="+", type=Path, metavar="CONVERSATION.json | FOLDER")

    def load(self, paths: Sequence[Path]) -> list[Conversation]:
        """Load the conversations in these files and folders, which need different names."""
        try:
            files = [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
            conversations = [conversation for file in files for conversation in Conversation.load(file)]
        except (OSError, ValueError) as error:
            self.error(str(error))
        if len({conversation.name for conversation in conversations}) < len(conversations):
            self.error("two of the conversations have the same name")
        return conversations

    def report(self, options: argparse.Namespace, measure: Callable[[Figures], None], table: Table) -> None:
        """Store what `measure` adds to the results, and print their table. A run that fails keeps what it has."""
        results, failure = run_info(), ""
        try:
            measure(results)
        except (KeyboardInterrupt, SystemExit, RuntimeError, httpx2.HTTPError, *FAILURES) as error:
            failure = "it was stopped" if isinstance(error, KeyboardInterrupt | SystemExit) else str(error)
        options.results.mkdir(parents=True, exist_ok=True)
        file = options.results / f"{self._name}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
        file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        if failure:
            raise SystemExit(f"The benchmark failed: {failure}\nWhat it measured before, as JSON: {file}")
        print(f"{table(results)}\n\n{footer(results)}\n\nAs JSON: {file}")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in Settings.variables():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with the name of a setting")
    return name, value


def progress(total: int, unit: str, label: str | None = None) -> Any:
    """Return a progress bar on standard error: `with progress(10, "turn") as bar: bar.update()`."""
    return tqdm(total=total, unit=unit, desc=label, file=sys.stderr, dynamic_ncols=True)


# -- results and tables


def run_info() -> Figures:
    """Return the time, the machine with the versions of the main packages, and its load before the measurement."""
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1024**3, 1),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine, "load": os.getloadavg()[0]}


def footer(results: Mapping[str, Any]) -> str:
    """Return the last lines of a table."""
    return (
        f"The machine's load before the run was {results['load']:.1f}; other load makes the times longer.\n"
        "Measured on {cores} cores, {memory_gb} GB, {system}, Python {python}.".format(**results["machine"])
    )


def by_column(title: str, columns: Mapping[str, Figures], rows: Iterable[Row]) -> str:
    """Return a table for a page of the documentation, with these columns."""
    lines = ([label, *(cell(figures, shape, path) for figures in columns.values())] for label, shape, path in rows)
    return markdown((title, *columns), lines)


def by_line(title: str, lines: Mapping[str, Figures], heads: Sequence[Row]) -> str:
    """Return the same the other way round: a line for each name, and a column for each figure."""
    cells = ([name, *(cell(figures, shape, path) for _, shape, path in heads)] for name, figures in lines.items())
    return markdown((title, *(head for head, _, _ in heads)), cells)


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *lines))


def changed_settings(settings: Mapping[str, str]) -> str:
    """Return the changed settings, to be appended to the description of the server."""
    return "".join(f", {name}={value}" for name, value in settings.items())


def cell(figures: Mapping[str, Any], shape: str, path: tuple[str, ...]) -> str:
    """Return the figure at `path`, formatted with `shape`; a dash if there is none."""
    value: Any = figures
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return "-" if value is None else shape.format(value)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the smallest values that 50 % and 95 % of the values do not exceed; nothing without values."""
    places = {share: ceil(len(values) * share / 100) - 1 for share in (50, 95)}
    return {f"p{share}": round(sorted(values)[at], 2) for share, at in places.items()} if values else {}


# -- resources of a server


def cpu_seconds(pid: int) -> float | None:
    """Return the CPU time of a process and its descendants, ended ones included; None if the process has ended."""
    if not psutil.pid_exists(pid):
        return None
    process, seconds = psutil.Process(pid), 0.0
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            seconds += sum(member.cpu_times()[:4])
    return seconds


def worker_memory(pid: int) -> dict[str, float]:
    """Return the megabytes of the largest worker of the gunicorn master process `pid`; nothing where PSS is unknown.

    `pss` divides shared pages among the processes that share them, so a sum over processes is exact.  `rss` counts
    shared pages in full.
    """
    if not psutil.LINUX:
        return {}
    workers = [worker.memory_full_info() for worker in psutil.Process(pid).children(recursive=True)]
    largest = max(workers, key=lambda memory: memory.rss)
    return {"pss": round(largest.pss / 1024**2, 1), "rss": round(largest.rss / 1024**2, 1)}


def database_bytes(data_dir: Path) -> int:
    """Return the size of the SQLite database without its write-ahead log."""
    with closing(sqlite3.connect(data_dir / "recap.db")) as connection:
        (pages,), (size,) = (connection.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
    return int(pages * size)


def folder_bytes(folder: Path) -> int:
    """Return the total size of all files below `folder`."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):  # a merge of the index deleted it meanwhile
            total += file.stat().st_size if file.is_file() else 0
    return total


# -- connections that time turns, with Recap or directly with its model server


@dataclass(frozen=True)
class TurnTimes:
    """The times of a turn by `time.monotonic`: its start, its first text (only if streamed), its end."""

    started: float
    first: float | None
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.started


class Connection:
    """A kept-alive connection to one server, for one thread; `http.client` takes little time itself.

    Its calls raise FAILURES: OSError and HTTPException from the client, ValueError for a status of 300 or more and for
    a stream that breaks off.
    """

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc, timeout=READ_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Make a call and return the JSON of the response."""
        return json.loads(self._send(method, f"{path}?{urlencode(query)}" if query else path, body).read())

    def turn(self, path: str, body: Mapping[str, Any]) -> TurnTimes:
        """Send a message and read the whole reply, event by event if `body` requests a stream."""
        started, first = time.monotonic(), None
        response = self._send("POST", path, body)
        if not body.get("stream"):
            json.loads(response.read())
            return TurnTimes(started, None, time.monotonic())
        done = False
        for line in response:
            first = first or (time.monotonic() if _text_of(line) else None)
            done = done or line.strip() == b"data: [DONE]"
        if not done or first is None:
            raise ValueError(f"the reply broke off: {line.decode('utf-8', 'replace')[:300]}")
        return TurnTimes(started, first, time.monotonic())

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> http.client.HTTPResponse:
        content = None if body is None else json.dumps(body).encode()
        try:
            self._http.request(method, path, content, {"Content-Type": "application/json"})
            response = self._http.getresponse()
            if response.status >= 300:
                text = response.read(1000).decode("utf-8", "replace")
                raise ValueError(f"{method} {path} answered {response.status}: {text}")
        except BaseException:
            self._http.close()  # part of a response may be unread; the next call opens a new connection
            raise
        return response


def _text_of(line: bytes) -> str:
    """Return the text in one line of a stream of chat.completion.chunk events, of Recap or of a model."""
    event = line.removeprefix(b"data: ").strip()
    choices = json.loads(event).get("choices") if event.startswith(b"{") else None
    text: str = (choices[0]["delta"].get("content") or "") if choices else ""
    return text


@dataclass(frozen=True)
class Conversed:
    """Conversations at once: their turns, the errors of turns that failed, and the seconds of each conversation."""

    turns: list[TurnTimes]
    errors: list[str]
    seconds: list[float]

    def figures(self) -> Figures:
        """Return the milliseconds of a turn, how many turns failed, and the first failure."""
        return {
            "turn_ms": percentiles([1000 * turn.seconds for turn in self.turns]),
            "failed": len(self.errors),
            "first_failure": self.errors[0] if self.errors else None,
        }


def converse_at_once(
    urls: Sequence[str], path: str, conversations: Sequence[Sequence[Mapping[str, Any]]], bar: Any
) -> Conversed:
    """Send the turns of conversations, each on its own connection, to the servers in turn."""
    done = Conversed([], [], [])

    def converse(number: int) -> None:
        started = time.monotonic()
        with Connection(urls[number % len(urls)]) as connection:
            for body in conversations[number]:
                try:
                    done.turns.append(connection.turn(path, body))
                except FAILURES as error:
                    done.errors.append(f"{type(error).__name__}: {error}")
                bar.update()
        done.seconds.append(time.monotonic() - started)

    with ThreadPoolExecutor(len(conversations)) as pool:
        list(pool.map(converse, range(len(conversations))))
    return done
