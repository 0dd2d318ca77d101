"""Archives: sessions that retention took out of memory, each as a document that an import reads.

Such a session is gone from memory: it is in no list, no search and no prompt until its archive is restored.  (A session
that is merely `archived` is hidden from the page's list and remembered as any other.)

An archive has all that is erased with the session: its messages and summaries, the facts taken from it, also those
about the person, and the documents that rest on it alone.  So whoever erases the archive has erased all that came of
the session, and nothing is remembered that nobody can look up any more.  Facts that were said in other sessions as well
stay with these.  Replaced messages are in no archive, as they are in no export.

Guarantee: an archive is stored in the transaction that erases its session, and belongs to the same owner.  Restoring
it twice, or again after a kill, stores nothing twice.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.orm import defer

from memory.access.owners import visible_to
from memory.errors import NotFound
from memory.paging import Page, page_of, rows_of_page
from memory.transfer.export import Archive, Export, as_archive
from memory.transfer.imports import Import, ImportDocument, Imports
from memory.users import messages_of
from models import ArchiveRow, Database, MessageRow, OwnerRow, SessionRow, Transaction, for_update
from models.owners import Caller

WriteExport = Callable[[Export], Iterable[str]]
"""Writes an export as a document, piece by piece."""

_ARCHIVES = (
    select(ArchiveRow, OwnerRow)
    .join(OwnerRow, OwnerRow.id == ArchiveRow.owner_id)
    .options(defer(ArchiveRow.document))  # which only its reader needs
)


@dataclass(frozen=True)
class Archives:
    """Lists, opens and restores archives on behalf of callers; makes them in retention's transactions."""

    database: Database
    imports: Imports
    write: WriteExport
    now: Callable[[], datetime]

    def page(
        self, caller: Caller, session_id: str | None = None, cursor: str | None = None, limit: int = 50
    ) -> Page[Archive]:
        """The caller's archives, the newest first."""
        query = visible_to(_ARCHIVES, caller)
        if session_id is not None:
            query = query.where(ArchiveRow.session_id == session_id)
        with self.database.read() as tx:
            rows = tx.execute(rows_of_page(query, ArchiveRow.id, cursor, limit)).all()
        found = [as_archive(*row) for row in rows]
        return page_of(found, limit, lambda one: (one.id,))

    def document(self, caller: Caller, archive_id: int) -> bytes:
        """What an archive holds, as an import reads it.  Raises NotFound."""
        with self.database.read() as tx:
            row, _ = get_archive(tx, caller, archive_id)
            return gzip.decompress(row.document)

    def restore(self, caller: Caller, archive_id: int, document: ImportDocument) -> Import:
        """Import the document of an archive, and delete the archive.

        Raises NotFound, and Conflict as an import does.
        """
        with self.database.read() as tx:
            _, owner = get_archive(tx, caller, archive_id)
        whose = Caller(owner.tenant, owner.user_id)
        done = self.imports.restore(whose, document, owner_id=owner.id)
        with self.database.write() as tx:
            tx.execute(delete(ArchiveRow).where(ArchiveRow.id == archive_id))
        return done

    def keep(self, tx: Transaction, row: SessionRow) -> None:
        """Store an archive of a session, which the caller's transaction erases next."""
        now, packed = self.now(), io.BytesIO()
        export = Export(lambda: nullcontext(tx), tx, row.owner, now, only=row)
        with gzip.open(packed, "wt", encoding="utf-8") as file:
            file.writelines(self.write(export))
        count, first, last = messages_of(tx, MessageRow.session_id == row.id)
        archive = ArchiveRow(
            owner_id=row.owner_id,
            session_id=row.public_id,
            title=row.title,
            message_count=count,
            first_message_at=first,
            last_message_at=last,
            created_at=now,
            document=packed.getvalue(),
        )
        tx.add(archive)
        tx.flush()


def get_archive(tx: Transaction, caller: Caller, archive_id: int) -> tuple[ArchiveRow, OwnerRow]:
    """The caller's archive of this id, and its owner.  Raises NotFound."""
    found = tx.execute(
        for_update(tx, visible_to(_ARCHIVES.where(ArchiveRow.id == archive_id), caller), OwnerRow)
    ).first()
    if found is None:
        raise NotFound("archive_not_found", f"There is no archive {archive_id}.")
    row, owner = found
    return row, owner
