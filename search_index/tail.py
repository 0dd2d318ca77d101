"""Messages that an index does not hold yet: analysed once, and kept as segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from search_index.arrays import Document, IndexedMessage, Ints, Segment

SEGMENTS_MAX = 8  # segments, before the small ones become one
SMALL = 512  # messages of a segment that is small
_COLUMNS_BYTES = 200  # what Python takes for the columns of a message beside their bytes


class UnindexedMessages(NamedTuple):
    """Messages that a generation of the index does not have.

    deleted_ids: replaced, erased or refused messages, which the index may still hold and nobody may find.
    load: reads messages by their ids; a search calls it for those that were not analysed before.
    """

    ids: Sequence[int] = ()
    deleted_ids: Sequence[int] = ()
    load: Callable[[Sequence[int]], Sequence[Document]] = lambda ids: ()

    @classmethod
    def of(cls, documents: Sequence[Document], deleted_ids: Sequence[int] = ()) -> UnindexedMessages:
        """Return these messages, which need no loading."""
        by_id = {document.message_id: document for document in documents}
        return cls(list(by_id), deleted_ids, lambda ids: [by_id[message_id] for message_id in ids])


class Run(NamedTuple):
    """Messages that were analysed together: their ids, their segment, and if it is small, their columns."""

    ids: Ints
    columns: Sequence[tuple[bytes, bytes, bytes]]
    segment: Segment
    nbytes: int

    @classmethod
    def of(cls, ids: Ints, columns: Sequence[tuple[bytes, bytes, bytes]]) -> Run:
        """Return the messages with these columns: rows, postings and vectors."""
        segment, kept = Segment.of(*zip(*columns, strict=True)), columns if len(columns) < SMALL else ()
        return cls(ids, kept, segment, segment.nbytes + sum(_COLUMNS_BYTES + sum(map(len, one)) for one in kept))


class Tail(NamedTuple):
    """Analysed messages, in runs."""

    runs: tuple[Run, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs)

    @property
    def ids(self) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *(run.ids for run in self.runs)])

    def updated(self, ids: Ints, new: Sequence[IndexedMessage]) -> Tail:
        """Return the tail with the `new` messages, and without most of those that are not among `ids` any more."""
        runs = list[Run]()
        for run in self.runs:
            is_wanted = np.isin(run.ids, ids)
            wanted = is_wanted.nonzero()[0]
            if 2 * len(wanted) >= len(run.ids) or (len(wanted) and not run.columns):
                runs.append(run)
            elif len(wanted):
                runs.append(Run.of(run.ids[wanted], [run.columns[at] for at in wanted.tolist()]))
        if new:
            new_ids = np.array([one.document.message_id for one in new], np.int64)
            runs.append(Run.of(new_ids, [(one.row, one.postings, one.vector) for one in new]))
        small = [run for run in runs if run.columns]
        if len(runs) > SEGMENTS_MAX and len(small) > 1:
            columns = [one for run in small for one in run.columns]
            runs = [run for run in runs if not run.columns]
            runs.append(Run.of(np.concatenate([run.ids for run in small]), columns))
        return Tail(tuple(runs))

    def hidden(self, ids: Ints) -> NDArray[np.bool_]:
        """Return which messages of the runs are not among `ids`."""
        return ~np.isin(self.ids, ids)
