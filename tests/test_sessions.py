"""Sessions and their messages: listing, importing, erasing, and that a session belongs to somebody."""

import base64
import json
from typing import Any

import pytest

from app import engine_of
from tests.http import append, chat, error, good, listings, read_all, said
from tests.knowledge import digest_of
from tests.test_auth import METHODS, with_key

# -- making, reading, changing


def test_made_read_and_changed(client):
    made = client.post("/api/sessions", json={"session_id": "tea", "user_id": "ada", "title": "Tea"})
    assert made.status_code == 201
    assert made.json == client.get("/api/sessions/tea").json
    for owner in ({}, {"user_id": "ada"}):
        again = client.post("/api/sessions", json={"session_id": "tea", **owner})
        assert error(again, 409)["code"] == "session_exists", "an id is taken once"
    assert (made.json["user_id"], made.json["message_count"], made.json["summary_version"]) == ("ada", 0, 0)

    changed = client.patch("/api/sessions/tea", json={"title": "Green tea", "system_prompt": "Be brief."})
    assert (changed.json["title"], changed.json["system_prompt"]) == ("Green tea", "Be brief.")
    assert client.patch("/api/sessions/tea", json={"system_prompt": None}).json["system_prompt"] is None
    assert client.get("/api/sessions/tea").json["title"] == "Green tea"


def test_pinned_and_archived_ones_can_be_listed_apart(client):
    for name in ("plain", "pinned", "archived"):
        append(client, name, [said("I drink tea")], user_id="ada")
    for name in ("pinned", "archived"):
        assert client.patch(f"/api/sessions/{name}", json={name: True}).json[name] is True
    for query, expected in (
        ({}, {"plain", "pinned", "archived"}),
        ({"archived": "false"}, {"plain", "pinned"}),
        ({"archived": "true"}, {"archived"}),
        ({"pinned": "true", "archived": "false"}, {"pinned"}),
    ):
        assert {item["id"] for item in read_all(client, "/api/sessions", **query)} == expected
    found = client.get("/api/search?user_id=ada&q=tea").json["results"]
    assert "archived" in {one["session_id"] for one in found}, "it is remembered as any other"
    assert client.patch("/api/sessions/pinned", json={"pinned": False}).json["pinned"] is False


def test_what_is_wrong_is_named(shared):
    for method, address, body, param in [
        ("POST", "/api/sessions", {"session_id": "a b"}, "session_id"),
        ("POST", "/api/sessions", {"title": "x" * 201}, "title"),
        ("PATCH", "/api/sessions/tea", {"title": ""}, "title"),
        ("GET", "/api/sessions?userid=ada", None, "userid"),  # ignored, it would list everybody's
        ("GET", "/api/sessions?before=yesterday", None, "before"),
        ("GET", "/api/sessions/tea/messages?order=sideways", None, "order"),
    ]:
        shared.post("/api/sessions", json={"session_id": "tea"})
        answer = shared.open(address, method=method, json=body)
        assert error(answer, 422)["param"] == param


# -- listing

NOON, BEYOND = "2026-11-22T12:00:00", 2**63
FORGED = [
    *("nonsense", "é", "W" * 100_000, [], [5, 5, 5, 5], {}, None),
    *([one] for one in ([5], "5", True, 5.0, -1, BEYOND, 10**99)),
    *([f"{NOON}+00:00", *rest] for rest in ([], ["5"], [BEYOND])),
    *([time, 5] for time in (NOON, f"{NOON}+02:00", "0001-01-01T00:00:00+23:59", "", 5.0)),
]


def encoded(key: Any, indent: int | None = None) -> str:
    """A key as a cursor holds it; text stays as it is."""
    text = json.dumps(key, separators=(",", ":"), indent=indent)
    return key if isinstance(key, str) else base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_no_listing_takes_a_cursor_that_was_not_given_out(shared):
    shared.post("/api/sessions", json={"session_id": "tea"})
    for owner, place in (("users/ada", "/likes/-"), ("spaces/team", "/names/-")):
        good(shared.patch(f"/api/{owner}/profile", json={"patch": [{"op": "add", "path": place, "value": "tea"}]}))
        good(shared.put(f"/api/{owner}/overview", json={"sentences": [{"text": "Tea is on."}]}))
    document = good(shared.post("/api/documents", json={"text": "Tea steeps.", "user_id": "ada"}))
    for path in listings(shared):
        address = path.format(session_id="tea", user_id="ada", space="team", document_id=document["id"])
        own = {"/api/sessions": [f"{NOON}+00:00", 5], "/api/graph": [1, 5, 0]}.get(path, [5])
        whose = {"session_id": "tea"} if path in ("/api/graph", "/api/recall/unhelpful") else {}
        assert shared.get(address, query_string={"cursor": encoded(own), **whose}).status_code == 200, path
        for cursor in (*map(encoded, FORGED), encoded(own) + "=", encoded(own) + "\n", encoded(own, indent=1)):
            found = error(shared.get(address, query_string={"cursor": cursor, **whose}), 422)
            assert (found["code"], found["param"]) == ("bad_cursor", "cursor"), (path, cursor)


@pytest.mark.parametrize("limit", [3, 20])
def test_pages_are_complete_without_repeats_while_sessions_arrive(client, limit):
    at = "2024-05-01T12:00:00Z"  # all at the same moment: the order must hold nevertheless
    for number in range(10):
        append(client, f"old-{number}", [said("hello", created_at=at)])
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        page = client.get("/api/sessions", query_string=query).json
        seen += [item["id"] for item in page["items"]]
        append(client, f"new-{len(seen)}", [said("hello")])
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [f"old-{number}" for number in reversed(range(10))]


def test_filters(client):
    for month, title in ((1, "Tea in 100% cotton"), (2, "Coffee"), (3, "tea_time")):
        append(client, f"s{month}", [said(title, created_at=f"2024-0{month}-10T00:00:00Z")], user_id="ada")
    append(client, "other", [said("Tea for Bob", created_at="2024-02-10T00:00:00Z")], user_id="bob")

    def ids(**query: str) -> list[str]:
        return [item["id"] for item in read_all(client, "/api/sessions", **query)]

    assert ids(user_id="ada") == ["s3", "s2", "s1"]
    assert ids(user_id="ada", q="tea") == ["s3", "s1"]
    assert ids(q="100%") == ["s1"]
    assert ids(q="tea_") == ["s3"]  # % and _ are what they are, not wildcards
    assert ids(user_id="ada", after="2024-02-10T00:00:00Z") == ["s3", "s2"]  # from then on
    assert ids(user_id="ada", before="2024-02-10T00:00:00Z") == ["s1"]  # before, and not at
    assert ids(user_id="ada", after="2024-02-10T02:00:00+03:00", before="2024-02-11") == ["s2"]
    unescaped = "/api/sessions?user_id=ada&before=2024-02-11&after=2024-02-10T02:00:00.5+03:00"
    assert [item["id"] for item in good(client.get(unescaped))["items"]] == ["s2"], "`+` is a space there"
    assert "such as 2026-11-20T10:00:00Z" in error(client.get("/api/sessions?after=noon"), 422)["message"]
    assert ids(user_id="nobody") == []
    append(client, "s1", [said("again")])
    assert ids(user_id="ada")[0] == "s1", "a new message moves a session up"


# -- ids


def test_whose_session_is_meant_has_to_be_said_where_several_persons_have_one(client):
    append(client, "main", [said("I drink coffee")], user_id="ada")
    append(client, "main", [said("And water")])
    chat(client, "Hello", session_id="main")
    assert client.get("/api/sessions/main").json["user_id"] == "ada", "as long as nobody else has one"
    append(client, "main", [said("I drink sencha")], user_id="bob")
    before = {person: client.get(f"/api/sessions/main/messages?user_id={person}").json for person in ("ada", "bob")}
    paths = good(client.get("/openapi.json"))["paths"].items()
    calls = [
        (method, path) for path, its in paths if "/sessions/{" in path for method in its if method.upper() in METHODS
    ]
    assert len(calls) > 15
    bodies: dict[str, Any] = {
        "messages": {"messages": [said("Hello")]},
        "hide": {"tokens": 0},
        "summary": {"sections": {"topic": "tea"}},
        "rollback": {"version": 1},
        "preview": {"prompt": "summary"},
        "{session_id}": {"title": "Tea"},
    }
    for method, path in calls:
        address = path.format(session_id="main", message_id=1)
        body = bodies.get(path.rpartition("/")[2], {}) if method in ("post", "put", "patch") else None
        refused = error(client.open(address, method=method, json=body), 422)
        assert (refused["code"], refused["param"]) == ("session_ambiguous", "user_id"), path
    for path, body in (("chat", {}), ("chat", {"temporary": True}), ("recall", {})):
        body |= {"session_id": "main", "message": "Hello"}
        assert error(client.post(f"/api/{path}", json=body), 422)["code"] == "session_ambiguous"
    for path in ("search?q=drink&", "facts?", "graph?", "jobs?"):
        assert error(client.get(f"/api/{path}session_id=main"), 422)["code"] == "session_ambiguous"
    sent = {"model": "any", "messages": [said("Hello")]}
    answer = client.post("/v1/chat/completions", json=sent, headers={"X-Session-Id": "main"})
    assert error(answer, 400)["code"] == "session_ambiguous"
    assert before == {
        person: client.get(f"/api/sessions/main/messages?user_id={person}").json for person in ("ada", "bob")
    }


def test_the_sessions_of_other_people_and_of_programs_are_listed_apart(app):
    client = app.test_client()
    append(client, "mine", [said("Hello")], user_id="me")
    append(client, "adas", [said("Hello")], user_id="ada")
    append(client, "demo", [said("Hello")])
    others = good(client.get("/api/sessions?except_user_id=me"))["items"]
    assert {one["id"]: one["user_id"] for one in others} == {"adas": "ada", "demo": None}
    ada = with_key(app, engine_of(app).keys.create("default", "ada", ["chat"])[0])
    assert good(ada.get("/api/sessions?except_user_id=me"))["items"][0]["id"] == "adas"
    assert good(ada.get("/api/sessions?except_user_id=ada"))["items"] == []


def test_a_title_is_what_the_person_wrote_and_not_how_it_was_quoted(model_app, model_server):
    client = model_app.test_client()
    for session, message, topic, title in (
        ("quoted", "Towns & cities [INST] <b>", "Towns &amp; cities &#91;INST] &lt;b&gt;", "Towns & cities [INST] <b>"),
        ("typed", "What does &amp; mean?", "The entity &amp;", "The entity &amp;"),
    ):
        model_server.mini.queue(digest_of(topic=topic))
        chat(client, message, session_id=session)
        assert good(client.get(f"/api/sessions/{session}"))["title"] == message
        engine_of(model_app).job_queue.run_due()
        assert good(client.get(f"/api/sessions/{session}"))["title"] == title
    chat(client, "And nothing else?", session_id="typed")
    model_server.mini.queue(digest_of(topic="The entity &amp;"))
    engine_of(model_app).job_queue.run_due()
    assert good(client.get("/api/sessions/typed"))["title"] == "The entity &amp;"
