"""What the Python clients have in common: the plans they are given, the answers in them, and the reports they print.

plans.mjs says what plans and reports look like.
"""

import asyncio
import json
import os
import sys
import time
from types import SimpleNamespace

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
            lines = await calls.run(plan, server.call)
            before = time.monotonic()
        closed = round((time.monotonic() - before) * 1000)
        tools = [as_json(tool) for tool in server.tools]
        return {"protocolVersion": server.protocol_version, "tools": tools, "calls": lines, "closeMs": closed}
    except Exception as error:
        return {"refused": fault(error)}


def environment_of(plan):
    return {**os.environ, **plan["env"]}


class Calls:
    """The calls of one connection, and the answers to the questions that come up meanwhile."""

    def __init__(self):
        self.begun = []

    async def run(self, plan, act):
        if plan.get("together"):
            await asyncio.gather(*(self.make(call, act) for call in plan["calls"]))
        else:
            for call in plan["calls"]:
                await self.make(call, act)
        return [begun.line for begun in self.begun]

    async def make(self, call, act):
        line = {"name": call["name"], "asked": [], "withdrawn": False, "progress": 0}

        async def on_progress(*_):
            line["progress"] += 1
            if call.get("givesUp"):
                acting.cancel()

        acting = asyncio.create_task(act(call, on_progress))
        self.begun.append(SimpleNamespace(call=call, line=line, acting=acting))
        try:
            line["result"] = as_json(await acting)
        except (Exception, asyncio.CancelledError) as error:
            line["error"] = fault(error)

    def asked_by(self, params):
        """The call that a question belongs to: the last one with its choices, or the last one of all."""
        device = params["requestedSchema"]["properties"].get("deviceId")
        for begun in reversed(self.begun):
            if device is None:
                is_its = begun.call["tool"] == "ask"
            else:
                choices = [choice["const"] for choice in device.get("oneOf", [])] or device.get("enum")
                is_its = begun.call["arguments"].get("offer") == choices
            if is_its:
                return begun
        return self.begun[-1]

    async def answer(self, params):
        """Answers a question as its call says: an action and its content."""
        params = as_json(params)
        begun = self.asked_by(params)
        begun.line["asked"].append(params)
        answer = begun.call.get("answer", {"action": "decline"})
        if "throws" in answer:
            raise RuntimeError(answer["throws"])
        if "afterMs" in answer:
            await asyncio.sleep(answer["afterMs"] / 1000)
        if "aborts" in answer:
            begun.acting.cancel()
        if "never" in answer or "aborts" in answer:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                begun.line["withdrawn"] = True
                raise
        return answer["action"], answer.get("content")


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
