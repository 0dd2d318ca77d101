"""What the tests of the page's dialogs share: opening them, and whether they fit."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


def open_settings(page: Page) -> Locator:
    return _open(page, "Settings")


def close_settings(page: Page) -> None:
    page.get_by_role("button", name="Close Settings").click()


def open_manage(page: Page) -> Locator:
    return _open(page, "Manage memories")


def open_prompts(page: Page) -> Locator:
    open_settings(page).get_by_role("button", name="Edit prompts").click()
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


def scrolls_sideways(dialog: Locator) -> list[str]:
    """What in a dialog is wider than what shows of it; a single pixel is how something is hidden from view."""
    found: list[str] = dialog.evaluate(
        """dialog => [dialog, ...dialog.querySelectorAll("*")]
            .filter(one => one.clientWidth > 1 && one.scrollWidth > one.clientWidth)
            .filter(one => getComputedStyle(one).overflowX !== "visible")
            .map(one => one.outerHTML.slice(0, 200))"""
    )
    return found
