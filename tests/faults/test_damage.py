"""A database file that a failing disk has written over, under a whole server: refused, told, restored."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.figures import report
from tests.serving import Api, migrated_server, model_process, model_settings, rows, sound

pytestmark = pytest.mark.faults

PASSED_ON = [{"role": "user", "content": "Is anybody there?"}]


def test_a_damaged_database_is_refused_and_restored(tmp_path: Path, migrated: Path) -> None:
    backup = tmp_path / "backup.db"
    with (
        model_process("--reply", "All right.") as url,
        migrated_server(tmp_path, migrated, **model_settings(url)) as server,
    ):
        server.start()
        with Api(server) as api:
            notes = [{"role": "user", "content": f"Note {n} about lighthouse {n}. " * 8} for n in range(400)]
            api.append("s", notes, user_id="ada")
            api.jobs_done()
            made = server.flask("backup", str(backup))
            assert made.returncode == 0, made.stderr
        assert server.stop() == 0
        _overwrite(server.data_dir / "recap.db")

        server.start()
        with Api(server) as api:
            for _ in range(20):
                answer = api.http.get("/api/sessions/s/messages", params={"limit": 100})
                assert answer.status_code == 503
                assert answer.json()["error"]["code"] == "database_damaged"
                assert "restore FILE" in answer.json()["error"]["message"]
            for _ in range(10):  # whichever worker answers
                ready = api.http.get("/health/ready")
                assert (ready.status_code, ready.json()["database"][:8]) == (503, "damaged.")
            assert api.get("/health/live") == {"status": "ok"}
            passed = api.http.post(
                "/v1/chat/completions", json={"model": "m", "messages": PASSED_ON}, headers={"X-Session-Id": "s"}
            )
            assert passed.json()["choices"][0]["message"]["content"] == "All right."
        assert server.stop() == 0
        lines = len(server.log.read_text().splitlines())

        restored = server.flask("restore", str(backup))
        assert restored.returncode == 0, restored.stderr
        server.start()
        with Api(server) as api:
            assert api.get("/health/ready")["status"] == "ready"
            assert [message["content"] for message in api.messages("s")] == [note["content"] for note in notes]
            assert api.chat("s", "And on we go.", user_id="ada")["reply"] == "All right."
            api.jobs_done()
        assert server.stop() == 0
        assert rows(server, "SELECT count(*) FROM messages") == [(402,)]
        sound(server)
        report("damaged database", log_lines=lines)


def _overwrite(file: Path) -> None:
    """Noise in place of all pages that hold messages, but for the one that leads to them."""
    with closing(sqlite3.connect(file)) as database:
        (size,) = database.execute("PRAGMA page_size").fetchone()
        query = "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'"
        try:
            pages = [page for (page,) in database.execute(query)]
        except sqlite3.OperationalError:
            pytest.skip("this SQLite can't tell where rows lie (dbstat)")
    chance = random.Random(1)
    with file.open("r+b") as stream:
        for page in pages:
            stream.seek((page - 1) * size)
            stream.write(chance.randbytes(size))
