"""Excerpts that no longer hold: the prompt shows beside them the fact that holds now."""

import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.knowledge.supersession import find_corrections
from memory.recall.excerpts import load_windows, messages_of
from tests.http import append, chat, find, good, said
from tests.knowledge import Talk, fact
from tests.knowledge import digest_of as digest
from tests.model_server import Text, ToolCalls
from tests.prompt_structure import of_result
from tests.recall import last, words
from tests.test_mcp import use

ADA = {"user_id": "ada"}
QUESTION = "What does the kayak cost?"
OLD, FIRST, SECOND = "The red kayak costs 400 euros.", "It went up to 450", "Now they want 480 <b>"


def shown(answer: dict[str, Any]) -> list[str]:
    return [one["text"] for one in answer["memory"]["facts"]]


@pytest.fixture
def talk(model_app, model_server):
    """Ada's kayak, whose price changed twice, far from where she told the first."""
    talk = Talk(model_app, model_server, "kayak", "ada")
    talk.hear(OLD, reply=digest(fact("The kayak costs 400 euros", 1, OLD)))
    for price, text in enumerate((FIRST, SECOND)):
        (old,) = talk.facts()
        filler = [said(f"Thing {number} of day {price}.", "assistant") for number in range(6)]
        new = fact(f"The price is {text}", 8 + 7 * price, text, supersedes=[old["id"]])
        talk.hear(*filler, text, reply=digest(new))
    assert talk.texts() == [f"The price is {SECOND}"]
    return talk


def test_the_fact_that_holds_stands_beside_words_that_were_corrected(talk, model_server):
    answer = chat(talk.client, QUESTION, session_id="new", **ADA)
    assert OLD in words(answer) and shown(answer) == [f"The price is {SECOND}"]
    text = last(model_server)
    quoted = "<facts>\n- The price is Now they want 480 &lt;b&gt; (said "
    assert text.index("400 euros") < text.index(quoted) and "went up" not in text
    assert shown(good(talk.client.get(f"/api/sessions/new/turns/{answer['message_id']}"))) == shown(answer)
    assert shown(chat(talk.client, "Which weather is it?", temporary=True, **ADA)) == []


@pytest.fixture
def moves(model_app, model_server):
    """Ada's home and her kayak's colour, each of which changed once."""
    talk = Talk(model_app, model_server, "kayak", "ada")
    told = ("I live in Oslo", "The kayak is red")
    talk.hear(*told, reply=digest(*(fact(text, at, text, scope="user") for at, text in enumerate(told, 1))))
    home, colour = (one["id"] for one in talk.facts(user_id="ada"))
    later = ("I live in Bergen", "It is blue <b>")
    changes = [fact(later[0], 3, later[0], scope="user", supersedes=[home])]
    changes += [fact(later[1], 4, later[1], scope="user", supersedes=[colour])]
    talk.hear(*later, reply=digest(*changes))
    return talk


@pytest.mark.parametrize(
    "question", ["Which colour did the kayak have before?", "Ist das Kayak noch red?", "kayak 以前是什么颜色？"]
)
def test_a_question_of_change_shows_what_held_before_and_until_when(moves, model_server, question):
    answer = chat(moves.client, question, session_id="new", **ADA)
    assert {"The kayak is red", "It is blue <b>"} <= {*shown(answer)}
    assert "I live in Oslo" not in shown(answer), "it is of no use for the question"
    assert re.search(r"- The kayak is red \(said [\d-]{10} [\d:]{5}, until [\d-]{10} [\d:]{5}\)\n", last(model_server))
    stored = good(moves.client.get(f"/api/sessions/new/turns/{answer['message_id']}"))
    assert shown(stored) == shown(answer)


def test_other_questions_show_no_former_facts_and_none_shows_hidden_ones(moves):
    answer = chat(moves.client, "Which colour has the kayak?", temporary=True, **ADA)
    assert "The kayak is red" not in shown(answer)
    hidden = {**ADA, "first": 1, "last": 2}
    good(moves.client.post("/api/sessions/kayak/messages/hide", json=hidden))
    answer = chat(moves.client, "Which colour did the kayak have before?", temporary=True, **ADA)
    assert "The kayak is red" not in shown(answer)


def hide(client: FlaskClient, fact_id: int) -> None:
    good(client.post("/api/sessions/kayak/messages/hide", json={**ADA, "first": 15, "last": 15}))


def forget(client: FlaskClient, fact_id: int) -> None:
    good(client.delete(f"/api/facts/{fact_id}", query_string=ADA))


@pytest.mark.parametrize("act", [hide, forget])
def test_what_is_hidden_or_forgotten_is_no_correction(talk, model_server, act):
    (newest,) = talk.facts()
    act(talk.client, newest["id"])
    answer = chat(talk.client, QUESTION, temporary=True, **ADA)
    assert OLD in words(answer) and shown(answer) == [] and "480" not in last(model_server)


def test_facts_that_were_only_merged_correct_nothing_until_their_successor_is_corrected(model_app, model_server):
    engine, trip = engine_of(model_app), ("Went to Porto with Ida", "With Ida the user went to Porto")
    for session, text in zip(("one", "two"), trip, strict=True):
        talk = Talk(model_app, model_server, session, "ada")
        talk.hear(text, reply=digest(fact(text, 1, scope="user")))
    good(talk.client.post("/api/users/ada/consolidation"))
    engine.job_queue.run_due(["consolidation"])
    (left,) = talk.facts(user_id="ada")
    assert left["proof_count"] == 2
    with engine.database.connect() as tx:
        everywhere = messages_of(load_windows(tx, 1, list(range(1, 9)), 0))
        assert find_corrections(engine, tx, 1, everywhere).of_messages == {}
    talk.hear("It was Faro", reply=digest(fact("It was Faro", 2, scope="user", supersedes=[left["id"]])))
    with engine.database.connect() as tx:
        corrections = find_corrections(engine, tx, 1, everywhere)
    assert [[fact.text for fact in facts] for facts in corrections.of_messages.values()] == [["It was Faro"]] * 2


@pytest.mark.parametrize("question", ["Where were we with the kayak?", "Where were we?"])
def test_a_summary_of_another_session_is_shown_with_what_was_corrected_since(model_app, model_server, question):
    filler = [said(f"Thing {number}.", "assistant") for number in range(6)]
    talk, elsewhere = (Talk(model_app, model_server, session, "ada") for session in ("kayak", "shop"))
    price, colour = fact("They ask 400 euros", 8, scope="user"), fact("It must be red", 8, scope="user")
    talk.say("I want a kayak.", *filler, "They ask 400 euros. It must be red.", *filler)
    talk.digest(digest(price, colour, topic="The kayak", data=["They ask 400 euros in all"]))
    red, costs = talk.facts()
    elsewhere.hear("480 now.", reply=digest(fact("480 now", 1, supersedes=[costs["id"]])))
    blue = fact("Blue, then", 15, supersedes=[red["id"]])
    talk.hear("Blue, then.", *filler, reply=digest(blue, topic="The kayak", data=["They ask 400 euros in all"]))
    answer = chat(talk.client, question, temporary=True, **ADA)
    assert "Facts and figures: They ask 400 euros in all" in last(model_server)
    assert not any("They ask" in text for text in words(answer))
    assert shown(answer) == ["480 now"], "its own summary says what was corrected in the session itself"


@pytest.mark.parametrize(
    ("speaker", "text", "is_corrected"),
    [
        ("assistant", "Four hundred and up: your kayak costs 400 euros.", True),
        ("assistant", "Ask the shop what a kayak costs.", False),
        ("user", "The kayak costs 400 euros.", True),
        ("user", "The boat costs 400 francs.", False),
    ],
)
def test_words_that_repeat_what_was_corrected_have_it_too(model_app, model_server, speaker, text, is_corrected):
    talk, elsewhere = (Talk(model_app, model_server, session, "ada") for session in ("kayak", "elsewhere"))
    talk.hear(OLD, reply=digest(fact("The kayak costs 400 euros", 1, OLD, scope="user")))
    append(talk.client, "elsewhere", [said(text, speaker)], **ADA)
    (old,) = talk.facts()
    elsewhere.hear(SECOND, reply=digest(fact(SECOND, 2, scope="user", supersedes=[old["id"]])))
    found = {hit["text"] or hit["content"]: hit["corrections"] for hit in find(talk.client, text, **ADA)}
    assert [one["text"] for one in found[text]] == ([SECOND] if is_corrected else [])
    read = use(talk.client, "fetch", id="elsewhere", limit=1)
    assert [one["text"] for one in read["corrections"]] == ([SECOND] if is_corrected else [])


@pytest.mark.parametrize(
    "call", [("conversation_search", {"query": "kayak"}), ("recent_chats", {"limit": 20})], ids=str
)
def test_what_the_model_finds_itself_has_it_too(talk, model_server, call):
    model_server.main.queue(ToolCalls([call]), Text("480."))
    answer = chat(talk.client, "Tell me of it.", session_id="new", recall="tools", **ADA)
    (result,) = (one["content"] for one in model_server.requests[-1].body["messages"] if one["role"] == "tool")
    assert of_result(result).facts[-1].text == f"The price is {SECOND}"
    assert result.index("400 euros") < result.index("</chat>\n<facts>\n- The price is Now they want 480 ")
    assert shown(answer) == [f"The price is {SECOND}"]
    assert shown(good(talk.client.get(f"/api/sessions/new/turns/{answer['message_id']}"))) == shown(answer)
    chat(talk.client, "Tell me of it.", session_id="bobs", recall="tools", user_id="bob")
    model_server.main.queue(ToolCalls([call]), Text("Nothing."))
    chat(talk.client, "Tell me of it.", session_id="bobs", recall="tools", user_id="bob")
    assert "480" not in last(model_server)


@pytest.fixture
def boats(model_app, model_server):
    """Client of a space whose kayak's price was corrected, far from where it was told."""
    client = model_app.test_client()
    append(client, "ours", [said(OLD)], space="boats")
    model_server.mini.queue(digest(fact("The kayak costs 400 euros", 1, OLD)))
    engine_of(model_app).job_queue.run_due(["summary"])
    (old,) = good(client.get("/api/facts", query_string={"session_id": "ours", "space": "boats"}))["items"]
    append(client, "ours", [*(said("Hm.", "assistant") for _ in range(6)), said(SECOND)], space="boats")
    model_server.mini.queue(digest(fact(f"The price is {SECOND}", 8, SECOND, supersedes=[old["id"]])))
    engine_of(model_app).job_queue.run_due(["summary"])
    return client


def test_corrections_of_a_space_stand_in_its_block(boats, model_server):
    chat(boats, QUESTION, temporary=True, spaces=["boats"], **ADA)
    text = last(model_server)
    assert (
        text.index('<space name="boats">') < text.index("400 euros") < text.index("<facts>") < text.index("480 &lt;b")
    )


def corrections(client: FlaskClient, q: str, **query: Any) -> dict[str, list[str]]:
    """What holds in place of each result that something replaced, by its words."""
    found = find(client, q, user_id="ada", **query)
    return {
        one["text"] or one["content"]: [fact["text"] for fact in one["corrections"]]
        for one in found
        if one["corrections"]
    }


def test_a_search_says_what_holds_in_place_of_a_result(talk):
    now = f"The price is {SECOND}"
    append(talk.client, "bobs", [said(OLD)], user_id="bob")
    assert corrections(talk.client, "kayak", limit=1) == {OLD: [now]}
    assert corrections(talk.client, "450", session_id="kayak", limit=1) == {FIRST: [now]}
    assert SECOND not in corrections(talk.client, "kayak 400 450 480", limit=20)
    assert corrections(talk.client, '"thing 0 of day 0"') == {}
    assert corrections(talk.client, '"thing 0 of day 0"', window=1) == {"Thing 0 of day 0.": [now]}
    assert corrections(talk.client, "480", kind="fact") == {}
    (bobs,) = find(talk.client, "kayak", user_id="bob")
    assert bobs["corrections"] == []
    (result,) = find(talk.client, "red kayak", user_id="ada", limit=1)
    (fact_now,) = talk.facts()
    assert result["corrections"] == [
        {name: fact_now[name] for name in ("id", "text", "category", "session_id", "source_message_id", "valid_from")}
    ]


def test_the_search_of_mcp_says_it_too(talk):
    found = use(talk.client, "search", query="red kayak", limit=1)["results"][0]
    assert "400 euros" in found["text"] and [one["text"] for one in found["corrections"]] == [f"The price is {SECOND}"]
    assert use(talk.client, "search", query="480", limit=1)["results"][0]["corrections"] == []


@pytest.mark.parametrize("act", [hide, forget])
def test_a_search_shows_no_correction_that_is_hidden_or_forgotten(talk, act):
    (newest,) = talk.facts()
    act(talk.client, newest["id"])
    assert corrections(talk.client, "kayak") == {}


def test_a_search_for_summaries_has_what_was_corrected_elsewhere(model_app, model_server):
    talk, elsewhere = (Talk(model_app, model_server, session, "ada") for session in ("kayak", "shop"))
    costs = fact("The kayak costs 400 euros", 1, scope="user")
    talk.hear("The kayak costs 400 euros.", reply=digest(costs, topic="The kayak", data=["400 euros in all"]))
    assert corrections(talk.client, "kayak", kind="summary") == {}
    (old,) = talk.facts()
    elsewhere.hear("480 now.", reply=digest(fact("480 now", 1, supersedes=[old["id"]]), topic="The shop"))
    (texts,) = corrections(talk.client, "kayak 400 euros", kind="summary", limit=1).values()
    assert texts == ["480 now"]


def test_a_fact_comes_with_what_was_corrected_of_the_rest_of_its_message(model_app, model_server):
    talk = Talk(model_app, model_server, "kayak", "ada")
    price, colour = fact("They ask 400 euros", 1, scope="user"), fact("It must be red", 1, scope="user")
    talk.hear("They ask 400 euros. It must be red.", reply=digest(price, colour))
    (costs,) = (one for one in talk.facts() if "400" in one["text"])
    talk.hear("480 now.", reply=digest(fact("480 now", 2, supersedes=[costs["id"]])))
    assert corrections(talk.client, "red", kind="fact") == {"It must be red": ["480 now"]}
    assert corrections(talk.client, "480", kind="fact", limit=1) == {}


def test_what_the_model_finds_in_a_space_is_reported_with_the_space(boats, model_server):
    model_server.main.queue(ToolCalls([("conversation_search", {"query": "kayak"})] * 2), Text("480."))
    memory = chat(boats, "Tell me of it.", session_id="mine", recall="tools", spaces=["boats"], **ADA)["memory"]
    assert memory["facts"] == []
    assert [(other["space"], [one["text"] for one in other["facts"]]) for other in memory["others"]] == [
        ("boats", [f"The price is {SECOND}"])
    ]


def test_corrected_facts_are_read_anew_after_a_change_by_another_process(apps, model_server):
    one, other = apps
    talk, elsewhere = Talk(one, model_server, "kayak", "ada"), Talk(other, model_server, "elsewhere", "ada")
    talk.hear(OLD, reply=digest(fact("The kayak costs 400 euros", 1, OLD, scope="user")))
    append(one.test_client(), "elsewhere", [said("The kayak costs 400 euros.")], **ADA)

    def search() -> list[str]:
        hits = find(one.test_client(), "The kayak costs 400 euros", limit=1, session_id="elsewhere", **ADA)
        return [corrected["text"] for hit in hits for corrected in hit["corrections"]]

    assert search() == []
    (old,) = talk.facts()
    elsewhere.hear(SECOND, reply=digest(fact(SECOND, 2, scope="user", supersedes=[old["id"]])))
    assert search() == [SECOND]
    good(other.test_client().patch(f"/api/facts/{elsewhere.facts()[-1]['id']}", json={"text": "It costs 480"}))
    assert search() == ["It costs 480"]
    good(other.test_client().post("/api/sessions/kayak/messages/hide", json={**ADA, "first": 1, "last": 1}))
    assert search() == [], "what was hidden since corrects nothing"
