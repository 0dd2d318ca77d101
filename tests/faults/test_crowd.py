"""300 clients at once on a model that takes 3 seconds: everybody is answered, everything is stored once."""

import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from benchmarks.harness import percentiles
from tests.faults import report, size
from tests.faults.chatters import Answer, say, stored_of
from tests.faults.pinging import pinging
from tests.processes import Api, Server, rows, server_with_model, sound

pytestmark = pytest.mark.faults

TURNS_EACH = 3
MODEL_SECONDS = 3.0
PROBE_SECONDS = 1.0  # after which Kubernetes, for one, takes a node that has not answered for dead


def test_a_crowd_is_answered_and_the_server_stays_awake(tmp_path, migrated):
    clients = size("FAULTS_CLIENTS", 300)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * clients + 200)), hard))  # servers inherit it
    model = ("--main-delay", str(MODEL_SECONDS), "--reply", "All right, noted.", "--forgetful")
    with server_with_model(tmp_path, migrated, *model, WEB_THREADS="300", WEB_WORKERS="2") as server:
        server.start()
        begun = time.monotonic()
        with pinging(server.url) as pings, ThreadPoolExecutor(clients) as pool:
            together = threading.Barrier(clients)
            talks = [pool.submit(_talk, server, number, together) for number in range(clients)]
            answers = {number: talk.result() for number, talk in enumerate(talks)}
        seconds = time.monotonic() - begun
        with Api(server) as api:
            api.jobs_done(seconds=300.0)
        assert server.stop() == 0
        log = server.log.read_text(errors="replace")
        stored = rows(
            server,
            "SELECT public_id, messages.id, role, content FROM messages JOIN sessions ON sessions.id = session_id"
            " ORDER BY session_id, position",
        )
        turns = sorted(took for talk in answers.values() for took, _ in talk)
        report(
            f"{clients} clients, {MODEL_SECONDS:g} s a model call",
            turns=len(turns),
            seconds=round(seconds, 1),
            turn_seconds=percentiles(turns),
            live_asked=len(pings),
            live_ms=percentiles([1000 * took for took in pings]),
            live_worst_ms=round(max(pings) * 1000),
        )
        assert len(stored) == 2 * len(turns)
        for number, talk in answers.items():
            mine = [row for session, *row in stored if session == f"session-{number}"]
            assert [tuple(row) for row in mine] == stored_of([answer for _, answer in talk]), (
                "in the order they were said"
            )
        assert "database is locked" not in log
        assert "Traceback" not in log
        sound(server)
        assert max(pings) <= PROBE_SECONDS, "it does not say in time that it lives"


def _talk(server: Server, number: int, together: threading.Barrier) -> list[tuple[float, Answer]]:
    """A client's turns, each with the seconds it took.  What isn't a success raises."""
    taken: list[tuple[float, Answer]] = []
    with httpx2.Client(base_url=server.url, timeout=180.0, trust_env=False) as http:
        together.wait(60)
        for turn in range(TURNS_EACH):
            words = f"Client {number} says thing number {turn}."
            begun = time.perf_counter()
            session, user = f"session-{number}", f"user-{number}"
            answer = say(http, session, user, words, words, stream=(number + turn) % 2 == 0)
            taken.append((time.perf_counter() - begun, answer))
    return taken
