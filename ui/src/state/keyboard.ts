// The keys that mean the same everywhere on the page. Keys of a card are the card's.
import { useEffect } from "preact/hooks";
import { isField } from "../components/shortcuts.ts";
import type { Inbox } from "../model/inbox.ts";
import { mark } from "./marked.ts";
import { go, route } from "./router.ts";

/** A second key within this time completes a pair such as "g i". */
const PAIR = 1_500;

export function useKeyboard(inbox: Inbox, onHelp: () => void): void {
  useEffect(() => {
    let pairUntil = 0;
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isField(event.target) || document.querySelector("dialog[open]") !== null) {
        if (event.key === "Escape" && isField(event.target) && event.target instanceof HTMLElement) {
          // Without this the browser empties a search field behind the page's back.
          event.preventDefault();
          event.target.blur();
        }
        return;
      }
      if (event.key === "g" && !event.repeat) pairUntil = performance.now() + PAIR;
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
      else if (event.key === "x") mark(inbox.asks.get(rowInView() ?? ""));
      else if (event.key === "/") find();
      else if (event.key === "u" || event.key === "Escape") up();
      else if (event.key === "?") onHelp();
      else return;
      event.preventDefault();
    };
    // In the capture phase, because "g s" must not skip the card in focus.
    const onPair = (event: KeyboardEvent): void => {
      const inTime = performance.now() < pairUntil;
      pairUntil = 0;
      if (!inTime || isField(event.target) || (event.key !== "i" && event.key !== "s")) return;
      event.stopPropagation();
      event.preventDefault();
      go(event.key === "i" ? { page: "inbox", ask: null } : { page: "sessions", session: null });
    };
    window.addEventListener("keydown", onPair, true);
    window.addEventListener("keydown", onKey);
    return () => {
      window.removeEventListener("keydown", onPair, true);
      window.removeEventListener("keydown", onKey);
    };
  }, [inbox, onHelp]);
}

/** The ask whose row has the focus, else the one that is open. */
function rowInView(): string | null {
  const now = route.get();
  return document.activeElement?.getAttribute("data-row") ?? (now.page === "inbox" ? now.ask : null);
}

function find(): void {
  const field = document.querySelector<HTMLInputElement>(".find input");
  field?.focus();
  field?.select();
}

/** Moves the focus to the next or previous row of the list. */
function step(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const at = rows.findIndex((row) => row === document.activeElement);
  const current = at >= 0 ? at : rows.findIndex((row) => row.getAttribute("aria-current") === "true");
  const next = current < 0 ? (by === 1 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, current + by));
  rows[next]?.focus();
  rows[next]?.scrollIntoView({ block: "nearest" });
}

/** Closes the card or session in view; nothing is skipped or lost by it. */
function up(): void {
  const now = route.get();
  if (now.page === "inbox" && now.together === true) go({ page: "inbox", ask: null });
  else if (now.page === "inbox" && now.ask !== null) {
    const row = now.ask;
    go({ page: "inbox", ask: null });
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-row="${CSS.escape(row)}"]`)?.focus());
  } else if (now.page === "sessions" && now.session !== null) go({ page: "sessions", session: null });
}
