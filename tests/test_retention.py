"""Retention: which sessions are taken out of memory, the archives they become, and bringing them back."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update

from app import engine_of
from memory.erasing import retention
from models import JobRow
from tests.application import derived, rows_of
from tests.http import Body, append, error, good, read_all, said, stored
from tests.jobs import jobs_done
from tests.knowledge import digest_of, fact
from tests.test_auth import with_key
from tests.traces import SENTINEL, traces_of

ALL = (
    "owners",
    "sessions",
    "messages",
    "summaries",
    "facts",
    "fact_revisions",
    "items",
    "item_versions",
    "item_sources",
)


def ago(days: float) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def talked(
    client: FlaskClient, session: str, days: float, user: str | None = "ada", words: str = "I like tea."
) -> Body:
    """A session whose last message was said so many days ago."""
    messages = [said(words, created_at=ago(days)), said(f"{words} Noted.", "assistant", created_at=ago(days))]
    return append(client, session, messages, **({"user_id": user} if user else {}))


def keep(client: FlaskClient, **policy: Any) -> None:
    """Set the policy, and let its job run."""
    good(client.put("/api/retention", json=policy))
    jobs_done(client, "retention")


def sessions(client: FlaskClient) -> set[str]:
    return {one["id"] for one in read_all(client, "/api/sessions")}


def archives(client: FlaskClient, **query: Any) -> list[Body]:
    return read_all(client, "/api/archives", limit=2, **query)


# -- which sessions


@pytest.mark.parametrize(
    ("policy", "taken", "archive"),
    [
        ({}, set(), True),
        ({"days": 365}, {"old", "bobs", "own"}, True),
        ({"sessions": 1}, {"mid", "old"}, False),
        ({"days": 30, "sessions": 2}, {"mid", "old", "bobs", "own"}, True),
    ],
)
def test_what_is_too_old_or_too_many_is_taken_out_and_nothing_else(app, policy, taken, archive):
    keys = engine_of(app).keys
    client, other = (with_key(app, keys.create(tenant)[0]) for tenant in ("acme", "globex"))
    for session, days in (("new", 1), ("mid", 40), ("old", 400), ("pinned", 500), ("fact", 500)):
        talked(client, session, days)
    talked(client, "bobs", 400, user="bob")
    talked(client, "own", 400, user=None)
    talked(other, "theirs", 900)
    good(client.patch("/api/sessions/pinned", json={"pinned": True}))
    good(client.post("/api/facts", json={"session_id": "fact", "text": "Likes tea", "pinned": True}))

    keep(client, **policy, archive=archive)
    assert sessions(client) == {"new", "mid", "old", "pinned", "fact", "bobs", "own"} - taken
    assert sessions(other) == {"theirs"} and archives(other) == []
    assert {one["session_id"] for one in archives(client)} == (taken if archive else set())
    assert good(client.get("/api/retention")) == {"days": None, "sessions": None, **policy, "archive": archive}
    waiting = [job for job in read_all(client, "/api/jobs") if job["kind"] == "retention"]
    assert [job["run_at"] > ago(-0.99) for job in waiting] == ([True] if policy else []), "once a day"

    keep(client)  # without limits, from now on
    left = sessions(client)
    talked(client, "very old", 2000)
    keep(client)
    assert sessions(client) == left | {"very old"}


# -- what goes, and comes back


def test_the_policy_is_an_administrators_of_the_whole_tenant(app):
    keys = engine_of(app).keys
    ada, reader = (with_key(app, keys.create("acme", *more)[0]) for more in (("ada",), (None, ["read", "chat"])))
    for client, code in ((ada, "key_of_one_person"), (reader, "scope_missing")):
        assert error(client.get("/api/retention"), 403)["code"] == code
        assert error(client.put("/api/retention", json={"days": 1}), 403)["code"] == code
    admin = with_key(app, keys.create("acme")[0])
    for wrong in ({"days": 0}, {"sessions": 0}, {"days": 40_000}, {"days": "1"}, {"years": 1}):
        error(admin.put("/api/retention", json=wrong), 422)
    assert good(admin.get("/api/retention")) == {"days": None, "sessions": None, "archive": True}


@pytest.fixture
def past(model_app, model_server, request):
    """An old session of a person, or of nobody, with all that came of it, and a new one."""
    client, user = model_app.test_client(), getattr(request, "param", "ada")
    talked(client, "stays", 1, user, "I like mate.")
    model_server.mini.queue(digest_of(topic="Mate"))
    jobs_done(client, "summary")
    ids = talked(client, "old", 400, user, f"I like {SENTINEL}.")["message_ids"]
    model_server.mini.queue(digest_of(fact(f"Likes {SENTINEL}", 1, f"I like {SENTINEL}", scope="user"), topic=SENTINEL))
    jobs_done(client, "summary", "index")
    if user:
        derived(engine_of(model_app), user, SENTINEL, {"likes": SENTINEL}, ids, "person")
    good(client.patch("/api/sessions/old", json={"title": f"On {SENTINEL}"}))
    return client


def places(client: FlaskClient) -> set[str]:
    return {path.split("/")[0].removesuffix("-wal") for path in traces_of(client.application)}


@pytest.mark.parametrize(("past", "archive"), [("ada", True), (None, False)], indirect=["past"])
def test_not_a_byte_is_left_but_in_the_archive(past, archive):
    assert {"index", "recap.db"} <= places(past), "the scan finds what is there"
    keep(past, days=365, archive=archive)
    jobs_done(past)
    assert error(past.get("/api/sessions/old"), 404)["code"] == "session_not_found"
    assert SENTINEL not in str(good(past.get(f"/api/search?q={SENTINEL}&user_id=ada"))["results"])
    assert SENTINEL not in str(good(past.get("/api/facts?user_id=ada")))
    assert places(past) == ({"recap.db"} if archive else set())
    for one in archives(past):
        receipt = good(past.delete(f"/api/archives/{one['id']}"))
        assert (receipt["archive_id"], receipt["erased"]["archives"]) == (one["id"], 1)
        assert receipt["pending"] == ["database_files"]
        assert error(past.get(f"/api/archives/{one['id']}"), 404)["code"] == "archive_not_found"
    jobs_done(past)
    assert places(past) == set()
    assert rows_of(engine_of(past.application))["owners"] == 2, "the tenant's, and that of the session that stays"


@pytest.mark.parametrize("past", ["ada", None], indirect=True)
def test_a_restored_session_is_as_it_was_and_stays(past):
    engine = engine_of(past.application)
    ignored = {"imported_at": "", "summary_version": 0}
    before = {**good(past.get("/api/sessions/old")), **ignored}
    said_then = [(one["role"], one["content"], one["created_at"]) for one in stored(past, "old")]
    told = [one["text"] for one in read_all(past, "/api/facts", session_id="old")]
    keep(past)  # a tenant's first document makes its owner
    counts = rows_of(engine)
    assert told == [f"Likes {SENTINEL}"]
    keep(past, days=365)
    (archive,) = archives(past, session_id="old")
    times = archive["first_message_at"], archive["last_message_at"]
    assert (archive["title"], archive["message_count"], *times) == (
        f"On {SENTINEL}",
        2,
        said_then[0][2],
        said_then[1][2],
    )
    document = good(past.get(f"/api/archives/{archive['id']}"))

    done = good(past.post(f"/api/archives/{archive['id']}/restore"))
    assert done["created"]["messages"] == 2 and done["renamed"] == {}
    assert archives(past) == []
    error(past.post(f"/api/archives/{archive['id']}/restore"), 404)
    assert {**good(past.get("/api/sessions/old")), **ignored} == before
    assert [(one["role"], one["content"], one["created_at"]) for one in stored(past, "old")] == said_then
    assert [one["text"] for one in read_all(past, "/api/facts", session_id="old")] == told
    assert good(past.get("/api/sessions/old/summary"))["latest"]["sections"]["topic"] == SENTINEL
    whose = {"session_id": "old", **({"user_id": before["user_id"]} if before["user_id"] else {})}
    for _ in range(2):  # before and after it is indexed
        found = good(past.get("/api/search", query_string={"q": SENTINEL, **whose}))["results"]
        assert [hit["session_id"] for hit in found] == ["old", "old"]
        jobs_done(past, "index")
    now = rows_of(engine)
    assert {name: now[name] for name in ALL} == {name: counts[name] for name in ALL}
    keep(past, days=365)
    assert sessions(past) == {"old", "stays"}, "its age counts from the import"
    imported = good(past.post("/api/import?user_id=eve", json=document))
    assert imported["created"]["messages"] == 2 and imported["renamed"] == {}


def test_erasing_a_person_leaves_no_archive(past):
    talked(past, "bobs", 400, "bob")
    keep(past, days=365)
    (bobs,) = archives(past, user_id="bob")
    assert good(past.get("/api/users/ada"))["archives"] == 1
    exported = good(past.get("/api/users/ada/export"))
    (told,) = exported["archives"]
    assert SENTINEL in past.get(f"/api/archives/{told['id']}").text
    assert [one["id"] for one in exported["sessions"]] == ["stays"]
    receipt = good(past.delete("/api/users/ada"))
    assert (receipt["erased"]["archives"], receipt["pending"]) == (1, [])
    jobs_done(past)
    assert archives(past) == [bobs] and places(past) == set()


# -- killed


def test_each_session_is_taken_out_whole_and_once_whatever_is_killed(client, make_app, monkeypatch):
    monkeypatch.setattr(retention, "BATCH_SESSIONS", 2)
    for number in range(5):
        talked(client, f"old-{number}", 400 + number)
    good(client.put("/api/retention", json={"days": 365}))
    erase_rows, calls = retention.erase_rows, list[int]()

    def killed(engine: Any, tx: Any, row: Any, action: str) -> None:
        calls.append(row.id)
        if len(calls) == 4:
            raise SystemExit
        erase_rows(engine, tx, row, action)

    monkeypatch.setattr(retention, "erase_rows", killed)
    with pytest.raises(SystemExit):
        engine_of(client.application).job_queue.run_due(["retention"])
    assert len(archives(client)) == 3 and sessions(client) == {"old-0", "old-1"}, "those used last"

    again = make_app().test_client()
    with engine_of(again.application).database.write() as tx:  # as its lease runs out
        tx.execute(update(JobRow).values(state="pending", lease_token=None, lease_until=None))
    jobs_done(again, "retention")
    assert sessions(again) == set()
    assert sorted(one["session_id"] for one in archives(again)) == [f"old-{number}" for number in range(5)]


def test_a_policy_that_is_taken_back_counts_for_what_is_left(client, monkeypatch):
    monkeypatch.setattr(retention, "BATCH_SESSIONS", 1)
    for session in ("one", "two"):
        talked(client, session, 400)
    good(client.put("/api/retention", json={"days": 1}))
    job_queue = engine_of(client.application).job_queue
    with engine_of(client.application).database.read() as tx:
        (key,) = tx.scalars(select(JobRow.key).where(JobRow.kind == "retention"))
    job_queue.run_now("retention", key)  # one part
    keep(client)
    assert len(sessions(client)) == len(archives(client)) == 1
