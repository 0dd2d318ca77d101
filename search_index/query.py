"""What to look for, as it is asked and as it is made ready."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from search_index.embeddings import NO_VECTOR
from search_index.operators import Operators


@dataclass(frozen=True)
class Query:
    """What to look for: plain words, or with `operators` also "phrases", -exclusions and prefixes*.

    `after` is inclusive, `before` exclusive.  `exclude` are ids of messages that count as not there: a question that
    was just asked would be its own best answer.  `times` are half-open ranges the text speaks of: what was said then is
    preferred, the rest is found all the same.  So is what has the role `about`, unless the text names a speaker.
    `linked` are the ids of messages about what belongs to somebody that the text names, each with a weight up to 1.
    `nearest`: where hardly any message has its words, the nearest in meaning come first.  `alone`: texts with nothing
    around them, as facts.
    """

    text: str
    limit: int = 10
    session_id: int | None = None
    role: str | None = None
    after: datetime | None = None
    before: datetime | None = None
    exclude: Collection[int] = ()
    times: Sequence[tuple[datetime, datetime]] = ()
    about: str | None = None
    linked: Mapping[int, float] = field(default_factory=dict)
    operators: bool = False
    nearest: bool = False
    alone: bool = False


class PreparedQuery(NamedTuple):
    """A query, its plain text, the terms to rank by, and the operators.  If a service makes vectors, the text's and
    that of its `content`, without stop words.

    failure: why there is no such vector, so that words alone rank.
    """

    query: Query
    text: str
    terms: list[str]
    operators: Operators
    vector: bytes = NO_VECTOR
    content: bytes = NO_VECTOR
    failure: str | None = None
