"""The explanation of a reply: it lists what the prompt held of the memory, all of it and nothing else, also later."""

import re
from typing import Any

import pytest

from config.parsers import when
from tests.http import append, chat, good, said
from tests.model_server import ModelServer, at, prompts
from tests.openai import answered, talk
from tests.test_profile import HOME_AND_TEA, Person, patch

ASKED = "Which locker code did I tell you about, and what does planning the trip to Riga need?"


def blocks(text: str, name: str) -> list[str]:
    """The lines of each block of this name in a prompt."""
    found = re.findall(rf"<{name}\b[^>]*>\n(.*?)\n</{name}>", text, re.S)
    return [line for block in found for line in block.split("\n")]


def held(server: ModelServer) -> str:
    return "\n\n".join(str(message["content"]) for message in prompts(server)[-1])


def same(memory: dict[str, Any], sent: str) -> None:
    """Compare an explanation with the prompt that the model server received."""
    values = [f"{value['name']}: {value['value']}" for value in memory["profile"]["values"]]
    assert [re.sub(r" \(said .*", "", line).removeprefix("- ") for line in blocks(sent, "profile")] == values
    sentences = [one["text"] for one in memory["overview"]["sentences"]]
    assert [line.removeprefix("- ") for line in blocks(sent, "overview")[1:]] == sentences
    lines = blocks(sent, "facts")
    assert len(lines) == len(memory["facts"])
    assert all(any(one["text"] in line for line in lines) for one in memory["facts"])
    told = [line.split(": ", 1)[1] for line in blocks(sent, "examples") if line.startswith(("user: ", "assistant: "))]
    assert told == [text for one in memory["examples"] for text in (one["input"], one["output"])]
    shown = [message["content"] for excerpt in memory["excerpts"] for message in excerpt["messages"]]
    quoted = blocks(sent, "chat")
    assert len(quoted) == len(shown) and all(any(text in line for line in quoted) for text in shown)
    for text in ("Be brief.", "Speak of Riga.", "Plan in steps."):
        assert (text in sent) is any(one["text"] == text for one in memory["instructions"]), text
    assert bool(blocks(sent, "summary")) is bool(memory["summary"]["head_version"])


def rounded(value: Any) -> Any:
    """The same with its scores rounded, as they are stored."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


@pytest.fixture
def ada(make_app, model_server):
    """Ada, of whom there is something of every kind."""
    model_server.main.default = lambda body: "Noted."
    settings: dict[str, Any] = {"tail_messages_max": 4, "tail_messages_min": 0, "overview": when("manual")}
    ada = Person(make_app(**at(model_server, **settings)), model_server)
    ada.tell("I live in Tallinn.", "I love green tea.", "I am allergic to peanuts.", "I own two cats.")
    ada.update(patch(*HOME_AND_TEA["patch"]))
    client = ada.client
    good(client.put("/api/users/ada/overview", json={"sentences": [{"text": "A trip to Riga comes up."}]}))
    append(client, "lockers", [said("My locker code is 1111."), said("Noted.", "assistant")], user_id="ada")
    good(client.put("/api/instructions/tone", json={"user_id": "ada", "text": "Be brief."}))
    good(client.put("/api/instructions/places", json={"text": "Speak of Riga."}))
    good(client.put("/api/conversation-types/planning", json={"user_id": "ada", "prompt": "Plan in steps."}))
    example = {"user_id": "ada", "input": "Which locker code did I tell you about?", "output": "Yours is 1111."}
    good(client.post("/api/examples", json=example))
    return ada


def test_it_lists_what_the_prompt_held_then_and_later(ada, model_server):
    client = ada.client
    good(client.post("/api/sessions", json={"session_id": "s2", "user_id": "ada"}))
    good(client.patch("/api/sessions/s2", json={"type": "planning"}))
    answer = chat(client, ASKED, session_id="s2", user_id="ada", recall="always")
    memory, sent = answer["memory"], held(model_server)
    same(memory, sent)
    assert [value["value"] for value in memory["profile"]["values"]] == ["Tallinn", "green tea"]
    assert memory["profile"]["values"][0]["quote"] == "I live in Tallinn."
    assert {one["text"] for one in memory["facts"]} >= {"I am allergic to peanuts.", "I own two cats."}
    assert [(one["kind"], one["name"], one["of_tenant"]) for one in memory["instructions"]] == [
        ("instruction", "places", True),
        ("instruction", "tone", False),
        ("type", "planning", False),
    ]
    assert memory["overview"]["sentences"][0]["text"] == "A trip to Riga comes up."
    assert memory["type"] == "planning" and memory["examples"] and memory["excerpts"]
    later = good(client.get(f"/api/sessions/s2/turns/{answer['message_id']}"))["memory"]
    assert rounded(later) == rounded(memory)


def test_it_tells_what_stood_there_and_not_what_stands_there_now(ada, model_server):
    client = ada.client
    answer = chat(client, ASKED, session_id="s2", user_id="ada", recall="always")
    sent, address = held(model_server), f"/api/sessions/s2/turns/{answer['message_id']}"
    good(client.put("/api/instructions/tone", json={"user_id": "ada", "text": "Be long."}))
    good(ada.edit({"op": "replace", "path": "/home", "value": "Tartu"}))
    good(client.put("/api/users/ada/overview", json={"sentences": []}))
    later = good(client.get(address))["memory"]
    assert [one["text"] for one in later["instructions"]] == ["Speak of Riga.", "Be brief.", "Plan in steps."]
    assert [one["text"] for one in later["overview"]["sentences"]] == ["A trip to Riga comes up."]
    assert later["profile"]["values"][0]["value"] == "Tallinn" and "home: Tallinn" in sent
    good(client.delete("/api/instructions/tone?user_id=ada"))
    assert [one["text"] for one in good(client.get(address))["memory"]["instructions"]] == [
        "Speak of Riga.",
        "Plan in steps.",
    ]


def test_it_keeps_no_word_of_what_it_lists(ada):
    chat(ada.client, "Good morning", session_id="s2", user_id="ada")
    with ada.engine.database.read() as tx:
        stored = str(tx.connection().exec_driver_sql("SELECT memory FROM turns").all())
    assert not any(word in stored for word in ("Tallinn", "brief", "Riga", "peanuts"))


def test_it_is_exact_for_every_kind_of_turn(ada, model_server):
    for message in ("Good morning", ASKED):
        for more in ({}, {"remember": False}, {"temporary": True}, {"recall": "off"}):
            same(chat(ada.client, message, user_id="ada", **more)["memory"], held(model_server))


def test_a_request_that_went_on_as_it_came_explains_nothing(ada, model_server, monkeypatch):
    answered(ada.client, talk("Which locker code?"), "v1", user="ada")
    (turn,) = good(ada.client.get("/api/sessions/v1/turns"))["items"]
    same(good(ada.client.get(f"/api/sessions/v1/turns/{turn['message_id']}"))["memory"], held(model_server))
