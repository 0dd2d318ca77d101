"""What a person asks to forget leaves all that was made of it, in each session; the messages stay stored."""

import json
from typing import Any

import pytest
from flask import Flask

from config.parsers import when
from tests.http import append, chat, find, good, read_all, said
from tests.jobs import jobs_done
from tests.knowledge import digest_of, fact
from tests.model_server import ModelServer, Text, ToolCalls, at, prompts

ADA = {"user_id": "ada"}
WORDS = ("alcohol", "teetotal", "sober", "wine bar")
SAID = "I don't drink alcohol any more since last year, so from now on never suggest a wine bar."
ASKS = "Please forget the thing I said about alcohol."
TRIP = {"topic": "Trip to Porto", "data": ["Goes to Porto in May"]}
SOBER = {"topic": "A sober trip", "data": ["Has been teetotal since 2025"]}
HOTEL = {**SOBER, "data": ["Goes to Porto in May", "Has been teetotal since 2025", "Wants a hotel by the river"]}
REST = {**TRIP, "data": ["Goes to Porto in May", "Wants a hotel by the river"]}


class Past:
    """Ada's session `a` about a trip, where she said that she drinks no alcohol; `place`: in which message of hers."""

    def __init__(self, app: Flask, server: ModelServer, place: int = 2) -> None:
        self.app, self.server, self.client = app, server, app.test_client()
        dry = fact("Drinks no alcohol", 2 * place - 1, "I don't drink alcohol any more", scope="user")
        lasting = {"text": "Suggest no wine bar", "quote": "never suggest a wine bar", "source": 2 * place - 1}
        says = [("I go to Porto in May.", "Porto in May it is.", digest_of(**TRIP))]
        told = (SAID, "Then I leave out each wine bar.", {**digest_of(dry, **SOBER), "instructions": [lasting]})
        says.insert(place - 1, told)
        for words, reply, digest in (*says, ("I want a hotel by the river.", "By the river.", digest_of(**HOTEL))):
            self.say(words, reply, digest)
        (self.fact_id,) = (one["id"] for one in read_all(self.client, "/api/facts", **ADA))
        quote = "I don't drink alcohol any more"
        patch = {"op": "add", "path": "/health_limits/-", "value": "alcohol: no more", "quote": quote, "source": 1}
        server.mini.queue({"patch": [patch]})
        jobs_done(self.client, "profile")
        sentences = (("Has been teetotal since 2025.", 4), ("Ada wants a hotel by the river.", 5))
        server.mini.queue({"sentences": [{"text": text, "sources": [number]} for text, number in sentences]})
        good(self.client.post("/api/users/ada/overview/refresh"))
        jobs_done(self.client, "overview")

    def say(self, words: str, reply: Any, *digests: Any, session: str = "a", **more: Any) -> None:
        self.server.main.queue(*(reply if isinstance(reply, list) else [reply]))
        chat(self.client, words, session_id=session, **ADA, **more)
        self.server.mini.queue(*digests)
        jobs_done(self.client, "summary", "index")

    def stored(self) -> dict[str, str]:
        """All that was made of what Ada has said, by its place."""
        paths = {"facts": "/api/facts?user_id=ada", "instructions": "/api/instructions?user_id=ada"}
        for name in ("profile", "overview"):
            paths |= {name: f"/api/users/ada/{name}", f"versions of {name}": f"/api/users/ada/{name}/versions"}
        titles = {}
        for session in read_all(self.client, "/api/sessions", **ADA):
            titles[f"title of {session['id']}"] = session["title"]
            paths[f"summaries of {session['id']}"] = f"/api/sessions/{session['id']}/summary/versions"
        return titles | {place: self.client.get(path).text for place, path in paths.items()}

    def messages(self, session: str = "a") -> list[dict[str, Any]]:
        return read_all(self.client, f"/api/sessions/{session}/messages")

    def prompts(self) -> dict[str, str]:
        """What the main model is sent in each session, with a question that looks back."""
        question, texts = "Which bar by the river would you suggest, as I told you earlier?", {}
        for session in ("a", "c", "new"):
            chat(self.client, question, session_id=session, recall="always", **ADA)
            texts[f"prompt of {session}"] = json.dumps(prompts(self.server)[-1])
        return texts

    def forget(self, *rest: Any, session: str = "c", words: str = ASKS) -> None:
        """Ask to forget it, in words; the mini model understands, and summarises the rest."""
        answer = {**digest_of(topic="To forget alcohol"), "forget": [self.fact_id]}
        self.say(words, "I forget it.", answer, *rest, session=session)

    def forget_by_tool(self, *rest: Any, session: str = "c") -> None:
        call = {"fact": "Drinks no alcohol", "quote": "forget the thing I said about alcohol", "rest": ""}
        replies = [ToolCalls([("forget", call)]), Text("I forget it.")]
        self.say(ASKS, replies, *rest, session=session, recall="tools")

    def newest(self, session: str = "a") -> dict[str, Any]:
        latest = good(self.client.get(f"/api/sessions/{session}/summary"))["latest"]["sections"]
        return {name: latest[name] for name in TRIP}


def saying(places: dict[str, str]) -> set[str]:
    """The places that say what is to be forgotten."""
    return {place for place, text in places.items() if any(word in text for word in WORDS)}


@pytest.fixture
def app(make_app, model_server):
    return make_app(**at(model_server, overview=when("0 5 * * *")))


def test_what_is_asked_to_be_forgotten_leaves_all_that_was_made_of_it(app, model_server):
    past = Past(app, model_server, place=1)
    made = {"facts", "instructions", "profile", "overview", "versions of profile", "versions of overview"}
    assert saying(past.stored()) == made | {"summaries of a", "title of a"}
    past.forget(digest_of(**REST))
    assert saying(past.stored()) == set()
    assert past.newest() == REST and past.stored()["title of a"] == "Trip to Porto"
    assert saying(past.prompts()) == set()
    assert past.messages()[0]["content"] == SAID
    assert SAID not in [one["content"] for one in find(past.client, "alcohol wine bar", **ADA)]


def test_it_leaves_the_session_that_asks_for_it_too(app, model_server):
    past = Past(app, model_server)
    past.forget(digest_of(**REST), session="a", words=f"{ASKS} And book the hotel.")
    assert saying(past.stored()) == set() and past.newest() == REST
    assert saying(past.prompts()) == set()
    assert [one["position"] for one in past.messages() if one["hidden_at"]] == [3, 4, 7, 8]


def test_the_models_tool_forgets_as_much_and_its_request_leaves_with_the_recent_messages(app, model_server):
    past = Past(app, model_server)
    past.forget_by_tool(*2 * [digest_of(**REST)])
    assert saying(past.stored()) == set() and past.newest() == REST
    assert saying(past.prompts()) == {"prompt of c"}, "the request is a recent message"
    assert not any(one["hidden_at"] for one in past.messages("c"))


def test_the_turn_that_forgets_goes_on_with_its_own_message(app, model_server):
    past = Past(app, model_server)
    past.forget_by_tool(digest_of(**REST), session="a")
    past.prompts()
    prompt = prompts(past.server)[-3]
    assert [message["role"] for message in prompt[1:]] == [*("user", "assistant") * 3, "user"]
    assert [message["content"] for message in prompt[1:-1:2]] == [
        "I go to Porto in May.",
        "I want a hotel by the river.",
        ASKS,
    ]


def test_what_repeats_it_in_other_sessions_leaves_memory_too(app, model_server):
    past = Past(app, model_server)
    plans, bars = {"topic": "Plans for Friday"}, "You don't drink alcohol any more, so take a tea house."
    told = {"topic": "A Friday without alcohol", "data": ["Drinks no alcohol any more", "Meets Kim on Friday"]}
    past.say("Where could I meet Kim on Friday?", bars, digest_of(**told), session="friday")
    past.say("Kim likes tea.", "Then tea.", digest_of(**told), session="friday")
    past.say("By the way, I don't drink alcohol any more.", "I know.", digest_of(**told), session="again")
    past.say("I don't drink coffee any more.", "I see.", digest_of(topic="Coffee"), session="coffee")
    assert "summaries of friday" in saying(past.stored())
    past.forget_by_tool(*4 * [digest_of(**plans)])
    assert saying(past.stored()) == set() and past.newest("friday")["topic"] == "Plans for Friday"
    shown = {name: [m["content"] for m in past.messages(name) if not m["hidden_at"]] for name in ("friday", "again")}
    assert shown["friday"] == ["Where could I meet Kim on Friday?", "Kim likes tea.", "Then tea."]
    assert shown["again"] == []
    assert not any(one["hidden_at"] for one in past.messages("coffee"))
    found = [one["content"] for one in find(past.client, "alcohol any more", **ADA)]
    assert bars not in found and "I don't drink coffee any more." in found


CALL = {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
OPEN = [
    said(SAID),
    said("Calling.", "assistant", extra={"tool_calls": [CALL]}),
]  # stays visible, as its reply is to come


@pytest.mark.parametrize(("session", "messages"), [("a", [said("And a flight.")]), ("b", OPEN)], ids=["past", "open"])
def test_a_summary_that_is_being_made_meanwhile_is_made_again(app, model_server, session, messages):
    past = Past(app, model_server)
    append(past.client, session, messages, **ADA)

    def late(_: Any) -> Any:
        call = {"fact": "Drinks no alcohol", "quote": "forget the thing I said about alcohol", "rest": ""}
        past.server.main.queue(ToolCalls([("forget", call)]), Text("I forget it."))
        chat(app.test_client(), ASKS, session_id="c", recall="tools", **ADA)
        return digest_of(**HOTEL)

    past.server.mini.queue(late, digest_of(**REST), digest_of(**REST))
    jobs_done(past.client, "summary", "index")
    assert saying(past.stored()) == set() and past.newest() == REST


def test_other_facts_of_these_messages_stay_and_the_profile_does_not_read_them(app, model_server):
    past = Past(app, model_server)
    words = f"{ASKS} I live in Oslo now."
    oslo = fact("Lives in Oslo", 1, "I live in Oslo now", scope="user")
    past.say(words, "I forget it.", {**digest_of(oslo), "forget": [past.fact_id]}, digest_of(**REST), session="c")
    assert [one["text"] for one in read_all(past.client, "/api/facts", **ADA)] == ["Lives in Oslo"]
    sent = len(prompts(past.server, "mini"))
    jobs_done(past.client, "profile")
    assert len(prompts(past.server, "mini")) == sent


def test_a_replaced_message_that_says_it_stays_forgotten_when_it_is_restored(app, model_server):
    past = Past(app, model_server)
    first = past.messages()[2]["id"]
    past.say(SAID, "Then tea.", digest_of(**SOBER), replaces=first)
    past.forget(*2 * [digest_of(**TRIP)])
    good(past.client.post(f"/api/sessions/a/messages/{first}/restore", query_string=ADA))
    model_server.mini.queue(digest_of(**REST))
    jobs_done(past.client, "summary", "index")
    assert [one["position"] for one in past.messages() if one["hidden_at"]] == [3, 4]
    sent = json.dumps(prompts(model_server, "mini")[-1])
    assert "hotel by the river" in sent and saying({"request": sent, **past.stored(), **past.prompts()}) == set()
