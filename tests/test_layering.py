"""The shape of the code: import-linter's contracts in pyproject.toml, and what benchmarks may use."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_benchmarks_use_what_users_can() -> None:
    """But for those that measure the ranking, which run the search index in their own process, one that runs a job on a
    clock of its own, and two that count what turns show that ask for little or nothing."""
    inside = {
        "recall.py": {"memory", "models", "search_index"},
        "consolidation.py": {"app", "memory", "models"},
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
