// The live event stream: streaming fetch with the token in the header, resumed with Last-Event-ID, retried for ever.
import { API } from "./client.ts";
import { EventReader, type ServerEvent } from "./sse.ts";

export type Link =
  | { is: "connecting" }
  | { is: "live" }
  /** Lost; the next try starts at `retryAt` (Date.now() milliseconds). */
  | { is: "lost"; since: number; retryAt: number };

export interface StreamHandlers {
  event(event: ServerEvent): void;
  link(link: Link): void;
  /** The inbox's clock minus this browser's, in milliseconds, where it differs noticeably. */
  clock(offset: number): void;
  refused(): void;
}

export interface Stream {
  retryNow(): void;
  close(): void;
}

const FIRST_WAIT = 400;
const LONGEST_WAIT = 10_000;
/** Without a byte for this long the connection is taken for dead. The inbox sends comments in between. */
const SILENCE = 60_000;

export function backoff(failures: number, random: number): number {
  const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.min(failures, 10));
  return wait / 2 + (wait / 2) * random;
}

export function openStream(token: string, handlers: StreamHandlers): Stream {
  let closed = false;
  let failures = 0;
  let lastId: string | null = null;
  let lostSince = 0;
  let attempt = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function connect(): Promise<void> {
    attempt = new AbortController();
    const { signal } = attempt;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => attempt.abort(), SILENCE);
    };
    try {
      const headers: Record<string, string> = { accept: "text/event-stream", authorization: `Bearer ${token}` };
      if (lastId !== null) headers["last-event-id"] = lastId;
      heard();
      const response = await fetch(`${API}/events`, { headers, signal, cache: "no-store", credentials: "omit", redirect: "error" });
      if (response.status === 401 || response.status === 403) {
        closed = true;
        handlers.refused();
        return;
      }
      if (!response.ok || response.body === null) throw new Error(String(response.status));
      noteClock(response.headers.get("date"));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const events = new EventReader();
      failures = 0;
      handlers.link({ is: "live" });
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        heard();
        for (const event of events.push(value)) {
          if (event.id !== null) lastId = event.id;
          handlers.event(event);
        }
      }
      lostSince = 0;
    } catch {
      // Every way to fail ends in the same retry below.
    } finally {
      clearTimeout(silence);
    }
    // A newer attempt took over, or nobody wants the stream any more.
    if (closed || attempt.signal !== signal) return;
    if (lostSince === 0 || failures === 0) lostSince = Date.now();
    const wait = backoff(failures, Math.random());
    failures += 1;
    handlers.link({ is: "lost", since: lostSince, retryAt: Date.now() + wait });
    timer = setTimeout(() => void connect(), wait);
  }

  function noteClock(date: string | null): void {
    const server = date === null ? Number.NaN : Date.parse(date);
    if (Number.isNaN(server)) return;
    const offset = server - Date.now();
    // The header counts whole seconds, and the answer took a moment.
    handlers.clock(Math.abs(offset) > 2_500 ? offset : 0);
  }

  handlers.link({ is: "connecting" });
  void connect();
  return {
    retryNow(): void {
      if (closed) return;
      clearTimeout(timer);
      attempt.abort();
      failures = 0;
      void connect();
    },
    close(): void {
      closed = true;
      clearTimeout(timer);
      attempt.abort();
    },
  };
}
