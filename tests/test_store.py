"""The store inside the engine: conditions on values, versions, expiry, and the documents that rest on messages."""

import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app import engine_of, upgrade_schema
from memory.errors import InvalidRequest
from memory.store import item_rows
from models.owners import Caller
from models.store import Delete, Get, Item, Put, Search
from tests.application import an_app, derived, rows_of
from tests.conftest import empty
from tests.http import append, said

ADA = Caller(user_id="ada")
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2**53, 2**53 + 1, 0.1 + 0.2, "1", ""]) | NUMBERS
LEAVES |= st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
KEYS = st.sampled_from(["a", "b", "né", "a.b", "a,b", "x y", "日"])
VALUES = st.dictionaries(KEYS, st.recursive(LEAVES, lambda of: st.lists(of, max_size=3) | st.dictionaries(KEYS, of)))
OPERATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def same(there: Any, wanted: Any) -> bool:
    return isinstance(there, bool) == isinstance(wanted, bool) and there == wanted


def meets(there: Any, wanted: Any) -> bool:
    """What a filter means, in Python."""
    if isinstance(wanted, dict) and any(key.startswith("$") for key in wanted):
        return all(compares(there, name, operand) for name, operand in wanted.items())
    if isinstance(wanted, dict):
        return isinstance(there, dict) and all(meets(there.get(key), inner) for key, inner in wanted.items())
    if isinstance(wanted, list):
        return isinstance(there, list) and len(there) == len(wanted) and all(map(meets, there, wanted))
    return same(there, wanted)


def matches(value: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """What a whole filter means: an outermost key with dots that the value does not have is a path."""

    def at(key: str) -> Any:
        if key in value or "." not in key:
            return value.get(key)
        return reduce(lambda there, step: there.get(step) if isinstance(there, dict) else None, key.split("."), value)

    return all(meets(at(key), inner) for key, inner in wanted.items())


def compares(there: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return same(there, operand) == (name == "$eq")
    if name == "$in":
        return any(same(there, one) for one in operand)
    kinds: Any = str if isinstance(operand, str) else (int, float)
    return isinstance(there, kinds) and not isinstance(there, bool) and OPERATIONS[name](there, operand)


COMPARED = st.tuples(st.sampled_from(["$eq", "$ne"]), LEAVES) | st.tuples(st.just("$in"), st.lists(LEAVES, max_size=3))
COMPARED |= st.tuples(st.sampled_from(list(OPERATIONS)), LEAVES.filter(lambda one: type(one) in (int, float, str)))
WANTED = st.recursive(
    LEAVES | st.lists(COMPARED, min_size=1, max_size=2).map(dict),
    lambda of: st.lists(of, max_size=2) | st.dictionaries(KEYS, of, max_size=2),
    max_leaves=4,
)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def lasting(request, tmp_path_factory, migrated):
    """An application for all examples of a property, on either database."""
    settings: dict[str, Any] = {}
    if request.param == "postgres":
        settings["database_url"] = request.getfixturevalue("postgres")
        empty(settings["database_url"])
    with an_app(tmp_path_factory.mktemp("lasting"), migrated, **settings) as app:
        if settings:
            upgrade_schema(app)
        yield app


@pytest.fixture
def items(engine):
    return engine.items


def keys(found: list[Item]) -> list[str]:
    return [item.key for item in found]


@settings(max_examples=60)
@given(values=st.lists(VALUES, min_size=1, max_size=6), wanted=st.dictionaries(KEYS, WANTED, max_size=2))
@example([{"a": 2**53 + 1}, {"a": 2**53}, {"a": 1.5}, {"a": True}], {"a": {"$in": [2**53, 1]}})
@example([{"a": "é"}, {"a": "Z"}, {"a": "a"}, {"a": 1}], {"a": {"$gte": "a"}})
@example([{"a": {"b": 10}}, {"a": {"b": "10"}}, {"a": [1, "x"]}], {"a": {"b": {"$gte": 9}}})
@example([{"a": None}, {}], {"a": {"b": None}})
@example([{"a": {"b": 1}}, {"a.b": 1}, {"a": {"b": 2}, "a.b": 1}, {"a": 1}], {"a.b": 1})
def test_a_filter_means_in_sql_what_it_says(lasting, values, wanted):
    items = engine_of(lasting).items
    puts = [Put(("all",), str(number), value) for number, value in enumerate(values)]
    *stored, found = items.run(ADA, [*puts, Search(("all",), wanted)])
    assert [item.value for item in stored] == values
    expected = {str(number) for number, value in enumerate(values) if matches(value, wanted)}
    assert set(keys(found)) == expected
    items.run(ADA, [Delete(("all",), put.key) for put in puts])


def test_a_value_that_python_takes_for_the_same_replaces_it(items):
    for value in ({"a": True}, {"a": 1}, {"a": 1.0}, None, False, 0):
        items.run(ADA, [Put(("a",), "k", value)])
        assert repr(items.get(ADA, Get(("a",), "k")).value) == repr(value)


def test_items_expire_live_on_when_they_are_read_and_leave_no_row(bench):
    items, clock = bench.engine.items, bench.clock
    kept = Put(("a",), "kept", 1, ttl=10, refreshes=True)
    items.run(ADA, [Put(("a",), "gone", 1, ttl=10), Put(("a",), "lasting", 1), kept, replace(kept, key="unread")])
    clock.tick(9 * 60)
    assert items.get(ADA, Get(("a",), "kept")).expires_at == clock() + timedelta(minutes=10)
    assert items.get(ADA, Get(("a",), "unread", refresh=False)).expires_at == clock() + timedelta(minutes=1)
    clock.tick(2 * 60)
    assert set(keys(items.run(ADA, [Search(refresh=False)])[0])) == {"kept", "lasting"}
    assert items.run(ADA, [Get(("a",), "gone"), Put(("a",), "gone", 2, version=0)])[1].version == 1
    clock.tick(9 * 60)
    bench.engine.job_queue.run_due(["expire"])
    assert rows_of(bench.engine)["items"] == 2, "of `kept`, whose time is up again, nothing is left"


# -- what the engine derives from messages


def test_reading_never_postpones_the_end_of_a_value_that_took_the_place(bench):
    items, put = bench.engine.items, Put(("a",), "k", 1, ttl=1, refreshes=True)
    items.run(ADA, [put])
    read = items.get(ADA, Get(("a",), "k"))
    items.run(ADA, [Put(("a",), "k", "for good")])
    with bench.engine.database.write() as tx:
        item_rows.extend_expiry(tx, [read])
    assert items.get(ADA, Get(("a",), "k")).expires_at is None


@pytest.fixture
def told(app):
    """Ada has told two things; the ids of her messages."""
    told = append(app.test_client(), "s", [said("I like tea."), said("And jam.")], user_id="ada")
    return list(told["message_ids"])


def test_callers_read_the_engines_documents_but_never_write_them(engine, told):
    derived(engine, "ada", "default", {"likes": ["tea"]}, told)
    own = ("recap", "profile")
    assert engine.items.get(ADA, Get(own, "default")).value == {"likes": ["tea"]}
    assert keys(engine.items.run(ADA, [Search(("recap",))])[0]) == ["default"]
    assert engine.items.run(ADA, [Search()]) == [[]]
    for operation in (Put(own, "default", 1), Delete(own, "default"), Put(("recap",), "k", 1)):
        with pytest.raises(InvalidRequest):
            engine.items.run(ADA, [operation])
