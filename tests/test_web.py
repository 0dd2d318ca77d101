"""The page as it is served: whole, unchanged where it is others' code, and under its policy."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from memory.sections import SECTIONS

STATIC = Path(__file__).resolve().parent.parent / "web" / "static"
_IMPORT = re.compile(r'^(?:import|export)\b(?:[^;"]*?from)? "(?P<path>[^"]+)";', re.M)
_LATER = re.compile(r'\bimport\("(?P<path>[^"]+)"\)')  # a module that is loaded when it is needed


@pytest.fixture(scope="module")
def app(shared_app: Flask) -> Flask:
    return shared_app


def test_the_page_is_there_and_everything_it_names(client: FlaskClient) -> None:
    page = client.get("/")
    assert page.status_code == 200 and page.mimetype == "text/html"
    named = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    assert len(named) > 5
    for path in named:
        assert client.get(path).status_code == 200, path
    told = re.search(r"<body data-sections='([^']+)'>", page.text)
    assert told and json.loads(told[1]) == [[one.name, one.kind] for one in SECTIONS]


def test_every_module_imports_only_what_is_there_and_is_imported_itself() -> None:
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


def test_the_page_and_its_modules_name_no_other_address() -> None:
    """What is linked for people may lead elsewhere; what the page loads may not."""
    for path in [*STATIC.rglob("*.js"), *STATIC.rglob("*.css"), *STATIC.parent.glob("templates/*.html")]:
        if "vendor" not in path.parts:
            found = re.findall(
                r"""(?:from|src|href|import|url)\s*[=(]?\s*["'(]?(?:https?:)?//[^\s"')]+""", path.read_text("utf-8")
            )
            assert found == [], path.name


def test_vendored_code_is_what_its_table_says() -> None:
    table = (STATIC / "vendor" / "README.md").read_text("utf-8")
    told = dict(re.findall(r"^\| ([\w.-]+\.mjs) \|.*\| ([0-9a-f]{64}) \|$", table, re.M))
    there = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (STATIC / "vendor").glob("*.mjs")}
    assert there == told
    for name in there:
        assert (STATIC / "vendor" / f"{Path(name).stem}.LICENSE").is_file()


def test_the_policy_allows_no_inline_script_or_style(client: FlaskClient) -> None:
    policy = dict(part.split(" ", 1) for part in client.get("/").headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'" and policy["require-trusted-types-for"] == "'script'"
    assert not [value for value in policy.values() if "unsafe" in value]
    for path in ("/static/js/main.js", "/static/css/base.css", "/static/icon.svg", "/static/nothing.js"):
        assert client.get(path).headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_a_first_visit_loads_less_than_200_kb(client: FlaskClient) -> None:
    def transferred(path: str) -> int:
        answer = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert answer.status_code == 200 and answer.headers["Content-Encoding"] == "gzip", path
        assert gzip.decompress(answer.data) == client.get(path).data
        etag = {"If-None-Match": answer.headers.get("ETag", "*"), "Accept-Encoding": "gzip"}
        assert path == "/" or client.get(path, headers=etag).status_code == 304, path
        return len(answer.data)

    loaded = {"/", *re.findall(r'(?:href|src)="(/static/[^"]+)"', client.get("/").text)}
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
