"""What the browser tests share: writing, reading and opening dialogs as a visitor does, by names and roles."""

import re
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from playwright.sync_api import Locator, Page, expect

from tests.browser.windows import accessibility
from tests.http import append, good, history, read_all
from tests.http import said as message
from tests.live import Live
from tests.model_server import Dictation, ModelServer

ME = "me"  # whose memory the page shows unless told otherwise


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Your message", exact=True)


def log(page: Page) -> Locator:
    return page.get_by_role("log", name="Messages")


def send(page: Page, text: str) -> None:
    """Write a message in the chat that is shown, and send it: by Enter, or on a phone by the button."""
    expect(log(page)).not_to_have_attribute("aria-busy", "true")  # else the messages there are come after this one
    box(page).fill(text)
    if page.evaluate("matchMedia('(pointer: fine)').matches"):
        box(page).press("Enter")
    else:
        page.get_by_role("button", name="Send", exact=True).click()


def messages(page: Page) -> Locator:
    return log(page).get_by_role("article")


def chat(page: Page, server: ModelServer, text: str, reply: str = "Noted.", shows: str = "") -> None:
    """A turn that ends well: the main model's reply, or what it `shows`, stands under the message."""
    server.main.queue(reply)
    expect(log(page)).not_to_have_attribute("aria-busy", "true")
    before = messages(page).count()
    send(page, text)
    expect(messages(page)).to_have_count(before + 2)  # an earlier reply may be the same
    expect(messages(page).last).to_contain_text(shows or reply)
    expect(page.locator("article[aria-busy]")).to_have_count(0)
    expect(messages(page).last.locator(".deeds")).to_be_visible()


def deed(message: Locator, name: str) -> None:
    """Do something with a message: by its icon, which shows under the pointer, or else by its menu."""
    message.hover()
    icon = message.get_by_role("button", name=name, exact=True)
    if icon.count():
        return icon.click()
    message.locator(".menu > button").click()
    return message.get_by_role("menuitem", name=name, exact=True).click()


def tab(page: Page, name: str) -> None:
    """Choose a tab, which may show a number."""
    page.get_by_role("tab", name=re.compile(f"^{name}")).last.click()


def begin(page: Page, server: ModelServer, message: str, text: str) -> Dictation:
    """Begin a turn whose reply is being written, and shows `text` so far."""
    reply = Dictation()
    server.main.queue(reply)
    send(page, message)
    reply.say(text)
    expect(messages(page).last).to_contain_text(text.strip())
    return reply


def open_chat(page: Page, title: str) -> None:
    page.get_by_role("navigation", name="Chats").get_by_role("button", name=re.compile(f"^{re.escape(title)}")).click()


def talk(client: FlaskClient, session_id: str, *words: str, user_id: str = ME) -> list[int]:
    """Messages stored beforehand, the person's and the model's in turns; their ids."""
    roles = ("user", "assistant")
    messages = [message(text, roles[place % 2]) for place, text in enumerate(words)]
    ids: list[int] = append(client, session_id, messages, user_id=user_id)["message_ids"]
    return ids


def stored(live: Live, session_id: str) -> list[tuple[str, str]]:
    """What the server holds of a chat: role and words."""
    return history(live.client, session_id, user_id=ME)


def state(live: Live, text: str, **more: Any) -> None:
    """A fact the person states beforehand."""
    good(live.client.post("/api/facts", json={"user_id": ME, "text": text, **more}))


def stored_facts(live: Live, user_id: str = ME) -> list[dict[str, Any]]:
    """All facts the server holds, newest first."""
    return read_all(live.client, "/api/facts", user_id=user_id)


def known(live: Live, user_id: str = ME) -> list[str]:
    """The texts of all facts the server holds, newest first."""
    return [item["text"] for item in stored_facts(live, user_id)]


def session_shown(page: Page) -> str:
    """The id of the chat that the address names."""
    found = re.search(r"#/(.+)$", page.url)
    assert found, page.url
    return found[1]


# Dialogs


def open_settings(page: Page, name: str = "You") -> Locator:
    """Open the settings at a tab."""
    dialog = _open(page, "Settings")
    tab(page, name)
    return dialog


def close_settings(page: Page) -> None:
    page.get_by_role("button", name="Close Settings").click()


def open_manage(page: Page, name: str = "All facts") -> Locator:
    """Open what Recap knows at a tab."""
    dialog = _open(page, "What Recap knows")
    tab(page, name)
    return dialog


def choose_file(page: Page, file: Path) -> None:
    """Have a file imported, in the dialog of all that Recap knows."""
    tab(page, "Your data")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import a file").click()
    chooser.value.set_files(file)


def open_prompts(page: Page) -> Locator:
    open_settings(page, "Models").get_by_role("button", name="Edit prompts").click()
    return page.get_by_role("dialog", name="Prompts")


def _open(page: Page, name: str) -> Locator:
    """On a phone the button is on the panel that slides in."""
    if (
        page.get_by_role("button", name="Open chats").is_visible()
        and not page.get_by_role("button", name=name).is_visible()
    ):
        page.get_by_role("button", name="Open chats").click()
    page.get_by_role("button", name=name, exact=True).click()
    return page.get_by_role("dialog", name=name)


def fits(page: Page) -> None:
    """Assert that there are no misfits."""
    found = misfits(page)
    assert not found, "\n".join(found)


def misfits(page: Page) -> list[str]:
    """What axe-core finds, and what scrolls sideways of the window and open dialogs."""
    wide = [
        part
        for part in ("html", "#memory-body", "#sessions")
        if page.locator(part).evaluate("e => e.scrollWidth > e.clientWidth")
    ]
    inside = [part for dialog in page.get_by_role("dialog").all() for part in _scrolls_sideways(dialog)]
    return [*accessibility(page), *(f"scrolls sideways: {part}" for part in (*wide, *inside))]


def _scrolls_sideways(dialog: Locator) -> list[str]:
    """What in a dialog is wider than what shows of it.  Exempt: what ends in an ellipsis, or is hidden as a pixel."""
    found: list[str] = dialog.evaluate(
        """dialog => [dialog, ...dialog.querySelectorAll("*")]
            .filter(one => one.clientWidth > 1 && one.scrollWidth > one.clientWidth)
            .filter(one => getComputedStyle(one).overflowX !== "visible")
            .filter(one => getComputedStyle(one).textOverflow !== "ellipsis")
            .map(one => one.outerHTML.slice(0, 200))"""
    )
    return found
