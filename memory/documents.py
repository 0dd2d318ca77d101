"""Documents: add, replace, list, read and erase them.

What a document says is quoted as such wherever it is recalled.  Nobody said it, so no fact, summary or profile comes of
it: it has passages, and no turn is ever taken in it.

Invariants:
- The same document sent again changes nothing, and one with the same `external_id` replaces the other whole, in one
  transaction (test_documents).
- A document is read before anything is stored; no transaction is open meanwhile (test_documents).
"""

import hashlib
import json
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePath

from memory.access.owners import find_or_make_owner, get_session, owner_and_session, visible_to
from memory.engine import Engine
from memory.erasing import erasing
from memory.events import tell
from memory.paging import Page, read_page
from memory.passages import passages
from memory.passages.extraction import PASSAGES_MAX, extract, media_type_of, problem
from memory.quoting import one_line
from models import DocumentRow, OwnerRow, SessionRow, Transaction, as_value, retry_on_conflict
from models.documents import Document, DocumentRecord
from models.owners import Caller
from schemas.documents import PDF, PLAIN, TITLE_CHARS

UNTITLED = "Document"


@dataclass(frozen=True)
class Upload:
    """Document as it was sent: its bytes, what they are said to be, and what is known of it."""

    data: bytes
    media_type: str = ""
    filename: str = ""
    charset: str = ""
    title: str | None = None
    uri: str | None = None
    external_id: str | None = None

    @property
    def digest(self) -> str:
        """Return a digest of all that would change what is stored."""
        named = [self.title, self.uri, self.external_id, self.media_type, self.charset]
        return hashlib.sha256(json.dumps(named).encode() + b"\0" + self.data).hexdigest()


def add_document(engine: Engine, caller: Caller, upload: Upload, session_id: str | None = None) -> Document:
    """Store a document, or replace the one of its `external_id`. Raises NotFound, InvalidRequest.

    Its passages are found as soon as this returns.
    """
    digest = upload.digest
    media_type = media_type_of(upload.data, upload.media_type, upload.filename)
    with engine.database.read() as tx:
        owner = owner_and_session(tx, caller, session_id)[0]
        known = passages.find(tx, owner.id, upload.external_id, digest) if owner is not None else None
        if known is not None and known[1].digest == digest:
            return _as_document(*known, state="unchanged")
    text = extract(upload.data, media_type, upload.charset)
    cut = passages.split(text.pages, markdown=media_type not in (PDF, PLAIN), numbered=media_type == PDF)
    parts = list(islice(cut, PASSAGES_MAX + 1))
    if not parts or len(parts) > PASSAGES_MAX:
        raise problem("too_long" if parts else "empty")
    now = engine.now()
    record = DocumentRecord(
        title=_title(upload, text.title, parts[0].text),
        uri=upload.uri,
        external_id=upload.external_id,
        media_type=media_type,
        digest=digest,
        size=len(upload.data),
        pages=len(text.pages) if media_type == PDF else None,
        passages=parts,
        created_at=now,
        updated_at=now,
    )
    return _store(engine, caller, session_id, record)


@retry_on_conflict
def _store(engine: Engine, caller: Caller, session_id: str | None, record: DocumentRecord) -> Document:
    with engine.database.write() as tx:
        owner = owner_and_session(tx, caller, session_id)[0] or find_or_make_owner(tx, caller, engine.now())
        known = passages.find(tx, owner.id, record.external_id, record.digest)
        id = None
        erased = None
        if known is not None:
            row, document = known
            if document.digest == record.digest:  # another request has just stored it
                return _as_document(row, document, state="unchanged")
            id = row.public_id
            record = replace(record, created_at=row.created_at)
            erased = erasing.erase_rows(engine, tx, row)
        stored = passages.store(engine, tx, owner, record, id)
        shown = _as_document(*stored, state="created" if erased is None else "replaced")
    if erased is not None:
        engine.job_queue.run_now("unindex", erased.index_key)
        engine.index.clear_caches()
    return shown


def list_documents(
    engine: Engine, caller: Caller, session_id: str | None, cursor: str | None, limit: int
) -> Page[Document]:
    """Return the caller's documents, or those of a session's owner, the newest first."""
    query = visible_to(passages.DOCUMENTS, caller)
    with engine.database.read() as tx:
        if session_id is not None:
            query = query.where(OwnerRow.id == get_session(tx, caller, session_id).owner_id)
        return read_page(tx, query, cursor, limit, SessionRow.id).map(lambda row: _as_document(*row[:2]))


def get_document(engine: Engine, caller: Caller, document_id: str) -> Document:
    """Return a document. Raises NotFound."""
    with engine.database.read() as tx:
        return _as_document(*passages.get(tx, caller, document_id))


def _title(upload: Upload, own: str, text: str) -> str:
    """Return the title: the given one, the document's own, its first heading, or the file's name."""
    first = text.partition("\n")[0].partition(" > ")[0] if not upload.filename else ""
    names = (upload.title or "", own, PurePath(upload.filename).stem, first, UNTITLED)
    return next(filter(None, (one_line(name)[:TITLE_CHARS].strip() for name in names)))


def erase_document(engine: Engine, caller: Caller, document_id: str) -> erasing.Receipt:
    """Erase a document with its passages. Raises NotFound."""

    def erase(tx: Transaction) -> erasing.Erased:
        row, _ = passages.get(tx, caller, document_id)
        tell(tx, "document.erased", [(row.owner_id, {"document_id": row.public_id})], engine.now())
        return erasing.erase_rows(engine, tx, row)

    return erasing.erase_now(engine, erase, document_id=document_id)


def _as_document(row: SessionRow, document: DocumentRow, state: str | None = None) -> Document:
    owner = {"user_id": row.owner.user_id, "space": row.owner.space}
    of_session = {name: getattr(row, name) for name in ("title", "tokens", "created_at", "updated_at")}
    return as_value(
        Document, document, id=row.public_id, passages=row.message_count, state=state, **owner, **of_session
    )
