"""Where the server has API keys: asking for one, refusing a wrong one, signing out."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from app import engine_of
from config import ApiKey
from tests.browser.page import ME, box, chat, close_settings, messages, open_settings
from tests.browser.windows import PHONE, accessibility, watch_of

KEY = "a-key-of-the-tests-that-is-long-enough-0123456789"
OTHER = "another-key-of-the-tests-for-another-tenant-9876"


@pytest.fixture
def live(serve):
    """Two tenants, each with a key; the first one's `me` has said something."""
    live = serve(api_keys=(ApiKey("house", KEY), ApiKey("shop", OTHER)))
    body = {"user_id": ME, "messages": [{"role": "user", "content": "The roses need water"}]}
    headers = {"Authorization": f"Bearer {KEY}"}
    assert live.client.post("/api/sessions/garden/messages", json=body, headers=headers).status_code == 200
    return live


@pytest.fixture
def page(page):
    watch_of(page).expect(r"status of 401")  # the browser writes one line for each
    return page


def asked(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Sign in")


def sign_in(page: Page, key: str) -> None:
    asked(page).get_by_label("API key").fill(key)
    asked(page).get_by_role("button", name="Sign in").click()


def kept(page: Page) -> tuple[str, str]:
    """All that the browser keeps: for this tab, and beyond it."""
    storage: tuple[str, str] = page.evaluate("[JSON.stringify({...sessionStorage}), JSON.stringify({...localStorage})]")
    return storage


def test_the_key_opens_the_page_and_stays_with_the_tab_until_one_signs_out(page, model_server):
    page.goto("/#/garden")
    expect(asked(page)).to_contain_text("RECAP_API_KEYS")
    expect(asked(page).get_by_label("API key")).to_have_attribute("type", "password")
    asked(page).get_by_label("API key").fill(f" {KEY} ")  # as it is pasted
    with page.expect_request("**/api/me") as sent:
        page.keyboard.press("Enter")
    expect(messages(page)).to_contain_text(["The roses need water"])
    assert "authorization" not in sent.value.all_headers(), "a proxy's name and password go there"
    chat(page, model_server, "When do I water them?", "Every evening.")
    for_tab, beyond = kept(page)
    assert KEY in for_tab and KEY not in beyond and KEY not in page.url
    page.reload()
    expect(messages(page).first).to_contain_text("The roses need water")
    expect(asked(page)).to_be_hidden()

    other = page.context.new_page()  # which gets the key from this one
    other.goto("/#/garden")
    expect(messages(other).first).to_contain_text("The roses need water")
    page.bring_to_front()
    box(page).fill("Nobody may read this")
    page.get_by_role("button", name="Sign out").click()
    expect(asked(other)).to_be_visible()  # and loses it with this one
    other.close()
    expect(asked(page)).to_be_visible()
    expect(asked(page).get_by_role("alert")).to_be_hidden()  # no key was refused
    expect(page.get_by_text("The roses need water")).to_have_count(0)
    assert KEY not in "".join(kept(page)) and "Nobody may read this" not in "".join(kept(page))
    watch_of(page).expect(r"status of 404")  # the address still names the chat
    with page.expect_console_message(lambda told: "404" in told.text):
        sign_in(page, OTHER)
    expect(page.get_by_text("No chats yet")).to_be_visible()  # another tenant's `me` is someone else
    expect(box(page)).to_have_value("")


@pytest.mark.parametrize("page", [PHONE.at_night], indirect=True, ids=str)
def test_a_wrong_key_is_refused_in_words(page):
    page.goto("/#/garden")
    expect(asked(page)).to_be_visible()
    assert accessibility(page) == []
    sign_in(page, "")
    expect(asked(page).get_by_role("alert")).to_contain_text("Type or paste the key first")
    sign_in(page, "clé-№1-ключ")  # such a key can't even be sent
    expect(asked(page).get_by_role("alert")).to_contain_text("Copy it again")
    sign_in(page, KEY[:-1])
    expect(asked(page).get_by_role("alert")).to_contain_text("did not accept that key")
    expect(asked(page).get_by_label("API key")).to_have_value("")
    sign_in(page, KEY)
    expect(messages(page)).to_contain_text(["The roses need water"])


def test_a_key_of_one_person_shows_their_memory_and_nobody_elses(page, live, model_server):
    key, _ = engine_of(live.app).keys.create("house", "ada")
    as_ada = {"Authorization": f"Bearer {key}"}
    body = {"messages": [{"role": "user", "content": "The boat leaks"}]}
    assert live.client.post("/api/sessions/harbour/messages", json=body, headers=as_ada).status_code == 200
    page.goto("/#/harbour")
    sign_in(page, key)
    expect(messages(page)).to_contain_text(["The boat leaks"])
    expect(page.get_by_text("The roses need water")).to_have_count(0)
    chat(page, model_server, "What now?", "Then bail it out.")
    said = live.client.get("/api/sessions/harbour/messages", headers=as_ada).json["items"]
    assert [one["content"] for one in said] == ["The boat leaks", "What now?", "Then bail it out."]
    page.reload()
    expect(messages(page).first).to_contain_text("The boat leaks")
    name = open_settings(page).get_by_label("Name", exact=True)
    expect(name).to_have_value("ada")
    expect(name).to_have_attribute("readonly", "")
    close_settings(page)
    page.get_by_role("button", name="Sign out").click()
    watch_of(page).expect(r"status of 404")  # the address still names her chat
    with page.expect_console_message(lambda told: "404" in told.text):
        sign_in(page, KEY)
    expect(page.get_by_role("button", name=re.compile("^The roses need water"))).to_be_visible()  # `me` again
    expect(page.get_by_text("The boat leaks")).to_have_count(0)


@pytest.mark.parametrize("begun", [True, False], ids=["in a chat", "in a new chat"])
def test_who_signs_in_after_a_key_was_revoked_sees_and_gets_nothing_of_its_person(page, live, model_server, begun):
    keys = engine_of(live.app).keys
    key, made = keys.create("house", "ada")
    page.goto("/")
    sign_in(page, key)
    if begun:
        chat(page, model_server, "The boat leaks")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    keys.revoke(made.id)
    box(page).fill("It sinks")
    box(page).press("Enter")
    sign_in(page, OTHER)
    expect(page.get_by_text("No chats yet")).to_be_visible()
    expect(box(page)).to_have_value("")
    expect(page.locator("body")).not_to_contain_text("The boat")
    expect(page).to_have_url(re.compile("/$"))
    as_other = {"Authorization": f"Bearer {OTHER}"}
    assert live.client.get(f"/api/sessions?user_id={ME}", headers=as_other).json["items"] == []
