"""Imports point down only: `wsgi, cli -> app -> api, web -> schemas, memory -> models, search_index`.

The rules are read off every module's syntax tree, wherever in it an import stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LINES_MAX = 400

# What each part may import of the others; anyone may import `config`, and itself.
MAY_IMPORT = {
    "config": set(),
    "models": set(),
    "search_index": set(),
    "memory": {"models", "search_index"},
    "schemas": {"memory"},
    "api": {"schemas", "memory"},
    "web": {"schemas", "memory"},
    "app": {"api", "web", "schemas", "memory", "models"},
    "cli": {"app", "memory"},
    "wsgi": {"app", "cli"},
    "worker": set(),
    "gunicorn.conf": {"app", "memory", "wsgi"},
    "migrations": {"models"},
    "benchmarks": set(),  # the public API only
}
# These measure the search index in this process, and what its hits cost in a prompt.
INSIDE = {f"benchmarks/{name}.py": {"memory", "search_index"} for name in ("latency", "rankings", "recall", "tuning")}
WITH_FLASK = {"api", "web", "app", "cli", "migrations"}
HTTP = "memory/llm/connections.py"  # the only file that knows an HTTP client; none knows the openai package


@dataclass(frozen=True)
class Import:
    """`path` imports from the top-level package `of`, at `line`."""

    path: str
    line: int
    of: str

    @property
    def part(self) -> str:
        return self.path.split("/")[0].removesuffix(".py")

    def __str__(self) -> str:
        return f"{self.path}:{self.line} imports {self.of}"


def sources() -> list[Path]:
    """Every Python file of the project itself."""
    found = [
        path for path in ROOT.rglob("*.py") if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]
    return sorted(path for path in found if path.relative_to(ROOT).parts[0] != "tests")


def imports_in(text: str, path: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(path, node.lineno, name.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            package = path.split("/")[0] if node.level else (node.module or "").split(".")[0]
            yield Import(path, node.lineno, package)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("__import__", "import_module")):
            first = node.args[0] if node.args else None
            named = first.value if isinstance(first, ast.Constant) else "something computed"
            yield Import(path, node.lineno, str(named).split(".")[0])


def wrong(one: Import) -> str | None:
    """Why an import is against the rules; None when it is not."""
    if one.part not in MAY_IMPORT:
        return f"{one.path}: say in MAY_IMPORT which layer it belongs to"
    if one.of == "tests" or (one.of == "benchmarks" and one.part != "benchmarks"):
        return f"{one}, which is no part of the service"
    below = INSIDE.get(one.path, MAY_IMPORT[one.part])
    if one.of in MAY_IMPORT and one.of not in (one.part, "config") and one.of not in below:
        return f"{one}, which is not below it"
    if one.of.startswith(("flask", "werkzeug", "webargs")) and one.part not in WITH_FLASK:
        return f"{one}; only {', '.join(sorted(WITH_FLASK))} know the web framework"
    if one.of in ("http", "httpx", "httpx2", "httpcore2") and one.path != HTTP and one.part != "benchmarks":
        return f"{one}; only {HTTP} does"
    if one.of == "openai" and one.part != "benchmarks":
        return f"{one}, which takes half a second and 20 MB to load; {HTTP} speaks to its servers"
    return None


def test_imports_point_down() -> None:
    found = [
        one for path in sources() for one in imports_in(path.read_text("utf-8"), path.relative_to(ROOT).as_posix())
    ]
    assert len(found) > 200, "the sources were not found"
    assert {one.of for one in found} >= {"flask", "http", "config", "models", "search_index", "memory", "api", "app"}
    assert [problem for one in found if (problem := wrong(one))] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("models/fact.py", "from memory import facts"),
        ("models/fact.py", "import search_index.index"),
        ("search_index/index.py", "from models import Database"),
        ("search_index/index.py", "import memory.tokens as tokens"),
        ("memory/facts.py", "from schemas.facts import Fact"),
        ("memory/facts.py", "def late():\n    from api import facts"),
        ("memory/facts.py", "if TYPE_CHECKING:\n    from flask import Flask"),
        ("memory/facts.py", "import flask_sqlalchemy"),
        ("memory/facts.py", "import importlib\nimportlib.import_module('app')"),
        ("memory/facts.py", "__import__('openai')"),
        ("memory/llm/failures.py", "import openai"),
        (HTTP, "import openai"),
        ("memory/llm/failures.py", "from httpx2 import Client"),
        ("memory/llm/transport.py", "from http.client import HTTPConnection"),
        ("schemas/facts.py", "from models import FactRow"),
        ("schemas/facts.py", "from api.context import services"),
        ("api/facts.py", "from app import create_app"),
        ("api/facts.py", "from models import FactRow"),
        ("app.py", "from cli import register_commands"),
        ("config.py", "from memory.errors import RecapError"),
        ("wsgi.py", "from flask import Flask"),
        ("memory/facts.py", "from tests.model_server import ModelServer"),
        ("benchmarks/replay.py", "from memory.services import build"),
        ("helpers.py", "import json"),
    ],
)
def test_what_is_against_the_rules_is_noticed(path: str, text: str) -> None:
    assert any(wrong(one) for one in imports_in(text, path))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("memory/facts.py", "from config import Settings\nfrom models import FactRow\nfrom search_index import Hit"),
        ("memory/facts.py", "import json, sqlalchemy\nfrom memory.domain import Fact"),
        ("api/facts.py", "from schemas.facts import Fact\nfrom flask import jsonify"),
        ("wsgi.py", "from app import create_app\nfrom cli import register_commands"),
        (HTTP, "import json, http.client"),
    ],
)
def test_what_is_fine_is_left_alone(path: str, text: str) -> None:
    assert [wrong(one) for one in imports_in(text, path)] == [None] * len(list(imports_in(text, path)))


def test_no_file_is_too_long_to_read() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in sources()}
    assert {path: lines for path, lines in lengths.items() if lines > LINES_MAX} == {}


def test_every_module_opens_with_its_idea() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in sources()
        if path.read_text("utf-8").strip() and ast.get_docstring(ast.parse(path.read_text("utf-8"))) is None
    ]
    assert silent == []
