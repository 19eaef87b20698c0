// The page against the real inbox with holders that a test scripts: what comes, goes, is lost, and is answered together.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, choice, origin, question, sampleAsks } from "../dev/samples.mjs";
import { clean, launch, picture, press, signIn, still, until, visit } from "./browser.mjs";
import { Holder, mint, REFUSED } from "./holder.mjs";
import { BINARY, Inbox } from "./inbox.mjs";
import { Relay } from "./relay.mjs";

const skip = BINARY === undefined ? "HANDRAISE_BIN names no binary; `cargo xtask test` sets it" : false;
let browser;
let inbox;
before(async () => {
  if (skip !== false) return;
  browser = await launch();
  inbox = await new Inbox((dir) => `[[agent]]\nid = "scripted"\ncommand = [${JSON.stringify(BINARY)}, "fake-agent"]\ncwd = ${JSON.stringify(dir)}\n`).up();
});
after(async () => {
  await browser?.close();
  await inbox?.end();
});

/** The count in the title and in the icon. */
async function titled(page, title) {
  await until(async () => (await page.title()) === title, `the title is ${title}`);
  const count = /^\((\d+)\)/.exec(title)?.[1] ?? 0;
  assert.equal(await page.locator('link[rel="icon"]').getAttribute("href"), `/icons/count-${Math.min(10, count)}.svg`);
}

/** A holder of its own, and a signed-in page, for one test. */
async function on(body, { scope = "operator", name = "Desk one", at = inbox } = {}) {
  const holder = await new Holder(inbox, { token: await inbox.token("holder", "laptop") }).attach();
  const view = await visit(browser);
  await signIn(view.page, Object.assign(Object.create(inbox), { url: at.url }), { scope, name });
  try {
    await body(view.page, holder);
    await view.done(at.url);
  } finally {
    // What is left would be in the next test's list.
    for (const id of [...holder.open.keys()]) await holder.settles(id, "cancel").catch(() => undefined);
    await view.context.close();
    holder.cut();
  }
}

const permission = (message) => {
  const sample = sampleAsks().find((one) => one.id === "0192-permission");
  return { ...sample, id: mint(), session_id: null, message, questions: sample.questions.map((one) => ({ ...one, prompt: message })) };
};

test("f9 one announcement and one count for an ask, none of it again when its holder comes back", { skip }, async () => {
  await on(async (page, holder) => {
    const said = [];
    await page.exposeFunction("__say", (text) => {
      if (said.at(-1) !== text) said.push(text);
    });
    await page.evaluate(() => {
      const watch = new MutationObserver(() => {
        for (const one of document.querySelectorAll('[role="status"]')) if (one.textContent.includes("1 new ask from")) window.__say(one.textContent);
      });
      watch.observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    // So that the list, and not the empty page, is what hears of the next one.
    const first = await holder.opens(ask(mint(), { message: "First" }));
    await page.locator(`[data-row="${first}"]`).waitFor();
    const id = await holder.opens(ask(mint(), { message: "Second", origin: origin({ client: { name: "codex-acp", version: null } }) }));
    await page.locator(`[data-row="${id}"]`).waitFor();
    await until(() => said.length === 2, "both were announced");
    await titled(page, "(2) Inbox · handraise");
    const row = page.locator(`[data-row="${id}"]`);
    for (let time = 0; time < 2; time += 1) {
      holder.cut();
      await row.getByText("not connected").waitFor();
      await holder.attach();
      await row.getByText("not connected").waitFor({ state: "detached" });
    }
    await titled(page, "(2) Inbox · handraise");
    assert.deepEqual(said, ["1 new ask from claude-agent-acp", "1 new ask from codex-acp"]);
    await holder.settles(id, "timeout");
    await row.waitFor({ state: "detached" });
    await titled(page, "(1) Inbox · handraise");
    // A settled ask that is still shown is not counted any more.
    await page.locator(`[data-row="${first}"]`).click();
    await page.getByRole("button", { name: "Agents 1" }).waitFor();
    await holder.settles(first, "timeout");
    await page.locator('[data-phase="settled"]').waitFor();
    await page.getByRole("button", { name: /^Agents/ }).waitFor({ state: "detached" });
  });
});

test("s44 what is marked with x is answered together: none while one is amiss, then all, as a human's", { skip }, async () => {
  await on(async (page, holder) => {
    const [one, two] = [await holder.opens(permission("Restart the queue?")), await holder.opens(permission("Restart the cache?"))];
    const form = await holder.opens(ask(mint(), { message: "A form" }));
    await page.locator(`[data-row="${form}"]`).waitFor();
    for (const id of [one, two, form]) {
      await page.locator(`[data-row="${id}"]`).focus();
      await page.keyboard.press("x");
    }
    await page.locator(`[data-row="${two}"]`).getByText("marked").waitFor();
    assert.equal(await page.getByText(/ marked · /).count(), 2, "a form cannot be answered together");
    const together = page.getByRole("link", { name: "2 marked: answer together" });
    await page.keyboard.press("x");
    await together.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Answer together" }).waitFor();
    const send = page.getByRole("button", { name: "Answer 2 together, all or none" });
    await send.waitFor();
    await clean(page, "answer together");
    await picture(page, "together-1280-light");
    await still(page);
    const choose = async (id, label) => {
      const option = page.locator(`[data-ask="${id}"]`).getByRole("radio", { name: label });
      await option.scrollIntoViewIfNeeded();
      await still(page);
      await option.check();
    };
    await choose(one, "Yes, proceed");
    await still(page);
    await send.click();
    await page.getByText("Answer every question first.").waitFor();
    assert.equal(holder.heard.length, 0, "each needs a choice of its own");
    await choose(two, "Yes, proceed");
    holder.verdict = () => REFUSED("INVALID", "a batch takes single-use options only (S44)", [{ question_id: "permission", rule: "batch", message: "no" }]);
    await still(page);
    await send.click();
    await page.getByText("None was answered.").waitFor();
    for (const id of [one, two]) await page.locator(`[data-ask="${id}"][data-phase="open"]`).waitFor();
    holder.verdict = () => undefined;
    await still(page);
    await send.click();
    for (const id of [one, two]) await page.locator(`[data-ask="${id}"]`).getByText("You answered, the agent has it").waitFor();
    assert.deepEqual(holder.heard.map((frame) => frame.action), ["asks.respond_batch", "asks.respond_batch"], "one frame each time");
    const token = await inbox.token("viewer", "reader");
    for (const id of [one, two]) assert.equal((await inbox.call(token, "GET", `/asks/${id}`)).body.settlement.provenance, "human");
    await page.keyboard.press("u");
    await page.getByText("Choose an ask on the left").waitFor();
  });
});

test("ac09 work in the background has a sign of its own, and an open ask before all others", { skip }, async () => {
  await on(
    async (page, holder) => {
      const session = mint();
      const sign = (name) => page.locator(`[data-row="${session}"]`).getByTestId(`task-state-${name}`);
      holder.session(session, { title: "Nightly build", state: "running" });
      await page.getByRole("link", { name: "Sessions" }).click();
      await sign("running").waitFor();
      holder.session(session, { title: "Nightly build", state: "idle", stop_reason: "end_turn", background: true });
      await sign("background-running").waitFor();
      assert.equal(await sign("running").count(), 0);
      await page.getByText("goes on in the background").waitFor();
      await clean(page, "work in the background");
      await picture(page, "session-background-1280-light");
      const id = await holder.opens(ask(mint(), { session_id: session }));
      await sign("waiting-for-input").waitFor();
      assert.equal((await sign("running").count()) + (await sign("background-running").count()), 0);
      await holder.settles(id, "cancel");
      await sign("background-running").waitFor();
      holder.session(session, { title: "Nightly build", state: "ended" });
      await sign("background-running").waitFor({ state: "detached" });
    },
    { scope: "admin" },
  );
});

test("a cut event stream goes on after the last event, without a gap or a double; what was missed for too long is replaced", { skip }, async () => {
  const relay = await new Relay(inbox.port).start();
  try {
    await on(
      async (page, holder) => {
        const session = mint();
        holder.session(session, { title: "Long talk" });
        await holder.says(session, 0, "agent_text", "one ");
        const streams = [];
        page.on("request", (request) => {
          if (request.url().endsWith("/api/v1/events")) streams.push(request.headers()["last-event-id"]);
        });
        await page.goto(`${relay.url}/sessions/${session}`);
        await page.getByText("one", { exact: true }).waitFor();
        await holder.says(session, 1, "agent_text", "two ", { continues: true });
        await page.getByText("one two", { exact: true }).waitFor();
        for (const [seq, words] of [[2, "three "], [3, "four "]]) {
          relay.cut();
          await page.locator(".live").getByText("Lost the inbox").waitFor();
          await holder.says(session, seq, "agent_text", words, { continues: true });
          relay.mend();
          await page.locator(".live").getByText("Live · Desk one").waitFor();
        }
        await page.getByText("one two three four", { exact: true }).waitFor();
        assert.equal(streams[0], undefined);
        const resumed = streams.slice(1).map(Number);
        assert.ok(resumed.length >= 2 && resumed.every((id) => id > 0), `resumed after ${resumed}`);

        // A new life of the inbox keeps no events: a snapshot takes the place of everything.
        await page.goto(`${relay.url}/`);
        const gone = await holder.opens(ask(mint(), { message: "Here before" }));
        const stays = await holder.opens(ask(mint(), { message: "Here before and after" }));
        await page.locator(`[data-row="${stays}"]`).waitFor();
        relay.cut();
        await inbox.down("SIGKILL");
        holder.open.delete(gone);
        holder.ended.set(gone, holder.ending(gone, "timeout"));
        await inbox.up();
        await holder.attach();
        const late = await holder.opens(ask(mint(), { message: "Came meanwhile" }));
        relay.mend();
        await page.locator(`[data-row="${late}"]`).waitFor();
        await page.locator(`[data-row="${gone}"]`).waitFor({ state: "detached" });
        assert.equal(await page.locator(`[data-row="${stays}"]`).count(), 1);
        await titled(page, "(2) Inbox · handraise");
      },
      { at: relay },
    );
  } finally {
    await relay.stop();
  }
});

test("a session is started with an agent that the configuration names, asks, and ends its turn", { skip }, async () => {
  await on(
    async (page) => {
      await page.getByRole("link", { name: "Sessions" }).click();
      await page.getByRole("button", { name: "New session" }).click();
      const agent = page.getByLabel("Agent", { exact: true });
      await agent.waitFor();
      assert.deepEqual(await agent.locator("option").allTextContents(), ["scripted"]);
      await page.getByLabel("First message (optional)").fill("single");
      await clean(page, "a real start");
      await page.getByRole("button", { name: "Start", exact: true }).click();
      await page.locator('.log [data-phase="open"]').waitFor();
      // What the agent said before it asked stands before the question, and does not push it away later.
      assert.match(await page.locator(".log").innerText(), /I need a decision\.[^]*Which database/);
      await press(page, page.getByText("SQLite", { exact: true }).first());
      await press(page, page.getByRole("button", { name: /^Submit/ }));
      await page.getByText("You answered, the agent has it").waitFor();
      await page.getByText("The turn ended.").waitFor();
      await page.getByLabel(/^Message to/).fill("single");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.locator('.log [data-phase="open"]').waitFor();
      await page.getByRole("button", { name: "Cancel turn" }).click();
      await page.getByText("No longer needed").waitFor();
    },
    { scope: "admin" },
  );
});

test("ac57 a tool's ask keeps its rules through the real inbox", { skip }, async () => {
  await on(async (page, holder) => {
    const options = [choice("Postgres"), choice("SQLite")];
    const id = await holder.opens(
      ask(mint(), {
        source: "tool",
        message: "Two things",
        allows_text_with_selection: false,
        allows_partial: false,
        questions: [question("db", "single", "Which?", { allows_text: true, choices: options }), question("os", "single", "Where?", { choices: [choice("linux"), choice("mac")] })],
      }),
    );
    await page.locator(`[data-row="${id}"]`).click();
    await page.locator('[data-phase="open"]').waitFor();
    await still(page);
    await page.getByLabel("Postgres").check();
    await page.getByLabel("in your own words").fill("CockroachDB");
    assert.ok(!(await page.getByLabel("Postgres").isChecked()), "words clear the pick");
    await page.getByRole("button", { name: /^Submit/ }).click({ force: true });
    await page.getByText("Answer every question first.").waitFor();
    assert.equal(holder.heard.length, 0);
    await page.getByLabel("mac").check();
    await press(page, page.getByRole("button", { name: /^Submit/ }));
    await page.getByText("You answered, the agent has it").waitFor();
    assert.deepEqual(holder.heard[0].payload.answers, [
      { question_id: "db", selected_options: [], custom_text: "CockroachDB" },
      { question_id: "os", selected_options: ["mac"], custom_text: "" },
    ]);
    assert.equal(holder.heard[0].payload.provenance, "human");
  });
});
