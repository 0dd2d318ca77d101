"""Owners are apart: what is another's looks like what is not there, in every call of the OpenAPI document.

Each call is made with one id in it exchanged, for one of somebody else's and for one that nobody has.  The two must
have the same status, words and headers, and cost the same SQL statements: neither what is said nor the work done for it
may tell whether somebody has such a thing.  With ids of the caller's own the same calls have to succeed.

The others are another tenant's, another person of the same tenant's where both have keys of their own, one of these
whose sessions have the same ids, and another space's where both have a key of one space: there the same calls name a
space in the place of the person.  A new call, or a new field for an id, fails here until it is in the table.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, NamedTuple

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.identity import PERSON_HEADERS
from api.protocols.client_requests import SESSION_HEADERS
from app import engine_of
from memory.erasing import retention
from models.owners import Caller
from models.retention import Policy
from tests.application import an_app, statements
from tests.http import Body, append, good, listings, read_all, said
from tests.test_auth import METHODS, with_key

SECRET = "sencha"  # of all that the other said
WALKED = ("tenants", "persons", "spaces")


@dataclass(frozen=True)
class Id:
    """In a request: the id of something that belongs to somebody."""

    of: str


OF = ("session", "message", "fact", "document", "example", "mark", "archive", "job", "webhook", "user", "prompt")
SESSION, MESSAGE, FACT, DOCUMENT, EXAMPLE, MARK, ARCHIVE, JOB, WEBHOOK, USER, PROMPT = map(Id, OF)
HIT = Id("hit")  # a message that was said before
RESPONSE, CONVERSATION = Id("response"), Id("conversation")


@dataclass(frozen=True)
class Request:
    """A call that succeeds when each Id in it is the caller's own.

    `makes` are the fields whose things are made where there are none, `lists` those that narrow a list, or name things
    that are passed over when they are not there.
    """

    query: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    makes: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()


NO_IDS = Request()
BY_USER = Request(query={"user_id": USER})
ITEM = {"namespace": ["notes"], "key": "drink"}
HOOK = "http://127.0.0.1:9/"  # where nobody listens
TO_HOOK = {"encryption_key": Fernet.generate_key().decode(), "webhook_networks": (ip_network("127.0.0.1"),)}
MEMORIES = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_memories"}}
HELLO = [{"role": "user", "content": "Hello there"}]
MESSAGES = {"model": "any", "max_tokens": 9, "messages": HELLO}
JUDGED = {"user_id": USER, "session_id": SESSION, "message_id": MESSAGE}


def listing(*names: str, **query: Any) -> Request:
    return Request(query=query, lists=frozenset(names))


def sends(makes: str = "", lists: str = "", headers: Mapping[str, Any] | None = None, **body: Any) -> Request:
    """A request with a body; `makes` and `lists` are names of fields."""
    return Request(json=body, headers=headers or {}, makes=frozenset(makes.split()), lists=frozenset(lists.split()))


def openai(headers: Mapping[str, Any] | None = None, makes: str = "", **body: Any) -> Request:
    return sends(makes, headers=headers, **{"model": "any", "messages": HELLO, **body})


# What is in a path is added from there: `{session_id}` is a session's id.
IN_PATHS = {f"{of}_id": Id(of) for of in (*OF[:-1], "response", "conversation", "item")} | {"name": PROMPT}
# What fields for ids are called.
IDS = IN_PATHS.keys() - {"name"} | {"around", "replaces", "ids", "hits", "previous_response_id", "accepted", "refused"}
IDS |= {"conversation"}

TABLE: dict[str, tuple[Request, ...]] = {
    "GET /api/retention": (NO_IDS,),
    "PUT /api/retention": (Request(json={"days": 365}),),
    "GET /api/archives": (listing("user_id", user_id=USER), listing("session_id", session_id=SESSION)),
    "GET /api/archives/{archive_id}": (BY_USER,),
    "POST /api/archives/{archive_id}/restore": (BY_USER,),
    "DELETE /api/archives/{archive_id}": (BY_USER,),
    "GET /api/conversation-types": (listing("user_id", user_id=USER),),
    "GET /api/conversation-types/{conversation_type}": (BY_USER,),
    "PUT /api/conversation-types/{conversation_type}": (sends("user_id", prompt="Mine now", user_id=USER),),
    "DELETE /api/conversation-types/{conversation_type}": (BY_USER,),
    "GET /api/instructions": (listing("user_id", user_id=USER),),
    "GET /api/instructions/{instruction}": (BY_USER,),
    "POST /api/instructions/{instruction}/proposal": (sends(user_id=USER, accept=True),),
    "POST /api/instructions/{instruction}/rollback": (sends(user_id=USER, version=1),),
    "GET /api/instructions/{instruction}/versions": (BY_USER,),
    "PUT /api/instructions/{instruction}": (sends("user_id", text="Mine now", user_id=USER),),
    "DELETE /api/instructions/{instruction}": (BY_USER,),
    "POST /api/feedback": (sends(**JUDGED, thumbs="up"),),  # before a chat replaces the message
    "GET /api/examples": (listing("user_id", user_id=USER), Request(query={"user_id": USER, "session_id": SESSION})),
    "POST /api/examples": (  # before a chat replaces the message
        sends("user_id", user_id=USER, input="Mine", output="now"),
        sends(**JUDGED),
    ),
    "DELETE /api/examples/{example_id}": (BY_USER,),
    "GET /api/recall/unhelpful": (
        listing("user_id", user_id=USER),
        Request(query={"user_id": USER, "session_id": SESSION}),
        listing("user_id", "message_id", user_id=USER, message_id=MESSAGE),
    ),
    "POST /api/recall/unhelpful": (sends(**JUDGED, hits=[HIT]),),
    "DELETE /api/recall/unhelpful/{mark_id}": (BY_USER,),
    "POST /v1/responses": (  # before a chat replaces the message
        sends(input="Hello there", previous_response_id=RESPONSE, user=USER),
        sends("X-Session-Id", headers={"X-Session-Id": SESSION}, input="Hello there"),
        *(sends(name, input="Hello there", **{name: USER}) for name in ("user", "safety_identifier")),
        sends(input="Hello there", conversation=CONVERSATION),
    ),
    "POST /v1/responses/input_tokens": (  # which looks nothing up
        sends(lists="conversation", input="Hello there", conversation=CONVERSATION),
        sends(lists="previous_response_id", input="Hello there", previous_response_id=RESPONSE),
    ),
    "GET /v1/responses/{response_id}": (NO_IDS,),
    "GET /v1/responses/{response_id}/input_items": (NO_IDS,),
    "DELETE /v1/responses/{response_id}": (NO_IDS,),
    "POST /v1/conversations": (*(sends(name, **{name: USER}) for name in ("user", "safety_identifier")),),
    "GET /v1/conversations/{conversation_id}": (NO_IDS,),
    "POST /v1/conversations/{conversation_id}": (sends(metadata={"mine": "now"}),),
    "DELETE /v1/conversations/{conversation_id}": (NO_IDS,),
    "GET /v1/conversations/{conversation_id}/items": (NO_IDS, Request(query={"after": Id("item")})),
    "POST /v1/conversations/{conversation_id}/items": (sends(items=HELLO),),
    "GET /v1/conversations/{conversation_id}/items/{item_id}": (NO_IDS,),
    "DELETE /v1/conversations/{conversation_id}/items/{item_id}": (NO_IDS,),
    "POST /api/chat": (
        sends("session_id user_id", message="Hello there", session_id=SESSION, user_id=USER),
        sends(message="Hello", session_id=SESSION, user_id=USER, temporary=True),
        sends(message="Hello", session_id=SESSION, replaces=MESSAGE, user_id=USER),
    ),
    "GET /api/sessions": (listing("user_id", user_id=USER),),
    "POST /api/sessions": (
        sends("user_id", user_id=USER),
        sends("session_id user_id", session_id=Id("new session"), user_id=USER),
    ),
    "GET /api/sessions/{session_id}": (BY_USER,),
    "PATCH /api/sessions/{session_id}": (Request(query={"user_id": USER}, json={"title": "Mine now"}),),
    "DELETE /api/sessions/{session_id}": (BY_USER,),
    "GET /api/sessions/{session_id}/messages": (BY_USER, Request(query={"user_id": USER, "around": MESSAGE})),
    "POST /api/sessions/{session_id}/messages": (sends("session_id user_id", user_id=USER, messages=HELLO),),
    "DELETE /api/sessions/{session_id}/messages/{message_id}": (BY_USER,),
    "POST /api/sessions/{session_id}/messages/hide": (
        sends(user_id=USER, tokens=0),
        sends(user_id=USER, ids=[MESSAGE]),
    ),
    "POST /api/sessions/{session_id}/messages/show": (sends(user_id=USER), sends(user_id=USER, ids=[MESSAGE])),
    "GET /api/sessions/{session_id}/messages/versions": (BY_USER,),
    "POST /api/sessions/{session_id}/messages/{message_id}/restore": (BY_USER,),
    "POST /api/sessions/{session_id}/stop": (BY_USER,),
    "GET /api/sessions/{session_id}/related": (BY_USER,),
    "GET /api/sessions/{session_id}/turns": (BY_USER,),
    "GET /api/sessions/{session_id}/turns/{message_id}": (BY_USER,),
    "GET /api/sessions/{session_id}/summary": (BY_USER,),
    "PUT /api/sessions/{session_id}/summary": (sends(user_id=USER, sections={"topic": "Mine now"}),),
    "GET /api/sessions/{session_id}/summary/versions": (BY_USER,),
    "POST /api/sessions/{session_id}/summary/rollback": (sends(user_id=USER, version=1),),
    "POST /api/sessions/{session_id}/summary/refresh": (BY_USER,),
    "POST /api/sessions/{session_id}/summary/preview": (sends(user_id=USER, prompt="summary"),),
    "GET /api/facts": (listing("user_id", user_id=USER), Request(query={"user_id": USER, "session_id": SESSION})),
    "POST /api/facts": (
        sends("user_id", user_id=USER, text="Mine now"),
        sends(user_id=USER, session_id=SESSION, text="Mine now"),
    ),
    "GET /api/facts/{fact_id}": (BY_USER,),
    "PATCH /api/facts/{fact_id}": (Request(query={"user_id": USER}, json={"text": "Mine now"}),),
    "DELETE /api/facts/{fact_id}": (BY_USER,),
    "POST /api/facts/forget": (
        sends(lists="ids user_id", user_id=USER, ids=[FACT]),
        sends(lists="ids", ids=[FACT]),
    ),
    "GET /api/facts/{fact_id}/history": (BY_USER,),
    "GET /api/documents": (listing("user_id", user_id=USER), Request(query={"user_id": USER, "session_id": SESSION})),
    "POST /api/documents": (
        sends("user_id", user_id=USER, text="Mine now"),
        sends(user_id=USER, session_id=SESSION, text="Mine now"),
    ),
    "GET /api/documents/{document_id}": (BY_USER,),
    "GET /api/documents/{document_id}/passages": (BY_USER,),
    "DELETE /api/documents/{document_id}": (BY_USER,),
    "POST /api/facts/review": (
        sends(lists="accepted refused user_id", user_id=USER, accepted=[FACT], refused=[FACT]),
        sends(lists="accepted", accepted=[FACT]),
    ),
    "GET /api/rules": (listing("user_id", user_id=USER),),
    "PUT /api/rules": (sends("user_id", user_id=USER, topics=["astrology"], close=False),),
    "POST /api/rules/preview": (sends(lists="user_id", user_id=USER, words=[SECRET]),),
    "GET /api/rules/versions": (listing("user_id", user_id=USER),),
    "POST /api/rules/rollback": (sends(user_id=USER, version=1),),
    "DELETE /api/rules": (BY_USER,),
    "GET /api/users/{user_id}/profile": (NO_IDS,),
    "PATCH /api/users/{user_id}/profile": (
        sends("user_id", patch=[{"op": "add", "path": "/goals/-", "value": "Mine now"}]),
    ),
    "GET /api/users/{user_id}/profile/versions": (NO_IDS,),
    "POST /api/users/{user_id}/profile/rollback": (sends(version=1),),
    "POST /api/users/{user_id}/profile/refresh": (NO_IDS,),
    "GET /api/users/{user_id}/overview": (NO_IDS,),
    "PUT /api/users/{user_id}/overview": (sends("user_id", sentences=[{"text": "Mine now"}]),),
    "GET /api/users/{user_id}/overview/versions": (NO_IDS,),
    "POST /api/users/{user_id}/overview/rollback": (sends(version=1),),
    "POST /api/users/{user_id}/overview/refresh": (NO_IDS,),
    "GET /api/users/{user_id}/consolidation": (NO_IDS,),
    "POST /api/users/{user_id}/consolidation": (NO_IDS,),
    "POST /api/users/{user_id}/consolidation/undo": (NO_IDS,),
    "GET /api/profile/schema": (NO_IDS,),
    "PUT /api/profile/schema": (sends(schema={"type": "object"}),),
    "GET /api/graph": (listing("user_id", user_id=USER), Request(query={"user_id": USER, "session_id": SESSION})),
    "GET /api/search": (
        listing("user_id", q=SECRET, user_id=USER),
        Request(query={"q": SECRET, "session_id": SESSION}),
        Request(query={"q": SECRET, "session_id": SESSION, "user_id": USER}),
    ),
    "POST /api/recall": (
        sends(lists="user_id", message="Which tea do I like?", user_id=USER),
        sends(lists="session_id", message="Which tea do I like?", session_id=SESSION),  # else it is a new session
    ),
    "PUT /api/store/items": (sends("user_id", **ITEM, value=1, user_id=USER),),
    "GET /api/store/items": (Request(query={**ITEM, "namespace": "notes", "user_id": USER}),),
    "DELETE /api/store/items": (Request(query={**ITEM, "namespace": "notes", "user_id": USER}),),
    "POST /api/store/search": (
        sends(lists="user_id", query=SECRET, user_id=USER),
        sends(lists="user_id", filter={"drink": SECRET}, user_id=USER),
    ),
    "GET /api/store/namespaces": (listing("user_id", user_id=USER),),
    "POST /api/store/batch": (sends("user_id", operations=[{"op": "put", **ITEM, "value": 1}], user_id=USER),),
    "GET /api/events": (listing("user_id", user_id=USER, seconds=0, after="0-0-0-0-0", words="true"),),
    "GET /api/webhooks": (listing("user_id", user_id=USER),),
    "POST /api/webhooks": (sends("user_id", user_id=USER, url=HOOK),),
    "PATCH /api/webhooks/{webhook_id}": (Request(query={"user_id": USER}, json={"words": True}),),
    "POST /api/webhooks/{webhook_id}/test": (BY_USER,),
    "POST /api/webhooks/{webhook_id}/rotate": (Request(query={"user_id": USER}, json={}),),
    "DELETE /api/webhooks/{webhook_id}": (BY_USER,),
    "GET /api/users/{user_id}": (NO_IDS,),
    "PATCH /api/users/{user_id}": (sends("user_id", remember=False),),
    "DELETE /api/users/{user_id}": (NO_IDS,),
    "GET /api/users/{user_id}/export": (NO_IDS,),
    "GET /api/users/{user_id}/summaries": (NO_IDS,),
    "POST /api/users/{user_id}/summaries": (NO_IDS,),
    "DELETE /api/users/{user_id}/summaries": (NO_IDS,),
    "POST /api/import": (
        Request(query={"user_id": USER}, json={"format": "recap-export", "version": 1}, makes=frozenset({"user_id"})),
    ),
    "GET /api/prompts": (NO_IDS,),
    "GET /api/prompts/{name}": (NO_IDS,),
    "PUT /api/prompts/{name}": (sends("name", text="Mine now"),),
    "DELETE /api/prompts/{name}": (NO_IDS,),
    "GET /api/jobs": (listing("user_id", user_id=USER), Request(query={"session_id": SESSION, "user_id": USER})),
    "POST /api/jobs/{job_id}/retry": (BY_USER,),
    "DELETE /api/jobs/{job_id}": (BY_USER,),
    "GET /api/models": (NO_IDS,),
    "GET /api/model-server": (NO_IDS,),
    "PUT /api/model-server": (NO_IDS,),
    "DELETE /api/model-server": (NO_IDS,),
    "POST /api/model-server/models": (NO_IDS,),
    "POST /api/model-server/test": (NO_IDS,),
    "GET /api/me": (NO_IDS,),
    "GET /api/spaces": (NO_IDS,),
    "GET /api/users": (NO_IDS,),
    "POST /v1/chat/completions": (
        *(openai({name: SESSION}, makes=name) for name in SESSION_HEADERS),
        openai(metadata={"session_id": SESSION}, makes="session_id"),
        openai(session_id=SESSION, makes="session_id"),
        openai(metadata={"user_id": USER}, makes="user_id"),
        *(openai({name: USER}, makes=name) for name in PERSON_HEADERS),
        *(openai(makes=name, **{name: USER}) for name in ("user", "user_id", "safety_identifier")),
        openai({"X-Session-Id": SESSION}, user=USER, makes="X-Session-Id user"),
    ),
    "POST /v1/messages": (
        sends("X-Session-Id", headers={"X-Session-Id": SESSION}, **MESSAGES),
        sends("session_id", metadata={"session_id": SESSION}, **MESSAGES),
        sends("user_id", metadata={"user_id": USER}, **MESSAGES),
    ),
    "POST /mcp": (  # tests/test_mcp.py has the ids that tools take
        Request(query={"user_id": USER}, json=MEMORIES, lists=frozenset({"user_id"})),
        Request(headers={"X-User-Id": USER}, json=MEMORIES, lists=frozenset({"X-User-Id"})),
    ),
    "GET /v1/models": (NO_IDS,),
    "GET /v1/models/{model}": (NO_IDS,),  # the model server's, for all alike
    "POST /v1/embeddings": (NO_IDS,),
    "POST /v1/completions": (NO_IDS,),
    "POST /v1/moderations": (NO_IDS,),
    "POST /v1/messages/count_tokens": (Request(json=MESSAGES),),
    "GET /health/live": (NO_IDS,),
    "GET /health/ready": (NO_IDS,),
}
OF_SPACES = ("/api/users/{user_id}", "/api/spaces/{space}")  # beginnings of calls that are there for both
OF_A_PERSON = ("/api/graph", "/api/recall/unhelpful")  # which ask whose they are
WHOLE_TENANTS = {
    "GET /api/prompts/{name}",
    "PUT /api/prompts/{name}",
    "DELETE /api/prompts/{name}",
    "PUT /api/profile/schema",
    "GET /api/retention",
    "PUT /api/retention",
}  # which its persons share
NEED_A_MODEL = {f"POST /v1/{name}" for name in ("embeddings", "completions", "moderations")} | {
    "GET /v1/models/{model}"
}  # of a server, which there is none of here
REFUSED = {  # the job of a summary is needed, and an archive that was restored is gone
    *NEED_A_MODEL,
    "DELETE /api/jobs/{job_id}",
    "DELETE /api/archives/{archive_id}",
}
THE_OPERATORS = {call for call in TABLE if "/model-server" in call}  # where there are tenants, or a person's key
NAMES_A_PERSON = {"user_id", "X-User-Id", "user", "safety_identifier", *PERSON_HEADERS}


@pytest.fixture
def app(make_app):
    return make_app(**TO_HOOK)


# -- the world


class InSpace(FlaskClient):
    """A client that says `space` wherever the calls here say whose memory they mean."""

    def open(self, *args: Any, **options: Any) -> TestResponse:  # type: ignore[override]
        address, *more = args
        for part in ("query_string", "json"):
            if isinstance(options.get(part), dict):
                options[part] = {"space" if name == "user_id" else name: value for name, value in options[part].items()}
        if "X-User-Id" in options.get("headers", {}):
            options["headers"] = {**options["headers"], "X-Memory-Space": options["headers"]["X-User-Id"]}
            del options["headers"]["X-User-Id"]
        address = address.replace("/api/users/", "/api/spaces/").replace("?user_id=", "?space=")
        return super().open(address, *more, **options)


@dataclass(frozen=True)
class Owner:
    """Somebody with a key, and the ids of what is theirs."""

    client: FlaskClient
    ids: Mapping[str, Any]

    def everything(self) -> Body:
        """All that is stored of them, but for what is read from the clock, and places in the tenant's queue."""
        read = {"run_at": "", "updated_at": "", "age": 0, "position": 0}
        jobs = [{**job, **read} for job in read_all(self.client, "/api/jobs")]
        user = self.ids["user"]
        documents = read_all(self.client, "/api/documents", user_id=user)
        sessions = [{**one, "updated_at": ""} for one in read_all(self.client, "/api/sessions", user_id=user)]
        exported = good(self.client.get(f"/api/users/{user}/export"))
        turns = good(self.client.get(f"/api/sessions/{self.ids['session']}/turns"))
        webhooks = good(self.client.get("/api/webhooks"))["items"]
        return {
            "webhooks": webhooks,
            "jobs": jobs,
            "sessions": sessions,
            "documents": documents,
            "turns": turns,
            "export": {**exported, "exported_at": ""},
        }


@dataclass(frozen=True)
class World:
    """Ada calls, Bob is the other.  `nobodys` ids have the form of Bob's."""

    app: Flask
    case: str
    ada: Owner
    bob: Owner
    nobodys: Mapping[str, Any]


def fill(client: FlaskClient, user: str, session: str, prompt: str | None, drink: str) -> dict[str, Any]:
    """One of everything for a person; its ids."""
    for number in range(2):  # which are taken out of memory
        good(client.post("/api/sessions", json={"user_id": user, "title": f"{drink} {number}"}))
    messages = [said(f"I like {drink}."), said(f"So {drink} it is.", "assistant")]
    hit, _ = append(client, session, messages, user_id=user)["message_ids"]
    good(client.put(f"/api/sessions/{session}/summary", json={"sections": {"topic": drink}}))
    fact = good(client.post("/api/facts", json={"user_id": user, "text": f"Likes {drink}"}))
    document = good(
        client.post(
            "/api/documents",
            json={"user_id": user, "text": f"# Tea\n\nHow to make {drink}.\n\n# End\n\nDrink {drink}."},
        )
    )
    good(client.put("/api/store/items", json={**ITEM, "value": {"drink": drink}, "user_id": user}))
    goals = [{"op": "add", "path": "/goals/-", "value": drink}]  # which the profiles of persons and spaces have
    good(client.patch(f"/api/users/{user}/profile", json={"patch": goals}))
    good(client.put(f"/api/users/{user}/overview", json={"sentences": [{"text": f"Drinks {drink}."}]}))
    example = good(client.post("/api/examples", json={"user_id": user, "input": f"Some {drink}?", "output": "Yes."}))
    turn = good(client.post("/api/chat", json={"session_id": session, "message": f"More {drink}, please."}))
    good(client.put("/api/instructions/tone", json={"user_id": user, "text": f"Be brief about {drink}."}))
    good(client.put("/api/rules", json={"user_id": user, "topics": [f"other than {drink}"]}))
    good(client.put("/api/conversation-types/diary", json={"user_id": user, "prompt": f"Mention {drink}."}))
    judged = {"user_id": user, "session_id": session, "message_id": turn["message_id"], "instruction": "tone"}
    good(client.post("/api/feedback", json={**judged, "text": f"Less about {drink}."}))
    unhelpful = {"session_id": session, "message_id": turn["message_id"], "hits": [hit]}
    mark = good(client.post("/api/recall/unhelpful", json=unhelpful))
    for text in (f"Drinks {drink} at noon", f"At noon drinks {drink}"):
        good(client.post("/api/facts", json={"user_id": user, "text": text}))
    good(client.post(f"/api/users/{user}/consolidation"))
    engine = engine_of(client.application)
    engine.job_queue.run_due(["feedback", "consolidation"])
    (job, *_) = [one["id"] for one in read_all(client, "/api/jobs") if one["kind"] == "summary"]
    tenant = Caller(good(client.get("/api/me"))["tenant"])
    retention.put_policy(engine, tenant, Policy(sessions=1))
    engine.job_queue.run_due(["retention"])
    retention.put_policy(engine, tenant, Policy())
    archive, _ = read_all(client, "/api/archives", user_id=user)
    webhook = good(client.post("/api/webhooks", json={"user_id": user, "url": f"{HOOK}{drink}"}))
    good(client.patch(f"/api/webhooks/{webhook['id']}", json={"enabled": False}))
    if prompt is not None:
        good(client.put(f"/api/prompts/{prompt}", json={"text": f"Be brief about {drink}."}))
    return {
        "session": session,
        "new session": session,
        "message": turn["user_message_id"],
        "fact": fact["id"],
        "document": document["id"],
        "example": example["id"],
        "hit": hit,
        "mark": mark["id"],
        "archive": archive["id"],
        "job": job,
        "webhook": webhook["id"],
        "user": user,
        "prompt": prompt,
    }


def converse(client: FlaskClient, user: str, drink: str) -> dict[str, Any]:
    """Begin a conversation of a person's; the ids in it."""
    words = [{"role": "user", "content": f"I like {drink}."}]
    conversation = good(client.post("/v1/conversations", json={"user": user, "items": words}))["id"]
    items = good(client.get(f"/v1/conversations/{conversation}/items"))
    more = {"input": f"And more {drink}?", "conversation": conversation, "user": user}
    response = good(client.post("/v1/responses", json=more))["id"]
    return {"conversation": conversation, "item": items["first_id"], "response": response}


def make_world(app: Flask, case: str) -> World:
    keys = engine_of(app).keys
    tenants, session = case == "tenants", "tea" if case == "namesakes" else "{}s-tea"
    if case == "spaces":
        app.test_client_class = InSpace
        opens: list[dict[str, Any]] = [{"spaces": {name: "write"}} for name in ("bob", "ada")]
    else:
        opens = [{}, {}] if tenants else [{"user_id": "bob"}, {"user_id": "ada"}]
    bob = with_key(app, keys.create("globex" if tenants else "acme", **opens[0])[0])
    ada = with_key(app, keys.create("acme", **opens[1])[0])
    # So that messages have ids of two digits, and nobody has those of `nobodys`.
    append(with_key(app, keys.create("initech")[0]), "first", [said("Hello")] * 10, user_id="zoe")
    his = fill(bob, "bob", session.format("bob"), "brief" if tenants else None, SECRET)
    hers = fill(ada, "ada", session.format("ada"), "terse" if tenants else None, "coffee")
    his |= converse(bob, "bob", SECRET)  # after the last session was taken out of memory
    hers |= {**converse(ada, "ada", "coffee"), "new session": "adas-new"}
    nobodys = {"session": "nobodies", "new session": "nobodies", "user": "eve", "prompt": "vague"}
    nobodys["document"] = his["document"][::-1]
    for of in ("response", "conversation", "item"):
        nobodys[of] = his[of][:-1] + ("1" if his[of].endswith("0") else "0")
    for of in ("message", "fact", "example", "hit", "mark", "archive", "job", "webhook"):
        same_length = (int(digit * len(str(his[of]))) for digit in "987")
        nobodys[of] = next(number for number in same_length if number not in (his[of], hers[of]))
    return World(app, case, Owner(ada, hers), Owner(bob, his), nobodys)


@pytest.fixture(scope="module")
def worlds(tmp_path_factory, migrated):
    """Worlds that many calls are made in, none of which may leave a trace in what is Bob's."""
    with ExitStack() as stack:
        apps = {
            case: stack.enter_context(an_app(tmp_path_factory.mktemp(case), migrated, **TO_HOOK)) for case in WALKED
        }
        here = {case: make_world(app, case) for case, app in apps.items()}
        before = {case: world.bob.everything() for case, world in here.items()}
        yield here
        assert {case: world.bob.everything() for case, world in here.items()} == before


# -- asking


def fields(call: str, request: Request) -> Iterator[str]:
    """The names of the request's fields that hold ids."""
    yield from (name for name in re.findall(r"\{(\w+)\}", call) if name in IN_PATHS)
    for part in (request.query, request.headers, request.json if isinstance(request.json, dict) else {}):
        for name, value in part.items():
            if isinstance(value, Id) or value in ([FACT], [HIT], [MESSAGE]):
                yield name
            elif isinstance(value, dict):
                yield from (inner for inner, at in value.items() if isinstance(at, Id))


def ask(client: FlaskClient, call: str, request: Request, ids: Callable[[str, str], Any]) -> TestResponse:
    """Make a call; `ids(name, of)` is the id that a field has."""

    def filled(name: str, value: Any) -> Any:
        if isinstance(value, Id):
            return ids(name, value.of)
        if isinstance(value, list):
            return [filled(name, one) for one in value]
        if isinstance(value, dict):
            return {inner: filled(inner, one) for inner, one in value.items()}
        return value

    method, path = call.split(" ")
    values = {name: ids(name, of.of) for name, of in IN_PATHS.items()}
    return client.open(
        path.format(**values, model="any", instruction="tone", conversation_type="diary"),
        method=method,
        query_string=filled("", request.query),
        json=filled("", request.json),
        headers={"X-Request-ID": "the-same", **filled("", request.headers)},
    )


class Asked(NamedTuple):
    """What came of a call: the answer, the id that was sent, and the SQL it took."""

    answer: TestResponse
    id: Any
    statements: list[str]


def told(asked: Asked) -> tuple[Any, ...]:
    """All that an answer tells, but for the id that was asked for and what differs from one moment to the next."""
    text = re.sub(r'"(took_ms|erased_at|total|recency)":[^,}]*', "", asked.answer.text)
    text = re.sub(rf"(?<![0-9a-z]){re.escape(str(asked.id))}(?![0-9a-z])", "*", text)
    headers = {name: value for name, value in asked.answer.headers.items() if name != "Date"}
    if '"took_ms"' in asked.answer.text or '"recency"' in asked.answer.text:
        del headers["Content-Length"]
    return asked.answer.status_code, text, headers


def probes(case: str, made: bool) -> list[Any]:
    """Each call of the table and each field in it for an id; with `made` those whose things are made."""
    found = [
        pytest.param(case, call, request, name, id=f"{case} {call} {name} {number}")
        for call, requests in TABLE.items()
        for number, request in enumerate(requests)
        for name in fields(call, request)
        if _makes(case, call, request, name) == made and not (case != "tenants" and call in WHOLE_TENANTS)
    ]
    assert len(found) > (5 if made else 60)
    return found


def _makes(case: str, call: str, request: Request, name: str) -> bool:
    """Whether the id of another is like a new one.  A person's key counts before whom a program names."""
    if case != "tenants" and name in NAMES_A_PERSON:
        return "/v1/" in call
    return name in request.makes


def asked(here: World, call: str, request: Request, name: str, of_whom: Mapping[str, Any]) -> Asked:
    """Make a call with one field's id exchanged for somebody's."""
    exchanged: list[Any] = []

    def ids(field_name: str, of: str) -> Any:
        if field_name != name:
            return here.ada.ids[of]
        exchanged.append(of_whom[of])
        return of_whom[of]

    with statements(engine_of(here.app).database) as sent:
        answer = ask(here.ada.client, call, request, ids)
        answer.get_data()
    assert exchanged, "the id was not sent"
    return Asked(answer, exchanged[0], sent)


def check(here: World, call: str, request: Request, name: str) -> None:
    asked(here, call, request, name, here.nobodys)  # what is done at the first time only is done
    theirs, nobodys = (asked(here, call, request, name, of) for of in (here.bob.ids, here.nobodys))
    assert told(theirs) == told(nobodys)
    assert theirs.statements == nobodys.statements
    passed_over = name in request.lists and not (here.case in ("persons", "spaces") and name in NAMES_A_PERSON)
    assert theirs.answer.status_code == (200 if passed_over else 404), theirs.answer.text
    assert SECRET not in theirs.answer.text.lower().replace(f'"{SECRET}"', "")
    if passed_over:
        answer = theirs.answer.json if theirs.answer.is_json else {"items": theirs.answer.text.count("data: ") * [{}]}
        found = answer.get("items") or answer.get("results") or ()
        assert all(one.get("built_in") for one in found), "what is everybody's"


Worlds = dict[str, World]


@pytest.mark.parametrize(
    ("case", "call", "request_", "name"), [one for case in WALKED for one in probes(case, made=False)]
)
def test_what_is_anothers_looks_like_what_is_not_there(worlds, case, call, request_, name):
    check(worlds[case], call, request_, name)


@pytest.mark.parametrize("case", WALKED)
def test_among_ones_own_the_same_id_is_another_thing(app, case):
    here = make_world(app, case)
    before = here.bob.everything()
    made = (one.values for one in probes(case, made=True))
    for _, call, request, name in sorted(made, key=lambda probe: probe[1] != "POST /api/sessions"):
        answer = asked(here, call, request, name, here.bob.ids).answer
        assert answer.status_code < 300, f"{call} {name}: {answer.text}"
        assert SECRET not in answer.text.lower(), f"{call} {name}"
    assert here.bob.everything() == before


@pytest.mark.parametrize("case", ["tenants", "persons", "namesakes", "spaces"])
def test_the_same_calls_succeed_with_what_is_ones_own_and_leave_the_others_alone(app, case):
    """So it is whose the ids are, and nothing else, that the others were refused for."""
    here = make_world(app, case)
    before = here.bob.everything()
    for call in sorted(TABLE, key=_erasing_last):
        if not (case != "tenants" and call in WHOLE_TENANTS):
            for request in TABLE[call]:
                with ask(here.ada.client, call, request, lambda _, of: here.ada.ids[of]) as answer:
                    assert answer.status_code < 300 or call in REFUSED | THE_OPERATORS, f"{call}: {answer.text}"
                    mine_alone = call.startswith("GET") and "q=" not in str(answer.request.url)
                    assert not mine_alone or (SECRET not in answer.text.lower() and "bob" not in answer.text), call
    assert here.bob.everything() == before


def _erasing_last(call: str) -> tuple[bool, bool, bool, int]:
    """The smaller things before those that they are in; and what clients send, which may replace others, late.  A mark
    is taken back before its question is replaced."""
    erases = (call.startswith("DELETE") and "unhelpful" not in call) or call.endswith(
        ("/retry", "/forget", "{archive_id}/restore")
    )
    late = call.endswith("/forget") or ("/v1/" in call and not (erases or call.endswith("/responses")))
    return erases, late, not call.endswith("/retry"), -call.count("/") - call.endswith("/rules")


# -- what goes from one answer into the next request


@pytest.mark.parametrize("case", WALKED)
def test_a_cursor_of_another_shows_ones_own_and_an_idempotency_key_of_another_is_a_new_one(app, case):
    here = make_world(app, case)
    for owner in (here.bob, here.ada):
        client, session = owner.client, owner.ids["session"]
        append(client, f"{session}-2", [said(f"More of {owner.ids['user']}")], user_id=owner.ids["user"])
        good(client.post("/api/facts", json={"user_id": owner.ids["user"], "text": "Drinks"}))
        good(client.post("/api/documents", json={"user_id": owner.ids["user"], "text": owner.ids["user"]}))
        good(client.post(f"/api/users/{owner.ids['user']}/profile/rollback", json={"version": 1}))
        good(client.post(f"/api/users/{owner.ids['user']}/overview/rollback", json={"version": 1}))
        for answered in ("Tea", "Juice"):
            good(client.post("/api/examples", json={"input": "What to drink?", "output": answered}))
        good(client.put(f"/api/sessions/{session}/summary", json={"sections": {"topic": "again"}}))
        turn = good(client.post("/api/chat", json={"session_id": session, "message": "And once more."}))
        unhelpful = {"session_id": session, "message_id": turn["message_id"], "hits": [owner.ids["hit"]]}
        good(client.post("/api/recall/unhelpful", json=unhelpful))
        made = {"valid_from": "2026-03-01", "created_at": "2026-03-01", "category": "other", "importance": 3}
        links = [{"subject": "user", "relation": "drinks", "object": drink} for drink in (owner.ids["user"], "tea")]
        facts = [{"id": 1, "text": "Drinks a lot", "scope": "user", **made, "links": links}]
        document = {"format": "recap-export", "version": 1, "facts": facts}
        good(client.post(f"/api/import?user_id={owner.ids['user']}", json=document))
    addresses = [
        path
        for path in listings(here.bob.client)
        if not path.startswith((OF_SPACES[1], "/api/spaces")) and path != "/api/users"
    ]
    assert len(addresses) >= 6
    for path in addresses:
        of_his, of_hers = (
            {"session_id": owner.ids["session"]} if path in OF_A_PERSON else {} for owner in (here.bob, here.ada)
        )
        of_bob, of_ada = (
            path.format(**{f"{of}_id": owner.ids[of] for of in ("session", "user", "document")})
            for owner in (here.bob, here.ada)
        )
        his = good(here.bob.client.get(of_bob, query_string={"limit": 1, **of_his}))
        assert his["next_cursor"], f"{path} has one page only"
        answer = here.ada.client.get(of_ada, query_string={"cursor": his["next_cursor"], **of_hers})
        assert SECRET not in answer.text.lower() and "bob" not in answer.text, path
        whole = read_all(here.ada.client, of_ada, **of_hers)
        by_the_clock = {"score": None, "age": None}
        mine = [{**own, **by_the_clock} for own in whole]
        assert all({**one, **by_the_clock} in mine for one in good(answer)["items"]), path
    for path in ("/api/chat", "/v1/chat/completions", "/v1/messages"):
        asking: Any = {"json": {"message": "The same words"} if path == "/api/chat" else MESSAGES}
        asking["headers"] = {"Idempotency-Key": f"bobs {path}"}
        bobs, mine = (good(owner.client.post(path, **asking)) for owner in (here.bob, here.ada))
        assert mine["id"] != bobs["id"] and SECRET not in str(mine).lower(), path
        for owner, answer in ((here.bob, bobs), (here.ada, mine)):
            assert good(owner.client.post(path, **asking))["id"] == answer["id"], "a retry stays a retry"


# -- the table is whole


def test_every_call_and_every_field_for_an_id_is_in_the_table(client):
    document = good(client.get("/openapi.json"))
    for path in [one for one in document["paths"] if one.startswith(OF_SPACES[1])]:
        assert path.replace(OF_SPACES[1], OF_SPACES[0]) in document["paths"], (
            "the case of spaces walks it as a person's"
        )
        del document["paths"][path]
    there: dict[str, set[str]] = {}
    for path, calls in document["paths"].items():
        for method, operation in calls.items():
            if method.upper() in METHODS:
                names = {one["name"] for one in operation.get("parameters", [])} | set(re.findall(r"\{(\w+)\}", path))
                for content in operation.get("requestBody", {}).get("content", {}).values():
                    schema = content["schema"].get("$ref", "").rpartition("/")[2]
                    names |= set(document["components"]["schemas"].get(schema, {}).get("properties", {}))
                there[f"{method.upper()} {path}"] = names & IDS
    assert there.keys() == TABLE.keys(), "say in TABLE how the call is made with ids of one's own"
    for call, names in there.items():
        walked = {name for request in TABLE[call] for name in fields(call, request)}
        assert names <= walked, f"{call}: say in TABLE how it is made with {names - walked}"
