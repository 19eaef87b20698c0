// S40: the guard against answers that nobody meant.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Guard, STILL } from "../src/model/guard.ts";

test("s40 nothing answers in the first 350 ms after the card appeared", () => {
  const guard = new Guard(1_000);
  guard.pointer(1_349);
  assert.equal(guard.click(1_349, "pointer"), false);
  assert.equal(guard.key(1_349, false), false);
  assert.equal(guard.click(1_349, "other"), false);
});

test("s40 a press and a key after it answer", () => {
  const guard = new Guard(1_000);
  guard.pointer(1_350);
  assert.equal(guard.click(1_360, "pointer"), true);
  assert.equal(guard.key(1_400, false), true);
  assert.equal(guard.click(1_400, "key"), true);
});

test("s40 a press that began too early does not answer when it is let go late", () => {
  const guard = new Guard(0);
  guard.pointer(200);
  assert.equal(guard.click(900, "pointer"), false);
});

test("s40 a run of keys begun too early never answers, however long it goes on", () => {
  const guard = new Guard(0);
  for (let now = 100; now < 5_000; now += STILL - 1) assert.equal(guard.key(now, false), false, `at ${now}`);
});

test("s40 after a pause of 350 ms a new run of keys answers", () => {
  const guard = new Guard(0);
  assert.equal(guard.key(100, false), false);
  assert.equal(guard.key(100 + STILL, false), true);
  assert.equal(guard.key(100 + STILL + 10, false), true);
});

test("s40 a repeated key never counts", () => {
  const guard = new Guard(0);
  assert.equal(guard.key(1_000, true), false);
  assert.equal(guard.click(1_000, "key"), false);
});

test("s40 a change or a move starts the wait again", () => {
  const guard = new Guard(0);
  guard.changed(2_000);
  assert.equal(guard.key(2_100, false), false);
  guard.moved(4_000);
  guard.pointer(4_200);
  assert.equal(guard.click(4_400, "pointer"), false);
  guard.pointer(4_500);
  assert.equal(guard.click(4_500, "pointer"), true);
});

test("s40 what the person moved by their own act does not count as a move", () => {
  const guard = new Guard(0);
  guard.acted(1_000);
  guard.moved(1_020);
  guard.pointer(1_100);
  assert.equal(guard.click(1_100, "pointer"), true);
  guard.moved(1_400);
  assert.equal(guard.click(1_500, "other"), false);
});
