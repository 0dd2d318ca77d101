"""Person as a whole: count, export, import and erase; and the person of a key."""

import shutil
import tempfile
from typing import Any

from flask import Response, g, request, stream_with_context

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.bodies import FILE, IMPORT_BYTES
from api.permissions import ANY_SCOPE, permissions
from memory import users
from memory.erasing import erasing
from memory.knowledge import backlog
from memory.transfer.export import open_export
from memory.transfer.export_format import ExportDocument, ExportQuery, to_json, to_markdown
from memory.transfer.import_reader import Imported, ImportQuery, read_import
from memory.transfer.imports import store_import
from models.keys import ADMIN
from schemas.shapes import Paged, Receipt
from schemas.users import Backlog, ListedUser, Me, User, UserChange

blueprint = ApiBlueprint("users", "Everything that is stored of a person.")
_IN_MEMORY = 1 << 23  # bytes of an import; a larger one waits in a temporary file
_EXPORTS = {
    "json": (to_json, "application/json", "json"),
    "markdown": (to_markdown, "text/markdown", "md"),
}
_DOCUMENT = {
    "required": True,
    "content": {
        "application/json": {"schema": {"description": "An object, or a list."}},
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
    },
}


@blueprint.get("/users", query=Paged, page_of=ListedUser)
def list_users(query: dict[str, Any]) -> Any:
    """List the persons of whom something is stored, the newest first

    A key of the whole tenant lists all of its persons, a key of a person that person alone.
    """
    return users.list_users(current_engine(), g.principal, **query)


@blueprint.get("/users/<path:user_id>", returns=User)
def get_user(caller: Caller) -> Any:
    """Read how much is stored of a person"""
    return users.get_user_info(current_engine(), caller)


@blueprint.patch("/users/<path:user_id>", body=UserChange, returns=User)
def change_user(caller: Caller, body: dict[str, Any]) -> Any:
    """Turn the memory of a person off, or on again"""
    return users.change_user(current_engine(), _for_all(caller), body)


@blueprint.delete("/users/<path:user_id>", returns=Receipt, slow=True)
def erase_user(caller: Caller) -> Any:
    """Erase everything of a person, for good

    When this call answers, messages, summaries, facts, their histories, jobs and the search index are gone, from the
    database's files as well. A reply that is being written is not stored.
    """
    return erasing.erase_user(current_engine(), _for_all(caller))


def _for_all(owner: Caller) -> Caller:
    """Return the caller. Raises Forbidden for a space if the key lacks `admin`: the space is not theirs alone."""
    if owner.space is not None:
        g.principal.require_scope(ADMIN, own=False)
    return owner


@blueprint.get("/users/<path:user_id>/export", query=ExportQuery, returns=ExportDocument, scope=ADMIN, slow=True)
@blueprint.doc(responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}})
def export_user(caller: Caller, query: dict[str, Any]) -> Response:
    """Export everything of a person as one JSON document, or as Markdown to read

    The JSON document can be imported again; of the Markdown, the chats can. Replaced messages are left out.
    """
    export = open_export(current_engine(), caller)
    written, kind, ending = _EXPORTS[query["format"]]
    response = Response(stream_with_context(written(export)), mimetype=kind)
    name = f"recap-export-{export.exported_at:%Y-%m-%d}.{ending}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@blueprint.post(
    "/import",
    query=ImportQuery,
    returns=Imported,
    slow=True,
    takes=FILE,
    errors={
        400: "The document is not valid JSON. Nothing was stored.",
        409: "A session is busy, or the person was erased during the import. Send the same again to continue.",
        413: "The document is larger than 1 GB. Nothing was stored.",
    },
)
@blueprint.doc(requestBody=_DOCUMENT)
def import_document(caller: Caller, query: dict[str, Any]) -> Any:
    """Import an export of Recap or of another program, or chats as JSON, JSON Lines or Markdown

    docs/export.md names the programs. Send JSON as `application/json`, and any other file, such as a .zip, as
    `application/octet-stream`. The whole document is checked before anything is stored. What is stored already is left
    as it is, so a call can be repeated safely. A session gets a new id where the person has another conversation of
    that id. No model is called: `POST /api/users/{user_id}/summaries` has what was imported summarised.
    """
    request.max_content_length = IMPORT_BYTES
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(current_engine().settings.data_dir)) as file:
        shutil.copyfileobj(request.stream, file)
        file.seek(0)
        document = read_import(file, current_engine().now())
        return store_import(current_engine(), caller, document)


@blueprint.get("/users/<path:user_id>/summaries", returns=Backlog)
def get_backlog(caller: Caller) -> Any:
    """Read how much of a person's sessions no summary covers

    After an import, no summary covers the imported messages.
    """
    return backlog.get(current_engine(), caller)


@blueprint.post("/users/<path:user_id>/summaries", returns=Backlog, status=202)
def summarise_backlog(caller: Caller) -> Any:
    """Summarise all of a person's sessions, and take facts from them

    The newest come first. A repeated call resumes what was cancelled or has failed. With DAILY_TOKENS, only as many
    sessions are summarised as fit what is left of the person's day.
    """
    return backlog.start(current_engine(), caller)


@blueprint.delete("/users/<path:user_id>/summaries", returns=Backlog)
def cancel_backlog(caller: Caller) -> Any:
    """Cancel the updates of summaries that have not begun

    Summaries that were made stay. A session that goes on is summarised as usual.
    """
    return backlog.cancel(current_engine(), caller)


@blueprint.get("/me", returns=Me, scope=ANY_SCOPE)
def whoami() -> Any:
    """Read the tenant, the person and the scopes of the request's key, and what it may do

    On a server without keys, every caller has the tenant `default` and all scopes.
    """
    return {**vars(g.principal), "may": permissions()}
