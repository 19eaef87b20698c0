// Tells the inbox that a question was painted, and which one: provenance rests on it (S15).
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";
import type { Ask } from "../api/types.ts";
import { STILL } from "../model/guard.ts";
import { may } from "./access.ts";
import type { Live } from "./live.ts";

/** By ask and digest: settles STILL after the inbox took the report, or at once where it did not. */
const reports = new Map<string, Promise<void>>();

export function useSeen(live: Live, ask: Ask, card: RefObject<HTMLElement | null>): void {
  const open = ask.state !== "settled";
  useEffect(() => {
    const element = card.current;
    const key = `${live.login.token}\n${ask.id}\n${ask.digest}`;
    if (element === null || !open || !may(live.login, "operator") || reports.has(key)) return undefined;
    let gone = false;
    let onScreen = false;
    const tryNow = (): void => {
      if (!onScreen || document.visibilityState !== "visible") return;
      // The second frame begins after the first one, which holds the card, was painted.
      requestAnimationFrame(() =>
        requestAnimationFrame(() => {
          if (gone || reports.has(key) || document.visibilityState !== "visible") return;
          reports.set(key, report(live, ask, key));
        }),
      );
    };
    const watch = new IntersectionObserver((entries) => {
      onScreen = entries.at(-1)?.isIntersecting ?? false;
      tryNow();
    });
    watch.observe(element);
    document.addEventListener("visibilitychange", tryNow);
    return () => {
      gone = true;
      watch.disconnect();
      document.removeEventListener("visibilitychange", tryNow);
    };
  }, [live, ask.id, ask.digest, open]);
}

async function report(live: Live, ask: Ask, key: string): Promise<void> {
  try {
    await live.api.send("POST", `/asks/${encodeURIComponent(ask.id)}/seen`, { digest: ask.digest });
  } catch {
    // Tried again the next time that the card is shown; without it the answer counts as a client's.
    reports.delete(key);
    return;
  }
  await new Promise((resolve) => setTimeout(resolve, STILL));
}

/** To be awaited before an answer is sent, so that it never overtakes the report. */
export async function reported(live: Live, ask: Ask): Promise<void> {
  await reports.get(`${live.login.token}\n${ask.id}\n${ask.digest}`);
}
