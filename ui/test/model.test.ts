// Groups, phases, times, addresses, hostile text, markdown, windows, events.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader } from "../src/api/sse.ts";
import { backoff } from "../src/api/stream.ts";
import { group, matches, whenOf, type Item } from "../src/model/groups.ts";
import { destination, fromPunycode } from "../src/model/host.ts";
import { Inbox } from "../src/model/inbox.ts";
import { blocks, inlines } from "../src/model/markdown.ts";
import { endOf, isTheirs, phase } from "../src/model/phase.ts";
import { format, parse, secretOf } from "../src/model/route.ts";
import { sessionGroups, signOf } from "../src/model/sessions.ts";
import { clock, coarse, fine, fromLocalInput, toLocalInput } from "../src/model/time.ts";
import { addMessages, turns } from "../src/model/transcript.ts";
import { count, cut, pieces, plain } from "../src/model/visible.ts";
import { visibleSpan } from "../src/model/window.ts";
import type { Ask, Message, Session } from "../src/api/types.ts";
import { ask, settlement } from "./made.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const due = (id: string, minutes: number | null, more: Partial<Ask> = {}): Ask =>
  ask({ id, deadline: minutes === null ? null : new Date(NOW + minutes * 60_000).toISOString(), ...more });
const names = (items: readonly Item[]): string[] => items.map((item) => ("ask" in item ? item.ask.id : `+${item.more}`));
const around = { me: "Desk one", mayAnswer: true, online: true };

test("asks stand in time groups, nearest deadline first", () => {
  const groups = group([due("never", null), due("c", 90), due("b", 30), due("a", 4), due("past", -1)], NOW, new Set());
  assert.deepEqual(
    groups.map(({ when, items }) => [when, ...names(items)]),
    [
      ["soon", "past", "a"],
      ["hour", "b"],
      ["later", "c"],
      ["never", "never"],
    ],
  );
  assert.equal(whenOf(due("edge", 5), NOW), "soon");
});

test("one holder that floods leaves the others on the first screen", () => {
  const flood = Array.from({ length: 1_000 }, (_, index) => due(`f${String(index).padStart(4, "0")}`, 2, { origin: { holder: "agent", holder_token: "flood", client: null, server: null } }));
  const other = due("other", 4, { origin: { holder: "agent", holder_token: "calm", client: null, server: null } });
  const [soon] = group([...flood, other], NOW, new Set());
  assert.deepEqual(names(soon?.items ?? []), ["f0000", "f0001", "f0002", "f0003", "f0004", "+995", "other"]);
  assert.equal(group([...flood, other], NOW, new Set(["flood"]))[0]?.items.length, 1_001);
  // Alone, it buries nobody.
  assert.equal(group(flood, NOW, new Set())[0]?.items.length, 1_000);
});

test("search looks at all that a row stands for, every word", () => {
  const one = ask({ message: "Run Terraform", origin: { holder: "agent", holder_token: "laptop", client: { name: "codex-acp", version: null }, server: null } });
  assert.ok(matches(one, "infra", "terraform INFRA codex"));
  assert.ok(!matches(one, "infra", "terraform moon"));
});

test("every phase of a card", () => {
  assert.deepEqual(phase(ask(), undefined, around), { is: "open", notice: null });
  assert.deepEqual(phase(ask({ state: "sent" }), undefined, around), { is: "sent" });
  assert.deepEqual(phase(ask(), { is: "posting", rejected: false }, around), { is: "sent" });
  assert.deepEqual(phase(ask(), { is: "undelivered" }, around), { is: "open", notice: "undelivered" });
  assert.deepEqual(phase(ask({ holder_connected: false }), undefined, around), { is: "open", notice: "disconnected" });
  assert.deepEqual(phase(ask(), { is: "invalid", details: [] }, around), { is: "open", notice: "invalid" });
  assert.deepEqual(phase(ask(), undefined, { ...around, online: false }), { is: "open", notice: "offline" });
  assert.deepEqual(phase(ask(), undefined, { ...around, mayAnswer: false }), { is: "open", notice: "readonly" });
  assert.equal(phase(ask({ state: "settled", settlement: settlement() }), { is: "posting", rejected: false }, around).is, "settled");
});

test("s16 whose answer may count: an operator who is unknown is nobody", () => {
  const of = (who: Ask["who"], whose?: string): Ask => {
    const { origin } = ask();
    return ask({ ...(who === undefined ? {} : { who }), origin: whose === undefined ? origin : { ...origin, owner: whose } });
  };
  const allowed = (one: Ask): boolean[] => ["ada", "bob", undefined].map((owner) => isTheirs(one, owner));
  assert.deepEqual(allowed(of(undefined, "ada")), [true, true, true]);
  assert.deepEqual(allowed(of("operator", "ada")), [true, true, true]);
  assert.deepEqual(allowed(of("caller", "ada")), [true, false, false]);
  assert.deepEqual(allowed(of("not-the-caller", "ada")), [false, true, false]);
  assert.deepEqual(allowed(of("caller")), [false, false, false]);
});

test("who answered: nothing is called mine that somebody else did", () => {
  assert.equal(endOf(settlement(), undefined, "Desk one"), "mine");
  assert.equal(endOf(settlement({ by: "Desk two" }), undefined, "Desk one"), "other");
  assert.equal(endOf(settlement(), { is: "lost", recorded: false, chose: "" }, "Desk one"), "other");
  assert.equal(endOf(settlement({ submission_id: "s2" }), { is: "won", submission: "s1" }, "Desk one"), "other");
  assert.equal(endOf(settlement({ by: "ci", provenance: "client" }), { is: "won", submission: "s1" }, "Desk one"), "mine");
  assert.equal(endOf(settlement({ outcome: "decline" }), undefined, "Desk one"), "mine-skipped");
  assert.equal(endOf(settlement({ outcome: "timeout", provenance: "system" }), undefined, "Desk one"), "expired");
  assert.equal(endOf(settlement({ outcome: "cancel", provenance: "system" }), undefined, "Desk one"), "withdrawn");
  assert.equal(endOf(settlement({ outcome: "withdrawn", reason: "agent_disconnected", provenance: "system" }), undefined, "Desk one"), "gone");
  assert.equal(endOf(settlement({ outcome: "withdrawn" }), { is: "lost", recorded: true, chose: "" }, "Desk one"), "recorded");
  assert.equal(endOf(settlement({ provenance: "client", rail: "form", by: null }), undefined, "Desk one"), "reported");
  assert.equal(endOf(settlement({ outcome: "decline", provenance: "system", by: null }), undefined, "Desk one"), "system");
});

test("spans and clocks in words", () => {
  assert.deepEqual([48_900, 252_000, 3_900_000, 200_000_000, -5].map(coarse), ["48 s", "4 min", "1 h", "2 d", "0 s"]);
  assert.deepEqual([48_900, 252_000, 240_000, 3_900_000, 200_000_000].map(fine), ["48 s", "4 min 12 s", "4 min", "1 h 5 min", "2 d 7 h"]);
  assert.match(clock(NOW, NOW, true), /^\d\d:\d\d:\d\d$/);
  assert.match(clock(NOW - 5 * 86_400_000, NOW, false), /^2025-12-27 \d\d:\d\d$/);
});

test("a date and time goes through its control unharmed", () => {
  const sent = fromLocalInput("2026-07-01T14:30");
  assert.match(sent, /^2026-07-01T14:30:00[+-]\d\d:\d\d$/);
  assert.equal(toLocalInput(sent), "2026-07-01T14:30");
  assert.equal(toLocalInput("tomorrow"), null);
  assert.equal(fromLocalInput(""), "");
});

test("s26 what cannot be seen is shown, what is cut is counted", () => {
  assert.deepEqual(pieces("a\u202eb"), [
    { text: "a", mark: false },
    { text: "U+202E", mark: true },
    { text: "b", mark: false },
  ]);
  for (const character of ["\u0000", "\u001b", "\u007f", "\u0085", "\u200b", "\u2066", "\ufeff", "\u{e0041}", "\u2028", "\r"]) {
    assert.equal(pieces(character)[0]?.mark, true, `U+${character.codePointAt(0)?.toString(16)}`);
  }
  assert.deepEqual(pieces("👩‍🚀 ok\n\tfine"), [{ text: "👩‍🚀 ok\n\tfine", mark: false }]);
  assert.deepEqual(cut("a😀b", 2), { head: "a", hidden: 3 });
  assert.equal(count(1_234_567), "1,234,567");
  assert.equal(plain("x\u202e\n y".repeat(100), 6), "x[U+202E] yx… (494 more characters)");
  const start = performance.now();
  pieces("\u202ea".repeat(500_000));
  assert.ok(performance.now() - start < 3_000);
});

test("links show their host, look-alikes are named, other schemes are never opened", () => {
  assert.equal(destination("https://linear.app/x?y=1")?.host, "linear.app");
  const alike = destination("https://lіnear.app/oauth");
  assert.equal(alike?.host, "xn--lnear-n2e.app");
  assert.equal(alike?.shown, "lіnear.app");
  assert.equal(destination("https://linear.app@evil.example/")?.disguise, "linear.app");
  assert.equal(destination("https://linear.app@evil.example/")?.host, "evil.example");
  assert.equal(destination("http://a.example/")?.unencrypted, true);
  for (const bad of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "not a url", ""]) assert.equal(destination(bad), null);
  assert.equal(fromPunycode("xn--mnchen-3ya"), "münchen");
  assert.equal(fromPunycode("xn--80ak6aa92e"), "аррӏе");
  assert.equal(fromPunycode("xn--!!!"), "xn--!!!");
});

test("s41 markdown has no html, no images and no live links", () => {
  assert.deepEqual(inlines("<img src=x> **b** `c`"), [
    { is: "text", text: "<img src=x> " },
    { is: "strong", text: "b" },
    { is: "text", text: " " },
    { is: "code", text: "c" },
  ]);
  assert.deepEqual(inlines("![t](https://evil.example/p.png)"), [{ is: "link", text: "t", href: "https://evil.example/p.png", image: true }]);
  assert.deepEqual(inlines("snake_case_name 2*3*4"), [{ is: "text", text: "snake_case_name 2*3*4" }]);
  assert.deepEqual(
    blocks("# H\n\np1\np1\n\n- a\n- b\n1. c\n```rs\ncode\n```\n```\nopen").map((block) => block.is),
    ["h", "p", "ul", "ol", "code", "code"],
  );
  const start = performance.now();
  for (const evil of ["[".repeat(50_000), "*".repeat(50_000), "`a".repeat(50_000), "![](".repeat(20_000), "_a".repeat(50_000)]) blocks(evil);
  assert.ok(performance.now() - start < 3_000, `took ${performance.now() - start} ms`);
});

test("addresses read back as they are written", () => {
  for (const path of ["/", "/asks/0192%2Fx", "/sessions", "/sessions/s-1", "/settings", "/settings/access"]) assert.equal(format(parse(path)), path);
  assert.deepEqual(parse("/asks/%E0%A4%A"), { page: "inbox", ask: null });
});

test("s11 the secret is read from the fragment, with or without a name", () => {
  assert.equal(secretOf("#sign-in=abcdefghijklmnop"), "abcdefghijklmnop");
  assert.equal(secretOf("#abcdefghijklmnop-_"), "abcdefghijklmnop-_");
  assert.equal(secretOf(""), null);
  assert.equal(secretOf("#main"), null);
});

test("a window over ten thousand rows draws a few dozen, and the rest is height", () => {
  const heights = Array.from({ length: 10_000 }, () => 70);
  const span = visibleSpan(heights, 350_000, 350_800, 800);
  assert.ok(span.to - span.from < 60);
  assert.equal(span.above + span.below + (span.to - span.from) * 70, 700_000);
  assert.ok(span.above <= 350_000 - 700);
  assert.deepEqual(visibleSpan([], 0, 800, 800), { from: 0, to: 0, above: 0, below: 0 });
});

test("events are read whole, however the bytes are cut", () => {
  const text = ': hello\r\nid: 7\nevent: ask.opened\ndata: {"a":\ndata: 1}\n\nid: 8\ndata:x\n\n';
  for (let size = 1; size < 9; size += 1) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.push(text.slice(at, at + size)));
    assert.deepEqual(events, [
      { id: "7", event: "ask.opened", data: '{"a":\n1}' },
      { id: "8", event: "message", data: "x" },
    ]);
  }
});

test("retries wait longer each time, with jitter, and never more than ten seconds", () => {
  assert.ok(backoff(0, 0) >= 200 && backoff(0, 1) <= 400);
  assert.equal(backoff(50, 1), 10_000);
  assert.equal(backoff(50, 0), 5_000);
});

test("a snapshot replaces, events win over list pages, what has settled stays settled", () => {
  const inbox = new Inbox();
  inbox.snapshot({ asks: [due("a", 1), due("b", 2)], open: 4, next_cursor: "x", sessions: [] });
  assert.equal(inbox.openCount, 4);
  inbox.opened(due("new", 3), NOW);
  assert.equal(inbox.openCount, 5);
  inbox.updated({ ...due("c", 3), state: "settled", settlement: settlement() });
  assert.equal(inbox.openCount, 4);
  inbox.page([due("c", 3), due("d", 4)], false);
  assert.equal(inbox.asks.get("c")?.state, "settled");
  assert.equal(inbox.openCount, 4);
  inbox.updated(due("c", 3));
  assert.equal(inbox.asks.get("c")?.state, "settled");
  inbox.snapshot({ asks: [due("b", 2)], open: 1, next_cursor: null, sessions: [] });
  assert.deepEqual([...inbox.asks.values()].filter((one) => one.state !== "settled").map((one) => one.id), ["b"]);
  assert.equal(inbox.arrived, null, "a snapshot announces nothing");
});

const session = (more: Partial<Session>): Session => ({
  id: "s",
  agent: "a",
  title: null,
  cwd: null,
  state: "idle",
  stop_reason: null,
  background: false,
  pending_action: null,
  waiting: 0,
  holder_connected: true,
  holder_token: "local",
  started_at: "2026-01-01T12:00:00Z",
  updated_at: "2026-01-01T12:00:00Z",
  ...more,
});

test("ac09 a running session with an open ask is waiting, and nothing else", () => {
  assert.equal(signOf(session({ state: "running", pending_action: "clarification" })), "waiting");
  assert.equal(signOf(session({ state: "running" })), "running");
  assert.equal(signOf(session({ state: "idle", stop_reason: "end_turn" })), "finished");
  assert.equal(signOf(session({ state: "ended", stop_reason: "cancelled", pending_action: "clarification" })), "cancelled");
  assert.equal(signOf(session({ state: "ended", stop_reason: "refusal" })), "failed");
  assert.deepEqual(sessionGroups([session({ id: "1", state: "ended" }), session({ id: "2", state: "running" })]).map((one) => one.group), ["working", "ended"]);
});

const message = (seq: number, type: Message["type"], text: string, metadata = {}, more: Partial<Message> = {}): Message => ({
  seq,
  session_id: "s",
  at: "2026-01-01T12:00:00Z",
  type,
  author: "agent",
  text,
  requests_input: false,
  metadata,
  ...more,
});

test("a transcript joins text, keeps one line a tool call, and shows each ask once", () => {
  const all = [
    message(1, "agent_text", "Hel"),
    message(2, "agent_text", "lo", {}, { continues: true }),
    message(3, "tool_call", "Read", { tool_call_id: "t", status: "pending" }),
    message(4, "tool_call", "Ask", { tool_call_id: "u", status: "pending" }),
    message(5, "tool_call", "", { tool_call_id: "t", status: "completed" }),
    message(6, "clarification_request", "?", { pending_id: "a1" }),
    message(7, "clarification_request", "?", { pending_id: "a1" }),
    message(8, "turn_ended", "", { stop_reason: "end_turn" }),
  ];
  const shown = turns(all, new Set(["u"]));
  assert.deepEqual(shown.map((turn) => turn.is), ["said", "tools", "ask", "ended"]);
  const [said, tools] = shown;
  assert.equal(said?.is === "said" && said.text, "Hello");
  assert.deepEqual(tools?.is === "tools" && tools.tools.map((tool) => [tool.text, tool.status]), [
    ["Read", "done"],
    ["Ask", "waiting"],
  ]);
});

test("messages are kept once and in order, whichever way they came", () => {
  const [one, two, three] = [1, 2, 3].map((seq) => message(seq, "notice", String(seq)));
  assert.ok(one !== undefined && two !== undefined && three !== undefined);
  assert.deepEqual(addMessages([one, three], [two, three]).map((each) => each.seq), [1, 2, 3]);
  assert.deepEqual(addMessages([one], [two, three]).map((each) => each.seq), [1, 2, 3]);
});
