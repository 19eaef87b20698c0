// The real inbox and real agents for a test: `handraise up` in a throw-away data directory.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { until } from "./browser.mjs";

export const BINARY = process.env.HANDRAISE_BIN;

/** Only what a program needs; nothing of the caller's own handraise. */
function environment() {
  const { PATH, HOME, LANG, TMPDIR } = process.env;
  return { PATH, HOME, LANG, TMPDIR };
}

function start(args) {
  const child = spawn(BINARY, args, { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
  const run = { child, out: "", err: "", ended: new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal))) };
  child.stdout.on("data", (text) => (run.out += text));
  child.stderr.on("data", (text) => (run.err += text));
  return run;
}

export class Inbox {
  /** `config` makes the text of its config file from its directory. */
  constructor(config) {
    this.dir = mkdtempSync(join(tmpdir(), "handraise-page-"));
    if (config !== undefined) {
      this.config = join(this.dir, "handraise.toml");
      writeFileSync(this.config, config(this.dir), { mode: 0o600 });
    }
    this.agents = [];
  }

  /** Starts it, on a port of its own or again on the same one. */
  async up() {
    this.run = start(["up", "--listen", `127.0.0.1:${this.port ?? 0}`, "--data-dir", this.dir, "--no-open", ...(this.config === undefined ? [] : ["--config", this.config])]);
    await until(() => /http:\S+#\S+/.test(this.run.out) || this.run.child.exitCode !== null, "the inbox is up");
    const link = /http:\S+#\S+/.exec(this.run.out)?.[0];
    assert.ok(link !== undefined, `no sign-in link: ${this.run.err}`);
    this.link = link;
    this.url = new URL(link).origin;
    this.port = new URL(link).port;
    return this;
  }

  agent(prompt, ...rest) {
    const agent = start(["agent", "--data-dir", this.dir, "--prompt", prompt, ...rest, "--", BINARY, "fake-agent"]);
    this.agents.push(agent);
    return agent;
  }

  async token(scope, name, owner) {
    const of = owner === undefined ? [] : ["--owner", owner];
    const made = start(["token", "create", "--scope", scope, "--name", name, ...of, "--data-dir", this.dir]);
    assert.equal(await made.ended, 0, made.err);
    return made.out.trim();
  }

  /** A call of the API; its body, whatever the status. */
  async call(token, method, path, body) {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const response = await fetch(`${this.url}/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  }

  /** Another desk: a page session that has reported the question as painted; what it returns answers it (S15). */
  async desk(name, id) {
    const secret = await this.token("operator", name);
    const { body: login } = await this.call("", "POST", "/login", { secret, name });
    const { body: ask } = await this.call(login.token, "GET", `/asks/${id}`);
    assert.equal((await this.call(login.token, "POST", `/asks/${id}/seen`, { digest: ask.digest })).status, 204);
    await new Promise((resolve) => setTimeout(resolve, 400));
    return (answers) => this.call(login.token, "POST", `/asks/${id}/answer`, { answers });
  }

  async down(signal = "SIGTERM") {
    if (this.run.child.exitCode !== null || this.run.child.signalCode !== null) return;
    this.run.child.kill(signal);
    await this.run.ended;
  }

  async end() {
    for (const agent of this.agents) agent.child.kill("SIGTERM");
    await Promise.all(this.agents.map((agent) => agent.ended));
    await this.down();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
