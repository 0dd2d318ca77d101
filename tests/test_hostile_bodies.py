"""The worst bodies that fit: every call refuses or answers them with little CPU and memory, and with a short answer."""

import io
import json
import re
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from api.bodies import MARKS_MAX
from schemas.chat import ChatRequest
from schemas.shapes import WRONG_MAX
from tests.http import error, good

CPU_SECONDS, MARGIN = 0.3, 3  # other load slows this thread too
MEMORY_BYTES = 50 << 20
ANSWER_BYTES = 20_000

BETWEEN = {1000: "Length must be between 1 and", 200: "Longer than maximum length"}
ONES = {  # what is repeated, as often as it fits
    "objects": b'{"":0},',
    "arrays": b"[[0]],",
    "long numbers": b"9" * 4000 + b",",
    "fractions": b"0.1e-5,",
    "texts": b'"ab",',
    "wrong messages": b'{"role":0,"content":[],"name":0,"created_at":0,"external_id":0,"x":0},',
    "large objects": b"{" + b",".join(b'"%d":0' % number for number in range(300)) + b"},",
    "deep arrays": b"[" * 99 + b"]" * 99 + b",",
    "parts": b'{"role":"user","content":[{"type":"x"},{"type":"x"},{"type":"x"}]},',
}
UNBOUNDED = {"texts", "objects"}  # kinds of which a field without a bound looks at every item
TEXTS = {  # of one string
    "quotes": b'\\"',
    "escaped emoji": b"\\ud83c\\udfe0",
    "one emoji": b"",
    "no UTF-8": b"\xff",
    "braces": b"{{%",
}


def marks(text: bytes) -> int:
    return sum(map(text.count, (b"[", b"]", b"{", b"}", b",", b'"')))


def lists(room: int, parsed: set[str]) -> Iterator[tuple[str, bytes]]:
    """Lists of as much as a list may have; and of as much as is looked at, of a kind that is not `parsed` yet or shows
    that a field has no bound: what parsing costs is the same for every field."""
    for name, one in ONES.items():
        most = min(room // len(one), (MARKS_MAX - 1000) // marks(one))
        for count in {min(most, 1000)} if name in parsed - UNBOUNDED else {most, min(most, 1000)}:
            yield f"{count:,} {name}", b"[" + one * (count - 1) + one.rstrip(b",") + b"]"

    for count in (200,) if parsed >= ONES.keys() else (MARKS_MAX // 3 - 1000, 200):
        if count * 13 < room:
            yield f"an object of {count} keys", keys(count)
    parsed.update(ONES)


def keys(count: int) -> bytes:
    return b"{" + b",".join(b'"k%07d":0' % number for number in range(count)) + b"}"


def texts(room: int) -> Iterator[tuple[str, bytes]]:
    for name, one in TEXTS.items():
        text = one * (room // len(one)) if one else "🏠".encode() + b"a" * (room - 4)
        yield name, b'"' + text + b'"'


def wholes(room: int) -> Iterator[tuple[str, bytes]]:
    """Bodies of about `room` bytes that look like none of the schemas."""
    for count in (room // 13, MARKS_MAX // 3 - 1000, 1000):
        if count * 13 <= room:
            yield f"{count:,} unknown keys", keys(count)
    yield "one key many times", b"{" + b'"message":0,' * (room // 12 - 1) + b'"message":0}'
    yield "a long key", b'{"' + b"k" * (room - 8) + b'":0}'
    yield "cut off", b'{"message":"' + b"a" * (room - 20)
    yield "arrays without end", b"[" * room
    yield "objects without end", b'{"":' * (room // 4)
    yield "not closed between", b'["",' + b'\\"[' * (room // 4)
    yield "white space", b" " * (room - 2) + b"{}"
    yield "a long number", b"9" * room
    yield "a long fraction", b"0." + b"1" * (room - 2)
    yield "too many arrays", b"[" + b"[]," * (room // 3 - 1) + b"0]"


def calls(client: FlaskClient) -> Iterator[tuple[str, str, dict[str, Any], int]]:
    """Every call that takes a body as JSON: its method, address, schema and the largest body."""
    document: Any = client.get("/openapi.json").json
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            if method == "parameters" or "requestBody" not in call or path == "/api/import":
                continue
            schema = call["requestBody"]["content"]["application/json"]["schema"]
            schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
            address = re.sub(r"{\w+}", "1", path)
            refused = client.open(
                address,
                method=method,
                content_type="application/json",
                environ_overrides={"CONTENT_LENGTH": "99999999"},
            )
            limit = int(re.sub(r"\D", "", error(refused, 413)["message"]))
            yield method, address, schema, limit


def bodies(schema: dict[str, Any], limit: int, parsed: set[str]) -> Iterator[tuple[str, bytes]]:
    needed = [name for name in schema.get("required", ()) if name in ("message",)]
    for field, kind in schema["properties"].items():
        more = "".join(f'"{name}":"x",' for name in needed if name != field)
        start = f'{{{more}"temporary":true,"{field}":' if field == "history" else f'{{{more}"{field}":'
        room = limit - len(start) - 4
        values: Iterable[tuple[str, bytes]] = ()
        if kind.get("type") == "array":
            values = lists(room, parsed)
        elif kind.get("type") == "string":
            values = texts(room)
        for name, value in values:
            yield f"{field}: {name}", start.encode() + value + b"}"


def cost(client: FlaskClient, method: str, address: str, body: bytes, *, trace: bool) -> tuple[float, int, int]:
    """CPU seconds of a call, its peak memory in bytes if that is to be traced, and the bytes of its answer."""
    seconds = memory = answered = 0
    for traced in (False, True) if trace else (False,):
        if traced:
            tracemalloc.start()
        began = time.thread_time()
        with client.open(
            address,
            method=method,
            data=io.BytesIO(body),
            content_type="application/json",
            headers={"Content-Length": str(len(body))},
        ) as answer:
            assert answer.status_code != 500
            answered = len(answer.data)
        if traced:
            memory = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        else:
            seconds = time.thread_time() - began
    return seconds, memory, answered


@pytest.mark.slow
def test_no_body_costs_much(shared_app):
    client, costly, tried = shared_app.test_client(), [], 0
    limits = set[int]()  # whose bodies that look like no schema were tried: every call reads them in the same way
    shapes = set[str]()  # of fields that were tried in the largest body: all of one shape are read in the same way
    parsed = set[str]()  # kinds of lists that were tried in the largest body
    traced = set[str]()  # kinds of values whose memory was traced, which takes ten times as long
    for method, address, schema, limit in sorted(calls(client), key=lambda call: -call[3]):
        unknown = () if limit in limits else wholes(limit)
        limits.add(limit)
        new = {}
        for field, kind in schema["properties"].items():
            shape = json.dumps({name: kind[name] for name in sorted(kind) if name != "description"})
            if shape not in shapes:
                new[field] = kind
                shapes.add(shape)
        for name, body in (*unknown, *bodies({**schema, "properties": new}, limit, parsed)):
            assert len(body) <= limit
            value = name.rpartition(": ")[2]
            seconds, memory, answered = cost(client, method, address, body, trace=value not in traced)
            traced.add(value)
            if seconds > CPU_SECONDS * MARGIN:  # or the machine was busy
                seconds = min(seconds, cost(client, method, address, body, trace=False)[0])
            if seconds > CPU_SECONDS * MARGIN or memory > MEMORY_BYTES or answered > ANSWER_BYTES:
                costly.append(f"{method} {address}: {name}: {seconds:.1f} s, {memory >> 20} MB, {answered:,} bytes")
            tried += 1
    assert costly == [] and tried > 200


EXPORT = b'{"format":"recap-export","version":1,'
MESSAGE = b'{"role":"user","content":"x","created_at":"2026-03-01T10:00:00Z"'
MESSAGES = EXPORT + b'"sessions":[{"messages":['
SUMMARY = EXPORT + b'"sessions":[{"summaries":[{"usage":{"facts":'
OF_MESSAGE = MESSAGES + MESSAGE + b","
DOCUMENTS: dict[str, tuple[bytes, bytes, int, bytes]] = {  # a start, what is repeated and how often, an end
    "empty messages": (MESSAGES, b"{},", 2_000_000, b"{}]}]}"),
    "no sessions": (EXPORT + b'"sessions":[', b"0,", 4_000_000, b"0]}"),
    "arrays in a session": (EXPORT + b'"sessions":[{"x":[', b"[],", 4_000_000, b"0]}]}"),
    "keys of a session": (EXPORT + b'"sessions":[{', b'"k":0,', 3_000_000, b'"k":0}]}'),
    "empty facts": (EXPORT + b'"facts":[', b"{},", 4_000_000, b"{}]}"),
    "empty revisions": (EXPORT + b'"facts":[{"revisions":[', b"{},", 2_000_000, b"{}]}]}"),
    "a deep array": (EXPORT + b'"x":', b"[", 60_000_000, b""),
    "counts": (SUMMARY, keys(30_000), 1, b"}}]}]}"),
    "no facts": (b'{"facts":[', b"[],", 4_000_000, b"0]}"),
    "no format": (b'{"x":[', b"[1],", 4_000_000, b"0]}"),
    "no format, a known name": (b'{"exported_at":[', b"[],", 4_000_000, b"0]}"),
    "another format": (b'{"format":"other","x":[', b"[1],", 4_000_000, b"0]}"),
    "a long text": (OF_MESSAGE + '"name":"🏠'.encode(), b"x", 60_000_000, b'"}]}]}'),
    "a long number": (OF_MESSAGE + b'"name":', b"9", 60_000_000, b"}]}]}"),
    "new lines": (OF_MESSAGE + b'"name":"', b"\\n", 30_000_000, b'"}]}]}'),
    "many attachments": (OF_MESSAGE + b'"extra":{"attachments":[', b"0,", 90_000, b"0]}}]}]}"),
    "attachments": (OF_MESSAGE + b'"extra":{"attachments":[', b"0,", 990, b"0]}}]}]}"),
    "many calls": (OF_MESSAGE + b'"extra":{"tool_calls":[', b"{},", 45_000, b"0]}}]}]}"),
    "calls": (OF_MESSAGE + b'"extra":{"tool_calls":[', b"0,", 990, b"0]}}]}]}"),
    "white space": (MESSAGES, b" ", 60_000_000, b"0]}]}"),
    "numbers": (b"[", b"0,", 4_000_000, b"0]"),
    "arrays in a conversation": (b'[{"x":[', b"[],", 4_000_000, b"0]}]"),
    "an array of nodes": (b'[{"mapping":[', b"[],", 4_000_000, b"0]}]"),
    "a long text in a conversation": (b'[{"mapping":{},"x":"', b"x", 60_000_000, b'"}]'),
    "white space at the start": (b"", b" ", 60_000_000, b"[]"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_to_import_is_refused_at_its_first_wrong_part(shared_app, name):
    start, one, count, end = DOCUMENTS[name]
    client, document = shared_app.test_client(), start + one * count + end
    seconds, memory, answered = cost(client, "post", "/api/import?user_id=ada", document, trace=True)
    assert seconds < CPU_SECONDS * MARGIN and memory < MEMORY_BYTES and answered < ANSWER_BYTES


# -- what is said


def refused(client: FlaskClient, address: str, text: str, status: int = 422) -> Any:
    return error(client.post(address, data=text, content_type="application/json"), status)


@pytest.mark.parametrize(
    ("address", "start", "item", "most"),
    [
        ("/api/sessions/s/messages", '{"messages":', "{}", 1000),
        ("/api/chat", '{"message":"x","temporary":true,"history":', "{}", 200),
        ("/api/facts/forget", '{"ids":', "0", 1000),
    ],
)
def test_a_list_is_measured_before_its_items_and_few_errors_are_named(shared, address, start, item, most):
    found = refused(shared, address, f"{start}[{','.join([item] * (most + 1))}]}}")
    assert found["fields"] == {found["param"]: [f"{BETWEEN[most]} {most}."]} and found["wrong"] == 1
    found = refused(shared, address, f"{start}[{','.join([item] * most)}]}}")
    assert len(found["fields"]) == WRONG_MAX and found["wrong"] >= most


def test_the_messages_of_a_client_are_measured_before_they_are_read(shared):
    for count, told in ((10_000, "messages.0: Not a valid mapping"), (10_001, "messages: Length must be between")):
        found = refused(shared, "/v1/chat/completions", f'{{"messages": [{",".join("0" * count)}]}}', 400)
        assert told in found["message"]
    for name in ("content", "tool_calls"):
        parts = ",".join(["{}"] * 1_001)
        found = refused(
            shared, "/v1/chat/completions", f'{{"messages": [{{"role": "user", "{name}": [{parts}]}}]}}', 400
        )
        assert found["param"] == "messages" and "more than 1,000 parts" in found["message"]


def test_unknown_keys_are_named_unless_there_are_very_many(shared):
    found = refused(shared, "/api/chat", '{"message": "x", "userid": "ada"}')
    assert found["fields"] == {"userid": ["Unknown field. Is it user_id?"]}
    found = refused(shared, "/api/store/search", '{"namespace_prefx": []}')
    assert found["fields"] == {"namespace_prefx": ["Unknown field. Is it namespace_prefix?"]}
    assert refused(shared, "/api/chat", '"hello"')["fields"] == {"body": ["Must be a JSON object."]}
    found = refused(shared, "/api/chat", "{" + ",".join(f'"k{number}":0' for number in range(100)) + "}")
    known = len(ChatRequest().fields)
    assert found["fields"] == {"body": [f"Has 100 keys, but at most {known} are known."]} and found["wrong"] == 1
    found = refused(shared, "/api/facts", '{"' + "k" * 9000 + '": 0}')
    assert all(len(name) <= 100 for name in found["fields"])


@pytest.mark.parametrize("opened", ["[", '["",{"x":'])
def test_a_body_that_is_nested_deeply_is_refused(shared, opened):
    for count in (101, 5_000):
        found = refused(shared, "/v1/embeddings", '{"input":' + opened * count, 400)
        assert found["code"] == "invalid_json" and "more than 100 levels deep" in found["message"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32-le"])
@pytest.mark.parametrize("body", ['{"\\"": %s}' % ("[" * 90_000 + "]" * 90_000), '{"jsonrpc": "2.0", "method": "x"}'])
def test_json_is_read_in_utf_8_alone_for_no_other_is_measured(shared, encoding, body):
    for method, address in (("post", "/mcp"), ("post", "/api/chat"), ("delete", "/api/sessions/none")):
        answer = shared.open(address, method=method, data=body.encode(encoding), content_type="application/json")
        assert "not valid JSON" in error(answer, 400)["message"]


@pytest.mark.parametrize("text", ["[{" * 500, '\\"[' * 500, "\\\\" + '\\"[{' * 500])
def test_brackets_and_commas_in_a_text_do_not_count(client, text):
    assert client.post("/api/chat", data=f'{{"message": "{text}"}}', content_type="application/json").status_code == 200
    many = (
        f'{{"message": "{text}", "temporary": true, "history": [{{"role": "user", "content": "{"[,]" * 400_000}"}}]}}'
    )
    assert list(refused(client, "/api/chat", many)["fields"]) == ["history.0.content"]


def test_a_long_body_may_have_many_values_but_not_of_any_number(shared):
    tokens = "12345," * 300_000
    refused(shared, "/v1/embeddings", f'{{"input": [{tokens}0]}}', 501)  # by the built-in model
    found = refused(shared, "/v1/embeddings", f'{{"input": [{tokens}{tokens}0]}}', 413)
    assert found["code"] == "body_too_large" and "Nothing was stored" in found["message"]


def test_a_name_that_a_query_has_twice_is_refused_by_every_call(shared):
    document = good(shared.get("/openapi.json"))
    sent = 0
    for path, item in document["paths"].items():
        for method, call in item.items():
            named = call.get("parameters", ()) if method != "parameters" else ()
            names = [one["name"] for one in named if one["in"] == "query" and one["schema"]["type"] != "array"]
            for name in names:
                twice = {name: ["1", "2"]}
                answer = shared.open(re.sub(r"{.*?}", "1", path), method=method.upper(), query_string=twice, json={})
                if path.startswith("/api/"):
                    assert name in error(answer, 422)["fields"], (path, method, name)
                else:  # the error of another protocol, which names one field alone
                    assert answer.status_code == 400, (path, method, name)
                sent += 1
    assert sent > 50
