"""The concurrency benchmark: a whole run, made small, and what it says of turns that fail."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from benchmarks.concurrency import Taken, main, slow_model, table
from benchmarks.concurrency import _talk as talk
from benchmarks.model import PIECES
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


def test_a_service_that_is_not_there_makes_every_turn_a_failed_one() -> None:
    taken = Taken()
    asyncio.run(talk(f"http://127.0.0.1:{free_port()}", slow_model(0.1), taken, "one", 2))
    assert len(taken.errors) == 2 and not taken.turn


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


def test_the_model_takes_its_time_for_each_of_many_at_once() -> None:
    async def all_at_once() -> tuple[float, int]:
        port, model = free_port(), slow_model(0.3)
        body = json.dumps(
            {"model": "main", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
        ).encode()
        request = b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        async with await model.serve(port):

            async def ask() -> float:
                begun = asyncio.get_running_loop().time()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                events = (await reader.readuntil(b"0\r\n\r\n")).count(b"data: ")
                writer.close()
                assert events == PIECES + 2  # the end, and [DONE]
                return asyncio.get_running_loop().time() - begun

            took = await asyncio.gather(*(ask() for _ in range(20)))
        return min(took), model.most

    least, most = asyncio.run(all_at_once())
    assert least >= 0.29
    assert most == 20
