"""Writing a commit of an index: one new segment at the most, and the table of contents that names it.

What is new goes into the new segment together with the small ones, and with every one that loses a message.  Whoosh's
own writer takes one document after the other, field by field, and gathers them in temporary files; here a segment's
columns are there as a whole, and are written one behind the other into the segment's file, as Whoosh reads it.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from whoosh.codec.whoosh3 import W3Codec, W3Segment
from whoosh.filedb.compound import CompoundStorage
from whoosh.filedb.filestore import FileStorage, RamStorage
from whoosh.filedb.structfile import StructFile
from whoosh.index import _DEF_INDEX_NAME, TOC, clean_files

from search_index.postings import SCHEMA, TERM, Columns, Segment, has_postings
from search_index.sums import file_of, sum_of

MERGE_AT_MOST = 8_000
"""Messages up to which segments are merged; bounds what one commit rewrites to about a second of work."""

_BLOCK = 1 << 12  # postings that are Python's own numbers at a time


def merged(
    segments: Sequence[Segment], new: Sequence[Columns], staying: Sequence[NDArray[np.bool_]]
) -> tuple[list[Segment], list[Columns]]:
    """The segments that stay as they are, and what goes into the new one; `staying` says of each segment which of its
    messages it keeps.

    A segment goes in while it is no larger than what is going in already, as in a binary counter: some log2(n)
    segments for n messages, each message rewritten log2(n) times at most.
    """
    kept, going_in, size = [], list(new), sum(map(len, new))
    pairs = [(segment, stay, int(stay.sum())) for segment, stay in zip(segments, staying, strict=True)]
    for segment, stay, count in sorted(pairs, key=lambda pair: pair[2]):
        small = count <= size and size < MERGE_AT_MOST
        if not small and count == len(stay):
            kept.append(segment)
        elif count:
            columns = segment.columns()
            going_in.append(columns if count == len(stay) else columns.where(stay))
            size += count
    return kept, going_in


def write_segment(folder: Path, parts: Sequence[Columns]) -> W3Segment:
    """Write a new segment's file; no commit knows of it yet."""
    segment = W3Segment(W3Codec(), _DEF_INDEX_NAME, sum(map(len, parts)), secrets.token_hex(8))
    segment.compound = True
    many = np.concatenate([part.many for part in parts])
    columns: dict[str, list[NDArray[Any]]] = {
        "row": [np.ascontiguousarray(part.rows, "<i8") for part in parts],
        "bag": [*(part.terms for part in parts), *_lengths(many * TERM.itemsize)],
    }
    if any(part.vectors.any() for part in parts):
        columns["vector"] = [part.vectors for part in parts]
    files: dict[str, Sequence[Any]] = {
        W3Codec.column_filename(segment, name): column for name, column in columns.items()
    }
    if has_postings(len(many)):
        files |= _postings(segment, parts, many)
    path = file_of(folder, segment)
    directory = {}
    with path.open("wb") as file:
        out = StructFile(file)
        out.write_long(0)  # where the directory will be,
        out.write_int(0)  # and how long
        for name, contents in files.items():
            start = file.tell()
            file.writelines(contents)
            directory[name] = {"offset": start, "length": file.tell() - start}
        CompoundStorage.write_dir(out, 0, directory)
    segment.sum = sum_of(path)
    return segment


def _lengths(many: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The end of a column of byte strings: how long each is, and by which code of `array` that is written."""
    return many.astype(">u4"), np.frombuffer(b"I", np.uint8)


def _postings(segment: W3Segment, parts: Sequence[Columns], many: NDArray[np.int64]) -> dict[str, Sequence[bytes]]:
    """The files of a segment's postings."""
    storage = RamStorage()
    writer = segment.codec().field_writer(storage, segment)
    writer.add_postings(SCHEMA, None, _by_term(parts, many))
    writer.close()
    return {name: [content] for name, content in storage.files.items()}


def _by_term(parts: Sequence[Columns], many: NDArray[np.int64]) -> Iterator[tuple[str, bytes, int, float, bytes]]:
    """Field, term, place of a message, how often it has the term, nothing more: by term and then by place."""
    codes = np.concatenate([part.terms["code"] for part in parts])
    counts = np.concatenate([part.terms["count"] for part in parts])
    places = np.arange(len(many), dtype=np.int32).repeat(many)
    order = codes.argsort(kind="stable")
    for at in range(0, len(order), _BLOCK):
        block = order[at : at + _BLOCK]
        numbers = codes[block].tolist(), places[block].tolist(), counts[block].tolist()
        for term, place, count in zip(*numbers, strict=True):
            yield "terms", term.to_bytes(8, "big"), place, float(count), b""


def write_contents(folder: Path, number: int, segments: Sequence[Any]) -> Path:
    """Make these segments the latest commit, the `number`th, and clear away what is no part of it."""
    storage = FileStorage(str(folder))
    TOC(SCHEMA, segments, number).write(storage, _DEF_INDEX_NAME)
    clean_files(storage, _DEF_INDEX_NAME, number, segments)
    # Of Whoosh's own writer, which wrote here before, and was killed.
    shutil.rmtree(folder / f"{_DEF_INDEX_NAME}.tmp", ignore_errors=True)
    return folder / TOC._filename(_DEF_INDEX_NAME, number)
