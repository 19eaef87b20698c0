// A client of the TypeScript SDK, version 2.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { carryOut } from "./plans.mjs";

const ERAS = {
  legacy: {},
  "2025-06-18": { supportedProtocolVersions: ["2025-06-18"] },
  auto: { versionNegotiation: { mode: "auto" } },
  modern: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
};

await carryOut(async (plan, onQuestion) => {
  const client = new Client(
    { name: "typescript-v2", version: "1" },
    {
      capabilities: plan.elicitation ? { elicitation: { form: {} } } : {},
      ...ERAS[plan.era],
    },
  );
  if (plan.elicitation) {
    client.setRequestHandler("elicitation/create", ({ params }, { mcpReq }) => onQuestion(params, mcpReq.signal));
  }
  const transport = transportOf(plan);
  await client.connect(transport);
  const { tools } = await client.listTools();
  return {
    protocolVersion: client.getNegotiatedProtocolVersion(),
    tools,
    call: (call, options) => client.callTool({ name: call.tool, arguments: call.arguments }, options),
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
