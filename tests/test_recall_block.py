"""POST /api/recall: what a prompt shows of the memory, for an application that calls a model of its own."""

import json
import random
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from memory import tokens
from tests.http import append, chat, error, good, said
from tests.knowledge import digest_of
from tests.model_server import prompts
from tests.recall import last, talker

QUESTION = "Where is the zeppelin?"


@pytest.fixture
def client(make_app, model_server, monkeypatch):
    client = talker(make_app, model_server, monkeypatch, system_prompt="You are a pilot.")
    append(client, "hangar", [said("The zeppelin is in the hangar.", name="Ida"), said("Noted.")], user_id="ada")
    append(client, "others", [said("My zeppelin is at sea.")], user_id="bob")
    good(client.post("/api/facts", json={"text": "The zeppelin is silver.", "user_id": "ada", "pinned": True}))
    home = {"patch": [{"op": "add", "path": "/home", "value": "Tallinn"}]}
    good(client.patch("/api/users/ada/profile", json=home))
    good(client.post("/api/examples", json={"user_id": "ada", "input": QUESTION, "output": "In short: up."}))
    return client


def recall(client: FlaskClient, message: str = QUESTION, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = good(client.post("/api/recall", json={"message": message, **more}))
    return answer


@pytest.mark.parametrize("whose", [{"user_id": "ada"}, {"user_id": "ada", "session_id": "hangar"}])
def test_the_block_has_what_a_turn_shows(client, model_server, whose):
    before = good(client.get("/api/users/ada"))
    got = recall(client, **whose)
    assert prompts(model_server) == []
    assert good(client.get("/api/users/ada")) == before
    turn = chat(client, QUESTION, temporary=True, **whose)
    head, quoted = got["block"].split("\n\n<memory ")
    assert f"You are a pilot.\n\n{head}" == prompts(model_server)[-1][0]["content"]
    assert last(model_server).endswith(f"<memory {quoted}\n\n{QUESTION}")
    assert got["memory"] == turn["memory"]
    assert got["tokens"] == tokens.estimate(got["block"])
    for shown in ("silver", "Tallinn", "In short: up.", *([] if "session_id" in whose else ["hangar"])):
        assert shown in got["block"]
    assert "sea" not in json.dumps(got)


def test_its_tokens_are_never_exceeded(client):
    draw = random.Random(7)
    for number in range(30):
        append(client, f"s{number}", [said("A zeppelin " + "flies on " * draw.randint(1, 60))], user_id="ada")
    full = recall(client, user_id="ada")
    sizes = []
    for budget in range(180, full["tokens"] + 100, 20):
        answer = client.post("/api/recall", json={"message": QUESTION, "user_id": "ada", "tokens": budget})
        if answer.status_code == 200:
            assert good(answer)["tokens"] <= budget
            sizes.append(len(good(answer)["memory"]["excerpts"]))
        else:
            assert error(answer, 422)["code"] == "tokens_too_few" and not sizes
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1] == len(full["memory"]["excerpts"])


def test_every_message_is_in_the_block_or_among_those_that_the_program_sends(talk):
    """A program with a model of its own only appends, so no turn ever compacts the session."""
    for number in range(1, 20):
        talk.hear(f"m{number}", said(f"r{number}", "assistant"), reply=digest_of(topic=f"through {2 * number}"))
        before = good(talk.client.get(f"/api/sessions/{talk.session}"))
        got = recall(talk.client, "And now?", session_id=talk.session)
        shown = re.search(r"^Topic: through (\d+)$", got["block"], re.M)
        covered = int(shown[1]) if shown else 0
        tail = got["memory"]["tail"]["messages"]
        assert 2 * number - tail <= covered and tail <= 12
        assert bool(shown) == (2 * number > 12) == bool(got["memory"]["summary"]["head_version"])
        assert good(talk.client.get(f"/api/sessions/{talk.session}")) == before
    reply = chat(talk.client, "And now?", session_id=talk.session, temporary=True)
    assert reply["memory"]["tail"] == got["memory"]["tail"]


def test_whose_memory_it_is_must_be_said(client):
    assert error(client.post("/api/recall", json={"message": QUESTION}), 422)["code"] == "owner_needed"
    assert "hangar" not in recall(client, user_id="nobody")["block"]


def test_a_session_may_begin_with_the_message(client):
    """An application asks before it stores the first message; another person's session is a new one, too."""
    assert recall(client, user_id="ada", session_id="new")["block"] == recall(client, user_id="ada")["block"]
    theirs = recall(client, user_id="bob", session_id="hangar")
    assert theirs["block"] == recall(client, user_id="bob")["block"] and "hangar" not in theirs["block"]
    assert recall(client, session_id="never-seen")["memory"]["excerpts"] == []
    assert error(client.get("/api/sessions/new?user_id=ada"), 404)["code"] == "session_not_found"


def test_what_was_said_just_before_tells_what_a_message_refers_to(client):
    before = {"role": "user", "content": QUESTION}
    (excerpt,) = recall(client, "And its hangar?", user_id="ada", history=[before])["memory"]["excerpts"]
    assert excerpt["session_id"] == "hangar"
