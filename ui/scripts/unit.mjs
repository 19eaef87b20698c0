// Compiles the unit tests to plain JavaScript and runs them, so that they work on every supported Node.
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../", import.meta.url);
const out = new URL("dist/test/", root);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
writeFileSync(new URL("package.json", out), '{"type":"module"}\n');

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: "inherit", cwd: fileURLToPath(root) });
  if (status !== 0) process.exit(status ?? 1);
}

run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.test.json"]);
const tests = readdirSync(new URL("test/", out)).filter((name) => name.endsWith(".test.js"));
if (tests.length === 0) throw new Error("no unit tests were compiled");
run(process.execPath, ["--test", ...tests.map((name) => `dist/test/test/${name}`)]);
