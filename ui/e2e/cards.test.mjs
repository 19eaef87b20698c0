// Every state of the card, reached through the real inbox by a scripted holder: its words, axe, and a picture at 360 and
// 1280 px, light and dark.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, choice, iso, origin, question, sampleAsks } from "../dev/samples.mjs";
import { clean, DESK, launch, PHONE, picture, signIn, still, until, visit } from "./browser.mjs";
import { Holder, mint, REFUSED } from "./holder.mjs";
import { BINARY, Inbox } from "./inbox.mjs";

const skip = BINARY === undefined ? "HANDRAISE_BIN names no binary; `cargo xtask test` sets it" : false;
let browser;
before(async () => {
  if (skip === false) browser = await launch();
});
after(async () => {
  await browser?.close();
});

const MINUTE = 60_000;
const submit = (page) => page.getByRole("button", { name: /^(Submit|Keep my answer)/ }).click();
const pick = (value) => [{ question_id: "question_0", selected_options: [value], custom_text: "" }];
const codex = { origin: origin({ client: { name: "codex-acp", version: null } }), message: "Which region first?", questions: [question("region", "single", "Which region first?", { choices: [choice("eu-west"), choice("us-east")] })] };
const script = {
  source: "script",
  origin: origin({ client: { name: "handraise ask", version: null } }),
  message: "Deploy?",
  on_deadline: null,
  allows_partial: false,
  allows_text_with_selection: false,
  questions: [question("answer", "single", "Deploy?", { required: true, choices: [choice("yes"), choice("no")] })],
};
const gone = { outcome: "withdrawn", reason: "agent_disconnected", wire: null };

/**
 * name, the ask, what is done, what it says. `act` is done once the card is open; `verdict` is the holder's to a
 * submission, nothing means that it is delivered.
 */
const STATES = [
  {
    name: "loading",
    before: async ({ page, holder, id }) => {
      await holder.settles(id, "timeout");
      let let_;
      const gate = new Promise((resolve) => (let_ = resolve));
      await page.route(`**/api/v1/asks/${id}`, async (route) => {
        await gate;
        await route.continue();
      });
      return let_;
    },
    phase: "loading",
    says: ["Loading the question…"],
    after: async ({ page, held }) => {
      held();
      await page.locator('[data-phase="settled"]').waitFor();
    },
  },
  { name: "open", says: ["then it is declined without you", "Submit", "Draft saved"], act: ({ page }) => page.getByText("Postgres").click() },
  {
    name: "sent",
    verdict: () => new Promise(() => undefined),
    act: async ({ page }) => {
      await page.getByText("Postgres").click();
      await submit(page);
    },
    phase: "sent",
    says: ["Sent. Waiting for the agent to take it…", "Nothing is settled yet"],
  },
  {
    name: "sent-unknown",
    verdict: (_, holder) => holder.cut(),
    act: ({ page }) => submit(page),
    phase: "sent",
    says: ["has not said yet", "Nothing is settled yet"],
  },
  {
    name: "invalid",
    kind: "gateway",
    ask: {
      message: "How long should the recording run?",
      origin: origin({ client: { name: "Copilot CLI", version: null }, server: "automobile" }),
      questions: [question("seconds", "integer", "How long should the recording run?", { title: "Length in seconds" })],
    },
    verdict: () => REFUSED("INVALID", "refused", [{ question_id: "seconds", rule: "maximum", message: "900 is too large. The most it takes is 600." }]),
    act: async ({ page }) => {
      await page.getByLabel("Length in seconds").fill("900");
      await submit(page);
    },
    notice: "invalid",
    says: ["One answer was refused. Nothing was sent on, the ask is still open.", "900 is too large. The most it takes is 600."],
    check: async ({ page }) => {
      await page.waitForFunction(() => document.activeElement?.getAttribute("aria-invalid") === "true");
    },
  },
  {
    name: "not-delivered",
    ask: codex,
    act: async ({ page, holder }) => {
      holder.cut();
      await page.locator('[data-notice="disconnected"]').waitFor();
      await still(page);
      await submit(page);
    },
    notice: "undelivered",
    says: ["Your answer did not reach codex-acp", "Nothing was queued; your draft is kept", "Submit again"],
  },
  { name: "disconnected", ask: codex, act: ({ holder }) => holder.cut(), notice: "disconnected", says: ["codex-acp is not connected"] },
  { name: "offline", ask: codex, act: ({ inbox }) => inbox.down("SIGKILL"), notice: "offline", says: ["This page lost the inbox", "Seen last at", "Try now"] },
  {
    name: "settled-mine",
    act: async ({ page }) => {
      await page.getByText("Postgres").click();
      await submit(page);
    },
    phase: "settled",
    says: ["You answered, the agent has it", "The same call goes on.", "Postgres"],
  },
  {
    name: "script-sent",
    kind: "ask",
    ask: script,
    verdict: () => new Promise(() => undefined),
    act: async ({ page }) => {
      await page.getByLabel("yes").check();
      await submit(page);
    },
    phase: "sent",
    says: ["Sent. Waiting for the script to take it…"],
  },
  {
    name: "script-settled",
    kind: "ask",
    ask: script,
    act: async ({ page }) => {
      await page.getByLabel("yes").check();
      await submit(page);
    },
    phase: "settled",
    says: ["You answered, the script has it", "The script goes on."],
  },
  {
    name: "tool-skipped",
    kind: "tool",
    act: async ({ page }) => {
      await page.getByRole("button", { name: "Skip", exact: true }).click();
      await still(page);
      await page.keyboard.press("Enter");
    },
    phase: "settled",
    says: ["You skipped it", "The tool was told that a human declined."],
  },
  {
    name: "settled-other",
    // The other desk's answer wins while ours is on its way.
    verdict: async (respond, holder) => {
      if (respond.by !== "Desk one") return undefined;
      const winner = holder.heard.find((frame) => frame.payload.by === "Operator 2");
      await until(() => !holder.open.has(respond.pending_id), "the other one has won");
      return REFUSED("NOT_FOUND", "it has ended", undefined, holder.ending(respond.pending_id, "accept", {}, winner?.payload.submission_id));
    },
    act: async ({ page, inbox, holder, id }) => {
      const answer = await inbox.desk("Operator 2", id);
      await page.getByText("Postgres").click();
      await submit(page);
      await page.locator('[data-phase="sent"]').waitFor();
      await until(() => holder.heard.length === 1, "ours is with the holder");
      await answer(pick("SQLite"));
    },
    phase: "settled",
    says: ["Operator 2 was first", "Chose “SQLite” at", "Your “Postgres” was not sent.", "human, another operator"],
  },
  {
    name: "skipped",
    act: async ({ page }) => {
      await page.getByRole("button", { name: "Skip", exact: true }).click();
      await page.getByLabel("Why?").fill("Ask the release team, they own this.");
      await still(page);
      await page.keyboard.press("Enter");
    },
    phase: "settled",
    says: ["You skipped it", "The agent was told that a human declined. Reason: “Ask the release team, they own this.”"],
  },
  { name: "withdrawn", act: ({ holder, id }) => holder.settles(id, "cancel"), phase: "settled", says: ["No longer needed", "cancelled the call at", "Nobody’s answer was used."] },
  { name: "gone", act: ({ holder, id }) => holder.settles(id, "withdrawn", gone), phase: "settled", says: ["No longer needed", "was gone at"] },
  {
    name: "expired",
    ask: { ...codex, deadline: iso(Date.now() + 1) },
    more: { deadline_ms: 4_000 },
    act: async ({ page, holder, id }) => {
      await page.getByText("Time is up; waiting to hear how it ended").waitFor();
      await holder.settles(id, "timeout");
    }, phase: "settled", says: [/^Nobody answered in [1-9]\d* s$/, "handraise declined it at", "Recorded as system, not as a human."],
  },
  {
    name: "recorded",
    verdict: ({ pending_id }, holder) => REFUSED("NOT_FOUND", "it has ended", undefined, holder.ending(pending_id, "withdrawn", gone)),
    act: ({ page }) => submit(page),
    phase: "settled",
    says: ["Kept, not delivered", "The agent had gone when you answered."],
  },
  {
    name: "reported",
    kind: "gateway",
    ask: { origin: origin({ client: { name: "Claude Code", version: null } }) },
    act: ({ holder, id }) => holder.settles(id, "accept", { provenance: "client", rail: "form" }),
    phase: "settled",
    says: ["Answered in Claude Code", "It reports accept; we saw nobody."],
  },
  {
    name: "parked",
    ask: codex,
    act: ({ holder, id }) => holder.again(id, { deadline_ms: 12.5 * MINUTE, parked_ms: 12.5 * MINUTE }),
    notice: "parked",
    says: ["The call ended without an answer", "Answer within 12 min", "Keep my answer"],
  },
  { name: "readonly", scope: "viewer", notice: "readonly", says: ["You may read here, not answer"] },
  {
    name: "s16 the owner's alone, for somebody else",
    owners: ["ada", "bob"],
    more: { who: "caller" },
    notice: "readonly",
    says: ["You may read here, not answer", "Only ada can answer."],
  },
  {
    name: "s16 not the owner's, for nobody known",
    owners: ["ada", undefined],
    more: { who: "not-the-caller" },
    notice: "readonly",
    says: ["You may read here, not answer", "All but ada can answer."],
  },
  { name: "s16 the owner's, for the owner", owners: ["ada", "ada"], more: { who: "caller" }, says: ["Submit"] },
  { name: "permission", sample: "0192-permission", says: ["asks permission", "terraform apply -auto-approve", "allow · this call", "The words are the agent’s"] },
  { name: "confirm", kind: "gateway", sample: "0192-confirm", says: ["asks to confirm", "gmail_send", "then it is refused", "Do not send e-mail", "Send e-mail"] },
  { name: "link", kind: "gateway", sample: "0192-link", says: ["linear.app", "https://linear.app/oauth/authorize?client_id=7f3a", "Not opened or fetched yet.", "Open linear.app ↗", "Do not open"] },
  {
    name: "link-lookalike",
    kind: "gateway",
    ask: { mode: "url", message: "Link your Linear account", url: "https://lіnear.app/oauth/authorize", questions: [] },
    says: ["xn--lnear-n2e.app", "it would show as “lіnear.app”", "Open anyway ↗"],
  },
  { name: "kinds", sample: "0192-kinds", says: ["A whole number, 1 to 16", "Looks like a secret.", "Filled in by the asking side"], full: true },
  { name: "missing", path: "/asks/nothing", phase: "missing", says: ["No such ask"] },
];

for (const state of STATES) {
  test(`card state: ${state.name}`, { skip }, async () => {
    const inbox = await new Inbox().up();
    const holder = await new Holder(inbox, { kind: state.kind, token: await inbox.token("holder", "laptop", state.owners?.[0]) }).attach();
    const view = await visit(browser);
    const { page } = view;
    const it = { page, inbox, holder };
    try {
      holder.verdict = state.verdict ?? holder.verdict;
      const sample = sampleAsks().find((one) => one.id === state.sample) ?? ask("a", { deadline: iso(Date.now() + 4 * MINUTE + 30_000), ...state.ask });
      it.id = await holder.opens({ ...sample, id: mint(), session_id: null }, state.more);
      await signIn(page, inbox, { scope: state.scope, name: "Desk one", owner: state.owners?.[1] });
      await page.locator(`[data-row="${it.id}"]`).waitFor();
      it.held = await state.before?.(it);
      await page.goto(inbox.url + (state.path ?? `/asks/${it.id}`));
      if (state.act !== undefined) {
        await page.locator('[data-phase="open"]').waitFor();
        await still(page);
        await state.act(it);
      }
      await page.locator(`[data-phase="${state.phase ?? "open"}"]`).waitFor();
      if (state.notice !== undefined) await page.locator(`[data-notice="${state.notice}"]`).waitFor();
      for (const words of state.says) await page.locator(".desk").getByText(words).first().waitFor();
      await state.check?.(it);
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
      await state.after?.(it);
      await view.done(inbox.url);
    } finally {
      await view.context.close();
      holder.cut();
      await inbox.end();
    }
  });
}
