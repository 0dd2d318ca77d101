"""24,000 turns after as many: a worker's memory, descriptors and threads are at the end what they were half-way.

Half-way the large caches are full, as each note has words that nobody said before.  What was seen to grow after that
has an end: the sets of words of 2,048 texts, and 12 MB of what persons said last, of whom each quarter brings new
ones.  The heap has holes, too, so that it is at its largest when the conversations are.  In four runs of 40,000 or
48,000 turns a worker grew by 5 to 13 MB in the second half; of that some 5 MB were in use, most of them in these
caches.  In one of 100,000 turns two workers grew by 8 and 9 MB in their last 50,000.  A run of fewer turns measures how
caches fill, and may fail by it alone.

In each quarter everybody is somebody new.  What one person has said grows, and with it what a search or a merge of it
takes for a moment: that is no worker's growth, and in the third quarter it is what it was in the first.
"""

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import linear_regression

import httpx2
import pytest

from tests.faults import report, seed, size
from tests.faults.chatters import Refused, say
from tests.processes import Api, Server, eventually, rows, server_with_model, sound, workers

pytestmark = pytest.mark.faults

CLIENTS = 12
WORKERS = 2
LONG_SESSIONS = 6  # which take a fifth of all turns
QUARTERS = 4
SAMPLE_SECONDS = 2.0
NEW_WORDS = 24  # in a note
GROWTH_MB = 16.0  # a worker's, by the slope of the second half: a leak of 2 KB in each of its 12,000 turns makes 24
GROWTH_COUNT = 6.0  # of descriptors, and of threads


@dataclass(frozen=True)
class Sample:
    """A worker as the kernel sees it, after so many turns."""

    turns: int
    megabytes: float
    descriptors: int
    threads: int


class Turns:
    """How many were taken, by whomever."""

    def __init__(self, wanted: int) -> None:
        self.taken = 0
        self._wanted = wanted
        self._left = wanted
        self._lock = threading.Lock()

    def begin(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0

    @property
    def quarter(self) -> int:
        return QUARTERS * self.taken // self._wanted

    def end(self) -> None:
        with self._lock:
            self.taken += 1


def test_nothing_grows_over_many_turns(tmp_path, migrated):
    wanted = size("FAULTS_TURNS", 48_000)
    turns = Turns(wanted)
    sessions = max(20, wanted // 60 // QUARTERS)  # of a quarter
    serving = {"SUMMARY_DEBOUNCE": "1", "WEB_WORKERS": str(WORKERS)}
    with server_with_model(tmp_path, migrated, "--reply", "All right, noted.", "--forgetful", **serving) as server:
        server.start()
        assert eventually(lambda: len(workers(server)) == WORKERS), "the first answers before there is another"
        begun = time.monotonic()
        over = threading.Event()
        samples: dict[int, list[Sample]] = {pid: [] for pid in workers(server)}
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            watching = pool.submit(_watch, server, samples, turns, over)
            talking = [pool.submit(_talk, server, turns, sessions, number) for number in range(CLIENTS)]
            try:
                said = sum((talk.result() for talk in talking), Counter())
                seconds = time.monotonic() - begun
                with Api(server) as api:
                    api.jobs_done(seconds=600.0)
            finally:  # else the pool would wait for whoever watches
                over.set()
            watching.result()
        assert workers(server) == sorted(samples), "a worker ended"
        assert server.stop() == 0
        report(
            f"{wanted} turns",
            sessions=len(said),
            longest_session=max(said.values()),
            seconds=round(seconds),
            turns_a_second=round(wanted / seconds, 1),
        )
        problems = [problem for pid, seen in samples.items() for problem in _growth(pid, seen)]
        counted = rows(
            server, "SELECT public_id, message_count FROM sessions WHERE public_id LIKE 'session-%' ORDER BY public_id"
        )
        assert dict(counted) == {session: 2 * count for session, count in said.items()}
        assert problems == []
        sound(server)


def _talk(server: Server, turns: Turns, sessions: int, number: int) -> Counter[str]:
    """Take turns in any of the sessions until there were enough; how many in each."""
    chance = random.Random(f"{seed()} {number}")
    said: Counter[str] = Counter()
    with httpx2.Client(base_url=server.url, timeout=120.0, trust_env=False) as http:
        while turns.begin():
            which = chance.randrange(LONG_SESSIONS) if chance.random() < 0.2 else chance.randrange(sessions)
            boats = " ".join(str(chance.randrange(10**6)) for _ in range(NEW_WORDS))
            session, user = f"session-{turns.quarter}-{which}", f"user-{turns.quarter}-{which // 2}"
            words = f"Note {number}-{said.total()}: boats {boats} came to harbour {which} at noon."
            _say_when_free(http, session, user, words, stream=chance.random() < 0.5)
            said[session] += 1
            turns.end()
    return said


def _say_when_free(http: httpx2.Client, session: str, user: str, words: str, *, stream: bool) -> None:
    """Take one turn; ask again while as many wait for the session as may."""
    while True:
        try:
            say(http, session, user, words, words, stream=stream)
        except Refused as refused:
            if refused.status != 409:
                raise
            time.sleep(0.05)
        else:
            return


def _watch(server: Server, samples: dict[int, list[Sample]], turns: Turns, over: threading.Event) -> None:
    while not over.wait(SAMPLE_SECONDS):
        for pid, seen in samples.items():
            seen.append(_sample(pid, turns.taken))


def _sample(pid: int, turns: int) -> Sample:
    process = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines() if ":" in line)
    descriptors = len(list((process / "fd").iterdir()))
    return Sample(turns, int(status["VmRSS"].split()[0]) / 1024, descriptors, int(status["Threads"]))


def _growth(pid: int, seen: list[Sample]) -> list[str]:
    """Print a worker's figures, and say what grew: by the slope of its second half, over that half."""
    half = [sample for sample in seen if sample.turns >= seen[-1].turns / 2]
    at = [float(sample.turns) for sample in half]
    span = at[-1] - at[0]
    problems = []
    for name, most in (("megabytes", GROWTH_MB), ("descriptors", GROWTH_COUNT), ("threads", GROWTH_COUNT)):
        values = [float(getattr(sample, name)) for sample in half]
        grown = linear_regression(at, values).slope * span
        report(
            f"  worker {pid}, {name}",
            first=round(getattr(seen[0], name), 1),
            half_way=round(values[0], 1),
            last=round(values[-1], 1),
            most=round(max(values), 1),
            growth_of_second_half=f"{grown:+.2f}",
        )
        if grown > most:
            problems.append(f"worker {pid}: {grown:+.1f} {name} over {span:.0f} turns")
    return problems
