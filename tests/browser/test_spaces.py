"""Spaces on the page: choosing whose memory is shown, chatting there, and what a reply uses of one's own."""

from playwright.sync_api import Locator, Page, expect

from app import engine_of
from tests.browser.page import (
    chat,
    close_settings,
    deed,
    fits,
    known,
    messages,
    open_chat,
    open_manage,
    open_settings,
    state,
    talk,
)
from tests.browser.windows import watch_of
from tests.http import append, good, read_all, said
from tests.live import Live
from tests.model_server import prompts

TEAM = {"space": "team"}


def chooser(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Whose memory")


def chats(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Chats")


def of_team(live: Live) -> None:
    append(live.client, "plans", [said("The kites ship on Friday."), said("Noted.", "assistant")], **TEAM)
    good(live.client.post("/api/facts", json={"text": "Ships kites", **TEAM}))


def test_a_space_has_chats_and_a_memory_of_its_own(page, live, model_server):
    talk(live.client, "own", "My own tea is green.", "Noted.")
    state(live, "Likes tea")
    of_team(live)
    page.goto("/")
    memory = page.get_by_role("complementary", name="Memory")
    expect(chooser(page)).to_have_value("")
    expect(chats(page)).not_to_contain_text("The kites")
    chooser(page).select_option("team")
    expect(chats(page)).to_contain_text("The kites ship on Friday.")
    expect(chats(page)).not_to_contain_text("My own tea")
    open_chat(page, "The kites ship")
    expect(messages(page).first).to_contain_text("The kites ship on Friday.")
    expect(memory).to_contain_text("Ships kites")
    expect(memory).not_to_contain_text("Likes tea")
    chat(page, model_server, "And what else?")
    assert len(read_all(live.client, "/api/sessions/plans/messages", **TEAM)) == 4
    dialog = open_manage(page, "Your data")
    expect(dialog).to_contain_text("Everything Recap remembers about team")
    page.keyboard.press("Escape")
    page.reload()
    expect(chooser(page)).to_have_value("team")
    expect(messages(page).first).to_contain_text("The kites ship on Friday.")
    fits(page)
    chooser(page).select_option("")
    expect(chats(page)).to_contain_text("My own tea is green.")
    assert known(live) == ["Likes tea"]


def test_replies_in_a_space_use_ones_own_memory_when_asked(page, live, model_server):
    talk(live.client, "own", "My locker code is 1111.", "Noted.")
    of_team(live)
    page.goto("/")
    chooser(page).select_option("team")
    with_me = page.get_by_role("checkbox", name="Use my memory too")
    expect(with_me).not_to_be_checked()
    chat(page, model_server, "What is my locker code?")
    assert "1111" not in str(prompts(model_server)[-1])
    with_me.check()
    chat(page, model_server, "What is my locker code?")
    assert "1111" in str(prompts(model_server)[-1])
    deed(messages(page).last, "Why this answer")
    why = page.get_by_role("region", name="Why this answer")
    expect(why).to_contain_text("From your own memory")
    why.get_by_role("button", name="My locker code is 1111.").click()
    expect(chooser(page)).to_have_value("")
    expect(messages(page).first).to_contain_text("My locker code is 1111.")


def test_a_space_begins_with_its_first_message(page, live, model_server):
    talk(live.client, "own", "My own tea is green.", "Noted.")
    page.goto("/")
    expect(chats(page)).to_contain_text("My own tea is green.")
    expect(chooser(page)).to_have_count(0)  # without a space there is nothing to choose
    open_settings(page).get_by_role("textbox", name="Space").fill("new project")
    page.keyboard.press("Tab")
    close_settings(page)
    expect(chooser(page)).to_have_value("new-project")
    chat(page, model_server, "We begin today.")
    (session,) = read_all(live.client, "/api/sessions", space="new-project")
    assert session["title"] == "We begin today." and len(read_all(live.client, "/api/sessions", user_id="me")) == 1


def test_a_key_shows_the_spaces_that_it_opens(page, live):
    of_team(live)
    key, _ = engine_of(live.app).keys.create("default", "ada", spaces={"team": "read"})
    watch_of(page).expect(r"status of 401")
    page.goto("/")
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    expect(chooser(page).get_by_role("option")).to_have_text(["My own memory", "team (only to read)"])
    chooser(page).select_option("team")
    open_chat(page, "The kites ship")
    expect(messages(page).first).to_contain_text("The kites ship on Friday.")


def test_a_tab_writes_to_the_memory_that_it_shows_whatever_another_one_shows(page, live, model_server):
    talk(live.client, "own", "My own tea is green.", "Noted.")
    of_team(live)
    page.goto("/")
    other = page.context.new_page()
    other.goto("/")
    expect(chooser(other)).to_have_value("")
    chooser(page).select_option("team")
    expect(chats(page)).to_contain_text("The kites")
    other.bring_to_front()
    chat(other, model_server, "Nobody at work knows my plan.")
    assert [one["title"] for one in read_all(live.client, "/api/sessions", **TEAM)] == ["The kites ship on Friday."]
    other.reload()
    expect(chooser(other)).to_have_value("")
    expect(messages(other).first).to_contain_text("Nobody at work knows my plan.")
    new = page.context.new_page()
    new.goto("/")
    expect(chooser(new)).to_have_value("team")  # what was chosen last
