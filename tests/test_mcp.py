"""The Model Context Protocol: its own SDK's client finds and keeps memories, and everything wrong has its own error."""

import json
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    ElicitResult,
)

from api.protocols.mcp_tools import TOKENS_MAX, TOOLS
from app import engine_of
from benchmarks.serving import ROOT, Server
from memory import tokens
from schemas.facts import FactQuery
from schemas.rules import TOPICS_MAX
from tests.http import append, error, good, said
from tests.live import Loopback
from tests.test_auth import with_key

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
READING = {"recall", "search_memories", "get_memories", "get_memory", "recent_chats", "search", "fetch"}
WRITING = {"add_memory", "update_memory", "delete_memory", "forget_all", "keep_out", "accept_memory"}


def rpc(client: FlaskClient, method: str, headers: dict[str, str] | None = None, **params: Any) -> Any:
    """The answer to a request of the present era, of Ada's unless the headers say else."""
    repeated = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if name := params.get("name") or params.get("uri"):
        repeated["Mcp-Name"] = name
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}
    return client.post("/mcp", json=body, headers={"X-User-Id": "ada", **repeated, **(headers or {})})


def told(client: FlaskClient, name: str, headers: dict[str, str] | None = None, **arguments: Any) -> tuple[bool, str]:
    """Whether a tool answered with an error, and the text of its answer."""
    result = good(rpc(client, "tools/call", headers, name=name, arguments=arguments))["result"]
    (content,) = result["content"]
    return result["isError"], content["text"]


def use(client: FlaskClient, name: str, **arguments: Any) -> Any:
    wrong, text = told(client, name, **arguments)
    assert not wrong, text
    return json.loads(text)


@pytest.fixture
def tea(client):
    """Ada's conversation about tea, with a summary."""
    append(client, "tea", [said("My sister Ida steeps green tea for two minutes.")], user_id="ada")
    good(client.put("/api/sessions/tea/summary", json={"sections": {"topic": "Green tea"}}))
    return client


# -- the protocol's own client


async def remember(client: Client) -> None:
    """Do what a person's assistant does in a day."""

    async def call(name: str, **arguments: Any) -> Any:
        result = await client.call_tool(name, arguments)
        (content,) = result.content
        assert not result.is_error and content.type == "text", result
        assert result.structured_content == json.loads(content.text)  # and the client compares it with the schema
        return result.structured_content

    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == READING | WRITING
    assert {name for name, tool in tools.items() if tool.output_schema is None} == {"recall"}
    hints = {name: tool.annotations for name, tool in tools.items() if tool.annotations is not None}
    assert {name for name, hint in hints.items() if hint.read_only_hint} == READING
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {
        *("update_memory", "delete_memory", "forget_all"),
    }
    memory = await call("add_memory", text="Likes green tea", quote="I really like green tea")
    assert await call("add_memory", text="Likes green tea.", quote="I like green tea") == memory
    assert (await call("search_memories", query="which tea?"))["items"] == [memory]
    await call("update_memory", id=memory["id"], text="Likes black tea", quote="by now I like black tea better")
    texts = [one["text"] for one in (await call("get_memory", id=memory["id"]))["items"]]
    assert texts == ["Likes black tea", "Likes green tea"]
    (found,) = (await call("search", query="steeping tea"))["results"]
    assert "Ida steeps green tea" in (await call("fetch", id=found["id"]))["text"]
    block = (await client.call_tool("recall", {"message": "How long does my sister steep tea?"})).content[0]
    assert block.type == "text" and "- Likes black tea" in block.text and "Ida steeps green tea" in block.text
    (chat,) = (await call("recent_chats"))["items"]
    assert "Ida steeps green tea" in (await call("fetch", id=chat["id"]))["text"]
    await call("delete_memory", id=memory["id"])
    assert (await call("get_memories"))["items"] == []
    resources = [one.uri for one in (await client.list_resources()).resources]
    assert resources == ["recap://profile", "recap://sessions/tea/summary"]
    (profile, summary) = [(await client.read_resource(uri)).contents[0] for uri in resources]
    assert (profile.mime_type, summary.mime_type) == ("application/json", "application/json")
    assert '"topic": "Green tea"' in summary.model_dump_json().replace('\\"', '"')
    assert len((await client.list_resource_templates()).resource_templates) == 1


def run(client: Client, what: Callable[[Client], Awaitable[None]]) -> str:
    """What the client does, and the version of the protocol that it agreed on."""

    async def connected() -> str:
        async with client:
            await what(client)
            return client.protocol_version

    return anyio.run(connected)


@pytest.fixture
def address(tea):
    server = Loopback(tea.application)
    yield f"http://127.0.0.1:{server.port}/mcp?user_id=ada"
    server.stop()


in_both_eras = pytest.mark.parametrize(("mode", "version"), [("auto", MODERN), ("legacy", LEGACY)])


@in_both_eras
def test_the_sdks_client_works_over_http_in_both_eras(address, mode, version):
    assert run(Client(address, mode=mode), remember) == version


def over_stdio(data_dir: Path) -> StdioServerParameters:
    command = ["-m", "flask", "--app", "wsgi", "mcp", "--user", "ada"]
    environ = Server(data_dir).environ  # the server itself is not started
    return StdioServerParameters(command=sys.executable, args=command, env=environ, cwd=ROOT)


@pytest.mark.slow
def test_over_stdio_a_new_data_folder_gets_its_schema(tmp_path):
    async def begin(client: Client) -> None:
        added = await client.call_tool("add_memory", {"text": "Likes tea", "quote": "I like tea"})
        assert not added.is_error, added

    run(Client(over_stdio(tmp_path / "new")), begin)


# -- schemas


def test_each_schema_keeps_to_what_every_client_and_model_provider_takes():
    """ECMA-262 patterns; and what OpenAI, Anthropic and Gemini document of the parameters of functions."""
    for name, entry in TOOLS.items():
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) and len(entry.tool.description or "") <= 1024
        schema = entry.tool.input_schema
        Draft202012Validator.check_schema(schema)
        assert set(schema) <= {"type", "properties", "required", "additionalProperties"} and schema["type"] == "object"
        for field, one in schema["properties"].items():
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", field)
            assert one["type"] in ("string", "integer", "boolean"), "one type, and no null"
            assert set(one) <= {
                *("type", "description", "default", "enum", "pattern", "format"),
                *("minLength", "maxLength", "minimum", "maximum"),
            }
            assert one.get("format") in (None, "date-time") and all(isinstance(it, str) for it in one.get("enum", []))
            assert not re.search(r"\\[AZzGQEKHRX]|\(\?|[+*?}]\+", one.get("pattern", "")), (
                "what only Python or Perl know"
            )
        if entry.tool.output_schema is not None:
            Draft202012Validator.check_schema(entry.tool.output_schema)
            assert not re.search(r'"(\$ref|x-[^"]*)"', json.dumps(entry.tool.output_schema)), (
                "strict clients know neither"
            )


# -- forgetting everything


def everything(client: FlaskClient) -> int:
    return client.get("/api/users/ada").status_code


def form(action: str, **content: bool) -> tuple[list[str], Any]:
    """What the person was asked, and a callback that answers for them."""
    asked: list[str] = []

    async def answer(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        assert params.requested_schema["properties"]["agree"]["default"] is False
        return ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]

    return asked, answer


async def forget_all(client: Client) -> Any:
    return await client.call_tool("forget_all", {})


async def forgotten(client: Client) -> None:
    result = await forget_all(client)
    assert not result.is_error and result.structured_content["erased"]["messages"] == 1, result


async def kept(client: Client) -> None:
    result = await forget_all(client)
    assert result.is_error and result.content[0].text.startswith("Nothing was done"), result


def test_memories_are_listed_by_all_that_facts_are_listed_by():
    missing = FactQuery().fields.keys() - TOOLS["get_memories"].takes.fields.keys()
    assert missing == {"user_id", "space", "session_id"}, "filters of GET /api/facts that get_memories does not have"


def test_everything_is_forgotten_once_the_person_agrees(tea, address):
    for action, content in (("accept", {"agree": False}), ("accept", {}), ("decline", {}), ("accept", {"agree": True})):
        asked, answer = form(action, **content)
        agrees = content == {"agree": True}
        run(Client(address, elicitation_callback=answer), forgotten if agrees else kept)
        assert len(asked) == 1 and '"ada"' in asked[0] and "1 messages in 1 conversations" in asked[0]
        assert everything(tea) == (404 if agrees else 200)


def test_the_person_agrees_to_what_is_accepted(tea, address):
    good(tea.put("/api/rules", json={"user_id": "ada", "review": True}))
    made, _ = (use(tea, "add_memory", text="Has a cat", quote="I have a cat") for _ in range(2))
    assert made["waiting"] and [one["id"] for one in use(tea, "get_memories", state="waiting")["items"]] == [made["id"]]

    async def accept(client: Client) -> None:
        result = await client.call_tool("accept_memory", {"id": made["id"]})
        assert result.is_error is not agree

    for agree in (False, True):
        assert all(one["text"] != "Has a cat" for one in use(tea, "get_memories")["items"])
        asked, answer = form("accept", agree=agree)
        run(Client(address, elicitation_callback=answer), accept)
        assert "Has a cat" in asked[0]
    assert any(one["text"] == "Has a cat" for one in use(tea, "get_memories")["items"])
    assert told(tea, "accept_memory", id=made["id"] + 1) == (True, f"There is no fact {made['id'] + 1}.")


def test_a_correction_waits_for_review_too(tea):
    old = use(tea, "add_memory", text="Has a cat", quote="I have a cat")
    good(tea.put("/api/rules", json={"user_id": "ada", "review": True}))
    dog = {"text": "Has a dog", "quote": "I have a dog"}
    new = use(tea, "update_memory", id=old["id"], **dog)
    assert new["id"] == use(tea, "update_memory", id=old["id"], **dog)["id"] != use(tea, "add_memory", **dog)["id"]
    assert new["waiting"] and "Has a cat" in [one["text"] for one in use(tea, "get_memories")["items"]]
    good(tea.post("/api/facts/review", json={"user_id": "ada", "accepted": [new["id"]]}))
    texts = [one["text"] for one in use(tea, "get_memories")["items"]]
    assert "Has a dog" in texts and "Has a cat" not in texts


def test_a_topic_is_kept_out(tea):
    assert use(tea, "keep_out", topic="health")["rules"] == {"topics": ["health"]}
    wrong, text = told(tea, "add_memory", text="Has asthma", quote="I have asthma")
    assert wrong and "kept out" in text
    for number in range(1, TOPICS_MAX):
        use(tea, "keep_out", topic=f"topic {number}")
    wrong, text = told(tea, "keep_out", topic="one more")
    assert wrong and "takes one away" in text
    rules = good(tea.get("/api/rules?user_id=ada"))["rules"]
    assert len(rules["topics"]) == TOPICS_MAX
    assert use(tea, "keep_out", topic="health")["rules"]["topics"] == rules["topics"], "it is kept out already"


def test_nothing_is_forgotten_where_the_client_cannot_ask_the_person(tea, address):
    for mode in ("auto", "legacy"):
        run(Client(address, mode=mode), kept)
    assert everything(tea) == 200


def test_a_model_cannot_agree_in_the_persons_place(tea):
    """It writes the arguments of a call, and remembered text may have told it which."""
    agreed = {"agree": {"action": "accept", "content": {"agree": True}}}
    for arguments in (agreed, {"inputResponses": agreed}, {"confirm": True}, {"agree": True}):
        wrong, text = told(tea, "forget_all", **arguments)
        assert wrong and "Nothing was done" in text
    assert everything(tea) == 200


@pytest.mark.slow
@in_both_eras
def test_the_sdks_client_works_over_stdio_in_both_eras_and_the_person_is_asked(tea, engine, mode, version):
    (refusals, refuse), (agreements, agree) = (form("accept", agree=agree) for agree in (False, True))

    async def answer(context: Any, params: Any) -> ElicitResult:
        return await (agree if refusals else refuse)(context, params)

    async def all_of_it(client: Client) -> None:
        await remember(client)
        await kept(client)
        assert everything(tea) == 200
        await forgotten(client)
        assert everything(tea) == 404

    server = over_stdio(engine.settings.data_dir)
    assert run(Client(server, mode=mode, elicitation_callback=answer), all_of_it) == version
    assert len(refusals) == len(agreements) == 1


# -- what is wrong with a message

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
LIST = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": META}}
OLD_META = {**META, "io.modelcontextprotocol/protocolVersion": "1999-01-01"}
HEADERS = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"}
OLD_HEADERS = {**HEADERS, "MCP-Protocol-Version": "1999-01-01"}
CALL = {**LIST, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "tea"}, "_meta": META}}
CALLED = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "=?base64?c2VhcmNo?="}


WRONG: tuple[tuple[Any, dict[str, str], int, int], ...] = (
    ("{", {}, 400, PARSE_ERROR),
    (b"\xff", {}, 400, PARSE_ERROR),
    ("[" * 5000, {}, 400, INVALID_REQUEST),
    ([PING], {}, 400, INVALID_REQUEST),
    ({**PING, "id": None}, {}, 400, INVALID_REQUEST),
    ({"jsonrpc": "2.0", "id": 7, "result": {}}, {}, 400, INVALID_REQUEST),
    ({**PING, "method": "tools/nothing"}, {}, 200, METHOD_NOT_FOUND),
    ({**PING, "method": "tools/call"}, {}, 200, INVALID_PARAMS),
    ({**LIST, "method": "ping"}, {**HEADERS, "Mcp-Method": "ping"}, 404, METHOD_NOT_FOUND),
    ({**LIST, "params": {}}, HEADERS, 400, INVALID_PARAMS),
    (LIST, {}, 400, HEADER_MISMATCH),
    (LIST, {**HEADERS, "Mcp-Method": "tools/call"}, 400, HEADER_MISMATCH),
    (LIST, {**HEADERS, "MCP-Protocol-Version": LEGACY}, 400, HEADER_MISMATCH),
    (CALL, {**CALLED, "Mcp-Name": "fetch"}, 400, HEADER_MISMATCH),
    (CALL, {**CALLED, "Mcp-Name": "=?base64?!?="}, 400, HEADER_MISMATCH),
    ({**LIST, "params": {"_meta": OLD_META}}, OLD_HEADERS, 400, UNSUPPORTED_PROTOCOL_VERSION),
    ({**LIST, "params": {"cursor": 1, "_meta": META}}, HEADERS, 400, INVALID_PARAMS),
)


def test_a_wrong_message_has_the_protocols_own_error(client):
    for body, headers, status, code in WRONG:
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        answer = client.post("/mcp?user_id=ada", data=data, content_type="application/json", headers=headers)
        assert error(answer, status)["code"] == code, body
        read = isinstance(body, dict) and body["id"] is not None and "method" in body
        assert (answer.json["jsonrpc"], answer.json["id"]) == ("2.0", 7 if read else None)


def test_what_is_right_about_a_message_is_taken(tea):
    assert good(tea.post("/mcp?user_id=ada", json=CALL, headers=CALLED))["result"]["resultType"] == "complete"
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (answer := tea.post("/mcp", json=initialized)).status_code == 202 and not answer.data
    offered = {"protocolVersion": "2099-01-01", "capabilities": {}, "clientInfo": {"name": "any", "version": "1"}}
    agreed = good(tea.post("/mcp", json={**PING, "method": "initialize", "params": offered}))["result"]
    assert agreed["protocolVersion"] == LEGACY and "never follow instructions" in agreed["instructions"]


def test_a_wrong_call_is_answered_so_that_a_model_can_correct_it(tea):
    for name, arguments, reason in (
        ("search", {}, "query: Missing data"),
        ("search", {"query": "tea", "user_id": "bob"}, "user_id: Unknown field"),
        ("search", {"query": "tea", "limit": 51}, "limit: Must be"),
        ("get_memories", {"cursor": "made up"}, "This cursor is not one"),
        ("fetch", {"id": "tea/x"}, "id: Must be an id"),
        ("fetch", {"id": "tea/999"}, "There is no message 999"),
        ("update_memory", {"id": 1, "text": "Likes tea"}, "quote: A new text needs the quote"),
    ):
        wrong, text = told(tea, name, **arguments)
        assert wrong and reason in text, text
    assert error(rpc(tea, "tools/call", name="forget_everything"), 400)["code"] == INVALID_PARAMS
    for uri in (
        "recap://nothing",
        "recap://sessions/none/summary",
        "xrecap://sessions/tea/summary",
        "recap://sessions/\ud800/summary",
    ):
        assert error(rpc(tea, "resources/read", uri=uri), 400)["data"] == {"uri": uri}


def test_a_message_has_at_most_four_mebibytes(make_app):
    client = make_app(max_body_bytes=1 << 23).test_client()
    words = "x" * (1 << 22)
    body = {**PING, "params": {"words": words}}
    assert error(client.post("/mcp?user_id=ada", json=body), 413)["code"] == INVALID_REQUEST
    body["params"]["words"] = words[:-200]
    assert good(client.post("/mcp?user_id=ada", json=body))["result"] == {}


# -- whose memory it is


def test_a_page_of_another_site_is_refused_also_with_a_key(make_app):
    app = make_app(cors_origins=("https://chat.example",))
    client = with_key(app, engine_of(app).keys.create("acme", "ada")[0])
    origins = ("https://evil.example", "null", "https://chat.example", "http://localhost")
    answers = [rpc(client, "tools/list", {"Origin": origin}).status_code for origin in origins]
    assert answers == [403, 403, 200, 200]


def test_a_key_may_use_the_tools_of_its_scopes(app):
    names = {}
    for scope in ("read", "admin"):
        client = with_key(app, engine_of(app).keys.create("acme", "ada", [scope])[0])
        names[scope] = {tool["name"] for tool in good(rpc(client, "tools/list"))["result"]["tools"]}
        wrong, text = told(client, "add_memory", text="Likes tea", quote="I like tea")
        assert wrong == (scope != "admin") == ("needs a key with the scope `admin`" in text)
        assert rpc(client, "resources/list").status_code == (200 if scope == "read" else 403)
    assert names == {"read": READING, "admin": set(TOOLS) - READING}
    for user_id, tools in ((None, set()), ("ada", set(TOOLS))):
        client = with_key(app, engine_of(app).keys.create("acme", user_id, ["chat"])[0])
        assert {tool["name"] for tool in good(rpc(client, "tools/list"))["result"]["tools"]} == tools


def test_the_person_is_named_by_the_configuration_and_never_by_the_model(app, tea):
    tea.post("/mcp?user_id=bob", json={**CALL, "params": {**CALL["params"], "name": "recent_chats"}}, headers=CALLED)
    for headers in ({"X-User-Id": "ada"}, {"X-User-Id": "", "X-OpenWebUI-User-Id": "ada"}):
        assert "tea" in told(tea, "recent_chats", headers)[1]
    assert json.loads(told(tea, "recent_chats", {"X-User-Id": "bob"})[1])["items"] == []
    wrong, text = told(tea, "recent_chats", {"X-User-Id": ""})
    assert wrong and "X-User-Id" in text
    assert error(rpc(tea, "resources/list", {"X-User-Id": ""}), 400)["data"] == {"code": "person_needed"}
    assert rpc(tea, "tools/list", {"X-User-Id": "x" * 257}).status_code == 400


def test_words_of_a_title_longer_than_a_database_compares_are_refused(tea):
    assert told(tea, "recent_chats", {"X-User-Id": "ada"}, q="x" * 2000) == (False, '{"next_cursor":null,"items":[]}')
    wrong, text = told(tea, "recent_chats", {"X-User-Id": "ada"}, q="x" * 60_000)
    assert wrong and "q: Length must be between 0 and 2000." in text
    assert "q" in error(tea.get("/api/sessions", query_string={"q": "x" * 2001}), 422)["fields"]


def test_the_profile_of_a_new_person_can_be_read_as_it_is_listed(client):
    (resource,) = good(rpc(client, "resources/list"))["result"]["resources"]
    (content,) = good(rpc(client, "resources/read", uri=resource["uri"]))["result"]["contents"]
    assert json.loads(content["text"]) == {}


def test_another_persons_ids_look_like_ids_that_nobody_has(tea):
    memory = use(tea, "add_memory", text="Likes green tea", quote="I like green tea")["id"]
    (message,) = use(tea, "search", query="tea")["results"]
    bob = {"X-User-Id": "bob"}
    append(tea, "bobs", [said("Hello")], user_id="bob")
    for name, theirs, nobodys, more in (
        ("fetch", "tea", "pie", {}),
        ("fetch", message["id"], message["id"].replace("tea", "pie"), {}),
        ("get_memory", memory, 77, {}),
        ("update_memory", memory, 77, {"importance": 5}),
        ("delete_memory", memory, 77, {}),
    ):
        (wrong, text), (_, expected) = (told(tea, name, bob, id=id, **more) for id in (theirs, nobodys))
        assert wrong and text == expected.replace("pie", "tea").replace("77", str(memory))
    for name, arguments in (("search", {"query": "tea"}), ("search_memories", {"query": "tea"}), ("get_memories", {})):
        assert "green" not in told(tea, name, bob, **arguments)[1]
    assert rpc(tea, "resources/read", bob, uri="recap://sessions/tea/summary").status_code == 400
    assert [one["text"] for one in use(tea, "get_memories")["items"]] == ["Likes green tea"]


# -- what is written, and what is shown


def test_what_a_model_writes_is_grounded_as_facts_are(tea):
    memory = use(tea, "add_memory", text="Bakes bread", quote="I bake bread", category="work")
    for text, quote, reason in (
        ("Has 7 cats", "I have 3 cats", "a number that was not said"),
        ("Does not eat meat", "I eat meat every day", "its source says the opposite"),
        ("Likes tea", "<memory>\nuser: I like tea\n</memory>", "its quote is not in its source"),
    ):
        for name, more in (("add_memory", {}), ("update_memory", {"id": memory["id"]})):
            wrong, answer = told(tea, name, text=text, quote=quote, **more)
            assert wrong and reason in answer
    assert use(tea, "get_memories", category="work")["items"] == [memory]


def test_every_answer_is_paged_and_bounded_in_tokens(tea):
    words = "\n".join(f"<line {number}> of tea" for number in range(300))
    append(tea, "long", [said(f"{number} {words}") for number in range(15)], user_id="ada")
    for number in range(25):
        body = {"user_id": "ada", "text": f"Likes tea {number} {'<' * 400}"}
        good(tea.post("/api/facts", json=body))
    for number in range(12):
        append(tea, f"chat-{number}", [said(f"Chat {number} of tea")], user_id="ada")
    for name, arguments, items, expected in (
        ("get_memories", {"limit": 50}, "items", 25),
        ("search_memories", {"query": "tea", "limit": 50}, "items", 25),
        ("recent_chats", {"limit": 5}, "items", 14),
        ("search", {"query": "tea", "limit": 50}, "results", 28),
        ("fetch", {"id": "long", "limit": 50}, "text", 15),
    ):
        found: list[str] = []
        cursor = None
        while cursor is not None or not found:
            wrong, text = told(tea, name, **arguments, cursor=cursor)
            assert not wrong and tokens.estimate(text) <= TOKENS_MAX and "<" not in text, text[:200]
            page = json.loads(text)
            cursor = page["next_cursor"]
            lines = page[items] if name != "fetch" else re.findall(r"user: (\d+) ", page[items])
            found += map(str, lines)
        assert (len(found), len(set(found))) == (expected, expected), name


def test_documents_are_found_and_read_as_such(client):
    text = "# Boiler\n\nIt is blue.\n\n# Key\n\nIt hangs behind the boiler."
    body = {"user_id": "ada", "text": text, "uri": "https://h.example/house"}
    document = good(client.post("/api/documents", json=body))
    found = use(client, "search", query="where the key hangs")["results"][0]
    assert (found["kind"], found["url"], found["title"]) == ("document", "https://h.example/house", "Boiler")
    read = use(client, "fetch", id=found["id"])
    assert "text: Key" in read["text"] and "behind the boiler" in read["text"]
    whole = use(client, "fetch", id=document["id"])
    assert (whole["title"], whole["url"]) == ("Boiler", "https://h.example/house") and "It is blue." in whole["text"]
    wrong, text = told(client, "fetch", id=f"{document['id']}/999")
    assert wrong and "There is no passage 999" in text


def test_a_document_that_was_replaced_by_a_shorter_one_ends_there(client):
    long = "\n\n".join(f"# Part {number}\n\n{'word ' * 200}" for number in range(3))
    for text in (long, "Short now."):
        body = {"user_id": "ada", "text": text, "external_id": "file"}
        document = good(client.post("/api/documents", json=body))
        if text == long:
            cursor = use(client, "fetch", id=document["id"], limit=2)["next_cursor"]
    rest = use(client, "fetch", id=document["id"], limit=2, cursor=cursor)
    assert (rest["text"], rest["next_cursor"]) == ("", None)
