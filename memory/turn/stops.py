"""Stopping a reply that is being written, from any worker, process or node.

The idea: who wants a session's turn to end notes the turn's lease in the session's row; where the turn is taken, one
thread looks for such notes every LOOK_SECONDS, for all turns of its process in one query, and interrupts their models.
So a turn pays nothing for it, and its model may be silent.  Nobody looks for a turn that began since the last look: one
whose model is quick is over before the next.

Guarantee: only the turn that was running then is stopped: the note names its lease, and no other turn ever has that.
"""

from __future__ import annotations

import logging
import threading

from sqlalchemy import bindparam, select
from sqlalchemy.exc import SQLAlchemyError

from memory.access.owners import find_session
from memory.domain import Caller
from memory.leases.leases import Lease, Leases
from memory.llm import Call
from memory.ops import logs
from models import Database, SessionRow

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25

_S = SessionRow.__table__.c
_NOTED = select(_S.stop_token).where(_S.id.in_(bindparam("rows", expanding=True)), _S.stop_token.is_not(None))


class Stops:
    """Asks turns to end, and ends those of this process.  Thread-safe."""

    def __init__(self, database: Database, leases: Leases) -> None:
        self._database = database
        self._leases = leases
        self._watched: dict[Lease, Call] = {}
        self._changed = threading.Condition()
        self._watcher: threading.Thread | None = None
        self._idle = False
        self._closed = False

    def ask(self, caller: Caller, session_id: str) -> bool:
        """End the reply that is being written in a session: whether there is one.  Raises NotFound."""
        with self._database.write() as tx:
            row = find_session(tx, caller, session_id)
            busy = not self._leases.free(row)
            if busy:
                row.stop_token = row.lease_token
            token = row.stop_token
        if busy:
            with self._changed:
                here = [call for lease, call in self._watched.items() if lease.token == token]
            for call in here:  # another process looks for itself
                call.stop()
        return busy

    def watch(self, lease: Lease, call: Call) -> None:
        """Interrupt the turn that holds `lease` when somebody asks, until `unwatch`."""
        with self._changed:
            self._watched[lease] = call
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch_forever, name="recap-stops", daemon=True)
                self._watcher.start()
            elif self._idle:
                self._changed.notify_all()

    def unwatch(self, lease: Lease) -> None:
        with self._changed:
            self._watched.pop(lease, None)

    def close(self) -> None:
        """Stop looking."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _watch_forever(self) -> None:
        before: dict[Lease, Call] = {}
        while True:
            with self._changed:
                self._idle = not self._watched
                self._changed.wait(None if self._idle else LOOK_SECONDS)
                if self._closed:
                    return
                watched = {lease: it for lease, it in self._watched.items() if lease in before}
                before = dict(self._watched)
            if watched:
                try:
                    self._look(watched)
                except SQLAlchemyError as error:
                    told = logs.fields(seconds=LOOK_SECONDS, error=logs.told(error))
                    log.error("looking for replies to stop failed; looking again", extra=told)

    def _look(self, watched: dict[Lease, Call]) -> None:
        with self._database.read() as tx:
            tokens = set(tx.scalars(_NOTED, {"rows": [lease.row_id for lease in watched]}))
        for lease, call in watched.items():
            if lease.token in tokens:
                call.stop()
