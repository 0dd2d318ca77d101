"""Whole processes over loopback: gunicorn as `make run` starts it, restarted, drained and mistreated.

Those that are asked to be of the kind `Server` load Recap themselves.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import httpx2
import pytest

from benchmarks.serving import ROOT, Server, free_port
from tests.model_server import Text
from tests.processes import Api, eventually, execute, migrated_server, model_settings, rows, sound

pytestmark = pytest.mark.slow

UPGRADE = "recap db upgrade"


def test_what_was_said_is_remembered_after_a_restart(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, Server, SUMMARY_DEBOUNCE="0", WEB_WORKERS="2") as server:
        server.start()
        opened = f"Recap is ready: open http://127.0.0.1:{server.port}"
        assert eventually(lambda: opened in server.log.read_text(), 10.0)
        lines = server.log.read_text().splitlines()
        assert opened in lines[-1] and sum("Recap is ready" in line for line in lines) == 1
        with Api(server) as api:
            first = api.chat("s1", "My name is Ada and I am allergic to walnuts.", user_id="ada")
            api.chat("s1", "I live in Bristol, at 17 Marlow Road.", user_id="ada")
            api.jobs_done()
            assert "OPENAI_API_KEY" in first["notice"]
            ready = api.get("/health/ready")
            assert ready["status"] == "ready"
            assert ready["model"]["builtin"] is True
            assert ready["notice"] == first["notice"]
        assert server.stop() == 0
        assert first["notice"] in server.log.read_text()

        server.start("gunicorn", "--workers", "1", "wsgi:app")  # which counts, and not WEB_WORKERS
        assert eventually(lambda: server.log.read_text().count(opened) == 2, 10.0)
        with Api(server) as api:
            assert any("walnuts" in fact["text"] for fact in api.get("/api/facts", user_id="ada")["items"])
            assert "Marlow" in json.dumps(api.get("/api/sessions/s1/summary"))
            found = api.get("/api/search", q="allergic to what?", user_id="ada")["results"]
            assert found[0]["content"].endswith("allergic to walnuts.")
            other = api.chat("s2", "What am I allergic to?", user_id="ada")
            assert "walnuts" in other["reply"]
            assert "walnuts" in json.dumps(other["memory"]["excerpts"]) + json.dumps(other["memory"]["facts"])
            stranger = api.chat("s3", "What am I allergic to?", user_id="noor")
            assert "walnuts" not in json.dumps(stranger)
            api.jobs_done()
        assert server.stop() == 0
        sound(server)


@pytest.mark.parametrize("program", ["flask", "gunicorn"])
def test_jobs_run_under_any_server(tmp_path, migrated, program):
    (tmp_path / "bare.py").touch()  # in the place of gunicorn.conf.py
    with migrated_server(tmp_path, migrated, Server, SUMMARY_DEBOUNCE="0") as server:
        arguments = {
            "flask": ("--app", "wsgi", "run", "--port", str(server.port)),
            "gunicorn": (
                *("--config", str(tmp_path / "bare.py"), "--bind", f"127.0.0.1:{server.port}"),
                *("--preload", "--workers", "2", "--threads", "2", "wsgi:app"),
            ),
        }
        server.start(program, *arguments[program])
        with Api(server) as api:
            api.chat("s1", "I live in Bristol, at 17 Marlow Road.", user_id="ada")
            api.jobs_done("summary", hurry=False)
            assert "Marlow" in json.dumps(api.get("/api/sessions/s1/summary"))
            api.jobs_done()
            assert "jobs_late" not in api.get("/health/ready")
        server.signal(signal.SIGTERM)
        server.wait()
        assert "Traceback" not in server.log.read_text()


def test_a_reply_that_is_being_written_arrives_whole_when_the_server_is_ended(tmp_path, migrated, model_server):
    words = " ".join(f"word{number}" for number in range(12))
    model_server.main.queue(Text(words, seconds_each=0.08))
    with migrated_server(tmp_path, migrated, **model_settings(model_server.url)) as server:
        server.start()
        body = {"session_id": "s1", "message": "Take your time.", "stream": True}
        said, ended = "", False
        with httpx2.stream("POST", f"{server.url}/api/chat", json=body, timeout=30.0, trust_env=False) as answer:
            for line in answer.iter_lines():
                if line == "data: [DONE]":
                    ended = True
                elif line:
                    piece = json.loads(line.removeprefix("data: "))["choices"][0]["delta"].get("content", "")
                    if piece and not said:
                        server.signal(signal.SIGINT)  # to all, as a terminal; the first process takes it as SIGTERM
                    said += piece
        assert (said, ended) == (words, True)
        assert server.wait() == 0
        assert "Traceback" not in server.log.read_text()
        assert rows(server, "SELECT role, content FROM messages ORDER BY id") == [
            ("user", "Take your time."),
            ("assistant", words),
        ]


def test_a_worker_that_is_ended_while_it_starts_ends(tmp_path, migrated):
    """The first process waits for its workers as long as for a reply."""
    config = tmp_path / "conf.py"
    told = """
recap_post_fork = post_fork
def post_fork(server, worker):
    os.kill(os.getpid(), signal.SIGTERM)
    recap_post_fork(server, worker)
"""
    config.write_text((ROOT / "gunicorn.conf.py").read_text("utf-8") + told)
    (tmp_path / "data").mkdir()
    shutil.copy(migrated, tmp_path / "data" / "recap.db")
    settings = {"RECAP_DATA_DIR": str(tmp_path / "data"), "PORT": str(free_port()), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "recap_server/server.py", "--config", str(config), "wsgi:app"]
    log = tmp_path / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(command, cwd=ROOT, env=os.environ | settings, stderr=out) as server,
    ):
        try:
            # Each worker of this server ends so, and others follow.
            assert eventually(lambda: log.read_text().count("Worker exiting") >= 3, 120.0)
        finally:
            server.terminate()
        assert server.wait(60) == 0


def test_no_server_starts_on_a_schema_that_is_not_its_own(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, WEB_WORKERS="1") as server:
        execute(server, "UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(RuntimeError, match="run the version of Recap that made it"):
            server.start()
        (server.data_dir / "recap.db").unlink()
        server.log.unlink()
        assert server.begin("flask", "--app", "wsgi", "run", "--port", str(server.port)).wait(60) == 1
        refused = server.log.read_text()
        assert UPGRADE in refused and "Traceback" not in refused


def test_a_setting_that_cannot_be_used_is_named_on_one_line(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, WEB_THREADS="many") as server:
        with pytest.raises(RuntimeError, match="WEB_THREADS cannot be used") as refused:
            server.start()
        assert "Traceback" not in str(refused.value)
        server.log.unlink()
        assert server.begin("flask", "--app", "wsgi", "db", "current").wait(60) == 1
        assert len(server.log.read_text().splitlines()) == 1, server.log.read_text()


def test_a_taken_port_is_said_in_a_sentence_with_the_setting(tmp_path, migrated):
    with migrated_server(tmp_path, migrated) as server, socket.socket() as other:
        other.bind(("127.0.0.1", server.port))
        other.listen()
        with pytest.raises(RuntimeError, match="PORT=8001") as refused:
            server.start()
        assert "Traceback" not in str(refused.value) and "Retrying" not in str(refused.value)
