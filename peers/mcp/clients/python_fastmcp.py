"""A client of fastmcp."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from plans import carry_out, environment_of


@asynccontextmanager
async def connect(plan, on_question):
    async def elicit(_message, _response_type, params, _context):
        action, content = await on_question(params)
        return ElicitResult(action=action, content=content)

    command, *arguments = plan["server"]
    if "url" in plan:
        transport = StreamableHttpTransport(plan["url"])
    else:
        transport = StdioTransport(command=command, args=arguments, env=environment_of(plan), keep_alive=False)
    client = Client(
        transport,
        mode="2026-07-28" if plan["era"] == "modern" else plan["era"],
        elicitation_handler=elicit if plan["elicitation"] else None,
    )
    async with client:
        yield SimpleNamespace(
            protocol_version=client.protocol_version,
            tools=await client.list_tools(),
            call=lambda call, on_progress: client.call_tool_mcp(
                call["tool"], call["arguments"], progress_handler=on_progress
            ),
        )


carry_out(connect)
