"""Related chats under the title, links that open a message, and what was shown for a reference without content."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from app import engine_of
from tests.browser.page import chat, deed, messages, talk
from tests.knowledge import digest_of
from tests.live import Live
from tests.model_server import ModelServer


def summarised(live: Live, server: ModelServer, session: str, words: str) -> list[int]:
    ids = talk(live.client, session, words, "Noted.")
    server.mini.queue(digest_of(topic=words))
    engine_of(live.app).job_queue.run_due(["summary"])
    return ids


def test_related_chats_unfold_under_the_title_and_lead_there(page: Page, live: Live, model_server: ModelServer) -> None:
    summarised(live, model_server, "roof", "Repairing the roof of the summer house")
    summarised(live, model_server, "lentils", "Recipes with lentils")
    summarised(live, model_server, "costs", "Costs of repairing a roof")
    page.goto("/#/roof")
    expect(messages(page)).to_have_count(2)
    related = page.get_by_role("list", name="Related chats")
    expect(related).to_be_hidden()
    page.get_by_text("Related chats").click()
    expect(related.get_by_role("listitem")).to_have_count(1)
    expect(related).to_contain_text("about much the same")
    related.get_by_role("button", name=re.compile("Costs of repairing")).click()
    expect(page).to_have_url(re.compile("#/costs$"))
    expect(related).to_be_hidden()
    page.goto("/#/lentils")
    expect(messages(page).first).to_contain_text("lentils")
    page.wait_for_load_state("networkidle")
    expect(page.get_by_text("Related chats")).to_be_hidden()


def test_an_address_opens_a_message(page: Page, live: Live) -> None:
    ids = talk(live.client, "long", *(f"Line {number}" for number in range(120)))
    page.goto(f"/#/long/{ids[3]}")
    item = page.locator(f'[data-id="{ids[3]}"]')
    expect(item).to_contain_text("Line 3")
    expect(item).to_be_in_viewport()


def test_the_latest_chats_are_explained(page: Page, live: Live, model_server: ModelServer) -> None:
    summarised(live, model_server, "roof", "Repairing the roof of the summer house")
    page.goto("/")
    chat(page, model_server, "Where did we leave off?", "At the roof.")
    deed(messages(page).last, "Why this answer")
    why = page.get_by_role("region", name="Why this answer")
    expect(why).to_contain_text("so the latest chats were shown")
    expect(why).to_contain_text("Topic: Repairing the roof of the summer house")
    expect(why.get_by_role("button", name="Not helpful")).to_have_count(0)
    why.get_by_role("button", name=re.compile("Repairing the roof")).click()
    expect(page).to_have_url(re.compile("#/roof$"))
