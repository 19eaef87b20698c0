// Signing in and out (S1, S11, S34).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SECRET, TOKENS } from "../dev/mock.mjs";
import { clean, enter, launch, picture, serve, shutDown, until, visit } from "./browser.mjs";

let browser;
let mock;
before(async () => {
  browser = await launch();
  mock = await serve();
});
after(() => shutDown(browser));

test("s11 a link signs in once, by a click, and its secret leaves the address at once", async () => {
  const view = await visit(browser);
  const { page } = view;
  await page.goto(`${mock.url}/#sign-in=${SECRET}`);
  await page.getByText("This link signs you in, once").waitFor();
  assert.equal(page.url(), `${mock.url}/`);
  assert.equal(mock.sent("/login").length, 0, "opening the link does nothing");
  await clean(page, "sign-in by link");
  await picture(page, "sign-in-link");
  await page.getByLabel("Your name here").fill("Desk one");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Live · Desk one").waitFor();
  assert.deepEqual(mock.sent("/login").map((call) => call.body), [{ secret: SECRET, name: "Desk one" }]);
  assert.ok(!view.requests.some((url) => url.includes(SECRET)), "no address holds the secret");
  assert.deepEqual(await view.context.cookies(), [], "s1 no cookie");
  const history = await page.evaluate(() => history.length);
  await page.reload();
  await page.getByText("Live · Desk one").waitFor();
  assert.ok(history <= 2);
  await view.done(mock.url);

  const second = await visit(browser);
  await second.page.goto(`${mock.url}/#sign-in=${SECRET}`);
  await second.page.getByRole("button", { name: "Sign in" }).click();
  await second.page.getByText("That link was used before").waitFor();
  await clean(second.page, "used link");
  await picture(second.page, "sign-in-used");
  // What is left is to paste a token.
  await second.page.getByLabel("Code or operator token").fill("wrong");
  await second.page.getByRole("button", { name: "Sign in" }).click();
  await second.page.getByText("not valid here").waitFor();
  await second.page.getByLabel("Code or operator token").fill(TOKENS.viewer);
  await second.page.keyboard.press("Enter");
  await second.page.getByText("Live · you").waitFor();
  await second.done(mock.url);
});

test("s34 signing out ends it here and on the server; a revoked sign-in asks again", async () => {
  const view = await visit(browser);
  const { page } = view;
  const login = { token: TOKENS.operator, scope: "operator", name: "Desk one" };
  mock.logins.set("t-revoke", { ...login, token: "t-revoke" });
  await enter(page, mock.url, { ...login, token: "t-revoke" }, "/settings");
  await page.getByText("Signed in here as Desk one, scope operator").waitFor();
  await page.getByText("Settings need a sign-in with the scope admin").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to this inbox" }).waitFor();
  await until(() => !mock.logins.has("t-revoke"), "the token is gone");
  assert.equal(await page.evaluate(() => localStorage.getItem("handraise.login")), null);
  await view.done(mock.url);

  const other = await visit(browser);
  mock.logins.set("t-other", { ...login, token: "t-other" });
  await enter(other.page, mock.url, { ...login, token: "t-other" });
  await other.page.getByText("Live · Desk one").waitFor();
  mock.logins.delete("t-other");
  mock.dropStreams();
  await other.page.getByText("Your sign-in has ended").waitFor();
  await other.done(mock.url);
});

test("an inbox that cannot be reached is said so", async () => {
  const view = await visit(browser);
  await view.page.goto(mock.url);
  await view.page.getByLabel("Code or operator token").fill(TOKENS.operator);
  mock.gone = true;
  await view.page.getByRole("button", { name: "Sign in" }).click();
  await view.page.getByText("The inbox cannot be reached").waitFor();
  mock.gone = false;
  await view.done(mock.url);
});
