"""What the main model is sent: a prefix that stays, recent messages word for word, and compactions between them.

(That every message is in the summary or among the recent messages, whatever happens: test_message_versions.)
"""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import engine_of
from memory import tokens
from tests.http import append, ask, chat, failed, good, history, jobs, sessions, stored, summary
from tests.http import said as words
from tests.knowledge import digest_of
from tests.model_server import Body, Json, Prompt, Status, at, prompts, question


def covering(body: Body) -> Any:
    """A mini model whose summary says which messages it rests on: `through 7` when the last it was shown is the 7th."""
    return digest_of(topic=f"through {digested(body['messages'])[-1]}")


def covered(prompt: Prompt) -> int:
    """The last message that the summary in a prompt's head stands in for."""
    found = re.search(r"^Topic: through (\d+)$", prompt[0]["content"], re.M)
    return int(found.group(1)) if found else 0


def digested(prompt: Prompt) -> list[int]:
    return [int(position) for position in re.findall(r"^\[(\d+)\] ", prompt[1]["content"], re.M)]


def positions(client: FlaskClient, session_id: str, prompt: Prompt) -> list[int]:
    """Where the messages of a prompt's tail stand in their session."""
    place = {(m["role"], m["content"]): m["position"] for m in stored(client, session_id)}
    return [place[(message["role"], message["content"])] for message in prompt[1:-1]]


def test_the_whole_prompt_of_three_turns(model_app, model_server):
    client = model_app.test_client()
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


def test_consecutive_prompts_share_all_but_the_last_message(make_app, model_server):
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


@pytest.mark.parametrize(("least", "most"), [(0, 4), (2, 6), (4, 6)])
def test_a_fold_keeps_the_last_messages_word_for_word(make_app, model_server, least, most):
    limits = {"tail_messages_min": least, "tail_messages_max": most}
    client = make_app(**at(model_server, summary_mode="inline", **limits)).test_client()
    model_server.mini.default = covering
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])}"
    lengths, heads = [], []
    for number in range(12):
        memory = chat(client, f"m{number}", session_id="s")["memory"]
        prompt = prompts(model_server)[-1]
        assert positions(client, "s", prompt) == list(range(covered(prompt) - least + 1 or 1, 2 * number + 1)) or (
            not covered(prompt)
        )
        lengths.append(memory["tail"]["messages"])
        heads.append(memory["summary"]["head_version"])
    folds = [lengths[n] for n in range(1, 12) if heads[n] != heads[n - 1]]
    assert len(folds) >= 3 and set(folds) == {least} and max(lengths) == most
    assert lengths[:3] == [0, 2, 4]


def test_the_summary_is_updated_every_so_many_turns(make_app, model_server):
    app = make_app(**at(model_server, summary_every=3))
    for number in range(6):
        chat(app.test_client(), f"m{number}", session_id="s")
        engine_of(app).job_queue.run_due(["summary"])
    assert [len(digested(prompt)) for prompt in prompts(model_server, "mini")] == [6, 6]


def test_a_burst_of_turns_costs_one_call_that_is_made_a_turn_before_the_fold_needs_it(make_app, model_server):
    app = make_app(**at(model_server, summary_debounce=30.0, tail_messages_max=8))
    client = app.test_client()
    model_server.mini.default = covering
    tails = []
    for number in range(14):
        tails.append(chat(client, f"m{number}", session_id="s")["memory"]["tail"]["messages"])
        (job,) = jobs(client)
        due = (datetime.fromisoformat(job["run_at"]) - datetime.now(UTC)).total_seconds()
        pressing = number in (3, 7, 11)  # the tail is full; else it waits for the pause after the latest turn
        assert due <= 0 if pressing else 25 < due <= 30
        assert engine_of(app).job_queue.run_due(["summary"]) == pressing
    assert tails == [0, 2, 4, 6, 8, 2, 4, 6, 8, 2, 4, 6, 8, 2]
    assert [len(digested(prompt)) for prompt in prompts(model_server, "mini")] == [8, 8, 8]


def size(prompt: Prompt) -> int:
    return sum(tokens.estimate_message(message["content"]) for message in prompt)


def test_the_context_is_never_exceeded_while_the_mini_model_is_down(make_app, model_server):
    limit = 2500
    app = make_app(**at(model_server, context_tokens=limit, tail_messages_max=6, summary_mode="inline"))
    client = app.test_client()
    model_server.mini.default = lambda body: Status(401)
    model_server.main.default = lambda body: f"Answer to {question(body['messages'])[:4]} " + "tea and more tea " * 15
    dropped = []
    for number in range(16):
        words = f"m{number} " + f"the tea of day {number} " * 14
        answer = chat(client, words, session_id="s", user_id="ann")
        prompt = prompts(model_server)[-1]
        assert size(prompt) <= limit
        tail = positions(client, "s", prompt)
        dropped.append(answer["memory"]["tail"]["dropped"])
        assert tail == list(range(dropped[-1] + 1, 2 * number + 1))  # the newest stay
        assert answer["memory"]["tail"]["messages"] == len(tail)
    assert dropped[0] == 0 and dropped[-1] > 5
    assert summary(client, "s")["error"]
    model_server.mini.default = covering
    client.post("/api/sessions/s/summary/refresh")
    engine_of(app).job_queue.run_due(["summary"])
    assert chat(client, "And now?", session_id="s", user_id="ann")["memory"]["tail"]["dropped"] == 0
    assert covered(prompts(model_server)[-1]) == 32


def test_a_prompt_that_the_model_refuses_after_a_compaction_keeps_the_summary_when_it_is_shortened(
    make_app, model_server
):
    limits = {"context_tokens": 3000, "tail_messages_min": 8, "tail_messages_max": 100, "tail_tokens_max": 50_000}
    client = make_app(**at(model_server, summary_mode="inline", **limits)).test_client()
    model_server.mini.default = covering
    append(client, "s", [{"role": "user", "content": f"m{n} " + "word " * 150} for n in range(30)])
    chat(client, "Hello", session_id="s")
    model_server.main.queue(Json({"error": {"message": "maximum context length is 1200 tokens", "code": 400}}))
    chat(client, "And now?", session_id="s")
    refused, sent = prompts(model_server)[-2:]
    assert covered(refused) == covered(sent) > 0
    assert len(sent) < len(refused)


def test_a_small_window_shows_the_last_messages_before_anything_that_may_be_recalled(make_app, model_server):
    client = make_app(**at(model_server, context_tokens=900)).test_client()
    for number in range(12):
        model_server.main.queue(f"Answer {number}. " + "word " * 20)
        chat(client, f"Question {number}? " + "word " * 20, session_id="s", user_id="ann")
    assert size(prompts(model_server)[-1]) <= 900
    shown = [message["content"].partition(" word")[0] for message in prompts(model_server)[-1][1:-1]]
    assert shown[-2:] == ["Question 10?", "Answer 10."]


@pytest.mark.parametrize("spare", [400, 800])
def test_a_message_that_nearly_fills_the_context_leaves_out_what_was_recalled(make_app, model_server, spare):
    client = make_app(**at(model_server, context_tokens=4000)).test_client()
    append(client, "old", [words(f"Tea number {n}: " + "green tea leaves " * 20) for n in range(8)], user_id="ann")
    empty = chat(client, "Hello", session_id="new", user_id="ann", recall="off", temporary=False)
    assert empty["memory"]["excerpts"] == []
    room = 4000 - size(prompts(model_server)[-1]) - 60 - spare
    question = "Which green tea? " + "x" * (4 * room - 107)
    answer = chat(client, question, session_id="big", user_id="ann", recall="always")
    assert size(prompts(model_server)[-1]) <= 4000
    shown = prompts(model_server)[-1][-1]["content"].count("<chat ")
    assert shown == len(answer["memory"]["excerpts"]) and bool(shown) is (spare > 520), "the excerpt is one block"


def test_a_message_too_large_for_any_prompt_is_refused_and_not_stored(make_app, model_server):
    client = make_app(**at(model_server, context_tokens=1000)).test_client()
    chat(client, "Hello", session_id="s")
    for text in ("x" * 4000, "茶" * 1300, "y" * 100_001):
        for session_id in ("s", "new"):
            error = failed(ask(client, text, session_id=session_id), 413, "message_too_large")
            assert error["param"] == "message" and "Nothing was stored" in error["message"]
    for session_id in ("s", "new"):  # short, but what is always sent beside it leaves no room
        failed(ask(client, "Hi", session_id=session_id, system_prompt="z" * 4000), 413, "message_too_large")
    assert len(history(client, "s")) == 2 and [session["id"] for session in sessions(client)] == ["s"]
    assert len(prompts(model_server)) == 1
    assert chat(client, "Hello again", session_id="s")["reply"] and len(history(client, "s")) == 4


def test_a_message_that_was_not_stored_gives_no_title(make_app, model_server):
    client = make_app(**at(model_server, context_tokens=1000)).test_client()
    for title in ("", "Plans"):
        session = good(client.post("/api/sessions", json={"title": title} if title else {}))
        failed(ask(client, "Hi", session_id=session["id"], system_prompt="z" * 4000), 413, "message_too_large")
        assert good(client.get(f"/api/sessions/{session['id']}"))["title"] == title


def test_a_message_that_was_not_stored_leaves_the_title_of_one_that_begins_alike(make_app, model_server):
    client = make_app(**at(model_server, context_tokens=1000)).test_client()
    session = ask(client, "Shorten this:\nIt rains.").json["session_id"]
    failed(ask(client, "Shorten this:\n" + "z " * 4000, session_id=session), 413, "message_too_large")
    assert good(client.get(f"/api/sessions/{session}"))["title"] == "Shorten this:"


def test_work_done_stays_done_when_a_later_step_fails(talk):
    talk.say(*(f"m{n} " + "word " * 200 for n in range(60)))
    state = talk.digest(covering, Status(401))
    assert state["state"] == "pending" and state["latest"]["version"] == 1 and "refused the key" in state["error"]
    talk.prompt("More")
    prompt = prompts(talk.server)[-1]
    assert covered(prompt) == state["latest"]["through"]
    assert prompt[1]["content"].startswith(f"m{state['latest']['through']} ")
