"""PostgreSQL tables: a row for each analysed message, with what the ranking reads, its terms and its vector.

The tables are derived data: `open` makes them, and they can be dropped while Recap is stopped.  They need pgvector, the
extension `vector`, and nothing else.  Who writes an owner's rows holds a lock of PostgreSQL until the commit; readers
take none.
"""

import itertools
import logging
import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import log as ln
from typing import Any

from sqlalchemy import Connection, Engine, cast, delete, func, insert, or_, select, text, update
from sqlalchemy.dialects.postgresql import TSQUERY
from sqlalchemy.exc import NotSupportedError, OperationalError, ProgrammingError

from config import SettingsError
from search_index import postgres_tables as tables
from search_index.arrays import REACH, SearchableText, microseconds, term_hash
from search_index.embeddings import NO_VECTOR
from search_index.index_storage import NO_INDEX, Analysed, Best, IndexBusy, IndexLost, IndexStore, MadeWith, Snapshot
from search_index.postgres_tables import COLUMNS, INDEXES, MESSAGES, quoted, segment_of, tsquery, tsvector, written
from search_index.query import NONE, Operators, PreparedQuery

log = logging.getLogger(__name__)

UNAVAILABLE = (
    "SEARCH=postgres needs pgvector, the PostgreSQL extension `vector`, and to make tables: install it on the "
    "database's server, or have a superuser run CREATE EXTENSION vector in the database, in a schema of the "
    "search_path, and GRANT CREATE ON SCHEMA public. SEARCH=whoosh works without them. Nothing is lost: the index is "
    "made from the messages."
)
_CREATING = 0x736561726368  # the key of the lock under which the tables are made
_BUSY = "55P03"  # lock_not_available
_MEANT = 2  # how many are found by words for one that is found by its vector
_I, _M = INDEXES.c, MESSAGES.c


class PostgresStore(IndexStore):
    """Owners' indexes in one database, which any number of processes and nodes share."""

    def __init__(self, engine: Engine, wait: float, made_with: MadeWith) -> None:
        """`wait`: seconds a writer waits for another."""
        self._engine = engine
        self._at_once = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._unchanging = engine.execution_options(isolation_level="REPEATABLE READ")
        self._wait = wait
        self._made_with = made_with
        self._opened = False

    def open(self) -> None:
        """Make the extension and the tables if they are missing.

        Raises SettingsError.  Where the database is out of reach, the first use tries again.
        """
        try:
            with self._engine.begin() as connection:
                connection.execute(select(func.pg_advisory_xact_lock(_CREATING)))  # two processes may start at once
                connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector"))
                tables.TABLES.create_all(connection)
            self._opened = True
        except (NotSupportedError, ProgrammingError) as error:  # not installed, or not allowed
            raise SettingsError(f"{UNAVAILABLE} PostgreSQL says: {error.orig}") from error
        except OperationalError as error:
            log.error("the tables of the search index can't be made yet: %s", error.orig)

    def state(self, owner: str) -> tuple[str, str]:
        self._ready()
        with self._at_once.connect() as connection:
            notice, generation = connection.execute(
                tables.STATE, {"owner": owner, "made_with": self._made_with()}
            ).one()
        return generation or NO_INDEX, str(notice or "")

    def notify(self) -> None:
        self._ready()
        with self._at_once.connect() as connection:
            connection.execute(select(tables.NOTICES.next_value()))

    def held(self, owner: str) -> tuple[str, set[int]]:
        self._ready()
        with self._unchanging.connect() as connection:
            index = self._current(connection, owner)
            if index is None:
                return NO_INDEX, set()
            return index.generation, set(connection.scalars(select(_M.id).where(_M.index == index.id)))

    def add(self, owner: str, texts: Iterable[SearchableText], analysed: Analysed) -> str:
        with self._writing(owner) as connection:
            by_id = {text.message_id: text for text in texts}
            index = self._current(connection, owner)
            if index is None:
                if not by_id:
                    return NO_INDEX
                connection.execute(delete(INDEXES).where(_I.owner == owner))  # made otherwise
                values = {"owner": owner, "generation": secrets.token_hex(16), "made_with": self._made_with()}
                index = connection.execute(insert(INDEXES).values(values).returning(INDEXES)).one()
            there = select(_M.id).where(_M.index == index.id, _M.id.in_(list(by_id)))
            indexed = set(connection.scalars(there))
            if entries := analysed([text for message_id, text in by_id.items() if message_id not in indexed]):
                connection.execute(
                    insert(MESSAGES),
                    [
                        {
                            "index": index.id,
                            "id": entry.text.message_id,
                            "commit": index.commits + 1,
                            "session": entry.text.session_id,
                            "created": microseconds(entry.text.created_at),
                            "row": entry.row,
                            "bag": entry.postings,
                            "vector": None if entry.vector == NO_VECTOR else written(entry.vector),
                            "terms": tsvector(entry.terms),
                        }
                        for entry in entries
                    ],
                )
                counted = {"commits": index.commits + 1, "messages": index.messages + len(entries)}
                connection.execute(update(INDEXES).where(_I.id == index.id).values(counted))
            generation: str = index.generation
            return generation

    def remove(
        self, owner: str, *, message_ids: Collection[int] = (), session_id: int | None = None, scrub: bool = True
    ) -> None:
        """Delete the rows at once, whether `scrub` or not."""
        with self._writing(owner) as connection:
            index = self._current(connection, owner)
            if index is None:  # one that was made otherwise: what it holds can't be told
                connection.execute(delete(INDEXES).where(_I.owner == owner))
                return
            matches = or_(_M.id.in_(list(message_ids)), _M.session == session_id)
            gone = connection.execute(delete(MESSAGES).where(_M.index == index.id, matches)).rowcount
            counted = {"removals": index.removals + 1, "messages": index.messages - gone}
            connection.execute(update(INDEXES).where(_I.id == index.id).values(counted))

    def drop(self, owner: str) -> None:
        with self._writing(owner) as connection:
            connection.execute(delete(INDEXES).where(_I.owner == owner))

    def snapshot(
        self, owner: str, generation: str, known: Snapshot, most: int, connection: Connection | None
    ) -> Snapshot:
        """Return the latest commit; a segment has the messages of one run of commits."""
        with self._snapshot_of(connection) as reading:
            index = self._current(reading, owner, generation)
            commit = index.commits, index.removals
            if known.commit == commit:
                return known
            if index.messages > most:
                return Snapshot(commit)
            keys = [(*run, index.removals) for run in _runs(index.commits)]
            segments = {key: segment for key, segment in (known.segments or {}).items() if key in keys}
            new = [key for key in keys if key not in segments]  # the last ones
            after = min((key[0] for key in new), default=index.commits)
            query = COLUMNS.where(_M.index == index.id, _M.commit > after).order_by(_M.commit, _M.id)
            rows = reading.execute(query).all()
        for key in new:
            after, through, _ = key
            if in_run := [row for row in rows if after < row.commit <= through]:
                segments[key] = segment_of(in_run)
        return Snapshot(commit, segments)

    def matching(self, owner: str, generation: str, operators: Operators, connection: Connection | None) -> set[int]:
        with self._snapshot_of(connection) as reading:
            index = self._current(reading, owner, generation)
            found = _M.terms.bool_op("@@")(cast(tsquery(operators), TSQUERY))
            return set(reading.scalars(select(_M.id).where(_M.index == index.id, found)))

    def best(
        self, owner: str, generation: str, prepared: PreparedQuery, limit: int, connection: Connection | None
    ) -> Best:
        """Return the messages with the rarest terms of the query, the nearest by cosine, and the neighbours of both.

        Every row of the owner is compared with the vector: no approximate index, so nothing near is missed.
        """
        filters = prepared.query.filters
        typed = prepared.operators
        vector = prepared.vector
        most = limit // (2 * REACH + 1)
        with self._snapshot_of(connection) as reading:
            index = self._current(reading, owner, generation)
            params: dict[str, Any] = {
                "index": index.id,
                **filters._asdict(),
                "role": filters.role.to_bytes(8, "little", signed=True) if filters.role is not None else None,
            }
            doc_freqs = reading.execute(
                tables.HOLDERS, {"index": index.id, "terms": list(map(quoted, [*prepared.terms, *prepared.forms]))}
            ).all()
            ids: set[int] = set()
            if doc_freqs or typed.required:
                any_of = "" if typed.required else f"({' | '.join(_rarest(doc_freqs, limit))})"
                by_words = {
                    "filter": " & ".join(filter(None, [tsquery(typed), any_of])),
                    "terms": [term for term, _ in doc_freqs],
                    "idf": [ln(index.messages / (count + 1)) + 1 for _, count in doc_freqs],
                    "most": most,
                }
                ids.update(reading.scalars(tables.BY_WORDS, params | by_words))
            if typed == NONE and vector != NO_VECTOR:
                params |= {"vector": written(vector), "size": len(vector), "most": most // _MEANT}
                ids.update(reading.scalars(tables.BY_MEANING, params))
            beside = reading.scalars(tables.BESIDE, {"index": index.id, "found": [*ids], "reach": REACH})
            columns = COLUMNS.where(_M.index == index.id, _M.id.in_(set(beside))).order_by(_M.id)
            return segment_of(reading.execute(columns).all()), ids

    @contextmanager
    def _snapshot_of(self, connection: Connection | None) -> Iterator[Connection]:
        """Open a transaction that reads one snapshot, unless the caller has one."""
        if connection is not None:
            yield connection
        else:
            with self._unchanging.connect() as own:
                yield own

    def _ready(self) -> None:
        if not self._opened:
            self.open()

    def _current(self, connection: Connection, owner: str, generation: str | None = None) -> Any:
        """Return the row of the owner's index, or None.  Raises IndexLost if it is not of the `generation` named."""
        query = select(INDEXES).where(_I.owner == owner, func.starts_with(_I.made_with, self._made_with()))
        index = connection.execute(query).one_or_none()
        if generation is not None and (index is None or index.generation != generation):
            raise IndexLost("the index was replaced")
        return index

    @contextmanager
    def _writing(self, owner: str) -> Iterator[Connection]:
        """Open a transaction alone among the writers of this owner.  Raises IndexBusy."""
        self._ready()
        with self._engine.begin() as connection:
            connection.execute(text(f"SET LOCAL lock_timeout = {int(self._wait * 1000)}"))
            try:
                connection.execute(select(func.pg_advisory_xact_lock(term_hash(owner))))
            except OperationalError as error:
                if getattr(error.orig, "sqlstate", None) == _BUSY:
                    raise IndexBusy("another process writes to the index") from error
                raise
            yield connection


def _rarest(held: Sequence[Any], enough: int) -> list[str]:
    """Return the terms, rarest first, that `enough` messages have together; at least one."""
    together = itertools.accumulate(doc_freqs for _, doc_freqs in held)
    return [term for (term, _), so_far in zip(held, together, strict=True) if so_far <= enough or term == held[0][0]]


def _runs(commits: int) -> list[tuple[int, int]]:
    """Return the commits in runs, by the binary digits of their number: after, and up to.

    They grow shorter towards the end, so that a commit changes the last of them only, and they stay few.
    """
    runs = []
    after = 0
    for digit in reversed(range(commits.bit_length())):
        if commits >> digit & 1:
            runs.append((after, after + (1 << digit)))
            after += 1 << digit
    return runs
