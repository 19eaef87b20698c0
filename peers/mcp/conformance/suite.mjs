// Runs the official conformance suite, and reads its verdicts.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const HERE = fileURLToPath(new URL("..", import.meta.url));
const SUITE = join(HERE, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** The suite needs Node 22; where this one is older, the one from npm runs it. */
export function node() {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const packaged = join(HERE, "node_modules", `node-${process.platform}-${process.arch}`, "bin/node");
  return existsSync(packaged) ? packaged : undefined;
}

/** Runs the suite: `checks`, every check of every scenario (`scenario check` → statuses), and what a client under test `said`. */
export async function judged(t, ...options) {
  const folder = await mkdtemp(join(tmpdir(), "hr-conformance-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const suite = spawn(node(), [SUITE, ...options, "--timeout", "20000", "-o", folder], { stdio: "ignore" });
  await new Promise((resolve) => suite.on("exit", resolve));
  const checks = {};
  let said = "";
  for (const name of await readdir(folder)) {
    const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT.*$/, "");
    for (const { id, status } of JSON.parse(await readFile(join(folder, name, "checks.json"), "utf8"))) {
      (checks[`${scenario} ${id}`] ??= []).push(status);
    }
    if (options[0] === "client") said += await readFile(join(folder, name, "stdout.txt"), "utf8");
  }
  return { checks, said };
}

/**
 * Every check ends behind the gateway as it does without, but for those that `differs` names: `check` → both statuses, and
 * why. What it names has to be so.
 */
export function endsAlike(direct, behind, differs) {
  for (const check of new Set([...Object.keys(direct), ...Object.keys(behind)])) {
    const known = differs(check);
    const [expected, found] = [direct[check]?.join(), behind[check]?.join()];
    if (known) {
      assert.deepEqual([expected, found], [known.direct, known.behind], `${check}: the table is out of date`);
    } else {
      assert.equal(found, expected, check);
    }
  }
}

/** The checks that failed. */
export function failures(checks) {
  return Object.entries(checks).filter(([, statuses]) => statuses.includes("FAILURE"));
}
