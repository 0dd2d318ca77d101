"""Spaces: memory that several persons share: who may read and write there, what stays apart, what goes together."""

import re
from functools import partial
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import engine_of
from tests.application import rows_of, run_command, statements
from tests.http import append, ask, chat, failed, find, good, read_all, said, stored
from tests.knowledge import digest_of, fact
from tests.model_server import ModelServer, Text, ToolCalls, at, prompts
from tests.openai import BODIES, answered, assistant, result, talk, user
from tests.recall import talker
from tests.test_auth import with_key
from tests.test_mcp import told

TEAM = {"space": "team"}


@pytest.fixture
def app(make_app, model_server):
    return make_app(**at(model_server))


@pytest.fixture
def as_person(app):
    """Return a client with a new key: of this person, with these spaces."""

    def make(user_id: str | None = None, **more: Any) -> FlaskClient:
        return with_key(app, engine_of(app).keys.create("default", user_id, **more)[0])

    return make


# -- one memory for several persons


def test_what_one_says_in_a_space_another_finds_there_and_nowhere_else(as_person, model_server):
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
    chat(bob, "Which day, please?", session_id="plans", name="Bob B.", **TEAM)
    assert [one["name"] for one in stored(ada, "plans", **TEAM)] == ["ada", None, "Bob B.", None]
    assert "ada: The release is on Friday the 13th." in str(prompts(model_server)[-1])
    mine, ours, again = (chat(ada, "Hello", key="k", **space) for space in ({}, TEAM, TEAM))
    assert mine["id"] != ours["id"] == again["id"], "a retry in a space is told from one outside"


@pytest.mark.parametrize("path", BODIES)
def test_a_message_of_any_protocol_has_its_speakers_name(as_person, model_server, path):
    """Programs send the conversation without names: what was said before stays the others'."""
    persons = {name: as_person(name, spaces={"team": "write"}) for name in ("ada", "bob")}
    append(persons["bob"], "s", [said("We meet at nine."), said("I know.", "assistant")], **TEAM)
    told = talk("We meet at nine.", "I know.")

    def say(name: str) -> None:
        model_server.main.queue(Text(f"Answer {len(told)}."))
        headers = {"X-Memory-Space": "team", "X-OpenWebUI-Chat-Id": "s"}
        answer = persons[name].post(path, json=BODIES[path](told), headers=headers)
        assert "X-Memory-Error" not in answer.headers and good(answer)
        told.append(assistant(f"Answer {len(told)}."))

    for name, words in (("ada", "Make it ten."), ("bob", "Ten is late."), ("bob", "Nine?"), ("ada", "Nine.")):
        told.append(user(words))
        say(name)
    del told[-1]  # Bob asks for another answer to what Ada said
    say("bob")
    line = [(one["name"], one["content"]) for one in stored(persons["ada"], "s", **TEAM)]
    names = ("bob", None, "ada", None, "bob", None, "bob", None, "ada", None)
    assert line == [(name, one["content"]) for name, one in zip(names, told, strict=True)]


def test_an_exchange_that_a_space_has_is_not_appended_again(as_person, model_server):
    ada, headers = as_person("ada", spaces={"team": "write"}), {"X-Memory-Space": "team"}
    id = good(ada.post("/v1/conversations", json={}, headers=headers))["id"]
    model_server.main.queue(Text("At nine."))
    good(ada.post("/v1/responses", json={"input": "When?", "conversation": id}, headers=headers))
    items = [*talk("When?", "At nine."), user("Thanks.")]
    good(ada.post(f"/v1/conversations/{id}/items", json={"items": items}, headers=headers))
    line = [(one["name"], one["content"]) for one in stored(ada, id, **TEAM)]
    assert line == [("ada", "When?"), (None, "At nine."), ("ada", "Thanks.")]


def test_instructions_and_the_profile_of_a_space(app, as_person, model_server):
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


def test_a_key_opens_the_spaces_that_it_names(as_person):
    ada, eve = as_person("ada", spaces={"team": "write"}), as_person("eve")
    chat(ada, "Hello", session_id="s", **TEAM)
    nobodys, theirs = (eve.get("/api/sessions", query_string={"space": name}) for name in ("none", "team"))
    assert failed(nobodys, 404, "space_not_found")["param"] == "space"
    assert theirs.text.replace("team", "none") == nobodys.text
    failed(ask(eve, "Hello", **TEAM), 404, "space_not_found")
    failed(eve.get("/api/spaces/team/profile"), 404, "space_not_found")
    failed(ada.get("/api/spaces/a%20b/profile"), 422, "invalid_fields")
    assert good(eve.get("/api/spaces"))["items"] == []
    (space,) = good(ada.get("/api/spaces"))["items"]
    assert (space["name"], space["right"]) == ("team", "write") and space["created_at"]
    assert good(ada.get("/api/me"))["spaces"] == {"team": "write"} and good(eve.get("/api/me"))["spaces"] is None


def test_a_key_lists_the_persons_whose_data_it_opens(app, as_person):
    ada, bob = as_person("ada"), as_person("bob", spaces={"team": "write"})
    agent, tenant = as_person(spaces={"team": "write"}), as_person()
    elsewhere = with_key(app, engine_of(app).keys.create("acme")[0])
    chat(ada, "Hello", session_id="s")
    chat(bob, "Hello", session_id="s")
    chat(bob, "Hello", session_id="s", **TEAM)
    chat(tenant, "Hello", session_id="of-nobody")

    def listed(client: FlaskClient) -> list[str]:
        return [one["user_id"] for one in read_all(client, "/api/users", limit=1)]

    assert [listed(client) for client in (tenant, ada, bob, agent, elsewhere)] == [
        ["bob", "ada"],
        ["ada"],
        ["bob"],
        [],
        [],
    ]
    good(bob.delete("/api/users/bob"))
    assert [listed(client) for client in (tenant, bob)] == [["ada"], []]


def test_who_may_read_may_not_write(as_person):
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


def test_who_may_read_may_ask_for_the_headers_alone(as_person):
    ada, bob = as_person("ada", spaces={"team": "write"}), as_person("bob", spaces={"team": "read"})
    chat(ada, "The release is on Friday.", session_id="s", **TEAM)
    for path in ("/api/sessions/s", "/api/webhooks", "/api/archives"):
        assert bob.head(path, query_string=TEAM).status_code == bob.get(path, query_string=TEAM).status_code == 200
    assert bob.head("/api/spaces/team/export").status_code == 200


def test_only_a_key_with_admin_ends_a_space(as_person, app):
    ada = as_person("ada", scopes=["chat"], spaces={"team": "write"})
    chat(ada, "The release is on Friday.", session_id="s", **TEAM)
    failed(ada.delete("/api/spaces/team"), 403, "scope_missing")
    failed(ada.patch("/api/spaces/team", json={"remember": False}), 403, "scope_missing")
    good(ada.delete("/api/sessions/s", query_string=TEAM))
    chat(ada, "The release is on Friday.", session_id="s", **TEAM)
    receipt = good(as_person().delete("/api/spaces/team"))
    assert receipt["space"] == "team" and receipt["erased"]["messages"] == 2 and not receipt["pending"]
    assert rows_of(engine_of(app))["messages"] == 0


def test_a_key_of_a_space_alone_is_for_this_space(as_person):
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


def test_a_key_of_the_tenant_acts_in_every_space_and_is_asked_which(app):
    client = app.test_client()
    chat(client, "Ours is green.", session_id="main", user_id="ada", **TEAM)
    chat(client, "Mine is red.", session_id="main", user_id="ada")
    assert [one["space"] for one in read_all(client, "/api/sessions")] == [None, "team"]
    failed(client.get("/api/sessions/main"), 422, "session_ambiguous")
    assert [one["name"] for one in read_all(client, "/api/spaces", limit=1)] == ["team"]
    chat(client, "Theirs is blue.", session_id="main", space="another")
    assert [one["name"] for one in read_all(client, "/api/spaces", limit=1)] == ["another", "team"]
    failed(client.get("/api/sessions", query_string={"space": "a b"}), 422, "invalid_fields")


def test_the_command_makes_keys_with_spaces_and_tells_of_them(app):
    run = partial(run_command, app, "keys")
    key = run("create", "--user", "ada", "--space", "team:write", "--space", "x:y:read").stdout
    client = with_key(app, key.strip())
    assert good(client.get("/api/me"))["spaces"] == {"team": "write", "x:y": "read"}
    run("create", "--space", "agent:write")
    listed = run("list").stdout
    assert "of ada with team (write), x:y (read) in the tenant default" in listed
    assert "of the space agent (write) in the tenant default" in listed
    for space in ("team", "team:admin", "a b:read", ":read"):
        made = run("create", "--user", "ada", "--space", space)
        assert made.exit_code and "NAME:read or NAME:write" in made.output


# -- other protocols

IN_TEAM = {"X-Memory-Space": "team"}


def talk_in(words: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": words}]}


def test_mcp_serves_the_memory_of_a_space(as_person):
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


# -- what follows the memory


def test_an_export_of_a_space_is_imported_as_a_persons_only_by_an_import(as_person):
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


def test_erasing_a_person_leaves_the_space_and_the_other_way_round(as_person):
    ada = as_person("ada", spaces={"team": "write"})
    chat(ada, "Ours is green.", session_id="s", **TEAM)
    chat(ada, "Mine is red.", session_id="s")
    good(ada.delete("/api/users/ada"))
    assert "green" in str(find(ada, "green", **TEAM)) and not find(ada, "red")
    chat(ada, "Mine is red.", session_id="s")
    good(ada.delete("/api/spaces/team"))
    assert "red" in str(find(ada, "red")) and not find(ada, "green", **TEAM)


# -- a turn that reads several memories


@pytest.fixture
def remembered(make_app, model_server, monkeypatch):
    """Ada has said one thing for herself and one in each of two spaces, and each of them knows a fact."""
    app = talker(make_app, model_server, monkeypatch).application
    client = app.test_client()
    for who, number in (({"user_id": "ada"}, "1111"), (TEAM, "2222"), ({"space": "company"}, "3333")):
        append(client, "before", [said(f"The locker code is {number}.")], **who)
        good(client.post("/api/facts", json={**who, "text": f"Locker number {number[0]} is green"}))
    return app


def opens(app: Flask, user_id: str | None = "ada", **spaces: str) -> FlaskClient:
    return with_key(app, engine_of(app).keys.create("default", user_id, spaces=spaces)[0])


def seen(server: ModelServer) -> set[str]:
    """Which of the codes and facts the last prompt shows."""
    sent = str(prompts(server)[-1])
    codes = {number for number in ("1111", "2222", "3333") if number in sent}
    assert codes == {4 * number for number in "123" if f"Locker number {number} is green" in sent}
    return codes


ASKED = "What is the locker code?"


def test_a_persons_key_reads_what_it_names(remembered, model_server):
    ada = opens(remembered, team="write", company="read")
    named = {"1111": None, "2222": "team", "3333": "company"}
    for asking, shown in (
        ({}, {"1111", "2222", "3333"}),
        ({"spaces": []}, {"1111"}),
        ({"spaces": ["company"]}, {"1111", "3333"}),
        (TEAM, {"1111", "2222"}),
        ({**TEAM, "person": False}, {"2222"}),
        ({**TEAM, "spaces": ["company", "team"]}, {"1111", "2222", "3333"}),
        ({"remember": False}, set()),
        ({**TEAM, "remember": False}, set()),
    ):
        reply = chat(ada, ASKED, temporary=True, **asking)
        assert seen(model_server) == shown, asking
        others = {one["space"] for one in reply["memory"]["others"]}
        assert others == {named[code] for code in shown} - ({"team"} if asking.get("space") else {None})
        is_elsewhere = not reply["memory"]["excerpts"] and any(one["excerpts"] for one in reply["memory"]["others"])
        assert (reply["memory"]["recall"]["reason"] == "what fits stands in another memory") == is_elsewhere


def test_an_application_says_which_memories_a_turn_reads(remembered, model_server):
    client = remembered.test_client()
    for asking, shown in (
        ({"user_id": "ada"}, {"1111"}),
        ({"user_id": "ada", **TEAM}, {"2222"}),
        ({"user_id": "ada", "person": True, **TEAM}, {"1111", "2222"}),
        ({"user_id": "ada", "spaces": ["team"]}, {"1111", "2222"}),
        ({"user_id": "ada", "spaces": ["team"], "temporary": True}, {"1111", "2222"}),
    ):
        chat(client, ASKED, **asking)
        assert seen(model_server) == shown, asking
    failed(ask(client, ASKED, person=True, **TEAM), 422, "person_needed")
    failed(ask(client, ASKED, spaces=["a b"]), 422, "invalid_fields")
    block = good(client.post("/api/recall", json={"message": ASKED, "user_id": "ada", "spaces": ["team"]}))
    assert "1111" in block["block"] and "2222" in block["block"]


def test_a_tool_of_mcp_recalls_what_a_turn_would_read(remembered):
    ada = opens(remembered, team="read", company="read")
    for headers, shown in (
        ({}, {"1111", "2222", "3333"}),
        ({"X-Memory-Spaces": "company"}, {"1111", "3333"}),
        ({"X-Memory-Space": "team"}, {"1111", "2222"}),
        ({"X-Memory-Space": "team", "X-Memory-Person": "off"}, {"2222"}),
    ):
        wrong, block = told(ada, "recall", headers, message=ASKED)
        assert not wrong and {code for code in ("1111", "2222", "3333") if code in block} == shown, headers
    wrong, text = told(ada, "recall", {"X-Memory-Spaces": "theirs"}, message=ASKED)
    assert wrong and "'theirs'" in text
    assert not told(ada, "get_memories", {"X-Memory-Spaces": "theirs"})[0]


def test_a_memory_that_a_key_does_not_open_is_read_by_no_turn(remembered, model_server):
    ada, agent = opens(remembered, team="read"), opens(remembered, None, team="write")
    asked = len(model_server.requests)
    assert failed(ask(ada, ASKED, spaces=["company"]), 404, "space_not_found")
    assert failed(ask(agent, ASKED, person=True, user_id="ada"), 403, "key_of_a_space")
    assert len(model_server.requests) == asked
    chat(agent, ASKED, user_id="ada")
    assert seen(model_server) == {"2222"}


def test_each_memory_stands_in_a_block_of_its_own_after_the_prefix(remembered, model_server):
    ada = opens(remembered, team="write", company="read")
    model_server.main.queue("Hello.", "It is one of two.", "I told you.")
    chat(ada, "Hello there", session_id="s", spaces=[])
    chat(ada, ASKED, session_id="s", spaces=["team"])
    first, second = prompts(model_server)[-2:]
    assert first[0] == second[0], "the prefix stays"
    quoted = str(second[-1]["content"])
    (space,) = re.findall(r'<space name="team">\n(.*?)\n</space>', quoted, re.S)
    assert "2222" in space and "1111" not in space and "<facts>" in space and "company" not in quoted
    chat(ada, ASKED, session_id="s", **TEAM)
    (person,) = re.findall(r"<person>\n(.*?)\n</person>", str(prompts(model_server)[-1][-1]["content"]), re.S)
    assert "1111" in person and "2222" not in person


def test_clients_name_the_memories_in_headers(remembered, model_server):
    ada = opens(remembered, team="write", company="read")
    body = {"model": "m", **talk_in(ASKED)}
    for headers, shown in (
        ({}, {"1111", "2222", "3333"}),
        ({"X-Memory-Spaces": "team"}, {"1111", "2222"}),
        (IN_TEAM, {"1111", "2222"}),
        ({**IN_TEAM, "X-Memory-Person": "off", "X-Memory-Spaces": "company, team"}, {"2222", "3333"}),
    ):
        good(ada.post("/v1/chat/completions", json=body, headers=headers))
        assert seen(model_server) == shown, headers


def test_the_models_own_searches_look_into_each_memory_that_is_on(remembered, model_server):
    ada = opens(remembered, team="write", company="read")
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "locker code"}),)), "2222")
    chat(ada, ASKED, session_id="s", recall="tools", spaces=["team"])
    (result,) = [one["content"] for one in prompts(model_server)[-1] if one["role"] == "tool"]
    assert "1111" in result and "3333" not in result
    assert "2222" in re.findall(r'<space name="team">\n(.*?)\n</space>', result, re.S)[0]
    good(ada.patch("/api/users/ada", json={"remember": False}))
    chat(ada, ASKED, session_id="s", spaces=[], **TEAM)
    assert seen(model_server) == {"2222"}


def test_the_models_searches_look_there_too_when_a_client_goes_on_with_results_of_its_tools(remembered, model_server):
    ada = opens(remembered, team="write", company="read")
    headers = {"X-Memory-Tools": "on", "X-Memory-Spaces": "team", "X-Session-Id": "s"}
    body = {"model": "m", "tools": [{"type": "function", "function": {"name": "weather"}}], **talk_in(ASKED)}
    model_server.main.queue(ToolCalls((("weather", {"city": "Lyon"}),)))
    calling = good(ada.post("/v1/chat/completions", json=body, headers=headers))["choices"][0]["message"]
    body["messages"] += [calling, result(calling["tool_calls"][0], "21 degrees")]
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "locker code"}),)), "2222")
    good(ada.post("/v1/chat/completions", json=body, headers=headers))
    *_, found = [one["content"] for one in prompts(model_server)[-1] if one["role"] == "tool"]
    assert "2222" in found and "3333" not in found


def test_what_a_turn_shows_of_a_person_never_becomes_the_spaces(remembered, model_server):
    """The mini model, asked for the space's facts, gets no word of it; a fact that it makes of it all the same is
    refused, and so is one that the main model writes."""
    ada, bob = (opens(remembered, name, team="write") for name in ("ada", "bob"))
    jobs = engine_of(remembered).job_queue
    jobs.run_due(["summary"])
    stolen = {"text": "Locker code is 1111", "quote": "The locker code is 1111."}
    model_server.main.queue(ToolCalls((("remember", stolen),)), "I know it.", "I said so.")
    chat(ada, ASKED, session_id="s", recall="tools", **TEAM)
    chat(ada, ASKED, session_id="s", **TEAM)
    assert "1111" in str(prompts(model_server)[-1])
    model_server.mini.queue(digest_of(fact("Locker code is 1111", 1, stolen["quote"], scope="user")))
    jobs.run_due(["summary"])
    read = [one for one in prompts(model_server, "mini") if ASKED in str(one)]
    assert read and "1111" not in str(read)
    assert [one["text"] for one in read_all(bob, "/api/facts", **TEAM)] == ["Locker number 2 is green"]
    assert "1111" not in str(find(bob, "locker code", **TEAM))
    chat(bob, ASKED, session_id="t", **TEAM)
    assert seen(model_server) == {"2222"}


def test_who_reads_a_turn_in_a_space_does_not_see_the_others_memory(remembered, model_server):
    ada, bob = (opens(remembered, name, team="write") for name in ("ada", "bob"))
    model_server.main.queue("I told you.")
    reply = chat(ada, ASKED, session_id="s", key="k", **TEAM)
    assert "1111" in str(reply["memory"]["others"])
    for reader in (ada, bob):
        turn = good(reader.get(f"/api/sessions/s/turns/{reply['message_id']}", query_string=TEAM))
        assert "2222" in str(turn["memory"]) and "1111" not in str(turn) and turn["memory"]["others"] == []
    again = chat(ada, ASKED, session_id="s", key="k", **TEAM)
    assert again["id"] == reply["id"] and "1111" in str(again["memory"]["others"]), "a retry is the same person's"


def test_a_client_that_goes_on_with_tools_sees_the_same_again(remembered, model_server):
    ada = opens(remembered, team="read")
    tools = [{"type": "function", "function": {"name": "open", "parameters": {"type": "object", "properties": {}}}}]
    model_server.main.queue(ToolCalls((("open", {}),)), "Done.")
    asked: list[Any] = talk_in(ASKED)["messages"]
    answer = answered(ada, asked, tools=tools)
    first = prompts(model_server)[-1]
    answered(
        ada,
        [*asked, answer, {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "ok"}],
        tools=tools,
    )
    second = prompts(model_server)[-1]
    assert "2222" in str(first) and second[: len(first)] == first


def test_a_day_that_is_spent_is_spent_in_every_space(make_app, model_server):
    app = make_app(**at(model_server, daily_tokens=150))
    client = app.test_client()
    usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
    model_server.main.queue(*[Text("Fine.", usage=usage)] * 5)
    chat(client, "Hello", user_id="ada", **TEAM)
    chat(client, "Hello", user_id="ada", space="company")
    assert good(client.get("/api/users/ada"))["tokens_today"] == 200
    failed(ask(client, "Hello", user_id="ada", space="third"), 429, "daily_tokens_spent")
    chat(client, "Hello", user_id="bob", **TEAM)
    failed(ask(client, "Hello", user_id="eve", **TEAM), 429, "daily_tokens_spent")


# -- the profile of an organisation, a project or an agent


def test_the_profile_of_a_space_says_what_it_is(app, as_person, model_server):
    ada, jobs = as_person("ada", spaces={"team": "write"}), engine_of(app).job_queue
    chat(ada, "Our team builds kites and ships on Fridays.", session_id="s", **TEAM)
    kites = fact("The team builds kites", 1, "Our team builds kites", scope="user")
    patch = {"op": "add", "path": "/purpose", "value": "builds kites", "quote": "Our team builds kites", "source": 1}
    model_server.mini.queue(digest_of(kites), {"patch": [patch]})
    jobs.run_due(["summary"])
    good(ada.post("/api/spaces/team/profile/refresh"))
    jobs.run_due(["profile"])
    assert good(ada.get("/api/spaces/team/profile"))["document"] == {"purpose": "builds kites"}
    asked = str(prompts(model_server, "mini")[-1])
    assert "profile of a space that several persons share" in asked and "what was decided" in asked
    chat(ada, "Hello", session_id="t", **TEAM)
    shown = str(prompts(model_server)[-1])
    assert "says what several persons share here" in shown and "- purpose: builds kites" in shown
    failed(ada.get("/api/users/ada/profile"), 404, "user_not_found")


def test_profiles_of_spaces_have_a_schema_of_their_own(app):
    client = app.test_client()
    schema = {"type": "object", "properties": {"motto": {"type": "string"}}, "additionalProperties": False}
    good(client.put("/api/profile/schema?kind=space", json={"schema": schema}))
    assert good(client.get("/api/profile/schema?kind=space"))["schema"] == schema
    assert "home" in good(client.get("/api/profile/schema"))["schema"]["properties"]
    motto = {"patch": [{"op": "add", "path": "/motto", "value": "Fly"}]}
    assert good(client.patch("/api/spaces/team/profile", json=motto))["document"] == {"motto": "Fly"}
    assert client.patch("/api/users/ada/profile", json=motto).status_code == 422


def test_a_turn_without_spaces_runs_no_statement_for_them(remembered):
    """With them, one for all, and what each memory needs."""
    database, counts = engine_of(remembered).database, list[int]()
    ada, alone = opens(remembered, team="write"), opens(remembered)
    for _ in range(3):
        for client in (alone, ada):
            chat(client, "Thank you!", session_id="s")
    for client in (alone, ada):
        with statements(database) as sent:
            chat(client, "Thank you!", session_id="s")
        counts.append(sum(not text.startswith("INSERT INTO jobs") for text in sent))  # for a job that is not due soon
        assert ("tuple" in str(sent) or "owners.kind, owners.name" in str(sent)) == (client is ada)
    assert counts[1] == counts[0] + 1, "small talk: the owners are looked up, their facts are kept"
