"""What the browser tests share: the browser, an application to visit, and windows that are watched.

Every test in this folder is marked `browser`.  Without a Chromium they are skipped, unless RECAP_NEED_BROWSER is set.
"""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.browser.windows import PROGRAMS, USUAL, Screen, Watch, close, find_chromium, launch, open_page, watch_of
from tests.live import Live
from tests.model_server import Body, at, digest
from tests.processes import Server, migrated_server, model_settings

HERE = Path(__file__).parent
_OPEN = pytest.StashKey[tuple[Path, list[Page]]]()
_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)  # before -m looks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Photograph the pages of a test that failed while they are still open."""
    report = yield
    if report.when == "call" and report.failed and _OPEN in item.stash:
        item.stash[_FAILED] = True
        folder, pages = item.stash[_OPEN]
        for page in pages:
            report.sections.append(("browser", watch_of(page).picture(folder)))
    return report


@pytest.fixture(scope="package")
def chromium():
    """The browser, one for all tests of this folder: the event loop it leaves running troubles nobody after them."""
    program = find_chromium(os.environ)
    reason = f"no Chromium: install one ({', '.join(PROGRAMS)}), or name it in CHROMIUM"
    if program is None and os.environ.get("RECAP_NEED_BROWSER"):
        pytest.fail(reason)
    if program is None:
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = launch(playwright, program)
        yield browser
        browser.close()


@pytest.fixture(autouse=True)
def topics(model_server):
    """Leave chats their first words as titles, unless a test has the mini model name a topic."""

    def without_topic(body: Body) -> Any:
        made = digest(body)
        return {**made, "summary": {**made["summary"], "topic": ""}}

    model_server.mini.default = without_topic


@pytest.fixture
def serve(make_app, model_server):
    """Starts applications to visit: `serve()` answers with the scripted models, `serve(builtin=True)` without any.

    Settings are given as to `make_app`.  All share this test's data directory.
    """
    started: list[Live] = []

    def start(*, builtin: bool = False, **changes: Any) -> Live:
        models = {} if builtin else at(model_server, model_timeout=60.0)
        # At info, so that what a failed test reports as captured has a line for each request that was refused.
        started.append(Live(lambda: make_app(**{"log_level": "info", **models, **changes})))
        return started[-1]

    yield start
    model_server.close()  # lets go what a test holds, and refuses what comes now: else nothing waiting for it would end
    for live in started:
        live.stop()


@pytest.fixture
def live(serve):
    """An application that answers with the scripted models."""
    return serve()


@pytest.fixture
def gunicorn(tmp_path, migrated, model_server):
    """The same as `make run` starts it, to kill and start again in mid-stream; started.  It takes a second or two."""
    with migrated_server(tmp_path, migrated, **model_settings(model_server.url)) as server:
        server.start()
        yield server


@pytest.fixture
def browse(chromium, request, tmp_path):
    """Opens windows, each as of a visitor of their own: `browse(live)`, `browse(live, PHONE.at_night)`.

    At the end each must have met no problem it did not expect; see `Watch`.
    """
    for visited in {"serve", "gunicorn"} & set(request.fixturenames):
        request.getfixturevalue(visited)  # made before the windows, it ends after them
    pages: list[Page] = []
    request.node.stash[_OPEN] = tmp_path, pages

    def browse(at: Live | Server, screen: Screen = USUAL) -> Page:
        pages.append(open_page(chromium, at.url, screen))
        return pages[-1]

    yield browse
    watches: list[Watch] = [close(page) for page in pages]
    if not request.node.stash.get(_FAILED, False):  # a failed test's problems are in its report
        for watch in watches:
            watch.check()


@pytest.fixture
def page(chromium, live, browse, request):
    """An empty window on `live`, of the USUAL screen; or of others:

    @pytest.mark.parametrize("page", [PHONE, WIDE.at_night], indirect=True, ids=str)
    """
    return browse(live, getattr(request, "param", USUAL))
