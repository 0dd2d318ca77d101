"""`recap mcp`: the memory of one person for an MCP client on this machine, over stdio, by the protocol's Python SDK.

The SDK brings a second web framework and server along.  So it has a file of requirements of its own, and is imported by
this command alone.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import click
from flask import current_app
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from api.current_request import current_engine
from api.protocols.mcp_server import INSTRUCTIONS, McpServer, can_show_forms, error_data
from app import make_schema
from cli import OWNER, Command
from memory.access.keys import Principal
from memory.errors import RecapError
from models.keys import WRITE
from models.owners import Caller

T = TypeVar("T")


@click.command("mcp", cls=Command)
@click.option(
    "--user",
    "user_id",
    type=OWNER["user_id"],
    required=True,
    help="The person whose memory it is, or who acts in the space.",
)
@click.option("--space", type=OWNER["space"], help="The space whose memory it is instead.")
@click.option("--tenant", type=OWNER["tenant"], default="default", show_default=True, help="Whose person it is.")
def mcp(user_id: str, space: str | None, tenant: str) -> None:
    """Serve the memory of one person, or of a space, to an MCP client over stdin and stdout.

    A new data folder gets its schema first: the client that starts this command has nobody who would make it.
    """
    try:
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
        from mcp.shared.exceptions import MCPError
    except ImportError as error:
        text = "The MCP SDK is not installed. Install it with `pip install '.[mcp]'` in Recap's folder."
        raise click.ClickException(text) from error
    make_schema(current_app)
    engine = current_engine()
    principal = Principal(tenant, user_id, spaces={space: WRITE} if space is not None else None)

    def in_thread(method: Callable[[McpServer, Any], T]) -> Callable[[Any, Any], Awaitable[T]]:
        async def answer(context: Any, params: Any) -> T:
            can_ask = can_show_forms(context.session.client_capabilities)
            methods = McpServer(engine, principal, Caller(tenant, user_id, space), can_ask)
            try:
                return await anyio.to_thread.run_sync(method, methods, params)
            except RecapError as error:
                raise MCPError.from_error_data(error_data(error)) from error

        return answer

    async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Call a tool. Earlier clients are asked in a request of its own, newer ones by the first answer."""
        call = in_thread(McpServer.call_tool)
        answer = await call(context, params)
        if isinstance(answer, CallToolResult) or context.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return answer
        answers: Any = {}
        for name, asked in (answer.input_requests or {}).items():
            form: Any = asked.params
            answers[name] = await context.session.elicit_form(form.message, form.requested_schema)
        return await call(context, params.model_copy(update={"input_responses": answers}))

    async def serve() -> None:
        server = Server(
            "recap",
            version=current_app.config["API_VERSION"],
            instructions=INSTRUCTIONS,
            on_list_tools=in_thread(McpServer.list_tools),
            on_call_tool=call_tool,
            on_list_resources=in_thread(McpServer.list_resources),
            on_list_resource_templates=in_thread(McpServer.list_templates),
            on_read_resource=in_thread(McpServer.read_resource),
        )
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    engine.start()
    try:
        anyio.run(serve)
    finally:
        engine.stop()
