"""Programs of other people at a Recap as it is served: each gets what it would get from OpenAI, and is remembered.

The scripts and pinned packages of the JavaScript clients are in `tests/clients`.  They need Node 20.15 or newer, and
once npm's registry; without them these tests are skipped, unless RECAP_NEED_CLIENTS is set.
"""

import fcntl
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import SecretStr

from tests.model_server import ModelServer, Text, ToolCalls
from tests.openai import sent
from tests.processes import Server, migrated_server, model_settings

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "clients"
KEY = "sk-clients-0123456789"
MODEL = "gpt-9"
FACT = "The blue kettle is in the attic."
COUNT = "One two three four five."
PIECES = ["One", " two", " three", " four", " five."]
WEATHER: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
SECONDS = 240.0
REPLIES = ("Noted.", COUNT, ToolCalls((("weather", {"city": "Lyon"}),)), "It is 21 degrees.")
STORED = [
    ("user", FACT),
    ("assistant", "Noted."),
    ("user", "Count to five."),
    ("assistant", COUNT),
    ("user", "Is it warm in Lyon?"),
    ("assistant", ""),
    ("tool", "21 degrees in Lyon"),
    ("assistant", "It is 21 degrees."),
]


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    """No proxy between the clients and loopback, and no traces of them to anybody."""
    for name, value in {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "LANGSMITH_TRACING": "false"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def upstream():
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def recap(tmp_path_factory, migrated, upstream):
    """A Recap with keys, for all tests of this module: each has people and sessions of its own."""
    with served(tmp_path_factory.mktemp("clients"), migrated, upstream.url) as server:
        yield server


@contextmanager
def served(folder: Path, migrated: Path, url: str) -> Iterator[Server]:
    settings = {**model_settings(url), "RECAP_API_KEYS": f"clients:{KEY}"}
    with migrated_server(folder, migrated, **settings) as server:
        server.start()
        yield server
        assert server.stop() == 0


@pytest.fixture
def model(recap, upstream):
    """The model server, with nothing scripted and nothing received."""
    upstream.reset()
    return upstream


@pytest.fixture
def base_url(recap, model):
    return f"{recap.url}/v1"


def stored(base_url: str, session: str, user: str | None = None) -> list[tuple[str, str]]:
    """A session's messages, as its own API has them: role and words."""
    with openai.OpenAI(base_url=base_url.removesuffix("/v1"), api_key=KEY) as client:
        params = {"limit": 100, **({"user_id": user} if user else {})}
        page: Any = client.get(f"/api/sessions/{session}/messages", cast_to=object, options={"params": params})
    return [(message["role"], message["content"]) for message in page["items"]]


def test_langchain_invokes_streams_and_calls_tools(base_url, model):
    # Here, for they take seconds to load, and most runs of the tests leave this one out.
    from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    chat = ChatOpenAI(
        model=MODEL,
        base_url=base_url,
        api_key=SecretStr(KEY),
        max_retries=0,
        default_headers={"X-Session-Id": "langchain"},
        model_kwargs={"user": "chain"},
        stream_usage=True,
    )
    model.main.queue(*REPLIES)
    talk: list[Any] = [SystemMessage("Be brief."), HumanMessage(FACT)]
    talk.append(chat.invoke(talk))
    assert talk[-1].content == "Noted."
    talk.append(HumanMessage("Count to five."))
    pieces = list(chat.stream(talk))
    assert [piece.content for piece in pieces if piece.content] == PIECES
    whole = sum(pieces[1:], pieces[0])
    assert isinstance(whole, AIMessageChunk) and whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 5
    talk += [whole, HumanMessage("Is it warm in Lyon?")]
    talk.append(chat.bind_tools([WEATHER]).invoke(talk))
    (call,) = talk[-1].tool_calls
    assert (call["name"], call["args"]) == ("weather", {"city": "Lyon"})
    talk.append(ToolMessage("21 degrees in Lyon", tool_call_id=call["id"]))
    assert chat.bind_tools([WEATHER]).invoke(talk).content == "It is 21 degrees."
    assert stored(base_url, "langchain", "chain") == STORED


def needed(found: str | None, reason: str) -> str:
    """What was found.  Without it the test is skipped, or fails where RECAP_NEED_CLIENTS is set."""
    if found is not None:
        return found
    if os.environ.get("RECAP_NEED_CLIENTS"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def node():
    """Node, once the packages of `tests/clients` are there, each at the version its lock names."""
    program = needed(shutil.which("node"), "no Node: install Node 20.15 or newer, with npm")
    npm = needed(shutil.which("npm"), "no npm: install it beside Node")
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules/.package-lock.json"  # npm writes it at the end
    with lock.open() as held:  # other processes of this run wait here
        fcntl.flock(held, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            command = [npm, "ci", "--ignore-scripts", "--loglevel=error"]
            done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=300, check=False)
            needed("" if done.returncode == 0 else None, f"npm ci failed in {HERE}: {done.stderr}")
    return program


Node = Callable[..., str]


@pytest.fixture
def run(node):
    """Runs Node with the packages of `tests/clients`; gives what it printed."""

    def run(*command: str, **environment: str) -> str:
        done = subprocess.run(
            [node, *command],
            cwd=HERE,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def evaluated(run: Node, code: str, **environment: str) -> str:
    return run("--input-type=module", "--eval", code, **environment)


def test_the_documented_clients_are_remembered(run, recap, model, capsys):
    page = (HERE.parents[1] / "docs/clients.md").read_text("utf-8")
    of_protocols = page.partition("# Recap's own")[0]  # test_recap_client has what follows
    codes = re.findall(r"^```(python|js)\n(.*?)^```", of_protocols, re.M | re.S)
    assert [language for language, _ in codes] == ["python", "js", *["python"] * 4]
    for language, code in codes:
        model.requests.clear()
        code = code.replace("http://127.0.0.1:8000", recap.url).replace('"none"', f'"{KEY}"')
        if language == "python":
            exec(compile(code, "clients.md", "exec"), {})
            said = capsys.readouterr().out
        else:
            said = evaluated(run, code)
        assert "What is my cat called?" in said
        assert "My cat is called Miso." in json.dumps(sent(model)[-1]["messages"])


@pytest.mark.parametrize(
    ("name", "session", "user", "error", "own"),
    [
        ("openai_sdk.mjs", "npm-openai", "npm", "AuthenticationError", {"models": ["recap", "gpt-4o", "gpt-4o-mini"]}),
        ("ai_sdk.mjs", "ai-sdk", "vercel", "AI_APICallError", {"steps": 2}),
    ],
)
def test_a_package_of_npm_asks_streams_and_calls_tools(run, base_url, model, name, session, user, error, own):
    model.main.queue(*REPLIES)
    assert json.loads(run(name, base_url, KEY)) == {
        "plain": "Noted.",
        "session": session,
        "pieces": PIECES,
        "completionTokens": 5,
        "withTools": "It is 21 degrees.",
        "refused": [error, 401, "invalid_api_key"],
        **own,
    }
    assert stored(base_url, session, user) == STORED


def test_recaps_own_client_makes_every_call(run, base_url, model):
    model.main.queue("Noted.", COUNT, "Hello.", COUNT, Text(COUNT, seconds_each=0.2))
    got = json.loads(run("recap_client.mjs", base_url, KEY))
    assert got == {
        "plain": "Noted.",
        "pieces": PIECES,
        "answer": [COUNT, "js", 5],
        "again": True,
        "messages": [130, "Tea 129"],
        "pages": [60, "Tea 129", None],
        "title": "Kettles",
        "sessions": ["js"],
        "facts": [["Ada drinks tea.", True]],
        "found": FACT,
        "block": True,
        "item": {"n": 2},
        "items": 1,
        "document": ["tea", "https://tea.example", "js/ada", "unchanged"],  # by the second attempt
        "home": "Tartu",
        "thumbs": "up",
        "stranger": ["NotFound", 404, "session_not_found"],
        "prompts": True,
        "imported": 1,
        "exported": "js/ada",
        "foreign": True,
        "nobody": "TypeError",
        "twice": [True, 2],
        "completed": 1,
        "events": True,
        "aborted": ["One", "Error: enough"],
        "fromEnv": "Kettles",
        "erased": ["NotFound", 404, "session_not_found"],
        "notRepeated": [True, 0, 1],
    }
    assert stored(base_url, "js", "js/ada") == STORED[:4], "three attempts of the first chat are one turn"


def test_the_types_of_recaps_own_client_fit_its_use(run):
    options = "--noEmit --allowJs --checkJs --strict --module nodenext --target es2022 --lib es2023,dom,dom.iterable"
    run("node_modules/typescript/bin/tsc", *options.split(), "recap_client.mjs")


def test_the_pages_modules_fit_the_types_of_the_api(node):
    """Vendored modules are not checked: they are not the page's own."""
    command = [node, "node_modules/typescript/bin/tsc", "-p", str(HERE.parents[1] / "web" / "jsconfig.json")]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode in (0, 2), done.stdout + done.stderr  # 2: something was found
    assert [line for line in done.stdout.splitlines() if "error TS" in line and "static/vendor/" not in line] == []


def test_the_readme_and_the_example_of_recaps_own_client_run(run, recap, model):
    package = HERE.parents[1] / "clients/js"
    readme = "".join(re.findall(r"^```js\n(.*?)^```", (package / "README.md").read_text("utf-8"), re.M | re.S))
    readme = readme.replace("http://127.0.0.1:8000", recap.url).replace("undefined", f'"{KEY}"')
    example = (package / "examples/ai-sdk.mjs").read_text("utf-8")
    assert "user: My cat is called Miso." in evaluated(run, example, RECAP_URL=recap.url, RECAP_API_KEY=KEY)
    assert "true session_not_found" in evaluated(run, readme)
