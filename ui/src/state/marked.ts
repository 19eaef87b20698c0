// The asks that are marked with `x`, to be answered together (S44). They are forgotten with the page.
import type { Ask } from "../api/types.ts";
import { Cell } from "./cell.ts";

export const marked = new Cell<ReadonlySet<string>>(new Set());

/** Only confirms and permissions can be answered together. */
export function mark(ask: Ask | undefined): void {
  if (ask === undefined) return;
  const next = new Set(marked.get());
  if (!next.delete(ask.id) && ask.state === "open" && (ask.source === "confirm" || ask.source === "permission")) next.add(ask.id);
  marked.set(next);
}
