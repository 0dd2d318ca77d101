"""Excerpts that did not help: they count less for similar questions of that person, until that is taken back."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from search_index import WordLlamaEmbedder
from search_index.analysis import DEFAULT_ANALYSIS
from search_index.calibration import CalibratedEmbedder, Nearness
from tests.application import rows_of
from tests.http import Body, append, chat, error, good, read_all, said
from tests.jobs import jobs_done
from tests.traces import traces

ADA = {"user_id": "ada"}
QUESTION = "When does the ferry to Saaremaa leave?"
AGAIN = "What time is the Saaremaa ferry?"  # shares words
OTHERWISE = "When does the boat to Saaremaa depart?"  # means the same
ALONE = "When does the old ferry leave, as Xylozarquon says?"  # for which the excerpt stays the best
ANOTHER = "Which songs does Xylozarquon sing at noon?"
FERRY = "The old ferry to Saaremaa leaves at noon, Xylozarquon says."
URL = "/api/recall/unhelpful"


@pytest.fixture
def client(model_app):
    client = model_app.test_client()
    for user in ("ada", "bob"):
        for session, words in (("old", FERRY), ("new", "The new ferry to Saaremaa leaves at 7:40 from the harbour.")):
            append(client, f"{user}-{session}", [said(words), said("Noted.", "assistant")], user_id=user)
    return client


def recall(client: FlaskClient, message: str = QUESTION, user: str = "ada") -> dict[str, Body]:
    """The excerpts for a message by their sessions, the best first."""
    memory = good(client.post("/api/recall", json={"message": message, "user_id": user}))["memory"]
    return {excerpt["session_id"]: excerpt for excerpt in memory["excerpts"]}


def ask(client: FlaskClient, message: str = QUESTION) -> dict[str, Any]:
    """A turn; what to send to mark the excerpt of the old ferry that it recalled."""
    turn = chat(client, message, session_id="asking", **ADA)
    (old,) = [one for one in turn["memory"]["excerpts"] if one["session_id"] == "ada-old"]
    return {**ADA, "session_id": "asking", "message_id": turn["message_id"], "hits": old["hits"]}


def test_a_marked_excerpt_counts_half_for_similar_questions_until_that_is_taken_back(client):
    marked = ask(client)
    before = {question: recall(client, question) for question in (QUESTION, AGAIN, OTHERWISE, ALONE, ANOTHER)}
    bobs = recall(client, user="bob")
    mark = good(client.post(URL, json=marked))
    assert good(client.post(URL, json=marked)) == mark, "twice is once"
    for question in (QUESTION, AGAIN, OTHERWISE):
        now = recall(client, question)
        assert "ada-old" not in now and now == {one: before[question][one] for one in now}
        assert "ada-new" in now
    less, old = recall(client, ALONE)["ada-old"], before[ALONE]["ada-old"]
    assert less["score"] == pytest.approx(old["score"] / 2)
    assert less["why"] == {**old["why"], "unhelpful": pytest.approx(-old["score"] / 2)}
    assert recall(client, ANOTHER) == before[ANOTHER]
    assert recall(client, user="bob") == bobs
    turn = chat(client, QUESTION, session_id="later", **ADA)
    assert "ada-old" not in [one["session_id"] for one in turn["memory"]["excerpts"]]
    for narrowed in (ADA, {"session_id": "asking", "message_id": mark["message_id"]}):
        assert read_all(client, URL, **narrowed) == [mark]
    assert (mark["question"], mark["session_id"]) == (QUESTION, "asking")
    assert (mark["excerpt_session_id"], [one["id"] for one in mark["messages"]]) == ("ada-old", marked["hits"])
    for nobodys in ({"user_id": "bob"}, {**ADA, "message_id": turn["message_id"]}):
        assert read_all(client, URL, **nobodys) == []
    good(client.delete("/api/sessions/later?user_id=ada"))
    receipt = good(client.delete(f"{URL}/{mark['id']}", query_string=ADA))
    assert (receipt["mark_id"], receipt["erased"]["items"]) == (mark["id"], 1)
    assert {question: recall(client, question) for question in before} == before
    assert error(client.delete(f"{URL}/{mark['id']}", query_string=ADA), 404)["code"] == "mark_not_found"


@pytest.mark.parametrize(("embedder", "by_meaning"), [(WordLlamaEmbedder(), True), (None, False)])
def test_questions_are_alike_by_their_words_or_by_what_they_mean(embedder, by_meaning):
    nearness = Nearness(DEFAULT_ANALYSIS, CalibratedEmbedder(embedder) if embedder is not None else None)
    assert nearness.similar(QUESTION, [AGAIN, OTHERWISE, ANOTHER, ""]) == [True, by_meaning, False, False]
    assert nearness.similar("", [QUESTION]) == [False]


@pytest.mark.parametrize(
    "end", ["person", "question's session", "question", "excerpt's session", "excerpt", "replaced"]
)
def test_a_mark_goes_with_the_words_that_it_rests_on(client, model_server, end):
    secret = "Quonarzylox"
    model_server.main.queue("At 7:40.")
    marked = ask(client, f"{QUESTION} {secret} asks.")
    mark = good(client.post(URL, json=marked))
    asked, hit = mark["message_id"], mark["messages"][0]["id"]
    path = {
        "person": "/api/users/ada",
        "question's session": "/api/sessions/asking",
        "question": f"/api/sessions/asking/messages/{asked}",
        "excerpt's session": "/api/sessions/ada-old",
        "excerpt": f"/api/sessions/ada-old/messages/{hit}",
    }
    if end == "replaced":
        chat(client, "Never mind.", session_id="asking", replaces=asked, **ADA)
    else:
        assert good(client.delete(path[end]))["erased"]["items"] == 1
    rows = rows_of(engine_of(client.application))
    assert (rows["items"], rows["item_sources"]) == (0, 0)
    jobs_done(client)
    folder = engine_of(client.application).settings.data_dir
    if end in ("person", "question's session", "question"):
        assert traces(folder, secret) == {}
    if end == "excerpt":
        assert "ada-old" not in recall(client)


def test_a_reply_that_is_made_anew_keeps_the_mark(client):
    mark = good(client.post(URL, json=ask(client)))
    again = chat(client, QUESTION, session_id="asking", replaces=mark["message_id"], **ADA)
    (kept,) = read_all(client, URL, **ADA)
    assert (kept["message_id"], kept["messages"]) == (again["user_message_id"], mark["messages"])
    assert [one["session_id"] for one in again["memory"]["excerpts"]] == ["ada-new"]


def test_a_mark_is_taken_along(client):
    good(client.post(URL, json=ask(client)))
    whole = good(client.get("/api/users/ada/export"))
    (item,) = whole["items"]
    for value, kept in (({"question": 1}, 0), (item["value"], 1)):
        good(client.post("/api/import?user_id=eve", json={**whole, "items": [{**item, "value": value}]}))
        assert len(read_all(client, URL, user_id="eve")) == kept
    (mark,) = read_all(client, URL, user_id="eve")
    assert (mark["question"], mark["excerpt_session_id"]) == (QUESTION, "ada-old")
    assert recall(client, ALONE, user="eve")["ada-old"]["why"]["unhelpful"] < 0


def test_only_what_could_be_recalled_for_the_question_is_marked(client):
    marked = ask(client)
    (bobs, *_) = good(client.get("/api/sessions/bob-old/messages"))["items"]
    late = said("The ferry was late.", created_at="2100-01-01T00:00:00Z")
    (later,) = append(client, "ada-new", [late])["message_ids"]
    own = good(client.get("/api/sessions/asking/messages"))["items"][0]
    before = rows_of(engine_of(client.application))
    for hits in ([bobs["id"]], [later], [own["id"]], [marked["message_id"]], [*marked["hits"], 10**9]):
        assert error(client.post(URL, json={**marked, "hits": hits}), 404)["code"] == "message_not_found"
    for wrong, status in (({"hits": []}, 422), ({"message_id": 10**9}, 404), ({"user_id": "bob"}, 404)):
        error(client.post(URL, json={**marked, **wrong}), status)
    assert rows_of(engine_of(client.application)) == before
