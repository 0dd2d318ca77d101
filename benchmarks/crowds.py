"""Many at once: how close throughput comes to that of the model alone, and how long others wait beside a crowd."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing import get_context
from typing import Any

import httpx2

from benchmarks.conversation import note
from benchmarks.harness import (
    Command,
    Connection,
    Figures,
    converse_at_once,
    percentiles,
    progress,
    quantile,
    run_named,
)
from benchmarks.model import PIECES, Call, ModelProcess, Script
from benchmarks.serving import MAIN, temporary_server

# -- many conversations with a slow model

SPARE = 8  # threads that a worker keeps free of turns


def measure_streams(streams: int, turns: int, seconds: float, workers: int, threads: int) -> Figures:
    """Return the figures of `streams` conversations of `turns` turns.  Raises RuntimeError if Recap does not start."""
    script = Script(first=seconds / PIECES, rest=seconds - seconds / PIECES, keeps=False)
    serving = {"WEB_WORKERS": str(workers), "WEB_THREADS": str(threads)}
    with (
        ModelProcess() as model,
        temporary_server(model.url, **serving) as server,
        progress(streams * turns + 1, "turn") as bar,
    ):
        model.follow(script)
        converse_at_once([server.url], "/api/chat", [_turns("warm-up", 1)], bar)
        warm = len(model.calls())
        conversations = [_turns(f"stream-{number}", turns) for number in range(streams)]
        done = converse_at_once([server.url], "/api/chat", conversations, bar, over=seconds)
        calls = model.calls()[warm:]
    share = len(done.turns) * seconds / sum(done.seconds)
    ideal = streams / seconds
    return {
        "streams": streams,
        "turns": streams * turns,
        "model_seconds": seconds,
        "workers": workers,
        "threads": threads,
        "at_once": most_at_once([call for call in calls if call.model == MAIN]),
        "ideal_per_second": round(ideal, 1),
        "turns_per_second": round(ideal * share, 1),
        "share_percent": round(100 * share, 1),
        "first_text_beyond_ms": percentiles(
            [1000 * (t.first - t.started - script.first) for t in done.turns if t.first]
        ),
        "turn_beyond_ms": percentiles([1000 * (turn.seconds - seconds) for turn in done.turns]),
        **done.figures(),
    }


def _turns(session: str, count: int) -> list[Mapping[str, Any]]:
    return [{"session_id": session, "message": note(session, day).text, "stream": True} for day in range(count)]


def most_at_once(calls: Sequence[Call]) -> int:
    """Return the largest number of calls that were in progress at once."""
    steps = sorted([*((call.started, 1) for call in calls), *((call.ended, -1) for call in calls)])
    return max(accumulate(step for _, step in steps), default=0)


def table_of_streams(results: Mapping[str, Any]) -> str:
    figures = results["figures"]

    def pair(name: str) -> str:
        return "p50 {p50:,.0f}, p95 {p95:,.0f}".format(**figures[name]) if figures[name] else "-"

    lines = {
        "streams at once": f"{figures['at_once']:,} of {figures['streams']:,}",
        "turns": f"{figures['turns']:,}",
        "turns a second": f"{figures['turns_per_second']:,.1f} of an ideal {figures['ideal_per_second']:,.1f}",
        "share of the ideal, %": f"{figures['share_percent']:.1f}",
        "first text beyond the model's, ms": pair("first_text_beyond_ms"),
        "turn beyond the model's, ms": pair("turn_beyond_ms"),
        "failed turns": f"{figures['failed']:,}",
    }
    parts = [f"{label:36}{value:>28}" for label, value in lines.items()]
    parts += ["", f"The first failure: {figures['first_failure']}"] if figures["first_failure"] else []
    workers = "{workers} workers of {threads} threads; the model takes {model_seconds:g} s.".format(**figures)
    return "\n".join([*parts, "", workers])


def concurrency(arguments: Sequence[str]) -> None:
    """Many conversations with a slow model at once: how close Recap's throughput comes to that of the model alone.

    A scripted model streams each reply over a fixed time, however many requests it has at once.  Each stream is one
    conversation, which sends its next message when the reply has ended.  The streams begin one after the other within
    the time of one reply, as real users do.  Measured are the share of the ideal throughput, the delay of the first
    text and of the whole turn compared with the model alone, and the number of failed turns.  The model, the clients
    and Recap share the machine's cores.
    """
    command = Command("crowds concurrency", concurrency.__doc__)
    command.add_argument("--streams", type=int, default=300, help="conversations at once")
    command.add_argument("--turns", type=int, default=5, help="turns of each conversation")
    command.add_argument("--seconds", type=float, default=3.0, help="duration of a reply of the model")
    command.add_argument("--workers", type=int, default=2, help="WEB_WORKERS")
    command.add_argument("--threads", type=int, help="WEB_THREADS; without it, enough of them in each worker")
    options = command.parse_args(arguments)
    if min(options.streams, options.turns, options.workers, options.threads or 1) < 1 or options.seconds <= 0:
        command.error("streams, turns, seconds, workers and threads must be above zero")
    threads = options.threads or options.streams + SPARE  # workers do not share evenly
    sizes = options.streams, options.turns, options.seconds, options.workers, threads
    command.report(options, lambda: {"figures": measure_streams(*sizes)}, table_of_streams)


# -- others beside a crowd

EVERY_SECONDS = 0.04  # between two questions
WAIT_SECONDS = 60.0  # for an answer
OTHER, *CROWD = (f"key-{number}-of-the-benchmark" for number in range(11))
KEYS = ",".join([f"other:{OTHER}", *(f"crowd:{key}" for key in CROWD)])
PATHS = {"health": "/health/live", "reads": "/api/sessions"}
SESSIONS = 20  # of the other tenant


@dataclass(frozen=True)
class Case:
    """A crowd: how many send at once, how long the model takes, and the key and body of each."""

    name: str
    senders: int
    model_seconds: float
    request: Callable[[int], tuple[str, Figures]]


CASES = (
    Case("nobody", 0, 0.0, lambda _: (OTHER, {})),
    Case("70 turns of one key, a model of 20 s", 70, 20.0, lambda n: (CROWD[0], {"session_id": f"s{n}"})),
    Case("70 turns of one session, a model of 20 s", 70, 20.0, lambda _: (CROWD[0], {"session_id": "busy"})),
    Case("100 streams, a model of 2 s", 100, 2.0, lambda n: (CROWD[n % 10], {"session_id": f"s{n}", "stream": True})),
)


def measure_case(case: Case, seconds: float) -> Figures:
    """Return the milliseconds of each question's answers, and the statuses that the crowd got."""
    with (
        ModelProcess() as model,
        temporary_server(model.url, RECAP_API_KEYS=KEYS) as server,
        ProcessPoolExecutor(1, get_context("spawn")) as asker,
    ):
        _prepare(server.url)
        model.follow(Script(first=case.model_seconds / PIECES, rest=case.model_seconds * (1 - 1 / PIECES)))
        asking = asker.submit(ask, server.url, seconds)
        statuses = asyncio.run(_crowd(case, server.url, asking.done))
        return {"crowd": statuses, **{name: _figures(took) for name, took in asking.result().items()}}


def ask(url: str, seconds: float) -> dict[str, list[float]]:
    """Ask at fixed times, whether or not earlier questions have been answered; return the milliseconds of each."""
    names = [list(PATHS)[number % len(PATHS)] for number in range(int(seconds / EVERY_SECONDS))]
    futures = []
    with ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            futures.append((name, pool.submit(_time_call, url, PATHS[name])))
            time.sleep(EVERY_SECONDS)
    return {name: [future.result() for asked, future in futures if asked == name] for name in PATHS}


def _time_call(url: str, path: str) -> float:
    started = time.perf_counter()
    with Connection(url, OTHER, WAIT_SECONDS) as connection:
        try:
            connection.call("GET", path)
        except OSError:
            return 1000 * WAIT_SECONDS
    return 1000 * (time.perf_counter() - started)


def _prepare(url: str) -> None:
    """Make sessions to list, and warm each worker, as far as chance has it."""
    for number in range(SESSIONS):
        with Connection(url, OTHER) as connection:
            connection.call("POST", "/api/sessions", {"session_id": f"other-{number}"})
            connection.call("GET", "/api/sessions")
        with Connection(url, CROWD[-1]) as connection:
            connection.call("POST", "/api/chat", {"message": "Hello.", "session_id": "warm"})


async def _crowd(case: Case, url: str, over: Callable[[], bool]) -> Mapping[str, int]:
    """Send until the questions are `over`; return how often each status came."""
    statuses = Counter[str]()
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=url, limits=limits, timeout=WAIT_SECONDS, trust_env=False) as http:
        senders = [asyncio.create_task(_sender(case, http, number, statuses)) for number in range(case.senders)]
        while not over():
            await asyncio.sleep(0.1)
        for sender in senders:
            sender.cancel()
        await asyncio.gather(*senders, return_exceptions=True)
    return dict(sorted(statuses.items()))


async def _sender(case: Case, http: httpx2.AsyncClient, number: int, statuses: Counter[str]) -> None:
    key, body = case.request(number)
    while True:
        try:
            message = {"message": f"I am {number}.", **body}
            response = await http.post("/api/chat", headers={"Authorization": f"Bearer {key}"}, json=message)
            statuses[str(response.status_code)] += 1
            retry_after = float(response.headers.get("Retry-After", 0))
        except httpx2.TransportError as error:
            statuses[type(error).__name__] += 1
            retry_after = 1.0
        await asyncio.sleep(retry_after)


def _figures(took: Sequence[float]) -> dict[str, float]:
    return {"p50": round(quantile(took, 50), 1), "p99": round(quantile(took, 99), 1), "max": round(max(took), 1)}


def table_of_cases(results: Mapping[str, Any]) -> str:
    """Return a line for each case."""
    lines = [f"{'ms: p50 / p99 / max':44}{'health':>26}{'reads of another tenant':>30}   the crowd's answers"]
    for case, figures in results["figures"].items():
        health, reads = (" / ".join(f"{value:,.0f}" for value in figures[name].values()) for name in PATHS)
        crowd = ", ".join(f"{count} x {status}" for status, count in figures["crowd"].items())
        lines.append(f"{case:44}{health:>26}{reads:>30}   {crowd or '-'}")
    return "\n".join([*lines, ""])


def fairness(arguments: Sequence[str]) -> None:
    """A crowd on one server: how long others wait for a health check and for a list of their sessions.

    Recap has its default settings.  In each case a crowd keeps sending for some seconds; who is refused sends again
    after as many seconds as Retry-After says.  Meanwhile a process of its own asks for /health/live, and for the
    sessions of another tenant, at fixed times and on new connections.  `nobody` is the same without a crowd.  A
    question without an answer counts with the longest wait.
    """
    command = Command("crowds fairness", fairness.__doc__)
    command.add_argument("--seconds", type=float, default=15.0, help="duration of the questions in each case")
    options = command.parse_args(arguments)
    if options.seconds < len(PATHS) * EVERY_SECONDS:
        command.error("seconds is too short")
    command.report(
        options, lambda: {"figures": {case.name: measure_case(case, options.seconds) for case in CASES}}, table_of_cases
    )


if __name__ == "__main__":
    run_named(concurrency=concurrency, fairness=fairness)
