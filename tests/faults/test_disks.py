"""Disks that are full, or take no writes any more: told clearly, nothing acknowledged is lost, no restart is needed."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.faults import report
from tests.faults.chatters import Answer, Refused, say, stored_of
from tests.processes import Api, Server, eventually, rows, server_with_model, sound, workers

pytestmark = pytest.mark.faults

MEGABYTES = 16
PASSED_ON = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is anybody there?"}]


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def mount(self, *options: str) -> None:
        subprocess.run(["mount", *options, str(self.folder)], check=True, capture_output=True, text=True)

    def takes_no_writes(self) -> bool:
        """Have it take none any more; False while a process that was killed still has something open."""
        command = ["mount", "-o", "remount,ro", str(self.folder)]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0

    def fill(self) -> None:
        """Leave not a byte."""
        with self._filler.open("ab", buffering=0) as filler:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while filler.write(bytes(size)):
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._filler.unlink()


@pytest.fixture
def disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    made = Disk(folder)
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system")
    try:
        made.mount("-t", "tmpfs", "-o", f"size={MEGABYTES}m", "recap-faults")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no file system can be mounted here: {error.stderr.strip()}")
    try:
        yield made
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False, capture_output=True)


@pytest.fixture
def server(disk, migrated):
    with server_with_model(disk.folder, migrated, "--reply", "All right.") as server:
        server.log = disk.folder.with_name("server.log")  # a full disk says so elsewhere
        yield server


def chat(api: Api, words: str) -> Answer:
    return say(api.http, "s", "ada", words, words[:50], stream=len(words) % 2 == 0)


def refusal(answer: httpx2.Response, code: str) -> str:
    """The message of an error that has to be this one."""
    assert answer.status_code == 503, answer.text
    error = answer.json()["error"]
    assert error["code"] == code and error["type"] == "server_error", answer.text
    assert answer.headers["X-Request-ID"]
    return str(error["message"])


def stored(server: Server) -> list[tuple[Any, ...]]:
    return rows(server, "SELECT id, role, content FROM messages ORDER BY position")


def test_a_full_disk_refuses_clearly_loses_nothing_and_goes_on_when_there_is_space(server, disk):
    server.start()
    with Api(server) as api:
        answers = [chat(api, f"Before, number {number}.") for number in range(5)]
        api.jobs_done()
        before = workers(server)
        disk.fill()
        refused: list[str] = []
        for number in range(2000):  # what the database has room for in its own files goes on for a while
            words = f"On a full disk, number {number}, about the lighthouse. " + "It is a long story. " * 40
            try:
                answers.append(chat(api, words))
            except Refused as refusal_:
                assert '"code":"disk_full"' in str(refusal_).replace(" ", ""), refusal_
                kept = "Your message is kept" in str(refusal_)
                assert bool(rows(server, "SELECT 1 FROM messages WHERE content = ?", words)) == kept
                refused.append(words)
                if len(refused) == 20:
                    break
        assert len(refused) == 20, "the disk does not get full"
        assert [message["content"] for message in api.messages("s")][:2] == ["Before, number 0.", "All right."]
        ready = api.http.get("/health/ready")
        assert ready.status_code == 503 and "no restart" in ready.json()["data_dir"]
        passed = api.http.post("/v1/chat/completions", json={"model": "m", "messages": PASSED_ON, "user": "bob"})
        assert passed.json()["choices"][0]["message"]["content"] == "All right."
        imported = {"params": {"user_id": "ada"}, "content": b"[" + bytes(10_000_000)}  # it waits in a file of its own
        answer = api.http.post("/api/import", headers={"Content-Type": "application/octet-stream"}, **imported)
        assert "Free some space" in refusal(answer, "disk_full")

        disk.free()
        answers += [chat(api, words) for words in refused]  # each with the key it had
        api.jobs_done(seconds=90.0)
        assert api.get("/health/ready")["status"] == "ready"
        assert workers(server) == before, "a worker died of it, or it needed a restart"
    assert server.stop() == 0
    expected = stored_of(answers)
    ids = {row[0] for row in expected}
    assert sorted(row for row in stored(server) if row[0] in ids) == sorted(expected)
    on_full = [answer for answer in answers if answer.words.startswith("On a full")]
    assert len(rows(server, "SELECT 1 FROM messages WHERE content LIKE 'On a full disk%'")) == len(on_full)
    sound(server)
    lines = server.log.read_text().splitlines()
    assert len(lines) < 3000, "the log fills the next disk"
    report("disk full", turns=len(answers), refused=len(refused), log_lines=len(lines))


@pytest.mark.parametrize("killed", [False, True])  # which leaves SQLite's log
def test_a_read_only_data_directory_can_be_read_and_says_what_to_do(server, disk, killed):
    server.start()
    with Api(server) as api:
        before = [chat(api, f"Number {number} about the lighthouse.") for number in range(4)]
        api.jobs_done()
    if killed:
        server.kill()
    else:
        assert server.stop() == 0

    assert eventually(disk.takes_no_writes)
    server.start()
    try:
        with Api(server) as api:
            assert [message["content"] for message in api.messages("s")][::2] == [answer.words for answer in before]
            found = {hit["content"] for hit in api.get("/api/search", q="lighthouse", user_id="ada")["results"]}
            assert found >= {answer.words for answer in before}
            assert api.get("/api/sessions/s/summary")["latest"]["version"] > 0
            told = refusal(
                api.http.post("/api/chat", json={"session_id": "s", "message": "Hello?"}), "database_read_only"
            )
            assert "Nothing of this request was stored" in told and "Make it writable" in told
            ready = api.http.get("/health/ready")
            assert ready.status_code == 503 and "Make it writable" in ready.json()["data_dir"]
            passed = api.http.post("/v1/chat/completions", json={"model": "m", "messages": PASSED_ON, "user": "ada"})
            assert passed.status_code == 200
            assert passed.headers["X-Memory-Error"] == "database_read_only"
            log = server.log.read_text()
            assert "Make it writable" in log, "it says so when it starts"

            disk.mount("-o", "remount,rw")
            after = chat(api, "It can be written again.")
            api.jobs_done()
            assert api.get("/health/ready")["status"] == "ready"
            assert after.words in [message["content"] for message in api.messages("s")]
        assert server.stop() == 0
    finally:
        disk.mount("-o", "remount,rw")
    sound(server)
