"""What goes with a person from chat to chat: their profile, instructions, examples and links, folded in the panel."""

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ME, deed, fits, messages, tab
from tests.browser.windows import PHONE, watch_of
from tests.http import good
from tests.knowledge import digest_of, fact, link
from tests.model_server import Body

WORDS = "I live in Tallinn. My sister Ida lives in Porto."
FACTS = (
    fact("Lives in Tallinn", 1, "I live in Tallinn", scope="user"),
    fact("Has a sister, Ida", 1, "My sister Ida", scope="user", links=[link("user", "sister", "Ida", "person person")]),
    fact("Ida lives in Porto", 1, "Ida lives in Porto", links=[link("Ida", "lives in", "Porto", "person place")]),
)
PATCH = {"patch": [{"op": "add", "path": "/home", "value": "Tallinn", "quote": "I live in Tallinn", "source": 1}]}
PROPOSAL = {"text": "Be warm.\nBe brief.", "reason": "Short answers help you.", "quote": "shorter"}


def mini(body: Body) -> Any:
    """What the mini model answers: a patch of the profile, a proposal, or a digest."""
    asked = str(body["messages"])
    return PATCH if "<profile>" in asked else PROPOSAL if "<feedback>" in asked else digest_of(*FACTS)


@pytest.fixture
def known(page, live, model_server):
    """A person who is known: what they said, what they wrote, and what they thought of a reply."""
    model_server.mini.default = mini
    client = live.client
    for text in ("Be kind.", "Be warm."):
        good(client.put("/api/instructions/general", json={"user_id": ME, "text": text}))
    example = {"input": "A haiku about the sea", "output": "Grey waves\nroll in.", "tags": ["poem"], "rating": 4}
    good(client.post("/api/examples", json={"user_id": ME, **example}))
    asked = {"user_id": ME, "session_id": "s", "message": WORDS}
    turn = good(client.post("/api/chat", json=asked))
    feedback = {"user_id": ME, "session_id": "s", "message_id": turn["message_id"], "text": "Please, shorter."}
    good(client.post("/api/feedback", json=feedback))
    live.settle("summary", "feedback")
    good(client.post(f"/api/users/{ME}/profile/refresh"))
    live.settle("profile")
    return live


def opened(page: Page, title: str) -> Locator:
    """A part of the panel, which is unfolded."""
    tab(page, "About you")
    part = page.get_by_role("complementary", name="Memory").locator(
        "details", has=page.get_by_role("heading", name=title)
    )
    part.locator("summary").first.click()
    return part


def line(part: Locator, words: str) -> Locator:
    return part.get_by_role("listitem").filter(has_text=words)


def test_the_profile_is_corrected_and_a_version_comes_back(page, known):
    page.goto("/#/s")
    profile = opened(page, "Profile")
    expect(line(profile, "Tallinn")).to_contain_text("“I live in Tallinn”")
    profile.get_by_role("button", name="Add a line").click()
    profile.get_by_role("combobox").select_option("Likes")
    profile.get_by_role("textbox").fill("green tea")
    profile.get_by_role("textbox").press("Enter")
    expect(line(profile, "green tea")).to_contain_text("written by you")
    line(profile, "Tallinn").focus()
    page.keyboard.press("e")
    profile.get_by_role("textbox").fill("Tartu")
    profile.get_by_role("textbox").press("Enter")
    expect(line(profile, "Tartu")).to_contain_text("written by you")
    expect(page.locator("#memory .fact").filter(has_text="Lives in Tallinn")).to_have_count(0)
    line(profile, "green tea").focus()
    page.keyboard.press("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    expect(line(profile, "green tea")).to_have_count(0)
    profile.get_by_role("button", name="Versions").click()
    versions = page.get_by_role("dialog", name="Versions of the profile")
    expect(versions.get_by_role("list", name="Likes")).to_contain_text("Removed: green tea")
    versions.get_by_role("button", name="Version 2").click()
    versions.get_by_role("button", name="Restore this version").click()
    page.get_by_role("dialog", name="Restore version 2?").get_by_role("button", name="Restore", exact=True).click()
    expect(versions.get_by_role("button", name="Version 5")).to_contain_text("restored")
    page.keyboard.press("Escape")
    expect(line(profile, "green tea")).to_be_visible()
    document = good(known.client.get(f"/api/users/{ME}/profile"))["document"]
    assert document == {"home": "Tallinn", "likes": ["green tea"]}


def test_a_proposal_shows_what_it_changes_and_waits_for_a_yes(page, known):
    page.goto("/#/s")
    deed(messages(page).last, "Good answer")
    expect(messages(page).last.get_by_role("status")).to_contain_text("Kept as a good answer")
    page.reload()
    expect(messages(page).last.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "true")
    deed(messages(page).last, "Good answer")  # once more: taken back
    expect(messages(page).last.get_by_role("status")).to_contain_text("Taken back")
    expect(messages(page).last.get_by_role("button", name="Good answer")).to_have_attribute("aria-pressed", "false")
    deed(messages(page).last, "Bad answer")
    better = messages(page).last.get_by_role("textbox", name="What would have been better")
    better.fill("Please, shorter.")
    better.press("Enter")
    expect(messages(page).last.get_by_role("status")).to_contain_text("you decide")
    known.settle("feedback")
    messages(page).last.get_by_role("button", name="Show instructions").click()
    part = page.get_by_role("complementary", name="Memory").locator("details[open]")
    proposal = part.get_by_role("group", name="A proposed change")
    expect(proposal).to_contain_text("because you said “shorter”")
    expect(proposal.get_by_role("listitem")).to_have_text(["Be warm.", "+Added: Be brief."], use_inner_text=False)
    proposal.get_by_role("button", name="Accept").click()
    expect(proposal).to_have_count(0)
    expect(part).to_contain_text("Be warm.\nBe brief.")
    fits(page)
    line(part, "Be warm.").focus()
    page.keyboard.press("e")
    part.get_by_role("textbox").fill("Be cool.")
    part.get_by_role("button", name="Save").click()
    expect(part).to_contain_text("Be cool.")
    page.keyboard.press("e")
    part.get_by_role("textbox").fill(" ")
    part.get_by_role("button", name="Save").click()  # what would be empty is forgotten, if that is confirmed
    page.get_by_role("dialog", name="Forget this item?").get_by_role("button", name="Cancel").click()
    page.keyboard.press("Escape")
    part.get_by_role("button", name="Versions").click()
    versions = page.get_by_role("dialog", name="Versions of the instruction “general”")
    expect(versions.get_by_role("list", name="Versions").get_by_role("button")).to_have_count(4)
    versions.get_by_role("button", name="Version 3").click()
    expect(versions.get_by_role("list", name="The instruction")).to_contain_text("Added: Be brief.")
    (stands,) = good(known.client.get(f"/api/instructions?user_id={ME}"))["items"]
    assert (stands["text"], stands["proposal"]) == ("Be cool.", None)


def test_an_example_is_forgotten_and_links_lead_to_the_words_behind_them(page, known):
    page.goto("/#/s")
    part = opened(page, "Good answers")
    expect(line(part, "haiku")).to_contain_text("Grey waves\nroll in.")
    expect(line(part, "haiku")).to_contain_text("rated 4 of 5")
    line(part, "haiku").focus()
    page.keyboard.press("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    expect(part).to_contain_text("No answer has been marked as good yet.")
    assert good(known.client.get(f"/api/examples?user_id={ME}"))["items"] == []

    part = opened(page, "Links")
    expect(part.get_by_role("img", name="A picture of 2 links")).to_contain_text("Ida")
    expect(line(part, "Porto")).to_contain_text("“Ida lives in Porto”")
    line(part, "Porto").hover()
    expect(part.locator(".link-line.current")).to_have_count(1)  # the one pointed at, and no other
    line(part, "Porto").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(part.get_by_role("button", name="Back to you")).to_be_visible()
    expect(part.get_by_role("listitem").first).to_contain_text("Ida lives in Porto")
    line(part, "Porto").get_by_title("Show the message it came from").click()
    expect(messages(page).first).to_be_focused()


@pytest.mark.parametrize("page", [PHONE.at_night.in_german], indirect=True, ids=str)
def test_all_of_it_fits_and_is_accessible(page, known):
    page.goto("/#/s")
    if page.locator("[data-open-panel=memory]").is_visible():
        page.locator("[data-open-panel=memory]").click()
    page.locator("[data-tab=you]").click()
    for part in page.locator("#memory details:not(details details)").all():
        part.locator("summary").first.click()
    expect(page.locator("#memory .link-picture")).to_be_visible()
    expect(page.locator("#memory .notice .differences")).to_be_visible()
    fits(page)


def test_rules_are_written_and_what_they_keep_out_is_closed_after_asking(page, known):
    client = known.client
    good(client.post("/api/facts", json={"user_id": ME, "text": "Has asthma"}))
    page.goto("/#/s")
    part = opened(page, "Rules")
    part.get_by_label("Topics to keep out").fill("health")
    part.get_by_text("Categories, and how long they stay").click()
    part.get_by_label("Days that event stays").fill("30")
    part.get_by_label("Categories of your own").fill("pets: animals")
    part.get_by_role("button", name="Save").click()
    asked = page.get_by_role("dialog")
    expect(asked.get_by_text("Has asthma")).to_be_visible()
    asked.get_by_role("button", name="Close them").click()
    expect(page.get_by_text("The rules are saved")).to_be_attached()
    expect(part.get_by_label("Topics to keep out")).to_have_value("health")
    rules = good(client.get(f"/api/rules?user_id={ME}"))
    assert rules["version"] == 1 and rules["rules"]["topics"] == ["health"]
    assert [(one["name"], one["days"], one["about"]) for one in rules["rules"]["categories"]] == [
        ("event", 30, ""),
        ("pets", None, "animals"),
    ]
    texts = [item["text"] for item in good(client.get(f"/api/facts?user_id={ME}"))["items"]]
    assert "Has asthma" not in texts

    categories = [  # which the form does not show in full
        {"name": "plan", "keep": True, "days": None, "about": "holidays"},
        {"name": "pets", "keep": False, "days": 30, "about": "animals"},
    ]
    good(client.put("/api/rules", json={"user_id": ME, "categories": categories}))
    page.reload()
    part = opened(page, "Rules")
    part.get_by_text("Categories, and how long they stay").click()
    part.get_by_label("Categories of your own").fill("Pets: animals")
    part.get_by_role("button", name="Save").click()
    expect(page.get_by_text("The rules are saved")).to_be_attached()
    assert good(client.get(f"/api/rules?user_id={ME}"))["rules"]["categories"] == categories


def test_facts_are_reviewed(page, live, model_server):
    model_server.mini.default = mini
    good(live.client.put("/api/rules", json={"user_id": ME, "review": True}))
    good(live.client.post("/api/chat", json={"user_id": ME, "session_id": "s", "message": WORDS}))
    live.settle("summary")
    page.goto("/#/s")
    part = opened(page, "Rules")
    waiting = part.get_by_role("region", name="Facts to review")
    waiting.get_by_role("button", name="Refuse: Ida lives in Porto").click()
    expect(waiting.get_by_text("Ida lives in Porto")).to_have_count(0)
    waiting.get_by_role("button", name="Accept: Lives in Tallinn").click()
    expect(waiting.get_by_text("Lives in Tallinn")).to_have_count(0)
    expect(waiting.get_by_text("Has a sister, Ida")).to_be_visible()
    assert [item["text"] for item in good(live.client.get(f"/api/facts?user_id={ME}"))["items"]] == ["Lives in Tallinn"]


def test_rules_that_are_being_written_stay_while_memory_changes(page, known):
    page.goto("/#/s")
    part = opened(page, "Rules")
    part.get_by_text("Categories, and how long they stay").click()
    part.get_by_label("Topics to keep out").fill("health")
    review = part.locator("[name=review]")
    plans = part.locator("[name='keep plan']")
    review.check()
    plans.uncheck()
    other = page.context.new_page()
    other.goto("/")
    other.get_by_role("button", name="Add a fact").click()
    other.get_by_role("textbox", name="Fact").fill("Likes lilies")
    with page.expect_response(re.compile("/api/rules")):
        other.get_by_role("textbox", name="Fact").press("Enter")
    page.wait_for_function("document.querySelector('.item-form button.primary:not(:disabled)')")
    expect(part.get_by_label("Topics to keep out")).to_have_value("health")
    expect(review).to_be_checked()
    expect(plans).not_to_be_checked()


def test_a_value_of_a_profile_may_have_any_name(page, live):
    schema = {"type": "object", "properties": {"constructor": {"type": "string"}}}
    good(live.client.put("/api/profile/schema", json={"schema": schema}))
    watch_of(page).expect("status of 404")  # nothing is known of the person yet
    page.goto("/")
    profile = opened(page, "Profile")
    profile.get_by_role("button", name="Add a line").click()
    expect(profile.get_by_role("combobox")).to_have_value("constructor")
