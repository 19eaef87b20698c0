// A server of the TypeScript SDK, version 1: the push era only.

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema, McpError } from "@modelcontextprotocol/sdk/types.js";

import { called, QUESTION, text, tools, witness } from "./tools.mjs";

const server = new Server({ name: "typescript-v1", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, ({ params }, { sendNotification, signal }) => {
  witness(params.name, params.arguments);
  const progressToken = params._meta?.progressToken;
  return called(params, {
    fault: (code, message, data) => new McpError(code, message, data),
    progress: (how) => sendNotification({ method: "notifications/progress", params: { progressToken, ...how } }),
    signal,
    ask: async () => text(`the client answered ${JSON.stringify(await server.elicitInput(QUESTION))}`),
  });
});
await server.connect(new StdioServerTransport());
