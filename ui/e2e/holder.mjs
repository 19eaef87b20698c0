// A holder that a test scripts: it speaks the holder stream to a real inbox, opens asks, and gives the verdicts it is told.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { request } from "node:http";
import assert from "node:assert/strict";

const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;
/** Asks in one part of a snapshot. */
const PART = 1_000;

/** One client's end of a WebSocket (RFC 6455): text messages, whole frames, no extensions. */
class Socket {
  constructor(stream, onText, onEnd) {
    this.stream = stream;
    let rest = Buffer.alloc(0);
    let text = [];
    stream.on("data", (data) => {
      rest = Buffer.concat([rest, data]);
      for (;;) {
        const frame = frameOf(rest);
        if (frame === null) return;
        rest = rest.subarray(frame.size);
        if (frame.code === CLOSE) return stream.end();
        if (frame.code === PING) this.send(PONG, frame.body);
        if (frame.code > TEXT) continue;
        text.push(frame.body);
        if (!frame.last) continue;
        onText(Buffer.concat(text).toString());
        text = [];
      }
    });
    stream.on("close", onEnd);
    stream.on("error", () => stream.destroy());
  }

  send(code, body) {
    const length = body.length < 126 ? Buffer.from([128 | body.length]) : Buffer.alloc(9, 128 | 127);
    if (body.length >= 126) length.writeBigUInt64BE(BigInt(body.length), 1);
    const mask = randomBytes(4);
    const masked = Buffer.from(body);
    for (let at = 0; at < masked.length; at += 1) masked[at] ^= mask[at % 4];
    this.stream.write(Buffer.concat([Buffer.from([128 | code]), length, mask, masked]));
  }
}

function frameOf(data) {
  if (data.length < 2) return null;
  const short = data[1] & 127;
  const head = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (data.length < head) return null;
  const length = short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
  if (data.length < head + length) return null;
  return { last: data[0] > 127, code: data[0] & 15, body: data.subarray(head, head + length), size: head + length };
}

async function dial(url, token, onText, onEnd) {
  const key = randomBytes(16).toString("base64");
  const headers = { authorization: `Bearer ${token}`, connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13", "sec-websocket-key": key };
  return new Promise((resolve, reject) => {
    const asked = request(`${url}/api/v1/holder`, { headers });
    asked.on("response", (response) => reject(new Error(`no stream: ${response.statusCode}`)));
    asked.on("error", reject);
    asked.on("upgrade", (response, stream, head) => {
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      assert.equal(response.headers["sec-websocket-accept"], accept);
      const socket = new Socket(stream, onText, onEnd);
      if (head.length > 0) stream.unshift(head);
      resolve(socket);
    });
    asked.end();
  });
}

export const REFUSED = (code, message, details, ended = null) => ({ error: { code, message, details }, payload: { ended } });

export class Holder {
  /** `kind` is what the holder says that it is. */
  constructor(inbox, { kind = "agent", token } = {}) {
    Object.assign(this, { inbox, kind, token });
    this.open = new Map();
    /** By ask id: the settlement that nobody but us knows yet. */
    this.ended = new Map();
    this.waiting = new Map();
    this.next = 1;
    /** Every request of the inbox, in order. */
    this.heard = [];
    /**
     * What the holder says to a submission: `(respond, holder) => payload | {error, payload} | promise of it`. Nothing
     * means that it is delivered. Overridden by tests.
     */
    this.verdict = () => undefined;
  }

  /** Dials, says who it is, and tells the open asks and the settlements, as the first time or as the instance that it was. */
  async attach() {
    this.socket = await dial(this.inbox.url, this.token, (text) => this.take(JSON.parse(text)), () => this.lost());
    const hello = { protocol: 1, kind: this.kind, version: "0.1.0", host: "test", instance: this.instance, resume_secret: this.secret };
    const welcome = await this.ask("holder.hello", hello);
    this.instance = welcome.instance;
    this.secret = welcome.resume_secret ?? this.secret;
    await this.tells();
    return this;
  }

  /** What is open and what has ended: a snapshot, in parts. */
  async tells() {
    const all = [...this.open.values()];
    const settlements = [...this.ended.values()];
    for (let seq = 0; seq === 0 || seq * PART < all.length; seq += 1) {
      const asks = all.slice(seq * PART, (seq + 1) * PART);
      const last = (seq + 1) * PART >= all.length;
      await this.ask("asks.snapshot", { seq, last, asks, settlements: last ? settlements : [] });
    }
  }

  /** Leaves without a word, as a killed process does. */
  cut() {
    this.socket.stream.destroy();
  }

  lost() {
    for (const { reject } of this.waiting.values()) reject(new Error("the stream was lost"));
    this.waiting.clear();
  }

  write(frame) {
    this.socket.send(TEXT, Buffer.from(JSON.stringify(frame)));
  }

  /** A request to the inbox; its response's payload. */
  async ask(action, payload) {
    const id = String(this.next++);
    const answered = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.write({ id, type: "request", action, payload });
    const { error, payload: said } = await answered;
    if (error !== undefined) throw new Error(`${action}: ${error.code} ${error.message}`);
    return said;
  }

  take(frame) {
    if (frame.type === "response") {
      this.waiting.get(frame.id)?.resolve(frame);
      this.waiting.delete(frame.id);
      return;
    }
    // Events tell of others, and want no answer.
    if (frame.type === "event") return;
    this.heard.push(frame);
    this.answer(frame).catch((error) => console.error(error));
  }

  async answer({ id, action, payload }) {
    const { socket } = this;
    const said = (await this.verdict(payload, this, action)) ?? {};
    if (socket.stream.destroyed) return;
    const { error, payload: body } = said;
    this.write({ id, type: "response", action, ...(error === undefined ? { payload: { success: true } } : { error, payload: body }) });
    if (error !== undefined) return;
    for (const { pending_id: ask } of payload.submissions ?? [payload]) this.open.delete(ask);
  }

  /** Holds an ask made of one of the samples, and tells of it in the next snapshot; `more` is what the wire has beside it. */
  keeps(ask, more = {}) {
    const { id, source, mode, session_id, tool_call_id, message, url, confirm, on_deadline, allows_text_with_selection, allows_partial, questions, deadline, origin } = ask;
    const content = { source, mode, session_id, tool_call_id, message, url, confirm, on_deadline, allows_text_with_selection, allows_partial, questions };
    const deadline_ms = deadline === null ? null : Math.max(0, Date.parse(deadline) - Date.now());
    this.open.set(id, { id, deadline_ms, parked_ms: null, client: origin.client, server: origin.server, ...content, ...more });
    return id;
  }

  /** Opens an ask, as `keeps` makes it. */
  async opens(ask, more) {
    const id = this.keeps(ask, more);
    await this.ask("ask.opened", { ask: this.open.get(id) });
    return id;
  }

  /** Says again what is open, with a change that an open ask may have. */
  async again(id, more) {
    const announced = { ...this.open.get(id), ...more };
    this.open.set(id, announced);
    await this.ask("ask.opened", { ask: announced });
  }

  ending(id, outcome, more = {}, submission_id) {
    const wire = outcome === "accept" ? "accept" : outcome === "cancel" ? "cancel" : "decline";
    return { pending_id: id, settlement: { outcome, provenance: "system", rail: "inbox", wire, ago_ms: 0, ...more }, submission_id };
  }

  /** Ends an ask by itself, for whatever reason. */
  async settles(id, outcome, more) {
    this.open.delete(id);
    await this.ask("ask.settled", this.ending(id, outcome, more));
  }

  session(id, { agent = "codex-acp", title = null, cwd = null, state = "running", stop_reason = null, background = false }) {
    const said = { session_id: id, agent, title, cwd, state, stop_reason, background };
    this.write({ type: "event", action: "session.updated", payload: said });
  }

  async says(session_id, seq, type, text, more = {}) {
    const message = { seq, session_id, at: new Date().toISOString(), type, author: "agent", text, requests_input: false, metadata: {}, ...more };
    await this.ask("session.message", { message });
  }
}

/** An id as a holder mints it (UUIDv7 in shape). */
export const mint = () => randomUUID().replace(/^(.{14})./, "$17");
