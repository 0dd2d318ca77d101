"""The prompt editor: changing the instructions, and trying a summary prompt on the chat that is shown."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ME, chat, close_settings, messages, open_prompts, talk
from tests.browser.windows import watch_of
from tests.knowledge import digest_of
from tests.live import Live
from tests.model_server import prompts as sent

PACKAGED = ("consolidation", "feedback", "memory", "overview", "profile", "repair", "summary", "system")
NOW: dict[str, Any] = {
    "topic": "A weekend in Porto",
    "requirements": ["Twin room with breakfast"],
    "constraints": ["At most 900 euros", "Cabin bags only"],
    "excluded": [{"option": "Lisbon", "reason": "too dear"}],
}
TRIED = {**NOW, "constraints": ["at most 900 euros.", "Nothing with <b>walnuts</b>"], "data": ["Booking KX7QRP"]}


@pytest.fixture
def porto(live, model_server):
    """A chat that has a summary."""
    model_server.mini.queue(digest_of(**NOW))
    talk(live.client, "porto", "We go to Porto", "Noted.")
    live.settle()
    return live


def text(page: Page) -> Locator:
    return page.get_by_role("textbox", name="The prompt's text")


def prompts(page: Page) -> Locator:
    return page.get_by_role("list", name="Prompts").get_by_role("button")


def add(page: Page, name: str) -> None:
    page.get_by_role("textbox", name="Name of a new prompt").fill(name)
    page.get_by_role("button", name="Add", exact=True).click()


def stored(live: Live, name: str) -> tuple[int, str]:
    """Version and text of a prompt on the server."""
    found: Any = live.client.get(f"/api/prompts/{name}").json
    return found["version"], found["text"]


def tried(page: Page, section: str) -> Locator:
    """What is shown of a section of the summary that a prompt was tried for."""
    shown = page.get_by_role("region", name="The summary with this prompt")
    return shown.get_by_role("list", name=section, exact=True).get_by_role("listitem")


def test_a_prompt_is_changed_and_saved_as_a_new_version_unless_it_is_no_template(page, live):
    watch_of(page).expect(r"status of 422")
    page.goto("/")
    editor = open_prompts(page)
    expect(prompts(page)).to_have_text([re.compile(name) for name in PACKAGED])
    expect(text(page)).to_have_value(stored(live, "summary")[1])
    save = editor.get_by_role("button", name="Save", exact=True)
    expect(save).to_be_disabled()
    text(page).fill("{% if first %}Summarise")
    expect(prompts(page).filter(has_text="summary")).to_contain_text("not saved")
    save.click()
    expect(text(page)).to_have_accessible_description(re.compile(r"not a valid template \(line 1\)"))
    expect(text(page)).to_have_attribute("aria-invalid", "true")
    expect(text(page)).to_have_value("{% if first %}Summarise")
    assert stored(live, "summary")[0] == 0
    text(page).fill("Keep the figures.")
    expect(text(page)).not_to_have_attribute("aria-invalid", "true")
    save.click()
    expect(editor.get_by_text("Saved as version 1.")).to_be_visible()
    expect(prompts(page).filter(has_text="summary")).to_contain_text("saved here, version 1")
    assert stored(live, "summary") == (1, "Keep the figures.")
    expect(save).to_be_disabled()


def test_a_new_prompt_begins_as_a_copy_and_can_then_be_chosen(page, live, model_server):
    page.goto("/")
    editor = open_prompts(page)
    expect(text(page)).to_be_enabled()
    add(page, "Not a Name")
    expect(page.get_by_title("Use only lower-case letters")).to_be_focused()  # where the browser shows this
    add(page, "repair")
    expect(editor.get_by_role("status").filter(has_text="There is already a prompt with this name.")).to_be_visible()
    expect(text(page)).to_have_value(stored(live, "repair")[1])
    expect(prompts(page)).to_have_count(len(PACKAGED))
    add(page, "brief")
    expect(text(page)).to_be_focused()
    expect(text(page)).to_have_value(stored(live, "summary")[1])
    brief = "In at most 50 <b>words</b>.\n{% for section in sections %}{{ section.name }} {% endfor %}"
    text(page).fill(brief)
    editor.get_by_role("button", name="Save", exact=True).click()
    expect(editor.get_by_text("Saved as version 1.")).to_be_visible()
    page.keyboard.press("Escape")
    picker = page.get_by_role("dialog", name="Settings").get_by_label("Summary prompt")
    expect(picker.get_by_role("option")).to_have_text(["brief", "summary"])  # those that summarise
    expect(picker).to_have_value("summary")
    picker.select_option("brief")
    page.get_by_text("Read its text").click()
    expect(page.get_by_label("The prompt's text")).to_have_text(brief)
    close_settings(page)
    chat(page, model_server, "The roses need water")
    live.settle()
    assert "In at most 50 <b>words</b>." in sent(model_server, "mini")[-1][0]["content"]


def test_a_saved_prompt_is_deleted_when_confirmed_and_no_longer_used(page, live):
    for name in ("brief", "summary"):
        assert live.client.put(f"/api/prompts/{name}", json={"text": "In at most 50 words."}).status_code == 200
    page.goto("/")
    page.evaluate("localStorage.setItem('recap.prompt', 'brief')")
    editor = open_prompts(page)
    delete = editor.get_by_role("button", name="Delete", exact=True)
    for name in ("brief", "summary"):
        prompts(page).filter(has_text=re.compile(f"^{name}")).click()
        delete.click()
        asked = page.get_by_role("dialog", name=f"Delete the prompt “{name}”?")
        asked.get_by_role("button", name="Delete", exact=True).click()
        expect(asked).to_be_hidden()
        expect(prompts(page)).to_have_count(len(PACKAGED))
    expect(delete).to_be_hidden()
    expect(prompts(page).filter(has_text="summary")).to_contain_text("comes with Recap")
    assert stored(live, "summary")[0] == 0
    assert live.client.get("/api/prompts/brief").status_code == 404
    assert page.evaluate("localStorage.getItem('recap.prompt')") is None


def test_a_prompt_is_tried_beside_the_current_summary_and_nothing_is_stored(page, porto, model_server):
    page.goto("/#/porto")
    expect(messages(page)).to_have_count(2)
    editor = open_prompts(page)
    text(page).fill("Keep what was ruled out.")
    model_server.mini.queue(digest_of(**TRIED))
    editor.get_by_role("button", name="Try it on this chat").click()
    expect(editor).to_contain_text(re.compile(r"By mini-model, from the first message on, \d+ tokens"))
    expect(editor).to_contain_text("current summary are marked (version 1, ")
    expect(tried(page, "Topic")).to_have_text(["A weekend in Porto"])
    expect(tried(page, "Constraints")).to_have_text(
        [
            re.compile("Changed: .*900 euros"),
            re.compile("Removed: Cabin bags only"),
            re.compile("Added: .*<b>walnuts</b>"),
        ]
    )
    expect(tried(page, "Facts and figures").get_by_role("insertion")).to_contain_text(["Booking KX7QRP"])
    expect(tried(page, "Ruled out")).to_have_text(["Lisbon: too dear"])
    expect(tried(page, "Discussed")).to_have_count(0)
    assert "Keep what was ruled out." in sent(model_server, "mini")[-1][0]["content"]
    summary: Any = porto.client.get(f"/api/sessions/porto/summary?user_id={ME}").json
    assert summary["latest"]["version"] == 1 and summary["latest"]["sections"]["topic"] == NOW["topic"]
    assert stored(porto, "summary")[0] == 0
