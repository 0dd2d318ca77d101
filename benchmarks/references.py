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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from flask.testing import FlaskClient
from flask_migrate import upgrade

from app import build_app, engine_of
from benchmarks.command import Command, about_now, progress
from benchmarks.results import machine_line
from config import Settings

TALKS: Mapping[str, Sequence[Sequence[str]]] = json.loads(Path(__file__).with_name("talks.json").read_text("utf-8"))
A_SESSION, APART = 5, timedelta(hours=17)
REPLIES = ("I see.", "Thank you for telling me.", "Good to know.", "Noted.", "How nice.")
WHO = {"user_id": "ada"}


def tell(client: FlaskClient, remarks: Sequence[str]) -> None:
    """Store the remarks, the last ones as of yesterday."""
    last = datetime.now(UTC) - timedelta(days=1)
    for number in range(0, len(remarks), A_SESSION):
        at = last - APART * ((len(remarks) - 1 - number) // A_SESSION)
        messages = []
        for place, remark in enumerate(remarks[number : number + A_SESSION]):
            said_at = (at + timedelta(minutes=place)).isoformat()
            reply = REPLIES[(number + place) % len(REPLIES)]
            messages += [
                {"role": "user", "content": remark, "created_at": said_at},
                {"role": "assistant", "content": reply, "created_at": said_at},
            ]
        answer = client.post(f"/api/sessions/session-{number}/messages", json={**WHO, "messages": messages})
        if answer.status_code != 200:
            raise RuntimeError(answer.text)


def asked(client: FlaskClient, message: str, **more: Any) -> tuple[dict[str, Any], float]:
    """Take a turn.  Return what it recalled and how long it took, in milliseconds."""
    begun = perf_counter()
    answer = client.post("/api/chat", json={**WHO, "message": message, **more})
    took = (perf_counter() - begun) * 1000
    if answer.status_code != 200 or answer.json is None:
        raise RuntimeError(answer.text)
    return answer.json["memory"], took


def references(folder: Path, sets: Path) -> dict[str, Any]:
    """Return which references of the sets bring the end of the latest conversation."""
    app = build_app(Settings(data_dir=folder, log_level="error", summary_debounce=0.0))
    with app.app_context():
        upgrade()
    client = app.test_client()
    remarks = json.loads((sets / "corpus.json").read_text("utf-8"))["messages"]
    tell(client, remarks)
    engine_of(app).job_queue.run_due()
    asked(client, "Good morning!", temporary=True)
    texts = json.loads((sets / "references.json").read_text("utf-8"))
    found, small, times = {}, [], []
    for text in texts:
        small.append(asked(client, "Good morning!", temporary=True)[1])
        memory, took = asked(client, text, temporary=True)
        times.append(took)
        shown = [message["content"] for excerpt in memory["excerpts"] for message in excerpt["messages"]]
        found[text] = {
            "right": remarks[-1] in shown,
            "kind": memory["recall"]["kind"],
            "reason": memory["recall"]["reason"],
        }
    engine_of(app).stop()
    return {"references": found, "small_talk_ms": median(small), "reference_ms": median(times)}


def types(folder: Path) -> dict[str, Any]:
    """Return the type that the cue words tell after each talk."""
    app = build_app(Settings(data_dir=folder, log_level="error"))
    with app.app_context():
        upgrade()
    client, found = app.test_client(), dict[str, list[str | None]]()
    with progress(sum(map(len, TALKS.values())), "talk") as bar:
        for name, talks in TALKS.items():
            for number, talk in enumerate(talks):
                for message in talk:
                    memory, _ = asked(client, message, session_id=f"{name}-{number}", recall="off")
                found.setdefault(name, []).append(memory["type"])
                bar.update()
    engine_of(app).stop()
    return found


def table(results: Mapping[str, Any]) -> str:
    lines = []
    if found := results.get("references"):
        right = sum(one["right"] for one in found.values())
        lines += [f"references: {right} of {len(found)} right"]
        lines += [f"  {'yes' if one['right'] else 'no':4}{one['kind']:11}{text}" for text, one in found.items()]
        lines += [f"  a turn: {results['reference_ms']:.1f} ms, small talk {results['small_talk_ms']:.1f} ms", ""]
    by_type = results["types"]
    right = sum(one == name for name, told in by_type.items() for one in told)
    lines += [f"types by cue words: {right} of {sum(map(len, by_type.values()))} right"]
    lines += [f"  {name:11}{', '.join(str(one) for one in told)}" for name, told in by_type.items()]
    return "\n".join([*lines, "", machine_line(results["machine"])])


def main(arguments: Sequence[str] | None = None) -> None:
    command = Command("references", __doc__)
    command.add_argument("--sets", type=Path, help="folder of corpus.json and references.json")
    options = command.parse_args(arguments)
    results = about_now()
    with TemporaryDirectory(prefix="recap-bench-") as folder:
        if options.sets is not None:
            results |= references(Path(folder), options.sets)
    with TemporaryDirectory(prefix="recap-bench-") as folder:
        results["types"] = types(Path(folder))
    command.publish(options.results, results, table)


if __name__ == "__main__":
    main()
