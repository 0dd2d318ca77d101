"""What a turn reads of the memory at its beginning: only the kinds that are there."""

from __future__ import annotations

import re

from app import engine_of
from tests.remembering import Talk
from tests.resources import digest_of, fact, good, link
from tests.sql import statements
from tests.talking import chat

KINDS = re.compile(r"FROM (facts|links|items)\b")


def asked_for(talk: Talk) -> list[str]:
    """The kinds of memory that a turn asks for, beside the statement that tells which there are."""
    with statements(engine_of(talk.app).database) as sent:
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
