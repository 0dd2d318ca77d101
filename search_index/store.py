"""One owner's messages in Whoosh: a full-text index beside columns of what the ranking reads.

Guarantee: a commit is on the disk when `add` or `remove` returns (Whoosh itself never syncs).  Each message's columns
have a checksum: bytes that are not as they were written count as damage, and the whole index is then put away.
"""

from __future__ import annotations

import errno
import logging
import pickle  # nosec B403
import struct
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, TypeVar

from whoosh.analysis import IDTokenizer
from whoosh.columns import FixedBytesColumn, VarBytesColumn
from whoosh.fields import COLUMN, ID, TEXT, Schema
from whoosh.index import FileIndex, LockError, create_in, open_dir
from whoosh.index import IndexError as WhooshError
from whoosh.query import Query
from whoosh.reading import IndexReader, TermNotFound
from whoosh.scoring import BM25F
from whoosh.searching import Searcher
from whoosh.writing import SegmentWriter

from search_index.arrays import ROW, Block, Entry, checksum
from search_index.directory import INDEX_NAME, NO_INDEX, Directory, IndexBusy
from search_index.ranking import K1, REACH, B
from search_index.vectors import PACKED_BYTES

log = logging.getLogger(__name__)

FORMAT = 5
"""How an index is written.  One that was written otherwise counts as none, and is made again."""

TEXT_FIELD = "content"
SCHEMA = Schema(
    id=ID(unique=True),
    session=ID,
    content=TEXT(analyzer=IDTokenizer()),  # a placeholder: terms come analysed, as a list
    row=COLUMN(FixedBytesColumn(ROW.itemsize)),
    bag=COLUMN(VarBytesColumn()),
    vector=COLUMN(FixedBytesColumn(PACKED_BYTES)),
)

_ATTEMPTS = 3
_PAUSE = 0.02

# What it raises to parse and unpickle files that were overwritten, cut short or deleted.
_DAMAGE = (
    WhooshError, FileNotFoundError, NotADirectoryError, TermNotFound, pickle.PickleError, struct.error, zlib.error,
    ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, ImportError, LookupError, MemoryError,
    NameError, RuntimeError, TypeError, ValueError,
)  # fmt: skip

T = TypeVar("T")


class Damaged(Exception):
    """The index can't be read, or holds other bytes than were written.  The cause says what was wrong."""


class IndexLost(Exception):
    """The index is not, or no longer, of the generation that was asked for; or it can't be read."""


class Store(Directory):
    """The index of one owner.  Cheap to make; holds no file open."""

    def open(self, generation: str) -> FileIndex:
        """The index, for `read`, whose errors it raises; it stays valid when others commit."""
        return self._retried(generation, lambda: open_dir(str(self.path), INDEX_NAME, schema=SCHEMA))

    def read(self, index: FileIndex, generation: str, work: Callable[[IndexReader], T]) -> T:
        """`work` on a reader of the latest commit.

        Raises IndexLost, also for a damaged index, which is then put away (IndexBusy while another process writes to
        it); OSError for one that can't be read.
        """

        def read() -> T:
            with closing(index.reader()) as reader:
                return work(reader)

        return self._retried(generation, read)

    def _retried(self, generation: str, work: Callable[[], T]) -> T:
        """`work()`.  Files vanish while another process commits, so only a failure that comes again is damage."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with _recognised():
                    done = work()
            except Damaged:
                if self.generation() != generation:
                    break
                if attempt == _ATTEMPTS:
                    self._put_away(generation)
                time.sleep(_PAUSE * attempt)
            else:
                if self.generation() == generation:
                    return done
                break
        raise IndexLost(f"the index {self.name} was damaged or replaced")

    def add(self, fresh: Callable[[Callable[[int], bool]], Sequence[Entry]]) -> str:
        """Write what `fresh(is_held)` gives; return the generation.  Raises IndexBusy.

        `fresh` is called while the lock is held, and `is_held` says of a message id whether the index has it.  An owner
        for whom there is nothing to hold gets no index.
        """

        def write(writer: SegmentWriter) -> bool:
            with _recognised():
                reader = writer.reader()
            with closing(reader):
                entries = fresh(lambda message_id: _holds(reader, message_id))
                empty = not reader.doc_count()
            for one in entries:
                writer.add_document(
                    id=str(one.document.message_id),
                    session=str(one.document.session_id),
                    content=one.terms,
                    row=one.row,
                    bag=one.bag,
                    vector=one.vector,
                )
            if entries:
                with _recognised():
                    writer.commit()
            elif empty:
                self.move_away()
            return bool(entries) or not empty

        while True:
            generation = self.create(lambda path: create_in(str(path), SCHEMA, INDEX_NAME))
            with suppress(IndexLost):
                return generation if self._written(generation, write) else NO_INDEX

    def remove(self, message_ids: Collection[int], session_id: int | None, *, scrub: bool) -> None:
        """Take out these messages and this session's; with `scrub` from every byte of the files.  Raises IndexBusy."""

        def write(writer: SegmentWriter) -> bool:
            with _recognised():
                for message_id in message_ids:
                    writer.delete_by_term("id", str(message_id))
                if session_id is not None:
                    writer.delete_by_term("session", str(session_id))
                writer.commit(optimize=scrub)
            return True

        while (generation := self.generation()) != NO_INDEX:
            with suppress(IndexLost):
                self._written(generation, write)
                return
        if self.path.exists():  # of another format, or no index: what it holds can't be told
            self.drop()

    def _put_away(self, generation: str) -> None:
        """Delete a damaged index.  Raises IndexBusy at once: who searches can't wait for a writer."""
        if self.discard(generation, wait=0):
            log.warning("The search index %s was damaged and is put away.", self.name, exc_info=True)

    def _written(self, generation: str, write: Callable[[SegmentWriter], T]) -> T:
        """`write(writer)` under the lock.  Raises IndexBusy; IndexLost also for a damaged index, which is put away."""
        try:
            with self._writer(generation) as writer:
                done = write(writer)
        except Damaged as error:
            self._put_away(generation)
            raise IndexLost(f"the index {self.name} was damaged") from error
        self.sync()
        return done

    @contextmanager
    def _writer(self, generation: str) -> Iterator[SegmentWriter]:
        """Whoosh's writer of this generation.  What is not committed at the end is given up."""
        index = self.open(generation)
        try:
            with _recognised():
                writer = index.writer(timeout=self.wait)
        except LockError:
            raise IndexBusy(f"another process writes to the index {self.name}") from None
        lock = writer.writelock
        try:
            if self.generation() != generation:  # moved away by another process before it let go of the lock
                raise IndexLost(f"the index {self.name} was replaced")
            yield writer
        finally:
            if not writer.is_closed:
                with suppress(OSError):  # of a full disk: files that stay behind go with the next commit
                    writer.cancel()
            if lock.fd is not None:
                lock.release()


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


def blocks_of(reader: IndexReader, known: dict[Any, Block]) -> dict[Any, Block]:
    """The messages of each segment, from `known` where it is there: a segment never changes but by losing messages."""
    blocks = {}
    for leaf, _ in reader.leaf_readers():
        if leaf.doc_count():
            key = leaf.segment().segment_id(), leaf.doc_count()
            blocks[key] = known.get(key) or _block(leaf, leaf.all_doc_ids())
    return blocks


def matching(reader: IndexReader, query: Query) -> set[int]:
    """The ids of all messages that `query` finds."""
    if not reader.doc_count():
        return set()
    rows = reader.column_reader("row", translate=False)
    return {_id_of(rows[number]) for number in Searcher(reader).docs_for_query(query)}


def best(reader: IndexReader, query: Query, limit: int) -> tuple[Block, set[int]]:
    """The best messages for `query` and those stored beside them, at most `limit`; and the ids of the best."""
    hits = Searcher(reader, weighting=BM25F(B=B, K1=K1)).search(query, limit=limit // (2 * REACH + 1))
    found = [number for number, _ in hits.items()]
    beside = {number + step for number in found for step in range(-REACH, REACH + 1)}
    there = [number for number in sorted(beside) if 0 <= number < reader.doc_count_all()]
    rows = reader.column_reader("row", translate=False)
    block = _block(reader, [number for number in there if not reader.is_deleted(number)])
    return block, {_id_of(rows[number]) for number in found}


def _block(reader: IndexReader, numbers: Iterable[int]) -> Block:
    """The messages with these document numbers.  Raises Damaged."""
    wanted = list(numbers)
    columns = [reader.column_reader(name, translate=False) for name in ("row", "bag", "vector")]
    rows, bags, vectors = ([column[number] for number in wanted] for column in columns)
    block = Block.of(rows, bags, vectors)
    if list(map(checksum, rows, bags, vectors)) != block.rows["checksum"].tolist():
        raise Damaged("a message in the index is not as it was written")
    return block


def _id_of(row: bytes) -> int:
    return int.from_bytes(row[:8], "little", signed=True)


def _holds(reader: IndexReader, message_id: int) -> bool:
    with _recognised():
        try:
            reader.first_id("id", str(message_id))
        except TermNotFound:
            return False
    return True
