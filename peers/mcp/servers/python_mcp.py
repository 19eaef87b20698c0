"""A server of the Python SDK `mcp`: both eras, decided by how the client opens the connection."""

import asyncio
import json
import sys
from pathlib import Path

import mcp.server.stdio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

TOOLS = json.loads(Path(__file__).with_name("tools.json").read_text())
QUESTION = {
    "message": "Go on?",
    "requested_schema": {"type": "object", "properties": {"goOn": {"type": "boolean"}}, "required": ["goOn"]},
}


def witness(tool, given):
    """Writes one call into the file that the command line names, before anything else happens."""
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(json.dumps({"tool": tool, "arguments": given}) + "\n")


def text(words, **more):
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], **more)


def tapped(given):
    """A refusal that names candidates, unless the device was named."""
    if "deviceId" in given:
        return text(f"tapped on {given['deviceId']}")
    candidates = [{"deviceId": device, "platform": "android"} for device in given["offer"]]
    refusal = {
        "success": False,
        "error": f"{len(candidates)} devices match (code ambiguous_device_target). Pass deviceId.",
        "code": "ambiguous_device_target",
        "candidates": candidates,
        "retryable": False,
    }
    return text(json.dumps(refusal, separators=(",", ":")), is_error=True)


def echoed(given):
    """An unusual result, so that what gets lost on the way shows."""
    return types.CallToolResult.model_validate(
        {
            "_meta": {"example.test/vendor": {"kept": True}},
            "content": [
                {"type": "text", "text": given["text"], "annotations": {"audience": ["user"], "priority": 0.5}},
                {"type": "resource_link", "uri": "example://one", "name": "one"},
            ],
            "structuredContent": given,
        }
    )


async def wait(context, given):
    try:
        await context.session.report_progress(1)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        witness("wait, given up", given)
        raise


async def ask(context, params):
    if context.protocol_version < "2026-07-28":
        answer = await context.session.elicit_form(**QUESTION, related_request_id=context.request_id)
        return text(f"the client answered {answer.model_dump_json(exclude_none=True)}")
    if not params.input_responses:
        question = types.ElicitRequest(params=types.ElicitRequestFormParams(**QUESTION))
        return types.InputRequiredResult(input_requests={"goOn": question}, request_state="the server's own state")
    answer = params.input_responses["goOn"].model_dump_json(exclude_none=True)
    return text(f"the client answered {answer} to {params.request_state}")


async def call_tool(context, params):
    given = params.arguments or {}
    witness(params.name, params.arguments)
    match params.name:
        case "echo":
            return echoed(given)
        case "fail":
            raise MCPError(-31999, "the tool failed", {"reason": "asked to", "tries": 1})
        case "count":
            for step in range(given["steps"]):
                await context.session.report_progress(step + 1, given["steps"])
                await asyncio.sleep(0.01)
            return text(f"counted to {given['steps']}")
        case "wait":
            return await wait(context, given)
        case "ask":
            return await ask(context, params)
        case "tap":
            return tapped(given)
        case name:
            raise MCPError(-32602, f"no tool {name}")


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in TOOLS])


async def main():
    server = Server("python-mcp", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with mcp.server.stdio.stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


asyncio.run(main())
