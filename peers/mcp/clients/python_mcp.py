"""A client of the Python SDK `mcp`."""

from contextlib import asynccontextmanager
from types import SimpleNamespace

from mcp import types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from plans import carry_out, environment_of


@asynccontextmanager
async def connect(plan, on_question):
    async def elicit(_context, params):
        action, content = await on_question(params)
        return types.ElicitResult(action=action, content=content)

    command, *arguments = plan["server"]
    stdio = StdioServerParameters(command=command, args=arguments, env=environment_of(plan))
    client = Client(
        plan.get("url") or stdio,
        mode="2026-07-28" if plan["era"] == "modern" else plan["era"],
        elicitation_callback=elicit if plan["elicitation"] else None,
    )
    async with client:
        yield SimpleNamespace(
            protocol_version=client.protocol_version,
            tools=(await client.list_tools()).tools,
            call=lambda call, on_progress: client.call_tool(
                call["tool"], call["arguments"], progress_callback=on_progress
            ),
        )


carry_out(connect)
