"""LangGraph's checkpoints in SQLite: of each thread, the messages of its newest state.

A message has no time of its own, and gets that of the first checkpoint that has it. Checkpoints are MessagePack with
extensions for Python's objects, which are read as plain values: no class is imported or instantiated. Threads whose
messages are not in a channel `messages`, and subgraphs, are left out.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from memory.json_values import dict_in, dicts_in
from memory.transfer.sources.values import refused, text

_BEGIN = b"SQLite format 3\x00"
_STATES = """
    SELECT thread_id, json_extract(CAST(metadata AS TEXT), '$.user_id'), checkpoint FROM checkpoints
    WHERE checkpoint_ns = '' AND type = 'msgpack' ORDER BY thread_id, checkpoint_id
"""


def is_database(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(len(_BEGIN)) == _BEGIN


def recognises(item: Mapping[str, Any]) -> bool:
    """Return whether this is a thread, as `threads` yields it."""
    return item.get("type") == "langgraph"


def threads(file: IO[bytes]) -> Iterator[dict[str, Any]]:
    """Yield the threads of a database, as items for `chats`. Raises InvalidRequest."""
    name = getattr(file, "name", None)
    if not isinstance(name, str):  # SQL of a stranger's database would run in the server
        raise refused("bad_database", "A database is imported on the server: `recap import FILE`")
    try:
        with closing(sqlite3.connect(f"{Path(name).absolute().as_uri()}?mode=ro", uri=True)) as database:
            for (thread_id, user_id), rows in groupby(database.execute(_STATES), lambda row: row[:2]):
                thread = {"type": "langgraph", "thread_id": thread_id, "user_id": user_id}
                yield {**thread, "messages": _messages(state for *_, state in rows)}
    except (sqlite3.Error, ValueError) as error:  # ValueError: of a damaged checkpoint
        raise refused(
            "bad_database",
            f"This database can't be read as LangGraph's checkpoints: {error}. Import the file that SqliteSaver writes",
        ) from None


def _messages(states: Iterator[bytes]) -> list[Mapping[str, Any]]:
    messages: list[dict[str, Any]] = []
    times: dict[str, Any] = {}
    for state in map(_unpacked, states):
        messages = dicts_in(dict_in(dict_in(state).get("channel_values")).get("messages"))
        for message in messages:
            times.setdefault(text(message.get("id")), dict_in(state).get("ts"))
    return [{**message, "created_at": times[text(message.get("id"))]} for message in messages]


def _unpacked(data: bytes) -> Any:
    try:
        import ormsgpack
    except ImportError:
        problem = "LangGraph's checkpoints are read with the package ormsgpack, which LangGraph needs too. Install it"
        raise refused("bad_database", problem) from None

    def plain(_: int, inner: bytes) -> Any:
        """Return the third value of an extension: it holds a module's name, a class's name and the object's values."""
        value = ormsgpack.unpackb(inner, ext_hook=plain, option=ormsgpack.OPT_NON_STR_KEYS)
        return value[2] if isinstance(value, list) and len(value) > 2 else value

    return ormsgpack.unpackb(data, ext_hook=plain, option=ormsgpack.OPT_NON_STR_KEYS)
