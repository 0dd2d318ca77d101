"""How much of each prompt repeats the previous prompt: the common prefix of consecutive requests of a session.

    python -m benchmarks.prefix CONVERSATION.json | FOLDER ...

The benchmark starts a server of its own and replays each conversation as one session through /v1/chat/completions.  A
scripted model server records the prompts and answers with the conversation's own replies.  Two kinds of client replay
it: one sends only its newest message, with X-Session-Id; the other sends the whole history and names no session.

    prefix     the share of a prompt with which the next prompt begins, byte for byte: the median, the 25th percentile,
               and how many prompts reach 0.75.  Providers bill such a cached prefix at a fraction of the price.
    baseline   the same prompts with all remembered text in the system message, rewritten each turn: the newest summary,
               the facts, the recalled excerpts, and the current time at the end.
    tokens     of all prompts, at four bytes of the messages as JSON each; `new` are those outside the common prefix.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Any

import httpx2

from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.conversation import Said
from benchmarks.model import Json, ModelProcess, Script, digested
from benchmarks.results import by_conversation, machine_line, quantile, rows, width_of
from benchmarks.serving import MAIN, temporary_server

GOAL = 0.75
BYTES_A_TOKEN = 4
CLIENTS = {"newest": "newest message only", "history": "full history"}

_MEMORY = re.compile(r"<memory now=.*?\n</memory>\n\n", re.S)
_SUMMARY = re.compile(r"<summary>\n.*?\n</summary>", re.S)
_KINDS = (
    ("recap", "Recap"),
    ("baseline", "system message rewritten each turn"),
    ("history", "full history, no memory"),
)
_ROWS = (
    ("  prefix, median", "{:.2f}", ("median",)),
    ("    p25", "{:.2f}", ("p25",)),
    (f"    {GOAL} or more, %", "{:.0f}", ("at_goal_percent",)),
    ("  tokens", "{:,}", ("prompt_tokens",)),
    ("    new", "{:,}", ("new_tokens",)),
)


@dataclass(frozen=True)
class Turn:
    """A question and its answer, each as one message."""

    asked: str
    answer: str
    at: str


@dataclass
class Sent:
    """The prompts of one client's session: Recap's, the baseline's, and the full history."""

    recap: list[list[Json]] = field(default_factory=list)
    baseline: list[list[Json]] = field(default_factory=list)
    history: list[list[Json]] = field(default_factory=list)


def turns(said: Sequence[Said], limit: int | None = None) -> list[Turn]:
    """The first `limit` turns of the conversation.

    Consecutive messages of one speaker are joined.  Messages before the user's first one, and a question without an
    answer, are left out.
    """
    lines: list[list[Said]] = []
    for one in said:
        if lines and lines[-1][0].role == one.role:
            lines[-1].append(one)
        elif lines or one.role == "user":
            lines.append([one])
    text = ["\n".join(one.content for one in line) for line in lines]
    pairs = zip(lines[::2], text[::2], text[1::2], strict=False)
    return [Turn(asked, answer, line[-1].created_at) for line, asked, answer in pairs][:limit]


def serialised(messages: Sequence[Json]) -> bytes:
    """The messages as JSON without optional white space."""
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


def shared(before: bytes, after: bytes) -> int:
    """The length of the common prefix.  A binary search, because a full history is long."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def figures(sessions: Sequence[Sequence[Sequence[Json]]]) -> dict[str, Any]:
    """The common prefixes within each session, the tokens of all prompts, and the average parts of a prompt.

    A prefix is given as a share of the earlier of two consecutive prompts.
    """
    prompts = [messages for session in sessions for messages in session]
    sizes = [len(serialised(messages)) for messages in prompts]
    pairs = [pair for session in sessions for pair in pairwise(map(serialised, session))]
    lengths = [shared(before, after) for before, after in pairs]
    shares = [length / len(before) for length, (before, _) in zip(lengths, pairs, strict=True)]
    system = sum(len(serialised(messages[:1])) for messages in prompts if messages[0]["role"] == "system")
    newest = sum(len(serialised(messages[-1:])) for messages in prompts)
    return {
        "prompts": len(prompts),
        "median": round(quantile(shares, 50), 3),
        "p25": round(quantile(shares, 25), 3),
        "at_goal_percent": round(100 * sum(one >= GOAL for one in shares) / len(shares), 1),
        "prompt_tokens": _tokens(sum(sizes)),
        "new_tokens": _tokens(sum(sizes) - sum(lengths)),
        "mean": {
            "system": _tokens(system / len(prompts)),
            "tail": _tokens((sum(sizes) - system - newest) / len(prompts)),
            "newest": _tokens(newest / len(prompts)),
        },
    }


def _tokens(size: float) -> int:
    return ceil(size / BYTES_A_TOKEN)


def rewritten(messages: Sequence[Json], summary: Json, at: str) -> list[Json]:
    """The prompt of a memory that rewrites its system message each turn, with the same tail.

    The current time is at its end, which favours the baseline: the text before the first change is a common prefix.
    """
    instructed = messages[0]["role"] == "system"
    system = messages[0]["content"] if instructed else ""
    *tail, asked = messages[1:] if instructed else messages
    recalled = found[0].strip() if (found := _MEMORY.match(asked["content"])) else ""
    newest = "\n".join(_section(name, told) for name, told in summary.items() if told)
    block = f"<summary>\n{newest}\n</summary>" if newest else ""
    if _SUMMARY.search(system):
        system, block = _SUMMARY.sub(lambda _: block, system, count=1), ""
    told = "\n\n".join(filter(None, (system, block, recalled, f"Current time: {at}")))
    return [
        {"role": "system", "content": told},
        *tail,
        {**asked, "content": _MEMORY.sub("", asked["content"], count=1)},
    ]


def _section(name: str, told: str | Sequence[str]) -> str:
    return f"{name}: {told}" if isinstance(told, str) else "\n- ".join([f"{name}:", *told])


class Client:
    """An OpenAI client of one of the two kinds, with its own conversation."""

    def __init__(self, http: httpx2.Client, kind: str, user: str) -> None:
        self._http = http
        self._kind = kind
        self._user = user
        self._session: str | None = None
        self.history: list[Json] = []

    def ask(self, message: str) -> str:
        """Send a message; returns the reply.  Raises RuntimeError if the call or the memory failed."""
        new = {"role": "user", "content": message}
        self.history.append(new)
        answer = self._http.post(
            "/v1/chat/completions",
            headers={"X-Session-Id": self._user} if self._kind == "newest" else {},
            json={
                "model": MAIN,
                "user": self._user,
                "messages": [new] if self._kind == "newest" else self.history,
            },
        )
        if answer.status_code != 200:
            raise RuntimeError(f"/v1/chat/completions answered {answer.status_code}: {answer.text[:1000]}")
        session, problem = answer.headers.get("X-Memory-Session-Id"), answer.headers.get("X-Memory-Error")
        if problem or session is None or session != (self._session or session):
            raise RuntimeError(f"session {self._session} continued as {session}; the memory's problem: {problem}")
        self._session = session
        reply: str = answer.json()["choices"][0]["message"]["content"]
        self.history.append({"role": "assistant", "content": reply})
        return reply


def replay(http: httpx2.Client, model: ModelProcess, name: str, taken: Sequence[Turn], kind: str, bar: Any) -> Sent:
    """Replay the turns as one session, and return the prompts."""
    client = Client(http, kind, f"bench-{name}-{kind}-{uuid.uuid4().hex[:8]}")
    sent = Sent()
    summary: Json = {}
    for number, turn in enumerate(taken, 1):
        model.follow(Script(reply=turn.answer))
        known = len(model.calls())
        client.ask(turn.asked)
        calls = model.calls()[known:]
        prompts = [call.messages for call in calls if call.model == MAIN]
        if len(prompts) != 1:
            raise RuntimeError(f"turn {number} called the main model {len(prompts)} times")
        sent.recap.append(list(prompts[0]))
        sent.baseline.append(rewritten(prompts[0], summary, turn.at))
        sent.history.append(client.history[:-1])
        for call in calls:  # the scripted mini model answers the same prompt always alike
            summary = summary if call.model == MAIN else digested(call.messages[-1]["content"])["summary"]
        bar.update()
    return sent


def run(conversations: Mapping[str, Sequence[Turn]]) -> dict[str, Any]:
    """Replay the conversations with both kinds of clients.  The results can be stored as JSON."""
    sent: dict[str, dict[str, Sent]] = {kind: {} for kind in CLIENTS}
    with (
        _serving() as (http, model),
        progress(len(CLIENTS) * sum(map(len, conversations.values())), "turn") as bar,
    ):
        for name, taken in conversations.items():
            for kind in CLIENTS:
                bar.set_postfix_str(f"{name}: {kind}")
                sent[kind][name] = replay(http, model, name, taken, kind, bar)
    return {
        "conversations": {name: {kind: measured([sent[kind][name]]) for kind in CLIENTS} for name in conversations},
        "all": {kind: measured([*sent[kind].values()]) for kind in CLIENTS},
    }


def measured(sent: Sequence[Sent]) -> dict[str, Any]:
    """The figures of one conversation, or of several together."""
    return {
        "recap": figures([one.recap for one in sent]),
        "baseline": figures([one.baseline for one in sent]),
        "history": figures([one.history for one in sent]),
    }


@contextmanager
def _serving() -> Iterator[tuple[httpx2.Client, ModelProcess]]:
    """A server with default settings, except the model server and SUMMARY_MODE=inline.

    In real use the summary is updated while the person writes the next message.  The replay does not pause, so the
    summary has to be updated before the reply is sent.
    """
    with (
        ModelProcess() as model,
        temporary_server(model.url, SUMMARY_MODE="inline") as server,
        httpx2.Client(base_url=server.url, timeout=60.0, trust_env=False) as http,
    ):
        yield http, model


def table(results: Mapping[str, Any]) -> str:
    """A column for each conversation, and one for all if there are several; a block of rows for each client."""
    columns = by_conversation(results)
    width = width_of(columns)
    lines = [f"{'':36}" + "".join(name.rjust(width) for name in columns)]
    for client, sends in CLIENTS.items():
        shown = {name: column[client] for name, column in columns.items()}
        prompts = "".join(f"{one['recap']['prompts']:,}".rjust(width) for one in shown.values())
        lines += ["", f"{f'{sends}: prompts':36}{prompts}"]
        for kind, title in _KINDS if client == "newest" else _KINDS[:2]:
            lines += [title, *rows(_ROWS, [one[kind] for one in shown.values()], 36, width)]
    mean = results["all"]["newest"]["recap"]["mean"]
    lines += [
        "",
        f"On average a prompt of Recap has {mean['system']:,} tokens of system message, {mean['tail']:,} of tail and "
        f"{mean['newest']:,} of newest message with its recalled excerpts.",
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("prefix", __doc__)
    command.takes_conversations()
    command.add_argument("--limit", type=int, metavar="N", help="only the first N turns of each conversation")
    options = command.parse_args(arguments)
    if options.limit is not None and options.limit < 2:
        command.error("--limit must be at least 2, because each prompt is compared with the next")
    loaded = command.loaded(options.conversations)
    conversations = {one.name: taken for one in loaded if len(taken := turns(one.said, options.limit)) > 1}
    if not conversations:
        command.error("there is no conversation with at least two turns")
    results = about_now()
    with breaking_off():
        results |= run(conversations)
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
