"""Complete two pages of the documentation site, called by mkdocs.

api.md gets every call and type of the OpenAPI document, design.md the invariants that modules list in their docstrings.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.structure.pages import Page

from app import build_app
from config import Settings

Schema = dict[str, Any]

ROOT = Path(__file__).parent.parent
PACKAGES = ("api", "cli", "config", "memory", "models", "schemas", "search_index", "web")
# What api.md explains once for all calls.
EXPLAINED = ("400", "401", "403", "404", "408", "413", "414", "415", "422", "429", "431", "503")


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Return the page's text, of the two pages with what is made here."""
    if page.file.src_uri == "design.md":
        rows = [f"| `{path}` | {text} | {', '.join(tests)} |" for path, text, tests in invariants()]
        return "\n".join([markdown, "\n| module | invariant | tests |\n|---|---|---|", *rows])
    if page.file.src_uri != "api.md":
        return markdown
    with TemporaryDirectory() as folder:
        app = build_app(Settings(data_dir=Path(folder), log_level="warning"))
        document: Schema = app.test_client().get("/openapi.json").get_json()
    return "\n".join([markdown, *_calls(document), *_types(document)])


def invariants() -> Iterator[tuple[str, str, list[str]]]:
    """Yield each invariant of a module's docstring: the module's path, a sentence, and the tests that hold it."""
    for file in (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))):
        path = file.relative_to(ROOT).as_posix()
        docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
        listed = docstring.partition("Invariants:")[2].partition("\n\n")[0]
        for item in filter(None, (" ".join(item.split()) for item in re.split(r"\n\s*- ", listed))):
            yield path, re.sub(r" [(\[]test_[\w, ]+[)\]]", "", item).replace("|", "\\|"), re.findall(r"test_\w+", item)


def _calls(document: Schema) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"\n## {tag['name']}\n\n{tag['description']}"
        for path, methods in document["paths"].items():
            for method, call in methods.items():
                if method != "parameters" and tag["name"] in call["tags"]:  # those of the path, which shows them
                    yield f"\n### `{method.upper()} {path}`\n\n**{call['summary']}.** {call.get('description', '')}\n"
                    yield from _call(document, call)


def _call(document: Schema, call: Schema) -> Iterator[str]:
    rows = [_row(one["name"], one["in"], one["schema"], one, one.get("required")) for one in call.get("parameters", ())]
    body = _resolved(document, _schema(call.get("requestBody", {})))
    required = body.get("required", ())
    rows += [_row(name, "body", field, field, name in required) for name, field in body.get("properties", {}).items()]
    if rows:
        yield "\n".join(["\n| parameter | in | type | meaning |", "|---|---|---|---|", *rows])
    yield f"\nScope of the key: `{call['x-scope']}`.\n" if "x-scope" in call else ""
    for status, answer in sorted(call["responses"].items()):
        if status < "400":
            yield f"- {status}: {_type(_schema(answer)) if _schema(answer) else answer['description']}"
        elif status not in EXPLAINED:
            yield f"- {status}: {answer['description']}"


def _types(document: Schema) -> Iterator[str]:
    yield "\n## Types"
    for name, schema in sorted(document["components"]["schemas"].items()):
        if "properties" in schema:
            yield f"\n### {name} {{: #type-{name} }}\n\n| field | | type | meaning |\n|---|---|---|---|"
            required = schema.get("required", ())
            for field, its in schema["properties"].items():
                yield _row(field, "", its, its, field in required)


def _row(name: str, where: str, schema: Schema, described: Schema, required: bool) -> str:
    where += " (required)" if required else ""
    meaning = " ".join(described.get("description", "").split()).replace("|", "\\|")
    return f"| `{name}` | {where} | {_type(schema)} | {meaning} |"


def _type(schema: Schema) -> str:
    """A schema in a few words: a linked type, `array of string`, or the values that it allows."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#type-{name})"
    if "allOf" in schema:
        return " and ".join(_type(one) for one in schema["allOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    return f"array of {_type(schema['items'])}" if schema.get("items") else schema.get("type", "any")


def _schema(message: Schema) -> Schema:
    """The schema of a request's or an answer's body; empty if it has none, or is not JSON."""
    schema: Schema = message.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _resolved(document: Schema, schema: Schema) -> Schema:
    named: Schema = document["components"]["schemas"]
    return named[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
