"""Reading JSON item by item gives what reading it whole gives, wherever the pieces are cut."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import streamed_json
from schemas.streamed_json import NotJson, walk

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
documents = st.lists(values, max_size=6) | st.dictionaries(st.text(max_size=4), values, max_size=6)


def items_of(document: Any) -> list[tuple[str | None, Any]]:
    """What `walk` is to give, from the document read whole."""
    if isinstance(document, list):
        return [(None, item) for item in document]
    return [(key, item) for key, value in document.items() for item in (value if isinstance(value, list) else [value])]


@given(document=documents, indent=st.sampled_from([None, 0, 3]), ascii_=st.booleans(), chunk=st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_item_by_item_is_the_same_as_whole(document: Any, indent: int | None, ascii_: bool, chunk: int) -> None:
    data = json.dumps(document, indent=indent, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        return  # half a pair: no UTF-8
    with cut_at(chunk):
        assert list(walk(io.BytesIO(data))) == items_of(document)


@contextmanager
def cut_at(chunk: int) -> Iterator[None]:
    """Reads of so many bytes, within the block."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(streamed_json, "CHUNK", chunk)
        yield


@given(document=documents, chunk=st.integers(1, 40), data=st.data())
@settings(max_examples=100, deadline=None)
def test_what_is_cut_off_is_noticed(document: Any, chunk: int, data: st.DataObject) -> None:
    text = json.dumps(document)
    end = data.draw(st.integers(0, len(text) - 1))
    with cut_at(chunk), pytest.raises(NotJson):
        list(walk(io.BytesIO(text[:end].encode())))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "at character 1: an array or an object was expected"),
        ("  7", "at character 3: an array or an object was expected"),
        ("[1 2]", "at character 4: , was expected"),
        ("[1,]", "at character 4: nothing follows a comma"),
        ('{"a": 1,}', "at character 9: nothing follows a comma"),
        ('{"a" 1}', "at character 6: : was expected"),
        ("{1: 2}", "a key was expected"),
        ("[1] x", "at character 5: the end was expected"),
        ('[{"a": tru}]', "at character 8: Expecting value"),
        ("[nul", "at character 2: Expecting value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, told: str) -> None:
    with pytest.raises(NotJson, match="at character") as caught:
        list(walk(io.BytesIO(text.encode())))
    assert told in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff[]", b'["\xff"]', "[1]".encode("utf-16")])
def test_only_utf8_is_read(data: bytes) -> None:
    with pytest.raises(NotJson, match="UTF-8"):
        list(walk(io.BytesIO(data)))
    assert list(walk(io.BytesIO('["é"]'.encode("utf-8-sig")))) == [(None, "é")]


def test_an_item_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_json, "ITEM_CHARS_MAX", 1000)
    monkeypatch.setattr(streamed_json, "CHUNK", 100)

    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return b"x" * size if self.given > size else b'["' + b"x" * (size - 2)

    file = Endless()
    with pytest.raises(NotJson, match="more than 1,000 characters"):
        list(walk(file))  # type: ignore[arg-type]
    assert file.given < 5000
