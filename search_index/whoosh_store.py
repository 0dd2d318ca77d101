"""Whoosh's files, a directory for each owner: a full-text index beside columns of what the ranking reads.

The directory holds Whoosh's files and `generation`, a random token that lives and dies with it.  Who writes to it or
deletes it holds a lock beside it; readers take none, and compare tokens before and after.

Guarantee: a commit is on the disk when `add` or `remove` returns (Whoosh itself never syncs).  Each message's columns
have a checksum: bytes that are not as they were written count as damage, and the whole index is then deleted.
"""

import errno
import hashlib
import logging
import os
import pickle  # nosec B403
import secrets
import shutil
import struct
import sys
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection
from whoosh.analysis import IDTokenizer
from whoosh.columns import FixedBytesColumn, VarBytesColumn
from whoosh.fields import COLUMN, ID, TEXT, Schema
from whoosh.index import TOC, FileIndex, create_in, open_dir
from whoosh.index import IndexError as WhooshError
from whoosh.query import And, AndMaybe, Every, Not, Or, Phrase, Prefix, Query, Term
from whoosh.reading import IndexReader, SegmentReader, TermNotFound
from whoosh.scoring import BM25F
from whoosh.searching import Searcher
from whoosh.util.filelock import FileLock, try_for
from whoosh.writing import SegmentWriter

from search_index.arrays import K1, REACH, ROW, B, SearchableText, Segment, checksum
from search_index.index_storage import NO_INDEX, Analysed, Best, IndexBusy, IndexLost, IndexStore, MadeWith, Snapshot
from search_index.query import NO_FILTERS, Filters, Operators, Part, PreparedQuery

log = logging.getLogger(__name__)

SCHEMA = Schema(
    id=ID(unique=True),
    session=ID,
    content=TEXT(analyzer=IDTokenizer()),  # a placeholder: terms come analysed, as a list
    row=COLUMN(FixedBytesColumn(ROW.itemsize)),
    bag=COLUMN(VarBytesColumn()),
    vector=COLUMN(VarBytesColumn()),
)

_INDEX_NAME = "messages"
_PAUSE = 0.02  # seconds
POSTINGS_MB = 2  # that a commit sorts in memory, others in files: Whoosh's 128 would hold all that a merge reads anew

# What it raises to parse and unpickle files that were overwritten, cut short or deleted.
_DAMAGE = (
    WhooshError, FileNotFoundError, NotADirectoryError, TermNotFound, pickle.PickleError, struct.error, zlib.error,
    ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, ImportError, LookupError, MemoryError,
    NameError, RuntimeError, TypeError, ValueError,
)  # fmt: skip

T = TypeVar("T")


class Damaged(Exception):
    """Raised when an index can't be read, or holds other bytes than were written.  The cause says what was wrong."""


class WhooshStore(IndexStore):
    """Owners' indexes under one folder, each named by a hash."""

    def __init__(self, root: Path, wait: float, made_with: MadeWith) -> None:
        """`wait`: seconds a writer waits for another."""
        self._root = root
        self._wait = wait
        self._made_with = made_with
        self._notice_file = root / ".forget"

    def open(self) -> None:
        """Do nothing: each directory is made with its index."""

    def state(self, owner: str) -> tuple[str, str]:
        """Return the state of the index.  Raises OSError for one that can't be read."""
        notice = ""
        with suppress(OSError):  # nobody wrote a notice yet, or this process may not read it
            notice = self._notice_file.read_text()
        return self._token(owner), notice

    def notify(self) -> None:
        """Write a new notice.  Raises OSError."""
        self._root.mkdir(parents=True, exist_ok=True)
        self._notice_file.write_text(secrets.token_hex(8))

    def held(self, owner: str) -> tuple[str, set[int]]:
        """Return the generation and the ids of all messages, read from the disk; a damaged index is deleted first."""
        while (generation := self._token(owner)) != NO_INDEX:
            with suppress(IndexLost):
                segments = self._read(owner, generation, lambda: _segments_of(self._index(owner))) or {}
                return generation, set().union(*(segment.rows["id"].tolist() for segment in segments.values()))
        return NO_INDEX, set()

    def snapshot(
        self, owner: str, generation: str, known: Snapshot, most: int, connection: Connection | None
    ) -> Snapshot:
        """Return the latest commit; segments that were read before are not read again.  Raises OSError as well."""
        index: FileIndex = known.opened or self._read(owner, generation, lambda: self._index(owner))
        commit = index.latest_generation()  # a commit between this and the read is read once more next time
        if commit == known.commit:
            return known
        segments = self._read(owner, generation, lambda: _segments_of(index, known.segments, most))
        return Snapshot(commit, segments, index)

    def matching(self, owner: str, generation: str, operators: Operators, connection: Connection | None) -> set[int]:
        """Return the ids of the messages that the operators leave.  Raises OSError as well."""
        return self._read(owner, generation, lambda: _matching(self._index(owner), query_of(operators)))

    def best(
        self, owner: str, generation: str, prepared: PreparedQuery, limit: int, connection: Connection | None
    ) -> Best:
        """Return the best by BM25, and those stored beside them.  Raises OSError as well."""
        query = likely(prepared.operators, [*prepared.terms, *prepared.forms])
        return self._read(owner, generation, lambda: _best(self._index(owner), query, prepared.query.filters, limit))

    def _token(self, owner: str) -> str:
        """Return the generation of the index that is there now, or NO_INDEX."""
        try:
            written = (self._path(owner) / "generation").read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return NO_INDEX
        token, _, made_with = written.partition("\n")
        return token if made_with.startswith(self._made_with()) else NO_INDEX

    def _index(self, owner: str) -> FileIndex:
        """Return the index, for `_read`; it stays valid when others commit."""
        return open_dir(str(self._path(owner)), _INDEX_NAME, schema=SCHEMA)

    def _read(self, owner: str, generation: str, work: Callable[[], T]) -> T:
        """Return what `work` reads of this generation.

        Raises IndexLost, also for a damaged index, which is then deleted (IndexBusy while another process writes to
        it); OSError for one that can't be read.
        """
        for pause in (_PAUSE, 2 * _PAUSE, 0.0):  # files vanish while another process commits: that is no damage
            try:
                with _recognised():
                    done = work()
                damage = None
            except Damaged as error:
                damage = error
            if self._token(owner) != generation:
                raise IndexLost("the index was replaced")
            if damage is None:
                return done
            time.sleep(pause)
        with self._locked(owner, wait=0):
            if self._token(owner) == generation:
                self._delete_damaged(owner, damage)
        raise IndexLost("the index was damaged")

    def add(self, owner: str, texts: Iterable[SearchableText], analysed: Analysed) -> str:
        """Index the texts.  Raises OSError as well, when the disk is full or forbidden."""
        with self._locked(owner, self._wait):
            by_id = {text.message_id: text for text in texts}
            try:
                self._add(owner, by_id, analysed)
            except Damaged as error:
                self._delete_damaged(owner, error)
                self._add(owner, by_id, analysed)
            return self._token(owner)

    def _add(self, owner: str, by_id: dict[int, SearchableText], analysed: Analysed) -> None:
        if by_id and self._token(owner) == NO_INDEX:
            self._create(owner)
        with _recognised():
            indexed = _held(self._index(owner), by_id) if by_id else set()
        if entries := analysed([text for message_id, text in by_id.items() if message_id not in indexed]):
            with self._writer(owner) as writer:
                for entry in entries:
                    writer.add_document(
                        id=str(entry.text.message_id),
                        session=str(entry.text.session_id),
                        content=entry.terms,
                        row=entry.row,
                        bag=entry.postings,
                        vector=entry.vector,
                    )

    def remove(
        self, owner: str, *, message_ids: Collection[int] = (), session_id: int | None = None, scrub: bool = True
    ) -> None:
        """Take out the messages; without `scrub` the segments keep what is only not found."""
        with self._locked(owner, self._wait):
            if self._token(owner) == NO_INDEX:  # of another format, or no index: what it holds can't be told
                self._delete(owner)
                return
            try:
                with self._writer(owner, optimize=scrub) as writer, _recognised():
                    for message_id in message_ids:
                        writer.delete_by_term("id", str(message_id))
                    if session_id is not None:
                        writer.delete_by_term("session", str(session_id))
            except Damaged as error:
                self._delete_damaged(owner, error)

    def drop(self, owner: str) -> None:
        """Delete the directory."""
        with self._locked(owner, self._wait):
            self._delete(owner)

    def _path(self, owner: str) -> Path:
        return self._root / hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @contextmanager
    def _locked(self, owner: str, wait: float) -> Iterator[None]:
        """Hold the lock of the writers of this owner, and of some others.  Raises IndexBusy."""
        folder = self._root / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(folder / self._path(owner).name[:3]))  # too short to tell of an owner, so it may stay
        if not try_for(lock.acquire, timeout=wait, delay=_PAUSE):
            raise IndexBusy("another process writes to the index")
        try:
            yield
        finally:
            lock.release()

    def _create(self, owner: str) -> None:
        """Make an empty index in place of whatever is there.  Until its token is written it counts as none."""
        self._delete(owner)
        path = self._path(owner)
        path.mkdir()
        create_in(str(path), SCHEMA, _INDEX_NAME)
        (path / "generation").write_text(f"{secrets.token_hex(16)}\n{self._made_with()}", "utf-8")

    def _delete(self, owner: str) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self._path(owner))
            _sync(self._root)

    def _delete_damaged(self, owner: str, damage: Damaged | None) -> None:
        log.warning("The search index %s was damaged and is deleted.", self._path(owner).name, exc_info=damage)
        self._delete(owner)

    @contextmanager
    def _writer(self, owner: str, *, optimize: bool = False) -> Iterator[SegmentWriter]:
        """Whoosh's writer, which commits unless the block raises.  Raises Damaged."""
        with _recognised():
            writer = self._index(owner).writer(limitmb=POSTINGS_MB)
        try:
            yield writer
            with _recognised():
                writer.commit(optimize=optimize)
        finally:
            if not writer.is_closed:
                with suppress(OSError):  # of a full disk: files that stay behind go with the next commit
                    writer.cancel()
            if writer.writelock.fd is not None:
                writer.writelock.release()
        path = self._path(owner)
        for file in (*path.iterdir(), path, self._root):
            _sync(file)


def _sync(file: Path) -> None:
    """Bring a file, or a directory's entries, to the disk."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _recognised() -> Iterator[None]:
    """Whatever Whoosh stumbles over in its files becomes Damaged; a full disk, a forbidden file and the like stay."""
    try:
        yield
    except _DAMAGE as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error
    except OSError as error:
        if error.errno == errno.EINVAL:  # a place in a file that can't be
            raise Damaged(str(error)) from error
        raise


def _segments_of(
    index: FileIndex, known: dict[Any, Segment] | None = None, most: int = sys.maxsize
) -> dict[Any, Segment] | None:
    """Return the messages of each segment; None if there are more than `most`.

    What is `known` is not read again: a segment never changes but by losing messages.  A reader of the whole index
    would open all of them, which takes longer than to read a new one.
    """
    segments = {}
    every = TOC.read(index.storage, index.indexname, schema=SCHEMA).segments
    if sum(segment.doc_count() for segment in every) > most:
        return None
    for written in every:
        key = written.segment_id(), written.doc_count()
        if known is not None and key in known:
            segments[key] = known[key]
        elif written.doc_count():
            with closing(SegmentReader(index.storage, SCHEMA, written)) as reader:
                segments[key] = _segment(reader, reader.all_doc_ids())
    return segments


def _matching(index: FileIndex, query: Query) -> set[int]:
    """Return the ids of all messages that `query` finds."""
    with closing(index.reader()) as reader:
        return _ids(reader, Searcher(reader).docs_for_query(query)) if reader.doc_count() else set()


def _held(index: FileIndex, message_ids: Iterable[int]) -> set[int]:
    """Return which of these messages the index holds.  A term stays for a while after its message was removed."""
    with closing(index.reader()) as reader:
        named = [Term("id", str(message_id)) for message_id in message_ids if ("id", str(message_id)) in reader]
    return _matching(index, Or(named)) if named else set()


def _best(index: FileIndex, query: Query, filters: Filters, limit: int) -> tuple[Segment, set[int]]:
    """Return the best messages for `query` and those stored beside them, at most `limit`; and the ids of the best."""
    with closing(index.reader()) as reader:
        searcher = Searcher(reader, weighting=BM25F(B=B, K1=K1))
        passing = _passing(reader, searcher, filters)
        found: list[int] = []
        if passing != set():  # which would count as no filter
            hits = searcher.search(query, limit=limit // (2 * REACH + 1), filter=passing)
            found = [number for number, _ in hits.items()]
        beside = {number + step for number in found for step in range(-REACH, REACH + 1)}
        there = [number for number in sorted(beside) if 0 <= number < reader.doc_count_all()]
        return _segment(reader, [number for number in there if not reader.is_deleted(number)]), _ids(reader, found)


def _passing(reader: IndexReader, searcher: Searcher, filters: Filters) -> set[int] | None:
    """Return the document numbers of the messages that pass the filters; None: all do."""
    if filters == NO_FILTERS:
        return None
    in_session = Every() if filters.session is None else Term("session", str(filters.session))
    numbers = list(searcher.docs_for_query(in_session))
    column = reader.column_reader("row", translate=False)
    rows = np.frombuffer(b"".join(column[number] for number in numbers), ROW)
    return {numbers[at] for at in filters.match(rows["session"], rows["role"], rows["created"]).nonzero()[0]}


def _ids(reader: IndexReader, numbers: Iterable[int]) -> set[int]:
    """Return the ids of the messages with these document numbers."""
    rows = reader.column_reader("row", translate=False)
    return {int.from_bytes(rows[number][:8], "little", signed=True) for number in numbers}


def _segment(reader: IndexReader, numbers: Iterable[int]) -> Segment:
    """Return the messages with these document numbers.  Raises Damaged."""
    doc_numbers = list(numbers)
    columns = [reader.column_reader(name, translate=False) for name in ("row", "bag", "vector")]
    rows, postings, vectors = ([column[number] for number in doc_numbers] for column in columns)
    segment = Segment.of(rows, postings, vectors)
    if list(map(checksum, rows, postings, vectors)) != segment.rows["checksum"].tolist():
        raise Damaged("a message in the index is not as it was written")
    return segment


# -- Whoosh's query objects; text never reaches its query parser


def query_of(operators: Operators) -> Query:
    """Return a query for the messages that the operators leave."""
    parts = list(map(_of_part, operators.required)) or [Every()]
    return And([*parts, *(Not(_of_part(part)) for part in operators.excluded)])


def _of_part(part: Part) -> Query:
    if part.prefix:
        return Or([Prefix("content", part.prefix), *(Term("content", term) for term in part.terms)])
    return And([Phrase("content", row) if len(row) > 1 else Term("content", row[0]) for row in part.rows])


def likely(operators: Operators, terms: Sequence[str]) -> Query:
    """Return a query for messages with any of `terms`, the best first."""
    any_term = Or([Term("content", term) for term in terms])
    return AndMaybe(query_of(operators), any_term) if operators.required else And([query_of(operators), any_term])
