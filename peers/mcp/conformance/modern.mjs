// A server for the conformance suite, of the era of 2026-07-28: the TypeScript SDK, version 2. Over HTTP it says its URL on
// stdout; with --stdio it speaks there.

import { createServer } from "node:http";
import { Readable } from "node:stream";

import {
  createMcpHandler, hostHeaderValidationResponse, localhostAllowedHostnames, localhostAllowedOrigins,
  originValidationResponse, ProtocolError, Server,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { contents, messages, prompts, resources, results, templates, tools } from "./catalog.mjs";
import { asked, names, verify } from "./inputs.mjs";

const pause = () => new Promise((resolve) => setTimeout(resolve, 30));

function serve() {
  const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {}, logging: {} };
  const server = new Server({ name: "conformance-modern", version: "1" }, { capabilities, requestState: { verify } });
  const asking = names.map((name) => ({ name, description: "Asks first", inputSchema: { type: "object", properties: {} } }));
  const mirrored = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } }, required: ["region"] };
  const placed = { name: "test_region", description: "Has an argument that is also a header", inputSchema: mirrored };
  const logs = { name: "test_logging_tool", description: "Logs", inputSchema: { type: "object", properties: {} } };
  server.setRequestHandler("tools/list", () => ({ tools: [...tools, ...asking, placed, logs] }));
  server.setRequestHandler("resources/list", () => ({ resources }));
  server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: templates }));
  const askingPrompt = { name: "test_input_required_result_prompt", description: "Asks first" };
  server.setRequestHandler("prompts/list", () => ({ prompts: [...prompts, askingPrompt] }));
  server.setRequestHandler("completion/complete", () => ({ completion: { values: [], total: 0, hasMore: false } }));
  server.setRequestHandler("resources/read", ({ params }) => {
    const found = contents(params.uri);
    if (!found) throw new ProtocolError(-32602, "no such resource", { uri: params.uri });
    return { contents: [found] };
  });
  server.setRequestHandler("prompts/get", async ({ params }, { mcpReq }) => {
    const still = await asked(params.name, mcpReq);
    if (still) return still;
    const answered = params.name === askingPrompt.name;
    const found = messages(answered ? "test_simple_prompt" : params.name, params.arguments);
    if (!found) throw new ProtocolError(-32602, `no prompt ${params.name}`);
    return { messages: found };
  });
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    if (results[params.name]) return results[params.name]();
    const still = await asked(params.name, context.mcpReq);
    if (still) return still;
    if (names.includes(params.name)) return { content: [{ type: "text", text: "state-ok" }] };
    if (params.name === logs.name) {
      await context.mcpReq.log("info", "Tool execution started");
      return { content: [{ type: "text", text: "logged" }] };
    }
    if (params.name === placed.name) return { content: [{ type: "text", text: params.arguments.region }] };
    if (params.name === "test_tool_with_progress") {
      for (const progress of [0, 50, 100]) {
        const progressToken = context.mcpReq._meta?.progressToken ?? 0;
        await context.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
        await pause();
      }
      return { content: [{ type: "text", text: "done" }] };
    }
    throw new ProtocolError(-32602, `no tool ${params.name}`);
  });
  return server;
}

const handler = createMcpHandler(serve);
const listener = createServer(async (request, response) => {
  const chunks = await Array.fromAsync(request);
  const hasBody = request.method !== "GET" && request.method !== "HEAD";
  const asked = new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method,
    headers: Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    body: hasBody ? Buffer.concat(chunks) : undefined,
  });
  // A request's own Host, and not the one of its URL.
  const refused =
    hostHeaderValidationResponse(asked, localhostAllowedHostnames()) ?? originValidationResponse(asked, localhostAllowedOrigins());
  const answer = refused ?? (await handler.fetch(asked));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (answer.body) Readable.fromWeb(answer.body).pipe(response);
  else response.end();
});
if (process.argv.includes("--stdio")) serveStdio(serve);
else listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
