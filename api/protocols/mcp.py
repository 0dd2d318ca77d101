"""POST /mcp: the Model Context Protocol over HTTP.

`mcp_server` speaks it. It is imported with the first message: the protocol's types take memory in every process,
and most servers are never asked.
"""

from typing import Any

from flask import Response
from marshmallow import Schema

from api.blueprint import ApiBlueprint
from api.errors import RENDERERS
from api.identity import person_in_headers, space_in_header
from api.permissions import ANY_SCOPE
from memory.errors import RecapError
from schemas import fields
from schemas.shapes import CallerQuery

PATH = "/mcp"


class RpcMessage(Schema):
    """Message of JSON-RPC 2.0: a request, a notification, or an answer with its result or error."""

    jsonrpc = fields.String(required=True)
    id = fields.Raw(allow_none=True)
    method = fields.String()
    params = fields.Dict()
    result: fields.Field = fields.Dict()
    error: fields.Field = fields.Dict()


blueprint = ApiBlueprint("mcp", "The Model Context Protocol: the memory as tools and resources.", prefix="")


@blueprint.post(
    PATH,
    strict_slashes=False,  # programs sign in for the address that their person gave them
    query=CallerQuery,
    returns=RpcMessage,
    scope=ANY_SCOPE,
    slow=True,
    error_schema=RpcMessage,
)
@blueprint.doc(requestBody={"required": True, "content": {"application/json": {"schema": RpcMessage}}})
@blueprint.alt_response(202, description="A notification: there is nothing to answer.")
def exchange(query: dict[str, Any]) -> Response:
    """Exchange one message of the Model Context Protocol

    The revision 2026-07-28 is spoken, and the earlier ones that begin with `initialize`. A key that belongs to no
    single person needs one named: by `user_id`, or by a header such as X-User-Id. With `space`, or X-Memory-Space, it
    is the memory of that space.
    """
    from api.protocols.mcp_server import answer

    return answer(query["user_id"] or person_in_headers("X-User-Id") or None, query["space"] or space_in_header())


def _render(error: RecapError) -> tuple[dict[str, Any], int]:
    from api.protocols.mcp_server import mcp_error

    return mcp_error(error)


RENDERERS[PATH] = _render
