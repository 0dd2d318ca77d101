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
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise, takewhile
from math import ceil
from typing import Any

import httpx2

from benchmarks.conversation import RecordedMessage
from benchmarks.harness import Command, Figures, by_conversation, progress, quantile, rows
from benchmarks.model import Json, ModelProcess, Script
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


Turn = tuple[str, str]
"""A question and its answer, each as one message."""


def turns_of(messages: Sequence[RecordedMessage], limit: int | None = None) -> list[Turn]:
    """Return the first `limit` turns of the conversation.

    Consecutive messages of one speaker are joined.  Messages before the user's first one, and a question without an
    answer, are left out.
    """
    texts = [
        "\n".join(message.content for message in run) for _, run in groupby(messages, lambda message: message.role)
    ]
    first = int(messages[0].role != "user")
    return list(zip(texts[first::2], texts[first + 1 :: 2], strict=False))[:limit]


def to_json(messages: Sequence[Json]) -> bytes:
    """Return the messages as JSON without optional white space."""
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":")).encode()


def common_prefix(before: bytes, after: bytes) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))


def figures(sessions: Sequence[Sequence[Sequence[Json]]]) -> Figures:
    """Return the common prefixes within each session, the tokens of all prompts, and the average parts of a prompt.

    A prefix is given as a share of the earlier of two consecutive prompts.
    """
    prompts = [messages for session in sessions for messages in session]
    sizes = [len(to_json(messages)) for messages in prompts]
    pairs = [pair for session in sessions for pair in pairwise(map(to_json, session))]
    lengths = [common_prefix(before, after) for before, after in pairs]
    shares = [length / len(before) for length, (before, _) in zip(lengths, pairs, strict=True)]
    system = sum(len(to_json(messages[:1])) for messages in prompts if messages[0]["role"] == "system")
    newest = sum(len(to_json(messages[-1:])) for messages in prompts)
    return {
        "prompts": len(prompts),
        "median": round(quantile(shares, 50), 3),
        "p25": round(quantile(shares, 25), 3),
        "at_goal_percent": round(100 * sum(share >= GOAL for share in shares) / len(shares), 1),
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
    http: httpx2.Client, model: ModelProcess, name: str, turns: Sequence[Turn], client: str, bar: Any
) -> Prompts:
    """Replay the turns as one session.  Raises RuntimeError if the memory failed, and errors of httpx2."""
    user, recap = f"bench-{name}-{client}", list[Sequence[Json]]()
    messages, history, sessions = list[Json](), list[Sequence[Json]](), set[str | None]()
    for question, answer in turns:
        model.follow(Script(reply=answer))
        before = len(model.calls())
        messages.append({"role": "user", "content": question})
        history.append([*messages])
        response = http.post(
            "/v1/chat/completions",
            headers={"X-Session-Id": user} if client == "newest" else {},
            json={"model": MAIN, "user": user, "messages": messages[-1:] if client == "newest" else messages},
        ).raise_for_status()
        sessions.add(response.headers.get("X-Memory-Session-Id"))
        prompts = [call.messages for call in model.calls()[before:] if call.model == MAIN]
        problem = response.headers.get("X-Memory-Error")
        if problem or len(sessions) > 1 or len(prompts) != 1:
            raise RuntimeError(f"turn {len(history)}: {len(prompts)} prompts in the sessions {sessions}: {problem}")
        recap += prompts
        messages.append({"role": "assistant", "content": response.json()["choices"][0]["message"]["content"]})
        bar.update()
    return {"recap": recap, "history": history}


def run(conversations: Mapping[str, Sequence[Turn]]) -> Figures:
    """Replay the conversations with both kinds of clients and return their figures.

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
        for name, turns in conversations.items():
            for client in CLIENTS:
                bar.set_postfix_str(f"{name}: {client}")
                sent[client][name] = replay(http, model, name, turns, client, bar)

    def figures_of(names: Iterable[str]) -> Figures:
        return {
            client: {kind: figures([sent[client][name][kind] for name in names]) for kind in KINDS}
            for client in CLIENTS
        }

    return {"conversations": {name: figures_of([name]) for name in conversations}, "all": figures_of(conversations)}


def table(results: Mapping[str, Any]) -> str:
    """Return a column for each conversation, and one for all; a block of rows for each client."""
    columns, width, heads = by_conversation(results, 36)
    lines = [heads]
    for client, sends in CLIENTS.items():
        shown = [column[client] for column in columns.values()]
        prompts = "".join(f"{figures['recap']['prompts']:,}".rjust(width) for figures in shown)
        lines += ["", f"{f'{sends}: prompts':36}{prompts}"]
        for kind in KINDS if client == "newest" else ("recap",):
            lines += [KINDS[kind], *rows(_ROWS, [figures[kind] for figures in shown], 36, width)]
    mean = results["all"]["newest"]["recap"]["mean"]
    lines += [
        "",
        f"On average a prompt of Recap has {mean['system']:,} tokens of system message, {mean['tail']:,} of tail and "
        f"{mean['newest']:,} of newest message with its recalled excerpts.",
    ]
    return "\n".join(lines)


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
    command.report(options, lambda: run(conversations), table)


if __name__ == "__main__":
    main()
