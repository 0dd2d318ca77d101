"""What waits for the index is read once: whoever has searched before finds, and scores, what somebody new does."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import services_of
from memory.recall.indexing import Waiting, waiting
from memory.services import Services
from search_index import NO_INDEX
from tests.conftest import MakeApp
from tests.resources import append, good, said
from tests.searching import WORDS

OWNER = 1  # of a database with one


def find(client: FlaskClient, q: str) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = good(client.get("/api/search", query_string={"q": q, "user_id": "ada"}))["results"]
    return results


def told(services: Services, since: Waiting | None = None) -> Waiting:
    with services.database.read() as tx:
        return waiting(tx, OWNER, NO_INDEX, since=since.as_of if since is not None else None)


@pytest.mark.parametrize("seed", range(3))
def test_who_searched_before_finds_what_somebody_new_does(make_app: MakeApp, seed: int) -> None:
    chance = random.Random(seed)
    app = make_app()
    client, services = app.test_client(), services_of(app)
    said_by_ada: list[tuple[str, int]] = []

    def words() -> str:
        return " ".join(chance.choices(WORDS, k=8))

    def say() -> None:
        session = chance.choice("abc")
        done = append(client, session, [said(words()), said(words(), "assistant")], user_id="ada")
        said_by_ada.append((session, done["message_ids"][0]))

    for _ in range(40):
        match chance.choice(["say", "say", "say", "replace", "erase", "erase session", "feed", "lose the index"]):
            case "say":
                say()
            case "replace" if said_by_ada:
                session, message = said_by_ada.pop(chance.randrange(len(said_by_ada)))
                body = {"session_id": session, "user_id": "ada", "message": words(), "replaces": message}
                client.post("/api/chat", json=body)  # refused if it was replaced with an earlier one
            case "erase" if said_by_ada:
                session, message = said_by_ada.pop(chance.randrange(len(said_by_ada)))
                client.delete(f"/api/sessions/{session}/messages/{message}?user_id=ada")
            case "erase session" if chance.random() < 0.3:
                session = chance.choice("abc")
                client.delete(f"/api/sessions/{session}?user_id=ada")
                said_by_ada = [one for one in said_by_ada if one[0] != session]
            case "feed":
                services.outbox.run_due(["index", "unindex"])
            case "lose the index" if chance.random() < 0.3:
                shutil.rmtree(services.settings.index_dir, ignore_errors=True)
        say()
        question = words()
        before = find(client, question)
        services.index.forget_texts()
        assert find(client, question) == before


def test_what_was_told_is_not_told_again(make_app: MakeApp) -> None:
    app = make_app()
    client, services = app.test_client(), services_of(app)
    ids = append(client, "s", [said(f"Kettle {number}") for number in range(5)], user_id="ada")["message_ids"]
    first = told(services)
    assert ([one.message_id for one in first.messages], first.since) == (ids, False)
    again = told(services, first)
    assert (again.messages, again.since, again.as_of) == ([], True, first.as_of)
    more = append(client, "s", [said("One kettle more")], user_id="ada")["message_ids"]
    then = told(services, again)
    assert ([one.message_id for one in then.messages], then.since) == (more, True)
    assert client.delete(f"/api/sessions/s/messages/{ids[2]}").status_code == 200
    after = told(services, then)
    assert ([one.message_id for one in after.messages], after.since) == ([*ids[:2], *ids[3:], *more], False)
    assert after.gone == [ids[2]] == told(services, after).gone, "what is gone is told each time"


def test_another_database_in_its_place_is_read_anew(make_app: MakeApp, tmp_path: Path) -> None:
    app = make_app()
    client, services = app.test_client(), services_of(app)
    append(client, "s", [said("A red kettle")], user_id="ada")
    file = Path(services.database.engine.url.database or "")
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        live.backup(copy)
    append(client, "s", [said("A blue kettle")], user_id="ada")
    assert [one["content"] for one in find(client, "blue kettle")] == ["A blue kettle", "A red kettle"]
    services.database.close()
    for beside in ("-wal", "-shm"):
        file.with_name(file.name + beside).unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy", tmp_path / "restored")
    (tmp_path / "restored").replace(file)
    append(client, "s", [said("A green kettle")], user_id="ada")  # under the id that the blue one had
    found = find(client, "green kettle")
    assert found[0]["content"] == "A green kettle"
    services.index.forget_texts()
    assert find(client, "green kettle") == found
