"""Reading JSON item by item gives what reading it whole gives."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import json_items
from schemas.json_items import NotJson, is_array, walk

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
documents = st.lists(values, max_size=6) | st.dictionaries(st.text(max_size=4), values, max_size=6)


def items_of(document: Any) -> list[tuple[str | None, Any]]:
    """What `walk` is to give, from the document read whole."""
    if isinstance(document, list):
        return [(None, item) for item in document]
    return [(key, item) for key, value in document.items() for item in (value if isinstance(value, list) else [value])]


@given(document=documents, indent=st.sampled_from([None, 3]), start=st.sampled_from([b"", b"\xef\xbb\xbf"]))
@settings(max_examples=100, deadline=None)
def test_item_by_item_is_the_same_as_whole(document: Any, indent: int | None, start: bytes) -> None:
    assert list(walk(io.BytesIO(start + json.dumps(document, indent=indent).encode()))) == items_of(document)


@given(document=documents, data=st.data())
@settings(max_examples=50, deadline=None)
def test_what_is_cut_off_is_noticed(document: Any, data: st.DataObject) -> None:
    text = json.dumps(document)
    with pytest.raises(NotJson):
        list(walk(io.BytesIO(text[: data.draw(st.integers(0, len(text) - 1))].encode())))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"", "premature EOF (after 0 items)"),
        (b"[1, 2 3]", "after array element, I expect ',' or ']' (after 2 items)"),
        (b"[1,]", "unallowed token at this point in JSON text (after 1 items)"),
        (b"[1] x", "trailing garbage (after 1 items)"),
        (b'[{"a": tru}]', "invalid string in json text (after 0 items)"),
        (b'["\xff"]', "invalid bytes in UTF8 string (after 0 items)"),
        (b"[NaN]", "invalid char in json text (after 0 items)"),
        (b"[18446744073709551616]", "integer overflow (after 0 items)"),
        (b"[" * 200_000, "it is nested too deeply"),
        (b'{"a":' * 200_000, "it is nested too deeply"),
    ],
)
def test_what_is_wrong_is_said(text: bytes, told: str) -> None:
    with pytest.raises(NotJson) as caught:
        list(walk(io.BytesIO(text)))
    assert str(caught.value) == told


def test_an_item_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_items, "ITEM_BYTES_MAX", 1 << 20)
    several = io.BytesIO(json.dumps(["x" * 500_000] * 5).encode())
    assert len(list(walk(several))) == 5
    with pytest.raises(NotJson, match="more than 1,048,576 bytes"):
        list(walk(io.BytesIO(b'["' + b"x" * (1 << 22))))


def test_a_document_is_an_array_or_an_object() -> None:
    for data, array in ((b"\xef\xbb\xbf [1]", True), (b' {"a": 1}', False)):
        assert is_array(io.BytesIO(data)) is array
    for data in (b"", b"  7", b'"text"', "[1]".encode("utf-16")):
        with pytest.raises(NotJson):
            is_array(io.BytesIO(data))
