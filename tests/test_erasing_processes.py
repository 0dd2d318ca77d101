"""Erasing with whole processes: while others talk, and when every process is killed in the middle of it."""

import threading
import time

import httpx2
import pytest

from tests.faults.chatters import Chatter
from tests.processes import Api, Server, eventually, migrated_server, rows, sound
from tests.traces import SENTINEL as WORD
from tests.traces import traces as traces_in

pytestmark = pytest.mark.slow

REST = ("unindex", "scrub")


def traces(server: Server) -> dict[str, int]:
    """In which files of the data directory the word is, and how often."""
    return traces_in(server.data_dir, WORD)


def live(api: Api, sessions: int = 4, messages: int = 50) -> None:
    """Give Ada a past, indexed and summarised."""
    for number in range(sessions):
        words = [f"My {WORD} number {place} is blue. {'Much. ' * place}" for place in range(messages)]
        said = [{"role": "user", "content": text} for text in words]
        api.append(f"{WORD}-{number}", said, user_id="ada")
    api.jobs_done(user_id="ada")


def test_erased_while_others_talk(tmp_path, migrated):
    with migrated_server(tmp_path, migrated, SUMMARY_DEBOUNCE="0", WEB_WORKERS="2") as server:
        server.start()
        others = [Chatter(server, f"s{number}", f"user-{number}", stream=False) for number in range(3)]
        for other in others:
            other.start()
        with Api(server) as api:
            live(api)
            before = traces(server)
            assert any(path.startswith("recap.db") for path in before), "the scan finds what is there"
            assert any(path.startswith("index/") for path in before)
            receipt = api.http.delete("/api/users/ada").raise_for_status().json()
            if not receipt["pending"]:
                assert traces(server) == {}
            api.jobs_done(*REST)
            assert traces(server) == {}
            assert receipt["erased"]["messages"] == 200
            for other in others:
                other.finish()
                assert other.answers and other.problems == []
            api.jobs_done()
        assert server.stop() == 0
        assert traces(server) == {}
        sound(server)


def test_killed_in_the_middle_of_erasing(tmp_path, migrated):
    """What the dead left half done, a new process finishes."""
    halfway = 0
    with migrated_server(tmp_path, migrated, SUMMARY_DEBOUNCE="0", WEB_WORKERS="1") as server:
        server.start()
        for pause in (0.0, 0.02, *[0.0] * 4):
            if pause == 0 and halfway:
                break
            with Api(server) as api:
                live(api, sessions=1)
            erasing = threading.Thread(target=_erase, args=(server,), daemon=True)
            erasing.start()
            assert eventually(lambda: not rows(server, "SELECT 1 FROM owners"), pause=0.001)
            time.sleep(pause)
            server.kill()
            erasing.join(10)
            halfway += bool(traces(server))
            server.start()
            with Api(server) as api:
                api.jobs_done()
            assert traces(server) == {}
            assert rows(server, "SELECT 1 FROM messages UNION SELECT 1 FROM jobs") == []
        assert server.stop() == 0
        sound(server)
    assert halfway > 0, "no kill came in the middle"


def _erase(server: Server) -> None:
    with Api(server) as api:
        try:
            api.http.delete("/api/users/ada")
        except httpx2.TransportError:
            return
