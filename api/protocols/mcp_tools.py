"""Tools of MCP: what each takes, shows and does."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from apispec import APISpec
from apispec.ext.marshmallow import OpenAPIConverter
from marshmallow import Schema, ValidationError, validate, validates_schema
from mcp_types import Tool, ToolAnnotations

from memory import documents, tokens
from memory.engine import Engine
from memory.erasing import erasing
from memory.errors import InvalidRequest, NotFound
from memory.knowledge import facts as knowledge
from memory.knowledge.rules import get as get_rules
from memory.knowledge.rules import put as put_rules
from memory.paging import slice_page
from memory.passages import passages
from memory.quoting import message_lines, normalize, one_line
from memory.recall.search import corrections_beside, search_memory
from memory.turn.memory_block import memory_block
from memory.turn.request import TurnRequest
from memory.users import get_user_info
from models.keys import ADMIN, READ
from models.messages import Message
from models.owners import Caller
from schemas import facts, fields, rules, sessions
from schemas.errors import flat
from schemas.facts import CATEGORY, FACT_CATEGORIES, TEXT_CHARS_MAX
from schemas.fields import ID_CHARS
from schemas.shapes import Input, Receipt, page_of

LEFT_OUT = "[left out: a model server refused this message]"

_TEXT = validate.Length(1, TEXT_CHARS_MAX)
# Clients compile it as ECMA-262 does, so it says nothing that Python alone understands.
_PLACE = fields.Pattern(rf"^{ID_CHARS}(/[0-9]{{1,18}})?$", error="Must be an id that a tool has shown.")
_STRING = {"type": "string"}
_CATEGORY = f"One of {', '.join(FACT_CATEGORIES)}, or one of the person's own."


class ToolPage(Input):
    cursor = fields.Text(load_default=None, about="`next_cursor` of the previous answer.")
    limit = fields.limit(10, 50)


class Words(ToolPage):
    query = fields.text(1, 2000, required=True, about="Words of what you look for.")


class MessageWords(Words):
    after = fields.UtcDateTime(load_default=None, about="Said at this time or later.")
    before = fields.UtcDateTime(load_default=None, about="Said before this time.")


class MemoryId(Input):
    id = fields.integer(1, required=True, about="The `id` of a memory, as another tool shows it.")


class MemoryVersions(ToolPage, MemoryId):
    pass


class NewMemory(Input):
    text = fields.Text(
        required=True, validate=_TEXT, about="One short statement, such as `The user is allergic to walnuts`."
    )
    quote = fields.Text(required=True, validate=_TEXT, about="The person's own words that the text rests on.")
    category = fields.Text(load_default="other", validate=CATEGORY, about=_CATEGORY)
    importance = fields.integer(1, 5, load_default=3, about="5: needed in nearly every conversation.")


class MemoryChange(MemoryId):
    text = fields.Text(validate=_TEXT, about="What is true from now on.")
    quote = fields.Text(validate=_TEXT, about="The person's own words that the new text rests on.")
    category = fields.Text(validate=CATEGORY, about=_CATEGORY)
    importance = fields.integer(1, 5)

    @validates_schema
    def _quoted(self, data: dict[str, Any], **_: Any) -> None:
        if ("text" in data) != ("quote" in data):
            raise ValidationError("A new text needs the quote that it rests on, and a quote its text.", "quote")


class Topic(Input):
    topic = fields.text(
        1, rules.TOPIC_CHARS, required=True, about="What to keep out, in the person's words, as `health`."
    )


class RecalledMessage(Input):
    message = fields.Text(required=True, about="What the person says, in their own words.")
    timezone = fields.TimeZone(
        load_default=None,
        about='The zone of words like "yesterday", as Europe/Tallinn; if left out, that of their latest conversation.',
    )


class Place(ToolPage):
    id = fields.Text(required=True, validate=_PLACE, about="An `id` that search or recent_chats has shown.")


# -- answers


def _line(message: Message, tokens_max: int) -> str:
    """Return a message as prompts quote it, cut off after so many tokens. In JSON they may become six times as many.

    A refused message is named without its words, since a model reads the line.
    """
    text = tokens.truncate(message.content, tokens_max) if message.refused is None else LEFT_OUT
    return next(message_lines([message._replace(content=text)]))


_CORRECTIONS = fields.List(
    fields.Nested(facts.Fact(only=("id", "text", "valid_from"))),
    about="Memories that hold now in place of what `text` says.",
)


class Found(Schema):
    id = fields.Function(lambda hit: f"{hit.message.session_id}/{hit.message.id}", metadata=_STRING)
    kind = fields.String(about="`message`, or `document` for a passage of a file that was added.")
    title = fields.String()
    url = fields.Function(lambda hit: place_uri(hit.message), metadata=_STRING)
    text = fields.Function(lambda hit: _line(hit.message, 150), metadata=_STRING)
    corrections = _CORRECTIONS


class Results(Schema):
    results = fields.List(fields.Nested(Found), attribute="items")
    next_cursor = fields.String(allow_none=True)


class Conversation(Schema):
    id = fields.String()
    title = fields.String()
    url = fields.String()
    text = fields.Function(
        lambda shown: "\n".join(_line(message, 900) for message in shown["page"].items), metadata=_STRING
    )
    corrections = _CORRECTIONS
    next_cursor = fields.String(attribute="page.next_cursor", allow_none=True)


def place_uri(message: Message) -> str:
    """Return where a message stands: its session; of a passage, where its document is from."""
    if not message.is_passage:
        return session_uri(message.session_id)
    return document_uri(message.session_id, (message.extra or {}).get("uri"))


def document_uri(document_id: str, uri: str | None) -> str:
    return uri or f"recap://documents/{document_id}"


def session_uri(session_id: str) -> str:
    """Return the address of a session; its summary is a resource below it."""
    return f"recap://sessions/{quote(session_id, safe='')}"


Run = Callable[[Engine, Caller, dict[str, Any]], Any]
Question = Callable[[Engine, Caller, dict[str, Any]], str]


TOKENS_MAX = 6_000  # of an answer: clients warn of, or cut off, answers of 10,000
FOUND_MAX = 100  # messages that one search finds
_SHOWN = ("id", "text", "category", "importance", "pinned", "session_id", "valid_from", "waiting")
MEMORY = facts.Fact(only=_SHOWN)
RULES = rules.RulesVersion(only=("version", "rules.topics"))
MEMORIES = page_of(facts.Fact)(only=("next_cursor", *(f"items.{name}" for name in _SHOWN)))
CHATS = page_of(sessions.Session)(only=("next_cursor", "items.id", "items.title", "items.updated_at"))


@dataclass(frozen=True)
class Entry:
    """Tool as it is listed, the schemas of its arguments and answer, the scope that it needs, and its function.

    question: to which the person themself has to say yes before the tool runs. reads_others: beside its arguments it
    gets the owners whose memory a turn would read, too, as `also`.
    """

    tool: Tool
    takes: Schema
    shows: Schema | None  # None: text that is ready for a prompt
    scope: str
    run: Run
    question: Question | None
    reads_others: bool

    def call(self, engine: Engine, caller: Caller, arguments: dict[str, Any], **more: Any) -> tuple[str, Any]:
        """Return the answer as text, JSON or ready for a prompt, and as data if it is data. Raises RecapError.

        A page that is too long for a model is read again with half as many items.
        """
        params = self.load(arguments)
        while True:
            answer = self.run(engine, caller, params | more)
            text = answer
            if self.shows is not None:  # as JSON without invisible characters, in which no text opens or closes markup
                text = normalize(json.dumps(self.shows.dump(answer), ensure_ascii=False, separators=(",", ":")))
                text = text.replace("\n", "\\n").replace("<", "\\u003c")
            if tokens.estimate(text) <= TOKENS_MAX or params.get("limit", 1) == 1:
                return text, None if self.shows is None else json.loads(text)
            params["limit"] //= 2

    def load(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments. Raises InvalidRequest."""
        try:
            params: dict[str, Any] = self.takes.load(arguments)
        except ValidationError as error:
            wrong = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in flat(error.messages).items())
            raise InvalidRequest("invalid_arguments", f"Nothing was done. Wrong arguments: {wrong}") from None
        return params


TOOLS: dict[str, Entry] = {}


# From version 3.1 on, OpenAPI's schemas are JSON Schema. Nested ones are written out: some clients know no $ref.
_json_schema = OpenAPIConverter("3.1.0", lambda _: None, APISpec("tools", "1", "3.1.0")).schema2jsonschema


def _input_schema(takes: Schema) -> dict[str, Any]:
    """Return the schema of arguments. An optional one is left out, never null: Gemini knows one type for each."""
    schema: dict[str, Any] = _json_schema(takes)
    for field in schema["properties"].values():
        if isinstance(field["type"], list):
            field["type"] = field["type"][0]
            del field["default"]
            if "enum" in field:
                field["enum"].remove(None)
    return schema


def _output_schema(shows: Schema) -> dict[str, Any]:
    """Return the schema of an answer, which has every field but those that only sometimes apply."""
    schema: dict[str, Any] = _json_schema(shows)
    for place in (schema, *(field.get("items", {}) for field in schema["properties"].values())):
        if "properties" in place:
            each = place["properties"].items()
            place["required"] = [name for name, field in each if not field.pop("x-optional", False)]
    return schema


def _tool(
    takes: Schema,
    shows: Schema | None,
    scope: str = READ,
    *,
    destroys: bool = False,
    question: Question | None = None,
    reads_others: bool = False,
) -> Callable[[Run], Run]:
    def add(run: Run) -> Run:
        title, _, description = (run.__doc__ or "").partition("\n\n")
        hints = ToolAnnotations(read_only_hint=scope == READ, destructive_hint=destroys, open_world_hint=False)
        texts = {"name": run.__name__, "title": title, "description": " ".join(description.split())}
        output_schema = _output_schema(shows) if shows is not None else None
        tool = Tool(**texts, input_schema=_input_schema(takes), output_schema=output_schema, annotations=hints)
        TOOLS[tool.name] = Entry(tool, takes, shows, scope, run, question, reads_others)
        return run

    return add


@_tool(NewMemory(), MEMORY, ADMIN)
def add_memory(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Remember a fact about the person

    Use it when the person tells something that will matter in later conversations, or asks you to remember it. `text`
    may say only what the `quote` says: numbers, names and negations are compared. What is known already is answered
    with the memory that says it.
    """
    return knowledge.add_quoted(engine, caller, **params)


@_tool(Words(), MEMORIES)
def search_memories(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Search what is known about the person

    Finds the facts that are nearest to `query` in words and meaning, best first. Use it before you answer what depends
    on the person: their preferences, plans, work or family. To find what was said word for word, use `search`.
    """
    return slice_page(knowledge.search(engine, caller, params["query"]), params["cursor"], params["limit"])


@_tool(facts.FactQuery(only=("q", "category", "as_of", "state", "cursor", "limit")), MEMORIES)
def get_memories(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """List what is known about the person

    Facts that are true now, newest first.
    """
    return knowledge.page(engine, caller, **params)


@_tool(MemoryVersions(), page_of(facts.FactRevision)())
def get_memory(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Read one memory and how it changed

    Each version of the memory, and of those that it corrected, newest first.
    """
    return slice_page(knowledge.history(engine, caller, params["id"])[::-1], params["cursor"], params["limit"])


@_tool(MemoryChange(), MEMORY, ADMIN, destroys=True)
def update_memory(engine: Engine, caller: Caller, changes: dict[str, Any]) -> Any:
    """Correct a memory

    Use it when the person says that something known about them has changed or was wrong. Earlier versions are kept.
    """
    fact_id = changes.pop("id")
    if "text" in changes:
        return knowledge.change_quoted(engine, caller, fact_id, **changes)
    return knowledge.change(engine, caller, fact_id, changes)


@_tool(MemoryId(), Receipt(only=("fact_id", "erased_at")), ADMIN, destroys=True)
def delete_memory(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Forget a memory for good

    Use it only when the person asks for it. The memory is erased with its history; messages stay.
    """
    return erasing.erase_fact(engine, caller, params["id"])


@_tool(RecalledMessage(), None, reads_others=True)
def recall(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Recall what matters for a message of the person

    A block that is ready for a prompt: instructions, profile, facts, and excerpts of earlier conversations that the
    message brings back. Use it at the start of a conversation.
    """
    block = memory_block(engine, TurnRequest(caller, **params, block_tokens=TOKENS_MAX, temporary=True))
    return block.text or "Nothing is remembered."


@_tool(sessions.SessionQuery(only=("q", "after", "before", "cursor", "limit")), CHATS)
def recent_chats(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """List the person's latest conversations

    Newest first. Use it when the person speaks of a time (yesterday, last week) rather than a topic. `fetch` reads one.
    """
    return engine.sessions.page(caller, **params)


@_tool(MessageWords(), Results())
def search(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Search what was said in earlier conversations, and the documents that were added

    Finds messages and passages by their words and meaning, best first, each as a snippet. Use words that were probably
    said: names, things, numbers. `fetch` with the `id` of a result reads what stands around it. `corrections` of a
    result are true now, in place of what it says.
    """
    period = {"after": params["after"], "before": params["before"]}
    hits = search_memory(engine, caller, engine.now(), text=params["query"], limit=FOUND_MAX, **period)
    return slice_page(hits, params["cursor"], params["limit"])


@_tool(Place(), Conversation())
def fetch(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Read a conversation or a document, or what stands around one message or passage

    Takes the `id` of a result of `search` or of a conversation of `recent_chats`. With `cursor` it reads on.
    `corrections` are true now, in place of what the text says.
    """
    session_id, _, message_id = params["id"].partition("/")
    limit, cursor = params["limit"], params["cursor"]
    around = int(message_id) if message_id and cursor is None else None
    document = None
    with suppress(NotFound):
        document = documents.get_document(engine, caller, session_id)
    if document is not None:
        page = passages.read_passages(engine, caller, session_id, cursor, limit, around)
        url = document_uri(document.id, document.uri)
        return {"id": params["id"], "title": document.title, "url": url, "page": page, "corrections": ()}
    title = engine.sessions.get(caller, session_id).title
    url = session_uri(session_id)
    if around is not None:
        messages = engine.sessions.messages_around(caller, session_id, around, limit)
    else:
        messages = engine.sessions.messages(caller, session_id, cursor=cursor, limit=limit)
    corrections = corrections_beside(engine, caller, session_id, messages.items)
    return {"id": params["id"], "title": title, "url": url, "page": messages, "corrections": corrections}


@_tool(Topic(), RULES, ADMIN)
def keep_out(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Keep a topic out of memory from now on

    Use it when the person asks never to remember anything about a topic. What is known already stays: they close it on
    Recap's page, or `delete_memory` forgets it.
    """
    stored = get_rules(engine, caller)
    topics = tuple(dict.fromkeys((*stored.value.topics, params["topic"])))
    if len(topics) > rules.TOPICS_MAX:
        text = f"Nothing was done: {rules.TOPICS_MAX} topics are kept out, and no more can be. `Rules` on Recap's page"
        raise InvalidRequest("invalid_arguments", f"{text} takes one away.")
    return put_rules(engine, caller, replace(stored.value, topics=topics), stored.version, close=False)


def _waiting(engine: Engine, caller: Caller, params: dict[str, Any]) -> str:
    fact = knowledge.get(engine, caller, params["id"])
    text = one_line(fact.text) if fact.waiting else "nothing, since it does not wait"
    return f'Remember this from now on: "{text}"?'


@_tool(MemoryId(), facts.ReviewedFacts(), ADMIN, question=_waiting)
def accept_memory(engine: Engine, caller: Caller, params: dict[str, Any]) -> Any:
    """Accept a memory that waits for the person's review

    `get_memories` with the state `waiting` lists them. The client shows the person its text first, and nothing is
    accepted unless they agree. To refuse one, use `delete_memory`.
    """
    return knowledge.review(engine, caller, [params["id"]], ())


def _count(engine: Engine, caller: Caller, _: dict[str, Any]) -> str:
    known = get_user_info(engine, caller)
    return (
        f'Erase everything that Recap remembers of "{known["space"] or known["user_id"]}"? That is {known["facts"]} '
        f"facts and {known['messages']} messages in {known['sessions']} conversations, with every summary and the "
        "profile. This can't be undone."
    )


@_tool(Input(), Receipt(only=("erased", "pending", "erased_at")), ADMIN, destroys=True, question=_count)
def forget_all(engine: Engine, caller: Caller, _: dict[str, Any]) -> Any:
    """Forget the person, or the space, completely

    Erases every fact, conversation, summary and the profile. Use it only when the person asks for exactly this; to
    forget one thing, use `delete_memory`. The client asks the person first, and nothing happens unless they agree.
    """
    return erasing.erase_user(engine, caller)
