"""Clients that chat as good clients do: each turn has an Idempotency-Key, and is sent again until it is answered.

chatter = Chatter(server, "session", "ada", stream=True)
chatter.start(); ...; chatter.finish()
chatter.said, chatter.answers       # what was acknowledged, in order
chatter.summaries                   # (version, through) of each look at the summary
"""

import json
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2

from tests.processes import Address, Api, Server, rows

AGAIN_SECONDS = 0.05
GIVE_UP_SECONDS = 120.0  # a server that comes back answers within that; one that does not is a failure


@dataclass(frozen=True)
class Answer:
    """A turn that was acknowledged."""

    words: str
    reply: str
    user_message_id: int
    message_id: int


class Refused(Exception):
    """An answer that is not a success, with its status, or a stream that told of an error."""

    def __init__(self, told: str, status: int = 200) -> None:
        super().__init__(f"{status} {told}")
        self.status = status


def say(http: httpx2.Client, session: str, user: str, words: str, key: str, *, stream: bool) -> Answer:
    """Take one turn.  Raises Refused, and TransportError when the answer did not come to its end."""
    body = {"session_id": session, "user_id": user, "message": words, "stream": stream}
    with http.stream("POST", "/api/chat", json=body, headers={"Idempotency-Key": key}) as response:
        text = response.read().decode()
    if response.status_code != 200:
        raise Refused(text[:500], response.status_code)
    if not stream:
        whole = json.loads(text)
        return Answer(words, whole["reply"], whole["user_message_id"], whole["message_id"])
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]":
        if events and (error := json.loads(events[-1]).get("error")):
            raise Refused(events[-1], 503 if error["type"] == "server_error" else 200)
        raise httpx2.RemoteProtocolError("the stream broke off")
    parts = [json.loads(event) for event in events[:-1]]
    reply = "".join(part["choices"][0]["delta"].get("content", "") for part in parts)
    return Answer(words, reply, parts[0]["user_message_id"], parts[-1]["message_id"])


class Chatter(threading.Thread):
    """Chats in one session until `finish`; every turn that was begun comes to its end first.

    It asks again on the statuses `away`, as a client of several nodes does while one of them is away.
    """

    def __init__(
        self,
        server: Address,
        session: str,
        user: str,
        *,
        stream: bool,
        key: str | None = None,
        away: Collection[int] = (),
    ) -> None:
        super().__init__(name=session, daemon=True)
        self.session, self.user = session, user
        self.answers: list[Answer] = []
        self.summaries: list[tuple[int, int]] = []
        self.asked_at = time.monotonic()  # for the first time, what is not answered yet or was answered last
        self.broken = 0  # answers that did not come to their end, and were asked for again
        self.problems: list[str] = []
        self._stream = stream
        self._connect = partial(Api, server, key)
        self._away = away
        self._over = threading.Event()

    @property
    def said(self) -> list[str]:
        return [answer.words for answer in self.answers]

    def finish(self) -> None:
        """Let the turn that is being taken end, and then take no other."""
        self._over.set()
        self.join(GIVE_UP_SECONDS + 60)
        assert not self.is_alive(), f"{self.session} gets no answer"

    def run(self) -> None:
        with self._connect() as api:
            while not self._over.is_set() and not self.problems:
                words = f"{self.session} says thing number {len(self.answers)}."
                self._insist(api, words)
                self._look(api)

    def _insist(self, api: Api, words: str) -> None:
        self.asked_at = time.monotonic()
        until = self.asked_at + GIVE_UP_SECONDS
        while time.monotonic() < until:
            try:
                self.answers.append(say(api.http, self.session, self.user, words, words, stream=self._stream))
            except httpx2.TransportError:
                self.broken += 1
                time.sleep(AGAIN_SECONDS)
            except Refused as refusal:
                if refusal.status in self._away:
                    self.broken += 1
                    time.sleep(AGAIN_SECONDS)
                    continue
                self.problems.append(f"{words!r}: {refusal}")
                return
            else:
                return
        self.problems.append(f"{words!r} was not answered in {GIVE_UP_SECONDS:g} s")

    def _look(self, api: Api) -> None:
        """Note how the summary stands; not while the server, or its database, is away."""
        try:
            summary: dict[str, Any] = api.get(f"/api/sessions/{self.session}/summary")
        except (httpx2.TransportError, httpx2.HTTPStatusError):
            return
        latest = summary["latest"] or {"version": 0, "through": 0}
        self.summaries.append((latest["version"], latest["through"]))


def stored_of(answers: Sequence[Answer]) -> list[tuple[int, str, str]]:
    """What the database holds of these turns: each message's id, role and words."""
    return [
        message
        for answer in answers
        for message in (
            (answer.user_message_id, "user", answer.words),
            (answer.message_id, "assistant", answer.reply),
        )
    ]


def stored_once(server: Server, chatter: Chatter) -> None:
    """Assert that all a chatter was told is stored is, exactly once and in its order, and nothing else."""
    found = rows(
        server,
        "SELECT messages.id, role, content FROM messages JOIN sessions ON sessions.id = session_id"
        " WHERE public_id = ? ORDER BY position",
        chatter.session,
    )
    assert found == stored_of(chatter.answers)


def never_back(chatter: Chatter) -> None:
    """Assert that no look at the summary found less than an earlier one."""
    for before, after in zip(chatter.summaries, chatter.summaries[1:], strict=False):
        assert before[0] <= after[0] and before[1] <= after[1], f"{chatter.session}: {before}, then {after}"
