"""What the main model is sent, byte for byte: a head that stays, a tail word for word, and what changes at the end."""

from __future__ import annotations

import re

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.conftest import MakeApp
from tests.model_server import ModelServer
from tests.talking import at, chat, prompts, question


@pytest.fixture
def client(model_app: Flask) -> FlaskClient:
    return model_app.test_client()


def test_the_whole_prompt_of_three_turns(client: FlaskClient, model_server: ModelServer) -> None:
    model_server.main.queue("Noted.", "Rex.")
    chat(client, "  My dog is <b>Rex</b> &c.  ", session_id="s", system_prompt="Be brief.")
    chat(client, "What is he called?", session_id="s", system_prompt="Be brief.")
    chat(client, "Good.", session_id="s", system_prompt="Be brief.")
    *before, last = prompts(model_server)[2]
    assert before == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "  My dog is <b>Rex</b> &c.  "},
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": "What is he called?"},
        {"role": "assistant", "content": "Rex."},
    ]
    assert last["role"] == "user"
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, \w+day"
    assert re.fullmatch(rf'<memory now="{stamp}">\n</memory>\n\nGood\.', last["content"])


def test_consecutive_prompts_share_all_but_the_last_message(make_app: MakeApp, model_server: ModelServer) -> None:
    """Between folds each prompt begins with the one before, save for that one's volatile text."""
    client = make_app(**at(model_server, tail_messages_max=8, summary_mode="inline")).test_client()
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])}"
    versions = [
        chat(client, f"Number {n} of my talk.", session_id="s", user_id="ann")["memory"]["summary"]["head_version"]
        for n in range(20)
    ]
    sent = prompts(model_server)
    folds = 0
    for number in range(1, 20):
        before, after = sent[number - 1], sent[number]
        if versions[number] != versions[number - 1]:
            folds += 1
            assert after[0] != before[0]
            continue
        assert after[: len(before) - 1] == before[:-1]
        assert after[len(before) - 1 : -1] == [
            {"role": "user", "content": question(before)},
            {"role": "assistant", "content": f"Answer to {question(before)}"},
        ]
    assert folds == 4  # every fourth turn: the tail grows from 2 to 8 messages
    recalled = ["<chat " in prompt[-1]["content"] for prompt in sent]
    assert sum(recalled) > 5, "what was recalled stands in the last message, and in the next prompt no more"
    assert not any("<memory now" in message["content"] for prompt in sent for message in prompt[:-1])
