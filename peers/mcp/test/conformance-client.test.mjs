// The official conformance suite judges a client in front of the suite's own servers: alone over HTTP, and in front of
// `handraise mcp --upstream`, over stdio and over HTTP. Every check of every scenario ends the same, or stands in the table
// below with its reason; and the client sees the same.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { endsAlike, failures, HERE, judged, node } from "../conformance/suite.mjs";

const HANDRAISE = process.env.HANDRAISE_BIN;

/** The scenarios of the suite, the version each is judged at, and how the client gets to the gateway. */
const SCENARIOS = [
  ["elicitation-sep1034-client-defaults", "2025-11-25", ["stdio", "listen"]],
  ["sep-2322-client-request-state", "2026-07-28", ["stdio", "listen"]],
  ["tools_call", "2025-06-18", ["stdio"]],
  ["sse-retry", "2025-11-25", ["stdio"]],
  ["request-metadata", "2026-07-28", ["stdio"]],
  ["json-schema-2020-12-preservation", "2026-07-28", ["stdio"]],
  ["http-standard-headers", "2026-07-28", ["stdio"]],
  ["http-custom-headers", "2026-07-28", ["stdio", "listen"]],
  ["http-invalid-tool-headers", "2026-07-28", ["stdio"]],
];

const ANNOTATED =
  "The gateway lists such a tool as its server does, and calls it without the header (docs/gateway.md). Only over HTTP is it " +
  "the client's to leave the tool out, so over stdio the SDK does not.";
const calls = (times) => ({ direct: Array(times).fill("SUCCESS").join(), behind: Array(times).fill("FAILURE").join(), why: ANNOTATED });

/** Checks that may end otherwise behind the gateway: `how scenario check` → both statuses, and why. */
const DIFFERS = {
  "stdio http-invalid-tool-headers sep-2243-x-mcp-header-not-empty": calls(1),
  "stdio http-invalid-tool-headers sep-2243-x-mcp-header-primitive-only": calls(4),
  "stdio http-invalid-tool-headers sep-2243-x-mcp-header-unique": calls(2),
  "stdio http-invalid-tool-headers sep-2243-x-mcp-header-charset": calls(4),
};

/** The verdicts on the client. What the suite only notes, such as every request, is none. */
async function verdicts(t, scenario, version, how) {
  const command = [node(), join(HERE, "conformance/client.mjs"), how, ...(how === "direct" ? [] : [HANDRAISE])].join(" ");
  const run = await judged(t, "client", "--command", command, "--scenario", scenario, "--spec-version", version);
  const checks = Object.entries(run.checks).filter(([, statuses]) => !statuses.includes("INFO"));
  return { checks: Object.fromEntries(checks), said: run.said };
}

const options = { skip: node() ? false : "Node 22 is not installed", concurrency: 2 };
test("the conformance suite sees no gateway behind a client", options, async (t) => {
  const judgements = SCENARIOS.map(([scenario, version, ways]) =>
    t.test(`${scenario} at ${version}`, async (t) => {
      const direct = await verdicts(t, scenario, version, "direct");
      assert.deepEqual(failures(direct.checks), []);
      assert.ok(Object.values(direct.checks).flat().includes("SUCCESS"), "nothing was judged");
      for (const how of ways) {
        const behind = await verdicts(t, scenario, version, how);
        const differs = (check) => DIFFERS[`${how} ${check}`];
        endsAlike(direct.checks, behind.checks, differs);
        if (!Object.keys(direct.checks).some(differs)) assert.equal(behind.said, direct.said, "the client sees something else");
      }
    }),
  );
  await Promise.all(judgements);
});
