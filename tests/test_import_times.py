"""Times of imported messages: read where they can be one time only, else named in the answer."""

import json
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.application import run_command
from tests.http import append, error, good, said

READ = {
    "31.12.2025": "2025-12-31T00:00:00",
    "31.12.2025, 10:00": "2025-12-31T10:00:00",
    "12/31/2025 10:00": "2025-12-31T10:00:00",
    "Dec 31, 2025": "2025-12-31T00:00:00",
    "31/12/2025": "2025-12-31T00:00:00",
    "2025/12/31 10:00:05": "2025-12-31T10:00:05",
    "December 31, 2025 at 10:00 PM": "2025-12-31T22:00:00",
    "Wed, 31 Dec 2025 10:00:00 +0100": "2025-12-31T09:00:00",
    "Wed Dec 31 2025 10:00:00 GMT+0100 (Central European Standard Time)": "2025-12-31T09:00:00",
    "31. Dezember 2025 um 10:00": "2025-12-31T10:00:00",
    "mar. 30 déc. 2025 à 10:00": "2025-12-30T10:00:00",
    "12/31/25, 10:00\u202fpm": "2025-12-31T22:00:00",
    "1767175200": "2025-12-31T10:00:00",
    "1767175200000": "2025-12-31T10:00:00",
    "5/5/2025": "2025-05-05T00:00:00",
    "2025年12月31日 10:00": "2025-12-31T10:00:00",
}
UNREAD = (
    "05/06/2025",
    "13/13/2025",
    "yesterday",
    "31.02.2025",
    "10:00",
    "Dec 2025",
    "1404/10/10",
    "31 or 32 Dec 2025",
    "Version 1.2.3",
)


def imported(client: FlaskClient, *times: Any, **more: Any) -> tuple[list[str], list[str]]:
    """The times that messages with these times have, and those that the answer names as unread."""
    messages = [{"role": "user", "content": f"Tea {n}", "created_at": time} for n, time in enumerate(times)]
    body = json.dumps([{"id": "tea", "messages": messages, **more}]).encode()
    return sent(client, body)


def sent(client: FlaskClient, body: bytes) -> tuple[list[str], list[str]]:
    kind = "application/octet-stream"
    answer = good(client.post("/api/import", query_string={"user_id": "ada"}, data=BytesIO(body), content_type=kind))
    (chat,) = good(client.get("/api/sessions", query_string={"user_id": "ada"}))["items"]
    stored = good(client.get(f"/api/sessions/{chat['id']}/messages", query_string={"user_id": "ada"}))["items"]
    return [message["created_at"].removesuffix("+00:00") for message in stored], answer["unread_times"]


def test_times_that_can_be_one_time_only_are_read(client):
    assert imported(client, *READ) == (list(READ.values()), [])


def test_times_that_are_none_or_could_be_two_are_named(client):
    times, unread = imported(client, *UNREAD, "31.12.2025", UNREAD[0], None)
    assert unread == list(UNREAD)
    assert times[len(UNREAD)] == "2025-12-31T00:00:00" and all(time > "2026" for time in times[: len(UNREAD)])


def test_the_time_of_the_conversation_stands_in_for_them_and_at_most_twenty_are_named(client):
    days = [f"day {number}" for number in range(30)]
    assert imported(client, *days, create_time=1767175200) == (["2025-12-31T10:00:00"] * 30, days[:20])


@pytest.mark.parametrize(
    ("heading", "time", "unread"),
    [
        ("## user, 31.12.2025 10:00", "2025-12-31T10:00:00", []),
        ("## You (Dec 31, 2025, 10:00 AM)", None, []),  # in brackets stands anything, as the model's name
        ("### user - 2025-12-31T10:00:00Z", "2025-12-31T10:00:00", []),
        ("## user, 05/06/2025", None, ["05/06/2025"]),
        ("## user, number 3", None, []),
    ],
)
def test_headings_of_markdown(client, heading, time, unread):
    times, named = sent(client, f"{heading}\n\nWhich tea?\n".encode())
    assert named == unread and (times == [time] if time else times[0] > "2026")


def test_the_command_names_them(client, tmp_path):
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "Hi", "created_at": "05/06/2025"}))
    assert (
        "Times that could not be read: 05/06/2025."
        in run_command(client.application, "import", "--user", "ada", str(path)).output
    )


@pytest.mark.parametrize("time", ["31.12.2025", "12/31/2025 10:00", "Dec 31, 2025", 1767175200, "soon"])
def test_appended_messages_are_refused_instead(client, time):
    body = {"messages": [said("Hi"), said("There", created_at=time)]}
    refused = error(client.post("/api/sessions/s/messages", json=body), 422)
    assert list(refused["fields"]) == ["messages.1.created_at"]
    assert append(client, "s", [said("Hi", created_at="2025-12-31T10:00:00Z")])
