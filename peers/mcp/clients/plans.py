"""What the Python clients have in common: the plans they are given, the answers in them, and the reports they print.

plans.mjs says what plans and reports look like.
"""

import asyncio
import json
import os
import sys
import time

AT_ONCE = 2


def carry_out(connect):
    """Carries out the plans; `connect(plan, on_question)` gives a context manager whose value has `protocol_version`,
    `tools` and `call(call, on_progress)`."""
    plans = json.load(sys.stdin)

    async def work():
        while plans:
            plan = plans.pop(0)
            report = {"name": plan["name"], **await report_of(plan, connect)}
            print(json.dumps(report), flush=True)

    async def main():
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    asyncio.run(main())


async def report_of(plan, connect):
    calls = Calls()
    try:
        async with connect(plan, calls.answer) as server:
            lines = await calls.run(plan["calls"], server.call)
            before = time.monotonic()
        closed = round((time.monotonic() - before) * 1000)
        tools = [as_json(tool) for tool in server.tools]
        return {"protocolVersion": server.protocol_version, "tools": tools, "calls": lines, "closeMs": closed}
    except Exception as error:
        return {"refused": fault(error)}


def environment_of(plan):
    return {**os.environ, **plan["env"]}


class Calls:
    """The calls of one connection, one after the other, and the answers to the questions that come up meanwhile."""

    def __init__(self):
        self.call = {}
        self.line = {}
        self.acting = None

    async def run(self, calls, act):
        lines = []
        for self.call in calls:
            self.line = {"name": self.call["name"], "asked": [], "withdrawn": False, "progress": 0}
            lines.append(self.line)
            self.acting = asyncio.create_task(act(self.call, self.on_progress))
            try:
                self.line["result"] = as_json(await self.acting)
            except (Exception, asyncio.CancelledError) as error:
                self.line["error"] = fault(error)
        return lines

    async def answer(self, params):
        """Answers a question as the running call says: an action and its content."""
        line = self.line
        line["asked"].append(as_json(params))
        answer = self.call.get("answer", {"action": "decline"})
        if "throws" in answer:
            raise RuntimeError(answer["throws"])
        if "aborts" in answer:
            self.acting.cancel()
        if "never" in answer or "aborts" in answer:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                line["withdrawn"] = True
                raise
        return answer["action"], answer.get("content")

    async def on_progress(self, *_):
        self.line["progress"] += 1


def as_json(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def fault(error):
    """What the SDK says of an error: its own code, message and data where it has them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return {
        "code": getattr(error, "code", None),
        "message": getattr(error, "message", None) or str(error) or type(error).__name__,
        "data": getattr(error, "data", None),
    }
