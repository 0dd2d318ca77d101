"""Tables of the search index in PostgreSQL, their queries, and the notation of terms and vectors.

They are derived data, so no migration makes them: `postgres_store` does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.types import UserDefinedType

from search_index.analysis import MAX_TERM
from search_index.arrays import ROW, Segment
from search_index.embeddings import NO_VECTOR
from search_index.query import Operators, Part

# A tsvector keeps 16,383 positions and a mebibyte of distinct terms.  In a message that has more, no phrase is found
# after the positions end, and no operator or choice of candidates knows a later term.  The ranking reads all of it.
_POSITIONS = 16_383
_BYTES = 900_000
_ROLE_AT = 1 + sum(ROW[name].itemsize for name in ("id", "session", "created"))  # of a row, where its role begins
_HEAD = 4  # bytes of a halfvec as PostgreSQL sends it, before its numbers


class HalfVector(UserDefinedType[str]):
    """Packed vectors as pgvector's halfvec, in which whole numbers up to 127 are exact.  NO_VECTOR is NULL."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec"


TABLES = sa.MetaData()
NOTICES = sa.Sequence("search_notices", metadata=TABLES)
INDEXES = sa.Table(
    "search_indexes",
    TABLES,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("owner", sa.Text, nullable=False, unique=True),
    sa.Column("generation", sa.Text, nullable=False),
    sa.Column("made_with", sa.Text, nullable=False),  # the analysis and the embedder of all its rows
    sa.Column("commits", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("removals", sa.BigInteger, nullable=False, server_default="0"),  # after one, no commit is as it was
    sa.Column("messages", sa.BigInteger, nullable=False, server_default="0"),
)
MESSAGES = sa.Table(
    "search_messages",
    TABLES,
    sa.Column("index", sa.ForeignKey(INDEXES.c.id, ondelete="CASCADE"), primary_key=True),
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("commit", sa.BigInteger, nullable=False),  # the commit of its index that added it
    sa.Column("session", sa.BigInteger, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("row", sa.LargeBinary, nullable=False),
    sa.Column("bag", sa.LargeBinary, nullable=False),
    sa.Column("vector", HalfVector),
    sa.Column("terms", TSVECTOR, nullable=False),
    sa.Index("ix_search_messages_commit", "index", "commit"),
    sa.Index("ix_search_messages_terms", "terms", postgresql_using="gin"),
)
_M = MESSAGES.c
COLUMNS = sa.select(_M.commit, _M.row, _M.bag, sa.func.halfvec_send(_M.vector))

STATE = sa.text(
    "SELECT CASE WHEN n.is_called THEN n.last_value END, i.generation FROM search_notices n"
    " LEFT JOIN search_indexes i ON i.owner = :owner AND starts_with(i.made_with, :made_with)"
)
HOLDERS = sa.text(
    "SELECT t.term, c.doc_freqs FROM unnest(CAST(:terms AS text[])) AS t(term), LATERAL (SELECT count(*) AS doc_freqs"
    " FROM search_messages m WHERE m.index = :index AND m.terms @@ CAST(t.term AS tsquery)) AS c"
    " WHERE c.doc_freqs > 0 ORDER BY c.doc_freqs"
)
_PASSING = sa.text(  # see `query.Filters`
    "search_messages.index = :index AND created >= :after AND created < :before"
    " AND (CAST(:session AS bigint) IS NULL OR session = :session) AND (CAST(:role AS bytea) IS NULL"
    f" OR substring(search_messages.row FROM {_ROLE_AT} FOR {ROW['role'].itemsize}) = :role)"
)
_PASSING_IDS = sa.select(_M.id).where(_PASSING).limit(sa.bindparam("most"))
BY_WORDS = _PASSING_IDS.where(sa.text("terms @@ CAST(:filter AS tsquery)")).order_by(
    sa.text(
        "(SELECT sum(t.idf) FROM unnest(CAST(:terms AS text[]), CAST(:idf AS float8[])) AS t(term, idf)"
        " WHERE terms @@ CAST(t.term AS tsquery)) DESC NULLS LAST, id DESC"
    )
)
BY_MEANING = _PASSING_IDS.where(sa.text("vector_dims(vector) = :size")).order_by(
    sa.text("vector <=> CAST(:vector AS halfvec)")
)
BESIDE = sa.text(
    "SELECT b.id FROM unnest(CAST(:found AS bigint[])) AS f(id), LATERAL"
    " ((SELECT m.id FROM search_messages m WHERE m.index = :index AND m.id <= f.id ORDER BY m.id DESC LIMIT :reach + 1)"
    " UNION ALL"
    " (SELECT m.id FROM search_messages m WHERE m.index = :index AND m.id > f.id ORDER BY m.id LIMIT :reach)) AS b"
)


def segment_of(rows: Sequence[Any]) -> Segment:
    """Return the messages of these rows of COLUMNS."""
    vectors = [
        np.frombuffer(row[3], ">f2", offset=_HEAD).astype(np.int8).tobytes() if row[3] else NO_VECTOR for row in rows
    ]
    return Segment.of([row.row for row in rows], [row.bag for row in rows], vectors)


def written(packed: bytes) -> str:
    """Return a packed vector in pgvector's notation."""
    return str(np.frombuffer(packed, np.int8).tolist())


def quoted(term: str) -> str:
    """Return a term as one lexeme, whatever characters it has."""
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def tsvector(terms: Sequence[str]) -> str:
    """Return the terms with their positions, in PostgreSQL's notation: no parser of its own ever reads them."""
    places: dict[str, list[str]] = {}
    room = _BYTES
    for place, term in enumerate(terms, 1):
        if term not in places:
            room -= len(term.encode())
            if room < 0:
                break
            places[term] = []
        if place < _POSITIONS:
            places[term].append(str(place))
    return " ".join(f"{quoted(term)}:{','.join(at)}" if at else quoted(term) for term, at in places.items())


def tsquery(operators: Operators) -> str:
    """Return a query for the messages that the operators leave; empty where they leave all."""
    return " & ".join([*map(_of_part, operators.required), *(f"!{_of_part(part)}" for part in operators.excluded)])


def _of_part(part: Part) -> str:
    if part.prefix:  # of one longer than any term no end counts
        return f"({' | '.join([quoted(part.prefix[: MAX_TERM + 1]) + ':*', *map(quoted, part.terms)])})"
    rows = (f"({' <-> '.join(map(quoted, row))})" for row in part.rows)
    return f"({' & '.join(rows)})"
