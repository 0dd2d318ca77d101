"""One owner's Whoosh index: how its directory comes, is written to, stays readable and goes.

The directory `root/<hash of the owner>` appears by one rename, complete with its `generation` (a random token that
lives and dies with it), and goes by one rename.  Whoever writes to it or moves it away holds its lock, and makes
sure after getting the lock that the directory is still the one at the path; readers take no lock and compare
generations before and after.  What they read of a commit is kept for as long as it is the latest (see `held`).
Segments are synced to the disk before `add` returns; Whoosh itself never does that.

Nothing removed stays behind: a segment that loses a message is rewritten in the same commit.  Nothing that was altered
is believed: each segment has a checksum (see `sums`).
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from whoosh.filedb.filestore import FileStorage
from whoosh.index import _DEF_INDEX_NAME, TOC, FileIndex
from whoosh.util.filelock import FileLock

from search_index.commits import merged, write_contents, write_segment
from search_index.held import NOTHING, WHOLE_AT_MOST, Held, Snapshot
from search_index.postings import SCHEMA, Columns, Damaged, Segment, damage_recognised
from search_index.remembered import Kept
from search_index.sums import FORMAT, Place, file_of, intact

log = logging.getLogger(__name__)

NO_INDEX = "none"
"""The generation of an owner who has no index: it holds nothing."""

_ATTEMPTS = 5
_PAUSE = 0.01
_STALE = 3600.0
_TOKEN = re.compile(r"[0-9a-f]{32}")
_TOC = TOC._pattern(_DEF_INDEX_NAME)
_GENERATION_BYTES = 4096  # more than the file has
_Result = TypeVar("_Result")


class IndexBusy(Exception):
    """Another writer held the owner's index for as long as a writer waits.  Nothing was changed; try again later."""


class _Latest(NamedTuple):
    """A commit, its number, and its segments."""

    commit: Place
    number: int
    segments: list[Segment]

    @property
    def ids(self) -> set[int]:
        return {message_id for segment in self.segments for message_id in segment.ids}


class WhooshIndex:
    """The index of one owner.  Cheap to make and holds nothing open: any thread may use its own."""

    def __init__(self, root: Path, owner: str, wait: float, made_with: str = "") -> None:
        """`wait`: seconds a writer waits for another before IndexBusy.

        `made_with` names, in one line, what its terms and vectors are made with.  An index that was made with
        something else counts as none: it is read no more, and replaced by the next `add`.
        """
        self._root = root
        self._made_with = f"{FORMAT} {made_with}"
        self._name = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._folder = f"{root}/{self._name}"
        self._wait = wait

    @property
    def _path(self) -> Path:
        return Path(self._folder)  # made only to write: every search makes a WhooshIndex

    def generation(self) -> str:
        """The token of the index that is there now, or NO_INDEX."""
        try:
            descriptor = os.open(self._folder + "/generation", os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return NO_INDEX
        try:
            written = os.read(descriptor, _GENERATION_BYTES).decode("utf-8", "replace")
        finally:
            os.close(descriptor)
        token, _, made_with = written.partition("\n")
        return token if _TOKEN.fullmatch(token) and made_with == self._made_with else NO_INDEX

    def held(self, generation: str, kept: Kept[str, tuple[Snapshot, Held]], wanted: Sequence[str]) -> Held | None:
        """What the index holds as of now: of a small one all that is in it, from `kept` where that is up to date, of a
        large one what `wanted` terms need.  None when it is of another generation by now.  Raises Damaged."""
        if generation == NO_INDEX:
            return NOTHING if self.generation() == NO_INDEX else None
        known = kept.get(self._folder)
        if known is not None and known[0].generation == generation and self._still(known[0]):
            return known[1]

        def whole(latest: _Latest) -> tuple[Held, Snapshot | None]:
            files = tuple(segment.place for segment in latest.segments)
            if sum(file.size for file in files) > WHOLE_AT_MOST:
                return Held.of(latest.segments, wanted), None
            return Held.of(latest.segments).apart(), Snapshot(generation, latest.commit, files)

        held, snapshot = self._read(generation, whole)
        if self.generation() != generation:  # what is kept was read between two looks at it, and needs no further one
            return None
        if snapshot is not None:
            kept.keep(self._folder, (snapshot, held), held.bytes)
        return held

    def _still(self, snapshot: Snapshot) -> bool:
        """Whether the latest commit is still that one, and nobody touched its files."""
        try:
            if self._latest() != snapshot.commit.path:
                return False
            return all(Place.of(file.path) == file for file in (snapshot.commit, *snapshot.files))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _latest(self) -> str:
        """The latest commit's table of contents; empty where there is none."""
        numbers = [int(found[1]) for found in map(_TOC.fullmatch, os.listdir(self._folder)) if found]  # noqa: PTH208
        return f"{self._folder}/{TOC._filename(_DEF_INDEX_NAME, max(numbers))}" if numbers else ""

    def ids(self, generation: str) -> set[int]:
        """The ids of all messages it holds.  Raises Damaged."""
        if generation == NO_INDEX:
            return set()
        return self._read(generation, lambda latest: latest.ids)

    def _read(self, generation: str, work: Callable[[_Latest], _Result]) -> _Result:
        """`work` on the latest commit; it keeps nothing of it.  Raises Damaged.

        Files vanish while another process commits, and the whole directory may be replaced: a failure counts as
        damage only when it comes again and again.
        """
        for attempt in range(1, _ATTEMPTS):
            with suppress(Damaged), damage_recognised(), self._opened() as latest:
                return work(latest)
            if self.generation() != generation:
                break
            time.sleep(_PAUSE * attempt)
        with damage_recognised(), self._opened() as latest:
            return work(latest)

    def add(self, entries: Callable[[Collection[int]], list[Columns]]) -> str:
        """Write what `entries(ids held already)` gives; returns the generation.  Raises IndexBusy.

        `entries` is asked while the lock is held.  An owner for whom there is nothing to hold gets no index.
        """

        def write(generation: str) -> str:
            with self._opened() as latest:
                held = latest.ids
                fresh = entries(held)
                if any(map(len, fresh)):
                    self._commit(latest, fresh)
                    return generation
            if not held:
                self._discard()
                return NO_INDEX
            return generation

        return self._locked(write, create=True) or NO_INDEX

    def remove(self, message_ids: Collection[int], session_id: int | None) -> None:
        """Take out these messages and this session's, from every byte of the files.  Raises IndexBusy."""

        def write(_generation: str) -> None:
            with self._opened() as latest:
                staying = [segment.beside(message_ids, session_id) for segment in latest.segments]
                # Committed even when all stay: that clears away what a killed writer may have left of those that went.
                self._commit(latest, [], staying)

        self._locked(write)

    def drop(self) -> None:
        """Delete the directory and what is left of earlier ones.  Raises IndexBusy."""
        self._locked(lambda _: self._discard())
        sweep(self._root, self._name)

    def heal(self, generation: str) -> None:
        """Put a damaged index away, unless it is gone already.  Called while Damaged is handled; raises IndexBusy."""

        def discard(current: str) -> None:
            if current == generation:
                self._put_away()

        self._locked(discard)

    @contextmanager
    def _opened(self) -> Iterator[_Latest]:
        """The latest commit, its segments open until the end.  Raises Damaged."""
        with ExitStack() as stack:
            with damage_recognised():
                storage = FileStorage(self._folder)
                segments = []
                commit = Place.of(self._latest())
                toc = TOC.read(storage, _DEF_INDEX_NAME, schema=SCHEMA)
                for written in toc.segments:
                    place = intact(self._path, written)
                    if place is None:
                        raise Damaged(f"the segment {written.segment_id()} is not as it was written")
                    segment = Segment(storage, written, place)
                    stack.callback(segment.close)
                    segments.append(segment)
            yield _Latest(commit, toc.generation, segments)

    def _commit(
        self, latest: _Latest, new: Sequence[Columns], staying: Sequence[NDArray[np.bool_]] | None = None
    ) -> None:
        """One commit after the latest, on the disk when this returns: with what is `new`, and of each segment all
        messages, or those that are `staying`.  Raises Damaged; the caller holds the lock."""
        if staying is None:
            staying = [np.ones(len(segment.rows), bool) for segment in latest.segments]
        with damage_recognised():
            kept, parts = merged(latest.segments, new, staying)
            segments = [segment.written for segment in kept]
            if parts:
                written = write_segment(self._path, parts)
                _sync(file_of(self._path, written))
                segments.append(written)
            _sync(write_contents(self._path, latest.number + 1, segments))
        _sync(self._path)

    # How the directory comes, stays and goes

    def _locked(self, write: Callable[[str], _Result], *, create: bool = False) -> _Result | None:
        """`write(generation)` while no one else writes to the directory or moves it; None where there is none.

        When `write` finds the index damaged it is put away and `write` is called once more, on a new one if `create`.
        """
        until = time.monotonic() + self._wait
        healed = False
        while True:
            if create and not self._path.exists():
                self._create()
            if not (lock := self._acquire(until)):
                if not create and not self._path.exists():
                    return None
                if time.monotonic() > until:
                    raise IndexBusy(f"the index {self._name} was being replaced for {self._wait:g} s")
                continue
            try:
                generation = self.generation()
                if generation == NO_INDEX:  # a directory, but no index
                    self._discard()
                    continue
                return write(generation)
            except Damaged:
                if healed:
                    raise
                healed = True
                self._put_away()
            finally:
                lock.release()

    def _acquire(self, until: float) -> FileLock | None:
        """The directory's lock; None when there is no directory or it was replaced meanwhile.  Raises IndexBusy."""
        while True:
            lock = FileLock(str(self._path / f"{_DEF_INDEX_NAME}_WRITELOCK"))
            try:
                taken = lock.acquire()
            except (FileNotFoundError, NotADirectoryError):
                return None
            if taken:
                with suppress(FileNotFoundError, NotADirectoryError):
                    if os.path.samestat(os.fstat(lock.fd), Path(lock.filename).stat()):
                        return lock
                lock.release()
                return None
            if time.monotonic() > until:
                raise IndexBusy(f"the index {self._name} was being written for {self._wait:g} s")
            time.sleep(_PAUSE)

    def _create(self) -> None:
        """Make the directory with an empty index, unless another process is faster."""
        token = secrets.token_hex(16)
        new = self._root / f".new-{self._name}-{token}"
        try:
            new.mkdir(parents=True)
            FileIndex.create(FileStorage(str(new)), SCHEMA)
            (new / "generation").write_text(f"{token}\n{self._made_with}", "utf-8")
            for file in new.iterdir():
                _sync(file)
            new.rename(self._path)
        except FileNotFoundError:  # swept away as a leftover: `_locked` tries again
            return
        except OSError as error:
            _delete(new)
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return
        _sync(self._root)

    def _put_away(self) -> None:
        log.warning("The search index %s is damaged and is put away.", self._name, exc_info=True)
        self._discard()

    def _discard(self) -> None:
        """Move the directory out of the way, then delete it.  The caller holds the lock."""
        gone = self._root / f".gone-{self._name}-{secrets.token_hex(8)}"
        with suppress(FileNotFoundError):
            self._path.rename(gone)
            _sync(self._root)
            _delete(gone)


def sweep(root: Path, name: str = "") -> None:
    """Delete what killed processes left half made or half deleted: of the index `name`, or of all that look dead."""
    if not root.is_dir():
        return
    for entry in os.scandir(root):
        kind, _, rest = entry.name.removeprefix(".").partition("-")
        if not entry.name.startswith((".gone-", ".new-")) or not rest.startswith(name):
            continue
        with suppress(FileNotFoundError):
            if kind == "gone" or name or entry.stat().st_mtime < time.time() - _STALE:
                _delete(Path(entry.path))


def _sync(path: Path) -> None:
    """Bring a file, or a directory's entries, to the disk; a file that is gone needs none."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _delete(path: Path) -> None:
    """Delete a directory that others may be deleting too."""
    while path.exists():
        try:
            shutil.rmtree(path)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise
