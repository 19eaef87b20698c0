// A server for the conformance suite, of the push era: the TypeScript SDK, version 1. Over HTTP, with sessions, it says its
// URL on stdout; with --stdio it speaks there.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema, CompleteRequestSchema, CreateMessageResultSchema, ElicitResultSchema, GetPromptRequestSchema,
  ListPromptsRequestSchema, ListResourcesRequestSchema, ListResourceTemplatesRequestSchema, ListToolsRequestSchema, McpError,
  ReadResourceRequestSchema, SetLevelRequestSchema, SubscribeRequestSchema, UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { contents, forms, messages, prompts, resources, results, templates, tools } from "./catalog.mjs";

const pause = () => new Promise((resolve) => setTimeout(resolve, 30));

function serve() {
  const capabilities = { tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {} };
  const server = new Server({ name: "conformance-legacy", version: "1" }, { capabilities });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: templates }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts }));
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}));
  server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.setRequestHandler(CompleteRequestSchema, () => ({ completion: { values: [], total: 0, hasMore: false } }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => {
    const found = contents(params.uri);
    if (!found) throw new McpError(-32002, "no such resource", { uri: params.uri });
    return { contents: [found] };
  });
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const found = messages(params.name, params.arguments);
    if (!found) throw new McpError(-32602, `no prompt ${params.name}`);
    return { messages: found };
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const said = (words) => ({ content: [{ type: "text", text: words }] });
    const name = params.name;
    if (results[name]) return results[name]();
    if (name === "test_tool_with_logging") {
      for (const data of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
        await extra.sendNotification({ method: "notifications/message", params: { level: "info", data } });
        await pause();
      }
      return said("logged");
    }
    if (name === "test_tool_with_progress") {
      for (const progress of [0, 50, 100]) {
        const progressToken = params._meta?.progressToken ?? 0;
        await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 100 } });
        await pause();
      }
      return said("done");
    }
    if (name === "test_sampling") {
      const content = { type: "text", text: params.arguments.prompt };
      const asked = { messages: [{ role: "user", content }], maxTokens: 100 };
      const answer = await extra.sendRequest({ method: "sampling/createMessage", params: asked }, CreateMessageResultSchema);
      return said(`LLM response: ${answer.content.text}`);
    }
    if (forms[name]) {
      const asked = { message: params.arguments?.message ?? "Please answer", requestedSchema: forms[name] };
      const answer = await extra.sendRequest({ method: "elicitation/create", params: asked }, ElicitResultSchema);
      return said(`User response: action=${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
    }
    throw new McpError(-32602, `no tool ${name}`);
  });
  return server;
}

const sessions = new Map();
const listener = createServer(async (request, response) => {
  const known = sessions.get(request.headers["mcp-session-id"]);
  if (known) return known.handleRequest(request, response);
  if (request.headers["mcp-session-id"]) return response.writeHead(404).end();
  const allowedHosts = [`127.0.0.1:${listener.address().port}`, `localhost:${listener.address().port}`];
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableDnsRebindingProtection: true,
    allowedHosts,
    allowedOrigins: allowedHosts.map((host) => `http://${host}`),
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await serve().connect(transport);
  await transport.handleRequest(request, response);
});
if (process.argv.includes("--stdio")) await serve().connect(new StdioServerTransport());
else listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
