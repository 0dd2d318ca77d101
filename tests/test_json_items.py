"""Reading JSON item by item gives what reading it whole gives."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.transfer import json_reader
from memory.transfer.json_reader import NotJson, Parts, iter_items

names = st.sampled_from(["a", "b"]) | st.text(max_size=4)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
documents = st.lists(values, max_size=6) | st.dictionaries(names, values, max_size=6)


PARTS: Parts = {None: {"a": "start_map", "b": "start_array"}, "a": {"a": "start_array", "b": "start_map"}}


def read(text: bytes) -> list[tuple[Any, Any]]:
    return list(iter_items(io.BytesIO(text), PARTS))


def items_of(document: Any) -> list[tuple[Any, Any]]:
    """What `iter_items` is to give, from the document read whole."""
    found: list[tuple[Any, Any]] = []
    for key, value in document.items() if isinstance(document, dict) else [(None, document)]:
        if not isinstance(value, list):
            found.append(((key,), value))
            continue
        for number, item in enumerate(value):
            parts = PARTS.get(key, {}) if isinstance(item, dict) else {}
            whole = dict(item) if parts else item
            for name, value in item.items() if parts else ():
                empty: Any = {"start_map": {}, "start_array": []}.get(parts.get(name, ""))
                if empty is not None and isinstance(value, type(empty)):
                    members = value.items() if isinstance(value, dict) else enumerate(value)
                    found += [((key, number, name, place), part) for place, part in members]
                    whole[name] = empty
            found.append(((key, number), whole))
    return found


@given(document=documents, indent=st.sampled_from([None, 3]), start=st.sampled_from([b"", b"\xef\xbb\xbf"]))
@settings(max_examples=50, deadline=None)
def test_item_by_item_is_the_same_as_whole(document, indent, start):
    assert read(start + json.dumps(document, indent=indent).encode()) == items_of(document)


@given(document=documents, data=st.data())
@settings(max_examples=50, deadline=None)
def test_what_is_cut_off_is_noticed(document, data):
    text = json.dumps(document)
    with pytest.raises(NotJson):
        read(text[: data.draw(st.integers(0, len(text) - 1))].encode())


def test_what_is_wrong_is_said():
    for text, told in (
        (b"", "premature EOF (after 0 items)"),
        (b"[1, 2 3]", "after array element, I expect ',' or ']' (after 2 items)"),
        (b'["\xff"]', "invalid bytes in UTF8 string (after 0 items)"),
        (b"[18446744073709551616]", "integer overflow (after 0 items)"),
        (b'{"a":' * 200_000, "it is nested too deeply"),
    ):
        with pytest.raises(NotJson) as caught:
            read(text)
        assert str(caught.value) == told


def test_an_item_without_end_does_not_fill_the_memory(monkeypatch):
    for limit in ("PART_BYTES_MAX", "ITEM_BYTES_MAX"):
        monkeypatch.setattr(json_reader, limit, 1 << 21)
    several = json.dumps(["x" * 1_000_000] * 5).encode()
    assert len(read(several)) == 5 and len(read(b"[" + b"[0]," * 50_000 + b"0]")) == 50_001
    for text in (
        b'["' + b"x" * (1 << 23),
        b"[[" + b"0," * (1 << 17),
        b'{"a": [{"c": {' + b'"k":0,' * (1 << 16),
        b'{"a": [{' + b'"k":{},' * (1 << 16),
        b'{"a": [{"a": [' + b"0," * (1 << 17),
        b'[{"a": {' + b'"k":{},' * (1 << 16),
        b"[" + b" " * (1 << 23),
    ):
        with pytest.raises(NotJson, match="too large, or has too many values"):
            read(text)


def test_a_document_is_an_array_or_an_object():
    for data in (b"\xef\xbb\xbf [1]", b' {"a": 1}'):
        assert len(list(iter_items(io.BytesIO(data), {}, lines=True))) == 1
    for data in (b"", b"  7", b'"text"', "[1]".encode("utf-16")):
        with pytest.raises(NotJson):
            list(iter_items(io.BytesIO(data), {}, lines=True))
