// S26, S41: whatever a stranger writes, wherever, shows as text; what cannot be seen is marked; what is cut is announced.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, choice, origin, question, sampleMessages, session, settlement } from "../dev/samples.mjs";
import { clean, DESK, enter, launch, PHONE, picture, shutDown, visit } from "./browser.mjs";
import { BINARY } from "./inbox.mjs";
import { place } from "./place.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => shutDown(browser));

/** The stand-in shows what the real inbox does not take, such as names with control characters. */
const PLACES = BINARY === undefined ? [false] : [false, true];
const EVIL = [
  '<img src="https://evil.example/x" onerror="window.__pwned=1"><script>window.__pwned=1</script>',
  "![x](https://evil.example/pixel.png) [click](javascript:window.__pwned=1)",
  "\u001b[31mred\u001b[0m \u0007 \u0000 \u009b",
  "safe\u202egnp.exe\u2066 \u200bzero\ufeffwidth",
  "lіnear.app раураl",
  "x".repeat(3_000),
];

const everywhere = (text, id) =>
  ask(id, {
    message: `${text}\nsecond line ${text}`,
    session_id: "s-evil",
    origin: origin({ holder_token: text, client: { name: text, version: text }, server: text }),
    questions: [
      question("one", "single", `prompt ${text}`, {
        title: text,
        allows_text: true,
        companion: "adds",
        choices: [choice(text, text, text, `other than its value ${text}`), choice("plain")],
      }),
      question("two", "text", text, { title: text, default: text, constraints: { pattern: text } }),
      question("three", "text", text, { secret: true }),
      question("four", "multi", text, { choices: [choice(text)] }),
    ],
  });

for (const [index, text] of EVIL.entries()) {
  for (const real of PLACES) {
    test(`s26 hostile text ${index} shows as text in every field of ${real ? "the real inbox" : "the stand-in"}`, async () => {
      const answered = { by: text, reason: text, answers: [{ question_id: "two", selected_options: [], custom_text: text }] };
      const asks = [
        everywhere(text, "evil"),
        { ...everywhere(text, "done"), state: "settled", settlement: settlement("accept", answered) },
        { ...everywhere(text, "skipped"), state: "settled", settlement: settlement("decline", { by: text, reason: text }) },
      ];
      const messages = ["agent_text", "thought", "user_text", "notice", "plan"].map((type, at) => ({ ...sampleMessages()[1], session_id: "s-evil", seq: at + 1, type, text }));
      messages.push({ ...sampleMessages()[3], session_id: "s-evil", seq: 9, text });
      const sessions = [session("s-evil", { title: text, agent: text, cwd: text, holder_token: text, stop_reason: text, state: "ended" })];
      const at = await place({ asks, messages, sessions }, { scope: "admin", real });
      const view = await visit(browser);
      const { page } = view;
      for (const [path, name] of [["/asks/evil", "open"], ["/asks/done", "settled"], ["/asks/skipped", "skipped"], ["/sessions/s-evil", "session"]]) {
        await enter(page, at.url, at.login, path);
        await page.locator(".desk h1").first().waitFor();
        await page.getByText("Live · Desk one").waitFor();
        const begin = text.slice(0, 4);
        await page.locator(".desk").getByText(begin.includes("\u001b") ? "red" : begin).first().waitFor();
        assert.equal(await page.evaluate(() => window.__pwned), undefined);
        assert.equal(await page.locator(".desk :is(img, script, iframe, a[href^='http'], a[href^='javascript'])").count(), 0);
        for (const viewport of [DESK, PHONE]) {
          await page.setViewportSize(viewport);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
          assert.ok(wide <= 0, `${name} at ${viewport.width} px needs no sideways scrolling: ${wide}`);
          await picture(page, `hostile-${index}-${name}-${viewport.width}`);
        }
        await page.setViewportSize(DESK);
        await clean(page, `hostile ${index} ${name}`);
      }
      await view.done(at.url);
    });
  }
}

test("s26 unseen characters are marked, a value that differs from its label is shown", async () => {
  const at = await place({ asks: [ask("a", { message: "Pay\u202eyaP", questions: [question("q", "single", "Which?", { choices: [choice("delete-all", null, null, "Keep everything")] })] })] });
  const view = await visit(browser);
  await enter(view.page, at.url, at.login, "/asks/a");
  await view.page.locator("#m").getByText("U+202E").waitFor();
  await view.page.getByText("sends delete-all").waitFor();
  await view.done(at.url);
});

test("s26 a megabyte of text is cut, counted, and can be read on", async () => {
  const text = `begin ${"lorem ".repeat(175_000)}end`;
  const at = await place({ asks: [ask("a", { message: `Head\n${text}`, questions: [question("q", "text", text.slice(0, 900_000))] })] });
  const view = await visit(browser);
  const { page } = view;
  await enter(page, at.url, at.login, "/asks/a");
  await page.getByRole("heading", { name: "Head" }).waitFor();
  const drawn = await page.evaluate(() => document.body.textContent.length);
  assert.ok(drawn < 20_000, `${drawn} characters drawn`);
  await page.getByText(/1,048,0\d\d more characters are hidden here/).first().waitFor();
  await page.getByRole("button", { name: /Show more of the 1,048,0\d\d hidden characters/ }).first().click();
  await page.getByText(/1,028,0\d\d more characters are hidden here/).first().waitFor();
  await clean(page, "a megabyte");
  await view.done(at.url);
});
