"""Replies: they are in view as they are written, and what breaks off is kept and told as it is."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chatting import chat, messages, send
from tests.browser.conftest import Browse, Serve
from tests.browsing import PHONE, USUAL, WIDE, Screen
from tests.model_server import Dictation, ModelServer

SENDS = 30
WHY = re.compile("Why this answer")
# Hands a streamed reply to the page in pieces with frames in between, as a network does, or whole.
IN_PIECES = """const reach = window.fetch;
window.fetch = async (...args) => {
    const response = await reach(...args);
    if (!response.headers.get("Content-Type")?.startsWith("text/event-stream")) return response;
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


@pytest.mark.parametrize("in_pieces", [False, True], ids=["at once", "in pieces"])
@pytest.mark.parametrize("screen", [PHONE, USUAL, WIDE], ids=str)
def test_every_reply_is_in_view_when_it_is_there(serve: Serve, browse: Browse, screen: Screen, in_pieces: bool) -> None:
    page = browse(serve(builtin=True), screen)
    if in_pieces:
        page.add_init_script(IN_PIECES)
    page.goto("/")
    in_view = 0
    for number in range(1, SENDS + 1):
        send(page, f"My cat number {number} is called Tom." + "\nIt likes to sleep on the sofa." * (number % 5))
        expect(page.get_by_role("button", name=WHY)).to_have_count(number)
        in_view += page.get_by_role("log", name="Messages").evaluate(SHOWS_END)
    assert in_view == SENDS, f"{in_view} of {SENDS} replies are in view"


def test_who_reads_further_up_is_left_there_while_a_reply_is_written(page: Page, model_server: ModelServer) -> None:
    reply = Dictation()
    model_server.main.queue("A long answer.\n\n" * 60, reply)
    page.goto("/")
    send(page, "Begin")
    expect(page.get_by_role("button", name=WHY)).to_be_visible()
    send(page, "Go on")
    reply.say("First line")
    expect(messages(page).last).to_contain_text("First line")
    messages(page).first.hover()
    page.mouse.wheel(0, -600)
    expect(messages(page).last).not_to_be_in_viewport()
    reply.say("\n\nNext line" * 40)
    expect(messages(page).last).to_contain_text("Next line")
    reply.end()
    expect(page.get_by_role("button", name=WHY)).to_have_count(2)
    expect(messages(page).last).not_to_be_in_viewport()


@pytest.mark.parametrize("page", [PHONE, USUAL], indirect=True, ids=str)
def test_why_this_answer_opens_in_view_and_leads_to_the_words_of_this_chat(
    page: Page, model_server: ModelServer
) -> None:
    page.goto("/")
    chat(page, model_server, "The dentist is on Tuesday at 11", "Noted.")
    for number in range(8):
        chat(page, model_server, f"Something else, number {number}", "All right.")
    chat(page, model_server, "When do I see the dentist?", "You see the dentist on Tuesday at 11.")
    messages(page).last.get_by_role("button", name=WHY).click()
    told = page.get_by_role("region", name="Why this answer")
    expect(told.get_by_role("heading", name="From this chat")).to_be_in_viewport(ratio=1)
    expect(told).to_contain_text(re.compile(r"The model read \d+ earlier messages word for word"))
    expect(told).to_contain_text("closest to this reply")
    expect(told).not_to_contain_text("When do I see")
    expect(told).not_to_contain_text("Something else")
    told.get_by_role("button", name="Go to this message").first.click()
    expect(messages(page).first).to_be_focused()
    expect(messages(page).first).to_be_in_viewport()


def test_in_a_temporary_chat_each_reply_has_its_own_explanation(page: Page, model_server: ModelServer) -> None:
    page.goto("/")
    page.get_by_role("button", name="Temporary").click()
    for number in (1, 2):
        chat(page, model_server, f"Question {number}", f"Answer {number}.")
        expect(page.get_by_role("button", name=WHY)).to_have_count(number)
    expect(page.get_by_role("article", name=re.compile("^You")).get_by_role("button", name=WHY)).to_have_count(0)
    messages(page).nth(1).get_by_role("button", name=WHY).click()
    told = messages(page).nth(1).get_by_role("region", name="Why this answer")
    expect(told).to_contain_text("The model read only your message")
