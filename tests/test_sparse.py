"""A request that says little is loaded, or refused, as its whole schema would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError, fields, validate

from schemas.chat import ChatHeaders, ChatRequest
from schemas.sparse import Sparse

text = st.sampled_from(["", " ", "ada", "Hello there", "a b", "user", "auto", "\x00", "Europe/Tallinn"])
value = st.one_of(
    text,
    st.none(),
    st.booleans(),
    st.integers(-1, 3),
    st.lists(st.fixed_dictionaries({}, optional={"role": text, "content": text, "x": text}), max_size=2),
    st.fixed_dictionaries({}, optional={"role": text, "content": text}),
)
bodies = st.dictionaries(st.sampled_from([*ChatRequest().load_fields, "unknown"]), value, max_size=6)


def came_to(schema: Schema, data: Any) -> Any:
    """What marshmallow's own `load` gives, or what it refuses, in its order."""
    try:
        return Schema.load(schema, data)
    except ValidationError as error:
        return [*error.normalized_messages().items()]


def sparsely(schema: Sparse, data: Any) -> Any:
    try:
        return schema.load(data)
    except ValidationError as error:
        return [*error.normalized_messages().items()]


chat_request, chat_headers = ChatRequest(), ChatHeaders()


@given(bodies | st.fixed_dictionaries({"message": text}, optional={"session_id": text, "user_id": text}) | value)
def test_a_chat_is_loaded_as_its_schema_says(data: Any) -> None:
    assert sparsely(chat_request, data) == came_to(ChatRequest(), data)


@given(st.dictionaries(st.sampled_from(["Idempotency-Key", "idempotency_key", "Other"]), text))
def test_headers_are_loaded_as_their_schema_says(data: dict[str, str]) -> None:
    assert sparsely(chat_headers, data) == came_to(ChatHeaders(), data)


class Order(Sparse):
    """Every way to have a default, or none."""

    name = fields.String(required=True, validate=validate.Length(1))
    nick = fields.String(data_key="the-nick", load_default="nobody")
    made = fields.List(fields.Integer(), load_default=list)
    bare = fields.Integer()
    renamed = fields.Integer(attribute="other", load_default=7)
    told = fields.Integer(dump_only=True)


order = Order()


@given(st.dictionaries(st.sampled_from(["name", "nick", "the-nick", "made", "bare", "renamed", "told", "x"]), value))
def test_any_default_is_what_the_schema_gives(data: dict[str, Any]) -> None:
    assert sparsely(order, data) == came_to(Order(), data)


def test_what_is_loaded_is_the_caller_s_own() -> None:
    first = order.load({"name": "ada"})
    first["made"].append(1)
    first["nick"] = "changed"
    assert order.load({"name": "ada"}) == {"name": "ada", "nick": "nobody", "made": [], "other": 7}


def test_as_many_and_in_part_it_loads_like_any_schema() -> None:
    assert order.load([{"name": "ada"}], many=True) == [order.load({"name": "ada"})]
    assert order.load({}, partial=True) == {}
    with pytest.raises(ValidationError):
        order.load({})
