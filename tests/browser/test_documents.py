"""Files that are dropped on the page are added to what is known, listed, and deleted."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page import ME, fits, tab
from tests.browser.test_importing import drag
from tests.browser.windows import PHONE, watch_of
from tests.http import good, read_all
from tests.pdf import pdf

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("page", [PHONE.in_german], indirect=True, ids=str)
def test_files_are_added_beside_the_message_box_and_the_panel_shows_them(page, live, tmp_path):
    page.goto("/")
    watch_of(page).expect("status of 422")
    (tmp_path / "leer.txt").write_text(" ")
    (tmp_path / "haus.md").write_text("# Hausbuch\n\nDer Kessel ist blau.")
    page.get_by_role("button", name="Dateien hinzufügen").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("menuitem", name="Dokumente zu dem hinzufügen, was Recap weiß").click()
    chooser.value.set_files([tmp_path / "leer.txt", tmp_path / "haus.md"])
    panel = page.get_by_role("complementary", name="Gedächtnis")
    expect(panel.get_by_role("listitem").filter(has_text="haus")).to_be_in_viewport()
    expect(panel.get_by_role("alert")).to_have_text(re.compile("^leer.txt: In diesem Dokument ist kein Text."))
    fits(page)


def test_a_dropped_file_is_listed_found_and_deleted(page, live):
    page.goto("/")
    page.locator(".drop").wait_for(state="attached")  # the page has started
    watch_of(page).expect("status of 422")
    manual = pdf(["Hello.", "The boiler is blue."], Title="House manual")
    drag(page, "drop", ("house.pdf", "application/pdf", manual), ("empty.md", "text/markdown", b" "))
    panel = page.get_by_role("complementary", name="Memory")
    row = panel.get_by_role("listitem").filter(has_text="House manual")
    expect(row).to_contain_text("2 pages")
    expect(panel.get_by_role("alert")).to_contain_text("empty.md: There is no text in this document")
    (document,) = read_all(live.client, "/api/documents", user_id=ME)
    assert document["title"] == "House manual"
    tab(page, "Facts")
    page.get_by_role("searchbox", name="Search all chats").fill("boiler")
    page.get_by_role("button", name="The boiler is blue").click()  # what a search finds leads to the documents
    expect(row).to_be_visible()
    row.hover()
    row.get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    expect(row).to_have_count(0)
    assert read_all(live.client, "/api/documents", user_id=ME) == []


def test_documents_are_listed_wherever_they_say_they_are_from(page, live):
    for uri in ("http://", "https://[a/", "https://example.com/tea"):
        good(
            live.client.post(
                "/api/documents", json={"user_id": ME, "text": f"# Tea at {uri}\n\nIt steeps.", "uri": uri}
            )
        )
    page.goto("/")
    tab(page, "About you")
    part = page.locator("details", has=page.get_by_role("heading", name="Documents"))
    part.locator("summary").first.click()
    expect(part.get_by_role("listitem")).to_have_count(3)
    expect(part.get_by_role("link")).to_have_text(["example.com"])
