"""The chart over the conversation: tokens sent with each turn, against what its full history would have been."""

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ME, chat, talk
from tests.browser.windows import WIDE
from tests.live import Live


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


def test_it_opens_by_itself_once_memory_has_saved_tokens(serve, browse, model_server):
    live = serve(tail_tokens_max=100)
    assert sum(usage["saved_tokens"] for usage in take_turns(live, 1, "new")) < 0
    talk(live.client, "garden", *("The roses need water. " * 30 for _ in range(20)))
    live.settle()
    usages = take_turns(live, 2)
    assert sum(usage["saved_tokens"] for usage in usages) > 0
    page = browse(live, WIDE)
    page.goto("/#/new")
    chat(page, model_server, "And the lilies")
    expect(strip(page)).to_be_hidden()  # while memory costs more than it saves
    page.goto("/#/garden")
    expect(chart(page)).to_be_visible()
    rows = strip(page).get_by_role("row")
    expect(rows).to_have_count(3)  # its heading, and the two turns
    for number, usage in enumerate(usages, 1):
        cells = [str(number), f"{usage['prompt_tokens']:,}", f"{usage['full_history_tokens']:,}"]
        expect(rows.nth(number).get_by_role("cell")).to_contain_text([*cells, re.compile("%|same")])
    sent, full = (sum(usage[key] for usage in usages) for key in ("prompt_tokens", "full_history_tokens"))
    expect(strip(page)).to_contain_text(f"{sent:,} sent instead of {full:,}")
    strip(page).locator("summary").click()
    expect(chart(page)).to_be_hidden()
