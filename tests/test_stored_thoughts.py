"""Thoughts of models that older versions stored: a job takes them out, and an import brings none."""

from __future__ import annotations

import pytest
from flask import Flask
from sqlalchemy import select, update

from app import engine_of
from models import JobRow, MessageRow, SessionRow, SummaryRow
from models.jobs import JobRequest
from tests.conftest import MakeApp
from tests.http import Body, append, chat, find, good, said, stored
from tests.knowledge import Talk, digest_of
from tests.model_server import ModelServer, at, prompts

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


def ask_for_cleaning(app: Flask) -> None:
    engine = engine_of(app)
    with engine.database.write() as tx:
        engine.job_queue.enqueue(tx, JobRequest("thoughts", "all", "default"))


def clean(app: Flask) -> None:
    ask_for_cleaning(app)
    engine_of(app).job_queue.run_due(["thoughts"])
    assert not [job for job in good(app.test_client().get("/api/jobs"))["items"] if job["kind"] == "thoughts"]


def index_again(app: Flask) -> None:
    """Run the jobs that make an index anew, which wait until no more changes."""
    with engine_of(app).database.write() as tx:
        tx.execute(update(JobRow).values(run_at=JobRow.created_at))
    engine_of(app).job_queue.run_due(["unindex", "index"])


def sums(app: Flask) -> tuple[int, int]:
    """The tokens of the session `s` by its row, and by its messages."""
    with engine_of(app).database.read() as tx:
        row = tx.scalars(select(SessionRow).where(SessionRow.public_id == "s")).one()
        sizes = tx.scalars(select(MessageRow.tokens).where(MessageRow.session_id == row.id, MessageRow.branch == 0))
        return row.tokens, sum(sizes)


@pytest.mark.parametrize("reply", CASES)
def test_a_stored_reply_loses_its_thoughts_and_all_else_follows(
    model_app: Flask, model_server: ModelServer, reply: str
) -> None:
    client, engine = model_app.test_client(), engine_of(model_app)
    question = "What colour has\n<think>it</think>?"
    append(client, "s", [said(question), said(reply, "assistant")], **ADA)
    engine.job_queue.run_due(["index"])
    found = "zebra" in CASES[reply]
    for _ in range(2):
        clean(model_app)
        assert [one["content"] for one in stored(client, "s")] == [question, CASES[reply]]
        row, messages = sums(model_app)
        assert row == messages == good(client.get("/api/sessions/s"))["tokens"]
        assert ("zebra" in str(find(client, "zebra", **ADA))) == found, "before the index follows"
        index_again(model_app)
        assert ("zebra" in str(find(client, "zebra", **ADA))) == found
        assert all(one.consistent and not one.waiting for one in engine.indexing.verify())
    chat(client, "And its size?", session_id="s", **ADA)
    assert CASES[reply] in [one["content"] for one in prompts(model_server)[-1]]


def test_summaries_of_all_versions_lose_them_too(talk: Talk) -> None:
    talk.hear("The bike is red.", said("Nice.", "assistant"), reply=digest_of(topic="Bikes"))
    mine = {"topic": "Bikes again", "data": ["Red", "Blue"], "excluded": [{"option": "Green", "reason": ""}]}
    good(talk.client.put(talk.address, json={"sections": mine}))
    thoughts = "<think>zebra</think>"
    with engine_of(talk.app).database.write() as tx:
        for version in tx.scalars(select(SummaryRow)):
            sections = {**version.sections, "topic": f"{thoughts}{version.sections['topic']}"}
            sections["data"] = [f"{thoughts}{one}" for one in sections["data"]] + [thoughts]
            sections["excluded"] = [{"option": f"{thoughts}Green", "reason": thoughts}, {"option": thoughts}]
            version.sections, version.tokens = sections, 500
    clean(talk.app)
    assert talk.topics() == ["2 Bikes again", "1 Bikes"]
    latest = talk.summary()["latest"]
    assert "zebra" not in str(latest) and latest["tokens"] < 100
    assert latest["sections"]["excluded"] == [{"option": "Green", "reason": ""}]


def test_the_job_goes_through_many_rows_in_parts_which_another_process_goes_on_with(
    make_app: MakeApp, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.sessions.thoughts.BATCH_ROWS", 3)
    app = make_app(**at(model_server))
    for number in range(4):
        exchange = [said("And?"), said(THOUGHT, "assistant"), said("Oh."), said(WORDS, "assistant")]
        append(app.test_client(), f"s{number}", exchange)
    ask_for_cleaning(app)
    for _ in range(2):
        engine_of(app).job_queue.run_now("thoughts", "all")
    last = [stored(app.test_client(), f"s{number}")[1]["content"] for number in range(4)]
    assert last == [WORDS, WORDS, THOUGHT, THOUGHT]
    again = make_app(**at(model_server))
    assert engine_of(again).job_queue.run_due(["thoughts"]) == 5, "four parts with the rest, and one that finds nothing"
    for number in range(4):
        contents = [one["content"] for one in stored(again.test_client(), f"s{number}")]
        assert contents == ["And?", WORDS, "Oh.", WORDS]


def test_a_replaced_reply_is_cleaned_without_a_change_of_the_sums(model_app: Flask, model_server: ModelServer) -> None:
    client = model_app.test_client()
    first = chat(client, "What colour has it?", session_id="s")
    with engine_of(model_app).database.write() as tx:
        tx.execute(update(MessageRow).where(MessageRow.id == first["message_id"]).values(content=THOUGHT))
    chat(client, "What size has it?", session_id="s", replaces=first["user_message_id"])
    before = sums(model_app)
    clean(model_app)
    assert sums(model_app) == before
    good(client.post(f"/api/sessions/s/messages/{first['user_message_id']}/restore"))
    assert stored(client, "s")[-1]["content"] == WORDS


def test_an_import_brings_no_thoughts_and_a_second_one_changes_nothing(talk: Talk) -> None:
    client = talk.client
    talk.who = ADA
    talk.hear("What colour has it?", said("It is red.", "assistant"), reply=digest_of(topic="Colours"))
    document = good(client.get("/api/users/ada/export"))
    document["sessions"][0]["messages"][1]["content"] = THOUGHT
    document["sessions"][0]["summaries"][0]["sections"]["topic"] = "<think>zebra</think>Colours"
    good(client.delete("/api/users/ada"))
    for created in (2, 0):
        done = good(client.post("/api/import", json=document, query_string=ADA))
        assert done["created"]["messages"] == created
    assert stored(client, "s")[1]["content"] == WORDS and talk.summary()["latest"]["sections"]["topic"] == "Colours"
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
