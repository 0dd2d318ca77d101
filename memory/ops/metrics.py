"""Metrics: what happened, counted for Prometheus.

`Metrics` has a method for each event; nothing else knows Prometheus.

Invariants:
- No label holds an id, a name or a word of anybody's: only routes, error codes, kinds, modes and the names of the
  operator's models (test_metrics).
- Where processes share a folder, any of them answers for all, and counts outlive the worker (test_metrics).
"""

import fcntl
import itertools
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from memory.errors import RecapError
from models.owners import Usage

log = logging.getLogger(__name__)

FOLDER = "metrics"  # in the data directory: what several processes count together
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FILES = ("counter", "histogram", "gauge_livesum")  # prometheus_client writes one for each process
FILE_BYTES = 1 << 20  # several times what all series take

# Our own work takes milliseconds, the model's seconds, up to MODEL_TIMEOUT; a histogram of both needs both ends.
PHASE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
# What a person notices: at once, a moment, a wait, too long.
FIRST_TEXT_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120)
# From a look-up to a reply; fewer, as there is a series for each route.
REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30, 60, 120)

TURN_OUTCOMES = ("answered", "interrupted", "replayed", "failed", "refused")
FACT_OUTCOMES = ("added", "superseded", "repeated", "refused", "waiting")
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")

disable_created_metrics()  # a second series for each, which nobody asked for


@dataclass(frozen=True, eq=False)  # a registry keeps collectors by identity
class _ScrapeInfo(Collector):
    """Values that are looked up when the metrics are read, so that it is the same from every process."""

    version: str
    jobs: Mapping[tuple[str, str], int] | None
    shared: bool

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("recap_build_info", "1; the version that runs.", labels=["version"])
        build.add_metric([self.version], 1)
        yield build
        shared = "1: these figures are of all worker processes; 0: of the one that answered alone."
        yield GaugeMetricFamily("recap_metrics_shared", shared, int(self.shared))
        readable = int(self.jobs is not None)
        yield GaugeMetricFamily("recap_database_up", "Whether the database can be read.", readable)
        waiting = GaugeMetricFamily("recap_jobs", "Jobs in the database, by state.", labels=["kind", "state"])
        for (kind, state), count in (self.jobs or {}).items():
            waiting.add_metric([kind, state], count)
        yield waiting


class Metrics:
    """Counts what happens in this process.  Thread-safe."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._locks = ExitStack()
        self._make()

    # -- what happened

    def start_request(self, traceparent: str | None) -> None:
        """Count a request that arrived. traceparent: its header of that name, for traces."""
        self._in_flight.inc()

    def end_request(self, method: str, route: str, status: int, seconds: float, code: str | None) -> None:
        """Count an answered request. route: as it is written in the code. code: of its error."""
        self._in_flight.dec()
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)
        if code is not None:
            self._errors.labels(code).inc()

    def count_turn(
        self, api: str, outcome: str, phases: Mapping[str, float], first_text: float | None, seconds: float
    ) -> None:
        """Count a turn that ended after `seconds`.

        api: `chat` or `completions`. outcome: one of TURN_OUTCOMES. phases: their seconds.
        """
        self._turns.labels(api, outcome).inc()
        for phase, lasted in phases.items():
            self._phase_seconds.labels(phase).observe(lasted)
        if first_text is not None:
            self._first_text_seconds.observe(first_text)

    def count_fallback(self, task: str, by: str, code: str) -> None:
        """Count an answer in place of the model of a `task`, `main` or `mini`, which failed with this `code`."""
        self._fallbacks.labels(task, by, code).inc()

    def count_answer(
        self, spent: Usage, history_tokens: int, mode: str, excerpts: int, *, without_memory: bool
    ) -> None:
        """Count an answered turn. history_tokens: of all of the history. mode: of recall."""
        self.count_tokens("main", spent)
        self._history_tokens.inc(history_tokens)
        self._saved_tokens.inc(max(0, history_tokens - spent.prompt_tokens))
        self._recalls.labels(mode, "found" if excerpts else "nothing").inc()
        self._excerpts.inc(excerpts)
        self._without_memory.inc(without_memory)

    def count_tokens(self, model: str, usage: Usage) -> None:
        """Count the tokens of the `main` or the `mini` model for answers, usable or not."""
        self._tokens.labels(model, "prompt").inc(usage.prompt_tokens)
        self._tokens.labels(model, "cached").inc(usage.cached_tokens)
        self._tokens.labels(model, "completion").inc(usage.completion_tokens)

    def count_facts(self, counts: Mapping[str, int]) -> None:
        """Count the facts that the mini model proposed, by FACT_OUTCOMES."""
        for outcome, count in counts.items():
            self._facts.labels(outcome).inc(count)

    def count_embedding(self, use: str, outcome: str) -> None:
        """Count a `search` or a batch of the `index` that needed vectors of a server.

        outcome: `answered`, `failed`, or `skipped` because it failed a moment ago.
        """
        self._embeddings.labels(use, outcome).inc()

    def count_job(self, kind: str, outcome: str, seconds: float | None = None) -> None:
        """Count a run of a job that ended.

        outcome: `done`, `retried` (it will run again), `dead` (it will not), or `abandoned` because its process died.
        """
        self._jobs.labels(kind, outcome).inc()
        if seconds is not None:
            self._job_seconds.labels(kind).observe(seconds)

    # -- over several processes

    def share(self, folder: Path) -> None:
        """Count together with the other processes that share `folder`.  Counts so far are dropped.

        This switches prometheus_client to multiprocess mode for the whole process.  If the folder cannot be written,
        the figures stay this process's own: `recap_metrics_shared` is 0, and the log says why.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            number = self._take_files(folder)
        except OSError as error:
            log.warning("metrics are of each process alone: its folder can't be written (%s)", error.strerror)
            return
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        values.ValueClass = values.MultiProcessValue(lambda: number)
        self._folder = folder
        self._make()

    def _take_files(self, folder: Path) -> int:
        """Lock the first files that no living process has, and return their number: counting goes on in them.

        Files of their own for each process would be more with each process that ever was.
        """
        for path in folder.glob("gauge*.db"):
            with suppress(BlockingIOError), path.open("r+b") as gauge:
                fcntl.flock(gauge, fcntl.LOCK_EX | fcntl.LOCK_NB)
                gauge.write(bytes(FILE_BYTES))  # a process that ended has no requests in progress
        for number in itertools.count():
            with ExitStack() as opened:
                try:
                    for name in FILES:
                        file = opened.enter_context((folder / f"{name}_{number}.db").open("ab"))
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        # else prometheus_client maps a sparse file, and a full disk would kill the process
                        file.write(bytes(max(0, FILE_BYTES - file.seek(0, os.SEEK_END))))
                        file.flush()
                except BlockingIOError:
                    continue
                self._locks = opened.pop_all()  # the kernel gives them back when the process ends
                return number
        raise AssertionError("counting has no end")

    def text(self, version: str, jobs: Mapping[tuple[str, str], int] | None) -> bytes:
        """Return all metrics in Prometheus' text format. Raises RecapError when the counts were deleted.

        jobs: their numbers by kind and state; None: the database can't be read.
        """
        at_scrape = CollectorRegistry(auto_describe=False)
        at_scrape.register(_ScrapeInfo(version, jobs, self._folder is not None))
        counted = self._registry
        if self._folder is not None:
            if not self._folder.is_dir():
                raise RecapError(
                    "metrics_lost",
                    f"{self._folder} was deleted, and with it all counts since the server started. Nothing else is "
                    "lost. Restart the server to count again.",
                    status=503,
                )
            counted = CollectorRegistry()
            MultiProcessCollector(counted, str(self._folder))
        return generate_latest(counted) + generate_latest(at_scrape)

    def _make(self) -> None:
        registry = self._registry = CollectorRegistry()

        def counter(name: str, about: str, *labels: str, **known: Iterable[str]) -> Counter:
            made = Counter(f"recap_{name}", about, (*labels, *known), registry=registry)
            for start in itertools.product(*known.values()) if known else ():
                made.labels(*start)  # from 0, so that the first is an increase
            return made

        def seconds(name: str, about: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"recap_{name}_seconds", about, labels, buckets=buckets, registry=registry)

        in_flight = ("recap_http_requests_in_flight", "Requests being answered now.")
        self._in_flight = Gauge(*in_flight, registry=registry, multiprocess_mode="livesum")
        self._requests = counter("http_requests", "Requests, by route.", "method", "route", "status")
        self._request_seconds = seconds(
            "http_request", "From a request to the end of its answer.", REQUEST_BUCKETS, "route"
        )
        self._errors = counter("errors", "Errors answered, by their code.", "code")
        about = "Turns, by the API they came by and how they ended."
        self._turns = counter("turns", about, api=("chat", "completions"), outcome=TURN_OUTCOMES)
        self._without_memory = counter("turns_without_memory", "Clients' turns answered although memory failed.")
        self._phase_seconds = seconds("turn_phase", "Time a turn spent in a phase.", PHASE_BUCKETS, "phase")
        self._first_text_seconds = seconds(
            "turn_first_text", "From a message to the first text of a streamed reply.", FIRST_TEXT_BUCKETS
        )
        self._tokens = counter("tokens", "Tokens of model calls, as the provider counts them.", "model", "kind")
        self._fallbacks = counter(
            "model_fallbacks", "Calls that another model answered because the first one failed.", "model", "by", "code"
        )
        self._history_tokens = counter("full_history_tokens", "Prompt tokens that all of the history would take.")
        self._saved_tokens = counter("saved_tokens", "Prompt tokens saved against that, in turns that saved any.")
        self._recalls = counter("recalls", "Answered turns, by recall mode and outcome.", "mode", "outcome")
        self._excerpts = counter("recalled_excerpts", "Excerpts of earlier messages shown to the main model.")
        self._facts = counter("facts", "Facts the mini model proposed, by what became of them.", outcome=FACT_OUTCOMES)
        self._embeddings = counter("embeddings", "Requests for embeddings, by how they ended.", "use", "outcome")
        self._jobs = counter("jobs_run", "Runs of jobs, by how they ended.", "kind", "outcome")
        self._job_seconds = seconds("job", "Time a run of a job took.", PHASE_BUCKETS, "kind")
