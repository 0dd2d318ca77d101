"""Documents: added, found, quoted, replaced and erased; and files that are not what they seem."""

import io
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from pypdf import PdfWriter
from werkzeug.datastructures import FileStorage

from app import engine_of
from memory.passages import extraction
from tests.application import soon_over
from tests.http import Body, chat, error, find, good, read_all
from tests.pdf import pdf

HANDBOOK = "# Handbook\n\n## Leave\n\nEverybody has 28 days.\n\n## Parking\n\nThe garage opens at seven.\n"


def add(client: FlaskClient, text: str = HANDBOOK, user_id: str = "ada", **more: Any) -> Body:
    return good(client.post("/api/documents", json={"text": text, "user_id": user_id, **more}))


def send(client: FlaskClient, data: bytes, name: str, **fields: Any) -> Any:
    form = {"user_id": "ada", "file": (io.BytesIO(data), name), **fields}
    return client.post("/api/documents", data=form, content_type="multipart/form-data")


def passages(client: FlaskClient, document: Body) -> list[Body]:
    return read_all(client, f"/api/documents/{document['id']}/passages", user_id="ada")


def test_a_text_is_cut_by_its_headings_and_found_at_once(client):
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
    assert [one["position"] for one in passages(client, document)] == [1, 2]


def test_a_turn_quotes_it_with_title_page_and_uri(client, app):
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
    assert "The spare key hangs behind the boiler" in told["reply"] and "house" in told["reply"]


def test_the_same_again_changes_nothing_and_another_takes_its_place(client):
    first = add(client, external_id="hb")
    assert add(client, external_id="hb") == first | {"state": "unchanged"}
    second = add(client, HANDBOOK.replace("seven", "half past six"), external_id="hb")
    assert (second["id"], second["state"], second["created_at"]) == (first["id"], "replaced", first["created_at"])
    assert "half past six" in find(client, "garage opens", user_id="ada")[0]["content"]
    assert not [one for one in find(client, "garage seven", user_id="ada") if "at seven" in one["content"]]
    assert len(read_all(client, "/api/documents", user_id="ada")) == 1


def test_it_is_counted_as_a_document_and_no_session_and_erased(client):
    document = add(client)
    assert read_all(client, "/api/sessions", user_id="ada") == []
    error(client.get(f"/api/sessions/{document['id']}"), 404)
    person = good(client.get("/api/users/ada"))
    assert (person["documents"], person["sessions"], person["messages"]) == (1, 0, 0)
    receipt = good(client.delete(f"/api/documents/{document['id']}"))
    assert (receipt["erased"]["documents"], receipt["pending"], receipt["document_id"]) == (1, [], document["id"])
    assert receipt["erased"]["sessions"] == receipt["erased"]["messages"] == 0
    assert find(client, "garage", user_id="ada") == []
    error(client.get(f"/api/documents/{document['id']}"), 404)


def test_an_export_brings_it_along(client):
    good(
        send(
            client,
            pdf(["One.", "The boiler is blue."], Title="House"),
            "a.pdf",
            external_id="h",
            uri="https://h.example",
        )
    )
    (mine,) = read_all(client, "/api/documents", user_id="ada")
    assert (mine["title"], mine["pages"], mine["media_type"]) == ("House", 2, "application/pdf")
    exported = good(client.get("/api/users/ada/export"))
    (document,) = exported["documents"]
    assert [one["page"] for one in document["passages"]] == [1, 2]
    assert exported["sessions"] == []
    told = good(client.post("/api/import?user_id=bob", json=exported))
    assert (told["created"]["documents"], told["created"]["sessions"]) == (1, 0)
    assert find(client, "boiler", user_id="bob")[0]["document"]["uri"] == "https://h.example"
    assert good(client.post("/api/import?user_id=bob", json=exported))["known"]["documents"] == 1
    (mine,), (theirs,) = (read_all(client, "/api/documents", user_id=user) for user in ("ada", "bob"))
    assert {**mine, "id": "", "user_id": ""} == {**theirs, "id": "", "user_id": ""}
    assert "The boiler is blue." in client.get("/api/users/ada/export?format=markdown").text


# -- files that are not what they seem


def compressed(stream: bytes, *, page: str = "") -> bytes:
    """A PDF with one page, whose content is a compressed stream."""
    data = zlib.compress(stream, 9)
    plain = pdf([page or "x"])
    start = plain.index(b"7 0 obj")
    head = f"7 0 obj\n<< /Length {len(data)} /Filter /FlateDecode >>\nstream\n".encode()
    return plain[:start] + head + data + b"\nendstream\nendobj\ntrailer\n<< /Size 8 /Root 1 0 R >>\n%%EOF\n"


def locked() -> bytes:
    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.encrypt("secret", algorithm="AES-256")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


SLOW = ("brackets", "comments")  # which take all the time that there is for a file
HOSTILE: dict[str, tuple[Callable[[], bytes], str, str]] = {  # made when needed: some are large
    "a password": (locked, "a.pdf", "document_encrypted"),
    "10,000 pages": (lambda: pdf(["Hello."] * 10_000), "a.pdf", "document_too_long"),
    "a scan": (lambda: pdf(["", ""]), "a.pdf", "document_empty"),
    "a bomb": (lambda: compressed(b"(a) Tj " * 30_000_000), "a.pdf", "document_unreadable"),
    "not a PDF": (lambda: b"%PDF-1.7\n" + bytes(range(256)) * 100, "a.pdf", "document_unreadable"),
    "a picture": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "a.png", "document_type_unknown"),
    "a picture as text": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(range(1, 256)) * 9, "a.txt", "document_not_text"),
    "Russian of Windows": (lambda: "Ключ от гаража висит за котлом.".encode("cp1251"), "a.txt", "document_not_text"),
    "Chinese of Windows": (lambda: "会议在3点, 地点A座".encode("gbk"), "a.md", "document_not_text"),
    "UTF-16 without a mark": (lambda: "Hello there".encode("utf-16-le"), "a.txt", "document_not_text"),
    "no words": (lambda: b" \n \n", "a.md", "document_empty"),
    "nothing but scripts": (lambda: b"<script>alert(1)</script><style>p {}</style>", "a.html", "document_empty"),
    "too many words": (lambda: b"word " * 500_000, "a.txt", "document_too_long"),
    "too many headings": (lambda: b"# a\n" * 11_000, "a.md", "document_too_long"),
    "too many words on a page": (lambda: b"<p>" + b"word " * 500_000, "a.html", "document_too_long"),
    "brackets": (lambda: b"<div>" * 400_000, "a.html", "document_"),
    "comments": (lambda: b"<!--" * 500_000, "a.html", "document_"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in HOSTILE]
)
def test_a_hostile_file_is_refused_in_bounded_time(shared, name, monkeypatch):
    made, filename, code = HOSTILE[name]
    if name in SLOW:
        monkeypatch.setitem(extraction.SECONDS, "html", 2)  # what ends at ten ends at two
    data = made()
    begun = time.monotonic()
    problem = send(shared, data, filename).json["error"]
    assert problem["code"].startswith(code), problem
    assert "Nothing was stored." in problem["message"]
    assert time.monotonic() - begun < 40
    assert read_all(shared, "/api/documents") == []


PAGE = (
    b"""<title>Tea</title><nav>Shop</nav><header>Sign in</header>%s<aside>Newsletter</aside><footer>Imprint</footer>"""
)
ASIDE = ["Boil no milk.", "How hot?\n70."]
FRONT = b"""---\ntitle: "Leave: a guide"\ntags:\n  - work\n---\n\n# Days\n\nEverybody has 28 days.\n"""


def test_menus_and_front_matter_are_no_text(client):
    heading = PAGE % b"<main><h1>Sencha</h1><p>70 degrees.</p></main><p>Cookies</p>"
    for data, name, title, texts in (
        (heading, "a.html", "Tea", ["Sencha\n70 degrees."]),
        (PAGE % b"<header><h1>Sencha</h1></header><p>70 degrees.</p>", "a.html", "Tea", ["Sencha\n70 degrees."]),
        (
            PAGE % b"<main><aside>Boil no milk.</aside><h2><button>How hot?</button></h2>70.</main>",
            "a.html",
            "Tea",
            ASIDE,
        ),
        (PAGE % b"<main></main><p>70 degrees.</p>", "a.html", "Tea", ["70 degrees."]),
        (FRONT.replace(b"\n", b"\r\n"), "a.md", "Leave: a guide", ["Days\nEverybody has 28 days."]),
        (b"+++\ndraft = true\n+++\nSencha.", "a.md", "a", ["Sencha."]),
        (b"---\ndate created: Monday\ntitle: >-\n  Tea\n---\nSencha.", "a.md", "a", ["Sencha."]),
        (b"---\n\nSencha: green.\n\n---\n\nMatcha.", "a.md", "a", ["Sencha: green.\nMatcha."]),
        (
            b"---\nThe tea of Monday is this: Sencha\n---\nHot.",
            "a.md",
            "a",
            ["The tea of Monday is this: Sencha\nHot."],
        ),
    ):
        document = good(send(client, data, name))
        assert document["title"] == title
        assert [one["text"] for one in passages(client, document)] == texts, data


def test_a_page_loses_no_power_and_has_no_words_of_its_makers(client):
    word = "<![if !supportLists]><p>Within 10<sup>3</sup> m<sup>2</sup>, the 1<sup>st</sup> of May.<![endif]>"
    more = "<details><summary>Can I cancel?</summary>Yes.</details>"
    document = add(client, f"<?xml version='1.0'?>{word}{more}", media_type="text/html")
    (told,) = passages(client, document)
    assert told["text"] == "Within 10^3 m^2, the 1st of May.\nCan I cancel?\nYes."


def test_a_file_without_an_ending_is_text_if_it_has_text(client):
    assert good(send(client, b"Tea.", "README"))["media_type"] == "text/plain"
    assert error(send(client, b"PK\3\4\0", "README"), 422)["code"] == "document_not_text"


def test_the_title_of_a_pdf_may_be_a_number(client):
    file = pdf(["Hello."], Title="House").replace(b"(House)", b"2026   ")
    assert good(send(client, file, "a.pdf"))["title"] == "2026"


def test_a_word_that_a_printed_line_cut_is_whole_again(client):
    (told,) = passages(client, good(send(client, pdf(["Tell the admin-\nistrator by E-\nMail."]), "a.pdf")))
    assert told["text"] == "Tell the administrator by E-Mail."


def test_headings_and_fences_are_those_of_markdown(client):
    text = (
        "# C#\n\nSharp.\n\n## Leave ##\n````md\n```\n# no heading\n````\n\n## Days\n\n```code```\n\n## Parking\nSeven."
    )
    texts = [one["text"].replace("\n", "|") for one in passages(client, add(client, text))]
    fenced = "C# > Leave|````md|```|# no heading|````"
    assert texts == ["C#|Sharp.", fenced, "C# > Days|```code```", "C# > Parking|Seven."]


def test_an_underlined_line_is_a_heading_and_a_rule_is_none(client):
    text = "Tea\n===\n\nGreen\n-----\nSencha.\n\n---\nMatcha.\n\n- a list\n---\ntwo\nlines\n---\n```\ncode\n----\n```"
    texts = [one["text"].replace("\n", "|") for one in passages(client, add(client, text))]
    assert texts == ["Tea > Green|Sencha.|Matcha.|- a list|two|lines|```|code|```"]


def test_a_long_line_of_a_text_is_read_in_linear_time(client):
    for text in (f"# x{' ' * 30_000}y", f"---\ntitle: x{' ' * 30_000}y\n---\nText"):
        with soon_over():
            add(client, text)


FORM = "multipart/form-data; boundary=B"


def test_encodings_are_told_apart(client):
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        document = good(send(client, "Größe: fünf Meter".encode(encoding), "a.txt"))
        assert [one["text"] for one in passages(client, document)] == ["Größe: fünf Meter"]
    document = good(send(client, "Größe: fünf Met\xff".encode()[:-1], "a.txt"))
    assert [one["text"] for one in passages(client, document)] == ["Größe: fünf Met\ufffd"], "cut within a letter"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1250", "Dzień dobry, łącznie 300 zł za środę."),
        ("cp1250", "Lékař mi řekl, že nesmím jíst ořechy, ani ťuhýk."),
        ("cp1250", "Az orvos azt mondta, hogy nem ehetek diót, se gyümölcsöt, se szőlőt, csak hűs vizet."),
        ("cp1254", "Doktor ceviz yememem gerektiğini söyledi, çünkü alerjim var, eşim öğretmen."),
        ("cp1252", "Viður er 12 m³, það kostar £5 og þau eru góð."),
        ("cp1252", "La construcción tiene 12 m³ y 30 m²."),
        ("cp1252", "¿Cómo? Avenida del Prado, nº 12, 2ª planta."),
    ],
)
def test_the_code_page_of_windows_is_told_by_the_letters(client, encoding, text):
    document = good(send(client, text.encode(encoding), "a.txt"))
    assert [one["text"] for one in passages(client, document)] == [text]


def test_a_page_is_in_the_encoding_that_browsers_read_it_in(client):
    page = '<meta charset="{}"><p>{}</p>'
    for charset, encoding, text in (
        ("iso-8859-1", "cp1252", "“5 €”"),
        ("gb2312", "gb18030", "价格 镕"),
        ("utf-8", "cp1252", "Größe"),
    ):
        document = good(send(client, page.format(charset, text).encode(encoding), "a.html"))
        assert [one["text"] for one in passages(client, document)] == [text]
        document = add(client, page.format(charset, text), media_type="text/html")
        assert [one["text"] for one in passages(client, document)] == [text], "whatever it was before"


def test_what_is_no_encoding_of_texts_is_none_of_a_files(client):
    """Punycode of 10 MB would be read for hours."""
    for charset in ("punycode", "Raw-Unicode-Escape"):
        data = "Größe茶".encode(charset)
        file = FileStorage(io.BytesIO(data), "a.txt", content_type=f"text/plain; charset={charset}")
        form = {"user_id": "ada", "file": file}
        document = good(client.post("/api/documents", data=form, content_type="multipart/form-data"))
        assert [one["text"] for one in passages(client, document)] == [data.decode("cp1252")]


def test_a_charset_that_is_no_name_is_ignored(client):
    head = 'name="user_id"\r\n\r\nada\r\n--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"'
    for charset in ("\0", "hex", "é"):
        form = f'--B\r\nContent-Disposition: form-data; {head}\r\nContent-Type: text/plain; charset="{charset}"'
        answer = client.post("/api/documents", data=f"{form}\r\n\r\nTea\r\n--B--", content_type=FORM)
        assert good(answer)["passages"] == 1


def test_a_file_that_is_too_large_is_refused(make_app):
    client = make_app(max_document_bytes=100_000).test_client()
    assert send(client, b"word " * 60_000, "a.txt").status_code == 413
    body = {"user_id": "ada", "text": "word " * 60_000}
    assert client.post("/api/documents", json=body).status_code == 413


def test_a_form_of_another_site_is_refused(client):
    form = {"user_id": "ada", "file": (io.BytesIO(b"Hello"), "a.txt")}
    headers = {"Origin": "http://127.0.0.1:9999"}  # of this machine, as a server without keys wants it
    answer = client.post("/api/documents", data=form, content_type="multipart/form-data", headers=headers)
    assert error(answer, 403)["code"] == "other_site"
    other = client.post("/api/facts", data={"text": "Hello"}, content_type="multipart/form-data")
    assert error(other, 415)["code"] == "not_json"


def test_the_owner_in_the_address_of_a_form_is_refused(client):
    for owner in ("user_id", "space"):
        form = {"user_id": "ada", "file": (io.BytesIO(b"Hello"), "a.txt")}
        answer = client.post("/api/documents", query_string={owner: "bob"}, data=form)
        assert error(answer, 422)["code"] == "owner_in_query"


@pytest.mark.slow
def test_a_large_text_is_added_and_indexed_in_bounded_time(client):
    words = [f"word{number % 5_000}" for number in range(55_000)]
    text = "\n\n".join(" ".join(words[at : at + 60]) + "." for at in range(0, len(words), 60))
    assert 450_000 < len(text) < 550_000
    with soon_over(20.0):
        assert add(client, text)["passages"] > 500
        assert find(client, "word1234", user_id="ada")
        engine_of(client.application).job_queue.run_due(["index"])
        assert find(client, "word1234", user_id="ada")


# -- questions about documents of three kinds, in English and German, written before the first search ran

FOLDER = Path(__file__).parent / "documents"
MACHINE = (FOLDER / "machine.txt").read_text().split("\n\f\n")  # the pages of a manual
QUESTIONS = (
    ("Until when can I use leftover vacation?", "lapse on 31 March"),
    ("Do I need a doctor's note if I am sick?", "From the fourth day on"),
    ("Can I work remotely from Spain for a month?", "longer than two weeks"),
    ("How long is the notice period?", "two months for you"),
    ("Welche Münzen braucht der Wäschetrockner?", "Münzen zu 50 Cent"),
    ("Darf ich mir einen Hund anschaffen?", "fragt vorher schriftlich"),
    ("Was kostet es, wenn ich meinen Schlüssel verliere?", "240 Euro"),
    ("What does error E20 mean?", "does not run out"),
    ("How often should the filter of the washing machine be cleaned?", "every two months"),
    ("What has to be removed before the washing machine is switched on?", "transport bolts"),
)


@pytest.fixture
def known(client):
    """A client of a person with the three documents, and some talk about the same things."""
    for name, data in (
        ("handbook.md", (FOLDER / "handbook.md").read_bytes()),
        ("hausordnung.html", (FOLDER / "hausordnung.html").read_bytes()),
        ("washing-machine.pdf", pdf(MACHINE, Title="Norvik WM 814")),
    ):
        form = {"user_id": "ada", "file": (io.BytesIO(data), name)}
        good(client.post("/api/documents", data=form, content_type="multipart/form-data"))
    for message in ("I want to wash my wool jumper today.", "Ich suche einen Hund aus dem Tierheim.", "I feel ill."):
        chat(client, message, user_id="ada", session_id="talk")
    return client


def test_turns_show_the_passages(known):
    missed = []
    for question, answer in QUESTIONS:
        memory = chat(known, question, user_id="ada", temporary=True)["memory"]
        shown = [message["content"].replace("\n", " ") for one in memory["excerpts"] for message in one["messages"]]
        if not any(answer in content for content in shown):
            missed.append((question, memory["recall"]["reason"]))
    assert len(missed) <= 2, missed


def test_no_turn_is_taken_in_a_document_and_no_session_gets_its_id(client):
    document = good(client.post("/api/documents", json={"user_id": "ada", "text": "The gate opens at nine."}))
    turn = {"user_id": "ada", "session_id": document["id"], "message": "Hello"}
    append = {"user_id": "ada", "messages": [{"role": "user", "content": "Hello"}]}
    for path, body in (("/api/chat", turn), (f"/api/sessions/{document['id']}/messages", append)):
        assert error(client.post(path, json=body), 409)["code"] == "session_exists"
    passages = good(client.get(f"/api/documents/{document['id']}/passages?user_id=ada"))["items"]
    assert len(passages) == document["passages"] == 1
