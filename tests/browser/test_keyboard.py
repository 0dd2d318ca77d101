"""Without a mouse: from the first message to a renamed chat."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.chatting import ME, box, messages, talk
from tests.live import Live
from tests.model_server import ModelServer, Text


def test_a_chat_by_keyboard_alone(page: Page, live: Live, model_server: ModelServer) -> None:
    talk(live.client, "garden", "The roses need water", "Noted.")
    talk(live.client, "kitchen", "The oven is broken", "Noted.")
    page.goto("/")
    expect(box(page)).to_be_focused()  # ready to write
    model_server.main.queue(Text("Hello."))
    page.keyboard.type("Hello")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("there")
    page.keyboard.press("Enter")
    expect(messages(page).last).to_contain_text("Hello.")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Tab")  # the list of chats is one stop
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(messages(page).first).to_contain_text("The roses need water")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^Rename The roses"))).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("Garden")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Garden")).to_be_visible()
    page.keyboard.press("Alt+n")
    expect(box(page)).to_be_focused()
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").json["title"] == "Garden"
