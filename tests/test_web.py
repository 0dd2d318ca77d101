"""The page as it is served: whole, unchanged where it is others' code, under its policy, in each of its languages."""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urljoin

import pytest

from api.errors import REFUSALS
from memory.errors import RecapError, TooLarge
from memory.llm.mini_model import Replaced
from memory.recall.triggers import Kind
from models.sections import SECTIONS
from models.turns import RECALL_MODES
from web import TEXTS

ROOT = Path(__file__).resolve().parent.parent
STATIC = ROOT / "web" / "static"
_IMPORT = re.compile(r'^(?:import|export)\b(?:[^;"]*?from)? "(?P<path>[^"]+)";', re.M)
_LATER = re.compile(r'\bimport\("(?P<path>[^"]+)"\)')  # a module that is loaded when it is needed
ROOMS = "|".join(TEXTS["en"])
# In modules a key is a string, or a template that begins with the path of a group: `page.errors.${code}`.
_IN_MODULES = re.compile(rf"""["'`](?P<key>(?:{ROOMS})\.[\w.]+)(?:["'`]|(?P<group>\$\{{))""")
_IN_TEMPLATES = re.compile(rf"texts\.(?P<key>(?:{ROOMS})\.[\w.]+)(?P<group>\[?)")


@pytest.fixture(scope="module")
def app(shared_app):
    return shared_app


def test_the_page_is_there_and_everything_it_names(client):
    page = client.get("/")
    assert page.status_code == 200 and page.mimetype == "text/html"
    named = re.findall(r'(?:href|src)="(static/[^"]+)"', page.text)
    assert len(named) > 5
    for path in named:
        assert client.get(f"/{path}").status_code == 200, path
    told = re.search(r"<body data-sections='([^']+)'>", page.text)
    assert told and json.loads(told[1]) == [[one.name, one.kind] for one in SECTIONS]


@pytest.mark.parametrize("page", ["docs", "docs/guide"])
def test_an_address_without_its_slash_leads_to_the_page_below_any_path(client, page):
    response = client.get(f"/{page}")
    assert response.status_code == 308
    assert (
        urljoin(f"https://example.com/recap/{page}", response.headers["Location"])
        == f"https://example.com/recap/{page}/"
    )


def test_every_module_imports_only_what_is_there_and_is_imported_itself():
    modules = {path.resolve() for path in (STATIC / "js").rglob("*.js")}
    imported = set()
    for module in modules:
        words = module.read_text("utf-8")
        for found in (*_IMPORT.finditer(words), *_LATER.finditer(words)):
            target = (module.parent / found["path"]).resolve()
            assert target.is_file(), f"{module.name} imports {found['path']}"
            imported.add(target)
    started_by_the_page = {"main.js", "theme.js"}
    assert {module.name for module in modules - imported} == started_by_the_page


def test_the_page_and_its_modules_name_no_other_address():
    """What is linked for people may lead elsewhere; what the page loads may not."""
    for path in [*STATIC.rglob("*.js"), *STATIC.rglob("*.css"), *STATIC.parent.glob("templates/*.html")]:
        if "vendor" not in path.parts:
            found = re.findall(
                r"""(?:from|src|href|import|url)\s*[=(]?\s*["'(]?(?:https?:)?//[^\s"')]+""", path.read_text("utf-8")
            )
            assert found == [], path.name


def test_vendored_code_is_what_its_table_says():
    table = (STATIC / "vendor" / "README.md").read_text("utf-8")
    told = dict(re.findall(r"^\| ([\w.-]+\.mjs) \|.*\| ([0-9a-f]{64}) \|$", table, re.M))
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (STATIC / "vendor").glob("*.mjs")}
    assert there == told
    for name in there:
        assert (STATIC / "vendor" / f"{Path(name).stem}.LICENSE").is_file()


def test_the_policy_allows_no_inline_script_or_style(client):
    policy = dict(part.split(" ", 1) for part in client.get("/").headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and policy["require-trusted-types-for"] == "'script'"
    assert not [value for value in policy.values() if "unsafe" in value]
    for path in ("/static/js/main.js", "/static/css/base.css", "/static/icon.svg", "/static/nothing.js"):
        assert client.get(path).headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_a_first_visit_loads_less_than_200_kb(client):
    def transferred(path: str) -> int:
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200 and answer.headers["Content-Encoding"] == "gzip", path
        assert gzip.decompress(answer.data) == client.get(path).data
        etag = {"If-None-Match": answer.headers.get("ETag", "*"), "Accept-Encoding": "gzip"}
        assert path == "/" or client.get(path, headers=etag).status_code == 304, path
        return len(answer.data)

    loaded = {"/"} | {f"/{path}" for path in re.findall(r'(?:href|src)="(static/[^"]+)"', client.get("/").text)}
    waiting = [STATIC / "js" / "main.js"]
    while waiting:  # what modules import as they start; what `import()` names is loaded when it is needed
        module = waiting.pop()
        for found in _IMPORT.finditer(module.read_text("utf-8")):
            path = (module.parent / found["path"]).resolve()
            address = f"/static/{path.relative_to(STATIC)}"
            if address not in loaded:
                loaded.add(address)
                waiting.append(path)
    assert "/static/vendor/markdown-it.mjs" in loaded and "/static/js/dialogs/settings.js" not in loaded
    assert sum(map(transferred, loaded)) < 200_000


# -- its texts: the same in each language, each one used


def _entries(group: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, str]]]:
    """Each key with its forms: those of plurals, or a single one."""
    for name, entry in group.items():
        if isinstance(entry, str):
            yield f"{path}{name}", {"": entry}
        elif "other" in entry:
            yield f"{path}{name}", entry
        else:
            yield from _entries(entry, f"{path}{name}.")


def _placeholders(forms: dict[str, str]) -> dict[str, set[str]]:
    return {form: set(re.findall(r"\{(\w+)\}", words)) for form, words in forms.items()}


def test_the_languages_have_the_same_texts_with_the_same_placeholders():
    english, german = ({key: _placeholders(forms) for key, forms in _entries(TEXTS[name])} for name in ("en", "de"))
    errors = {f"page.errors.{code}" for code in TEXTS["de"]["page"]["errors"]}
    assert german.keys() - english.keys() <= errors, "the server's words are English"
    assert english == {key: forms for key, forms in german.items() if key in english}
    assert all("count" in forms["other"] for forms in english.values() if "other" in forms)


# Errors of commands, other protocols and what the page does not offer.
NOT_OF_THE_PAGE = {
    *("backup_exists", "backup_failed", "backup_too_new", "backup_too_old", "backup_unusable", "not_sqlite"),
    *("restore_under_way", "server_running", "target_differs", "metrics_key_missing", "metrics_lost"),
    *("api_key_missing", "api_key_unknown", "key_of_settings", "key_not_found", "bad_key"),
    *("invalid_client", "invalid_client_metadata", "invalid_grant", "invalid_redirect_uri", "oauth_off"),
    *("origin_refused", "connection_not_found", "too_many_wrong_keys", "invalid_arguments", "person_declined"),
    *("person_must_agree", "resource_not_found", "previous_response_not_found", "tokens_too_few", "owner_in_query"),
    "owner_in_body",
    *("bad_event_id", "reserved_namespace", "compressed_body", "response_not_found", "conversation_not_found"),
    *("thread_not_found", "unknown_timezone", "passage_not_found", "nothing_to_answer"),
}


def error_codes() -> set[str]:
    """Return the codes of the errors that the API answers with, as its modules name them."""
    kinds = "|".join(kind.__name__ for kind in (RecapError, *RecapError.__subclasses__(), TooLarge))
    raised = re.compile(rf'\b(?:{kinds}|_reached)\(\s*"([a-z_]+)"|^ *(?:[A-Z_]+ = )?"(model_\w+)"(?::|$)', re.M)
    sources = [path.read_text("utf-8") for folder in ("api", "memory") for path in (ROOT / folder).rglob("*.py")]
    codes = {code for source in sources for found in raised.findall(source) for code in found if code}
    refused = {f"{kept}_{how}" for kept in get_args(Replaced) for how in ("refused", "cut_off")}
    return codes | refused | {code for code, _ in REFUSALS.values()}


def test_every_error_that_the_page_can_get_has_a_sentence_in_each_language_but_english():
    known = TEXTS["de"]["page"]["errors"]
    codes = error_codes() - NOT_OF_THE_PAGE
    assert {"fact_not_found", "invalid_fields", "model_key_refused", "invalid_import"} <= codes
    unnamed = sorted(code for code in codes if code not in known and not code.startswith("database_"))
    assert unnamed == [], "add sentences to the catalogues, or name them above"
    assert sorted(NOT_OF_THE_PAGE - error_codes()) == [], "no such error any more"


def test_every_text_that_is_used_exists_and_every_text_is_used():
    sources = [
        *((_IN_MODULES, path) for path in (STATIC / "js").rglob("*.js")),
        *((_IN_TEMPLATES, path) for path in (STATIC.parent / "templates").glob("*.html")),
    ]
    found = [
        (path.name, *hit.group("key", "group"))
        for pattern, path in sources
        for hit in pattern.finditer(path.read_text("utf-8"))
    ]
    keys = dict(_entries(TEXTS["en"]))
    groups = tuple(key for _, key, group in found if group)
    assert [(name, key) for name, key, group in found if not group and key not in keys] == []
    assert [group for group in groups if not any(key.startswith(group) for key in keys)] == []
    used = {key for _, key, group in found if not group}
    assert [key for key in keys if key not in used and not key.startswith(groups)] == []


def test_the_page_speaks_the_language_that_the_browser_prefers(client):
    for accepted, language in [
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("en-GB,de;q=0.5", "en"),
        ("fr,de;q=0.5", "de"),
        ("fr", "en"),
        (None, "en"),
    ]:
        page = client.get("/", headers={"Accept-Language": accepted} if accepted else {})
        assert f'<html lang="{language}">' in page.text and "Accept-Language" in page.headers["Vary"]
        assert f'href="#message-box">{TEXTS[language]["page"]["skip"]}</a>' in page.text
        embedded = re.search(r'<script type="application/json" id="texts">(.*?)</script>', page.text, re.S)
        assert embedded and json.loads(embedded[1]) == TEXTS[language]


def test_the_page_has_a_text_for_each_recall_mode_and_for_each_kind_of_recall():
    for language in TEXTS:
        choices = TEXTS[language]["dialogs"]["settings"]["choices"]
        assert {*choices["recall"]} == {*choices["recall_means"]} == {*RECALL_MODES}
        assert {*TEXTS[language]["chat"]["why"]["reasons"]} == {*get_args(Kind)}


def test_the_english_titles_of_sections_are_those_of_prompts():
    assert TEXTS["en"]["memory"]["sections"] == {section.name: section.title for section in SECTIONS}
