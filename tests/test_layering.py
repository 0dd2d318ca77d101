"""Shape of the code: import-linter's contracts in pyproject.toml, and what no linter counts."""

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("api", "cli", "config", "memory", "models", "schemas", "search_index", "web")

# With these words a docstring begins neither with its verb nor with its noun.
FIRST_WORDS = {"A", "All", "An", "How", "Of", "One", "The", "What", "Whether"}

# Not counted: the vocabulary of shapes, as marshmallow is, and the engine that functions of memory take.
VOCABULARY = {"memory.engine", "schemas.fields", "schemas.shapes"}
IMPORTS_MAX = 12  # own modules that one module imports; a package's `__init__` gathers names and is not counted
MANY_IMPORTS = {  # these numbers may only fall
    "api/protocols/conversations.py": 13,
    "api/protocols/mcp_tools.py": 20,
    "cli/prompts.py": 16,
    "memory/conversation_types.py": 16,
    "memory/engine.py": 23,
    "memory/erasing/erasing.py": 14,
    "memory/erasing/message.py": 13,
    "memory/erasing/retention.py": 15,
    "memory/feedback.py": 15,
    "memory/knowledge/consolidation.py": 15,
    "memory/knowledge/facts.py": 17,
    "memory/knowledge/forgetting.py": 16,
    "memory/knowledge/overview.py": 18,
    "memory/knowledge/profile.py": 21,
    "memory/knowledge/rules.py": 17,
    "memory/knowledge/summaries.py": 16,
    "memory/knowledge/summary_job.py": 31,
    "memory/knowledge/summary_update.py": 13,
    "memory/message_versions.py": 13,
    "memory/recall/search.py": 16,
    "memory/sessions/sessions.py": 14,
    "memory/transfer/export_format.py": 17,
    "memory/transfer/imports.py": 14,
    "memory/transfer/sources/__init__.py": 14,  # one for each program
    "memory/turn/begin.py": 16,
    "memory/turn/context.py": 17,
    "memory/turn/fact_tools.py": 16,
    "memory/turn/other_memories.py": 13,
    "memory/turn/prefix.py": 25,
    "memory/turn/record.py": 14,
}

LINES_MIN = 40  # of a module; a shorter one is a decision, listed here. Shapes in schemas/ go by their noun
SHORT = {
    *(
        "api/examples.py",
        "api/feedback.py",
        "api/graph.py",
        "api/jobs.py",
        "api/spaces.py",
        "api/turns.py",
        "cli/index.py",
        "cli/logs.py",
        "cli/serve.py",
    ),  # a noun, a group of commands
    *("models/model_server.py", "models/prompts.py", "models/schema.py", "models/summaries.py"),  # one table each
    *("memory/job_kinds.py", "memory/json_values.py", "memory/tokens.py", "memory/access/encryption.py"),
    "memory/transfer/sources/memories.py",  # one format of others' exports
    "wsgi.py",
}


def product() -> Iterator[tuple[str, str]]:
    """Yield the path and the text of every module of the product."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    for path in listed.stdout.split():
        if (path.split("/")[0] in PACKAGES or "/" not in path) and (ROOT / path).is_file():
            yield path, (ROOT / path).read_text("utf-8")


def own_imports(text: str) -> set[str]:
    """Return the own modules that a module imports when it runs, without those for annotations alone."""
    modules = set[str]()
    tree = ast.parse(text)
    for_types = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    skipped = {inner for node in for_types for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            submodules = {
                f"{node.module}.{name.name}" for name in node.names if is_module(f"{node.module}.{name.name}")
            }
            modules |= submodules or {str(node.module)}
    return modules


def is_module(name: str) -> bool:
    return (ROOT / f"{name.replace('.', '/')}.py").exists()


def test_docstrings_begin_with_a_verb_or_a_noun():
    wrong = [
        f"{path}: {docstring.splitlines()[0]}"
        for path, text in product()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (docstring := ast.get_docstring(node))
        and docstring.split()[0] in FIRST_WORDS
    ]
    assert wrong == [], "begin these docstrings with a verb (Return, Store) or the noun: see FIRST_WORDS"


def test_a_module_imports_few_others():
    counts = {path: len(own_imports(text) - VOCABULARY) for path, text in product() if not path.endswith("__init__.py")}
    many = {path: count for path, count in counts.items() if count > MANY_IMPORTS.get(path, IMPORTS_MAX)}
    assert many == {}, (
        f"these import more than {IMPORTS_MAX} own modules, or more than MANY_IMPORTS allows: move what needs the "
        "others to where they are imported, or split the module"
    )


def test_a_short_module_is_a_decision():
    short = {
        path
        for path, text in product()
        if len(text.splitlines()) < LINES_MIN and not path.startswith("schemas/") and not path.endswith("__init__.py")
    }
    assert short <= SHORT, (
        f"{short - SHORT} have fewer than {LINES_MIN} lines: put each into the module that uses it, or, if a reader "
        "looks for the noun by this name, list it in SHORT"
    )
