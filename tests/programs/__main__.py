"""`make test-programs`: run every program and print the table of docs/clients.md. Exits with 1 when a check failed."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.serving import Server
from tests.model_replies import Body, ToolCalls
from tests.model_server import ModelServer
from tests.processes import model_settings
from tests.programs.python_programs import ASK, HELLO, PLACE, PROGRAMS, WEATHER

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/clients.md"
KEY = "sk-programs-0123456789"
COLUMNS = {
    "works": "works",
    "remembers": "remembers",
    "tools": "tools",
    "structured": "structured output",
    "usage": "streamed usage",
}
HEAD = f"| program | version | {' | '.join(COLUMNS.values())} |"
JAVASCRIPT = (
    *("@ai-sdk/openai", "@ai-sdk/openai-compatible", "@ai-sdk/anthropic", "@openrouter/ai-sdk-provider"),
    "@modelcontextprotocol/sdk",
)
ANSWER = {"city": "Lyon", "degrees": 21}


def sketch(body: Body) -> Any:
    """Answer as a model would: from the whole prompt, with a tool where one fits, as JSON where that is asked for."""
    messages = body["messages"]
    last = next((message for message in reversed(messages) if message["role"] in ("user", "tool")), messages[-1])
    text = json.dumps(last["content"], ensure_ascii=False)
    if last["role"] == "tool":
        return "It is 21 degrees." if "21" in text else "Done."
    names = [tool["function"]["name"] for tool in body.get("tools", []) if tool.get("type") == "function"]
    if WEATHER in text and "weather" in names:
        return ToolCalls((("weather", {"city": "Lyon"}),))
    if PLACE in text:
        return ToolCalls(((names[0], ANSWER),)) if names else json.dumps(ANSWER)
    if ASK in text:
        return "Your cat is called Miso." if "Miso" in json.dumps(messages) else "I do not know."
    return "Hello to you." if HELLO in text else "Noted."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--venv", type=Path, default=Path(".venv-programs"), help="also with -llama-index after its name"
    )
    parser.add_argument("--only", default="", help="programs with this in their name")
    parser.add_argument("--write", action="store_true", help="put the table into docs/clients.md")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, ModelServer() as model:
        model.main.default = sketch
        settings = {**model_settings(model.url), "RECAP_API_KEYS": f"programs:{KEY}"}
        with Server(Path(folder) / "data", **settings) as server:
            for name in (*PROGRAMS, *JAVASCRIPT):
                venv = Path(f"{given.venv.absolute()}{'-llama-index' * (name == 'llama-index')}")
                program = [venv / "bin/python", "python_programs.py"]
                if name in JAVASCRIPT:
                    program = ["node", "javascript_programs.mjs"]
                if given.only in name:
                    rows.append((name, ran([*map(str, program), name, server.url, KEY])))
    print(table(rows))
    if given.write:
        PAGE.write_text(
            re.sub(rf"{re.escape(HEAD)}\n(\|.*\n)+", lambda _: f"{table(rows)}\n", PAGE.read_text("utf-8")), "utf-8"
        )
    failed = [
        f"{name}, {column}: {found[column]}" for name, found in rows for column in COLUMNS if is_wrong(found, column)
    ]
    print("\n".join(failed), file=sys.stderr)
    return 1 if failed else 0


def ran(command: list[str]) -> dict[str, Any]:
    environ = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "LANGSMITH_TRACING": "false"}
    environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environ, cwd=HERE)
    print(done.stderr, file=sys.stderr)
    lines = done.stdout.strip().splitlines()
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {"version": "", "works": f"exit {done.returncode}"}
    return found


def is_wrong(found: dict[str, Any], column: str) -> bool:
    return found.get(column) not in (True, None)


def table(rows: list[tuple[str, dict[str, Any]]]) -> str:
    lines = [HEAD, "|---|---|" + "---|" * len(COLUMNS)]
    for name, found in rows:
        cells = ("yes" if found.get(column) is True else "no" if found.get(column) else "" for column in COLUMNS)
        lines.append(f"| {name} | {found['version']} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
