"""Write what both clients have of each call: `make clients`, from the OpenAPI document.

Python gets recap_client/types.py and operations.py (plain and async), JavaScript operations.js and operations.d.ts. A
method takes the path's parameters and what is required in its query or body in their order, all else by name. Written
by hand here: the names of the calls that programs make most, and which calls do no more when they are sent twice.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess  # nosec B404
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import api
from app import VERSION

HERE = Path(__file__).parent
HEADER = "Generated from the OpenAPI document by clients/generate.py (`make clients`): change that one instead."
NAMES = {
    "list_sessions": "sessions",
    "get_session": "session",
    "list_messages": "messages",
    "append_messages": "add_messages",
    "list_facts": "facts",
    "run_batch": "batch",
    "get_profile": "profile",
    "get_summary": "summary",
    "list_jobs": "jobs",
    "export_user": "export",
    "import_document": "import_chats",
    "exchange": "mcp",
    "stream_events": "events",
}
POSITIONAL = {"search_items": "namespace_prefix"}  # beside what is required
REPEATABLE = {"recall", "search_items", "change_session", "change_fact", "put_item", "give_feedback", "forget_facts"}
REPEATABLE |= {"add_document", "upload_document"}
PEOPLE = ("user_id", "user", "metadata")  # the fields of a body that may name the person
WHOSE = ("user_id", "space")  # of nearly every call, so no method describes them
BINARY, EVENTS, JSON = "application/octet-stream", "text/event-stream", "application/json"
FORM = "multipart/form-data"

Schema = dict[str, Any]


@dataclass(frozen=True)
class Field:
    """A parameter or a property."""

    name: str
    schema: Schema  # with the description that a parameter has beside it
    is_required: bool

    @property
    def about(self) -> str:
        return " ".join(self.schema.get("description", "").split())


@dataclass(frozen=True)
class Operation:
    """A call of the document."""

    method: str
    path: str
    spec: Schema
    schemas: dict[str, Schema]

    @property
    def id(self) -> str:
        return str(self.spec["operationId"])

    @property
    def name(self) -> str:
        return NAMES.get(self.id, self.id)

    @property
    def is_upload(self) -> bool:
        """Return whether the body is a form with a file."""
        return list(self.spec.get("requestBody", {}).get("content", {})) == [FORM]

    @property
    def is_turn(self) -> bool:
        return any(one.get("name") == "Idempotency-Key" for one in self.spec.get("parameters", []))

    @cached_property
    def ids(self) -> list[Field]:
        return [Field(one["name"], one["schema"], True) for one in self._parameters("path") if one["name"] != "user_id"]

    @cached_property
    def body(self) -> Schema | None:
        """The schema of a body."""
        content = self.spec.get("requestBody", {}).get("content", {})
        if BINARY in content:
            return {"oneOf": [content[JSON]["schema"], content[BINARY]["schema"]]}
        kind = FORM if self.is_upload else JSON
        return resolve(content[kind]["schema"], self.schemas) if kind in content else None

    @property
    def is_whole(self) -> bool:
        """Whether the body is one value, and not an object of fields."""
        return self.body is not None and "properties" not in self.body

    @cached_property
    def fields(self) -> list[Field]:
        """What goes into the body or, in a call without one, into the query; but for the person and the pages."""
        left_out = {"user_id", "stream"} if self.person != "metadata" else {"stream"}
        if self.person == "user":
            left_out.add("user")
        if self.is_whole:
            return [Field("document", self.body or {}, True)]
        if self.body is not None:
            required = self.body.get("required", [])
            file = {"file": {"format": "file"}} if self.is_upload else {}
            found = [Field(name, one, name in required) for name, one in {**self.body["properties"], **file}.items()]
        else:
            left_out |= {"cursor", "limit"} if self.item else set()
            found = [
                Field(
                    one["name"],
                    {"description": one.get("description", ""), **one["schema"]},
                    one.get("required", False),
                )
                for one in self._parameters("query")
            ]
        return [field for field in found if field.name not in left_out]

    @property
    def positional(self) -> list[Field]:
        chosen = [field for field in self.fields if field.is_required or field.name == POSITIONAL.get(self.id)]
        return [*self.ids, *chosen]

    @property
    def named(self) -> list[Field]:
        return [field for field in self.fields if field not in self.positional]

    @cached_property
    def person(self) -> str | None:
        """Where the person is named: the path, the query, or a field of the body."""
        if "{user_id}" in self.path:
            return "path"
        if any(one["name"] == "user_id" for one in self._parameters("query")):
            return "query"
        names = (self.body or {}).get("properties", {})
        return next((name for name in PEOPLE if name in names), None)

    @property
    def is_open(self) -> bool:
        """Whether the body takes more fields than the document names."""
        return self.body is not None and not self.is_whole and self.body.get("additionalProperties") is True

    @cached_property
    def item(self) -> Schema | None:
        """The schema of the items, in a call that answers with a page of them."""
        found = resolve(self.result or {}, self.schemas).get("properties", {})
        return found["items"]["items"] if {"items", "next_cursor"} <= set(found) else None

    @property
    def answers(self) -> dict[str, Schema]:
        return {code: one for code, one in self.spec["responses"].items() if code.startswith("2")}

    @cached_property
    def result(self) -> Schema | None:
        contents = [one.get("content", {}) for one in self.answers.values()]
        content = {kind: one["schema"] for found in contents for kind, one in found.items() if kind != EVENTS}
        if not content and "200" in self.spec["responses"]:
            return {}  # the document does not say
        return {"oneOf": list(content.values())} if len(content) > 1 else next(iter(content.values()), None)

    def resets(self, field: Field) -> bool:
        """Return whether null is a value of its own for a field, and not its absence."""
        return self.method == "PATCH" and bool(field.schema.get("nullable")) and not field.is_required

    @property
    def has_stream(self) -> bool:
        """Return whether there is a method `stream` beside the call's own."""
        return self.path == "/api/chat"

    @property
    def is_events(self) -> bool:
        return list(self.spec["responses"].get("200", {}).get("content", {})) == [EVENTS]

    def _parameters(self, place: str) -> list[Schema]:
        return [one for one in self.spec.get("parameters", []) if one.get("in") == place]


def resolve(schema: Schema, schemas: dict[str, Schema]) -> Schema:
    """Return the schema that a reference names, or the schema itself."""
    for one in schema.get("allOf", [schema]):
        if "$ref" in one:
            return schemas[one["$ref"].rpartition("/")[2]]
    return schema


def operations(document: Schema) -> Iterator[Operation]:
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        shared = methods.get("parameters", [])
        for method, spec in methods.items():
            if method != "parameters":
                spec = {**spec, "parameters": [*shared, *spec.get("parameters", [])]}
                yield Operation(method.upper(), path, spec, schemas)
                if form := spec.get("requestBody", {}).get("content", {}).get(FORM):
                    name = spec["operationId"].replace("add_", "upload_")
                    form = {"operationId": name, "requestBody": {"content": {FORM: form}}}
                    yield Operation(method.upper(), path, {**spec, **form}, schemas)


# -- types


@dataclass(frozen=True)
class Language:
    """How types are written."""

    names: dict[str, str]  # of JSON types
    reference: Callable[[str], str]
    array: Callable[[str], str]
    mapping: Callable[[str], str]
    literal: Callable[[list[Any]], str]

    def write(self, schema: Schema) -> str:
        for one in schema.get("allOf", ()):
            schema = {**schema, **one}
        if "$ref" in schema:
            found = self.reference(schema["$ref"].rpartition("/")[2])
        elif choices := schema.get("oneOf") or schema.get("anyOf"):
            found = " | ".join(dict.fromkeys(map(self.write, choices)))
        elif "enum" in schema:
            values = [value for value in schema["enum"] if value is not None]
            found = self.literal(values) if values else self.names["any"]
        elif schema.get("type") == "array":
            found = self.array(self.write(schema.get("items", {})))
        elif schema.get("type") == "object":
            values = schema.get("additionalProperties")
            found = self.mapping(self.write(values if isinstance(values, dict) else {}))
        else:
            found = self.names.get(schema.get("format", ""), self.names.get(schema.get("type", ""), self.names["any"]))
        is_nullable = schema.get("nullable") and found != self.names["any"]
        return f"{found} | {self.names['null']}" if is_nullable else found


PYTHON_NAMES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "any": "Any",
    "binary": "bytes",
    "file": "File",
}
PYTHON = Language(
    PYTHON_NAMES,
    reference=lambda name: f"types.{name}",
    array=lambda item: f"list[{item}]",
    mapping=lambda value: f"dict[str, {value}]",
    literal=lambda values: f"Literal[{', '.join(map(repr, values))}]",
)
PYTHON_INPUT = Language(  # what a program gives
    {**PYTHON_NAMES, "date-time": "str | datetime"},
    reference=PYTHON.reference,
    array=lambda item: f"Sequence[{item}]",
    mapping=lambda value: f"Mapping[str, {value}]",
    literal=PYTHON.literal,
)
JAVASCRIPT = Language(
    {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null", "any": "any"}
    | {"binary": "Blob | BufferSource", "file": "Blob"},
    reference=lambda name: name,
    array=lambda item: f"({item})[]" if " " in item else f"{item}[]",
    mapping=lambda value: f"Record<string, {value}>",
    literal=lambda values: " | ".join(map(json.dumps, values)),
)
JAVASCRIPT_INPUT = replace(JAVASCRIPT, names={**JAVASCRIPT.names, "date-time": "string | Date"})


def used(document: Schema) -> dict[str, Schema]:
    """Return the schemas of bodies and results, by name."""
    schemas = document["components"]["schemas"]
    found: dict[str, Schema] = {}
    waiting = [one for call in operations(document) for one in (call.body, call.answers) if one]
    while waiting:
        for name in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(waiting.pop())):
            if name not in found:
                found[name] = schemas[name]
                waiting.append(schemas[name])
    return dict(sorted(found.items()))


def python_types(document: Schema) -> str:
    lines = [f'"""The JSON objects that calls take and answer.\n\n{HEADER}\n"""', "from __future__ import annotations"]
    lines.append("from typing import Any, Literal, NotRequired, TypedDict")
    for name, schema in used(document).items():
        fields = {key: PYTHON.write(one).replace("types.", "") for key, one in schema.get("properties", {}).items()}
        required = schema.get("required", [])
        fields = {key: kind if key in required else f"NotRequired[{kind}]" for key, kind in fields.items()}
        if all(key.isidentifier() and not keyword.iskeyword(key) for key in fields):
            lines += [f"class {name}(TypedDict):", *(f"    {key}: {kind}" for key, kind in fields.items()), "    pass"]
        else:
            quoted = ", ".join(f'"{key}": "{kind}"' for key, kind in fields.items())
            lines.append(f'{name} = TypedDict("{name}", {{{quoted}}})')
    return formatted("\n".join(lines))


def typescript_types(document: Schema) -> Iterator[str]:
    for name, schema in used(document).items():
        required = schema.get("required", [])
        yield f"export interface {name} {{"
        for key, one in schema.get("properties", {}).items():
            name = json.dumps(key)[1:-1] if key in required else f"{json.dumps(key)[1:-1]}?"
            yield f"  {remark(Field(key, one, True))}{name}: {JAVASCRIPT.write(one)};"
        yield "}"


# -- methods


PREAMBLE = f'''"""A method for each call, for plain and for async programs.

{HEADER}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from recap_client import types
from recap_client.calls import UNSET, Call, File, Unset, changed, given
from recap_client.listings import AsyncListing, Listing
from recap_client.streams import AsyncEventStream, AsyncStream, EventStream, Stream
'''
CLASS = '''
class {prefix}Operations(ABC):
    """Every call of Recap, for a client that sends it."""

    @abstractmethod
    {a}def send(self, call: Call) -> Any:
        """Return the answer to a call."""

    @abstractmethod
    def each(self, call: Call) -> {prefix}Listing[Any, Any]:
        """Return the items that a call lists."""

    @abstractmethod
    def open(self, call: Call) -> {prefix}Stream:
        """Return the reply that a call streams."""

    @abstractmethod
    def listen(self, call: Call) -> {prefix}EventStream:
        """Return the events that a call streams."""
'''


def python_operations(document: Schema) -> str:
    lines = [PREAMBLE]
    for prefix in ("", "Async"):
        lines.append(CLASS.format(prefix=prefix, a="async " if prefix else ""))
        lines += [line for call in operations(document) for line in python_method(call, prefix)]
    return formatted("\n".join(lines))


def python_method(call: Operation, prefix: str, streamed: bool = False) -> Iterator[str]:
    """Yield the lines of a method; `prefix` is that of the class."""
    awaited = "await " if prefix else ""
    name = call.name
    verb = "return self.send"
    result = "None" if call.result is None else PYTHON.write(call.result)
    if streamed:
        name = "stream"
        verb = "return self.open"
        result = f"{prefix}Stream"
        awaited = ""
    elif call.is_events:
        verb = "return self.listen"
        result = f"{prefix}EventStream"
        awaited = ""
    elif call.item:
        page = PYTHON.write(call.result or {})
        verb = "return self.each"
        result = f"{prefix}Listing[{PYTHON.write(call.item)}, {page}]"
        awaited = ""
    elif call.result is None:
        verb = "self.send"
    verb = verb.replace("self.", f"{awaited}self.")
    yield f"    {awaited and 'async '}def {name}({', '.join(python_parameters(call))}) -> {result}:"
    yield f'        """{described(call, streamed, has_fields=not (streamed or prefix))}"""'
    yield f"        {verb}(Call({', '.join(python_arguments(call, streamed))}))\n"
    if call.has_stream and not streamed:
        yield from python_method(call, prefix, streamed=True)


def python_parameters(call: Operation) -> list[str]:
    named = []
    for field in call.named:
        default = "Unset | None = UNSET" if call.resets(field) else "None = None"
        named.append(f"{field.name}: {PYTHON_INPUT.write({**field.schema, 'nullable': False})} | {default}")
    named += ["user_id: str | None = None"] if call.person else []
    named += ["idempotency_key: str | None = None"] if call.is_turn else []
    first = [
        f"{field.name}: {PYTHON_INPUT.write(field.schema)}{'' if field.is_required else ' = ()'}"
        for field in call.positional
    ]
    return ["self", *first, *(["*", *named] if named else []), *(["**more: Any"] if call.is_open else [])]


def python_arguments(call: Operation, streamed: bool) -> Iterator[str]:
    yield f"{call.method!r}, {call.path!r}"
    if call.ids:
        yield f"ids={{{', '.join(f'{field.name!r}: {field.name}' for field in call.ids)}}}"
    if call.fields or call.body is not None:
        yield f"{'query' if call.body is None else 'body'}={python_values(call, streamed)}"
    if call.is_upload:
        yield "file=file"
    if call.person:
        yield f"person={call.person!r}, user_id=user_id"
    if call.is_turn:
        yield "key=idempotency_key, is_turn=True"
    elif call.name == "add_messages":
        yield 'idempotent=all("external_id" in message for message in messages)'
    elif call.name in REPEATABLE:
        yield "idempotent=True"


def python_values(call: Operation, streamed: bool) -> str:
    """Return the query or the body: what is required, and of the rest what was given."""
    if call.is_whole:
        return "document"
    in_body = [field for field in call.positional if field in call.fields and field.schema.get("format") != "file"]
    required = [f'"{field.name}": {field.name}' for field in in_body]
    groups: dict[str, list[str]] = {"given": [], "changed": []}
    for field in call.named:
        groups["changed" if call.resets(field) else "given"].append(f"{field.name}={field.name}")
    parts = ['"stream": True'] * streamed + required
    parts += [f"**{name}({', '.join(values)})" for name, values in groups.items() if values] + ["**more"] * call.is_open
    is_one = len(parts) == 1 and parts[0].startswith("**")
    return parts[0].removeprefix("**") if is_one else f"{{{', '.join(parts)}}}"


def described(call: Operation, streamed: bool = False, has_fields: bool = True) -> str:
    """Return a docstring. has_fields: it says what the fields are about."""
    summary = "Send a message as `chat` does, and get the reply word by word" if streamed else call.spec["summary"]
    text = [] if streamed else call.spec.get("description", "").split("\n\n")
    fields = [field for field in (*call.positional, *call.named) if field.name not in WHOSE] if has_fields else []
    about = "\n".join(
        textwrap.fill(f"{field.name}: {field.about}", 110, subsequent_indent="    ") for field in fields if field.about
    )
    paragraphs = [textwrap.fill(" ".join(one.split()), 110) for one in (f"{summary}.", *text) if one]
    wrapped = "\n\n".join((*paragraphs, about) if about else paragraphs).replace("\\", "\\\\")
    return textwrap.indent(wrapped, " " * 8).strip() + ("\n        " if "\n" in wrapped else "")


def formatted(code: str) -> str:
    """Return code without the imports that it does not use, as ruff formats it."""
    for options in (["check", "--fix-only", "--select", "F,I,PIE,UP"], ["format"]):
        command = [sys.executable, "-m", "ruff", *options, "--line-length", "120", "-"]
        code = subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout  # nosec B603
    return code


def remark(field: Field) -> str:
    """Return what a field is about as a comment of JavaScript, as far as there is anything to say."""
    return f"/** {field.about} */ " if field.about and field.name not in WHOSE else ""


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def javascript(document: Schema) -> tuple[str, str]:
    """Return the code and the types."""
    code = [f"// A method for each call.\n// {HEADER}\n", "export class Operations {"]
    types = [f"// The JSON objects that calls take and answer, and a method for each call.\n// {HEADER}\n"]
    types += [
        'import type { EventStream, Listing, Stream } from "./index.js";\n',
        *typescript_types(document),
        "export declare class Operations {",
    ]
    for call in operations(document):
        for name in [camel(call.name), *(["stream"] if call.has_stream else [])]:
            streamed = name == "stream"
            names = [field.name for field in call.positional]
            named = [f"{remark(field)}{field.name}?: {JAVASCRIPT_INPUT.write(field.schema)}" for field in call.named]
            named += ["user_id?: string"] * (call.person is not None) + ["idempotency_key?: string"] * call.is_turn
            named += ["[more: string]: any"] * call.is_open
            parameters = [
                f"{field.name}{'' if field.is_required else '?'}: {JAVASCRIPT_INPUT.write(field.schema)}"
                for field in call.positional
            ]
            parameters += [f"options?: {{ {'; '.join(named)} }}"] if named else []
            result = f"Promise<{'undefined' if call.result is None else JAVASCRIPT.write(call.result)}>"
            result = "EventStream" if call.is_events else result
            if call.item:
                result = f"Listing<{JAVASCRIPT.write(call.item)}, {JAVASCRIPT.write(call.result or {})}>"
            elif streamed:
                result = "Stream"
            types.append(f"  /** {call.spec['summary']}. */\n  {name}({', '.join(parameters)}): {result};")
            code.append(f"  {name}({', '.join([*names, *(['options'] if named else [])])}) {{")
            verb = "_open" if streamed else "_listen" if call.is_events else "_each" if call.item else "_send"
            code.append(f"    return this.{verb}({{ {javascript_call(call, named)} }});\n  }}")
    return "\n".join([*code, "}", ""]), "\n".join([*types, "}", ""])


def javascript_call(call: Operation, named: list[str]) -> str:
    given = [field.name for field in call.positional if field not in call.ids and not call.is_whole]
    values = f"{{ {', '.join([*given, *(['...options'] if named else [])])} }}"
    parts = [f'method: "{call.method}", path: "{call.path}"']
    parts += [f"ids: {{ {', '.join(field.name for field in call.ids)} }}"] if call.ids else []
    parts += ["document"] if call.is_whole else []
    parts += [f"{'query' if call.body is None or call.is_whole else 'body'}: {values}"] if given or named else []
    parts += [f'person: "{call.person}"'] if call.person else []
    parts += ["turn: true"] if call.is_turn else []
    parts += ["form: true"] if call.is_upload else []
    parts += ["repeatable: true"] if call.name in REPEATABLE else []
    if call.name == "add_messages":
        parts.append("repeatable: messages.every((message) => message.external_id !== undefined)")
    return ", ".join(parts)


def generated() -> dict[Path, str]:
    """Return the content of every file."""
    document = api.document(VERSION)
    code, types = javascript(document)
    return {
        HERE / "python/recap_client/types.py": python_types(document),
        HERE / "python/recap_client/operations.py": python_operations(document),
        HERE / "js/operations.js": code,
        HERE / "js/operations.d.ts": types,
    }


if __name__ == "__main__":
    for path, text in generated().items():
        path.write_text(text, "utf-8")
