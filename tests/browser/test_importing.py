"""Files dropped on the page or chosen: their chats come in part by part, and what is no such file is named."""

import base64
import json
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.page import ME, choose_file, fits, open_manage, state
from tests.browser.windows import PHONE, watch_of
from tests.live import Live
from tests.test_chatgpt_import import conversation, node
from tests.test_import_cases import COPILOT
from tests.test_sources import MARKDOWN, PAGE, PROJECT, claude_chat

PART = 500_000  # bytes, as in chats_file.js


def chat_of(number: int, words: str) -> dict[str, Any]:
    name = f"chat-{number}"
    nodes = {f"{name}-u": node(None, "user", words), f"{name}-a": node(f"{name}-u", "assistant", 'It says "[]}{,\\".')}
    return conversation(f"{name}-a", nodes, conversation_id=name, id=name, title=f"On tea {number}")


def export_of(chats: int, *, size: int = 0, first: int = 0) -> bytes:
    """ChatGPT's conversations.json of so many chats, together of about `size` bytes."""
    rng = random.Random(16)
    each = [" ".join(rng.choices(("tea", "kettle", "garden", "[x]", "a,b", '"{'), k=8)) for _ in range(chats)]
    return json.dumps(
        [chat_of(first + n, words + " tea" * (size // chats // 4)) for n, words in enumerate(each)]
    ).encode()


def drag(page: Page, event: str, *files: tuple[str, str, bytes]) -> None:
    """What the browser tells the page of files that are dragged from elsewhere, as (name, type, content)."""
    given = [(name, kind, base64.b64encode(content).decode()) for name, kind, content in files]
    page.evaluate(
        """([event, files]) => {
            const dataTransfer = new DataTransfer();
            for (const [name, type, content] of files) {
                const bytes = Uint8Array.from(atob(content), (one) => one.charCodeAt(0));
                dataTransfer.items.add(new File([bytes], name, { type }));
            }
            const over = document.elementFromPoint(200, 200);
            over.dispatchEvent(new DragEvent(event, { dataTransfer, bubbles: true, cancelable: true }));
        }""",
        [event, given],
    )


def drop(page: Page, *files: tuple[str, str, bytes]) -> Locator:
    """Drop files; the dialog that shows what comes of it."""
    drag(page, "dragenter", *files)
    expect(page.get_by_text("Drop the file to add it, or to import its chats")).to_be_visible()
    drag(page, "drop", *files)
    expect(page.get_by_text("Drop the file to add it, or to import its chats")).to_be_hidden()
    return page.get_by_role("dialog", name="What Recap knows")


def zipped(path: Path, **files: bytes) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name.replace("_dot_", ".").replace("__", "/"), content)
    return path.read_bytes()


def titles(live: Live) -> set[str]:
    page: Any = live.client.get(f"/api/sessions?user_id={ME}&limit=100").json
    return {item["title"] for item in page["items"]}


@pytest.fixture
def home(page, live):
    """The page as it begins, of a person of whom one fact is stored."""
    state(live, "Drinks tea")
    page.goto("/")
    page.locator(".drop").wait_for(state="attached")  # the page has started
    return page


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_a_dropped_file_is_imported_and_dropped_again_changes_nothing(home, live, model_server):
    drag(home, "dragenter", ("a.json", "application/json", b"[]"))
    expect(home.get_by_text("Drop the file to add it, or to import its chats")).to_be_visible()
    fits(home)
    drag(home, "dragleave", ("a.json", "application/json", b"[]"))
    expect(home.get_by_text("Drop the file to add it, or to import its chats")).to_be_hidden()
    manage = drop(home, ("conversations.json", "application/json", export_of(3)))
    expect(manage).to_contain_text("conversations.json was imported. New: 3 chats, 6 messages.")
    expect(manage).to_contain_text("3 chats are stored but not summarised.")
    drop(home, ("conversations.json", "application/json", export_of(3)))
    expect(manage).to_contain_text("Everything in conversations.json was stored already.")
    home.keyboard.press("Escape")
    home.get_by_role("button", name="Open chats").click()
    expect(home.get_by_role("button", name=re.compile("^On tea 2"))).to_be_visible()
    assert titles(live) == {"On tea 0", "On tea 1", "On tea 2"}
    assert not [request for request in model_server.requests if request.method == "POST"]


def test_of_a_zip_only_the_chats_are_sent_in_the_order_of_its_files(home, live, tmp_path):
    pictures = random.Random(1).randbytes(3_000_000)
    file = tmp_path / "export.zip"
    shards = {"a__conversations-001_dot_json": export_of(1, first=1), "a__conversations-000_dot_json": export_of(1)}
    zipped(file, a__picture_dot_png=pictures, **shards, a__chat_dot_html=pictures[:1000])
    sent: list[int] = []
    home.on("request", lambda it: "/api/import" in it.url and sent.append(len(it.post_data_buffer or b"")))
    assert not any(url.endswith("zip.mjs") for url in watch_of(home).requests)
    manage = open_manage(home, "Your data")
    choose_file(home, file)
    expect(manage).to_contain_text("export.zip was imported. New: 2 chats, 4 messages.")
    assert titles(live) == {"On tea 0", "On tea 1"}
    assert len(sent) == 2 and sum(sent) < 10_000


def test_a_large_file_is_sent_in_parts_shows_its_progress_and_goes_on_after_the_connection_broke(home, live, tmp_path):
    file = tmp_path / "conversations.json"
    file.write_bytes(export_of(30, size=3 * PART))
    watch_of(home).expect("ERR_CONNECTION_RESET")
    parts: list[int] = []
    held: list[Route] = []

    def holds_the_second(route: Route) -> None:
        parts.append(len(route.request.post_data_buffer or b""))
        held.append(route) if len(parts) == 2 else route.continue_()

    home.route("**/api/import*", holds_the_second)
    manage = open_manage(home, "Your data")
    choose_file(home, file)
    bar = manage.get_by_role("progressbar", name="Imported chats")
    expect(bar).to_have_attribute("max", "30")
    expect(manage).to_contain_text(re.compile(r"[1-9]0 of 30 chats imported"))
    fits(home)
    home.keyboard.press("Escape")
    manage = open_manage(home, "Your data")  # the import goes on while no dialog shows it
    expect(bar).to_be_visible()
    held[0].abort("connectionreset")
    alert = manage.get_by_role("alert").filter(has_text="of 30 chats were imported and are kept")
    expect(alert).to_contain_text("Recap can't be reached")
    kept = len(titles(live))
    assert 0 < kept < 30
    alert.get_by_role("button", name="Continue").click()
    expect(manage).to_contain_text(re.compile("was imported. New: 30 chats"))
    assert len(titles(live)) == 30
    assert len(parts) >= 4 and max(parts) < 2 * PART


def test_files_of_other_programs_are_read_and_what_is_none_is_named_and_not_sent(home, live, tmp_path):
    photos = zipped(tmp_path / "photos.zip", sea_dot_jpg=b"x", sun_dot_jpg=b"y")
    for name, kind, content, told in (
        ("cat.png", "image/png", b"\x89PNG\r\n", "cat.png is a picture."),
        ("chat.html", "text/html", b"<html>", "chat.html is a web page. The chats of a ChatGPT export are in the file"),
        ("notes.csv", "text/csv", b"no JSON at all", "notes.csv is neither JSON, Markdown, Copilot's CSV nor a .zip."),
        ("conversations.json", "application/json", export_of(2)[:-40], "conversations.json ends in the middle"),
        ("export.zip", "application/zip", b"PK\x03\x04 and no more", "export.zip is a .zip that can't be opened"),
        ("photos.zip", "application/zip", photos, "It begins with: sea.jpg, sun.jpg."),
    ):
        expect(drop(home, (name, kind, content)).get_by_role("alert")).to_contain_text(told)
    assert not any("/api/import" in url for url in watch_of(home).requests)
    watch_of(home).expect("status of 422")  # the server names what is wrong in a file of a known kind
    claude = zipped(
        tmp_path / "claude.zip",
        users_dot_json=b'[{"uuid": "a", "full_name": "Ada"}]',
        conversations_dot_json=json.dumps([claude_chat()]).encode(),
        projects__p_dot_json=json.dumps(PROJECT).encode(),
    )
    manage = drop(home, ("claude.zip", "application/zip", claude), ("tea.md", "text/markdown", MARKDOWN))
    expect(manage).to_contain_text("claude.zip, tea.md was imported. New: 4 chats, 7 messages.")
    assert {"Tea", "Tea shop", "On tea"} <= titles(live)
    manage = drop(home, ("copilot-activity-history.csv", "text/csv", COPILOT.encode()))
    expect(manage).to_contain_text("copilot-activity-history.csv was imported. New: 2 chats, 3 messages.")
    manage = drop(home, ("MyActivity.html", "text/html", PAGE))
    expect(manage).to_contain_text("MyActivity.html was imported. New: 2 chats, 6 messages.")
    manage = drop(home, ("user.json", "application/json", b'{"chatgpt_plus_user": true}'))
    expect(manage.get_by_role("alert")).to_contain_text("choose conversations.json")
