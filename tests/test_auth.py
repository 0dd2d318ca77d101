"""API keys: who may call, whose data they see, and that no key is ever shown."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import services_of
from config import Settings
from tests.conftest import MakeApp
from tests.resources import append, error, good, read_all, said

ADA, ADAS_SECOND, BOB = "key-of-acme-0123456789", "another-of-acme-0123456789", "key-of-globex=0123456789"
KEYS = f"acme:{ADA}, globex:{BOB},acme:{ADAS_SECOND}"
OPEN = {"/", "/openapi.json", "/health/live", "/health/ready", "/docs/"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

# What is sent in a body where one is needed, so that only the id in the path can be wrong.
BODIES: dict[str, Any] = {
    "PATCH /api/sessions/{session_id}": {"title": "Mine now"},
    "PUT /api/sessions/{session_id}/summary": {"sections": {"topic": "Mine now"}},
    "POST /api/sessions/{session_id}/summary/rollback": {"version": 1},
    "POST /api/sessions/{session_id}/summary/preview": {"prompt": "summary"},
    "PATCH /api/facts/{fact_id}": {"text": "Mine now"},
    "PUT /api/prompts/{name}": {"text": "Mine now"},
}
# These make what is not there, in the caller's own tenant, where the same id means something else.
MAKING = {"POST /api/sessions/{session_id}/messages", "PUT /api/prompts/{name}"}


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    settings = Settings.from_env({"RECAP_API_KEYS": KEYS}, None)
    return make_app(api_keys=settings.api_keys)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def ada(app: Flask) -> FlaskClient:
    return with_key(app, ADA)


@pytest.fixture
def bob(app: Flask) -> FlaskClient:
    return with_key(app, BOB)


def with_key(app: Flask, key: str) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    return client


def routes(app: Flask) -> Iterator[tuple[str, str]]:
    """Every method and address of the application, with something for what varies."""
    for rule in app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) & set(METHODS)):
            values = {name: 1 if "int" in str(rule) else "x" for name in rule.arguments}
            built = rule.build(values, append_unknown=False)
            assert built is not None, rule
            yield method, built[1]


# -- the door


def test_without_a_key_every_address_is_closed_but_the_open_ones(app: Flask, client: FlaskClient) -> None:
    closed, open_ = set(), set()
    for method, address in routes(app):
        answer = client.open(address, method=method, json={} if method != "GET" else None)
        if answer.status_code == 401:
            own = {"/v1/": "invalid_api_key", "/met": "metrics_key_missing"}  # OpenAI's word for it; of all tenants
            assert error(answer, 401)["code"] == own.get(address[:4], "api_key_missing")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert answer.headers["X-Request-ID"]
            closed.add(address)
        else:
            open_.add(address)
        answer.close()
    assert all(address.startswith(("/api/", "/v1/", "/metrics")) for address in closed), closed
    assert len(closed) > 15
    assert {address for address in open_ if not address.startswith(("/static/", "/docs"))} == OPEN - {"/docs/"}


@pytest.mark.parametrize("address", sorted(OPEN))
def test_the_open_ones_answer_without_a_key(client: FlaskClient, address: str) -> None:
    with client.get(address) as answer:
        assert answer.status_code == 200


@pytest.mark.parametrize(
    "address", ["/api/nothing", "/nothing", "//api/jobs", "/apix", "/healthx", "/docsx", "/openapi.jsonx", "/API/jobs"]
)
def test_what_is_not_known_to_be_open_is_closed(client: FlaskClient, address: str) -> None:
    assert error(client.get(address), 401)["code"] == "api_key_missing"


@pytest.mark.parametrize("address", ["/static/../api/jobs", "/health/../api/jobs", "/docs/../api/jobs"])
def test_no_way_leads_through_an_open_address(client: FlaskClient, address: str) -> None:
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "api_key_missing"),
        ("Bearer", "api_key_missing"),
        ("Bearer  ", "api_key_missing"),
        (f"Basic {ADA}", "api_key_missing"),
        (ADA, "api_key_missing"),
        (f"Bearer {ADA}x", "api_key_unknown"),
        (f"Bearer {ADA[:-1]}", "api_key_unknown"),
        (f"Bearer {ADA.upper()}", "api_key_unknown"),
        (f"Bearer acme:{ADA}", "api_key_unknown"),
        (f"Bearer {ADA} {BOB}", "api_key_unknown"),
        ("Bearer clé-à-molette-0123", "api_key_unknown"),
    ],
)
def test_a_key_that_does_not_open(client: FlaskClient, header: str, code: str) -> None:
    answer = client.get("/api/sessions", headers={"Authorization": header})
    found = error(answer, 401)
    assert (found["code"], found["type"]) == (code, "authentication_error")
    assert ADA[:-1] not in answer.text and BOB not in answer.text


@pytest.mark.parametrize("key", [ADA, ADAS_SECOND, BOB])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_each_key_opens(client: FlaskClient, key: str, scheme: str) -> None:
    assert client.get("/api/sessions", headers={"Authorization": f"{scheme} {key}"}).status_code == 200


def test_who_has_no_key_learns_nothing_of_the_body(client: FlaskClient) -> None:
    for body in (b"not json", b"{}"):
        answer = client.post("/api/chat", data=body, content_type="text/plain")
        assert error(answer, 401)["code"] == "api_key_missing"


def test_without_keys_everyone_is_the_default_tenant(make_app: MakeApp) -> None:
    append(make_app().test_client(), "tea", [said("hello")])
    keyed = make_app(api_keys=Settings.from_env({"RECAP_API_KEYS": f"default:{ADA}"}, None).api_keys)
    assert with_key(keyed, ADA).get("/api/sessions/tea").status_code == 200


# -- whose data


def fill(client: FlaskClient, app: Flask) -> dict[str, Any]:
    """One of everything, for the user `ada`; what its addresses need."""
    append(client, "tea", [said("I like sencha."), said("Noted.", "assistant")], user_id="ada")
    good(client.put("/api/sessions/tea/summary", json={"sections": {"topic": "Sencha"}}))
    fact = good(client.post("/api/facts", json={"user_id": "ada", "text": "Likes sencha"}))
    good(client.put("/api/prompts/brief", json={"text": "Be brief about sencha."}))
    turn = good(client.post("/api/chat", json={"session_id": "tea", "message": "What tea do I like?"}))
    append(client, "alone", [said("Nobody's sencha.")])
    alone = good(client.post("/api/facts", json={"session_id": "alone", "text": "Nobody's sencha"}))
    good(client.delete(f"/api/facts/{alone['id']}"))  # leaves a job that belongs to nobody
    jobs = read_all(client, "/api/jobs")
    assert "scrub" in {job["kind"] for job in jobs}
    return {
        "session_id": ["tea"],
        "fact_id": [fact["id"]],
        "job_id": [job["id"] for job in jobs],
        "message_id": [turn["user_message_id"]],
        "name": ["brief"],
        "user_id": ["ada"],
    }


def calls_with_ids(client: FlaskClient) -> list[tuple[str, str]]:
    paths = good(client.get("/openapi.json"))["paths"]
    return [
        (method.upper(), path)
        for path, calls in paths.items()
        for method in calls
        if method.upper() in METHODS and path.startswith("/api/") and "{" in path
    ]


def test_anothers_ids_look_like_none(app: Flask, ada: FlaskClient, bob: FlaskClient) -> None:
    ids = fill(ada, app)
    before = good(ada.get("/api/users/ada/export"))
    walked = 0
    for method, path in calls_with_ids(bob):
        call = f"{method} {path}"
        if call in MAKING:
            continue
        (name, *more) = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
        for value in ids[name]:
            values = {name: value, **{other: ids[other][0] for other in more}}
            answer = bob.open(path.format(**values), method=method, json=BODIES.get(call))
            none = bob.open(path.format(**{**values, name: 999_999}), method=method, json=BODIES.get(call))
            assert error(answer, 404)["code"] == error(none, 404)["code"], call
            walked += 1
    assert walked > 15
    after = good(ada.get("/api/users/ada/export"))
    assert {**after, "exported_at": ""} == {**before, "exported_at": ""}
    assert "brief" in {prompt["name"] for prompt in good(ada.get("/api/prompts"))["items"]}


def test_nothing_of_another_tenant_is_listed_found_or_touched(app: Flask, ada: FlaskClient, bob: FlaskClient) -> None:
    ids = fill(ada, app)
    listings = [
        f"/api/{listing}{query}"
        for listing in ("sessions", "facts", "jobs", "prompts")
        for query in ("", "?user_id=ada")
        if (listing, query) != ("prompts", "?user_id=ada")
    ]
    listings += ["/api/facts?q=sencha", "/api/search?q=sencha&user_id=ada"]
    for address in listings:
        answer = good(bob.get(address))
        assert "sencha" not in str(answer).lower(), address
        assert not answer.get("items") or address == "/api/prompts", address
    assert good(bob.post("/api/facts/forget", json={"ids": ids["fact_id"]}))["forgotten"] == 0
    assert error(bob.post("/api/facts", json={"session_id": "tea", "text": "Mine"}), 404)["code"] == "session_not_found"
    assert error(bob.get("/api/search?q=sencha&session_id=tea"), 404)["code"] == "session_not_found"
    turn = good(bob.post("/api/chat", json={"message": "What do I like?", "user_id": "ada", "recall": "always"}))
    assert "sencha" not in str(turn).lower()


def test_an_openai_client_sees_its_own_tenant_only(app: Flask, ada: FlaskClient, bob: FlaskClient) -> None:
    fill(ada, app)
    body = {"model": "any", "user": "ada", "messages": [{"role": "user", "content": "What tea do I like?"}]}
    answers = {
        client: client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": "tea"}) for client in (ada, bob)
    }
    assert all(answer.status_code == 200 for answer in answers.values()), answers[bob].text
    assert "sencha" in answers[ada].text.lower()
    assert "sencha" not in answers[bob].text.lower()
    assert read_all(bob, "/api/sessions/tea/messages")[0]["content"] == "What tea do I like?"


def test_the_same_ids_mean_something_else_to_each_tenant(app: Flask, ada: FlaskClient, bob: FlaskClient) -> None:
    fill(ada, app)
    append(bob, "tea", [said("I like coffee.")], user_id="ada")
    good(bob.put("/api/prompts/brief", json={"text": "Be brief about coffee."}))
    assert good(bob.get("/api/prompts/brief"))["version"] == 1
    services_of(app).outbox.run_due(["index"])
    assert "coffee" not in str(good(ada.get("/api/search?q=like&user_id=ada")))
    found = good(bob.get("/api/search?q=like&user_id=ada"))["results"]
    assert [result["content"] for result in found] == ["I like coffee."]
    erased = good(bob.delete("/api/users/ada"))["erased"]
    assert (erased["sessions"], erased["messages"]) == (1, 1)
    assert good(ada.get("/api/sessions/tea"))["message_count"] == 4


def test_an_idempotency_key_is_known_within_its_tenant(ada: FlaskClient, bob: FlaskClient) -> None:
    for client, message in ((ada, "I like sencha."), (bob, "I like coffee.")):
        answer = client.post("/api/chat", json={"message": message}, headers={"Idempotency-Key": "once"})
        assert answer.status_code == 200, answer.text


def test_both_keys_of_a_tenant_see_the_same(app: Flask, ada: FlaskClient) -> None:
    fill(ada, app)
    assert with_key(app, ADAS_SECOND).get("/api/sessions/tea").status_code == 200


# -- never shown


def test_no_key_is_in_a_log_a_repr_or_an_error(
    make_app: MakeApp, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings.from_env({"RECAP_API_KEYS": KEYS}, None)
    caplog.set_level(logging.DEBUG)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        app = make_app(api_keys=settings.api_keys, log_level="debug")
        services_of(app).start()
        client = app.test_client()
        for key in (ADA, BOB, "wrong-key-0123456789"):
            client.post("/api/chat", json={"message": "hello"}, headers=bearer(key))
            client.get("/api/sessions/none", headers=bearer(key))
            client.post("/api/chat", data=b"{", content_type="application/json", headers=bearer(key))
    finally:
        logging.getLogger().removeHandler(handler)
    shown = "".join((repr(settings), str(settings.api_keys), stream.getvalue(), caplog.text, *capsys.readouterr()))
    assert "event=turn " in shown, "the logs were not seen"
    for key in (ADA, ADAS_SECOND, BOB, "wrong-key-0123456789"):
        assert key not in shown
    assert "acme" in shown


# -- the document


def test_the_document_says_which_calls_ask_for_a_key(client: FlaskClient) -> None:
    document = good(client.get("/openapi.json"))
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            if method.upper() in METHODS:
                closed = not path.startswith("/health/")
                assert (call.get("security") == [{"bearer": []}]) == closed, path
                assert ("401" in call["responses"]) == closed, path
