// Answering: every kind of question, what exactly is sent, drafts, keys, and what must not answer.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, choice, question, sampleAsks } from "../dev/samples.mjs";
import { enter, launch, shutDown, still, until, visit } from "./browser.mjs";
import { place } from "./place.mjs";

let browser;
before(async () => {
  browser = await launch();
});
after(() => shutDown(browser));

/** Runs `body` at an inbox with these asks, the stand-in unless it is given, and a page on the first one. */
async function on(asks, body, { path, gate = true, inbox } = {}) {
  const at = await (inbox ?? place({ asks }, { real: false }));
  const view = await visit(browser);
  await enter(view.page, at.url, at.login, path ?? `/asks/${asks[0].id}`);
  await view.page.locator('[data-phase="open"]').waitFor();
  if (gate) await still(view.page);
  await body(view.page, inbox === undefined ? at.mock : at, view);
  await view.done(at.url);
}

const answers = (mock, id = "a") => mock.sent(`/asks/${id}/answer`).map((call) => call.body);
const submitButton = (page) => page.getByRole("button", { name: /^Submit/ });
/** The control with that label, and not the button that clears it. */
const field = (page, label) => page.locator(".desk :is(input, textarea)").and(page.getByLabel(label));
const settled = (page) => page.locator('[data-phase="settled"]').waitFor();

test("every kind of question is answered with its own control", async () => {
  const kinds = sampleAsks().find((one) => one.id === "0192-kinds");
  await on([kinds], async (page, mock) => {
    await page.getByText("stable").click();
    await page.getByText("windows").click();
    await page.getByText("linux").click();
    await page.getByText("No", { exact: true }).click();
    await field(page, "How many jobs at once?").fill("8");
    await field(page, "Share of users that get it first?").fill("0.5");
    await field(page, "Release notes?").fill("two\nlines");
    await field(page, "Which day?").fill("2026-12-01");
    await field(page, "At what time?").fill("2026-12-01T14:30");
    await field(page, "Who is told?").fill("first@example.com");
    await field(page, "Where is it announced?").fill("https://example.com/news");
    await field(page, "Code name?").fill("heron");
    await field(page, "Key for the store").fill("hunter2");
    assert.equal(await field(page, "Key for the store").getAttribute("type"), "password");
    await page.getByText("12 of 12 answered.").waitFor();
    await submitButton(page).click();
    await settled(page);
    const text = (question_id, custom_text) => ({ question_id, selected_options: [], custom_text });
    const pick = (question_id, ...selected_options) => ({ question_id, selected_options, custom_text: "" });
    assert.deepEqual(answers(mock, "0192-kinds"), [
      {
        answers: [
          pick("channel", "stable"),
          pick("targets", "linux", "windows"),
          pick("sign", "false"),
          text("parallel", "8"),
          text("ratio", "0.5"),
          text("notes", "two\nlines"),
          text("day", "2026-12-01"),
          text("at", "2026-12-01T14:30:00+01:00"),
          text("mail", "first@example.com"),
          text("page", "https://example.com/news"),
          text("code", "heron"),
          text("apiKey", "hunter2"),
        ],
        rejected: false,
        reject_reason: "",
      },
    ]);
    // S33: nothing of the secret stays in the browser, and the card shows a dot.
    assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))).includes("hunter2"));
    await page.getByText("•", { exact: true }).waitFor();
  });
});

test("ac12b ac12h an ask that takes partial answers can be submitted empty, and with some", async () => {
  const form = () => ask("a", { questions: [question("one", "text", "One?"), question("two", "text", "Two?"), question("three", "text", "Three?")], message: "Three things" });
  await on([form()], async (page, mock) => {
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock), [{ answers: [], rejected: false, reject_reason: "" }]);
  });
  await on([form()], async (page, mock) => {
    await field(page, "Two?").fill("2");
    await page.getByText("1 of 3 answered; the rest is left out.").waitFor();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [{ question_id: "two", selected_options: [], custom_text: "2" }]);
    await page.getByText("One?, Three?").waitFor();
  });
});

test("ac12 ac55 two picks in any order are sent in declaration order", async () => {
  const multi = ask("a", { questions: [question("env", "multi", "Where?", { choices: [choice("dev"), choice("staging"), choice("prod")] })] });
  await on([multi], async (page, mock) => {
    await page.getByLabel("prod").check();
    await page.getByLabel("dev").check();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [{ question_id: "env", selected_options: ["dev", "prod"], custom_text: "" }]);
  });
});

test("ac56 without choices there is a text box alone, and it can be submitted", async () => {
  await on([ask("a", { message: "apiKey", questions: [question("apiKey", "text", "apiKey")] })], async (page, mock) => {
    assert.equal(await page.locator(".choices").count(), 0);
    await field(page, "apiKey").fill("T");
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [{ question_id: "apiKey", selected_options: [], custom_text: "T" }]);
  });
});

test("what is needed is said while it is empty, and only then that the rest is left out", async () => {
  const form = ask("a", { questions: [question("one", "text", "One?", { required: true }), question("two", "text", "Two?"), question("three", "text", "Three?")], message: "Three things" });
  await on([form], async (page) => {
    await field(page, "Two?").fill("2");
    await page.getByText("1 of 3 answered; 1 more needed.").waitFor();
    await field(page, "One?").fill("1");
    await page.getByText("2 of 3 answered; the rest is left out.").waitFor();
  });
});

test("f10 what the holder would refuse as missing is told beside its field, and is not sent", async () => {
  const filler = Array.from({ length: 12 }, (_, index) => question(`f${index}`, "text", `Filler ${index}?`));
  const form = ask("a", {
    message: "Some are needed",
    questions: [...filler, question("env", "multi", "Where?", { required: true, choices: [choice("dev"), choice("prod")] }), question("pool", "integer", "Pool size?", { required: true, default: 16 })],
  });
  await on([form], async (page, mock) => {
    const told = (id) => page.locator(`[data-q="${id}"] .hint.bad`, { hasText: "This must be answered." });
    await page.getByText("0 of 14 answered; 2 more needed.").waitFor();
    assert.equal(await page.locator(".hint.bad").count(), 0, "nothing is said before it was tried");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Answer what is needed first.").waitFor();
    await told("env").waitFor();
    await page.waitForFunction(() => document.activeElement?.closest("[data-q]")?.getAttribute("data-q") === "env");
    // What the asking side has filled in counts once it was on the screen.
    await told("pool").waitFor({ state: "detached" });
    await page.getByLabel("prod").check();
    await page.getByText("2 of 14 answered; the rest is left out.").waitFor({ state: "attached" });
    await told("env").waitFor({ state: "detached" });
    await page.getByLabel("prod").uncheck();
    await told("env").waitFor();
    assert.equal(answers(mock).length, 0);
    await page.getByLabel("dev").check();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [
      { question_id: "env", selected_options: ["dev"], custom_text: "" },
      { question_id: "pool", selected_options: [], custom_text: "16" },
    ]);
  });
});

test("ac12i free text stands beside a pick of an elicitation", async () => {
  const both = ask("a", { questions: [question("db", "single", "Which?", { allows_text: true, companion: "replaces", choices: [choice("Postgres"), choice("SQLite")] })] });
  await on([both], async (page, mock) => {
    await page.getByLabel("Postgres").check();
    await page.getByLabel("in your own words").fill("17");
    assert.ok(await page.getByLabel("Postgres").isChecked());
    await page.getByText("Where the agent keeps only one, your words win.").waitFor();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [{ question_id: "db", selected_options: ["Postgres"], custom_text: "17" }]);
  });
});

test("ac57 for a tool's ask a pick and words exclude each other, all are needed, and Skip stays", async () => {
  const tool = () =>
    ask("a", {
      source: "tool",
      allows_text_with_selection: false,
      allows_partial: false,
      message: "Two things",
      questions: [
        question("db", "single", "Which?", { allows_text: true, choices: [choice("Postgres"), choice("SQLite")] }),
        question("os", "single", "Where?", { choices: [choice("linux"), choice("mac")] }),
      ],
    });
  await on([tool()], async (page, mock) => {
    await page.getByLabel("Postgres").check();
    await page.getByLabel("in your own words").fill("CockroachDB");
    assert.ok(!(await page.getByLabel("Postgres").isChecked()), "words clear the pick");
    await page.getByLabel("SQLite").check();
    assert.equal(await page.getByLabel("in your own words").inputValue(), "", "a pick clears the words");
    await submitButton(page).click({ force: true });
    await page.getByText("Answer every question first.").waitFor();
    assert.equal(answers(mock).length, 0);
    await page.waitForFunction(() => document.activeElement?.closest("[data-q]")?.getAttribute("data-q") === "os");
    await page.getByLabel("mac").check();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [
      { question_id: "db", selected_options: ["SQLite"], custom_text: "" },
      { question_id: "os", selected_options: ["mac"], custom_text: "" },
    ]);
  });
  await on([tool()], async (page, mock) => {
    await page.getByRole("button", { name: "Skip", exact: true }).click();
    await page.getByRole("button", { name: "Skip it" }).click();
    await settled(page);
    assert.deepEqual(answers(mock), [{ answers: [], rejected: true, reject_reason: "" }]);
  });
});

test("a default far down the card is sent only once it was on the screen", async () => {
  const filler = Array.from({ length: 12 }, (_, index) => question(`f${index}`, "text", `Filler ${index}?`));
  const form = () => ask("a", { message: "Long", questions: [...filler, question("pool", "integer", "Pool size?", { default: 16 })] });
  await on([form()], async (page, mock) => {
    await page.getByText("0 of 13 answered").waitFor();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, []);
  });
  await on([form()], async (page, mock) => {
    await field(page, "Pool size?").scrollIntoViewIfNeeded();
    await page.getByText("1 of 13 answered").waitFor();
    await still(page);
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [{ question_id: "pool", selected_options: [], custom_text: "16" }]);
  });
});

test("a draft survives a reload, another ask, and an event for its own ask; never a secret", async () => {
  const form = ask("a", { message: "Form", questions: [question("note", "text", "Note?"), question("pw", "text", "Password?", { secret: true }), question("db", "single", "Which?", { choices: [choice("Postgres"), choice("SQLite")] })] });
  await on([form], async (page, at) => {
    await field(page, "Note?").fill("half a thought");
    await page.getByLabel("SQLite").check();
    await field(page, "Password?").fill("hunter2");
    await page.getByText("Draft saved").waitFor();
    await at.open(ask("b", { message: "Another one" }));
    await page.getByText("Another one").waitFor();
    await at.connected("a", false);
    await page.locator('[data-notice="disconnected"]').waitFor();
    await at.connected("a", true);
    await page.locator('[data-ask="a"]:not([data-notice])').waitFor();
    assert.equal(await field(page, "Note?").inputValue(), "half a thought");
    await page.reload();
    await page.locator('[data-ask="a"]').waitFor();
    assert.equal(await field(page, "Note?").inputValue(), "half a thought");
    assert.ok(await page.getByLabel("SQLite").isChecked());
    assert.equal(await field(page, "Password?").inputValue(), "");
    await page.getByText("draft", { exact: false }).first().waitFor();
    await still(page);
    await submitButton(page).click();
    await settled(page);
    assert.equal(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("handraise.draft")).length), 0);
  }, { inbox: place({ asks: [form] }) });
});

test("the keyboard alone: find, move, open, choose, write, submit, skip", async () => {
  const asks = [
    ask("a", { message: "First question", questions: [question("db", "single", "Which?", { choices: [choice("Postgres"), choice("SQLite")] }), question("n", "text", "Note?")] }),
    ask("b", { message: "Second question" }),
  ];
  await on(asks, async (page, mock) => {
    await page.keyboard.press("u");
    await page.getByText("Choose an ask on the left").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("second");
    await page.keyboard.press("Escape");
    await page.locator('[data-row="a"]').waitFor({ state: "detached" });
    await page.keyboard.press("/");
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Escape");
    await page.locator('[data-row="a"]').waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("k");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("data-row")), "a");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "First question" }).waitFor();
    await page.waitForFunction(() => document.activeElement?.id === "m");
    await still(page);
    await page.keyboard.press("2");
    assert.ok(await page.getByLabel("SQLite").isChecked());
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.waitForFunction(() => document.activeElement?.tagName === "TEXTAREA");
    await page.keyboard.type("12 sss");
    assert.ok(await page.getByLabel("SQLite").isChecked(), "digits and letters do nothing in a field");
    await page.keyboard.press("Control+Enter");
    await settled(page);
    assert.deepEqual(answers(mock)[0].answers, [
      { question_id: "db", selected_options: ["SQLite"], custom_text: "" },
      { question_id: "n", selected_options: [], custom_text: "12 sss" },
    ]);
    // The focus stays on this card, never in another one.
    assert.equal(await page.evaluate(() => document.activeElement?.closest("[data-ask]")?.getAttribute("data-ask")), "a");
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Second question" }).waitFor();
    await still(page);
    await page.keyboard.press("s");
    await page.getByLabel("Why?").waitFor();
    await page.keyboard.type("not now");
    await page.keyboard.press("Escape");
    await page.getByLabel("Why?").waitFor({ state: "detached" });
    assert.equal(answers(mock, "b").length, 0, "Escape never skips");
    await page.keyboard.press("s");
    await page.waitForFunction(() => document.activeElement?.tagName === "INPUT");
    await page.keyboard.type("later");
    await still(page);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.deepEqual(answers(mock, "b"), [{ answers: [], rejected: true, reject_reason: "later" }]);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
});

test("s40 clicks and keys in the first 350 ms, and runs begun before, answer nothing", async () => {
  const at = await place({ asks: [ask("a", { questions: [question("db", "single", "Which?", { choices: [choice("Postgres"), choice("SQLite")] })] })] });
  const view = await visit(browser);
  const { page } = view;
  await page.clock.install();
  await enter(page, at.url, at.login, "/asks/a");
  await page.locator('[data-phase="open"]').waitFor();
  await page.clock.pauseAt(Date.now() + 2_000);
  // The card changes now; from here on, time stands still.
  await at.connected("a", false);
  await page.locator('[data-notice="disconnected"]').waitFor();
  await at.connected("a", true);
  await page.locator('[data-ask="a"]:not([data-notice])').waitFor();
  await submitButton(page).click();
  await page.getByText("Nothing was sent.").waitFor();
  await page.getByText("Postgres").click();
  assert.ok(!(await page.getByLabel("Postgres").isChecked()));
  await page.locator("#m").focus();
  // A run of keys that begins early and goes on past the 350 ms.
  for (let press = 0; press < 4; press += 1) {
    await page.keyboard.press("Control+Enter");
    await page.clock.runFor(200);
  }
  await page.keyboard.press("1");
  assert.ok(!(await page.getByLabel("Postgres").isChecked()));
  assert.equal(at.answers("a").length, 0);
  // After a pause it is a new run.
  await page.clock.runFor(400);
  await page.keyboard.press("1");
  assert.ok(await page.getByLabel("Postgres").isChecked());
  await page.keyboard.down("Control");
  await page.keyboard.press("Enter");
  await page.keyboard.up("Control");
  await page.clock.runFor(1_000);
  await settled(page);
  assert.equal(at.answers("a").length, 1);
  await view.done(at.url);
});

test("s40 a permission needs a choice made on its card; a confirm has no shortcut", async () => {
  const samples = sampleAsks();
  await on([samples.find((one) => one.id === "0192-permission")], async (page, mock) => {
    await page.keyboard.press("Control+Enter");
    await page.getByText("Choose one first.").waitFor();
    await page.getByText("No, tell Codex what to do").click();
    await page.reload();
    await page.locator('[data-phase="open"]').waitFor();
    assert.equal(await page.locator("input:checked").count(), 0, "nothing is remembered for a permission");
    await still(page);
    await page.getByText("No, tell Codex what to do").click();
    await submitButton(page).click();
    await settled(page);
    assert.deepEqual(answers(mock, "0192-permission")[0].answers, [{ question_id: "permission", selected_options: ["abort"], custom_text: "" }]);
  });
  await on([samples.find((one) => one.id === "0192-confirm")], async (page, mock) => {
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("1");
    await page.keyboard.press("s");
    await page.getByRole("button", { name: "Send e-mail", exact: true }).focus();
    assert.equal(answers(mock, "0192-confirm").length, 0);
    assert.equal(await page.getByLabel("Why?").count(), 0);
    await still(page);
    await page.keyboard.press("Enter");
    await settled(page);
    assert.deepEqual(answers(mock, "0192-confirm")[0].answers, [{ question_id: "confirm", selected_options: ["true"], custom_text: "" }]);
  });
});

test("s26 a guarded call is not accepted before all of it was shown, and the server's words for it are marked", async () => {
  const sample = sampleAsks().find((one) => one.id === "0192-confirm");
  const lines = Array.from({ length: 400 }, (_, n) => `"key${n}":"value"`).join("\n");
  const long = { ...sample, confirm: { ...sample.confirm, arguments: lines, preview: "214 recipients" } };
  await on([long], async (page, mock) => {
    await page.getByText("What it would do, in the server’s own words", { exact: true }).waitFor();
    await still(page);
    await page.getByRole("button", { name: "Send e-mail", exact: true }).click();
    await page.getByText("Show all of the call first.").waitFor();
    assert.equal(answers(mock, "0192-confirm").length, 0);
    await page.getByRole("button", { name: /Show the other/ }).click();
    await still(page);
    await page.getByRole("button", { name: "Send e-mail", exact: true }).click();
    await settled(page);
    assert.equal(answers(mock, "0192-confirm").length, 1);
  });
});

test("an answer to a parked ask is said to wait for the next call", async () => {
  const sample = sampleAsks().find((one) => one.id === "0192-device");
  const until = new Date(Date.now() + 12.5 * 60_000).toISOString();
  await on([{ ...sample, parked_until: until, deadline: until }], async (page, mock) => {
    await page.getByText("emulator-5554").click();
    await page.getByRole("button", { name: "Keep my answer", exact: true }).click();
    await page.getByText("The next identical call uses it once, unasked.").waitFor();
    assert.equal(answers(mock, "0192-device").length, 1);
  });
});

test("keys of an input method submit nothing", async () => {
  await on([ask("a", { questions: [question("n", "text", "Note?")], message: "Form" })], async (page, mock) => {
    await field(page, "Note?").focus();
    await page.evaluate(() => {
      const field = document.activeElement;
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, isComposing: true }));
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, keyCode: 229 }));
    });
    await still(page);
    await page.keyboard.press("Control+Enter");
    await settled(page);
    assert.equal(answers(mock).length, 1);
  });
});

test("s15 the painted digest is reported once, and an answer waits for the report", async () => {
  await on(
    [ask("a", { questions: [question("n", "text", "Note?")], message: "Form" }), ask("b")],
    async (page, mock) => {
      let letSeen;
      mock.seenGate = new Promise((resolve) => (letSeen = resolve));
      await page.getByRole("link", { name: /Which database/ }).click();
      await until(() => mock.sent("/asks/b/seen").length === 1, "b was reported");
      assert.deepEqual(mock.sent("/asks/b/seen")[0].body, { digest: mock.asks.get("b").digest });
      await still(page);
      await submitButton(page).click();
      await page.locator('[data-ask="b"]').waitFor();
      await still(page);
      assert.equal(answers(mock, "b").length, 0, "the answer does not overtake the report");
      const from = Date.now();
      letSeen();
      await settled(page);
      assert.ok(mock.sent("/asks/b/answer")[0].at - from >= 350, "and comes 350 ms after it");
      assert.equal(mock.sent("/asks/b/seen").length, 1);
      assert.equal(mock.sent("/asks/a/seen").length, 1, "a row in the list is not a painted card");
    },
  );
});

test("a link is opened only by its button, and answered by it", async () => {
  const link = sampleAsks().find((one) => one.id === "0192-link");
  await on([{ ...link, url: "http://127.0.0.1:9/never?x=1" }], async (page, mock, view) => {
    assert.ok(!view.requests.some((url) => url.includes("/never")), "nothing is fetched");
    assert.equal(await page.locator('.desk a[href*="never"]').count(), 0, "and nothing links there");
    await page.evaluate(() => {
      window.__opened = [];
      window.open = (...all) => window.__opened.push(all);
    });
    await page.getByRole("button", { name: "Open 127.0.0.1:9" }).click();
    await settled(page);
    assert.deepEqual(await page.evaluate(() => window.__opened), [["http://127.0.0.1:9/never?x=1", "_blank", "noopener,noreferrer"]]);
    assert.deepEqual(answers(mock, "0192-link"), [{ answers: [], rejected: false, reject_reason: "" }]);
  });
});
