"""kill -9 of every process at once, at any moment: nothing acknowledged is lost, nothing comes twice.

Each cycle kills the whole process group some random (seeded) milliseconds after the work it is aimed at has begun,
and starts the server again on what is left.
"""

import random
import threading
import time
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.faults.killing import killed_and_found_whole
from tests.processes import Api, Server, eventually, migrated_server, rows, server_with_model, sound

pytestmark = pytest.mark.slow

CYCLES = 3  # at most, until a kill comes while messages are being indexed
BATCH = 200
INDEXING = (
    "SELECT 1 FROM jobs JOIN owners ON owners.id = owner_id "
    "WHERE jobs.kind = 'index' AND state = 'running' AND owners.name = ?"
)


def test_killed_during_imports_and_indexing(tmp_path, migrated):
    chance = random.Random(3)
    with migrated_server(tmp_path, migrated) as server:
        batches: list[tuple[str, list[dict[str, Any]]]] = []
        acknowledged: list[int] = []
        for cycle in range(CYCLES):
            server.start()
            user, first = f"user-{cycle}", len(batches)
            batches += [(user, _batch(user, start)) for start in range(0, 8 * BATCH, BATCH)]
            importer = threading.Thread(target=_import, args=(server, batches, first, acknowledged), daemon=True)
            importer.start()
            assert eventually(partial(rows, server, INDEXING, user))
            time.sleep(chance.uniform(0.1, 0.9))
            server.kill()
            importer.join(10)
            if rows(server, INDEXING, user) and rows(server, "SELECT 1 FROM messages WHERE indexed_in IS NULL"):
                break
        else:
            raise AssertionError("no kill came in the middle")

        there = {name for (name,) in rows(server, "SELECT external_id FROM messages")}
        for number in acknowledged:
            assert {message["external_id"] for message in batches[number][1]} <= there

        server.start()
        with Api(server) as api:
            for user, batch in batches:  # the whole import again, from the start
                api.append(user, batch, user_id=user)
            for user in dict(batches):
                stored = rows(
                    server,
                    "SELECT external_id, content, position FROM messages WHERE external_id LIKE ? ORDER BY position",
                    f"{user}-%",
                )
                sent = [message for name, batch in batches if name == user for message in batch]
                assert stored == [(m["external_id"], m["content"], at) for at, m in enumerate(sent, start=1)]
                found = api.get("/api/search", q="beacon 1234", user_id=user)["results"]  # indexed yet or not
                assert found[0]["external_id"] == f"{user}-1234"
            api.jobs_done("index")
        assert server.stop() == 0
        sound(server)


def test_killed_one_process_or_all_at_any_moment(tmp_path, migrated):
    """A few cycles of what `make test-faults` does 200 times."""
    with server_with_model(tmp_path, migrated, "--main-delay", "0.02") as server:
        killed_and_found_whole(server, cycles=2, seed=5)


def _batch(user: str, start: int) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": f"At beacon {n} the {user} saw {n % 7} ships.", "external_id": f"{user}-{n}"}
        for n in range(start, start + BATCH)
    ]


def _import(server: Server, batches: list[tuple[str, list[dict[str, Any]]]], first: int, done: list[int]) -> None:
    with Api(server) as api:
        for number in range(first, len(batches)):
            user, batch = batches[number]
            try:
                api.append(user, batch, user_id=user)
            except httpx2.TransportError:
                return
            done.append(number)
