"""The Python client: its calls at a live server, plain and async; what it does when a call fails; and that both clients
have every call of the OpenAPI document."""

import asyncio
import json
import re
import socket
import threading
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from werkzeug.test import run_wsgi_app

import api
import recap_client
from app import VERSION
from clients import generate
from recap_client import AsyncRecap, NoAnswer, Recap, RecapError, errors
from tests.application import an_app
from tests.http import said
from tests.live import Live, Loopback

KEY = "sk-clients-0123456789"


@pytest.fixture(scope="module")
def live(tmp_path_factory, migrated):
    with an_app(tmp_path_factory.mktemp("python"), migrated, api_keys=f"clients:{KEY}") as app:
        running = Live(lambda: app)
        yield running
        running.stop()


@pytest.fixture
def name():
    """A person whom no other test knows; it has to be quoted in an address."""
    return f"p/{uuid.uuid4().hex}"


class Awaited:
    """An AsyncRecap whose calls are awaited at once, so that a test can try both clients."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = AsyncRecap(*args, **options)

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            result = getattr(self.client, name)(*args, **options)
            if name == "stream":
                return self.loop.run_until_complete(self.collected(result)), result.answer
            return self.loop.run_until_complete(self.collected(result) if hasattr(result, "__aiter__") else result)

        return call

    async def collected(self, items: Any) -> list[Any]:
        return [item async for item in items]

    def close(self) -> None:
        self.loop.run_until_complete(self.client.aclose())
        self.loop.close()


class Plain(Recap):
    """A Recap whose listings and streams are read at once."""

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name in ("sessions", "messages", "facts"):
            return lambda *args, **options: list(found(*args, **options))
        if name == "stream":
            return lambda *args, **options: (list(stream := found(*args, **options)), stream.answer)
        return found


def pages(make: type, live: Live, name: str, session: str) -> list[Any]:
    """Return two pages of a session's messages."""
    if make is Plain:
        listing = Recap(live.url, KEY, name).messages(session)
        return [page := listing.page(limit=60), listing.page(page["next_cursor"])]

    async def of_both() -> list[Any]:
        async with AsyncRecap(live.url, KEY, name) as recap:
            listing = recap.messages(session)
            return [page := await listing.page(limit=60), await listing.page(page["next_cursor"])]

    return asyncio.run(of_both())


@pytest.mark.parametrize("make", [Plain, Awaited])
def test_every_call_does_what_it_says(live, name, make, tmp_path):
    recap, session, other = make(live.url, KEY, name), uuid.uuid4().hex, uuid.uuid4().hex
    first = recap.chat("My kettle is blue.", session_id=session, idempotency_key=name)
    assert first["reply"] and first["session_id"] == session
    again = recap.chat("My kettle is blue.", session_id=session, idempotency_key=name)
    assert again["message_id"] == first["message_id"]
    words, answer = recap.stream("What colour is it?", session_id=session, idempotency_key="second" + name)
    assert len(words) > 1 and "".join(words) == answer["reply"]
    again = recap.chat("What colour is it?", session_id=session, idempotency_key="second" + name)
    assert {**again, "memory": 0, "usage": 0} == {**answer, "memory": 0, "usage": 0}

    then = datetime(2026, 5, 1, 12, tzinfo=UTC)
    many: Any = [said(f"Tea {number}", external_id=str(number), created_at=then) for number in range(130)]
    added = recap.add_messages(other, many)
    assert [one["content"] for one in recap.messages(other)] == [one["content"] for one in many]
    assert recap.messages(other, order="desc")[0]["id"] == added["message_ids"][-1]
    (page, last) = pages(make, live, name, other)
    assert [len(page["items"]), len(last["items"]), last["next_cursor"]] == [60, 70, None]
    assert last["items"][-1]["id"] == added["message_ids"][-1]
    assert {one["created_at"] for one in recap.messages(other)} == {then.isoformat()}
    assert recap.facts(as_of=then) == [] and recap.search("Tea", before=then)["results"] == []
    assert recap.erase_message(other, added["message_ids"][0])["erased"]["messages"] == 1
    assert recap.change_session(session, title="Kettles")["title"] == recap.session(session)["title"] == "Kettles"
    assert [one["id"] for one in recap.sessions(q="Kettles")] == [session] and len(recap.sessions()) == 2
    found = recap.search("blue kettle", role="user", window=1)["results"]
    assert found[0]["content"] == "My kettle is blue." and found[0]["window"]
    assert "blue" in recap.recall("Which kettle have I got?")["block"]

    fact = recap.add_fact("Ada drinks tea.", category="preference", importance=5)
    assert recap.change_fact(fact["id"], pinned=True)["pinned"]
    assert [one["text"] for one in recap.facts(category="preference")] == ["Ada drinks tea."]
    assert recap.forget_fact(fact["id"])["erased"]["facts"] == 1 and recap.facts(category="preference") == []

    assert recap.put_item(["notes", "tea"], "cups", {"n": 2}, ttl=60)["version"] == 1
    assert recap.get_item(["notes", "tea"], "cups")["value"] == {"n": 2}
    assert recap.search_items(["notes"], filter={"n": {"$gt": 1}})["items"][0]["key"] == "cups"
    (got,) = recap.batch([{"op": "get", "namespace": ["notes", "tea"], "key": "cups"}])["results"]
    assert got["item"]["value"] == {"n": 2} and recap.delete_item(["notes", "tea"], "cups")["erased"]

    path = tmp_path / "tea.md"
    path.write_text("# Sencha\n\nIt takes 70 degrees.", "utf-8")
    document = recap.upload_document(path, uri="https://tea.example", session_id=None)
    assert (document["title"], document["state"], document["user_id"]) == ("tea", "created", name)
    assert recap.upload_document(("tea.md", path.read_bytes()), uri="https://tea.example")["state"] == "unchanged"
    assert recap.search("sencha", kind="document")["results"][0]["document"]["uri"] == "https://tea.example"

    edited = recap.edit_profile([{"op": "add", "path": "/home", "value": "Tartu"}], expected_version=0)
    assert recap.profile()["document"] == edited["document"] and edited["document"]["home"] == "Tartu"
    assert recap.give_feedback(session, first["message_id"], thumbs="up")["thumbs"] == "up"
    assert recap.erase_session(session)["erased"]["messages"] == 4
    recap.close()


def run_examples(page: str, live: Live, name: str) -> int:
    """Run a page's examples against the server, and return how many there are."""
    codes = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    for code in codes:
        key = "" if "api_key=" in code else f', api_key="{KEY}"'
        code = code.replace("api_key=None", f'api_key="{KEY}"').replace('"ada"', f'"{name}"{key}')
        code = code.replace("http://127.0.0.1:8000", live.url)
        exec(compile(code, "page", "exec"), {})
    return len(codes)


def test_the_guide_from_other_memories_names_methods_that_there_are(live, name):
    page = Path(__file__).parents[1].joinpath("docs/migrating.md").read_text("utf-8")
    named = set(re.findall(r"`recap\.(\w+)", page))
    assert len(named) > 15 and {method for method in named if not hasattr(Recap, method)} == set()
    assert run_examples(page, live, name) == 2
    with Recap(live.url, KEY, user_id=name) as recap:
        assert [message["role"] for message in recap.messages("dinner")] == ["user", "assistant"]


def test_the_readme_does_what_it_says(live, name, capsys):
    page = Path(__file__).parents[1].joinpath("clients/python/README.md").read_text("utf-8")
    assert run_examples(page, live, name) == 3
    printed = capsys.readouterr().out
    assert "user My cat is called Miso." in printed and "saved_tokens" in printed and "session_not_found" in printed


# -- failures


class Proxy:
    """The application behind a proxy that fails as it is told to, once for each of its `faults`."""

    def __init__(self, live: Live) -> None:
        self.app, self.faults, self.keys = live.app, [], []
        self.let_go = threading.Event()
        self.server = Loopback(self)
        self.url = f"http://127.0.0.1:{self.server.port}"

    def __call__(self, environ: Any, start: Any) -> Any:
        self.keys.append(environ.get("HTTP_IDEMPOTENCY_KEY"))
        if not self.faults:
            return self.app(environ, start)
        return self.faults.pop(0)(self, environ, start)


def refused(status: int, error: dict[str, str] | None = None, wait: int | None = None) -> Any:
    def refuse(proxy: Proxy, environ: Any, start: Any) -> list[bytes]:
        start(f"{status} Refused", [("Retry-After", str(wait))] if wait is not None else [])
        return [json.dumps({"error": error}).encode() if error else b"<h1>Bad gateway</h1>"]

    return refuse


def lost(proxy: Proxy, environ: Any, start: Any) -> list[bytes]:
    """The call is carried out, but nobody gets its answer."""
    body, _, _ = run_wsgi_app(proxy.app, environ)
    b"".join(body)
    environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
    start("200 OK", [])
    return []


def hung(proxy: Proxy, environ: Any, start: Any) -> list[bytes]:
    proxy.let_go.wait(30)
    return lost(proxy, environ, start)


def streamed(*events: str) -> Any:
    def stream(proxy: Proxy, environ: Any, start: Any) -> list[bytes]:
        start("200 OK", [("Content-Type", "text/event-stream")])
        return [f"data: {event}\n\n".encode() for event in events]

    return stream


@pytest.fixture
def proxy(live):
    proxy = Proxy(live)
    yield proxy
    proxy.let_go.set()
    proxy.server.stop()


BUSY = {"type": "rate_limit_error", "code": "too_many_at_once", "message": "Too many at once. Nothing was done."}
CHUNK = '{"session_id": "s", "choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": null}]}'


@pytest.mark.parametrize("make", [Recap, Awaited])
@pytest.mark.parametrize("fault", [refused(429, BUSY, wait=0), refused(502), lost], ids=["told", "away", "lost"])
def test_a_call_is_sent_again_and_done_once(proxy, name, make, fault):
    recap, session = make(proxy.url, KEY, name), uuid.uuid4().hex
    proxy.faults = [fault]
    answer = recap.chat("Hello", session_id=session)
    assert len(set(proxy.keys)) == 1 and len(proxy.keys) == 2, "the second attempt has the key of the first"
    proxy.faults = [fault]
    appended: Any = [said("Once", external_id="once")]
    recap.add_messages(session, appended)
    stored = list(recap.messages(session))
    assert [one["id"] for one in stored][1] == answer["message_id"] and len(stored) == 3
    recap.close()


def test_a_call_that_is_not_repeatable_is_not_sent_again_unless_it_was_not_done(proxy, name):
    recap = Recap(proxy.url, KEY, name)
    for fault, error in ((lost, NoAnswer), (refused(502), RecapError)):
        proxy.faults, proxy.keys = [fault], []
        with pytest.raises(error):
            recap.add_fact("Tea is ready.")
        assert len(proxy.keys) == 1
    assert len(list(recap.facts())) == 1
    proxy.faults = [refused(429, BUSY, wait=0)]
    recap.add_fact("Tea is cold.")
    assert len(list(recap.facts())) == 2
    proxy.faults = [refused(429, BUSY, wait=3600)]
    with pytest.raises(errors.LimitReached) as limited:
        recap.search("tea")
    assert (limited.value.code, limited.value.retry_after) == ("too_many_at_once", 3600)
    proxy.faults = [refused(429, BUSY, wait=0)] * 3
    with pytest.raises(errors.LimitReached):
        recap.search("tea")
    proxy.faults = [hung]
    with pytest.raises(NoAnswer, match="ReadTimeout"):
        Recap(proxy.url, KEY, timeout=0.2, retries=0).search("tea")


def test_errors_say_what_they_are(live, proxy, name):
    recap = Recap(live.url, KEY, name)
    for call, error, status, code in (
        (lambda: recap.session("nowhere"), errors.NotFound, 404, "session_not_found"),
        (lambda: recap.search(""), errors.InvalidRequest, 422, "invalid_fields"),
        (lambda: recap.edit_profile([], expected_version=0), errors.InvalidRequest, 422, "invalid_fields"),
        (lambda: Recap(live.url, "sk-of-nobody-0123456789").search("x"), errors.Unauthenticated, 401, None),
        (lambda: Recap(f"{live.url}/nowhere", KEY).search("x"), errors.InvalidRequest, 404, "not_found"),
        (lambda: Recap("http://127.0.0.1:1", KEY, retries=0).search("x"), NoAnswer, 0, "no_answer"),
    ):
        with pytest.raises(error) as caught:
            call()
        assert caught.value.status == status and (code is None or caught.value.code == code)
    assert "The call was not carried out." in str(caught.value)
    with pytest.raises(errors.InvalidRequest) as wrong:
        recap.search("tea", limit=1000)
    assert wrong.value.param == "limit" and list(wrong.value.fields) == ["limit"]


@pytest.mark.parametrize("make", [Plain, Awaited])
def test_a_stream_that_breaks_off_raises(proxy, make):
    recap = make(proxy.url, KEY)
    failure = {"type": "model_error", "code": "model_failed", "message": "The model failed."}
    for events, error in (([CHUNK, json.dumps({"error": failure})], errors.ModelError), ([CHUNK], NoAnswer)):
        proxy.faults = [streamed(*events)]
        with pytest.raises(error):
            recap.stream("Hello")
    proxy.faults = [refused(404, {**failure, "type": "not_found_error"})]
    with pytest.raises(errors.NotFound, match="The model failed"):
        recap.stream("Hello")
    stream = Recap(proxy.url, KEY).stream("Hello")
    assert next(iter(stream))
    with pytest.raises(RuntimeError, match="not complete"):
        stream.answer  # noqa: B018
    stream.close()
    recap.close()


# -- the whole API


@pytest.mark.parametrize("make", [Plain, Awaited])
def test_calls_for_everyone_and_of_other_protocols_work_for_a_client_of_a_person(live, name, make):
    recap = make(live.url, KEY, name)
    assert recap.whoami()["tenant"] == "clients" and recap.ready()["status"] == "ready"
    assert {prompt["name"] for prompt in recap.list_prompts()["items"]} >= {"summary", "system"}
    told: Any = [{"role": "user", "content": "My teapot is green."}]
    assert recap.complete(told, model="recap", temperature=0)["choices"]
    assert recap.create_message(told, 100, model="recap", metadata={"session_id": f"m{name[2:]}"})["content"]
    assert recap.create_response("My teapot is green.", model="recap")["output"]
    assert recap.get_user()["messages"] == 6, "they all are the person's"
    assert recap.mcp("2.0", id=1, method="ping")["result"] is not None
    assert recap.export()["user_id"] == name and recap.export(format="markdown").startswith("#")
    assert recap.import_chats(json.dumps([{"messages": told}]).encode())["created"]["sessions"] == 1
    assert recap.import_chats(recap.export())["created"] is not None
    session = recap.create_session(title="Pots", system_prompt="Be brief.")
    assert recap.change_session(session["id"], pinned=True)["system_prompt"] == "Be brief."
    assert recap.change_session(session["id"], system_prompt=None)["system_prompt"] is None, "null is sent"
    if make is Plain:
        events = recap.events(words=True, after="0-0-0-0-0", seconds=0)
        assert {event["type"] for event in events} >= {"message.stored"} and events.position
        quiet = recap.with_options(timeout=0.5, retries=0).events(after=events.position, seconds=1)
        types = {event["type"] for event in quiet}  # jobs may report something while nobody says anything
        assert "message.stored" not in types, "nothing is said for longer than a call may take"
    recap.put_item(["pots"], "a", None)
    assert recap.get_item("pots", "a")["value"] is None
    assert recap.list_namespaces(prefix=["pots"])["namespaces"] == [["pots"]]
    assert recap.erase_user()["erased"]["sessions"] >= 4
    recap.close()


def test_a_call_that_names_another_person_than_the_client_is_refused(live, name):
    with Recap(live.url, KEY) as recap:
        assert recap.chat("My kettle is red.", user_id=name)["reply"]
        assert recap.get_user(user_id=name)["messages"] == 2
        mine = recap.for_user(name)
        calls: list[Any] = [
            lambda: mine.chat("Hello", user_id="another"),
            lambda: list(mine.stream("Hello", user_id="another")),
            lambda: list(mine.facts(user_id="another")),
            lambda: mine.profile(user_id="another"),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="another person"):
                call()
        assert mine.recall("kettle", user_id=name)["block"]


def test_options_are_those_of_a_call_or_of_the_environment(live, proxy, name, monkeypatch):
    for variable, value in {"RECAP_URL": live.url, "RECAP_API_KEY": KEY, "RECAP_USER_ID": name}.items():
        monkeypatch.setenv(variable, value)
    with Recap.from_env() as recap:
        assert recap.add_fact("Ada drinks tea.")["text"] == "Ada drinks tea."
        sent: list[httpx.Request] = []
        own = httpx.Client(event_hooks={"request": [sent.append]})
        mine = Recap.from_env(http_client=own, headers={"X-Program": "tests"})
        assert list(mine.with_options(headers={"X-Request-ID": "a" * 32}).facts())
        assert (sent[0].headers["X-Request-ID"], sent[0].headers["X-Program"]) == ("a" * 32, "tests")
        mine.close()
        assert not own.is_closed, "it is the program's"
        own.close()
    proxy.faults = [hung]
    with pytest.raises(NoAnswer, match="ReadTimeout"):
        Recap(proxy.url, KEY).with_options(timeout=0.2, retries=0).search("tea")


def test_both_clients_have_every_call_as_the_document_describes_it():
    calls = list(generate.operations(api.document(VERSION)))
    assert len({call.id for call in calls}) == len({call.name for call in calls}) == len(calls) > 90
    for client in (Recap, AsyncRecap):
        assert [call.name for call in calls if not callable(getattr(client, call.name, None))] == []
    outdated = [path.name for path, text in generate.generated().items() if path.read_text("utf-8") != text]
    assert outdated == [], "the API has changed: run `make clients`"


def test_both_packages_have_one_version_a_licence_and_links_that_lead_somewhere():
    folder = Path(__file__).parents[1] / "clients"
    package = json.loads((folder / "js/package.json").read_text("utf-8"))
    assert package["version"] == recap_client.__version__ and package["license"] == "Apache-2.0"
    assert f'VERSION = "{package["version"]}"' in (folder / "js/index.js").read_text("utf-8")
    for name in ("python", "js"):
        assert "Apache License" in (folder / name / "LICENSE").read_text("utf-8")
        readme = (folder / name / "README.md").read_text("utf-8")
        assert not re.search(r"\]\((?!https?:|#)", readme), "a package index has none of the other files"


def test_half_a_surrogate_pair_and_a_key_with_its_line_end_are_sent(live, name, tmp_path):
    recap = Recap(live.url, f"{KEY}\n", name)
    with pytest.raises(errors.InvalidRequest) as refused:
        recap.chat("half \ud83d")
    assert refused.value.fields.keys() == {"message"}, "the server says what is wrong"
    assert recap.chat("a smile: \ud83d\ude00")["reply"]
    path = tmp_path / "caf\udce9.txt"  # a name in Latin-1, as Python reads it
    path.write_text("Tea is green.")
    assert recap.upload_document(path)["title"] == "caf\ufffd"
    with pytest.raises(errors.Unauthenticated):
        Recap(live.url, " ", name).search("tea")  # an empty key is none


def test_a_model_and_an_import_may_take_longer_than_other_calls():
    sent: dict[str, float] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        sent[request.url.path] = request.extensions["timeout"]["read"]
        return httpx.Response(200, json={})

    with httpx.Client(transport=httpx.MockTransport(answer)) as own:
        recap = Recap(http_client=own, timeout=3, reply_timeout=90)
        recap.import_chats(b"[]", user_id="ada")
        recap.complete_text(model="code")
        recap.search("tea", user_id="ada")
    assert sent == {"/api/import": 90, "/v1/completions": 90, "/api/search": 3}


def test_an_address_without_http_says_that_nothing_was_sent():
    with Recap("localhost:8000", retries=0) as recap, pytest.raises(NoAnswer, match="was not carried out"):
        recap.add_messages("s", [said("Hello")])
