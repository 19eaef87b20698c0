// The official conformance suite judges a server over HTTP, and the same server behind `handraise mcp --listen`, once over
// HTTP (`--upstream`) and once over stdio: every check of every scenario ends the same, or stands in the table below with
// its reason.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { endsAlike, failures, HERE, judged, node } from "../conformance/suite.mjs";

const HANDRAISE = process.env.HANDRAISE_BIN;

/** The versions of the protocol, the server that speaks each, and which scenarios of the suite judge it. */
const VERSIONS = [
  ["2025-06-18", "legacy.mjs", "active"],
  ["2025-11-25", "legacy.mjs", "active"],
  ["2026-07-28", "modern.mjs", "all"],
];

const MIRRORED = "The SDK's server lets headers pass that do not say what the arguments say; the gateway refuses them.";

/** Checks that may end otherwise behind the gateway: `version scenario check` → both statuses, and why. */
const DIFFERS = {
  "2025-11-25 server-sse-multiple-streams server-sse-streams-functional": {
    direct: "SUCCESS",
    behind: "INFO",
    why: "An answer that comes at once is one JSON body behind the gateway, and no stream; the suite notes that it saw none.",
  },
  "2026-07-28 http-custom-header-server-validation sep-2243-server-reject-invalid-param-chars": {
    direct: "FAILURE,FAILURE",
    behind: "SUCCESS,SUCCESS",
    why: MIRRORED,
  },
  "2026-07-28 http-custom-header-server-validation sep-2243-server-reject-param-mismatch": {
    direct: "FAILURE,FAILURE,FAILURE",
    behind: "SUCCESS,SUCCESS,SUCCESS",
    why: MIRRORED,
  },
  "2026-07-28 http-custom-header-server-validation sep-2243-server-validate-param-match": {
    direct: "SUCCESS,SUCCESS,FAILURE",
    behind: "SUCCESS,SUCCESS,SUCCESS",
    why: MIRRORED,
  },
};

/** A program whose first line of stdout is its URL. */
async function listening(t, program, ...options) {
  const child = spawn(program, options, { cwd: HERE, stdio: ["ignore", "pipe", "ignore"] });
  t.after(() => child.kill());
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) return line;
  throw new Error(`${program} says no URL`);
}

for (const [version, program, scenarios] of VERSIONS) {
  test(`the conformance suite of ${version} sees no gateway`, { skip: node() ? false : "Node 22 is not installed" }, async (t) => {
    const direct = await listening(t, node(), join("conformance", program));
    const gateway = (...server) => listening(t, HANDRAISE, "mcp", "--listen", "127.0.0.1:0", ...server);
    const checksOf = async (url) => (await judged(t, "server", "--url", url, "--spec-version", version, "--suite", scenarios)).checks;
    const alone = await checksOf(direct);
    const differs = (check) => DIFFERS[`${version} ${check}`];
    // It is a server that conforms, so that a loss could show.
    assert.deepEqual(failures(alone).filter(([check]) => !differs(check)), []);
    assert.ok(Object.keys(alone).length >= 20, `${Object.keys(alone).length} checks`);
    endsAlike(alone, await checksOf(await gateway("--upstream", direct)), differs);
    endsAlike(alone, await checksOf(await gateway("--", node(), join("conformance", program), "--stdio")), differs);
  });
}
