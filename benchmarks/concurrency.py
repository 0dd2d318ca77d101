"""Many conversations with a slow model at once: how close Recap's throughput comes to that of the model alone.

    python -m benchmarks.concurrency                          # 300 streams of a 3 s model, 2 workers
    python -m benchmarks.concurrency --streams 20 --turns 1   # a run of a minute

A scripted model streams each reply in PIECES pieces over a fixed time, however many requests it has at once.  Each
stream is one conversation, which sends its next message when the reply has ended.  In the ideal case a turn takes as
long as the model takes.  The streams begin one after the other within the time of one reply, because real users do not
all send a message at the same moment.  The benchmark measures the share of the ideal throughput, the delay of the first
text and of the whole turn compared with the model alone, and the number of failed turns.

The model, the clients and Recap share the machine's cores.  If there are more streams than the machine can serve, turns
take longer; they do not fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from benchmarks.harness import Command, Figures, converse_at_once, percentiles, progress
from benchmarks.model import PIECES, Call, ModelProcess, Script
from benchmarks.notes import note
from benchmarks.serving import MAIN, temporary_server

SPARE = 8  # threads that a worker keeps free of turns


def measure(streams: int, turns: int, seconds: float, workers: int, threads: int) -> Figures:
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


def table(results: Mapping[str, Any]) -> str:
    """Return the figures, one on each line."""
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


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("concurrency", __doc__)
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
    command.report(options, lambda: {"figures": measure(*sizes)}, table)


if __name__ == "__main__":
    main()
