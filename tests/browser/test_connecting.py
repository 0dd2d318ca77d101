"""The page on which a person connects a program: what Chromium lets its form do, and what it leads to."""

import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import expect

from app import engine_of
from tests.browser.windows import PHONE, accessibility, watch_of
from tests.test_oauth import query, register


@pytest.fixture
def program():
    """Where a program waits for its person, which leads on to another of its origins; and the paths asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            first = self.path.startswith("/callback")
            self.send_response(302 if first else 200)
            self.send_header("Location", f"http://127.0.0.1:{last.server_port}/done") if first else None
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"" if first else b"<title>Done</title><link rel=icon href=data:,>")

        def log_message(self, *_: Any) -> None:
            pass

    server, last = servers = [ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    for one in servers:
        Thread(target=one.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/callback", asked
    for one in servers:
        one.shutdown()
        one.server_close()


@pytest.mark.parametrize("page", [PHONE.at_night], indirect=True, ids=str)
def test_a_person_cancels_or_connects_a_program(page, live, program):
    address, asked = program
    key = engine_of(live.app).keys.create("default", "ada")[0]
    client_id = register(live.client, address, name="Pocket")
    watch_of(page).expect(r"status of 401")
    watch_of(page).expect(r"asked elsewhere")  # as it should
    link = f"/oauth/authorize?{query(client_id, redirect_uri=address, resource=f'{live.url}/mcp')}"
    page.goto(link)
    page.get_by_role("button", name="Cancel").click()
    expect(page).to_have_title("Done")
    assert asked[0].startswith("/callback?error=access_denied&")
    asked.clear()
    page.goto(link)
    expect(page.get_by_role("main")).to_contain_text("It calls itself Pocket")
    assert accessibility(page) == []
    page.get_by_label("Your API key").fill("recap_wrong")
    page.get_by_role("button", name="Connect").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown or was revoked")
    assert asked == []
    page.get_by_label("add, correct and erase").uncheck()
    page.get_by_label("Your API key").fill(key)
    page.keyboard.press("Enter")
    expect(page).to_have_title("Done")
    assert re.fullmatch(r"/callback\?code=recapt_[\w-]+&iss=[^&]+&state=a\+state", asked[0]), asked


@pytest.mark.parametrize("page", [PHONE.in_german], indirect=True, ids=str)
def test_the_sign_in_page_speaks_the_language_of_the_browser(page, live):
    engine_of(live.app).keys.create("default", "ada")
    watch_of(page).expect(r"status of 40[01]")
    address = "http://127.0.0.1:9/callback"
    client_id = register(live.client, address, name="<b>Pocket</b> {to}")
    page.goto(f"/oauth/authorize?{query(client_id, redirect_uri=address, resource=f'{live.url}/mcp')}")
    told = page.get_by_role("main")
    expect(told).to_contain_text("Es nennt sich <b>Pocket</b> {to}. Nach deiner Antwort wirst du zu einem Programm auf")
    expect(told).to_contain_text("(127.0.0.1)")
    page.get_by_label("Dein API-Schlüssel").fill("recap_wrong")
    page.get_by_role("button", name="Verbinden").click()
    expect(page.get_by_role("alert")).to_have_text("Dieser API-Schlüssel ist unbekannt oder wurde widerrufen.")
    assert accessibility(page) == []
    page.goto(f"/oauth/authorize?{query('unknown', redirect_uri=address, resource=f'{live.url}/mcp')}")
    expect(page.get_by_role("alert")).to_contain_text("Recap does not know")  # for whoever wrote it
    expect(page.get_by_role("alert").locator("[lang=en]")).to_have_count(1)
    expect(told).to_contain_text("Es ist nichts geschehen.")
    assert accessibility(page) == []
