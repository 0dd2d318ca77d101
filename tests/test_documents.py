"""Documents: added, found, quoted, replaced and erased; and files that are not what they seem."""

from __future__ import annotations

import io
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from tests.http import Body, chat, error, find, good, read_all
from tests.pdf import pdf

HANDBOOK = "# Handbook\n\n## Leave\n\nEverybody has 28 days.\n\n## Parking\n\nThe garage opens at seven.\n"


def add(client: FlaskClient, text: str = HANDBOOK, user_id: str = "ada", **more: Any) -> Body:
    return good(client.post("/api/documents", json={"text": text, "user_id": user_id, **more}))


def send(client: FlaskClient, data: bytes, name: str, **fields: Any) -> Any:
    form = {"user_id": "ada", "file": (io.BytesIO(data), name), **fields}
    return client.post("/api/documents", data=form, content_type="multipart/form-data")


def test_a_text_is_cut_by_its_headings_and_found_at_once(client: FlaskClient) -> None:
    document = add(client, uri="https://example.com/handbook", external_id="hb")
    assert document["title"] == "Handbook"
    assert (document["state"], document["passages"], document["pages"]) == ("created", 2, None)
    found = find(client, "garage", user_id="ada")
    assert found[0]["kind"] == "document"
    assert found[0]["content"] == "Handbook > Parking\nThe garage opens at seven."
    assert found[0]["document"] == {
        "id": document["id"],
        "title": "Handbook",
        "uri": "https://example.com/handbook",
    }
    assert found[0]["session_id"] is None
    passages = read_all(client, f"/api/documents/{document['id']}/passages")
    assert [one["position"] for one in passages] == [1, 2]


def test_a_pdf_is_known_by_its_pages(client: FlaskClient) -> None:
    document = good(
        send(client, pdf(["Nothing here.", "The spare key hangs behind the boiler."], Title="House"), "a.pdf")
    )
    assert (document["title"], document["pages"], document["media_type"]) == ("House", 2, "application/pdf")
    found = find(client, "spare key", user_id="ada")[0]
    assert found["document"]["page"] == 2


def test_a_turn_quotes_it_with_title_page_and_uri(client: FlaskClient, app: Flask) -> None:
    good(
        send(client, pdf(["Hello.", "The spare key hangs behind the boiler."]), "house.pdf", uri="https://h.example/x")
    )
    block = good(client.post("/api/recall", json={"message": "Where does the spare key hang?", "user_id": "ada"}))
    assert '<document title="house" uri="https://h.example/x"' in block["block"]
    assert "page 2: The spare key hangs behind the boiler." in block["block"]
    (excerpt,) = block["memory"]["excerpts"]
    assert (excerpt["session_id"], excerpt["document"]["page"]) == (None, 2)
    told = chat(client, "Where does the spare key hang?", user_id="ada")
    assert told["memory"]["excerpts"][0]["document"]["title"] == "house"


def test_the_same_again_changes_nothing_and_another_takes_its_place(client: FlaskClient) -> None:
    first = add(client, external_id="hb")
    assert add(client, external_id="hb") == first | {"state": "unchanged"}
    second = add(client, HANDBOOK.replace("seven", "half past six"), external_id="hb")
    assert (second["id"], second["state"], second["created_at"]) == (first["id"], "replaced", first["created_at"])
    assert "half past six" in find(client, "garage opens", user_id="ada")[0]["content"]
    assert not [one for one in find(client, "garage seven", user_id="ada") if "at seven" in one["content"]]
    assert len(read_all(client, "/api/documents", user_id="ada")) == 1


def test_it_is_in_no_list_of_sessions_and_counted_as_a_document(client: FlaskClient) -> None:
    document = add(client)
    assert read_all(client, "/api/sessions", user_id="ada") == []
    error(client.get(f"/api/sessions/{document['id']}"), 404)
    error(client.get(f"/api/sessions/{document['id']}/messages"), 404)
    person = good(client.get("/api/users/ada"))
    assert (person["documents"], person["sessions"], person["messages"]) == (1, 0, 0)


def test_it_is_erased(client: FlaskClient) -> None:
    document = add(client)
    receipt = good(client.delete(f"/api/documents/{document['id']}"))
    assert (receipt["erased"]["documents"], receipt["pending"], receipt["document_id"]) == (1, [], document["id"])
    assert receipt["erased"]["sessions"] == receipt["erased"]["messages"] == 0
    assert find(client, "garage", user_id="ada") == []
    error(client.get(f"/api/documents/{document['id']}"), 404)
