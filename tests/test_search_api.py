"""GET /api/search: everything stored is found, at once and whatever happens to the index; nobody else's ever is."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.recall import indexing
from search_index import IndexBusy, SearchableText
from tests.application import an_app, index_key, run_command
from tests.http import append, error, find, good, said
from tests.knowledge import Talk, digest_of, fact
from tests.traces import traces


def contents(client: FlaskClient, q: str, **query: Any) -> list[str]:
    return [result["content"] for result in find(client, q, **query)]


def fill(client: FlaskClient, indexed: str) -> None:
    """Conversations of two people and of nobody, in an index that is behind, up to date, or in between."""
    engine = engine_of(client.application)
    tea = [
        said("My sister Ida steeps green tea for two minutes.", created_at="2024-01-10T10:00:00Z", external_id="t1"),
        said("Two minutes sounds right.", "assistant", created_at="2024-01-10T10:01:00Z"),
        said("The kettle broke in Bergen.", created_at="2024-02-10T10:00:00Z", name="Ada"),
        said("Then buy a new kettle.", "assistant", created_at="2024-02-10T10:01:00Z"),
    ]
    append(client, "tea", tea[:2], user_id="ada")
    if indexed == "half":
        engine.job_queue.run_due(["index"])
    append(client, "tea", tea[2:], user_id="ada")
    append(client, "trip", [said("We fly to Lisbon in May, without the kettle.")], user_id="ada")
    append(client, "bobs", [said("Bob's kettle is red.")], user_id="bob")
    append(client, "alone", [said("Nobody's kettle is blue.")])
    if indexed == "all":
        engine.job_queue.run_due(["index"])
        assert run_command(client.application, "index", "verify").output.count("wait") == 0


@pytest.fixture(scope="module", params=["none", "half", "all"])
def talk(request, tmp_path_factory, migrated):
    """A client for tests that only read."""
    with an_app(tmp_path_factory.mktemp("talk"), migrated) as app:
        fill(app.test_client(), request.param)
        yield app.test_client()


def test_a_question_about_oneself_prefers_what_one_said(talk):
    for question, first in (
        ("how did my kettle break", "user"),
        ("the new kettle that you recommended to me", "assistant"),
    ):
        best = find(talk, question, user_id="ada")[0]
        assert (best["role"], best["why"]["speaker"] > 0) == (first, first == "user")


def test_a_message_is_found_with_all_that_says_where_it_stands(talk):
    first = find(talk, "steeping teas", user_id="ada")[0]
    stored = good(talk.get("/api/sessions/tea/messages"))["items"][0]
    assert first.pop("score") > 0
    assert first.pop("why")["words"] > 0
    assert first.pop("window") == []
    assert first.pop("highlights") == ["steeps", "tea"]
    assert first.pop("corrections") == []
    assert first == {
        "kind": "message",
        "document": None,
        "text": None,
        "fact_id": None,
        "message_id": stored["id"],
        "external_id": "t1",
        "session_id": "tea",
        "title": "My sister Ida steeps green tea for two minutes.",
        "position": 1,
        "role": "user",
        "name": None,
        "content": "My sister Ida steeps green tea for two minutes.",
        "created_at": "2024-01-10T10:00:00+00:00",
    }


def test_filters(talk):
    for filters, count in (
        ({"role": "assistant"}, 2),
        ({"role": "user"}, 3),
        ({"role": "tool"}, 0),
        ({"limit": 1}, 1),
        ({"after": "2024-02-10T10:00:00Z", "before": "2024-02-10T10:01:00Z"}, 1),  # from then, to before then
        ({"before": "2024-02-10T10:00:00Z"}, 2),
        ({"after": "2024-02-10T12:01:00+02:00", "before": "2024-03-01"}, 1),
        ({"after": "2024-03-01"}, 1),
    ):
        assert len(find(talk, "kettle", user_id="ada", **filters)) == count, filters


def test_what_cannot_be_searched_is_told(client):
    query: dict[str, Any]
    for query, named in (
        ({"q": "tea"}, "owner_needed"),
        ({"q": "x" * 2001, "user_id": "ada"}, "q"),
        ({"q": "tea", "user_id": "ada", "limit": 101}, "limit"),
        ({"q": "tea", "user_id": "ada", "window": 11}, "window"),
        ({"q": "tea", "user_id": "ada", "role": "robot"}, "role"),
        ({"q": "tea", "user_id": "ada", "after": "soon"}, "after"),
        ({"q": "te\x00a", "user_id": "ada"}, "q"),
    ):
        refused = error(client.get("/api/search", query_string=query), 422)
        assert named in (refused["code"], refused.get("param")), query


def test_phrases_exclusions_and_prefixes(talk):
    assert contents(talk, '"kettle broke"', user_id="ada") == ["The kettle broke in Bergen."]
    left = contents(talk, "kettle -lisbon -buy", user_id="ada")
    assert left[0] == "The kettle broke in Bergen." and len(left) == 3
    (found,) = find(talk, "kettle berg*", user_id="ada")
    assert (found["content"], found["highlights"]) == ("The kettle broke in Bergen.", ["kettle", "Bergen"])
    assert contents(talk, '"broke kettle"', user_id="ada") == []


def test_a_query_without_words_finds_nothing(talk):
    for q in ("*", "?", "***", "()", '"', ":", " ", "\u200b", "🍵", "-kettle"):
        assert find(talk, q, user_id="ada") == [], q


def test_a_search_finds_the_nearest_and_says_how_near_they_are(talk):
    for q, best in (("travel", "Lisbon"), ("holiday flight", "Lisbon"), ("damaged", "broke")):
        found = find(talk, q, user_id="ada")
        assert len(found) == 5 and best in found[0]["content"], q
        scores = [one["score"] for one in found]
        assert scores == sorted(scores, reverse=True) and 0 <= scores[-1] <= scores[0] <= 1, q
    exact, vague = (find(talk, q, user_id="ada")[0]["score"] for q in ("kettle broke in Bergen", "jurisprudence"))
    assert exact > 0.9 > vague


# -- the index is derived data


def test_verify_tells_what_is_wrong_and_rebuild_mends_it(app, client, engine):
    append(client, "s", [said(f"Kettle {number}") for number in range(5)], user_id="ada")
    append(client, "alone", [said("Nobody's kettle")])
    waiting = run_command(app, "index", "verify")
    assert (waiting.exit_code, "user:ada: 5 of 5 messages wait to be indexed" in waiting.output) == (0, True)
    engine.job_queue.run_due()

    index = index_key(engine, "ada")
    messages = good(client.get("/api/sessions/s/messages"))["items"]
    engine.index.remove(index, message_ids=[message["id"] for message in messages[:2]])
    moment = engine.sessions.now()
    engine.index.add(index, [SearchableText(9999, 1, "user", moment, "a message nobody wrote")])
    wrong = run_command(app, "index", "verify")
    assert wrong.exit_code == 1
    assert "user:ada: 2 missing, 1 surplus of 5 messages" in wrong.output
    assert "1 of 2 indexes disagree" in wrong.output
    found = find(client, "a message nobody wrote", user_id="ada")
    assert {one["content"][:6] for one in found} == {"Kettle"}  # what is found is read from the rows

    rebuilt = run_command(app, "index", "rebuild")
    assert (rebuilt.exit_code, rebuilt.output.splitlines()) == (
        0,
        ["user:ada: 5 messages", "session:alone: 1 messages", "6 messages indexed."],
    )
    assert run_command(app, "index", "verify").output == "2 indexes agree with the messages.\n"
    assert len(find(client, "kettle", user_id="ada")) == 5


def test_rebuild_says_that_another_process_writes_to_the_index(app, client, monkeypatch):
    append(client, "s", [said("Kettle")], user_id="ada")

    def busy(*_):
        raise IndexBusy("another process writes to the index")

    monkeypatch.setattr(engine_of(app).index, "drop", busy)
    rebuilt = run_command(app, "index", "rebuild")
    assert (rebuilt.exit_code, rebuilt.exception.args) == (1, (1,)), "a sentence, and no traceback"
    assert "Error: another process writes to the index." in rebuilt.output


def test_anothers_message_in_ones_index_is_not_shown(client, engine):
    append(client, "s", [said("Ada's kettle")], user_id="ada")
    (number,) = append(client, "b", [said("Bob's kettle")], user_id="bob")["message_ids"]
    engine.job_queue.run_due()
    index = index_key(engine, "ada")
    engine.index.add(index, [SearchableText(number, 2, "user", engine.sessions.now(), "Bob's kettle")])
    assert contents(client, "kettle", user_id="ada") == ["Ada's kettle"]


@pytest.mark.parametrize("erased", ["/api/sessions/goes", "/api/users/bob"])
def test_what_is_erased_while_it_is_being_indexed_does_not_come_back(client, engine, monkeypatch, erased):
    append(client, "goes", [said("gunpowder")], user_id="ada" if "sessions" in erased else "bob")
    append(client, "stays", [said("oolong")], user_id="ada")
    add, batches = engine.index.add, []

    def erased_meanwhile(owner: str, documents: Any) -> str:
        batches.append(documents)
        if len(batches) == 1:  # another process erases it, and clears the index, before this one writes
            good(client.delete(erased))
            engine.job_queue.run_due(["unindex", "scrub"])
        return add(owner, documents)

    monkeypatch.setattr(engine.index, "add", erased_meanwhile)
    monkeypatch.setattr("memory.erasing.erasing.GATHER_SECONDS", 0.0)
    engine.job_queue.run_due(["index"])
    assert batches and traces(engine.settings.data_dir, "gunpowder") == {}
    assert all(one.consistent for one in indexing.verify(engine))
    assert contents(client, "oolong gunpowder", user_id="ada") == ["oolong"]


# -- facts and summaries


def test_facts_and_summaries_are_found_with_the_messages_they_come_from(model_app, model_server):
    ada, bob = (Talk(model_app, model_server, f"{name}s", name) for name in ("ada", "bob"))
    moved = fact("Ida lives in Porto", 1, "has moved to Porto")
    ada.hear("My sister has moved to Porto.", "It rains a lot.", reply=digest_of(moved, data=["Ida's home is Porto"]))
    bob.hear("Porto is where I was.", reply=digest_of(fact("Bob was in Porto", 1, "Porto is where")))
    client = ada.client
    by_hand = {"text": "Ida likes Porto's bridges", "user_id": "ada"}
    good(client.post("/api/facts", json=by_hand))

    facts = {one["text"]: one for one in find(client, "Where does Ida live?", user_id="ada", kind="fact")}
    assert set(facts) == {"Ida lives in Porto", by_hand["text"]}
    for one in facts.values():
        assert good(client.get(f"/api/facts/{one['fact_id']}?user_id=ada"))["text"] == one["text"]
        assert error(client.get(f"/api/facts/{one['fact_id']}?user_id=bob"), 404)["code"] == "fact_not_found"
    taken = facts["Ida lives in Porto"]
    assert (taken["kind"], taken["session_id"]) == ("fact", "adas")
    assert taken["content"] == "My sister has moved to Porto." == taken["window"][0]["content"]
    assert set(taken["highlights"]) == {"Ida", "lives"}
    assert {facts[by_hand["text"]][name] for name in ("message_id", "content", "session_id", "created_at")} == {None}

    (summary,) = find(client, "Which home in Porto, in all that rain?", user_id="ada", kind="summary")
    assert "Ida's home is Porto" in summary["text"] and summary["session_id"] == "adas"
    assert {one["content"] for one in summary["window"]} == {"My sister has moved to Porto.", "It rains a lot."}
    assert find(client, "Porto", session_id="bobs", kind="fact")[0]["text"] == "Bob was in Porto"

    good(client.delete("/api/sessions/adas/messages/" + str(taken["message_id"])))
    assert [one["text"] for one in find(client, "Ida Porto", user_id="ada", kind="fact")] == [by_hand["text"]]
    assert find(client, "home in Porto", user_id="ada", kind="summary") == []
