"""A reply's memory and usage are written as their schemas say."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace as Value
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from marshmallow import Schema, fields

from schemas.chat import ChatUsage, Memory
from schemas.dumping import dumper
from schemas.fields import UtcDateTime

texts, numbers = st.text(max_size=20), st.integers(-(2**40), 2**40)
scores = st.floats(allow_nan=False, allow_infinity=False)
times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


class Leaf(Schema):
    text = fields.String(allow_none=True)
    number = fields.Integer(allow_none=True)
    score = fields.Float()
    yes = fields.Boolean()
    at = UtcDateTime(allow_none=True)


class Tree(Schema):
    first = fields.Nested(Leaf, data_key="the-first")
    leaves = fields.List(fields.Nested(Leaf))
    names = fields.List(fields.String())
    deep = fields.Float(attribute="first.score")
    parts = fields.Dict(keys=fields.String(), values=fields.Float())
    made = fields.Method("_made")

    def _made(self, tree: Any) -> dict[str, int]:
        return {"leaves": len(tree.leaves)}

    class Meta:
        fields = ("parts", "first", "leaves", "names", "deep", "made")


leaf = st.builds(
    Value, text=texts | st.none(), number=numbers | st.none(), score=scores, yes=st.booleans(), at=times | st.none()
)
tree = st.builds(
    Value,
    first=leaf,
    leaves=st.lists(leaf, max_size=3),
    names=st.lists(texts, max_size=3),
    parts=st.dictionaries(texts, scores, max_size=3),
)


@given(tree)
def test_what_is_dumped_is_what_the_schema_dumps_in_its_order(value: Value) -> None:
    told, expected = dumper(Tree())(value), Tree().dump(value)
    assert told == expected and list(told) == list(expected)
    assert list(told["the-first"]) == list(expected["the-first"])


def test_what_is_not_there_stays_none() -> None:
    nothing = Value(first=None, leaves=None, names=None, parts=None)
    schema = Tree(exclude=("made", "deep"))
    assert dumper(schema)(nothing) == schema.dump(nothing) == dict.fromkeys(("parts", "the-first", "leaves", "names"))


def test_the_usage_of_a_reply_is_read_within_what_was_spent() -> None:
    spent = Value(prompt_tokens=7, completion_tokens=2, total_tokens=9, estimated=False)
    usage = Value(spent=spent, full_history_tokens=30, saved_tokens=23)
    assert dumper(ChatUsage())(usage) == ChatUsage().dump(usage)


def test_every_part_of_the_memory_is_written() -> None:
    recalled = Value(excerpts=(), mode="auto", reason="nothing fits")
    report = Value(
        summary_version=1, state="current", head_version=1, facts=(), recalled=recalled, tail_messages=2, tail_dropped=0
    )
    assert dumper(Memory())(report) == Memory().dump(report)
