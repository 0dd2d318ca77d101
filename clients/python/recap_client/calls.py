"""The calls of Recap, each described once, for plain and for async programs.

What is None is not sent: the server's defaults hold.  Times are texts such as `2026-05-01` or `2026-05-01T12:00:00Z`.
Answers are JSON objects as the server's `/docs` has them.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar, Unpack

Values = Mapping[str, Any]
Role = Literal["user", "assistant", "system", "tool"]
Answer = TypeVar("Answer")
Listing = TypeVar("Listing")
Streamed = TypeVar("Streamed")

SESSIONS = "/api/sessions"
SESSION = f"{SESSIONS}/{{session_id}}"
MESSAGES = f"{SESSION}/messages"
FACTS = "/api/facts"
FACT = f"{FACTS}/{{fact_id}}"
ITEMS = "/api/store/items"
PROFILE = "/api/users/{user_id}/profile"


@dataclass(frozen=True)
class Call:
    """A call.  `path` is that of the OpenAPI document, `ids` has the values of its parameters in braces."""

    method: str
    path: str
    ids: Values = field(default_factory=dict)
    query: Values = field(default_factory=dict)
    body: Values | None = None
    key: str | None = None  # the Idempotency-Key of a turn: sent twice, it gets its first answer again
    idempotent: bool = False  # sent twice, it does what it does once

    @property
    def is_repeatable(self) -> bool:
        """Return whether the call may be sent again when nobody knows what became of it."""
        return self.idempotent or self.method == "GET" or self.key is not None


class HistoryMessage(TypedDict):
    role: Literal["user", "assistant"]
    content: str


class NewMessage(TypedDict):
    role: Role
    content: str
    name: NotRequired[str]
    created_at: NotRequired[str]
    external_id: NotRequired[str]
    extra: NotRequired[dict[str, Any]]


class ChatOptions(TypedDict, total=False):
    session_id: str
    name: str
    recall: Literal["auto", "always", "tools", "off"]
    model: str
    remember: bool
    timezone: str
    prompt: str
    system_prompt: str
    temporary: bool
    history: Sequence[HistoryMessage]
    replaces: int
    idempotency_key: str


class SearchOptions(TypedDict, total=False):
    session_id: str | None
    after: str | None
    before: str | None
    role: Role | None
    kind: Literal["message", "summary", "fact"]
    limit: int
    window: int


class Calls(ABC, Generic[Answer, Listing, Streamed]):
    """A method for each call.  An Answer is a JSON object, a Listing is an iterator of them, or they are async."""

    @abstractmethod
    def send(self, call: Call) -> Answer:
        """Return the answer to a call."""

    @abstractmethod
    def each(self, call: Call) -> Listing:
        """Return the items of a listing, page by page."""

    @abstractmethod
    def open(self, call: Call) -> Streamed:
        """Return the stream that a call answers."""

    def chat(self, message: str, **options: Unpack[ChatOptions]) -> Answer:
        """Send a message and get the reply.  A session that does not exist is made.

        A call with the `idempotency_key` of an earlier one gets its answer again.  Without one, each call has its own.
        """
        return self.send(_turn({"message": message, **options}))

    def stream(self, message: str, **options: Unpack[ChatOptions]) -> Streamed:
        """Send a message as `chat` does and get the reply word by word."""
        return self.open(_turn({"message": message, "stream": True, **options}))

    def recall(
        self,
        message: str,
        *,
        session_id: str | None = None,
        tokens: int | None = None,
        history: Sequence[HistoryMessage] = (),
    ) -> Answer:
        """Return the memory for a prompt, as `block`, for a program that calls its own model."""
        body = _given(message=message, session_id=session_id, tokens=tokens, history=history)
        return self.send(Call("POST", "/api/recall", body=body, idempotent=True))

    # -- sessions and messages

    def sessions(
        self, *, q: str | None = None, archived: bool | None = None, before: str | None = None, after: str | None = None
    ) -> Listing:
        """Return the sessions, newest first; with `q`, those with its words in their titles."""
        return self.each(_listing(SESSIONS, q=q, archived=archived, before=before, after=after))

    def session(self, session_id: str) -> Answer:
        """Return a session.  Raises NotFound."""
        return self.send(Call("GET", SESSION, {"session_id": session_id}))

    def change_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        system_prompt: str | None = None,
        pinned: bool | None = None,
        archived: bool | None = None,
    ) -> Answer:
        """Rename, pin or archive a session, or set its system prompt."""
        change = _given(title=title, system_prompt=system_prompt, pinned=pinned, archived=archived)
        return self.send(Call("PATCH", SESSION, {"session_id": session_id}, body=change, idempotent=True))

    def erase_session(self, session_id: str) -> Answer:
        """Erase a session with its messages, summaries and facts, for good."""
        return self.send(Call("DELETE", SESSION, {"session_id": session_id}))

    def messages(self, session_id: str, *, order: Literal["asc", "desc"] = "asc") -> Listing:
        """Return the messages of a session, word for word."""
        return self.each(_listing(MESSAGES, {"session_id": session_id}, order=order))

    def add_messages(self, session_id: str, messages: Sequence[NewMessage]) -> Answer:
        """Append up to 1,000 messages without calling a model: all of them or none.

        A message whose `external_id` the session has already is left as it is.
        """
        known = all("external_id" in message for message in messages)
        ids, body = {"session_id": session_id}, {"messages": messages}
        return self.send(Call("POST", MESSAGES, ids, body=body, idempotent=known))

    def erase_message(self, session_id: str, message_id: int) -> Answer:
        """Erase a message with the facts taken from it, for good."""
        ids = {"session_id": session_id, "message_id": message_id}
        return self.send(Call("DELETE", f"{MESSAGES}/{{message_id}}", ids))

    # -- facts and search

    def facts(
        self,
        *,
        session_id: str | None = None,
        q: str | None = None,
        category: str | None = None,
        as_of: str | None = None,
    ) -> Listing:
        """Return the facts that are true now, or were at `as_of`."""
        return self.each(_listing(FACTS, session_id=session_id, q=q, category=category, as_of=as_of))

    def add_fact(
        self, text: str, *, session_id: str | None = None, category: str = "other", importance: int = 3
    ) -> Answer:
        """Add a fact, to one session or to all sessions of the person."""
        body = _given(text=text, session_id=session_id, category=category, importance=importance)
        return self.send(Call("POST", FACTS, body=body))

    def change_fact(
        self,
        fact_id: int,
        *,
        text: str | None = None,
        category: str | None = None,
        importance: int | None = None,
        pinned: bool | None = None,
    ) -> Answer:
        """Edit or pin a fact."""
        change = _given(text=text, category=category, importance=importance, pinned=pinned)
        return self.send(Call("PATCH", FACT, {"fact_id": fact_id}, body=change, idempotent=True))

    def forget_fact(self, fact_id: int, *, restore: bool = False) -> Answer:
        """Forget a fact, with its history.  With `restore`, the facts that it corrected are true again."""
        return self.send(Call("DELETE", FACT, {"fact_id": fact_id}, {"restore": restore}))

    def search(self, q: str, **options: Unpack[SearchOptions]) -> Answer:
        """Find past messages, the best first, with `window` messages around each.

        `q` may have "phrases" and -exclusions.
        """
        query = {"q": q, **_given(**options)}
        return self.send(Call("GET", "/api/search", query=query))

    # -- the store

    def put_item(
        self,
        namespace: Sequence[str],
        key: str,
        value: Any,
        *,
        ttl: float | None = None,
        index: Sequence[str] | None = None,
    ) -> Answer:
        """Store a JSON value, for `ttl` minutes, in the place of an item with the same name.

        index: the paths that queries look at in this value, such as `notes[*].text`; none of them: nowhere.
        """
        body = {"namespace": namespace, "key": key, "value": value, "ttl": ttl, "index": index}
        return self.send(Call("PUT", ITEMS, body=body, idempotent=True))

    def get_item(self, namespace: Sequence[str], key: str) -> Answer:
        """Read an item.  Raises NotFound."""
        return self.send(Call("GET", ITEMS, query={"namespace": ".".join(namespace), "key": key}))

    def delete_item(self, namespace: Sequence[str], key: str) -> Answer:
        """Erase an item, for good."""
        return self.send(Call("DELETE", ITEMS, query={"namespace": ".".join(namespace), "key": key}))

    def search_items(
        self, namespace: Sequence[str] = (), *, query: str | None = None, filter: Values | None = None, limit: int = 10
    ) -> Answer:
        """Find items in a namespace and below it: newest first, or the best for a query."""
        body = _given(namespace_prefix=namespace, query=query, filter=filter, limit=limit)
        return self.send(Call("POST", "/api/store/search", body=body, idempotent=True))

    def batch(self, operations: Sequence[Values]) -> Answer:
        """Run up to 1,000 operations of the store in one transaction: `{"op": "put", "namespace": ..., ...}`."""
        return self.send(Call("POST", "/api/store/batch", body={"operations": operations}))

    # -- a person

    def profile(self, *, as_of: str | None = None) -> Answer:
        """Return the profile of the client's person, now or at a time.  Raises NotFound where nothing is stored."""
        return self.send(Call("GET", PROFILE, query=_given(as_of=as_of)))

    def edit_profile(self, patch: Sequence[Values], *, expected_version: int | None = None) -> Answer:
        """Edit the profile by a JSON Patch (RFC 6902).  Raises Conflict when it is not of the expected version."""
        return self.send(Call("PATCH", PROFILE, body=_given(patch=patch, expected_version=expected_version)))

    def give_feedback(
        self, session_id: str, message_id: int, *, thumbs: Literal["up", "down"] | None = None, text: str = ""
    ) -> Answer:
        """Say what a person thinks of a reply, in the place of what they thought before."""
        body = {"session_id": session_id, "message_id": message_id, "thumbs": thumbs, "text": text}
        return self.send(Call("POST", "/api/feedback", body=body, idempotent=True))


def _given(**values: Any) -> Values:
    return {name: value for name, value in values.items() if value is not None}


def _listing(path: str, ids: Values | None = None, **query: Any) -> Call:
    return Call("GET", path, ids or {}, _given(limit=100, **query))


def _turn(body: dict[str, Any]) -> Call:
    key = body.pop("idempotency_key", None) or str(uuid.uuid4())
    return Call("POST", "/api/chat", body=body, key=key)
