"""Settings: each applies at once, is kept, and reaches the server with what is sent."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import ME, chat, close_settings, fits, messages, open_chat, open_settings, send, talk
from tests.browsing import PHONE, WIDE
from tests.live import Live
from tests.model_server import ModelServer


def sent(page: Page, text: str) -> dict[str, Any]:
    """Send a message; what the page asked the server for."""
    with page.expect_request("**/api/chat") as asked:
        send(page, text)
    expect(page.get_by_role("button", name=re.compile("Why this answer")).last).to_be_visible()
    body: dict[str, Any] = asked.value.post_data_json
    return body


def head(model_server: ModelServer) -> str:
    """How the main model's last prompt begins."""
    request = [request for request in model_server.requests if request.model == "main"][-1]
    return str(request.body["messages"][0]["content"])


def test_another_name_shows_another_memory(page: Page, live: Live) -> None:
    talk(live.client, "garden", "The roses need water", "Noted.")
    talk(live.client, "harbour", "The boat leaks", "Noted.", user_id="ada")
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    name = open_settings(page).get_by_label("Name")
    expect(name).to_have_value(ME)
    name.fill("ada")
    name.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Stored for “ada”: 1 chat and 0 facts.")).to_be_visible()
    close_settings(page)
    expect(messages(page)).to_have_count(0)
    open_chat(page, "The boat leaks")
    expect(messages(page)).to_have_count(2)
    page.goto("/")
    page.reload()
    expect(page.get_by_role("button", name=re.compile("^The boat leaks"))).to_be_visible()  # it is kept
    expect(page.get_by_role("button", name=re.compile("^The roses"))).to_be_hidden()


def test_how_a_chat_looks_back_is_sent_with_each_message(page: Page, live: Live) -> None:
    page.goto("/")
    assert "recall" not in sent(page, "The roses need water")  # as the server is set
    open_settings(page).get_by_role("radio", name="Off").check()
    close_settings(page)
    assert sent(page, "What needs water?")["recall"] == "off"
    page.reload()
    expect(open_settings(page).get_by_role("radio", name="Off")).to_be_checked()
    page.get_by_role("radio", name="As the server is set").check()
    close_settings(page)
    assert "recall" not in sent(page, "And now?")


def test_the_look_changes_at_once_and_is_there_before_the_first_paint(page: Page, live: Live) -> None:
    def background() -> str:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    page.goto("/")
    light = background()
    open_settings(page).get_by_role("radio", name="Dark").check()
    dark = background()
    assert dark != light
    page.goto("/", wait_until="commit")
    page.wait_for_selector("body", state="attached")
    assert background() == dark
    page.wait_for_load_state("load")
    open_settings(page).get_by_role("radio", name="As the system").check()
    assert background() == light


def test_a_chats_system_prompt_is_stored_with_it(page: Page, live: Live, model_server: ModelServer) -> None:
    talk(live.client, "garden", "The roses need water", "Noted.")
    talk(live.client, "kitchen", "The oven is broken", "Noted.")
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    prompt = open_settings(page).get_by_label("System prompt of this chat")
    expect(prompt).to_be_enabled()
    prompt.fill("You are a gardener.")
    page.keyboard.press("Escape")  # without leaving the field first
    sent(page, "How much water?")
    assert head(model_server).startswith("You are a gardener.")
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").json["system_prompt"] == "You are a gardener."
    open_chat(page, "The oven")
    expect(messages(page).first).to_contain_text("The oven is broken")
    expect(open_settings(page).get_by_label("System prompt of this chat")).to_have_value("")
    close_settings(page)
    open_chat(page, "The roses")
    prompt = open_settings(page).get_by_label("System prompt of this chat")
    expect(prompt).to_have_value("You are a gardener.")
    prompt.fill("")
    prompt.press("Tab")
    expect(page.get_by_text("The default prompt is used again.")).to_be_visible()
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").json["system_prompt"] is None


def test_the_time_zone_tells_times_and_goes_along(page: Page, live: Live) -> None:
    message = {"role": "user", "content": "The roses need water", "created_at": "2026-03-05T12:00:00Z"}
    live.client.post("/api/sessions/garden/messages", json={"user_id": ME, "messages": [message]})
    page.goto("/#/garden")
    expect(messages(page).first.get_by_role("time")).to_have_text("14:00")  # the browser's: Tallinn
    zone = open_settings(page).get_by_label("Time zone")
    zone.fill("asia/tokyo")
    zone.press("Enter")
    expect(zone).to_have_value("Asia/Tokyo")
    close_settings(page)
    expect(messages(page).first.get_by_role("time")).to_have_text("21:00")
    assert sent(page, "Did I say so yesterday?")["timezone"] == "Asia/Tokyo"
    zone = open_settings(page).get_by_label("Time zone")
    zone.fill("Middle/Earth")
    zone.press("Enter")
    expect(page.get_by_text("“Middle/Earth” is no time zone.")).to_contain_text("it stays Asia/Tokyo")
    zone.fill("")
    zone.press("Enter")
    close_settings(page)
    expect(messages(page).first.get_by_role("time")).to_have_text("14:00")


def test_a_summary_prompt_can_be_read_and_chosen(page: Page, live: Live, model_server: ModelServer) -> None:
    text = "Keep <b>figures</b> only.\n{% for section in sections %}{{ section.name }} {% endfor %}"
    assert live.client.put("/api/prompts/figures", json={"text": text}).status_code == 200
    page.goto("/")
    picker = open_settings(page).get_by_label("Summary prompt")
    expect(picker.get_by_role("option")).to_have_text(["As the server is set", "figures", "summary"])
    picker.select_option("figures")
    page.get_by_text("Read its text").click()
    expect(page.get_by_label("The prompt's text")).to_have_text(text)
    close_settings(page)
    assert sent(page, "The roses need water")["prompt"] == "figures"
    live.settle()
    asked = [request for request in model_server.requests if request.model == "mini"][-1]
    assert "Keep <b>figures</b> only." in str(asked.body["messages"][0]["content"])


@pytest.mark.parametrize("page", [PHONE, WIDE.at_night], indirect=True, ids=str)
def test_settings_fit_and_are_accessible(page: Page, live: Live, model_server: ModelServer) -> None:
    page.goto("/")
    chat(page, model_server, "The roses need water")
    settings = open_settings(page)
    expect(settings.get_by_text("main-model answers")).to_be_attached()
    expect(settings.get_by_label("System prompt of this chat")).to_be_enabled()
    settings.get_by_label("Summary prompt").select_option("summary")
    settings.get_by_text("Read its text").click()
    fits(page)
