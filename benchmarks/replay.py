"""Replays recorded conversations through the HTTP API, and measures recall, speed and the size of prompts.

    python -m benchmarks.replay CONVERSATION.json | FOLDER ...

The benchmark starts a server of its own, with the built-in model.  For each conversation:

    import    stores each session of the conversation as a session of one user, and then all messages as a single
              session of another user.  The time includes indexing.
    search    asks each question through /api/search.  recall@k is the share of a question's evidence messages among
              the first k results, averaged over the questions.
    chat      sends the person's own messages as turns, and compares their prompts with sending the full history.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from benchmarks.conversation import CATEGORIES, Conversation, Question, RecordedMessage
from benchmarks.harness import Command, Figures, Recap, Row, by_conversation, percentiles, progress, rows
from benchmarks.serving import temporary_server

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


def replay(recap: Recap, conversation: Conversation, turns: int, bar: Any) -> Replayed:
    """Import one conversation, search it, and chat with its messages."""
    done, user = Replayed(conversation), f"bench-{conversation.name}"
    by_session = {f"{user}-{name}": messages for name, messages in conversation.sessions.items()}
    done.import_seconds = _import(recap, user, by_session, bar)
    done.one_session_seconds = _import(recap, f"{user}-one", {f"{user}-one": conversation.messages}, bar)
    for question in conversation.questions:
        started = time.perf_counter()
        query = {"q": question.text, "user_id": user, "limit": LIMIT}
        answer = recap.call("GET", "/api/search", params=query)
        done.search_ms.append((time.perf_counter() - started) * 1000)
        done.took_ms.append(answer["took_ms"])
        done.found.append([result["external_id"] for result in answer["results"]])
        bar.update()
    for message in conversation.user_turns(turns):
        started = time.perf_counter()
        answer = recap.chat(f"{user}-chat", message, session_id=f"{user}-chat")
        done.turn_ms.append((time.perf_counter() - started) * 1000)
        done.usage.append(answer["usage"])
        bar.update()
    return done


def _import(recap: Recap, user: str, sessions: Mapping[str, Sequence[RecordedMessage]], bar: Any) -> float:
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


def run(conversations: Sequence[Conversation], turns: int) -> Figures:
    """Replay the conversations and return their figures."""
    steps = sum(2 * len(talk.messages) + len(talk.questions) + turns for talk in conversations)
    with temporary_server() as server, progress(steps, "step") as bar:
        recap = Recap(server.url)
        model = recap.call("GET", "/health/ready")["model"]
        replayed = [replay(recap, conversation, turns, bar) for conversation in conversations]
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


def table(results: Mapping[str, Any]) -> str:
    """Return a column for each conversation, and one for all if there are several."""
    columns, width, heads = by_conversation(results, 24)
    model = f"Model: {results['model']['main']} (built in, because no model is configured)"
    return "\n".join([heads, *rows(_ROWS, [*columns.values()], 24, width), "", model])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("replay", __doc__)
    command.takes_conversations()
    command.add_argument("--turns", type=int, default=50, help="turns to chat")
    options = command.parse_args(arguments)
    conversations = [conversation.with_evidence() for conversation in command.load(options.conversations)]
    command.report(options, lambda: run(conversations, options.turns), table)


if __name__ == "__main__":
    main()
