// Sessions, transcript, composer; settings.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { TOKENS } from "../dev/mock.mjs";
import { sampleMessages } from "../dev/samples.mjs";
import { clean, DESK, enter, launch, PHONE, picture, press, serve, shutDown, until, visit } from "./browser.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => shutDown(browser));

const ADMIN = { token: TOKENS.admin, scope: "admin", name: "Desk one" };

async function everyWay(page, name) {
  for (const [size, viewport] of [["1280", DESK], ["360", PHONE]]) {
    for (const scheme of ["light", "dark"]) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await clean(page, `${name} ${size} ${scheme}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(wide <= 0, `${name} at ${size} px needs no sideways scrolling`);
      await picture(page, `${name}-${size}-${scheme}`);
    }
  }
  await page.setViewportSize(DESK);
}

test("ac09 a running session with an open ask shows the waiting sign alone", async () => {
  const mock = await serve();
  const view = await visit(browser);
  const { page } = view;
  await enter(page, mock.url, ADMIN, "/sessions");
  const row = page.locator('[data-row="s-orders"]');
  await row.getByTestId("task-state-waiting-for-input").waitFor();
  assert.equal(await row.getByTestId("task-state-running").count(), 0);
  assert.equal(await row.getByTestId("task-state-background-running").count(), 0);
  await page.locator('[data-row="s-infra"]').getByTestId("task-state-running").waitFor();
  await page.locator('[data-row="s-watch"]').getByTestId("task-state-background-running").waitFor();
  const settled = { ...mock.sessions.get("s-orders"), pending_action: null, waiting: 0 };
  mock.emit("session.updated", settled);
  await row.getByTestId("task-state-running").waitFor();
  assert.equal(await row.getByTestId("task-state-waiting-for-input").count(), 0);
  await everyWay(page, "sessions");
  await view.done(mock.url);
});

test("the transcript: joined text, safe markdown, tool calls, the card in its place, live", async () => {
  const mock = await serve();
  const view = await visit(browser);
  const { page } = view;
  await enter(page, mock.url, ADMIN, "/sessions/s-orders");
  await page.getByText("Set up storage for the orders service. Keep it boring.").waitFor();
  await page.getByText("I read the service and its neighbours. Two things matter here:").waitFor();
  await page.getByText("<b>not bold</b>").waitFor();
  assert.equal(await page.locator(".log img").count(), 0, "s41 no images");
  assert.equal(await page.locator('.log a[href^="http"]').count(), 0, "s41 no live links");
  await page.getByRole("button", { name: "Copy the address of the docs" }).waitFor();
  await page.locator(".tools").getByRole("img", { name: "failed" }).waitFor();
  await page.getByText("AskUserQuestion, waiting for you").waitFor();
  const card = page.locator('.log [data-ask="0192-storage"]');
  await card.waitFor();
  await page.getByText("The turn waits for your answer above.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Send", exact: true }).isDisabled());
  await everyWay(page, "session");
  await press(page, card.getByText("Postgres", { exact: true }).first());
  await press(page, card.getByRole("button", { name: /^Submit/ }));
  await card.getByText("You answered, the agent has it").waitFor();

  const next = (seq, text, more) => mock.emit("session.message", { ...sampleMessages()[1], seq, text, ...more });
  next(11, "Working on ");
  next(12, "it now.", { continues: true });
  next(12, "it now.", { continues: true });
  await page.getByText("Working on it now.", { exact: true }).waitFor();
  next(13, "", { type: "turn_ended", author: "system", metadata: { stop_reason: "end_turn" } });
  await page.getByText("The turn ended.").waitFor();
  mock.emit("session.updated", { ...mock.sessions.get("s-orders"), state: "idle", stop_reason: "end_turn", pending_action: null, waiting: 0 });
  await page.getByLabel("Message to orders-service").fill("Thanks, go on");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await until(() => mock.sent("/sessions/s-orders/prompt").length === 1, "the prompt was sent");
  assert.deepEqual(mock.sent("/sessions/s-orders/prompt")[0].body, { text: "Thanks, go on" });
  await view.done(mock.url);
});

test("a running turn can be cancelled; without the scope admin nothing of it is offered", async () => {
  const mock = await serve();
  const view = await visit(browser);
  await enter(view.page, mock.url, ADMIN, "/sessions/s-infra");
  await view.page.getByRole("button", { name: "Cancel turn" }).click();
  await until(() => mock.sent("/sessions/s-infra/cancel").length === 1, "it was cancelled");
  await view.done(mock.url);
  const other = await visit(browser);
  await enter(other.page, mock.url, { token: TOKENS.operator, scope: "operator", name: "Desk two" }, "/sessions/s-infra");
  await other.page.getByText("Prompts need a sign-in with the scope admin.").waitFor();
  assert.equal(await other.page.getByRole("button", { name: /Cancel turn|New session/ }).count(), 0);
  await other.done(mock.url);
});

test("a session is started with an agent of the configuration", async () => {
  const mock = await serve();
  const view = await visit(browser);
  const { page } = view;
  await enter(page, mock.url, ADMIN, "/sessions");
  await page.getByRole("button", { name: "New session" }).click();
  const agent = page.getByLabel("Agent", { exact: true });
  assert.deepEqual(await agent.locator("option").allTextContents(), ["claude", "codex"]);
  await page.getByLabel("Folder (optional)").waitFor();
  await agent.selectOption("codex");
  // What has no folder of its own in the configuration needs one.
  await page.getByLabel("Folder", { exact: true }).fill("/src/orders");
  await page.getByLabel("First message (optional)").fill("Hello");
  await clean(page, "new session");
  await picture(page, "session-start-1280-light");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("heading", { name: "Hello", level: 1 }).waitFor();
  assert.deepEqual(mock.sent("/sessions")[0].body, { agent: "codex", cwd: "/src/orders", prompt: "Hello" });
  await view.done(mock.url);
});

test("settings: flags are switched and taken back, tokens are made, shown once, revoked", async () => {
  const mock = await serve();
  const view = await visit(browser);
  const { page } = view;
  await enter(page, mock.url, ADMIN, "/settings");
  const flag = page.getByRole("switch", { name: "Questions from agents" });
  await flag.waitFor();
  await everyWay(page, "flags");
  await flag.uncheck();
  await page.getByText(/^Saved \d\d:\d\d/).waitFor();
  await page.getByRole("button", { name: "Take my setting back" }).first().click();
  await until(() => mock.sent("/flags").length === 2, "two changes");
  const calls = page.getByRole("switch", { name: "Questions in MCP calls" });
  await calls.uncheck();
  await until(() => mock.sent("/flags").length === 3, "three changes");
  assert.equal(await calls.isChecked(), false);
  await page.getByText("Counts from the next call.").waitFor();
  assert.deepEqual(mock.sent("/flags").map((call) => [call.path, call.body]), [
    ["/flags/features.acpElicitation", { value: false }],
    ["/flags/features.acpElicitation", { value: null }],
    ["/flags/elicitation", { value: false }],
  ]);
  await page.getByRole("link", { name: "Access tokens" }).click();
  await page.getByLabel("Scope").selectOption("holder");
  await page.getByLabel("Name").fill("build-3");
  await page.getByLabel("Owner").fill("Desk one");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Shown this once.").waitFor();
  assert.deepEqual(mock.sent("/tokens")[0].body, { scope: "holder", name: "build-3", owner: "Desk one" });
  await everyWay(page, "tokens");
  await page.getByRole("button", { name: "I have it" }).click();
  await page.getByRole("button", { name: "Revoke laptop" }).click();
  assert.equal(mock.tokens.length, 3, "the first press only asks");
  await page.getByRole("button", { name: "Revoke for good" }).click();
  await until(() => mock.tokens.length === 2, "it is revoked");
  await view.done(mock.url);
});
