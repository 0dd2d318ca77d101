"""The page's texts: the same in each language, each one used, and served in the language that the browser prefers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from memory.sections import SECTIONS
from web import TEXTS

WEB = Path(__file__).resolve().parent.parent / "web"
ROOMS = "|".join(TEXTS["en"])
# In modules a key is a string, or a template that begins with the path of a group: `page.errors.${code}`.
_IN_MODULES = re.compile(rf"""["'`](?P<key>(?:{ROOMS})\.[\w.]+)(?:["'`]|(?P<group>\$\{{))""")
_IN_TEMPLATES = re.compile(rf"texts\.(?P<key>(?:{ROOMS})\.[\w.]+)(?P<group>)")


@pytest.fixture(scope="module")
def app(shared_app: Flask) -> Flask:
    return shared_app


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


def test_the_languages_have_the_same_texts_with_the_same_placeholders() -> None:
    english, german = ({key: _placeholders(forms) for key, forms in _entries(TEXTS[name])} for name in ("en", "de"))
    assert english == german
    assert all("count" in forms["other"] for forms in english.values() if "other" in forms)


def test_every_text_that_is_used_exists_and_every_text_is_used() -> None:
    sources = [
        *((_IN_MODULES, path) for path in (WEB / "static" / "js").rglob("*.js")),
        *((_IN_TEMPLATES, path) for path in (WEB / "templates").glob("*.html")),
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


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("de-AT,de;q=0.9,en;q=0.8", "de"), ("en-GB,de;q=0.5", "en"), ("fr,de;q=0.5", "de"), ("fr", "en"), (None, "en")],
)
def test_the_page_speaks_the_language_that_the_browser_prefers(
    client: FlaskClient, accepted: str | None, language: str
) -> None:
    page = client.get("/", headers={"Accept-Language": accepted} if accepted else {})
    assert f'<html lang="{language}">' in page.text and "Accept-Language" in page.headers["Vary"]
    assert f'id="send">{TEXTS[language]["page"]["send"]}</button>' in page.text
    embedded = re.search(r'<script type="application/json" id="texts">(.*?)</script>', page.text, re.S)
    assert embedded and json.loads(embedded[1]) == TEXTS[language]


def test_the_english_titles_of_sections_are_those_of_prompts() -> None:
    assert TEXTS["en"]["memory"]["sections"] == {section.name: section.title for section in SECTIONS}
