"""Without a key this machine alone is served: by the addresses the server takes, and by the look of each request."""

from __future__ import annotations

from pathlib import Path

import pytest
from flask import Flask

from app import services_of
from config import ApiKey, SettingsError
from memory.access.anonymous import refuse_strangers
from tests.conftest import MakeApp
from tests.resources import good
from tests.serving import migrated_server
from tests.talking import failed
from tests.test_auth import with_key

OURS = ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "::ffff:127.0.0.1", "LOCALHOST", "localhost.", "a.localhost"]
OTHERS = ["", "0.0.0.0", "::", "192.168.1.5", "::ffff:10.0.0.1", "fe80::1", "recap", "localhost.evil.example"]
KEY = "key-of-acme-0123456789"


# -- starting


def refuse(app: Flask, addresses: list[object]) -> None:
    services = services_of(app)
    refuse_strangers(services.settings, services.keys, addresses)


@pytest.mark.parametrize("address", [(host, 8000) for host in OURS] + ["/run/recap.sock", 7, ("::1", 8000, 0, 0)])
def test_out_of_others_reach_the_server_starts(app: Flask, address: object) -> None:
    refuse(app, [address])


@pytest.mark.parametrize("host", OTHERS)
def test_within_others_reach_it_does_not_start_without_a_key(app: Flask, host: str) -> None:
    with pytest.raises(SettingsError, match=r"HOST.*flask --app wsgi keys create.*RECAP_ALLOW_ANONYMOUS=1"):
        refuse(app, [("127.0.0.1", 8000), (host, 8000)])


def test_with_a_key_or_a_word_it_starts_anywhere(make_app: MakeApp) -> None:
    anywhere: list[object] = [("0.0.0.0", 8000)]
    refuse(make_app(allow_anonymous=True), anywhere)
    refuse(make_app(api_keys=(ApiKey("acme", KEY),)), anywhere)
    keys = services_of(app := make_app()).keys
    keys.revoke(keys.create("acme")[1].id)
    refuse(app, anywhere)  # a revoked one is asked for as well


# The second: the address it really takes counts, not the setting.
@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"HOST": "0.0.0.0"}, {"GUNICORN_CMD_ARGS": "--bind 0.0.0.0:0"}], ids=str)
def test_gunicorn_refuses_to_start_on_any_other_address_and_says_why(
    tmp_path: Path, migrated: Path, settings: dict[str, str]
) -> None:
    refused = pytest.raises(RuntimeError, match=r"does not start on 0\.0\.0\.0")
    with migrated_server(tmp_path, migrated, **settings) as server, refused:
        server.start()
    assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_gunicorn_starts_anywhere_when_it_may(tmp_path: Path, migrated: Path) -> None:
    with migrated_server(tmp_path, migrated, HOST="0.0.0.0", RECAP_API_KEYS=f"acme:{KEY}") as server:
        server.start()
        assert server.stop() == 0


# -- each request

REFUSED = [
    ({"REMOTE_ADDR": "192.168.1.7"}, "another machine"),
    ({"HTTP_X_FORWARDED_FOR": "203.0.113.9"}, "another machine"),
    ({"HTTP_X_FORWARDED_FOR": "203.0.113.9, 127.0.0.1"}, "another machine"),
    ({"HTTP_HOST": "evil.example"}, "Host"),
    ({"HTTP_HOST": "127.0.0.1.evil.example"}, "Host"),
    ({"HTTP_HOST": "[::1"}, "Host"),
    ({"HTTP_HOST": ""}, "Host"),
    ({"HTTP_ORIGIN": "https://evil.example"}, "another site"),
    ({"HTTP_ORIGIN": "null"}, "another site"),
    ({"HTTP_ORIGIN": "http://["}, "another site"),
]
SERVED = [
    {},
    {"REMOTE_ADDR": "::1"},
    {"REMOTE_ADDR": ""},  # a Unix socket
    {"HTTP_HOST": "[::1]:8000"},
    {"HTTP_HOST": "localhost:8000", "HTTP_ORIGIN": "http://localhost:8000"},
    {"HTTP_ORIGIN": "http://localhost:5173"},  # another program of this machine's; whether it may read is for CORS
    {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
]


@pytest.mark.parametrize(("look", "told"), REFUSED)
def test_a_request_that_is_not_this_machines_own_is_refused(app: Flask, look: dict[str, str], told: str) -> None:
    client = app.test_client()
    for answer in (
        client.get("/api/sessions", environ_overrides=look),
        client.post("/api/chat", json={"message": "hello"}, environ_overrides=look),
        client.get("/api/nothing", environ_overrides=look),
    ):
        found = failed(answer, 403, "not_local")
        assert told in found["message"] and "Nothing was done" in found["message"]
    answer = client.post("/v1/chat/completions", json={"messages": []}, environ_overrides=look)
    assert (answer.status_code, answer.json["error"]["code"]) == (403, "not_local")
    assert good(client.get("/api/sessions"))["items"] == []


@pytest.mark.parametrize("look", SERVED)
def test_this_machines_own_requests_are_served(app: Flask, look: dict[str, str]) -> None:
    assert app.test_client().get("/api/sessions", environ_overrides=look).status_code == 200


def test_with_a_key_or_where_anybody_may_call_looks_do_not_count(make_app: MakeApp) -> None:
    open_ = make_app(allow_anonymous=True).test_client()
    answers = [open_.get("/api/sessions", environ_overrides=look) for look, _ in REFUSED]
    key, _ = services_of(open_.application).keys.create("acme")
    keyed = with_key(make_app(), key)
    answers += [keyed.get("/api/sessions", environ_overrides=look) for look, _ in REFUSED]
    assert {answer.status_code for answer in answers} == {200}


def test_a_site_that_may_call_is_served_without_a_key_on_this_machine(make_app: MakeApp) -> None:
    client = make_app(cors_origins=("https://app.example.com",)).test_client()
    for origin, status in (("https://app.example.com", 200), ("https://other.example.com", 403)):
        assert client.get("/api/sessions", headers={"Origin": origin}).status_code == status
