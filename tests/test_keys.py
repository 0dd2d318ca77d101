"""Keys that are made and revoked while the service runs: whom they let in, what for, and that none is stored."""

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask import Flask
from flask.testing import FlaskClient

from app import engine_of
from config import ApiKey
from memory.access.keys import CACHE_SECONDS, PREFIX, Keys
from memory.engine import utc_now
from memory.errors import InvalidRequest
from models.keys import SCOPES
from tests.application import run_command
from tests.http import chat, error, failed, good
from tests.test_auth import METHODS, with_key

CONFIGURED = ApiKey("acme", "key-of-acme-0123456789")


class Clock:
    """A monotonic clock that a test turns."""

    seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def database(engine):
    return engine.database


@pytest.fixture
def keys(database, clock):
    return Keys([CONFIGURED], database, utc_now, clock)


def made(app: Flask, tenant: str = "default", **more: Any) -> tuple[FlaskClient, int]:
    """A client with a new key, and the key's id."""
    key, info = engine_of(app).keys.create(tenant, **more)
    return with_key(app, key), info.id


# -- whom a key lets in


def test_a_key_is_asked_for_from_the_first_on_and_after_the_last_was_revoked(database, clock):
    keys = Keys([], database, utc_now, clock)
    assert not keys.required
    key, info = keys.create("acme")
    assert keys.required
    keys.revoke(info.id)
    assert keys.required and keys.find_principal(key) is None
    assert Keys([], database, utc_now, clock).required, "after a restart too"


def test_a_revoked_key_is_refused_by_every_process_soon(keys, database, clock):
    other = Keys([], database, utc_now, clock)
    key, info = keys.create("acme")
    assert other.find_principal(key)
    first = keys.revoke(info.id).revoked_at
    assert keys.find_principal(key) is None, "at once where it was revoked"
    clock.seconds += CACHE_SECONDS
    assert other.find_principal(key) is None
    assert keys.revoke(info.id).revoked_at == first, "once more changes nothing"


def test_what_no_request_could_be_of_makes_no_key(keys):
    changes: dict[str, list[Any]] = {
        "tenant": ["a b", "", "x" * 65],
        "user_id": ["", "a\nb", "\udcff", "x" * 257],
        "scopes": [[], ["chat", "root"]],
        "label": ["x" * 201, "a\x1b[31m"],
    }
    for param, values in changes.items():
        for value in values:
            with pytest.raises(InvalidRequest, match="No key was made") as caught:
                keys.create(**{"tenant": "acme", param: value})
            assert caught.value.param == param
    assert keys.list_keys() == []


def test_the_key_itself_is_in_no_byte_of_the_data(app, keys):
    key, info = keys.create("acme", "ada")
    folder: Path = engine_of(app).settings.data_dir
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"acme" in everything and info.hint.encode() in everything, "the row was not seen"
    assert key.encode() not in everything
    assert key.removeprefix(info.hint).encode() not in everything


# -- scopes


def calls(client: FlaskClient) -> dict[str, str]:
    """Every call of the document that asks for a key, and the scope it names."""
    paths = good(client.get("/openapi.json"))["paths"]
    return {
        f"{method.upper()} {path}": call["x-scope"]
        for path, methods in paths.items()
        for method, call in methods.items()
        if method.upper() in METHODS and call.get("security")
    }


CHATTING = {
    "POST /api/chat",
    "POST /api/sessions",
    "POST /api/sessions/{session_id}/messages",
    "POST /api/sessions/{session_id}/stop",
    "PUT /api/store/items",
    "DELETE /api/store/items",
    "POST /api/feedback",
    "POST /api/recall/unhelpful",
    "DELETE /api/recall/unhelpful/{mark_id}",
    "POST /api/store/batch",
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses/input_tokens",
    "POST /v1/conversations",
    "POST /v1/conversations/{conversation_id}/items",
    "POST /v1/embeddings",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /v1/moderations",
    "POST /v1/responses",
    "GET /v1/models",
    "GET /v1/models/{model}",
}
LOOKING = {  # beside what is read with GET
    "POST /api/recall",
    "POST /api/sessions/{session_id}/summary/preview",
    "POST /api/store/search",
}
NOT_JUST_LOOKING = {
    "GET /api/users/{user_id}/export",
    "GET /api/spaces/{space}/export",
    "GET /api/archives/{archive_id}",
    "GET /api/model-server",
    "GET /api/retention",
    "GET /api/webhooks",
}


def test_each_call_asks_for_the_scope_the_document_names(client):
    there = calls(client)
    assert there.pop("GET /api/me") == there.pop("POST /mcp") == "any"  # tools have scopes of their own
    for call, scope in there.items():
        reads = call in LOOKING or (call.startswith("GET ") and call not in NOT_JUST_LOOKING)
        assert scope == ("chat" if call in CHATTING else "read" if reads else "admin"), call
    assert set(there) >= CHATTING | LOOKING | NOT_JUST_LOOKING


@pytest.mark.parametrize("scope", list(SCOPES))
def test_a_key_may_do_what_its_scope_says_and_nothing_else(app, scope):
    client, _ = made(app, scopes=[scope])
    allowed = 0
    for call, needed in calls(client).items():
        method, path = call.split(" ")
        address = re.sub(r"\{(\w+_id)\}|\{\w+\}", "1", path)
        answer = client.open(address, method=method, json={} if method != "GET" else None)
        if needed in (scope, "any"):
            assert answer.status_code not in (401, 403), f"{call}: {answer.text}"
            allowed += 1
        else:
            told = error(answer, 403)
            assert told["code"] == "scope_missing" and f"`{needed}`" in told["message"], call
            assert path.startswith("/v1/") or told["type"] == "permission_error"
        answer.close()
    assert allowed > 1


FOR_EVERYONE = {
    "PUT /api/prompts/{name}",
    "DELETE /api/prompts/{name}",
    "PUT /api/profile/schema",
    "GET /api/retention",
    "PUT /api/retention",
    "GET /api/model-server",
    "PUT /api/model-server",
    "DELETE /api/model-server",
    "POST /api/model-server/models",
    "POST /api/model-server/test",
}


def test_a_persons_own_key_that_may_chat_may_do_all_that_is_theirs(app):
    client, _ = made(app, user_id="ada", scopes=["chat"])
    refused = set()
    for call in calls(client):
        method, path = call.split(" ")
        address = re.sub(r"\{(\w+_id)\}|\{\w+\}", "1", path.replace("{user_id}", "ada"))
        body = {"text": "x", "schema": {}, "base_url": "http://127.0.0.1:9/v1", "model": "m"}
        for json in ({}, body, {"text": "x"}, {"schema": {}}):
            answer = client.open(address, method=method, json=json if method != "GET" else None)
            if answer.status_code == 403:
                refused.add(call)
                is_hook = path.startswith("/api/webhooks")  # they make the server call others
                assert error(answer, 403)["code"] == ("scope_missing" if is_hook else "key_of_one_person"), call
    assert {call for call in refused if "/webhooks" not in call} == FOR_EVERYONE
    assert refused >= {call for call in calls(client) if "/webhooks" in call}


def test_the_api_says_what_a_key_may_do(app):
    made(app, "another")
    for scopes, user_id, may in (
        (["chat"], None, {"chat"}),
        (["chat", "read"], None, {"chat", "read"}),
        (["chat"], "ada", {"chat", "read", "change"}),
        (["admin"], "ada", {"change"}),
        (["admin"], None, {"change", "tenant"}),
    ):
        client, _ = made(app, "acme", scopes=scopes, user_id=user_id)
        me = good(client.get("/api/me"))
        assert {name for name, allowed in me.pop("may").items() if allowed} == may
        assert me == {"tenant": "acme", "user_id": user_id, "scopes": scopes, "spaces": None}
    failed(app.test_client().get("/api/me"), 401, "api_key_missing")


def test_a_route_without_a_mark_asks_for_admin(app):
    """As one would be that is added beside the blueprints."""
    app.add_url_rule("/forgotten", "forgotten", lambda: "everything", methods=["GET"])
    failed(app.test_client().get("/forgotten", headers={"Host": "recap.example"}), 403, "not_local")
    reading, _ = made(app, scopes=["read", "chat"])
    failed(app.test_client().get("/forgotten"), 401, "api_key_missing")
    failed(reading.get("/forgotten"), 403, "scope_missing")
    assert made(app)[0].get("/forgotten").text == "everything"


# -- the command


def run(app: Flask, *arguments: str) -> Result:
    return run_command(app, "keys", *arguments)


def test_the_command_makes_a_key_shows_it_once_and_revokes_it(app):
    asked = "create --tenant acme --user ada --scope chat --scope read --label phone"
    done = run(app, *asked.split())
    assert done.exit_code == 0, done.output
    key = done.stdout.strip()
    assert key.startswith(PREFIX) and "\n" not in key, "the key alone, for a script to take"
    assert "can't show it again" in done.stderr and "of ada in the tenant acme, with chat, read" in done.stderr
    assert good(with_key(app, key).get("/api/me"))["user_id"] == "ada"
    listed = run(app, "list").output
    assert all(text in listed for text in ("acme", "ada", "chat, read", "phone", key[:10])) and key not in listed
    done = run(app, "revoke", "1")
    assert done.exit_code == 0 and "within 2 seconds" in done.output
    failed(with_key(app, key).get("/api/me"), 401, "api_key_unknown")
    revoked = re.search(r"^1 .*$", run(app, "list").output, re.M)
    assert revoked and len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", revoked[0])) == 2


def test_a_revoked_key_does_not_name_its_person_once_they_are_erased(app):
    keys = [
        run(app, "create", *options.split()).stdout.strip() for options in ("--user ada --label adas", "--user ada", "")
    ]
    whole = with_key(app, keys[2])
    chat(whole, "Hello", session_id="s", user_id="ada")
    run(app, "revoke", "1")
    good(whole.delete("/api/users/ada"))
    first, second, _ = run(app, "list").stdout.splitlines()
    assert "of an erased person in the tenant default" in first and "ada" not in first
    assert "of ada in the tenant default" in second, "it works, for when ada comes back"
    failed(with_key(app, keys[0]).get("/api/me"), 401, "api_key_unknown")
    assert good(with_key(app, keys[1]).get("/api/me"))["user_id"] == "ada"


def test_the_command_says_what_can_not_be_done(app):
    for arguments, told in (
        ("create --scope root", "'root' is not one of"),
        ("create --tenant a:b", "A tenant is"),
        ("revoke 7", "There is no key 7"),
    ):
        done = run(app, *arguments.split())
        assert done.exit_code != 0 and told in done.output


@pytest.mark.parametrize(
    "names", [("--user", ""), ("--user", "a\nb"), ("--space", "a b"), ("--user", "ada", "--tenant", "the house")]
)
def test_a_command_takes_no_name_that_no_request_has(app, tmp_path, names):
    """Nobody could read or erase what stood under it."""
    (tmp_path / "chats.json").write_text('{"messages": [{"role": "user", "content": "I like tea."}]}')
    result = run_command(app, "import", *names, tmp_path / "chats.json")
    assert result.exit_code == 2 and re.search("1 to (64|128|256)", result.output)
    assert run_command(app, "jobs", "list").stdout == ""
