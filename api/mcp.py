"""POST /mcp: the Model Context Protocol over HTTP, one JSON answer for each request.

Two eras of the protocol are spoken.  Since revision 2026-07-28 each request names its version, in its body and in its
headers; before, a client says `initialize` first.  No answer depends on an earlier request, so any worker may answer.

Guarantee: what is wrong with a request is answered with the protocol's own error.  Pages of other sites are refused,
whether a key is asked for or not.  The person is named by the key, the address or a header, never by a model.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import mcp_types as mcp
from flask import Response, current_app, g, jsonify, request
from mcp_types.methods import parse_client_request, serialize_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from api.bodies import check_values
from api.client_requests import PERSON_HEADERS, header
from api.errors import RENDERERS
from api.identity import caller
from api.mcp_server import INSTRUCTIONS, McpServer, Refused, error_data
from api.mcp_tools import RpcMessage
from api.resource import ANY_SCOPE, ApiBlueprint, current_engine
from memory.errors import Forbidden, RecapError
from models.owners import USER_CHARS
from schemas.fields import CallerQuery

PATH = "/mcp"
BODY_BYTES = 4 << 20  # what the protocol's own SDKs take
NAMED = {"tools/call": "name", "resources/read": "uri"}  # the parameter that the header Mcp-Name repeats
REQUIRED = (mcp.PROTOCOL_VERSION_META_KEY, mcp.CLIENT_CAPABILITIES_META_KEY)  # of `_meta`
OFFERED = {
    "capabilities": mcp.ServerCapabilities(tools=mcp.ToolsCapability(), resources=mcp.ResourcesCapability()),
    "instructions": INSTRUCTIONS,
}

blueprint = ApiBlueprint("mcp", "The Model Context Protocol: the memory as tools and resources.", prefix="")


@blueprint.post(PATH, scope=ANY_SCOPE, slow=True, error_schema=RpcMessage)
@blueprint.doc(requestBody={"required": True, "content": {"application/json": {"schema": RpcMessage}}})
@blueprint.arguments(CallerQuery, location="query")
@blueprint.response(200, RpcMessage)
@blueprint.alt_response(202, description="A notification: there is nothing to answer.")
def exchange(query: dict[str, Any]) -> Response:
    """Exchange one message of the Model Context Protocol

    The revision 2026-07-28 is spoken, and the earlier ones that begin with `initialize`. A key that belongs to no
    single person needs one named: by `user_id`, or by a header such as X-User-Id.
    """
    _check_origin()
    message = _read()
    if isinstance(message, mcp.JSONRPCNotification):
        return Response(status=202)
    g.mcp_id = message.id
    named = query["user_id"] or next(filter(None, map(header, ("X-User-Id", *PERSON_HEADERS))), None)
    if len(named or "") > USER_CHARS:
        raise Refused(mcp.INVALID_REQUEST, f"A user_id has at most {USER_CHARS} characters. Nothing was done.")
    server = McpServer(current_engine(), g.principal, caller(named))
    version = _version(message)
    g.mcp_modern = version in MODERN_PROTOCOL_VERSIONS
    answer = _result(server, message, version).model_dump(by_alias=True, exclude_none=True)
    if g.mcp_modern:
        answer["_meta"] = {mcp.SERVER_INFO_META_KEY: _implementation().model_dump(exclude_none=True)}
    return jsonify(jsonrpc="2.0", id=message.id, result=serialize_server_result(message.method, version, answer))


def failure(error: RecapError) -> tuple[dict[str, Any], int]:
    """An error as the answer to the current request, and its HTTP status.

    Before 2026-07-28 an answer to a request has status 200: clients look for its error in the body.
    """
    body = {"jsonrpc": "2.0", "id": g.get("mcp_id"), "error": error_data(error).model_dump(exclude_none=True)}
    status = 400 if error.status == 422 else error.status
    return body, status if g.get("mcp_modern", True) else 200


RENDERERS[PATH] = failure


def _check_origin() -> None:
    """Raise Forbidden for a page of another site.  The middleware has checked the Host."""
    origin = request.headers.get("Origin", request.host_url).rstrip("/")
    if origin.partition("://")[2] != request.host and origin not in current_engine().settings.cors_origins:
        text = "A page of another site sent this request. Nothing was done. CORS_ORIGINS lists those that may."
        raise Forbidden("origin_refused", text)


def _read() -> mcp.JSONRPCRequest | mcp.JSONRPCNotification:
    """The message in the body.  Raises RecapError."""
    request.max_content_length = min(request.max_content_length or BODY_BYTES, BODY_BYTES)
    check_values(request.get_data())
    try:
        message = json.loads(request.get_data())
    except ValueError:
        raise Refused(mcp.PARSE_ERROR, "The body is not valid JSON.") from None
    kind = mcp.JSONRPCRequest if isinstance(message, dict) and "id" in message else mcp.JSONRPCNotification
    try:
        return kind.model_validate(message)
    except ValidationError:
        text = "The body is not one request or notification of JSON-RPC 2.0."
        raise Refused(mcp.INVALID_REQUEST, text) from None


def _version(message: mcp.JSONRPCRequest) -> str:
    """The protocol version of a request.  Raises Refused for headers that do not fit, or belong to another era."""
    params, told = message.params or {}, request.headers.get("MCP-Protocol-Version")
    meta = params.get("_meta")
    version = meta.get(mcp.PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    if version is None and told in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
        return told or mcp.DEFAULT_NEGOTIATED_VERSION
    if not isinstance(meta, dict) or any(key not in meta for key in REQUIRED):
        raise Refused(mcp.INVALID_PARAMS, f"params._meta has to have {' and '.join(REQUIRED)}.")
    name = params.get(NAMED.get(message.method, ""))
    same = told == version and request.headers.get("Mcp-Method") == message.method
    if not same or (name is not None and _decoded(request.headers.get("Mcp-Name", "")) != name):
        text = "The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must be there and repeat what the body says."
        raise Refused(mcp.HEADER_MISMATCH, text)
    if version not in MODERN_PROTOCOL_VERSIONS:
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
        raise Refused(mcp.UNSUPPORTED_PROTOCOL_VERSION, "This protocol version is not spoken here.", data=data)
    return str(version)


def _decoded(value: str) -> str | None:
    """A header's value; what is not plain ASCII comes in Base64 between marks."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[len("=?base64?") : -len("?=")], validate=True).decode()
    except ValueError:
        return None


def _result(server: McpServer, message: mcp.JSONRPCRequest, version: str) -> mcp.Result:
    """What the request asks for.  Raises RecapError."""
    try:
        asked: Any = parse_client_request(message.method, version, message.params)
        method = _METHODS[message.method]
    except KeyError:  # of another version, or of what Recap does not have
        raise Refused(mcp.METHOD_NOT_FOUND, "There is no such method here.", status=404) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Refused(mcp.INVALID_PARAMS, f"Wrong parameters: {place}: {first['msg']}.") from None
    return method(server, asked.params)


def _initialize(_: McpServer, asked: mcp.InitializeRequestParams) -> mcp.InitializeResult:
    known = asked.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
    agreed = asked.protocol_version if known else LATEST_HANDSHAKE_VERSION
    return mcp.InitializeResult(protocol_version=agreed, server_info=_implementation(), **OFFERED)


_METHODS: dict[str, Callable[[McpServer, Any], mcp.Result]] = {
    "initialize": _initialize,
    "server/discover": lambda *_: mcp.DiscoverResult(supported_versions=list(MODERN_PROTOCOL_VERSIONS), **OFFERED),
    "ping": lambda *_: mcp.EmptyResult(),
    "tools/list": McpServer.list_tools,
    "tools/call": McpServer.call_tool,
    "resources/list": McpServer.list_resources,
    "resources/templates/list": McpServer.list_templates,
    "resources/read": McpServer.read_resource,
}


def _implementation() -> mcp.Implementation:
    return mcp.Implementation(name="recap", version=current_app.config["API_VERSION"])
