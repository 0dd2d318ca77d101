"""What the tools make of a model's arguments, sensible or not: an answer, or one sentence on what is wrong."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory.llm import ToolCall
from memory.recall.recall import Past
from memory.services import Services
from memory.turn.tools import Tools

SEARCH, RECENT = "conversation_search", "recent_chats"

NONSENSE: list[tuple[str, Any, str]] = [
    ("delete_all", {}, "no tool delete_all"),
    (SEARCH, "not json", "Invalid JSON"),
    (SEARCH, "[" * 100_000, "Invalid JSON"),
    (SEARCH, '["dog"]', "should be an object"),
    (SEARCH, {"query": "\x00\u200b"}, "query: Value error, name some words"),
    (SEARCH, {"query": 7}, "query: Input should be a valid string"),
    (SEARCH, {"query": "dog", "user_id": "bob"}, "user_id: Extra inputs are not permitted"),
    *((RECENT, {"limit": limit}, "limit: Input should be") for limit in (0, 21, -1, 1.5, "many", [], {}, 10**30)),
    *((RECENT, {"after": when}, "after: ") for when in ("yesterday", "2026-13-01", "2026", 7, [])),
    (RECENT, {"before": "9999-12-31T23:59:59-12:00"}, "in the years 1 to 9999"),
    (RECENT, {"after": "2026-05-12", "before": "2026-05-12"}, "before must be later than after"),
    (RECENT, {"after": "2026-05-12T10:00Z", "before": "2026-05-12T10:00+01:00"}, "before must be later"),
]


@pytest.fixture
def tools(services: Services) -> Tools:
    return Tools(services.recall, Past(owner_id=1, owner_key="1"), limit=16, zone=ZoneInfo("Europe/Tallinn"))


@pytest.mark.parametrize(("name", "arguments", "words"), NONSENSE)
def test_a_nonsense_call_is_told_in_one_sentence_what_is_wrong(
    tools: Tools, name: str, arguments: Any, words: str
) -> None:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    text, report = tools.run(ToolCall("1", name, raw), 600)
    assert text.startswith("Error: ") and words in text
    assert len(text) < 200 and text.endswith(".") and "\n" not in text and text == f"Error: {report.error}"
    assert (report.excerpts, report.query) == (0, None) and len(report.name) <= 81


GOOD: list[tuple[str, Any]] = [
    (RECENT, ""),
    (RECENT, {"after": None, "before": "", "limit": None}),
    (RECENT, {"limit": 5.0, "after": " 2026-05-12 "}),
    (RECENT, {"after": "0001-01-02", "before": "9999-12-30"}),
    (SEARCH, {"query": "dog", "after": "0001-01-02", "before": "9999-12-30", "limit": 20}),
    (SEARCH, {"query": "dog " * 10_000}),
]


@pytest.mark.parametrize(("name", "arguments"), GOOD)
def test_what_models_fill_in_needlessly_does_no_harm(tools: Tools, name: str, arguments: Any) -> None:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    text, report = tools.run(ToolCall("1", name, raw), 600)
    assert (text, report.error) == ("Nothing found.", None)
