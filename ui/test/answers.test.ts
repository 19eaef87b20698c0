// What is put into a card, and what is sent for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, defaultEntry, EMPTY, lacking, takesSelection, takesText, toAnswers, write } from "../src/model/answers.ts";
import { ask, choice, question } from "./made.ts";

const environments = question("env", { kind: "multi", choices: [choice("dev"), choice("staging"), choice("prod")] });
const database = question("db", { kind: "single", allows_text: true, companion: "replaces", choices: [choice("Postgres"), choice("SQLite")] });
const everything = new Set(["env", "db", "q"]);

test("ac55 picking prod and then dev holds both, in declaration order", () => {
  const form = ask({ questions: [environments] });
  const first = choose(form, environments, EMPTY, "prod", true);
  const both = choose(form, environments, first, "dev", true);
  assert.deepEqual(both.selected, ["dev", "prod"]);
  assert.deepEqual(choose(form, environments, both, "prod", false).selected, ["dev"]);
});

test("ac56 a question without choices is a text box alone", () => {
  for (const kind of ["text", "single", "multi"] as const) {
    const bare = question("apiKey", { kind });
    assert.equal(takesSelection(bare), false);
    assert.equal(takesText(bare), true);
  }
  const form = ask({ questions: [question("apiKey")] });
  assert.deepEqual(toAnswers(form, { apiKey: { selected: [], text: "T" } }, new Set()), [{ question_id: "apiKey", selected_options: [], custom_text: "T" }]);
});

test("ac57 for a tool's ask, words clear the pick and a pick clears the words", () => {
  const form = ask({ source: "tool", allows_text_with_selection: false, allows_partial: false, questions: [database] });
  const picked = choose(form, database, EMPTY, "Postgres", true);
  const written = write(form, picked, "CockroachDB");
  assert.deepEqual(written, { selected: [], text: "CockroachDB" });
  assert.deepEqual(choose(form, database, written, "SQLite", true), { selected: ["SQLite"], text: "" });
  // Nothing but spaces says nothing, so it clears nothing.
  assert.deepEqual(write(form, picked, "  "), { selected: ["Postgres"], text: "  " });
});

test("ac12i for an elicitation, words stand beside the pick", () => {
  const form = ask({ questions: [database] });
  const both = write(form, choose(form, database, EMPTY, "Postgres", true), "17");
  assert.deepEqual(toAnswers(form, { db: both }, everything), [{ question_id: "db", selected_options: ["Postgres"], custom_text: "17" }]);
});

test("ac12b ac12h ac12j what was not answered contributes nothing", () => {
  const form = ask({ questions: [database, environments, question("q")] });
  assert.deepEqual(toAnswers(form, {}, everything), []);
  const entries = { db: { selected: [], text: " \n" }, q: { selected: [], text: "only this" } };
  assert.deepEqual(
    toAnswers(form, entries, everything).map((answer) => answer.question_id),
    ["q"],
  );
  assert.deepEqual(lacking(form, {}, everything), []);
});

test("a default is sent only when it was on the screen, and not once it is cleared", () => {
  const pool = question("q", { kind: "integer", default: 16 });
  const form = ask({ questions: [pool] });
  assert.deepEqual(toAnswers(form, {}, new Set()), []);
  assert.deepEqual(toAnswers(form, {}, everything), [{ question_id: "q", selected_options: [], custom_text: "16" }]);
  assert.deepEqual(toAnswers(form, { q: EMPTY }, everything), []);
});

test("defaults fill the control that suits them, and nothing where they fit none", () => {
  assert.deepEqual(defaultEntry(question("q", { kind: "boolean", default: false })), { selected: ["false"], text: "" });
  assert.deepEqual(defaultEntry({ ...environments, default: ["prod", "dev", "moon"] }), { selected: ["dev", "prod"], text: "" });
  assert.deepEqual(defaultEntry({ ...database, default: "Oracle" }), EMPTY);
  assert.deepEqual(defaultEntry(question("q", { default: { odd: true } })), EMPTY);
  assert.deepEqual(defaultEntry(question("q", { kind: "boolean", default: "true" })), EMPTY);
});

test("f3 an ask that takes no partial answer is complete only with all of them", () => {
  const form = ask({ allows_partial: false, questions: [database, environments] });
  assert.deepEqual(lacking(form, { db: { selected: ["SQLite"], text: "" } }, everything), [environments]);
  assert.deepEqual(lacking(form, { db: { selected: ["SQLite"], text: "" }, env: { selected: ["dev"], text: "" } }, everything), []);
});

test("f10 an ask that takes partial answers lacks what is required, and nothing else", () => {
  const [needed, filled] = [question("n", { required: true }), question("q", { required: true, default: "16" })];
  const form = ask({ questions: [environments, needed, filled] });
  assert.deepEqual(lacking(form, {}, everything), [needed]);
  assert.deepEqual(lacking(form, {}, new Set()), [needed, filled], "a default that nobody saw is not sent");
  assert.deepEqual(lacking(form, { n: { selected: [], text: " " }, q: EMPTY }, everything), [needed, filled]);
  assert.deepEqual(lacking(form, { n: { selected: [], text: "x" } }, everything), []);
});
