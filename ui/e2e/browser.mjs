// One browser for a test file, one fresh page for a test: with every request, console error and policy violation noted.
import { readFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { Mock } from "../dev/mock.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const artefacts = fileURLToPath(new URL("../artefacts/", import.meta.url));

export const PHONE = { width: 360, height: 740 };
export const DESK = { width: 1280, height: 800 };

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell";
  const root = process.getuid?.() === 0;
  return chromium.launch({ executablePath, args: root ? ["--no-sandbox"] : [] });
}

/** A page in its own storage. `done` asserts that nothing went wrong behind the scenes. */
export async function visit(browser, { viewport = DESK, dark = false, touch = false, scale = 1 } = {}) {
  const context = await browser.newContext({
    viewport,
    colorScheme: dark ? "dark" : "light",
    hasTouch: touch,
    deviceScaleFactor: scale,
    reducedMotion: "reduce",
    timezoneId: "Europe/Berlin",
  });
  await context.addInitScript(() => {
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.__violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const requests = [];
  const errors = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => {
    // The browser logs failed calls, which some tests provoke, by itself.
    if (message.type() === "error" && !/Failed to load resource|net::ERR_/.test(message.text())) errors.push(message.text());
  });
  return {
    context,
    page,
    requests,
    errors,
    async done(origin) {
      const violations = await page.evaluate(() => window.__violations);
      assert.deepEqual(violations, [], "no violation of the content security policy");
      assert.deepEqual(errors, [], "no error on the console");
      const foreign = requests.filter((url) => new URL(url).origin !== origin);
      assert.deepEqual(foreign, [], "no request to another origin");
      await context.close();
    },
  };
}

/** Puts a token into the page's storage as a sign-in would. */
export async function enter(page, base, login, path = "/") {
  await page.addInitScript((value) => {
    if (localStorage.getItem("handraise.login") === null) localStorage.setItem("handraise.login", value);
  }, JSON.stringify(login));
  await page.goto(base + path);
}

/** Signs in to a real inbox with a token of its own, which works more than once. */
export async function signIn(page, inbox, { scope = "operator", name, owner }) {
  await page.goto(inbox.url);
  await page.getByLabel("Code or operator token").fill(await inbox.token(scope, name, owner));
  await page.getByLabel("Your name here").fill(name);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".live").getByText(`Live · ${name}`).waitFor();
}

/** axe runs through the debugger, so the page's own policy stays as strict as it is. */
export async function clean(page, what) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(`${axe}; undefined`);
  const { violations } = await page.evaluate(async () => {
    // Where a control is scrolled half under the foot, axe takes what is left for its whole size.
    const flat = new CSSStyleSheet();
    flat.replaceSync(".foot, .compose, .top, .side nav { position: static !important }");
    document.adoptedStyleSheets = [flat];
    // The page may draw itself anew for that, or still be drawing: axe is no snapshot, so it reads what stands still.
    await new Promise((resolve) => {
      let quiet;
      const watch = new MutationObserver(() => wait());
      const wait = () => {
        clearTimeout(quiet);
        quiet = setTimeout(() => requestAnimationFrame(() => (watch.disconnect(), resolve())), 50);
      };
      watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      wait();
    });
    const found = await window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    document.adoptedStyleSheets = [];
    return found;
  });
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
  assert.deepEqual(found, [], `axe finds nothing in ${what}`);
}

export async function picture(page, name, fullPage = false) {
  mkdirSync(artefacts, { recursive: true });
  await page.screenshot({ path: `${artefacts}${name}.png`, fullPage });
}

/** Waits until the open card takes answers (S40): 350 ms after what was asked of the page has been drawn. */
export async function still(page) {
  await page.evaluate(async () => {
    const drawn = () => new Promise((resolve) => requestAnimationFrame(resolve));
    // A scroll is told with the frame after it, which may take its time.
    await drawn();
    await drawn();
    window.__from = performance.now();
  });
  await page.waitForFunction(() => performance.now() - window.__from > 400);
}

/** Clicks as a person does: on what is in view, and not under the foot, once the card stands still there (S40). */
export async function press(page, control) {
  await control.evaluate((element) => element.scrollIntoView({ block: "center" }));
  await still(page);
  await control.click();
}

/** Waits until `check()` is true, asking again and again for at most 15 seconds. */
export async function until(check, what) {
  const end = Date.now() + 15_000;
  while (!(await check())) {
    assert.ok(Date.now() < end, `still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What `shutDown` stops. */
export const served = [];

/** A stand-in for the inbox that lives until `shutDown`. */
export async function serve(options) {
  const mock = await new Mock(options).start();
  served.push(mock);
  return mock;
}

/** Ends what a test file has started, also after a failure. */
export async function shutDown(browser) {
  await browser.close();
  for (const one of served.splice(0)) await one.stop();
}
