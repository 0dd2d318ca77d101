"""Messages that are replaced: kept on a branch, and from then on as if they had never been said."""

import random
import re
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory.recall import indexing
from tests.http import append, ask, chat, failed, find, good, history, meanwhile, read_all, stored, stream, summary
from tests.http import said as words
from tests.knowledge import digest_of, fact, summarise
from tests.model_server import Body, Delay, Status, at, prompts, question

URL = "/api/sessions/s"


@pytest.fixture
def app(make_app, model_server):
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])}"
    return make_app(**at(model_server))


def talk(client: FlaskClient, *messages: str, **more: Any) -> list[int]:
    """Turns in session `s`, one after another: the ids of their messages."""
    return [chat(client, message, session_id="s", **more)["user_message_id"] for message in messages]


def work(client: FlaskClient, *kinds: str) -> None:
    """Do the jobs that are due, those of the index at once."""
    engine = engine_of(client.application)
    if not kinds or "index" in kinds:
        for job in client.get("/api/jobs").json["items"]:
            if job["kind"] == "index":
                client.post(f"/api/jobs/{job['id']}/retry")
    engine.job_queue.run_due(kinds or None)


def line(*exchanges: str) -> list[tuple[str, str]]:
    """The messages and the replies to them, as they are stored."""
    return [part for message in exchanges for part in (("user", message), ("assistant", f"Answer to {message}"))]


def version(client: FlaskClient) -> dict[str, Any]:
    latest: dict[str, Any] = summary(client, "s")["latest"]
    return latest


# -- the line goes on from where it was replaced


@pytest.mark.parametrize("streaming", [False, True])
def test_a_message_takes_the_place_of_another_and_of_all_after_it(client, model_server, streaming):
    ids = talk(client, "one", "two", "three")
    if streaming:
        first = stream(client, "deux", session_id="s", replaces=ids[1])[0]
    else:
        first = chat(client, "deux", session_id="s", replaces=ids[1])
    assert history(client, "s") == line("one", "deux")
    messages = stored(client, "s")
    assert [message["position"] for message in messages] == [1, 2, 3, 4]
    assert messages[2]["id"] == first["user_message_id"] > ids[2]
    sent = prompts(model_server)[-1]
    assert [message["content"] for message in sent[1:-1]] == ["one", "Answer to one"]
    session = good(client.get(URL))
    assert session["message_count"] == 4
    assert session["tokens"] == sum(message["tokens"] for message in messages)


def test_a_title_goes_with_what_it_was_taken_from(client, model_server):
    def title(topic: str = "") -> Any:
        if topic:
            summarise(client, model_server, topic=topic)
        return good(client.get(URL))["title"]

    first, third = talk(client, "Tea in Kyoto", "And cake?")
    assert title() == "Tea in Kyoto"
    assert title(topic="Tea houses") == "Tea houses"
    talk(client, "And sweets?", replaces=third)
    assert title() == "Tea in Kyoto", "its summary covered what was replaced"
    assert title(topic="Tea and sweets") == "Tea and sweets"
    talk(client, "How much are they?")
    assert title(topic="Prices") == "Tea and sweets", "the first topic stays"
    calls = [request.model for request in model_server.requests]
    assert (calls.count("main"), calls.count("mini")) == (4, 3), "a title costs no call"
    (second,) = talk(client, "Coffee in Rome", replaces=first)
    assert title() == "Coffee in Rome"
    client.patch(URL, json={"title": "Drinks"})
    assert title(topic="Coffee bars") == "Drinks"
    talk(client, "Water in Oslo", replaces=second)
    assert title(topic="Fountains") == "Drinks"


def test_imported_messages_can_be_replaced_and_are_not_imported_again(client):
    talked = [words("one", external_id="1"), words("Yes.", "assistant", external_id="2")]
    done = append(client, "s", talked)
    talk(client, "uno", replaces=done["message_ids"][0])
    again = append(client, "s", talked)
    assert again["created"] == 0 and again["message_ids"] == done["message_ids"]
    assert history(client, "s") == line("uno")


# -- versions


def versions(client: FlaskClient) -> dict[int, list[int]]:
    """The versions of the line's messages, by the ids of those in use."""
    items = good(client.get(f"{URL}/messages/versions"))["items"]
    return {item["message_id"]: item["versions"] for item in items}


def restore(client: FlaskClient, message_id: int) -> dict[str, Any]:
    session: dict[str, Any] = good(client.post(f"{URL}/messages/{message_id}/restore"))
    return session


def test_an_owner_in_the_body_of_a_call_that_takes_it_in_its_address_is_refused(client):
    one, _ = talk(client, "red", "green", user_id="ada")
    chat(client, "blue", session_id="s", user_id="ada", replaces=one)
    chat(client, "someone else's", session_id="s", user_id="bob")
    for call in (f"messages/{one}/restore", "stop", "summary/refresh"):
        failed(client.post(f"{URL}/{call}", json={"user_id": "ada"}), 422, "owner_in_body")
        failed(client.post(f"{URL}/{call}", json={"space": "team"}), 422, "owner_in_body")
        assert client.post(f"{URL}/{call}?user_id=ada", json={}).status_code in (200, 202)
    assert stored(client, "s", user_id="ada")[0]["content"] == "red"


def test_every_version_comes_back_with_what_followed_it(client):
    one, two, three = talk(client, "one", "two", "three")
    assert versions(client) == {}
    (deux,) = talk(client, "deux", replaces=two)
    (zwei,) = talk(client, "zwei", replaces=deux)
    assert versions(client) == {zwei: [two, deux, zwei]}
    assert history(client, "s", branch=1) == line("two", "three") and history(client, "s", branch=2) == line("deux")
    failed(client.get(f"{URL}/turns/{two}"), 404, "turn_not_found")
    (eins,) = talk(client, "eins", replaces=one)
    assert versions(client) == {eins: [one, eins]}, "what another version led to is no version here"
    failed(client.post(f"{URL}/messages/{two}/restore"), 404, "version_not_found")
    session = restore(client, one)
    assert history(client, "s") == line("one", "zwei") and session["message_count"] == 4
    assert versions(client) == {one: [one, eins], zwei: [two, deux, zwei]}
    restore(client, two)
    assert history(client, "s") == line("one", "two", "three")
    assert [message["position"] for message in stored(client, "s")] == [1, 2, 3, 4, 5, 6]
    assert restore(client, two)["tokens"] == sum(message["tokens"] for message in stored(client, "s"))
    assert [turn["user_message_id"] for turn in read_all(client, f"{URL}/turns")] == [three, two, one]
    talk(client, "four")
    (drei,) = talk(client, "drei", replaces=three)
    assert versions(client) == {one: [one, eins], two: [two, deux, zwei], drei: [three, drei]}
    restore(client, zwei)
    assert versions(client) == {one: [one, eins], zwei: [two, deux, zwei]}
    good(client.delete(f"{URL}/messages/{deux}"))
    assert versions(client) == {one: [one, eins], zwei: [two, zwei]}
    restore(client, two)
    assert history(client, "s") == line("one", "two", "drei")


# -- what can't be replaced


def test_only_a_user_message_of_this_session_can_be_replaced_once(client, model_server):
    answer = chat(client, "one", session_id="s")
    elsewhere = chat(client, "two", session_id="t")["user_message_id"]
    (gone,) = talk(client, "three")
    kept = talk(client, "trois", replaces=gone)[0]
    before, asked = history(client, "s"), len(model_server.requests)
    for replaces, status, code in (
        (elsewhere, 404, "message_not_found"),
        (10**6, 404, "message_not_found"),
        (answer["message_id"], 422, "not_a_user_message"),
        (gone, 422, "already_replaced"),
        (0, 422, "invalid_fields"),
        ("1", 422, "invalid_fields"),
    ):
        error = failed(ask(client, "deux", session_id="s", replaces=replaces), status, code)
        assert error["param"] == "replaces" and "Nothing was" in error["message"]
    for more, param in (({}, "session_id"), ({"session_id": "s", "temporary": True}, "replaces")):
        assert failed(ask(client, "deux", replaces=kept, **more), 422, "invalid_fields")["param"] == param
    assert history(client, "s") == before and len(model_server.requests) == asked


# -- retries


@pytest.mark.parametrize("key", [None, "k"])
def test_a_retry_after_the_model_failed_replaces_nothing_more(client, model_server, key):
    model_server.main.queue(Status(401))
    failed(ask(client, "one", session_id="s"), 502, "model_key_refused")
    (unanswered,) = stored(client, "s")
    assert talk(client, "one", replaces=unanswered["id"]) == [unanswered["id"]]
    second, _ = talk(client, "two", "three")
    model_server.main.queue(Status(401), Status(401))
    for _ in range(2):
        failed(ask(client, "deux", session_id="s", replaces=second, key=key), 502, "model_key_refused")
        assert history(client, "s") == [*line("one"), ("user", "deux")]
    chat(client, "deux", session_id="s", replaces=second, key=key)
    assert history(client, "s") == line("one", "deux")
    assert history(client, "s", branch=1) == line("two", "three") and history(client, "s", branch=2) == []


def test_an_idempotency_key_replaces_once_and_is_of_this_request_only(client, model_server):
    ids = talk(client, "one", "two")
    answer = chat(client, "deux", session_id="s", replaces=ids[1], key="k")
    again = chat(client, "deux", session_id="s", replaces=ids[1], key="k")
    assert {**again, "memory": None} == {**answer, "memory": None}
    failed(ask(client, "deux", session_id="s", replaces=ids[0], key="k"), 409, "idempotency_key_reused")
    failed(ask(client, "deux", session_id="s", key="k"), 409, "idempotency_key_reused")
    assert history(client, "s") == line("one", "deux")
    model_server.main.queue(Status(401))
    failed(ask(client, "three", session_id="s", key="n"), 502, "model_key_refused")
    talk(client, "trois", replaces=stored(client, "s")[-1]["id"])
    failed(ask(client, "three", session_id="s", key="n"), 409, "message_replaced")
    assert history(client, "s") == line("one", "deux", "trois")


# -- search and recall


@pytest.mark.parametrize("indexed", [False, True])
def test_replaced_words_are_not_recalled_by_words_time_or_neighbourhood(make_app, model_server, indexed):
    client = make_app(**at(model_server, recall_window=3)).test_client()
    model_server.main.default = lambda body: "Noted."
    first = chat(client, "My zeppelin is called Hindenburg", session_id="s", user_id="ada")["user_message_id"]
    chat(client, "My kite is called Ann", session_id="s", user_id="ada", replaces=first)
    if indexed:
        work(client)
    for asked in ("What did I say about my zeppelin and my kite?", "What did we talk about today?"):
        answer = chat(client, asked, session_id="t", user_id="ada", recall="always")
        recalled = [m["content"] for excerpt in answer["memory"]["excerpts"] for m in excerpt["messages"]]
        assert "My kite is called Ann" in recalled and not any("zeppelin is" in content for content in recalled)


# -- the summary


def test_a_summary_that_covers_only_what_stays_is_in_use_again(client, model_server):
    ids = []
    for number, message in enumerate(("one", "two", "three"), start=1):
        ids += talk(client, message)
        summarise(client, model_server, data=[f"up to {number}"])
    talk(client, "deux", replaces=ids[1])
    state = summary(client, "s")
    latest = state["latest"]
    assert (latest["version"], latest["restores"], latest["author"]) == (4, 1, "replacement")
    assert latest["sections"]["data"] == ["up to 1"] and latest["through"] == 2 and state["state"] == "pending"
    failed(client.post(f"{URL}/summary/rollback", json={"version": 2}), 409, "version_replaced")
    versions = read_all(client, f"{URL}/summary/versions")
    assert [(v["version"], v["replaced"]) for v in versions] == [(4, False), (3, True), (2, True), (1, False)]
    summarise(client, model_server, data=["up to 1", "deux"])
    material = prompts(model_server, "mini")[-1][1]["content"]
    assert "up to 1" in material and "deux" in material and "two" not in material and "up to 2" not in material


def test_a_summary_the_person_wrote_stays_theirs(client, model_server):
    ids = talk(client, "one", "two")
    summarise(client, model_server, data=["as the model sees it"])
    client.put(f"{URL}/summary", json={"sections": {"topic": "As I see it"}})
    talk(client, "deux", replaces=ids[1])
    state = summary(client, "s")
    assert (state["latest"]["author"], state["latest"]["through"], state["state"]) == ("person", 2, "pending")
    assert "As I see it" in prompts(model_server)[-1][0]["content"]
    summarise(client, model_server, topic="As I see it", data=["deux"])
    assert version(client)["through"] == 4


# -- facts


def facts(client: FlaskClient) -> dict[str, dict[str, Any]]:
    return {item["text"]: item for item in read_all(client, "/api/facts", session_id="s")}


def test_facts_taken_from_replaced_messages_go_and_what_they_alone_corrected_holds_again(client, model_server):
    (first,) = talk(client, "I live in Bergen")
    summarise(client, model_server, fact("Lives in Bergen", 1, "I live in Bergen"))
    old = facts(client)["Lives in Bergen"]["id"]
    (second,) = talk(client, "I live in Oslo now and like tea")
    oslo = fact("Lives in Oslo", 3, "I live in Oslo", supersedes=[old])
    summarise(client, model_server, oslo, fact("Likes tea", 3, "like tea"))
    assert set(facts(client)) == {"Lives in Oslo", "Likes tea"}
    talk(client, "And you?", replaces=second)
    (kept,) = facts(client).values()
    assert (kept["text"], kept["id"], kept["superseded_by"], kept["valid_to"]) == ("Lives in Bergen", old, None, None)
    assert kept["source_message_id"] == first


def test_the_same_words_keep_their_facts_and_pins(client, model_server):
    (first,) = talk(client, "I live in Bergen")
    summarise(client, model_server, fact("Lives in Bergen", 1, "I live in Bergen"))
    known = facts(client)["Lives in Bergen"]["id"]
    client.patch(f"/api/facts/{known}", json={"pinned": True})
    (again,) = talk(client, "I live in Bergen", replaces=first)
    summarise(client, model_server, fact("In Bergen", 1, "I live in Bergen"), topic="Bergen")
    (kept,) = facts(client).values()
    assert (kept["id"], kept["pinned"], kept["source_message_id"]) == (known, True, again)


# -- whatever happens


WORD = re.compile(r"\bw\d+\b")
BACK = {"say": 0, "say much": 0, "main fails": 0, "replace last": 1, "replace near": 3, "replace far": 9}  # taken back
FAILING = {"mini fails": Status(401), "mini garbles": "{"}
ACTIONS = [*["say"] * 3, "say much", "main fails", *["replace last"] * 2, "replace near", "replace far", "append"]
ACTIONS += [*["summary"] * 3, *FAILING, "hold", "let go", "index", "roll back", *["restore"] * 3]


def listing(body: Body) -> Any:
    """A summary that lists every word the mini model was shown, and facts that are the words of the person."""
    material = body["messages"][1]["content"]
    shown = sorted(set(WORD.findall(re.sub(r"<known_facts>.*?</known_facts>", "", material, flags=re.DOTALL))))
    own = re.findall(r"^\[(\d+)\] (?:\S+ \S+ )?\S+ user: (w\d+)\b", material, re.MULTILINE)
    chunks = [" ".join(shown[at : at + 20]) for at in range(0, len(shown), 20)]
    return digest_of(*(fact(word, int(position), word) for position, word in own), data=chunks)


def said_words(client: FlaskClient, **query: Any) -> list[str]:
    return [word for _, content in history(client, "s", **query) for word in WORD.findall(content)]


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_prompts_summaries_facts_and_search_are_always_those_of_the_line(make_app, model_server, seed):
    """Messages are sent, replaced, brought back, summarised and rolled back, and models fail or take their time.  Each
    message has a word of its own: it is in the summary or the tail of every prompt, as long as it is in the line."""
    limits = {"tail_messages_max": 5, "tail_messages_min": 2, "tail_tokens_max": 300, "summary_debounce": 60.0}
    app = make_app(**at(model_server, model_timeout=60.0, **limits))
    client = app.test_client()
    model_server.mini.default = listing

    def refresh(answer: Any) -> None:
        model_server.mini.default = answer
        good(client.post(f"{URL}/summary/refresh"))

    with ExitStack() as held:
        for number, action in enumerate(["say", *random.Random(seed).choices(ACTIONS, k=30), "say"], start=1):
            if action in BACK:
                own = [one["id"] for one in stored(client, "s") if one["role"] == "user"] if BACK[action] else []
                replaced = {"replaces": own[-min(BACK[action], len(own))]} if own else {}
                model_server.main.queue(Status(401) if action == "main fails" else f"w{number}000")
                text = f"w{number} {'and so on ' * 30}" if action == "say much" else f"w{number}"
                answer = ask(client, text, session_id="s", recall="always", **replaced)
                shown = {word for message in prompts(model_server)[-1] for word in WORD.findall(message["content"])}
                assert shown == set(said_words(client)) - {f"w{number}000"}, "in the head or word for word"
                assert answer.status_code == (502 if action == "main fails" else 200)
            elif action == "append":
                append(client, "s", [words(f"w{number}0001"), words(f"w{number}0002", "assistant")])
            elif action == "restore":
                for current, ids in sorted(versions(client).items())[-1:]:
                    restore(client, next(id for id in ids if id != current))
            elif action in FAILING:
                refresh(lambda body, reply=FAILING[action]: reply)
                work(client, "summary")
            elif action == "hold":
                held.close()
                release, came = threading.Event(), len(model_server.requests)
                refresh(lambda body, release=release: Delay(release, listing(body)))
                held.enter_context(meanwhile(lambda: work(client, "summary")))
                held.callback(release.set)
                model_server.wait_for(lambda came=came: len(model_server.requests) > came, 0.3)
            elif action == "let go":
                held.close()
            elif action != "roll back":
                work(client, action)
            elif latest := version(client):
                older = {"version": max(1, latest["version"] - 2)}
                assert client.post(f"{URL}/summary/rollback", json=older).status_code in (200, 409)
            model_server.mini.default = listing
    only_the_line_is_found(client)  # though the index still holds more
    refresh(listing)
    work(client)
    only_the_line_is_found(client)
    messages = stored(client, "s")
    assert set(WORD.findall(str(version(client)["sections"]))) == set(said_words(client))
    assert {one["content"].split()[0]: one["id"] for one in messages if one["role"] == "user"} == {
        text: item["source_message_id"] for text, item in facts(client).items()
    }
    assert all(one.consistent for one in indexing.verify(engine_of(app)))


def only_the_line_is_found(client: FlaskClient) -> None:
    known = set(said_words(client))
    for word in known | {word for branch in range(1, 15) for word in said_words(client, branch=branch)}:
        results = find(client, word, session_id="s", window=9)
        assert any(word in WORD.findall(one["content"]) for one in results) is (word in known), word
        assert all(set(WORD.findall(str(near["content"]))) <= known for one in results for near in one["window"])


def test_a_head_that_shows_replaced_words_goes_back_and_another_stays(make_app, model_server):
    client = make_app(**at(model_server, tail_messages_max=4, tail_messages_min=0)).test_client()
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])}"
    ids = []
    for number in range(1, 7):
        ids += talk(client, f"m{number}")
        summarise(client, model_server, data=[f"up to m{number}"])
    shown = summary(client, "s")["head_version"]
    head = prompts(model_server)[-1][0]["content"]
    assert shown > 1 and f"up to m{shown}" in head
    talk(client, "again", replaces=ids[5])  # after what the head covers
    assert prompts(model_server)[-1][0]["content"] == head
    talk(client, "from here", replaces=ids[1])  # before it
    sent = prompts(model_server)[-1]
    assert "up to m1" in sent[0]["content"] and not re.search(r"m[2-6]|again", str(sent))
    assert summary(client, "s")["head_version"] == version(client)["version"]


def test_a_summary_that_was_being_made_of_replaced_messages_is_not_stored(app, client, model_server):
    ids = talk(client, "one", "two")
    release = threading.Event()
    stale = digest_of(fact("Says two", 3, "two"), data=["stale"])
    model_server.mini.queue(Delay(release, stale), digest_of(data=["fresh"]))
    came = len(model_server.requests)
    with meanwhile(lambda: engine_of(app).job_queue.run_due(["summary"])):
        model_server.wait_for_requests(came + 1)
        talk(client, "deux", replaces=ids[-1])
        release.set()
    assert version(client)["sections"]["data"] == ["fresh"]
    assert client.get("/api/facts?session_id=s").json["items"] == []
