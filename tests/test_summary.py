"""The summary: what the mini model is sent, which of its answers are kept, and that nobody's version is lost."""

import json
from typing import Any

import pytest

from app import engine_of
from memory import jobs as jobs_module
from memory import tokens
from memory.conversation_types import BUILT_IN
from memory.knowledge.summary_update import SummaryInput
from memory.llm.mini_model import BATCH_TOKENS, instruction
from models.sections import Sections
from tests.application import rows_of
from tests.http import append, chat, error, failed, good, meanwhile, said
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import Delay, Status, at

# -- how it stands


def test_its_states_from_none_to_current(talk):
    talk.client.post("/api/sessions", json={"session_id": "s"})
    assert (talk.summary()["state"], talk.summary()["latest"]) == ("none", None)
    talk.say("I drink tea.")
    waiting = talk.summary()
    assert (waiting["state"], waiting["latest"]) == ("pending", None)
    assert waiting["job_id"] == good(talk.client.get("/api/jobs?session_id=s"))["items"][0]["id"]
    seen: list[str] = []

    def look(body: dict[str, Any]) -> Any:
        seen.append(talk.app.test_client().get(talk.address).json["state"])
        return digest_of(topic="Tea")

    done = talk.digest(look)
    assert seen == ["updating"]
    assert (done["state"], done["job_id"], done["error"], done["message_count"]) == ("current", None, None, 1)
    assert (done["latest"]["version"], done["latest"]["through"], done["latest"]["author"]) == (1, 1, "model")
    assert (done["latest"]["model"], done["latest"]["prompt"]) == ("mini-model", "summary")
    assert done["latest"]["usage"]["calls"] == 1
    talk.say("And coffee.")
    assert talk.summary()["state"] == "pending"


def test_where_the_person_has_said_nothing_it_may_be_empty(client, engine):
    for role in ("assistant", "system", "tool"):
        append(client, role, [said("Tallinn", role), said("...")])
    engine.job_queue.run_due(["summary"])
    for role in ("assistant", "system", "tool"):
        summary = good(client.get(f"/api/sessions/{role}/summary"))
        assert (summary["state"], summary["error"], summary["latest"]["through"]) == ("current", None, 2)


# -- what the mini model is sent


def test_a_first_summary_and_an_extension_are_asked_for_differently(talk):
    talk.say("I drink tea.")
    talk.digest(digest_of(topic="Tea & </summary_so_far>"))
    talk.say("Not coffee.")
    talk.digest(digest_of(topic="Drinks"))
    first, extension = ([message["content"] for message in prompt] for prompt in talk.digests())
    assert first[0] != extension[0]
    assert "keep everything that still holds" in extension[0]
    assert "keep everything that still holds" not in first[0]
    assert "summary_so_far" not in first[1]
    shown = extension[1].split("<summary_so_far>\n")[1].split("\n</summary_so_far>")[0]
    assert json.loads(shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))["topic"] == (
        "Tea & </summary_so_far>"
    )
    assert "[1] " in first[1] and "I drink tea." in first[1]
    assert "I drink tea." not in extension[1]  # each message is digested once
    assert "[2] " in extension[1] and "user: Not coffee." in extension[1]
    shape = SummaryInput(Sections(), (), (), links=True, types=sorted(BUILT_IN)).schema
    assert first[0].endswith(instruction(shape)) and extension[0].endswith(instruction(shape))
    assert all(f"- {name}: " in first[0] for name in digest_of()["summary"])
    sent = talk.server.requests[0].body["response_format"]
    assert (sent["type"], sent["json_schema"]["schema"]) == ("json_schema", json.loads(json.dumps(shape)))


def test_an_import_is_summarised_in_bounded_calls(talk):
    words = "I would like to talk about tea, and how long it should be steeped, at which temperature. "
    append(talk.client, "s", [said(f"{number}: {words}") for number in range(1, 1001)])
    done = talk.digest()
    digests = talk.digests()
    assert done["state"] == "current"
    assert done["latest"]["version"] == len(digests) > 3
    numbers: list[int] = []
    for prompt in digests:
        text = prompt[-1]["content"]
        assert tokens.estimate(text) < 2 * BATCH_TOKENS
        lines = text.split("<messages>\n")[1].split("\n</messages>")[0].splitlines()
        numbers += [int(line[1 : line.index("]")]) for line in lines]
    assert numbers == list(range(1, 1001))
    assert done["latest"]["through"] == 1000
    talk.say("long " * 12_000)  # more than a batch
    assert talk.digest()["latest"]["through"] == 1001


# -- which answers are kept


@pytest.mark.parametrize(
    ("attempts", "status", "state"),
    [(3, 401, "pending"), (1, 500, "failed"), (1, 503, "pending")],
)
def test_a_failing_model_leaves_the_error_and_refresh_tries_again(
    make_app, model_server, attempts, status, state, monkeypatch
):
    monkeypatch.setattr(jobs_module, "ATTEMPTS", attempts)
    talk = Talk(make_app(**at(model_server)), model_server)
    talk.say("I drink tea.")
    failed = talk.digest(*[Status(status)] * (1 if status == 401 else 3))
    assert (failed["state"], failed["latest"], bool(failed["error"])) == (state, None, True)
    asked = len(talk.digests())
    assert talk.digest()["state"] == state  # nothing tries again at once, or ever after the last attempt
    assert len(talk.digests()) == asked
    assert good(talk.client.post(f"{talk.address}/refresh"))["state"] == "pending"
    done = talk.digest(digest_of(topic="Tea"))
    assert (done["state"], done["error"], done["latest"]["sections"]["topic"]) == ("current", None, "Tea")


# -- the person's own


def test_an_edit_is_a_version_and_is_shown_at_once(talk):
    talk.say("I drink tea.", "And coffee.", "And water.")
    talk.digest(digest_of(topic="Drinks"))
    sections = {
        "topic": "My drinks",
        "requirements": ["Hot"],
        "excluded": [{"option": "Cocoa", "reason": "too sweet"}, {"option": "Milk"}],
    }
    edited = good(talk.client.put(talk.address, json={"sections": sections, "expected_version": 1}))
    assert (edited["latest"]["version"], edited["latest"]["author"], edited["head_version"]) == (2, "person", 2)
    assert edited["latest"]["sections"] == {
        **digest_of(topic="My drinks", requirements=["Hot"])["summary"],
        "excluded": [{"option": "Cocoa", "reason": "too sweet"}, {"option": "Milk", "reason": ""}],
    }
    shown = "Topic: My drinks\nRequirements:\n- Hot\nRuled out:\n- Cocoa: too sweet\n- Milk"
    assert shown in talk.prompt("Which?")
    talk.digest(digest_of())
    assert "My drinks" in talk.digests()[-1][-1]["content"]  # the mini model goes on from the edit


def test_a_first_edit_leaves_the_messages_that_wait_to_the_job(talk):
    talk.say("I drink tea.")
    assert good(talk.edit("My drinks"))["head_version"] == 1
    talk.digest(digest_of(fact("Drinks tea", 1, "I drink tea")))
    assert "My drinks" in talk.digests()[-1][-1]["content"]
    assert talk.texts() == ["Drinks tea"]


def test_an_edit_of_another_version_is_a_conflict(talk):
    talk.client.post("/api/sessions", json={"session_id": "s"})
    good(talk.edit("One", expected_version=0))
    good(talk.edit("Two", expected_version=1))
    for expected in (0, 1, 3):
        refused = error(talk.edit("Three", expected_version=expected), 409)
        assert refused["code"] == "summary_changed" and "version 2" in refused["message"]
    assert talk.topics() == ["2 Two", "1 One"]


def test_an_edit_that_cannot_be_kept(talk):
    talk.say("I drink tea.")
    for body, param in [
        ({}, "sections"),
        ({"sections": {"mood": "calm"}}, "sections.mood"),
        ({"sections": {"data": ["x" * 401]}}, "sections.data.0"),
        ({"sections": {"excluded": [{"reason": "none"}]}}, "sections.excluded.0.option"),
        ({"sections": {}, "expected_version": 2**31}, "expected_version"),
        ({"sections": {"data": [f"{number} " + "x" * 390 for number in range(40)]}}, "sections"),  # for every prompt
    ]:
        refused = error(talk.client.put(talk.address, json=body), 422)
        assert refused["param"] == param
    assert talk.summary()["latest"] is None


def test_rollback_brings_a_version_back_as_a_new_one(talk):
    talk.say("I drink tea.")
    talk.digest(digest_of(topic="One"))
    talk.say("And coffee.")
    talk.digest(digest_of(topic="Two"))
    back = good(talk.client.post(f"{talk.address}/rollback", json={"version": 1}))
    assert (back["latest"]["version"], back["latest"]["restores"], back["latest"]["author"]) == (3, 1, "rollback")
    assert (back["latest"]["through"], back["state"], back["head_version"]) == (1, "pending", 3)
    assert talk.topics() == ["3 One", "2 Two", "1 One"]
    error(talk.client.post(f"{talk.address}/rollback", json={"version": 9}), 404)
    talk.client.post(f"{talk.address}/refresh")
    assert talk.digest(digest_of(topic="Two again"))["latest"]["through"] == 2
    assert "And coffee." in talk.digests()[-1][-1]["content"]  # what was rolled back is read anew


# -- nobody's version is lost


@pytest.mark.parametrize("change", ["edit", "rollback"])
def test_a_summary_changed_meanwhile_is_not_overwritten(talk, change):
    talk.say("I drink tea.")
    talk.digest(digest_of(topic="One"))
    talk.say("And coffee.")

    def meddle(body: dict[str, Any]) -> Any:
        other = talk.app.test_client()
        if change == "edit":
            good(other.put(talk.address, json={"sections": {"topic": "By hand"}}))
        else:
            good(other.post(f"{talk.address}/rollback", json={"version": 1}))
        return digest_of(fact("Drinks coffee", 2, "coffee"), topic="Made without seeing the change")

    done = talk.digest(meddle, digest_of(fact("Drinks coffee", 2, "coffee"), topic="Made after it"))
    changed = "By hand" if change == "edit" else "One"
    assert talk.topics() == ["3 Made after it", f"2 {changed}", "1 One"]
    assert changed in talk.digests()[-1][-1]["content"]
    assert (done["state"], done["latest"]["through"]) == ("current", 2)
    assert talk.texts() == ["Drinks coffee"]


# -- trying a prompt, with nothing stored

BRIEF = "Be brief.{% if first %} Begin.{% endif %}"


def preview(talk: Talk, **body: Any) -> dict[str, Any]:
    return good(talk.client.post(f"{talk.address}/preview", json=body))


def material(talk: Talk) -> str:
    """What the mini model was given last."""
    return talk.digests()[-1][1]["content"]


def test_a_text_gives_the_conversation_another_summary_and_nothing_is_stored(talk):
    talk.server.mini.queue(digest_of(data=["The stored one."]))
    for message in ("I like tea", "And coffee"):
        chat(talk.client, message, session_id="s")
        talk.digest()
    before, stored = talk.summary(), rows_of(engine_of(talk.app))
    talk.server.mini.queue(digest_of(fact("Likes tea", 1, "I like tea"), topic="Drinks", data=["Both."]))
    made = preview(talk, text=BRIEF)
    assert made["sections"]["topic"] == "Drinks" and made["sections"]["data"] == ["Both."]
    assert (made["prompt"], made["since"], made["through"], made["current_version"]) == (None, 0, 4, 2)
    assert made["model"] == "mini-model" and made["tokens"] > 0
    assert made["usage"]["calls"] == 1 and made["usage"]["prompt_tokens"] > 0
    assert talk.digests()[-1][0]["content"].startswith("Be brief. Begin.")
    assert "I like tea" in material(talk) and "And coffee" in material(talk)
    assert "The stored one" not in material(talk)
    assert talk.summary() == before and rows_of(engine_of(talk.app)) == stored


def test_a_prompt_is_tried_by_its_name(talk):
    talk.client.put("/api/prompts/brief", json={"text": BRIEF})
    chat(talk.client, "I like tea", session_id="s")
    assert preview(talk, prompt="brief")["prompt"] == "brief@1"
    assert talk.digests()[-1][0]["content"].startswith("Be brief.")
    assert preview(talk)["prompt"] == "summary"


def test_what_is_too_long_for_one_call_is_read_on_from_the_earliest_version_that_lets_it(talk):
    long = "and so on " * 400
    for number in range(1, 7):
        talk.hear(f"w{number} {long}", said(f"answer {number}", "assistant"), reply=digest_of(data=[f"up to {number}"]))
    made = preview(talk, text=BRIEF)
    tokens = [message["tokens"] for message in talk.client.get("/api/sessions/s/messages").json["items"]]
    assert 0 < made["since"] < 5 and made["through"] == 12
    given = material(talk)
    assert f"up to {made['since']}" in given and f"w{made['since']} " not in given and f"w{made['since'] + 1} " in given
    assert sum(tokens[2 * made["since"] :]) <= BATCH_TOKENS < sum(tokens[2 * made["since"] - 2 :])


def test_a_long_import_that_was_never_summarised_shows_its_first_step(talk):
    talk.say(*(f"w{number} " + "and so on " * 400 for number in range(1, 11)))
    made = preview(talk, text=BRIEF)
    assert made["since"] == made["current_version"] == 0 and 0 < made["through"] < 10
    assert "w1 " in material(talk) and "w10 " not in material(talk)
    talk.edit("Mine")
    assert preview(talk, text=BRIEF)["through"] > 0 and "w1 " in material(talk)


def test_the_database_is_free_while_the_mini_model_works(talk):
    chat(talk.client, "I like tea", session_id="s")
    talk.server.mini.queue(Delay(0.5))
    with meanwhile(lambda: preview(Talk(talk.app, talk.server), text=BRIEF)):
        talk.server.wait_for_requests(2)
        assert engine_of(talk.app).database.engine.pool.checkedout() == 0


def test_what_can_not_be_a_summary_prompt_is_refused_as_when_it_is_stored(talk):
    chat(talk.client, "I like tea", session_id="s")
    for body, status, code, param in [
        ({"text": "{% for x in"}, 422, "bad_prompt", "text"),
        ({"text": "{{ secret }}"}, 422, "undefined_in_prompt", "text"),
        ({"text": "Brief.", "prompt": "summary"}, 422, "invalid_fields", "text"),
        ({"prompt": "nowhere"}, 404, "prompt_not_found", "prompt"),
        ({"prompt": "repair"}, 422, "not_a_summary_prompt", "prompt"),
    ]:
        assert failed(talk.client.post(f"{talk.address}/preview", json=body), status, code)["param"] == param
    assert talk.digests() == []
