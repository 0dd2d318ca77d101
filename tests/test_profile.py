"""Profiles: what the mini model may change in them, what a person may, and what a prompt shows."""

from typing import Any

import pytest
from flask import Flask

from app import engine_of
from config.parsers import when
from memory.access.owners import get_user
from models.jobs import ATTEMPTS
from models.owners import Caller
from tests.http import append, chat, error, good, read_all, said
from tests.knowledge import digest_of, fact
from tests.model_server import FILTERED, ModelServer, Text, at, prompts

ADDRESS = "/api/users/ada/profile"


class Person:
    """Ada, whose facts and profile the mini model writes as the test says."""

    def __init__(self, app: Flask, server: ModelServer) -> None:
        self.app, self.client, self.server = app, app.test_client(), server
        self.engine = engine_of(app)

    def tell(self, *words: str, session: str = "s") -> None:
        """Say something that becomes a fact about the person, each sentence one."""
        told = append(self.client, session, [said(text) for text in words], user_id="ada")
        first = told["session"]["message_count"] - len(words) + 1
        facts = [fact(text, place, scope="user") for place, text in enumerate(words, first)]
        self.server.mini.queue(digest_of(*facts))
        self.engine.job_queue.run_due(["summary"])

    def update(self, *answers: Any) -> dict[str, Any]:
        """Run the job of the profile, with what the mini model answers."""
        self.server.mini.queue(*answers)
        self.work()
        return self.profile()

    def work(self) -> None:
        with self.engine.database.read() as tx:
            owner = get_user(tx, Caller(user_id="ada"))
        self.error = self.engine.job_queue.run_now("profile", owner.id)

    def profile(self, **query: Any) -> dict[str, Any]:
        return good(self.client.get(ADDRESS, query_string=query))

    def edit(self, *patch: dict[str, Any], **more: Any) -> Any:
        return self.client.patch(ADDRESS, json={"patch": list(patch), **more})

    def head(self, session: str = "t") -> str:
        chat(self.client, "Well?", session_id=session, user_id="ada", recall="off")
        return prompts(self.server)[-1][0]["content"]


def change(op: str, path: str, value: Any, quote: str, source: int = 1) -> dict[str, Any]:
    return {"op": op, "path": path, "value": value, "quote": quote, "source": source}


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"patch": list(operations)}


HOME = change("add", "/home", "Tallinn", "I live in Tallinn.")
HOME_AND_TEA = patch(HOME, change("add", "/likes/-", "green tea", "I love green tea.", 2))


@pytest.fixture
def ada(model_app, model_server):
    return Person(model_app, model_server)


@pytest.mark.parametrize("is_models_fault", [False, True])
def test_a_fact_that_is_always_answered_badly_does_not_stop_the_profile(ada, is_models_fault):
    ada.tell("I juggle ODD knives.", "I live in Tallinn.")

    def answer(body: Any) -> Any:
        is_bad = is_models_fault or "ODD" in body["messages"][1]["content"]
        return Text("{}") if is_bad else patch(HOME)

    ada.server.mini.default = answer
    for _ in range(ATTEMPTS + 1):
        ada.work()
    assert ada.profile()["document"] == ({} if is_models_fault else {"home": "Tallinn"})
    if is_models_fault:
        juggling = change("add", "/likes/-", "knives", "I juggle ODD knives.")
        assert ada.update(patch(juggling))["document"] == {"likes": ["knives"]}, "nothing was passed over"


def test_a_fact_that_a_content_filter_refuses_does_not_stop_the_profile(ada):
    def answer(body: Any) -> Any:
        shown = body["messages"][1]["content"]
        is_first = "[1] 2" in shown and "I live in Tallinn." in shown.split("[2] 2")[0]
        return FILTERED if "POISON" in shown else patch(HOME) if is_first else patch()

    ada.server.mini.default = answer
    ada.tell("I keep POISON.", "I live in Tallinn.", "I sell POISON.", "I swim.")
    ada.work()
    assert (ada.error, ada.profile()["document"]) == (None, {"home": "Tallinn"})
    calls = len(ada.server.requests)
    ada.work()
    assert len(ada.server.requests) == calls, "no fact waits"


def test_a_content_filter_that_refuses_once_passes_no_fact_over(ada):
    ada.tell("I live in Tallinn.")
    earlier = len(ada.server.requests)
    ada.server.mini.default = lambda _: FILTERED if len(ada.server.requests) == earlier + 1 else patch(HOME)
    ada.work()
    assert "content filter" in ada.error
    assert ada.update()["document"] == {"home": "Tallinn"}


def test_what_a_content_filter_refuses_of_the_profile_itself_passes_no_fact_over(ada):
    ada.edit({"op": "add", "path": "/likes/-", "value": "POISON"})
    ada.tell("I live in Tallinn.", "I swim.")
    ada.server.mini.default = lambda body: FILTERED if "POISON" in body["messages"][1]["content"] else patch(HOME)
    ada.work()
    assert "content filter" in ada.error
    ada.edit({"op": "remove", "path": "/likes"})
    assert ada.update()["document"] == {"home": "Tallinn"}


def test_an_addition_without_grounds_is_left_out(ada):
    ada.tell("I live in Tallinn.", "I don't like coffee.")
    ungrounded = (
        ("/home", "Riga", "I live in Riga", 1),  # nobody said so
        ("/home", "Riga", "I live in Tallinn.", 1),  # a name that was not said
        ("/goals/-", "run 42 km", "I live in Tallinn.", 1),  # a figure that was not said
        ("/dislikes/-", "tea", "I hate it.", 9),  # no such message
        ("/likes/-", "coffee", "I don't like coffee.", 2),  # the opposite was said
    )
    made = ada.update(patch(*(change("add", *addition) for addition in ungrounded), HOME))
    assert made["document"] == {"home": "Tallinn"}


def test_facts_tell_the_model_whom_the_person_means_and_the_oldest_words_come_first(ada):
    words = "My daughter starts school in May."
    append(ada.client, "s", [said(f"{words} Pasted: x", created_at="2024-03-03T10:00:00Z")], user_id="ada")
    named = fact("Mia, the user's daughter, starts school in May", 1, words, scope="user")
    ada.server.mini.queue(digest_of(named, data=["Mia is the user's daughter"]))
    ada.engine.job_queue.run_due(["summary"])
    append(ada.client, "old", [said("I keep bees.", created_at="2024-01-01T10:00:00Z")], user_id="ada")
    ada.server.mini.queue(digest_of(fact("Keeps bees", 1, "I keep bees.", scope="user")))
    ada.engine.job_queue.run_due(["summary"])
    made = ada.update(
        patch(
            change("add", "/people/-", "Mia, daughter", words, 2),
            change("add", "/people/-", "Lena, daughter", words, 2),
        )
    )
    assert made["document"] == {"people": ["Mia, daughter"]}, "nobody has named Lena"
    prompt = prompts(ada.server, "mini")[-1][-1]["content"]
    assert "[1] 2024-01-01 Monday 10:00 user: I keep bees." in prompt
    assert "[2] Mia, the user's daughter, starts school in May" in prompt
    assert "Pasted" not in prompt, "only what facts quote"


def test_small_slips_of_a_model_are_read_as_they_were_meant(ada):
    ada.tell("I live in Tallinn.", "I love green tea.")
    made = ada.update(
        patch(
            change("replace", "/home", "Tallinn", "I live in Tallinn.", 2),
            change("replace", "/likes/-", "green tea", "I love green tea.", 9),
        )
    )
    assert made["document"] == {"home": "Tallinn", "likes": ["green tea"]}
    places = {made["sources"]["home"]["position"], made["sources"]["likes"][0]["position"]}
    assert places == {1, 2}


TAKING_AWAY = {
    "remove what nothing denies": change("remove", "/likes/0", "", "I bought shoes."),
    "replace without a quote": change("replace", "/home", "Riga", "I moved to Riga."),
    "replace an item with another": change("replace", "/likes/0", "shoes", "I bought shoes."),
    "a whole document": change("replace", "", '{"home": "Tallinn"}', "I bought shoes."),
    "add over a list": change("add", "/likes", '["shoes"]', "I bought shoes."),
    "another source for what stays": change("replace", "/likes", '["green tea", "shoes"]', "I bought shoes."),
    "no such place": change("remove", "/likes/7", "", "I bought shoes."),
    "out of the schema": change("add", "/shoes", "red", "I bought shoes."),
    "an unknown operation": change("move", "/likes/0", "", "I bought shoes."),
    "no operation": {"op": "remove", "path": "/likes/0"},
}


def test_a_patch_that_takes_away_what_nothing_contradicted_is_repaired_or_refused(ada):
    ada.tell("I live in Tallinn.", "I love green tea.")
    before = ada.update(HOME_AND_TEA)
    for day, attempt in enumerate(TAKING_AWAY.values()):
        ada.tell(f"I bought shoes. It was day {day}.")
        bad = patch(change("add", "/goals/-", "shoes", "I bought shoes."), attempt)
        assert ada.update(bad, bad) == before
        assert ada.error is not None and "stays as it was" in ada.error and "shoes" not in ada.error
        repaired = ada.update(bad, patch())
        assert ada.error is None and repaired == before


def test_later_words_contradict_earlier_ones(ada):
    ada.tell("I live in Tallinn.", "I love green tea.")
    ada.update(HOME_AND_TEA)
    ada.tell("I moved to Riga.", "I no longer like green tea.")
    made = ada.update(
        patch(
            change("replace", "/home", "Riga", "I moved to Riga."),
            change("remove", "/likes/0", "", "I no longer like green tea.", 2),
        )
    )
    assert (made["version"], made["document"]) == (2, {"home": "Riga"})
    first = read_all(ada.client, f"{ADDRESS}/versions", limit=1)[1]
    assert first["document"] == {"home": "Tallinn", "likes": ["green tea"]}
    assert ada.profile(as_of=first["created_at"])["version"] == 1
    assert ada.profile(as_of="2001-01-01T00:00:00Z")["version"] == 0
    denial = read_all(ada.client, "/api/sessions/s/messages")[-1]
    good(ada.client.delete(f"/api/sessions/s/messages/{denial['id']}"))
    assert ada.profile() == made, "no value rests on it"


@pytest.mark.parametrize("what", ["forgotten", "edited"])
def test_a_fact_that_is_forgotten_or_edited_leaves_the_profile(ada, what):
    ada.tell("I live in Tallinn.", "I love green tea.")
    ada.update(HOME_AND_TEA)
    assert "Tallinn" in ada.head()
    facts = good(ada.client.get("/api/facts?user_id=ada"))["items"]
    (of_home,) = (one["id"] for one in facts if "Tallinn" in one["text"])
    if what == "edited":
        good(ada.client.patch(f"/api/facts/{of_home}?user_id=ada", json={"text": "Ada lives in Riga."}))
    else:
        good(ada.client.delete(f"/api/facts/{of_home}?user_id=ada"))
    assert ada.profile()["document"] == {"likes": ["green tea"]} and ada.profile()["author"] == "erasure"
    head = ada.head("u")
    assert "Tallinn" not in head and "green tea" in head and ("Riga" in head) == (what == "edited")


@pytest.mark.parametrize("what", ["forgotten", "edited", "edited meanwhile"])
def test_a_fact_that_is_forgotten_or_edited_before_the_update_does_not_enter_the_profile(ada, what):
    append(ada.client, "s", [said("I live in Tallinn. I love green tea.")], user_id="ada")
    home, tea, dutch = "I live in Tallinn.", "I love green tea.", "I speak Dutch."
    ada.server.mini.queue(digest_of(*(fact(text, place, scope="user") for text, place in ((home, 1), (tea, 1)))))
    ada.engine.job_queue.run_due(["summary"])
    ada.tell(dutch)
    stored = {one["text"]: one["id"] for one in good(ada.client.get("/api/facts?user_id=ada"))["items"]}

    def take_back(*_: Any) -> dict[str, Any]:
        if what == "forgotten":
            good(ada.client.delete(f"/api/facts/{stored[home]}?user_id=ada"))
        else:
            good(ada.client.patch(f"/api/facts/{stored[home]}?user_id=ada", json={"text": "Lives in Riga."}))
        return patch(HOME)

    if what == "edited meanwhile":
        assert ada.update(take_back)["version"] == 0
    else:
        take_back()
    assert ada.update(patch(change("add", "/languages/-", "Dutch", dutch)))["document"] == {"languages": ["Dutch"]}
    head = ada.head("u")
    assert "Tallinn" not in head and "green tea" in head and ("Riga" in head) == (what != "forgotten")


def test_what_was_said_before_something_was_forgotten_enters_the_profile_all_the_same(ada):
    ada.tell("I speak Dutch.", "I live in Tallinn.")
    home = next(one for one in good(ada.client.get("/api/facts?user_id=ada"))["items"] if "Tallinn" in one["text"])
    good(ada.client.delete(f"/api/facts/{home['id']}?user_id=ada"))
    assert ada.update(patch(change("add", "/languages/-", "Dutch", "I speak Dutch.")))["document"] == {
        "languages": ["Dutch"]
    }
    assert "Tallinn" not in prompts(ada.server, "mini")[-1][-1]["content"]


def test_a_person_edits_rolls_back_and_is_not_overruled_by_old_words(ada):
    ada.tell("I live in Tallinn.")
    ada.update(patch(HOME))
    ada.tell("I am in Narva.")
    edited = good(
        ada.edit({"op": "replace", "path": "/home", "value": "Tartu"}, {"op": "add", "path": "/goals/-", "value": "x"})
    )
    assert edited["document"] == {"home": "Tartu", "goals": ["x"]}
    assert edited["sources"]["home"]["author"] == "person"
    old = patch(change("replace", "/home", "Narva", "I am in Narva."))
    assert ada.update(old, old)["document"]["home"] == "Tartu"
    back = good(ada.client.post(f"{ADDRESS}/rollback", json={"version": 1}))
    assert (back["version"], back["author"], back["document"]) == (3, "rollback", {"home": "Tallinn"})
    error(ada.client.post(f"{ADDRESS}/rollback", json={"version": 9}), 404)


def test_a_persons_patch_applies_whole_or_not_at_all(ada):
    good(ada.edit({"op": "add", "path": "/home", "value": "Tartu"}))
    for operation in [
        {"op": "remove", "path": "/work"},
        {"op": "add", "path": "/shoes", "value": "red"},
        {"op": "add", "path": "/home", "value": 7},
        {"op": "add", "path": "", "value": []},
        {"op": "replace", "path": "home", "value": "x"},
        {"op": "add", "path": "/home"},
        {"op": "move", "path": "/work"},
        {"op": "copy", "path": "/likes/0", "from": "/nothing"},
        {"op": "test", "path": "/home", "value": "Riga"},
        {"op": "add", "path": "/likes/x", "value": "tea"},
        {"op": "add", "path": "/goals", "value": ["goal"] * 41},
    ]:
        operations = {"op": "add", "path": "/work", "value": "nurse"}, {"op": "remove", "path": "/work"}, operation
        assert "`GET /api/profile/schema`" in error(ada.edit(*operations), 422)["message"]
    error(ada.edit({"op": "remove", "path": "/home"}, expected_version=7), 409)
    assert (ada.profile()["version"], ada.profile()["document"]) == (1, {"home": "Tartu"})


def test_the_head_shows_the_profile_instead_of_its_facts_until_a_person_changes_it(ada):
    ada.tell("I live in Tallinn.", "I love green tea.", "I own two cats.")
    plain = ada.head("t")
    assert "<profile>" not in plain and plain.count("(said ") == 3
    ada.update(HOME_AND_TEA)
    assert ada.head("t") == plain, "the head changes when the tail folds"
    new = ada.head("new")
    assert "- home: Tallinn (said " in new and "- likes: green tea (said " in new
    assert "I live in" not in new and "I love" not in new and "I own two cats." in new
    answer = chat(ada.client, "Well?", session_id="new", user_id="ada")
    assert [one["value"] for one in answer["memory"]["profile"]["values"]] == ["Tallinn", "green tea"]
    good(ada.edit({"op": "replace", "path": "/home", "value": "Tartu"}))
    for session in ("new", "t"):
        head = ada.head(session)
        assert "- home: Tartu (said " in head and "Tallinn" not in head and "I own two cats." in head
    facts = read_all(ada.client, "/api/facts", user_id="ada")
    assert sorted(one["text"] for one in facts) == ["I love green tea.", "I own two cats."]


def test_settings_bound_what_is_shown(make_app, model_server, monkeypatch):
    monkeypatch.setattr("memory.knowledge.profile.PROFILE_TOKENS", 12)
    ada = Person(make_app(**at(model_server)), model_server)
    ada.tell("I live in Tallinn.", "I love green tea.")
    ada.update(HOME_AND_TEA)
    head = ada.head()
    assert "- home: Tallinn" in head and "- likes" not in head and "I love green tea." in head


def test_a_schema_of_the_tenant(ada):
    schema = {"type": "object", "properties": {"shoes": {"type": "integer"}, "home": {"type": "string"}}}
    ada.tell("My shoe size is 43.", "I live in Tallinn.")
    good(ada.edit({"op": "add", "path": "/goals/-", "value": "x"}, {"op": "add", "path": "/home", "value": "Riga"}))
    strict = {**schema, "additionalProperties": False}
    assert good(ada.client.put("/api/profile/schema", json={"schema": strict})) == {"schema": strict}
    assert good(ada.client.get("/api/profile/schema")) == {"schema": strict}
    made = ada.update(patch(change("add", "/shoes", "43", "My shoe size is 43.")))
    assert made["document"] == {"shoes": 43, "home": "Riga"}, ada.error
    nested = {**schema, "properties": {"friends": {"type": "object"}}}
    good(ada.client.put("/api/profile/schema", json={"schema": nested}))
    ada.tell("Zoe and I play chess.", session="t")
    friends = change("add", "/friends", '{"Zoe": ["chess"]}', "Zoe and I play chess.")
    assert ada.update(patch(friends))["document"] == {**made["document"], "friends": {"Zoe": ["chess"]}}, ada.error
    good(ada.client.delete("/api/sessions/t"))
    assert ada.profile()["document"] == made["document"], "no name is left where its values were"


def test_a_schema_that_can_not_be_used_is_refused(client):
    for schema in [
        {"type": "nothing"},
        {"type": "array"},
        {},
        {"type": "object", "required": ["x"]},
        {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:1/schema"}}},
        {"type": "object", "properties": {"x": {"type": "string", "pattern": "(a+)+$"}}},
        {"type": "object", "description": "x" * 20_000},
        [],
    ]:
        error(client.put("/api/profile/schema", json={"schema": schema}), 422)
    assert "goals" in good(client.get("/api/profile/schema"))["schema"]["properties"]


def test_a_pause_in_the_talk_costs_one_call_and_nothing_new_none(ada):
    """Twelve turns of which four say something about the person, and each is summarised: one call of the profile's."""
    told = {2: "I live in Tallinn.", 3: "I love green tea.", 7: "I own two cats.", 11: "I work as a nurse."}
    for turn in range(12):
        chat(ada.client, told.get(turn, f"What is {turn} plus {turn}?"), session_id="s", user_id="ada")
        found = [fact(told[turn], 2 * turn + 1, scope="user")] if turn in told else []
        ada.server.mini.queue(digest_of(*found))
        ada.engine.job_queue.run_due(["summary", "profile"])
    (job,) = [job for job in read_all(ada.client, "/api/jobs") if job["kind"] == "profile"]
    assert job["state"] == "pending"
    before = len(prompts(ada.server, "mini"))
    for _ in range(3):  # asked for by hand as well
        ada.update(patch(HOME))
        good(ada.client.post(f"{ADDRESS}/refresh"))
    assert (before, len(prompts(ada.server, "mini"))) == (12, 13)


@pytest.mark.parametrize(("mode", "calls"), [("inline", 1), ("manual", 0), ("off", 0), ("0 4 * * *", 0)])
def test_a_setting_says_when_it_is_written(make_app, model_server, mode, calls):
    ada = Person(make_app(**at(model_server, profile_mode=when(mode))), model_server)
    model_server.mini.queue(digest_of(fact("I live in Tallinn.", 1, scope="user")), patch(HOME))
    chat(ada.client, "I live in Tallinn.", session_id="s", user_id="ada")
    ada.engine.job_queue.run_due(["summary", "profile"])
    assert len(prompts(model_server, "mini")) == 1 + calls
    refreshed = ada.client.post(f"{ADDRESS}/refresh")
    assert refreshed.status_code == (422 if mode == "off" else 202)
    ada.engine.job_queue.run_due(["profile"])
    assert ada.profile()["document"] == ({} if mode == "off" else {"home": "Tallinn"})
    good(ada.edit({"op": "add", "path": "/work", "value": "nurse"}))
    assert ("nurse" in ada.head("new")) == (mode != "off")


@pytest.mark.parametrize("what", ["erased", "session", "replaced", "again"])
def test_what_rests_on_a_message_goes_with_it_from_every_version(ada, what):
    ada.tell("I love green tea.", session="kept")
    ada.update(patch(change("add", "/likes/-", "green tea", "I love green tea.")))
    turn = chat(ada.client, "I live in Tallinn.", session_id="s", user_id="ada")
    ada.server.mini.queue(digest_of(fact("I live in Tallinn.", 1, scope="user")))
    ada.engine.job_queue.run_due(["summary"])
    ada.update(patch(HOME))
    good(ada.edit({"op": "add", "path": "/work", "value": "nurse"}))
    message = turn["user_message_id"]
    if what in ("replaced", "again"):
        instead = "I live in Tallinn." if what == "again" else "I live somewhere."
        chat(ada.client, instead, session_id="s", user_id="ada", replaces=message)
    else:
        address = "/api/sessions/s" if what == "session" else f"/api/sessions/s/messages/{message}"
        assert good(ada.client.delete(address))["erased"]["item_versions"] == 2
    home = {"home": "Tallinn"} if what == "again" else {}
    now, *before = read_all(ada.client, f"{ADDRESS}/versions")
    assert now["document"] == {**home, "work": "nurse", "likes": ["green tea"]}
    assert now["author"] == ("person" if what == "again" else "erasure")
    assert ("Tallinn" in str(before)) == (what == "again")
    assert before[-1]["document"] == {"likes": ["green tea"]}


@pytest.mark.parametrize(
    ("said_before", "said_later", "document"),
    [
        (
            "My name is Ida. I live in Tallinn. I work as a nurse. I love green tea. I hate coriander.",
            "I moved to Riga. I no longer like green tea.",
            {"names": ["Ida"], "home": "Riga", "work": "Works as a nurse", "dislikes": ["coriander"]},
        ),
        ("我叫小明。我喜欢绿茶。", "", {"names": ["小明"], "likes": ["绿茶"]}),
    ],
)
def test_the_builtin_model_fills_it_by_a_few_rules(app, model_server, said_before, said_later, document):
    ada = Person(app, model_server)
    for number, words in enumerate(filter(None, (said_before, said_later))):
        append(ada.client, f"s{number}", [said(words)], user_id="ada")
        ada.engine.job_queue.run_due(["summary"])
        ada.update()
        assert ada.error is None
    assert ada.profile()["document"] == document


def test_somebody_who_is_erased_while_the_model_works_gets_no_profile(ada):
    ada.tell("I live in Tallinn.")
    ada.server.mini.queue(lambda _: good(ada.client.delete("/api/users/ada")) and patch())
    ada.work()
    error(ada.client.get(ADDRESS), 404)


def test_quotes_that_are_too_much_for_one_call_are_read_by_several(ada):
    for number in range(3):
        text = f"I love green tea {'so much ' * 2000}{number}."
        append(ada.client, f"s{number}", [said(text)], user_id="ada")
        ada.server.mini.queue(digest_of(fact(f"Loves tea {number}", 1, text, scope="user")))
        ada.engine.job_queue.run_due(["summary"])
    before = len(prompts(ada.server, "mini"))
    ada.server.mini.queue(patch(), patch(change("add", "/likes/-", "green tea", "I love green tea")), patch())
    good(ada.client.post(f"{ADDRESS}/refresh"))
    ada.engine.job_queue.run_due(["profile"])
    assert len(prompts(ada.server, "mini")) == before + 3
    assert ada.profile()["document"] == {"likes": ["green tea"]}
