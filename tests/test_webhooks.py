"""Webhooks: signed, at least once, in the order of each person, and only to addresses that they may reach."""

import base64
import hashlib
import hmac
import json
import ssl
import threading
import time
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import select, update

from app import engine_of
from config import Settings
from memory import deliveries
from memory.deliveries import FAILING_MAX
from memory.engine import utc_now
from memory.ops import public_network
from memory.webhooks import WEBHOOKS_MAX
from models import JobRow, WebhookRow
from models.events import Event, Position
from tests.http import append, error, good, said
from tests.processes import Api, eventually, migrated_server
from tests.test_auth import with_key

KEY = Fernet.generate_key().decode()
ADA = {"user_id": "ada"}
EVENT = Event("m1", "message.stored", utc_now(), {}, Position())
LOOPBACK = Settings.from_env({"WEBHOOK_NETWORKS": "127.0.0.0/8"}, None).webhook_networks


class Receiver:
    """An HTTP server on loopback that keeps what was posted, and answers with `status`, or as `fails` says."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status, self.headers = 204, dict[str, str]()
        self.fails: Any = lambda event: False
        self.drips = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append(({name.lower(): value for name, value in self.headers.items()}, body))
                if receiver.drips:
                    self._drip()
                self.send_response(500 if receiver.fails(json.loads(body)) else receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def _drip(self) -> None:
                try:
                    while True:
                        self.wfile.write(b"H")
                        time.sleep(0.05)
                except OSError:
                    pass

            do_GET = do_POST

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.server.server_port}/hook"

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.requests]

    def of(self, user: str | None) -> list[Any]:
        """The ids of the messages of a person, as they came."""
        return [event["data"]["message_id"] for event in self.events if event["data"]["user_id"] == user]


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def app(make_app):
    return make_app(encryption_key=KEY, webhook_networks=LOOPBACK)


def make(client: FlaskClient, receiver: Receiver, **more: Any) -> Any:
    return good(client.post("/api/webhooks", json={"url": receiver.url, **more}))


def deliver(app: Flask) -> None:
    """Do the jobs of webhooks, also those that wait for a pause."""
    engine = engine_of(app)
    for _ in range(3):
        with engine.database.write() as tx:
            tx.execute(update(JobRow).where(JobRow.kind == "webhook").values(run_at=engine.now()))
        engine.job_queue.run_due(["webhook"])


def webhook(client: FlaskClient) -> Any:
    (only,) = good(client.get("/api/webhooks"))["items"]
    return only


def verify(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """What Standard Webhooks has a receiver do."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(expected, headers["webhook-signature"])


# -- what arrives


def test_an_event_arrives_signed(app, client, receiver):
    made = make(client, receiver, words=True)
    append(client, "tea", [said("I like sencha.")], **ADA)
    deliver(app)
    ((headers, body),) = receiver.requests
    event = json.loads(body)
    assert (event["type"], event["data"]["content"], event["id"]) == ("message.stored", "I like sencha.", "m1")
    assert headers["webhook-id"] == event["id"] and headers["content-type"] == "application/json"
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert verify(made["secret"], headers, body)
    assert not verify(made["secret"], headers, body + b" ")
    (delivery,) = webhook(client)["deliveries"]
    assert (delivery["event_id"], delivery["status"], delivery["error"]) == ("m1", 204, None)


def test_the_secret_is_shown_once_and_stored_encrypted(make_app, receiver):
    app = make_app(webhook_networks=LOOPBACK)  # without a key, one is made
    client, data = app.test_client(), engine_of(app).settings.data_dir
    secret = make(client, receiver)["secret"]
    assert (data / "encryption-key").stat().st_mode & 0o777 == 0o600
    assert secret.startswith("whsec_") and "secret" not in webhook(client)
    assert "secret" not in good(client.patch("/api/webhooks/1", json={"words": True}))
    assert not [path for path in data.rglob("*") if path.is_file() and secret[6:].encode() in path.read_bytes()]


def test_a_rotated_secret_and_the_former_one_both_sign_for_a_while(app, client, receiver):
    def pass_time(**passed):
        with engine_of(app).database.write() as tx:
            row = tx.scalars(select(WebhookRow)).one()
            *both, until = Fernet(KEY).decrypt(row.secret).decode().split(" ")
            until = (datetime.fromisoformat(until) - timedelta(**passed)).isoformat()
            row.secret = Fernet(KEY).encrypt(" ".join((*both, until)).encode()).decode()

    def rotate(**body):
        return good(client.post("/api/webhooks/1/rotate", json=body))["secret"]

    def signed_by(*secrets):
        """Whether the next delivery is signed with exactly these, in their order."""
        good(client.post("/api/webhooks/1/test"))
        headers, body = receiver.requests[-1]
        at = int(headers["webhook-timestamp"])
        return headers["webhook-signature"].split() == [
            deliveries.sign(secret, headers["webhook-id"], at, body) for secret in secrets
        ]

    first = make(client, receiver)["secret"]
    second = rotate()
    assert second != first and "secret" not in webhook(client) and signed_by(second, first)
    pass_time(hours=23, minutes=50)
    assert signed_by(second, first)
    pass_time(minutes=11)
    assert signed_by(second)
    third = rotate(overlap_hours=1)
    fourth = rotate(overlap_hours=1)
    assert signed_by(fourth, third), "the one before them is over"
    assert signed_by(rotate(overlap_hours=0)), "a secret that leaked signs no more"
    assert error(client.post("/api/webhooks/1/rotate", json={"overlap_hours": 169}), 422)
    assert client.post("/api/webhooks/2/rotate", json={}).status_code == 404


def test_a_webhook_whose_key_was_lost_gets_a_new_secret(app, client, receiver):
    make(client, receiver)
    with engine_of(app).database.write() as tx:
        tx.execute(update(WebhookRow).values(secret=Fernet(Fernet.generate_key()).encrypt(b"whsec_AAAA").decode()))
    assert "can't be decrypted" in good(client.post("/api/webhooks/1/test"))["error"]
    secret = good(client.post("/api/webhooks/1/rotate", json={}))["secret"]
    assert good(client.post("/api/webhooks/1/test"))["error"] is None
    ((headers, body),) = receiver.requests
    expected = deliveries.sign(secret, headers["webhook-id"], int(headers["webhook-timestamp"]), body)
    assert headers["webhook-signature"] == expected


def test_it_gets_what_happens_from_then_on_each_once(app, client, receiver):
    append(client, "tea", [said("Before")], user_id="u0")
    make(client, receiver)
    for number in range(2):
        append(client, f"s{number}", [said(f"Message {at}") for at in range(120)], user_id=f"u{number}")
    for _ in range(3):
        deliver(app)
    for number in range(2):
        assert receiver.of(f"u{number}") == list(range(120 * number + 2, 120 * number + 122))


# -- at least once, in order


def test_other_types_count_from_then_on(make_app, app, client, receiver):
    address = f"/api/webhooks/{make(client, receiver, types=['fact.created'])['id']}"
    append(client, "s", [said("Before.")], **ADA)
    for text, user in (("Likes tea", "ada"), ("Likes milk", "bob")):
        good(client.post("/api/facts", json={"text": text, "user_id": user}))
        append(client, "s", [said("Between.")], user_id=user)
        if user == "ada":
            deliver(app)
    restarted = make_app(encryption_key=KEY, webhook_networks=LOOPBACK)  # it has not seen that there was nothing new
    good(restarted.test_client().patch(address, json={"types": ["fact.created", "message.stored"]}))
    append(client, "s", [said("After.")], **ADA)
    deliver(restarted)
    came = [(event["type"], event["data"]["user_id"]) for event in receiver.events]
    assert [event for event in came if event[1] == "ada"] == [("fact.created", "ada"), ("message.stored", "ada")]
    assert ("fact.created", "bob") in came, "what waited is told all the same"


def test_a_failing_receiver_gets_each_event_later_and_in_order(app, client, receiver):
    make(client, receiver)
    receiver.fails = lambda event: event["data"]["message_id"] == 2 and len(receiver.of("ada")) < 5
    for number in range(4):
        append(client, "tea", [said(f"Message {number}")], **ADA)
    append(client, "bobs", [said("Hello")], user_id="bob")
    deliver(app)
    assert receiver.of("bob") == [5], "another person's events do not wait"
    assert webhook(client)["failing_since"] is None or 3 not in receiver.of("ada")
    for _ in range(3):
        deliver(app)
    came = receiver.of("ada")
    assert came[:2] == [1, 2] and list(dict.fromkeys(came)) == [1, 2, 3, 4] and came.count(2) > 1
    assert came == sorted(came)
    repeated = [headers["webhook-id"] for headers, _ in receiver.requests if headers["webhook-id"] == "m2"]
    assert len(repeated) == came.count(2), "a repeated event has the same id"
    assert webhook(client)["failing_since"] is None


def fail_to_deliver(app, client, receiver):
    """Make a webhook, and fail to deliver its first event; return the engine."""
    make(client, receiver)
    receiver.status = 503
    append(client, "tea", [said("One")], **ADA)
    deliver(app)
    return engine_of(app)


def test_a_pause_ends_when_the_clock_is_put_back(app, client, receiver):
    engine = fail_to_deliver(app, client, receiver)
    with engine.database.write() as tx:  # the last tries were tomorrow
        row = tx.scalars(select(WebhookRow)).one()
        row.failing_since = engine.now() + timedelta(days=1)
        row.deliveries = [{**one, "at": (engine.now() + timedelta(days=1.1)).isoformat()} for one in row.deliveries]
    receiver.status = 204
    deliver(app)
    assert receiver.of("ada")[-1] == 1 and webhook(client)["failing_since"] is None


def test_a_webhook_that_fails_for_long_is_disabled_and_enabled_it_gets_everything(app, client, receiver):
    engine = fail_to_deliver(app, client, receiver)
    assert webhook(client)["failing_since"] and webhook(client)["enabled"]
    with engine.database.write() as tx:
        row = tx.scalars(select(WebhookRow)).one()
        row.failing_since = engine.now() - FAILING_MAX
        row.deliveries = [{**one, "at": (engine.now() - timedelta(minutes=5)).isoformat()} for one in row.deliveries]
    deliver(app)
    shown = webhook(client)
    assert not shown["enabled"] and "503" in shown["problem"]
    assert "1 webhooks were disabled" in good(client.get("/health/ready"))["webhooks"]
    append(client, "tea", [said("Two")], **ADA)
    posted = len(receiver.requests)
    deliver(app)
    assert len(receiver.requests) == posted and not [
        job for job in good(client.get("/api/jobs"))["items"] if job["kind"] == "webhook"
    ]
    receiver.status = 204
    shown = good(client.patch("/api/webhooks/1", json={"enabled": True}))
    assert (shown["enabled"], shown["problem"], shown["failing_since"]) == (True, None, None)
    deliver(app)
    assert receiver.of("ada")[-2:] == [1, 2]
    assert "webhooks" not in good(client.get("/health/ready"))


def test_a_receiver_that_is_gone_or_whose_webhook_is_deleted_gets_nothing_more(app, client, receiver):
    make(client, receiver)
    receiver.status = 410
    append(client, "tea", [said("One")], **ADA)
    deliver(app)
    assert not webhook(client)["enabled"] and len(receiver.requests) == 1
    good(client.patch("/api/webhooks/1", json={"enabled": True}))
    assert client.delete("/api/webhooks/1").status_code == 204
    deliver(app)
    assert len(receiver.requests) == 1 and good(client.get("/api/webhooks"))["items"] == []
    error(client.delete("/api/webhooks/1"), 404)


@pytest.mark.parametrize("change", ["disabled", "without words", "erased"])
def test_what_changes_while_events_are_posted_counts_for_the_next_one(app, client, receiver, change):
    hook = f"/api/webhooks/{make(client, receiver, words=True)['id']}"
    ids = append(client, "tea", [said(f"quicksilver {n}") for n in range(3)], **ADA)["message_ids"]

    def change_it(_: Any) -> bool:
        if len(receiver.requests) == 1 and change == "erased":
            good(app.test_client().delete(f"/api/sessions/tea/messages/{ids[1]}?user_id=ada"))
        elif len(receiver.requests) == 1:
            good(app.test_client().patch(hook, json={"enabled": change != "disabled", "words": False}))
        return False

    receiver.fails = change_it
    deliver(app)
    contents = [event["data"].get("content") for event in receiver.events if event["type"] == "message.stored"]
    words = {"disabled": [], "without words": [None, None], "erased": ["quicksilver 2"]}
    assert contents == ["quicksilver 0", *words[change]]


def test_an_erased_person_is_told_and_nothing_else_of_them(app, client, receiver):
    make(client, receiver, words=True)
    append(client, "tea", [said("SENTINEL")], **ADA)
    engine_of(app).deliveries.dispatch()  # their job waits
    good(client.delete("/api/users/ada"))
    deliver(app)
    (event,) = receiver.events
    assert (event["type"], event["data"]) == ("person.erased", {"user_id": "ada"})


def test_a_test_delivery_says_how_it_went(client, receiver):
    make(client, receiver)
    went = good(client.post("/api/webhooks/1/test"))
    assert (went["status"], went["error"]) == (204, None)
    assert receiver.events[0]["type"] == "webhook.test"
    receiver.status = 404
    assert good(client.post("/api/webhooks/1/test"))["error"] == "it answered 404"
    assert webhook(client)["failing_since"] is None, "a test disables nothing"
    assert len(webhook(client)["deliveries"]) == 2


# -- whose


def test_owners_are_apart(app, receiver):
    keys = engine_of(app).keys
    whose = {"acme": ("acme", None), "ada": ("acme", "ada"), "bob": ("acme", "bob"), "globex": ("globex", None)}
    clients = {name: with_key(app, keys.create(*pair)[0]) for name, pair in whose.items()}
    ids = {name: make(client, receiver)["id"] for name, client in clients.items()}
    seen = {name: [one["id"] for one in good(client.get("/api/webhooks"))["items"]] for name, client in clients.items()}
    assert seen == {
        "acme": [ids["acme"], ids["ada"], ids["bob"]],
        **{name: [ids[name]] for name in ("ada", "bob", "globex")},
    }
    for stranger in ("bob", "globex"):
        for method, path in (("patch", ""), ("delete", ""), ("post", "/test")):
            call = getattr(clients[stranger], method)
            error(call(f"/api/webhooks/{ids['ada']}{path}", **({"json": {}} if method == "patch" else {})), 404)
    error(clients["ada"].post("/api/webhooks", json={"url": receiver.url, "user_id": "bob"}), 404)
    append(clients["ada"], "adas", [said("Hello")])
    append(clients["globex"], "theirs", [said("Hello")], user_id="ada")
    receiver.requests.clear()
    deliver(app)
    told = sorted(event["data"]["session_id"] for event in receiver.events)
    assert told == ["adas", "adas", "theirs"], "Ada's webhook and her tenant's, and the other tenant's own"
    chats = with_key(app, keys.create("acme", None, ["chat", "read"])[0])
    error(chats.get("/api/webhooks"), 403)


def test_there_is_an_end_to_how_many_and_a_persons_webhook_goes_with_the_person(client, receiver):
    for _ in range(WEBHOOKS_MAX):
        make(client, receiver)
    assert error(client.post("/api/webhooks", json={"url": receiver.url}), 409)["code"] == "too_many_webhooks"
    make(client, receiver, user_id="ada")
    good(client.delete("/api/users/ada"))
    assert len(good(client.get("/api/webhooks"))["items"]) == WEBHOOKS_MAX


# -- where to


def test_only_a_public_address_is_taken(make_app):
    client = make_app(encryption_key=KEY).test_client()
    for url in (
        *("http://example.com/x", "ftp://example.com/x", "https://", "example.com", "https://ada:secret@example.com/"),
        *("https://127.0.0.1/x", "https://10.1.2.3/", "https://192.168.1.1/", "https://169.254.169.254/latest"),
        *("https://[::1]/", "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://[::ffff:10.0.0.1]/"),
        *("https://[64:ff9b::a9fe:a9fe]/", "https://[64:ff9b:1::1]/", "https://[2002:7f00:1::]/", "https://0.0.0.0/"),
        *("https://224.0.0.1/", "https://100.64.0.1/", "https://exämple.com/", "https://example.com/#part"),
        "https://example.com:99999/",
    ):
        assert error(client.post("/api/webhooks", json={"url": url}), 422)["code"] == "bad_webhook_url", url
    refused = client.post("/api/webhooks", json={"url": "http://localhost:5000/recap"})
    assert "WEBHOOK_NETWORKS" in error(refused, 422)["message"]
    for url in ("https://example.com/x?y=z", "https://8.8.8.8/", "https://[2606:4700::1111]:8443/"):
        assert good(client.post("/api/webhooks", json={"url": url}))["url"] == url


def test_a_private_address_is_not_connected_to(make_app, receiver):
    allowed = make_app(encryption_key=KEY, webhook_networks=LOOPBACK).test_client()
    client = make_app(encryption_key=KEY).test_client()  # the operator takes the leave away
    for number, host in enumerate(("localhost", "127.0.0.1"), 1):
        good(allowed.post("/api/webhooks", json={"url": receiver.url.replace("127.0.0.1", host)}))
        assert "is not public" in good(client.post(f"/api/webhooks/{number}/test"))["error"]
    assert receiver.requests == []


def test_a_name_is_looked_up_once(monkeypatch, receiver):
    """A name server that answers with a public address first, and then with a private one, leads nowhere."""
    answers = iter(["127.0.0.1", "10.0.0.1"])
    real, asked = public_network.socket.getaddrinfo, list[Any]()

    def rebinding(host: Any, *args: Any, **options: Any) -> Any:
        asked.append(host)
        return real(next(answers) if host == "rebinding.test" else host, *args, **options)

    monkeypatch.setattr(public_network.socket, "getaddrinfo", rebinding)
    url = receiver.url.replace("127.0.0.1", "rebinding.test")
    assert deliveries.post(url, ("whsec_AAAA",), EVENT, utc_now(), LOOPBACK) == (204, None)
    assert asked.count("rebinding.test") == 1
    assert receiver.requests[0][0]["host"].startswith("rebinding.test")


def test_an_address_of_a_name_where_nobody_listens_is_passed_over(monkeypatch, receiver):
    real = public_network.socket.getaddrinfo

    def two(host: Any, *args: Any, **options: Any) -> Any:
        addresses = ("127.0.0.2", "127.0.0.1") if host == "two.test" else (host,)
        return [entry for address in addresses for entry in real(address, *args, **options)]

    monkeypatch.setattr(public_network.socket, "getaddrinfo", two)
    url = receiver.url.replace("127.0.0.1", "two.test")
    assert deliveries.post(url, ("whsec_AAAA",), EVENT, utc_now(), LOOPBACK) == (204, None)


def test_no_redirect_is_followed(client, receiver):
    other = Receiver()
    make(client, receiver)
    for status in (301, 302, 307, 308):
        receiver.status, receiver.headers = status, {"Location": other.url}
        assert "redirect" in good(client.post("/api/webhooks/1/test"))["error"]
    assert other.requests == [] and len(receiver.requests) == 4
    other.server.shutdown()


def test_a_receiver_that_answers_drop_by_drop_is_left(client, receiver, monkeypatch):
    monkeypatch.setattr(deliveries, "DELIVERY_SECONDS", 0.5)
    make(client, receiver)
    receiver.drips = True
    went = good(client.post("/api/webhooks/1/test"))
    assert "no answer" in went["error"] and went["seconds"] < 3


def test_a_certificate_is_checked_for_its_name(tmp_path, monkeypatch):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    for name, works in (("localhost", True), ("other.example", False)):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert(name).configure_cert(context)
        receiver = Receiver(context)
        url = receiver.url.replace("127.0.0.1", "localhost")
        _, problem = deliveries.post(url, ("whsec_AAAA",), EVENT, utc_now(), LOOPBACK)
        assert (problem is None) == works, problem
        assert len(receiver.requests) == works
        receiver.server.shutdown()


def test_the_receiver_of_the_documentation_verifies(client, receiver):
    secret = make(client, receiver)["secret"]
    good(client.post("/api/webhooks/1/test"))
    page = (Path(__file__).parent.parent / "docs/events.md").read_text("utf-8")
    program = page.partition("```python\n")[2].partition("```")[0].replace("whsec_...", secret)
    documented: dict[str, Any] = {"__name__": __name__}
    exec(program, documented)
    posted = documented["app"].test_client().post
    ((headers, body),) = receiver.requests
    assert posted("/recap", data=body, headers=headers).status_code == 204
    assert posted("/recap", data=body.replace(b"1", b"2"), headers=headers).status_code == 401
    late = {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 3600)}
    assert posted("/recap", data=body, headers=late).status_code == 401


def test_two_nodes_on_postgresql_deliver_each_event_once_and_in_order(nodes, receiver):
    clients = [app.test_client() for app in nodes]
    make(clients[0], receiver, types=["message.stored"])
    for app in nodes:
        engine_of(app).start()
    for number in range(20):
        append(clients[number % 2], f"s{number % 3}", [said(f"Message {number}")], user_id=f"u{number % 3}")
    assert eventually(lambda: len(receiver.requests) >= 20)
    for user in ("u0", "u1", "u2"):
        came = receiver.of(user)
        assert came == sorted(set(came)) and len(came) in (6, 7)


# -- whole processes


@pytest.mark.slow
def test_a_kill_between_commit_and_delivery_loses_nothing(tmp_path, migrated, receiver):
    settings = {"ENCRYPTION_KEY": KEY, "WEBHOOK_NETWORKS": "127.0.0.1", "WEB_WORKERS": "2"}
    with migrated_server(tmp_path, migrated, **settings) as server:
        server.start()
        with Api(server) as api:
            api.post("/api/webhooks", url=receiver.url, types=["message.stored"])
        stored = 0
        for cycle in range(2):
            receiver.status = 503 if cycle else 204
            with Api(server) as api:
                for _ in range(5):
                    api.append("tea", [said(f"Message {stored}")], user_id="ada")
                    api.append("bobs", [said(f"Message {stored}")], user_id="bob")
                    stored += 1
            time.sleep(0.7 * cycle)
            server.kill()  # at once after the commit, and while it is refused
            server.start()
        receiver.status = 204
        assert eventually(lambda: len(set(receiver.of("ada"))) == len(set(receiver.of("bob"))) == stored, 60.0)
        accepted = list(receiver.events)
        assert len(accepted) >= 2 * stored
        for user in ("ada", "bob"):
            first_seen = list(dict.fromkeys(receiver.of(user)))
            assert first_seen == sorted(first_seen), "each person's events came in order"
        with Api(server) as api:
            assert all(hook["enabled"] for hook in api.get("/api/webhooks")["items"])
