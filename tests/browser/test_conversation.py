"""The conversation: sending, streaming, stopping, failing, changing one's words, and finding it all again."""

import base64
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.page import (
    ME,
    begin,
    box,
    chat,
    deed,
    fits,
    known,
    log,
    messages,
    open_chat,
    open_settings,
    send,
    session_shown,
    state,
    stored,
    talk,
)
from tests.browser.windows import PHONE, watch_of
from tests.http import good
from tests.knowledge import digest_of, fact
from tests.model_server import Status, Text, ToolCalls, prompts
from tests.processes import eventually

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

MILLISECONDS_OF_SPACES = """async () => {
    const { typed } = await import("./static/js/chat/composer.js");
    const began = performance.now();
    typed(`a${" ".repeat(99_998)}b`);
    return performance.now() - began;
}"""
# As of an office program: words, and a picture of them, which would be attached.
PASTE_CELLS = """box => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(["PNG"], "cells.png", { type: "image/png" }));
    for (const type of ["text/plain", "text/html"]) clipboardData.setData(type, "1 2");
    box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


def is_change(route: Route) -> bool:
    return route.request.method == "PATCH"


def done(page: Page) -> None:
    """The turn is over, and stored: the box is free again."""
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def test_a_first_chat_from_the_empty_page(page, live, model_server):
    page.goto("/")
    expect(page.get_by_role("heading", name="Say something worth remembering.")).to_be_visible()
    page.get_by_role("button", name=re.compile("My name is Ada")).click()
    expect(box(page)).to_have_value(re.compile("My name is Ada"))
    model_server.main.queue(Text("Hello **Ada**, nice to meet you."))
    box(page).press("Enter")
    expect(messages(page).last.locator("strong")).to_have_text("Ada")
    expect(box(page)).to_have_value("")
    expect(page).to_have_title(re.compile("My name is Ada"))
    done(page)
    chats = page.get_by_role("navigation", name="Chats")
    expect(chats.get_by_role("button", name=re.compile("^My name is Ada")).first).to_be_visible()
    assert [role for role, _ in stored(live, session_shown(page))] == ["user", "assistant"]


def test_a_model_failure_is_said_and_tried_again_without_doubling(page, live, model_server):
    watch_of(page).expect("status of 502")
    model_server.main.queue(Status(500), Status(500), Status(500))
    page.goto("/")
    send(page, "Where is the bug?")
    alert = page.get_by_role("alert").filter(
        has_text="The model server reported an error. Try again in a moment. Your message is kept."
    )
    expect(alert).to_be_visible()
    expect(alert).not_to_contain_text(session_shown(page), use_inner_text=True)
    alert.get_by_text("For whoever runs this Recap").click()
    expect(alert).to_contain_text("failed (HTTP 500)")
    expect(box(page)).to_have_value("")
    model_server.reset()
    model_server.main.queue(Text("In the parser."))
    alert.get_by_role("button", name="Try again").click()
    expect(messages(page).last).to_contain_text("In the parser.")
    done(page)
    assert stored(live, session_shown(page)) == [("user", "Where is the bug?"), ("assistant", "In the parser.")]


def test_what_could_not_be_sent_stays_in_the_box(page, live, model_server):
    page.goto("/")
    chat(page, model_server, "First")
    watch_of(page).expect("net::ERR_")
    live.stop()
    send(page, "A thought I would hate to lose")
    expect(page.get_by_role("main").get_by_role("alert")).to_contain_text("can't be reached")
    expect(box(page)).to_have_value("A thought I would hate to lose")
    live.start()
    model_server.main.queue(Text("It is safe."))
    box(page).press("Enter")
    expect(messages(page).last).to_contain_text("It is safe.")
    done(page)
    assert [words for _, words in stored(live, session_shown(page))].count("A thought I would hate to lose") == 1


def test_words_are_shown_as_they_were_typed_and_too_many_stay_in_the_box(page, live):
    page.goto("/")
    text = "  two spaces\nnext line:\n```py\nif a:\n    b()\n```\nthe <b>end</b>"
    send(page, f"\n{text}\n")
    expect(messages(page)).to_have_count(2)
    done(page)
    own = messages(page).first
    assert own.locator(".body").evaluate("body => body.innerText") == (
        "  two spaces\nnext line:\npy\nCopy\nif a:\n    b()\nthe <b>end</b>"
    )
    assert own.locator("pre > code").text_content() == "if a:\n    b()"
    assert stored(live, session_shown(page))[0] == ("user", text)
    send(page, "\n".join(map(str, range(100))))
    expect(messages(page)).to_have_count(4)
    done(page)
    long = messages(page).nth(2)
    low = long.bounding_box()["height"]
    long.get_by_role("button", name="Show all of it").click()
    assert long.bounding_box()["height"] > 3 * low
    long = "word " * 20_000 + "the end"
    box(page).evaluate("(box, text) => { box.focus(); document.execCommand('insertText', false, text); }", long)
    alert = page.get_by_role("main").get_by_role("alert")
    expect(alert).to_contain_text("7 characters longer than the 100,000 that fit")
    box(page).press("Enter")
    expect(messages(page)).to_have_count(4)
    expect(box(page)).to_have_value(long)
    box(page).press("Control+a")
    box(page).press_sequentially("Short")
    expect(alert).to_be_hidden()
    assert page.evaluate(MILLISECONDS_OF_SPACES) < 1000


def test_a_draft_outlives_a_reload_and_a_look_at_another_chat(page, live, tmp_path):
    """So do its files outlive the look; a reload takes them away."""
    (tmp_path / "notes.txt").write_text("The kiln is cold.")
    talk(live.client, "garden", "The roses need water", "Noted.")
    page.goto("/")
    box(page).fill("Half a thought")
    attach(page, tmp_path / "notes.txt")
    expect(page.locator(".composer .attachments")).to_contain_text("notes.txt")
    open_chat(page, "The roses")
    expect(messages(page)).to_have_count(2)
    expect(box(page)).to_have_value("")
    expect(page.locator(".composer .attachments")).to_have_count(0)
    page.get_by_role("button", name="New chat", exact=True).click()
    expect(box(page)).to_have_value("Half a thought")
    expect(page.locator(".composer .attachments")).to_contain_text("notes.txt")
    page.reload()
    expect(box(page)).to_have_value("Half a thought")


def test_any_message_is_edited_and_its_versions_come_back(page, live, model_server):
    page.goto("/")
    chat(page, model_server, "I live in Lyon", "A fine city.")
    chat(page, model_server, "And I like tea", "Green, then.")
    deed(messages(page).first, "Edit")
    words = page.get_by_role("textbox", name="Your message, changed")
    expect(words).to_be_focused()
    assert page.evaluate("document.activeElement.selectionStart") > 0  # one goes on writing at the end
    words.fill("I live in Lille")
    model_server.main.queue("Lille it is.")
    words.press("Enter")
    expect(messages(page).last).to_contain_text("Lille it is.")
    expect(messages(page)).to_have_count(2)
    expect(messages(page).first).to_contain_text("2/2")
    before = page.get_by_role("button", name="Previous version")
    after = page.get_by_role("button", name="Next version")
    expect(after).to_be_disabled()
    before.click()
    expect(messages(page)).to_have_count(4)
    expect(messages(page).first).to_contain_text("I live in Lyon")
    expect(messages(page).last).to_contain_text("Green, then.")
    assert [text for _, text in stored(live, session_shown(page))][:2] == ["I live in Lyon", "A fine city."]
    page.reload()
    expect(before).to_be_disabled()
    after.click()
    expect(messages(page)).to_have_count(2)
    expect(before).to_be_enabled()
    assert stored(live, session_shown(page)) == [("user", "I live in Lille"), ("assistant", "Lille it is.")]


def test_what_a_turn_brought_to_memory_is_told_under_its_reply_and_undone(page, live, model_server):
    state(live, "Lives in Bergen")
    page.goto("/")
    lives = fact("Lives in Oslo", 1, "I live in Oslo")
    model_server.mini.queue(digest_of(lives, topic="Towns &amp; cities", data=["Lives in Oslo"]))
    chat(page, model_server, "Actually I live in Oslo now", "Noted.")
    told = messages(page).last.get_by_text("Remembered: Lives in Oslo")
    expect(told).to_be_visible()
    chats = page.get_by_role("navigation", name="Chats")
    expect(chats.get_by_role("button", name=re.compile("^Towns & cities"))).to_be_visible()  # its topic is its title
    expect(page).to_have_title("Towns & cities · Recap")
    page.reload()
    expect(told).to_be_visible()
    page.get_by_title("Forget this: Lives in Oslo").click()
    expect(told).to_have_count(0)
    expect(page.get_by_role("complementary", name="Memory")).to_contain_text("Lives in Bergen")  # it holds again
    assert known(live) == ["Lives in Bergen"]
    page.get_by_role("tab", name="Summary").click()
    figures = page.get_by_role("list", name="Facts and figures").get_by_role("listitem")
    expect(figures).to_have_text(["Lives in Bergen"])  # in the summary, too


def test_what_the_model_wrote_is_told_under_its_reply_and_undone(page, live, model_server):
    state(live, "Lives in Bergen")
    known_facts = page.get_by_role("complementary", name="Memory")
    page.goto("/")
    page.evaluate("localStorage.setItem('recap.recall', 'tools')")
    page.reload()
    words = {"text": "I keep bees", "quote": "I keep bees"}
    model_server.main.queue(ToolCalls((("remember", words),)))
    chat(page, model_server, "I keep bees", "Nice.")
    expect(messages(page).last.get_by_text("Remembered: I keep bees")).to_be_visible()
    forgotten = {"fact": "Lives in Bergen", "quote": "Forget that I live in Bergen", "rest": ""}
    model_server.main.queue(ToolCalls((("forget", forgotten),)))
    chat(page, model_server, "Forget that I live in Bergen", "Done.")
    told = messages(page).last.get_by_text("Forgotten: Lives in Bergen")
    expect(told).to_be_visible()
    expect(known_facts).not_to_contain_text("Lives in Bergen")
    assert known(live) == ["I keep bees"]
    page.get_by_title("Remember this again: Lives in Bergen").click()
    expect(known_facts).to_contain_text("Lives in Bergen")
    assert sorted(known(live)) == ["I keep bees", "Lives in Bergen"]
    page.get_by_title("Forget this: I keep bees").click()
    expect(known_facts.get_by_role("list", name="Facts")).not_to_contain_text("bees")


def test_memory_is_turned_off_for_a_chat_in_every_browser(page, live, browse, model_server):
    state(live, "Likes lilies")
    page.goto("/")
    switch = page.get_by_role("button", name="Memory on")
    switch.click()
    off = page.get_by_role("button", name="Memory off")
    chat(page, model_server, "What flowers do I like?", "I can't tell.")
    (prompt,) = prompts(model_server)
    assert "lilies" not in str(prompt)
    assert live.client.get(f"/api/sessions/{session_shown(page)}?user_id={ME}").json["remember"] is False
    other = browse(live)
    other.goto(page.url)
    expect(messages(other)).to_have_count(2)
    expect(other.get_by_role("button", name="Memory off")).to_be_visible()
    other.close()
    off.click()
    expect(switch).to_be_visible()
    assert live.client.get(f"/api/sessions/{session_shown(page)}?user_id={ME}").json["remember"]
    page.get_by_role("button", name="New chat", exact=True).click()
    expect(switch).to_be_visible()
    chat(page, model_server, "What flowers do I like?", "Lilies.")
    assert "lilies" in str(prompts(model_server)[-1])
    open_settings(page).get_by_role("checkbox", name="Recap remembers").uncheck()  # the one switch for all of it
    page.keyboard.press("Escape")
    everywhere = page.get_by_role("button", name="Memory off everywhere")
    expect(everywhere).to_be_disabled()
    page.reload()
    expect(everywhere).to_be_visible()
    assert live.client.get(f"/api/users/{ME}").json["remember"] is False


MANY = 200
DRAWN_BEFORE = "[...document.querySelectorAll('article')].filter(one => one.drawn).length"


def test_a_long_history_loads_as_one_scrolls_and_each_message_is_drawn_once(page, live, model_server):
    """To draw all of them anew for each page that is read, and for each piece of a reply, would take seconds."""
    talk(live.client, "long", *(f"Message number {n}" for n in range(1, MANY + 1)))
    page.goto("/#/long")
    expect(messages(page).last).to_contain_text(f"Message number {MANY}")
    expect(messages(page).last).to_be_in_viewport()
    log = page.get_by_role("log", name="Messages")
    expect(log.get_by_text("Message number 1", exact=True)).to_have_count(0)
    while (held := messages(page).count()) < MANY:
        log.evaluate(
            "list => { list.querySelectorAll('article').forEach(one => one.drawn = true); list.scrollTop = 0 }"
        )
        expect(messages(page)).not_to_have_count(held)
        assert page.evaluate(DRAWN_BEFORE) == held
    words = log.get_by_role("article").all_inner_texts()
    assert [text.split("\n")[0] for text in words] == [f"Message number {n}" for n in range(1, MANY + 1)]
    page.evaluate("document.querySelectorAll('article').forEach(one => one.drawn = true)")
    chat(page, model_server, "And now?", "Fine.")
    assert page.evaluate(DRAWN_BEFORE) >= MANY - 2  # the last two have other buttons now


def test_why_this_answer_tells_what_was_recalled_and_what_it_cost(page, live, model_server):
    talk(live.client, "trip", "The ferry to Saaremaa leaves at 7:40 on Friday", "Noted.")
    state(live, "Is allergic to walnuts")
    patch = [{"op": "add", "path": "/home", "value": "Tallinn"}]
    good(live.client.patch(f"/api/users/{ME}/profile", json={"patch": patch}))
    good(live.client.put("/api/instructions/general", json={"user_id": ME, "text": "Be brief."}))
    page.goto("/")
    chat(page, model_server, "When does the ferry to Saaremaa leave?", "At 7:40.")
    why = messages(page).last.get_by_role("button", name="Why this answer")
    why.click()
    told = page.get_by_role("region", name="Why this answer")
    expect(told).to_contain_text("The ferry to Saaremaa leaves at 7:40 on Friday")
    expect(told.get_by_text("matches your words")).to_be_visible()
    expect(told.get_by_text("Full history").first).to_be_hidden()  # figures stand behind their words
    page.reload()  # the same is told of a stored reply
    deed(messages(page).last, "Why this answer")
    for words in ("The ferry to Saaremaa leaves at 7:40 on Friday", "walnuts", "Tallinn", "Be brief."):
        expect(told.get_by_text(words).first).to_be_visible()  # all that the prompt held
    told.get_by_role("button", name="Not helpful").click()
    expect(told.get_by_role("status")).to_contain_text("it counts less for similar questions")
    fits(page)
    chat(page, model_server, "At what time does the ferry to Saaremaa leave?", "At 7:40.")
    deed(messages(page).last, "Why this answer")
    expect(told.last).to_contain_text(re.compile(r"marked as not helpful before -\d"))
    page.reload()
    deed(messages(page).nth(1), "Why this answer")
    told.get_by_role("button", name="Undo").click()
    expect(told.get_by_role("button", name="Not helpful")).to_be_enabled()
    assert good(live.client.get(f"/api/recall/unhelpful?user_id={ME}"))["items"] == []
    told.get_by_role("button", name=re.compile("The ferry")).click()
    expect(page.get_by_role("article").filter(has_text="leaves at 7:40 on Friday")).to_be_focused()
    assert session_shown(page) == "trip"


def test_long_reasons_leave_the_question_in_view(page, live, model_server):
    for number in range(12):
        talk(live.client, f"trip-{number}", f"The ferry to Saaremaa was late in {2010 + number}. " * 6, "Noted.")
    page.goto("/")
    chat(page, model_server, "How often was the ferry to Saaremaa late?", "Twelve times.")
    deed(messages(page).last, "Why this answer")
    why = page.get_by_role("region", name="Why this answer")
    expect(why.get_by_role("blockquote").nth(5)).to_be_attached()
    expect(messages(page).first.get_by_text("How often was")).to_be_in_viewport()
    assert why.evaluate("e => e.scrollHeight > e.clientHeight"), "they scroll by themselves"
    why.get_by_text("Tokens").last.scroll_into_view_if_needed()
    expect(messages(page).first.get_by_text("How often was")).to_be_in_viewport()
    fits(page)


def test_a_temporary_chat_remembers_its_own_words_and_stores_nothing(page, live, model_server):
    page.goto("/")
    page.get_by_role("button", name="Temporary").click()
    expect(page.get_by_role("heading", name="A temporary chat")).to_be_visible()
    chat(page, model_server, "The surprise party is on Sunday", "A secret, then.")
    chat(page, model_server, "When is it?", "On Sunday.")
    sent = model_server.requests[-1].body["messages"]
    assert [m["content"] for m in sent if "surprise party" in str(m["content"])], sent
    why = page.get_by_role("button", name=re.compile("Why this answer"))
    expect(why).to_have_count(2)  # under each reply its own
    why.first.click()
    told = messages(page).nth(1).get_by_role("region", name="Why this answer")
    expect(told).to_contain_text("the model read only your message")
    assert live.client.get("/api/sessions").json["items"] == []
    page.reload()
    expect(page.get_by_text("surprise party")).to_have_count(0)


def test_the_builtin_model_is_announced_with_the_line_that_sets_another(serve, browse):
    page = browse(serve(builtin=True))
    page.goto("/")
    notices = page.get_by_role("region", name="Notices")
    expect(notices).to_contain_text("built-in model")
    expect(notices).to_contain_text("OPENAI_API_KEY=")
    expect(page.get_by_title("The model that answers").locator("option:checked")).to_have_text("built-in model")
    notices.get_by_role("button", name="Close").click()
    expect(notices).to_be_hidden()
    page.reload()
    expect(box(page)).to_be_visible()
    expect(notices).to_be_hidden()
    open_settings(page, "Models").get_by_role("button", name="Connect a model").click()
    dialog = page.get_by_role("dialog", name="Connect a model")
    expect(dialog.get_by_role("button", name="Save")).to_be_visible()


def attach(page: Page, *files: Path, to: str = "Attach images or text files") -> None:
    """Choose files by the menu beside the message box; the next message waits for them."""
    page.get_by_role("button", name="Add files", exact=True).click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("menuitem", name=to).click()
    chooser.value.set_files(files)


def test_images_and_text_files_go_along_with_a_message_and_another_reply(page, live, model_server, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("The ferry leaves at 7:40")
    picture = tmp_path / "quay.png"
    picture.write_bytes(base64.b64decode(PIXEL))
    program = tmp_path / "thing.exe"
    program.write_bytes(b"MZ\0\0")
    page.goto("/")
    box(page).fill("When does")
    attach(page, program)
    expect(page.get_by_role("alert")).to_contain_text("thing.exe can't be attached")
    expect(messages(page)).to_have_count(0)  # what was typed before is not sent yet
    attach(page, notes, picture, notes)
    box(page).evaluate(PASTE_CELLS)
    page.get_by_role("button", name="Remove notes.txt").first.click()
    expect(page.get_by_role("button", name=re.compile("^Remove"))).to_have_count(2)
    fits(page)
    chat(page, model_server, "When does it leave?", "At 7:40.")
    expect(page.get_by_role("button", name=re.compile("^Remove"))).to_have_count(0)
    sent = str(prompts(model_server)[-1])
    assert "The ferry leaves at 7:40" in sent and PIXEL in sent
    model_server.main.queue("At 8:40.")
    deed(messages(page).last, "Try again")
    expect(messages(page).last).to_contain_text("At 8:40.")
    assert PIXEL in str(prompts(model_server)[-1])
    first = messages(page).first
    for again in (False, True):
        if again:
            page.reload()
        expect(first.locator(".attached")).to_contain_text("notes.txt")
        expect(first.locator(".attached")).to_contain_text("quay.png")
        expect(first.locator(".body")).to_have_text("When does it leave?")
        expect(page.locator(".attached")).to_have_count(1)
    asked = len(prompts(model_server))
    deed(messages(page).last, "Try again")
    expect(page.get_by_role("alert").filter(has_text="keeps only the names")).to_be_visible()
    deed(first, "Edit")
    expect(page.get_by_role("textbox", name="Your message, changed")).to_have_value("When does it leave?")
    expect(page.get_by_text("is not sent again")).to_be_visible()
    assert len(prompts(model_server)) == asked


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_a_message_is_left_out_of_replies_and_used_again(page, live, model_server):
    page.goto("/")
    chat(page, model_server, "The gate code is 4711", "Noted.")
    first = messages(page).first
    deed(first, "Leave out of replies")
    expect(first.get_by_text("Left out: the model no longer reads")).to_be_visible()
    fits(page)
    chat(page, model_server, "What is the gate code?", "I do not know.")
    assert "4711" not in str(prompts(model_server)[-1])
    page.reload()
    expect(first.get_by_text("Left out: the model no longer reads")).to_be_visible()
    deed(first, "Use in replies again")
    expect(first.get_by_text("Left out")).to_have_count(0)
    chat(page, model_server, "And what is it now?", "It is 4711.")
    assert "4711" in str(prompts(model_server)[-1])


def test_a_message_is_erased_after_a_second_yes(page, live, model_server):
    page.goto("/")
    chat(page, model_server, "My secret is Xylozarquon.", "I will keep it.")
    chat(page, model_server, "I like tea.", "Green, then.")
    first = messages(page).first
    asked = page.get_by_role("dialog", name="Erase this message?")
    icon = first.get_by_role("button", name="Edit", exact=True)
    page.get_by_role("heading").first.hover()
    expect(icon).to_have_css("opacity", "0")
    height = first.bounding_box()
    first.hover()
    expect(icon).to_have_css("opacity", "1")
    assert first.bounding_box() == height  # what shows takes no room of its own
    deed(first, "Erase")
    asked.get_by_role("button", name="Cancel").click()
    expect(messages(page)).to_have_count(4)
    deed(first, "Erase")
    expect(asked).to_contain_text("it stays in this chat, but is not remembered")
    asked.get_by_role("button", name="Erase", exact=True).click()
    expect(messages(page)).to_have_count(3)
    expect(page).to_have_title(re.compile("I like tea"))
    expect(page.locator("body")).not_to_contain_text("Xylozarquon")
    assert [words for _, words in stored(live, session_shown(page))] == [
        "I will keep it.",
        "I like tea.",
        "Green, then.",
    ]
    expect(page.get_by_role("button", name=re.compile("Why this answer"))).to_have_count(2)
    page.reload()
    expect(messages(page)).to_have_count(3)


def test_a_message_anywhere_in_a_long_chat_is_left_out_of_replies(page, live):
    ids = talk(live.client, "long", *(f"Message number {number}" for number in range(120)))
    far = page.locator(f'[data-id="{ids[10]}"]')
    page.goto(f"/#/long/{ids[10]}")  # the newest ones are not loaded
    deed(far, "Leave out of replies")
    expect(far.get_by_text("Left out: the model no longer reads")).to_be_visible()
    page.get_by_role("button", name="Back to the newest").click()
    expect(page.locator(f'[data-id="{ids[-1]}"]')).to_be_visible()
    log(page).evaluate("list => list.scrollTo(0, 0)")
    earlier = page.locator(f'[data-id="{ids[70]}"]')  # loaded after the newest ones
    expect(earlier).to_be_attached()
    deed(earlier, "Leave out of replies")
    expect(earlier.get_by_text("Left out: the model no longer reads")).to_be_visible()
    deed(earlier, "Use in replies again")
    expect(earlier.get_by_text("Left out")).to_have_count(0)
    page.goto("/")
    page.goto(f"/#/long/{ids[10]}")
    expect(far).to_be_visible()
    send(page, "Sent from far up")
    expect(messages(page).last).to_contain_text("Reply to")
    expect(box(page)).to_have_value("")


def test_a_link_to_a_message_that_is_gone_leads_to_its_chat(page, live):
    watch_of(page).expect("status of 404")
    _, last = talk(live.client, "gate", "The gate code is 4711.", "Noted.")
    page.goto(f"/#/gate/{last + 1}")
    expect(page.get_by_role("alert")).to_contain_text("There is no message")
    expect(messages(page)).to_have_count(2)
    assert session_shown(page) == "gate"
    page.goto("/#/50%25/%E0%A4%A")  # which is no address of a chat
    page.reload()
    expect(page.get_by_role("button", name="Settings")).to_be_visible()


def test_the_same_words_with_a_file_are_another_message_and_one_takes_ten(page, live, model_server, tmp_path):
    watch_of(page).expect("status of 502")
    (tmp_path / "notes.txt").write_text("The kiln is cold.")
    model_server.main.queue(Status(500), Status(500), Status(500))
    page.goto("/")
    send(page, "What does it say?")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    model_server.reset()
    attach(page, tmp_path / "notes.txt")
    model_server.main.queue("That it is cold.")
    send(page, "What does it say?")
    expect(messages(page).last).to_contain_text("That it is cold.")
    assert "The kiln is cold." in str(prompts(model_server)[-1])
    attach(page, *[tmp_path / "notes.txt"] * 12)
    expect(page.get_by_role("alert").filter(visible=True)).to_have_text(
        "A message takes 10 files; the others were left out."
    )
    expect(page.get_by_role("button", name=re.compile("^Remove "))).to_have_count(10)


def test_memory_that_is_turned_off_for_a_chat_stays_on_for_the_next_one(page, live, model_server):
    talk(live.client, "gate", "The gate code is 4711.", "Noted.")
    page.goto("/#/gate")
    expect(messages(page)).to_have_count(2)
    held: list[Route] = []
    page.route("**/api/sessions/gate*", lambda route: held.append(route) if is_change(route) else route.continue_())
    page.get_by_role("button", name="Memory on").click()
    page.get_by_role("button", name="New chat").click()
    expect(messages(page)).to_have_count(0)
    with page.expect_response("**/api/sessions/gate*"):
        held[0].continue_()
    chat(page, model_server, "I like green tea.")
    remembers = [
        good(live.client.get(f"/api/sessions/{id}?user_id={ME}"))["remember"] for id in (session_shown(page), "gate")
    ]
    assert remembers == [True, False]


def test_what_a_temporary_chat_still_hears_stays_out_of_other_chats(page, live, model_server):
    temporary = page.get_by_role("button", name="Temporary chat")
    page.goto("/")
    over: list[str] = []
    for event in ("requestfinished", "requestfailed"):
        page.on(event, lambda sent: over.append(sent.url) if sent.url.endswith("/api/chat") else None)
    temporary.click()
    reply = begin(page, model_server, "My secret", "Well")
    page.get_by_role("button", name="New chat").click()
    expect(messages(page)).to_have_count(0)
    chat(page, model_server, "I like tea.")
    temporary.click()
    reply.say(" kept.")
    reply.end()
    # Give the page the time to hear the end; a browser does not always report that a stream was read to its end.
    eventually(lambda: page.evaluate("true") and len(over) == 2, 5.0)
    expect(messages(page)).to_have_count(0)
    chat(page, model_server, "Something else")
    assert "secret" not in str(prompts(model_server)[-1])
