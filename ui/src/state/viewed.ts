// Which asks were opened in this browser; the others carry a dot in the list.
import { parsed } from "../model/json.ts";
import { Cell } from "./cell.ts";

const KEY = "handraise.viewed";
const KEPT = 500;

export const viewed = new Cell<ReadonlySet<string>>(load());

export function view(ask: string): void {
  if (viewed.get().has(ask)) return;
  const next = [...viewed.get(), ask].slice(-KEPT);
  viewed.set(new Set(next));
  try {
    localStorage.setItem(KEY, JSON.stringify(next));
  } catch {
    // Without room it is forgotten at the next load.
  }
}

function load(): ReadonlySet<string> {
  const saved = parsed(localStorage.getItem(KEY));
  return new Set(Array.isArray(saved) ? saved.filter((id) => typeof id === "string") : []);
}
