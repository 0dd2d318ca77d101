"""Fills a server with messages as an application would, and measures searches and turns.

The messages go through `POST /api/sessions/{id}/messages` on FILLERS connections.  Bypassing HTTP and JSON would not be
noticeably faster, because storing, summarising and indexing a message take nearly all of the time.  Each person's notes
and the answers to them form sessions of SESSION messages, a day apart.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from benchmarks.calling import Connection, Took
from benchmarks.model import ModelProcess
from benchmarks.notes import answer, note
from benchmarks.results import percentiles
from benchmarks.serving import Server
from benchmarks.turns import overheads

FILLERS = 2
SESSION = 100  # messages
SEARCHES = 200
RESULTS_ASKED = 10
TURNS = 40
PAUSE = 0.01  # seconds between turns
BEGIN = datetime(2018, 1, 1, 8)


@dataclass(frozen=True)
class Person:
    """A person, and how many messages they have."""

    name: str
    messages: int

    def session(self, number: int) -> str:
        return f"{self.name}-{number}"

    def asked(self, chosen: random.Random) -> tuple[str, str]:
        """A question about one of the person's notes, and the session of the note."""
        number = chosen.randrange(max(1, self.messages // 2))
        one = note(self.name, number)
        return chosen.choice((one.question, one.reminder)), self.session(2 * number // SESSION)


class Filled:
    """A server, and the people with messages on it."""

    def __init__(self, server: Server, model: ModelProcess, bar: Any) -> None:
        self.server = server
        self.people: dict[str, Person] = {}
        self._model = model
        self._bar = bar

    @property
    def messages(self) -> int:
        return sum(person.messages for person in self.people.values())

    def fill(self, people: Sequence[Person]) -> float:
        """Add the messages that each person lacks, and wait for the jobs.  Returns messages per second.

        Raises ValueError if a call is refused, OSError if the server is unreachable, RuntimeError if jobs fail.
        """
        before, begun, stopping = self.messages, time.monotonic(), threading.Event()

        def bring(person: Person) -> None:
            has = self.people.get(person.name, Person(person.name, 0)).messages
            with Connection(self.server.url) as connection:
                for session, batch in _batches(person, has):
                    if stopping.is_set():
                        return
                    body = {"user_id": person.name, "messages": batch}
                    connection.call("POST", f"/api/sessions/{session}/messages", body)
                    has += len(batch)
                    self.people[person.name] = Person(person.name, has)
                    self._bar.update(len(batch))

        with ThreadPoolExecutor(FILLERS) as pool:
            waiting = [pool.submit(bring, person) for person in people]
            try:
                for one in waiting:
                    one.result()
            except BaseException:
                stopping.set()
                pool.shutdown(cancel_futures=True)
                raise
        new = self.messages - before
        self.server.settle(600 + new / 10)
        return new / (time.monotonic() - begun)

    def searches(self, people: Sequence[Person], *, in_session: bool = False) -> dict[str, float]:
        """The duration of searches at the client in milliseconds, over all messages of a person or in one session."""
        chosen, took = random.Random(1), list[float]()  # nosec B311 # the same at each run
        with Connection(self.server.url) as connection:
            for number in range(SEARCHES):
                person = people[number % len(people)]
                words, session = person.asked(chosen)
                query = {"q": words, "user_id": person.name, "limit": RESULTS_ASKED}
                if in_session:
                    query["session_id"] = session
                begun = time.monotonic()
                found = connection.call("GET", f"/api/search?{urlencode(query)}")
                took.append(1000 * (time.monotonic() - begun))
                if not found["results"]:
                    raise RuntimeError(f"no results for {words!r} among {person.messages:,} messages")
        return percentiles(took)

    def turns(self, people: Sequence[Person]) -> dict[str, float]:
        """The overhead of turns in milliseconds.  The turns of a person go into one new session."""
        taken, known = list[Took](), len(self._model.calls())
        with Connection(self.server.url) as connection:
            for number in range(TURNS):
                person = people[number % len(people)]
                session = f"{person.name}-among-{self.messages}"
                said = note(session, number).text
                body = {"user_id": person.name, "session_id": session, "message": said}
                taken.append(connection.turn("/api/chat", body))
                time.sleep(PAUSE)
        overhead: dict[str, float] = overheads(taken, self._model.calls()[known:])["overhead_ms"]
        return overhead


def _batches(person: Person, has: int) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The missing messages of a person, one batch for each call: a session, and its next messages."""
    while has < person.messages:
        number = has // SESSION
        upto = min(person.messages, (number + 1) * SESSION)
        yield person.session(number), [_message(person.name, at) for at in range(has, upto)]
        has = upto


def _message(name: str, at: int) -> dict[str, str]:
    said = note(name, at // 2).text
    session, within = divmod(at, SESSION)
    return {
        "role": "assistant" if at % 2 else "user",
        "content": answer(said) if at % 2 else said,
        "created_at": (BEGIN + timedelta(days=session, minutes=within)).isoformat(),
    }
