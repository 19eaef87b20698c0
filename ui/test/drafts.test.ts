// Drafts in the browser's storage.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hasDraft, loadDraft, removeDraft, saveDraft, sweepDrafts } from "../src/model/drafts.ts";
import { ask, choice, Memory, question } from "./made.ts";

const form = ask({ questions: [question("note"), question("key", { secret: true }), question("pick", { kind: "single", choices: [choice("a"), choice("b")] })] });

test("a draft comes back as it was", () => {
  const shelf = new Memory();
  const entries = { note: { selected: [], text: "half a thou" }, pick: { selected: ["b"], text: "" } };
  assert.equal(saveDraft(shelf, form, entries, 5_000), 5_000);
  assert.deepEqual(loadDraft(shelf, form), { entries, savedAt: 5_000 });
  removeDraft(shelf, form.id);
  assert.deepEqual(loadDraft(shelf, form), { entries: {}, savedAt: null });
});

test("s33 a secret never reaches the storage", () => {
  const shelf = new Memory();
  saveDraft(shelf, form, { note: { selected: [], text: "x" }, key: { selected: [], text: "hunter2" } }, 1);
  for (let index = 0; index < shelf.length; index += 1) assert.ok(!(shelf.getItem(shelf.key(index) ?? "") ?? "").includes("hunter2"));
  const alone = new Memory();
  assert.equal(saveDraft(alone, form, { key: { selected: [], text: "hunter2" } }, 1), null);
  assert.equal(alone.length, 0);
});

test("s40 nothing is remembered for a permission or a confirm", () => {
  const shelf = new Memory();
  for (const source of ["permission", "confirm"] as const) {
    assert.equal(saveDraft(shelf, { ...form, source }, { note: { selected: [], text: "x" } }, 1), null);
  }
  assert.equal(hasDraft(shelf, form.id), false);
});

test("a draft of other content, of unknown choices or of nonsense is not used", () => {
  const shelf = new Memory();
  saveDraft(shelf, form, { pick: { selected: ["b"], text: "" } }, 1);
  assert.deepEqual(loadDraft(shelf, { ...form, digest: "d2" }).entries, {});
  const fewer = { ...form, questions: [question("pick", { kind: "single" as const, choices: [choice("a")] })] };
  assert.deepEqual(loadDraft(shelf, fewer).entries, { pick: { selected: [], text: "" } });
  for (const bad of ["", "null", "{", "[]", '{"digest":"d1","at":1,"entries":{"pick":{"selected":"b","text":1}}}']) {
    shelf.setItem("handraise.draft.a1", bad);
    assert.deepEqual(loadDraft(shelf, form).entries, {});
  }
});

test("drafts older than any ask are swept, other keys are left alone", () => {
  const shelf = new Memory();
  saveDraft(shelf, form, { note: { selected: [], text: "old" } }, 0);
  saveDraft(shelf, { ...form, id: "a2" }, { note: { selected: [], text: "new" } }, 80_000_000);
  shelf.setItem("handraise.draft.a3", "garbage");
  shelf.setItem("other", "garbage");
  sweepDrafts(shelf, 86_400_001);
  assert.equal(hasDraft(shelf, "a1"), false);
  assert.equal(hasDraft(shelf, "a2"), true);
  assert.equal(hasDraft(shelf, "a3"), false);
  assert.equal(shelf.getItem("other"), "garbage");
});

test("a full or refused storage loses the draft, not the page", () => {
  const shelf = new Memory();
  shelf.setItem = () => {
    throw new Error("QuotaExceededError");
  };
  assert.equal(saveDraft(shelf, form, { note: { selected: [], text: "x" } }, 1), null);
  assert.equal(saveDraft(new Memory(), form, { note: { selected: [], text: "x".repeat(1_000_001) } }, 1), null);
});
