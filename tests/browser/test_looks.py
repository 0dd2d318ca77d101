"""On every screen and in both looks: nothing runs out of the window, and axe-core finds nothing serious."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import ME, box, chat, fits, messages, talk
from tests.browsing import PHONE, WIDE, accessibility
from tests.live import Live
from tests.model_server import ModelServer

LONG = "A" * 300 + " word " * 40
REPLY = f"""# A heading

Text with `code` and **weight**.

| a | b |
|---|---|
| 1 | {"wide " * 40} |

```
{"x" * 400}
```"""


@pytest.mark.parametrize("page", [PHONE, WIDE.at_night], indirect=True, ids=str)
def test_a_chat_with_memory_fits_and_is_accessible(page: Page, live: Live, model_server: ModelServer) -> None:
    talk(live.client, "garden", f"The roses need water. {LONG}", REPLY)
    for number, pinned in enumerate((True, False, False)):
        body = {"user_id": ME, "text": f"Fact {number}. {LONG}"[:400], "pinned": pinned, "importance": number + 2}
        assert live.client.post("/api/facts", json=body).status_code == 201
    live.settle()
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    chat(page, model_server, "And now?", REPLY, shows="A heading")
    page.get_by_role("button", name=re.compile("Why this answer")).last.click()
    expect(page.get_by_role("region", name="Why this answer")).to_contain_text("Full history")
    fits(page)
    if page.get_by_role("button", name="Memory", exact=True).is_visible():
        page.get_by_role("button", name="Memory", exact=True).click()
    expect(page.get_by_role("complementary", name="Memory")).to_contain_text("Fact 0.")
    fits(page)
    page.keyboard.press("Escape")
    expect(box(page)).to_be_visible()


@pytest.mark.parametrize("page", [PHONE, WIDE.at_night], indirect=True, ids=str)
def test_the_empty_page_fits_and_is_accessible(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("heading", name="Say something worth remembering.")).to_be_visible()
    fits(page)
    assert accessibility(page, least="moderate") == []


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_on_a_phone_the_sides_slide_in_one_at_a_time(page: Page, live: Live) -> None:
    talk(live.client, "garden", "The roses need water", "Noted.")
    page.goto("/")
    page.get_by_role("button", name="Open chats").click()
    chats = page.get_by_role("navigation", name="Chats")
    chats.get_by_role("button", name=re.compile("^The roses")).click()
    expect(chats).to_be_hidden()
    expect(messages(page)).to_have_count(2)
    page.get_by_role("button", name="Memory", exact=True).click()
    memory = page.get_by_role("complementary", name="Memory")
    expect(memory).to_be_visible()
    page.keyboard.press("Escape")
    expect(memory).to_be_hidden()
    expect(page.get_by_role("button", name="Memory", exact=True)).to_be_focused()
