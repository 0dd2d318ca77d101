"""/docs: Swagger UI works under the policy it is served with, which the window watches over."""

from __future__ import annotations

from playwright.sync_api import Page, expect


def test_the_docs_show_every_call_and_try_one(page: Page) -> None:
    page.goto("/docs/")
    call = page.locator("#operations-sessions-get_api_sessions")
    call.get_by_role("button").first.click()
    call.get_by_role("button", name="Try it out").click()
    call.get_by_role("button", name="Execute").click()
    expect(call.locator(".responses-table.live-responses-table")).to_contain_text("next_cursor")
