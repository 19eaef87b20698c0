// A client of the TypeScript SDK, version 1: the push era only.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { carryOut } from "./plans.mjs";

await carryOut(async (plan, onQuestion) => {
  const client = new Client(
    { name: "typescript-v1", version: "1" },
    { capabilities: plan.elicitation ? { elicitation: {} } : {} },
  );
  if (plan.elicitation) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => onQuestion(params, signal));
  }
  const transport = transportOf(plan);
  const heed = transport.setProtocolVersion?.bind(transport);
  let protocolVersion;
  // This version tells nobody else what was agreed on.
  transport.setProtocolVersion = (agreed) => {
    protocolVersion = agreed;
    heed?.(agreed);
  };
  await client.connect(transport);
  const { tools } = await client.listTools();
  return {
    protocolVersion,
    tools,
    call: (call, options) => client.callTool({ name: call.tool, arguments: call.arguments }, undefined, options),
    close: async () => {
      await transport.terminateSession?.();
      await client.close();
    },
  };
});

function transportOf(plan) {
  if (plan.url) return new StreamableHTTPClientTransport(new URL(plan.url));
  const [command, ...args] = plan.server;
  return new StdioClientTransport({ command, args, env: { ...process.env, ...plan.env }, stderr: "ignore" });
}
