"""What a turn costs in addition to the model: time, CPU, model calls, tokens, new parts of prompts, and memory.

    make bench
    python -m benchmarks.turns --turns 40 --conversations 5 --each 10     # a smaller run

The benchmark runs Recap in gunicorn with one worker of 32 threads, and calls it over HTTP.  A scripted model runs in
another process.  There are three phases: one conversation with a model without latency; many conversations at once; and
streamed turns with a model that delays its first text.  For comparison, the same client also calls the model server
directly, which shows the cost of HTTP and the scripted model.

    overhead   the duration of a turn at the client minus the time in which at least one model call was in progress
    CPU        CPU time of all of Recap's processes until no job waits, so it includes the work after replies
    calls, prompt tokens
               of both models.  A token is a word or a punctuation mark, plus three for each message.  "At turn N" is
               the mean of the 16 turns up to turn N, because summaries come every few turns.  The scripted summaries
               have at most 200 words, half of what Recap's prompt allows, and contain the first words of each message
    prefix     the share of a main model's prompt with which the next one begins: the median, and how many prompts reach
               0.75.  Providers bill such a cached prefix at a fraction
    memory     of the worker after all phases.  PSS divides shared memory among its processes, RSS counts it in full

All processes share the machine's cores, so other load on the machine disturbs the figures.
"""

import json
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from statistics import median
from typing import Any

from benchmarks.conversation import note
from benchmarks.harness import (
    Command,
    Connection,
    Figures,
    Row,
    TurnTimes,
    by_column,
    changed_settings,
    converse_at_once,
    cpu_seconds,
    percentiles,
    progress,
    worker_memory,
)
from benchmarks.model import Call, ModelProcess, Script
from benchmarks.serving import MAIN, Server, temporary_server

THREADS = 32
SCRIPT = Script(words=200)
ENDS = 20  # the first and the last turns that are compared
TOKENS_OVER = 16  # turns that prompt tokens are averaged over
PREFIX_GOAL = 0.75
EARLY = 20  # the turn whose prompt tokens are compared with the last one's
SETTLE_SECONDS = 120.0


@dataclass(frozen=True)
class Subject:
    """Receiver of turns: its address, and the body of a request, made of a session and a message."""

    url: str
    path: str
    body: Callable[[str, str], Mapping[str, Any]]
    model: ModelProcess
    options: Namespace
    bar: Any

    def _turn(self, session: str, number: int, stream: bool = False) -> Mapping[str, Any]:
        return {**self.body(session, note(session, number).text), "stream": stream}

    def converse(self, session: str, numbers: Sequence[int], *, stream: bool = False) -> list[TurnTimes]:
        """Send one conversation's turns, one after the other."""
        turns = []
        with Connection(self.url) as connection:
            for number in numbers:
                turns.append(connection.turn(self.path, self._turn(session, number, stream)))
                self.bar.update()
                time.sleep(self.options.pause)
        return turns

    def at_once(self) -> Figures:
        """Run many conversations at once, each with its own thread and connection."""
        names = [f"beside-{number}" for number in range(self.options.conversations)]
        turns = [[self._turn(name, number) for number in range(self.options.each)] for name in names]
        done = converse_at_once([self.url], self.path, turns, self.bar)
        return {"turns_per_second": round(len(done.turns) / max(done.seconds), 1), **done.figures()}

    def slow(self) -> Figures:
        """Send streamed turns while the model has latency."""
        self.model.follow(replace(SCRIPT, first=self.options.latency, mini=self.options.latency))
        turns = self.converse("slow", range(self.options.slow_turns), stream=True)
        self.model.follow(SCRIPT)
        return {
            "first_text_ms": percentiles([1000 * (turn.first - turn.started) for turn in turns if turn.first]),
            "turn_ms": percentiles([1000 * turn.seconds for turn in turns]),
        }


def measure(options: Namespace, settings: Mapping[str, str]) -> Figures:
    """Return the figures of Recap and of the model alone.  Raises RuntimeError if a server or a job fails."""
    each = options.turns + options.conversations * options.each + options.slow_turns
    total = 2 * (each + 1)
    settings = {"WEB_WORKERS": "1", "WEB_THREADS": str(THREADS), **settings}
    with (
        ModelProcess() as model,
        temporary_server(model.url, **settings) as server,
        progress(total, "turn") as bar,
    ):
        model.follow(SCRIPT)
        alone = Subject(
            model.url,
            "/v1/chat/completions",
            lambda _, message: {"model": MAIN, "messages": [{"role": "user", "content": message}]},
            *(model, options, bar),
        )
        recap = Subject(
            server.url,
            "/api/chat",
            lambda session, message: {"session_id": session, "message": message},
            *(model, options, bar),
        )
        return {"model_alone": _measure_model(alone), "recap": _measure_recap(recap, server)}


def _measure_model(alone: Subject) -> Figures:
    alone.bar.set_postfix_str("model alone")
    alone.converse("warm-up", range(1))
    before = len(alone.model.calls())
    turns = alone.converse("one", range(alone.options.turns))
    return {**overheads(turns, alone.model.calls()[before:]), "at_once": alone.at_once(), "slow": alone.slow()}


def _measure_recap(recap: Subject, server: Server) -> Figures:
    recap.bar.set_postfix_str("Recap")
    recap.converse("warm-up", range(1))
    server.settle(SETTLE_SECONDS)
    one = _one_conversation(recap, server)
    return {**one, "at_once": recap.at_once(), "slow": recap.slow(), "memory_mb": worker_memory(server.pid)}


def _one_conversation(recap: Subject, server: Server) -> Figures:
    count, before, cpu = recap.options.turns, len(recap.model.calls()), cpu_seconds(server.pid)
    turns = recap.converse("one", range(count))
    server.settle(SETTLE_SECONDS)
    calls, after = recap.model.calls()[before:], cpu_seconds(server.pid)
    return {
        **overheads(turns, calls),
        "cpu_ms": None if cpu is None or after is None else round(1000 * (after - cpu) / count, 2),
        "calls": round(len(calls) / count, 2),
        "prompt_tokens": {str(turn): _tokens_at(turn, turns, calls) for turn in (min(EARLY, count), count)},
        "prefix": prefixes([call for call in calls if call.model == MAIN]),
    }


def overheads(turns: Sequence[TurnTimes], calls: Sequence[Call]) -> Figures:
    """Return the time of turns minus that of the model, and the last turns' time divided by the first turns'."""
    beyond = [1000 * (turn.seconds - _model_seconds(calls, turn.started, turn.ended)) for turn in turns]
    ends = min(ENDS, len(beyond) // 2)
    return {
        "overhead_ms": percentiles(beyond),
        "last_over_first": round(median(beyond[-ends:]) / median(beyond[:ends]), 2),
    }


def _model_seconds(calls: Sequence[Call], started: float, ended: float) -> float:
    """Return the seconds between `started` and `ended` in which at least one call was in progress."""
    total, upto = 0.0, started
    for call in sorted(calls, key=lambda call: call.started):
        if call.started >= ended:
            break
        if call.ended > upto:
            total += min(call.ended, ended) - max(call.started, upto)
            upto = min(call.ended, ended)
    return total


def _tokens_at(turn: int, turns: Sequence[TurnTimes], calls: Sequence[Call]) -> int:
    """Return the prompt tokens of a turn: the mean over the TOKENS_OVER turns up to it.

    It counts the calls from the start of the first of these turns to the end of the last.
    """
    first, last = max(0, turn - TOKENS_OVER), turn - 1
    among = [call.tokens for call in calls if turns[first].started <= call.started < turns[last].ended]
    return round(sum(among) / (turn - first))


def prefixes(calls: Sequence[Call]) -> Figures:
    """Return how much of each prompt the next one repeats."""
    pairs = pairwise(json.dumps(call.messages) for call in calls)
    same = ((sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(*pair, strict=False))), pair) for pair in pairs)
    shares = [length / len(before) for length, (before, _) in same]
    goal = sum(share >= PREFIX_GOAL for share in shares) / len(shares)
    return {"median": round(median(shares), 2), "at_goal_percent": round(100 * goal)}


def table(results: Mapping[str, Any]) -> str:
    """Return a column for Recap, and one for the model alone."""
    amount, columns = results["amount"], {"Recap": results["recap"], "model alone": results["model_alone"]}
    early, last = str(min(EARLY, amount["turns"])), str(amount["turns"])
    rows: tuple[Row, ...] = (
        (
            f"overhead of a turn, {amount['turns']:,} turns one after the other, ms: p50",
            "{:.1f}",
            ("overhead_ms", "p50"),
        ),
        ("  p95", "{:.1f}", ("overhead_ms", "p95")),
        ("  last turns / first", "{:.2f}", ("last_over_first",)),
        ("CPU of a turn, ms", "{:.1f}", ("cpu_ms",)),
        ("model calls of a turn", "{:.2f}", ("calls",)),
        (f"prompt tokens at turn {early}", "{:,}", ("prompt_tokens", early)),
        (f"  at turn {last}", "{:,}", ("prompt_tokens", last)),
        ("prefix of a prompt that the next one repeats: median", "{:.2f}", ("prefix", "median")),
        (f"  {PREFIX_GOAL} or more, %", "{:.0f}", ("prefix", "at_goal_percent")),
        (
            f"turns a second, {amount['conversations']:,} conversations at once",
            "{:,.0f}",
            ("at_once", "turns_per_second"),
        ),
        ("  failed turns", "{:,}", ("at_once", "failed")),
        (
            f"first text with a model of {1000 * amount['latency']:,.0f} ms, ms: p50",
            "{:.0f}",
            ("slow", "first_text_ms", "p50"),
        ),
        ("  p95", "{:.0f}", ("slow", "first_text_ms", "p95")),
        ("end of the turn with that model, ms: p50", "{:.0f}", ("slow", "turn_ms", "p50")),
        ("  p95", "{:.0f}", ("slow", "turn_ms", "p95")),
        ("memory of the worker at the end, MB: PSS", "{:.0f}", ("memory_mb", "pss")),
        ("  RSS", "{:.0f}", ("memory_mb", "rss")),
    )
    failures = [figures["at_once"]["first_failure"] for figures in columns.values()]
    lines = [f"The first failure: {failure}" for failure in failures if failure]
    workers = f"One worker of {THREADS} threads{changed_settings(amount['settings'])}"
    summaries = f"the model's summaries have up to {SCRIPT.words} words. --help explains each figure."
    return "\n".join([by_column("", columns, rows), *lines, "", f"{workers}; {summaries}"])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("turns", __doc__)
    command.add_argument("--turns", type=int, default=200, help="turns of the one conversation")
    command.add_argument("--conversations", type=int, default=20, help="conversations at once")
    command.add_argument("--each", type=int, default=50, help="turns of each of these conversations")
    command.add_argument("--slow-turns", type=int, default=24, help="turns with the slow model")
    command.add_argument("--latency", type=float, default=0.3, help="seconds until the slow model's first text")
    command.add_argument("--pause", type=float, default=0.01, help="seconds between turns of one conversation")
    command.takes_settings()
    options = command.parse_args(arguments)
    if options.turns < 4 or min(options.conversations, options.each, options.slow_turns) < 1:
        command.error("--turns must be at least 4, because ends are compared; other counts must be at least 1")
    amount = {name: value for name, value in vars(options).items() if name not in ("results", "set")}
    amount["settings"] = dict(options.set)
    command.report(
        options, lambda results: results.update(amount=amount, **measure(options, amount["settings"])), table
    )


if __name__ == "__main__":
    main()
