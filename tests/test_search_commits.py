"""Segments of an index: each is Whoosh's, though it is written a column at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from whoosh.filedb.filestore import FileStorage
from whoosh.index import FileIndex
from whoosh.reading import SegmentReader
from whoosh.writing import SegmentWriter

import search_index.postings
from search_index import SearchIndex
from search_index.commits import write_segment
from search_index.postings import PACKED_BYTES, SCHEMA, TERM, Columns, Entry, Segment, code
from search_index.sums import Place, file_of
from tests.searching import message

ENTRIES = [
    Entry(7, 1, 10, -3, 3, 5, {"apple": 2, "river": 1}, bytes(range(256))),
    Entry(8, 2, 11, 5, 0, 0, {}),
    Entry(9, 1, -12, 5, 70_001, 0, {f"word{number}": 1 for number in range(6_000)} | {"river": 64_001}),
]


def same(one: Columns, other: Columns) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("rows", "terms", "many", "vectors")
    )


def opened(folder: Path, written: Any) -> Segment:
    return Segment(FileStorage(str(folder)), written, Place.of(str(file_of(folder, written))))


def test_a_segment_has_what_was_written_and_whoosh_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index.postings, "POSTINGS_FROM", 1)
    columns = Columns.of(ENTRIES)
    written = write_segment(tmp_path, [columns.where(np.array([True, False, False])), Columns.of(ENTRIES[1:])])
    segment = opened(tmp_path, written)
    assert same(segment.columns(), columns)
    assert [part.tolist() for part in segment.postings("river")] == [[0, 2], [1.0, 64_001.0]]
    assert [part.tolist() for part in segment.postings("pear")] == [[], []]
    segment.close()
    reader = SegmentReader(FileStorage(str(tmp_path)), SCHEMA, written)
    row, bag, vector = (reader.column_reader(name) for name in ("row", "bag", "vector"))
    ends = columns.many.cumsum().tolist()
    for at, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        assert row[at] == columns.rows[at].tobytes()
        assert bag[at] == columns.terms[start:end].tobytes()
        assert vector[at] == columns.vectors[at].tobytes()
    reader.close()


@pytest.mark.parametrize("copies", [1, 20_000])  # Whoosh writes where each begins from 32,769 on
def test_a_segment_of_whooshs_own_writer_is_read(tmp_path: Path, copies: int) -> None:
    columns = Columns.of(ENTRIES[:2])
    writer = SegmentWriter(FileIndex.create(FileStorage(str(tmp_path)), SCHEMA))
    term = np.array([(code("apple"), 2), (code("river"), 1)], TERM).tobytes()
    for _ in range(copies):
        writer.add_document(row=columns.rows[0].tobytes(), bag=term, vector=columns.vectors[0].tobytes())
        writer.add_document(row=columns.rows[1].tobytes(), bag=b"")
    writer.commit()
    segment = opened(tmp_path, writer.newsegment)
    read = segment.columns()
    segment.close()
    assert len(read) == 2 * copies and read.vectors.shape == (2 * copies, PACKED_BYTES)
    for at in (0, 2 * copies - 2):
        pair = np.isin(np.arange(2 * copies), [at, at + 1])
        assert same(read.where(pair), columns)


def test_what_whooshs_own_writer_left_when_it_was_killed_goes_with_the_next_commit(tmp_path: Path) -> None:
    index = SearchIndex(tmp_path)
    index.add("ana", [message(1, "tea")])
    left = next(tmp_path.iterdir()) / "MAIN.tmp"
    left.mkdir()
    (left / "x.ctmp").write_text("secret")
    index.remove("ana", message_ids=[2])
    assert not left.exists() and index.held("ana")[1] == {1}
