"""The browser tests' own tools: what a visitor should never meet is noticed, and what is visited behaves as served."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from flask import Flask
from playwright.sync_api import Browser, Error, Page

from tests.browser.conftest import Browse
from tests.browsing import accessibility, close, open_page, watch_of
from tests.live import Loopback
from tests.model_server import Dictation, ModelServer
from tests.serving import eventually

Show = Callable[..., Page]

IMAGE = "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
POLICY = "default-src 'none'; script-src 'self'"
TALK = """async () => {
    window.got = "";
    const body = JSON.stringify({session_id: "s", message: "Hello", stream: true});
    const headers = {"Content-Type": "application/json"};
    const answer = await fetch("/api/chat", {method: "POST", headers, body});
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part; !(part = await reader.read()).done; ) window.got += part.value;
}"""


@pytest.fixture
def show(chromium: Browser) -> Iterator[Show]:
    """Opens a little page of its own server, watched; nobody checks it at the end."""
    site = Flask(__name__)
    shown: dict[str, str] = {}

    @site.route("/")
    def home() -> tuple[str, dict[str, str]]:
        headers = {"Content-Security-Policy": POLICY} if "policy" in shown else {}
        return f"<!DOCTYPE html><html lang=en><title>A page</title>{shown['html']}", headers

    server = Loopback(site)
    page = open_page(chromium, f"http://127.0.0.1:{server.port}")

    def go(html: str, policy: str = "") -> Page:
        shown.update({"html": html, **({"policy": policy} if policy else {})})
        page.goto("/")
        return page

    yield go
    close(page)
    server.stop()


def notices(page: Page, problem: str) -> bool:
    """Whether the page's watch comes to note this."""
    watch = watch_of(page)

    def noted() -> bool:
        page.evaluate("0")  # lets what has happened come in
        return any(re.search(problem, it) for it in watch.problems)

    return eventually(noted)


NUISANCES = {
    "an image of others": ("<img src='http://example.com/a.png'>", r"asked elsewhere: http://example\.com/a\.png"),
    "a style of others": ("<link rel=stylesheet href='//example.com/a.css'>", r"asked elsewhere: http://example\.com"),
    "a call to others": ("<script>fetch('http://127.0.0.1:9/').catch(() => 0)</script>", r"asked elsewhere: .*0\.1:9/"),
    "a socket to others": (
        "<script>new WebSocket('ws://example.com/')</script>",
        r"asked elsewhere: ws://example\.com",
    ),
    "an error that is said": ("<script>console.error('it broke')</script>", r"console: it broke"),
    "an uncaught error": ("<script>throw new Error('it fell over')</script>", r"uncaught: .*it fell over"),
    "a rejection": ("<script>Promise.reject(new Error('it never came'))</script>", r"uncaught: .*it never came"),
    "an alert": ("<script>alert('inside')</script>", r"alert: inside"),
    "a file that is gone": ("<img src='/gone.png'>", r"console: .*status of 404.*/gone\.png"),
}


@pytest.mark.parametrize(("html", "problem"), NUISANCES.values(), ids=NUISANCES.keys())
def test_what_a_visitor_should_never_meet_is_noticed(show: Show, html: str, problem: str) -> None:
    page = show(html)
    assert notices(page, problem), watch_of(page).problems
    with pytest.raises(AssertionError, match=problem):
        watch_of(page).check()


def test_a_window_reaches_no_other_host(show: Show) -> None:
    """Not even by a name that the browser itself takes for this machine."""
    page = show("")
    port = page.url.rpartition(":")[2]
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        page.goto(f"http://recap.localhost:{port}")


def test_what_cannot_be_used_by_everyone_is_found(show: Show) -> None:
    page = show(f"<main><h1>A page</h1>{IMAGE}</main>", POLICY)
    found = accessibility(page)
    assert len(found) == 1 and found[0].startswith("image-alt (critical)") and "<img" in found[0]
    assert accessibility(show("<main><h1>A page</h1><p>Words.</p></main>"), least="minor") == []


@pytest.mark.parametrize("served", ["live", "gunicorn"])
def test_a_stream_reaches_the_page_as_it_is_dictated(
    request: pytest.FixtureRequest, browse: Browse, model_server: ModelServer, served: str
) -> None:
    page = browse(request.getfixturevalue(served))
    page.goto("/")
    reply = Dictation()
    model_server.main.queue(reply)
    page.evaluate(f"() => {{ window.talk = ({TALK})() }}")
    assert reply.asked.wait(10)
    reply.say("One ")
    page.wait_for_function("window.got.includes('One ')")
    assert "[DONE]" not in page.evaluate("window.got")
    reply.say("two.")
    reply.end()
    page.evaluate("window.talk")
    assert page.evaluate("window.got").endswith("data: [DONE]\n\n")
