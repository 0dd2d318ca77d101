"""A crowd on one server: how long others wait for a health check and for a list of their sessions.

    python -m benchmarks.fairness                       # four cases, a minute and a half
    python -m benchmarks.fairness --beside ../recap-old  # and another checkout of Recap, in the same run

Recap has its default settings.  In each case a crowd keeps sending for some seconds: 70 turns of one key with a slow
model, 70 turns of one session, or 100 streams of an ordinary model, with a key for every ten.  Who is refused sends
again after as many seconds as Retry-After says.  Meanwhile a process of its own asks for /health/live, and for the
sessions of another tenant, at fixed times and on new connections, as a load balancer does.  `nobody` is the same
without a crowd: what the machine itself takes.  A question without an answer counts with the longest wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.harness import Command, Connection, Figures, quantile
from benchmarks.model import PIECES, ModelProcess, Script
from benchmarks.serving import ROOT, temporary_server

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


def measure(case: Case, root: Path, seconds: float) -> Figures:
    """Return the milliseconds of each question's answers, and the statuses that the crowd got."""
    with (
        ModelProcess() as model,
        temporary_server(model.url, root, RECAP_API_KEYS=KEYS) as server,
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


def table(results: Mapping[str, Any]) -> str:
    """Return a line for each case and checkout."""
    lines = [f"{'ms: p50 / p99 / max':44}{'health':>26}{'reads of another tenant':>30}   the crowd's answers"]
    for code, cases in results["figures"].items():
        lines += ["", code]
        for case, figures in cases.items():
            health, reads = (" / ".join(f"{value:,.0f}" for value in figures[name].values()) for name in PATHS)
            crowd = ", ".join(f"{count} x {status}" for status, count in figures["crowd"].items())
            lines.append(f"{case:44}{health:>26}{reads:>30}   {crowd or '-'}")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("fairness", __doc__)
    command.add_argument("--seconds", type=float, default=15.0, help="duration of the questions in each case")
    command.add_argument("--beside", type=Path, help="the folder of another checkout, measured case by case as well")
    options = command.parse_args(arguments)
    if options.seconds < len(PATHS) * EVERY_SECONDS:
        command.error("seconds is too short")
    roots = {"this code": ROOT} | ({str(options.beside): options.beside.resolve()} if options.beside else {})

    def measure_cases() -> Figures:
        figures: Figures = {code: {} for code in roots}
        for case in CASES:
            for code, root in roots.items():
                figures[code][case.name] = measure(case, root, options.seconds)
        return {"figures": figures}

    command.report(options, measure_cases, table)


if __name__ == "__main__":
    main()
