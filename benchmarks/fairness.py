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

from benchmarks.calling import Connection
from benchmarks.command import Command, about_now, breaking_off
from benchmarks.model import PIECES, ModelProcess, Script
from benchmarks.results import load_line, machine_line, quantile
from benchmarks.serving import ROOT, temporary_server

EVERY_SECONDS = 0.04  # between two questions
WAIT_SECONDS = 60.0  # for an answer
OTHER, *CROWD = (f"key-{number}-of-the-benchmark" for number in range(11))
KEYS = ",".join([f"other:{OTHER}", *(f"crowd:{key}" for key in CROWD)])
ASKED = {"health": "/health/live", "reads": "/api/sessions"}
SESSIONS = 20  # of the other tenant


@dataclass(frozen=True)
class Case:
    """A crowd: how many send at once, how long the model takes, and the key and body of each."""

    name: str
    senders: int
    model_seconds: float
    sent: Callable[[int], tuple[str, dict[str, Any]]]


CASES = (
    Case("nobody", 0, 0.0, lambda _: (OTHER, {})),
    Case("70 turns of one key, a model of 20 s", 70, 20.0, lambda n: (CROWD[0], {"session_id": f"s{n}"})),
    Case("70 turns of one session, a model of 20 s", 70, 20.0, lambda _: (CROWD[0], {"session_id": "busy"})),
    Case("100 streams, a model of 2 s", 100, 2.0, lambda n: (CROWD[n % 10], {"session_id": f"s{n}", "stream": True})),
)


def measured(case: Case, root: Path, seconds: float) -> dict[str, Any]:
    """The milliseconds of each question's answers, and the statuses that the crowd got."""
    with (
        ModelProcess() as model,
        temporary_server(model.url, root, RECAP_API_KEYS=KEYS) as server,
        ProcessPoolExecutor(1, get_context("spawn")) as asker,
    ):
        _prepare(server.url)
        model.follow(Script(first=case.model_seconds / PIECES, rest=case.model_seconds * (1 - 1 / PIECES)))
        asking = asker.submit(asked, server.url, seconds)
        statuses = asyncio.run(_crowd(case, server.url, asking.done))
        return {"crowd": statuses, **{name: _figures(took) for name, took in asking.result().items()}}


def asked(url: str, seconds: float) -> dict[str, list[float]]:
    """Ask at fixed times, whether or not earlier questions have been answered; the milliseconds of each answer."""
    names = [list(ASKED)[number % len(ASKED)] for number in range(int(seconds / EVERY_SECONDS))]
    asking = []
    with ThreadPoolExecutor(len(names)) as pool:
        for name in names:
            asking.append(pool.submit(_timed, url, ASKED[name]))
            time.sleep(EVERY_SECONDS)
    return {name: [one.result() for one, of in zip(asking, names, strict=True) if of == name] for name in ASKED}


def _timed(url: str, path: str) -> float:
    begun = time.perf_counter()
    with Connection(url, OTHER, WAIT_SECONDS) as connection:
        try:
            connection.call("GET", path)
        except OSError:
            return 1000 * WAIT_SECONDS
    return 1000 * (time.perf_counter() - begun)


def _prepare(url: str) -> None:
    """Sessions to list, and each worker warm, as far as chance has it."""
    for number in range(SESSIONS):
        with Connection(url, OTHER) as connection:
            connection.call("POST", "/api/sessions", {"session_id": f"other-{number}"})
            connection.call("GET", "/api/sessions")
        with Connection(url, CROWD[-1]) as connection:
            connection.call("POST", "/api/chat", {"message": "Hello.", "session_id": "warm"})


async def _crowd(case: Case, url: str, over: Callable[[], bool]) -> Mapping[str, int]:
    """Send until the questions are `over`; how often each status came."""
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
    key, body = case.sent(number)
    while True:
        try:
            said = {"message": f"I am {number}.", **body}
            answer = await http.post("/api/chat", headers={"Authorization": f"Bearer {key}"}, json=said)
            statuses[str(answer.status_code)] += 1
            retry_after = float(answer.headers.get("Retry-After", 0))
        except httpx2.TransportError as error:
            statuses[type(error).__name__] += 1
            retry_after = 1.0
        await asyncio.sleep(retry_after)


def _figures(took: Sequence[float]) -> dict[str, float]:
    return {"p50": round(quantile(took, 50), 1), "p99": round(quantile(took, 99), 1), "max": round(max(took), 1)}


def table(results: Mapping[str, Any]) -> str:
    """A line for each case and checkout."""
    lines = [f"{'ms: p50 / p99 / max':44}{'health':>26}{'reads of another tenant':>30}   the crowd's answers"]
    for code, cases in results["figures"].items():
        lines += ["", code]
        for case, figures in cases.items():
            health, reads = (" / ".join(f"{value:,.0f}" for value in figures[name].values()) for name in ASKED)
            crowd = ", ".join(f"{count} x {status}" for status, count in figures["crowd"].items())
            lines.append(f"{case:44}{health:>26}{reads:>30}   {crowd or '-'}")
    return "\n".join([*lines, "", load_line(results["load"]), machine_line(results["machine"])])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("fairness", __doc__)
    command.add_argument("--seconds", type=float, default=15.0, help="duration of the questions in each case")
    command.add_argument("--beside", type=Path, help="the folder of another checkout, measured case by case as well")
    options = command.parse_args(arguments)
    if options.seconds < len(ASKED) * EVERY_SECONDS:
        command.error("seconds is too short")
    roots = {"this code": ROOT} | ({str(options.beside): options.beside.resolve()} if options.beside else {})
    results = about_now()
    results["figures"] = {code: {} for code in roots}
    with breaking_off():
        for case in CASES:
            for code, root in roots.items():
                results["figures"][code][case.name] = measured(case, root, options.seconds)
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
