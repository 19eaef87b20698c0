// The official conformance suite judges a server, and the same server behind `handraise mcp --listen --upstream`: every
// check of every scenario ends the same, or stands in the table below with its reason.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL("..", import.meta.url));
const HANDRAISE = process.env.HANDRAISE_BIN;
const SUITE = join(HERE, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** The versions of the protocol, and the server that speaks each. */
const VERSIONS = [
  ["2025-06-18", "legacy.mjs"],
  ["2025-11-25", "legacy.mjs"],
  ["2026-07-28", "modern.mjs"],
];

/** Checks that may end otherwise behind the gateway: `version scenario check` → both statuses, and why. */
const DIFFERS = {
  "2025-11-25 server-sse-multiple-streams server-sse-streams-functional": {
    direct: "SUCCESS",
    behind: "INFO",
    why: "An answer that comes at once is one JSON body behind the gateway, and no stream; the suite notes that it saw none.",
  },
};

/** The suite needs Node 22; where this one is older, the one from npm runs it. */
function node() {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const packaged = join(HERE, "node_modules", `node-${process.platform}-${process.arch}`, "bin/node");
  return existsSync(packaged) ? packaged : undefined;
}

/** A program whose first line of stdout is its URL. */
async function listening(t, program, ...options) {
  const child = spawn(program, options, { cwd: HERE, stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) return line;
  throw new Error(`${program} says no URL`);
}

/** Every check of every scenario: `scenario check` → statuses. */
async function judged(t, url, version) {
  const folder = await mkdtemp(join(tmpdir(), "hr-conformance-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const options = [SUITE, "server", "--url", url, "--spec-version", version, "--timeout", "20000", "-o", folder];
  const suite = spawn(node(), options, { stdio: "ignore" });
  await new Promise((resolve) => suite.on("exit", resolve));
  const checks = {};
  for (const name of await readdir(folder)) {
    const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    for (const { id, status } of JSON.parse(await readFile(join(folder, name, "checks.json"), "utf8"))) {
      (checks[`${scenario} ${id}`] ??= []).push(status);
    }
  }
  return checks;
}

for (const [version, program] of VERSIONS) {
  test(`the conformance suite of ${version} sees no gateway`, { skip: node() ? false : "Node 22 is not installed" }, async (t) => {
    const direct = await listening(t, node(), join("conformance", program));
    const behind = await listening(t, HANDRAISE, "mcp", "--listen", "127.0.0.1:0", "--upstream", direct);
    const [alone, gateway] = [await judged(t, direct, version), await judged(t, behind, version)];
    // It is a server that conforms, so that a loss could show.
    const failures = Object.entries(alone).filter(([, statuses]) => statuses.includes("FAILURE"));
    assert.deepEqual(failures, []);
    assert.ok(Object.keys(alone).length >= 20, `${Object.keys(alone).length} checks`);
    for (const check of new Set([...Object.keys(alone), ...Object.keys(gateway)])) {
      const known = DIFFERS[`${version} ${check}`];
      const [expected, found] = [alone[check]?.join(), gateway[check]?.join()];
      if (known) {
        assert.deepEqual([expected, found], [known.direct, known.behind], `${check}: the table is out of date`);
      } else {
        assert.equal(found, expected, check);
      }
    }
  });
}
