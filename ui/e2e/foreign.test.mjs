// A page on another port of this machine, against the real inbox with somebody signed in beside it: it reads nothing, frames
// nothing, sends nothing that counts, and not even the sign-in secret in its hands is of use to it (S1, S11, S41).
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { launch, signIn, until, visit } from "./browser.mjs";
import { BINARY, Inbox } from "./inbox.mjs";

const skip = BINARY === undefined ? "HANDRAISE_BIN names no binary; `cargo xtask test` sets it" : false;
let browser;
let inbox;
let hostile;
let operator;
let ask;

before(async () => {
  if (skip !== false) return;
  browser = await launch();
  inbox = await new Inbox().up();
  inbox.agent("single");
  operator = await inbox.token("operator", "checker");
  await until(async () => (ask = (await inbox.call(operator, "GET", "/asks")).body.asks[0]) !== undefined, "an ask is open");
  hostile = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/html", "set-cookie": "handraise=evil; Path=/" });
    response.end("<!doctype html><title>Elsewhere</title><body>");
  });
  await new Promise((resolve) => hostile.listen(0, "127.0.0.1", resolve));
});
after(async () => {
  await browser?.close();
  hostile?.close();
  await inbox?.end();
});

const answer = { answers: [{ question_id: "question_0", selected_options: ["Postgres"], custom_text: "" }] };

/** Somebody signed in on one page, and the foreign page in another of the same browser. */
async function beside(host) {
  const view = await visit(browser);
  await signIn(view.page, inbox, { name: "Desk one" });
  const own = await view.page.evaluate(() => localStorage.getItem("handraise.login"));
  const foreign = await view.context.newPage();
  await foreign.goto(`http://${host}:${hostile.address().port}/`);
  return { view, foreign, token: JSON.parse(own).token };
}

/** What came of it all: nothing. */
async function untouched() {
  const { body } = await inbox.call(operator, "GET", `/asks/${ask.id}`);
  assert.equal(body.state, "open");
  assert.deepEqual(body.events.filter((event) => event.kind !== "opened"), [], "nobody has seen or answered it");
}

/** Both names of this machine: to a browser they are two hosts, and a port makes no other one of either. */
const HOSTS = ["127.0.0.1", "localhost"];
const each = async (check) => {
  for (const host of HOSTS) await check(host);
};

test("s1 a page on another port reads nothing of the inbox", { skip }, () => each(async (host) => {
  const { view, foreign, token } = await beside(host);
  const got = await foreign.evaluate(
    async ({ url, token, path }) => {
      const got = {};
      const attempt = async (name, run) => {
        got[name] = await Promise.race([run().catch((error) => error.name), new Promise((resolve) => setTimeout(() => resolve("nothing"), 5_000))]);
      };
      const read = (init) => async () => {
        const response = await fetch(`${url}${path}`, init);
        return `${response.type} ${response.status} ${await response.text()}`;
      };
      const loads = (tag, source) => () =>
        new Promise((resolve) => {
          const element = Object.assign(document.createElement(tag), { onload: () => resolve("loaded"), onerror: () => resolve("refused") });
          element[tag === "link" ? "href" : "src"] = `${url}${source}`;
          if (tag === "link") element.rel = "stylesheet";
          document.body.append(element);
        });
      await attempt("fetch", read({}));
      await attempt("fetch with cookies", read({ credentials: "include" }));
      await attempt("fetch with the token itself", read({ headers: { authorization: `Bearer ${token}` } }));
      await attempt("fetch without cors", read({ mode: "no-cors", credentials: "include" }));
      await attempt("script", loads("script", path));
      await attempt("style sheet", loads("link", "/"));
      await attempt("image", loads("img", "/icons/icon.svg"));
      await attempt("events", () => new Promise((resolve) => {
        const source = new EventSource(`${url}/api/v1/events`, { withCredentials: true });
        Object.assign(source, { onmessage: () => resolve("a message"), onopen: () => resolve("open"), onerror: () => resolve("refused") });
      }));
      await attempt("socket", () => new Promise((resolve) => {
        const socket = new WebSocket(`${url.replace("http", "ws")}/api/v1/holder`);
        Object.assign(socket, { onopen: () => resolve("open"), onerror: () => resolve("refused") });
      }));
      got["storage"] = localStorage.length;
      return got;
    },
    { url: inbox.url, token, path: "/api/v1/asks" },
  );
  assert.deepEqual(got, {
    fetch: "TypeError",
    "fetch with cookies": "TypeError",
    "fetch with the token itself": "TypeError",
    // The resource policy stops even the opaque response.
    "fetch without cors": "TypeError",
    script: "refused",
    "style sheet": "refused",
    image: "refused",
    events: "refused",
    socket: "refused",
    storage: 0,
  });
  // The inbox sets no cookie; the one that the other port has set for this name opens nothing and breaks nothing.
  const cookies = await view.context.cookies();
  assert.deepEqual([...new Set(cookies.map((cookie) => cookie.value))], ["evil"]);
  await view.page.reload();
  await view.page.locator(".live").getByText("Live · Desk one").waitFor();
  await untouched();
  await view.done(inbox.url);
}));

test("s41 a page on another port frames nothing and keeps no hold of a window", { skip }, () => each(async (host) => {
  const { view, foreign } = await beside(host);
  await foreign.evaluate((url) => {
    for (const tag of ["iframe", "object", "embed"]) {
      const element = document.createElement(tag);
      element[tag === "object" ? "data" : "src"] = url;
      document.body.append(element);
    }
  }, `${inbox.url}/`);
  await until(() => foreign.frames().length > 1 && foreign.frames().every((frame) => frame.url() !== ""), "the frames have been tried");
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (const frame of foreign.frames().slice(1)) {
    assert.ok(!frame.url().startsWith(inbox.url), frame.url());
    assert.doesNotMatch(await frame.content(), /handraise|sign in/i);
  }
  // A window of the inbox that it opens is cut off from it at once.
  const opened = view.context.waitForEvent("page");
  await foreign.evaluate((url) => void (window.held = window.open(url)), `${inbox.url}/`);
  const popup = await opened;
  await popup.waitForLoadState();
  assert.equal(new URL(popup.url()).origin, inbox.url);
  assert.equal(await popup.evaluate(() => window.opener), null);
  assert.equal(await foreign.evaluate(() => window.held.closed), true);
  await untouched();
  await view.context.close();
}));

test("s1 s11 a page on another port sends nothing that counts", { skip }, () => each(async (host) => {
  const { view, foreign, token } = await beside(host);
  const secret = new URL(inbox.link).hash.replace("#sign-in=", "");
  const sent = [];
  foreign.on("response", (response) => {
    if (response.url().startsWith(`${inbox.url}/api/`)) sent.push(response.status());
  });
  await foreign.evaluate(
    async ({ url, id, answer, secret, token }) => {
      const bodies = [
        [`/api/v1/asks/${id}/answer`, answer],
        [`/api/v1/asks/${id}/seen`, { digest: "x" }],
        ["/api/v1/login", { secret }],
        ["/api/v1/logout", {}],
      ];
      for (const [path, body] of bodies) {
        const text = JSON.stringify(body);
        await fetch(`${url}${path}`, { method: "POST", mode: "no-cors", credentials: "include", body: text }).catch(() => {});
        await fetch(`${url}${path}`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: text }).catch(() => {});
        navigator.sendBeacon(`${url}${path}`, new Blob([text], { type: "text/plain" }));
        // A form whose one field makes the body JSON.
        const frame = Object.assign(document.createElement("iframe"), { name: `into${path}` });
        const form = Object.assign(document.createElement("form"), { method: "POST", enctype: "text/plain", action: `${url}${path}`, target: frame.name });
        const field = Object.assign(document.createElement("input"), { name: `${text.slice(0, -1)},"x":"`, value: '"}' });
        form.append(field);
        document.body.append(frame, form);
        const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
        form.submit();
        await Promise.race([loaded, new Promise((resolve) => setTimeout(resolve, 2_000))]);
      }
    },
    { url: inbox.url, id: ask.id, answer, secret, token },
  );
  await until(() => sent.length >= 4, "they have arrived");
  assert.deepEqual(sent.filter((status) => status !== 403), [], "each is refused");
  await untouched();
  // The page beside it is still signed in, and the secret is still good: nothing has used it.
  assert.equal((await inbox.call(token, "GET", "/asks")).status, 200);
  await view.context.close();
}));

test("s11 after all that the link signs in, once", { skip }, async () => {
  const secret = new URL(inbox.link).hash.replace("#sign-in=", "");
  assert.equal((await inbox.call("", "POST", "/login", { secret })).status, 200);
  assert.equal((await inbox.call("", "POST", "/login", { secret })).status, 401);
});
