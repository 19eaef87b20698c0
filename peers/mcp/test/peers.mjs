// The SDKs: their client and server programs, where they are installed, and what is particular about them.

import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const { HANDRAISE_BIN, HANDRAISE_RMCP_PEER, HANDRAISE_PEERS_PYTHON } = process.env;
if (!HANDRAISE_BIN) throw new Error("HANDRAISE_BIN names the handraise to test; `cargo xtask test` sets it");

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const node = (path) => [process.execPath, at(path)];
const python = (path) => HANDRAISE_PEERS_PYTHON && [HANDRAISE_PEERS_PYTHON, at(path)];
const rmcp = (role) => HANDRAISE_RMCP_PEER && [HANDRAISE_RMCP_PEER, role];

/**
 * The clients, with the eras they can be told to speak. Those that have `checks` compare the content of an answer with
 * the question's schema themselves, and never send a wrong one.
 */
export const CLIENTS = present([
  { name: "typescript-v1", command: node("clients/typescript-v1.mjs"), eras: ["legacy"] },
  { name: "typescript-v2", command: node("clients/typescript-v2.mjs"), eras: ["legacy", "2025-06-18", "auto", "modern"] },
  { name: "python-mcp", command: python("clients/python_mcp.py"), eras: ["legacy", "auto", "modern"] },
  { name: "python-fastmcp", command: python("clients/python_fastmcp.py"), eras: ["legacy", "auto", "modern"], checks: true },
  { name: "rmcp", command: rmcp("client"), eras: ["legacy", "2025-06-18", "auto", "modern"] },
]);

/** The servers. Each takes the path of its witness as the last argument. Those `overHttp` are also reached over HTTP. */
export const SERVERS = present([
  { name: "typescript-v1", command: node("servers/typescript-v1.mjs"), modern: false },
  { name: "typescript-v2", command: node("servers/typescript-v2.mjs"), modern: true, overHttp: true },
  { name: "python-mcp", command: python("servers/python_mcp.py"), modern: true, overHttp: true },
  { name: "rmcp", command: rmcp("server"), modern: true },
]);

function present(peers) {
  return peers.filter((peer) => peer.command);
}

/** Whether this client and this server meet in the era of pushed questions. */
export function pushes(era, server) {
  return !server.modern || era === "legacy" || era === "2025-06-18";
}

/** The gateway in front of a server, its log in a file. */
export function behindGateway(server, log) {
  return ["/bin/sh", "-c", 'log="$1"; shift; exec "$@" 2>>"$log"', "sh", log, HANDRAISE_BIN, "mcp", "--", ...server];
}

/** The gateway over HTTP in front of a server, its log in a file, until the tests are over; gives its address. */
export async function listening(context, { server, env, log }) {
  const stderr = openSync(log, "a");
  const gateway = spawn(HANDRAISE_BIN, ["mcp", "--listen", "127.0.0.1:0", "--", ...server], {
    stdio: ["ignore", "pipe", stderr],
    env: { ...process.env, ...env },
  });
  closeSync(stderr);
  const gone = new Promise((resolve) => gateway.on("exit", resolve));
  context.after(async () => {
    gateway.kill("SIGTERM");
    const timer = setTimeout(() => gateway.kill("SIGKILL"), 5000);
    await gone;
    clearTimeout(timer);
  });
  for await (const line of createInterface(gateway.stdout)) return line;
  throw new Error(`the gateway does not listen: ${linesOf(log).at(-1)}`);
}

/** A folder that is gone when the tests are over. */
export function scratch(context) {
  const folder = mkdtempSync(join(tmpdir(), "handraise-peers-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** What a witness or a log holds, line by line; nothing when nobody wrote. */
export function linesOf(path) {
  try {
    return readFileSync(path, "utf8").split("\n").filter(Boolean);
  } catch (error) {
    if (error.code === "ENOENT") return [];
    throw error;
  }
}

/** Has a client carry out plans; gives its reports by the plans' names. */
export async function carryOut(client, plans, patienceMs) {
  const [command, ...args] = client.command;
  const process = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], timeout: patienceMs });
  let out = "";
  let errors = "";
  process.stdout.setEncoding("utf8").on("data", (chunk) => (out += chunk));
  process.stderr.setEncoding("utf8").on("data", (chunk) => (errors = (errors + chunk).slice(0, 4000)));
  process.stdin.end(JSON.stringify(plans));
  const status = await new Promise((resolve) => process.on("close", (code, signal) => resolve(code ?? signal)));
  const reports = new Map(out.split("\n").filter(Boolean).map((line) => [JSON.parse(line).name, JSON.parse(line)]));
  const missing = plans.filter((plan) => !reports.has(plan.name));
  if (missing.length > 0) {
    const count = `${missing.length} of ${plans.length} reports, the first "${missing[0].name}"`;
    throw new Error(`${client.name} ended with ${status} and without ${count}\n${errors}`);
  }
  return reports;
}
