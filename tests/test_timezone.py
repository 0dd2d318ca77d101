"""Models see times in the person's zone: in the prompt, in excerpts, and where they work out dates for a summary."""

from datetime import UTC, datetime

import pytest

from app import engine_of
from tests.http import append, chat, good, said
from tests.knowledge import digest_of, fact
from tests.model_server import ToolCalls, prompts
from tests.openai import complete, failed, post, talk
from tests.recall import talker
from tests.test_mcp import told

SATURDAY_EVENING = datetime(2026, 11, 29, 1, 30, tzinfo=UTC)  # in New York, where it is 20:30
NEW_YORK = "America/New_York"


@pytest.fixture
def start(make_app, model_server, monkeypatch):
    """Start an application in which it is Saturday evening in New York."""

    def start(**settings):
        return talker(make_app, model_server, monkeypatch, SATURDAY_EVENING, **settings)

    return start


def now_in_prompt(model_server):
    return prompts(model_server)[-1][-1]["content"].partition('<memory now="')[2].partition('"')[0]


def test_the_model_sees_the_present_excerpts_and_dates_in_the_persons_zone(start, model_server):
    client = start()
    told = {"role": "user", "content": "The zeppelin landed.", "created_at": "2026-11-20T02:00:00Z"}
    append(client, "old", [told], user_id="ada")
    chat(client, "When did I say that the zeppelin landed?", session_id="s", user_id="ada", timezone=NEW_YORK)
    assert now_in_prompt(model_server) == "2026-11-28 20:30 America/New_York, Saturday"
    prompt = prompts(model_server)[-1][-1]["content"]
    assert 'updated_at="2026-11-19"' in prompt and "21:00 user: The zeppelin landed." in prompt
    chat(client, "My exam is tomorrow.", session_id="s", user_id="ada")
    assert now_in_prompt(model_server) == "2026-11-28 20:30 America/New_York, Saturday", "the session keeps the zone"
    engine_of(client.application).job_queue.run_due(["summary"])
    assert "2026-11-28 Saturday 20:30 user: When did I say" in str(prompts(model_server, "mini"))
    for session in ({"session_id": "other"}, {"temporary": True}):
        chat(client, "Which day is it?", user_id="ada", **session)
        assert now_in_prompt(model_server) == "2026-11-28 20:30 America/New_York, Saturday", "of the latest session"
    chat(client, "Which day is it?", session_id="s", user_id="ben")
    assert now_in_prompt(model_server) == "2026-11-29 01:30 UTC, Sunday", "nobody else's zone"


def test_messages_that_are_imported_have_the_days_of_the_zone_that_the_person_has_elsewhere(start, model_server):
    client = start()
    chat(client, "Hello, it's me.", session_id="s", user_id="ada", timezone=NEW_YORK)
    told = {"role": "user", "content": "The exam is tomorrow.", "created_at": "2026-11-20T02:00:00Z"}
    append(client, "old", [told], user_id="ada")
    engine_of(client.application).job_queue.run_due(["summary"])
    assert "2026-11-19 Thursday 21:00 user: The exam is tomorrow." in str(prompts(model_server, "mini"))


def test_a_setting_names_the_zone_of_people_whose_program_names_none(start, model_server):
    client = start(timezone="Asia/Tokyo")
    chat(client, "Which day is it?", session_id="s", user_id="ada")
    assert now_in_prompt(model_server) == "2026-11-29 10:30 Asia/Tokyo, Sunday"


@pytest.mark.parametrize("named", [True, False], ids=["of the latest session that names one", "of the setting"])
def test_profile_overview_and_known_facts_have_the_days_of_the_persons_zone(start, model_server, named):
    client = start(**({} if named else {"timezone": NEW_YORK}))
    engine, words = engine_of(client.application), "I sail on Sundays"
    chat(client, words, session_id="s", user_id="ada", **({"timezone": NEW_YORK} if named else {}))
    model_server.mini.queue(digest_of(fact(words, 1, scope="user")))
    engine.job_queue.run_due(["summary"])
    append(client, "s", [said("Well.")], user_id="ada")
    engine.job_queue.run_due(["summary"])
    assert f"{words} (said 2026-11-28 20:30)" in prompts(model_server, "mini")[-1][-1]["content"]
    chat(client, "Where?", session_id="t", user_id="ada", **({"timezone": NEW_YORK} if named else {}))
    assert f"{words} (said 2026-11-28 " in prompts(model_server)[-1][0]["content"]
    model_server.mini.queue({"patch": [{"op": "add", "path": "/home", "value": "A boat", "quote": words, "source": 1}]})
    for kind in ("profile", "overview"):
        good(client.post(f"/api/users/ada/{kind}/refresh"))
        engine.job_queue.run_due([kind])
    profile, overview = prompts(model_server, "mini")[-2:]
    assert f"2026-11-28 Saturday 20:30 user: {words}" in profile[-1]["content"]
    assert "Today is 2026-11-28, Saturday." in overview[0]["content"]
    assert f"{words} (said 2026-11-28)" in overview[-1]["content"] and "11-29" not in overview[-1]["content"]
    chat(client, "Where?", session_id="new", user_id="ada", **({"timezone": NEW_YORK} if named else {}))
    assert "- home: A boat (said 2026-11-28)" in prompts(model_server)[-1][0]["content"]


def test_a_client_is_told_the_present_beside_memory(start, model_server):
    client = start()
    complete(client, talk("Hello there."), "u", user="ada")
    assert now_in_prompt(model_server) == "", "nothing is remembered of her"
    chat(client, "Hello.", session_id="s", user_id="ada", timezone=NEW_YORK)
    good(client.post("/api/facts", json={"text": "Sails tomorrow", "user_id": "ada"}))
    complete(client, talk("Bonjour !"), "v", user="ada")
    assert "Sails tomorrow" in prompts(model_server)[-1][0]["content"]
    assert now_in_prompt(model_server) == "2026-11-28 20:30 America/New_York, Saturday"


def test_a_client_names_the_zone_in_a_header(start, model_server):
    client = start()
    good(client.post("/api/facts", json={"text": "Sails tomorrow", "user_id": "ada"}))
    for address, zone in (("u", NEW_YORK), ("v", "")):  # a later conversation has it too
        complete(client, talk("Hello."), address, headers={"X-Memory-Timezone": zone}, user="ada")
        assert now_in_prompt(model_server) == "2026-11-28 20:30 America/New_York, Saturday"
    wrong = post(client, talk("Hello."), "w", headers={"X-Memory-Timezone": "Mars"}, user="ada")
    assert "There is no time zone called 'Mars'" in failed(wrong, 400)["message"]


def test_the_memory_block_has_the_zone_of_the_persons_latest_conversation(start):
    client = start()
    chat(client, "Hello.", session_id="s", user_id="ada", timezone=NEW_YORK)
    good(client.post("/api/facts", json={"text": "Sails tomorrow", "user_id": "ada"}))
    message = "When do I sail?"
    blocks = [good(client.post("/api/recall", json={"message": message, "user_id": "ada"}))["block"]]
    blocks.append(told(client, "recall", message=message)[1])
    for block in blocks:
        assert "Sails tomorrow" in block and 'now="2026-11-28 20:30 America/New_York, Saturday"' in block


def test_a_model_may_copy_the_present_into_a_search(start, model_server):
    """As it stands in the prompt, in the person's zone."""
    client = start()
    told = {"role": "user", "content": "The zeppelin landed.", "created_at": "2026-11-28T23:00:00Z"}  # 18:00
    append(client, "old", [told], user_id="ada")
    times = {"after": "2026-11-28 17:30 America/New_York, Saturday", "before": "2026-11-28 20:30 America/New_York"}
    model_server.main.queue(ToolCalls((("conversation_search", {"query": "zeppelin", **times}),)), "It landed.")
    answer = chat(client, "What landed?", session_id="s", user_id="ada", timezone=NEW_YORK, recall="tools")
    (call,) = answer["memory"]["recall"]["calls"]
    assert call["error"] is None and call["excerpts"] == 1


@pytest.mark.parametrize("zone", [NEW_YORK, "Asia/Tokyo"])
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_message_from_an_end_of_the_calendar_spoils_no_prompt(client, engine, at, zone):
    old = [said("I like green tea.", created_at=at), said("Noted.", "assistant", created_at=at)]
    append(client, "old", old, user_id="ada")
    for session in ("old", "new"):
        engine.job_queue.run_due()
        answer = chat(client, "Which tea do I like?", session_id=session, user_id="ada", timezone=zone)
        assert "green tea" in answer["reply"]
