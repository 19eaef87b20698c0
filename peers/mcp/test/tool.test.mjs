// Every SDK client with `handraise tool` as its server and an inbox behind it: the tool is listed, and its call brings back
// what an operator answers over the HTTP API.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { carryOut, CLIENTS, scratch } from "./peers.mjs";

const { HANDRAISE_BIN } = process.env;
const PATIENCE_MS = 120_000;
const LOOK_EVERY_MS = 50;

const ends = [];
let inbox;
before(async () => (inbox = await running({ after: (end) => ends.unshift(end) })));
after(async () => {
  for (const end of ends) await end();
});

for (const client of CLIENTS) {
  test(client.name, async (context) => {
    // What starts slowly speaks one era.
    const eras = client.name.startsWith("python") ? ["modern"] : client.eras;
    const plans = eras.map((era) => ({
      name: `${client.name}, ${era}`,
      server: [HANDRAISE_BIN, "tool", "--data-dir", inbox.folder],
      env: {},
      era,
      elicitation: false,
      calls: [call(`Which database, ${client.name}, ${era}?`)],
    }));
    const reports = await carryOut(client, plans, PATIENCE_MS);
    for (const plan of plans) {
      await context.test(plan.name, () => judge(reports.get(plan.name), plan.calls[0]));
    }
  });
}

function call(prompt) {
  const options = [{ label: "Postgres", description: "as in production" }, { label: "SQLite" }];
  return { name: "ask", tool: "ask_user_question", arguments: { questions: [{ id: "db", prompt, options }] } };
}

function judge(report, { arguments: { questions } }) {
  assert.equal(report.refused, undefined);
  assert.deepEqual(report.tools.map((tool) => tool.name), ["ask_user_question"]);
  const [line] = report.calls;
  assert.equal(line.error, undefined);
  const told = JSON.parse(line.result.content[0].text);
  assert.equal(told.outcome, "accept", told.message);
  assert.deepEqual(told.answers, [{ id: "db", prompt: questions[0].prompt, selected: ["SQLite"] }]);
  assert.deepEqual([told.outcome, told.provenance, told.by], ["accept", "client", "peers"]);
}

/** An inbox in which an operator picks the last choice of every question, until the tests are over; gives its folder. */
async function running(context) {
  const folder = scratch(context);
  const env = { ...process.env, HANDRAISE_DATA_DIR: folder };
  const up = spawn(HANDRAISE_BIN, ["up", "--no-open", "--listen", "127.0.0.1:0"], { env, stdio: "ignore" });
  const gone = new Promise((resolve) => up.on("exit", resolve));
  context.after(async () => {
    up.kill("SIGTERM");
    await gone;
  });
  const { url } = await until(() => JSON.parse(readFileSync(join(folder, "inbox.json"), "utf8")));
  const token = await printed(env, ["token", "create", "--scope", "operator", "--name", "peers"]);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const answerAll = async () => {
    const { asks } = await (await fetch(`${url}/api/v1/asks?state=open`, { headers })).json();
    for (const { id, questions } of asks) {
      const answers = questions.map(({ id, choices }) => ({
        question_id: id,
        selected_options: [choices.at(-1).value],
        custom_text: "",
      }));
      await fetch(`${url}/api/v1/asks/${id}/answer`, { method: "POST", headers, body: JSON.stringify({ answers }) });
    }
  };
  let isOver = false;
  const answering = (async () => {
    while (!isOver) {
      await answerAll();
      await pause();
    }
  })();
  context.after(async () => {
    isOver = true;
    await answering;
  });
  return { folder };
}

/** What a command of the binary prints. */
async function printed(env, args) {
  const process = spawn(HANDRAISE_BIN, args, { env, stdio: ["ignore", "pipe", "ignore"] });
  let out = "";
  for await (const chunk of process.stdout.setEncoding("utf8")) out += chunk;
  return out.trim();
}

async function until(look) {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    try {
      return look();
    } catch {
      await pause();
    }
  }
  throw new Error("the inbox did not start");
}

function pause() {
  return new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
}
