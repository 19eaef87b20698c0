// What the person has put into cards, kept while the page lives and, as drafts, beyond. Events never write here.
import type { Ask } from "../api/types.ts";
import type { Entries, Entry } from "../model/answers.ts";
import { loadDraft, removeDraft, saveDraft, sweepDrafts, type Draft } from "../model/drafts.ts";
import { Cell } from "./cell.ts";

const drafts = new Map<string, Cell<Draft>>();

export function entriesOf(ask: Ask): Cell<Draft> {
  let cell = drafts.get(ask.id);
  if (cell === undefined) {
    cell = new Cell(loadDraft(localStorage, ask));
    drafts.set(ask.id, cell);
  }
  return cell;
}

export function putEntry(ask: Ask, question: string, entry: Entry): void {
  const cell = entriesOf(ask);
  const entries: Entries = { ...cell.get().entries, [question]: entry };
  cell.set({ entries, savedAt: saveDraft(localStorage, ask, entries, Date.now()) });
}

/** After the ask has ended nothing needs the draft; what stands on the screen stays. */
export function dropDraft(ask: string): void {
  removeDraft(localStorage, ask);
}

export function forgetEntries(): void {
  drafts.clear();
}

sweepDrafts(localStorage, Date.now());
