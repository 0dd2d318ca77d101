"""Without a mouse, on a phone, and by ear: from the first message to a renamed chat."""

import re

from playwright.sync_api import expect

from tests.browser.page import ME, box, messages, state, talk
from tests.model_server import Dictation, Text

COMPOSES = """box => box.dispatchEvent(new KeyboardEvent(
    "keydown", { key: "Enter", keyCode: 229, bubbles: true, cancelable: true }
))"""


def test_a_chat_by_keyboard_alone(page, live, model_server):
    talk(live.client, "garden", "The roses need water", "Noted.")
    talk(live.client, "kitchen", "The oven is broken", "Noted.")
    page.goto("/")
    expect(box(page)).to_be_focused()  # ready to write
    box(page).fill("日本")
    assert box(page).evaluate(COMPOSES), "the page took the key press that ends the composition of a word"
    expect(messages(page)).to_have_count(0)
    expect(box(page)).to_have_value("日本")
    box(page).fill("")
    model_server.main.queue(Text("Hello."))
    page.keyboard.type("Hello")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("there")
    page.keyboard.press("Enter")
    expect(messages(page).last).to_contain_text("Hello.")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Tab")  # the list of chats is one stop
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(messages(page).first).to_contain_text("The roses need water")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^More about The roses"))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Delete")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name=re.compile("^More about The roses"))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem", name="Rename")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("Garden")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Garden")).to_be_visible()
    page.keyboard.press("Alt+n")
    expect(box(page)).to_be_focused()
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").json["title"] == "Garden"


HEARS = """() => {
    window.heard = [];
    const announcer = document.querySelector("[role=status]#announcer");
    new MutationObserver(() => heard.push(announcer.textContent)).observe(announcer, { childList: true });
}"""


def test_screen_readers_hear_a_reply_once_when_it_is_complete(page, model_server):
    page.goto("/")
    page.evaluate(HEARS)
    reply = Dictation()
    model_server.main.queue(reply)
    box(page).fill("When?")
    box(page).press("Enter")
    for piece in ("Water the **roses** ", "in the evening.", "\n\n```\nspray(2)\n```"):
        reply.say(piece)
        expect(messages(page).last).to_contain_text(re.findall(r"\w+", piece)[-1])
        assert page.evaluate("heard") == ["Sent"]
    expect(messages(page).last).to_have_attribute("aria-busy", "true")
    reply.end()
    expect(page.locator("#announcer")).to_contain_text("spray(2)")
    assert page.evaluate("heard.slice(1).map((words) => words.split(/\\s+/).join(' ').trim())") == [
        "Water the roses in the evening. spray(2)"  # and not the button that copies it
    ]
    expect(page.get_by_role("log", name="Messages")).to_have_attribute("aria-live", "off")  # or it would be read twice


def test_a_row_of_facts_keeps_the_focus_where_it_goes(page, live):
    for text in ("Lives in Bristol", "Likes swimming", "Has a cat"):
        state(live, text)
    page.goto("/")
    facts = page.get_by_role("list", name="Facts", exact=True).get_by_role("listitem")
    expect(facts).to_contain_text(["Has a cat", "Likes swimming", "Lives in Bristol"])
    facts.first.focus()
    page.keyboard.press("End")
    page.keyboard.press("p")
    expect(facts.first).to_contain_text("Lives in Bristol")
    expect(facts.first).to_be_focused()
    page.keyboard.press("e")
    form = page.get_by_role("textbox", name="Fact")
    expect(form).to_be_focused()
    facts.first.focus()
    page.keyboard.press("e")  # the form is still open
    expect(form).to_be_focused()
    page.keyboard.press("Escape")
    expect(facts.first).to_be_focused()
    asked = page.get_by_role("dialog", name="Forget this fact?")
    for answer, left in (("Escape", 3), ("Enter", 2)):
        page.keyboard.press("Delete")
        expect(asked).to_contain_text("Lives in Bristol")
        expect(asked.get_by_role("button", name="Erase the words too")).to_have_count(0)  # it came from no message
        page.keyboard.press(answer)
        expect(asked).to_be_hidden()
        expect(facts).to_have_count(left)
    expect(facts.first).to_be_focused()  # the neighbour of what is gone
