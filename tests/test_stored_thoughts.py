"""Thoughts of models that other programs stored: an import brings none, and a client may still show them."""

from __future__ import annotations

import pytest
from flask import Flask

from tests.http import Body, append, good, said, stored
from tests.knowledge import Talk, digest_of

ADA = {"user_id": "ada"}
CASES = {
    "<think>The zebra asks.</think>\nIt is red.": "It is red.",
    "The zebra asks.\n</think>\n\nIt is red.": "It is red.",
    "<THINKING>\nzebra\n</THINKING>It is red.": "It is red.",
    "<think>Only the zebra thinks": "…",
    "<think></think>\n\nIt is red.": "It is red.",
    "Write `<think>` before a thought.": "Write `<think>` before a thought.",
    "```\n<think>zebra</think>\n```": "```\n<think>zebra</think>\n```",
}
THOUGHT, WORDS = next(iter(CASES.items()))


def test_an_import_brings_no_thoughts_and_a_second_one_changes_nothing(talk: Talk) -> None:
    client = talk.client
    talk.who = ADA
    talk.hear("What colour has it?", said("It is red.", "assistant"), reply=digest_of(topic="Colours"))
    document = good(client.get("/api/users/ada/export"))
    document["sessions"][0]["messages"] = [
        document["sessions"][0]["messages"][0],
        *({**document["sessions"][0]["messages"][1], "content": reply} for reply in CASES),
    ]
    thoughts = "<think>zebra</think>"
    excluded = [{"option": f"{thoughts}Green", "reason": thoughts}, {"option": thoughts}]
    mine = {"topic": f"{thoughts}Colours", "data": [f"{thoughts}Red", thoughts], "excluded": excluded}
    document["sessions"][0]["summaries"][0]["sections"] = mine
    good(client.delete("/api/users/ada"))
    for created in (1 + len(CASES), 0):
        done = good(client.post("/api/import", json=document, query_string=ADA))
        assert done["created"]["messages"] == created
    assert [message["content"] for message in stored(client, "s")[1:]] == list(CASES.values())
    sections = talk.summary()["latest"]["sections"]
    assert (sections["topic"], sections["data"]) == ("Colours", ["Red"])
    assert sections["excluded"] == [{"option": "Green", "reason": ""}] and "zebra" not in str(sections)
    nodes: Body = {"r": {"id": "r", "parent": None, "message": None}}
    for number, (role, text) in enumerate((("user", "And?"), ("assistant", THOUGHT))):
        message = {"id": f"m{number}", "author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}
        nodes[f"n{number}"] = {"id": f"n{number}", "parent": f"n{number - 1}" if number else "r", "message": message}
    chats = [{"id": "c", "title": "T", "mapping": nodes, "current_node": "n1"}]
    good(client.post("/api/import", json=chats, query_string=ADA))
    assert [one["content"] for one in stored(client, "c")] == ["And?", WORDS]


@pytest.mark.parametrize("reply", list(CASES)[:3])
def test_a_client_that_still_shows_the_thoughts_goes_on_with_the_same_conversation(
    model_app: Flask, reply: str
) -> None:
    client = model_app.test_client()
    append(client, "s", [said("What colour has it?"), said(WORDS, "assistant")])
    history = [said("What colour has it?"), said(reply, "assistant"), said("And its size?")]
    body = {"model": "gpt-4o", "messages": history}
    good(client.post("/v1/chat/completions", json=body, headers={"X-Session-Id": "s"}))
    assert [one["content"] for one in stored(client, "s")][:3] == ["What colour has it?", WORDS, "And its size?"]
    assert good(client.get("/api/sessions/s/messages/versions"))["items"] == []
