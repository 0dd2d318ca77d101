"""At a model server that answers one request at a time, a turn does not wait for the summary of an earlier turn."""

import threading

import pytest

from app import engine_of
from tests.model_server import Delay, Endless, at, digest

MAKES_WAY_MAX = 3  # times that one summary makes way for turns


@pytest.fixture
def serve(make_app, model_server):
    """Return a client of an application whose jobs run in the background, as soon as a turn has ended."""

    def serve(**settings):
        app = make_app(**at(model_server, summary_debounce=0.0, model_timeout=30.0, **settings))
        engine_of(app).start()
        return app.test_client()

    return serve


def take_turn(client, text):
    reply = client.post("/api/chat", json={"session_id": "s", "user_id": "ada", "message": text})
    assert reply.status_code == 200, reply.json
    return reply.json["reply"]


def mini_requests(model_server):
    return [request for request in list(model_server.requests) if request.model == "mini"]


@pytest.mark.slow
def test_a_summary_makes_way_for_the_turns_of_its_person(serve, model_server):
    summaries = [Endless() for _ in range(MAKES_WAY_MAX)]
    model_server.mini.queue(*summaries)
    client = serve(openai_api_key="")
    take_turn(client, "My name is Ada.")
    for number, summary in enumerate(summaries):
        assert summary.asked.wait(10)
        # The only slot of the server is free when the reader of the summary has left.
        model_server.main.queue(Delay(summary.left, f"Answer {number}."))
        assert take_turn(client, f"And now, number {number}?") == f"Answer {number}."
    assert model_server.wait_for(lambda: len(mini_requests(model_server)) > MAKES_WAY_MAX)
    streamed = [request.body["stream"] for request in mini_requests(model_server)]
    assert streamed[: MAKES_WAY_MAX + 1] == [True] * MAKES_WAY_MAX + [False], "the next one is finished"


def test_a_summary_waits_for_the_turn_of_another_session_of_its_person(serve, model_server):
    client, release, in_time = serve(openai_api_key=""), threading.Event(), list[bool]()
    model_server.main.queue(Delay(release, "Once upon a time."))
    model_server.mini.default = lambda body: in_time.append(release.is_set()) or digest(body)
    body = {"session_id": "other", "user_id": "ada", "message": "Tell me a long story."}
    turn = threading.Thread(target=client.post, args=("/api/chat",), kwargs={"json": body})
    turn.start()
    model_server.wait_for_requests(1)
    take_turn(client, "My name is Ada.")
    assert not model_server.wait_for(lambda: bool(in_time), timeout=1.0)
    release.set()
    turn.join()
    assert model_server.wait_for(lambda: bool(in_time)) and all(in_time)


def test_summaries_of_a_hosted_server_make_way_for_nobody(serve, model_server):
    client = serve(openai_api_key="a-key")
    take_turn(client, "My name is Ada.")
    assert model_server.wait_for(lambda: bool(mini_requests(model_server)))
    assert mini_requests(model_server)[0].body["stream"] is False
