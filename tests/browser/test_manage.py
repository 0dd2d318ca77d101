"""What Recap knows: all facts of a person, and their data as a whole: taken along, brought in, erased."""

import json
import re
import threading
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ME, choose_file, fits, known, messages, open_manage, state, stored_facts, tab, talk
from tests.browser.windows import watch_of
from tests.http import said
from tests.knowledge import digest_of, fact
from tests.live import Live
from tests.model_server import Body


def facts(page: Page) -> Locator:
    """The facts that are listed, in order."""
    return page.get_by_role("list", name="Facts from all chats").get_by_role("listitem")


def select(page: Page, text: str) -> None:
    page.get_by_role("checkbox", name=f"Select: {text}").check()


@pytest.fixture
def household(live, model_server):
    """Two chats with a fact from each, and two facts stated for all chats."""
    model_server.mini.queue(digest_of(fact("Roses need water", 1, "The roses need water", importance=2)))
    talk(live.client, "garden", "The roses need water", "Noted.")
    live.settle()
    model_server.mini.queue(digest_of(fact("Oven is broken", 1, "The oven is broken", importance=4)))
    talk(live.client, "kitchen", "The oven is broken", "Noted.")
    live.settle()
    state(live, "Allergic to walnuts", importance=5, category="identity")
    state(live, "Likes short answers", category="preference")
    assert len(known(live)) == 4
    return live


def test_facts_are_searched_filtered_and_those_selected_forgotten_once_that_is_confirmed(page, household):
    page.goto("/")
    manage = open_manage(page)
    expect(facts(page)).to_have_count(4)
    manage.get_by_role("searchbox").fill("walnut")
    expect(facts(page)).to_have_text([re.compile("Allergic to walnuts")])
    manage.get_by_label("Category").select_option("Preference")
    expect(manage.get_by_text("No facts match your search.")).to_be_visible()
    expect(facts(page)).to_have_count(0)
    manage.get_by_role("button", name="Show all facts").click()
    expect(facts(page)).to_have_count(4)
    manage.get_by_label("Category").select_option("Preference")
    expect(facts(page)).to_have_text([re.compile("Likes short answers")])

    manage.get_by_label("Category").select_option("All categories")
    expect(manage.get_by_role("button", name="Forget", exact=True)).to_be_disabled()
    select(page, "Oven is broken")
    select(page, "Likes short answers")
    expect(manage.get_by_role("checkbox", name="Select all shown")).to_be_checked(indeterminate=True)
    asked = page.get_by_role("dialog", name="Forget 2 facts?")
    for answer, left in (("Cancel", 4), ("Forget the facts", 2)):
        manage.get_by_role("button", name="Forget 2 facts").click()
        expect(asked).to_contain_text("also erases 1 message")
        asked.get_by_role("button", name=answer).click()
        expect(facts(page)).to_have_count(left)
    expect(manage.get_by_role("button", name="Forget", exact=True)).to_be_disabled()
    assert known(household) == ["Allergic to walnuts", "Roses need water"]


def test_a_long_list_is_shown_as_it_is_scrolled(page, live):
    for number in range(1, 131):
        state(live, f"Fact number {number}.", importance=5 if number == 7 else 3)
    page.goto("/")
    manage = open_manage(page)
    count = manage.get_by_role("status").filter(has_text="newest")
    expect(count).to_have_text("Showing the 100 newest of 130 facts")
    expect(facts(page)).to_have_count(100)
    facts(page).last.scroll_into_view_if_needed()
    expect(facts(page)).to_have_count(130)
    manage.get_by_label("Order").select_option("Most important first")
    expect(facts(page).first).to_contain_text("Fact number 7.")  # out of all, not of those that were shown


def test_what_recap_knows_is_read_in_a_minute_and_as_of_another_day(page, household, model_server):
    patch = [{"op": "add", "path": "/home", "value": "Tallinn"}]
    assert household.client.patch(f"/api/users/{ME}/profile", json={"patch": patch}).status_code == 200
    state(household, "Collects stamps")
    household.client.delete(f"/api/facts/{stored_facts(household)[0]['id']}")
    page.goto("/")
    known = open_manage(page, "In a minute")
    expect(known.get_by_text("Forgotten in the last 30 days: one fact, on ")).to_be_visible()
    expect(known.get_by_role("list", name="Newest facts").get_by_role("listitem")).to_have_count(4)
    expect(known.get_by_text("Tallinn")).to_be_visible()
    model_server.main.queue("You live in **Tallinn**.")
    known.get_by_role("button", name="Tell it in a few sentences").click()
    expect(known.locator(".prose strong")).to_have_text("Tallinn")
    switch = known.get_by_role("checkbox", name="Recap remembers")
    switch.uncheck()
    expect(page.get_by_role("button", name="Memory off everywhere")).to_be_attached()
    switch.check()
    tab(page, "Your data")
    known.get_by_role("button", name="Bring together now").click()
    expect(known.get_by_role("status").filter(has_text="It has begun")).to_be_visible()
    tab(page, "All facts")
    expect(facts(page)).to_have_count(4)
    known.get_by_label("Known on this day").fill("2020-01-01")
    expect(facts(page)).to_have_count(0)


def test_what_matters_now_is_written_corrected_and_traced_to_its_sources(page, household, model_server):
    page.goto("/")
    known = open_manage(page, "In a minute")
    now = known.get_by_role("list", name="What matters now")
    expect(known.get_by_text("Nobody has written it yet.")).to_be_visible()

    def answer(body: Body) -> Body:
        lines = body["messages"][1]["content"].splitlines()
        at = {line.partition("] ")[2].partition(" (said")[0]: number for number, line in enumerate(lines)}
        return {"sentences": [{"text": text, "sources": [at[text]]} for text in ("Oven is broken", "Roses need water")]}

    model_server.mini.default = answer
    known.get_by_role("button", name="Write it now").click()
    expect(now.get_by_role("listitem")).to_have_count(2)
    expect(known.get_by_text("Chats do not show it to the model")).to_be_visible()
    first = now.get_by_role("listitem").filter(has_text="Oven is broken")
    first.get_by_text("1 source").click()
    expect(first.get_by_text("“The oven is broken”")).to_be_visible()
    first.hover()
    first.get_by_role("button", name="Edit").click()
    first.get_by_role("textbox").fill("The oven is repaired on Friday.")
    page.keyboard.press("Enter")
    edited = now.get_by_role("listitem").filter(has_text="The oven is repaired on Friday.")
    expect(edited.get_by_text("1 source")).to_be_visible()
    second = now.get_by_role("listitem").filter(has_text="Roses")
    second.hover()
    second.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    expect(now.get_by_role("listitem")).to_have_count(1)
    known.get_by_role("button", name="Add a sentence").click()
    known.get_by_role("textbox").last.fill("The cat is ill.")
    page.keyboard.press("Enter")
    expect(now.get_by_role("listitem")).to_have_count(2)
    fits(page)
    edited.get_by_text("1 source").click()
    edited.get_by_text("“The oven is broken”").click()
    expect(messages(page).first).to_contain_text("The oven is broken")


# -- their data as a whole


def test_everything_can_be_taken_along_and_brought_in_again(page, household, tmp_path):
    page.goto("/")
    manage = open_manage(page, "Your data")
    with page.expect_download() as download:
        manage.get_by_role("button", name="Export", exact=True).click()
    name = download.value.suggested_filename
    assert re.fullmatch(r"recap-export-\d{4}-\d\d-\d\d\.json", name)
    file = tmp_path / name
    download.value.save_as(file)
    assert {item["text"] for item in json.loads(file.read_text())["facts"]} == set(known(household))
    expect(manage.get_by_role("status").filter(has_text=f"Saved as {name}")).to_be_visible()
    with page.expect_response(re.compile("/summaries")):  # what is left to summarise, asked for after an import
        choose_file(page, file)
    expect(manage).to_contain_text(f"Everything in {name} was stored already.")
    assert household.client.delete(f"/api/users/{ME}").status_code == 200
    choose_file(page, file)
    expect(manage).to_contain_text(re.compile(r"was imported. New: 2 chats, 4 messages, 4 facts"))
    tab(page, "All facts")
    expect(facts(page)).to_have_count(4)
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation", name="Chats").get_by_role("listitem")).to_have_count(2)


def test_imported_chats_are_summarised_only_on_request_which_can_be_cancelled_and_resumed(
    page, live, model_server, tmp_path
):
    file = tmp_path / "chats.json"
    file.write_text(json.dumps({"format": "recap-export", "version": 1, "sessions": [a_chat(n) for n in range(12)]}))
    may_answer = threading.Semaphore(0)
    model_server.mini.default = lambda _: may_answer.acquire(timeout=30) and digest_of(topic="Tea")
    page.goto("/")
    watch_of(page).expect("status of 404")  # nothing is stored yet
    manage = open_manage(page, "Your data")
    choose_file(page, file)
    expect(manage).to_contain_text("It was only stored: no model has read it.")
    expect(manage).to_contain_text("12 chats are stored but not summarised.")
    expect(manage).to_contain_text(f"takes about {left(live)['tokens']:,} tokens")
    assert not [request for request in model_server.requests if request.method == "POST"]
    manage.get_by_role("button", name="Write summaries and facts").click()
    expect(manage).to_contain_text("Writing summaries and facts: 12 chats left.")
    may_answer.release()
    expect(manage).to_contain_text("Writing summaries and facts: 11 chats left.")
    expect(manage.get_by_role("progressbar", name="Chats with a summary")).to_have_attribute("value", "1")
    fits(page)
    with page.expect_response(lambda it: it.request.method == "DELETE"):
        manage.get_by_role("button", name="Cancel").click()
    may_answer.release(12)
    resume = manage.get_by_role("button", name="Resume")
    expect(resume).to_be_focused()
    assert 0 < left(live)["sessions"] < 12
    resume.click()
    expect(manage.get_by_role("progressbar")).to_be_visible()
    expect(manage.get_by_role("progressbar")).to_have_count(0)
    assert left(live)["sessions"] == 0


def test_the_built_in_model_summarises_at_no_cost(serve, browse):
    live = serve(builtin=True)
    body = {"format": "recap-export", "version": 1, "sessions": [a_chat(1)]}
    assert live.client.post(f"/api/import?user_id={ME}", json=body).status_code == 200
    page = browse(live)
    page.goto("/")
    manage = open_manage(page, "Your data")
    expect(manage).to_contain_text("1 chat is stored but not summarised.")
    expect(manage).to_contain_text("it costs nothing")
    manage.get_by_role("button", name="Write summaries and facts").click()
    expect(manage.get_by_text("not summarised")).to_have_count(0)


def left(live: Live) -> dict[str, int]:
    found: Any = live.client.get(f"/api/users/{ME}/summaries").json
    return dict(found)


def a_chat(number: int) -> dict[str, object]:
    at = "2026-03-01T10:00:00Z"
    messages = [said("My name is Ada, and I drink tea.", created_at=at), said("Noted.", "assistant", created_at=at)]
    return {"id": f"tea-{number}", "messages": messages, "created_at": at, "updated_at": at}


def test_everything_is_erased_after_a_typed_word_and_the_receipt_shows_it(page, household, tmp_path):
    state_of_ada = {"user_id": "ada", "text": "Has a boat"}
    assert household.client.post("/api/facts", json=state_of_ada).status_code == 201
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    manage = open_manage(page, "Your data")
    manage.get_by_role("button", name="Erase everything").click()
    asked = page.get_by_role("dialog", name="Erase everything?")
    expect(asked).to_contain_text("2 chats, 4 messages, 4 facts")
    erase = asked.get_by_role("button", name="Erase everything", exact=True)
    expect(erase).to_be_disabled()
    expect(asked.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("eras")
    expect(erase).to_be_disabled()
    page.keyboard.type("e")
    erase.click()
    receipt = page.get_by_role("dialog", name="Everything is erased")
    for what, count in (("Chats", 2), ("Messages", 4), ("Facts", 4)):
        expect(receipt.get_by_role("row", name=f"{what} {count}", exact=True)).to_be_visible()
    fits(page)
    with page.expect_download() as download:
        receipt.get_by_role("button", name="Download this receipt").click()
    download.value.save_as(tmp_path / "receipt.json")
    kept = json.loads((tmp_path / "receipt.json").read_text())
    assert kept["user_id"] == ME and kept["erased"]["messages"] == 4 and kept["pending"] == []
    receipt.get_by_role("button", name="Done").click()
    expect(manage).to_be_hidden()
    expect(page.get_by_role("heading", name="Say something worth remembering.")).to_be_visible()
    expect(page.get_by_text("No chats yet")).to_be_visible()
    expect(page.get_by_text("roses need water")).to_have_count(0)
    assert household.client.get(f"/api/users/{ME}").status_code == 404
    assert known(household, "ada") == ["Has a boat"]


def test_what_is_erased_leaves_every_window(page, household):
    page.goto("/#/garden")
    other = page.context.new_page()
    other.goto("/#/garden")
    expect(messages(other)).to_have_count(2)
    page.bring_to_front()
    open_manage(page, "Your data").get_by_role("button", name="Erase everything").click()
    page.get_by_role("dialog", name="Erase everything?").get_by_role("textbox").fill("erase")
    page.get_by_role("dialog", name="Erase everything?").get_by_role(
        "button", name="Erase everything", exact=True
    ).click()
    expect(page.get_by_role("dialog", name="Everything is erased")).to_be_visible()
    expect(other.locator("body")).not_to_contain_text("roses")
    expect(other.locator("body")).not_to_contain_text("walnuts")
