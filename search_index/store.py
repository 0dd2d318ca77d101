"""One owner's messages in Whoosh: a full-text index beside columns of what the ranking reads.

Its directory holds Whoosh's files and `generation`, a random token that lives and dies with it.  Who writes to it or
deletes it holds a lock beside it; readers take none, and compare tokens before and after.

Guarantee: a commit is on the disk when `add` or `remove` returns (Whoosh itself never syncs).  Each message's columns
have a checksum: bytes that are not as they were written count as damage, and the whole index is then deleted.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import pickle  # nosec B403
import secrets
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from whoosh.analysis import IDTokenizer
from whoosh.columns import FixedBytesColumn, VarBytesColumn
from whoosh.fields import COLUMN, ID, TEXT, Schema
from whoosh.index import FileIndex, create_in, open_dir
from whoosh.index import IndexError as WhooshError
from whoosh.query import Or, Query, Term
from whoosh.reading import IndexReader, TermNotFound
from whoosh.scoring import BM25F
from whoosh.searching import Searcher
from whoosh.util.filelock import FileLock, try_for
from whoosh.writing import SegmentWriter

from search_index.arrays import ROW, Block, Document, Entry, checksum
from search_index.ranking import K1, REACH, B
from search_index.vectors import PACKED_BYTES

log = logging.getLogger(__name__)

FORMAT = 6
"""How an index is written.  One that was written otherwise counts as none."""

NO_INDEX = "none"
"""The generation of an owner who has no index: it holds nothing."""

TEXT_FIELD = "content"
SCHEMA = Schema(
    id=ID(unique=True),
    session=ID,
    content=TEXT(analyzer=IDTokenizer()),  # a placeholder: terms come analysed, as a list
    row=COLUMN(FixedBytesColumn(ROW.itemsize)),
    bag=COLUMN(VarBytesColumn()),
    vector=COLUMN(FixedBytesColumn(PACKED_BYTES)),
)

_INDEX_NAME = "messages"
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


class IndexBusy(Exception):
    """Another writer held the owner's index for as long as a writer waits.  Nothing was changed; try again later."""


class Store:
    """The index of one owner, or where it would be.  Cheap to make; holds no file open."""

    def __init__(self, root: Path, owner: str, wait: float, made_with: str) -> None:
        """`wait`: seconds a writer waits for another.  `made_with` names, in one line, how the index is written."""
        self._name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._root = root
        self._path = root / self._name
        self._wait = wait
        self._made_with = made_with

    def generation(self) -> str:
        """The token of the index that is there now, or NO_INDEX."""
        try:
            written = (self._path / "generation").read_bytes().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return NO_INDEX
        token, _, made_with = written.partition("\n")
        return token if made_with == self._made_with else NO_INDEX

    def open(self) -> FileIndex:
        """The index, for `read`; it stays valid when others commit."""
        return open_dir(str(self._path), _INDEX_NAME, schema=SCHEMA)

    def read(self, generation: str, work: Callable[[], T]) -> T:
        """What `work` reads of this generation.

        Raises IndexLost, also for a damaged index, which is then deleted (IndexBusy while another process writes to
        it); OSError for one that can't be read.
        """
        for attempt in range(1, _ATTEMPTS + 1):  # files vanish while another process commits: that is no damage
            try:
                with _recognised():
                    done = work()
            except Damaged:
                if self.generation() != generation:
                    break
                if attempt == _ATTEMPTS:
                    with self._locked(wait=0):
                        if self.generation() == generation:
                            self._delete_damaged()
                time.sleep(_PAUSE * attempt)
            else:
                if self.generation() == generation:
                    return done
                break
        raise IndexLost(f"the index {self._name} was damaged or replaced")

    def add(self, documents: Iterable[Document], analysed: Callable[[list[Document]], list[Entry]]) -> str:
        """Write those of `documents` that are not there yet, `analysed`; return the generation.  Raises IndexBusy.

        `documents` is read while the lock is held.  An owner for whom there is nothing to hold gets no index.
        """
        with self._locked(self._wait):
            given = {document.message_id: document for document in documents}
            if not given:
                return self.generation()
            try:
                return self._added(given, analysed)
            except Damaged:
                self._delete_damaged()
                return self._added(given, analysed)

    def _added(self, given: dict[int, Document], analysed: Callable[[list[Document]], list[Entry]]) -> str:
        if self.generation() == NO_INDEX:
            self._create()
        with _recognised():
            held = matching(self.open(), Or([Term("id", str(message_id)) for message_id in given]))
        if entries := analysed([one for message_id, one in given.items() if message_id not in held]):
            with self._writer() as writer:
                for one in entries:
                    writer.add_document(
                        id=str(one.document.message_id),
                        session=str(one.document.session_id),
                        content=one.terms,
                        row=one.row,
                        bag=one.bag,
                        vector=one.vector,
                    )
        return self.generation()

    def remove(self, message_ids: Collection[int], session_id: int | None, *, scrub: bool) -> None:
        """Take out these messages and this session's; with `scrub` from every byte of the files.  Raises IndexBusy."""
        with self._locked(self._wait):
            if self.generation() == NO_INDEX:  # of another format, or no index: what it holds can't be told
                self._delete()
                return
            try:
                with self._writer(optimize=scrub) as writer, _recognised():
                    for message_id in message_ids:
                        writer.delete_by_term("id", str(message_id))
                    if session_id is not None:
                        writer.delete_by_term("session", str(session_id))
            except Damaged:
                self._delete_damaged()

    def drop(self) -> None:
        """Delete the index, of whatever generation.  Raises IndexBusy."""
        with self._locked(self._wait):
            self._delete()

    @contextmanager
    def _locked(self, wait: float) -> Iterator[None]:
        """Alone among the writers of this owner, and of some others.  Raises IndexBusy."""
        folder = self._root / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(folder / self._name[:3]))  # too short to tell of an owner, so that it may stay for ever
        if not try_for(lock.acquire, timeout=wait):
            raise IndexBusy(f"another process writes to the index {self._name}")
        try:
            yield
        finally:
            lock.release()

    def _create(self) -> None:
        """Make an empty index in place of whatever is there.  Until its token is written it counts as none."""
        self._delete()
        self._path.mkdir()
        create_in(str(self._path), SCHEMA, _INDEX_NAME)
        (self._path / "generation").write_text(f"{secrets.token_hex(16)}\n{self._made_with}", "utf-8")

    def _delete(self) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self._path)
            _sync(self._root)

    def _delete_damaged(self) -> None:
        log.warning("The search index %s was damaged and is deleted.", self._name, exc_info=True)
        self._delete()

    @contextmanager
    def _writer(self, *, optimize: bool = False) -> Iterator[SegmentWriter]:
        """Whoosh's writer, which commits unless the block raises.  Raises Damaged."""
        with _recognised():
            writer = self.open().writer()
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
        for file in (*self._path.iterdir(), self._path, self._root):
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


def blocks_of(index: FileIndex, known: dict[Any, Block], most: int) -> dict[Any, Block] | None:
    """The messages of each segment; None if there are more than `most`.

    What is `known` is not read again: a segment never changes but by losing messages.
    """
    blocks = {}
    with closing(index.reader()) as reader:
        if reader.doc_count() > most:
            return None
        for leaf, _ in reader.leaf_readers():
            if leaf.doc_count():
                key = leaf.segment().segment_id(), leaf.doc_count()
                blocks[key] = known.get(key) or _block(leaf, leaf.all_doc_ids())
    return blocks


def matching(index: FileIndex, query: Query) -> set[int]:
    """The ids of all messages that `query` finds."""
    with closing(index.reader()) as reader:
        return _ids(reader, Searcher(reader).docs_for_query(query)) if reader.doc_count() else set()


def best(index: FileIndex, query: Query, limit: int) -> tuple[Block, set[int]]:
    """The best messages for `query` and those stored beside them, at most `limit`; and the ids of the best."""
    with closing(index.reader()) as reader:
        hits = Searcher(reader, weighting=BM25F(B=B, K1=K1)).search(query, limit=limit // (2 * REACH + 1))
        found = [number for number, _ in hits.items()]
        beside = {number + step for number in found for step in range(-REACH, REACH + 1)}
        there = [number for number in sorted(beside) if 0 <= number < reader.doc_count_all()]
        return _block(reader, [number for number in there if not reader.is_deleted(number)]), _ids(reader, found)


def _ids(reader: IndexReader, numbers: Iterable[int]) -> set[int]:
    """The ids of the messages with these document numbers."""
    rows = reader.column_reader("row", translate=False)
    return {int.from_bytes(rows[number][:8], "little", signed=True) for number in numbers}


def _block(reader: IndexReader, numbers: Iterable[int]) -> Block:
    """The messages with these document numbers.  Raises Damaged."""
    wanted = list(numbers)
    columns = [reader.column_reader(name, translate=False) for name in ("row", "bag", "vector")]
    rows, bags, vectors = ([column[number] for number in wanted] for column in columns)
    block = Block.of(rows, bags, vectors)
    if list(map(checksum, rows, bags, vectors)) != block.rows["checksum"].tolist():
        raise Damaged("a message in the index is not as it was written")
    return block
