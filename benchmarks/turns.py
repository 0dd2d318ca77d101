"""What a turn costs in addition to the model: time, CPU, model calls, tokens, memory and disk, in one table.

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
               have at most 200 words, half of what Recap's prompt allows, and contain the first words of each message;
               see --summary-words
    old things the share of questions about earlier turns for which the main model's prompt contains the answer.  The
               questions are asked after the last turn
    disk       size of the database and the index when no job waits, with the write-ahead log merged; and the growth in
               the second half of the turns divided by the growth in the first
    memory     of the worker after all phases.  PSS divides shared memory among its processes, RSS counts it in full

All processes share the machine's cores, so other load on the machine disturbs the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean, median
from typing import Any

from benchmarks.calling import Connection, Took, at_once
from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.model import Call, ModelProcess, Script
from benchmarks.notes import note
from benchmarks.resources import cpu_seconds, database_bytes, folder_bytes, worker_memory
from benchmarks.results import load_line, machine_line, percentiles, rows, settings_told
from benchmarks.serving import MAIN, Server, temporary_server

THREADS = 32
SCRIPT = Script(words=200)
QUESTIONS = 20
ENDS = 20  # the first and the last turns that are compared
TOKENS_OVER = 16  # turns that prompt tokens are averaged over
EARLY = 20  # the turn whose prompt tokens are compared with the last one's
SETTLE_SECONDS = 120.0


@dataclass(frozen=True)
class Amount:
    """The size of a run."""

    turns: int
    conversations: int
    each: int  # turns of each conversation
    slow_turns: int
    latency: float  # seconds, of the slow model
    pause: float  # seconds between the turns of one conversation
    settings: Mapping[str, str]  # of Recap, other than the defaults


@dataclass(frozen=True)
class Subject:
    """What turns are sent to: its address, and the body of a request, made of a session and a message."""

    url: str
    path: str
    body: Callable[[str, str], Mapping[str, Any]]
    model: ModelProcess
    amount: Amount
    bar: Any

    def _turn(self, session: str, number: int, stream: bool = False) -> Mapping[str, Any]:
        return {**self.body(session, note(session, number).text), "stream": stream}

    def talk(self, session: str, numbers: Sequence[int], *, stream: bool = False) -> list[Took]:
        """Send one conversation's turns, one after the other."""
        taken = []
        with Connection(self.url) as connection:
            for number in numbers:
                taken.append(connection.turn(self.path, self._turn(session, number, stream)))
                self.bar.update()
                time.sleep(self.amount.pause)
        return taken

    def at_once(self) -> dict[str, Any]:
        """Run many conversations at once, each with its own thread and connection."""
        names = [f"beside-{number}" for number in range(self.amount.conversations)]
        turns = [[self._turn(name, number) for number in range(self.amount.each)] for name in names]
        done = at_once(self.url, self.path, turns, self.bar)
        return {
            "turns_per_second": round(len(done.taken) / max(done.seconds), 1),
            "turn_ms": percentiles([1000 * took.seconds for took in done.taken]),
            "failed": len(done.errors),
            "first_failure": done.errors[0] if done.errors else None,
        }

    def slow(self) -> dict[str, Any]:
        """Send streamed turns while the model has latency."""
        self.model.follow(replace(SCRIPT, first=self.amount.latency, mini=self.amount.latency))
        taken = self.talk("slow", range(self.amount.slow_turns), stream=True)
        self.model.follow(SCRIPT)
        return {
            "first_text_ms": percentiles([1000 * (took.first - took.begun) for took in taken if took.first]),
            "turn_ms": percentiles([1000 * took.seconds for took in taken]),
        }

    def found(self, session: str) -> float:
        """Percent of QUESTIONS about the session's turns for which the main model's prompt contains the answer."""
        count, found = min(QUESTIONS, self.amount.turns), []
        with Connection(self.url) as connection:
            for number in range(count):  # evenly spaced from the first turn
                asked, before = note(session, self.amount.turns * number // count), len(self.model.calls())
                connection.turn(self.path, self.body(session, asked.question))
                calls = self.model.calls()[before:]
                found.append(any(asked.tag in call.text for call in calls if call.model == MAIN))
                self.bar.update()
        return 100 * mean(found)


def measured(amount: Amount) -> dict[str, Any]:
    """The figures of Recap and of the model alone.  Raises RuntimeError if one does not start, or if jobs fail."""
    each = amount.turns + amount.conversations * amount.each + amount.slow_turns
    total = 2 * (each + 1) + min(QUESTIONS, amount.turns)
    settings = {"WEB_WORKERS": "1", "WEB_THREADS": str(THREADS), **amount.settings}
    with (
        ModelProcess() as model,
        temporary_server(model.url, **settings) as server,
        progress(total, "turn") as bar,
    ):
        model.follow(SCRIPT)
        alone = Subject(model.url, "/v1/chat/completions", _for_the_model, model, amount, bar)
        recap = Subject(server.url, "/api/chat", _for_recap, model, amount, bar)
        return {"model_alone": _model_alone(alone), "recap": _recap(recap, server)}


def _for_the_model(_: str, message: str) -> Mapping[str, Any]:
    return {"model": MAIN, "messages": [{"role": "user", "content": message}]}


def _for_recap(session: str, message: str) -> Mapping[str, Any]:
    return {"session_id": session, "message": message}


def _model_alone(alone: Subject) -> dict[str, Any]:
    alone.bar.set_postfix_str("model alone")
    alone.talk("warm-up", range(1))
    known = len(alone.model.calls())
    taken = alone.talk("one", range(alone.amount.turns))
    return {**overheads(taken, alone.model.calls()[known:]), "at_once": alone.at_once(), "slow": alone.slow()}


def _recap(recap: Subject, server: Server) -> dict[str, Any]:
    recap.bar.set_postfix_str("Recap")
    recap.talk("warm-up", range(1))
    server.settle(SETTLE_SECONDS)
    one = _one_conversation(recap, server)
    cpu = cpu_seconds(server.pid)
    crowd = recap.at_once()
    server.settle(SETTLE_SECONDS)
    crowd["cpu_ms"] = _cpu_ms(server, cpu, recap.amount.conversations * recap.amount.each - crowd["failed"])
    slow, memory = recap.slow(), worker_memory(server.pid)
    return {**one, "at_once": crowd, "slow": slow, "memory_mb": asdict(memory) if memory else {}}


def _one_conversation(recap: Subject, server: Server) -> dict[str, Any]:
    turns, known = recap.amount.turns, len(recap.model.calls())
    cpu, sizes, taken = cpu_seconds(server.pid), [_disk(server)], list[Took]()
    for numbers in (range(turns // 2), range(turns // 2, turns)):
        taken += recap.talk("one", numbers)
        server.settle(SETTLE_SECONDS)
        sizes.append(_disk(server))
    calls = recap.model.calls()[known:]
    return {
        **overheads(taken, calls),
        "cpu_ms": _cpu_ms(server, cpu, turns),
        "calls": round(len(calls) / turns, 2),
        "prompt_tokens": {str(turn): tokens_at(turn, taken, calls) for turn in (min(EARLY, turns), turns)},
        "disk_kb": round((sizes[2] - sizes[0]) / 1024),
        "disk_growth": round((sizes[2] - sizes[1]) / max(1, sizes[1] - sizes[0]), 2),
        "found_percent": recap.found("one"),
    }


def overheads(taken: Sequence[Took], calls: Sequence[Call]) -> dict[str, Any]:
    """The time of turns minus that of the model, and the last turns' time divided by the first turns'."""
    beyond = [1000 * (took.seconds - answering(calls, took.begun, took.ended)) for took in taken]
    ends = min(ENDS, len(beyond) // 2)
    return {
        "overhead_ms": percentiles(beyond),
        "last_over_first": round(median(beyond[-ends:]) / median(beyond[:ends]), 2),
    }


def answering(calls: Sequence[Call], begun: float, ended: float) -> float:
    """Seconds between `begun` and `ended` in which at least one call was in progress."""
    total, upto = 0.0, begun
    for call in sorted(calls, key=lambda one: one.begun):
        if call.begun >= ended:
            break
        if call.ended > upto:
            total += min(call.ended, ended) - max(call.begun, upto)
            upto = min(call.ended, ended)
    return total


def tokens_at(turn: int, taken: Sequence[Took], calls: Sequence[Call]) -> int:
    """Prompt tokens of a turn: the mean over the TOKENS_OVER turns up to it.

    It counts the calls from the start of the first of these turns to the end of the last.
    """
    first, last = max(0, turn - TOKENS_OVER), turn - 1
    among = [call.tokens for call in calls if taken[first].begun <= call.begun < taken[last].ended]
    return round(sum(among) / (turn - first))


def _cpu_ms(server: Server, before: float | None, turns: int) -> float | None:
    after = cpu_seconds(server.pid)
    return None if before is None or after is None else round(1000 * (after - before) / max(1, turns), 2)


def _disk(server: Server) -> int:
    return database_bytes(server.data_dir) + folder_bytes(server.data_dir / "index")


def table(results: Mapping[str, Any]) -> str:
    """A block of rows for each phase; a column for Recap, and one for the model alone."""
    amount, subjects = results["amount"], (results["recap"], results["model_alone"])
    early, last = str(min(EARLY, amount["turns"])), str(amount["turns"])
    blocks = {
        f"one conversation, {amount['turns']:,} turns": (
            ("overhead of a turn, ms: median", "{:.1f}", ("overhead_ms", "p50")),
            ("  p95", "{:.1f}", ("overhead_ms", "p95")),
            ("  last turns / first", "{:.2f}", ("last_over_first",)),
            ("CPU a turn, ms", "{:.1f}", ("cpu_ms",)),
            ("model calls a turn", "{:.2f}", ("calls",)),
            (f"prompt tokens at turn {early}", "{:,}", ("prompt_tokens", early)),
            (f"  at turn {last}", "{:,}", ("prompt_tokens", last)),
            ("old things in the prompt, %", "{:.0f}", ("found_percent",)),
            ("disk, KB", "{:,}", ("disk_kb",)),
            ("  second half / first", "{:.2f}", ("disk_growth",)),
        ),
        f"{amount['conversations']:,} at once, {amount['each']:,} turns each": (
            ("turns a second", "{:,.0f}", ("at_once", "turns_per_second")),
            ("failed turns", "{:,}", ("at_once", "failed")),
            ("a turn, ms: median", "{:.1f}", ("at_once", "turn_ms", "p50")),
            ("  p95", "{:.1f}", ("at_once", "turn_ms", "p95")),
            ("CPU a turn, ms", "{:.1f}", ("at_once", "cpu_ms")),
        ),
        f"a model of {1000 * amount['latency']:,.0f} ms, streamed": (
            ("first text, ms: median", "{:.0f}", ("slow", "first_text_ms", "p50")),
            ("  p95", "{:.0f}", ("slow", "first_text_ms", "p95")),
            ("turn over, ms: median", "{:.0f}", ("slow", "turn_ms", "p50")),
            ("  p95", "{:.0f}", ("slow", "turn_ms", "p95")),
        ),
        "at the end": (
            ("memory of the worker, MB: PSS", "{:.0f}", ("memory_mb", "pss")),
            ("  RSS", "{:.0f}", ("memory_mb", "rss")),
        ),
    }
    lines = [f"{'':36}{'Recap':>13}{'model alone':>13}"]
    for title, of in blocks.items():
        lines += ["", title, *(f"  {line}" for line in rows(of, subjects, 34, 13))]
    failures = [figures["at_once"]["first_failure"] for figures in subjects if figures["at_once"]["first_failure"]]
    lines += [f"The first failure: {failure}" for failure in failures]
    serving = f"One worker of {THREADS} threads{settings_told(amount['settings'])}"
    lines += [
        "",
        f"{serving}; the model's summaries have up to {SCRIPT.words} words. --help explains each figure.",
        load_line(results["load"]),
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("turns", __doc__)
    command.add_argument("--turns", type=int, default=200, help="turns of the one conversation")
    command.add_argument("--conversations", type=int, default=20, help="conversations at once")
    command.add_argument("--each", type=int, default=50, help="turns of each of these conversations")
    command.add_argument("--slow-turns", type=int, default=24, help="turns with the slow model")
    command.add_argument("--latency", type=float, default=0.3, help="seconds until the slow model's first text")
    command.add_argument("--pause", type=float, default=0.01, help="seconds between turns of one conversation")
    command.takes_settings()
    options = vars(command.parse_args(arguments))
    folder, options["settings"] = options.pop("results"), dict(options.pop("set"))
    amount = Amount(**options)
    if amount.turns < 4 or min(amount.conversations, amount.each, amount.slow_turns) < 1:
        command.error(
            "--turns must be at least 4, because two halves are compared; the other counts must be at least 1"
        )
    results = about_now() | {"amount": options}
    with breaking_off():
        results |= measured(amount)
    command.publish(folder, results, table)


if __name__ == "__main__":
    main()
