// Every state of the card: its words, axe, and a picture at 360 and 1280 px, light and dark.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TOKENS, error } from "../dev/mock.mjs";
import { ask, choice, iso, origin, question, sampleAsks, settlement } from "../dev/samples.mjs";
import { clean, DESK, enter, launch, PHONE, picture, serve, shutDown, still, visit } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => shutDown(browser));

const MINUTE = 60_000;
const submit = (page) => page.getByRole("button", { name: /^(Submit|Keep my answer)/ }).click();
const codex = { origin: origin({ client: { name: "codex-acp", version: null } }), message: "Which region first?", questions: [question("region", "single", "Which region first?", { choices: [choice("eu-west"), choice("us-east")] })] };

/** name, the ask, what to do, what it says; `keep` is a change that is wanted before the page is opened. */
const STATES = [
  {
    name: "loading",
    path: "/asks/unlisted",
    before: (mock) => {
      mock.asks.set("unlisted", { ...ask("unlisted"), state: "settled", settlement: settlement("accept") });
      mock.askGate = new Promise((resolve) => (mock.letAsk = resolve));
    },
    phase: "loading",
    says: ["Loading the question…"],
    after: (mock) => mock.letAsk(),
  },
  { name: "open", says: ["then it is declined without you", "Submit"], act: (page) => page.getByText("Postgres").click(), then: ["Draft saved"] },
  {
    name: "sent",
    verdict: () => () => new Promise(() => undefined),
    act: async (page) => {
      await page.getByText("Postgres").click();
      await submit(page);
    },
    phase: "sent",
    says: ["Sent. Waiting for the agent to take it…", "Nothing is settled yet"],
  },
  {
    name: "sent-unknown",
    verdict: (mock) => () => {
      mock.update("a", { state: "sent" });
      return { status: 504, body: error("VERDICT_UNKNOWN", "no verdict") };
    },
    act: submit,
    phase: "sent",
    says: ["has not said yet", "Nothing is settled yet"],
  },
  {
    name: "invalid",
    ask: {
      message: "How long should the recording run?",
      origin: origin({ holder: "gateway", client: { name: "Copilot CLI", version: null }, server: "automobile" }),
      questions: [question("seconds", "integer", "How long should the recording run?", { title: "Length in seconds" })],
    },
    verdict: () => () => ({ status: 422, body: error("INVALID", "refused", [{ question_id: "seconds", rule: "maximum", message: "900 is too large. The most it takes is 600." }]) }),
    act: async (page) => {
      await page.getByLabel("Length in seconds").fill("900");
      await submit(page);
    },
    notice: "invalid",
    says: ["One answer was refused. Nothing was sent on, the ask is still open.", "900 is too large. The most it takes is 600."],
    check: async (page) => {
      await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
    },
  },
  {
    name: "not-delivered",
    ask: codex,
    verdict: () => () => ({ status: 503, body: error("HOLDER_NOT_CONNECTED", "not connected") }),
    act: submit,
    notice: "undelivered",
    says: ["Your answer did not reach codex-acp", "Nothing was queued; your draft is kept", "Submit again"],
  },
  { name: "disconnected", ask: { ...codex, holder_connected: false }, notice: "disconnected", says: ["codex-acp is not connected"] },
  {
    name: "offline",
    ask: codex,
    act: (page, mock) => mock.dropStreams(true),
    notice: "offline",
    says: ["This page lost the inbox", "Seen last at", "Try now"],
    after: (mock) => {
      mock.gone = false;
    },
  },
  {
    name: "settled-mine",
    act: async (page) => {
      await page.getByText("Postgres").click();
      await submit(page);
    },
    phase: "settled",
    says: ["You answered, the agent has it", "The same call goes on.", "Postgres"],
  },
  {
    name: "settled-other",
    verdict: (mock) => (body, asked) => {
      const other = settlement("accept", { by: "Operator 2", answers: [{ question_id: asked.questions[0].id, selected_options: ["SQLite"], custom_text: "" }], submission_id: "theirs" });
      mock.settle("a", other);
      return { status: 404, body: { ...error("NOT_FOUND", "ended"), settlement: other, recorded: false } };
    },
    act: async (page) => {
      await page.getByText("Postgres").click();
      await submit(page);
    },
    phase: "settled",
    says: ["Operator 2 was first", "Chose “SQLite” at", "Your “Postgres” was not sent.", "human, another operator"],
  },
  {
    name: "skipped",
    act: async (page) => {
      await page.getByRole("button", { name: "Skip", exact: true }).click();
      await page.getByLabel("Why?").fill("Ask the release team, they own this.");
      await page.keyboard.press("Enter");
    },
    phase: "settled",
    says: ["You skipped it", "The agent was told that a human declined. Reason: “Ask the release team, they own this.”"],
  },
  { name: "withdrawn", ask: { settlement: settlement("cancel", { provenance: "system", by: null }), state: "settled" }, phase: "settled", says: ["No longer needed", "cancelled the call at", "Nobody’s answer was used."] },
  { name: "gone", ask: { settlement: settlement("withdrawn", { provenance: "system", by: null, reason: "agent_disconnected" }), state: "settled" }, phase: "settled", says: ["No longer needed", "was gone at"] },
  {
    name: "expired",
    ask: { ...codex, opened_at: iso(Date.now() - 55 * MINUTE), settlement: settlement("timeout", { provenance: "system", by: null, wire: "decline" }), state: "settled" },
    phase: "settled",
    says: ["Nobody answered in 55 min", "handraise declined it at", "Recorded as system, not as a human."],
  },
  {
    name: "recorded",
    verdict: (mock) => () => {
      const gone = settlement("withdrawn", { provenance: "system", by: null, wire: null, reason: "agent_disconnected" });
      mock.settle("a", gone);
      return { status: 404, body: { ...error("NOT_FOUND", "ended"), settlement: gone, recorded: true } };
    },
    act: submit,
    phase: "settled",
    says: ["Kept, not delivered", "The agent had gone when you answered."],
  },
  {
    name: "reported",
    ask: { origin: origin({ holder: "gateway", client: { name: "Claude Code", version: null } }), settlement: settlement("accept", { provenance: "client", rail: "form", by: null }), state: "settled" },
    phase: "settled",
    says: ["Answered in Claude Code", "It reports accept; we saw nobody."],
  },
  { name: "parked", ask: () => ({ ...codex, parked_until: iso(Date.now() + 12 * MINUTE + 30_000), deadline: null }), notice: "parked", says: ["The call ended without an answer", "Answer within 12 min", "Keep my answer"] },
  { name: "readonly", scope: "viewer", notice: "readonly", says: ["You may read here, not answer"] },
  { name: "permission", sample: "0192-permission", says: ["asks permission", "terraform apply -auto-approve", "allow · this call", "The words are the agent’s"] },
  { name: "confirm", sample: "0192-confirm", says: ["asks to confirm", "gmail_send", "then it is refused", "Do not send e-mail", "Send e-mail"] },
  { name: "link", sample: "0192-link", says: ["linear.app", "https://linear.app/oauth/authorize?client_id=7f3a", "Not opened or fetched yet.", "Open linear.app ↗", "Do not open"] },
  {
    name: "link-lookalike",
    ask: { mode: "url", message: "Link your Linear account", url: "https://lіnear.app/oauth/authorize", questions: [] },
    says: ["xn--lnear-n2e.app", "it would show as “lіnear.app”", "Open anyway ↗"],
  },
  { name: "kinds", sample: "0192-kinds", says: ["A whole number, 1 to 16", "Looks like a secret.", "Filled in by the asking side"], full: true },
  { name: "missing", path: "/asks/nothing", phase: "missing", says: ["No such ask"] },
];

for (const state of STATES) {
  test(`card state: ${state.name}`, async () => {
    const asks = state.sample !== undefined ? sampleAsks() : [ask("a", { session_id: "s-orders", ...(typeof state.ask === "function" ? state.ask() : state.ask) })];
    const mock = await serve({ asks });
    const view = await visit(browser);
    const { page } = view;
    try {
      state.before?.(mock);
      if (state.verdict !== undefined) mock.verdicts.set("a", state.verdict(mock));
      const scope = state.scope ?? "admin";
      await enter(page, mock.url, { token: TOKENS[scope], scope, name: "Desk one" }, state.path ?? `/asks/${state.sample ?? "a"}`);
      const phase = state.phase ?? "open";
      if (state.act !== undefined) {
        await page.locator('[data-phase="open"]').waitFor();
        await still(page);
        await state.act(page, mock);
      }
      await page.locator(`[data-phase="${phase}"]`).waitFor();
      if (state.notice !== undefined) await page.locator(`[data-notice="${state.notice}"]`).waitFor();
      for (const words of [...state.says, ...(state.then ?? [])]) await page.locator(".desk").getByText(words).first().waitFor();
      await state.check?.(page);
      for (const [size, viewport] of [["1280", DESK], ["360", PHONE]]) {
        for (const scheme of ["light", "dark"]) {
          await page.setViewportSize(viewport);
          await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
          await clean(page, `${state.name} ${size} ${scheme}`);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          assert.ok(wide <= 0, `${state.name} at ${size} px needs no sideways scrolling`);
          await picture(page, `card-${state.name}-${size}-${scheme}`, state.full === true && size === "360");
        }
      }
      await view.done(mock.url);
    } finally {
      state.after?.(mock);
    }
  });
}
