"""Messages: appending and importing them, once each, with their own times; reading them back word for word."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

from flask.testing import FlaskClient

from tests.http import append, error, good, read_all, said


def contents(client: FlaskClient, session: str, **query: Any) -> list[str]:
    return [item["content"] for item in read_all(client, f"/api/sessions/{session}/messages", **query)]


def test_what_is_appended_is_read_back_word_for_word(client):
    words = [
        ("I prefer tea.", "user"),
        ("  spaces, a\ttab\r\nand lines\n", "assistant"),
        ("中文 🍵 é e\u0301", "system"),
        ("\u202eright to left", "tool"),
        ("<summary>", "user"),
    ]
    sent = [said(text, role, name="Ada", external_id=f"m{n}") for n, (text, role) in enumerate(words)]
    answer = append(client, "s", sent)
    read = read_all(client, "/api/sessions/s/messages")
    assert [(m["content"], m["role"], m["name"], m["external_id"]) for m in read] == [
        (m["content"], m["role"], "Ada", m["external_id"]) for m in sent
    ]
    assert [m["position"] for m in read] == [1, 2, 3, 4, 5]
    assert [m["id"] for m in read] == answer["message_ids"]
    assert (answer["created"], answer["session"]["message_count"]) == (5, 5)
    assert answer["session"]["tokens"] == sum(m["tokens"] for m in read)


def test_a_thousand_a_call_and_no_more(client):
    thousand = [said(f"message {number}") for number in range(1000)]
    assert append(client, "s", thousand)["created"] == 1000
    refused = error(client.post("/api/sessions/s/messages", json={"messages": [*thousand, said("one more")]}), 422)
    assert refused["param"] == "messages"
    assert "1000" in refused["message"]
    assert contents(client, "s", limit=100) == [message["content"] for message in thousand]


# -- once each


def test_an_external_id_is_stored_once_across_calls_and_within_one(client):
    first = append(client, "s", [said("a", external_id="1"), said("b", external_id="2")])
    second = append(client, "s", [said("changed", external_id="2"), said("c", external_id="3"), said("no id")])
    assert (second["created"], second["message_ids"][0]) == (2, first["message_ids"][1])
    assert contents(client, "s") == ["a", "b", "c", "no id"]  # the first words stay
    other = append(client, "other", [said("a", external_id="1"), said("b"), said("again", external_id="1"), said("b")])
    assert (other["created"], other["message_ids"][0]) == (3, other["message_ids"][2])  # ids are the session's own
    assert contents(client, "other") == ["a", "b", "b"]


def test_an_external_id_is_stored_once_from_many_threads(app):
    batches = [
        [said(f"{number}", external_id=f"id-{number}") for number in range(at, at + 40)] for at in range(0, 80, 10)
    ]
    start = threading.Barrier(len(batches))

    def send(batch: list[dict[str, Any]]) -> dict[str, Any]:
        client = app.test_client()
        start.wait()
        return append(client, "s", batch)

    with ThreadPoolExecutor(len(batches)) as pool:
        answers = list(pool.map(send, batches))
    assert [item["message_count"] for item in read_all(app.test_client(), "/api/sessions")] == [110], "one session"
    stored = read_all(app.test_client(), "/api/sessions/s/messages", limit=100)
    assert sum(answer["created"] for answer in answers) == len(stored) == 110
    assert sorted(int(item["content"]) for item in stored) == list(range(110))
    assert [item["position"] for item in stored] == list(range(1, 111))
    by_id = {item["external_id"]: item["id"] for item in stored}
    for batch, answer in zip(batches, answers, strict=True):
        assert answer["message_ids"] == [by_id[message["external_id"]] for message in batch]


# -- times


def test_a_messages_own_time_is_kept(client):
    for number, (sent, kept) in enumerate(
        {
            "2024-02-29T12:00:00": "2024-02-29T12:00:00+00:00",  # without an offset: UTC
            "2024-02-29T23:59:00-23:59": "2024-03-01T23:58:00+00:00",
            "0001-01-01T00:00:00Z": "0001-01-01T00:00:00+00:00",
            "9999-12-31T23:59:59.999999Z": "9999-12-31T23:59:59.999999+00:00",
        }.items()
    ):
        append(client, f"s{number}", [said("I drink tea.", created_at=sent)])
        assert read_all(client, f"/api/sessions/s{number}/messages")[0]["created_at"] == kept
        session = good(client.get(f"/api/sessions/s{number}"))
        assert session["updated_at"] == kept
        assert session["created_at"] == kept or kept.startswith("9999")  # it was made before that
        assert good(client.get(f"/api/search?session_id=s{number}&q=tea"))["results"][0]["created_at"] == kept


def test_the_order_is_the_one_sent_whatever_the_times_say(client):
    before = datetime.now(UTC)
    append(client, "now", [said("x"), said("y", created_at=None)])
    for item in read_all(client, "/api/sessions/now/messages"):
        assert before <= datetime.fromisoformat(item["created_at"]) <= before + timedelta(minutes=1)
    append(client, "s", [said(str(year), created_at=f"{year}-01-01") for year in (2024, 2020, 2022)])
    assert contents(client, "s") == ["2024", "2020", "2022"]
    session = good(client.get("/api/sessions/s"))
    assert (session["created_at"][:4], session["updated_at"][:4]) == ("2020", "2024")


# -- what is refused, and that nothing of it stays


def test_one_bad_message_refuses_the_call(shared):
    bad: dict[str, list[Any]] = {
        "messages.1": ["y"],
        "messages.1.extra": [said("x", extra=wrong) for wrong in ([], {"a": "nul\0"}, {"a": float("inf")})],
        "messages.1.created_at": [
            said("y", created_at=wrong)
            for wrong in ("0001-01-01T00:00:00+14:00", "2023-02-29T00:00:00Z", "", 1_700_000_000)
        ],
        "messages.1.content": [said(""), {"role": "user"}, said("nul\x00"), said("half \ud83c")],
        "messages.1.role": [said("y", "robot")],
        "messages.1.name": [said("y", name="")],
        "messages.1.external_id": [said("y", external_id="x" * 257)],
    }
    bodies = [({"messages": [said("x"), one]}, param) for param, wrong in bad.items() for one in wrong]
    bodies += [({}, "messages"), ({"messages": []}, "messages")]
    bodies += [({"messages": [said("x")], "user_id": "x" * 257}, "user_id")]
    for body, param in bodies:
        refused = error(shared.post("/api/sessions/s/messages", json=body), 422)
        assert refused["param"] == param and param in refused["message"]
    assert shared.get("/api/sessions/s").status_code == 404
