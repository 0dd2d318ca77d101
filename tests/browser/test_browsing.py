"""The browser tests' own tools: what a visitor should never meet is noticed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Error, Page

from tests.browsing import accessibility, close, open_page, watch_of
from tests.serving import eventually

# Scripts, and what the watch says of each.
NUISANCES = {
    "document.body.innerHTML = '<img src=http://example.com/a.png>'": r"asked elsewhere: http://example\.com/a\.png",
    "fetch('http://127.0.0.1:9/').catch(() => 0)": r"asked elsewhere: .*0\.1:9/",
    "new WebSocket('ws://example.com/')": r"asked elsewhere: ws://example\.com",
    "console.error('it broke')": "console: it broke",
    "setTimeout(() => { throw new Error('it fell over') })": "uncaught: .*it fell over",
    "void Promise.reject(new Error('it never came'))": "uncaught: .*it never came",
    "setTimeout(() => alert('inside'))": "alert: inside",
}


@pytest.fixture
def window(chromium: Browser) -> Iterator[Page]:
    """An empty window; nobody checks it at the end."""
    page = open_page(chromium, "http://127.0.0.1:1")
    yield page
    close(page)


@pytest.mark.parametrize("script", NUISANCES)
def test_what_a_visitor_should_never_meet_is_noticed(window: Page, script: str) -> None:
    problem, watch = NUISANCES[script], watch_of(window)
    watch.check()
    window.evaluate(f"() => {{ {script} }}")

    def noted() -> bool:
        window.evaluate("0")  # lets what has happened come in
        return any(re.search(problem, it) for it in watch.problems)

    assert eventually(noted), watch.problems
    with pytest.raises(AssertionError, match=problem):
        watch.check()


def test_a_window_reaches_no_other_host(window: Page) -> None:
    """Not even by a name that the browser itself takes for this machine."""
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        window.goto("http://recap.localhost:8765")


def test_what_cannot_be_used_by_everyone_is_found(window: Page) -> None:
    window.set_content("<html lang=en><title>A page</title><main><h1>A page</h1><img src='data:,'></main>")
    found = accessibility(window)
    assert len(found) == 1 and found[0].startswith("image-alt (critical)") and "<img" in found[0]
