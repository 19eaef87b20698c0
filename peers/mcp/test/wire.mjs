// A client that writes bytes: for frames that no SDK would send.

import { spawn } from "node:child_process";

import { request } from "./smuggled-frames.mjs";

const PATIENCE_MS = 20_000;

/** A process that speaks a line protocol, with an opening in one era behind it. */
export class Wire {
  #waiting = [];
  #frames = [];
  #ended = false;
  #fences = 0;

  constructor([command, ...args], isModern, env = {}) {
    this.isModern = isModern;
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"], env: { ...process.env, ...env } });
    this.process.stdin.on("error", () => {});
    let rest = "";
    this.process.stdout.setEncoding("utf8").on("data", (chunk) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop();
      for (const line of lines.filter((line) => line.trim())) this.#arrive(JSON.parse(line));
    });
    this.process.on("close", () => this.#arrive(undefined));
  }

  /** Opens the connection; gives what the server says of itself. */
  async open() {
    if (this.isModern) return this.ask("open", "server/discover", {});
    const capabilities = { elicitation: { form: {} } };
    const clientInfo = { name: "smuggler", version: "1" };
    const answer = await this.ask("open", "initialize", { protocolVersion: "2025-11-25", capabilities, clientInfo });
    this.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    return answer;
  }

  /** Writes one line: text or bytes. */
  send(frame) {
    this.process.stdin.write(Buffer.concat([Buffer.from(frame), Buffer.from("\n")]));
  }

  /** The next frame, or undefined when there will be none. */
  async next() {
    if (this.#frames.length > 0) return this.#frames.shift();
    if (this.#ended) return undefined;
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing came within ${PATIENCE_MS} ms`)), PATIENCE_MS);
    });
    const frame = new Promise((resolve) => this.#waiting.push(resolve));
    return Promise.race([frame, late]).finally(() => clearTimeout(timer));
  }

  /** Sends a request and gives the frame that answers it. */
  async ask(id, method, params) {
    this.send(request(id, method, params, this.isModern));
    for (;;) {
      const frame = await this.next();
      if (!frame || frame.id === id) return frame;
    }
  }

  /** Sends a frame, and after it a harmless request: gives everything that comes before the answer to that one. */
  async before(frame) {
    const fence = `fence ${++this.#fences}`;
    this.send(frame);
    this.send(request(fence, "tools/list", {}, this.isModern));
    const frames = [];
    for (;;) {
      const frame = await this.next();
      if (frame && frame.id !== fence) frames.push(frame);
      else return { frames, isAlive: frame !== undefined };
    }
  }

  /** Ends the process, and waits until it is gone. */
  async close() {
    const gone = new Promise((resolve) => this.process.on("exit", resolve));
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    this.process.stdin.end();
    const timer = setTimeout(() => this.process.kill("SIGKILL"), 5000);
    await gone;
    clearTimeout(timer);
  }

  #arrive(frame) {
    if (frame === undefined) {
      this.#ended = true;
      for (const resolve of this.#waiting.splice(0)) resolve(undefined);
    } else if (this.#waiting.length > 0) {
      this.#waiting.shift()(frame);
    } else {
      this.#frames.push(frame);
    }
  }
}
