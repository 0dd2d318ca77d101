"""Erasing a message, facts, a session, a person: not a byte is left, and what is left is right.

(A person: more in test_users.  Whole processes: test_erasing_processes.  What a client sends of it again:
test_erasing_clients.)
"""

import sqlite3
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import event

from app import engine_of
from memory.erasing import erasing
from memory.knowledge import fact_writes
from memory.recall import indexing
from models import FactRow, SessionRow
from tests.application import derived
from tests.http import answering, append, ask, chat, error, failed, good, meanwhile, read_all, said, stored, summary
from tests.http import history as stored_words
from tests.jobs import jobs_done
from tests.knowledge import digest_of, fact, link
from tests.model_server import Delay, ModelServer, Status, prompts
from tests.traces import SENTINEL, traces_of

pytestmark = pytest.mark.scripted

SECRET = f"{SENTINEL} is my secret."
NONE = dict.fromkeys(erasing.RECEIPT, 0)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """What gathers for some seconds is due now; tests run the jobs when they want them done."""
    monkeypatch.setattr(erasing, "GATHER_SECONDS", 0.0)


def traces(client: FlaskClient, word: str = SENTINEL) -> dict[str, int]:
    return traces_of(client.application, word)


def places(client: FlaskClient) -> set[str]:
    """The kinds of files that the word is in, once the log has been copied into the database."""
    with engine_of(client.application).database.engine.connect() as connection:
        connection.connection.cursor().execute("PRAGMA wal_checkpoint(PASSIVE)")
    return {"index" if path.startswith("index/") else path for path in traces(client)}


def id_of(client: FlaskClient, words: str, session: str = "s", **query: Any) -> int:
    """The id of the one message with these words in it."""
    (found,) = [message["id"] for message in stored(client, session, **query) if words in message["content"]]
    return int(found)


def erase(client: FlaskClient, words: str, session: str = "s", **query: Any) -> dict[str, Any]:
    """Erase the one message with these words in it: the receipt."""
    return good(client.delete(f"/api/sessions/{session}/messages/{id_of(client, words, session, **query)}"))


def counted(receipt: dict[str, Any]) -> dict[str, int]:
    """What of a receipt is not nothing."""
    return {kind: count for kind, count in receipt["erased"].items() if count}


def told(client: FlaskClient, server: ModelServer, *facts: dict[str, Any], **sections: Any) -> None:
    """Let the mini model bring the summary up to date with this, and the index follow."""
    server.mini.queue(digest_of(*facts, **sections))
    jobs_done(client, "summary", "index")


def neighbours(client: FlaskClient, server: ModelServer) -> dict[str, Any]:
    """Another person with a past of their own, and how it looks."""
    if client.get("/api/users/bob").status_code == 404:
        for number in range(3):
            append(client, f"bobs-{number}", [said("I like sencha.", name="Bob")], user_id="bob")
            told(client, server, fact("Likes sencha", 1, "I like sencha"), topic="Sencha")
            chat(client, "And oolong.", session_id=f"bobs-{number}", user_id="bob")
            jobs_done(client)
    found = good(client.get("/api/search?q=sencha&user_id=bob"))["results"]
    export = good(client.get("/api/users/bob/export"))
    return {"export": {**export, "exported_at": None}, "found": [hit["message_id"] for hit in found]}


# -- a message


@pytest.fixture
def past(client, model_server):
    """Ada's session `s`, which begins with her secret, with all that came of it, and others before and after."""
    neighbours(client, model_server)
    model_server.main.queue("I will keep it.", "Green, then.", "It is safe with me.")
    chat(client, SECRET, session_id="s", user_id="ada", name=f"{SENTINEL} Ada", key=f"{SENTINEL}-key")
    tied = link("user", f"{SENTINEL} of", SENTINEL)
    mine = fact(f"{SENTINEL} is my secret", 1, scope="user", links=[tied])
    told(client, model_server, mine, topic=f"About {SENTINEL}")
    derived(engine_of(client.application), "ada", SENTINEL, {SENTINEL: SECRET}, [id_of(client, SECRET)])
    chat(client, "I like green tea.", session_id="s", user_id="ada")
    told(client, model_server, fact("Likes green tea", 3, "I like green tea"), topic=f"{SENTINEL} and tea")
    good(client.put("/api/sessions/s/summary", json={"sections": {"topic": f"{SENTINEL}, tea, and more"}}))
    chat(client, "Do you remember my secret?", session_id="later", user_id="ada")
    told(client, model_server, topic="Secrets")
    assert good(client.get("/api/sessions/s"))["title"] == f"About {SENTINEL}"
    return client


def test_not_a_byte_of_an_erased_message_is_left(past, model_server):
    before = neighbours(past, model_server)
    assert {"recap.db", "recap.db-wal", "index"} <= places(past), "the scan finds what is there"
    secret = id_of(past, SECRET)
    receipt = good(past.delete(f"/api/sessions/s/messages/{secret}?user_id=ada"))
    assert (receipt["session_id"], receipt["message_id"]) == ("s", secret)
    assert receipt["pending"] == ["search_index", "database_files"]
    assert datetime.fromisoformat(receipt["erased_at"]).tzinfo is not None
    assert receipt["erased"] == {
        **NONE,
        "messages": 1,
        "turns": 1,
        "summaries": 3,
        "edited_summaries": 1,
        "facts": 1,
        "fact_revisions": 1,
        "items": 1,
        "item_versions": 1,
        "index_documents": 1,
    }
    model_server.mini.queue(digest_of(topic="Tea alone"))
    came = len(model_server.requests)
    jobs_done(past)
    assert traces(past) == {}
    assert SENTINEL not in str(model_server.requests[came:][0].body), "the summary is made from what is left"
    forget = engine_of(past.application).settings.index_dir / ".forget"
    assert forget.exists(), "other processes are told to clear their caches"
    assert neighbours(past, model_server) == before


def test_an_erased_message_is_nowhere_to_be_seen_and_in_no_prompt(past, model_server):
    recalled = good(past.get(f"/api/sessions/later/turns/{stored(past, 'later')[0]['id']}"))
    assert SECRET in str(recalled["memory"]), "the other session's turn shows it"
    secret = id_of(past, SECRET)
    erase(past, SECRET)
    for address in (
        "/api/sessions?user_id=ada",
        "/api/sessions/s",
        "/api/sessions/s/messages",
        "/api/sessions/s/summary",
        "/api/sessions/s/summary/versions",
        "/api/sessions/s/turns",
        f"/api/sessions/later/turns/{stored(past, 'later')[0]['id']}",
        "/api/facts?user_id=ada",
        "/api/facts?session_id=s",
        "/api/users/ada/export",
        f"/api/search?q={SENTINEL}&user_id=ada&window=3",
        "/api/search?q=secret&user_id=ada&window=3",
        "/api/jobs",
    ):
        assert SENTINEL not in past.get(address).text, address
    assert [message["position"] for message in stored(past, "s")] == [2, 3, 4]
    assert good(past.get("/api/sessions/s"))["title"] == "I like green tea."
    assert error(past.get(f"/api/sessions/s/messages?around={secret}"), 404)["code"] == "message_not_found"
    assert error(past.delete(f"/api/sessions/s/messages/{secret}"), 404)["code"] == "message_not_found"
    failed(ask(past, "Otherwise.", session_id="s", replaces=secret), 404, "message_not_found")
    assert [fact["text"] for fact in read_all(past, "/api/facts", user_id="ada")] == ["Likes green tea"]
    chat(past, "What is my secret?", session_id="s", user_id="ada", recall="always")
    chat(past, "Do you know my secret?", session_id="new", user_id="ada", recall="always")
    jobs_done(past)
    chat(past, "And now, my secret?", session_id="s", user_id="ada", recall="always")
    assert SENTINEL not in str(prompts(model_server)[-3:]) and "green tea" in str(prompts(model_server)[-3])
    assert SENTINEL not in str(prompts(model_server, "mini")[-1])
    assert all(owner.consistent for owner in indexing.verify(engine_of(past.application)))


def test_the_summary_is_made_anew_from_the_version_before(client, model_server):
    for words, topic in (("I like tea.", "Tea"), (SECRET, f"Tea, {SENTINEL}"), ("I like jam.", f"{SENTINEL}, jam")):
        append(client, "s", [said(words), said("Noted.", "assistant")])
        told(client, model_server, fact(words.rstrip("."), len(stored(client, "s")) - 1), topic=topic)
    assert counted(erase(client, SECRET))["summaries"] == 2
    shown = summary(client, "s")
    assert shown["state"] == "pending" and shown["latest"]["sections"]["topic"] == "Tea"
    assert (shown["latest"]["version"], shown["latest"]["author"], shown["latest"]["restores"]) == (4, "erasure", 1)
    model_server.mini.queue(digest_of(fact("I like jam", 5), topic="Tea and jam"))
    jobs_done(client)
    asked = str(prompts(model_server, "mini")[-1])
    assert SENTINEL not in asked and "Tea" in asked
    assert "I like jam." in asked and "[3] 2" not in asked and "[4] 2" not in asked, "nor is the reply to it read"
    shown = summary(client, "s")
    assert (shown["state"], shown["latest"]["sections"]["topic"]) == ("current", "Tea and jam")
    assert [version["version"] for version in read_all(client, "/api/sessions/s/summary/versions")] == [5, 4, 1]
    texts = [fact["text"] for fact in read_all(client, "/api/facts", session_id="s")]
    assert texts == ["I like jam", "I like tea"], "what was read before is not taken once more"


def test_a_reply_that_repeats_what_was_erased_stays_in_its_session_alone(client, model_server):
    model_server.main.queue(f"So {SENTINEL} is your secret.", "Tea, gladly.")
    chat(client, SECRET, session_id="s", user_id="ada")
    chat(client, "I like green tea.", session_id="s", user_id="ada")
    told(client, model_server, topic=f"{SENTINEL} and tea")
    erase(client, SECRET, user_id="ada")
    model_server.mini.queue(digest_of(topic="Tea"))
    came = len(model_server.requests)
    jobs_done(client)
    chat(client, "What is my secret, and which tea do I like?", session_id="s", user_id="ada", recall="always")
    chat(client, "What is my secret, and which tea do I like?", session_id="t", user_id="ada", recall="always")
    asked = str([request.body for request in model_server.requests[came:]])
    assert SENTINEL not in asked and "green tea" in asked
    assert SENTINEL not in str(summary(client, "s"))
    found = good(client.get("/api/search", query_string={"q": "secret", "user_id": "ada"}))["results"]
    assert SENTINEL not in str(found)
    assert f"So {SENTINEL} is your secret." in [message["content"] for message in stored(client, "s", user_id="ada")]


def test_all_of_a_session_may_be_erased_one_by_one(past, model_server):
    for message in stored(past, "s"):
        good(past.delete(f"/api/sessions/s/messages/{message['id']}"))
    assert stored(past, "s") == [] and good(past.get("/api/sessions/s"))["title"] == ""
    jobs_done(past)
    assert traces(past) == {} and traces(past, "green tea") == {}
    shown = summary(past, "s")
    assert shown["state"] == "current" and not any(shown["latest"]["sections"].values())
    answers = [chat(past, "Hello?", session_id=session, user_id="ada", recall="off") for session in ("s", "fresh")]
    assert len({answer["usage"]["full_history_tokens"] for answer in answers}) == 1
    assert stored(past, "s")[0]["position"] == 5
    assert good(past.get("/api/sessions/s"))["title"] == "Hello?"


def test_only_what_it_corrected_holds_again(client, model_server):
    """A -> B -> C: without B, C corrects A."""

    def known() -> list[Any]:
        return read_all(client, "/api/facts", user_id="ada")

    for number, town in enumerate(("Bergen", SENTINEL, "Lyon")):
        append(client, f"s{number}", [said(f"I live in {town}.")], user_id="ada")
        corrected = [item["id"] for item in known()]
        told(client, model_server, fact(f"Lives in {town}", 1, town, scope="user", supersedes=corrected))
    erase(client, "I live", "s1")
    (lyon,) = known()
    changes = good(client.get(f"/api/facts/{lyon['id']}/history"))["items"]
    assert [one["text"] for one in changes] == ["Lives in Bergen", "Lives in Bergen", "Lives in Lyon"]
    good(client.delete("/api/sessions/s2"))
    assert [item["text"] for item in known()] == ["Lives in Bergen"]


def test_a_reply_is_a_message_of_its_own(client, model_server):
    model_server.main.queue(f"{SENTINEL} suits you.")
    first = chat(client, "What tea suits me?", session_id="s", user_id="ada", key="k")
    told(client, model_server, topic=f"{SENTINEL} was proposed")
    assert counted(erase(client, SENTINEL)) == {"messages": 1, "summaries": 1, "index_documents": 1}
    jobs_done(client)
    assert traces(client) == {} and stored_words(client, "s") == [("user", "What tea suits me?")]
    turn = good(client.get(f"/api/sessions/s/turns/{first['user_message_id']}"))
    assert turn["state"] == "finished" and turn["memory"] is not None
    model_server.main.queue("Any.")
    again = chat(client, "What tea suits me?", session_id="s", user_id="ada", replaces=first["user_message_id"])
    assert again["reply"] == "Any." and [role for role, _ in stored_words(client, "s")] == ["user", "assistant"]


def test_what_follows_an_erased_message_is_indexed(client, model_server):
    """Also where the reply to it had not been indexed when it was erased."""
    good(client.post("/api/facts", json={"user_id": "ada", "text": "Likes tea"}))
    model_server.main.queue("Green.")
    chat(client, "Which tea?", session_id="s", user_id="ada")
    erase(client, "Which tea?")
    chat(client, "I like jam.", session_id="s", user_id="ada")
    jobs_done(client)
    assert all(owner.consistent and not owner.unindexed for owner in indexing.verify(engine_of(client.application)))


def test_a_retry_is_not_answered_from_what_was_erased(client, model_server):
    for session, gone, left in (("one", SECRET, "assistant"), ("two", "Noted", "user")):
        model_server.main.queue("Noted.")
        chat(client, SECRET, session_id=session, key=session)
        came = len(model_server.requests)
        erase(client, gone, session)
        failed(ask(client, SECRET, session_id=session, key=session), 409, "idempotency_key_reused")
        assert len(model_server.requests) == came
        assert [role for role, _ in stored_words(client, session)] == [left]


def test_a_replaced_message_is_erased_where_it_is(client, model_server):
    """With what rests on it, also a summary of the person's that has outlived it."""
    chat(client, "Hello.", session_id="s", user_id="ada")
    model_server.main.queue("Noted.", "Noted.")
    old = chat(client, SECRET, session_id="s", user_id="ada")
    told(client, model_server, fact(f"Has {SENTINEL}", 3, SENTINEL), topic=SENTINEL)
    good(client.put("/api/sessions/s/summary", json={"sections": {"topic": SENTINEL}}))
    chat(client, "I like tea.", session_id="s", user_id="ada", replaces=old["user_message_id"])
    told(client, model_server, topic=f"{SENTINEL} and tea")
    erased = counted(erase(client, SENTINEL, branch=1))
    assert erased == {"messages": 1, "turns": 1, "summaries": 3, "edited_summaries": 1}
    model_server.mini.queue(digest_of(topic="Tea"))
    jobs_done(client)
    assert traces(client) == {} and summary(client, "s")["latest"]["sections"]["topic"] == "Tea"
    assert [message["content"] for message in stored(client, "s", branch=1)] == ["Noted."]


def test_a_version_of_a_branch_goes_with_a_message_before_the_branch(client, model_server):
    model_server.main.queue("Noted.")
    chat(client, SECRET, session_id="s")
    second = chat(client, "I like jam.", session_id="s")
    told(client, model_server, topic=f"{SENTINEL} and jam")
    chat(client, "I like tea.", session_id="s", replaces=second["user_message_id"])
    told(client, model_server, topic=f"{SENTINEL} and tea")
    assert counted(erase(client, SENTINEL))["summaries"] == 2
    model_server.mini.queue(digest_of(topic="Tea"))
    jobs_done(client)
    assert traces(client) == {}


def test_an_edited_summary_of_old_messages_stays_when_a_later_message_is_erased(client, model_server):
    old = {"created_at": "2020-03-01T10:00:00Z"}
    append(client, "s", [said("I like jam.", **old), said("Noted.", "assistant", **old)])
    told(client, model_server, topic="Jam")
    good(client.put("/api/sessions/s/summary", json={"sections": {"topic": "Jam, by my own words"}}))
    append(client, "s", [said(SECRET, **old), said("Noted.", "assistant", **old)])
    told(client, model_server, topic=f"Jam and {SENTINEL}")
    assert counted(erase(client, SENTINEL))["summaries"] == 1
    assert summary(client, "s")["latest"]["sections"]["topic"] == "Jam, by my own words"


def test_what_was_erased_is_not_appended_again(client):
    sent = [said(SECRET, external_id=f"{SENTINEL}-1"), said("Noted.", "assistant", external_id="2")]
    first = append(client, "s", sent)
    erase(client, SECRET)
    again = append(client, "s", [*sent, said("More.", external_id="3")])
    assert (again["created"], again["message_ids"][:2]) == (1, first["message_ids"])
    jobs_done(client)
    assert traces(client) == {} and stored_words(client, "s") == [("assistant", "Noted."), ("user", "More.")]


def test_what_was_erased_does_not_come_back_with_an_old_export(past, model_server):
    old = past.get("/api/users/ada/export").data
    erase(past, SECRET)
    model_server.mini.queue(digest_of(topic="Tea alone"))
    jobs_done(past)
    new = past.get("/api/users/ada/export").data
    for document in (old, new):
        done = good(past.post("/api/import?user_id=ada", data=document, content_type="application/json"))
        assert done["renamed"] == {} and not any(done["created"].values())
    jobs_done(past)
    assert traces(past) == {} and len(stored(past, "s")) == 3
    good(past.delete("/api/users/ada"))
    good(past.post("/api/import?user_id=ada", data=new, content_type="application/json"))
    assert [message["position"] for message in stored(past, "s")] == [2, 3, 4]
    assert summary(past, "s")["latest"]["sections"]["topic"] == "Tea alone"
    again = good(past.get("/api/users/ada/export"))["sessions"]
    assert {session["id"]: len(session["messages"]) for session in again} == {"s": 4, "later": 2}, "with the place"


def test_while_a_reply_is_written_erasing_waits_and_says_so_if_it_does_not_end(app, past, model_server, monkeypatch):
    secret = id_of(past, SECRET)
    with answering(model_server, app, "Hello?", session_id="s", user_id="ada") as release:
        with monkeypatch.context() as impatient:
            impatient.setattr("memory.leases.WAIT_SECONDS", 0.05)
            answer = past.delete(f"/api/sessions/s/messages/{secret}")
        assert failed(answer, 409, "session_busy")["message"].endswith("try this again later.")
        assert answer.headers["Retry-After"]
        assert id_of(past, SECRET) == secret
        with meanwhile(lambda: erase(app.test_client(), SECRET)) as done:
            release.set()
        assert counted(done[0])["messages"] == 1


def test_a_summary_that_is_being_made_from_it_is_made_again(client, model_server):
    append(client, "s", [said("I like tea."), said(SECRET), said("Noted.", "assistant")])
    release = threading.Event()
    late = digest_of(fact(f"Has {SENTINEL}", 2, SENTINEL), topic=SENTINEL)
    model_server.mini.queue(Delay(release, late), digest_of(topic="Tea"))
    with meanwhile(lambda: engine_of(client.application).job_queue.run_due(["summary"])):
        model_server.wait_for_requests(1)
        erase(client, SECRET)
        release.set()
    jobs_done(client)
    assert SENTINEL not in str(prompts(model_server, "mini")[-1])
    assert summary(client, "s")["latest"]["sections"]["topic"] == "Tea"
    assert traces(client) == {} and read_all(client, "/api/facts", session_id="s") == []


def test_what_a_job_tripped_over_is_forgotten(client, model_server):
    append(client, "s", [said(SECRET), said("Noted.", "assistant")])
    model_server.mini.queue(Status(400, {"error": {"message": f"I can't stand {SENTINEL}"}}))
    engine_of(client.application).job_queue.run_due(["summary"])
    assert [job["error"] is not None for job in read_all(client, "/api/jobs") if job["kind"] == "summary"] == [True]
    erase(client, SECRET)
    assert [job["error"] for job in read_all(client, "/api/jobs") if job["kind"] == "summary"] == [None]
    engine_of(client.application).job_queue.run_due(["index", "scrub"])
    assert traces(client) == {}


def test_many_erased_one_after_the_other_cost_one_pass_over_the_files(client):
    append(client, "s", [said(f"{SENTINEL} {number}") for number in range(4)])
    facts = [good(client.post("/api/facts", json={"session_id": "s", "text": f"{SENTINEL} {n}"}))["id"] for n in (1, 2)]
    jobs_done(client)
    for message in stored(client, "s"):
        good(client.delete(f"/api/sessions/s/messages/{message['id']}"))
    for fact_id in facts:
        good(client.delete(f"/api/facts/{fact_id}"))
    assert [job["kind"] for job in read_all(client, "/api/jobs")].count("scrub") == 1
    jobs_done(client)
    assert traces(client) == {}


# -- facts


def test_not_a_byte_of_a_forgotten_fact_is_left(client, model_server):
    before = neighbours(client, model_server)
    append(client, "s", [said("I moved to the sea.")], user_id="ada")
    told(client, model_server, fact("Lives by the sea", 1, "I moved to the sea", scope="user"))
    (old,) = [item["id"] for item in read_all(client, "/api/facts", user_id="ada")]
    good(client.patch(f"/api/facts/{old}", json={"text": f"Lives by the sea of {SENTINEL}"}))
    append(client, "s", [said("I moved to the hills.")], user_id="ada")
    told(client, model_server, fact("Lives in the hills", 2, "I moved to the hills", supersedes=[old]))
    (new,) = [item["id"] for item in read_all(client, "/api/facts", user_id="ada")]
    good(client.patch(f"/api/facts/{new}", json={"text": f"Lives in the hills of {SENTINEL}"}))
    model_server.main.queue("Those.")
    answer = chat(client, "Which hills do I live in?", session_id="s", user_id="ada")
    assert SENTINEL in str(answer["memory"]["facts"])
    jobs_done(client)
    assert {"recap.db", "recap.db-wal"} <= places(client), "the scan finds what is there"

    receipt = good(client.delete(f"/api/facts/{new}"))
    assert (receipt["fact_id"], receipt["pending"]) == (new, ["database_files"])
    assert receipt["erased"] == {**NONE, "facts": 4, "fact_revisions": 5}
    assert error(client.delete(f"/api/facts/{new}"), 404)["code"] == "fact_not_found"
    assert read_all(client, "/api/facts", user_id="ada") == []
    assert read_all(client, "/api/facts", user_id="ada", as_of=stored(client, "s")[0]["created_at"]) == []
    assert SENTINEL not in client.get(f"/api/sessions/s/turns/{answer['user_message_id']}").text
    jobs_done(client)
    assert traces(client) == {}
    assert stored_words(client, "s")[:2] == [("user", "I moved to the sea."), ("user", "I moved to the hills.")]
    assert neighbours(client, model_server) == before


def test_many_facts_are_forgotten_with_one_receipt_and_nobody_elses(client):
    def state(user: str, text: str) -> int:
        return int(good(client.post("/api/facts", json={"user_id": user, "text": text}))["id"])

    ids = [state("ada", f"{SENTINEL} {number}") for number in range(3)]
    bobs = state("bob", "Has a dog")
    forget = {"user_id": "ada", "ids": [*ids, ids[0], bobs, 999]}
    receipt = good(client.post("/api/facts/forget", json=forget))
    assert (receipt["forgotten"], receipt["pending"]) == (3, ["database_files"])
    assert counted(receipt) == {"facts": 3, "fact_revisions": 3}
    jobs_done(client)
    assert traces(client) == {}
    receipt = good(client.post("/api/facts/forget", json=forget))
    assert (receipt["forgotten"], receipt["pending"], counted(receipt)) == (0, [], {})
    assert read_all(client, "/api/jobs") == []
    assert [item["text"] for item in read_all(client, "/api/facts")] == ["Has a dog"]
    assert good(client.post("/api/facts/forget", json={"ids": [bobs]}))["forgotten"] == 1, "nobody is named: anyone's"


def test_a_corrected_fact_is_forgotten_without_its_correction(client, model_server):
    append(client, "s", [said("I live in Bergen.")])
    told(client, model_server, fact("Lives in Bergen", 1, "I live in Bergen"))
    (old,) = [item["id"] for item in read_all(client, "/api/facts", session_id="s")]
    append(client, "s", [said("I live in Lyon.")])
    told(client, model_server, fact("Lives in Lyon", 2, "I live in Lyon", supersedes=[old]))
    assert counted(good(client.delete(f"/api/facts/{old}"))) == {"facts": 1, "fact_revisions": 2}
    assert [item["text"] for item in read_all(client, "/api/facts", session_id="s")] == ["Lives in Lyon"]


# -- a session


@pytest.mark.parametrize("user", [None, "ada"])
def test_not_a_byte_of_an_erased_session_is_left(client, model_server, user):
    before = neighbours(client, model_server)
    whose = {"user_id": user} if user else {}
    append(client, "stays", [said("I like mate.")], **whose)
    told(client, model_server, fact("Likes mate", 1, "I like mate"), topic="Mate")
    name = f"{SENTINEL}-session"
    ids = append(client, name, [said(SECRET, external_id=f"{SENTINEL}-1", name=f"{SENTINEL} Ada")], **whose)
    if user:
        derived(engine_of(client.application), user, SENTINEL, {SENTINEL: SECRET}, ids["message_ids"])
    told(client, model_server, fact(f"Has {SENTINEL}", 1, SENTINEL), topic=SENTINEL)
    model_server.main.queue(f"{SENTINEL}, then.", "No.")
    first = chat(client, f"Again {SENTINEL}.", session_id=name, key=f"{SENTINEL}-key", **whose)
    chat(client, f"No, {SENTINEL}!", session_id=name, replaces=first["user_message_id"], **whose)
    good(client.patch(f"/api/sessions/{name}", json={"title": SENTINEL, "system_prompt": f"Be {SENTINEL}."}))
    good(client.put(f"/api/sessions/{name}/summary", json={"sections": {"topic": f"My {SENTINEL}"}}))
    mine = good(client.post("/api/facts", json={"session_id": name, "text": f"Mine is {SENTINEL}", **whose}))
    good(client.patch(f"/api/facts/{mine['id']}", json={"pinned": True}))
    jobs_done(client, "index")
    assert {"recap.db", "recap.db-wal", "index"} <= places(client), "the scan finds what is there"

    receipt = good(client.delete(f"/api/sessions/{name}"))
    assert traces(client) == {}, "nothing has to be waited for"
    assert (receipt["session_id"], receipt["pending"]) == (name, [])
    assert receipt["erased"] == {
        "sessions": 1,
        "messages": 5,
        "turns": 2,
        "summaries": receipt["erased"]["summaries"],
        "edited_summaries": 1,
        "facts": 2,
        "fact_revisions": 3,
        "items": 1 if user else 0,
        "item_versions": 1 if user else 0,
        "documents": 0,
        "archives": 0,
        "jobs": receipt["erased"]["jobs"],
        "index_documents": 3,
    }
    assert receipt["erased"]["summaries"] >= 2
    assert error(client.delete(f"/api/sessions/{name}"), 404)["code"] == "session_not_found"
    assert stored(client, "stays")[0]["content"] == "I like mate."
    assert summary(client, "stays")["latest"]["sections"]["topic"] == "Mate"
    assert neighbours(client, model_server) == before


def test_a_session_of_more_facts_than_a_statement_may_name_is_erased(client, monkeypatch):
    """PostgreSQL takes 65,535 values, SQLite takes as many as it was built for."""
    append(client, "s", [said("I like tea.")], user_id="ada")
    database, of_fact = engine_of(client.application).database, {"category": "other", "importance": 3, "scope": "user"}
    with database.write() as tx:
        session = tx.query(SessionRow).one()
        of_fact |= {"owner_id": session.owner_id, "session_id": session.id, "valid_from": datetime.now(UTC)}
        tx.add_all(
            FactRow(**of_fact, text=f"Likes tea {number}", created_at=datetime.now(UTC)) for number in range(150)
        )
    event.listen(
        database.engine,
        "checkout",
        lambda connection, *_: connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 200),
    )
    monkeypatch.setattr(fact_writes, "DELETED_AT_ONCE", 60)
    assert counted(good(client.delete("/api/sessions/s?user_id=ada")))["facts"] == 150
    assert read_all(client, "/api/facts", user_id="ada") == []


def test_not_a_byte_of_an_erased_space_is_left(client, model_server):
    """Nor of what it was called, wherever a turn has shown it."""
    team: dict[str, Any] = {"space": f"{SENTINEL}-team"}
    append(client, "s", [said(SECRET)], user_id="ada", **team)
    told(client, model_server, fact(f"Has {SENTINEL}", 1, SENTINEL, scope="user"), topic=SENTINEL)
    good(client.put("/api/store/items", json={"namespace": ["n"], "key": "k", "value": SECRET, **team}))
    model_server.main.queue("Yes.", "Yes.")
    chat(client, f"Again {SENTINEL}.", session_id="s", key=f"{SENTINEL}-key", user_id="ada", person=True, **team)
    reply = chat(client, "What do you know?", session_id="own", user_id="ada", spaces=[team["space"]], recall="always")
    assert SENTINEL in str(reply["memory"]["others"])
    jobs_done(client, "index")
    assert {"recap.db", "recap.db-wal", "index"} <= places(client), "the scan finds what is there"
    receipt = good(client.delete(f"/api/spaces/{team['space']}"))
    assert receipt["pending"] == [] and traces(client) == {}
