"""What those who run the server look at in the settings: work that failed, how long chats stay, and archives."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from app import engine_of
from tests.browser.page import ME, chat, close_settings, fits, messages, open_settings
from tests.browser.windows import PHONE, watch_of
from tests.http import append, read_all, said
from tests.model_server import Status
from tests.processes import eventually


@pytest.mark.parametrize("page", [PHONE.at_night], indirect=True, ids=str)
def test_work_that_failed_is_listed_and_tried_again(page, live, model_server, monkeypatch):
    monkeypatch.setattr("memory.jobs.ATTEMPTS", 1)
    working, model_server.mini.default = model_server.mini.default, lambda body: Status(500)
    page.goto("/")
    chat(page, model_server, "The roses need water")
    assert eventually(lambda: read_all(live.client, "/api/jobs", state="failed"), 10.0)
    settings = open_settings(page, "Upkeep")
    failed = settings.locator(".part", has=page.get_by_role("heading", name="Work that failed"))
    expect(failed.get_by_role("listitem")).to_have_count(1)
    expect(failed.get_by_role("listitem")).to_contain_text(re.compile("^Summary and facts of a chat.*HTTP 500"))
    expect(failed).to_contain_text("Messages are safe")
    fits(page)
    model_server.mini.default = working
    failed.get_by_role("button", name="Try again").click()
    expect(settings.get_by_role("status").first).to_have_text("It is tried again now.")
    live.settle("summary")
    close_settings(page)
    settings = open_settings(page, "Upkeep")
    expect(settings).to_contain_text("All work in the background succeeded.")
    assert [one["summary_version"] for one in read_all(live.client, "/api/sessions", user_id=ME)] == [1]


@pytest.mark.parametrize("page", [PHONE.at_night], indirect=True, ids=str)
def test_old_chats_become_archives_which_come_back_are_saved_or_deleted(page, live, tmp_path):
    for session, days in (("roof", 400), ("garden", 300), ("today", 0)):
        at = (datetime.now(UTC) - timedelta(days=days)).isoformat()
        append(live.client, session, [said(f"About the {session}", created_at=at)], user_id=ME)
    page.goto("/")
    settings = open_settings(page, "Upkeep")
    expect(settings).to_contain_text("No chat was taken out of memory.")
    settings.get_by_label("Days").fill("30")
    settings.get_by_label("Keep an archive of each chat").check()
    settings.get_by_role("button", name="Save", exact=True).first.click()
    expect(settings.get_by_role("status").first).to_have_text("Saved. It applies now and once a day.")
    assert eventually(lambda: len(read_all(live.client, "/api/archives")) == 2, 10.0)
    page.reload()
    settings = open_settings(page, "Upkeep")
    expect(settings.get_by_label("Days")).to_have_value("30")
    expect(settings.get_by_label("Newest chats of each person")).to_have_value("")
    archives = settings.locator(".part", has=page.get_by_role("heading", name="Archives"))
    roof, garden = (archives.get_by_role("listitem").filter(has_text=name) for name in ("roof", "garden"))
    expect(archives.get_by_role("listitem")).to_have_count(2)
    fits(page)
    with page.expect_download() as saved:
        roof.get_by_role("button", name="Export").click()
    saved.value.save_as(tmp_path / "roof")
    assert "About the roof" in (tmp_path / "roof").read_text("utf-8")
    roof.get_by_role("button", name="Restore").click()
    expect(settings.get_by_role("status").first).to_have_text("The chat is back.")
    expect(roof).to_have_count(0)
    garden.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete this archive?").get_by_role("button", name="Cancel").click()
    expect(garden).to_have_count(1)
    garden.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete this archive?")
    expect(dialog).to_contain_text("“About the garden” can't be brought back")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(settings.get_by_role("status").first).to_have_text("The archive is deleted.")
    expect(archives.get_by_role("listitem")).to_have_count(0)
    close_settings(page)
    page.goto("/#/roof")
    expect(messages(page)).to_have_text([re.compile("About the roof")])
    assert {one["id"] for one in read_all(live.client, "/api/sessions", user_id=ME)} == {"roof", "today"}


def test_a_key_is_offered_what_it_may_do(serve, browse):
    live = serve()
    keys = engine_of(live.app).keys
    reader, _ = keys.create("default", scopes=["read", "chat"])
    person, _ = keys.create("default", "ada", scopes=["chat"])
    page = browse(live)
    watch_of(page).expect(r"status of 401")
    page.goto("/")
    page.get_by_label("API key").fill(reader)
    page.get_by_role("button", name="Sign in").click()
    settings = open_settings(page, "Models")
    expect(settings.get_by_text("main-model replies to you")).to_be_visible()
    expect(settings.get_by_role("button", name="Connect a model")).to_have_count(0)
    expect(settings.get_by_role("tab", name="Upkeep")).to_have_count(0)
    close_settings(page)
    expect(page.get_by_role("button", name="Add a fact")).to_be_hidden()  # what would be refused is not shown
    expect(page.get_by_text("Other people and programs")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key").fill(person)
    page.get_by_role("button", name="Sign in").click()
    settings = open_settings(page, "Upkeep")
    expect(settings.get_by_role("heading", name="Work that failed")).to_be_visible()
    expect(settings.get_by_role("heading", name="How long chats stay")).to_have_count(0)
    expect(settings.get_by_role("heading", name="Webhooks")).to_have_count(0)
