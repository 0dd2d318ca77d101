"""Three nodes behind nginx, on one PostgreSQL and one Redis, of which one after the other is killed.

Sixty clients chat through nginx in a session each; a person has two.  Every five seconds of FAULTS_SECONDS one node is
killed and started again; twice PostgreSQL is.
"""

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from signal import SIGINT
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from benchmarks.serving import Server, free_port
from tests.faults import report, seed, size
from tests.faults.chatters import Chatter, never_back, stored_of
from tests.processes import Api, model_settings
from tests.test_deploy import nginx

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(
        None in (shutil.which("nginx"), shutil.which("redis-server")),
        reason="no nginx or no Redis: apt-get install nginx redis-server",
    ),
]

NODES, CLIENTS, EVERY_SECONDS = 3, 60, 5.0
AWAY = (429, 502, 503, 504)  # while no node or no database answers, or the nodes left have enough to do
KEY = "a-key-of-the-test-of-a-cluster"
SAID = text(
    "SELECT messages.id, role, content FROM messages JOIN sessions ON sessions.id = session_id"
    " WHERE public_id = :session ORDER BY position"
)


@dataclass(frozen=True)
class Front:
    url: str


@contextmanager
def redis() -> Iterator[str]:
    """The address of a Redis that keeps nothing."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.terminate()


def restart(postgres_server: Any) -> None:
    """End PostgreSQL, which breaks off what it is doing, and start it again."""
    process = postgres_server.get_postmaster_info().process
    process.send_signal(SIGINT)
    process.wait(30)
    postgres_server.start()


def test_nothing_acknowledged_is_lost_or_doubled(tmp_path, postgres_server, postgres, model_server):
    chance, seconds = random.Random(seed()), size("FAULTS_SECONDS", 60)
    with ExitStack() as stack:
        settings = {
            "DATABASE_URL": postgres,
            "RATE_LIMIT_STORAGE": stack.enter_context(redis()),
            "RECAP_API_KEYS": f"default:{KEY}",
            "TRUSTED_PROXIES": "1",
            "WEB_WORKERS": "1",
            "RATE_LIMIT": "100000/minute",  # all clients share one key; Redis counts, and refuses none
            "TURNS_PER_KEY": str(CLIENTS),
            **model_settings(model_server.url),
        }
        nodes = [Server(tmp_path / f"node{number}", **settings) for number in range(NODES)]
        nodes[0].migrate()
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        front = Front(stack.enter_context(nginx(tmp_path, *(node.port for node in nodes))))
        chatters = [
            Chatter(front, f"session-{number}", f"user-{number // 2}", stream=number % 2 == 0, key=KEY, away=AWAY)
            for number in range(CLIENTS)
        ]
        for chatter in chatters:
            chatter.start()
        restarts = {seconds // EVERY_SECONDS // 3, 2 * (seconds // EVERY_SECONDS) // 3}
        for kill in range(int(seconds // EVERY_SECONDS)):
            time.sleep(EVERY_SECONDS)
            if kill in restarts:
                restart(postgres_server)
            node = chance.choice(nodes)
            node.kill()
            node.start()
        for chatter in chatters:
            chatter.finish()
        with Api(front, KEY) as api:
            api.jobs_done(seconds=180.0)
        engine = create_engine(postgres)
        with engine.connect() as connection:
            for chatter in chatters:
                assert chatter.problems == []
                found = connection.execute(SAID, {"session": chatter.session}).all()
                assert [tuple(row) for row in found] == stored_of(chatter.answers)
                never_back(chatter)
        engine.dispose()
        for node in nodes:
            assert "Traceback" not in node.log.read_text(errors="replace"), node.log
    report(
        f"{NODES} nodes, {CLIENTS} clients, {seconds} s",
        seed=seed(),
        turns_acknowledged=sum(len(chatter.answers) for chatter in chatters),
        asked_again=sum(chatter.broken for chatter in chatters),
        looks_at_summaries=sum(len(chatter.summaries) for chatter in chatters),
    )
