// The live connection: one stream a page, its events put into the inbox, further list pages loaded behind it.
import { type Client, CallError } from "../api/client.ts";
import type { ServerEvent } from "../api/sse.ts";
import { openStream, type Link, type Stream } from "../api/stream.ts";
import type { Ask, AskList, Login, Message, MessageList, Session, Snapshot } from "../api/types.ts";
import { Inbox } from "../model/inbox.ts";
import { addMessages } from "../model/transcript.ts";
import * as words from "../words.ts";
import { leave } from "./access.ts";
import { Cell } from "./cell.ts";
import { settleSubmission } from "./submissions.ts";

/** List pages loaded behind the first one: 20 × 500 asks. */
const PAGES = 20;

export interface Live {
  readonly inbox: Inbox;
  readonly api: Client;
  readonly login: Login;
  /** Changes whenever the inbox does. */
  readonly version: Cell<number>;
  readonly link: Cell<Link>;
  /** Date.now() of the last event. */
  heardAt: number;
  /** Milliseconds since 1970 by the inbox's clock. */
  now(): number;
  changed(): void;
  retryNow(): void;
  loadAsk(id: string): Promise<"found" | "missing" | "failed">;
  loadMessages(session: string): Promise<boolean>;
  close(): void;
}

export function goLive(login: Login, api: Client): Live {
  const inbox = new Inbox();
  const version = new Cell(0);
  const link = new Cell<Link>({ is: "connecting" });
  let offset = 0;
  let queued = false;
  let epoch = 0;

  function changed(): void {
    if (queued) return;
    queued = true;
    queueMicrotask(() => {
      queued = false;
      version.set(version.get() + 1);
    });
  }

  async function loadPages(first: string | null): Promise<void> {
    epoch += 1;
    const mine = epoch;
    let cursor = first;
    for (let page = 0; page < PAGES && cursor !== null; page += 1) {
      const list: AskList = await api.get<AskList>(`/asks?state=open&limit=500&cursor=${encodeURIComponent(cursor)}`);
      // A newer snapshot has replaced everything.
      if (mine !== epoch) return;
      cursor = list.next_cursor;
      inbox.page(list.asks, cursor !== null);
      changed();
    }
  }

  function apply({ event, data }: ServerEvent): void {
    const body: unknown = JSON.parse(data);
    switch (event) {
      case "snapshot": {
        const snapshot = body as Snapshot;
        inbox.snapshot(snapshot);
        for (const ask of snapshot.asks) settleSubmission(ask);
        for (const session of inbox.messages.keys()) void live.loadMessages(session);
        loadPages(snapshot.next_cursor).catch(() => undefined);
        break;
      }
      case "ask.opened":
        inbox.opened(body as Ask, Date.now());
        break;
      case "ask.updated":
      case "ask.settled":
        settleSubmission(body as Ask);
        inbox.updated(body as Ask);
        break;
      case "session.updated":
        inbox.sessionUpdated(body as Session);
        break;
      case "session.message":
        inbox.messageArrived(body as Message);
        break;
      default:
        // session.clarification_requested and events of a newer inbox: nothing to show.
        return;
    }
    changed();
  }

  const live: Live = {
    inbox,
    api,
    login,
    version,
    link,
    heardAt: Date.now(),
    now: () => Date.now() + offset,
    changed,
    retryNow: () => stream.retryNow(),
    async loadAsk(id) {
      try {
        inbox.fetched(await api.get<Ask>(`/asks/${encodeURIComponent(id)}`));
        changed();
        return "found";
      } catch (error) {
        return error instanceof CallError && (error.status === 404 || error.status === 400) ? "missing" : "failed";
      }
    },
    async loadMessages(session) {
      // Known from now on, so that events that come meanwhile are kept.
      if (!inbox.messages.has(session)) inbox.messages.set(session, []);
      let after = inbox.messages.get(session)?.at(-1)?.seq ?? null;
      try {
        do {
          const list: MessageList = await api.get<MessageList>(`/sessions/${encodeURIComponent(session)}/messages${after === null ? "" : `?after=${after}`}`);
          inbox.messages.set(session, addMessages(inbox.messages.get(session) ?? [], list.messages));
          after = list.next_after;
          changed();
        } while (after !== null);
        return true;
      } catch {
        return false;
      }
    },
    close: () => stream.close(),
  };

  const stream: Stream = openStream(login.token, {
    event(event) {
      live.heardAt = Date.now();
      try {
        apply(event);
      } catch (error) {
        console.error(error);
      }
    },
    link: (next) => link.set(next),
    clock: (milliseconds) => {
      offset = milliseconds;
    },
    refused: () => leave(words.signInEnded),
  });
  return live;
}
