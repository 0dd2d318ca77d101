"""Jobs in whole processes: a worker of its own beside gunicorn as `make run` starts it."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.forks import Fork
from tests.http import said
from tests.knowledge import digest_of
from tests.model_server import Delay, ModelServer, prompts
from tests.processes import Api, Server, command, eventually, migrated_server, model_settings, rows

pytestmark = pytest.mark.slow

VERSIONS = "SELECT public_id, version FROM summaries JOIN sessions ON sessions.id = session_id ORDER BY 1, 2"
JOBS = "SELECT key, state, attempts FROM jobs WHERE kind = 'summary' ORDER BY id"
NAMED = re.compile(r"I am (session-\d+)\.")


@pytest.fixture
def server(tmp_path, migrated, model_server):
    """A server that leaves jobs to workers of their own; not started."""
    with migrated_server(tmp_path, migrated, JOBS="worker", **model_settings(model_server.url)) as server:
        yield server


def log_of(server: Server) -> str:
    return server.log.read_text() if server.log.exists() else ""


@contextmanager
def worker(server: Server) -> Iterator[Fork]:
    """`recap jobs work`, logging where the server does; it has begun, and whatever comes, is over after the block."""
    before = log_of(server).count("Doing jobs")
    process = server.begin("recap", "jobs", "work")
    try:
        assert eventually(lambda: log_of(server).count("Doing jobs") > before, 60), log_of(server)
        yield process
    finally:
        process.kill()


def asked(model_server: ModelServer) -> list[str]:
    """The sessions that the mini model was asked about, in order."""
    return [match[1] for prompt in prompts(model_server, "mini") if (match := NAMED.search(str(prompt)))]


def test_a_worker_of_its_own_does_what_the_web_leaves_and_ends_with_what_it_has_begun(server, model_server):
    server.start()
    release = threading.Event()
    model_server.mini.default = lambda body: Delay(release, digest_of(topic="Done"))
    with Api(server) as api:
        for number in range(8):
            api.append(f"session-{number}", [said(f"I am session-{number}.")])
        with worker(server) as process:
            assert model_server.wait_for(lambda: len(asked(model_server)) == 4, 30)  # as many as it does at once
            process.terminate()
            assert eventually(lambda: "Finishing the jobs that run" in log_of(server))
            release.set()
            assert process.wait(20) == 0
        assert len(set(asked(model_server))) == len(rows(server, VERSIONS)) == 4
        assert [(state, attempts) for _, state, attempts in rows(server, JOBS)] == [("pending", 0)] * 4
        command(server, "jobs", "work", "--once")  # the built-in model does the rest, in this process
        assert "jobs_late" not in api.get("/health/ready")
    assert len(rows(server, VERSIONS)) == 8
    assert server.stop() == 0
    assert "Traceback" not in log_of(server)
