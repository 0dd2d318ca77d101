"""While models work no turn holds a connection to the database, so a few connections serve any number of turns; and of
these few only as many are used as there are at once."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Connection

from app import engine_of
from tests.application import statements
from tests.http import ask, chat, meanwhile
from tests.jobs import jobs_done
from tests.model_server import Delay, at
from tests.openai import post, talk
from tests.processes import eventually

TURNS = 12  # of each sort; more than there would be connections, if each held one


@pytest.mark.parametrize("sort", ["streamed", "completions", "temporary"])
def test_turns_hold_no_connection_while_their_models_work(model_app, model_server, sort):
    database = engine_of(model_app).database
    answered = threading.Event()
    model_server.main.default = lambda body: Delay(answered, "At last.")
    with ExitStack() as stack:
        answers = [stack.enter_context(meanwhile(_turn(model_app, sort, number))) for number in range(TURNS)]
        try:
            model_server.wait_for_requests(TURNS, 30.0)
            assert eventually(lambda: database.engine.pool.checkedout() == 0), (
                "a turn that waits for its model holds a connection"
            )
        finally:
            answered.set()
    for (text,) in answers:
        assert "At last." in text or ('"At"' in text and '" last."' in text), text  # whole, or piece by piece
    assert eventually(lambda: database.engine.pool.checkedout() == 0)  # the thread that renews leases may be at it


def test_a_search_reads_in_the_connection_of_its_caller(app, client, monkeypatch):
    """One that took a second connection could wait for it while all others wait likewise."""
    engine, held = engine_of(app), list[int]()
    search = engine.index.search

    def noting(*params: Any, connection: Connection, **more: Any) -> Any:
        held.append(engine.database.engine.pool.checkedout())
        return search(*params, connection=connection, **more)

    monkeypatch.setattr(engine.index, "search", noting)
    for message in ("I work at a bakery.", "What did I say about the bakery?"):
        ask(client, message, session_id="s", user_id="ana")
    assert client.get("/api/search?q=bakery&user_id=ana").json["results"]
    assert len(held) >= 2 and set(held) == {1}


def _turn(app: Flask, sort: str, number: int) -> Callable[[], str]:
    """Takes a turn, and reads what it is answered to its end."""
    client, streamed = app.test_client(), sort.endswith("streamed")
    if sort.startswith("completions"):
        return lambda: post(client, talk("Hello?"), session=f"s{number}", user=f"u{number}", stream=streamed).text
    if sort == "temporary":
        return lambda: ask(client, "Hello?", user_id=f"u{number}", temporary=True).text
    return lambda: ask(client, "Hello?", session_id=f"s{number}", user_id=f"u{number}", stream=streamed).text


def test_a_warm_turn_that_searches_sends_at_most_ten_statements_in_three_transactions(make_app, model_server):
    app = make_app(**at(model_server, summary_debounce=3.0))
    client = app.test_client()
    chat(client, "My sister lives in Tartu and is a baker.", session_id="s", user_id="ana")
    for _ in range(8):
        chat(client, "The weather is fine.", session_id="s", user_id="ana")
    jobs_done(client)
    for _ in range(2):  # now the prompt shows a summary in the place of the first messages
        chat(client, "The weather is bad.", session_id="s", user_id="ana")
    with statements(engine_of(app).database) as sent:
        answer = chat(client, "What does my sister in Tartu do?", session_id="s", user_id="ana")
    assert answer["memory"]["excerpts"], "it searches"
    assert (len(sent) <= 10, len(sent.transactions)) == (True, 3), "\n".join(sent)
