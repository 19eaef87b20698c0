// A server of the TypeScript SDK, version 2: both eras, decided by how the client opens the connection.

import { inputRequired, ProtocolError, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { apart, echoed, FAILURE, QUESTION, tapped, text, tools, waited, witness } from "./tools.mjs";

serveStdio(() => {
  const server = new Server({ name: "typescript-v2", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const given = params.arguments ?? {};
    witness(params.name, params.arguments);
    switch (params.name) {
      case "echo":
        return echoed(given);
      case "fail":
        throw new ProtocolError(FAILURE.code, FAILURE.message, FAILURE.data);
      case "count":
        for (let progress = 1; progress <= given.steps; progress++) {
          await context.mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken: context.mcpReq._meta?.progressToken, progress, total: given.steps },
          });
          await apart();
        }
        return text(`counted to ${given.steps}`);
      case "wait":
        await context.mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken: context.mcpReq._meta?.progressToken, progress: 1 },
        });
        return waited(given, context.mcpReq.signal);
      case "ask": {
        const answer = context.mcpReq.inputResponses?.goOn;
        if (answer === undefined) {
          return inputRequired({
            inputRequests: { goOn: inputRequired.elicit({ mode: "form", ...QUESTION }) },
            requestState: "the server's own state",
          });
        }
        return text(`the client answered ${JSON.stringify(answer)} to ${context.mcpReq.requestState()}`);
      }
      case "tap":
        return tapped(given);
      default:
        throw new ProtocolError(-32602, `no tool ${params.name}`);
    }
  });
  return server;
});
