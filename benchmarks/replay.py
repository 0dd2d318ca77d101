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

from benchmarks.client import Recap
from benchmarks.command import Command, about_now, breaking_off, progress
from benchmarks.conversation import CATEGORIES, Conversation, Question
from benchmarks.results import Row, by_conversation, machine_line, percentiles, rows, width_of
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
    usage: list[dict[str, Any]] = field(default_factory=list)


def replay(recap: Recap, conversation: Conversation, turns: int, bar: Any) -> Replayed:
    """Import one conversation, search it, and chat with its messages."""
    done, user = Replayed(conversation), f"bench-{conversation.name}"

    bar.set_postfix_str(f"{conversation.name}: import")
    begun = time.perf_counter()
    for name, messages in conversation.sessions.items():
        recap.append(user, f"{user}-{name}", messages)
        bar.update(len(messages))
    recap.wait_for_jobs(user, "index")
    done.import_seconds = time.perf_counter() - begun
    recap.wait_for_jobs(user, "index", "summary")

    begun = time.perf_counter()
    recap.append(f"{user}-one", f"{user}-one", conversation.said)
    recap.wait_for_jobs(f"{user}-one", "index")
    done.one_session_seconds = time.perf_counter() - begun
    bar.update(len(conversation.said))
    recap.wait_for_jobs(f"{user}-one", "index", "summary")

    bar.set_postfix_str(f"{conversation.name}: search")
    for question in conversation.questions:
        begun = time.perf_counter()
        answer = recap.search(user, question.text, LIMIT)
        done.search_ms.append((time.perf_counter() - begun) * 1000)
        done.took_ms.append(answer["took_ms"])
        done.found.append([result["external_id"] for result in answer["results"]])
        bar.update()

    bar.set_postfix_str(f"{conversation.name}: chat")
    for message in conversation.user_turns(turns):
        begun = time.perf_counter()
        answer = recap.chat(f"{user}-chat", f"{user}-chat", message)
        done.turn_ms.append((time.perf_counter() - begun) * 1000)
        done.usage.append(answer["usage"])
        bar.update()
    return done


def run(conversations: Sequence[Conversation], turns: int) -> dict[str, Any]:
    """Replay the conversations.  The results can be stored as JSON."""
    steps = sum(2 * len(one.said) + len(one.questions) + turns for one in conversations)
    with temporary_server() as server, progress(steps, "step") as bar:
        recap = Recap(server.url)
        ready = recap.ready()
        replayed = [replay(recap, one, turns, bar) for one in conversations]
    return {
        "model": ready["model"],
        "conversations": {one.conversation.name: measured([one]) for one in replayed},
        "all": measured(replayed),
    }


def measured(replayed: Sequence[Replayed]) -> dict[str, Any]:
    """The figures of one conversation, or of several together, with equal weight for each question and message."""
    messages = sum(len(one.conversation.said) for one in replayed)
    found = [pair for one in replayed for pair in zip(one.conversation.questions, one.found, strict=True)]
    sent, full, saved = (
        sum(usage[name] for one in replayed for usage in one.usage)
        for name in ("prompt_tokens", "full_history_tokens", "saved_tokens")
    )
    return {
        "messages": messages,
        "sessions": sum(len(one.conversation.sessions) for one in replayed),
        "questions": len(found),
        "recall": {str(depth): recall_at(depth, found) for depth in DEPTHS},
        "recall_at_10_by_category": {
            str(key): recall_at(10, of)
            for key in CATEGORIES
            if (of := [(question, ids) for question, ids in found if question.category == key])
        },
        "import_per_second": {
            "sessions": round(messages / sum(one.import_seconds for one in replayed), 1),
            "one_session": round(messages / sum(one.one_session_seconds for one in replayed), 1),
        },
        "search_ms": percentiles([ms for one in replayed for ms in one.search_ms]),
        "took_ms": percentiles([ms for one in replayed for ms in one.took_ms]),
        "chat": {
            "turns": sum(len(one.usage) for one in replayed),
            "turn_ms": percentiles([ms for one in replayed for ms in one.turn_ms]),
            "prompt_tokens": sent,
            "full_history_tokens": full,
            "saved_tokens": saved,
            "saved_percent": round(100 * saved / full, 1) if full else 0.0,
            "last_prompt_tokens": max((one.usage[-1]["prompt_tokens"] for one in replayed if one.usage), default=0),
        },
    }


def recall_at(depth: int, found: Sequence[tuple[Question, Sequence[str | None]]]) -> float:
    """Percent of each question's evidence among the first `depth` ids found for it, averaged over the questions."""
    shares = [len(question.evidence.intersection(ids[:depth])) / len(question.evidence) for question, ids in found]
    return round(100 * mean(shares), 2) if shares else 0.0


def table(results: Mapping[str, Any]) -> str:
    """A column for each conversation, and one for all if there are several."""
    columns = by_conversation(results)
    width = width_of(columns)
    lines = [
        f"{'':24}" + "".join(name.rjust(width) for name in columns),
        *rows(_ROWS, [*columns.values()], 24, width),
        "",
        f"Model: {results['model']['main']} (built in, because no model is configured)",
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("replay", __doc__)
    command.takes_conversations()
    command.add_argument("--turns", type=int, default=50, help="turns to chat")
    options = command.parse_args(arguments)
    conversations = [one.with_evidence() for one in command.loaded(options.conversations)]
    results = about_now()
    with breaking_off():
        results |= run(conversations, options.turns)
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
