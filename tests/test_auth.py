"""API keys: who may call, whose data they see, and that no key is ever shown."""

from collections.abc import Iterator

import pytest
from flask import Flask
from flask.testing import FlaskClient
from mcp_types import INVALID_REQUEST

from config import Settings
from tests.http import error, good

ADA, ADAS_SECOND, BOB = "key-of-acme-0123456789", "another-of-acme-0123456789", "key-of-globex=0123456789"
KEYS = f"acme:{ADA}, globex:{BOB},acme:{ADAS_SECOND}"
OPEN = {"/", "/openapi.json", "/health/live", "/health/ready", "/docs/"}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture
def app(make_app):
    settings = Settings.from_env({"RECAP_API_KEYS": KEYS}, None)
    return make_app(api_keys=settings.api_keys)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


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


# -- the middleware


def test_without_a_key_every_address_is_closed_but_the_open_ones(app, client):
    closed, open_ = set(), set()
    for method, address in routes(app):
        answer = client.open(address, method=method, json={} if method != "GET" else None)
        if answer.status_code == 401:
            # OpenAI's word for it, and JSON-RPC's; those of all tenants have a key of their own.
            own = {"/v1/": "invalid_api_key", "/mcp": INVALID_REQUEST, "/met": "metrics_key_missing"}
            assert error(answer, 401)["code"] == own.get(address[:4], "api_key_missing")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert answer.headers["X-Request-ID"]
            closed.add(address)
        else:
            open_.add(address)
        answer.close()
    assert all(address.startswith(("/api/", "/v1/", "/mcp", "/metrics")) for address in closed), closed
    assert len(closed) > 15
    # Programs sign in at /oauth and /.well-known (test_oauth).
    elsewhere = ("/static/", "/docs", "/oauth/", "/.well-known/")
    assert {address for address in open_ if not address.startswith(elsewhere)} == OPEN - {"/docs/"}


def test_what_is_not_known_to_be_open_is_closed(client):
    for address in ("/api/nothing", "/nothing", "//api/jobs", "/apix", "/healthx", "/openapi.jsonx", "/API/jobs"):
        assert error(client.get(address), 401)["code"] == "api_key_missing"
        for open_ in ("/static", "/health", "/docs"):
            assert client.get(f"{open_}/..{address}").status_code == 404, "no way leads through an open address"


def test_a_key_that_does_not_open(client):
    for header, code in (
        ("", "api_key_missing"),
        ("Bearer", "api_key_missing"),
        (f"Basic {ADA}", "api_key_missing"),
        (ADA, "api_key_missing"),
        (f"Bearer {ADA.upper()}", "api_key_unknown"),
        (f"Bearer {ADA} {BOB}", "api_key_unknown"),
        (f"Bearer {ADA[:-1]}", "api_key_unknown"),
        ("Bearer clé-à-molette-0123", "api_key_unknown"),
    ):
        answer = client.get("/api/sessions", headers={"Authorization": header})
        found = error(answer, 401)
        assert (found["code"], found["type"]) == (code, "authentication_error")
        assert ADA[:-1] not in answer.text and BOB not in answer.text


def test_each_key_opens(client):
    for header, sent in (
        ("Authorization", f"bearer {ADAS_SECOND}"),
        ("Authorization", f"BEARER  {BOB}"),
        ("x-api-key", ADA),
        ("api-key", ADA),
    ):
        assert client.get("/api/sessions", headers={header: sent}).status_code == 200
        assert error(client.get("/api/sessions", headers={header: f"{sent}x"}), 401)["code"] == "api_key_unknown"


# -- the document


def test_the_document_says_which_calls_ask_for_a_key(client):
    document = good(client.get("/openapi.json"))
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            if method.upper() in METHODS:
                closed = not path.startswith("/health/")
                assert (call.get("security") == [{"bearer": []}]) == closed, path
                assert ("401" in call["responses"]) == closed, path
