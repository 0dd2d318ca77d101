"""Webhooks in the settings: added with a secret that is shown once, tested, switched off and deleted."""

from ipaddress import ip_network

import pytest
from playwright.sync_api import expect

from tests.browser.page import close_settings, open_manage, open_settings
from tests.processes import eventually
from tests.test_webhooks import KEY, Receiver

pytestmark = pytest.mark.browser


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


def test_a_webhook_is_added_tested_told_of_an_erasure_switched_off_and_deleted(serve, browse, receiver):
    live = serve(encryption_key=KEY, webhook_networks=(ip_network("127.0.0.1"),))
    assert live.client.post("/api/facts", json={"user_id": "me", "text": "Has a boat"}).status_code == 201
    page = browse(live)
    page.goto("/")
    settings = open_settings(page, "Upkeep")
    settings.get_by_label("Address", exact=True).fill(receiver.url)
    settings.get_by_label("With what people and models said").check()
    settings.get_by_role("button", name="Add webhook").click()
    expect(settings.get_by_text("whsec_")).to_be_visible()
    hook = settings.get_by_role("listitem").filter(has_text=receiver.url)
    hook.get_by_role("button", name="Test").click()
    hook.get_by_text("Last deliveries").click()
    expect(hook).to_contain_text("webhook.test · delivered (204)")
    expect(settings.get_by_text("whsec_")).to_have_count(0)
    receiver.status = 500
    hook.get_by_role("button", name="Test").click()
    expect(hook).to_contain_text("it answered 500")
    (made,) = live.client.get("/api/webhooks").json["items"]
    assert (made["words"], made["enabled"], made["user_id"]) == (True, True, None)
    receiver.status = 204
    close_settings(page)
    open_manage(page, "Your data").get_by_role("button", name="Erase everything").click()
    asked = page.get_by_role("dialog", name="Erase everything?")
    expect(asked.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("erase")
    asked.get_by_role("button", name="Erase everything", exact=True).click()
    receipt = page.get_by_role("dialog", name="Everything is erased")
    expect(receipt).to_contain_text("the event that tells other programs of it, for a week")
    assert eventually(lambda: [event["type"] for event in receiver.events][-1:] == ["person.erased"])
    receipt.get_by_role("button", name="Done").click()
    open_settings(page, "Upkeep")
    hook.get_by_label("On").click()
    expect(hook.get_by_label("On")).not_to_be_checked()
    hook.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete this webhook?").get_by_role("button", name="Delete", exact=True).click()
    expect(hook).to_have_count(0)
    assert live.client.get("/api/webhooks").json["items"] == []
