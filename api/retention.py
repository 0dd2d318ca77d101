"""Retention of sessions, and the archives of sessions that were taken out of memory."""

from typing import Any

from flask import Response

from api.blueprint import ApiBlueprint, Caller, current_engine
from api.permissions import whole_tenant
from memory.erasing import retention
from memory.transfer.export_format import ExportDocument
from memory.transfer.import_reader import Imported
from models.keys import ADMIN
from models.retention import Policy
from schemas import retention as schema
from schemas.shapes import Receipt

blueprint = ApiBlueprint(
    "retention", "How long sessions stay, and the archives of those that were taken out of memory."
)


@blueprint.get("/retention", returns=schema.RetentionPolicy, scope=ADMIN)
def get_retention() -> Any:
    """Read which sessions of the tenant stay"""
    return retention.get_policy(current_engine(), whole_tenant())


@blueprint.put("/retention", body=schema.RetentionPolicy, returns=schema.RetentionPolicy)
def put_retention(policy: Policy) -> Any:
    """Set which sessions of the tenant stay

    A job takes out the others, now and once a day: their messages, summaries, search entries, the facts taken from them
    and what rests on them. With both limits null, all sessions stay.
    """
    return retention.put_policy(current_engine(), whole_tenant(), policy)


@blueprint.get("/archives", query=schema.ArchiveQuery, page_of=schema.Archive)
def list_archives(caller: Caller, query: dict[str, Any]) -> Any:
    """List the archives of sessions that were taken out of memory, newest first

    Archived sessions are neither searched nor recalled.
    """
    return retention.list_archives(current_engine(), caller, **query)


@blueprint.get("/archives/<int64:archive_id>", returns=ExportDocument, scope=ADMIN, slow=True)
def get_archive(caller: Caller, archive_id: int) -> Response:
    """Read an archive, as a document that can be imported"""
    document = retention.read_archive(current_engine(), caller, archive_id)
    attached = {"Content-Disposition": f'attachment; filename="recap-archive-{archive_id}.json"'}
    return Response(document, mimetype="application/json", headers=attached)


@blueprint.post(
    "/archives/<int64:archive_id>/restore",
    returns=Imported,
    slow=True,
    errors={409: "A session is busy, or the person was erased meanwhile. Send the same again."},
)
def restore_archive(caller: Caller, archive_id: int) -> Any:
    """Bring an archived session back into memory, and delete the archive

    The session is imported like an export. If another session has its id by now, it gets a new one.
    """
    return retention.restore_archive(current_engine(), caller, archive_id)


@blueprint.delete("/archives/<int64:archive_id>", returns=Receipt)
def erase_archive(caller: Caller, archive_id: int) -> Any:
    """Erase an archive, for good"""
    return retention.erase_archive(current_engine(), caller, archive_id)
