"""`flask mcp`: the memory of one person for an MCP client on this machine, over stdio, by the protocol's Python SDK.

The SDK brings a second web framework and server along.  So it has a file of requirements of its own, and is imported by
this command alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import click
from flask import current_app
from flask.cli import with_appcontext

from api.mcp_server import INSTRUCTIONS, McpServer, error_data
from api.resource import current_engine
from cli import Command
from memory.access.keys import Principal
from memory.errors import RecapError
from models.owners import Caller

T = TypeVar("T")


@click.command("mcp", cls=Command)
@click.option("--user", "user_id", required=True, help="The person whose memory it is.")
@click.option("--tenant", default="default", show_default=True, help="Whose person it is.")
@with_appcontext
def mcp(user_id: str, tenant: str) -> None:
    """Serve one person's memory to an MCP client over stdin and stdout."""
    try:
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
        from mcp.shared.exceptions import MCPError
    except ImportError as error:
        text = "The MCP SDK is not installed. Install it with `pip install -r requirements-mcp.txt`."
        raise click.ClickException(text) from error
    engine = current_engine()
    methods = McpServer(engine, Principal(tenant, user_id), Caller(tenant, user_id))

    def in_thread(method: Callable[[Any], T]) -> Callable[[Any, Any], Any]:
        async def answer(_: Any, params: Any) -> T:
            try:
                return await anyio.to_thread.run_sync(method, params)
            except RecapError as error:
                raise MCPError.from_error_data(error_data(error)) from error

        return answer

    async def serve() -> None:
        server = Server(
            "recap",
            version=current_app.config["API_VERSION"],
            instructions=INSTRUCTIONS,
            on_list_tools=in_thread(methods.list_tools),
            on_call_tool=in_thread(methods.call_tool),
            on_list_resources=in_thread(methods.list_resources),
            on_list_resource_templates=in_thread(methods.list_templates),
            on_read_resource=in_thread(methods.read_resource),
        )
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    engine.start()
    try:
        anyio.run(serve)
    finally:
        engine.stop()
