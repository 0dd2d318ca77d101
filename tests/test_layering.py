"""The shape of the code: imports point down (import-linter's contracts in pyproject.toml), and files stay readable."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINES_MAX = 400


def sources() -> list[Path]:
    """Every Python file of the project itself."""
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.py"))
    return sorted(path for path in found if path.parts[0] != "tests" and not any(one[0] == "." for one in path.parts))


def test_benchmarks_use_what_users_can() -> None:
    """But for those that measure the ranking, which run the search index in their own process, one that runs a job on a
    clock of its own, and two that count what turns show that ask for little or nothing."""
    ranking = {name: {"memory", "search_index"} for name in ("latency.py", "rankings.py", "recall.py", "tuning.py")}
    inside = {
        **ranking,
        "consolidation.py": {"app", "memory"},
        "meaning.py": {"app", "memory", "models"},
        "references.py": {"app"},
    }
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        imported = {
            (node.module or "").split(".")[0]
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom)
        }
        allowed = inside.get(path.name, set())
        assert imported & {"api", "app", "memory", "models", "schemas", "search_index"} <= allowed, path.name


def test_no_file_is_too_long_to_read() -> None:
    lengths = {path.as_posix(): len((ROOT / path).read_text("utf-8").splitlines()) for path in sources()}
    assert len(lengths) > 100, "the sources were not found"
    assert {path: lines for path, lines in lengths.items() if lines > LINES_MAX} == {}


def test_every_module_opens_with_its_idea() -> None:
    texts = {path.as_posix(): (ROOT / path).read_text("utf-8") for path in sources()}
    assert [path for path, text in texts.items() if text.strip() and not ast.get_docstring(ast.parse(text))] == []
