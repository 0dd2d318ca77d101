"""Asks whether a server lives, again and again, from a process of its own: what it measures is the server's time.

`python -m tests.faults.pinging URL` asks until its standard input closes, then prints the seconds each answer took as
a JSON list.  Each question comes on a connection of its own, as a load balancer's does, so that all workers are asked.
"""

import json
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

EVERY_SECONDS = 0.05


def main(url: str) -> None:
    took: list[float] = []
    print("asking", flush=True)
    while not select.select([sys.stdin], [], [], EVERY_SECONDS)[0]:
        took.append(_ask(url))
    print(json.dumps(took), flush=True)


def _ask(url: str) -> float:
    begun = time.perf_counter()
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        connection.request("GET", "/health/live")
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())) == (200, {"status": "ok"})
    finally:
        connection.close()
    return time.perf_counter() - begun


@contextmanager
def pinging(url: str) -> Iterator[list[float]]:
    """Ask all through the block; the seconds the answers took are in the list when it is over."""
    took: list[float] = []
    command = [sys.executable, "-m", "tests.faults.pinging", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "asking\n"
            yield took
            told, _ = process.communicate("", timeout=60)
            assert process.returncode == 0, "the server did not say that it lives"
            took.extend(json.loads(told))
        finally:
            process.kill()


if __name__ == "__main__":
    main(sys.argv[1])
