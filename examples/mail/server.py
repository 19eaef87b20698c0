#!/usr/bin/env python3
"""An MCP server with a tool that should not run by mistake.

`send_draft` sends a draft, `get_draft` shows one, `edit_draft` changes it: with every change its revision grows. Nothing
leaves the machine. Speaks MCP over stdin and stdout (2025-06-18, 2025-11-25), with the standard library alone.
"""

import json
import sys

DRAFTS = {"d-17": {"id": "d-17", "to": "all@example.com", "subject": "Offer", "etag": "1"}}
SENT = []
VERSIONS = ["2025-06-18", "2025-11-25"]
DRAFT = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
TOOLS = [
    {
        "name": "get_draft",
        "description": "Shows a draft of an e-mail.",
        "inputSchema": DRAFT,
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "edit_draft",
        "description": "Changes the subject of a draft.",
        "inputSchema": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "subject": {"type": "string"}},
            "required": ["id", "subject"],
        },
        "annotations": {"destructiveHint": False},
    },
    {"name": "send_draft", "description": "Sends a draft.", "inputSchema": DRAFT},
]


class Unknown(Exception):
    """A JSON-RPC error: its code, and what it says."""


def said(value, is_error=False):
    return {"content": [{"type": "text", "text": json.dumps(value)}], "isError": is_error}


def call(tool, arguments):
    draft = DRAFTS.get(arguments.get("id"))
    if tool not in [known["name"] for known in TOOLS]:
        raise Unknown(-32602, "there is no such tool")
    if draft is None:
        return said({"code": "no_such_draft"}, is_error=True)
    if tool == "edit_draft":
        draft["subject"] = arguments.get("subject")
        draft["etag"] = str(int(draft["etag"]) + 1)
    if tool == "send_draft":
        SENT.append(dict(draft))
        return said({"sent": draft["subject"], "to": draft["to"], "times": len(SENT)})
    return said(draft)


def answer(method, params):
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "mail", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params.get("name"), params.get("arguments") or {})
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
