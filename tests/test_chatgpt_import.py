"""ChatGPT's conversations.json: what was said on the branch last seen, once, with its times and titles."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.http import Body, good, read_all
from tests.http import history as stored


def node(parent: str | None, role: str | None, *parts: Any, at: float | None = 1_700_000_000.0, **more: Any) -> Body:
    """A node of the tree; without a role it holds no message, as the first one does.  `more` is of the message."""
    message = {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": "text", "parts": list(parts)},
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": {},
        "recipient": "all",
        **more,
    }
    return {"parent": parent, "children": [], "message": message if role else None}


def conversation(current: str | None, nodes: dict[str, Body], **changes: Any) -> Body:
    """A conversation; children are filled in, and each node says its own id, as in an export."""
    for name, one in nodes.items():
        one["id"] = name
        if one["message"] is not None:
            one["message"].setdefault("id", name)
        if one["parent"] in nodes:
            nodes[one["parent"]]["children"].append(name)
    return {
        "title": "Tea",
        "create_time": 1_700_000_000.5,
        "update_time": 1_700_000_900.25,
        "mapping": nodes,
        "moderation_results": [],
        "current_node": current,
        "conversation_id": "6f2b-tea",
        "id": "6f2b-tea",
        "is_archived": False,
        **changes,
    }


def tea() -> Body:
    """A talk about tea whose question was edited once, and whose last answer was made twice."""
    return conversation(
        "a2-again",
        {
            "root": node(None, None),
            "system": node("root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
            "u1": node("system", "user", "Which coffee?", at=1_700_000_010.0),
            "a1": node("u1", "assistant", "A dark roast.", at=1_700_000_020.0),
            "u1-edited": node("system", "user", "Which tea?", at=1_700_000_030.0),
            "a1-edited": node("u1-edited", "assistant", "Sencha.", at=1_700_000_040.0),
            "u2": node("a1-edited", "user", "How hot?", at=1_700_000_050.0),
            "a2": node("u2", "assistant", "Boiling.", at=1_700_000_060.0),
            "a2-again": node("u2", "assistant", "70 °C.", at=1_700_000_070.125),
        },
    )


def bring_in(client: FlaskClient, *conversations: Any, user: str = "ada") -> Body:
    return good(client.post(f"/api/import?user_id={user}", json=list(conversations)))


def texts(client: FlaskClient, *nodes: Body) -> list[tuple[str, str]]:
    """What is stored of a conversation of these nodes, one after another."""
    names = [f"n{number}" for number in range(len(nodes))]
    for number, one in enumerate(nodes):
        one["parent"] = names[number - 1] if number else None
    bring_in(client, conversation(names[-1], dict(zip(names, nodes, strict=True))))
    return stored(client, "6f2b-tea")


def test_the_branch_last_seen_becomes_a_session(client):
    done = bring_in(client, tea())
    assert done["format"] == "chatgpt"
    assert {name: count for name, count in done["created"].items() if count} == {"sessions": 1, "messages": 4}
    session = good(client.get("/api/sessions/6f2b-tea?user_id=ada"))
    assert (session["title"], session["message_count"]) == ("Tea", 4)
    assert session["created_at"] == "2023-11-14T22:13:20.500000+00:00"
    assert session["updated_at"] == "2023-11-14T22:28:20.250000+00:00"
    messages = read_all(client, "/api/sessions/6f2b-tea/messages")
    assert [(m["role"], m["content"], m["external_id"]) for m in messages] == [
        ("user", "Which tea?", "u1-edited"),
        ("assistant", "Sencha.", "a1-edited"),
        ("user", "How hot?", "u2"),
        ("assistant", "70 °C.", "a2-again"),
    ]
    assert messages[3]["created_at"] == "2023-11-14T22:14:30.125000+00:00"


@pytest.mark.parametrize("current", ["gone", ["a2"]])
def test_without_a_current_node_the_newest_leaf_counts(client, current):
    bring_in(client, {**tea(), "current_node": current})
    assert stored(client, "6f2b-tea")[-1] == ("assistant", "70 °C.")


def test_nodes_whose_parents_were_deleted_follow_each_other_in_time(client):
    nodes = {f"n{at}": node(f"gone{at}", "user", f"Word {at}", at=1_700_000_000.0 + at) for at in range(1_200)}
    bring_in(client, conversation("n1199", nodes))
    assert stored(client, "6f2b-tea")[::1_199] == [("user", "Word 0"), ("user", "Word 1199")]


IMAGE = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1", "width": 1, "height": 1}
AUDIO = {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file-2", "format": "wav"}
SPOKEN = {"content_type": "audio_transcription", "text": "Which tea?", "direction": "in"}


KEPT = [
    (node(None, "user", "Which", "tea?"), "Which\ntea?"),
    (node(None, "user", IMAGE, "What is this?"), "[image]\nWhat is this?"),
    (node(None, "user", IMAGE), "[image]"),
    (node(None, "user", SPOKEN, AUDIO), "Which tea?"),
    (node(None, "user", {"content_type": "real_time_user_audio_video_asset_pointer"}), "[video]"),
    (
        node(None, "user", "Read this.", metadata={"attachments": [{"name": "tea.pdf"}, {"id": 1}, 7]}),
        "Read this.\n[file: tea.pdf]\n[file]",
    ),
    (
        node(None, "user", IMAGE, metadata={"attachments": [{"name": "tea.png", "mime_type": "image/png"}]}),
        "[image]",
    ),
    (
        node(None, "assistant", content={"content_type": "code", "language": "python", "text": "print('tea')"}),
        "print('tea')",
    ),
    (node(None, "assistant", "<think>Hm.</think>\nGreen."), "Green."),
    (node(None, "assistant", "Sencha \ue200cite\ue202turn0search1\ue201is green."), "Sencha is green."),
    (node(None, "user", "half a \ud83d pair, a \x00 NUL"), "half a ? pair, a \ufffd NUL"),
]
LEFT_OUT = [
    node(None, "system", "You are ChatGPT."),
    node(None, "tool", "Result of the search"),
    node(None, "assistant", "search('tea')", recipient="browser"),
    node(None, "assistant", content={"content_type": "code", "text": "search('tea')"}, recipient="web.run"),
    node(None, "assistant", content={"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}),
    node(None, "user", content={"content_type": "user_editable_context", "user_profile": "Likes tea"}),
    node(None, "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
    node(None, "assistant", content={"content_type": "reasoning_recap", "content": "Thought for 5s"}),
    node(None, "tool", IMAGE, author={"role": "tool", "name": "dalle.text2im"}),
    node(None, "assistant", "   "),
    node(None, "user", content="tea"),
    node(None, None),
]


def test_words_are_kept_the_rest_gets_a_placeholder_and_what_nobody_said_is_left_out(client):
    expected = [(one["message"]["author"]["role"], text) for one, text in KEPT]
    assert texts(client, *(one for one, _ in KEPT[:2]), *LEFT_OUT, *(one for one, _ in KEPT[2:])) == expected


def test_a_message_longer_than_any_may_be_comes_in_pieces(client):
    long = "tea " * 60_000
    for _ in range(2):
        found = texts(client, node(None, "user", long), node(None, "assistant", "Much tea."))
        assert [len(text) for _, text in found] == [100_000, 100_000, 39_999, 9]
    assert "".join(text for _, text in found[:3]) == long.strip()


@pytest.mark.parametrize("at", [None, float("1e300")])
def test_a_message_without_a_time_has_that_of_the_one_before(client, at):
    """The first one has that of the conversation."""
    texts(client, *(node(None, "user", f"{time}", at=time) for time in (at, 1_700_000_500.0, at)))
    times = [message["created_at"] for message in read_all(client, "/api/sessions/6f2b-tea/messages")]
    assert "22:13:20.5" in times[0] and times[0] != times[1] == times[2]


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"conversation_id": None}, "6f2b-tea"),
        ({"conversation_id": "a b", "id": "older"}, "older"),
        ({"conversation_id": "", "id": 7}, None),
    ],
)
def test_the_id_of_a_conversation(client, changes, known):
    for _ in range(2):
        bring_in(client, {**tea(), **changes})
    (session,) = read_all(client, "/api/sessions")
    assert session["id"] == known or (known is None and session["id"].startswith("chatgpt-"))
