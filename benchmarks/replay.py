"""Recorded conversations sent again over HTTP: what is found, how fast, and how much of each prompt is new."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise, takewhile
from math import ceil
from statistics import mean
from typing import Any

import httpx2

from benchmarks.conversation import CATEGORIES, Conversation, Question, RecordedMessage
from benchmarks.harness import (
    Command,
    Connection,
    Figures,
    Row,
    by_conversation,
    percentiles,
    progress,
    quantile,
    rows,
    run_named,
)
from benchmarks.model import Json, ModelProcess, Script
from benchmarks.serving import MAIN, temporary_server

DEPTHS = (5, 10, 20)
LIMIT = 20  # results of a search: recall is measured down to this depth

_ROWS: tuple[Row, ...] = (
    ("messages", "{:,}", ("messages",)),
    ("sessions", "{:,}", ("sessions",)),
    ("questions", "{:,}", ("questions",)),
    *((f"recall@{depth}, %", "{:.1f}", ("recall", str(depth))) for depth in DEPTHS),
    *((f"  @10, {name}", "{:.1f}", ("recall_at_10_by_category", str(key))) for key, name in CATEGORIES.items()),
    ("import, messages/s", "{:,.0f}", ("import_per_second", "sessions")),
    ("  into one session", "{:,.0f}", ("import_per_second", "one_session")),
    ("search p50, ms", "{:.1f}", ("search_ms", "p50")),
    ("search p95, ms", "{:.1f}", ("search_ms", "p95")),
    ("  took_ms p50", "{:.1f}", ("took_ms", "p50")),
    ("  took_ms p95", "{:.1f}", ("took_ms", "p95")),
    ("chat turns", "{:,}", ("chat", "turns")),
    ("  turn p50, ms", "{:.1f}", ("chat", "turn_ms", "p50")),
    ("  prompt tokens sent", "{:,}", ("chat", "prompt_tokens")),
    ("  full history", "{:,}", ("chat", "full_history_tokens")),
    ("  saved", "{:,}", ("chat", "saved_tokens")),
    ("  saved, %", "{:.1f}", ("chat", "saved_percent")),
    ("  last prompt, tokens", "{:,}", ("chat", "last_prompt_tokens")),
)


@dataclass
class Replayed:
    """The raw measurements of one conversation.  `found`, `search_ms` and `took_ms` have one item for each question."""

    conversation: Conversation
    import_seconds: float = 0.0
    one_session_seconds: float = 0.0
    found: list[list[str | None]] = field(default_factory=list)
    search_ms: list[float] = field(default_factory=list)  # as the client sees it
    took_ms: list[float] = field(default_factory=list)  # as the server says
    turn_ms: list[float] = field(default_factory=list)
    usage: list[Figures] = field(default_factory=list)


def replay_one(recap: Connection, conversation: Conversation, turns: int, bar: Any) -> Replayed:
    """Import one conversation, search it, and chat with its messages."""
    done, user = Replayed(conversation), f"bench-{conversation.name}"
    by_session = {f"{user}-{name}": messages for name, messages in conversation.sessions.items()}
    done.import_seconds = _import(recap, user, by_session, bar)
    done.one_session_seconds = _import(recap, f"{user}-one", {f"{user}-one": conversation.messages}, bar)
    for question in conversation.questions:
        started = time.perf_counter()
        answer = recap.call("GET", "/api/search", q=question.text, user_id=user, limit=LIMIT)
        done.search_ms.append((time.perf_counter() - started) * 1000)
        done.took_ms.append(answer["took_ms"])
        done.found.append([result["external_id"] for result in answer["results"]])
        bar.update()
    for message in conversation.user_turns(turns):
        started = time.perf_counter()
        body = {"user_id": f"{user}-chat", "session_id": f"{user}-chat", "message": message}
        answer = recap.call("POST", "/api/chat", body)
        done.turn_ms.append((time.perf_counter() - started) * 1000)
        done.usage.append(answer["usage"])
        bar.update()
    return done


def _import(recap: Connection, user: str, sessions: Mapping[str, Sequence[RecordedMessage]], bar: Any) -> float:
    """Store the sessions of a user.  Return the seconds until they are indexed; wait for the summaries as well."""
    bar.set_postfix_str(user)
    started = time.perf_counter()
    for session, messages in sessions.items():
        recap.append(user, session, messages)
        bar.update(len(messages))
    recap.wait_for_jobs(user, "index")
    seconds = time.perf_counter() - started
    recap.wait_for_jobs(user, "index", "summary")
    return seconds


def replay_all(conversations: Sequence[Conversation], turns: int) -> Figures:
    """Replay the conversations and return their figures."""
    steps = sum(2 * len(talk.messages) + len(talk.questions) + turns for talk in conversations)
    with temporary_server() as server, Connection(server.url) as recap, progress(steps, "step") as bar:
        model = recap.call("GET", "/health/ready")["model"]
        replayed = [replay_one(recap, conversation, turns, bar) for conversation in conversations]
    columns = {record.conversation.name: figures_of([record]) for record in replayed}
    return {"model": model, "conversations": columns, "all": figures_of(replayed)}


def figures_of(replayed: Sequence[Replayed]) -> Figures:
    """Return the figures of some conversations, with equal weight for each question and message."""
    messages = sum(len(record.conversation.messages) for record in replayed)
    found = [pair for record in replayed for pair in zip(record.conversation.questions, record.found, strict=True)]
    usage = [usage for record in replayed for usage in record.usage]
    names = "prompt_tokens", "full_history_tokens", "saved_tokens"
    tokens = {name: sum(of_turn[name] for of_turn in usage) for name in names}
    full = tokens["full_history_tokens"]
    return {
        "messages": messages,
        "sessions": sum(len(record.conversation.sessions) for record in replayed),
        "questions": len(found),
        "recall": {str(depth): _recall_at(depth, found) for depth in DEPTHS},
        "recall_at_10_by_category": {
            str(key): _recall_at(10, those)
            for key in CATEGORIES
            if (those := [(question, ids) for question, ids in found if question.category == key])
        },
        "import_per_second": {
            "sessions": round(messages / sum(record.import_seconds for record in replayed), 1),
            "one_session": round(messages / sum(record.one_session_seconds for record in replayed), 1),
        },
        "search_ms": percentiles([ms for record in replayed for ms in record.search_ms]),
        "took_ms": percentiles([ms for record in replayed for ms in record.took_ms]),
        "chat": {
            "turns": len(usage),
            "turn_ms": percentiles([ms for record in replayed for ms in record.turn_ms]),
            **tokens,
            "saved_percent": round(100 * tokens["saved_tokens"] / full, 1) if full else 0.0,
            "last_prompt_tokens": max(
                (record.usage[-1]["prompt_tokens"] for record in replayed if record.usage), default=0
            ),
        },
    }


def _recall_at(depth: int, found: Sequence[tuple[Question, Sequence[str | None]]]) -> float:
    """Return the percentage of each question's evidence among its first `depth` ids, averaged over the questions."""
    shares = [len(question.evidence.intersection(ids[:depth])) / len(question.evidence) for question, ids in found]
    return round(100 * mean(shares), 2) if shares else 0.0


def table_of_replay(results: Mapping[str, Any]) -> str:
    """Return a column for each conversation, and one for all if there are several."""
    columns, width, heads = by_conversation(results, 24)
    model = f"Model: {results['model']['main']} (built in, because no model is configured)"
    return "\n".join([heads, *rows(_ROWS, [*columns.values()], 24, width), "", model])


def replay(arguments: Sequence[str]) -> None:
    """Replays recorded conversations through the HTTP API, and measures recall, speed and the size of prompts.

    The built-in model answers.  For each conversation:

        import    stores each session of the conversation as a session of one user, and then all messages as a single
                  session of another user.  The time includes indexing.
        search    asks each question through /api/search.  recall@k is the share of a question's evidence messages
                  among the first k results, averaged over the questions.
        chat      sends the person's own messages as turns, and compares their prompts with the full history.
    """
    command = Command("replay replay", replay.__doc__)
    command.takes_conversations()
    command.add_argument("--turns", type=int, default=50, help="turns to chat")
    options = command.parse_args(arguments)
    conversations = [conversation.with_evidence() for conversation in command.load(options.conversations)]
    command.report(options, lambda: replay_all(conversations, options.turns), table_of_replay)


# -- how much of each prompt repeats the previous one

GOAL = 0.75
BYTES_A_TOKEN = 4
CLIENTS = {"newest": "newest message only", "history": "full history"}
KINDS = {"recap": "Recap", "history": "full history, no memory"}

PREFIX_ROWS = (
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


def prefix_figures(sessions: Sequence[Sequence[Sequence[Json]]]) -> Figures:
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


def send_all(
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


def send_conversations(conversations: Mapping[str, Sequence[Turn]]) -> Figures:
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
                sent[client][name] = send_all(http, model, name, turns, client, bar)

    def figures_of(names: Iterable[str]) -> Figures:
        return {
            client: {kind: prefix_figures([sent[client][name][kind] for name in names]) for kind in KINDS}
            for client in CLIENTS
        }

    return {"conversations": {name: figures_of([name]) for name in conversations}, "all": figures_of(conversations)}


def table_of_prefixes(results: Mapping[str, Any]) -> str:
    """Return a column for each conversation, and one for all; a block of rows for each client."""
    columns, width, heads = by_conversation(results, 36)
    lines = [heads]
    for client, sends in CLIENTS.items():
        shown = [column[client] for column in columns.values()]
        prompts = "".join(f"{figures['recap']['prompts']:,}".rjust(width) for figures in shown)
        lines += ["", f"{f'{sends}: prompts':36}{prompts}"]
        for kind in KINDS if client == "newest" else ("recap",):
            lines += [KINDS[kind], *rows(PREFIX_ROWS, [figures[kind] for figures in shown], 36, width)]
    mean = results["all"]["newest"]["recap"]["mean"]
    lines += [
        "",
        f"On average a prompt of Recap has {mean['system']:,} tokens of system message, {mean['tail']:,} of tail and "
        f"{mean['newest']:,} of newest message with its recalled excerpts.",
    ]
    return "\n".join(lines)


def prefix(arguments: Sequence[str]) -> None:
    """How much of each prompt repeats the previous prompt: the common prefix of consecutive requests of a session.

    The benchmark replays each conversation as one session through /v1/chat/completions.  A scripted model records the
    prompts and answers with the conversation's own replies.  Two kinds of client replay it: one sends only its newest
    message, with X-Session-Id; the other sends the whole history and names no session.

        prefix     the share of a prompt with which the next prompt begins, byte for byte: the median, the 25th
                   percentile, and how many prompts reach 0.75.  Providers bill such a cached prefix at a fraction
        tokens     of all prompts, at four bytes of the messages as JSON each; `new`: those outside the common prefix
    """
    command = Command("replay prefix", prefix.__doc__)
    command.takes_conversations()
    command.add_argument("--limit", type=int, metavar="N", help="only the first N turns of each conversation")
    options = command.parse_args(arguments)
    if options.limit is not None and options.limit < 2:
        command.error("--limit must be at least 2, because each prompt is compared with the next")
    loaded = command.load(options.conversations)
    conversations = {talk.name: turns for talk in loaded if len(turns := turns_of(talk.messages, options.limit)) > 1}
    if not conversations:
        command.error("there is no conversation with at least two turns")
    command.report(options, lambda: send_conversations(conversations), table_of_prefixes)


if __name__ == "__main__":
    run_named(replay=replay, prefix=prefix)
