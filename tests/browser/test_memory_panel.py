"""The panel beside the conversation: what is remembered, where it came from, and what a person does about it."""

import re
import threading
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ME, chat, fits, known, messages, send, state, stored, stored_facts, talk
from tests.browser.windows import watch_of
from tests.knowledge import digest_of
from tests.knowledge import fact as a_fact
from tests.live import Live
from tests.model_server import Delay, Dictation, Status

SECTIONS: dict[str, Any] = {
    "topic": "A weekend in Porto",
    "requirements": ["Twin room with breakfast"],
    "constraints": ["At most 900 euros for both", "Cabin bags only"],
    "excluded": [{"option": "Lisbon", "reason": "too dear"}],
    "data": [],
    "open_questions": ["Who looks after the cat?"],
    "discussed": [],
}
WALNUTS = a_fact("Is allergic to walnuts", 1, "allergic to walnuts", category="identity", importance=5, scope="user")


def digest(*facts: dict[str, Any], **sections: Any) -> dict[str, Any]:
    """What the mini model answers: SECTIONS, some of them otherwise, and facts."""
    return digest_of(*facts, **{**SECTIONS, **sections})


def panel(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Memory")


def chosen(page: Page, name: str) -> None:
    """Choose a tab of the panel unless it is chosen."""
    one = panel(page).get_by_role("tab", name=re.compile(f"^{name}"))
    if one.get_attribute("aria-selected") != "true":
        one.click()


def facts(page: Page) -> Locator:
    """The facts that are shown, in order."""
    chosen(page, "Facts")
    return panel(page).get_by_role("list", name="Facts", exact=True).get_by_role("listitem")


def fact(page: Page, text: str) -> Locator:
    return facts(page).filter(has_text=text)


def items(page: Page, section: str) -> Locator:
    """The items of a section of the summary."""
    chosen(page, "Summary")
    return panel(page).get_by_role("list", name=section, exact=True).get_by_role("listitem")


def summary(live: Live, session_id: str) -> dict[str, Any]:
    stands: Any = live.client.get(f"/api/sessions/{session_id}/summary?user_id={ME}").json
    return dict(stands["latest"])


@pytest.fixture
def porto(live, model_server):
    """A chat "porto" with the summary SECTIONS and the fact WALNUTS; its messages' ids."""
    model_server.mini.queue(digest(WALNUTS))
    ids = talk(live.client, "porto", "We go to Porto. I am allergic to walnuts, by the way.", "Noted.")
    live.settle()
    return ids


# -- it appears


def test_a_summary_and_facts_appear_and_stay_while_they_are_updated(page, model_server):
    model_server.mini.queue(digest(WALNUTS))
    page.goto("/")
    expect(panel(page)).to_contain_text("A summary appears after a reply or two.")
    expect(panel(page)).to_contain_text("Nothing is remembered yet.")
    chat(page, model_server, "We go to Porto. I am allergic to walnuts, by the way.")
    expect(panel(page)).to_contain_text("Version 1")
    expect(items(page, "Constraints")).to_have_text(["At most 900 euros for both", "Cabin bags only"])
    expect(items(page, "Ruled out")).to_have_text(["Lisbon: too dear"])
    fact(page, "Is allergic to walnuts").get_by_role("button", expanded=False).click()
    expect(fact(page, "Is allergic to walnuts")).to_contain_text("in all chats")
    expect(facts(page).get_by_role("img", name="importance 5 of 5")).to_be_visible()

    release = threading.Event()
    model_server.mini.queue(Delay(release, digest(topic="A weekend in Porto with Noor")))
    chat(page, model_server, "Noor comes along.")
    expect(panel(page)).to_contain_text("updating")
    expect(items(page, "Topic")).to_have_text(["A weekend in Porto"])
    release.set()
    expect(items(page, "Topic")).to_have_text(["A weekend in Porto with Noor"])
    expect(panel(page)).not_to_contain_text("updating")


def test_an_update_takes_neither_the_focus_nor_what_is_being_written(page, live, porto, model_server):
    state(live, "Lives in Bristol")
    page.goto("/#/porto")
    reply = Dictation()
    model_server.main.queue(reply)
    model_server.mini.queue(digest({**WALNUTS, "text": "Noor is the sister", "source": 3, "quote": "sister Noor"}))
    send(page, "My sister Noor comes along.")
    fact(page, "Lives in Bristol").hover()
    fact(page, "Lives in Bristol").get_by_role("button", name="Edit").click()
    words = panel(page).get_by_role("textbox", name="Fact")
    words.fill("Lives in Bath")
    fact(page, "Is allergic to walnuts").focus()
    reply.say("Lovely.")
    reply.end()
    expect(fact(page, "Noor is the sister")).to_be_visible()
    expect(fact(page, "Is allergic to walnuts")).to_be_focused()
    expect(words).to_have_value("Lives in Bath")


# -- a fact


def test_a_fact_is_corrected_in_its_place_and_its_history_tells(page, live):
    state(live, "Lives in Bristol")
    for number in range(30):
        state(live, f"Fact number {number}", importance=1)
    page.goto("/")
    facts(page).last.scroll_into_view_if_needed()
    panel(page).get_by_role("button", name="Add a fact").focus()
    page.keyboard.press("Enter")
    form = panel(page).get_by_role("textbox", name="Fact")
    expect(form).to_be_focused()
    at = "document.elementFromPoint(one.getBoundingClientRect().x + 9, one.getBoundingClientRect().y + 2)"
    covered = f"one => !one.contains({at})"
    assert not form.evaluate(covered)  # by what stays in view above it
    form.press("Escape")
    fact(page, "Lives in Bristol").hover()
    fact(page, "Lives in Bristol").get_by_role("button", name="Edit").click()
    words = panel(page).get_by_role("textbox", name="Fact")
    words.fill("Lives in Bath")
    panel(page).get_by_role("combobox", name="Importance").select_option("5")
    panel(page).get_by_role("combobox", name="Category").select_option("identity")
    words.press("Enter")
    expect(fact(page, "Lives in Bath")).to_be_focused()
    stands = next(one for one in stored_facts(live) if one["importance"] == 5)
    assert (stands["text"], stands["importance"], stands["category"]) == ("Lives in Bath", 5, "identity")
    page.keyboard.press("Enter")
    fact(page, "Lives in Bath").get_by_role("button", name=re.compile("^since")).click()
    changes = panel(page).get_by_role("list", name="How this fact changed").get_by_role("listitem")
    expect(changes.first).to_contain_text("identity")
    expect(changes.last).to_contain_text("You stated: “Lives in Bristol”")


# -- forgetting


def test_forget_offers_to_erase_the_words_too(page, live, model_server):
    model_server.mini.queue(digest(WALNUTS, a_fact("Goes to Porto", 1, "We go to Porto")))
    talk(live.client, "porto", "We go to Porto. I am allergic to walnuts, by the way.", "Noted.")
    live.settle()
    page.goto("/#/porto")
    for text, answer, roles in (
        ("Goes to Porto", "Forget the fact", ["user", "assistant"]),
        ("Is allergic to walnuts", "Erase the words too", ["assistant"]),
    ):
        fact(page, text).hover()
        fact(page, text).get_by_role("button", name="Forget").click()
        asked = page.get_by_role("dialog", name="Forget this fact?")
        expect(asked).to_contain_text("no longer use what you forget")
        expect(asked).to_contain_text("The words it came from stay in their chat")
        fits(page)
        asked.get_by_role("button", name=answer).click()
        expect(fact(page, text)).to_have_count(0)
        expect(messages(page)).to_have_count(len(roles))
        assert [role for role, _ in stored(live, "porto")] == roles
    assert known(live) == []


# -- the summary, by hand


def test_the_summary_is_edited_as_text(page, live, porto):
    page.goto("/#/porto")
    chosen(page, "Summary")
    panel(page).get_by_role("button", name="Edit the summary").click()
    form = panel(page).get_by_role("form", name="Edit the summary")
    form.get_by_role("textbox", name="Constraints").fill("At most 950 euros for both\n\n  Nothing with walnuts ")
    form.get_by_role("textbox", name="Ruled out").fill("Lisbon: too dear\nHostel dormitory: Noor sleeps badly\nBoats")
    form.get_by_role("button", name="Save").click()
    expect(panel(page)).to_contain_text("Version 2")
    expect(panel(page)).to_contain_text("by you")
    assert summary(live, "porto")["sections"] == {
        **SECTIONS,
        "constraints": ["At most 950 euros for both", "Nothing with walnuts"],
        "excluded": [
            {"option": "Lisbon", "reason": "too dear"},
            {"option": "Hostel dormitory", "reason": "Noor sleeps badly"},
            {"option": "Boats", "reason": ""},
        ],
    }


def test_an_edit_that_was_overtaken_is_explained_and_brought_into_the_new_version(page, live, porto):
    watch_of(page).expect("status of 409")
    page.goto("/#/porto")
    chosen(page, "Summary")
    panel(page).get_by_role("button", name="Edit the summary").click()
    constraints = panel(page).get_by_role("textbox", name="Constraints")
    constraints.fill("At most 900 euros for both\nNothing with walnuts")
    meanwhile = {**SECTIONS, "topic": "Porto in May", "constraints": [*SECTIONS["constraints"], "Vegetarian food"]}
    live.client.put("/api/sessions/porto/summary", json={"user_id": ME, "sections": meanwhile})
    panel(page).get_by_role("button", name="Save").click()
    expect(panel(page).get_by_role("alert").filter(has_text="nothing you typed is lost")).to_be_visible()
    expect(constraints).to_have_value("At most 900 euros for both\nNothing with walnuts")
    panel(page).get_by_role("button", name="Bring my changes into version 2").click()
    expect(constraints).to_have_value("At most 900 euros for both\nNothing with walnuts\nVegetarian food")
    panel(page).get_by_role("button", name="Save").click()
    expect(panel(page)).to_contain_text("Version 3")
    assert summary(live, "porto")["sections"] == {
        **meanwhile,
        "constraints": ["At most 900 euros for both", "Nothing with walnuts", "Vegetarian food"],
    }


def test_one_item_is_corrected_or_forgotten_when_confirmed(page, live, porto):
    talk(live.client, "garden", "The roses need water.", "Noted.")
    page.goto("/#/porto")
    items(page, "Constraints").first.focus()
    page.keyboard.press("e")
    words = panel(page).get_by_role("textbox", name="The item")
    words.fill("At most 950 euros for both")
    page.goto("/#/garden")
    expect(words).to_have_count(0)
    page.goto("/#/porto")
    expect(words).to_have_value("At most 950 euros for both")  # what is being written outlasts another chat
    words.press("Enter")
    expect(items(page, "Constraints")).to_have_text(["At most 950 euros for both", "Cabin bags only"])
    items(page, "Ruled out").hover()
    items(page, "Ruled out").get_by_role("button", name="Forget").click()
    asked = page.get_by_role("dialog", name="Forget this item?")
    expect(asked).to_contain_text("“Lisbon: too dear” leaves the summary. Its earlier versions keep it.")
    asked.get_by_role("button", name="Forget", exact=True).click()
    expect(items(page, "Ruled out")).to_have_count(0)
    assert summary(live, "porto")["sections"]["excluded"] == []


# -- versions


def test_versions_show_what_changed_and_one_is_brought_back_when_confirmed(page, live, porto):
    changed = {**SECTIONS, "constraints": ["At most 950 euros for both", "Cabin bags only"], "open_questions": []}
    live.client.put("/api/sessions/porto/summary", json={"user_id": ME, "sections": changed})
    page.goto("/#/porto")
    chosen(page, "Summary")
    panel(page).get_by_role("button", name="Versions").click()
    dialog = page.get_by_role("dialog", name="Versions of the summary")
    expect(dialog.get_by_role("list", name="Versions").get_by_role("button")).to_contain_text(
        ["Version 2", "Version 1"]
    )
    expect(dialog.get_by_role("heading", name="What version 2 changed")).to_be_visible()
    constraints = dialog.get_by_role("list", name="Constraints").get_by_role("listitem")
    expect(constraints.first).to_contain_text("Changed: At most 900950 euros for both")
    expect(constraints.first.get_by_role("deletion")).to_have_text("900")
    expect(constraints.first.get_by_role("insertion")).to_have_text("950")
    questions = dialog.get_by_role("list", name="Open questions")
    expect(questions).to_contain_text("Removed: Who looks after the cat?")
    dialog.get_by_role("button", name=re.compile("^Version 1")).click()
    expect(questions).to_contain_text("Added: Who looks after the cat?")  # since there was nothing
    dialog.get_by_role("button", name="Compare with the newest").click()
    expect(questions).to_contain_text("Removed: Who looks after the cat?")
    back = dialog.get_by_role("button", name="Restore this version")
    back.click()
    page.get_by_role("dialog", name="Restore version 1?").get_by_role("button", name="Cancel").click()
    assert summary(live, "porto")["version"] == 2
    back.click()
    page.get_by_role("dialog", name="Restore version 1?").get_by_role("button", name="Restore", exact=True).click()
    expect(dialog.get_by_role("list", name="Versions").get_by_role("button").first).to_contain_text(
        "version 1 restored"
    )
    page.keyboard.press("Escape")
    expect(items(page, "Open questions")).to_have_text(["Who looks after the cat?"])
    assert summary(live, "porto")["sections"] == SECTIONS


# -- failures


def test_a_failing_mini_model_is_said_and_tried_again_now(page, porto, model_server):
    page.goto("/#/porto")
    expect(panel(page)).to_contain_text("Version 1")
    working = model_server.mini.default
    model_server.mini.default = lambda body: Status(500)
    chat(page, model_server, "Noor comes along.")
    panel(page).get_by_role("tab", name="Summary !").click()
    notice = panel(page).get_by_role("alert").filter(has_text="retried automatically")
    expect(notice).to_contain_text("Version 1 stays")
    expect(items(page, "Topic")).to_have_text(["A weekend in Porto"])
    model_server.mini.default = working
    model_server.mini.queue(digest(topic="Porto with Noor"))
    notice.get_by_role("button", name="Try again now").click()
    expect(items(page, "Topic")).to_have_text(["Porto with Noor"])
    expect(notice).to_have_count(0)
