"""The list of chats: finding, renaming, deleting."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import ME, messages, session_shown, talk
from tests.live import Live


def chats(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Chats")


def test_a_chat_is_deleted_only_when_that_is_confirmed(page: Page, live: Live) -> None:
    talk(live.client, "garden", "The roses need water", "Noted.")
    page.goto("/#/garden")
    delete = chats(page).get_by_role("button", name=re.compile("^Delete The roses"))
    delete.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(messages(page)).to_have_count(2)
    delete.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="Say something worth remembering.")).to_be_visible()
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").status_code == 404


def test_the_search_goes_through_all_chats_and_leads_to_the_words(page: Page, live: Live) -> None:
    talk(
        live.client,
        "long",
        *(f"Small talk number {n}, and so on" for n in range(1, 61)),
        "The key is under the flower pot",
        "Ok.",
    )
    talk(live.client, "long", *(f"More talk number {n}" for n in range(1, 121)))
    talk(live.client, "other", "The oven is broken", "Noted.")
    page.goto("/")
    chats(page).get_by_role("searchbox").fill("flower pot key")
    hit = chats(page).get_by_role("button", name=re.compile("under the flower pot"))
    expect(hit).to_contain_text("Small talk number 1, and so on")  # the chat's title
    expect(hit.locator("mark")).to_have_text(["key", "flower", "pot"])
    assert hit.evaluate("hit => hit.getBoundingClientRect().right <= hit.closest('nav').getBoundingClientRect().right")
    hit.click()
    found = page.get_by_role("article").filter(has_text="under the flower pot")
    expect(found).to_be_focused()
    expect(found).to_be_in_viewport()
    assert session_shown(page) == "long"
    page.get_by_role("button", name="Back to the newest").click()
    expect(messages(page).last).to_contain_text("More talk number 120")


def test_older_chats_come_as_the_list_is_scrolled(page: Page, live: Live) -> None:
    for number in range(1, 46):
        talk(live.client, f"chat-{number}", f"About subject {number:02}", "Noted.")
    page.goto("/")
    expect(chats(page).get_by_role("button", name=re.compile("^About subject 45"))).to_be_visible()
    oldest = chats(page).get_by_role("button", name=re.compile("^About subject 01"))
    expect(oldest).to_have_count(0)
    chats(page).get_by_role("button", name=re.compile("^About subject 16")).scroll_into_view_if_needed()
    expect(oldest).to_have_count(1)
