"""Replies: they are in view as they are written, and what breaks off is kept and told as it is."""

import re
import threading
from itertools import chain

import pytest
from playwright.sync_api import Route, expect

from tests.browser.page import begin, box, chat, deed, messages, send, session_shown, stored, talk
from tests.browser.windows import PHONE, WIDE, watch_of
from tests.model_server import Delay, Dictation, Status, Text

SENDS = 4
# Hands a streamed reply to the page in pieces with frames in between, as a network does, or at once.
IN_PIECES = """const reach = window.fetch;
window.fetch = async (...args) => {
    const response = await reach(...args);
    if (!window.inPieces || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) return response;
    const events = (await response.text()).split(/(?<=\\n\\n)/);
    const frame = () => new Promise(requestAnimationFrame);
    return new Response(new ReadableStream({ async pull(stream) {
        await frame().then(frame);
        if (events.length) stream.enqueue(new TextEncoder().encode(events.shift()));
        else stream.close();
    } }), response);
};"""
SHOWS_END = """async list => {
    const frame = () => new Promise(requestAnimationFrame);
    await frame().then(frame);
    const last = [...list.querySelectorAll("article")].at(-1).getBoundingClientRect();
    const [top, bottom] = [list.getBoundingClientRect().top, list.getBoundingClientRect().bottom];
    return last.bottom <= bottom + 1 && last.bottom > top;
}"""


@pytest.mark.parametrize("screen", [PHONE, WIDE], ids=str)
def test_every_reply_is_in_view_when_it_is_there(serve, browse, screen):
    page = browse(serve(builtin=True), screen)
    page.add_init_script(IN_PIECES)
    page.goto("/")
    expect(page.get_by_role("log", name="Messages").get_by_role("heading")).to_be_in_viewport(ratio=1)  # the greeting's
    in_view = 0
    for number in range(1, SENDS + 1):
        page.evaluate(f"window.inPieces = {number % 2}")
        send(page, f"My cat number {number} is called Tom." + "\nIt likes to sleep on the sofa." * (number % 5))
        expect(page.locator("article.assistant .deeds")).to_have_count(number)
        in_view += page.get_by_role("log", name="Messages").evaluate(SHOWS_END)
    assert in_view == SENDS, f"{in_view} of {SENDS} replies are in view"


def test_who_reads_or_edits_further_up_is_left_there(page, model_server):
    page.goto("/")
    chat(page, model_server, "Begin", "A long answer.\n\n" * 60, shows="A long answer.")
    reply = begin(page, model_server, "Go on", "First line")
    messages(page).first.hover()
    page.mouse.wheel(0, -600)
    expect(messages(page).last).not_to_be_in_viewport()
    reply.say("\n\nNext line" * 40)
    expect(messages(page).last).to_contain_text("Next line")
    reply.end()
    expect(page.locator("article.assistant .deeds")).to_have_count(2)
    expect(messages(page).last).not_to_be_in_viewport()
    deed(messages(page).first, "Edit")
    form = page.get_by_role("textbox", name="Your message, changed")
    expect(form).to_be_in_viewport(ratio=1)
    form.press("Escape")
    expect(form).to_have_count(0)
    expect(messages(page).first).to_be_in_viewport()


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_why_this_answer_opens_in_view_and_leads_to_the_words_of_this_chat(page, live, model_server):
    turns = ((f"Something else, number {number}", "All right.") for number in range(8))
    talk(live.client, "days", "The dentist is on Tuesday at 11", "Noted.", *chain(*turns))
    page.goto("/#/days")
    chat(page, model_server, "When do I see the dentist?", "You see the dentist on Tuesday at 11.")
    deed(messages(page).last, "Why this answer")
    told = page.get_by_role("region", name="Why this answer")
    expect(told.get_by_role("heading", name="From this chat")).to_be_in_viewport(ratio=1)
    expect(told).to_contain_text(re.compile(r"The model read \d+ earlier messages word for word"))
    expect(told).to_contain_text("closest to this reply")
    expect(told).not_to_contain_text("When do I see")
    expect(told).not_to_contain_text("Something else, number 3")
    told.get_by_role("button", name="Go to this message").first.click()
    expect(messages(page).first).to_be_focused()
    expect(messages(page).first).to_be_in_viewport()


def test_thoughts_are_folded_while_they_last_and_gone_after_a_reload(page, live, model_server):
    page.goto("/")
    reply = Dictation()
    model_server.main.queue(reply)
    send(page, "Which fish?")
    reply.say("<think>\nThe person wants a zebrafish.\n")
    thought = messages(page).last.get_by_text(re.compile(r"^Thought for \d+ s$"))
    expect(thought).to_be_visible()
    reply.say("So be it.\n</think>\n\nA green one.")
    reply.end()
    expect(messages(page).last).to_contain_text("A green one.")
    expect(page.locator("article.assistant .deeds")).to_have_count(1)
    expect(page.get_by_text("zebrafish")).to_be_hidden()
    thought.click()
    expect(page.get_by_text("The person wants a zebrafish.")).to_be_visible()
    assert stored(live, session_shown(page)) == [("user", "Which fish?"), ("assistant", "A green one.")]
    page.reload()
    expect(messages(page).last).to_contain_text("A green one.")
    expect(thought).to_have_count(0)


def test_a_reply_is_stopped_also_after_a_reload(page, live, model_server):
    page.goto("/")
    stop = page.get_by_role("button", name="Stop", exact=True)
    begin(page, model_server, "Count", "One, ")
    stop.click()
    expect(messages(page).last).to_contain_text("Stopped here")
    expect(stop).to_be_hidden()
    reply = begin(page, model_server, "Take your time", "Half of it, ")
    page.reload()
    expect(messages(page).last).to_contain_text("Half of it")
    expect(messages(page).last).to_contain_text("Waiting for the rest")
    expect(box(page)).to_have_value("")
    reply.say("and ")
    expect(messages(page).last).to_contain_text("Half of it, and")
    stop.click()
    expect(messages(page).last).to_contain_text("Stopped here")
    expect(stop).to_be_hidden()
    words = [("user", "Count"), ("assistant", "One, "), ("user", "Take your time"), ("assistant", "Half of it, and ")]
    assert stored(live, session_shown(page)) == words


def test_a_reply_that_the_model_breaks_off_stays_and_is_marked(page, model_server):
    page.goto("/")
    begin(page, model_server, "Tell me a story", "Once upon a time").break_off()
    for again in (False, True):
        if again:
            page.reload()
        expect(messages(page).last).to_contain_text("Once upon a time")
        expect(messages(page).last).to_contain_text("The model broke off here")
    model_server.main.queue("The whole story.")
    deed(messages(page).last, "Try again")
    expect(messages(page).last).to_contain_text("The whole story.")
    expect(messages(page)).to_have_count(2)


def test_a_refused_message_says_why_and_can_be_changed_or_erased(page, live, model_server):
    filtered = {"error": {"message": "The prompt triggered the filter.", "code": "content_filter"}}
    watch_of(page).expect("422")
    page.goto("/")
    for text in ("Open the vault", "Open the safe"):
        model_server.main.queue(Status(400, filtered))
        send(page, text)
        for again in (False, True):
            if again:
                page.reload()
            note = messages(page).last.get_by_role("note")
            expect(note).to_contain_text("No model reads this message any more")
            expect(note).to_contain_text("The prompt triggered the filter.")
            expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    chat(page, model_server, "What is the time?", "It is noon.")
    expect(messages(page)).to_have_count(4)
    deed(messages(page).first, "Erase")
    page.get_by_role("dialog").get_by_role("button", name="Erase", exact=True).click()
    expect(messages(page)).to_have_count(3)
    model_server.main.queue("Turn the key.")
    deed(messages(page).first, "Edit")
    page.get_by_role("textbox", name="Your message, changed").fill("How do I open my door?")
    page.get_by_role("button", name="Send", exact=True).first.click()
    expect(messages(page).last).to_contain_text("Turn the key.")
    expect(page.get_by_role("note")).to_have_count(0)
    assert stored(live, session_shown(page)) == [("user", "How do I open my door?"), ("assistant", "Turn the key.")]


@pytest.mark.slow
def test_a_server_killed_in_mid_stream_loses_no_words(gunicorn, browse, model_server):
    page = browse(gunicorn)
    watch_of(page).expect("ERR_")
    page.goto("/")
    begin(page, model_server, "Remember the blue door", "I remember ")
    gunicorn.kill()
    expect(messages(page).last).to_contain_text("The connection to Recap broke off.")
    expect(messages(page).last).to_contain_text("I remember")
    gunicorn.start()
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_visible(timeout=30_000)  # the killed turn's lease has to run out
    for _ in range(2):
        expect(page.get_by_role("alert").filter(has_text="broke off here. Your message is kept.")).to_be_visible()
        expect(messages(page).last).to_contain_text("I remember")
        page.reload()
    model_server.main.queue(Text("The blue door."))
    again.click()
    expect(messages(page).last).to_contain_text("The blue door.", timeout=30_000)
    expect(messages(page)).to_have_count(2)


def test_two_tabs_on_one_chat_show_the_same(page, live, model_server):
    page.goto("/")
    chat(page, model_server, "The roses need water")
    other = page.context.new_page()
    other.goto(page.url)
    expect(messages(other)).to_have_count(2)
    deed(messages(other).first, "Edit")
    form = other.get_by_role("textbox", name="Your message, changed")
    form.fill("The roses need much water")
    page.bring_to_front()  # one behind another paints once a second, and each click waits for that
    chat(page, model_server, "And the tulips?")
    other.bring_to_front()
    chat(other, model_server, "And the pansies?")
    expect(form).to_have_value("The roses need much water")
    form.press("Escape")
    expect(messages(other)).to_have_count(6)  # which it was not while words were edited
    page.bring_to_front()
    expect(messages(page)).to_have_count(6)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    reply = begin(page, model_server, "And the lilies?", "They ")
    expect(messages(other)).to_have_count(8)
    expect(messages(other).last).to_contain_text("They")  # the other tab has heard nothing of it itself
    expect(messages(other).last).to_contain_text("Waiting for the rest")
    expect(other.get_by_role("button", name="Stop", exact=True)).to_be_visible()
    reply.say("do too.")
    reply.end()
    expect(messages(other).last).to_contain_text("They do too.")
    expect(other.get_by_role("button", name="Send", exact=True)).to_be_visible()
    late: list[Route] = []
    page.route("**/api/chat", lambda route: late.append(route))
    send(page, "And the moss?")
    other.bring_to_front()
    chat(other, model_server, "And the ferns?", "Ferns too.")
    page.bring_to_front()
    model_server.main.queue("Moss too.")
    late[0].continue_()  # its message came after the other tab's turn
    expect(messages(page)).to_have_count(12)
    expect(messages(page).nth(8)).to_contain_text("And the ferns?")
    expect(messages(page).last).to_contain_text("Moss too.")
    page.get_by_role("button", name="Add a fact").click()
    page.get_by_role("textbox", name="Fact").fill("Likes lilies")
    page.get_by_role("textbox", name="Fact").press("Enter")
    expect(other.get_by_role("complementary", name="Memory")).to_contain_text("Likes lilies")
    deed(messages(page).first, "Erase")
    page.get_by_role("dialog").get_by_role("button", name="Erase", exact=True).click()
    expect(messages(other)).to_have_count(11)
    box(other).fill("Half a thought")
    page.locator(".session:has([aria-current])").hover()
    page.get_by_role("navigation", name="Chats").get_by_role("button", name=re.compile("^More about")).click()
    page.get_by_role("menuitem", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(messages(other)).to_have_count(0)  # the chat is gone, and not what was typed in it
    expect(box(other)).to_have_value("Half a thought")


def test_a_reply_that_was_read_while_it_ended_is_shown_once(serve, browse, model_server):
    page = browse(serve(summary_mode="inline"))
    page.goto("/")
    chat(page, model_server, "The roses need water")
    written = threading.Event()
    model_server.mini.queue(Delay(written))
    model_server.main.queue("They do too.")
    send(page, "And the lilies?")
    expect(messages(page).last).to_contain_text("They do too.")
    asked = page.url
    page.get_by_role("button", name="New chat").click()
    page.goto(asked)
    expect(messages(page).filter(has_text="They do too.").locator("time")).to_have_count(1)  # it is stored
    written.set()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    expect(messages(page)).to_have_count(4)
    # Read as the one turn was over and the next one had not begun: a chat that is busy, and has no unanswered message.
    heard = 'import("./static/js/chat/turns.js").then(({ heardOf }) => heardOf("another"))'
    assert page.evaluate(heard) == ""


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_escape_that_does_something_else_stops_no_reply(page, live, model_server):
    page.goto("/")
    reply = begin(page, model_server, "Where is the bug?", "In the")
    page.get_by_role("button", name="Open chats").click()
    page.get_by_role("searchbox").fill("bug")
    page.keyboard.press("Escape")
    expect(page.get_by_role("searchbox")).to_be_hidden()
    box(page).dispatch_event("keydown", {"key": "Escape", "isComposing": True, "bubbles": True})
    reply.say(" parser.")
    expect(messages(page).last).to_contain_text("In the parser.")
    box(page).press("Escape")
    expect(messages(page).last).to_contain_text("Stopped")
    reply.end()
