"""Many conversations with a slow model at once: how close Recap's throughput comes to that of the model alone.

    python -m benchmarks.concurrency                          # 300 streams of a 3 s model, 2 workers
    python -m benchmarks.concurrency --streams 20 --turns 1   # a run of a minute

A scripted model streams each reply in PIECES pieces over a fixed time, however many requests it has at once.  Each
stream is one conversation, which sends its next message when the reply has ended.  In the ideal case a turn takes as
long as the model takes.  The streams begin one after the other within the time of one reply, because real users do not
all send a message at the same moment.  The benchmark measures the share of the ideal throughput, the delay of the first
text and of the whole turn compared with the model alone, and the number of failed turns.

The benchmark calls Recap only over HTTP.  The model, the clients and Recap share the machine's cores.  If there are
more streams than the machine can serve, turns take longer; they do not fail.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from benchmarks.calling import spoken
from benchmarks.command import Command, about_now, breaking_off
from benchmarks.model import PIECES, Script, ScriptedModel
from benchmarks.results import load_line, machine_line, percentiles
from benchmarks.serving import free_port, temporary_server

SPARE = 8  # threads that a worker keeps free of turns

REPLY = ["Written", "down.", "What", "comes", "after", "that,", "and", "who", "has", "to", "know", "of", "it?"]
TOLD = "On day {day} the tide was at {metres} metres and the ferry {ferry} brought crates for the lighthouse."
MORE_SECONDS = 120.0  # beyond the ideal time; a turn that takes longer counts as failed


@dataclass
class Taken:
    """Measured turns: seconds beyond the model's own until the first text and until the end, and errors."""

    first_text: list[float] = field(default_factory=list)
    turn: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    streams: list[float] = field(default_factory=list)  # seconds from a stream's first message to its last reply


def slow_model(seconds: float) -> ScriptedModel:
    """A model that takes `seconds` for a reply and sends its first text after 1 / PIECES of that time."""
    return ScriptedModel(Script(first=seconds / PIECES, rest=seconds - seconds / PIECES), lambda _: " ".join(REPLY))


def measured(streams: int, turns: int, seconds: float, workers: int, threads: int) -> dict[str, Any]:
    """The figures of `streams` conversations of `turns` turns each.  Raises RuntimeError if Recap does not start."""
    port = free_port()
    serving = {"WEB_WORKERS": str(workers), "WEB_THREADS": str(threads)}
    with temporary_server(f"http://127.0.0.1:{port}/v1", **serving) as server:
        model, taken = slow_model(seconds), Taken()
        asyncio.run(_all(server.url, model, port, taken, streams, turns))
    share = len(taken.turn) * seconds / sum(taken.streams)
    ideal = streams / seconds
    return {
        "streams": streams,
        "turns": streams * turns,
        "model_seconds": seconds,
        "workers": workers,
        "threads": threads,
        "at_once": model.most,
        "ideal_per_second": round(ideal, 1),
        "turns_per_second": round(ideal * share, 1),
        "share_percent": round(100 * share, 1),
        "first_text_beyond_ms": percentiles([1000 * one for one in taken.first_text]),
        "turn_beyond_ms": percentiles([1000 * one for one in taken.turn]),
        "failed": len(taken.errors),
        "first_failure": taken.errors[0] if taken.errors else None,
    }


async def _all(url: str, model: ScriptedModel, port: int, taken: Taken, streams: int, turns: int) -> None:
    """Run all streams.  They begin one after the other, evenly over the time of one reply."""
    listening, seconds = await model.serve(port), model.script.first + model.script.rest
    try:
        await _talk(url, model, Taken(), "warm-up", 1)
        begins = [seconds * number / streams for number in range(streams)]
        try:
            async with asyncio.timeout((turns + 1) * seconds + MORE_SECONDS):
                await asyncio.gather(
                    *(_talk(url, model, taken, f"stream-{n}", turns, begin) for n, begin in enumerate(begins))
                )
        except TimeoutError:
            taken.errors += ["did not end in time"] * (streams * turns - len(taken.turn) - len(taken.errors))
    finally:
        listening.close()  # no wait_closed(): from Python 3.12 on it waits for connections, which Recap keeps open


async def _talk(url: str, model: ScriptedModel, taken: Taken, session: str, turns: int, begin: float = 0.0) -> None:
    await asyncio.sleep(begin)
    begun = time.monotonic()
    try:
        for day in range(1, turns + 1):
            said = TOLD.format(day=day, metres=len(session) + day, ferry=session)
            try:
                first, whole = await _turn(url, {"session_id": session, "message": said, "stream": True})
            except (OSError, ValueError, asyncio.IncompleteReadError) as error:
                taken.errors.append(f"{type(error).__name__}: {error}")
                continue
            taken.first_text.append(first - model.script.first)
            taken.turn.append(whole - model.script.first - model.script.rest)
    finally:
        taken.streams.append(time.monotonic() - begun)


async def _turn(url: str, body: Mapping[str, Any]) -> tuple[float, float]:
    """Seconds to the first text and to the end.  Raises OSError, and ValueError for an incomplete reply."""
    host, content = urlsplit(url), json.dumps(body).encode()
    begun, first, reply = time.monotonic(), 0.0, ""
    reader, writer = await asyncio.open_connection(host.hostname, host.port)
    try:
        # With HTTP/1.0 the events are not chunked, and the stream ends with the connection.
        head = f"POST /api/chat HTTP/1.0\r\nHost: {host.netloc}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        status = (await reader.readline()).split(b" ")[1:2]
        while (await reader.readline()).strip():
            pass
        if status != [b"200"]:
            raise ValueError(f"status {status}: {(await reader.read(300)).decode('utf-8', 'replace')}")
        async for line in reader:
            if line.strip() == b"data: [DONE]":
                break
            reply += spoken(line)
            first = first or (time.monotonic() if reply else 0.0)
        else:
            raise ValueError(f"the reply broke off: {line.decode('utf-8', 'replace')[:300]}")
        whole = time.monotonic() - begun
    finally:
        writer.close()
    if reply.split() != REPLY:
        raise ValueError(f"not what the model said: {reply[:300]}")
    return first - begun, whole


def table(results: Mapping[str, Any]) -> str:
    """The figures, one on each line."""
    figures = results["figures"]
    first, turn = figures["first_text_beyond_ms"], figures["turn_beyond_ms"]
    rows = [
        ("streams at once", f"{figures['at_once']:,} of {figures['streams']:,}"),
        ("turns", f"{figures['turns']:,}"),
        ("turns a second", f"{figures['turns_per_second']:,.1f} of an ideal {figures['ideal_per_second']:,.1f}"),
        ("share of the ideal, %", f"{figures['share_percent']:.1f}"),
        ("first text beyond the model's, ms", _percentiles(first)),
        ("turn beyond the model's, ms", _percentiles(turn)),
        ("failed turns", f"{figures['failed']:,}"),
    ]
    lines = [f"{label:36}{value:>28}" for label, value in rows]
    if figures["first_failure"]:
        lines += ["", f"The first failure: {figures['first_failure']}"]
    serving = (
        f"{figures['workers']} workers of {figures['threads']} threads; the model takes {figures['model_seconds']:g} s."
    )
    return "\n".join([*lines, "", serving, load_line(results["load"]), machine_line(results["machine"])])


def _percentiles(of: Mapping[str, float]) -> str:
    return f"p50 {of['p50']:,.0f}, p95 {of['p95']:,.0f}" if of else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("concurrency", __doc__)
    command.add_argument("--streams", type=int, default=300, help="conversations at once (default: %(default)s)")
    command.add_argument("--turns", type=int, default=5, help="turns of each conversation (default: %(default)s)")
    command.add_argument(
        "--seconds", type=float, default=3.0, help="duration of a reply of the model (default: %(default)s)"
    )
    command.add_argument("--workers", type=int, default=2, help="WEB_WORKERS (default: %(default)s)")
    command.add_argument(
        "--threads", type=int, help="WEB_THREADS (default: enough for each stream, because workers do not share evenly)"
    )
    options = command.parse_args(arguments)
    if min(options.streams, options.turns, options.workers, options.threads or 1) < 1 or options.seconds <= 0:
        command.error("streams, turns, seconds, workers and threads must be above zero")
    threads = options.threads or options.streams + SPARE  # else some streams would be refused
    results = about_now()
    with breaking_off():
        results["figures"] = measured(options.streams, options.turns, options.seconds, options.workers, threads)
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
