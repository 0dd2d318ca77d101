"""kill -9 at any moment while clients chat: the whole group of processes, its first one, or a worker."""

import os
import random
import signal
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2

from memory.leases import LEASE_SECONDS
from tests.faults import report
from tests.faults.chatters import Chatter, never_back, stored_once
from tests.processes import Api, Server, eventually, rows, sound, workers

CHATTERS = 8
SKEW_SECONDS = 1.0
PATIENCE_SECONDS = 40.0  # a client that waited so long is answered before the next kill


def killed_and_found_whole(server: Server, cycles: int, seed: int) -> None:
    """Kill `cycles` times under eight chatting clients; then assert that nothing acknowledged was lost or doubled."""
    chance = random.Random(seed)
    begun = time.monotonic()
    killed: Counter[str] = Counter()
    chatters = [
        Chatter(server, f"session-{number}", f"user-{number % 6}", stream=number % 2 == 0) for number in range(CHATTERS)
    ]
    server.start()
    for chatter in chatters:
        chatter.start()
    for _ in range(cycles):
        _progress(chatters, chance.randint(1, 12))
        time.sleep(chance.uniform(0.0, 0.3))
        whom = chance.choice(["group", "first", "worker"])
        killed[whom] += 1
        _kill(server, whom, chance)
        _no_lease_beyond_its_time(server)
    for chatter in chatters:
        chatter.finish()
    with Api(server) as api:
        try:
            api.jobs_done(seconds=120.0)
        except httpx2.TransportError as error:
            raise AssertionError(f"Nobody is killed any more: {server.log.read_text()[-3000:]}") from error
    assert server.stop() == 0
    chatted = time.monotonic() - begun

    for chatter in chatters:
        assert chatter.problems == [], chatter.problems
        stored_once(server, chatter)
        never_back(chatter)
    assert rows(server, "SELECT count(*) FROM jobs") == [(0,)]
    now = _stored(datetime.now(UTC))
    assert rows(server, "SELECT public_id FROM sessions WHERE lease_until > ?", now) == []
    sound(server)
    log = server.log.read_text(errors="replace")
    assert "Traceback" not in log
    assert "database is locked" not in log
    report(
        f"{cycles} kill -9 cycles",
        seed=seed,
        killed=dict(killed),
        turns_acknowledged=sum(len(chatter.answers) for chatter in chatters),
        asked_again=sum(chatter.broken for chatter in chatters),
        looks_at_summaries=sum(len(chatter.summaries) for chatter in chatters),
        newest_summary=max(chatter.summaries[-1] for chatter in chatters),
        seconds=round(chatted),
    )


def _progress(chatters: list[Chatter], turns: int) -> None:
    """Wait until `turns` more were acknowledged, and those that waited for long: each cycle does some work."""
    wanted = sum(len(chatter.answers) for chatter in chatters) + turns

    def come() -> bool:
        done = sum(len(chatter.answers) for chatter in chatters) >= wanted
        waits = any(chatter.asked_at < time.monotonic() - PATIENCE_SECONDS for chatter in chatters)
        return (done and not waits) or any(chatter.problems for chatter in chatters)

    assert eventually(come, 120.0), "no turn is acknowledged any more"
    problems = [problem for chatter in chatters for problem in chatter.problems]
    assert not problems, problems


def _kill(server: Server, whom: str, chance: random.Random) -> None:
    """Kill the group, the first process or a worker; the server runs again, or goes on, afterwards."""
    running = workers(server)
    if whom == "worker" and running:
        worker = chance.choice(running)
        os.kill(worker, signal.SIGKILL)  # the first process starts another
        assert eventually(lambda: not _runs(worker)), "until it is gone, it may still take a connection"
        return
    if whom == "first":
        os.kill(server.pid, signal.SIGKILL)
        # The workers see that they are orphans and leave by themselves; a service manager would not wait for long.
        eventually(lambda: not any(map(_runs, running)), chance.uniform(0.0, 3.0))
    server.kill()
    server.start()


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def _no_lease_beyond_its_time(server: Server) -> None:
    """Whoever was killed keeps others out for LEASE_SECONDS and no longer."""
    latest = _stored(datetime.now(UTC) + timedelta(seconds=LEASE_SECONDS + SKEW_SECONDS))
    for table in ("sessions", "jobs"):
        assert rows(server, f"SELECT id, lease_until FROM {table} WHERE lease_until > ?", latest) == []


def _stored(moment: datetime) -> str:
    """A time as the database writes it."""
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")
