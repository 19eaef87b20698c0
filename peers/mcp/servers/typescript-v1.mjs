// A server of the TypeScript SDK, version 1: the push era only.

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from "@modelcontextprotocol/sdk/types.js";

import { apart, echoed, FAILURE, QUESTION, tapped, text, tools, waited, witness } from "./tools.mjs";

const server = new Server({ name: "typescript-v1", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
  const given = params.arguments ?? {};
  witness(params.name, params.arguments);
  switch (params.name) {
    case "echo":
      return echoed(given);
    case "fail":
      throw new McpError(FAILURE.code, FAILURE.message, FAILURE.data);
    case "count":
      for (let progress = 1; progress <= given.steps; progress++) {
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken: params._meta?.progressToken, progress, total: given.steps },
        });
        await apart();
      }
      return text(`counted to ${given.steps}`);
    case "wait":
      await extra.sendNotification({
        method: "notifications/progress",
        params: { progressToken: params._meta?.progressToken, progress: 1 },
      });
      return waited(given, extra.signal);
    case "ask":
      return text(`the client answered ${JSON.stringify(await server.elicitInput(QUESTION))}`);
    case "tap":
      return tapped(given);
    default:
      throw new McpError(-32602, `no tool ${params.name}`);
  }
});
await server.connect(new StdioServerTransport());
