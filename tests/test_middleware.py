"""Limits by key and by address, sites that may call from a browser, and what every answer tells a browser."""

import io
import logging
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from flask.testing import FlaskClient
from limits.storage import MemoryStorage
from werkzeug.test import TestResponse

from benchmarks.serving import free_port
from config import ApiKey
from tests.http import chat, error, failed, good
from tests.model_server import Status, at
from tests.test_auth import bearer

ADA, BOB = "key-of-acme-0123456789", "key-of-globex-0123456789"
KEYS = (ApiKey("acme", ADA), ApiKey("globex", BOB))
SITE, OTHER_SITE = "https://app.example.com", "https://evil.example.com"
OPEN = ("/", "/health/live", "/health/ready", "/openapi.json", "/docs/", "/static/js/main.js")


def from_address(address: str, **more: str) -> dict[str, Any]:
    """What `FlaskClient.get` takes for a request that comes from `address`."""
    return {"environ_base": {"REMOTE_ADDR": address}, "headers": more}


# -- how often


def test_what_is_refused_has_done_nothing(make_app):
    client = make_app(rate_limit="1 per hour").test_client()
    chat(client, "My cat is called Miso.", session_id="s")
    failed(client.post("/api/chat", json={"message": "And my dog Rex.", "session_id": "s"}), 429, "rate_limit_exceeded")
    assert good(make_app().test_client().get("/api/sessions/s"))["message_count"] == 2
    for path in OPEN:
        for _ in range(2):
            with client.get(path) as answer:
                assert answer.status_code == 200, f"{path} is never refused"


@pytest.mark.parametrize(
    ("settings", "one", "same", "other"),
    [
        ({"api_keys": KEYS}, {"headers": bearer(ADA)}, {"headers": bearer(ADA)}, {"headers": bearer(BOB)}),
        ({}, from_address("203.0.113.7"), from_address("203.0.113.7", **bearer("any")), from_address("203.0.113.8")),
        ({}, *(from_address(f"2001:db8:1:{rest}") for rest in ("2::7", "2:ffff::8", "3::7"))),
    ],
    ids=["key", "address", "IPv6 network"],
)
def test_each_key_or_address_has_a_limit_of_its_own(make_app, settings, one, same, other, caplog):
    client = make_app(rate_limit="1 per minute", allow_anonymous=True, log_level="debug", **settings).test_client()
    with caplog.at_level(logging.DEBUG):
        good(client.get("/api/sessions", **one))
        refused = client.get("/api/facts", **same)
        assert failed(refused, 429, "rate_limit_exceeded")["type"] == "rate_limit_error"
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        good(client.get("/api/sessions", **other))
    assert "203.0.113.7" not in caplog.text, "logs name nobody"


def test_unless_it_is_set_this_machine_is_not_limited_where_no_key_is_asked_for(make_app, monkeypatch):
    monkeypatch.setattr("api.limits.USUAL", "2 per minute")
    client = make_app(allow_anonymous=True).test_client()
    for _ in range(4):
        good(client.get("/api/sessions"))
    for _ in range(2):
        good(client.get("/api/sessions", **from_address("203.0.113.7")))
    error(client.get("/api/sessions", **from_address("203.0.113.7")), 429)
    client = make_app(api_keys=KEYS).test_client()
    for _ in range(2):
        good(client.get("/api/sessions", headers=bearer(ADA)))
    error(client.get("/api/sessions", headers=bearer(ADA)), 429)


class Shared(MemoryStorage):
    """A storage that all workers count in, while it is not `away`."""

    STORAGE_SCHEME: ClassVar[list[str]] = ["shared"]
    away = False
    asked = 0

    def incr(self, *args: Any, **options: Any) -> int:
        type(self).asked += 1
        if self.away:
            raise ValueError("nobody listens")
        return super().incr(*args, **options)


def test_a_redis_that_can_not_be_reached_is_told_and_is_no_reason_to_refuse(make_app):
    redis = f"redis://:secret-of-redis@127.0.0.1:{free_port()}/0"
    client = make_app(rate_limit="2 per minute", rate_limit_storage=redis).test_client()
    told = good(client.get("/health/ready"))
    assert told["status"] == "ready" and "each worker counts for itself" in told["rate_limits"]
    assert "secret-of-redis" not in str(told)
    assert "rate_limits" not in good(make_app().test_client().get("/health/ready"))


def test_a_storage_that_was_away_is_asked_again_after_a_while(make_app, monkeypatch, caplog):
    client = make_app(rate_limit="2 per minute", rate_limit_storage="shared://").test_client()
    monkeypatch.setattr(Shared, "away", True)
    before = Shared.asked
    for _ in range(2):
        good(client.get("/api/sessions"))
    error(client.get("/api/sessions"), 429)
    assert Shared.asked == before + 1, "while it is away, nobody should wait for it"
    assert [record.levelname for record in caplog.records if "RATE_LIMIT_STORAGE" in record.message] == ["WARNING"]
    monkeypatch.setattr("api.limits.STORAGE_DOWN_SECONDS", 0.0)
    client = make_app(rate_limit="2 per minute", rate_limit_storage="shared://").test_client()
    good(client.get("/api/sessions"))
    monkeypatch.setattr(Shared, "away", False)
    for _ in range(2):
        good(client.get("/api/sessions"))
    error(client.get("/api/sessions"), 429)


def test_a_limit_that_was_reached_opens_when_the_clock_is_put_back(make_app, monkeypatch):
    """Its end lies a day ahead then."""
    client = make_app(api_keys=KEYS, rate_limit="2 per minute").test_client()
    ada, guesser = bearer(ADA), from_address("203.0.113.7", **bearer("a-key-that-is-nobodys"))
    for _ in range(2):
        good(client.get("/api/sessions", headers=ada))
    for _ in range(20):
        error(client.get("/api/sessions", **guesser), 401)
    failed(client.get("/api/sessions", headers=ada), 429, "rate_limit_exceeded")
    failed(client.get("/api/sessions", **guesser), 429, "too_many_wrong_keys")
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 86_400)
    good(client.get("/api/sessions", headers=ada))
    error(client.get("/api/sessions", **guesser), 401)


def test_an_address_that_tries_keys_is_turned_away_with_any_key(make_app):
    client = make_app(api_keys=KEYS, rate_limit="off").test_client()
    guesser = "203.0.113.7"
    for number in range(20):
        path, guess = "/api/sessions" if number % 2 else "/api/nothing", f"key-of-acme-{number:010}"
        sent = (bearer(guess), {"x-api-key": guess}, {"api-key": guess})[number % 3]
        error(client.get(path, **from_address(guesser, **sent)), 401)
    answer = client.get("/api/nothing", **from_address(guesser, **bearer(ADA)))
    failed(answer, 429, "too_many_wrong_keys")
    failed(client.get("/api/nothing", **from_address(guesser, **{"x-api-key": ADA})), 429, "too_many_wrong_keys")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    good(client.get("/api/sessions", **from_address("203.0.113.8", **bearer(ADA))))
    good(client.get("/health/live", **from_address(guesser, **bearer(ADA))))


def test_a_program_with_an_old_key_does_not_turn_others_at_its_address_away(make_app):
    client = make_app(api_keys=KEYS, rate_limit="off").test_client()
    office = "203.0.113.7"
    good(client.get("/api/sessions", **from_address(office, **bearer(ADA))))
    good(client.get("/health/live", **from_address(office, **{"x-api-key": ADA})))  # which looks at no key
    for _ in range(20):
        error(client.get("/api/sessions", **from_address(office, **bearer("key-of-acme-that-was-revoked"))), 401)
    good(client.get("/api/sessions", **from_address(office, **bearer(ADA))))
    for guess in ({"x-api-key": ADA}, bearer("key-of-acme-that-is-tried"), {**bearer(ADA), "x-api-key": "another"}):
        failed(client.get("/api/sessions", **from_address(office, **guess)), 429, "too_many_wrong_keys")


def test_requests_without_a_key_and_refusals_of_the_model_server_are_no_guesses(make_app, model_server):
    client = make_app(**at(model_server, api_keys=KEYS)).test_client()
    for _ in range(21):
        error(client.get("/api/sessions"), 401)
        model_server.main.queue(Status(401, {"error": {"message": "No.", "type": "x", "code": "y", "param": None}}))
        body = {"messages": [{"role": "user", "content": "Hello"}]}
        client.post("/v1/chat/completions", json=body, headers=bearer(ADA))
    good(client.get("/api/sessions", headers=bearer(ADA)))


def test_behind_a_proxy_the_callers_own_address_counts(make_app):
    settings = {"allow_anonymous": True, "rate_limit": "1 per minute"}
    client = make_app(**settings, trusted_proxies=1).test_client()
    proxied = {"X-Forwarded-For": "198.51.100.9, 203.0.113.7"}
    good(client.get("/api/sessions", headers=proxied))
    error(client.get("/api/sessions", headers={"X-Forwarded-For": "198.51.100.10, 203.0.113.7"}), 429)
    good(client.get("/api/sessions", headers={"X-Forwarded-For": "203.0.113.8"}))
    client = make_app(**settings).test_client()  # nobody is believed who says so himself
    good(client.get("/api/sessions", headers=proxied))
    error(client.get("/api/sessions", headers={"X-Forwarded-For": "203.0.113.8"}), 429)


# -- how much


def send_in_pieces(client: FlaskClient, path: str, body: bytes, mimetype: str = "application/json") -> TestResponse:
    """POST a body whose length nobody was told, as gunicorn hands it over."""
    unknown = {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
    return client.post(path, input_stream=io.BytesIO(body), content_type=mimetype, environ_overrides=unknown)


def test_a_body_too_large_is_refused_whether_it_says_so_or_not(client):
    large = b'{"message": "' + b"x" * (33 << 20) + b'"}'
    for path in ("/api/chat", "/v1/chat/completions", "/v1/embeddings", "/api/sessions/s/messages", "/api/facts"):
        for answer in (
            client.post(path, data=large, content_type="application/json"),
            send_in_pieces(client, path, large),
        ):
            told = error(answer, 413)
            assert told["code"] == "body_too_large" and "Nothing was stored" in told["message"]
    answer = send_in_pieces(client, "/api/chat", b"message=Hello", "application/x-www-form-urlencoded")
    failed(answer, 415, "not_json")
    answer = client.post(
        "/api/chat", data=b"\x1f\x8b", content_type="application/json", headers={"Content-Encoding": "gzip"}
    )
    failed(answer, 415, "compressed_body")
    assert good(client.get("/api/sessions"))["items"] == []
    assert send_in_pieces(client, "/api/chat", b'{"message": "Hello"}').status_code == 200


# -- from which pages


@pytest.fixture
def listed(make_app):
    return make_app(api_keys=KEYS, cors_origins=(SITE,)).test_client()


def preflight(client: FlaskClient, origin: str, path: str = "/api/chat") -> TestResponse:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-session-id"}
    return client.options(path, headers={"Origin": origin, **asked})


def cors_headers(answer: TestResponse) -> dict[str, str]:
    return {name: value for name, value in answer.headers if name.startswith("Access-Control-")}


def test_no_other_site_may_call_unless_it_is_listed(make_app, listed):
    unlisted = make_app(api_keys=KEYS).test_client()
    for client, origin in ((unlisted, SITE), (listed, OTHER_SITE), (listed, "null"), (listed, SITE + ".evil.com")):
        assert cors_headers(preflight(client, origin)) == {}
        assert cors_headers(client.get("/api/sessions", headers={"Origin": origin, **bearer(ADA)})) == {}


def test_a_listed_site_may_call_and_read_what_memory_says(listed):
    asked = preflight(listed, SITE)
    assert asked.status_code == 200 and asked.data == b""
    assert asked.headers["Access-Control-Allow-Origin"] == SITE
    assert "POST" in asked.headers["Access-Control-Allow-Methods"]
    assert asked.headers["Access-Control-Allow-Headers"] == "authorization, x-session-id"
    answer = listed.post(
        "/v1/chat/completions",
        json={"messages": [{"role": "user", "content": "Hello"}]},
        headers={"Origin": SITE, **bearer(ADA)},
    )
    assert good(answer) and answer.headers["Access-Control-Allow-Origin"] == SITE
    for one in (asked, answer):
        assert "Access-Control-Allow-Credentials" not in one.headers, "no site is let in with cookies, or by a star"
        assert "*" not in cors_headers(one).values() and "Origin" in one.headers["Vary"]
    shown = answer.headers["Access-Control-Expose-Headers"].split(", ")
    assert {name for name, _ in answer.headers if name.startswith("X-")} - {"X-Content-Type-Options"} <= set(shown)
    assert {"X-Memory-Session-Id", "X-Memory-Error", "X-Request-ID", "Retry-After"} <= set(shown)


# -- what browsers are told


def answers(client: FlaskClient) -> Iterator[tuple[str, TestResponse]]:
    """One of each kind of answer, closed when the next is asked for."""
    for path in (*OPEN, "/docs/swagger-ui.css", "/api/sessions", "/api/sessions/none", "/nothing", "/v1/models"):
        with client.get(path) as answer:
            yield path, answer
    with client.post("/api/chat", json={"message": "Hello", "stream": True}) as answer:
        yield "a stream", answer
    with client.post("/api/chat", json={"message": "Hello"}) as answer:
        yield "a reply", answer
    with client.post("/v1/chat/completions", data="{", content_type="application/json") as answer:
        yield "an error", answer


def test_every_answer_carries_the_security_headers(client):
    for what, answer in answers(client):
        headers = answer.headers
        assert headers["X-Content-Type-Options"] == "nosniff", what
        assert headers["Referrer-Policy"] == "no-referrer", what
        assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin", what
        assert "microphone=()" in headers["Permissions-Policy"], what
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy, what
        assert headers["X-Request-ID"], what
        is_file = what == "/" or what.startswith(("/static/", "/docs/swagger-ui"))  # all else may have words in it
        assert headers["Cache-Control"].split(",")[0] == ("no-cache" if is_file else "no-store"), what
        assert not is_file or what == "/" or headers["ETag"], what


def test_the_docs_run_their_own_script_and_no_other(app):
    client = app.test_client()
    policy = client.get("/docs/").headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts.startswith("script-src 'self' 'sha256-") and "unsafe" not in scripts
    other = client.get("/docs/", headers={"Host": "other.localhost"}).headers["Content-Security-Policy"]
    assert other == policy, "the page's script must not hold what a request says"
