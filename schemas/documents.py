"""Documents that are added to what is known."""

from marshmallow import Schema

from schemas import fields
from schemas.fields import EXTERNAL_ID_CHARS, OPTIONAL
from schemas.shapes import CallerQuery

TITLE_CHARS, URI_CHARS = 200, 2_000
PLAIN, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
SUFFIXES = {".txt": PLAIN, ".md": MARKDOWN, ".markdown": MARKDOWN, ".html": HTML, ".htm": HTML, ".pdf": PDF}
"""What can be read, by the endings of files."""

_SESSION = "The document is of the owner of this session: of its person, or of the session itself."


class _DocumentFields(CallerQuery):
    """Whose document it is, and what is said of it."""

    session_id = fields.SessionId(load_default=None, about=_SESSION)
    title = fields.text(1, TITLE_CHARS, **OPTIONAL, about="Without it, Recap takes the one that the document has.")
    uri = fields.text(1, URI_CHARS, **OPTIONAL, about="Where it is from; shown wherever it is quoted.")
    external_id = fields.text(
        1,
        EXTERNAL_ID_CHARS,
        **OPTIONAL,
        about="The application's own name for it. A document sent with the same one replaces it.",
    )


class DocumentCreate(_DocumentFields):
    long = True

    text = fields.text(1, required=True)
    media_type = fields.one_of(PLAIN, MARKDOWN, HTML, load_default=MARKDOWN)


class DocumentUpload(_DocumentFields):
    """Document as a file: text, Markdown, HTML or PDF, by its ending or its `Content-Type`."""

    file = fields.Raw(required=True, about="The file.", metadata={"type": "string", "format": "binary"})


class Document(Schema):
    id = fields.String()
    user_id = fields.String(allow_none=True, about="Null for one of a space, or of a session without a person.")
    space = fields.String(allow_none=True)
    title = fields.String()
    uri = fields.String(allow_none=True)
    external_id = fields.String(allow_none=True)
    media_type = fields.String()
    size = fields.Integer(about="Bytes of the file, or of the text.")
    pages = fields.Integer(allow_none=True, about="Of a PDF; null for any other document.")
    passages = fields.Integer(about="Parts that are found one by one.")
    tokens = fields.Integer(about="An estimate for all of its text.")
    created_at = fields.UtcDateTime()
    updated_at = fields.UtcDateTime(about="When it was last replaced.")
    state = fields.String(
        allow_none=True,
        about="Of one that was just sent: `created`, `replaced`, or `unchanged`, where the same was stored before.",
    )


class Passage(Schema):
    """Part of a document, as it is found and quoted."""

    message_id = fields.Integer(attribute="id", about="Its id in results of a search.")
    position = fields.Integer(about="Its number within the document, from 1.")
    page = fields.Integer(
        attribute="extra.page", dump_default=None, allow_none=True, about="Its page in a PDF, from 1."
    )
    text = fields.String(attribute="content", about="With the headings that it stands under.")
