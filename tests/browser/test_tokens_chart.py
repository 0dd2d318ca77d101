"""The chart over the conversation: tokens sent with each turn, against what its full history would have been."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Browse, Serve
from tests.browser.page import ME, chat, talk
from tests.browser.windows import PHONE, WIDE
from tests.live import Live
from tests.model_server import ModelServer


def strip(page: Page) -> Locator:
    return page.get_by_role("region", name="Tokens")


def chart(page: Page) -> Locator:
    return strip(page).get_by_role("figure")


def take_turns(live: Live, count: int, session_id: str = "garden") -> list[dict[str, Any]]:
    """Turns taken beforehand; what the API says each cost, oldest first."""
    for number in range(count):
        body = {"user_id": ME, "session_id": session_id, "message": f"Rose number {number + 1} needs water " * 8}
        assert live.client.post("/api/chat", json=body).status_code == 200
    items = live.client.get(f"/api/sessions/{session_id}/turns?user_id={ME}").json["items"]
    return [item["usage"] for item in reversed(items)]


def unfold(page: Page) -> None:
    strip(page).locator("details:not([open]) > summary").click()


def test_it_begins_with_the_second_turn(page: Page, live: Live, model_server: ModelServer) -> None:
    page.goto("/")
    expect(strip(page)).to_be_hidden()
    chat(page, model_server, "The roses need water")
    expect(strip(page)).to_contain_text("sent; the full history would be")
    unfold(page)
    expect(strip(page)).to_contain_text("The chart begins with the second turn.")
    chat(page, model_server, "And the lilies")
    expect(chart(page)).to_be_visible()
    expect(strip(page).get_by_role("row")).to_have_count(3)  # its heading, and the two turns


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_its_figures_are_those_of_the_api_and_it_fits(page: Page, live: Live) -> None:
    usages = take_turns(live, 5)
    page.goto("/#/garden")
    unfold(page)
    expect(chart(page)).to_be_visible()
    area, picture = chart(page).bounding_box(), chart(page).locator(".token-plot").bounding_box()
    assert area and picture and abs(area["width"] - picture["width"]) < 1
    rows = strip(page).get_by_role("row")
    expect(rows).to_have_count(6)
    for number, usage in enumerate(usages, 1):
        cells = [str(number), f"{usage['prompt_tokens']:,}", f"{usage['full_history_tokens']:,}"]
        expect(rows.nth(number).get_by_role("cell")).to_contain_text([*cells, re.compile("%|same")])
    sent, full = (sum(usage[key] for usage in usages) for key in ("prompt_tokens", "full_history_tokens"))
    assert sent > full  # memory costs more than it saves while a chat is short, and the page says no less
    expect(strip(page)).to_contain_text(f"{sent:,} sent; the full history would be {full:,}")


def test_it_opens_by_itself_once_memory_has_saved_tokens(serve: Serve, browse: Browse) -> None:
    live = serve(tail_tokens_max=100)
    talk(live.client, "garden", *("The roses need water. " * 30 for _ in range(20)))
    live.settle()
    usages = take_turns(live, 2)
    assert sum(usage["saved_tokens"] for usage in usages) > 0
    page = browse(live, WIDE)
    page.goto("/#/garden")
    expect(chart(page)).to_be_visible()
    expect(strip(page)).to_contain_text("instead of")
