// Every SDK client in front of every SDK server, with the gateway in between and without: what is not a question is the
// same, and what is one ends as the scenario says. Some of the servers also stand behind a gateway that listens: what a
// client sees of them over HTTP is compared with what it sees over stdio without the gateway. The servers' witnesses are the judges of what ran.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { behindGateway, carryOut, CLIENTS, linesOf, listening, pushes, scratch, SERVERS } from "./peers.mjs";
import { AGAIN, inEra, QUESTIONS, TOGETHER, TOO_FAST, TRANSPARENT, UNANSWERED } from "./scenarios.mjs";

const PATIENCE_MS = 240_000;
/** A fast answer is a person's, so that what depends on it does not depend on this machine. */
const A_PERSON = { HANDRAISE_ASK_MIN_HUMAN_MS: "0" };
/** No answer is a person's. */
const NO_PERSON = { HANDRAISE_ASK_MIN_HUMAN_MS: "60000" };
const OFF = { HANDRAISE_ELICITATION: "off" };
const IMPATIENT = { ...A_PERSON, HANDRAISE_ASK_TIMEOUT_MS: "300" };

for (const client of CLIENTS) {
  test(client.name, async (context) => {
    const folder = scratch(context);
    const plans = client.eras.flatMap((era) => SERVERS.flatMap((server) => connections(folder, client, era, server)));
    const behindHttp = plans.filter((plan) => plan.isOverHttp);
    await Promise.all(behindHttp.map(async (plan) => (plan.url = await listening(context, plan))));
    const reports = await carryOut(client, plans, PATIENCE_MS);
    for (const plan of plans.filter((plan) => plan.direct)) {
      const direct = reports.get(plan.direct);
      await context.test(plan.name, () => plan.judge(reports.get(plan.name), direct, plan));
    }
  });
}

/** The connections of one client in one era to one server: each through the gateway, next to one without it. */
function connections(folder, client, era, server) {
  const isPush = pushes(era, server);
  const plans = [];
  const add = (what, env, elicitation, calls, judge, { together = false, overHttp = true } = {}) => {
    const name = `${era}, ${server.name}: ${what}`;
    const file = (way) => join(folder, `${name} ${way}`.replaceAll(/[^\w]+/g, "-"));
    const reached = (way) => ({ witness: file(way), server: [...server.command, file(way)] });
    const common = { era, elicitation, client, isPush, together };
    const without = { ...common, name: `${name}, direct`, env: {}, calls: calls.flatMap(withNamed), ...reached("direct") };
    const through = { ...common, direct: without.name, directWitness: without.witness, env, calls, judge };
    const stdio = { ...through, name, log: file("log"), ...reached("gateway") };
    plans.push(without, { ...stdio, server: behindGateway(stdio.server, stdio.log) });
    if (overHttp && server.overHttp) {
      plans.push({ ...through, name: `${name}, over HTTP`, isOverHttp: true, log: file("log of HTTP"), ...reached("HTTP") });
    }
  };
  const all = [...TRANSPARENT, ...AGAIN, ...QUESTIONS];
  add("asks", A_PERSON, true, all, judgeQuestions);
  if (server.name === "typescript-v2") {
    add("asks at the same time", A_PERSON, true, TOGETHER, judgeQuestions, { together: true });
    add("declares no elicitation", A_PERSON, false, all, judgeSame("not_offered"));
    add("switched off", OFF, true, all, judgeSame("disabled"), { overHttp: false });
    add("answers faster than a person", NO_PERSON, true, TOO_FAST, judgeQuestions, { overHttp: false });
    if (isPush) add("nobody answers", IMPATIENT, true, UNANSWERED, judgeQuestions);
  }
  return plans;
}

/** The call, and for one that ends in a choice the same call with the choice in its arguments. */
function withNamed(call) {
  if (call.ends !== "chosen") return [call];
  const named = { ...call, name: `${call.name}, named`, arguments: { ...call.arguments, ...call.answer.content } };
  return [call, named];
}

/** Nothing is asked, and nothing is different. */
function judgeSame(outcome) {
  return (report, direct, plan) => {
    judgeConnection(report, direct);
    if (report.refused) return;
    for (const line of report.calls) sameLine(line, lineOf(direct, line.name));
    // Sorted, because a call that is given up ends while others run.
    assert.deepEqual(linesOf(plan.witness).sort(), linesOf(plan.directWitness).filter(isAsked(plan)).sort());
    const refused = plan.calls.filter((call) => call.ends);
    const records = recordsOf(plan);
    assert.deepEqual(records.map((record) => record.outcome), refused.map(() => outcome));
  };
}

/** What is no question is not different; every question ends as its scenario says. */
function judgeQuestions(report, direct, plan) {
  judgeConnection(report, direct);
  if (report.refused) return;
  const outcomes = [];
  for (const call of plan.calls) {
    const line = lineOf(report, call.name);
    const calls = callsIn(plan.witness, call);
    if (!call.ends) {
      sameLine(line, lineOf(direct, call.name));
      assert.deepEqual(calls, callsIn(plan.directWitness, call), `${call.name}: what ran`);
      continue;
    }
    judgeQuestion(call, line, direct, plan);
    const isChosen = call.ends === "chosen";
    const ran = [call.arguments, ...(isChosen ? [{ ...call.arguments, ...call.answer.content }] : [])];
    assert.deepEqual(calls.map((ran) => ran.arguments), ran, `${call.name}: what ran`);
    outcomes.push(...outcomesOf(call, plan));
  }
  const records = recordsOf(plan);
  const recorded = records.map((record) => record.outcome);
  // How the record of a call ends that its own client gave up, comes last and is not compared.
  if (!plan.together) assert.deepEqual(recorded.slice(0, outcomes.length), outcomes);
  else for (const outcome of new Set(outcomes)) assert.equal(countOf(recorded, outcome), countOf(outcomes, outcome), outcome);
  for (const record of records) {
    assert.equal(record.era, plan.isPush ? "push" : "mrtr");
    assert.equal(record.rail, record.outcome === "remembered" ? "refuse" : "form");
    assert.equal(record.tool, "tap");
    assert.equal(record.refusal, "ambiguous_device_target");
    assert.ok(["bare", "form", "both"].includes(record.declared), record.declared);
    assert.doesNotMatch(JSON.stringify(record), / [12]\b|another device|again [12]/, "a record holds no answer");
  }
}

function judgeQuestion(call, line, direct, plan) {
  const isUnsent = call.wrong && plan.client.checks;
  const asked = inEra(call.asked, plan.isPush) ?? 1;
  assert.equal(line.asked.length, asked, `${call.name}: asked`);
  for (const params of line.asked) {
    assert.equal(params.message, "Which device should tap use?");
    assert.deepEqual(choicesOf(params), call.arguments.offer.map((id) => ({ id, title: `${id} (android)` })));
  }
  const ends = isUnsent && !plan.isPush ? "gone" : inEra(call.ends, plan.isPush);
  if (ends === "gone") {
    assert.ok(line.error && !line.result, `${call.name}: an error of the client's own`);
  } else {
    const expected = lineOf(direct, ends === "chosen" ? `${call.name}, named` : call.name);
    assert.deepEqual(line.result, expected.result, `${call.name}: the result`);
    assert.equal(line.error, undefined);
  }
  if (plan.isPush && (call.answer?.aborts || call.answer?.never)) {
    assert.ok(line.withdrawn, `${call.name}: the question is withdrawn`);
  }
}

/** The outcomes in the records of one refusal, in their order. */
function outcomesOf(call, plan) {
  const isUnsent = call.wrong && plan.client.checks;
  const outcome = isUnsent ? { push: "error" }[plan.isPush ? "push" : "mrtr"] : inEra(call.outcome, plan.isPush);
  return [...(plan.isPush ? [] : ["asked"]), ...(outcome ? [outcome] : [])];
}

/** Both connections came about in the same way, or neither did. */
function judgeConnection(report, direct) {
  assert.deepEqual(report.refused, direct.refused);
  assert.equal(report.protocolVersion, direct.protocolVersion);
  assert.deepEqual(report.tools, direct.tools);
}

function sameLine(line, direct) {
  const { progress, ...rest } = line;
  const { progress: directProgress, ...directRest } = direct;
  assert.deepEqual(rest, directRest);
  // SDKs drop progress that they read together with the result, so that it can be compared in one direction only. That
  // it arrives is seen in the call that is given up at its first progress.
  assert.ok(progress === 0 || directProgress > 0, `${line.name}: progress`);
}

function countOf(outcomes, outcome) {
  return outcomes.filter((other) => other === outcome).length;
}

function lineOf(report, name) {
  return report.calls.find((line) => line.name === name);
}

/** What the witness says of one call. */
function callsIn(path, { arguments: { note } }) {
  return linesOf(path).map((line) => JSON.parse(line)).filter((ran) => ran.arguments?.note === note);
}

/** Drops the calls that only the direct connection made, for comparison. */
function isAsked(plan) {
  const names = new Set(plan.calls.map((call) => call.name));
  return (line) => {
    const { note, deviceId } = JSON.parse(line).arguments ?? {};
    return names.has(note) && !(deviceId && QUESTIONS.some((call) => call.name === note));
  };
}

function recordsOf(plan) {
  const MARK = "[elicitation] ";
  return linesOf(plan.log)
    .filter((line) => line.includes(MARK))
    .map((line) => JSON.parse(line.slice(line.indexOf(MARK) + MARK.length)));
}

/** The choices of the one question, in either way of giving titles. */
function choicesOf({ requestedSchema }) {
  const { oneOf, enum: ids, enumNames } = requestedSchema.properties.deviceId;
  if (oneOf) return oneOf.map((choice) => ({ id: choice.const, title: choice.title }));
  return ids.map((id, index) => ({ id, title: enumNames[index] }));
}
