"""Types of conversations: known by their words, without a model, and what a turn does differently in them."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from tests.application import rows_of
from tests.http import Body, append, chat, error, good, read_all, said
from tests.knowledge import digest_of
from tests.model_server import ModelServer, at, prompts
from tests.traces import traces

pytestmark = pytest.mark.scripted

ADA = {"user_id": "ada"}
URL = "/api/conversation-types"


def put(client: FlaskClient, name: str, **does: Any) -> Body:
    return good(client.put(f"{URL}/{name}", json=does))


def type_of(client: FlaskClient, *messages: str, session: str = "s", **more: Any) -> Any:
    for message in messages:
        answer = chat(client, message, session_id=session, **ADA, **more)
    return answer["memory"]["type"]


def test_the_last_messages_of_the_person_tell_the_type(client):
    for number, (messages, expected) in enumerate(
        (
            (["I plan to move.", "Any plan needs a date."], "planning"),
            (["It fails with an error when I install it."], "support"),
            (["Explain the theorem to me, I study for an exam."], "learning"),
            (["Rewrite the second paragraph of my essay."], "writing"),
            (["Hi!", "My dog Rex chewed the red sofa."], None),
            (["Where did I park my car?"], None),
            (["Plan a trip and a budget.", "Hi!"], "planning"),
            (["Plan a trip.", *("It fails with an error in line 7.",) * 4], "support"),
            (["Die Installation bricht mit einem Fehler ab."], "support"),
            (["你好，最近好吗"], "small_talk"),
        )
    ):
        assert type_of(client, *messages, session=f"s{number}") == expected, messages
        (turn, *_) = read_all(client, f"/api/sessions/s{number}/turns")
        shown = good(client.get(f"/api/sessions/s{number}/turns/{turn['message_id']}"))
        assert shown["memory"]["type"] == expected, "and so does the record of the turn"


def head(server: ModelServer) -> str:
    return str(prompts(server)[-1][0]["content"])


def test_a_types_text_waits_for_the_head_and_what_a_person_sets_does_not(make_app, model_server):
    client = make_app(**at(model_server, tail_messages_max=4, summary_mode="inline")).test_client()
    model_server.mini.default = lambda body: digest_of()  # names no type
    put(client, "planning", prompt="Name <dates>.")
    put(client, "returns", prompt="Be sorry.", cues=["return label", "refund", "parcel", "courier"])
    assert type_of(client, "My name is Ida.") is None
    plain = head(model_server)
    assert type_of(client, "Plan my trip to Rome.") == "planning"
    assert head(model_server) == plain, "what the provider has cached stays"
    while head(model_server).startswith(plain) and "Name <dates>." not in head(model_server):
        assert len(prompts(model_server)) < 10
        type_of(client, "Plan my trip to Oslo.")
    assert head(model_server).startswith(f"{plain}\n\nName <dates>.\n\n"), "the tail has folded"
    planned = head(model_server).split("<summary>")[0]
    assert type_of(client, "The courier lost my parcel: a refund, and a return label?") == "returns"
    assert head(model_server).split("<summary>")[0] == planned
    good(client.patch("/api/sessions/s", json={"type": "returns"}))
    assert type_of(client, "Plan my trip to Oslo.") == "returns"
    assert head(model_server).startswith(f"{plain}\n\nBe sorry.\n\n"), "the person said so"
    put(client, "returns", prompt="Be brief.", **ADA)
    type_of(client, "And then?")
    assert head(model_server).startswith(f"{plain}\n\nBe brief.\n\n"), "her own comes before the tenant's"
    good(client.delete(f"{URL}/returns", query_string=ADA))
    good(client.delete(f"{URL}/returns"))
    type_of(client, "And then?")
    assert "Be" not in head(model_server).removeprefix(plain).split("<summary>")[0]
    good(client.patch("/api/sessions/s", json={"type": None}))
    assert type_of(client, "Return the label: I want a refund.", session="t") is None, "there is no such type any more"


def test_recall_and_budgets_follow_the_talk_and_tools_wait_for_the_head(client, model_server):
    lockers = [said(f"The locker number {one} is {'x' * 80}.") for one in range(20)]
    append(client, "old", [said("The locker code is 1111."), said("Noted.", "assistant"), *lockers], **ADA)
    good(client.post("/api/facts", json={**ADA, "text": "Has a locker in the hall"}))
    asked = "Which locker code do I need to return the label?"

    def shown(session: str, *before: str, **more: Any) -> tuple[str, int, int]:
        for message in before:
            chat(client, message, session_id=session, **ADA)
        memory = chat(client, asked, session_id=session, **ADA, **more)["memory"]
        excerpts = sum(len(one["messages"]) for one in memory["excerpts"])
        return memory["recall"]["mode"], excerpts, len(memory["facts"])

    mode, excerpts, facts = shown("before")
    assert (mode, facts) == ("auto", 1) and excerpts > 2
    put(client, "returns", cues=["return label"], recall_tokens=60, fact_tokens=0)
    mode, few, facts = shown("small")
    assert (mode, facts) == ("auto", 0) and 0 < few < excerpts
    put(client, "returns", cues=["return label"], recall="off")
    assert shown("off") == ("off", 0, 1)
    assert shown("asked", recall="auto")[0] == "auto", "a request says otherwise"
    put(client, "returns", cues=["return label"], recall="tools")
    assert shown("late", "My name is Ida.")[0] == "auto", "the head has been chosen for no type"
    assert "tools" not in model_server.requests[-1].body
    assert shown("early")[0] == "tools"
    assert model_server.requests[-1].body["tools"]


def test_types_are_listed_exported_and_erased_with_their_owner(client, model_app):
    put(client, "planning", prompt="TENANTWORD")
    mine = put(client, "diary", cues=["dear diary", "SENTINELCUE"], recall="always", fact_tokens=100, **ADA)
    budgets = {"recall_tokens": None, "fact_tokens": 100, "example_tokens": None, "emphasis": []}
    words = {"cues": ["dear diary", "SENTINELCUE"], "prompt": ""}
    assert mine == {"name": "diary", **words, "recall": "always", **budgets, "built_in": False, "of_tenant": False}
    listed = good(client.get(URL, query_string=ADA))["items"]
    assert [(one["name"], one["built_in"], one["of_tenant"]) for one in listed] == [
        ("diary", False, False),
        ("learning", True, False),
        ("planning", True, True),
        ("small_talk", True, False),
        ("support", True, False),
        ("writing", True, False),
    ]
    assert good(client.get(f"{URL}/diary", query_string=ADA)) == mine
    assert error(client.get(f"{URL}/diary"), 404)["code"] == "type_not_found"
    assert type_of(client, "Dear diary, today Rex ran.") == "diary"
    good(client.patch("/api/sessions/s", json={"type": "diary"}))
    document = good(client.get("/api/users/ada/export"))
    good(client.delete("/api/users/ada"))
    assert traces(engine_of(model_app).settings.data_dir, "SENTINELCUE") == {}
    good(client.post("/api/import", json=document, query_string=ADA))
    assert good(client.get(f"{URL}/diary", query_string=ADA)) == mine
    assert good(client.get("/api/sessions/s"))["type"] == "diary"
    receipt = good(client.delete(f"{URL}/diary", query_string=ADA))
    assert (receipt["name"], receipt["erased"]["items"]) == ("diary", 1)


def test_what_is_no_type_is_refused_and_nothing_is_stored(client):
    append(client, "s", [said("Hi")], **ADA)
    put(client, "tenants")
    put(client, "bobs", user_id="bob")
    before = rows_of(engine_of(client.application))
    for name, body, code in (
        ("A!", {}, "bad_type_name"),
        ("a", {"cues": ["the"]}, "bad_cue"),
        ("a", {"cues": ["x" * 61]}, "invalid_fields"),
        ("a", {"cues": ["x"] * 51}, "invalid_fields"),
        ("a", {"cues": "x"}, "invalid_fields"),
        ("a", {"prompt": "x" * 4_001}, "invalid_fields"),
        ("a", {"recall": "sometimes"}, "invalid_fields"),
        ("a", {"recall_tokens": -1}, "invalid_fields"),
        ("a", {"fact_tokens": 4_001}, "budget_too_large"),
        ("a", {"model": "x"}, "invalid_fields"),
    ):
        assert error(client.put(f"{URL}/{name}", json=body), 422)["code"] == code, body
    for name in ("nothing", "bobs"):
        assert error(client.patch("/api/sessions/s", json={"type": name, "title": "x"}), 422)["code"] == "unknown_type"
        made = {"session_id": "new", "user_id": "ada", "type": name}
        assert "planning" in error(client.post("/api/sessions", json=made), 422)["message"]
    assert client.get("/api/sessions/new").status_code == 404
    assert good(client.post("/api/sessions", json={**made, "type": "planning"}))["type"] == "planning"
    assert good(client.get("/api/sessions/s"))["title"] == "Hi"
    assert good(client.patch("/api/sessions/s", json={"type": "tenants"}))["type"] == "tenants"
    assert error(client.delete(f"{URL}/planning"), 404)["code"] == "type_not_found"
    for number in range(19):
        put(client, f"t{number}", **ADA)
    assert rows_of(engine_of(client.application))["items"] == before["items"] + 19
    put(client, "t19", **ADA)
    too_many = client.put(f"{URL}/t20", json=ADA)
    assert error(too_many, 422)["code"] == "too_many_types"


def digests(client: FlaskClient, server: ModelServer, kind: Any, **sections: Any) -> None:
    """The summary is made, and the mini model names a type."""
    answer = digest_of(**sections)
    server.mini.queue({**answer, "type": kind} if kind is not None else answer)
    engine_of(client.application).job_queue.run_due(["summary"])


def test_the_mini_model_names_the_type_with_the_summary_it_makes(client, model_server):
    put(client, "returns", cues=["return label"])
    assert type_of(client, "We walk across the Pyrenees in September.") is None
    digests(client, model_server, "planning")
    asked = [request for request in model_server.requests if request.model == "mini"]
    assert len(asked) == 1, "no call of its own"
    told = str(asked[0].body)
    assert "learning, planning, returns, small_talk, support, writing" in told
    assert type_of(client, "Ana walks five hours a day.") == "planning"
    digests(client, model_server, "no such type")
    assert type_of(client, "It fails with an error when I install it.") == "planning", "a wrong value is ignored"
    digests(client, model_server, None)
    assert type_of(client, "It fails with an error when I install it.") == "planning", "and so is a missing one"
    digests(client, model_server, "")
    assert type_of(client, "It fails with an error when I install it.") is None, "none fits"
    digests(client, model_server, "returns")
    assert type_of(client, "And then?") == "returns"
    good(client.delete(f"{URL}/returns"))
    assert type_of(client, "It fails with an error in line 7.") == "support", "the words count when it is gone"
    good(client.patch("/api/sessions/s", json={"type": "writing"}))
    digests(client, model_server, "support")
    assert "small_talk, support" not in str(prompts(model_server, "mini")[-1]), "what was given needs no guess"
    assert type_of(client, "And then?") == "writing"


def test_built_in_types_change_budgets_and_put_their_sections_first(make_app, model_server):
    client = make_app(**at(model_server, tail_messages_max=4, tail_messages_min=0)).test_client()
    by_name = {one["name"]: one for one in good(client.get(URL))["items"]}
    assert by_name["small_talk"]["recall_tokens"] == 260 and by_name["small_talk"]["example_tokens"] == 0
    assert by_name["planning"]["fact_tokens"] == 450 and by_name["support"]["recall"] == "always"
    sections = {"requirements": ["Quiet"], "data": ["Error 7"], "discussed": ["Weather"]}
    for kind, first in (("support", "Error 7"), ("planning", "Quiet"), ("learning", "Weather")):
        type_of(client, "One.", "Two.", session=kind)
        digests(client, model_server, kind, **sections)
        type_of(client, "Three.", "Four.", "Five.", session=kind)
        text = head(model_server)
        assert text.index(first) == min(text.index(one) for one in ("Quiet", "Error 7", "Weather")), kind
        engine_of(client.application).job_queue.run_due(["summary"])


def test_with_types_off_only_what_was_given_counts(make_app, model_server):
    client = make_app(**at(model_server, conversation_types="off")).test_client()
    assert type_of(client, "Help me plan a trip to Rome: flights and a hotel.") is None
    digests(client, model_server, "planning")
    assert "small_talk" not in str(prompts(model_server, "mini")[-1])
    assert type_of(client, "Plan the hotel.") is None
    good(client.patch("/api/sessions/s", json={"type": "planning"}))
    assert type_of(client, "And then?") == "planning"
