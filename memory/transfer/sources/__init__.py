"""Exports of other programs, a module each: pure readers that recognise an item by its shape and return records.

A new program is a module, a line of SOURCES and a row of docs/export.md. `files` finds the items in a file, and asks
SOURCES whose they are.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memory.transfer.sources import chatgpt, chats, claude, gemini, langgraph, memories, text_files
from memory.transfer.sources.times import Times
from memory.transfer.sources.values import Record


@dataclass(frozen=True)
class Source:
    """Program: recognises an item of its export, and returns the records of it."""

    program: str
    recognises: Callable[[Mapping[str, Any]], bool]
    records: Callable[[Mapping[str, Any], Times], Iterator[Record]]

    @property
    def name(self) -> str:
        return self.program.lower()


SOURCES = (
    Source(
        "DeepSeek", chatgpt.recognises_deepseek, chatgpt.of_deepseek
    ),  # before ChatGPT's, which also has a `mapping`
    Source("ChatGPT", chatgpt.recognises, chatgpt.records),
    Source("Claude", claude.recognises, claude.records),
    Source("Gemini", gemini.recognises, gemini.records),
    Source("mem0", memories.recognises_mem0, memories.of_mem0),
    Source("Zep", memories.recognises_zep, memories.of_zep),
    Source("Letta", memories.recognises_letta, memories.of_letta),
    Source("LangGraph", langgraph.recognises, chats.records),
    Source("chats", chats.recognises, chats.records),
)
OTHER_FORMS = (  # that are not JSON: recognises a file, and returns its items
    (gemini.is_page, gemini.activities),
    (langgraph.is_database, langgraph.threads),
    (text_files.is_markdown, text_files.markdown_chats),
    (text_files.is_copilot, text_files.copilot_messages),
)
PROGRAMS = sorted([*(source.program for source in SOURCES[:-1]), *chats.PROGRAMS], key=str.lower)
FORMATS = f"Recap reads exports of {', '.join(PROGRAMS)}, and chats as JSON, JSON Lines or Markdown"
