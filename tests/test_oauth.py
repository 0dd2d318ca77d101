"""OAuth 2.1: real clients of MCP connect by URL, and whoever has no right to a token gets none."""

import base64
import hashlib
import html
import json
import re
import secrets
import ssl
import threading
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
import httpx2
import pytest
import trustme
from flask import Flask
from flask.testing import FlaskClient
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from sqlalchemy import select
from werkzeug.test import TestResponse

from app import engine_of
from config import ApiKey, Settings
from memory.access import oauth_clients
from memory.access.oauth import LIFETIMES, REPEAT
from models import GrantRow, TokenRow
from models.oauth import ACCESS, CODE, REFRESH
from tests.application import run_command
from tests.http import append, good, meanwhile, said
from tests.live import Loopback
from tests.test_auth import with_key

RESOURCE = "http://localhost/mcp"
CALLBACK = "http://127.0.0.1:33418/callback"
VERIFIER = secrets.token_urlsafe(48)
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1"))
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def key(app):
    return engine_of(app).keys.create("acme", "ada", label="her own")[0]


def register(client: FlaskClient, *redirect_uris: str, name: str = "A program", **more: Any) -> str:
    body = {"client_name": name, "redirect_uris": redirect_uris or [CALLBACK], **more}
    client_id: str = good(client.post("/oauth/register", json=body))["client_id"]
    return client_id


def query(client_id: str, /, **changes: Any) -> str:
    wanted = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "state": "a state",
        "resource": RESOURCE,
        **changes,
    }
    return urlencode({name: value for name, value in wanted.items() if value is not None})


def sign_in(client: FlaskClient, asked: str, key: str, *, change: bool = True, **headers: str) -> TestResponse:
    form = {"key": key, "decision": "connect"} | ({"change": "on"} if change else {})
    return client.post(f"/oauth/authorize?{asked}", data=form, headers=headers)


def sent_back(answer: TestResponse) -> dict[str, str]:
    assert answer.status_code == 303, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def get_code(client: FlaskClient, client_id: str, key: str, **more: Any) -> str:
    return sent_back(sign_in(client, query(client_id, **more), key))["code"]


def exchange(client: FlaskClient, code: str, client_id: str, /, **changes: Any) -> TestResponse:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client_id,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "resource": RESOURCE,
        **changes,
    }
    return client.post("/oauth/token", data={name: value for name, value in form.items() if value is not None})


def renew(client: FlaskClient, token: str, client_id: str, **more: Any) -> TestResponse:
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id, **more}
    return client.post("/oauth/token", data=form)


def connect(client: FlaskClient, key: str, **more: Any) -> tuple[str, dict[str, Any]]:
    """A program's id, and its tokens."""
    client_id = register(client)
    return client_id, good(exchange(client, get_code(client, client_id, key, **more), client_id))


def use(client: FlaskClient, token: str, path: str = "/mcp", **headers: str) -> TestResponse:
    return client.post(path, json=LIST, headers={"Authorization": f"Bearer {token}", **headers})


def refused(answer: TestResponse, code: str = "invalid_grant") -> None:
    assert (answer.status_code, answer.json["error"]) == (400, code), answer.text
    assert answer.json["error_description"] and answer.headers["Cache-Control"] == "no-store"


# -- the SDK's own client


class Storage:
    """What a client keeps."""

    tokens: Any = None
    client_info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client_info

    async def set_client_info(self, client_info: Any) -> None:
        self.client_info = client_info


class Browser:
    """A person who opens the page that a program sends them to, reads it, and enters a key."""

    def __init__(self, key: str) -> None:
        self.key, self.page, self.query = key, "", ""

    async def open(self, address: str) -> None:
        async with httpx2.AsyncClient() as http:
            shown = await http.get(address)
            assert shown.status_code == 200, shown.text
            self.page = html.unescape(re.sub(r"<[^>]*>", " ", shown.text))
            form = {"key": self.key, "change": "on", "decision": "connect"}
            answer = await http.post(address, data=form, headers={"Sec-Fetch-Site": "same-origin"})
            assert answer.status_code == 303, answer.text
            self.query = urlsplit(answer.headers["Location"]).query

    async def come_back(self) -> AuthorizationCodeResult:
        values = parse_qs(self.query)
        return AuthorizationCodeResult(code=values["code"][0], state=values["state"][0], iss=values["iss"][0])


@pytest.fixture
def served(app, key):
    server = Loopback(app)
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def connect_with_the_sdk(served: str, key: str, path: str = "/mcp", **more: Any) -> Storage:
    """Look at Ada's chats, see the page, and let the tokens be renewed."""
    browser, storage = Browser(key), Storage()
    metadata = OAuthClientMetadata(
        client_name="Pocket <b>Assistant</b>", redirect_uris=[CALLBACK], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(f"{served}{path}", metadata, storage, browser.open, browser.come_back, **more)

    async def chats(client: Client) -> list[str]:
        answer = await client.call_tool("recent_chats", {})
        assert not answer.is_error, answer
        return [one["id"] for one in answer.structured_content["items"]]

    async def connected() -> None:
        async with (
            httpx2.AsyncClient(auth=auth) as http,
            Client(streamable_http_client(f"{served}{path}", http_client=http)) as client,
        ):
            assert await chats(client) == ["tea"]
            assert "calls itself Pocket <b>Assistant</b>" in " ".join(browser.page.split())
            assert "a program on this computer" in browser.page
            first, browser.page = storage.tokens, ""
            auth.context.token_expiry_time = 1.0
            assert await chats(client) == ["tea"] and browser.page == "", "nobody is asked again"
            assert storage.tokens.access_token != first.access_token
            assert storage.tokens.refresh_token != first.refresh_token

    anyio.run(connected)
    return storage


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_the_sdks_client_connects_by_url_alone_and_renews_its_tokens(app, key, served, path):
    append(with_key(app, key), "tea", [said("I like green tea.")])
    assert connect_with_the_sdk(served, key, path).client_info.client_id.startswith("recap.")


def test_what_a_program_is_told_before_it_signs_in(app, client):
    assert client.get("/.well-known/oauth-authorization-server").status_code == 404, "without keys nobody signs in"
    assert client.post("/oauth/register", json={"redirect_uris": [CALLBACK]}).status_code == 404
    assert good(client.post("/mcp?user_id=ada", json=LIST))["result"]
    engine_of(app).keys.create("acme", "ada")
    answer = client.post("/mcp", json=LIST)
    assert answer.status_code == 401
    challenge = re.fullmatch(
        r'Bearer resource_metadata="([^"]+)", scope="read admin"', answer.headers["WWW-Authenticate"]
    )
    assert challenge, answer.headers
    resource = good(client.get(challenge[1]))
    assert resource == good(client.get("/.well-known/oauth-protected-resource"))
    assert (resource["resource"], resource["authorization_servers"]) == (RESOURCE, ["http://localhost"])
    server = good(client.get("/.well-known/oauth-authorization-server"))
    assert server == good(client.get("/.well-known/openid-configuration"))
    assert server["issuer"] == "http://localhost" and server["code_challenge_methods_supported"] == ["S256"]
    assert server["token_endpoint_auth_methods_supported"] == ["none"]
    assert client.get("/api/sessions").headers["WWW-Authenticate"] == "Bearer", "a key is for programs that have one"


@pytest.mark.parametrize(
    ("public_url", "issuers"),
    [
        ("https://example.com/recap", {"example.com": "https://example.com/recap"}),
        ("http://recap.lan:8000", {"recap.lan:8000": None}),
        ("", {"127.0.0.1:8000": "http://127.0.0.1:8000", "recap.example.com": None, 'localhost/"x': None}),
    ],
)
def test_it_needs_an_address_that_is_safe(make_app, public_url, issuers):
    app = make_app(public_url=public_url)
    engine_of(app).keys.create("acme", "ada")
    client = app.test_client()
    for host, issuer in issuers.items():
        answer = client.get("/.well-known/oauth-authorization-server", headers={"Host": host})
        assert (answer.json.get("issuer") if answer.status_code == 200 else None) == issuer
        challenge = client.post("/mcp", json=LIST, headers={"Host": host}).headers["WWW-Authenticate"]
        assert ("resource_metadata" in challenge) == bool(issuer)
    proxied = {"Host": "localhost", "X-Forwarded-For": "203.0.113.7"}
    assert public_url or client.get("/.well-known/oauth-authorization-server", headers=proxied).status_code == 404


# -- what a token opens


def test_a_token_is_its_keys_person_for_the_tools_that_they_allowed(app, client, key):
    append(with_key(app, key), "tea", [said("I like green tea.")])
    _, tokens = connect(client, key)
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, "read admin")
    names = {tool["name"] for tool in good(use(client, tokens["access_token"]))["result"]["tools"]}
    assert {"recall", "add_memory", "forget_all"} <= names
    assert use(client, tokens["access_token"], "/mcp?user_id=bob").json["error"]["data"] == {"code": "user_not_found"}
    client_id = register(client)
    only_reading = sent_back(sign_in(client, query(client_id), key, change=False))["code"]
    assert good(exchange(client, only_reading, client_id))["scope"] == "read"
    for scope, granted in (("read offline_access", "read"), ("admin", "read admin"), ("openid", "read admin")):
        code = get_code(client, client_id, key, scope=scope)
        assert good(exchange(client, code, client_id))["scope"] == granted
    reader = engine_of(app).keys.create("acme", "ada", ["read"])[0]
    assert connect(client, reader)[1]["scope"] == "read", "never more than the key"


def test_a_token_opens_the_mcp_server_alone(app, client, key):
    _, tokens = connect(client, key)
    for kind in ("access_token", "refresh_token"):
        held = with_key(app, tokens[kind])
        for path in ("/api/sessions", "/v1/models", "/api/facts", "/mcp//"):
            assert held.get(path).status_code == 401, path
    assert use(client, tokens["refresh_token"]).status_code == 401
    assert use(client, tokens["access_token"]).status_code == 200
    assert client.post("/mcp", json=LIST, headers={"x-api-key": tokens["access_token"]}).status_code == 200


def test_a_token_is_for_one_server(make_app, key):
    _, tokens = connect(make_app().test_client(), key)
    elsewhere = make_app(public_url="https://recap.example.com").test_client()
    answer = use(elsewhere, tokens["access_token"])
    assert answer.status_code == 401 and 'error="invalid_token"' in answer.headers["WWW-Authenticate"]


def test_a_servers_address_may_have_capitals(make_app, key):
    settings = Settings.from_env({"PUBLIC_URL": "https://Recap.Example.com/Recap/"}, None)
    client = make_app(public_url=settings.public_url).test_client()
    client_id = register(client)
    described = good(client.get("/.well-known/oauth-protected-resource/mcp"))
    # Clients read addresses as URLs, and compare the issuer with how it is written then.
    assert described["authorization_servers"] == ["https://recap.example.com/Recap"]
    resource = described["resource"]
    code = get_code(client, client_id, key, resource=resource)
    assert good(exchange(client, code, client_id, resource=resource))["access_token"]


# -- codes


def test_a_code_is_good_only_as_it_was_given(client, key):
    client_id = register(client)
    given = get_code(client, client_id, key)
    changes: dict[str, list[dict[str, Any]]] = {
        "invalid_grant": [
            *({"code_verifier": wrong} for wrong in (VERIFIER[:-1] + "x", None, CHALLENGE)),
            *({"redirect_uri": wrong} for wrong in ("http://127.0.0.1:33419/callback", None)),
            {"code": "recapt_made-up"},
            {"client_id": register(client, name="Another")},
        ],
        "invalid_target": [
            {"resource": wrong} for wrong in ("http://localhost/api", "https://evil.example/mcp", "http://[x")
        ],
        "invalid_request": [{"client_id": None}, {"code": ["twice", "twice"]}],
        "unsupported_grant_type": [{"grant_type": "password"}],
    }
    for code, wrong in changes.items():
        for change in wrong:
            refused(exchange(client, given, client_id, **change), code)
    assert good(exchange(client, given, client_id))["access_token"], "it is still its own client's"


def race(one: Flask, other: Flask) -> None:
    """Use one code twice at once: one request gets tokens, and the other ends them."""
    client, key = one.test_client(), engine_of(one).keys.create("acme", "ada")[0]
    client_id = register(client)
    code = get_code(client, client_id, key)
    with meanwhile(lambda: exchange(other.test_client(), code, client_id)) as second:
        first = exchange(client, code, client_id)
    answers = [first, second[0]]
    assert sorted(one.status_code for one in answers) == [200, 400]
    (tokens,) = (one.json for one in answers if one.status_code == 200)
    assert use(client, tokens["access_token"]).status_code == 401
    refused(renew(client, tokens["refresh_token"], client_id))


def test_of_two_that_use_a_code_at_once_one_gets_tokens_and_both_lose_them(app):
    race(app, app)


@pytest.mark.slow
def test_nor_do_two_nodes_give_tokens_for_one_code(nodes):
    for _ in range(5):
        race(*nodes)


def at(app: Flask, client: FlaskClient, later: timedelta) -> None:
    """Turn the clock of the engine."""
    oauth = engine_of(app).oauth
    now = oauth._now
    oauth._now = lambda: now() + later


def test_codes_and_tokens_expire(app, client, key):
    client_id, tokens = connect(client, key)
    code = get_code(client, client_id, key)
    at(app, client, LIFETIMES[CODE])
    refused(exchange(client, code, client_id))
    at(app, client, LIFETIMES[ACCESS])
    assert use(client, tokens["access_token"]).status_code == 401
    renewed = good(renew(client, tokens["refresh_token"], client_id))
    assert use(client, renewed["access_token"]).status_code == 200
    at(app, client, LIFETIMES[REFRESH])
    refused(renew(client, renewed["refresh_token"], client_id))
    connect(client, key)
    with engine_of(app).database.read() as tx:
        assert len(tx.scalars(select(GrantRow)).all()) == 1, "what has ended is removed with the next connection"


def test_a_refresh_token_is_replaced_and_its_theft_ends_the_connection(app, client, key):
    client_id, first = connect(client, key)
    refused(renew(client, first["refresh_token"], register(client, name="Another")))
    refused(renew(client, first["refresh_token"], client_id, resource="https://evil.example/mcp"), "invalid_target")
    second = good(renew(client, first["refresh_token"], client_id, resource=RESOURCE))
    again = good(renew(client, first["refresh_token"], client_id))
    assert again["refresh_token"] != second["refresh_token"], "at once again: the answer may have got lost"
    at(app, client, REPEAT)
    refused(renew(client, first["refresh_token"], client_id))
    for tokens in (second, again):
        refused(renew(client, tokens["refresh_token"], client_id))
        assert use(client, tokens["access_token"]).status_code == 401


# -- the end of a connection


def test_a_token_ends_with_its_key(app, client, key):
    client_id, tokens = connect(client, key)
    pending = get_code(client, client_id, key)
    (info,) = engine_of(app).keys.list_keys()
    engine_of(app).keys.revoke(info.id)
    assert use(client, tokens["access_token"]).status_code == 401
    refused(renew(client, tokens["refresh_token"], client_id))
    refused(exchange(client, pending, client_id))
    with engine_of(app).database.read() as tx:
        assert not tx.scalars(select(GrantRow)).all() and not tx.scalars(select(TokenRow)).all()


def test_erasing_a_person_ends_their_connections_and_no_others(app, client, key):
    append(with_key(app, key), "tea", [said("I like green tea.")])
    _, hers = connect(client, key)
    _, his = connect(client, engine_of(app).keys.create("acme", "bob")[0])
    _, stranger = connect(client, engine_of(app).keys.create("globex", "ada")[0])
    good(with_key(app, key).delete("/api/users/ada"))
    assert use(client, hers["access_token"]).status_code == 401
    assert [use(client, one["access_token"]).status_code for one in (his, stranger)] == [200, 200]


def test_a_program_may_end_its_connection(client, key):
    for kind in ("access_token", "refresh_token"):
        client_id, tokens = connect(client, key)
        assert client.post("/oauth/revoke", data={"token": "recapt_made-up"}).status_code == 200
        assert use(client, tokens["access_token"]).status_code == 200
        assert client.post("/oauth/revoke", data={"token": tokens[kind], "client_id": client_id}).status_code == 200
        assert use(client, tokens["access_token"]).status_code == 401
        refused(renew(client, tokens["refresh_token"], client_id))


def test_connections_are_listed_and_ended_where_keys_are(app, client, key):
    run = partial(run_command, app, "keys")
    _, tokens = connect(client, key)
    get_code(client, register(client, name="Never came back"), key)
    listed = run("list").output
    assert "connection 1  A program  127.0.0.1  read admin  connected" in listed and "Never came back" not in listed
    assert "has ended" in run("disconnect", "1").output
    assert use(client, tokens["access_token"]).status_code == 401
    assert "There is no connection 1" in run("disconnect", "1").output
    assert "connection" not in run("list").output.splitlines()[1:]


def test_neither_codes_nor_tokens_nor_keys_are_stored(app, client, key):
    client_id, tokens = connect(client, key)
    code = get_code(client, client_id, key)
    folder = Path(engine_of(app).settings.data_dir)
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for secret in (key, code, tokens["access_token"], tokens["refresh_token"]):
        assert secret.encode() not in content and secret.removeprefix("recapt_").encode() not in content


# -- the page


def test_the_page_names_the_program_and_runs_nothing_of_it(client, key):
    name = "<img src=x onerror=alert(1)>\"'</strong>\u202egnp"
    client_id = register(client, "https://evil.example/back", name=name)
    answer = client.get(f"/oauth/authorize?{query(client_id, redirect_uri='https://evil.example/back')}")
    assert answer.status_code == 200 and answer.mimetype == "text/html"
    assert "&lt;img src=x onerror=alert(1)&gt;" in answer.text and "<img" not in answer.text
    assert "\u202e" not in answer.text and "<strong>evil.example</strong>" in answer.text
    assert "came from there" in answer.text
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "script" not in policy
    assert "form-action 'self' https:;" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"


def test_a_wrong_request_sends_nobody_anywhere(client, key):
    client_id = register(client)
    wrong: dict[str, list[str | None]] = {
        "redirect_uri": [
            *("https://evil.example/callback", f"{CALLBACK}/more", f"{CALLBACK}?x=1", f"{CALLBACK}#x", None),
            *("http://127.0.0.1:33418@evil.example/callback", "http://127.0.0.1:33418/\ncallback"),
            *("http://localhost:33418/callback", "https://127.0.0.1:33418/callback"),
        ],
        "client_id": [
            *("unknown", "recap.W10", "recap.eyJhIjoxfQ", f"recap.{base64.b64encode(b'[' * 2900).decode()}"),
            *("https://127.0.0.1/", "https://claude.ai@127.0.0.1/client.json", "https://169.254.169.254/client.json"),
        ],
        "response_type": ["token"],
        "code_challenge": [None, "short"],
        "code_challenge_method": ["plain", None],
        "resource": ["https://evil.example/mcp", "http://localhost/", "http://localhost/mcp#x", "http://[x"],
        "state": ["x" * 2001],
    }
    for name, values in wrong.items():
        for value in values:
            address = f"/oauth/authorize?{query(client_id, **{name: value})}"
            for answer in (client.get(address), client.post(address, data={"key": key, "decision": "connect"})):
                assert answer.status_code in (400, 401) and "Location" not in answer.headers, (name, value)
                assert answer.mimetype == "text/html" and 'role="alert"' in answer.text
                assert "evil.example" not in answer.text
                assert "form-action 'self';" in answer.headers["Content-Security-Policy"]


def test_where_programs_are_sent_back_to(client, key):
    for registered, used in (
        ("http://127.0.0.1:1/callback", "http://127.0.0.1:51004/callback"),
        ("http://localhost/callback", "http://localhost:51004/callback"),
        ("http://[::1]/callback", "http://[::1]:51004/callback"),
        ("cursor://anysphere.cursor-mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback"),
        ("com.example.app:/connected", "com.example.app:/connected"),
        ("https://app.example/cb?tenant=1", "https://app.example/cb?tenant=1"),
    ):
        client_id = register(client, registered)
        answer = sign_in(client, query(client_id, redirect_uri=used), key)
        values = sent_back(answer)
        assert answer.headers["Location"].startswith(used)
        assert (values["state"], values["iss"]) == ("a state", "http://localhost")
        assert good(exchange(client, values["code"], client_id, redirect_uri=used))


def test_what_no_program_may_register(client, key):
    for redirect_uri in (
        *("http://evil.example/cb", "javascript:alert(1)", "javascript://x/%0aalert(1)", "data:text/html,x"),
        *("https://a.example/#x", "https://user@a.example/", "https:///x", "https://a.example/<b>", "", "/relative"),
        *("https://a.example/\r\nSet-Cookie:x=1", "http://127.0.0.1.evil.example/", "custom:opaque", 7),
    ):
        body = {"redirect_uris": [CALLBACK, redirect_uri]}
        refused(client.post("/oauth/register", json=body), "invalid_redirect_uri")
    for wrong in ({}, [], {"redirect_uris": []}, {"redirect_uris": [CALLBACK] * 21}):
        answer = client.post("/oauth/register", json=wrong)
        assert answer.status_code == 400 and answer.json["error"].startswith("invalid_"), answer.text


def test_who_cancels_is_sent_back_with_nothing(app, client, key):
    address = f"/oauth/authorize?{query(register(client))}"
    values = sent_back(client.post(address, data={"key": key, "decision": "cancel"}))
    assert values == {"error": "access_denied", "state": "a state", "iss": "http://localhost"}
    assert engine_of(app).oauth.list_connections() == []


def test_another_sites_form_does_nothing(client, key):
    asked = f"/oauth/authorize?{query(register(client))}"
    for site in ("cross-site", "same-site", "none"):
        for decision in ("connect", "cancel"):
            data = {"key": key, "decision": decision}
            answer = client.post(asked, data=data, headers={"Sec-Fetch-Site": site})
            assert answer.status_code == 403 and "Location" not in answer.headers


def test_wrong_keys_are_counted_as_everywhere(app, client, key):
    asked = query(register(client))
    for number in range(20):
        answer = sign_in(client, asked, f"recap_wrong-{number}")
        assert answer.status_code == 401 and "unknown or was revoked" in answer.text
    answer = sign_in(client, asked, key)
    assert answer.status_code == 429 and "Too many wrong API keys" in answer.text
    assert with_key(app, key).get("/api/sessions").status_code == 429


def test_tokens_that_ended_are_no_guesses(app, client, key):
    for number in range(25):
        assert use(client, f"recapt_{number}").status_code == 401
    assert with_key(app, key).get("/api/sessions").status_code == 200


def test_only_a_key_that_may_look_at_a_memory_connects(make_app):
    app = make_app(api_keys=(ApiKey("acme", "key-of-acme-0123456789"),))
    client = app.test_client()
    asked = query(register(client))
    answer = sign_in(client, asked, "key-of-acme-0123456789")
    assert answer.status_code == 403 and "recap keys create" in answer.text
    for scopes in (["chat"], ["admin"]):
        answer = sign_in(client, asked, engine_of(app).keys.create("acme", None, scopes)[0])
        assert answer.status_code == 403 and "lacks the scope" in answer.text


# -- Client ID Metadata Documents


@pytest.fixture
def documents(tmp_path, monkeypatch):
    """An https site of a program, and what it answers by path."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, headers = answers.get(self.path, (404, b"", {}))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    oauth_clients._described.cache_clear()  # type: ignore[attr-defined]
    yield f"https://localhost:{server.server_port}", answers
    server.shutdown()
    server.server_close()


def described(client_id: str, /, **changes: Any) -> tuple[int, bytes, dict[str, str]]:
    document = {
        "client_id": client_id,
        "client_name": "Pocket",
        "redirect_uris": ["http://localhost/callback"],
        **changes,
    }
    return 200, json.dumps(document).encode(), {"Content-Type": "application/json"}


def test_the_sdks_client_connects_with_a_description_of_itself(app, client, key, served, documents, monkeypatch):
    append(with_key(app, key), "tea", [said("I like green tea.")])
    site, answers = documents
    monkeypatch.setattr(oauth_clients, "NETWORKS", LOOPBACK)
    client_id, on_any_port = f"{site}/client.json", "http://localhost/callback"
    own = {"client_name": "Pocket <b>Assistant</b>", "redirect_uris": [CALLBACK, on_any_port]}
    answers["/client.json"] = described(client_id, **own)
    assert connect_with_the_sdk(served, key, client_metadata_url=client_id).client_info.client_id == client_id
    asked = query(client_id, redirect_uri="http://localhost:4711/callback")
    page = client.get(f"/oauth/authorize?{asked}")
    assert page.status_code == 200 and "<strong>localhost</strong> describes it so" in page.text
    other = client.get(f"/oauth/authorize?{query(client_id, redirect_uri='http://127.0.0.1/other')}")
    assert other.status_code == 400


def test_a_wrong_description_connects_nothing(client, key, documents, monkeypatch):
    site, answers = documents
    monkeypatch.setattr(oauth_clients, "NETWORKS", LOOPBACK)
    answers["/there.json"] = described(f"{site}/there.json")
    wrong: list[tuple[Any, str]] = [
        ({"client_id": "https://other.example/client.json"}, "another client_id"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "no redirect|description"),
        ({"redirect_uris": None}, "no Client ID Metadata Document"),
        ({"client_name": 7}, "no Client ID Metadata Document|description"),
        ((200, b"[]", {}), "no Client ID Metadata Document"),
        ((200, b"<html>", {}), "no Client ID Metadata Document"),
        ((200, b" " * 100_000, {}), "too long"),
        ((302, b"", {"Location": "/there.json"}), "status 302"),
    ]
    for number, (answer, problem) in enumerate(wrong):
        client_id = f"{site}/client-{number}.json"
        answers[f"/client-{number}.json"] = described(client_id, **answer) if isinstance(answer, dict) else answer
        page = client.get(f"/oauth/authorize?{query(client_id, redirect_uri='http://localhost:1/callback')}")
        assert page.status_code in (400, 401) and re.search(problem, page.text), page.text


def test_a_description_is_fetched_from_the_internet_alone(client, key, documents):
    site, answers = documents
    answers["/client.json"] = described(f"{site}/client.json")
    page = client.get(f"/oauth/authorize?{query(f'{site}/client.json', redirect_uri='http://localhost:1/callback')}")
    assert page.status_code == 401 and "the address of localhost is not public" in page.text
    for number in range(19):
        client.get(f"/oauth/authorize?{query(f'{site}/{number}', redirect_uri=CALLBACK)}")
    page = client.get(f"/oauth/authorize?{query(f'{site}/client.json', redirect_uri=CALLBACK)}")
    assert page.status_code == 429, "nor any number of addresses"


def test_a_token_of_a_key_that_may_chat_does_not_erase_a_space(app):
    keys = engine_of(app).keys
    whole, key = (
        with_key(app, keys.create("acme")[0]),
        keys.create("acme", "ada", ["chat"], spaces={"team": "write"})[0],
    )
    append(whole, "s", [said("We release on Friday.")], space="team")
    _, tokens = connect(app.test_client(), key)
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {"elicitation": {}}}
    params = {
        "name": "forget_all",
        "arguments": {},
        "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()},
        "inputResponses": {"agree": {"action": "accept", "content": {"agree": True}}},
    }
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "forget_all"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    for bearer in (key, tokens["access_token"]):
        with_key(app, bearer).post("/mcp?space=team", json=call, headers=headers)
        assert whole.get("/api/spaces/team").status_code == 200
