"""Documents."""

from typing import Any

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.bodies import FORM, read_upload
from api.identity import caller
from memory import documents
from memory.passages import passages
from schemas import documents as schema
from schemas.shapes import OwnerPageQuery, PageQuery, Receipt

blueprint = ApiBlueprint("documents", "Files and texts that are added to what is known.")
_BODY = {
    "required": True,
    "content": {
        "application/json": {"schema": schema.DocumentCreate},
        "multipart/form-data": {"schema": schema.DocumentUpload},
    },
}


@blueprint.post(
    "/documents",
    returns=schema.Document,
    status=201,
    slow=True,
    takes=FORM,
    errors={
        413: "It is larger than MAX_DOCUMENT_BYTES, or has too many pages or characters. Nothing was stored.",
        415: "The file is of a kind that can't be read. Nothing was stored.",
        422: "Some fields are wrong, or no text could be read in the document. Nothing was stored.",
        503: "The database can't be used, or all threads and readers of documents are in use. Nothing was stored.",
    },
)
@blueprint.doc(requestBody=_BODY)
def add_document() -> Any:
    """Add a document, as text or as a file, to what is known of a person

    Send JSON with the `text`, or a form (`multipart/form-data`) with the `file`: text, Markdown, HTML or PDF. It is cut
    into passages, by headings and pages, which searches and turns find beside messages, from now on. Where they are
    quoted, so are title, page and `uri`. No facts and no summaries are made of it. The same document again changes
    nothing; another with the same `external_id` takes its place and keeps its `id`.
    """
    most = current_engine().settings.max_document_bytes
    body, file = read_upload(schema.DocumentCreate, schema.DocumentUpload, most)
    owner = caller(body.pop("user_id"), body.pop("space"))
    session_id = body.pop("session_id")
    if file is None:
        upload = documents.Upload(body.pop("text").encode(), charset="utf-8", **body)
    else:
        data = file.read()
        charset = file.mimetype_params.get("charset", "")
        upload = documents.Upload(data, file.mimetype, file.filename or "", charset, **body)
    return documents.add_document(current_engine(), owner, upload, session_id)


@blueprint.get("/documents", query=OwnerPageQuery, page_of=schema.Document)
def list_documents(caller: Caller, query: dict[str, Any]) -> Any:
    """List a person's documents, newest first"""
    return documents.list_documents(current_engine(), caller, **query)


@blueprint.get("/documents/<document_id>", returns=schema.Document)
def get_document(caller: Caller, document_id: str) -> Any:
    """Read what is known of a document"""
    return documents.get_document(current_engine(), caller, document_id)


@blueprint.get("/documents/<document_id>/passages", query=PageQuery, page_of=schema.Passage)
def list_passages(caller: Caller, query: dict[str, Any], document_id: str) -> Any:
    """Read a document's text, passage by passage"""
    return passages.read_passages(current_engine(), caller, document_id, **query)


@blueprint.delete("/documents/<document_id>", returns=Receipt, slow=True)
def delete_document(caller: Caller, document_id: str) -> Any:
    """Delete a document with all its passages, for good"""
    return documents.erase_document(current_engine(), caller, document_id)
