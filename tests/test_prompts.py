"""Prompts by name: whose text is used, which templates are accepted, and comparing them."""

import json
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import engine_of
from memory.conversation_types import BUILT_IN
from memory.knowledge.summary_update import SummaryInput
from memory.llm.mini_model import instruction
from models.sections import Sections
from tests.application import run_command, soon_over
from tests.http import error, good, read_all, said
from tests.knowledge import Talk, digest_of, fact
from tests.model_server import prompts

PACKAGED = {path.stem: path.read_text() for path in (Path(__file__).parent.parent / "memory/prompts").glob("*.txt")}


def put(client: FlaskClient, name: str, text: str) -> dict[str, Any]:
    return good(client.put(f"/api/prompts/{name}", json={"text": text}))


def refusal(client: FlaskClient, text: str, name: str = "mine") -> str:
    """Why a template was refused; nothing of it may stay."""
    refused = error(client.put(f"/api/prompts/{name}", json={"text": text}), 422)
    assert (refused["param"], client.get("/api/prompts/mine").status_code) == ("text", 404)
    message: str = refused["message"]
    return message


def test_packaged_then_file_then_stored(client, app):
    assert set(PACKAGED) == {
        "summary",
        "system",
        "memory",
        "repair",
        "profile",
        "overview",
        "feedback",
        "consolidation",
    }
    for name, text in PACKAGED.items():
        found = good(client.get(f"/api/prompts/{name}"))
        assert (found["text"], found["version"], found["source"]) == (text, 0, "packaged")

    folder = engine_of(app).settings.prompts_path
    folder.mkdir()
    (folder / "summary.txt").write_text("From a file.")
    (folder / "extra.txt").write_text("Another one.")
    (folder / "Not a name.txt").write_text("Left alone.")
    for name, text in (("summary", "From a file."), ("extra", "Another one.")):
        found = good(client.get(f"/api/prompts/{name}"))
        assert (found["text"], found["version"], found["source"]) == (text, 0, "file")

    for version, text in ((1, "Stored first."), (2, "Stored second.")):
        assert (put(client, "summary", text)["version"], put(client, f"v{version}", "x")["version"]) == (version, 1)
        found = good(client.get("/api/prompts/summary"))
        assert (found["text"], found["version"], found["source"]) == (text, version, "stored")
        assert found["created_at"]
    listed = {item["name"]: item["source"] for item in good(client.get("/api/prompts"))["items"]}
    packaged = dict.fromkeys(
        ("consolidation", "feedback", "memory", "overview", "profile", "repair", "system"), "packaged"
    )
    assert listed == {**packaged, "extra": "file", "summary": "stored", "v1": "stored", "v2": "stored"}
    assert good(client.delete("/api/prompts/summary")) == {"name": "summary", "versions": 2}
    assert good(client.get("/api/prompts/summary"))["source"] == "file"
    good(client.delete("/api/prompts/v1"))
    for name in ("v1", "summary", "nothing", "Not a name"):
        assert error(client.delete(f"/api/prompts/{name}"), 404)["code"] == "prompt_not_found"


def test_a_name_that_cannot_be_one(client):
    put(client, "mine", "Hello.")
    error(client.get("/api/prompts/..%2f..%2fapp"), 404)
    for name in ["UPPER", "-a", "a.b", "x" * 65, "é"]:
        refused = error(client.put(f"/api/prompts/{name}", json={"text": "Hello."}), 422)
        assert (refused["code"], refused["param"]) == ("bad_prompt_name", "name")
        told = error(client.get(f"/api/prompts/{name}"), 404)["message"]
        assert "There are: consolidation, feedback, memory, mine, overview, profile, repair" in told


def test_a_turn_names_the_prompt_its_summary_is_made_with(model_app, model_server):
    client = model_app.test_client()
    put(client, "brief", "{% if first %}Begin{% else %}Go on{% endif %}, in {{ max_words }} words.")
    put(client, "brief", "{% if first %}Start{% else %}Continue{% endif %}, in {{ max_words }} words.")
    for named in ({"prompt": "brief"}, {"prompt": "brief"}, {}):
        good(client.post("/api/chat", json={"session_id": "s", "message": "Hello", **named}))
        engine_of(model_app).job_queue.run_due(["summary"])
    first, second, third = (prompt[0]["content"] for prompt in prompts(model_server, "mini"))
    shape = instruction(SummaryInput(Sections(), (), (), links=True, types=sorted(BUILT_IN)).schema)
    assert first == f"Start, in 400 words.\n\n{shape}"
    assert second == f"Continue, in 400 words.\n\n{shape}"
    assert third.startswith("You keep the memory of a conversation up to date.")
    versions = read_all(client, "/api/sessions/s/summary/versions")
    assert [version["prompt"] for version in versions] == ["summary", "brief@2", "brief@2"]
    good(client.post("/api/chat", json={"session_id": "s", "message": "Hello", "prompt": "brief"}))
    good(client.delete("/api/prompts/brief"))
    engine_of(model_app).job_queue.run_due(["summary"])
    assert good(client.get("/api/sessions/s/summary"))["latest"]["prompt"] == "summary", "the one it named is deleted"


def test_a_bad_file_is_told_where_it_is_used(make_app, model_server, tmp_path):
    """The settings name the operator's folder and the usual prompt."""
    (tmp_path / "short.txt").write_text("Line one\n{{ nobody }}")
    app = make_app(openai_base_url=model_server.url, prompts_dir=str(tmp_path), summary_prompt="short")
    talk = Talk(app, model_server)
    talk.say("Hello")
    assert "'short' uses nobody" in talk.digest()["error"]
    assert model_server.requests == []


def test_a_mistake_is_told(shared):
    for name, text, told in [
        ("mine", "{{ nobody }} and {{ nothing }}", ["nobody, nothing", "first, sections, max_words"]),
        ("mine", "{{ config }}{{ request }}", ["config, request"]),
        ("system", "{{ first }}", ["uses first", "It knows: no variables"]),
        ("mine", "{{ sections[0].colour }}", ["colour"]),
        ("mine", "{% for type in types %}{{ type.about }}{% endfor %}", ["about"]),
        ("mine", "{% if forget %}{{ sections[0].colour }}{% endif %}", ["colour"]),
        ("mine", "one\ntwo {% if first %}\nthree", ["line 3", "endif"]),
        ("mine", "a\n{{ first|shout }}", ["line 2", "shout"]),
        ("mine", "{{ 1 / 0 }}", ["division"]),
        ("mine", " \n", ["some text"]),
        ("mine", "x" * 20_001, ["20,000"]),
    ]:
        message = refusal(shared, text, name)
        assert all(part in message for part in told)
        assert message.endswith(".") and not message.endswith("..")


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ sections.__init__.__globals__ }}",
        "{{ first.__init__.__globals__['os'].environ }}",
        "{{ '{0.__class__}'.format(first) }}",
        "{{ sections.append(1) }}",
        "{{ self.__init__ }}",
        "{% include 'system' %}",
        "{% extends 'system' %}",
        # what runs long or grows large
        "{{ 'x' * 1000000000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 'x'.ljust(1000000000) }}",
        "{{ 'aaaaaaaaaa'" + ("|list|join('" + "b" * 99 + "')") * 9 + " }}",
        "{{ '" + "a" * 9000 + "'|list|join('" + "b" * 9000 + "') }}",
        "{% set a = 'xxxxxxxxxx' %}" + "{% set a = a ~ a %}" * 40 + "{{ a }}",
        "{% with a = 'x' %}{{ a ~ a }}{% endwith %}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for s in sections recursive %}{{ loop(sections) }}{% endfor %}",
        "{% for s in '" + "x" * 9000 + "' %}" + "y" * 9000 + "{% endfor %}",
        "{% for s in sections %}" + "y" * 19_000 + "{% endfor %}",
        "{% if first %}" * 150 + "x" + "{% endif %}" * 150,
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    ],
    ids=lambda text: text[:40],
)
def test_no_template_reaches_what_it_is_not_given_runs_long_or_grows_large(shared, text):
    with soon_over():
        refusal(shared, text)


TALK = {
    "messages": [
        said("My name is Ida and I live in Bergen.", created_at="2024-03-01T10:00:00"),
        said("Nice to meet you, Ida.", "assistant"),
        said("The budget is 4500 euros."),
        said("Noted: 4500 euros.", "assistant"),
    ],
    "stated_facts": ["Ida lives in Bergen", "The budget is 4500 euros"],
}


def compare(app: Flask, tmp_path: Path, talk: str, *options: str) -> Any:
    file = tmp_path / "conversation.json"
    file.write_text(talk)
    return run_command(app, "prompts", "compare", file, *options)


def test_comparing_with_a_model_that_heeds_the_prompt(model_app, model_server, tmp_path):
    client = model_app.test_client()
    put(client, "thorough", "Keep everything.")
    put(client, "lazy", "Keep the gist.")
    put(client, "broken", "Fail.")
    home, budget = TALK["stated_facts"]

    def answer(body: dict[str, Any]) -> Any:
        instruction, material = body["messages"][0]["content"], body["messages"][1]["content"]
        if instruction.startswith("Fail"):
            return "{"
        if instruction.startswith("Keep the gist"):
            return digest_of(fact("Made up", 1), topic="A person and money")
        if "4500" in material:
            return digest_of(data=[home, budget])
        return digest_of(fact("Lives in Bergen", 1, "I live in Bergen"), data=[home])

    model_server.mini.default = answer
    result = compare(model_app, tmp_path, json.dumps(TALK), "--prompts", "thorough, lazy,broken", "--every", "2")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if line.strip()]
    assert lines[0].split() == ["thorough@1", "lazy@1", "broken@1"]
    rows = {line[:52].strip(): line[52:].replace(" of ", "/").split() for line in lines}
    thorough, lazy, _ = map(int, rows["summary tokens"])
    assert thorough > lazy > 0
    assert rows == rows | {
        "mini-model calls": ["2", "2", "4"],
        "facts kept": ["1", "0", "0"],
        "facts refused": ["0", "2", "0"],
        "stated facts held": ["2/2", "0/2", "0/2"],
        home: ["held", "-", "-"],
        budget: ["held", "-", "-"],
    }
    assert read_all(client, "/api/sessions") == read_all(client, "/api/facts") == []  # nothing was stored


def test_comparing_what_cannot_be(app, tmp_path):
    for talk, options, told in [
        (json.dumps(TALK), ["--prompts", "nothing"], "There is no prompt 'nothing'. There are: consolidation, "),
        (json.dumps(TALK), [], "--prompts"),
        ("{", ["--prompts", "summary"], ".json is no conversation, whose form `--help` shows: Expecting property name"),
        ('{"messages": [{"role": "user"}]}', ["--prompts", "summary"], 'Message 1 has no "content"'),
        ('{"messages": [{"content": "Hi", "created_at": 5}]}', ["--prompts", "summary"], "Invalid isoformat string"),
        ('{"messages": []}', ["--prompts", "summary"], 'a list of "messages"'),
        (json.dumps(TALK), ["--prompts", "summary", "--every", "0"], "0 is not in the range"),
    ]:
        result = compare(app, tmp_path, talk, *options)
        assert result.exit_code in (1, 2)
        assert told in result.output and "Traceback" not in result.output


def test_a_model_without_schemas_is_told_the_shape_in_words():
    asked = instruction({"type": "object", "properties": {"best": {"type": "array", "items": {"type": "integer"}}}})
    assert asked == 'Answer with one JSON object and nothing else, of this shape: {"best": [1]}'
