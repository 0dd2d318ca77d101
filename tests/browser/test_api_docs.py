"""/docs: Swagger UI and the guide work under the policy they are served with, which the window watches over."""

import re

from playwright.sync_api import expect

import web
from tests.browser.page import chat, open_settings


def test_behind_a_proxy_below_a_path_the_page_chats_and_the_docs_try_a_call(page, live, model_server):
    serve = live.app.wsgi_app

    def strip(environ, start_response):
        """Pass on what is below the path, as a proxy that says nothing of it."""
        path = environ["PATH_INFO"]
        environ["PATH_INFO"] = path.removeprefix("/recap") if path.startswith("/recap/") else "/nothing"
        return serve(environ, start_response)

    live.app.wsgi_app = strip
    page.goto("/recap/")
    chat(page, model_server, "I keep bees.")
    open_settings(page, "Models").get_by_role("link", name="All calls of the API").click()
    call = page.locator("#operations-sessions-list_sessions")
    call.get_by_role("button").first.click()
    call.get_by_role("button", name="Try it out").click()
    call.get_by_role("button", name="Execute").click()
    expect(call.locator(".responses-table.live-responses-table")).to_contain_text("next_cursor")


def test_the_guide_is_searched(page, request, monkeypatch):
    if not (web.GUIDE / "search/search_index.json").exists():  # else `make docs` has built it
        monkeypatch.setattr(web, "GUIDE", request.getfixturevalue("guide"))
    page.goto("/docs/guide/")
    words = page.get_by_role("textbox", name="Search")
    expect(page.locator(".md-search-result__meta")).to_have_text("Type to start searching")  # its index is there
    words.fill("revoke key")
    words.press("s")  # a key that is released begins the search; `fill` presses none
    page.locator(".md-search-result__item").filter(has_text="Operating Recap").first.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/operations\.html"))
    expect(page.get_by_role("heading", name="Operating Recap")).to_be_visible()
