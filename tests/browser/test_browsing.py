"""The browser tests' own tools: what a visitor should never meet is noticed, and what is visited behaves as served."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from playwright.sync_api import Browser, Error, Page, expect

from app import services_of
from tests.browser.conftest import Browse
from tests.browsing import PHONE, TIME_ZONE, WIDE, accessibility, close, find_chromium, open_page, watch_of
from tests.live import Live, Loopback
from tests.model_server import Dictation, ModelServer
from tests.serving import eventually
from tests.talking import said

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


def test_what_the_content_security_policy_blocks_is_noticed(show: Show) -> None:
    page = show("<p style='color: red'>Red?</p><script>document.title = 'It ran'</script>", POLICY)
    assert notices(page, r"console: .*inline style violates")
    assert notices(page, r"console: .*inline script violates")


def test_a_page_without_problems_passes(show: Show) -> None:
    page = show(f"<p>Hello.</p><script>console.warn('never mind')</script>{IMAGE}")
    page.wait_for_load_state("networkidle")
    watch = watch_of(page)
    watch.check()
    assert f"{watch.origin}/" in watch.requests


def test_a_problem_that_a_test_brings_about_passes_and_has_to_come(show: Show) -> None:
    page = show("<img src='/gone.png'>")
    watch = watch_of(page)
    watch.expect("status of 404")
    assert notices(page, "status of 404")
    watch.check()
    watch.expect("status of 502")
    with pytest.raises(AssertionError, match=r"did not come.*status of 502"):
        watch.check()


def test_a_window_reaches_no_other_host(show: Show) -> None:
    """Not even by a name that the browser itself takes for this machine."""
    page = show("")
    port = page.url.rpartition(":")[2]
    with pytest.raises(Error, match="ERR_NAME_NOT_RESOLVED"):
        page.goto(f"http://recap.localhost:{port}")


def test_a_failed_test_shows_what_the_page_looked_like(show: Show, tmp_path: Path) -> None:
    text = watch_of(show("<script>console.error('it broke')</script>")).picture(tmp_path)
    assert "it broke" in text
    file = re.search(r"looked like (\S+)", text)
    assert file is not None and Path(file[1]).read_bytes().startswith(b"\x89PNG")


def test_there_are_fonts(show: Show) -> None:
    """Without any, every letter is as wide as another and a picture shows none."""
    page = show("<span id=narrow>iiii</span> <span id=wide>WWWW</span>")
    narrow, wide = (page.locator(f"#{name}").bounding_box() for name in ("narrow", "wide"))
    assert narrow is not None and wide is not None
    assert 0 < narrow["width"] < wide["width"] / 2


def test_what_cannot_be_used_by_everyone_is_found(show: Show) -> None:
    page = show(f"<main><h1>A page</h1>{IMAGE}</main>", POLICY)
    found = accessibility(page)
    assert len(found) == 1 and found[0].startswith("image-alt (critical)") and "<img" in found[0]
    assert accessibility(show("<main><h1>A page</h1><p>Words.</p></main>"), least="minor") == []


@pytest.mark.parametrize("page", [PHONE.at_night, WIDE], indirect=True, ids=str)
def test_a_window_is_what_was_asked_for(page: Page) -> None:
    page.goto("/health/live")
    matches = "query => matchMedia(query).matches"
    phone = page.evaluate("screen.width") == 380
    assert page.evaluate("[screen.width, screen.height]") == ([380, 800] if phone else [1600, 1000])
    assert page.evaluate(matches, "(prefers-color-scheme: dark)") is phone
    assert page.evaluate(matches, "(pointer: coarse)") is phone
    assert page.evaluate(matches, "(prefers-reduced-motion: reduce)")
    assert page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone") == TIME_ZONE


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


def test_a_restart_keeps_address_and_data(live: Live, page: Page) -> None:
    page.goto("/")
    page.evaluate(TALK)
    live.settle()
    before = said(live.client, "s")
    live.stop()
    assert page.evaluate("fetch('/health/live').then(() => 'there', () => 'gone')") == "gone"
    watch_of(page).expect("ERR_CONNECTION_REFUSED")
    live.start()
    page.reload()
    expect(page.get_by_role("heading", name="Say something worth remembering.")).to_be_visible()
    assert said(live.client, "s") == before and len(before) == 2


def test_an_application_to_visit_has_its_background_workers(live: Live) -> None:
    live.client.post("/api/chat", json={"session_id": "s", "message": "Hello"})
    live.settle()
    assert live.client.get("/api/sessions/s/summary").json["latest"]["version"] == 1
    assert services_of(live.app).check().ready


def test_a_chromium_that_is_named_and_not_there_is_said_to_be() -> None:
    with pytest.raises(ValueError, match="no-such-browser"):
        find_chromium({**os.environ, "CHROMIUM": "no-such-browser"})
