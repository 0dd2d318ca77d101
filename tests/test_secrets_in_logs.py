"""No secret and nobody's words get into the logs: a whole run of real processes, with all of its output at debug."""

import json
import socket

import httpx2
import pytest

from tests.model_server import CutStream, Html, ModelServer, Status, Text, ToolCalls
from tests.processes import Server, eventually, migrated_server
from tests.test_logs import read

OURS, WRONG, METRICS = "key-of-acme-sentinel-1", "key-nobody-has-sentinel-2", "key-of-metrics-sentinel-3"
THEIRS, REDIS = "sk-model-server-sentinel-4", "redis-password-sentinel-5"
PERSON, SESSION = "person-sentinel-6", "session-sentinel-7"
WORDS, REPLY, PROMPT = "Misosentinel", "Replysentinel", "Promptsentinel"
SECRETS = (OURS, WRONG, METRICS, THEIRS, REDIS, PERSON, SESSION, WORDS, REPLY, PROMPT)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def log(tmp_path_factory, migrated):
    """What a server wrote to its standard output and error while everything was done with it, and went wrong."""
    settings = {
        "RECAP_API_KEYS": f"acme:{OURS}",
        "METRICS_KEY": METRICS,
        "OPENAI_API_KEY": THEIRS,
        "RATE_LIMIT_STORAGE": f"redis://:{REDIS}@127.0.0.1:1/0",
        "LOG_LEVEL": "debug",
        "SUMMARY_DEBOUNCE": "0",
        "DAILY_TOKENS": "1000000",
        "MODEL_TIMEOUT": "5",
    }
    folder = tmp_path_factory.mktemp("secrets")
    with ModelServer() as models, migrated_server(folder, migrated, OPENAI_BASE_URL=models.url, **settings) as server:
        server.start()
        with httpx2.Client(base_url=server.url, timeout=30.0, trust_env=False) as http:
            turns(http, models)
            failures(http, models)
            everything_else(http)
            requests_that_are_none(server)
            guesses(http)
        server.stop()
        yield server.log.read_text("utf-8", "replace")


def turns(http: httpx2.Client, models: ModelServer) -> None:
    """Turns that go well, each way there is."""
    http.headers["Authorization"] = f"Bearer {OURS}"
    look = ToolCalls((("conversation_search", {"query": WORDS}),))
    models.main.queue(*(Text(f"{REPLY}."),) * 3, look, *(Text(f"{REPLY}."),) * 3)
    body = {"message": f"My cat is called {WORDS}.", "user_id": PERSON}
    for more in ({"session_id": SESSION}, {"stream": True}, {"temporary": True}, {"recall": "tools"}):
        http.post("/api/chat", json={**body, **more}, headers={"Idempotency-Key": f"{PERSON}{len(more)}"})
    completion = {"model": "main-model", "messages": [{"role": "user", "content": WORDS}], "user": PERSON}
    for more in ({}, {"stream": True}):
        answer = http.post("/v1/chat/completions", json={**completion, **more}, headers={"X-Session-Id": SESSION})
        assert answer.status_code == 200, answer.text


def failures(http: httpx2.Client, models: ModelServer) -> None:
    """Turns and jobs that fail, with words and keys in what the model server says of it."""
    telling = {"error": {"message": f"Not {THEIRS}, not {WORDS}.", "type": "x", "param": WORDS, "code": WORDS}}
    ways = (Status(401, telling), Status(400, telling), Status(500, f"{THEIRS} {WORDS}"), CutStream(), Html())
    for way in ways:
        models.main.default = models.mini.default = way
        for path in ("/api/chat", "/v1/chat/completions"):
            said = {"message": WORDS} if path == "/api/chat" else {"messages": [{"role": "user", "content": WORDS}]}
            http.post(path, json={"user_id" if path == "/api/chat" else "user": PERSON, "stream": True, **said})
        http.post(f"/api/sessions/{SESSION}/summary/refresh")
        http.post(f"/api/sessions/{SESSION}/summary/preview", json={"text": f"{PROMPT} {{% if first %}}{{% endif %}}"})
    models.mini.default = Text(f"{WORDS} {REPLY}")
    models.main.default = Text(f"{REPLY}.")
    http.post(f"/api/sessions/{SESSION}/summary/refresh")
    http.get("/v1/models")


def everything_else(http: httpx2.Client) -> None:
    """Every resource, found and not, with keys that are right, wrong and in the wrong place."""
    asked = {"user_id": PERSON}
    fact = http.post("/api/facts", json={"text": f"{WORDS} is a cat.", **asked}).json()
    http.patch(f"/api/facts/{fact['id']}", params=asked, json={"text": f"{WORDS} was a cat."})
    http.get("/api/search", params={"q": WORDS, **asked})
    http.get("/api/facts", params={"q": WORDS, "cursor": WORDS, **asked})
    http.get(f"/api/sessions/{SESSION}/messages", params={"api_key": OURS, **asked})
    http.get(f"/nothing/{WORDS}", params={"key": OURS})
    http.put("/api/prompts/brief", json={"text": f"{{{{ {PROMPT} }}}}"})
    http.put("/api/prompts/brief", json={"text": PROMPT})
    http.post("/api/chat", content=f'{{"message": "{WORDS}', headers={"Content-Type": "application/json"})
    http.post("/api/chat", json={"message": [WORDS], "nobody": PERSON})
    export = http.get(f"/api/users/{PERSON}/export")
    assert WORDS in export.text
    http.post("/api/import", params=asked, content=export.content, headers={"Content-Type": "application/json"})
    http.post("/api/import", params=asked, content=json.dumps([WORDS]), headers={"Content-Type": "application/json"})
    http.delete(f"/api/users/{PERSON}-other")
    for key in (WRONG, METRICS, f"{OURS} {WRONG}"):
        http.get("/api/sessions", headers={"Authorization": f"Bearer {key}"})
        http.get("/metrics", headers={"Authorization": f"Bearer {key}"})
    http.get("/api/sessions", headers={"Authorization": f"Basic {OURS}"})
    assert eventually(lambda: http.get("/api/jobs", params={"state": "running"}).json()["items"] == [])
    http.delete(f"/api/sessions/{SESSION}")
    http.delete(f"/api/users/{PERSON}")


def guesses(http: httpx2.Client) -> None:
    """Wrong keys until the address is turned away, whichever worker they come to."""
    for _ in range(50):
        http.get("/api/sessions", headers={"Authorization": f"Bearer {WRONG}", "X-Forwarded-For": PERSON})


def requests_that_are_none(server: Server) -> None:
    """What gunicorn itself refuses."""
    for sent in (
        f"GET /api/search?q={WORDS} HTTP/9.9\r\n\r\n",
        f"GET /api/search?q={WORDS}\r\n\r\n",
        f"{WORDS} {OURS}\r\n\r\n",
        f"GET /{WORDS * 1000} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        f"GET / HTTP/1.1\r\nAuthorization Bearer {OURS}\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OURS}\x01{WORDS}\r\n\r\n",
        f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: {WORDS}\r\n\r\n",
        f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OURS}\r\n"
        f"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{WORDS}\r\n{WORDS}\r\n",
        f"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {OURS}\r\n"
        f'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"message": "{WORDS}',
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10.0) as connection:
            connection.sendall(sent.encode("latin-1"))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass


def test_the_run_was_logged_at_debug(log):
    assert "level=debug" in log and "event=turn" in log
    for code in ("api_key_unknown", "too_many_wrong_keys", "not_found", "invalid_json", "invalid_fields"):
        assert f"code={code}" in log, code
    assert "outcome=failed" in log and "unreachable" in log  # turns, and the Redis


def test_every_line_has_the_one_form(log):
    lines = [read(line) for line in log.splitlines()]
    assert all({"time", "level", "logger", "event"} <= line.keys() for line in lines)
    assert {"turn", "summary", "request"} <= {line["event"] for line in lines}
    assert "gunicorn.error" in {line["logger"] for line in lines}


@pytest.mark.parametrize("secret", SECRETS)
def test_no_secret_and_no_words_are_in_the_log(log, secret):
    found = [line for line in log.splitlines() if secret.lower() in line.lower()]
    assert found == []
