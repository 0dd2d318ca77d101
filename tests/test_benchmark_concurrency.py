"""The concurrency benchmark: a whole run, made small, and what it says of turns that fail."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.concurrency import Taken, main, slow_model, table
from benchmarks.concurrency import _talk as talk
from benchmarks.results import machine
from benchmarks.serving import free_port


@pytest.mark.slow
def test_conversations_are_held_at_once_and_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--streams", "3", "--turns", "2", "--seconds", "0.5", "--workers", "1", "--results", str(tmp_path)])
    [file] = tmp_path.glob("concurrency-*.json")
    figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    assert (figures["turns"], figures["failed"], figures["at_once"]) == (6, 0, 3)
    assert figures["ideal_per_second"] == 6.0
    assert 0 < figures["share_percent"] <= 100
    assert 0 < figures["first_text_beyond_ms"]["p50"] <= figures["first_text_beyond_ms"]["p95"]
    shown = capsys.readouterr().out
    assert "streams at once" in shown and "3 of 3" in shown and "Measured on" in shown


def test_an_answer_that_is_no_stream_counts_as_failed_and_is_told() -> None:
    async def ask_the_model_itself() -> Taken:
        port, taken, model = free_port(), Taken(), slow_model(0.1)
        async with await asyncio.start_server(refuse, "127.0.0.1", port):
            await talk(f"http://127.0.0.1:{port}", model, taken, "one", 1)
        return taken

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 503 Service Unavailable\r\n\r\nbusy")
        writer.close()

    taken = asyncio.run(ask_the_model_itself())
    assert "503" in taken.errors[0] and "busy" in taken.errors[0]
    figures = {
        "streams": 1, "turns": 1, "model_seconds": 0.1, "workers": 1, "threads": 1, "at_once": 0, "failed": 1,
        "ideal_per_second": 10.0, "turns_per_second": 0.0, "share_percent": 0.0, "first_failure": taken.errors[0],
        "first_text_beyond_ms": {}, "turn_beyond_ms": {},
    }  # fmt: skip
    shown = table({"machine": machine(), "load": 0.5, "figures": figures})
    assert "failed turns" in shown and "The first failure: ValueError: status" in shown
