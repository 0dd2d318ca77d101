"""The list of chats: finding, pinning, archiving, deleting; and a chat as a file."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from app import engine_of
from tests.browser.page import ME, box, chat, deed, fits, messages, send, session_shown, state, tab, talk
from tests.browser.windows import PHONE, watch_of
from tests.http import append, good, said
from tests.knowledge import Talk, digest_of, fact
from tests.live import Live
from tests.model_server import ModelServer


def chats(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Chats")


def listed(page: Page) -> Locator:
    return chats(page).locator(".session-open > span:first-child")


def three(live: Live) -> None:
    for session_id, words in (
        ("garden", "The roses need water"),
        ("kitchen", "The oven is broken"),
        ("car", "No fuel"),
    ):
        talk(live.client, session_id, words, "Noted.")


def press(page: Page, name: str) -> None:
    """Choose from the menu of a row, whose button shows while the pointer is on it."""
    action, _, title = name.partition(" ")
    chats(page).get_by_role("listitem").filter(has_text=title).hover()
    chats(page).get_by_role("button", name=f"More about {title}").click()
    chats(page).get_by_role("menuitem", name=action, exact=True).click()


def select(page: Page, title: str) -> None:
    """Select a chat: the first one by its menu, then all have boxes."""
    box = chats(page).get_by_role("checkbox", name=f"Select {title}")
    if not chats(page).get_by_role("checkbox").count():
        return press(page, f"Select {title}")
    return box.check()


def places(page: Page) -> list[Any]:
    """Where each chat stands, and the edge below the list."""
    found: list[Any] = page.evaluate(
        "[...document.querySelectorAll('.session, .sessions-foot')].map(one => one.getBoundingClientRect().y)"
    )
    return found


def test_nothing_is_said_to_be_empty_before_it_is_read(page, live):
    three(live)
    patch = [{"op": "add", "path": "/likes/-", "value": "Chess"}]
    good(live.client.patch(f"/api/users/{ME}/profile", json={"patch": patch}))
    held = []
    for path in ("sessions?*", "users/*/profile"):
        page.route(f"**/api/{path}", lambda route: held.append(route))
    page.goto("/")
    tab(page, "About you")
    with page.expect_request("**/profile"):
        page.locator("summary", has_text="Profile").click()
    expect(page.get_by_text(re.compile("^(No chats|Nothing) yet"))).to_have_count(0)
    for route in held:
        route.continue_()
    expect(listed(page)).to_have_count(3)
    expect(page.get_by_text("Chess")).to_be_visible()


def test_a_pinned_chat_stands_first_and_archived_ones_come_back(page, live):
    three(live)
    page.goto("/#/car")
    expect(listed(page)).to_have_text(["No fuel", "The oven is broken", "The roses need water"])
    press(page, "Pin The roses need water")
    expect(listed(page)).to_have_text(["The roses need water", "No fuel", "The oven is broken"])
    expect(chats(page).get_by_role("heading")).to_have_text(["Pinned", "Today"])
    page.reload()
    press(page, "Unpin The roses need water")
    expect(listed(page)).to_have_text(["No fuel", "The oven is broken", "The roses need water"])
    before = places(page)
    for title in ("The oven is broken", "The roses need water"):
        select(page, title)
        assert places(page) == before  # nothing moves under the pointer
    expect(chats(page).get_by_role("status")).to_have_text("2 chats")
    fits(page)
    chats(page).get_by_role("button", name="Archive", exact=True).click()
    expect(listed(page)).to_have_text(["No fuel"])
    archived = chats(page).get_by_role("button", name="Archived chats")
    archived.click()
    expect(listed(page)).to_have_text(["The oven is broken", "The roses need water"])
    select(page, "The roses need water")
    chats(page).get_by_role("button", name="Restore").click()
    expect(listed(page)).to_have_text(["The oven is broken"])
    archived.click()
    expect(listed(page)).to_have_text(["No fuel", "The roses need water"])
    assert live.client.get(f"/api/sessions/kitchen?user_id={ME}").json["archived"]
    archived.click()
    expect(listed(page)).to_have_text(["The oven is broken"])
    chats(page).get_by_role("button", name="New chat", exact=True).click()  # it is seen where it stands
    expect(listed(page)).to_have_text(["No fuel", "The roses need water"])


def test_one_chat_or_several_are_deleted_only_when_that_is_confirmed(page, live, model_server):
    three(live)
    talk(live.client, "cellar", "The lamp flickers", "Noted.")
    page.goto("/#/cellar")
    expect(messages(page)).to_have_count(2)
    for answer, count in (("Cancel", 2), ("Delete", 0)):
        press(page, "Delete The lamp flickers")
        page.get_by_role("dialog").get_by_role("button", name=answer, exact=True).click()
        expect(messages(page)).to_have_count(count)
    expect(page.get_by_role("heading", name="Say something worth remembering.")).to_be_visible()
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    box(page).fill("Half a thought")
    page.evaluate("localStorage.setItem('recap.model.garden', 'large')")
    for title in ("The oven is broken", "The roses need water"):
        select(page, title)
    chats(page).get_by_role("button", name="Delete", exact=True).click()
    asked = page.get_by_role("dialog", name="Delete 2 chats?")
    expect(asked.get_by_role("listitem")).to_have_text(["The oven is broken", "The roses need water"])
    asked.get_by_role("button", name="Delete", exact=True).click()
    expect(listed(page)).to_have_text(["No fuel"])
    expect(messages(page)).to_have_count(0)  # one of them was open
    expect(box(page)).to_have_value("Half a thought")  # which outlives its chat
    assert (
        page.evaluate("Object.keys({ ...localStorage, ...sessionStorage }).filter(key => key.includes('garden'))") == []
    )
    left = live.client.get(f"/api/sessions?user_id={ME}").json["items"]
    assert [session["id"] for session in left] == ["car"]

    watch_of(page).expect(r"status of 404")
    page.goto("/#/garden")  # a link to it that was kept
    expect(page.get_by_role("alert")).to_contain_text("This chat does not exist any more")
    page.goto("/#/car")
    expect(messages(page)).to_have_count(2)
    good(live.client.delete(f"/api/sessions/car?user_id={ME}"))  # on another device
    model_server.main.queue("Which car?")
    send(page, "And the car?")
    expect(page.get_by_role("alert")).to_contain_text("Only that message and its reply are stored now.")
    expect(messages(page)).to_have_count(2)


def test_chats_of_programs_and_other_people_are_read_and_lead_to_their_memory(page, live):
    append = live.client.post("/api/sessions/script/messages", json={"messages": [said("From a script")]})
    assert append.status_code == 200
    talk(live.client, "harbour", "The boat leaks", "Noted.", user_id="ada")
    three(live)
    page.goto("/")
    chats(page).get_by_text("Other people and programs").click()
    expect(chats(page).get_by_role("group").get_by_role("listitem")).to_have_count(2)
    chats(page).get_by_role("button", name="From a script").click()
    dialog = page.get_by_role("dialog", name="From a script")
    expect(dialog.get_by_role("article")).to_contain_text("From a script")
    page.keyboard.press("Escape")
    watch_of(page).expect(r"status of 503")
    page.route("**/messages*", lambda route: route.fulfill(status=503, body="away"), times=1)
    chats(page).get_by_role("button", name="The boat leaks").click()
    expect(chats(page).get_by_role("alert")).to_contain_text("503")
    chats(page).get_by_role("button", name="The boat leaks").click()
    page.get_by_role("button", name="Show the memory of ada").click()
    expect(listed(page).first).to_have_text("The boat leaks")


def test_a_chat_is_saved_as_markdown(page, live, tmp_path):
    talk(live.client, "ideas", "Roses: red/white?", "**White**, *perhaps*.", *(f"Line {n}" for n in range(120)))
    page.goto("/")
    save = page.get_by_role("button", name="Save this chat as a file")
    expect(save).to_be_hidden()
    page.goto("/#/ideas")
    with page.expect_download() as download:
        save.click()
    assert download.value.suggested_filename == "Roses red white.md"
    download.value.save_as(tmp_path / "chat.md")
    text = (tmp_path / "chat.md").read_text()
    assert text.startswith("# Roses: red/white?\n\n## You, ")
    assert re.search(r"\n## Recap, .*\n\n\*\*White\*\*, \*perhaps\*\.\n\n## You, .*\n\nLine 0\n", text)
    assert text.endswith("\n\nLine 119\n")


def test_the_search_goes_through_all_chats_and_leads_to_the_words(page, live):
    talk(
        live.client,
        "long",
        *(f"Small talk number {n}, and so on" for n in range(1, 61)),
        "The key is under the flower pot",
        "Ok.",
    )
    ids = talk(live.client, "long", *(f"More talk number {n}" for n in range(1, 121)))
    talk(live.client, "other", "The oven is broken", "Noted.")
    page.goto("/")
    chats(page).get_by_role("searchbox").fill("flower pot key")
    hit = chats(page).get_by_role("button", name=re.compile("under the flower pot"))
    expect(hit).to_contain_text("Small talk number 1, and so on")  # the chat's title
    expect(hit.locator("mark")).to_have_text(["key", "flower", "pot"])
    assert hit.evaluate("hit => hit.getBoundingClientRect().right <= hit.closest('nav').getBoundingClientRect().right")
    hit.click()
    found = page.get_by_role("article").filter(has_text="under the flower pot")
    expect(found).to_be_focused()
    expect(found).to_be_in_viewport()
    assert session_shown(page) == "long"
    page.get_by_role("button", name="Back to the newest").click()
    expect(messages(page).last).to_contain_text("More talk number 120")
    page.goto(f"/#/long/{ids[3]}")  # an address of a message leads to it, too
    expect(page.locator(f'[data-id="{ids[3]}"]')).to_contain_text("More talk number 4")
    expect(page.locator(f'[data-id="{ids[3]}"]')).to_be_in_viewport()


def test_a_search_shows_what_holds_in_place_of_what_was_said(page, live, model_server):
    told = Talk(live.app, model_server, "kayak", ME)
    told.hear("The kayak costs 400 euros.", reply=digest_of(fact("The kayak costs 400 euros", 1)))
    (old,) = told.facts()
    told.hear("They want 480 now.", reply=digest_of(fact("They want 480 now", 2, supersedes=[old["id"]])))
    page.goto("/")
    chats(page).get_by_role("searchbox").fill("kayak")
    hit = chats(page).locator(".hit").filter(has_text="400 euros.")
    expect(hit.locator(".corrected")).to_have_text("True now: They want 480 now")


@pytest.mark.parametrize("page", [PHONE], indirect=True, ids=str)
def test_a_search_is_narrowed_to_facts_or_summaries_and_to_a_day(page, live, model_server):
    old = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    append(live.client, "old", [said("The ferry to Saaremaa was late", created_at=old)], user_id=ME)
    model_server.mini.queue(*[digest_of(topic="Plans for the ferry")] * 2)
    talk(live.client, "new", "The ferry to Saaremaa leaves at 7:40", "Noted.")
    live.settle()
    state(live, "Takes the ferry every summer")
    page.goto("/")
    if page.get_by_role("button", name="Open chats").is_visible():
        page.get_by_role("button", name="Open chats").click()
    hits = chats(page).locator(".hit")
    chats(page).get_by_role("searchbox").fill("ferry")
    expect(hits.filter(has_text="was late")).to_have_count(1)
    expect(hits.filter(has_text="leaves at 7:40")).to_have_count(1)
    chats(page).get_by_label("What to search").select_option("Facts")
    expect(hits).to_have_count(1)
    expect(hits).to_contain_text("Takes the ferry every summer")
    expect(chats(page).get_by_role("heading", name="Facts")).to_be_visible()
    chats(page).get_by_label("What to search").select_option("Summaries")
    expect(hits.filter(has_text="Plans for the ferry").first).to_be_visible()
    expect(hits.filter(has_text="Takes the ferry")).to_have_count(0)
    fits(page)
    chats(page).get_by_label("What to search").select_option("Messages")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    chats(page).get_by_label("From this day on").fill(yesterday.strftime("%Y-%m-%d"))
    expect(hits.filter(has_text="was late")).to_have_count(0)
    expect(hits.filter(has_text="leaves at 7:40")).to_have_count(1)
    chats(page).get_by_label("From this day on").fill("")
    expect(hits.filter(has_text="was late")).to_have_count(1)
    hits.filter(has_text="was late").click()
    expect(page.get_by_role("article").filter(has_text="was late")).to_be_focused()


def test_older_chats_come_as_the_list_is_scrolled(page, live):
    for number in range(1, 46):
        talk(live.client, f"chat-{number}", f"About subject {number:02}", "Noted.")
    page.goto("/")
    expect(chats(page).get_by_role("button", name=re.compile("^About subject 45"))).to_be_visible()
    oldest = chats(page).get_by_role("button", name=re.compile("^About subject 01"))
    expect(oldest).to_have_count(0)
    chats(page).get_by_role("button", name=re.compile("^About subject 16")).scroll_into_view_if_needed()
    expect(oldest).to_have_count(1)


# -- related chats


def summarised(live: Live, server: ModelServer, session: str, words: str) -> list[int]:
    ids = talk(live.client, session, words, "Noted.")
    server.mini.queue(digest_of(topic=words))
    engine_of(live.app).job_queue.run_due(["summary"])
    return ids


def test_related_and_latest_chats_are_shown_and_lead_there(page, live, model_server):
    summarised(live, model_server, "roof", "Repairing the roof of the summer house")
    summarised(live, model_server, "lentils", "Recipes with lentils")
    summarised(live, model_server, "costs", "Costs of repairing a roof")
    page.goto("/#/roof")
    expect(messages(page)).to_have_count(2)
    related = page.get_by_role("list", name="Related chats")
    expect(related).to_be_hidden()
    page.get_by_text("Related chats").click()
    expect(related.get_by_role("listitem")).to_have_count(1)
    expect(related).to_contain_text("about much the same")
    related.get_by_role("button", name=re.compile("Costs of repairing")).click()
    expect(page).to_have_url(re.compile("#/costs$"))
    expect(related).to_be_hidden()
    page.goto("/#/lentils")
    expect(messages(page).first).to_contain_text("lentils")
    page.wait_for_load_state("networkidle")
    expect(page.get_by_text("Related chats")).to_be_hidden()
    page.get_by_role("button", name="New chat", exact=True).click()
    chat(page, model_server, "Where did we leave off?", "At the roof.")
    deed(messages(page).last, "Why this answer")
    why = page.get_by_role("region", name="Why this answer")
    expect(why).to_contain_text("so the latest chats were shown")
    expect(why).to_contain_text("Topic: Costs of repairing a roof")
    expect(why.get_by_role("button", name="Not helpful")).to_have_count(0)
    why.get_by_role("button", name=re.compile("Costs of repairing")).click()
    expect(page).to_have_url(re.compile("#/costs$"))


def test_of_several_chats_those_that_were_deleted_before_one_failed_are_left(page, live):
    watch_of(page).expect("status of 503")
    three(live)
    page.goto("/#/kitchen")
    expect(messages(page)).to_have_count(2)
    for title in ("The roses need water", "The oven is broken"):
        select(page, title)
    page.route(
        "**/api/sessions/garden*",
        lambda route: route.fulfill(status=503) if route.request.method == "DELETE" else route.continue_(),
    )
    chats(page).get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(messages(page)).to_have_count(0)
    expect(chats(page).get_by_role("alert")).to_contain_text("503")
    chats(page).get_by_role("button", name="Try again").click()
    expect(listed(page)).to_have_text(["No fuel", "The roses need water"])
