"""Files as people have them, written before Recap read them: what a person expects of an import comes in."""

import json
from typing import Any

from tests.http import Body, good, history
from tests.test_chatgpt_import import conversation, node
from tests.test_sources import activity, bring_in, claude_chat, zipped

AT, LATER = "2026-05-01T10:00:00Z", "2026-05-01T10:00:09Z"
TEA = [("user", "Which tea?"), ("assistant", "Sencha.")]
LIST = [("user", "A list, please."), ("assistant", "One.\n```sh\n# install\nmake\n```\nTwo.")]


def talk(key: str = "tea", *between: tuple[str, Body], **changes: Any) -> Body:
    """A conversation of ChatGPT's in today's form: without children, with what stands between question and answer."""
    chain = [
        ("root", node(None, None)),
        ("u", node(None, "user", "Which tea?")),
        *between,
        ("a", node(None, "assistant", "Sencha.")),
    ]
    above: str | None = None
    nodes: dict[str, Body] = {}
    for name, each in chain:
        nodes[name] = {**each, "parent": above}
        above = name
    made = conversation("a", nodes, conversation_id=key, id=key, default_model_slug="gpt-5-thinking", **changes)
    for each in made["mapping"].values():
        del each["children"]
        if each["message"] is not None:
            each["message"].pop("metadata")
    return made


LOST = talk("lost", ("a0", node(None, "assistant", "Black or green?")), ("gone", node(None, "user", "")))
LOST["mapping"].pop("gone")
EMPTY = conversation("root", {"root": node(None, None)}, conversation_id="empty", title="New chat")

WITH_BLOCK = "I look.\n\n```\nThis block is not supported on your current device yet.\n```\n\nSencha."
CLAUDE_TOOLS = claude_chat(
    uuid="c-tools",
    chat_messages=[
        {"uuid": "1", "sender": "human", "created_at": AT, "text": "Which tea?", "content": []},
        {
            "uuid": "2",
            "sender": "assistant",
            "created_at": LATER,
            "text": WITH_BLOCK,
            "content": [],
        },
    ],
)


def of_code(uuid: str, parent: str | None, role: str, content: Any) -> Body:
    at = {"sessionId": "cc-1", "uuid": uuid, "parentUuid": parent, "timestamp": AT}
    return {"type": role, **at, "message": {"role": role, "content": content}}


CODE = [
    {"type": "summary", "summary": "Tea", "leafUuid": "2"},
    {"type": "file-history-snapshot", "messageId": "1", "snapshot": {}},
    of_code("1", None, "user", "Which tea?"),
    of_code("2", "1", "assistant", [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Sencha."}]),
]
GEMINI = [activity("Prompted Which tea?", AT, "Sencha.", safeHtmlItem=[{"html": "<p>Sencha.</p>"}])]
TAKEOUT = {
    "Takeout/My Activity/Gemini Apps/MyActivity.json": GEMINI,
    "Takeout/My Activity/Search/MyActivity.json": [
        {"header": "Search", "title": "Searched for tea", "titleUrl": "https://x", "time": AT, "products": ["Search"]}
    ],
    "Takeout/archive_browser.html": b"<html></html>",
}
BAD_GEMINI = [
    *GEMINI,
    {"header": "Gemini Apps", "title": "Prompted And then?", "products": ["Gemini Apps"]},
    None,
    {"header": "Gemini Apps", "title": "Prompted Then?", "time": "yesterday", "products": ["Gemini Apps"]},
]
ABROAD = [
    activity(
        "送信したメッセージ: どのお茶?",
        AT,
        header="Gemini アプリ",
        products=["Gemini アプリ"],
        subtitles=[{"name": "添付ファイル 1 件"}, {"name": "-  photo.jpg", "url": "photo.jpg"}],
        imageFile="photo.jpg",
        safeHtmlItem=[{"html": "<p>煎茶</p>"}],
    )
]
STATE = {
    "values": {
        "messages": [
            {"type": "human", "content": "Which tea?", "id": "1"},
            {"type": "ai", "content": "", "id": "2", "tool_calls": [{"name": "search", "args": {}, "id": "c"}]},
            {"type": "tool", "content": "[]", "id": "3", "tool_call_id": "c"},
            {"type": "ai", "content": [{"type": "text", "text": "Sencha."}], "id": "4"},
        ]
    },
    "next": [],
    "metadata": {"thread_id": "lg-1", "graph_id": "agent", "step": 3},
    "created_at": AT,
}
THOUGHT = '<details type="reasoning" done="true" duration="4">\n<summary>Thought</summary>\nHm.\n</details>\n'


def of_webui(key: str, role: str, content: str, **more: Any) -> Body:
    return {"id": key, "parentId": "1" if key != "1" else None, "role": role, "content": content, **more}


OPEN_WEBUI = {
    "id": "ow-1",
    "user_id": "u",
    "title": "Tea",
    "created_at": 1_777_629_600,
    "chat": {
        "models": ["qwen3"],
        "messages": [
            of_webui("1", "user", "Which tea?", timestamp=1_777_629_600),
            of_webui("2", "assistant", "Sencha.", timestamp=1_777_629_609),
        ],
    },
}
OPEN_WEBUI_NODES = [
    of_webui("1", "user", "Which tea?", childrenIds=["2", "3"]),
    of_webui("2", "assistant", f"{THOUGHT}Sencha."),
    of_webui("3", "assistant", "Assam.", timestamp=1_777_629_609),
]
OPEN_WEBUI_TREE = {
    "id": "ow-2",
    "title": "Tea",
    "chat": {"history": {"currentId": "2", "messages": {one["id"]: one for one in OPEN_WEBUI_NODES}}},
}


def of_grok(key: str, parent: str | None, sender: str, text: str, milliseconds: int) -> Body:
    at = {"$date": {"$numberLong": str(milliseconds)}}
    return {
        "response": {"_id": key, "parent_response_id": parent, "sender": sender, "message": text, "create_time": at}
    }


GROK = {
    "conversations": [
        {
            "conversation": {"id": "g-1", "title": "Tea", "create_time": AT, "modify_time": LATER},
            "responses": [
                of_grok("1", None, "human", "Which tea?", 1_777_629_600_000),
                of_grok("2", "1", "assistant", "Assam.", 1_777_629_601_000),
                of_grok("3", "1", "ASSISTANT", "Sencha.", 1_777_629_609_000),
            ],
        }
    ],
    "projects": [],
}
GROK_LONG = {  # with what Grok found on the web: more values than other programs' items may have
    "conversations": [
        {"conversation": {"id": "g-0", "title": "Web"}, "responses": [{"response": {"steps": [None] * 250_000}}]},
        *GROK["conversations"],
    ]
}
NONE = "00000000-0000-0000-0000-000000000000"
LIBRECHAT_REPLY = {
    "messageId": "2",
    "parentMessageId": "1",
    "isCreatedByUser": False,
    "sender": "GPT-4o",
    "text": "",
    "content": [{"type": "think", "think": "Hm."}, {"type": "text", "text": "Sencha."}],
    "createdAt": LATER,
}
LIBRECHAT_QUESTION = {
    "messageId": "1",
    "parentMessageId": NONE,
    "isCreatedByUser": True,
    "text": "Which tea?",
    "createdAt": AT,
}
LIBRECHAT_OLDER = {**LIBRECHAT_QUESTION, "messageId": "0", "text": "Which?", "createdAt": "2026-05-01T09:59:00Z"}
LIBRECHAT_TREE = [LIBRECHAT_OLDER, {**LIBRECHAT_QUESTION, "children": [{**LIBRECHAT_REPLY, "children": []}]}]
TAVERN = [
    {"user_name": "unused", "character_name": "unused", "chat_metadata": {"integrity": "x"}},
    {"name": "Mira", "is_user": False, "is_system": False, "send_date": "May 1, 2026 9:59am", "mes": "Welcome!"},
    {"name": "Ada", "is_user": True, "is_system": False, "send_date": "May 1, 2026 10:00am", "mes": "Which tea?"},
    {"name": "Mira", "is_user": False, "is_system": False, "send_date": "May 1, 2026 10:01AM", "mes": "Sencha."},
    {"name": "Mira", "is_user": False, "is_system": True, "send_date": "May 1, 2026 10:02am", "mes": "(hidden)"},
]
COPILOT = """\ufeff"Conversation","Time","Author","Message"\r
"More","2026-05-02T10:00:00","Human","Hot?"\r
"Tea","2026-05-01T10:00:00","AI","Sencha."\r
"Tea","2026-05-01T10:00:00","Human","Which tea?"\r
"""
LE_CHAT = [
    {"id": str(place), "chatId": "l-1", "role": role, "content": words, "createdAt": AT, "files": []}
    for place, (role, words) in enumerate(TEA)
]
SHARE_GPT = [
    {
        "id": "s-1",
        "title": "Tea",
        "conversations": [{"from": "human", "value": TEA[0][1]}, {"from": "gpt", "value": "Sencha."}],
    }
]
AI_STUDIO = {
    "runSettings": {"model": "models/gemini-2.5-pro"},
    "systemInstruction": {},
    "chunkedPrompt": {
        "chunks": [
            {"role": "user", "text": "Which tea?"},
            {"role": "model", "text": "Hm.", "isThought": True},
            {"role": "model", "text": "Sencha."},
        ]
    },
}
ASSISTANTS = [
    {
        "thread_id": "t",
        "id": str(place),
        "role": role,
        "created_at": 1_777_629_600 + place,
        "content": [{"type": "text", "text": {"value": words, "annotations": []}}],
    }
    for place, (role, words) in enumerate(TEA)
]
UI_MESSAGES = {
    "id": "ui",
    "messages": [
        {
            "id": str(place),
            "role": role,
            "parts": [{"type": "step-start"}, {"type": "reasoning", "text": "Hm."}, {"type": "text", "text": words}],
        }
        for place, (role, words) in enumerate(TEA)
    ],
}
MARKDOWN = b"""---
title: A list
source: https://chatgpt.com/c/1
---

# A list

#### You:
A list, please.

#### ChatGPT:
One.
```sh
# install
make
```
Two.
"""
NOTES = {
    "notes/list.md": MARKDOWN,
    "notes/README.md": b"# Read me\n\nThese are my chats.\n",
    "__MACOSX/notes/._list.md": b"\x00\x05\x16\x07\x00\x02",
}
TIMES = (
    b'{"title": "Tea", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": '
    b'"Which tea?", "timestamp": "2026-05-01 10:00:00"}, {"role": "assistant", "content": null, "tool_calls": []}, '
    b'{"role": "tool", "content": "x"}, {"role": "assistant", "content": "Sencha.", "timestamp": '
    b'"Fri, 01 May 2026 12:00:09 +0200"}]}\r\n\r\n{"title": "More", "messages": [{"role": "user", '
    b'"content": "Hot?"}]}\r\n'
)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 6_000_000}}
HUGE = [
    {"title": "Tea", "messages": [{"role": "user", "content": [{"type": "text", "text": "Which tea?"}, PICTURE]}]},
    {"title": "More", "messages": [{"role": "user", "content": "Hot?"}]},
]


def said(parent: str, at: str, *fragments: tuple[str, str], **fields: Any) -> Body:
    """A message of DeepSeek's."""
    written = [{"type": kind, "content": content} for kind, content in fragments]
    message = {"model": "deepseek-reasoner", "inserted_at": at, "fragments": written, "files": [], **fields}
    return {"parent": parent, "children": [], "message": message}


DEEPSEEK = {
    "id": "2f7f1f2e-deep",
    "title": "Tea",
    "inserted_at": AT,
    "updated_at": LATER,
    "mapping": {
        "root": {"parent": None, "children": ["1"], "message": None},
        "1": said("root", AT, ("REQUEST", "Which tea?"), files=[{"file_name": "teas.pdf"}]),
        "2": said("1", AT, ("RESPONSE", "Coffee.")),
        "3": said("1", LATER, ("THINK", "They want tea."), ("SEARCH", "tea"), ("RESPONSE", "Sencha.")),
    },
}

# name -> file, {title: messages}, number of items left out and named
CASES: dict[str, tuple[Any, dict[str, list[tuple[str, str]]], int]] = {
    "chatgpt, a deleted node": ([EMPTY, LOST], {"Tea": [TEA[0], ("assistant", "Black or green?"), TEA[1]]}, 0),
    "chatgpt, one bad conversation": (
        [talk("one", title="One"), {"id": "bad", "title": "Bad", "mapping": None}, talk("two", title="Two")],
        {"One": TEA, "Two": TEA},
        1,
    ),
    "deepseek, two replies": ([DEEPSEEK], {"Tea": [("user", "Which tea?\n[file: teas.pdf]"), TEA[1]]}, 0),
    "claude, unsupported blocks": ([CLAUDE_TOOLS], {"Tea": [TEA[0], ("assistant", "I look.\n\nSencha.")]}, 0),
    "claude code": (b"\n".join(json.dumps(line).encode() for line in CODE), {"Which tea?": TEA}, 2),
    "gemini, bad entries": (BAD_GEMINI, {"Gemini, 2026-05-01": TEA}, 3),
    "gemini, other languages": (
        [activity("Eingegebener Prompt: Which tea?", LATER, "", safeHtmlItem=[{"html": "<p>Sencha.</p>"}]), *ABROAD],
        {"Gemini, 2026-05-01": [("user", "どのお茶?\n[file: photo.jpg]"), ("assistant", "煎茶"), *TEA]},
        0,
    ),
    "grok": (zipped(**{"ttl/prod-grok-backend.json": GROK, "ttl/prod-mc-billing.json": {}}), {"Tea": TEA}, 0),
    "grok, a long chat": (GROK_LONG, {"Tea": TEA}, 0),
    "librechat": (
        {"conversationId": "lb", "title": "Tea", "messages": [LIBRECHAT_OLDER, LIBRECHAT_QUESTION, LIBRECHAT_REPLY]},
        {"Tea": TEA},
        0,
    ),
    "librechat, a tree": ({"conversationId": "lb", "title": "Tea", "messages": LIBRECHAT_TREE}, {"Tea": TEA}, 0),
    "sillytavern": ("\n".join(map(json.dumps, [*TAVERN, 7])).encode(), {"Mira": [("assistant", "Welcome!"), *TEA]}, 1),
    "copilot": (COPILOT.encode(), {"Tea": TEA, "More": [("user", "Hot?")]}, 0),
    "le chat": (
        zipped(**{"chat-1.json": LE_CHAT, "chat-2.json": [{**LE_CHAT[0], "chatId": "l-2", "content": "Hot?"}]}),
        {"Which tea?": TEA, "Hot?": [("user", "Hot?")]},
        0,
    ),
    "ai studio": (AI_STUDIO, {"Which tea?": TEA}, 0),
    "assistants of openai": (ASSISTANTS, {"Which tea?": TEA}, 0),
    "messages of parts": (UI_MESSAGES, {"Which tea?": TEA}, 0),
    "sharegpt": (SHARE_GPT, {"Tea": TEA}, 0),
    "open webui, a tree and thoughts": ([OPEN_WEBUI_TREE], {"Tea": TEA}, 0),
    "langgraph, state": (STATE, {"Which tea?": TEA}, 0),
    "open webui": ([OPEN_WEBUI], {"Tea": TEA}, 0),
    "markdown, a folder": (zipped(**NOTES), {"A list": LIST}, 0),
    "json lines, times": (TIMES, {"Tea": TEA, "More": [("user", "Hot?")]}, 0),
    "zip in zip": (zipped(**{"chats.zip": zipped(**TAKEOUT)}), {"Gemini, 2026-05-01": TEA}, 0),
    "a huge picture": (HUGE, {"More": [("user", "Hot?")], "Tea": [("user", "Which tea?\n[image]")]}, 0),
    "utf-16": (
        '{"title": "Tea", "messages": [{"role": "user", "content": "Thé?"}]}'.encode("utf-16"),
        {"Tea": [("user", "Thé?")]},
        0,
    ),
}


WITH_TIMES = {"grok", "librechat", "sillytavern", "copilot", "le chat"}


def test_what_people_have_comes_in_with_the_times_that_each_program_writes(client):
    for number, (name, (document, expected, left_out)) in enumerate(CASES.items()):
        user = f"person-{number}"
        report = good(bring_in(client, document, user))
        sessions = good(client.get(f"/api/sessions?user_id={user}"))["items"]
        messages = {session["title"]: history(client, session["id"], user_id=user) for session in sessions}
        assert messages == expected, name
        assert (report["skipped"], len(report["skipped_items"])) == (left_out, left_out), name
        exported = good(client.get(f"/api/users/{user}/export"))["sessions"]
        times = {message["created_at"][:8] for session in exported for message in session["messages"]}
        assert times == {"2026-05-"} or name not in WITH_TIMES
        assert good(bring_in(client, document, user))["created"]["messages"] == 0, name


def test_chats_without_ids_that_begin_alike_are_several_chats(client):
    roles = ("user", "assistant") * 3
    greeting = ["Hi", "Hello! How can I help you?"]
    rice, riga = [*greeting, "How long does rice take?", "Twenty minutes."], [*greeting, "Where is Riga?", "In Latvia."]
    grown = [*riga, "And Tartu?"]

    def chat(texts: list[str]) -> Body:
        return {"messages": [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]}

    def chats() -> list[list[str]]:
        found = (history(client, session["id"]) for session in good(client.get("/api/sessions"))["items"])
        return sorted([words for _, words in messages] for messages in found)

    for document in ([chat(rice), chat(riga)], [chat(riga)], [chat(greeting)]):
        good(bring_in(client, document))
        assert chats() == sorted([rice, riga])
    good(bring_in(client, [chat(grown)]))
    assert chats() == sorted([rice, grown]), "a later export adds what is new"
    pages = (
        f"# {title}\n\n" + "".join(f"## {role}\n\n{text}\n\n" for role, text in zip(roles, texts, strict=False))
        for title, texts in (("Rice", rice), ("Riga", grown))
    )
    assert good(bring_in(client, "".join(pages).encode()))["created"]["messages"] == 0
