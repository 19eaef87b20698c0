// A server of the TypeScript SDK, version 2: both eras, decided by how the client opens the connection.

import { inputRequired, ProtocolError, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { called, QUESTION, text, tools, witness } from "./tools.mjs";

serveStdio(() => {
  const server = new Server({ name: "typescript-v2", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", () => ({ tools }));
  server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
    witness(params.name, params.arguments);
    const progressToken = mcpReq._meta?.progressToken;
    return called(params, {
      fault: (code, message, data) => new ProtocolError(code, message, data),
      progress: (how) => mcpReq.notify({ method: "notifications/progress", params: { progressToken, ...how } }),
      signal: mcpReq.signal,
      ask: () => {
        const answer = mcpReq.inputResponses?.goOn;
        if (answer === undefined) {
          return inputRequired({
            inputRequests: { goOn: inputRequired.elicit({ mode: "form", ...QUESTION }) },
            requestState: "the server's own state",
          });
        }
        return text(`the client answered ${JSON.stringify(answer)} to ${mcpReq.requestState()}`);
      },
    });
  });
  return server;
});
