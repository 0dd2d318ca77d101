"""How much of each prompt repeats the previous prompt: the common prefix of consecutive requests of a session.

    python -m benchmarks.prefix CONVERSATION.json | FOLDER ...

The benchmark starts a server of its own and replays each conversation as one session through /v1/chat/completions.  A
scripted model server records the prompts and answers with the conversation's own replies.  Two kinds of client replay
it: one sends only its newest message, with X-Session-Id; the other sends the whole history and names no session.

    prefix     the share of a prompt with which the next prompt begins, byte for byte: the median, the 25th percentile,
               and how many prompts reach 0.75.  Providers bill such a cached prefix at a fraction of the price.
    tokens     of all prompts, at four bytes of the messages as JSON each; `new` are those outside the common prefix.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from math import ceil
from typing import Any

import httpx2

from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.conversation import Said
from benchmarks.model import Json, ModelProcess, Script
from benchmarks.results import by_conversation, machine_line, quantile, rows, width_of
from benchmarks.serving import MAIN, temporary_server

GOAL = 0.75
BYTES_A_TOKEN = 4
CLIENTS = {"newest": "newest message only", "history": "full history"}
KINDS = {"recap": "Recap", "history": "full history, no memory"}

_ROWS = (
    ("  prefix, median", "{:.2f}", ("median",)),
    ("    p25", "{:.2f}", ("p25",)),
    (f"    {GOAL} or more, %", "{:.0f}", ("at_goal_percent",)),
    ("  tokens", "{:,}", ("prompt_tokens",)),
    ("    new", "{:,}", ("new_tokens",)),
)

Prompts = Mapping[str, Sequence[Sequence[Json]]]
"""The prompts of one session for each of KINDS."""


@dataclass(frozen=True)
class Turn:
    """A question and its answer, each as one message."""

    asked: str
    answer: str


def turns(said: Sequence[Said], limit: int | None = None) -> list[Turn]:
    """The first `limit` turns of the conversation.

    Consecutive messages of one speaker are joined.  Messages before the user's first one, and a question without an
    answer, are left out.
    """
    texts = ["\n".join(one.content for one in line) for _, line in groupby(said, lambda one: one.role)]
    first = int(said[0].role != "user")
    return [Turn(asked, answer) for asked, answer in zip(texts[first::2], texts[first + 1 :: 2], strict=False)][:limit]


def serialised(messages: Sequence[Json]) -> bytes:
    """The messages as JSON without optional white space."""
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


def shared(before: bytes, after: bytes) -> int:
    """The length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


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


def replay(
    http: httpx2.Client, model: ModelProcess, name: str, taken: Sequence[Turn], client: str, bar: Any
) -> Prompts:
    """Replay the turns as one session.  Raises RuntimeError if the memory failed, and errors of httpx2."""
    user, recap = f"bench-{name}-{client}", list[Sequence[Json]]()
    said, history, sessions = list[Json](), list[Sequence[Json]](), set[str | None]()
    for turn in taken:
        model.follow(Script(reply=turn.answer))
        known = len(model.calls())
        said.append({"role": "user", "content": turn.asked})
        history.append([*said])
        answer = http.post(
            "/v1/chat/completions",
            headers={"X-Session-Id": user} if client == "newest" else {},
            json={"model": MAIN, "user": user, "messages": said[-1:] if client == "newest" else said},
        ).raise_for_status()
        sessions.add(answer.headers.get("X-Memory-Session-Id"))
        prompts = [call.messages for call in model.calls()[known:] if call.model == MAIN]
        problem = answer.headers.get("X-Memory-Error")
        if problem or len(sessions) > 1 or len(prompts) != 1:
            raise RuntimeError(f"turn {len(history)}: {len(prompts)} prompts in the sessions {sessions}: {problem}")
        recap += prompts
        said.append({"role": "assistant", "content": answer.json()["choices"][0]["message"]["content"]})
        bar.update()
    return {"recap": recap, "history": history}


def run(conversations: Mapping[str, Sequence[Turn]]) -> dict[str, Any]:
    """Replay the conversations with both kinds of clients.  The results can be stored as JSON.

    In real use the summary is updated while the person writes the next message.  The replay does not pause, so with
    SUMMARY_MODE=inline the summary is updated before the reply is sent.
    """
    sent: dict[str, dict[str, Prompts]] = {client: {} for client in CLIENTS}
    with (
        ModelProcess() as model,
        temporary_server(model.url, SUMMARY_MODE="inline") as server,
        httpx2.Client(base_url=server.url, timeout=60.0, trust_env=False) as http,
        progress(len(CLIENTS) * sum(map(len, conversations.values())), "turn") as bar,
    ):
        for name, taken in conversations.items():
            for client in CLIENTS:
                bar.set_postfix_str(f"{name}: {client}")
                sent[client][name] = replay(http, model, name, taken, client, bar)
    return {
        "conversations": {
            name: {client: measured([sent[client][name]]) for client in CLIENTS} for name in conversations
        },
        "all": {client: measured([*sent[client].values()]) for client in CLIENTS},
    }


def measured(sessions: Sequence[Prompts]) -> dict[str, Any]:
    """The figures of one conversation, or of several together."""
    return {kind: figures([prompts[kind] for prompts in sessions]) for kind in KINDS}


def table(results: Mapping[str, Any]) -> str:
    """A column for each conversation, and one for all if there are several; a block of rows for each client."""
    columns = by_conversation(results)
    width = width_of(columns)
    lines = [f"{'':36}" + "".join(name.rjust(width) for name in columns)]
    for client, sends in CLIENTS.items():
        shown = {name: column[client] for name, column in columns.items()}
        prompts = "".join(f"{one['recap']['prompts']:,}".rjust(width) for one in shown.values())
        lines += ["", f"{f'{sends}: prompts':36}{prompts}"]
        for kind in KINDS if client == "newest" else ("recap",):
            lines += [KINDS[kind], *rows(_ROWS, [one[kind] for one in shown.values()], 36, width)]
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
