"""Without a key this machine alone is served: by the addresses the server takes, and by the look of each request."""

import pytest
from flask import Flask
from werkzeug.test import create_environ, run_wsgi_app

from app import engine_of
from config import ApiKey, SettingsError
from memory.access.keys import require_key_or_loopback
from tests.http import failed, good
from tests.processes import migrated_server
from tests.test_auth import with_key

OURS = ["127.0.0.1", "127.8.9.10", "::1", "[::1]", "::ffff:127.0.0.1", "LOCALHOST", "localhost.", "a.localhost"]
OTHERS = ["", "0.0.0.0", "::", "192.168.1.5", "::ffff:10.0.0.1", "fe80::1", "recap", "localhost.evil.example"]
KEY = "key-of-acme-0123456789"


@pytest.fixture(scope="module")
def app(shared_app):
    return shared_app


# -- starting


def refuse(app: Flask, addresses: list[object]) -> None:
    engine = engine_of(app)
    require_key_or_loopback(engine.settings, engine.keys, addresses)


def test_without_a_key_it_starts_only_out_of_others_reach(app):
    for address in (*((host, 8000) for host in OURS), "/run/recap.sock", 7, ("::1", 8000, 0, 0)):
        refuse(app, [address])
    for host in OTHERS:
        with pytest.raises(SettingsError, match=r"HOST.*recap keys create.*RECAP_ALLOW_ANONYMOUS=1"):
            refuse(app, [("127.0.0.1", 8000), (host, 8000)])


def test_with_a_key_or_a_word_it_starts_anywhere(make_app):
    anywhere: list[object] = [("0.0.0.0", 8000)]
    refuse(make_app(allow_anonymous=True), anywhere)
    refuse(make_app(api_keys=(ApiKey("acme", KEY),)), anywhere)
    keys = engine_of(app := make_app()).keys
    keys.revoke(keys.create("acme")[1].id)
    refuse(app, anywhere)  # a revoked one is asked for as well


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_gunicorn_refuses_to_start_on_any_other_address_and_says_why(tmp_path, migrated, workers):
    """The address that it really takes counts, not the setting."""
    settings = {"WEB_WORKERS": workers, "GUNICORN_CMD_ARGS": "--bind 0.0.0.0:0"}
    with migrated_server(tmp_path, migrated, **settings) as server:
        with pytest.raises(RuntimeError, match=r"does not start on 0\.0\.0\.0"):
            server.start()
        assert "Traceback" not in server.log.read_text()


# -- each request

PASSED_ON = """
FORWARDED X_FORWARDED X_FORWARD_FOR X_FORWARDED_FOR X_FORWARDED_HOST X_FORWARDED_PROTO X_FORWARDED_SERVER
X_ORIGINAL_FORWARDED_FOR X_ORIGINAL_HOST VIA CDN_LOOP FRONT_END_HTTPS X_ENVOY_EXTERNAL_ADDRESS X_NGINX_PROXY
X_REAL_IP X_REAL_PORT X_CLIENT_IP CLIENT_IP TRUE_CLIENT_IP X_CLUSTER_CLIENT_IP FASTLY_CLIENT_IP FLY_CLIENT_IP
CF_CONNECTING_IP CF_RAY X_AZURE_CLIENTIP X_REMOTE_ADDR WL_PROXY_CLIENT_IP TAILSCALE_USER_LOGIN
""".split()  # noqa: SIM905
REFUSED = [
    ({"REMOTE_ADDR": "192.168.1.7"}, "another machine"),
    *(({f"HTTP_{name}": "127.0.0.1"}, "a proxy") for name in PASSED_ON),
    *(({f"HTTP_{name}": ""}, "a proxy") for name in ("VIA", "X_FORWARDED_FOR")),
    ({"HTTP_HOST": "evil.example"}, "Host"),
    ({"HTTP_HOST": "127.0.0.1.evil.example"}, "Host"),
    ({"HTTP_HOST": "[::1"}, "Host"),
    ({"HTTP_HOST": ""}, "Host"),
    ({"HTTP_ORIGIN": "https://evil.example"}, "another site"),
    ({"HTTP_ORIGIN": "null"}, "another site"),
    ({"HTTP_ORIGIN": "http://["}, "another site"),
    ({"HTTP_SEC_FETCH_SITE": "cross-site"}, "another site"),  # as for an image of a page
]
SERVED = [
    {},
    {"REMOTE_ADDR": "::1"},
    {"REMOTE_ADDR": ""},  # a Unix socket
    {"HTTP_HOST": "[::1]:8000"},
    {"HTTP_HOST": "localhost:8000", "HTTP_ORIGIN": "http://localhost:8000", "HTTP_SEC_FETCH_SITE": "same-origin"},
    {"HTTP_SEC_FETCH_SITE": "none"},
    {"HTTP_ORIGIN": "http://localhost:5173"},  # another program of this machine's; whether it may read is for CORS
    {"HTTP_X_REQUEST_ID": "1", "HTTP_X_OPENWEBUI_USER_ID": "ada", "HTTP_TRACEPARENT": "00-1-1-00", "HTTP_X_SKIP": "1"},
]


def test_a_request_that_is_not_this_machines_own_is_refused(app):
    client = app.test_client()
    for look in SERVED:
        assert client.get("/api/sessions", environ_overrides=look).status_code == 200, look
    for look, told in REFUSED:
        for answer in (
            client.get("/api/sessions", environ_overrides=look),
            client.post("/api/chat", json={"message": "hello"}, environ_overrides=look),
            client.get("/api/nothing", environ_overrides=look),
        ):
            found = failed(answer, 403, "not_local")
            assert told in found["message"] and "Nothing was done" in found["message"], look
        answer = client.post("/v1/chat/completions", json={"messages": []}, environ_overrides=look)
        assert (answer.status_code, answer.json["error"]["code"]) == (403, "not_local")
    assert good(client.get("/api/sessions"))["items"] == []


def test_a_request_that_names_no_host_is_refused(app):
    environ = create_environ("/api/sessions")
    del environ["HTTP_HOST"]
    for protocol, status in (("HTTP/1.0", "403 FORBIDDEN"), ("HTTP/1.1", "400 BAD REQUEST")):
        _, answered, _ = run_wsgi_app(app, {**environ, "SERVER_PROTOCOL": protocol})
        assert answered == status


def test_a_proxy_that_is_trusted_to_name_its_client_is_no_key(make_app):
    client = make_app(trusted_proxies=1).test_client()
    for address in ("203.0.113.9", "127.0.0.1"):
        failed(client.get("/api/sessions", headers={"X-Forwarded-For": address}), 403, "not_local")


def test_with_a_key_or_where_anybody_may_call_looks_do_not_count(make_app):
    open_ = make_app(allow_anonymous=True).test_client()
    answers = [open_.get("/api/sessions", environ_overrides=look) for look, _ in REFUSED]
    key, _ = engine_of(open_.application).keys.create("acme")
    keyed = with_key(make_app(), key)
    answers += [keyed.get("/api/sessions", environ_overrides=look) for look, _ in REFUSED]
    assert {answer.status_code for answer in answers} == {200}


def test_a_site_that_may_call_is_served_without_a_key_on_this_machine(make_app):
    client = make_app(cors_origins=("https://app.example.com",)).test_client()
    for origin, status in (("https://app.example.com", 200), ("https://other.example.com", 403)):
        assert client.get("/api/sessions", headers={"Origin": origin}).status_code == status
