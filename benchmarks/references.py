"""How often a reference without content brings what is meant, and how often a conversation's type is recognised.

    make bench-references OPTIONS="--sets FOLDER"

FOLDER has `corpus.json`, remarks of one person, and `references.json`, messages such as "Let's continue where we left
off.".  The remarks are stored in sessions of five, 17 hours apart, each answered by a stock reply; the built-in model
makes the summaries.  Each reference is the first message of a new session on the day after the last remark.

    right     the prompt shows the end of the latest conversation
    a turn    milliseconds of such a turn and of small talk, at the median

Below: the conversations of `talks.json`, six of each built-in type, none of which names its type.  `cues` are the types
recognised by words after the last message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from app import build_app, engine_of, upgrade_schema
from benchmarks.harness import Command, Figures, progress
from config import Settings

TALKS: Mapping[str, Sequence[Sequence[str]]] = json.loads(Path(__file__).with_name("talks.json").read_text("utf-8"))
A_SESSION, APART = 5, timedelta(hours=17)
REPLIES = ("I see.", "Thank you for telling me.", "Good to know.", "Noted.", "How nice.")
WHO = {"user_id": "ada"}


@contextmanager
def running_app(**settings: Any) -> Iterator[Flask]:
    """Build the application on a fresh folder."""
    with TemporaryDirectory(prefix="recap-bench-") as folder:
        app = build_app(Settings(data_dir=Path(folder), log_level="error", **settings))
        upgrade_schema(app)
        try:
            yield app
        finally:
            engine_of(app).stop()


def store_remarks(client: FlaskClient, remarks: Sequence[str]) -> None:
    """Store the remarks, the last ones as of yesterday."""
    last = datetime.now(UTC) - timedelta(days=1)
    for number in range(0, len(remarks), A_SESSION):
        at = last - APART * ((len(remarks) - 1 - number) // A_SESSION)
        messages = []
        for place, remark in enumerate(remarks[number : number + A_SESSION]):
            created = (at + timedelta(minutes=place)).isoformat()
            reply = REPLIES[(number + place) % len(REPLIES)]
            for role, content in (("user", remark), ("assistant", reply)):
                messages.append({"role": role, "content": content, "created_at": created})
        response = client.post(f"/api/sessions/session-{number}/messages", json={**WHO, "messages": messages})
        assert response.status_code == 200, response.text


def take_turn(client: FlaskClient, message: str, **more: Any) -> tuple[Figures, float]:
    """Take a turn.  Return what it recalled and how long it took, in milliseconds."""
    started = perf_counter()
    response = client.post("/api/chat", json={**WHO, "message": message, **more})
    took = (perf_counter() - started) * 1000
    assert response.status_code == 200 and response.json is not None, response.text
    return response.json["memory"], took


def measure_references(sets: Path) -> Figures:
    """Return which references of the sets bring the end of the latest conversation."""
    remarks = json.loads((sets / "corpus.json").read_text("utf-8"))["messages"]
    references, small_talk, times = {}, [], []
    with running_app(summary_debounce=0.0) as app:
        client = app.test_client()
        store_remarks(client, remarks)
        engine_of(app).job_queue.run_due()
        take_turn(client, "Good morning!", temporary=True)
        for text in json.loads((sets / "references.json").read_text("utf-8")):
            small_talk.append(take_turn(client, "Good morning!", temporary=True)[1])
            memory, took = take_turn(client, text, temporary=True)
            times.append(took)
            shown = [message["content"] for excerpt in memory["excerpts"] for message in excerpt["messages"]]
            recall = {name: memory["recall"][name] for name in ("kind", "reason")}
            references[text] = {"right": remarks[-1] in shown, **recall}
    return {"references": references, "small_talk_ms": median(small_talk), "reference_ms": median(times)}


def measure_types() -> dict[str, list[str | None]]:
    """Return the type that the cue words tell after each talk."""
    types = dict[str, list[str | None]]()
    with running_app() as app, progress(sum(map(len, TALKS.values())), "talk") as bar:
        client = app.test_client()
        for name, talks in TALKS.items():
            for number, talk in enumerate(talks):
                for message in talk:
                    memory, _ = take_turn(client, message, session_id=f"{name}-{number}", recall="off")
                types.setdefault(name, []).append(memory["type"])
                bar.update()
    return types


def table(results: Mapping[str, Any]) -> str:
    lines = []
    if references := results.get("references"):
        right = sum(figures["right"] for figures in references.values())
        lines += [f"references: {right} of {len(references)} right"]
        lines += [f"  {'yes' if it['right'] else 'no':4}{it['kind']:11}{text}" for text, it in references.items()]
        lines += [f"  a turn: {results['reference_ms']:.1f} ms, small talk {results['small_talk_ms']:.1f} ms", ""]
    types = results["types"]
    right = sum(recognised == name for name, talks in types.items() for recognised in talks)
    lines += [f"types by cue words: {right} of {sum(map(len, types.values()))} right"]
    lines += [f"  {name:11}{', '.join(map(str, talks))}" for name, talks in types.items()]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("references", __doc__)
    command.add_argument("--sets", type=Path, help="folder of corpus.json and references.json")
    options = command.parse_args(arguments)

    def measure() -> Figures:
        return {**(measure_references(options.sets) if options.sets else {}), "types": measure_types()}

    command.report(options, measure, table)


if __name__ == "__main__":
    main()
