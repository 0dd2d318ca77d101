"""Cut documents into passages, by headings and pages; store and read them.

A passage is what an excerpt shows of it: longer ones would be cut there.  It begins with the headings that it stands
under, so that it is found by their words and understood without its neighbours.
"""

import re
import uuid
from collections.abc import Iterator, Sequence

from sqlalchemy import select
from sqlalchemy.orm import contains_eager

from memory.access.owners import get_row, visible_to
from memory.engine import Engine
from memory.errors import NotFound
from memory.events import tell
from memory.paging import Page, read_page
from memory.sessions.messages import CURRENT, MESSAGES, append
from models import DocumentRow, MessageRow, OwnerRow, SessionRow, Transaction, columns_of
from models.documents import DocumentRecord, Passage
from models.messages import PASSAGE, Message, MessageDraft
from models.owners import Caller

PASSAGE_BYTES = 680  # about 170 tokens; an excerpt shows up to 200 of a hit
HEADINGS_CHARS = 120  # of the headings before a passage

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*")  # of a heading that is a paragraph of one line
_FENCE = re.compile(r" {0,3}(`{3,}+(?!.*`)|~{3,}+)(.*)")
_RULE = re.compile(r"[\s|:=-]*")  # between the head and the body of a table, and under a heading
_ENDS = re.compile(r"[.!?;。！？；…]['\"”»)\]]*\s|[。！？；]|\n")


DOCUMENTS = (
    select(SessionRow, DocumentRow)
    .join(DocumentRow, DocumentRow.session_id == SessionRow.id)
    .join(SessionRow.owner)
    .options(contains_eager(SessionRow.owner))
)
Stored = tuple[SessionRow, DocumentRow]


def split(pages: Sequence[str], *, markdown: bool, numbered: bool) -> Iterator[Passage]:
    """Yield the passages of a text, in their order. numbered: of a PDF, whose pages count."""
    for number, page in enumerate(pages, 1):
        for headings, body, is_last in _sections(page) if markdown else [((), page, True)]:
            above = " > ".join(headings)[-HEADINGS_CHARS:]
            pieces = list(_pieces(body, PASSAGE_BYTES - len(above.encode("utf-8", "surrogatepass"))))
            for text in pieces or ([""] if above and is_last else []):
                whole = f"{above}\n{text}" if above and text else above or text
                yield Passage(whole, number if numbered else None)


def _sections(text: str) -> Iterator[tuple[Sequence[str], str, bool]]:
    """Yield the parts of a Markdown text, with the headings that each stands under; and whether none is below it."""
    headings: dict[int, str] = {}
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if (mark := _FENCE.match(line)) and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        if not fence and _UNDERLINE.fullmatch(line) and re.match(r"\w", "".join(lines[-1:])) and not any(lines[-2:-1]):
            line = f"{'#' if '=' in line else '##'} {lines.pop()}"
        heading = None if fence else _HEADING.fullmatch(line)
        if heading is None:
            lines.append(line)
            continue
        level = len(heading[1])
        yield tuple(headings.values()), "\n".join(lines), level <= max(headings, default=0)
        lines = []
        title = heading[2].rstrip()
        words, _, closing = title.rpartition(" ")
        if not closing.strip("#"):
            title = words.rstrip() or title
        headings = {**{above: title for above, title in headings.items() if above < level}, level: title}
    yield tuple(headings.values()), "\n".join(lines), True


def _pieces(text: str, size: int) -> Iterator[str]:
    """Yield paragraphs, joined as long as they take at most `size` bytes; longer ones in parts."""
    joined = ""
    for paragraph in re.split(r"\n\s*\n", text):
        for part in _parts(paragraph.strip("\n"), size):
            together = f"{joined}\n{part}" if joined else part
            if joined and len(together.encode("utf-8", "surrogatepass")) > size:
                yield joined
                together = part
            joined = together
    if joined:
        yield joined


def _parts(paragraph: str, size: int) -> Iterator[str]:
    """Yield a paragraph without the rules of tables: whole, or cut at the ends of sentences, lines or words."""
    rest = "\n".join(line.rstrip() for line in paragraph.split("\n") if not _RULE.fullmatch(line))
    while len(data := rest[:size].encode("utf-8", "surrogatepass")) > size or len(rest) > size:
        most = len(data[:size].decode("utf-8", "ignore")) or 1
        ends = [end.end() for end in _ENDS.finditer(rest, most // 3, most)]
        cut = ends[-1] if ends else rest.rfind(" ", most // 3, most) + 1 or most
        yield rest[:cut].strip()
        rest = rest[cut:]
    if rest.strip():
        yield rest.strip()


def find(tx: Transaction, owner_id: int, external_id: str | None, digest: str) -> Stored | None:
    """Return the owner's document of this external id or, without one, of the same content."""
    same = DocumentRow.external_id == external_id if external_id else DocumentRow.digest == digest
    row = tx.execute(DOCUMENTS.where(DocumentRow.owner_id == owner_id, same).order_by(SessionRow.id).limit(1)).first()
    return None if row is None else (row[0], row[1])


def get(tx: Transaction, caller: Caller, document_id: str) -> Stored:
    """Return a document of the caller's. Raises NotFound."""
    missing = NotFound("document_not_found", f"There is no document {document_id!r}.", param="document_id")
    query = visible_to(DOCUMENTS.where(SessionRow.public_id == document_id), caller)
    row, document = get_row(tx, query, missing, OwnerRow, SessionRow)
    return row, document


def store(engine: Engine, tx: Transaction, owner: OwnerRow, record: DocumentRecord, id: str | None = None) -> Stored:
    """Store a document, and ask for its passages to be indexed, and tell of it. id: of the one that it replaces."""
    row = SessionRow(
        tenant=owner.tenant,
        public_id=id or uuid.uuid4().hex,
        owner=owner,
        title=record.title,
        is_document=True,
        message_count=0,
        tokens=0,
        created_at=record.created_at,
        updated_at=record.updated_at,
    )
    tx.add(row)
    tx.flush()
    document = DocumentRow(session_id=row.id, owner_id=owner.id, **columns_of(record, DocumentRow))
    tx.add(document)
    drafts = [
        MessageDraft(PASSAGE, passage.text, extra=_extra(passage, record), created_at=record.updated_at)
        for passage in record.passages
    ]
    append(tx, row, drafts, record.updated_at)
    row.created_at = record.created_at
    row.summary_through = row.facts_through = row.message_count  # nothing of it is ever summarised
    engine.sessions.enqueue_follow_ups(tx, row, index_delay=0.0, summarise=False)
    tell(tx, "document.stored", [(owner.id, {"document_id": row.public_id})], engine.now())
    return row, document


def _extra(passage: Passage, record: DocumentRecord) -> dict[str, object] | None:
    named = {"page": passage.page, "uri": record.uri}
    return {name: value for name, value in named.items() if value is not None} or None


def read_passages(
    engine: Engine, caller: Caller, document_id: str, cursor: str | None, limit: int, around: int | None = None
) -> Page[Message]:
    """Return the passages of a document, in their order. Raises NotFound.

    around: the id of a passage; the page begins just before it.
    """
    with engine.database.read() as tx:
        row, _ = get(tx, caller, document_id)
        query = MESSAGES.where(MessageRow.session_id == row.id, *CURRENT)
        if around is not None:
            of_passage = MessageRow.id == around, MessageRow.session_id == row.id, *CURRENT
            at = tx.scalar(select(MessageRow.position).where(*of_passage))
            if at is None:
                text = f"There is no passage {around} in document {row.public_id!r}, or another text took its place."
                raise NotFound("passage_not_found", text)
            query = query.where(MessageRow.position >= at - 1)
        page = read_page(tx, query, cursor, limit, MessageRow.position, newest_first=False)
        return page.map(lambda row: Message._make(row[:-1]))
