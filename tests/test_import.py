"""Import: Recap's own export comes back as it was, again and again, and nothing of a wrong document is stored."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from marshmallow import Schema, fields
from sqlalchemy import select
from werkzeug.test import TestResponse

import api.users
import memory.transfer.imports
from app import engine_of
from memory.errors import Conflict
from memory.transfer.export import SessionRecord, open_export
from memory.transfer.export_format import (
    ExportDocument,
    ExportedDocument,
    ExportedFact,
    ExportedItem,
    ExportedMessage,
    ExportedRevision,
    ExportedSession,
    ExportedSummary,
    ExportedTurn,
    ExportedVersion,
    to_json,
)
from memory.transfer.import_reader import read_import
from memory.transfer.imports import store_import
from models import (
    Base,
    DocumentRow,
    FactRevisionRow,
    FactRow,
    ItemRow,
    ItemVersionRow,
    MessageRow,
    SessionRow,
    SummaryRow,
    TurnRow,
)
from models.messages import PASSAGE
from models.owners import Caller
from tests.application import derived, rows_of
from tests.http import Body, append, chat, error, good, read_all, said
from tests.http import history as stored
from tests.knowledge import digest_of, fact
from tests.model_server import at, prompts


@pytest.fixture
def talk(model_app, model_server):
    """Ada has talked in two sessions; in the first she moved, and edited the summary."""
    client, job_queue = model_app.test_client(), engine_of(model_app).job_queue
    good(client.post("/api/sessions", json={"session_id": "empty", "user_id": "ada", "title": "Nothing yet"}))
    append(
        client,
        "home",
        [
            said("I live in Tallinn.", name="Ada", external_id="m1", created_at="2026-03-01T10:00:00.123456Z"),
            said("Noted. 🏠", "assistant", created_at="2026-03-01T10:00:05Z"),
        ],
        user_id="ada",
    )
    model_server.mini.queue(digest_of(fact("Lives in Tallinn", 1, "I live in Tallinn", scope="user"), topic="Home"))
    job_queue.run_due(["summary"])
    (old,) = good(client.get("/api/facts?user_id=ada"))["items"]
    chat(client, "I live in Lyon now.", session_id="home", user_id="ada")
    moved = fact("Lives in Lyon", 3, "I live in Lyon now", scope="user", supersedes=[old["id"]])
    model_server.mini.queue(
        digest_of(moved, fact("Moved", 3, "live in Lyon now"), topic="Home", data=["Lives in Lyon"])
    )
    job_queue.run_due(["summary"])
    good(client.put("/api/sessions/home/summary", json={"sections": {"topic": "Where I live"}}))
    append(client, "tea", [said("Which tea?"), said("Sencha.", "assistant")], user_id="ada")
    good(client.patch("/api/sessions/tea", json={"title": "On tea", "system_prompt": "Be brief.", "pinned": True}))
    pinned = good(client.post("/api/facts", json={"user_id": "ada", "text": "Likes tea", "pinned": True}))
    good(client.patch(f"/api/facts/{pinned['id']}", json={"text": "Likes green tea", "importance": 5}))
    item = {"namespace": ["notes", "tea"], "key": "best", "value": {"name": "Sencha", "cups": 2.5}, "user_id": "ada"}
    for _ in range(2):
        good(client.put("/api/store/items", json={**item, "ttl": 1000, "refresh_on_read": True}))
    messages = [one["id"] for one in read_all(client, "/api/sessions/home/messages")]
    for home, sources in (("Tallinn", messages[:1]), ("Lyon", messages[2:3])):
        derived(engine_of(model_app), "ada", "default", {"home": home}, sources)
    return client


def export(client: FlaskClient, user: str = "ada") -> Body:
    return good(client.get(f"/api/users/{user}/export"))


def bring_in(client: FlaskClient, document: Any, user: str = "ada") -> TestResponse:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return client.post(f"/api/import?user_id={user}", data=data, content_type="application/json")


def content(document: Body) -> Body:
    """An export without what is new each time: when it was made, whose it is, what its facts are numbered."""
    places = {item["id"]: place for place, item in enumerate(document["facts"])}
    facts = [
        {**item, "id": places[item["id"]], "superseded_by": places.get(item["superseded_by"])}
        for item in document["facts"]
    ]
    return {**document, "exported_at": None, "user_id": None, "facts": facts}


# -- there and back


def test_what_was_exported_and_erased_comes_back_as_it_was_and_the_talk_goes_on(talk, model_server):
    before = export(talk)
    shown = good(talk.get("/api/users/ada"))
    good(talk.delete("/api/users/ada"))
    done = good(bring_in(talk, before))
    assert done == {
        "format": "recap-export",
        "created": {"sessions": 3, "messages": 6, "summaries": 3, "turns": 1, "facts": 5, "items": 2, "documents": 0},
        "known": {"sessions": 0, "messages": 0, "facts": 0, "items": 0, "documents": 0},
        "renamed": {},
        "unread_times": [],
        "skipped": 0,
        "skipped_items": [],
    }
    assert content(export(talk)) == content(before)
    new = {"created_at": "", "tokens_today": 0}  # a person who comes back has spent nothing
    assert {**good(talk.get("/api/users/ada")), "created_at": ""} == {**shown, **new}
    held = {item["text"]: item for item in read_all(talk, "/api/facts", user_id="ada")}
    assert set(held) == {"Lives in Lyon", "Moved", "Likes green tea"}
    home = read_all(talk, "/api/sessions/home/messages")
    assert held["Lives in Lyon"]["source_message_id"] == home[2]["id"]
    history = good(talk.get(f"/api/facts/{held['Lives in Lyon']['id']}/history"))["items"]
    assert [one["text"] for one in history] == ["Lives in Tallinn", "Lives in Tallinn", "Lives in Lyon"]

    engine_of(talk.application).job_queue.run_due()
    asked = len(prompts(model_server, "mini"))
    chat(talk, "Where do I live?", session_id="home", user_id="ada")
    sent = prompts(model_server)[-1]
    assert next(m["content"] for m in sent if m["role"] == "user") == "Ada: I live in Tallinn."
    assert "Likes green tea" in sent[0]["content"] and "Lives in Lyon" in str(sent)
    engine_of(talk.application).job_queue.run_due(["summary"])
    assert "Where I live" in prompts(model_server, "mini")[-1][1]["content"], "the person's summary is gone on from"
    assert len(prompts(model_server, "mini")) == asked + 1
    assert good(talk.get("/api/sessions/home/summary"))["latest"]["version"] == 4


def test_what_is_exported_can_be_imported(make_app, model_server):
    """Names as long as a path, a profile of many messages, large numbers, and sources in no session."""
    name = "/models/" + "snapshots/" * 20 + "model.gguf"
    client = make_app(**at(model_server, openai_model=name)).test_client()
    engine = engine_of(client.application)
    talked = [append(client, "home", [said(f"{part} {n}") for n in range(100)], user_id="ada") for part in range(11)]
    for part in talked:
        derived(engine, "ada", "default", {"home": "Tallinn"}, part["message_ids"])
    large = {"role": "user", "content": "hi", "extra": {"number": 2**63}}
    refusal = client.post("/api/sessions/home/messages", json={"user_id": "ada", "messages": [large]})
    assert error(refusal, 422)["param"] == "messages.0.extra"
    good(client.post("/api/documents", json={"user_id": "ada", "text": "Miso the cat eats only fish."}))
    reply = chat(client, "What does Miso the cat eat?", session_id="home", user_id="ada")
    with engine.database.read() as tx:
        hits = tx.scalars(select(MessageRow.id).where(MessageRow.role == PASSAGE)).all()
    mark = {"user_id": "ada", "session_id": "home", "message_id": reply["message_id"], "hits": hits}
    good(client.post("/api/recall/unhelpful", json=mark))

    pieces = to_json(open_export(engine, Caller("default", "ada")))
    begun = next(pieces)
    newer = append(client, "home", [said("I live in Lyon now.")], user_id="ada")["message_ids"]
    derived(engine, "ada", "default", {"home": "Lyon"}, newer)
    before = json.loads(begun + "".join(pieces))
    (profile,) = (item for item in before["items"] if item["value"])
    assert len(profile["sources"]) == 1100, "none that is not exported"
    (turn,) = before["sessions"][0]["turns"]
    assert name.startswith(turn["model"]) and len(turn["model"]) == 128
    turn["model"] = name
    good(client.delete("/api/users/ada"))
    good(bring_in(client, before))
    after = export(client)
    turn["model"] = name[:128]
    for exported in (before, after):  # whose document gets another id
        sources = [source for item in exported["items"] for source in item["sources"]]
        (passage,) = (source for source in sources if source["session_id"] == exported["documents"][0]["id"])
        passage["session_id"] = exported["documents"][0]["id"] = ""
        for item in exported["items"]:
            item["sources"].sort(key=str)
    assert content(after) == content(before)


def test_items_that_are_there_stay_and_those_of_erased_messages_do_not_come_back(talk):
    before = export(talk)
    assert [(len(one["sources"]), len(one["versions"])) for one in before["items"]] == [(0, 0), (2, 2)]
    first = read_all(talk, "/api/sessions/home/messages")[0]["id"]
    assert good(talk.delete(f"/api/sessions/home/messages/{first}"))["erased"]["items"] == 1
    item = {"namespace": ["notes", "tea"], "key": "best", "value": "Oolong", "user_id": "ada"}
    good(talk.put("/api/store/items", json=item))
    done = good(bring_in(talk, before))
    assert (done["created"]["items"], done["known"]["items"]) == (0, 2)
    assert [one["value"] for one in export(talk)["items"]] == ["Oolong"]


def test_what_was_exported_before_its_reply_came_gets_the_reply(talk, model_server):
    during: list[Body] = []
    model_server.main.queue(lambda _: during.append(export(talk)) or "Lyon.")
    chat(talk, "Where do I live?", session_id="home", user_id="ada")
    later = export(talk)
    good(talk.delete("/api/users/ada"))
    for document in (*during, later):
        good(bring_in(talk, document))
    assert content(export(talk)) == content(later)


def test_an_item_that_was_imported_expires(bench):
    item = {"namespace": ["notes"], "key": "k", "value": 1, "ttl": 10, "user_id": "ada"}
    good(bench.client.put("/api/store/items", json=item))
    before = export(bench.client)
    good(bench.client.delete("/api/users/ada"))
    good(bring_in(bench.client, before))
    bench.clock.tick(600)
    bench.engine.job_queue.run_due(["expire"])
    assert rows_of(bench.engine)["items"] == 0


def test_only_what_is_missing_is_added(talk):
    before = export(talk)
    chat(talk, "And another thing.", session_id="tea", user_id="ada")
    longer = export(talk)
    good(talk.delete("/api/users/ada"))
    good(bring_in(talk, before))
    forgotten = read_all(talk, "/api/facts", user_id="ada")[0]["id"]
    assert talk.delete(f"/api/facts/{forgotten}").status_code == 200
    done = good(bring_in(talk, longer))
    created = {name: count for name, count in done["created"].items() if count}
    assert created == {"messages": 2, "turns": 1, "facts": 2}
    assert stored(talk, "tea")[-2] == ("user", "And another thing.")
    assert len(export(talk)["sessions"][2]["turns"]) == 1
    done = good(bring_in(talk, before))  # and what went on meanwhile stays
    assert done["created"]["messages"] == 0 and len(stored(talk, "tea")) == 4


def test_anothers_sessions_of_the_same_ids_stay_as_they_are(talk):
    before = export(talk)
    for _ in range(2):
        done = good(bring_in(talk, before, "bob"))
        assert done["renamed"] == {}
    assert done["created"]["sessions"] == done["created"]["messages"] == 0
    assert content(export(talk)) == content(export(talk, "bob")) == content(before)
    good(talk.delete("/api/users/ada"))
    assert content(export(talk, "bob")) == content(before)


def test_another_conversation_of_the_same_id_is_left_alone(talk):
    before = export(talk)
    good(talk.delete("/api/users/ada"))
    append(talk, "tea", [said("Something else.")], user_id="ada")
    append(talk, "home", [said("I live in Tallinn.", created_at="2026-03-01T10:00:00.123456Z")])  # nobody's
    assert good(bring_in(talk, before))["renamed"] == {"tea": "tea-2"}
    assert stored(talk, "tea") == [("user", "Something else.")]
    assert stored(talk, "home") == [("user", "I live in Tallinn.")]


def test_a_session_that_went_another_way_meanwhile_is_left_alone(talk):
    first = chat(talk, "I have a cat.", session_id="pets", user_id="ada")
    before = export(talk)
    chat(talk, "I have a dog.", session_id="pets", user_id="ada", replaces=first["user_message_id"])
    assert "I have a cat." not in json.dumps(export(talk)), "replaced messages are left out"
    for created in (2, 0):
        done = good(bring_in(talk, before))
        assert (done["renamed"], done["created"]["messages"]) == ({"pets": "pets-2"}, created)
    assert stored(talk, "pets")[0] == ("user", "I have a dog.")
    assert stored(talk, "pets-2")[0] == ("user", "I have a cat.")


def test_a_large_export_comes_in_in_batches(talk, monkeypatch):
    monkeypatch.setattr(memory.transfer.imports, "BATCH_ROWS", 7)
    append(talk, "long", [said(f"number {number}", external_id=f"n{number}") for number in range(50)], user_id="ada")
    for number in range(20):
        good(talk.post("/api/facts", json={"user_id": "ada", "text": f"fact {number}", "session_id": "long"}))
    before = export(talk)
    good(talk.delete("/api/users/ada"))
    as_another_program_writes_it = json.dumps(before, sort_keys=True, indent=2, ensure_ascii=False).encode("utf-8-sig")
    done = good(bring_in(talk, as_another_program_writes_it))
    assert (done["created"]["messages"], done["created"]["facts"]) == (56, 25)
    assert content(export(talk)) == content(before)
    assert not any(session["busy"] for session in read_all(talk, "/api/sessions"))
    chat(talk, "Go on.", session_id="long", user_id="ada")


def test_a_document_may_be_larger_than_other_bodies_but_not_of_any_size(app, client, monkeypatch):
    app.config["MAX_CONTENT_LENGTH"] = 1000
    messages = [a_message(content="x" * 90) for _ in range(20)]
    refused = client.post("/api/sessions/s/messages", json={"messages": messages})
    assert error(refused, 413)["code"] == "body_too_large"
    assert good(bring_in(client, a_document(a_session(messages=messages))))["created"]["messages"] == 20
    monkeypatch.setattr(api.users, "IMPORT_BYTES", 100)
    assert error(bring_in(client, a_document(a_session())), 413)["code"] == "body_too_large"


# -- while something else goes on


def test_a_session_that_stays_busy_ends_the_import(talk, model_server, monkeypatch):
    before = export(talk)
    monkeypatch.setattr("memory.leases.WAIT_SECONDS", 0.05)
    answers: list[TestResponse] = []

    def meanwhile_imported(_: Body) -> str:
        answers.append(bring_in(talk.application.test_client(), before))
        return "Lyon."

    model_server.main.queue(meanwhile_imported)
    chat(talk, "Where do I live?", session_id="home", user_id="ada")
    assert error(answers[0], 409)["code"] == "session_busy"
    assert int(answers[0].headers["Retry-After"]) > 0
    assert good(bring_in(talk, before))["created"]["messages"] == 0


@pytest.mark.parametrize("sessions", [1, 2])
def test_a_person_erased_during_an_import_stays_erased(app, client, sessions):
    """After the first session, with another or with the facts to come."""
    whole = a_document(*(a_session(id=f"s{number}") for number in range(sessions)), facts=[a_fact()])
    document = read_import(io.BytesIO(json.dumps(whole).encode()), datetime.now(UTC))

    def erased_after_the_first() -> Iterator[SessionRecord]:
        first, *others = document.sessions
        yield first
        assert good(client.delete("/api/users/ada"))["erased"]["messages"] == 1
        yield from others

    with pytest.raises(Conflict, match="erased during the import") as lost:
        store_import(engine_of(app), Caller("default", "ada"), replace(document, sessions=erased_after_the_first()))
    assert lost.value.code == "import_lost"
    assert set(rows_of(engine_of(app)).values()) == {0}


def test_no_fact_is_superseded_by_itself_and_a_time_at_the_end_of_the_calendar_is_no_fault(client):
    good(client.put("/api/rules", json={"user_id": "ada", "categories": [{"name": "other", "days": 36_500}]}))
    over, far = {"valid_to": "2026-03-02T10:00:00Z"}, {"valid_from": "9999-12-30T00:00:00Z"}
    circle = [a_fact(id=at, text=f"Fact {at}", superseded_by=next, **over) for at, next in ((1, 2), (2, 3), (3, 2))]
    good(bring_in(client, a_document(facts=[*circle, a_fact(id=4, text="Far", **far)])))
    facts = read_all(client, "/api/facts", user_id="ada", as_of="2026-03-01T12:00:00Z")
    places = {one["id"]: one["text"] for one in facts}
    linked = {one["text"]: places.get(one["superseded_by"]) for one in facts}
    assert linked == {"Fact 1": "Fact 2", "Fact 2": "Fact 3", "Fact 3": None}
    for fact_id in places:
        good(client.delete(f"/api/facts/{fact_id}?restore=true"))


# -- what can't be imported


def a_message(**changes: Any) -> Body:
    return {"role": "user", "content": "hello", "created_at": "2026-03-01T10:00:00Z", **changes}


def a_session(**changes: Any) -> Body:
    times = {"created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:00:00Z"}
    return {"id": "s", "title": "T", "messages": [a_message()], **times, **changes}


def a_fact(**changes: Any) -> Body:
    times = {"valid_from": "2026-03-01T10:00:00Z", "created_at": "2026-03-01T10:00:00Z"}
    return {"id": 1, "text": "Likes tea", "category": "other", "importance": 3, "scope": "user", **times, **changes}


def a_summary(**changes: Any) -> Body:
    made = {"tokens": 1, "author": "model", "created_at": "2026-03-01T10:00:00Z"}
    return {"version": 1, "sections": {"topic": "Tea"}, "through": 1, **made, **changes}


def a_turn(**changes: Any) -> Body:
    return {"user_position": 1, "started_at": "2026-03-01T10:00:00Z", **changes}


def a_document(*sessions: Any, facts: Any = (), **changes: Any) -> Body:
    return {"format": "recap-export", "version": 1, "sessions": list(sessions), "facts": list(facts), **changes}


THINKING = {
    "<think>The zebra asks.</think>\nIt is red.": "It is red.",
    "<think>Only the zebra thinks": "…",
    "Write `<think>` before a thought.": "Write `<think>` before a thought.",
}


def test_an_import_brings_no_thoughts_and_a_second_one_changes_nothing(client):
    thought = "<think>zebra</think>"
    excluded = [{"option": f"{thought}Green", "reason": thought}, {"option": thought}]
    sections = {"topic": f"{thought}Colours", "data": [f"{thought}Red", thought], "excluded": excluded}
    replies = [a_message(role="assistant", content=reply) for reply in THINKING]
    document = a_document(a_session(messages=replies, summaries=[a_summary(sections=sections)]))
    for created in (len(THINKING), 0):
        assert good(bring_in(client, document))["created"]["messages"] == created
    assert [words for _, words in stored(client, "s")] == list(THINKING.values())
    kept = export(client)["sessions"][0]["summaries"][0]["sections"]
    assert (kept["topic"], kept["data"], kept["excluded"]) == ("Colours", ["Red"], [{"option": "Green", "reason": ""}])


def in_message(**changes: Any) -> Body:
    return a_document(a_session(messages=[a_message(), a_message(**changes)]))


MESSAGE = "sessions.0.messages.1"
A_VERSION = {"version": 1, "value": 1, "author": "model", "created_at": "2026-03-01T10:00:00Z"}


def an_item(**changes: Any) -> Body:
    times = {"created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:00:00Z"}
    return {"namespace": ["a"], "key": "k", "value": 1, "version": 1, **times, **changes}


WRONG: tuple[tuple[Any, str], ...] = (
    (a_document(1), "sessions.0"),
    (a_document(a_session(), a_session(id="a b")), "sessions.1.id"),
    (a_document(a_session(), a_session()), "sessions.1.id"),
    (in_message(role="robot"), f"{MESSAGE}.role"),
    (in_message(content="nul\x00"), f"{MESSAGE}.content"),
    (in_message(extra=[]), f"{MESSAGE}.extra"),
    (in_message(extra={"tool_calls": [1]}), f"{MESSAGE}.extra.tool_calls.0"),
    (in_message(extra={"tool_calls": [{"function": "clock"}]}), f"{MESSAGE}.extra.tool_calls.0.function"),
    (in_message(extra={"attachments": [1]}), f"{MESSAGE}.extra.attachments.0"),
    (in_message(extra={"other": ["nul\x00"]}), f"{MESSAGE}.extra"),
    (a_document(a_session(messages={"a": 1})), "sessions.0.messages"),
    (a_document(a_session(created_at="yesterday")), "sessions.0.created_at"),
    (a_document(a_session(summaries=[a_summary(), a_summary()])), "sessions.0.summaries.1.version"),
    (a_document(a_session(summaries=[a_summary(sections={"topic": 1})])), "sessions.0.summaries.0.sections.topic"),
    (a_document(a_session(messages=[a_message(external_id="a")] * 2)), f"{MESSAGE}.external_id"),
    (a_document(a_session(turns=[a_turn(), a_turn()])), "sessions.0.turns.1.user_position"),
    (a_document(facts=[a_fact(importance=9)]), "facts.0.importance"),
    (a_document(facts=[a_fact(scope="session")]), "facts.0.session_id"),
    (a_document(facts=[a_fact(session_id="none")]), "facts.0"),
    (a_document(a_session(), facts=[a_fact(session_id="s", source_position=2)]), "facts.0"),
    (a_document(items=[an_item(namespace=["a.b"])]), "items.0.namespace"),
    (a_document(items=[an_item(value=["nul\x00"])]), "items.0.value"),
    (a_document(items=[an_item(versions=[A_VERSION] * 2)]), "items.0.versions.1.version"),
)


def test_what_is_wrong_is_named_and_nothing_is_stored(shared):
    for document, param in WRONG:
        refused(shared, document, "invalid_import", param)
    for document in ({}, {"format": "other-export", "version": 1}, [{"id": "s"}], [1]):
        refused(shared, document, "unknown_format", None)
    refused(shared, a_document(version=2), "export_version_unknown", "version")
    for data in (b"", json.dumps(a_document(a_session(), a_session())).encode()[:-40]):
        refused(shared, data, "invalid_json", None)


def refused(shared: FlaskClient, document: Any, code: str, param: str | None) -> None:
    found = error(bring_in(shared, document), 400 if code == "invalid_json" else 422)
    assert (found["code"], found.get("param")) == (code, param), document
    assert "Nothing was stored" in found["message"]
    assert set(rows_of(engine_of(shared.application)).values()) == {0}


def test_somebody_has_to_be_named(shared):
    for query in ("", "?user_id=", "?userid=ada"):
        answer = shared.post(f"/api/import{query}", json=a_document())
        assert error(answer, 422)["code"] == "invalid_fields"


KEPT_OUT: dict[type[Schema], tuple[type[Base], str]] = {  # ids, what is worked out again, and states of a server
    ExportedSession: (
        SessionRow,
        "tenant public_id owner_id is_document recognised_type imported_at opening message_count tokens timezone "
        "summary_version summary_through head_version head_through head_tokens head_facts head_type head_at "
        "lease_token lease_until stop_token",
    ),
    ExportedMessage: (MessageRow, "id session_id owner_id branch position tokens indexed_in replaced_after"),
    ExportedSummary: (SummaryRow, "id session_id branch"),
    ExportedTurn: (
        TurnRow,
        "id tenant session_id user_message_id reply_message_id idempotency_key fingerprint lease_token so_far "
        "completion_id memory",
    ),
    ExportedFact: (FactRow, "owner_id source_message_id replaces"),
    ExportedRevision: (FactRevisionRow, "id fact_id"),
    ExportedItem: (ItemRow, "id owner_id index_paths ttl_minutes"),
    ExportedVersion: (ItemVersionRow, "id item_id"),
    ExportedDocument: (DocumentRow, "session_id owner_id"),
}


def test_every_column_is_exported_or_is_kept_out_on_purpose():
    for schema, (row, kept_out) in KEPT_OUT.items():
        exported = {field.attribute or name for name, field in schema().fields.items()}
        missing = set(row.__table__.c.keys()) - exported
        assert missing == set(kept_out.split()), f"export these columns of {row.__name__}, or name them in KEPT_OUT"


def test_every_field_of_the_document_is_described():
    described = (Path(api.users.__file__).parent.parent / "docs" / "export.md").read_text("utf-8")

    def names(schema: Schema) -> Iterator[str]:
        for name, field in schema.fields.items():
            yield field.data_key or name
            inner = field.inner if isinstance(field, fields.List) else field
            if isinstance(inner, fields.Nested):
                yield from names(inner.schema)

    missing = {name for name in names(ExportDocument()) if f"`{name}`" not in described}
    assert missing == set(), "fields that docs/export.md does not describe"
