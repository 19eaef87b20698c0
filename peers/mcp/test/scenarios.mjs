// The calls that every client makes of every server, and what the gateway makes of them.
//
// Every call carries a note, by which the witness tells the calls apart, and every tap an offer of its own, so that the
// memory of declined offers does not reach from one scenario into the next.

const tap = (name, more) => ({ name, tool: "tap", arguments: { note: name, offer: [`${name} 1`, `${name} 2`] }, ...more });
const accept = (deviceId) => ({ action: "accept", content: { deviceId } });

/** Calls that the gateway does not notice: what comes of them is the same with and without it. */
export const TRANSPARENT = [
  { name: "echo", tool: "echo", arguments: { note: "echo", text: "hé\u{1F64B}\u0000\u2028", deep: [[{ "": null }]], n: 1e-7 } },
  { name: "fail", tool: "fail", arguments: { note: "fail" } },
  { name: "count", tool: "count", arguments: { note: "count", steps: 3 } },
  { name: "given up while it runs", tool: "wait", arguments: { note: "given up while it runs" }, givesUp: true },
  { name: "unknown tool", tool: "none", arguments: { note: "unknown tool" } },
  {
    name: "the server's own question",
    tool: "ask",
    arguments: { note: "the server's own question" },
    answer: { action: "accept", content: { goOn: true } },
  },
  {
    name: "the server's own question, declined",
    tool: "ask",
    arguments: { note: "the server's own question, declined" },
    answer: { action: "decline" },
  },
  tap("named", { arguments: { note: "named", offer: ["a", "b"], deviceId: "b" } }),
  tap("named null", { arguments: { note: "named null", offer: ["a", "b"], deviceId: null } }),
  tap("one candidate", { arguments: { note: "one candidate", offer: ["a"] } }),
  tap("twice the same", { arguments: { note: "twice the same", offer: ["a", "a"] } }),
];

/**
 * Calls that are refused with candidates. `ends` is what the client gets: `chosen`, the result of the re-run; `refused`,
 * the original refusal; `gone`, nothing, because the client gave up its own call. `outcome` is how the record of the ask
 * ends, per era if the eras differ. `wrong` marks content that does not fit the question's schema.
 */
export const QUESTIONS = [
  tap("accept", { answer: accept("accept 2"), ends: "chosen", outcome: "accept" }),
  tap("decline", { answer: { action: "decline" }, ends: "refused", outcome: "decline" }),
  tap("cancel", { answer: { action: "cancel" }, ends: "refused", outcome: "cancel" }),
  tap("not offered", { answer: accept("another device"), ends: "refused", outcome: "invalid", wrong: true }),
  tap("empty", { answer: { action: "accept", content: {} }, ends: "refused", outcome: "invalid", wrong: true }),
  tap("no content", { answer: { action: "accept" }, ends: "refused", outcome: "invalid" }),
  tap("no string", { answer: accept(2), ends: "refused", outcome: "invalid", wrong: true }),
  tap("throws", { answer: { throws: "nobody is here" }, ends: { push: "refused", mrtr: "gone" }, outcome: { push: "error" } }),
  tap("aborts", { answer: { aborts: true }, ends: "gone", outcome: {} }),
];

/** The same refusal twice: after a person's decline, a connection is not asked again; modern requests remember nothing. */
export const AGAIN = [
  tap("first", { arguments: { note: "first", offer: ["again 1", "again 2"] }, ends: "refused", outcome: "decline" }),
  tap("again", {
    arguments: { note: "again", offer: ["again 2", "again 1"] },
    ends: "refused",
    outcome: { push: "remembered", mrtr: "decline" },
    asked: { push: 0, mrtr: 1 },
  }),
];

/** Answers that came faster than a person reads: an accepted choice counts, a decline is not remembered. */
export const TOO_FAST = [
  tap("accept", { answer: accept("accept 1"), ends: "chosen", outcome: "accept" }),
  tap("first", { arguments: { note: "first", offer: ["again 1", "again 2"] }, ends: "refused", outcome: "decline" }),
  tap("again", { arguments: { note: "again", offer: ["again 1", "again 2"] }, ends: "refused", outcome: "decline" }),
];

/** A question that nobody answers; the call after it shows that the connection is well. */
export const UNANSWERED = [
  tap("never", { answer: { never: true }, ends: "refused", outcome: "timeout" }),
  tap("accept", { answer: accept("accept 1"), ends: "chosen", outcome: "accept" }),
];

/**
 * Calls that are made at the same time: every answer finds its own call, also where the next call is over before it, and
 * a call that is given up takes no other with it.
 */
export const TOGETHER = [
  tap("late", { answer: { ...accept("late 2"), afterMs: 100 }, ends: "chosen", outcome: "accept" }),
  tap("at once", { answer: accept("at once 1"), ends: "chosen", outcome: "accept" }),
  tap("given up", { answer: { aborts: true }, ends: "gone", outcome: {} }),
  tap("late no", { answer: { action: "decline", afterMs: 50 }, ends: "refused", outcome: "decline" }),
  ...TRANSPARENT.filter((call) => ["echo", "given up while it runs", "the server's own question", "named"].includes(call.name)),
];

/** What the entry says for an era, where it tells the eras apart. */
export function inEra(entry, isPush) {
  return entry !== null && typeof entry === "object" ? entry[isPush ? "push" : "mrtr"] : entry;
}
