"""Overviews: what the mini model may say of a person, what the person makes of it, and what goes with its sources."""

import re
from typing import Any

import pytest
from flask import Flask

from app import engine_of
from config.parsers import when
from memory.access.owners import get_user
from memory.erasing import erasing
from memory.knowledge import overview
from models.owners import Caller
from tests.http import Body, append, chat, error, good, read_all, said
from tests.jobs import jobs_done
from tests.knowledge import digest_of
from tests.model_server import FILTERED, ModelServer, Text, at, prompts
from tests.overview_cases import CASES
from tests.traces import SENTINEL, traces_of

_LINE = re.compile(r"^\[(\d+)\] (.*) \(said [\d-]+\)$", re.M)


class Person:
    """Person whose overview the mini model writes as the test says."""

    def __init__(self, app: Flask, server: ModelServer, user: str = "ada") -> None:
        self.app, self.client, self.server, self.user = app, app.test_client(), server, user
        self.engine = engine_of(app)
        self.address = f"/api/users/{user}/overview"

    def know(self, *texts: str) -> list[int]:
        """State facts; return their ids."""
        of_person = {"user_id": self.user, "category": "other", "importance": 3}
        return [good(self.client.post("/api/facts", json={"text": text, **of_person}))["id"] for text in texts]

    def summarise(self, session: str = "s", words: str = "Let us plan the trip.", **sections: Any) -> None:
        append(self.client, session, [said(words)], user_id=self.user)
        self.server.mini.queue(digest_of(**{"topic": "Trip to Rome", **sections}))
        self.engine.job_queue.run_due(["summary"])

    def write(self, *sentences: tuple[str, list[Any]], answers: int = 1) -> Body:
        """Have the mini model write these sentences, each resting on the lines that have these words."""

        def answer(body: Body) -> Any:
            lines = {text: int(number) for number, text in _LINE.findall(body["messages"][1]["content"])}

            def numbers(words: list[Any]) -> list[int]:
                found = [[at for text, at in lines.items() if isinstance(one, str) and one in text] for one in words]
                assert [len(one) for one in found] == [isinstance(word, str) for word in words], words
                return [word if isinstance(word, int) else at[0] for word, at in zip(words, found, strict=True)]

            return {"sentences": [{"text": text, "sources": numbers(words)} for text, words in sentences]}

        before, self.server.mini.default = self.server.mini.default, answer
        good(self.client.post(f"{self.address}/refresh"))
        self.work()
        self.server.mini.default = before
        return self.overview()

    def work(self) -> None:
        with self.engine.database.read() as tx:
            owner = get_user(tx, Caller(user_id=self.user))
        self.error = self.engine.job_queue.run_now("overview", owner.id)

    def overview(self) -> Body:
        return good(self.client.get(self.address))

    def texts(self) -> list[str]:
        return [sentence["text"] for sentence in self.overview()["sentences"]]

    def edit(self, *sentences: Body, **more: Any) -> Any:
        return self.client.put(self.address, json={"sentences": list(sentences), **more})

    def head(self, session: str = "t") -> str:
        chat(self.client, "Well?", session_id=session, user_id=self.user, recall="off")
        return str(prompts(self.server)[-1][0]["content"])


@pytest.fixture
def ada(make_app, model_server):
    return Person(make_app(**at(model_server, overview=when("0 5 * * *"))), model_server)


def test_true_sentences_stay_and_lies_do_not(ada):
    for case in CASES:
        person = Person(ada.app, ada.server, case.name)
        person.know(*case.facts)
        person.write(*((one.text, list(one.sources)) for one in case.sentences))
        assert person.texts() == [one.text for one in case.sentences if one.is_true], case.name


def test_a_fact_that_a_content_filter_refuses_does_not_stop_the_overview(ada):
    ada.know("Keeps POISON", "Flies to Rome on 3 June", "Sells POISON")

    def answer(body: Body) -> Any:
        shown = body["messages"][1]["content"]
        return FILTERED if "POISON" in shown else {"sentences": [{"text": "Flies to Rome on 3 June.", "sources": [1]}]}

    ada.server.mini.default = answer
    good(ada.client.post(f"{ada.address}/refresh"))
    ada.work()
    assert (ada.error, ada.texts()) == (None, ["Flies to Rome on 3 June."])


def test_sentences_name_facts_and_summaries_and_stand_in_the_head(ada):
    (rome,) = ada.know("Ada flies to Rome on 3 June.")
    ada.summarise(open_questions=["Which hotel in Rome?"])
    written = ada.write(
        ("Ada flies to Rome on 3 June.", ["flies to Rome"]), ("A hotel in Rome is open.", ["Which hotel"])
    )
    assert (written["version"], written["author"], written["is_shown"]) == (1, "model", True)
    assert (written["is_updating"], written["error"]) == (False, None)
    flight, hotel = written["sentences"]
    assert (flight["facts"], flight["summaries"], flight["author"]) == ([rome], [], "model")
    assert (hotel["facts"], hotel["summaries"]) == ([], [{"session_id": "s", "version": 1}])
    head = ada.head()
    assert re.search(
        r"\n<overview>\nAs of [\d-]{10}:\n- Ada flies to Rome on 3 June.\n- A hotel in Rome is open.\n</overview>", head
    )
    assert head.index("<overview>\n") < head.index("<facts>\n")
    task, lines = prompts(ada.server, "mini")[-1]
    assert "Today is 20" in task["content"] and "Trip to Rome, open questions: Which hotel in Rome?" in lines["content"]


def test_where_it_is_off_no_prompt_shows_it_and_nothing_asks_for_it(make_app, model_server):
    person = Person(make_app(**at(model_server)), model_server)
    person.know("Ada flies to Rome on 3 June.")
    person.summarise()
    jobs = good(person.client.get("/api/jobs"))["items"]
    assert [job["kind"] for job in jobs if job["kind"] == "overview"] == []
    assert person.write(("Ada flies to Rome.", ["Rome on"]))["is_shown"] is False
    assert person.texts() == ["Ada flies to Rome."]
    assert "<overview>" not in person.head()


def test_a_summary_asks_for_it_at_its_time_and_nothing_new_asks_no_model(ada):
    ada.know("Ada flies to Rome on 3 June.")
    ada.summarise()
    (job,) = [job for job in good(ada.client.get("/api/jobs"))["items"] if job["kind"] == "overview"]
    assert (job["state"], job["run_at"][11:16]) == ("pending", "05:00")
    assert ada.overview()["is_updating"] is False
    ada.write(("Ada flies to Rome.", ["Rome on"]))
    asked = len(prompts(ada.server, "mini"))
    ada.summarise(words="Hello again.")
    ada.work()
    assert len(prompts(ada.server, "mini")) == asked + 2, "for the summary, and the overview"
    ada.summarise(session="u")
    ada.work()
    asked = len(prompts(ada.server, "mini"))
    with ada.engine.database.write() as tx:
        overview.enqueue_update(ada.engine, tx, get_user(tx, Caller(user_id="ada")))
    ada.work()
    assert len(prompts(ada.server, "mini")) == asked, "it was made from what there is"


BROKEN: dict[str, Any] = {
    "no JSON": "I cannot do that.",
    "no source": {"sentences": [{"text": "Ada flies to Rome.", "sources": []}]},
    "no such source": {"sentences": [{"text": "Ada flies to Rome.", "sources": [2]}]},
    "true for a number": {"sentences": [{"text": "Ada flies to Rome.", "sources": [True]}]},
    "no text": {"sentences": [{"sources": [1]}]},
    "a text for a sentence": {"sentences": ["Ada flies to Rome."]},
}


def test_an_answer_of_lies_alone_is_repaired_or_refused_and_the_last_version_stays(ada):
    for name, broken in BROKEN.items():
        person = Person(ada.app, ada.server, name.replace(" ", "-"))
        person.know("Ada flies to Rome on 3 June.")
        person.write(("Ada flies to Rome.", ["Rome on"]))
        good(person.client.post(f"{person.address}/refresh"))
        person.server.mini.queue(broken, {"sentences": [{"text": "Ada flies to Rome on 3 June.", "sources": [1]}]})
        person.work()
        assert person.texts() == ["Ada flies to Rome on 3 June."], name
        good(person.client.post(f"{person.address}/refresh"))
        person.server.mini.queue(broken, broken)
        person.work()
        assert person.texts() == ["Ada flies to Rome on 3 June."] and person.overview()["version"] == 2, name
        (job,) = read_all(person.client, "/api/jobs", user_id=person.user)
        assert "refused" in job["error"]


def test_an_answer_that_is_cut_off_says_so_and_is_not_repaired(ada):
    ada.know("Ada flies to Rome on 3 June.")
    good(ada.client.post(f"{ada.address}/refresh"))
    ada.server.mini.queue(Text('{"sentences": [{"text": "Ada flies', finish="length"))
    asked = len(ada.server.requests)
    ada.work()
    assert len(ada.server.requests) == asked + 1
    assert ada.error is not None and "limit of tokens" in ada.error and "the overview stays as it was" in ada.error


def test_it_has_at_most_150_tokens(ada):
    texts = [f"Ada meets {name} about the garden, the roof, the cellar and the new kitchen." for name in "ABCDEFGHIJKL"]
    ada.know(*texts)
    ada.write(*((text, [text]) for text in texts))
    shown = ada.texts()
    assert 0 < len(shown) < len(texts) and shown == texts[: len(shown)]
    many = ada.edit(*({"text": text} for text in texts))
    assert error(many, 422)["code"] == "overview_too_long"


def test_what_the_person_wrote_stays_and_what_they_took_out_does_not_come_back(ada):
    rome, tea = ada.know("Ada flies to Rome on 3 June.", "Ada likes green tea.")
    ada.write(("Ada flies to Rome.", ["Rome on"]), ("Ada likes tea.", ["green tea"]))
    edited = good(ada.edit({"text": "Rome is on 4 June now.", "facts": [rome]}, {"text": "The cat is ill."}))
    assert (edited["version"], edited["author"]) == (2, "person")
    assert [(one["author"], one["facts"]) for one in edited["sentences"]] == [("person", [rome]), ("person", [])]
    ada.head()
    assert "- Rome is on 4 June now.\n- The cat is ill.\n</overview>" in ada.head("u"), "at once"
    ada.know("Ada sings in a choir.")
    ada.write(("Ada likes tea.", ["green tea"]), ("Ada sings in a choir.", ["choir"]))
    assert ada.texts() == ["Rome is on 4 June now.", "The cat is ill.", "Ada sings in a choir."]
    assert "- Rome is on 4 June now." in prompts(ada.server, "mini")[-1][1]["content"]
    ada.summarise(open_questions=["Does Ada like tea?"])
    ada.write(("Does Ada like tea?", ["like tea"]), ("Ada sings in a choir.", ["choir"]))
    assert "Does Ada like tea?" not in ada.texts(), "in the same words from another source"
    assert error(ada.edit({"text": "x", "facts": [tea]}), 422)["code"] == "unknown_source"
    assert error(ada.edit({"text": "x"}, expected_version=2), 409)["code"] == "item_changed"
    versions = read_all(ada.client, f"{ada.address}/versions", limit=2)
    assert [(one["version"], one["author"]) for one in versions] == [
        *((4, "model"), (3, "model"), (2, "person"), (1, "model"))
    ]
    good(ada.edit({"text": "The cat is ill."}))  # without the choir
    back = good(ada.client.post(f"{ada.address}/rollback", json={"version": 1}))
    assert (back["author"], ada.texts()) == ("rollback", ["Ada flies to Rome.", "Ada likes tea."])
    ada.write(("Ada likes tea.", ["green tea"]), ("Ada sings in a choir.", ["choir"]))
    assert ada.texts() == ["Ada likes tea."], "what that version has is back, and nothing else"
    error(ada.client.post(f"{ada.address}/rollback", json={"version": 9}), 404)


def test_rules_keep_out_what_the_person_wrote_too(ada):
    ada.know("Ada flies to Rome on 3 June.")
    good(ada.edit({"text": "Ada has asthma."}, {"text": "The cat is called Tom."}))
    rules = {"user_id": "ada", "topics": ["health"]}
    assert error(ada.client.put("/api/rules", json=rules), 409)["code"] == "rules_close_facts"
    good(ada.client.put("/api/rules", json={**rules, "close": True}))
    assert ada.texts() == ["The cat is called Tom."] and "asthma" not in ada.head()
    assert error(ada.edit({"text": "Ada has migraines."}), 422)["code"] == "kept_out"
    good(ada.client.post(f"{ada.address}/rollback", json={"version": 1}))
    assert ada.texts() == ["The cat is called Tom."]


def test_a_fact_takes_its_sentences_with_it(ada):
    rome, tea = ada.know("Ada flies to Rome on 3 June.", "Ada likes green tea.")
    ada.summarise(data=["Ada's flight to Rome is on 3 June."], open_questions=["Which hotel?"])
    both = ("Ada flies to Rome and likes green tea.", ["Rome on", "green tea"])
    of_summary = ("The flight to Rome is on 3 June.", ["flight to"])
    ada.write(
        both, ("Ada likes green tea.", ["green tea"]), of_summary, ("A hotel is open: which hotel?", ["Which hotel"])
    )
    assert len(ada.texts()) == 4 and "likes green tea" in ada.head()
    good(ada.client.delete(f"/api/facts/{tea}"))
    assert ada.texts() == ["The flight to Rome is on 3 June.", "A hotel is open: which hotel?"]
    assert "green tea" not in ada.head(), "of this session too, whose head was chosen before"
    assert [one["author"] for one in read_all(ada.client, f"{ada.address}/versions")] == ["erasure"]
    (job,) = [job for job in good(ada.client.get("/api/jobs"))["items"] if job["kind"] == "overview"]
    assert job["state"] == "pending", "it is written anew from what is left"
    good(ada.client.delete(f"/api/facts/{rome}"))
    assert ada.texts() == ["A hotel is open: which hotel?"], "a summary says it too"


def test_what_holds_no_longer_leaves_the_newest_version(ada):
    rome, tea = ada.know("Ada flies to Rome on 3 June.", "Ada likes green tea.")
    ada.summarise(open_questions=["Which hotel?"])
    ada.write(("Ada flies to Rome.", ["Rome on"]), ("Ada likes tea.", ["green tea"]), ("Which hotel?", ["Which hotel"]))
    good(ada.client.patch(f"/api/facts/{tea}", json={"text": "Ada likes coffee."}))
    assert ada.texts() == ["Ada flies to Rome.", "Which hotel?"]
    good(ada.client.put("/api/sessions/s/summary", json={"sections": {"topic": "Nothing"}}))
    assert ada.texts() == ["Ada flies to Rome."]
    good(ada.client.patch(f"/api/facts/{rome}", json={"pinned": True}))
    assert ada.texts() == ["Ada flies to Rome."]
    back = good(ada.client.post(f"{ada.address}/rollback", json={"version": 1}))
    assert [one["facts"] for one in back["sentences"]] == [[rome], []], "facts that hold in these words"


def test_a_session_and_a_message_take_sentences_of_their_summary(ada):
    ada.summarise("s", open_questions=["Which hotel?"])
    ada.summarise("t", words="My exam is near.", topic="Exam", open_questions=["Which book for the exam?"])
    ada.write(("Which hotel?", ["Which hotel"]), ("Which book for the exam?", ["Which book"]))
    assert len(ada.texts()) == 2
    (message,) = good(ada.client.get("/api/sessions/t/messages"))["items"]
    good(ada.client.delete(f"/api/sessions/t/messages/{message['id']}"))
    assert ada.texts() == ["Which hotel?"]
    good(ada.client.delete("/api/sessions/s"))
    assert ada.texts() == []
    good(ada.client.delete("/api/users/ada"))
    error(ada.client.get(ada.address), 404)


def test_not_a_byte_of_a_forgotten_fact_is_left_in_it(ada, monkeypatch):
    monkeypatch.setattr(erasing, "GATHER_SECONDS", 0.0)
    secret, rome = ada.know(f"Ada has a {SENTINEL} at home.", "Ada flies to Rome on 3 June.")
    ada.write((f"Ada has a {SENTINEL}.", [SENTINEL]), ("Ada flies to Rome.", ["Rome on"]))
    sent = [(f"Ada has a {SENTINEL}.", [secret]), (f"Rome comes before the {SENTINEL}.", [secret, rome])]
    good(ada.edit(*({"text": text, "facts": facts} for text, facts in sent)))
    ada.head()
    jobs_done(ada.client)
    assert traces_of(ada.app, SENTINEL) != {}
    good(ada.client.delete(f"/api/facts/{secret}"))
    assert ada.texts() == []
    jobs_done(ada.client, "scrub")
    assert traces_of(ada.app, SENTINEL) == {}


def test_an_export_brings_it_along_with_its_sources(ada, make_app):
    (rome,) = ada.know("Ada flies to Rome on 3 June.")
    ada.summarise(open_questions=["Which hotel?"])
    ada.write(("Ada flies to Rome.", ["Rome on"]), ("Which hotel?", ["Which hotel"]))
    good(ada.edit({"text": "Ada flies to Rome.", "facts": [rome]}))
    document = good(ada.client.get("/api/users/ada/export"))
    other = Person(ada.app, ada.server, "eve")
    other.know("Something else.")
    append(other.client, "s", [said("Another chat.")], user_id="eve")
    good(other.client.post("/api/import", json=document, query_string={"user_id": "eve"}))
    (sentence,) = other.overview()["sentences"]
    facts = {fact["id"]: fact["text"] for fact in read_all(other.client, "/api/facts", user_id="eve")}
    assert [facts[fact] for fact in sentence["facts"]] == ["Ada flies to Rome on 3 June."]
    first = read_all(other.client, f"{other.address}/versions")[-1]
    assert first["sentences"][1]["summaries"] == [{"session_id": "s-2", "version": 1}]
    good(other.client.delete(f"/api/facts/{sentence['facts'][0]}"))
    assert other.texts() == []
    for wrong in (5, [], {"sentences": 5}, {"sentences": [{"text": 5}], "removed": [], "read": ""}):
        for item in document["items"]:
            item["value"] = wrong
        good(ada.client.post("/api/import", json=document, query_string={"user_id": "zoe"}))
        assert Person(ada.app, ada.server, "zoe").overview()["version"] == 0


def test_the_built_in_model_repeats_what_it_reads(make_app):
    app = make_app(overview=when("manual"))
    client = app.test_client()
    for text in ("Ada flies to Rome on 3 June.", "Ada does not eat meat."):
        good(client.post("/api/facts", json={"text": text, "user_id": "ada", "category": "other", "importance": 3}))
    good(client.post("/api/users/ada/overview/refresh"))
    engine_of(app).job_queue.run_due(["overview"])
    written = good(client.get("/api/users/ada/overview"))
    texts = {sentence["text"] for sentence in written["sentences"]}
    assert texts == {"Ada flies to Rome on 3 June.", "Ada does not eat meat."}
