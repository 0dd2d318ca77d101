"""A person as a whole: what is stored of them, the export, and that erasing leaves nothing.  (Import: test_import.)"""

import json
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from flask import Flask

import memory.transfer.export
import search_index.caches
from app import engine_of
from search_index import IndexBusy
from tests.application import derived, index_key, rows_of
from tests.http import append, chat, error, good, meanwhile, read_all, said
from tests.knowledge import digest_of, fact, link
from tests.model_server import Delay, ModelServer
from tests.traces import SENTINEL
from tests.traces import traces_of as traces


def data_dir(app: Flask) -> Path:
    return engine_of(app).settings.data_dir


def live(app: Flask, server: ModelServer, user: str, word: str, sessions: int = 3) -> None:
    """A person's life in Recap, with `word` in whatever can have one."""
    client = app.test_client()
    job_queue = engine_of(app).job_queue
    for number in range(sessions):
        session = f"{word}-session-{number}"
        messages = [said(f"{word} said {'much ' * 40 * place}{number}.", name=f"{word} name") for place in range(6)]
        for place, message in enumerate(messages):
            at = f"2026-03-0{number + 1}T10:0{place}:00Z"
            message |= {"external_id": f"{word}-{place}", "created_at": at}
        told = append(client, session, messages, user_id=user)
        derived(engine_of(app), user, f"{word}-{number}", {word: [f"{word} {number}"]}, told["message_ids"][:2])
        tied = [link("user", f"{word} it is", word)]
        first = fact(f"{word} is the word {number}", 2, f"{word} said", links=tied)
        second = fact(f"{word} is another word {number}", 3, f"{word} said", scope="user")
        server.mini.queue(digest_of(first, second, topic=f"About {word}"))
        job_queue.run_due(["summary", "index"])
        server.main.queue(f"{word}, says the model.")
        chat(client, f"What about {word}?", session_id=session, user_id=user)
        server.mini.queue(digest_of(topic=f"More about {word}"))
        job_queue.run_due(["summary", "index"])
        good(client.patch(f"/api/sessions/{session}", json={"title": f"{word} title", "system_prompt": f"Be {word}."}))
        good(client.put(f"/api/sessions/{session}/summary", json={"sections": {"topic": f"{word} summarised"}}))
    stored = {"namespace": [f"{word}s"], "key": f"{word} key", "value": {"is": word}, "ttl": 1000}
    good(client.put("/api/store/items", json={**stored, "user_id": user}))
    mine = good(client.post("/api/facts", json={"user_id": user, "text": f"{word} was stated"}))
    good(client.patch(f"/api/facts/{mine['id']}", json={"text": f"{word} was edited", "pinned": True}))


# -- what is stored


def test_a_user_id_may_be_anything(client):
    for user in ["auth0|7f3a", "https://id.example/users//7", "Ünal Öztürk", "a%2Fb", "me"]:
        append(client, "tea", [said("hello")], user_id=user)
        address = f"/api/users/{quote(user, safe='')}"
        assert good(client.get(address))["user_id"] == user
        assert good(client.get(f"{address}/export"))["user_id"] == user
        assert good(client.delete(address))["user_id"] == user
        assert error(client.get(address), 404)["code"] == "user_not_found"


def test_a_user_id_that_no_address_can_carry_is_refused(client):
    append(client, "tea", [said("hello")], user_id="ada")
    for user in ["/ada", "a\nda", "ada\x7f", ".", ".."]:
        answer = client.post("/api/sessions/tea/messages", json={"messages": [said("hello")], "user_id": user})
        assert error(answer, 422)["param"] == "user_id"
        address = f"/api/users/{quote(user, safe='')}"
        for answer in (client.delete(address), client.patch(address, json={"remember": False})):
            assert answer.status_code in (404, 422)  # and no redirect to ada
        assert good(client.get("/api/users/ada"))["messages"] == 1
    for kind, name, wrong in (("user", "x" * 300, "user_id"), ("user", "a\0", "user_id"), ("space", "a b", "space")):
        answer = client.patch(f"/api/{kind}s/{quote(name)}", json={"remember": False})
        refused = error(answer, 422)
        assert (refused["code"], refused["param"]) == ("invalid_fields", wrong)
    assert [one["user_id"] for one in good(client.get("/api/users"))["items"]] == ["ada"]


# -- erasing


def test_not_a_byte_of_an_erased_person_is_left(model_app, model_server):
    client = model_app.test_client()
    for number in range(4):  # others before and after, so that rows share pages
        live(model_app, model_server, f"other-{number}", f"Plain{number}", sessions=1)
        live(model_app, model_server, f"{SENTINEL}-user", f"{SENTINEL}{number}", sessions=2)
    name = f"{SENTINEL} document"
    document = {"text": f"About {SENTINEL}0.", "title": name, "uri": name, "external_id": name}
    good(client.post("/api/documents", json={"user_id": f"{SENTINEL}-user", **document}))
    engine_of(model_app).job_queue.run_due(["index"])
    before = traces(model_app)
    assert {"recap.db", "recap.db-wal"} <= set(before), "the scan finds what is there"
    words = [f"{SENTINEL}{number}" for number in range(4)]  # an index has whole words alone, as numbers
    assert all(any(path.startswith("index/") for path in traces(model_app, word)) for word in words)
    good(client.get(f"/api/search?q={SENTINEL}&user_id={SENTINEL}-user"))
    assert sum(search_index.caches.sizes()) > 10

    receipt = good(client.delete(f"/api/users/{SENTINEL}-user"))
    assert sum(search_index.caches.sizes()) == 0
    assert [traces(model_app, word) for word in (SENTINEL, *words)] == [{}] * 5
    assert receipt["pending"] == []
    assert receipt["user_id"] == f"{SENTINEL}-user"
    assert receipt["erased"] == {
        "sessions": 8,
        "messages": 8 * (6 + 2),
        "turns": 8,
        "summaries": 8 * 3,
        "edited_summaries": 8,
        "facts": 8 * 2 + 4 * 2,  # the old words of those that were edited, too
        "fact_revisions": 8 * 2 + 4 * 2,
        "items": 8 + 4,
        "item_versions": 8,
        "documents": 1,
        "archives": 0,
        "jobs": receipt["erased"]["jobs"],
        "index_documents": 8 * (6 + 2) + 1,
    }
    assert traces(model_app, "Plain3"), "the others' words are there still"
    found = good(client.get("/api/search?q=Plain3&user_id=other-3"))["results"]
    assert len(found) == 8
    later = {"summary", "index", "expire", "profile", "consolidation"}
    assert {job["kind"] for job in read_all(client, "/api/jobs")} <= later, "nothing is left to do"
    with closing(sqlite3.connect(data_dir(model_app) / "recap.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_no_row_of_an_erased_person_is_left(model_app, model_server):
    client, engine = model_app.test_client(), engine_of(model_app)
    live(model_app, model_server, "bob", "Coffee")
    good(client.put("/api/retention", json={"sessions": 2}))
    engine.job_queue.run_due()
    alone = rows_of(engine)
    live(model_app, model_server, "ada", "Tea")
    good(client.post("/api/documents", json={"user_id": "ada", "text": "How to make tea."}))
    good(client.put("/api/retention", json={"sessions": 2}))
    engine.job_queue.run_due(["retention"])
    nobodys = {"prompts", "keys", "jobs", "queues", "model_server"}
    nobodys |= {"oauth_grants", "oauth_tokens", "events", "webhooks", "webhook_lanes"}  # test_oauth, test_events
    assert all(count > alone[table] for table, count in rows_of(engine).items() if table not in nobodys)
    good(client.delete("/api/users/ada"))
    assert {**rows_of(engine), "jobs": 0} == {**alone, "jobs": 0}
    assert error(client.delete("/api/users/ada"), 404)["code"] == "user_not_found"
    assert error(client.get("/api/sessions/Tea-session-0"), 404)["code"] == "session_not_found"
    assert good(client.get("/api/search?q=Tea&user_id=ada"))["results"] == []


def test_every_cache_of_texts_is_one_that_can_be_emptied():
    """A plain lru_cache is for what is not people's: roles, languages, prompts, characters, the word table."""
    root = Path(memory.transfer.export.__file__).parent.parent.parent
    kept = {
        (path.relative_to(root).as_posix(), line.strip())
        for folder in ("memory", "search_index", "schemas", "api")
        for path in (root / folder).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"(?<!`)\b(lru_cache|cache)\(|@(lru_cache|cache)\b", line)
    }
    assert kept == {
        ("memory/access/keys.py", "@functools.lru_cache(maxsize=64)"),  # where requests come from
        ("memory/languages/__init__.py", "@cache"),  # analyses of languages
        ("api/limits.py", "@functools.lru_cache(maxsize=64)"),  # the same
        ("memory/llm/registry.py", "self._named = lru_cache(CHOSEN_MAX)(self._make)"),
        ("memory/job_statements.py", "@lru_cache"),  # statements for kinds of jobs
        ("memory/turn/fact_tools.py", "@lru_cache"),  # descriptions of tools
        ("schemas/shapes.py", "@cache"),  # shapes of lists and pages
        ("memory/llm/registry.py", "provider_of = cache(partial(ProviderClient, timeout=settings.model_timeout))"),
        ("memory/prompts/prompts.py", "@lru_cache(maxsize=256)"),
        ("memory/prompts/sandbox.py", "@lru_cache(maxsize=256)"),
        ("memory/quoting.py", "@lru_cache(maxsize=4096)"),  # two characters and what is between them
        ("search_index/embeddings.py", "@lru_cache(maxsize=1)"),
        ("search_index/analysis.py", "@lru_cache(maxsize=len(STEMMED))"),
        ("search_index/caches.py", "kept: Any = lru_cache(maxsize=maxsize)(function)"),
    }


# -- erasing while something else goes on


def test_a_summary_that_is_being_made_stores_nothing(model_app, model_server):
    app, client = model_app, model_app.test_client()
    append(client, "s", [said(f"I like {SENTINEL}."), said("Noted.", "assistant")], user_id="ada")
    release = threading.Event()
    model_server.mini.queue(Delay(release, digest_of(fact(f"I like {SENTINEL}", 1), topic=SENTINEL)))
    with meanwhile(lambda: engine_of(app).job_queue.run_due(["summary"])):
        model_server.wait_for_requests(1)
        assert good(client.delete("/api/users/ada"))["pending"] == []
        release.set()
    assert traces(app) == {}
    assert rows_of(engine_of(app))["summaries"] == rows_of(engine_of(app))["jobs"] == 0


def test_a_search_that_is_going_on_finds_nothing_and_asks_for_nothing(app, client, engine, monkeypatch):
    append(client, "s", [said(f"I like {SENTINEL}.")], user_id="ada")
    engine.job_queue.run_due(["index"])
    engine.index.drop(index_key(engine, "ada"))  # lost: a search asks for it to be made again
    prepare = engine.index.prepare

    def erased_meanwhile(*asked: Any) -> Any:
        assert good(app.test_client().delete("/api/users/ada"))
        return prepare(*asked)

    monkeypatch.setattr(engine.index, "prepare", erased_meanwhile)
    assert good(client.get(f"/api/search?q={SENTINEL}&user_id=ada"))["results"] == []
    assert rows_of(engine)["jobs"] == 0 and traces(app) == {}


# -- erasing when something is in the way


def refused(*_: Any, **__: Any) -> Any:
    raise IndexBusy("another process writes to it")


def test_an_index_in_use_is_said_and_cleared_later(model_app, model_server, monkeypatch):
    live(model_app, model_server, "ada", SENTINEL, sessions=1)
    client, engine = model_app.test_client(), engine_of(model_app)
    with monkeypatch.context() as patched:
        patched.setattr(engine.index, "drop", refused)
        assert good(client.delete("/api/users/ada"))["pending"] == ["search_index"]
    assert all(path.startswith("index/") for path in traces(model_app))
    (job,) = [job for job in read_all(client, "/api/jobs") if job["kind"] == "unindex"]
    assert "another process writes to it" in job["error"]
    good(client.post(f"/api/jobs/{job['id']}/retry"))
    engine.job_queue.run_due(["unindex"])
    assert traces(model_app) == {} and rows_of(engine)["jobs"] == 0


@contextmanager
def reading(app: Flask) -> Iterator[None]:
    """Somebody who reads from the database and does not come to an end."""
    with closing(sqlite3.connect(data_dir(app) / "recap.db", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        yield


def test_a_log_in_use_is_said_and_emptied_later(model_app, model_server, monkeypatch):
    monkeypatch.setattr("models.sqlite.BUSY_TIMEOUT_MS", 10)
    live(model_app, model_server, "ada", SENTINEL, sessions=1)
    client, engine = model_app.test_client(), engine_of(model_app)
    with reading(model_app):
        assert good(client.delete("/api/users/ada"))["pending"] == ["database_files"]
        assert "recap.db-wal" in traces(model_app)
        assert error(client.get("/api/users/ada"), 404)
    (job,) = [job for job in read_all(client, "/api/jobs") if job["kind"] == "scrub"]
    assert "log" in job["error"]
    good(client.post(f"/api/jobs/{job['id']}/retry"))
    engine.job_queue.run_due(["scrub"])
    assert traces(model_app) == {} and rows_of(engine)["jobs"] == 0


# -- the export


def test_everything_is_counted_and_in_the_export(model_app, model_server):
    client = model_app.test_client()
    live(model_app, model_server, "ada", "Tea", sessions=2)
    live(model_app, model_server, "bob", "Coffee", sessions=1)
    answer = client.get("/api/users/ada/export")
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert re.fullmatch(
        r'attachment; filename="recap-export-\d{4}-\d\d-\d\d\.json"', answer.headers["Content-Disposition"]
    )
    document = good(answer)
    assert {name: document[name] for name in ("format", "version", "user_id")} == {
        "format": "recap-export",
        "version": 1,
        "user_id": "ada",
    }
    assert "Coffee" not in answer.text
    user = good(client.get("/api/users/ada"))
    assert user.pop("created_at") > "2026-03-03", "when they came here, not when they first spoke"
    assert user.pop("first_message_at") == "2026-03-01T10:00:00+00:00"
    assert user.pop("last_message_at") > "2026-03-02T10:05:00" and user.pop("tokens_today") > 0
    counted = {"sessions": 2, "messages": 2 * (6 + 2), "facts": 2 * 2 + 1, "items": 2 + 1, "summaries": 2 * 3}
    counted |= {"documents": 0, "archives": 0, "facts_forgotten": 0}
    assert user == {"user_id": "ada", "space": None, "remember": True, "last_forgotten_at": None, **counted}
    assert [session["id"] for session in document["sessions"]] == ["Tea-session-0", "Tea-session-1"]
    for session in document["sessions"]:
        shown = read_all(client, f"/api/sessions/{session['id']}/messages")
        fields = ("role", "name", "content", "created_at", "external_id")
        assert [[m[f] for f in fields] for m in session["messages"]] == [[m[f] for f in fields] for m in shown]
        versions = read_all(client, f"/api/sessions/{session['id']}/summary/versions")[::-1]
        for version, exported in zip(versions, session["summaries"], strict=True):
            assert exported.items() <= version.items()
        (turn,) = session["turns"]
        assert (turn["user_position"], turn["reply_position"]) == (7, 8)
        assert turn["usage"]["prompt_tokens"] > 0 and turn["finished_at"]
        assert (session["title"], session["system_prompt"]) == ("Tea title", "Be Tea.")
    assert len(document["facts"]) == 6
    stated, before = document["facts"][-2:]
    assert (before["text"], before["superseded_by"]) == ("Tea was stated", stated["id"])
    assert [revision["text"] for revision in stated["revisions"]] == ["Tea was stated", "Tea was edited"]
    taken = document["facts"][0]
    assert (taken["session_id"], taken["source_position"]) == ("Tea-session-0", 2)
    assert taken["quote"] in document["sessions"][0]["messages"][1]["content"]


def test_the_export_is_read_bit_by_bit_and_whole_whatever_goes_on(app, client, monkeypatch):
    monkeypatch.setattr(memory.transfer.export, "PAGE_ROWS", 10)
    append(client, "long", [said(f"message number {number}") for number in range(95)], user_id="ada")
    for number in range(25):
        good(client.post("/api/facts", json={"user_id": "ada", "text": f"fact number {number}"}))

    def exported(meanwhile: Callable[[], Any]) -> Any:
        with client.get("/api/users/ada/export", buffered=False) as answer:
            pieces = iter(answer.response)
            first = next(pieces)
            meanwhile()
            rest = list(pieces)
        assert len(rest) > 5
        return json.loads(b"".join(one if isinstance(one, bytes) else one.encode() for one in (first, *rest)))

    def write() -> None:
        """What is written from now on is left out, and nobody who writes has to wait."""
        append(client, "long", [said("too late")], user_id="ada")
        append(client, "later", [said("too late")], user_id="ada")
        good(client.post("/api/facts", json={"user_id": "ada", "text": "too late"}))
        with engine_of(app).database.engine.connect() as connection:
            assert connection.connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0

    document = exported(write)
    assert "too late" not in str(document)
    assert [len(session["messages"]) for session in document["sessions"]] == [95]
    assert [item["text"] for item in document["facts"]] == [f"fact number {number}" for number in range(25)]
    assert exported(lambda: good(client.delete("/api/users/ada")))["facts"] == [], "of an erased person nothing more"
