"""What the head reads of long-term memory: the versions of the time when it was chosen, in one statement."""

from __future__ import annotations

from memory.access.owners import find_owner, find_session, make_owner
from memory.domain import Caller
from memory.longterm.head import Shown, documents_of
from memory.store import documents
from memory.store.values import Put
from tests.jobbing import Bench
from tests.sql import statements
from tests.talking import chat


def write(bench: Bench, whose: Caller, namespace: tuple[str, ...], value: str, author: str) -> None:
    with bench.services.database.write() as tx:
        owner = find_owner(tx, whose) or make_owner(tx, whose, bench.clock())
        documents.write(tx, owner.id, Put(namespace, "k", value), bench.clock(), author=author)


def shown(bench: Bench) -> list[Shown]:
    with bench.services.database.read() as tx:
        row = find_session(tx, Caller(user_id="ada"), "s")
        with statements(bench.services.database) as sent:
            found = documents_of(tx, row)
        assert len(sent) == 1
        return found


def test_a_document_stays_as_it_was_when_the_head_was_chosen_unless_a_person_changed_it(bench: Bench) -> None:
    ada, profile, polite = Caller(user_id="ada"), ("recap", "profile"), ("recap", "instructions", "polite")
    chat(bench.client, "Hello.", session_id="s", user_id="ada")
    assert shown(bench) == []
    bench.clock.tick(1)
    write(bench, ada, profile, "later", "model")
    write(bench, Caller(user_id="bob"), profile, "bob's", "person")
    write(bench, ada, ("recap", "profiles"), "of another kind", "person")
    assert shown(bench) == []
    write(bench, Caller(), polite, "of all", "person")
    assert shown(bench) == [Shown(polite, "k", "of all", 1, of_tenant=True)]
    write(bench, ada, profile, "hers", "person")
    write(bench, ada, profile, "later still", "model")
    assert shown(bench)[1:] == [Shown(profile, "k", "hers", 2, of_tenant=False)]
    with bench.services.database.write() as tx:
        find_session(tx, ada, "s").head_facts = None  # as when the tail folds
    chat(bench.client, "Hello again.", session_id="s", user_id="ada")
    assert [one.value for one in shown(bench)] == ["of all", "later still"]
