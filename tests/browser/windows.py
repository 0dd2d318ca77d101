"""What browser tests share: Debian's Chromium, windows of it that are watched, and an accessibility check.

    page.goto("/")                                  # the fixture `page`: a window of its own on the fixture `live`
    page.get_by_role("textbox").fill("Hello")       # sync Playwright; `expect(...)` waits by itself
    watch_of(page).expect(r"status of 502")         # what the test itself brings about; it has to come
    assert accessibility(page) == []

Guarantee: a window reaches loopback and nothing else, whatever the page asks for.  What a visitor should never meet is
noted by its `Watch`, and the test that it happened in fails: a request to another origin, an error on the console
(what a Content-Security-Policy blocks is one), an uncaught error, an alert.
"""

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Error, Page, Playwright, expect

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# Chromium renders suggestions for its address bar in each window, which takes as long as to open Recap's page.  The
# option replaces Playwright's own: the features after the first two are those of its that matter here.
WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "PaintHolding"),
)
TIME_ZONE = "Europe/Tallinn"  # not the server's UTC, so that a time shown in the wrong zone shows
SECONDS_MAX = 20.0  # for anything to appear: a busy machine's, not what a visitor should wait

expect.set_options(timeout=SECONDS_MAX * 1000)


def find_chromium(environ: Mapping[str, str]) -> str | None:
    """Path of a Chromium: the one CHROMIUM names, or else the first there is.  ValueError when CHROMIUM names none."""
    given = environ.get("CHROMIUM")
    if given:
        found = shutil.which(given)
        if found is None:
            raise ValueError(f"CHROMIUM is {given!r}, and that is no program here.")
        return found
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def launch(playwright: Playwright, program: str) -> Browser:
    """A Chromium without windows that can reach nothing but loopback."""
    return playwright.chromium.launch(
        executable_path=program,
        chromium_sandbox=os.geteuid() != 0,  # as root Chromium does not start with it
        args=[
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--no-proxy-server",  # or a proxy would resolve names for it
            "--disable-background-networking",
            f"--disable-features={','.join(WITHOUT)}",
        ],
    )


@dataclass(frozen=True)
class Screen:
    """What a window looks like to the page: its size in CSS pixels, and what the visitor prefers."""

    width: int = 1280
    height: int = 800
    dark: bool = False
    still: bool = True  # prefers-reduced-motion
    touch: bool = False  # a phone: it also needs the page to say how wide it wants to be
    locale: str = "en-GB"

    def __str__(self) -> str:
        return f"{self.locale} {self.width}x{self.height}{' dark' * self.dark}{' moving' * (not self.still)}"

    @property
    def at_night(self) -> Self:
        return replace(self, dark=True)

    @property
    def in_german(self) -> Self:
        return replace(self, locale="de-DE")


USUAL = Screen()
WIDE = Screen(1600, 1000)
PHONE = Screen(380, 800, touch=True)


class Watch:
    """Notes what one browser context does, from its making on.  `problems` are in words, in order."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.origin = origin
        self.requests: list[str] = []  # every address that was asked for, in order
        self.problems: list[str] = []
        self._expected: list[str] = []
        self._context = context
        context.on("request", lambda request: self._asked(request.url))
        context.on("console", self._said)
        context.on("weberror", lambda error: self.problems.append(f"uncaught: {error.error}"))
        context.on("dialog", self._alerted)
        context.on("page", lambda page: page.on("websocket", lambda it: self._asked(it.url)))

    def expect(self, *patterns: str) -> None:
        """Let pass the problems that match; `check` wants at least one for each pattern."""
        self._expected += patterns

    def check(self) -> None:
        """AssertionError when there was a problem nobody expects, or an expected one did not come."""
        unexpected = [it for it in self.problems if not any(re.search(pattern, it) for pattern in self._expected)]
        assert not unexpected, "\n".join(["what no visitor should meet:", *unexpected])
        absent = [it for it in self._expected if not any(re.search(it, problem) for problem in self.problems)]
        assert not absent, f"expected, but did not come: {absent}"

    def picture(self, folder: Path) -> str:
        """Photograph every page for a report on a failed test; what to put into it."""
        lines = [f"problems: {self.problems or 'none'}", f"the last requests: {self.requests[-8:]}"]
        for page in self._context.pages:
            file = folder / f"page-{len(list(folder.glob('page-*.png'))) + 1}.png"
            try:
                page.screenshot(path=file)
            except Error as problem:
                lines.append(f"{page.url} can't be photographed: {problem.message}")
            else:
                lines.append(f"{page.url} looked like {file}")
        return "\n".join(lines)

    def _asked(self, url: str) -> None:
        self.requests.append(url)
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.problems.append(f"asked elsewhere: {url}")

    def _said(self, message: ConsoleMessage) -> None:
        asked_by_itself = urlsplit(message.location["url"]).path == "/favicon.ico"
        if message.type == "error" and not asked_by_itself:
            self.problems.append(f"console: {message.text} ({message.location['url']})")

    def _alerted(self, dialog: Dialog) -> None:
        if dialog.type == "beforeunload":
            return dialog.accept()  # the test leaves the page on purpose
        self.problems.append(f"{dialog.type}: {dialog.message}")
        return dialog.dismiss()


_WATCHES: dict[BrowserContext, Watch] = {}


def open_page(browser: Browser, url: str, screen: Screen = USUAL) -> Page:
    """An empty page in a watched context of its own; `url`'s origin is its own, and what relative addresses mean."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": screen.width, "height": screen.height},
        color_scheme="dark" if screen.dark else "light",
        reduced_motion="reduce" if screen.still else "no-preference",
        has_touch=screen.touch,
        is_mobile=screen.touch,
        locale=screen.locale,
        timezone_id=TIME_ZONE,
    )
    context.set_default_timeout(SECONDS_MAX * 1000)
    _WATCHES[context] = Watch(context, url)
    return context.new_page()


def watch_of(page: Page) -> Watch:
    """The watch over the context of a page that `open_page` made."""
    return _WATCHES[page.context]


def close(page: Page) -> Watch:
    """Close a page's context; its watch, which has noted everything by then."""
    page.context.close()
    return _WATCHES.pop(page.context)


@cache
def _axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def accessibility(page: Page) -> list[str]:
    """What axe-core finds on the page as it is now, of any impact: rule, its meaning, and where."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(_axe())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['target']} {node['html'][:160]}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]
