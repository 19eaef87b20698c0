// Every SDK client in front of every SDK server, with tools that are guarded: what its handler answers decides whether they
// run, and where it has none, a preview and its token do. The servers' witnesses are the judges of what ran.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { behindGateway, carryOut, CLIENTS, linesOf, pushes, scratch, SERVERS } from "./peers.mjs";

const PATIENCE_MS = 240_000;
const CONFIG = '[[confirm]]\ntools = ["count", "ask", "tap"]\naction = "Do it"\n';

const guarded = (name, answer, more) => ({
  name, tool: "count", arguments: { note: name, steps: 1 }, answer, runs: 0, ...more,
});
const accept = (content) => ({ action: "accept", content });

/** Calls of a client that can be asked, and how often each runs. `wrong`: its content does not fit the schema. */
const ASKED = [
  guarded("ticked", accept({ confirm: true }), { runs: 1 }),
  guarded("not ticked", accept({ confirm: false }), { error: "NOT_CONFIRMED" }),
  guarded("a text", accept({ confirm: "true" }), { error: "NOT_CONFIRMED", wrong: true }),
  guarded("empty", accept({}), { error: "NOT_CONFIRMED", wrong: true }),
  guarded("declined", { action: "decline" }, { cancelled: true }),
  guarded("put away", { action: "cancel" }, { cancelled: true }),
  { name: "free", tool: "echo", arguments: { note: "free", text: "x" }, runs: 1, asked: 0 },
];

for (const client of CLIENTS) {
  test(client.name, async (context) => {
    const folder = scratch(context);
    const config = join(folder, "handraise.toml");
    writeFileSync(config, CONFIG, { mode: 0o600 });
    const env = {
      HANDRAISE_ASK_MIN_HUMAN_MS: "0",
      HANDRAISE_CONFIG: config,
      HANDRAISE_DATA_DIR: join(folder, "data"),
      MCP_CONFIRM_SECRET: "a secret of thirty-two characters",
    };
    const plans = client.eras.flatMap((era) => SERVERS.map((server) => ({ era, server })));
    const plan = ({ era, server }, what, elicitation, calls) => {
      const name = `${era}, ${server.name}: ${what}`;
      const path = (kind) => join(folder, `${era} ${server.name} ${kind}`.replaceAll(/[^\w]+/g, "-"));
      const command = behindGateway([...server.command, path("witness")], path("log"));
      return { name, era, elicitation, env, calls, server: command, witness: path("witness"), isPush: pushes(era, server) };
    };
    const asked = plans.map((each) => plan(each, "asked", true, ASKED));
    const answers = await carryOut(client, asked, PATIENCE_MS);
    for (const each of asked) await context.test(each.name, () => judgeAsked(answers.get(each.name), each, client));

    const call = { name: "first", tool: "count", arguments: { note: "token", steps: 1 } };
    const first = plans.map((each) => plan(each, "token", false, [call]));
    const previews = await carryOut(client, first, PATIENCE_MS);
    const second = first.map((each) => {
      const report = previews.get(each.name);
      if (report.refused) return { ...each, calls: [] };
      const confirmToken = said(report.calls[0]).confirmToken;
      const withToken = { ...call, name: "second", arguments: { ...call.arguments, confirmToken } };
      return { ...each, calls: [withToken, { ...withToken, name: "again" }] };
    });
    const ends = await carryOut(client, second, PATIENCE_MS);
    for (const each of second) {
      await context.test(each.name, () => judgeToken(previews.get(each.name), ends.get(each.name), each));
    }
  });
}

/** The object in the one text of a result of ours. */
function said(line) {
  assert.equal(line.error, undefined, `${line.name}: ${JSON.stringify(line.error)}`);
  const { content } = line.result;
  assert.equal(content.length, 1);
  return JSON.parse(content[0].text);
}

function judgeAsked(report, plan, client) {
  if (report.refused) return;
  const count = report.tools.find((tool) => tool.name === "count");
  assert.equal(count.inputSchema.properties.confirmToken.type, "string");
  assert.match(count.description, /Runs only once it was confirmed/);
  assert.equal(report.tools.find((tool) => tool.name === "echo").inputSchema.properties.confirmToken, undefined);
  for (const call of plan.calls) {
    const line = report.calls.find((line) => line.name === call.name);
    assert.equal(line.asked.length, call.asked ?? 1, `${call.name}: asked`);
    for (const params of line.asked) {
      assert.match(params.message, /^stdio .*asks to: Do it\nTool: "count"\n/);
      assert.match(params.message, new RegExp(`\n  "note":"${call.name}"\n`));
      assert.equal(params.requestedSchema.properties.confirm.type, "boolean");
    }
    const ran = linesOf(plan.witness).map((line) => JSON.parse(line)).filter((ran) => ran.arguments?.note === call.name);
    assert.deepEqual(ran.map((ran) => ran.arguments), call.runs ? [call.arguments] : [], `${call.name}: what ran`);
    if (call.runs) {
      assert.ok(line.result && !line.result.isError, `${call.name}: ${JSON.stringify(line)}`);
    } else if (!(call.wrong && client.checks)) {
      // A client that compares the content with the schema itself never sends it.
      const object = said(line);
      assert.equal(object.dispatched, false);
      assert.equal(object.error, call.error);
      assert.equal(object.cancelled, call.cancelled);
    }
  }
}

function judgeToken(preview, ends, plan) {
  if (preview.refused) return;
  const shown = said(preview.calls[0]);
  assert.equal(shown.status, "confirmation-required");
  assert.deepEqual(shown.preview.arguments, ['"note":"token"', '"steps":1']);
  assert.deepEqual(preview.calls[0].asked, []);
  const [second, again] = ends.calls;
  assert.equal(second.result.content[0].text, "counted to 1");
  assert.equal(said(again).error, "TOKEN_REUSED");
  const ran = linesOf(plan.witness).map((line) => JSON.parse(line)).filter((ran) => ran.arguments?.note === "token");
  assert.deepEqual(ran.map((ran) => ran.arguments), [{ note: "token", steps: 1 }]);
}
