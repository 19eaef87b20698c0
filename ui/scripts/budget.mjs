// Fails when the page's script and style weigh more than the budget (inbox.md: 40 KB gzipped).
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const BUDGET = 40 * 1024;
const assets = new URL("../../crates/handraise-server/page/assets/", import.meta.url);
const files = readdirSync(assets).filter((name) => /\.(js|css)$/.test(name));
if (files.length === 0) throw new Error(`no script or style in ${assets.pathname}: did the build run?`);

let sum = 0;
for (const name of files) {
  const size = gzipSync(readFileSync(new URL(name, assets)), { level: 9 }).length;
  sum += size;
  console.log(`${name}  ${size} B gzipped`);
}
console.log(`together ${sum} B of ${BUDGET} B`);
if (sum > BUDGET) {
  console.error(`the page is ${sum - BUDGET} B too heavy`);
  process.exit(1);
}
