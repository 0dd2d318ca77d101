"""What a turn reads of the memory at its beginning: documents as of when the head was chosen, and what there is."""

from __future__ import annotations

import re
from typing import Any

from app import services_of
from memory.access.owners import find_owner, find_session, make_owner
from memory.domain import Caller
from memory.store import documents
from memory.store.values import Put
from memory.turn.head import read_stored
from memory.turn.values import StoredHead
from tests.jobbing import Bench
from tests.remembering import Talk
from tests.resources import digest_of, fact, good, link
from tests.sql import statements
from tests.talking import chat

KINDS = re.compile(r"FROM (facts|links|items)\b")
PROFILE, INSTRUCTIONS = ("recap", "profile"), ("recap", "instructions")


def write(bench: Bench, whose: Caller, namespace: tuple[str, ...], value: Any, author: str, key: str = "k") -> None:
    with bench.services.database.write() as tx:
        owner = find_owner(tx, whose) or make_owner(tx, whose, bench.clock())
        documents.write(tx, owner.id, Put(namespace, key, value), bench.clock(), author=author)


def head(bench: Bench) -> StoredHead:
    with bench.services.database.read() as tx:
        row = find_session(tx, Caller(user_id="ada"), "s")
        with statements(bench.services.database) as sent:
            found = read_stored(tx, row)
        assert len(sent) == 1
        return found


def test_a_document_stays_as_it_was_when_the_head_was_chosen_unless_a_person_changed_it(bench: Bench) -> None:
    ada = Caller(user_id="ada")
    chat(bench.client, "Hello.", session_id="s", user_id="ada")
    assert (head(bench).instructions, head(bench).profile) == ("", None)
    bench.clock.tick(1)
    write(bench, ada, PROFILE, "later", "model")
    write(bench, Caller(user_id="bob"), PROFILE, "bob's", "person")
    write(bench, ada, ("recap", "profiles"), "of another kind", "person")
    assert (head(bench).instructions, head(bench).profile) == ("", None)
    write(bench, ada, INSTRUCTIONS, {"text": "hers"}, "person", "polite")
    write(bench, Caller(), INSTRUCTIONS, {"text": "of all"}, "person", "polite")
    write(bench, Caller(), INSTRUCTIONS, {"text": "first of all"}, "person", "a")
    assert head(bench).instructions == "first of all\n\nhers"
    write(bench, ada, PROFILE, "hers", "person")
    write(bench, ada, PROFILE, "later still", "model")
    assert head(bench).profile == (2, "hers")
    with bench.services.database.write() as tx:
        find_session(tx, ada, "s").head_facts = None  # as when the tail folds
    chat(bench.client, "Hello again.", session_id="s", user_id="ada")
    assert head(bench).profile == (3, "later still")


def asked_for(talk: Talk) -> list[str]:
    """The kinds of memory that a turn asks for, beside the statement that tells which there are."""
    with statements(services_of(talk.app).database) as sent:
        chat(talk.client, "Where does Ida live?", session_id=talk.session)
    return [kind[1] for one in sent if "EXISTS (SELECT facts" not in one and (kind := KINDS.search(one))]


def test_a_turn_asks_for_no_kind_of_memory_that_is_not_there(talk: Talk) -> None:
    ida = fact("Has a sister called Ida", 1, "my sister Ida", links=[link("user", "sister", "Ida", "person person")])
    other = Talk(talk.app, talk.server, "other")
    other.hear("Did I say that my sister Ida lives in Porto?", reply=digest_of(ida))
    assert len(asked_for(other)) == 2, "facts, and their links"
    assert asked_for(talk) == []
    good(talk.client.post("/api/facts", json={"session_id": "s", "text": "Likes tea"}))
    assert asked_for(talk) == ["facts"]
    good(talk.client.post("/api/examples", json={"input": "Where is Bo?", "output": "In Oslo."}))
    assert asked_for(talk) == ["facts", "items"]
    ada = Talk(talk.app, talk.server, "asking", "ada")
    ada.hear("Ida lives in Porto.")
    assert asked_for(ada) == ["items"], "the tenant's example"
    asking = chat(ada.client, "Does Ida live in Porto?", session_id="asking")
    hit = good(ada.client.get("/api/sessions/asking/messages"))["items"][0]["id"]
    mark = {"session_id": "asking", "message_id": asking["message_id"], "hits": [hit]}
    good(ada.client.post("/api/recall/unhelpful", json=mark))
    assert asked_for(ada) == ["items", "items"]
