// The page against the real binary: `handraise up`, `handraise agent` and its scripted agent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { clean, launch, picture, press, signIn, still, until, visit } from "./browser.mjs";
import { BINARY, Inbox } from "./inbox.mjs";

const skip = BINARY === undefined ? "HANDRAISE_BIN names no binary; `cargo xtask test` sets it" : false;
let browser;
let inbox;
before(async () => {
  if (skip !== false) return;
  browser = await launch();
  inbox = await new Inbox().up();
});
after(async () => {
  await browser?.close();
  await inbox?.end();
});

const submit = (page) => press(page, page.getByRole("button", { name: /^Submit/ }));
/** Opens the one open ask that says this. */
const open = async (page, words) => {
  await page.locator("[data-row]").filter({ hasText: words }).first().click();
  await page.locator('[data-phase="open"]').getByRole("heading", { name: words }).waitFor();
};
const control = (page, label) => page.locator(".desk :is(input, textarea)").and(page.getByLabel(label));

async function signedIn(scope = "operator", name = "Desk one") {
  const view = await visit(browser);
  await signIn(view.page, inbox, { scope, name });
  return view;
}

test("the link signs in, the demo's five forms are answered, the agent's turn goes on and ends", { skip }, async () => {
  const view = await visit(browser);
  const { page } = view;
  await page.goto(inbox.link);
  assert.equal(page.url(), `${inbox.url}/`);
  await page.getByLabel("Your name here").fill("Desk one");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Nobody can raise a hand yet" }).waitFor();
  const agent = inbox.agent("demo");

  await open(page, "Which database should the new service use?");
  await clean(page, "a real ask");
  await picture(page, "real-single-1280-light");
  await still(page);
  await page.getByRole("radio", { name: "SQLite" }).check();
  await page.getByLabel("in your own words").fill("with WAL");
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();
  await picture(page, "real-settled-1280-light");

  await open(page, "Please answer the following questions.");
  await still(page);
  await page.getByRole("checkbox", { name: "prod" }).check();
  await page.getByRole("checkbox", { name: "dev" }).check();
  await page.getByText("1 of 2 answered; the rest is left out.").waitFor();
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();

  await open(page, "Fable declined this request");
  await still(page);
  await page.getByText("Retry with Opus", { exact: true }).click();
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();

  await open(page, "Need key");
  await page.getByText("Looks like a secret.").waitFor();
  await control(page, /apiKey|Need key/).fill("k-123456");
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();
  await page.locator(".facts").getByText("•").waitFor();

  await open(page, "Tell me about the service.");
  await picture(page, "real-typed-1280-light");
  await control(page, /Replicas/).fill("30");
  await control(page, /Who answers for it/).fill("first@example.com");
  await press(page, page.getByText("Yes", { exact: true }));
  await page.getByText("6 of 6 answered").waitFor();
  await submit(page);
  await page.locator('[data-notice="invalid"]').waitFor();
  await page.waitForFunction(() => document.activeElement?.value === "30");
  await clean(page, "a real refusal");
  await picture(page, "real-invalid-1280-light");
  await control(page, /Replicas/).fill("4");
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();

  assert.equal(await agent.ended, 0, agent.err);
  for (const told of [/with WAL/, /\["dev","prod"\]/, /retry_fallback/, /k-123456/, /"replicas":4/]) assert.match(agent.out, told);
  await page.goto(`${inbox.url}/sessions`);
  await page.locator("[data-row]").first().click();
  await page.getByText("Thank you. This is what I was told:").waitFor();
  await clean(page, "a real transcript");
  await picture(page, "real-session-1280-light");
  await view.done(inbox.url);
});

test("s15 an answer by the page that painted the question counts as a human's", { skip }, async () => {
  const view = await signedIn();
  const { page } = view;
  const agent = inbox.agent("single");
  await open(page, "Which database should the new service use?");
  const id = await page.locator("[data-ask]").getAttribute("data-ask");
  await still(page);
  await page.getByRole("radio", { name: "Postgres" }).check();
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();
  assert.equal(await agent.ended, 0, agent.err);
  const token = await inbox.token("viewer", "reader");
  const detail = await (await fetch(`${inbox.url}/api/v1/asks/${id}`, { headers: { authorization: `Bearer ${token}` } })).json();
  assert.equal(detail.settlement.by, "Desk one");
  assert.equal(detail.settlement.outcome, "accept");
  assert.equal(detail.settlement.provenance, "human");
  assert.deepEqual(detail.events.map((event) => event.kind).slice(0, 2), ["opened", "seen"]);
  await view.done(inbox.url);
});

test("ac14 skipping with a reason declines; ac09 the session waits while it is asked", { skip }, async () => {
  const view = await signedIn("admin", "Desk two");
  const { page } = view;
  const agent = inbox.agent("permission");
  await page.getByRole("link", { name: "Sessions" }).click();
  await page.getByTestId("task-state-waiting-for-input").waitFor();
  assert.equal(await page.getByTestId("task-state-running").count(), 0);
  await page.locator("[data-row]").first().click();
  await page.locator('.log [data-phase="open"]').waitFor();
  await clean(page, "a real permission");
  await picture(page, "real-permission-1280-light");
  await press(page, page.getByRole("button", { name: "Skip", exact: true }));
  await page.getByLabel("Why?").fill("not today");
  await still(page);
  await page.keyboard.press("Enter");
  await page.getByText("You skipped it").waitFor();
  assert.equal(await agent.ended, 0, agent.err);
  await page.getByTestId("task-state-waiting-for-input").waitFor({ state: "detached" });
  await view.done(inbox.url);
});

test("two operators on one ask: the loser sees who answered what", { skip }, async () => {
  const [first, second] = [await signedIn("operator", "Desk one"), await signedIn("operator", "Desk two")];
  const agent = inbox.agent("single");
  for (const { page } of [first, second]) await open(page, "Which database should the new service use?");
  await still(second.page);
  await first.page.getByRole("radio", { name: "Postgres" }).check();
  await second.page.getByRole("radio", { name: "SQLite" }).check();
  await submit(first.page);
  await first.page.getByText("You answered, the agent has it").waitFor();
  await second.page.getByText("Desk one was first").waitFor();
  await second.page.getByText("Chose “Postgres” at").waitFor();
  assert.equal(await agent.ended, 0, agent.err);
  await first.done(inbox.url);
  await second.done(inbox.url);
});

test("the agent is gone: the ask is withdrawn on the page", { skip }, async () => {
  const view = await signedIn();
  const { page } = view;
  const agent = inbox.agent("single");
  await open(page, "Which database should the new service use?");
  agent.child.kill("SIGTERM");
  await page.getByText("No longer needed").waitFor();
  await agent.ended;
  await view.done(inbox.url);
});

test("a restart of the inbox under an open page: offline, then live again, the draft kept", { skip }, async () => {
  const view = await signedIn();
  const { page } = view;
  const agent = inbox.agent("single");
  await open(page, "Which database should the new service use?");
  await still(page);
  await page.getByRole("radio", { name: "DynamoDB" }).check();
  await page.getByText("Draft saved").waitFor();
  await inbox.down("SIGKILL");
  await page.locator('[data-notice="offline"]').waitFor();
  await picture(page, "real-offline-1280-light");
  await inbox.up();
  await page.getByRole("button", { name: "Try now" }).click().catch(() => undefined);
  await page.locator(".live").getByText("Live · Desk one").waitFor();
  await page.locator('[data-phase="open"]:not([data-notice])').waitFor();
  assert.ok(await page.getByRole("radio", { name: "DynamoDB" }).isChecked());
  await submit(page);
  await page.getByText("You answered, the agent has it").waitFor();
  assert.equal(await agent.ended, 0, agent.err);
  assert.match(agent.out, /DynamoDB/);
  await view.done(inbox.url);
});

test("settings: a flag of the real inbox is switched and taken back", { skip }, async () => {
  const view = await signedIn("admin", "Desk one");
  const { page } = view;
  await page.getByRole("link", { name: "Settings" }).click();
  const flag = page.getByRole("switch", { name: "Questions from agents" });
  await flag.waitFor();
  await flag.uncheck();
  await page.getByText(/^Saved/).waitFor();
  await page.reload();
  await page.getByText("set in the inbox").waitFor();
  await page.getByRole("button", { name: "Take my setting back" }).click();
  await page.getByText("set in the inbox").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Access tokens" }).click();
  await page.getByText("signed-in page").first().waitFor();
  await clean(page, "real tokens");
  await until(() => !inbox.run.err.includes("panicked"), "nothing panicked");
  await view.done(inbox.url);
});
