// A client for the conformance suite, of either era: the TypeScript SDK, version 2. The suite names the scenario and the
// version in its environment, and puts the URL of its server last:
//
//   client.mjs direct URL              over HTTP
//   client.mjs stdio GATEWAY URL       over stdio, in front of `handraise mcp --upstream URL`
//   client.mjs listen GATEWAY URL      over HTTP, in front of `handraise mcp --listen --upstream URL`

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const PATIENCE_MS = 15_000;

/** What each scenario wants a client to do. */
const SCENARIOS = {
  tools_call: (client) => call(client, "add_numbers", { a: 5, b: 3 }),
  "elicitation-sep1034-client-defaults": (client) => call(client, "test_client_elicitation_defaults"),
  "json-schema-2020-12-preservation": async (client) => {
    const { tools } = await client.listTools();
    const { inputSchema } = tools.find((tool) => tool.name === "json_schema_2020_12_tool");
    await call(client, "json_schema_echo", { schema: inputSchema });
  },
  "request-metadata": (client) => client.listTools(),
  "sse-retry": (client) => call(client, "test_reconnection"),
  "http-standard-headers": async (client) => {
    const { tools } = await client.listTools();
    await call(client, tools[0].name);
    const { resources } = await client.listResources();
    await client.readResource({ uri: resources[0].uri });
    const { prompts } = await client.listPrompts();
    await client.getPrompt({ name: prompts[0].name });
  },
  "http-custom-headers": async (client) => {
    await client.listTools();
    const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT);
    for (const { name, arguments: given } of toolCalls) await call(client, name, given);
  },
  "http-invalid-tool-headers": async (client) => {
    const { tools } = await client.listTools();
    for (const { name } of tools) await call(client, name, { region: "a", value: "a" });
  },
  "sep-2322-client-request-state": async (client) => {
    // A call of its own while the other one's question is open.
    meanwhile = () => call(client, "test_mrtr_unrelated");
    await call(client, "test_mrtr_echo_state");
    await call(client, "test_mrtr_no_state");
    await call(client, "test_mrtr_no_result_type");
  },
};

const [how, ...rest] = process.argv.slice(2);
const url = rest.pop();
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION >= "2026-07-28";
let meanwhile;

const client = new Client(
  { name: "conformance", version: "1" },
  {
    capabilities: { elicitation: { form: { applyDefaults: true } } },
    versionNegotiation: modern ? { mode: { pin: "2026-07-28" } } : undefined,
  },
);
client.setRequestHandler("elicitation/create", async ({ params }) => {
  const aside = meanwhile;
  meanwhile = undefined;
  await aside?.();
  return { action: "accept", content: "confirmed" in params.requestedSchema.properties ? { confirmed: true } : {} };
});

// The suite gives up on a client sooner than on the client's gateway.
setTimeout(() => process.exit(1), PATIENCE_MS).unref();

const transport = await transportOf(how, rest[0]);
await client.connect(transport);
await SCENARIOS[process.env.MCP_CONFORMANCE_SCENARIO](client);
await transport.terminateSession?.();
await client.close();
process.exit();

/** Calls a tool, and says on stdout what came of it. */
async function call(client, name, given = {}) {
  let line;
  try {
    line = await client.callTool({ name, arguments: given });
  } catch (error) {
    line = { code: error.code, message: error.message };
  }
  console.log(JSON.stringify([name, line]));
}

async function transportOf(how, gateway) {
  if (how === "direct") return new StreamableHTTPClientTransport(new URL(url));
  if (how === "stdio") {
    return new StdioClientTransport({ command: gateway, args: ["mcp", "--upstream", url], env: process.env, stderr: "inherit" });
  }
  const options = ["mcp", "--listen", "127.0.0.1:0", "--upstream", url];
  const child = spawn(gateway, options, { stdio: ["ignore", "pipe", "inherit"] });
  process.on("exit", () => child.kill());
  for await (const line of createInterface({ input: child.stdout })) return new StreamableHTTPClientTransport(new URL(line));
  throw new Error("the gateway says no URL");
}
