"""From what was measured to figures: pure functions, a table for people and JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from math import ceil
from pathlib import Path
from typing import Any

from benchmarks.conversation import Conversation, Question, recall_at

RESULTS = Path(__file__).parent / "results"  # where the JSON goes unless told otherwise
DEPTHS = (5, 10, 20)
CATEGORIES = {1: "several messages", 2: "a time", 3: "some thought", 4: "one message"}
PACKAGES = ("flask", "gunicorn", "sqlalchemy", "whoosh-reloaded", "httpx2")

_ROWS = (
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
    """What was measured of one conversation, raw.  `found` and the searches run along the questions."""

    conversation: Conversation
    import_seconds: float = 0.0
    one_session_seconds: float = 0.0
    found: list[list[str | None]] = field(default_factory=list)
    search_ms: list[float] = field(default_factory=list)  # as the client sees it
    took_ms: list[float] = field(default_factory=list)  # as the server says
    turn_ms: list[float] = field(default_factory=list)
    usage: list[dict[str, Any]] = field(default_factory=list)


def measured(replayed: Sequence[Replayed]) -> dict[str, Any]:
    """The figures of one conversation, or of several together: every question and every message counts the same."""
    messages = sum(len(one.conversation.said) for one in replayed)
    questions = [question for one in replayed for question in one.conversation.questions]
    found = [ids for one in replayed for ids in one.found]
    sent, full, saved = (
        sum(usage[name] for one in replayed for usage in one.usage)
        for name in ("prompt_tokens", "full_history_tokens", "saved_tokens")
    )
    return {
        "messages": messages,
        "sessions": sum(len(one.conversation.sessions) for one in replayed),
        "questions": len(questions),
        "recall": {str(depth): round(recall_at(found, questions, depth), 2) for depth in DEPTHS},
        "recall_at_10_by_category": {
            str(key): round(recall_at(*_of_category(found, questions, key), 10), 2)
            for key in CATEGORIES
            if any(question.category == key for question in questions)
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


def machine() -> dict[str, Any]:
    """What it was measured on, as far as this process can tell."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
    }


def machine_line(on: dict[str, Any]) -> str:
    """What `machine` told, as a table's last line."""
    memory = f"{on['memory_gb']} GB, " if on["memory_gb"] else ""
    return f"Measured on {on['cores']} cores, {memory}{on['system']}, Python {on['python']}."


def load_line(before: float) -> str:
    """How busy the machine was already, by `os.getloadavg`."""
    return f"The machine's load before was {before:.1f}; where others work too, times are too long."


def stored(folder: Path, name: str, results: dict[str, Any]) -> Path:
    """Write the results as JSON into `folder`, under the benchmark's name and the time; the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    file.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return file


def table(results: dict[str, Any]) -> str:
    """A column a conversation, and one for all together when there are several."""
    columns = dict(results["conversations"])
    if len(columns) > 1:
        columns["all"] = results["all"]
    width = max(12, *(len(name) + 2 for name in columns))
    lines = [f"{'':24}" + "".join(name.rjust(width) for name in columns)]
    for label, shape, path in _ROWS:
        cells = [cell(figures, shape, path).rjust(width) for figures in columns.values()]
        lines.append(f"{label:24}" + "".join(cells))
    model = results["model"]
    lines += [
        "",
        f"Model: {model['main']}" + (" (built in; no key is set)" if model["builtin"] else f", mini {model['mini']}"),
        machine_line(results["machine"]),
    ]
    return "\n".join(lines)


def cell(figures: Mapping[str, Any], shape: str, path: tuple[str, ...]) -> str:
    """The figure at that path in its shape; a dash where there is none."""
    value: Any = figures
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return "-" if value is None else shape.format(value)


def _of_category(
    found: Sequence[list[str | None]], questions: Sequence[Question], category: int
) -> tuple[list[list[str | None]], list[Question]]:
    chosen = [(ids, question) for ids, question in zip(found, questions, strict=True) if question.category == category]
    return [ids for ids, _ in chosen], [question for _, question in chosen]


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """The values that half and 95 % of all do not exceed."""
    ranked = sorted(values)
    return {f"p{share}": round(ranked[ceil(len(ranked) * share / 100) - 1], 2) for share in (50, 95)} if ranked else {}


def _memory_gb() -> float | None:
    facts = Path("/proc/meminfo")
    if not facts.is_file():
        return None
    return round(int(facts.read_text().split()[1]) / 1024**2, 1)
