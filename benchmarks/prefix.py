"""How much of each prompt repeats the previous prompt: the common prefix of consecutive requests of a session.

The benchmark replays each conversation as one session through /v1/chat/completions.  A scripted model records the
prompts and answers with the conversation's own replies.  Two kinds of client replay it: one sends only its newest
message, with X-Session-Id; the other sends the whole history and names no session.  Beside them stand the prompts of a
client that has the whole history and no memory.

    prefix     the share of a prompt with which the next prompt begins, byte for byte: the median, the 25th percentile,
               and how many prompts reach 0.75.  Providers bill such a cached prefix at a fraction
    tokens     of all prompts, at four bytes of the messages as JSON each; `new`: those outside the common prefix

In real use the summary is updated while the person writes the next message.  The replay does not pause, so with
SUMMARY_MODE=inline the summary is updated before the reply is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise, takewhile
from math import ceil
from typing import Any

import httpx2

from benchmarks.conversation import RecordedMessage
from benchmarks.harness import Command, Figures, by_column, progress, quantile
from benchmarks.model import Json, ModelProcess, Script
from benchmarks.serving import MAIN, temporary_server

GOAL = 0.75
BYTES_A_TOKEN = 4
ROLES = ("user", "assistant")
NEWEST, HISTORY, ALONE = "newest message only", "full history", "no memory"
ROWS = (
    ("prompts", "{:,}", ("prompts",)),
    ("prefix, median", "{:.2f}", ("median",)),
    ("prefix, p25", "{:.2f}", ("p25",)),
    (f"prefix of {GOAL} or more, %", "{:.0f}", ("at_goal_percent",)),
    ("tokens", "{:,}", ("prompt_tokens",)),
    ("new tokens", "{:,}", ("new_tokens",)),
)

Prompt = Sequence[Json]
Turn = tuple[str, str]
"""A question and its answer, each as one message."""


def turns_of(messages: Sequence[RecordedMessage], limit: int | None) -> list[Turn]:
    """Return the first `limit` turns of the conversation.

    Consecutive messages of one speaker are joined.  Messages before the user's first one, and a question without an
    answer, are left out.
    """
    texts = [
        "\n".join(message.content for message in run) for _, run in groupby(messages, lambda message: message.role)
    ]
    first = int(messages[0].role != "user")
    return list(zip(texts[first::2], texts[first + 1 :: 2], strict=False))[:limit]


def to_json(messages: Prompt) -> bytes:
    """Return the messages as JSON without optional white space."""
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


def figures_of(sessions: Sequence[Sequence[Prompt]]) -> Figures:
    """Return the common prefixes within each session, and the tokens of all prompts.

    A prefix is given as a share of the earlier of two consecutive prompts.
    """
    sizes = [len(to_json(messages)) for session in sessions for messages in session]
    pairs = [pair for session in sessions for pair in pairwise(map(to_json, session))]
    lengths = [sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(*pair, strict=False))) for pair in pairs]
    shares = [length / len(before) for length, (before, _) in zip(lengths, pairs, strict=True)]
    return {
        "prompts": len(sizes),
        "median": round(quantile(shares, 50), 3),
        "p25": round(quantile(shares, 25), 3),
        "at_goal_percent": round(100 * sum(share >= GOAL for share in shares) / len(shares), 1),
        "prompt_tokens": ceil(sum(sizes) / BYTES_A_TOKEN),
        "new_tokens": ceil((sum(sizes) - sum(lengths)) / BYTES_A_TOKEN),
    }


def replay(http: httpx2.Client, model: ModelProcess, turns: Sequence[Turn], user: str, client: str) -> list[Prompt]:
    """Replay the turns as one session, and return the prompts of the main model.

    Raises RuntimeError if the memory failed, and errors of httpx2.
    """
    messages, prompts, sessions = list[Json](), list[Prompt](), set[str | None]()
    headers = {"X-Session-Id": user} if client == NEWEST else {}
    for question, answer in turns:
        model.follow(Script(reply=answer))
        before = len(model.calls())
        messages.append({"role": "user", "content": question})
        body = {"model": MAIN, "user": user, "messages": messages[-1:] if client == NEWEST else messages}
        response = http.post("/v1/chat/completions", headers=headers, json=body).raise_for_status()
        sessions.add(response.headers.get("X-Memory-Session-Id"))
        new = [call.messages for call in model.calls()[before:] if call.model == MAIN]
        problem = response.headers.get("X-Memory-Error")
        if problem or len(sessions) > 1 or len(new) != 1:
            raise RuntimeError(f"turn {len(prompts)}: {len(new)} prompts in the sessions {sessions}: {problem}")
        prompts += new
        messages.append({"role": "assistant", "content": response.json()["choices"][0]["message"]["content"]})
    return prompts


def measure(conversations: Mapping[str, Sequence[Turn]]) -> Figures:
    """Replay the conversations with both kinds of clients and return their figures."""
    prompts: dict[str, list[list[Prompt]]] = {NEWEST: [], HISTORY: [], ALONE: []}
    with (
        ModelProcess() as model,
        temporary_server(model.url, SUMMARY_MODE="inline") as server,
        httpx2.Client(base_url=server.url, timeout=60.0, trust_env=False) as http,
        progress(len(conversations), "conversation") as bar,
    ):
        for name, turns in conversations.items():
            for client in (NEWEST, HISTORY):
                prompts[client].append(replay(http, model, turns, f"bench-{name}-{client.replace(' ', '-')}", client))
            said = [{"role": role, "content": text} for turn in turns for role, text in zip(ROLES, turn, strict=True)]
            prompts[ALONE].append([said[: at + 1] for at in range(0, len(said), 2)])
            bar.update()
    return {client: figures_of(sessions) for client, sessions in prompts.items()}


def table(results: Mapping[str, Any]) -> str:
    return by_column("", results["clients"], ROWS)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("prefix", __doc__)
    command.takes_conversations()
    command.add_argument("--limit", type=int, metavar="N", help="only the first N turns of each conversation")
    options = command.parse_args(arguments)
    if options.limit is not None and options.limit < 2:
        command.error("--limit must be at least 2, because each prompt is compared with the next")
    loaded = command.load(options.conversations)
    conversations = {talk.name: turns for talk in loaded if len(turns := turns_of(talk.messages, options.limit)) > 1}
    if not conversations:
        command.error("there is no conversation with at least two turns")
    command.report(options, lambda results: results.update(clients=measure(conversations)), table)


if __name__ == "__main__":
    main()
