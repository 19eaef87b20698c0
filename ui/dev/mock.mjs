// A scripted stand-in for the inbox: the same HTTP API with made-up asks and verdicts. For page work and the page's own tests.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { sampleAsks, sampleMessages, sampleSessions, settlement } from "./samples.mjs";

const PAGE = new URL("../../crates/handraise-server/page/", import.meta.url);
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

export const SECRET = "a-secret-that-works-exactly-once";
export const TOKENS = { admin: "admin-token-for-page-work", operator: "operator-token-for-page-work", viewer: "viewer-token-for-page-work" };

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

export class Mock {
  constructor({ asks = sampleAsks(), sessions = sampleSessions(), messages = sampleMessages(), pageSize = 50 } = {}) {
    this.asks = new Map(asks.map((ask) => [ask.id, ask]));
    this.sessions = new Map(sessions.map((session) => [session.id, session]));
    this.messages = messages;
    this.pageSize = pageSize;
    this.flags = [
      { name: "features.acpElicitation", value: true, source: "setting" },
      { name: "elicitation", value: true, source: "default" },
    ];
    this.tokens = [
      { id: "t1", name: "laptop", scope: "holder", owner: "Desk one", created_at: new Date().toISOString(), expires_at: null, page_session: false },
      { id: "t2", name: "Desk one", scope: "admin", owner: null, created_at: new Date().toISOString(), expires_at: null, page_session: true },
    ];
    this.logins = new Map(Object.entries(TOKENS).map(([scope, token]) => [token, { token, scope, name: "Desk one" }]));
    this.agents = [
      { id: "claude", cwd: "~/src/orders" },
      { id: "codex", cwd: null },
    ];
    this.spent = false;
    /** By ask id: how the next answers go: a function (body, ask, login) ⇒ {status, body}, or nothing for plain acceptance. */
    this.verdicts = new Map();
    /** Everything the page has sent, in order. */
    this.log = [];
    this.streams = new Set();
    this.kept = [];
    this.nextEvent = 1;
    /** A promise that `seen` reports wait for. */
    this.seenGate = null;
    /** A promise that fetching a single ask waits for. */
    this.askGate = null;
    /** Cuts every connection, as if the inbox were gone. */
    this.gone = false;
    /** Keeps no events: who reconnects gets a snapshot. */
    this.forgetful = false;
    this.server = createServer((request, response) => {
      this.handle(request, response).catch((error) => {
        console.error(error);
        response.writeHead(500).end();
      });
    });
  }

  async start(port = 0) {
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }

  async stop() {
    this.dropStreams();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Cuts the live streams; with `gone`, everything else, too. */
  dropStreams(gone = false) {
    this.gone = gone;
    for (const stream of this.streams) stream.destroy();
    this.streams.clear();
  }

  emit(event, data) {
    const frame = { id: this.nextEvent++, event, data };
    this.kept.push(frame);
    for (const stream of this.streams) write(stream, frame);
  }

  open(ask) {
    this.asks.set(ask.id, ask);
    this.emit("ask.opened", ask);
    this.emit("session.clarification_requested", ask);
  }

  update(id, more) {
    const ask = { ...this.asks.get(id), ...more };
    this.asks.set(id, ask);
    this.emit("ask.updated", ask);
    return ask;
  }

  settle(id, how) {
    const ask = { ...this.asks.get(id), state: "settled", settlement: how };
    this.asks.set(id, ask);
    this.emit("ask.settled", ask);
    return ask;
  }

  sent(path) {
    return this.log.filter((entry) => entry.path.startsWith(path));
  }

  openAsks() {
    return [...this.asks.values()].filter((ask) => ask.state !== "settled");
  }

  snapshot() {
    const open = this.openAsks();
    return {
      asks: open.slice(0, this.pageSize),
      open: open.length,
      next_cursor: open.length > this.pageSize ? String(this.pageSize) : null,
      sessions: [...this.sessions.values()],
    };
  }

  async handle(request, response) {
    const url = new URL(request.url, "http://x");
    if (this.gone) return request.socket.destroy();
    if (!url.pathname.startsWith("/api/v1/")) return this.file(url.pathname, response);
    const path = url.pathname.slice("/api/v1".length);
    const body = await read(request);
    const reply = (status, value) => {
      response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
      response.end(value === undefined ? "" : JSON.stringify(value));
    };
    if (request.method !== "GET") this.log.push({ method: request.method, path, body, at: Date.now() });
    if (path === "/login") {
      const link = body.secret === SECRET && !this.spent;
      const own = this.logins.get(body.secret);
      if (!link && own === undefined) return reply(401, error("UNAUTHORIZED", "no such secret"));
      if (link) this.spent = true;
      const login = { token: `page-${this.logins.size}`, scope: link ? "admin" : own.scope, name: body.name || "you" };
      this.logins.set(login.token, login);
      return reply(200, login);
    }
    const login = this.logins.get((request.headers.authorization ?? "").replace("Bearer ", ""));
    if (login === undefined) return reply(401, error("UNAUTHORIZED", "sign in first"));
    if (path === "/events") return this.stream(request, response);
    if (path === "/logout") {
      this.logins.delete(login.token);
      return reply(204);
    }
    if (path === "/agents") return reply(200, { agents: this.agents });
    if (path === "/asks/answer-batch") return this.batch(body, login, reply);
    if (path === "/asks") return reply(200, this.page(url.searchParams));
    const [, kind, id, verb] = path.split("/").map(decodeURIComponent);
    if (kind === "asks") return this.ask(id, verb, body, login, reply);
    if (kind === "sessions") return this.session(id, verb, url.searchParams, body, reply);
    if (kind === "flags") {
      const flag = this.flags.find((one) => one.name === id);
      if (flag === undefined) return reply(200, { flags: this.flags });
      Object.assign(flag, body.value === null ? { value: true, source: "default" } : { value: body.value, source: "setting" });
      return reply(200, flag);
    }
    if (kind === "tokens") {
      if (request.method === "POST") {
        const made = { id: `t${this.tokens.length + 1}`, name: body.name ?? body.scope, scope: body.scope, owner: body.owner, created_at: new Date().toISOString(), expires_at: null, page_session: false };
        this.tokens.unshift(made);
        return reply(200, { id: made.id, token: "hr_operator_4f1c0c5e9d7b" });
      }
      if (request.method === "DELETE") {
        this.tokens = this.tokens.filter((token) => token.id !== id);
        return reply(204);
      }
      return reply(200, { tokens: this.tokens });
    }
    return reply(404, error("NOT_FOUND", "no such call"));
  }

  page(query) {
    const from = Number(query.get("cursor") ?? 0);
    const limit = Number(query.get("limit") ?? 50);
    const all = this.openAsks();
    return { asks: all.slice(from, from + limit), next_cursor: from + limit < all.length ? String(from + limit) : null };
  }

  async ask(id, verb, body, login, reply) {
    const ask = this.asks.get(id);
    if (ask === undefined) return reply(404, { ...error("NOT_FOUND", "no such ask"), settlement: null, recorded: false });
    if (verb === undefined) {
      await this.askGate;
      return reply(200, { ...ask, events: [] });
    }
    if (verb === "seen") {
      await this.seenGate;
      return reply(204);
    }
    if (login.scope === "viewer") return reply(403, error("FORBIDDEN", "the scope viewer may not answer"));
    const verdict = this.verdicts.get(id);
    if (verdict !== undefined) {
      const { status, body: text } = await verdict(body, ask, login);
      return reply(status, text);
    }
    if (ask.settlement !== null) return reply(404, { ...error("NOT_FOUND", "it has ended"), settlement: ask.settlement, recorded: false });
    const by = { by: login.name, answers: masked(ask, body.answers), submission_id: `sub-${this.log.length}`, reason: body.reject_reason || null };
    return reply(200, this.settle(id, settlement(body.rejected ? "decline" : "accept", by)));
  }

  batch({ submissions }, login, reply) {
    const ended = submissions.map(({ id }) => this.asks.get(id)).find((ask) => ask === undefined || ask.settlement !== null);
    if (ended !== undefined) return reply(404, { ...error("NOT_FOUND", "one had ended"), settlement: ended.settlement, recorded: false });
    return reply(200, { asks: submissions.map(({ id, answers }) => this.settle(id, settlement("accept", { by: login.name, answers, submission_id: `sub-${id}` }))) });
  }

  session(id, verb, query, body, reply) {
    if (id === undefined && body !== undefined) {
      const made = { ...this.sessions.get("s-infra"), id: `s-${this.sessions.size}`, agent: body.agent, title: body.prompt ?? body.agent, cwd: body.cwd };
      this.sessions.set(made.id, made);
      return reply(200, made);
    }
    if (id === undefined) return reply(200, { sessions: [...this.sessions.values()] });
    if (verb === "messages") {
      const after = Number(query.get("after") ?? -1);
      const list = this.messages.filter((message) => message.session_id === id && message.seq > after);
      return reply(200, { messages: list.slice(0, 100), next_after: list.length > 100 ? list[99].seq : null });
    }
    return reply(202);
  }

  stream(request, response) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const last = Number(request.headers["last-event-id"] ?? 0);
    const resumes = last > 0 && (this.kept.length === 0 || this.kept[0].id <= last + 1) && !this.forgetful;
    if (resumes) for (const frame of this.kept.filter((one) => one.id > last)) write(response, frame);
    else write(response, { id: this.nextEvent++, event: "snapshot", data: this.snapshot() });
    this.streams.add(response);
    request.on("close", () => this.streams.delete(response));
  }

  async file(path, response) {
    const name = /^\/(assets|icons)\//.test(path) ? path.slice(1) : "index.html";
    try {
      const content = await readFile(new URL(name, PAGE));
      response.writeHead(200, { ...HEADERS, "content-type": TYPES[extname(name)] ?? "application/octet-stream" });
      response.end(content);
    } catch {
      response.writeHead(404, HEADERS).end();
    }
  }
}

function masked(ask, answers) {
  const secret = new Set(ask.questions.filter((question) => question.secret).map((question) => question.id));
  return answers.map((answer) => (secret.has(answer.question_id) ? { ...answer, custom_text: "•" } : answer));
}

function write(stream, { id, event, data }) {
  stream.write(`id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

export function error(code, message, details = []) {
  return { error: { code, message, details } };
}

async function read(request) {
  let text = "";
  for await (const part of request) text += part;
  return text === "" ? undefined : JSON.parse(text);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const mock = await new Mock().start(Number(process.env.PORT ?? 7346));
  console.log(`${mock.url}/#sign-in=${SECRET}`);
}
