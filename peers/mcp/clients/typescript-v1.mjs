// A client of the TypeScript SDK, version 1: the push era only.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
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
  const [command, ...args] = plan.server;
  const env = { ...process.env, ...plan.env };
  const transport = new StdioClientTransport({ command, args, env, stderr: "ignore" });
  let protocolVersion;
  // This version tells nobody else what was agreed on.
  transport.setProtocolVersion = (agreed) => (protocolVersion = agreed);
  await client.connect(transport);
  const { tools } = await client.listTools();
  return {
    protocolVersion,
    tools,
    call: (call, options) => client.callTool({ name: call.tool, arguments: call.arguments }, undefined, options),
    close: () => client.close(),
  };
});
