"""Exports of other programs: what a person and an assistant said comes in once, with its times, whatever the file."""

import io
import json
import re
import sqlite3
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver

from app import engine_of
from benchmarks.serving import ROOT
from memory.errors import InvalidRequest
from memory.transfer.export import SessionRecord
from memory.transfer.sources import PROGRAMS, SOURCES, files, langgraph
from memory.transfer.sources.times import Times
from tests.application import rows_of, run_command
from tests.http import Body, error, good, read_all
from tests.http import history as stored
from tests.knowledge import digest_of, fact
from tests.model_server import prompts
from tests.test_chatgpt_import import conversation, node, tea


def bring_in(client: FlaskClient, document: Any, user: str = "ada") -> Any:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return client.post(f"/api/import?user_id={user}", data=data, content_type="application/octet-stream")


def zipped(**members: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return file.getvalue()


def lines(*items: Body) -> bytes:
    return b"\n".join(json.dumps(item).encode() for item in items)


AT = "2024-05-01T10:00:00.000000Z"
LATER = "2024-05-01T10:00:09.000000Z"


def claude_chat(**changes: Any) -> Body:
    """A question that was edited, a thought, a call of a tool, and pasted text."""

    def message(uuid: str, parent: str, sender: str, at: str, *blocks: Body, **more: Any) -> Body:
        own = {"uuid": uuid, "parent_message_uuid": parent, "sender": sender, "created_at": at, "text": ""}
        return {**own, "content": list(blocks), "attachments": [], "files": [], **more}

    root = "00000000-0000-4000-8000-000000000000"
    thought = {"type": "thinking", "thinking": "Hm."}
    call = {"type": "tool_use", "name": "search", "input": {}}
    pasted = {"file_name": "", "extracted_content": "A list of teas."}
    return {
        "uuid": "c-tea",
        "name": "Tea",
        "created_at": AT,
        "updated_at": LATER,
        "account": {"uuid": "acct"},
        "chat_messages": [
            message("m1", root, "human", AT, {"type": "text", "text": "Which coffee?"}),
            message("m2", root, "human", AT, {"type": "text", "text": "Which tea?"}, attachments=[pasted]),
            message("m3", "m2", "assistant", LATER, thought, call, {"type": "text", "text": "Sencha."}),
        ],
        **changes,
    }


PROJECT = {
    "uuid": "p-tea",
    "name": "Tea shop",
    "description": "",
    "prompt_template": "Answer as a tea seller.",
    "created_at": AT,
    "docs": [{"uuid": "d1", "filename": "prices.md", "content": "Sencha: 12", "created_at": LATER}, 7],
}
REMEMBERED = {"conversations_memory": "**Home**\n\nAda lives in Lyon. She drinks tea.", "account_uuid": "acct"}
TEA = [("user", "Which tea?\nA list of teas."), ("assistant", "Sencha.")]


def activity(title: str, at: str, *answers: str, **changes: Any) -> Body:
    html = [{"html": f"<p>{answer}</p><ul><li>one</li></ul>"} for answer in answers]
    return {
        "header": "Gemini Apps",
        "title": title,
        "time": at,
        "products": ["Gemini Apps"],
        "safeHtmlItem": html,
    } | changes


GEMINI = [
    activity("Prompted How hot?", "2024-05-02T07:00:00.125Z", "70 &deg;C"),
    activity("Used an app", "2024-05-01T12:00:00Z"),
    activity("Prompted And then?", LATER),
    activity("Fragte: Welcher Tee?", AT, "Sencha &amp; more"),
]


def cell(activity: str, at: str, answer: str = "", product: str = "Gemini Apps") -> str:
    """One activity of Google's page."""
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        f'<div class="header-cell mdl-cell"><p class="mdl-typography--title">{product}<br></p></div>'
        f'<div class="content-cell mdl-cell mdl-typography--body-1">{activity}<br>{at}<br>{answer}</div>'
        '<div class="content-cell mdl-typography--body-1 mdl-typography--text-right"></div>'
        '<div class="content-cell mdl-typography--caption"><b>Products:</b><br>&emsp;Gemini Apps<br></div></div></div>'
    )


def activity_page(*cells: str) -> bytes:
    style = "<style>" + ".mdl-grid{display:flex}" * 5_000 + "</style>"
    return f"<html><head><title>My Activity History</title>{style}</head><body>{''.join(cells)}</body></html>".encode()


PAGE = activity_page(
    cell(
        'Prompted\xa0What is on it?<br>And why?<br>Attached 1 file.<br>-&nbsp; <a href="a-1.png">tea.png</a>',
        "May 2, 2024, 12:00:00\u202fPM CEST",
        "<p>70 &deg;C</p><ul><li>one</li></ul>",
    ),
    cell("Used an Assistant feature", "May 1, 2024, 1:00:00\u202fPM CEST"),
    cell("Prompted\xa0And then?", "May 1, 2024, 12:00:09\u202fPM CEST", "<p>12:00:01</p>"),
    cell("Poslali ste poziv:\xa0Kateri čaj?", "1. maj 2024, 12:00:00 CEST", "Sencha &amp; <b>more</b>"),
)
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Which tea?"}, {"type": "image_url", "image_url": {}}]},
    {"role": "assistant", "content": "Sencha.", "timestamp": 1_714_557_609_000},
]
ALONE = [
    {"session_id": "s1", "role": "user", "content": "Which tea?", "created_at": AT},
    {"session_id": "s1", "role": "assistant", "content": "Sencha.", "created_at": LATER, "id": "own"},
    {"session_id": "s2", "type": "human", "content": "How hot?"},
]
MARKDOWN = b"""\xef\xbb\xbf# On tea

An introduction.

## You, 2024-05-01 10:00

Which tea?

## User interfaces are no speaker
**You** are none, and in bold.

# A title begins a chat

### Assistant said:
> Sencha.
>
> ## user

**You:** Thanks.
"""
MEM0 = {"results": [{"id": "1", "memory": "Likes tea", "user_id": "u", "created_at": AT}], "relations": []}
ZEP_FACT = {"uuid": "1", "fact": "ADA lived in Tallinn", "valid_at": AT, "invalid_at": LATER}
ZEP_CHAT = {
    "thread_id": "z",
    "messages": [{"uuid": "1", "role": "Ada", "role_type": "user", "content": "Hi", "created_at": AT}],
}


def letta_message(role: str, text: str, *calls: Body, at: str = AT) -> Body:
    content = [{"type": "text", "text": text}]
    return {"role": role, "content": content, "tool_calls": list(calls), "created_at": at}


def letta_call(name: str, **arguments: str) -> Body:
    return {"id": "c", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


KNOWN = {"label": "human", "value": "\nFirst name: Ada\nTea: green\n", "limit": 5000, "id": "block-0"}
PERSONA = {"label": "persona", "value": "I am Sam.", "limit": 5000, "id": "block-1"}
LETTA_NEW = {
    "agents": [
        {
            "name": "Tea seller",
            "agent_type": "letta_v1_agent",
            "id": "agent-0",
            "block_ids": ["block-0", "block-1"],
            "messages": [
                letta_message("system", "You are a tea seller."),
                letta_message("user", "<system-reminder>\nIt is Monday.\n</system-reminder>\n\nWhich tea?"),
                letta_message("assistant", "", letta_call("conversation_search", query="tea")),
                letta_message("tool", "nothing"),
                letta_message("assistant", "Sencha.", at=LATER),
            ],
        },
        {"name": "Tidier", "agent_type": "sleeptime_agent", "messages": [letta_message("user", "Tidy the memory.")]},
    ],
    "blocks": [KNOWN, PERSONA],
    "tools": [{"id": "tool-0", "name": "conversation_search"}],
}
LETTA_OLD = {
    "agent_type": "memgpt_agent",
    "name": "Tea seller",
    "core_memory": [PERSONA, {**KNOWN, "updated_at": AT}],
    "messages": [
        letta_message("system", "You are a tea seller."),
        letta_message("assistant", "Bootup sequence complete.", letta_call("send_message", message="Welcome.")),
        letta_message("user", json.dumps({"type": "login", "last_login": "Never"})),
        letta_message("user", json.dumps({"type": "user_message", "message": "Which tea?", "time": "now"})),
        letta_message("assistant", "They want tea.", letta_call("send_message", message="Sencha.")),
        letta_message("user", '{"tea": "Is this how I send an order?"}'),
    ],
}

CLAUDES_FILES = {
    "users.json": [{"uuid": "acct", "full_name": "Ada", "email_address": "a@b.example"}],
    "conversations.json": [claude_chat(), claude_chat(uuid="none", name="", chat_messages=[])],
    "projects/p.json": PROJECT,
    "memories.json": [REMEMBERED],
    "../../photo.jpg": b"\xff\xd8",
}
SHARDS = {
    "user.json": {"id": "user-1", "email": "a@b.example", "chatgpt_plus_user": False},
    "x/conversations-001.json": [
        conversation("u", {"u": node(None, "user", "Two")}, id="t2", title="B", conversation_id="t2")
    ],
    "x/conversations-000.json": [tea()],
}

Said = list[tuple[str, str]]
ASKED, SENCHA, HOT = ("user", "Which tea?"), ("assistant", "Sencha."), ("user", "How hot?")
SHOP: Said = [("user", "Answer as a tea seller."), ("user", "prices.md\n\nSencha: 12")]
FIRST_DAY: Said = [("user", "Fragte: Welcher Tee?"), ("assistant", "Sencha & more\none"), ("user", "And then?")]
SHOWN: Said = [("user", "Which tea?\n[image]"), SENCHA]
NO_SPEAKERS = "Which tea?\n\n## User interfaces are no speaker\n**You** are none, and in bold."

# A document, its format, the chats that come of it by their titles, and the facts.
GIVEN: dict[str, tuple[Any, str, dict[str, Said], set[str]]] = {
    "claude, one chat": (claude_chat(current_leaf_message_uuid=["m1"]), "claude", {"Tea": TEA}, set()),
    "claude, a zip": (
        zipped(**CLAUDES_FILES),
        "claude",
        {"Tea": TEA, "Tea shop": SHOP},
        {"Ada lives in Lyon.", "She drinks tea."},
    ),
    "gemini": (
        GEMINI,
        "gemini",
        {"Gemini, 2024-05-02": [HOT, ("assistant", "70 °C\none")], "Gemini, 2024-05-01": FIRST_DAY},
        set(),
    ),
    "gemini, a page in a zip": (
        zipped(**{"Takeout/My Activity/Gemini Apps/MyActivity.html": PAGE, "Takeout/archive_browser.html": b"<html>"}),
        "gemini",
        {
            "Gemini, 2024-05-02": [
                ("user", "What is on it?\nAnd why?\n[file: tea.png]"),
                ("assistant", "70 °C\none"),
            ],
            "Gemini, 2024-05-01": [
                ("user", "Kateri čaj?"),
                ("assistant", "Sencha & more"),
                ("user", "And then?"),
                ("assistant", "12:00:01"),
            ],
        },
        set(),
    ),
    "chatgpt, shards in a zip": (
        zipped(**SHARDS),
        "chatgpt",
        {"Tea": [ASKED, SENCHA, HOT, ("assistant", "70 °C.")], "B": [("user", "Two")]},
        set(),
    ),
    "chats": ([{"id": "one", "title": "Tea", "created_at": AT, "messages": MESSAGES}], "chats", {"Tea": SHOWN}, set()),
    "lines of chats": (
        lines({"messages": MESSAGES}, {"title": "B", "messages": MESSAGES[1:]}),
        "chats",
        {"Which tea?": SHOWN, "B": SHOWN},
        set(),
    ),
    "lines of messages": (lines(*ALONE), "chats", {"Which tea?": [ASKED, SENCHA], "How hot?": [HOT]}, set()),
    "markdown": (
        MARKDOWN,
        "chats",
        {
            "On tea": [("user", NO_SPEAKERS)],
            "A title begins a chat": [("assistant", "Sencha.\n\n## user"), ("user", "Thanks.")],
        },
        set(),
    ),
    "mem0": (MEM0, "mem0", {}, {"Likes tea"}),
    "zep, facts": (
        {"facts": [ZEP_FACT, {**ZEP_FACT, "fact": "Likes tea", "invalid_at": None}]},
        "zep",
        {},
        {"Likes tea"},
    ),
    "letta": (LETTA_NEW, "letta", {"Tea seller": [ASKED, SENCHA]}, set()),
    "letta, written as JSON twice": (
        json.dumps(json.dumps(LETTA_NEW)).encode(),
        "letta",
        {"Tea seller": [ASKED, SENCHA]},
        set(),
    ),
    "letta, words sent by a tool": (
        LETTA_OLD,
        "letta",
        {
            "Tea seller": [
                ("assistant", "Welcome."),
                ASKED,
                SENCHA,
                ("user", '{"tea": "Is this how I send an order?"}'),
            ]
        },
        set(),
    ),
    "zep, a thread": (ZEP_CHAT, "chats", {"Hi": [("user", "Hi")]}, set()),
}


def test_what_was_said_and_known_elsewhere_comes_in_once(app, client):
    for name, (document, form, sessions, facts) in GIVEN.items():
        whose = {"user_id": name}
        assert good(bring_in(client, document, name))["format"] == form, name
        found = {one["title"]: stored(client, one["id"], **whose) for one in read_all(client, "/api/sessions", **whose)}
        assert found == sessions, name
        assert {one["text"] for one in read_all(client, "/api/facts", **whose)} == facts, name
        rows = rows_of(engine_of(app))
        done = good(bring_in(client, document, name))
        assert sum(done["created"].values()) == 0 and rows_of(engine_of(app)) == rows, name


def test_times_are_those_of_the_source(client):
    for name in ("claude, a zip", "gemini", "lines of messages", "markdown", "zep, facts"):
        good(bring_in(client, GIVEN[name][0]))
    imported = {one["imported_at"] for one in read_all(client, "/api/sessions", user_id="ada")}
    assert min(imported) > "2026", "which is not when it was said"
    times = {
        (one["title"], message["created_at"])
        for one in read_all(client, "/api/sessions", user_id="ada")
        for message in read_all(client, f"/api/sessions/{one['id']}/messages")
    }
    assert {
        ("Tea", "2024-05-01T10:00:09+00:00"),
        ("Gemini, 2024-05-02", "2024-05-02T07:00:00.125000+00:00"),
        ("Which tea?", "2024-05-01T10:00:00+00:00"),
        ("On tea", "2024-05-01T10:00:00+00:00"),
    } <= times
    held = read_all(client, "/api/facts", user_id="ada", as_of="2024-05-01T10:00:05Z")
    assert {one["text"] for one in held} == {"ADA lived in Tallinn", "Likes tea"}
    assert {one["valid_from"] for one in held} == {"2024-05-01T10:00:00+00:00"}
    assert all(one["created_at"] > "2026" for one in held), "which is when they were imported"


def test_what_another_program_was_told_of_the_person_becomes_the_profile(client):
    def profile(document: Any, user: str) -> Any:
        good(bring_in(client, document, user))
        return good(client.get(f"/api/users/{user}/profile"))["document"]

    def chatgpt(content: Any = None, **metadata: Any) -> Any:
        nodes = {
            "c": node(None, "user", metadata=metadata, content=content or {"content_type": "user_editable_context"}),
            "u": node("c", "user", "Hello"),
        }
        return [conversation("u", nodes)]

    custom = {"about_user_message": "Engineer\n" + "I like tea. " * 30, "about_model_message": "Be brief."}
    hidden = {"is_visually_hidden_from_conversation": True, "user_context_message_data": custom}
    made = profile(chatgpt(**hidden), "ada")
    assert made["about"][0] == "Engineer" and len(made["about"]) == 3 and made["wishes"] == ["Be brief."]
    assert stored(client, "6f2b-tea") == [("user", "Hello")]
    told = "The user provided the following information.\nUser profile:\n```Role: welder\nTwo dogs```"
    wished = "The user provided the additional info about how they would like you to respond:\n```Be brief.```"
    older = {"content_type": "user_editable_context", "user_profile": told, "user_instructions": wished}
    made = profile(chatgpt(older), "bob")
    assert made["about"] == ["Role: welder", "Two dogs"] and made["wishes"] == ["Be brief."]
    for name in ("letta", "letta, words sent by a tool"):
        made = profile(GIVEN[name][0], name)
        assert made["about"] == ["First name: Ada", "Tea: green"] and not made.get("wishes")


WRITTEN = {
    "Nov 5, 2025, 1:34:47\u202fAM CEST": "2025-11-04T23:34:47+00:00",
    "5 Nov 2025, 01:34:47 GMT": "2025-11-05T01:34:47+00:00",
    "05.11.2025, 01:34:47 MEZ": "2025-11-05T00:34:47+00:00",
    "5 juil. 2025, 01:34:47 CEST": "2025-07-04T23:34:47+00:00",
    "5 de nov. de 2025, 01:34:47 BRT": "2025-11-05T04:34:47+00:00",
    "5 нояб. 2025 г., 01:34:47 MSK": "2025-11-04T22:34:47+00:00",
    "2025年11月5日 01:34:47 JST": "2025-11-04T16:34:47+00:00",
    "2025/11/05 1:34:49 JST": "2025-11-04T16:34:49+00:00",
    "2025. 11. 5. 오후 1:34:49 KST": "2025-11-05T04:34:49+00:00",
    "Nov 5, 2025, 12:34:47 AM GMT+05:30": "2025-11-04T19:04:47+00:00",
    "Nov 5, 2025, 12:34:47 AM GMT-03:30": "2025-11-05T04:04:47+00:00",
}


def test_times_of_googles_page_are_read_as_they_are_written_everywhere(client):
    cells = [cell(f"Prompted\xa0Tea {number}?", at, "<p>Sencha.</p>") for number, at in enumerate(WRITTEN)]
    good(bring_in(client, activity_page(*cells)))
    found = {
        message["content"]: message["created_at"]
        for session in read_all(client, "/api/sessions", user_id="ada")
        for message in read_all(client, f"/api/sessions/{session['id']}/messages")
    }
    assert found.pop("Sencha.")
    assert found == {f"Tea {number}?": read for number, read in enumerate(WRITTEN.values())}


def test_a_chat_about_googles_page_is_no_such_page(client):
    said = 'What does this do? <div class="outer-cell">'
    good(bring_in(client, f"# Page\n\n## user\n\n{said}\n".encode()))
    (session,) = read_all(client, "/api/sessions", user_id="ada")
    assert stored(client, session["id"]) == [("user", said)]


def test_an_activity_without_a_time_that_can_be_read_is_named(client):
    known = cell("Prompted\xa0Which tea?", "Nov 5, 2025, 1:34:47 AM UTC", "<p>Sencha.</p>")
    report = good(bring_in(client, activity_page(known, cell("Prompted\xa0And then?", "last week", "<p>Hm.</p>"))))
    assert (report["created"]["messages"], report["skipped"]) == (2, 1)
    other = activity_page(cell("Searched for\xa0tea", "Nov 5, 2025, 1:34:47 AM UTC", product="Search"))
    assert "My Activity/Gemini Apps" in error(bring_in(client, other), 422)["message"]


def test_a_page_without_an_end_is_refused_soon(client):
    nested = activity_page() + b'<div class="outer-cell">' + b"<div><b><i>" * 9_000
    assert error(bring_in(client, nested), 422)["code"] == "unknown_format"
    assert error(bring_in(client, nested + bytes(3 << 20)), 422)["code"] == "unknown_format"


# -- what can't be imported


def test_a_tree_without_an_end_is_walked_once(client):
    nodes = {"a": node("b", "user", "one"), "b": node("a", "assistant", "two"), "c": {"parent": None}}
    for one in nodes.values():
        one.pop("children", None)
    bring_in(client, [{"mapping": nodes, "current_node": "b", "title": None}])
    (session,) = read_all(client, "/api/sessions", user_id="ada")
    assert [text for _, text in stored(client, session["id"])] == ["one", "two"]


WRONG: list[tuple[Any, str]] = [
    ({"id": "user-1", "email": "a@b.example", "chatgpt_plus_user": True}, "choose conversations.json"),
    ([activity("Watched tea", AT, header="YouTube", products=["YouTube"])], "My Activity/Gemini Apps"),
    ([{"id": "x"}, 7], "item 0 of it is no conversation"),
    (zipped(**{"a.jpg": b"x", "user.json": {"id": 1}}), "without chats. It begins with: a.jpg, user.json"),
    (zipped(**{"conversations.json": [tea()]})[:-30], "This .zip can't be read"),
    ([claude_chat(), claude_chat(uuid="x", account={"uuid": "bob"})], "export is of several people: acct and bob"),
    (b"<html>", "MyActivity.html"),
    (b"What", "is not valid JSON: it begins with neither [ nor {. Recap reads exports of AI Studio, ChatGPT, Claude"),
    (b"", "it is empty"),
    (b"Conversation,Time,Author,Message\r\n" + b"x" * 200_000, "This CSV can't be read"),
    ([{"title": "Tea", "messages": [{"role": "system", "content": "Be brief."}]}], "No message of a person or a model"),
    (b"# Notes\n\nOn tea.", "This Markdown has no messages"),
    ({"facts": [1]}, "facts.0: Must be a JSON object"),
]


def test_a_wrong_file_is_named_and_nothing_is_stored(app, client):
    for document, told in WRONG:
        answer = bring_in(client, document)
        assert answer.status_code in (400, 422), told
        message = error(answer, answer.status_code)["message"]
        assert told in message and "Nothing was stored" in message
    assert set(rows_of(engine_of(app)).values()) == {0}


def test_a_zip_is_refused_that_would_fill_the_memory(client, tmp_path, monkeypatch):
    small = zipped(**{"conversations.json": [tea()]})
    flags = small.index(b"PK\x01\x02") + 8
    assert error(bring_in(client, small[:flags] + b"\x01" + small[flags + 1 :]), 422)["code"] == "bad_zip"  # encrypted
    monkeypatch.setattr(files, "DIRECTORY_BYTES_MAX", 2_000)
    many = zipped(**{f"{number}.txt": b"" for number in range(100)}, **{"conversations.json": [tea()]})
    assert error(bring_in(client, many), 422)["code"] == "bad_zip"
    monkeypatch.setattr(files, "UNPACKED_BYTES_MAX", 1_000_000)
    bomb = zipped(**{"conversations.json": b"[" + b" " * 1_000_000 + b"]"})
    assert len(bomb) < 2_000 and error(bring_in(client, bomb), 422)["code"] == "zip_too_large"
    part = zipped(**{"conversations.json": b"[" + b" " * 300_000 + b"]"})
    nested = zipped(**{f"{number}.zip": part for number in range(4)})
    assert error(bring_in(client, nested), 422)["code"] == "zip_too_large"


def test_only_an_import_takes_other_bodies_than_json(client):
    refused = [
        client.post("/api/import?user_id=ada", data=b"[]", content_type="text/plain"),  # which a form can send
        client.post("/api/chat", data=b"{}", content_type="application/octet-stream"),
    ]
    assert [error(answer, 415)["code"] for answer in refused] == ["not_json"] * 2


# -- from the command line


def test_the_command_imports_files_and_summarises_what_it_was_asked_to(model_app, model_server, tmp_path):
    app, exam = model_app, "I have an exam tomorrow."
    for name, document in (("chats.json", [claude_chat(uuid=f"c{number}") for number in range(3)]), ("a.md", MARKDOWN)):
        (tmp_path / name).write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    (tmp_path / "exam.jsonl").write_bytes(lines({"role": "user", "content": exam, "created_at": AT}))
    run = partial(run_command, app, "import", "--user", "ada")
    done = run(str(tmp_path / "chats.json"), str(tmp_path / "a.md"))
    assert done.exit_code == 0, done.output
    assert "chats.json (claude): new are 3 sessions, 6 messages." in done.output
    assert "a.md (chats): new are 2 sessions, 3 messages." in done.output
    assert "5 sessions have no summary. It takes the mini model about" in done.output
    good(app.test_client().delete("/api/users/ada"))
    assert run("--summarise", str(tmp_path / "exam.jsonl"), input="n\n").exit_code == 0
    engine_of(app).job_queue.run_due()
    assert prompts(model_server, "mini") == [], "no model was called"
    run("--summarise", str(tmp_path / "exam.jsonl"), input="y\n")
    model_server.mini.queue(digest_of(fact("Has an exam on 2024-05-02", 1, exam, scope="user"), topic="Exam"))
    engine_of(app).job_queue.run_due()
    sent = str(prompts(model_server, "mini"))
    assert f"2024-05-01 Wednesday 10:00 user: {exam}" in sent and "counted from the day of their message" in sent
    (held,) = read_all(app.test_client(), "/api/facts", user_id="ada")
    assert (held["text"], held["valid_from"]) == ("Has an exam on 2024-05-02", "2024-05-01T10:00:00+00:00")
    (tmp_path / "user.json").write_text('{"chatgpt_plus_user": true}')
    wrong = run(str(tmp_path / "user.json"))
    assert wrong.exit_code == 1 and "item 0 of it is no conversation" in wrong.output


def test_a_time_that_was_never_set_is_no_time(client):
    unset = "0001-01-01T00:00:00Z"
    edge = {"uuid": "e-1", "created_at": "2024-05-01T10:00:00Z", "valid_at": unset, "invalid_at": unset}
    edges = [{**edge, "fact": "Likes tea"}, {**edge, "fact": "Likes milk", "expired_at": "2024-06-01T10:00:00Z"}]
    report = good(bring_in(client, edges))
    assert report["unread_times"] == []
    (valid,) = good(client.get("/api/facts?user_id=ada"))["items"]
    assert (valid["text"], valid["valid_from"]) == ("Likes tea", "2024-05-01T10:00:00+00:00")
    good(bring_in(client, [{"id": "c", "messages": [{"role": "user", "content": "Hi", "created_at": unset}]}], "bob"))
    (session,) = good(client.get("/api/sessions?user_id=bob"))["items"]
    assert session["created_at"][:4] > "2000"


# -- Markdown to read


def test_an_export_to_read_has_all_of_a_person_and_its_chats_come_in_again(client):
    custom = {"about_user_message": "Engineer", "about_model_message": ""}
    unseen = {"user_context_message_data": custom, "is_visually_hidden_from_conversation": True}
    hidden = node("u", "user", "hidden", metadata=unseen)
    asked = node(None, "user", "Which?\n# Not a title\n## user")
    good(bring_in(client, [conversation("u", {"u": asked, "h": hidden})]))
    for name in ("claude, one chat", "zep, facts"):
        good(bring_in(client, GIVEN[name][0]))
    answer = client.get("/api/users/ada/export?format=markdown")
    text = answer.text
    assert answer.mimetype == "text/markdown" and ".md" in answer.headers["Content-Disposition"]
    assert "\n## Profile\n\n- about: Engineer (2023-11-14)\n" in text
    assert "\n## Facts\n\n- Likes tea (since 2024-05-01)\n" in text
    assert "- ADA lived in Tallinn (2024-05-01 to 2024-05-01)\n" in text
    assert "\n# Tea\n\n2024-05-01 10:00\n\n## user, 2024-05-01 10:00\n\n> Which tea?\n> A list of teas.\n" in text
    good(bring_in(client, text.encode(), "bob"))
    ids = {user: [one["id"] for one in read_all(client, "/api/sessions", user_id=user)] for user in ("ada", "bob")}
    said_by = {user: sorted(stored(client, id) for id in found) for user, found in ids.items()}
    assert said_by["ada"] == said_by["bob"] and len(said_by["bob"]) == 2


def test_threads_of_langgraph_come_in_from_the_command_line(app, client, tmp_path):
    said = [HumanMessage("Which tea?", id="m1"), AIMessage("Sencha.", id="m2"), HumanMessage("How hot?", id="m3")]
    file = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        for minute, count in ((1, 1), (2, 3)):
            at = f"2024-05-01T10:0{minute}:00+00:00"
            state = {**empty_checkpoint(), "id": f"{minute}", "ts": at, "channel_values": {"messages": said[:count]}}
            place: Any = {"configurable": {"thread_id": "tea", "checkpoint_ns": ""}}
            saver.put(place, cast(Any, state), {}, {})
    for created in ("1 sessions, 3 messages", "none"):
        done = run_command(app, "import", "--user", "ada", file)
        assert f"checkpoints.sqlite (langgraph): new are {created}." in done.output
    messages = read_all(client, "/api/sessions/tea/messages")
    assert [(one["content"], one["created_at"][14:16]) for one in messages] == [
        ("Which tea?", "01"),
        ("Sencha.", "02"),
        ("How hot?", "02"),
    ]
    assert error(bring_in(client, file.read_bytes()), 422)["code"] == "bad_database", "which runs no SQL for strangers"


# -- whatever is in a file

_NAMES = [
    *("mapping", "message", "author", "role", "content", "parts", "content_type", "metadata", "create_time", "text"),
    *("parent", "current_node", "attachments", "user_context_message_data", "about_user_message", "chat_messages"),
    *("uuid", "sender", "current_leaf_message_uuid", "parent_message_uuid", "file_name", "extracted_content", "docs"),
    *("name", "project_memories", "conversations_memory", "title", "time", "header", "safeHtmlItem", "html", "type"),
    *("memory", "fact", "id", "created_at", "valid_at", "messages", "session_id"),
]
_texts = st.text(max_size=5) | st.sampled_from(["user", "Gemini", AT])
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=6),
    max_leaves=30,
)
_objects = st.dictionaries(st.sampled_from(_NAMES), _values, max_size=8)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    path = tmp_path / "checkpoints.sqlite"
    with closing(sqlite3.connect(path)) as database:
        SqliteSaver(database).setup()
        row = "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES ('t', '1', 'msgpack', X'c1')"
        database.execute(row)
        database.commit()
    with path.open("rb") as file, pytest.raises(InvalidRequest) as refusal:
        list(langgraph.threads(file))
    assert refusal.value.code == "bad_database"


def test_the_table_of_programs_has_each_that_is_read():
    table = "".join(re.findall(r"^\| ([^|]*) \|", (ROOT / "docs/export.md").read_text("utf-8"), re.M))
    assert [program for program in PROGRAMS if program not in table] == [], "programs that docs/export.md does not name"


@given(
    item=_objects,
    name=st.sampled_from(["mapping", "chat_messages", "messages", "docs", "title", "memory", "fact", "content"]),
    value=st.dictionaries(st.sampled_from("abc"), _objects) | st.lists(_objects, max_size=4) | _texts,
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_stands_in_a_file_gives_records_that_can_be_stored(item, name, value):
    whole = {**item, name: value}
    known = [source for source in SOURCES if source.recognises(whole)]
    for record in (record for source in known for record in source.records(whole, Times(datetime.now(UTC)))):
        for message in record.messages if isinstance(record, SessionRecord) else ():
            assert message.role in ("user", "assistant") and message.content and message.external_id
            json.dumps(message.content, ensure_ascii=False).encode()


def test_no_title_of_a_strangers_file_writes_to_the_terminal_that_names_it(app, tmp_path):
    file = tmp_path / "chats.json"
    file.write_text(json.dumps([tea(), {"title": "\x1b]0;tea\x07 \x1b[2Jcake"}]))
    done = run_command(app, "import", "--user", "ada", file)
    assert "item 1: ]0;tea [2Jcake" in done.output and "\x1b" not in done.output
