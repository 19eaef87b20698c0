#!/usr/bin/env python3
"""An MCP server with one tool that cannot always know what is meant.

`play` plays a track on a speaker. A call that names none of several speakers is refused, and the refusal offers them:
nothing has been played then. Speaks MCP over stdin and stdout (2025-06-18, 2025-11-25), with the standard library alone.
"""

import json
import sys

SPEAKERS = [
    {"id": "kitchen", "name": "Kitchen", "battery": "80 %"},
    {"id": "office", "name": "Office", "battery": "35 %"},
]
VERSIONS = ["2025-06-18", "2025-11-25"]
TOOLS = [
    {
        "name": "play",
        "description": "Plays a track on a speaker.",
        "inputSchema": {
            "type": "object",
            "properties": {"track": {"type": "string"}, "speaker": {"type": "string"}},
            "required": ["track"],
        },
    },
    {
        "name": "list_speakers",
        "description": "Lists the speakers.",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
]


class Unknown(Exception):
    """A JSON-RPC error: its code, and what it says."""


def said(value, is_error=False):
    return {"content": [{"type": "text", "text": json.dumps(value)}], "isError": is_error}


def play(arguments):
    speakers = [speaker for speaker in SPEAKERS if arguments.get("speaker") in (None, speaker["id"])]
    if len(speakers) > 1:
        return said({"code": "several_speakers", "speakers": speakers}, is_error=True)
    if not speakers:
        return said({"code": "no_such_speaker"}, is_error=True)
    return said({"playing": arguments.get("track"), "on": speakers[0]["name"]})


def answer(method, params):
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "speakers", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params.get("name") == "play":
        return play(params.get("arguments") or {})
    if method == "tools/call" and params.get("name") == "list_speakers":
        return said({"speakers": SPEAKERS})
    if method == "tools/call":
        raise Unknown(-32602, "there is no such tool")
    raise Unknown(-32601, "there is no such method")


def main():
    for line in sys.stdin:
        frame = json.loads(line)
        if "method" not in frame or "id" not in frame:
            continue
        reply = {"jsonrpc": "2.0", "id": frame["id"]}
        try:
            reply["result"] = answer(frame["method"], frame.get("params") or {})
        except Unknown as error:
            reply["error"] = {"code": error.args[0], "message": error.args[1]}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
