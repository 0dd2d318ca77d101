"""kill -9 of every process at once, at any moment: nothing acknowledged is lost, nothing comes twice.

Each cycle kills the whole process group some random (seeded) milliseconds after the work it is aimed at has begun,
and starts the server again on what is left.  What the dead held is free when its lease runs out.
"""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from memory.leases import LEASE_SECONDS
from tests.faults.killing import killed_and_found_whole
from tests.model_server import ModelServer
from tests.serving import Api, Server, eventually, migrated_server, model_process, model_settings, rows, sound

pytestmark = pytest.mark.slow

CYCLES = 3
BATCH = 200
INDEXING = (
    "SELECT 1 FROM jobs JOIN owners ON owners.id = owner_id "
    "WHERE jobs.kind = 'index' AND state = 'running' AND owners.name = ?"
)


class Talker(threading.Thread):
    """Takes turns in a session until the server is gone; knows what was acknowledged, and what was not."""

    def __init__(self, server: Server, session: str, *, keyed: bool) -> None:
        super().__init__(daemon=True)
        self.session = session
        self.keyed = keyed
        self.acknowledged: list[str] = []
        self.begun = threading.Event()
        self.interrupted = ""
        self._server = server

    def run(self) -> None:
        with Api(self._server) as api:
            for number in range(1000):
                words = f"{self.session} says thing number {number}."
                try:
                    self.say(api, words)
                except httpx2.TransportError:
                    self.interrupted = words
                    return
                self.acknowledged.append(words)
                self.begun.set()

    def say(self, api: Api, words: str) -> Any:
        """Take one turn, with an Idempotency-Key or without."""
        return api.chat(self.session, words, user_id="ada", key=words if self.keyed else None)


def test_killed_during_turns(tmp_path: Path, migrated: Path, model_server: ModelServer) -> None:
    chance = random.Random(2)
    model_server.main.delay = 0.02
    talkers: list[Talker] = []
    with migrated_server(tmp_path, migrated, **model_settings(model_server.url)) as server:
        for cycle in range(CYCLES):
            server.start()
            talking = [Talker(server, f"session-{cycle}-{number}", keyed=number > 0) for number in range(3)]
            for talker in talking:
                talker.start()
            for talker in talking:
                assert talker.begun.wait(15)
            time.sleep(chance.uniform(0.0, 0.5))
            server.kill()
            for talker in talking:
                talker.join(10)
                assert talker.interrupted
            talkers += talking

        stored = {talker.session: _stored(server, talker.session) for talker in talkers}
        for talker in talkers:
            expected = [word for said in talker.acknowledged for word in (said, f"Reply to: {said}")]
            assert _without_excerpts(stored[talker.session])[: len(expected)] == expected
            # The interrupted turn: not admitted, admitted, or even answered; and nothing else.
            assert _without_excerpts(stored[talker.session])[len(expected) :] in (
                [],
                [talker.interrupted],
                [talker.interrupted, f"Reply to: {talker.interrupted}"],
            )

        server.start()
        model_server.main.delay = 0.0
        begun = time.monotonic()
        with ThreadPoolExecutor(len(talkers)) as pool, Api(server) as api:
            answers = list(pool.map(lambda talker: talker.say(api, talker.interrupted), talkers))
            assert time.monotonic() - begun < LEASE_SECONDS + 5
            for talker, answer in zip(talkers, answers, strict=True):
                expected = [*talker.acknowledged, talker.interrupted]
                if not talker.keyed and len(stored[talker.session]) > 2 * len(talker.acknowledged) + 1:
                    expected.append(talker.interrupted)  # answered, but the answer was lost: without a key, a new turn
                said = [m for m in api.messages(talker.session) if m["role"] == "user"]
                assert [m["content"] for m in said] == expected
                assert said[-1]["id"] == answer["user_message_id"]
            api.jobs_done()
        assert server.stop() == 0
        sound(server)


def test_killed_during_imports_and_indexing(tmp_path: Path, migrated: Path) -> None:
    chance = random.Random(3)
    caught = 0  # cycles in which the kill came while messages were being indexed
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
            caught += bool(
                rows(server, INDEXING, user) and rows(server, "SELECT 1 FROM messages WHERE indexed_in IS NULL")
            )
        assert caught > 0

        there = {name for (name,) in rows(server, "SELECT external_id FROM messages")}
        for number in acknowledged:
            assert {message["external_id"] for message in batches[number][1]} <= there

        server.start()
        with Api(server) as api:
            for user, batch in batches:  # the whole import again, from the start
                api.append(user, batch, user_id=user)
            for cycle in range(CYCLES):
                user = f"user-{cycle}"
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


def test_killed_one_process_or_all_at_any_moment(tmp_path: Path, migrated: Path) -> None:
    """A few cycles of what `make test-faults` does 200 times."""
    with (
        model_process("--main-delay", "0.02") as url,
        migrated_server(tmp_path, migrated, **model_settings(url)) as server,
    ):
        killed_and_found_whole(server, cycles=3, seed=5)


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


def _stored(server: Server, session: str) -> list[str]:
    statement = (
        "SELECT content FROM messages JOIN sessions ON sessions.id = session_id WHERE public_id = ? ORDER BY position"
    )
    return [content for (content,) in rows(server, statement, session)]


def _without_excerpts(contents: list[str]) -> list[str]:
    """The echo repeats the whole prompt's last message; what was recalled into it does not matter here."""
    return [
        f"Reply to: {content.splitlines()[-1]}" if content.startswith("Reply to:") and "\n" in content else content
        for content in contents
    ]
