"""Reading what happened: how each turn ended, whether a reply is being written, and messages around one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, update

from app import engine_of
from models import SessionRow, TurnRow
from tests.application import an_app
from tests.http import answering, append, ask, chat, failed, good, meanwhile, stored, stream
from tests.http import said as words
from tests.model_server import Dictation, Status, at
from tests.processes import eventually

pytestmark = pytest.mark.scripted

TURNS = "/api/sessions/s/turns"


def test_what_is_said_so_far_can_be_read_while_a_reply_is_written(make_app, model_server):
    """It stays when the reply breaks off, and goes when the message is erased."""
    app = make_app(**at(model_server, model_timeout=60.0))
    reply = Dictation()
    model_server.main.queue(reply)

    def turn() -> dict[str, Any]:
        return dict(good(app.test_client().get(TURNS))["items"][0])

    def reads(words: str) -> None:
        assert eventually(lambda: turn()["so_far"] == words, pause=0.05)
        assert turn()["state"] == "answering"

    with meanwhile(lambda: stream(app.test_client(), "Hello", session_id="s")):
        assert reply.asked.wait(20)
        reply.say("Good ")
        reads("Good ")
        reply.say("morning")
        reads("Good morning")
        reply.end()
    assert (turn()["so_far"], turn()["state"]) == (None, "finished")
    with engine_of(app).database.write() as tx:  # as if the server had been killed
        tx.execute(update(TurnRow).values(so_far="Good mor", finished_at=None, reply_message_id=None))
    assert (turn()["so_far"], turn()["state"]) == ("Good mor", "broken_off")
    good(app.test_client().delete(f"/api/sessions/s/messages/{turn()['user_message_id']}"))
    with engine_of(app).database.read() as tx:
        assert tx.scalar(select(TurnRow.so_far)) is None


def test_a_turn_that_broke_off_says_so_until_it_is_taken_up(app, client, model_server):
    model_server.main.queue(Status(401))
    ask(client, "one", session_id="s")
    with answering(model_server, app, "two", session_id="s"):
        answering_, turn = good(client.get(TURNS))["items"]
        assert answering_["state"] == "answering" and good(client.get("/api/sessions/s"))["busy"] is True
        assert turn["state"] == "broken_off" and turn["user_message_id"] == stored(client, "s")[0]["id"]
        nothing = ("message_id", "model", "finish_reason", "usage", "finished_at")
        assert all(turn[name] is None for name in nothing)
        assert good(client.get(f"{TURNS}/{turn['user_message_id']}"))["memory"] is None
    model_server.main.queue(Status(401))
    ask(client, "three", session_id="s")
    chat(client, "three", session_id="s")
    assert [turn["state"] for turn in good(client.get(TURNS))["items"]] == ["finished", "finished", "broken_off"]


def test_a_turn_whose_process_does_not_live_on_broke_off(app, client, model_server):
    with answering(model_server, app, "one", session_id="s"):
        with engine_of(app).database.write() as tx:
            tx.query(SessionRow).one().lease_until = datetime.now(UTC) - timedelta(seconds=1)
        assert good(client.get(TURNS))["items"][0]["state"] == "broken_off"
        assert good(client.get("/api/sessions/s"))["busy"] is False


@pytest.fixture(scope="module")
def ten(tmp_path_factory, migrated):
    """A session `s` of ten messages, and their ids."""
    with an_app(tmp_path_factory.mktemp("around"), migrated) as app:
        client = app.test_client()
        yield client, append(client, "s", [words(f"m{number}") for number in range(1, 11)])["message_ids"]


def page(client: FlaskClient, **query: Any) -> tuple[list[int], str | None, str | None]:
    """The positions on a page, and its cursors backwards and forwards."""
    body = good(client.get("/api/sessions/s/messages", query_string=query))
    return [message["position"] for message in body["items"]], body.get("previous_cursor"), body["next_cursor"]


def test_a_page_around_a_message_has_it_in_its_middle_as_far_as_there_are_messages(ten):
    for at_, limit, first, last in [
        (5, 3, 4, 6),
        (5, 4, 4, 7),
        (5, 1, 5, 5),
        (1, 3, 1, 3),
        (9, 5, 6, 10),
        (2, 5, 1, 5),
        (5, 50, 1, 10),
    ]:
        client, ids = ten
        positions, before, after = page(client, around=ids[at_ - 1], limit=limit)
        assert positions == list(range(first, last + 1)) and at_ in positions
        assert (before is None) is (first == 1) and (after is None) is (last == 10)
        if before is not None:
            assert page(client, cursor=before, order="desc")[0] == list(range(first - 1, 0, -1))
        if after is not None:
            assert page(client, cursor=after)[0] == list(range(last + 1, 11))


def test_a_message_that_is_not_there_has_no_page_around_it(ten):
    client, ids = ten
    append(client, "t", [words("elsewhere")])
    for wrong in (10**6, stored(client, "t")[0]["id"]):
        error = failed(client.get(f"/api/sessions/s/messages?around={wrong}"), 404, "message_not_found")
        assert error["param"] == "around"
    for query in ({"order": "desc"}, {"branch": 1}, {"cursor": "WzFd"}):
        answer = client.get("/api/sessions/s/messages", query_string={"around": ids[0], **query})
        assert failed(answer, 422, "invalid_fields")["param"] == "around"
