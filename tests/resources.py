"""What the tests of the resources share: appending, reading listings whole, scripted digests, counting rows."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import func, select
from werkzeug.test import TestResponse

from app import create_app, engine_of
from config import Settings
from memory.access.owners import get_user
from memory.engine import Engine
from memory.store import documents
from models import Base
from models.owners import Caller
from models.sections import Sections
from models.store import Item, Put

Body = dict[str, Any]


@contextmanager
def an_app(folder: Path, migrated: Path | None = None, **settings: Any) -> Iterator[Flask]:
    """An application on what is in `folder`, or on a copy of `migrated`; for several tests, if they leave no trace."""
    if migrated is not None:
        shutil.copy(migrated, folder / "recap.db")
    app = create_app(Settings(**{"data_dir": folder, "log_level": "warning", **settings}))
    yield app
    engine_of(app).stop()
    engine_of(app).database.engine.dispose()


@contextmanager
def locked(app: Flask) -> Iterator[None]:
    """The database is being written by somebody who takes long."""
    database = sqlite3.connect(engine_of(app).settings.data_dir / "recap.db", isolation_level=None)
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        database.execute("ROLLBACK")
        database.close()


def said(content: str, role: str = "user", **more: Any) -> Body:
    """A message to append."""
    return {"role": role, "content": content, **more}


def append(client: FlaskClient, session: str, messages: Sequence[Body], **more: Any) -> Body:
    """Append messages; the answer's body, which has to be a good one."""
    return good(client.post(f"/api/sessions/{session}/messages", json={"messages": messages, **more}))


def good(answer: TestResponse) -> Body:
    """The body of an answer that went well."""
    assert answer.status_code in (200, 201, 202), answer.text[:500]
    body: Body = answer.json
    return body


def error(answer: TestResponse, status: int) -> Body:
    """The error of an answer that failed with `status`."""
    assert answer.status_code == status, answer.text[:500]
    found: Body = answer.json["error"]
    return found


def read_all(client: FlaskClient, address: str, **query: Any) -> list[Any]:
    """All items of a listing, page by page."""
    items: list[Any] = []
    cursor: str | None = None
    while True:
        page = good(client.get(address, query_string={**query, **({"cursor": cursor} if cursor else {})}))
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


def find(client: FlaskClient, q: str, **query: Any) -> list[Body]:
    """What a search finds, the best first."""
    results: list[Body] = good(client.get("/api/search", query_string={"q": q, **query}))["results"]
    return results


def listings(client: FlaskClient) -> list[str]:
    """The addresses of every listing that comes in pages."""
    paths = good(client.get("/openapi.json"))["paths"]
    return [
        path
        for path, calls in paths.items()
        if any(one["name"] == "cursor" for one in calls.get("get", {}).get("parameters", []))
    ]


def rows_of(engine: Engine) -> dict[str, int]:
    """How many rows each table has."""
    with engine.database.read() as tx:
        tables = Base.metadata.sorted_tables
        return {table.name: tx.scalar(select(func.count()).select_from(table)) or 0 for table in tables}


def fact(text: str, source: int, quote: str | None = None, **more: Any) -> Body:
    """A fact as the mini model writes it; its quote is its text unless said otherwise."""
    return {
        "text": text,
        "category": "other",
        "importance": 3,
        "scope": "session",
        "source": source,
        "quote": text if quote is None else quote,
        "supersedes": [],
        **more,
    }


def link(subject: str, relation: str, object: str, kinds: str = "person thing") -> Body:
    """A link of a fact as the mini model writes it."""
    first, second = kinds.split()
    ends = {"subject_kind": first, "object_kind": second}
    return {"subject": subject, "relation": relation, "object": object, **ends}


def index_key(engine: Engine, user_id: str) -> str:
    """What a person's search index is called."""
    with engine.database.read() as tx:
        return get_user(tx, Caller(user_id=user_id)).index_key


def digest_of(*facts: Body, **sections: Any) -> Body:
    """The mini model's answer with these facts and sections."""
    empty = Sections(topic="Tea").as_dict()
    return {"summary": {**empty, **sections}, "facts": list(facts)}


def derived(engine: Engine, user_id: str, key: str, value: Any, sources: Sequence[int], author: str = "model") -> Item:
    """A document of the engine's as it is stored of a person, resting on these messages."""
    with engine.database.write() as tx:
        owner = get_user(tx, Caller(user_id=user_id))
        put = Put(("recap", "profile"), key, value)
        return documents.write(tx, owner.id, put, engine.items.now(), author=author, sources=sources)


HOSTILE_SECONDS = 10.0  # of CPU: far above what any machine needs for it, far below what is not linear would take


@contextmanager
def soon_over(seconds: float = HOSTILE_SECONDS) -> Iterator[None]:
    """Fails when the block takes longer than it may, by this thread's CPU: other load does not count."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < seconds
