"""Spaces: memory that several persons share: who may read and write there, what stays apart, what goes together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import engine_of
from cli import register_commands
from tests.application import rows_of
from tests.conftest import MakeApp
from tests.http import append, ask, chat, failed, find, good, read_all, said, stored
from tests.knowledge import digest_of, fact
from tests.model_server import ModelServer, at, prompts
from tests.openai import answered, talk
from tests.test_auth import with_key
from tests.test_mcp import told

TEAM = {"space": "team"}
As = Callable[..., FlaskClient]


@pytest.fixture
def app(make_app: MakeApp, model_server: ModelServer) -> Flask:
    return make_app(**at(model_server))


@pytest.fixture
def as_person(app: Flask) -> As:
    """Return a client with a new key: of this person, with these spaces."""

    def make(user_id: str | None = None, **more: Any) -> FlaskClient:
        return with_key(app, engine_of(app).keys.create("default", user_id, **more)[0])

    return make


# -- one memory for several persons


def test_what_one_says_in_a_space_another_finds_there_and_nowhere_else(as_person: As) -> None:
    ada, bob = (as_person(name, spaces={"team": "write"}) for name in ("ada", "bob"))
    chat(ada, "The release is on Friday the 13th.", session_id="plans", **TEAM)
    chat(ada, "My own locker code is 1111.", session_id="mine")
    assert [hit["content"] for hit in find(bob, "release", **TEAM)][:1] == ["The release is on Friday the 13th."]
    assert "release" not in str(find(bob, "release")) + str(find(ada, "release"))
    assert "locker" not in str(find(bob, "locker", **TEAM))
    (session,) = read_all(bob, "/api/sessions", **TEAM)
    assert (session["id"], session["space"], session["user_id"]) == ("plans", "team", None)
    assert [one["id"] for one in read_all(ada, "/api/sessions")] == ["mine"]
    failed(ada.get("/api/sessions/plans"), 404, "session_not_found")


def test_a_person_and_a_space_may_have_sessions_of_one_id(as_person: As) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    chat(ada, "This is mine.", session_id="main")
    chat(ada, "This is ours.", session_id="main", **TEAM)
    assert [one["content"] for one in stored(ada, "main")][:1] == ["This is mine."]
    assert [one["content"] for one in stored(ada, "main", **TEAM)][:1] == ["This is ours."]


def test_a_message_in_a_space_is_named_after_who_says_it(as_person: As, model_server: ModelServer) -> None:
    ada, bob = (as_person(name, spaces={"team": "write"}) for name in ("ada", "bob"))
    chat(ada, "The release is on Friday.", session_id="plans", **TEAM)
    chat(bob, "Which day, please?", session_id="plans", name="Bob B.", **TEAM)
    assert [one["name"] for one in stored(ada, "plans", **TEAM)] == ["ada", None, "Bob B.", None]
    assert "ada: The release is on Friday." in str(prompts(model_server)[-1])


def test_summary_and_facts_of_a_space_are_its_own(app: Flask, as_person: As, model_server: ModelServer) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    chat(ada, "We deploy on Fridays.", session_id="plans", **TEAM)
    model_server.mini.queue(digest_of(fact("Deploys on Fridays", 1, "deploy on Fridays", scope="user"), topic="Plans"))
    engine_of(app).job_queue.run_due(["summary"])
    assert [one["text"] for one in read_all(ada, "/api/facts", **TEAM)] == ["Deploys on Fridays"]
    assert not read_all(ada, "/api/facts")
    chat(ada, "Anything else?", session_id="another", **TEAM)
    assert "Deploys on Fridays" in str(prompts(model_server)[-1])
    chat(ada, "Anything else?", session_id="own")
    assert "Deploys" not in str(prompts(model_server)[-1])
    about = good(ada.get("/api/spaces/team"))
    assert (about["space"], about["user_id"], about["facts"], about["sessions"]) == ("team", None, 1, 2)


def test_instructions_and_the_profile_of_a_space(app: Flask, as_person: As, model_server: ModelServer) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    good(ada.put("/api/instructions/tone", json={"text": "Be formal.", **TEAM}))
    chat(ada, "Hello there", session_id="s", **TEAM)
    assert "Be formal." in str(prompts(model_server)[-1])
    good(ada.patch("/api/spaces/team/profile", json={"patch": [{"op": "add", "path": "/goals/-", "value": "Ship"}]}))
    assert good(ada.get("/api/spaces/team/profile"))["document"] == {"goals": ["Ship"]}
    chat(ada, "Hello there", session_id="other", **TEAM)
    assert "Ship" in str(prompts(model_server)[-1])
    chat(ada, "Hello there", session_id="own")
    assert not {"Be formal.", "Ship"} & set(str(prompts(model_server)[-1]).split("\n"))


# -- keys


def test_a_key_opens_the_spaces_that_it_names(as_person: As) -> None:
    ada, eve = as_person("ada", spaces={"team": "write"}), as_person("eve")
    chat(ada, "Hello", session_id="s", **TEAM)
    nobodys, theirs = (eve.get("/api/sessions", query_string={"space": name}) for name in ("none", "team"))
    assert failed(nobodys, 404, "space_not_found")["param"] == "space"
    assert theirs.text.replace("team", "none") == nobodys.text
    failed(ask(eve, "Hello", **TEAM), 404, "space_not_found")
    failed(eve.get("/api/spaces/team/profile"), 404, "space_not_found")
    failed(ada.get("/api/spaces/a%20b/profile"), 404, "space_not_found")
    assert good(eve.get("/api/spaces"))["items"] == []
    (space,) = good(ada.get("/api/spaces"))["items"]
    assert (space["name"], space["right"]) == ("team", "write") and space["created_at"]
    assert good(ada.get("/api/me"))["spaces"] == {"team": "write"} and good(eve.get("/api/me"))["spaces"] is None


def test_who_may_read_may_not_write(as_person: As) -> None:
    ada, bob = as_person("ada", spaces={"team": "write"}), as_person("bob", spaces={"team": "read"})
    chat(ada, "The release is on Friday.", session_id="s", **TEAM)
    assert find(bob, "release", **TEAM) and stored(bob, "s", **TEAM) and good(bob.get("/api/spaces/team/export"))
    assert "Friday" in good(bob.post("/api/recall", json={"message": "When is the release?", **TEAM}))["block"]
    for answer in (
        ask(bob, "Hello", **TEAM),
        ask(bob, "Hello", temporary=True, **TEAM),
        bob.post("/api/facts", json={"text": "Mine", **TEAM}),
        bob.delete("/api/sessions/s", query_string=TEAM),
        bob.delete("/api/spaces/team"),
        bob.put("/api/store/items", json={"namespace": ["n"], "key": "k", "value": 1, **TEAM}),
    ):
        failed(answer, 403, "space_read_only")
    failed(
        bob.post("/v1/chat/completions", json={"model": "m", **talk_in("Hello")}, headers=IN_TEAM),
        403,
        "space_read_only",
    )


def test_only_a_key_with_admin_ends_a_space(as_person: As, app: Flask) -> None:
    ada = as_person("ada", scopes=["chat"], spaces={"team": "write"})
    chat(ada, "The release is on Friday.", session_id="s", **TEAM)
    failed(ada.delete("/api/spaces/team"), 403, "scope_missing")
    failed(ada.patch("/api/spaces/team", json={"remember": False}), 403, "scope_missing")
    good(ada.delete("/api/sessions/s", query_string=TEAM))
    chat(ada, "The release is on Friday.", session_id="s", **TEAM)
    receipt = good(as_person().delete("/api/spaces/team"))
    assert receipt["space"] == "team" and receipt["erased"]["messages"] == 2 and not receipt["pending"]
    assert rows_of(engine_of(app))["messages"] == 0


def test_a_key_of_a_space_alone_is_for_this_space(as_person: As) -> None:
    agent, everyone = as_person(spaces={"agent": "write"}), as_person()
    chat(everyone, "Ada's code is 1111.", session_id="s", user_id="ada")
    chat(agent, "I learned to sort.", session_id="run-1")
    assert (
        read_all(agent, "/api/sessions")[0]["space"]
        == "agent"
        == read_all(everyone, "/api/sessions", space="agent")[0]["space"]
    )
    chat(agent, "What is the code?", session_id="run-2", user_id="ada", recall="always")
    assert "1111" not in str(find(agent, "code", user_id="ada"))
    failed(agent.get("/api/users/ada"), 404, "user_not_found")
    failed(agent.get("/api/sessions/s"), 404, "session_not_found")
    failed(agent.put("/api/prompts/mine", json={"text": "Be brief."}), 403, "key_of_one_person")
    two = as_person(spaces={"agent": "read", "team": "write"})
    failed(two.get("/api/sessions"), 422, "space_needed")
    assert good(two.get("/api/prompts"))["items"] and read_all(two, "/api/sessions", space="agent")


def test_a_key_of_the_tenant_acts_in_every_space_and_is_asked_which(app: Flask) -> None:
    client = app.test_client()
    chat(client, "Ours is green.", session_id="main", user_id="ada", **TEAM)
    chat(client, "Mine is red.", session_id="main", user_id="ada")
    assert [one["space"] for one in read_all(client, "/api/sessions")] == [None, "team"]
    failed(client.get("/api/sessions/main"), 422, "session_ambiguous")
    assert [one["name"] for one in read_all(client, "/api/spaces", limit=1)] == ["team"]
    chat(client, "Theirs is blue.", session_id="main", space="another")
    assert [one["name"] for one in read_all(client, "/api/spaces", limit=1)] == ["another", "team"]
    failed(client.get("/api/sessions", query_string={"space": "a b"}), 422, "invalid_fields")


@pytest.mark.parametrize("space", ["team", "team:admin", "a b:read", ":read"])
def test_a_key_with_a_space_of_another_form_is_refused(app: Flask, space: str) -> None:
    register_commands(app)
    made = app.test_cli_runner().invoke(args=["keys", "create", "--user", "ada", "--space", space])
    assert made.exit_code and "NAME:read or NAME:write" in made.output


def test_the_command_makes_keys_with_spaces_and_tells_of_them(app: Flask) -> None:
    register_commands(app)
    run = app.test_cli_runner()
    key = run.invoke(args=["keys", "create", "--user", "ada", "--space", "team:write", "--space", "x:y:read"]).stdout
    client = with_key(app, key.strip())
    assert good(client.get("/api/me"))["spaces"] == {"team": "write", "x:y": "read"}
    run.invoke(args=["keys", "create", "--space", "agent:write"])
    listed = run.invoke(args=["keys", "list"]).stdout
    assert "of ada with team (write), x:y (read) in the tenant default" in listed
    assert "of the space agent (write) in the tenant default" in listed


# -- other protocols

IN_TEAM = {"X-Memory-Space": "team"}


def talk_in(words: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": words}]}


def test_other_protocols_name_the_space_in_a_header(as_person: As, model_server: ModelServer) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    answered(ada, talk("The release is on Friday."), "s", headers=IN_TEAM)
    good(
        ada.post("/v1/messages", json={"model": "m", "max_tokens": 9, **talk_in("It has two parts.")}, headers=IN_TEAM)
    )
    good(ada.post("/v1/responses", json={"model": "m", "input": "And a third part."}, headers=IN_TEAM))
    assert len(read_all(ada, "/api/sessions", **TEAM)) == 3 and not read_all(ada, "/api/sessions")
    words = {hit["content"] for hit in find(ada, "release part", limit=10, **TEAM)}
    assert {"The release is on Friday.", "It has two parts.", "And a third part."} <= words


def test_the_same_conversation_in_a_space_and_outside_is_two(as_person: As) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    for headers in ({}, IN_TEAM):
        good(ada.post("/v1/chat/completions", json={"model": "m", **talk_in("Hello there")}, headers=headers))
    assert len(read_all(ada, "/api/sessions", **TEAM)) == len(read_all(ada, "/api/sessions")) == 1


def test_mcp_serves_the_memory_of_a_space(as_person: As) -> None:
    ada, bob = as_person("ada", spaces={"team": "write"}), as_person("bob", spaces={"team": "read"})
    memory = {"text": "Deploys on Fridays", "quote": "We deploy on Fridays"}
    assert told(ada, "add_memory", IN_TEAM, **memory)[0] is False
    assert [one["text"] for one in read_all(bob, "/api/facts", **TEAM)] == ["Deploys on Fridays"]
    assert not read_all(ada, "/api/facts")
    bobs = {**IN_TEAM, "X-User-Id": "bob"}
    assert "Deploys on Fridays" in told(bob, "get_memories", bobs)[1]
    wrong, text = told(bob, "add_memory", bobs, **memory)
    assert wrong and "may only read" in text
    ada = as_person("ada", scopes=["chat", "read"], spaces={"team": "write"})
    wrong, text = told(ada, "forget_all", IN_TEAM)
    assert wrong and "scope `admin`" in text


def test_a_retry_in_a_space_is_told_from_one_outside(as_person: As) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    mine, ours, again = (chat(ada, "Hello", key="k", **space) for space in ({}, TEAM, TEAM))
    assert mine["id"] != ours["id"] == again["id"]


# -- what follows the memory


def test_an_export_of_a_space_is_imported_as_a_persons_only_by_an_import(as_person: As) -> None:
    ada = as_person("ada", spaces={"team": "write", "copy": "write"})
    append(ada, "s", [said("The release is on Friday.")], **TEAM)
    good(ada.post("/api/facts", json={"text": "We deploy on Fridays", **TEAM}))
    exported = good(ada.get("/api/spaces/team/export"))
    assert (exported["space"], exported["user_id"]) == ("team", None)
    assert "What Recap has of team" in ada.get("/api/spaces/team/export?format=markdown").text
    good(ada.post("/api/import?space=copy", json=exported))
    assert [one["text"] for one in read_all(ada, "/api/facts", space="copy")] == ["We deploy on Fridays"]
    assert not read_all(ada, "/api/facts") and not read_all(ada, "/api/sessions")
    failed(as_person().post("/api/import", json=exported), 422, "invalid_fields")


def test_erasing_a_person_leaves_the_space_and_the_other_way_round(as_person: As) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    chat(ada, "Ours is green.", session_id="s", **TEAM)
    chat(ada, "Mine is red.", session_id="s")
    good(ada.delete("/api/users/ada"))
    assert "green" in str(find(ada, "green", **TEAM)) and not find(ada, "red")
    chat(ada, "Mine is red.", session_id="s")
    good(ada.delete("/api/spaces/team"))
    assert "red" in str(find(ada, "red")) and not find(ada, "green", **TEAM)


def test_memory_off_in_a_space(as_person: As, model_server: ModelServer) -> None:
    ada = as_person("ada", spaces={"team": "write"})
    good(ada.post("/api/facts", json={"text": "Likes green lockers", **TEAM}))
    assert good(ada.patch("/api/spaces/team", json={"remember": False}))["remember"] is False
    chat(ada, "Which lockers?", session_id="s", recall="always", **TEAM)
    assert "green" not in str(prompts(model_server)[-1])
