// Where a scenario is played: at the real inbox with scripted holders or, without a binary, at the page's stand-in for it.
import assert from "node:assert/strict";
import { TOKENS } from "../dev/mock.mjs";
import { serve, served } from "./browser.mjs";
import { Holder } from "./holder.mjs";
import { BINARY, Inbox } from "./inbox.mjs";

const NAME = "Desk one";

class StandIn {
  constructor(mock, scope) {
    Object.assign(this, { mock, url: mock.url, login: { token: TOKENS[scope], scope, name: NAME } });
  }

  open(ask) {
    this.mock.open(ask);
  }

  /** The holder of this ask comes or goes. */
  connected(id, holder_connected) {
    this.mock.update(id, { holder_connected });
  }

  /** The bodies of the answers to this ask. */
  answers(id) {
    return this.mock.sent(`/asks/${id}/answer`).map((call) => call.body);
  }
}

class Real {
  constructor(scope) {
    this.inbox = new Inbox(() => "[limits]\nopen_asks = 20000\n");
    this.scope = scope;
    /** By the name of the token that they come with. */
    this.holders = new Map();
  }

  async start({ asks, sessions = [], messages = [] }) {
    const { inbox, scope } = this;
    this.url = (await inbox.up()).url;
    this.secret = await inbox.token("admin", "setup");
    const login = await inbox.call("", "POST", "/login", { secret: await inbox.token(scope, scope), name: NAME });
    this.login = login.body;
    for (const session of sessions) (await this.holder(session.holder_token)).session(session.id, session);
    for (const message of messages) await [...this.holders.values()][0].ask("session.message", { message });
    for (const ask of asks) (await this.holder(ask.origin.holder_token)).keeps(ask);
    for (const holder of this.holders.values()) await holder.tells();
    for (const { id, settlement } of asks.filter((ask) => ask.settlement !== null)) {
      const body = { answers: settlement.answers, rejected: settlement.outcome === "decline", reject_reason: settlement.reason ?? "" };
      assert.equal((await inbox.call(this.login.token, "POST", `/asks/${id}/answer`, body)).status, 200);
    }
    return this;
  }

  /** The holder with a token of this name, or of a plain one where the inbox takes no such name (S39). */
  async holder(name) {
    const known = this.holders.get(name);
    if (known !== undefined) return known;
    let made = await this.inbox.call(this.secret, "POST", "/tokens", { scope: "holder", name });
    if (made.status === 400) made = await this.inbox.call(this.secret, "POST", "/tokens", { scope: "holder", name: "plain" });
    const holder = await new Holder(this.inbox, { token: made.body.token }).attach();
    this.holders.set(name, holder);
    return holder;
  }

  of(id) {
    return [...this.holders.values()].find((holder) => holder.open.has(id));
  }

  async open(ask) {
    await (await this.holder(ask.origin.holder_token)).opens(ask);
  }

  async connected(id, yes) {
    await (yes ? this.of(id).attach() : this.of(id).cut());
  }

  answers(id) {
    return [...this.holders.values()].flatMap((holder) => holder.heard.map((frame) => frame.payload).filter((one) => one.pending_id === id));
  }

  async stop() {
    for (const holder of this.holders.values()) holder.cut();
    await this.inbox.end();
  }
}

/** An inbox with this in it, until `shutDown`, and a page's sign-in to it. */
export async function place(world, { scope = "operator", real = BINARY !== undefined } = {}) {
  if (!real) return new StandIn(await serve(world), scope);
  const made = new Real(scope);
  served.push(made);
  return made.start(world);
}
