"""Memories of mem0 and Zep, as facts.

mem0's `get_all` returns memories with their text as `memory`. Zep's graph has facts as `fact`, with the time in which
each was valid. Zep's threads and episodes are chats (see `chats`).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.transfer.sources.values import Record, memory, text


def recognises_mem0(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("memory"), str) and "id" in item


def of_mem0(item: Mapping[str, Any], now: datetime) -> Iterator[Record]:
    if statement := text(item["memory"]):
        since = item.get("updated_at") or item.get("created_at")
        yield memory(statement, now, since, ends=item.get("expiration_date"))


def recognises_zep(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("fact"), str) and "uuid" in item


def of_zep(item: Mapping[str, Any], now: datetime) -> Iterator[Record]:
    if statement := text(item["fact"]):
        since, until = item.get("valid_at") or item.get("created_at"), item.get("invalid_at") or item.get("expired_at")
        yield memory(statement, now, since, until)
