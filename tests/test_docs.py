"""What is written down is what there is: routes, settings and commands, in docs/ and in the OpenAPI document."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import click
import pytest
from marshmallow import Schema
from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint

import web
from api.identity import PERSON_HEADERS
from api.protocols.client_requests import SESSION_HEADERS
from benchmarks import scale
from cli import register_commands
from config import Settings
from docs import draw_plots, reference
from memory.conversation_types import ConversationType
from memory.instructions import Instruction
from memory.job_listing import JobInfo
from memory.knowledge.summaries import SummaryVersion
from memory.sessions.sessions import SessionInfo
from models import Base
from models.events import EVENT_TYPES
from models.facts import Fact, FactRevision
from models.messages import Message
from models.store import Item
from schemas import conversation_types, facts, instructions, jobs, messages, sessions, store, summaries
from search_index.postgres_tables import TABLES
from tests.http import error, good

ROOT = Path(__file__).resolve().parent.parent
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
OUTSIDE_THE_DOCUMENT = {
    ("GET", path) for path in ("/openapi.json", "/docs", "/", "/static/{}", "/metrics", "/docs/guide", "/docs/guide/{}")
}
OUTSIDE_THE_DOCUMENT |= {  # OAuth, which has documents of its own
    *(("GET", f"/.well-known/oauth-{what}") for what in ("protected-resource", "protected-resource/mcp")),
    *(("GET", f"/.well-known/{what}") for what in ("oauth-authorization-server", "openid-configuration")),
    *(("POST", f"/oauth/{what}") for what in ("authorize", "token", "register", "revoke")),
    ("GET", "/oauth/authorize"),
}
_CALL = re.compile(r"\b((?:GET|POST|PUT|PATCH|DELETE)(?:[/,` ]+(?:GET|POST|PUT|PATCH|DELETE))*)[` ]+(/[\w/{}<>:.-]*)")


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def plain(path: str) -> str:
    """A path whatever its parameters are called: `/api/facts/{}`."""
    return re.sub(r"[{<][^}>]*[}>]", "{}", path).rstrip("/") or "/"


@pytest.fixture(scope="module")
def app(shared_app):
    return shared_app


@pytest.fixture
def document(client):
    answer = client.get("/openapi.json")
    assert answer.mimetype == "application/json"
    return good(answer)


def documented(document: dict[str, Any]) -> set[tuple[str, str]]:
    """Every call in the OpenAPI document."""
    return {
        (method.upper(), plain(path))
        for path, calls in document["paths"].items()
        for method in calls
        if method.upper() in METHODS
    }


def test_generators_of_strict_clients_can_read_the_document(document):
    """Whole numbers tell their bits, no default is null or without a type, and null stands beside a reference."""

    def parts(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield value
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from parts(inner)

    schemas = [part for part in parts(document) if not isinstance(part.get("type", ""), dict)]
    numbers = [part for part in schemas if part.get("type") == "integer"]
    assert len(numbers) > 100
    assert all(part.get("format") == "int64" or part["maximum"] < 2**31 for part in numbers)
    assert not [part for part in schemas if "default" in part and (part["default"] is None or "type" not in part)]
    assert not [part for part in schemas if {"type": "object", "nullable": True} in part.get("anyOf", ())]


def test_every_invariant_names_a_test_that_there_is():
    paths = [*(ROOT / "tests").glob("test_*.py"), *(ROOT / "tests").glob("*/test_*.py")]
    defined = {path.stem for path in paths}
    for path in paths:
        defined |= set(re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))
    listed = list(reference.invariants())
    assert len(listed) > 60
    assert [(path, text) for path, text, tests in listed if not tests or not defined.issuperset(tests)] == []


def test_the_table_of_calls_names_every_call_and_no_other(document):
    told = {
        (method, plain(path))
        for line in page("docs/api.md").splitlines()
        if line.lstrip().startswith("|")
        for methods, path in _CALL.findall(line)
        for method in re.findall(r"[A-Z]+", methods)
    }
    there = documented(document)
    assert sorted(there - told) == [], "calls that the table of docs/api.md does not name"
    assert sorted(told - there - OUTSIDE_THE_DOCUMENT) == [], "calls in the tables of docs/api.md that there are not"


def test_the_table_of_settings_says_of_each_what_the_code_says():
    """A row that states a default must state the right one."""
    wrong, settings = [], page("docs/settings.md")
    rows = dict(re.findall(r"^\| `(\w+)` \|[^|]*\| (.*?) \|[^|]*\|$", settings, re.M))
    for variable, name in Settings.variables().items():
        default = Settings.model_fields[name].default
        assert rows[variable] == " ".join((Settings.model_fields[name].description or "").split()), variable
        row = re.search(rf"^\| *`{variable}` *\|([^|]*)\|", settings, re.M)
        assert row, f"docs/settings.md has no row for {variable}"
        if not isinstance(default, str | int | float | Path):
            continue
        told = row[1].strip().strip("`").replace(",", "").removeprefix("./")
        if told not in (str(default), f"{default:g}" if isinstance(default, float) else "", "") and (
            str(default) or told not in ("-", "–", "—", "empty", "none")
        ):
            wrong.append(f"{variable}: the table says {row[1].strip()}, it is {default!r}")
    assert wrong == []


def commands(group: click.Group, prefix: str) -> list[str]:
    found = []
    for name, command in group.commands.items():
        found += commands(command, f"{prefix} {name}") if isinstance(command, click.Group) else [f"{prefix} {name}"]
    return found


def test_the_documents_name_every_command_and_each_says_what_it_does(app):
    before, groups = set(commands(app.cli, "recap")), set(app.cli.commands)
    register_commands(app)
    for name in set(app.cli.commands) - groups:
        command: Any = app.cli.commands[name]
        assert command.help and all(one.help for one in getattr(command, "commands", {}).values()), name
    own = sorted(set(commands(app.cli, "recap")) - before)
    assert {"recap index verify", "recap keys create", "recap prompts compare"} <= set(own)
    text = page("docs/operations.md") + page("docs/how-it-works.md") + page("docs/development.md")
    assert [command for command in own if command not in text] == [], "commands that no document names"
    made = {
        *("test", "test-all", "check", "setup", "bench", "docs", "plots"),
        *(f"bench-{what}" for what in ("answers", "cluster", "consolidation", "meaning", "recall", "store")),
    }
    assert [f"make {target}" for target in made if f"make {target}" not in text] == []


def test_the_table_of_jobs_names_every_kind_and_no_other():
    kinds = re.findall(r'register\("(\w+)"', page("memory/job_kinds.py"))
    table = page("docs/operations.md").partition("| kind | task |")[2].partition("\n\n")[0]
    assert len(kinds) > 10 and sorted(re.findall(r"^\| `(\w+)` \|", table, re.M)) == sorted(kinds)


SHAPES: list[tuple[Any, type[Schema], set[str]]] = [  # of values: the field that no caller is shown
    (Message, messages.ListedMessage, set()),
    (SessionInfo, sessions.Session, {"client_metadata"}),
    (SummaryVersion, summaries.SummaryVersion, set()),
    (Fact, facts.Fact, {"merged"}),
    (FactRevision, facts.FactRevision, set()),
    (Item, store.Item, {"id"}),
    (Instruction, instructions.Instruction, set()),
    (ConversationType, conversation_types.ConversationType, set()),
    (JobInfo, jobs.Job, set()),
]


def test_the_shape_of_a_value_has_each_of_its_fields():
    for value, shape, kept_back in SHAPES:
        names = getattr(value, "_fields", None) or [field.name for field in dataclasses.fields(value)]
        shown = {(field.attribute or name).partition(".")[0] for name, field in shape().fields.items()}
        assert set(names) - shown == kept_back, f"add it to {shape.__module__}, or name it here"


def test_every_kind_of_event_is_described():
    assert [name for name in EVENT_TYPES if f"`{name}`" not in page("docs/events.md")] == []


def test_every_header_that_names_a_person_or_a_session_is_described():
    told = [(page("docs/clients.md"), (*PERSON_HEADERS, *SESSION_HEADERS)), (page("docs/mcp.md"), PERSON_HEADERS)]
    assert [name for text, names in told for name in names if f"`{name}`" not in text] == [], "not in each page"


def test_the_table_of_languages_has_each_and_says_whether_it_has_times():
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", page("docs/how-it-works.md"), re.M)
    told = {name: times != "no" for names, times in rows for name in names.split(", ")}
    for path in sorted((ROOT / "memory/languages/phrases").glob("*.toml")):
        name, _, rest = path.read_text("utf-8").removeprefix("# ").partition(" ")
        assert told.get(name.strip(".,:")) == ("\n[times]" in rest), path.name


def test_there_is_a_changelog_that_names_this_version(document):
    assert document["info"]["version"] in page("CHANGELOG.md")


def test_links_within_the_documents_lead_somewhere():
    broken = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text("utf-8")):
            if "://" not in target and not target.startswith("mailto:") and not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []


def test_the_plots_draw_the_figures_that_the_tables_have(tmp_path):
    draw_plots.main(["--folder", str(tmp_path)])
    drawn = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    stored = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/plots").iterdir()}
    assert drawn == stored, "a figure of docs/performance.md has changed: run `make plots`"
    assert all(f"](plots/{name})" in page("docs/performance.md") for name in stored)


def test_what_a_large_installation_needs_follows_from_the_figures_on_the_page():
    told = page("docs/scale.md")
    derived = scale.needs_table(scale.measured_in(told), scale.Assumed())
    assert derived in told, f"a figure of docs/scale.md has changed: `python -m benchmarks.scale` prints\n{derived}"
    for field, value in dataclasses.asdict(scale.Assumed()).items():
        assert re.search(rf"^\| `{field}` \| {value:,.12g} \|", told, re.M), field


def test_the_keys_that_keep_a_table_from_being_distributed_are_the_tables_keys():
    told = page("docs/scale.md")
    for table in (*Base.metadata.sorted_tables, *TABLES.sorted_tables):
        unique = [one for one in table.constraints if isinstance(one, UniqueConstraint | PrimaryKeyConstraint)]
        keys = [tuple(one.columns.keys()) for one in (*unique, *(index for index in table.indexes if index.unique))]
        without = sorted(", ".join(key) for key in keys if "owner_id" not in key)
        row = f"| `{table.name}` | {'yes' if 'owner_id' in table.c else 'no'} | {'; '.join(without)} |"
        assert row in told, f"docs/scale.md has no row {row}"


# -- the OpenAPI document


def test_every_route_is_in_the_document(app, document):
    routes = {
        (method, plain(rule.rule))
        for rule in app.url_map.iter_rules()
        if rule.endpoint not in ("swagger_ui.show", "index") and not rule.endpoint.startswith("api-docs")
        for method in rule.methods or ()
        if method in METHODS
    }
    assert documented(document) == routes - OUTSIDE_THE_DOCUMENT


# -- the page that shows it


def test_the_docs_page_needs_no_internet(client):
    page = client.get("/docs/")
    assert (page.status_code, page.mimetype) == (200, "text/html")
    links = re.findall(r"""(?:src|href)\s*=\s*["']([^"']+)""", page.text)
    assert len(links) >= 3
    assert [link for link in links if "//" in link] == [], "assets from outside"
    for link in links:
        with client.get(urljoin("/docs/", link)) as asset:
            assert asset.status_code == 200, link
            if asset.mimetype == "text/css":
                assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", asset.text), link
    assert '"validatorUrl": null' in page.text  # or it would ask a site on the internet about our document
    assert '"url": "../openapi.json"' in page.text


def test_the_guide_is_served_once_it_was_built(client, document, guide, monkeypatch):
    monkeypatch.setattr(web, "GUIDE", guide / "nothing")
    missing = error(client.get("/docs/guide/"), 404)
    assert missing["code"] == "guide_not_built" and "`make docs`" in missing["message"]
    monkeypatch.setattr(web, "GUIDE", guide)
    pages = sorted(path.name for path in guide.glob("*.html"))
    assert {"index.html", "api.html"} < set(pages) and len(pages) == len(list((ROOT / "docs").glob("*.md"))) + 1
    for name in pages:
        with client.get(f"/docs/guide/{name}") as answer:
            again = client.get(f"/docs/guide/{name}", headers={"If-None-Match": answer.headers.get("ETag", "*")})
            assert answer.status_code == again.status_code == 200, "the policy is made from the whole page"
            scripts = re.search(r"script-src ([^;]+)", again.headers["Content-Security-Policy"])
            assert scripts and scripts[1].startswith("'self' 'sha256-") and "unsafe" not in scripts[1]
            loaded = re.findall(
                r"<(?:script|img)[^>]* src=\"([^\"]+)|<link rel=\"[^\"]+\" href=\"([^\"]+)", answer.text
            )
            assert loaded and [one for found in loaded for one in found if "//" in one] == [], "assets from outside"
            again.close()
    reference = client.get("/docs/guide/api.html").text
    told = {(method, plain(path)) for method, path in re.findall(r"<code>([A-Z]+) (/[^<]*)</code>", reference)}
    assert documented(document) <= told


# -- what is promised


def test_every_promise_names_a_test_that_there_is():
    text = page("docs/security.md")
    rows = [row for row in re.findall(r"^\| (.+) \|$", text, re.M) if "tests/" in row]
    named = re.findall(r"(tests/[\w/]+\.py)::(\w+)", text)
    assert len(named) == len(rows) > 40, "a row of a promise names one test"
    there = {path: page(path) for path, _ in named if (ROOT / path).is_file()}
    assert [(path, name) for path, name in named if f"\ndef {name}(" not in there.get(path, "")] == []


@pytest.mark.parametrize("name", ["docs/design.md", "docs/development.md"])
def test_the_files_that_a_page_names_are_there(name):
    named = re.findall(r"`(?!benchmarks/results)([a-z_]+(?:/[a-z_.]+)*(?:/[a-z_]+|\.(?:py|txt|md)))`", page(name))
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []
