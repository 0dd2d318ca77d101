"""Replays recorded conversations through Recap's public HTTP API: what it finds, how fast it is, what a prompt costs.

    python -m benchmarks.replay CONVERSATION.json [MORE.json ...] --url http://127.0.0.1:8000
    python -m benchmarks.replay CONVERSATION.json --serve

`--serve` measures a Recap of its own in a temporary directory, with the built-in model; against one that runs, the
benchmark makes users of its own and erases their sessions at its end.  For each conversation:

    import    each of its sessions becomes a session of one user; then all its messages go into a single session of
              another user.  Timed until the search index holds everything.
    search    each question is asked through /api/search; recall@k is the share of a question's evidence messages
              among the first k results, averaged over the questions.
    chat      the person's own messages are sent as turns; their prompts are compared with sending the full history.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
from tqdm import tqdm

from benchmarks.conversation import Conversation, Said
from benchmarks.results import RESULTS, Replayed, machine, measured, stored, table
from benchmarks.serving import Server, terminable

BATCH = 1_000  # messages in one call: as many as the API takes
LIMIT = 20  # results asked for: recall is measured down to this depth
QUIET_SECONDS = 600.0  # a real mini model may take this long over the summaries of an import


class Recap:
    """The HTTP API as the benchmark uses it, on behalf of users of its own."""

    def __init__(self, url: str) -> None:
        self._http = httpx2.Client(base_url=url, timeout=180.0, trust_env=False)
        self._sessions: list[str] = []

    def ready(self) -> dict[str, Any]:
        """What /health/ready says.  Raises SystemExit when nobody answers or it is not ready."""
        try:
            answer = self._http.get("/health/ready")
        except httpx2.TransportError as error:
            raise SystemExit(
                f"No Recap answers at {self._http.base_url} ({error}). Start one with `make run`."
            ) from None
        if answer.status_code != 200:
            raise SystemExit(f"Recap at {self._http.base_url} is not ready: {answer.text}")
        body: dict[str, Any] = answer.json()
        return body

    def append(self, user: str, session: str, messages: Sequence[Said]) -> None:
        self._sessions.append(session)
        for start in range(0, len(messages), BATCH):
            batch = [one.to_import() for one in messages[start : start + BATCH]]
            self._call("POST", f"/api/sessions/{session}/messages", json={"user_id": user, "messages": batch})

    def wait_for_jobs(self, user: str, *kinds: str) -> None:
        """Wait until the user has no job of these kinds.  Raises RuntimeError for one that has failed for good."""
        deadline = time.monotonic() + QUIET_SECONDS
        while waiting := [job for job in self._jobs(user) if job["kind"] in kinds]:
            failed = [job for job in waiting if job["state"] == "failed"]
            if failed or time.monotonic() > deadline:
                raise RuntimeError(f"jobs that do not get done: {failed or waiting}")
            time.sleep(0.01)

    def _jobs(self, user: str) -> list[dict[str, Any]]:
        jobs: list[dict[str, Any]] = self._call("GET", "/api/jobs", params={"user_id": user, "limit": 100})["items"]
        return jobs

    def search(self, user: str, text: str) -> dict[str, Any]:
        return self._call("GET", "/api/search", params={"q": text, "user_id": user, "limit": LIMIT})

    def chat(self, user: str, session: str, message: str) -> dict[str, Any]:
        if session not in self._sessions:
            self._sessions.append(session)
        return self._call("POST", "/api/chat", json={"user_id": user, "session_id": session, "message": message})

    def erase(self) -> None:
        """Erase every session the benchmark has made."""
        while self._sessions:
            self._http.delete(f"/api/sessions/{self._sessions.pop()}")

    def _call(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        answer = self._http.request(method, path, **more)
        if answer.status_code != 200:
            raise RuntimeError(f"{method} {path} answered {answer.status_code}: {answer.text[:1000]}")
        body: dict[str, Any] = answer.json()
        return body


def replay(recap: Recap, conversation: Conversation, turns: int, bar: Any) -> Replayed:
    """Import, search and chat one conversation."""
    done = Replayed(conversation)
    user = f"bench-{conversation.name}-{uuid.uuid4().hex[:8]}"

    bar.set_postfix_str(f"{conversation.name}: import")
    begun = time.perf_counter()
    for name, messages in conversation.sessions.items():
        recap.append(user, f"{user}-{name}", messages)
        bar.update(len(messages))
    recap.wait_for_jobs(user, "index")
    done.import_seconds = time.perf_counter() - begun
    recap.wait_for_jobs(user, "index", "summary")

    begun = time.perf_counter()
    recap.append(f"{user}-one", f"{user}-one", conversation.said)
    recap.wait_for_jobs(f"{user}-one", "index")
    done.one_session_seconds = time.perf_counter() - begun
    bar.update(len(conversation.said))
    recap.wait_for_jobs(f"{user}-one", "index", "summary")

    bar.set_postfix_str(f"{conversation.name}: search")
    for question in conversation.questions:
        begun = time.perf_counter()
        answer = recap.search(user, question.text)
        done.search_ms.append((time.perf_counter() - begun) * 1000)
        done.took_ms.append(answer["took_ms"])
        done.found.append([result["external_id"] for result in answer["results"]])
        bar.update()

    bar.set_postfix_str(f"{conversation.name}: chat")
    for message in conversation.user_turns(turns):
        begun = time.perf_counter()
        answer = recap.chat(f"{user}-chat", f"{user}-chat", message)
        done.turn_ms.append((time.perf_counter() - begun) * 1000)
        done.usage.append(answer["usage"])
        bar.update()
    return done


@contextmanager
def _serving(url: str | None) -> Iterator[str]:
    """The URL to measure: the given one, or that of a server of our own until the block ends."""
    if url is not None:
        yield url
        return
    with (
        terminable(),
        tempfile.TemporaryDirectory(prefix="recap-bench-") as folder,
        Server(Path(folder) / "data") as server,
    ):
        yield server.url


def run(conversations: Sequence[Conversation], url: str | None, turns: int, keep: bool = False) -> dict[str, Any]:
    """Replay them all against `url`, or against a server of our own; the results as JSON's types."""
    steps = sum(2 * len(one.said) + len(one.questions) + turns for one in conversations)
    with _serving(url) as address:
        recap = Recap(address)
        ready = recap.ready()
        try:
            with tqdm(total=steps, unit="step", file=sys.stderr, dynamic_ncols=True) as bar:
                replayed = [replay(recap, one, turns, bar) for one in conversations]
        finally:
            if not keep:
                recap.erase()
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "model": ready["model"],
        "conversations": {one.conversation.name: measured([one]) for one in replayed},
        "all": measured(replayed),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    description, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.replay",
        description=description,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("conversations", nargs="+", type=Path, metavar="CONVERSATION.json")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", default="http://127.0.0.1:8000", help="the Recap to measure (default: %(default)s)")
    where.add_argument("--serve", action="store_true", help="measure a Recap of its own, in a temporary directory")
    parser.add_argument("--turns", type=int, default=50, help="turns to chat (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="leave the sessions there afterwards")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        conversations = [Conversation.load(path) for path in options.conversations]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    try:
        results = run(conversations, None if options.serve else options.url, options.turns, options.keep)
    except (RuntimeError, httpx2.TransportError) as error:
        raise SystemExit(f"The benchmark broke off: {error}") from error
    file = stored(options.results, "replay", results)
    print(table(results))
    print(f"\nAs JSON: {file}")


if __name__ == "__main__":
    main()
