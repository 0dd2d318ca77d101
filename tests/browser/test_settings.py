"""Settings: each applies at once, is kept, and reaches the server with what is sent."""

import re
from typing import Any

import pytest
from cryptography.fernet import Fernet
from playwright.sync_api import Locator, Page, expect

from tests.browser.page import ME, close_settings, fits, messages, open_chat, open_settings, send, talk
from tests.browser.windows import PHONE, watch_of
from tests.model_server import ModelServer, Status, prompts

KEY = "sk-sentinel-of-7319"
BLOCKED = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, { configurable: true, get() { throw new DOMException("Blocked"); } });"""


def done(page: Page) -> None:
    """The reply is there."""
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()
    expect(page.locator("article[aria-busy]")).to_have_count(0)


def sent(page: Page, text: str) -> dict[str, Any]:
    """Send a message; what the page asked the server for."""
    with page.expect_request("**/api/chat") as asked:
        send(page, text)
    done(page)
    body: dict[str, Any] = asked.value.post_data_json
    return body


def head(model_server: ModelServer) -> str:
    """How the main model's last prompt begins."""
    return prompts(model_server)[-1][0]["content"]


def test_another_name_shows_another_memory(page, live):
    talk(live.client, "garden", "The roses need water", "Noted.")
    talk(live.client, "harbour", "The boat leaks", "Noted.", user_id="ada")
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    name = open_settings(page).get_by_label("Name", exact=True)
    expect(name).to_have_value(ME)
    name.fill("ada")
    name.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Remembered for “ada”: 1 chat and 0 facts.")).to_be_visible()
    close_settings(page)
    expect(messages(page)).to_have_count(0)
    open_chat(page, "The boat leaks")
    expect(messages(page)).to_have_count(2)
    page.goto("/")
    page.reload()
    expect(page.get_by_role("button", name=re.compile("^The boat leaks"))).to_be_visible()  # it is kept
    expect(page.get_by_role("button", name=re.compile("^The roses"))).to_be_hidden()


def test_the_look_changes_at_once_and_is_there_before_the_first_paint(page, live):
    def background() -> str:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    page.goto("/")
    light = background()
    open_settings(page, "Look and keys").get_by_role("radio", name="Dark").check()
    dark = background()
    assert dark != light
    page.goto("/", wait_until="commit")
    page.wait_for_selector("body", state="attached")
    assert background() == dark
    page.wait_for_load_state("load")
    open_settings(page, "Look and keys").get_by_role("radio", name="Same as your device").check()
    assert background() == light
    page.add_init_script(BLOCKED)
    page.reload()
    open_settings(page, "Look and keys").get_by_role("radio", name="Dark").check()
    assert background() == dark  # until the page is loaded again


def test_a_chats_system_prompt_is_stored_with_it(page, live, model_server):
    talk(live.client, "garden", "The roses need water", "Noted.")
    talk(live.client, "kitchen", "The oven is broken", "Noted.")
    page.goto("/#/garden")
    expect(messages(page)).to_have_count(2)
    prompt = open_settings(page, "This chat").get_by_label("Instructions for this chat")
    expect(prompt).to_be_enabled()
    prompt.fill("You are a gardener.")
    with page.expect_response(lambda it: it.request.method == "PATCH"):
        page.keyboard.press("Escape")  # without leaving the field first
    sent(page, "How much water?")
    assert head(model_server).startswith("You are a gardener.")
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").json["system_prompt"] == "You are a gardener."
    open_chat(page, "The oven")
    expect(messages(page).first).to_contain_text("The oven is broken")
    expect(open_settings(page, "This chat").get_by_label("Instructions for this chat")).to_have_value("")
    close_settings(page)
    open_chat(page, "The roses")
    prompt = open_settings(page, "This chat").get_by_label("Instructions for this chat")
    expect(prompt).to_have_value("You are a gardener.")
    prompt.fill("")
    prompt.press("Tab")
    expect(page.get_by_text("Recap's own instructions apply again.")).to_be_visible()
    assert live.client.get(f"/api/sessions/garden?user_id={ME}").json["system_prompt"] is None


def test_the_time_zone_and_how_a_chat_looks_back_go_along_with_each_message(page, live):
    message = {"role": "user", "content": "The roses need water", "created_at": "2026-03-05T12:00:00Z"}
    live.client.post("/api/sessions/garden/messages", json={"user_id": ME, "messages": [message]})
    page.goto("/#/garden")
    expect(messages(page).first.get_by_role("time")).to_have_text("14:00")  # the browser's: Tallinn
    assert "recall" not in sent(page, "They need more")  # as the operator set it
    zone = open_settings(page).get_by_label("Time zone")
    zone.select_option("Asia/Tokyo")
    expect(page.get_by_role("radio", name="When it helps")).to_be_checked()
    page.get_by_role("radio", name="Never").check()
    close_settings(page)
    expect(messages(page).first.get_by_role("time")).to_have_text("21:00")
    body = sent(page, "Did I say so yesterday?")
    assert (body["timezone"], body["recall"]) == ("Asia/Tokyo", "off")
    page.reload()
    open_settings(page)
    expect(zone).to_have_value("Asia/Tokyo")
    expect(page.get_by_role("radio", name="Never")).to_be_checked()
    zone.select_option("Your browser's: Europe/Tallinn")
    page.get_by_role("radio", name="When it helps").check()
    close_settings(page)
    expect(messages(page).first.get_by_role("time")).to_have_text("14:00")
    assert "recall" not in sent(page, "And now?")


# -- models


def header(page: Page) -> Locator:
    return page.get_by_label("The model that answers this chat")  # a phone hides it while there is no choice


def test_each_chat_keeps_the_model_that_was_chosen_for_it_while_there_is_one(page, live, model_server):
    page.goto("/")
    expect(header(page).get_by_role("option")).to_have_text(["main-model", "gpt-4o", "gpt-4o-mini"])
    assert "model" not in sent(page, "The oven is broken")
    page.get_by_role("button", name="New chat").click()
    header(page).select_option("gpt-4o")
    assert sent(page, "The roses need water")["model"] == "gpt-4o"
    page.reload()
    expect(messages(page).last).to_contain_text("gpt-4o")  # which wrote it
    expect(header(page)).to_have_value("gpt-4o")
    open_chat(page, "The oven")
    expect(messages(page).last).to_contain_text("main-model")
    expect(header(page)).to_have_value("")
    open_chat(page, "The roses")
    expect(header(page)).to_have_value("gpt-4o")
    watch_of(page).expect(r"status of 502")
    model_server.main.queue(Status(404, {"error": {"message": "No such model.", "code": "model_not_found"}}))
    send(page, "How much water?")
    expect(page.get_by_text("Choose another one below the message.")).to_be_visible()
    header(page).select_option("main-model")
    page.get_by_role("button", name="Try again").click()
    expect(messages(page).last).to_contain_text("main-model")
    assert "model" not in sent(page, "And when?")


def open_model_server(page: Page) -> Locator:
    open_settings(page, "Models").get_by_role("button", name="Connect a model").click()
    return page.get_by_role("dialog", name="Connect a model")


@pytest.mark.parametrize("screen", [PHONE], ids=str)
def test_an_administrator_connects_a_model_on_the_page(serve, browse, model_server, screen):
    page = browse(serve(builtin=True, encryption_key=Fernet.generate_key().decode()), screen)
    page.goto("/")
    expect(header(page)).to_be_disabled()
    dialog = open_model_server(page)
    dialog.get_by_label("Address").fill(model_server.url)
    dialog.get_by_label("API key").fill(KEY)
    dialog.get_by_role("button", name="List its models").click()
    expect(dialog.get_by_role("status")).to_have_text("2 models, offered where you type: gpt-4o, gpt-4o-mini")
    assert dialog.get_by_label("Model that replies").evaluate("e => [...e.list.options].map(one => one.value)") == [
        "gpt-4o",
        "gpt-4o-mini",
    ]
    dialog.get_by_label("Model that replies").fill("main-model")
    watch_of(page).expect(r"status of 502")
    model_server.main.queue(Status(401, {"error": {"message": f"{KEY} is wrong."}}), "I am here.")
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text("refused the key (HTTP 401): [secret] is wrong. Check OPENAI")
    dialog.get_by_role("button", name="Test").click()
    expect(dialog.get_by_role("status")).to_contain_text(re.compile(r"main-model replied in [\d,]+ ms: “I am here.”"))
    fits(page)
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("status")).to_have_text("Saved. The next reply comes from this server.")
    expect(dialog.get_by_label("API key")).to_have_attribute("placeholder", re.compile("^Ends in …7319"))
    expect(dialog.get_by_label("API key")).to_have_value("")
    assert KEY not in page.content()
    page.get_by_role("button", name="Close Connect a model").click()
    expect(page.get_by_text("main-model replies to you")).to_be_visible()
    close_settings(page)
    expect(header(page)).to_be_enabled()
    expect(page.get_by_text("The built-in model answers")).to_be_hidden()
    model_server.main.queue("Noted.")
    page.keyboard.press("Escape")
    if page.get_by_role("button", name="Close chats").is_visible():
        page.get_by_role("button", name="Close chats").click()
    send(page, "The roses need water")
    expect(messages(page).last).to_contain_text("main-model")
    dialog = open_model_server(page)
    dialog.get_by_role("button", name="Disconnect").click()
    expect(dialog.get_by_role("status")).to_contain_text("Disconnected.")
    expect(header(page)).to_be_disabled()
