"""Trying a summary prompt on a conversation: what it would give, with nothing stored."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from app import services_of
from memory.summary.updates import BATCH_TOKENS
from tests.model_server import Delay, ModelServer
from tests.remembering import Talk
from tests.resources import digest_of, fact, good, rows_of
from tests.resources import said as words
from tests.talking import chat, failed, meanwhile

BRIEF = "Be brief.{% if first %} Begin.{% endif %}"


@pytest.fixture
def talk(model_app: Flask, model_server: ModelServer) -> Talk:
    return Talk(model_app, model_server)


def preview(talk: Talk, **body: Any) -> dict[str, Any]:
    return good(talk.client.post(f"{talk.address}/preview", json=body))


def material(talk: Talk) -> str:
    """What the mini model was given last."""
    return talk.digests()[-1][1]["content"]


def test_a_text_gives_the_conversation_another_summary_and_nothing_is_stored(talk: Talk) -> None:
    talk.server.mini.queue(digest_of(data=["The stored one."]))
    for message in ("I like tea", "And coffee"):
        chat(talk.client, message, session_id="s")
        talk.digest()
    before, stored = talk.summary(), rows_of(services_of(talk.app))
    talk.server.mini.queue(digest_of(fact("Likes tea", 1, "I like tea"), topic="Drinks", data=["Both."]))
    made = preview(talk, text=BRIEF)
    assert made["sections"]["topic"] == "Drinks" and made["sections"]["data"] == ["Both."]
    assert (made["prompt"], made["since"], made["through"], made["current_version"]) == (None, 0, 4, 2)
    assert made["model"] == "mini-model" and made["tokens"] > 0
    assert made["usage"]["calls"] == 1 and made["usage"]["prompt_tokens"] > 0
    assert talk.digests()[-1][0]["content"].startswith("Be brief. Begin.")
    assert "I like tea" in material(talk) and "And coffee" in material(talk)
    assert "The stored one" not in material(talk)
    assert talk.summary() == before and rows_of(services_of(talk.app)) == stored


def test_a_prompt_is_tried_by_its_name(talk: Talk) -> None:
    talk.client.put("/api/prompts/brief", json={"text": BRIEF})
    chat(talk.client, "I like tea", session_id="s")
    assert preview(talk, prompt="brief")["prompt"] == "brief@1"
    assert talk.digests()[-1][0]["content"].startswith("Be brief.")
    assert preview(talk)["prompt"] == "summary"


def test_what_is_too_long_for_one_call_is_read_on_from_the_earliest_version_that_lets_it(talk: Talk) -> None:
    long = "and so on " * 400
    for number in range(1, 7):
        talk.hear(
            f"w{number} {long}", words(f"answer {number}", "assistant"), reply=digest_of(data=[f"up to {number}"])
        )
    made = preview(talk, text=BRIEF)
    tokens = [message["tokens"] for message in talk.client.get("/api/sessions/s/messages").json["items"]]
    assert 0 < made["since"] < 5 and made["through"] == 12
    given = material(talk)
    assert f"up to {made['since']}" in given and f"w{made['since']} " not in given and f"w{made['since'] + 1} " in given
    assert sum(tokens[2 * made["since"] :]) <= BATCH_TOKENS < sum(tokens[2 * made["since"] - 2 :])


def test_a_long_import_that_was_never_summarised_shows_its_first_step(talk: Talk) -> None:
    talk.say(*(f"w{number} " + "and so on " * 400 for number in range(1, 11)))
    made = preview(talk, text=BRIEF)
    assert made["since"] == made["current_version"] == 0 and 0 < made["through"] < 10
    assert "w1 " in material(talk) and "w10 " not in material(talk)
    talk.edit("Mine")  # which covers everything
    assert preview(talk, text=BRIEF)["through"] > 0 and "w1 " in material(talk)


def test_the_database_is_free_while_the_mini_model_works(talk: Talk) -> None:
    chat(talk.client, "I like tea", session_id="s")
    talk.server.mini.queue(Delay(0.5))
    with meanwhile(lambda: preview(Talk(talk.app, talk.server), text=BRIEF)):
        talk.server.wait_for_requests(2)
        assert services_of(talk.app).database.in_use == 0


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"text": "{% for x in"}, 422, "bad_prompt", "text"),
        ({"text": "{{ secret }}"}, 422, "undefined_in_prompt", "text"),
        ({"text": "Brief.", "prompt": "summary"}, 422, "invalid_fields", "text"),
        ({"prompt": "nowhere"}, 404, "prompt_not_found", "prompt"),
        ({"prompt": "repair"}, 422, "not_a_summary_prompt", "prompt"),
    ],
)
def test_what_can_not_be_a_summary_prompt_is_refused_as_when_it_is_stored(
    talk: Talk, body: dict[str, Any], status: int, code: str, param: str
) -> None:
    chat(talk.client, "I like tea", session_id="s")
    assert failed(talk.client.post(f"{talk.address}/preview", json=body), status, code)["param"] == param
    assert talk.digests() == []
