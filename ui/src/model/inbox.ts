// What the page knows of the inbox, kept up to date by events. The server is the truth; nothing here decides anything.
import type { Ask, Message, Session, Snapshot } from "../api/types.ts";
import { addMessages } from "./transcript.ts";

/** A settled ask stays readable for as long as the page may show it. */
const SETTLED_KEPT = 200;

export class Inbox {
  readonly asks = new Map<string, Ask>();
  readonly sessions = new Map<string, Session>();
  /** Of sessions that were opened on this page only. */
  readonly messages = new Map<string, Message[]>();
  /** Whether a snapshot has come. */
  ready = false;
  /** Open asks that the page has not loaded, by the inbox's count. */
  unloaded = 0;
  /** The newest ask that came by itself, for the live region. */
  arrived: { ask: Ask; at: number } | null = null;
  /** Asks of which something newer than any list page is known since the last snapshot. */
  readonly #touched = new Set<string>();
  readonly #settled: string[] = [];

  get openCount(): number {
    let open = this.unloaded;
    for (const ask of this.asks.values()) if (ask.state !== "settled") open += 1;
    return open;
  }

  /** Replaces everything; only settled asks, which the snapshot leaves out, stay readable. */
  snapshot(snapshot: Snapshot): void {
    const before = [...this.asks.values()].filter((ask) => ask.state !== "settled");
    for (const ask of before) this.asks.delete(ask.id);
    this.#touched.clear();
    this.ready = true;
    for (const ask of snapshot.asks) this.#put(ask);
    this.unloaded = Math.max(0, snapshot.open - snapshot.asks.length);
    this.sessions.clear();
    for (const session of snapshot.sessions) this.sessions.set(session.id, session);
    this.arrived = null;
  }

  /** A further page of open asks; what events have said since is newer and wins. */
  page(asks: readonly Ask[], more: boolean): void {
    for (const ask of asks) {
      if (this.#touched.has(ask.id) || this.asks.get(ask.id)?.state === "settled") continue;
      if (!this.asks.has(ask.id)) this.unloaded = Math.max(0, this.unloaded - 1);
      this.#put(ask);
    }
    if (!more) this.unloaded = 0;
  }

  opened(ask: Ask, now: number): void {
    const known = this.asks.get(ask.id);
    this.#touched.add(ask.id);
    this.#put(ask);
    if (known === undefined && ask.state !== "settled") this.arrived = { ask, at: now };
  }

  /** An ask changed or ended, or was fetched by itself. What has settled never reopens. */
  updated(ask: Ask): void {
    const known = this.asks.get(ask.id);
    if (known?.state === "settled" && ask.state !== "settled") return;
    if (known === undefined && !this.#touched.has(ask.id) && ask.state === "settled") {
      this.unloaded = Math.max(0, this.unloaded - 1);
    }
    this.#touched.add(ask.id);
    this.#put(ask);
  }

  /** An ask that was asked for by its id; not news. */
  fetched(ask: Ask): void {
    if (this.#touched.has(ask.id)) return;
    const known = this.asks.get(ask.id);
    if (known?.state === "settled") return;
    if (known === undefined && ask.state !== "settled") this.unloaded = Math.max(0, this.unloaded - 1);
    this.#put(ask);
  }

  sessionUpdated(session: Session): void {
    this.sessions.set(session.id, session);
  }

  /** Only sessions whose transcript is on the page are followed. */
  messageArrived(message: Message): void {
    const known = this.messages.get(message.session_id);
    if (known !== undefined) this.messages.set(message.session_id, addMessages(known, [message]));
  }

  #put(ask: Ask): void {
    if (ask.state === "settled" && this.asks.get(ask.id)?.state !== "settled") {
      this.#settled.push(ask.id);
      while (this.#settled.length > SETTLED_KEPT) {
        const oldest = this.#settled.shift();
        if (oldest !== undefined) this.asks.delete(oldest);
      }
    }
    this.asks.set(ask.id, ask);
  }
}
